package api

import (
	"context"
	"net/http"

	"github.com/gitring/gitring/ring"
)

func (s *Socket) usage(w http.ResponseWriter, r *http.Request, _ Peer) error {
	u, err := s.calls.Usage(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, u)
}

// Usage is what the instances of this host take of it now, by container ID.
func (c *Client) Usage(ctx context.Context) (map[string]ring.Usage, error) {
	var u map[string]ring.Usage
	return u, c.ask(ctx, http.MethodGet, "/v1/usage", nil, nil, &u)
}
