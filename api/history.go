package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

func (s *Socket) commits(w http.ResponseWriter, r *http.Request, _ Peer) error {
	q := query{values: r.URL.Query()}
	h := HistoryQuery{App: q.text("app"), Limit: q.number("limit", 100)}
	if q.err != nil {
		return q.err
	}
	commits, err := s.calls.Commits(r.Context(), h)
	if err != nil {
		return err
	}
	if commits == nil {
		commits = []CommitNow{}
	}
	return writeJSON(w, commits)
}

// Commits is what became of each commit, newest first.
func (c *Client) Commits(ctx context.Context, q HistoryQuery) ([]CommitNow, error) {
	v := url.Values{}
	set(v, "app", q.App)
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	var commits []CommitNow
	return commits, c.ask(ctx, http.MethodGet, "/v1/commits", v, nil, &commits)
}
