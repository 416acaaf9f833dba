package api

import (
	"context"
	"net/http"

	"github.com/gitring/gitring/doctor"
)

func (s *Socket) doctor(w http.ResponseWriter, r *http.Request, _ Peer) error {
	report, err := s.calls.Doctor(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, report)
}

// Doctor has the daemon look for what is wrong with its host.
func (c *Client) Doctor(ctx context.Context) (doctor.Report, error) {
	var r doctor.Report
	return r, c.ask(ctx, http.MethodGet, "/v1/doctor", nil, nil, &r)
}
