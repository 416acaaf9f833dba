package api

import (
	"context"
	"net/http"

	"github.com/gitring/gitring/ring"
)

// NotifyTestRequest is the body of POST /v1/notify/test. Name "" is every
// receiver.
type NotifyTestRequest struct {
	Name string `json:"name,omitempty"`
}

// NotifyTested is what became of the test message of one receiver.
type NotifyTested struct {
	Name    string `json:"name"`
	Service string `json:"service"`
	Taken   bool   `json:"taken"`
	Reason  string `json:"reason,omitempty"` // why it was not taken; it holds no secret
}

// OutboxRetryRequest is the body of POST /v1/outbox/retry: one of an ID, All that
// has not arrived, or those that are Dead.
type OutboxRetryRequest struct {
	ID   string `json:"id,omitempty"`
	All  bool   `json:"all,omitempty"`
	Dead bool   `json:"dead,omitempty"`
}

// OutboxRetried says how many are tried again.
type OutboxRetried struct {
	Count int `json:"count"`
}

func (s *Socket) notifyTest(w http.ResponseWriter, r *http.Request, p Peer) error {
	var q NotifyTestRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	all, err := s.calls.NotifyTest(r.Context(), p, q)
	if err != nil {
		return err
	}
	return writeJSON(w, all)
}

func (s *Socket) outbox(w http.ResponseWriter, r *http.Request, _ Peer) error {
	all, err := s.calls.Outbox(r.Context())
	if err != nil {
		return err
	}
	if all == nil {
		all = []ring.Unsaid{}
	}
	return writeJSON(w, all)
}

func (s *Socket) outboxRetry(w http.ResponseWriter, r *http.Request, p Peer) error {
	var q OutboxRetryRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	chosen := 0
	for _, yes := range []bool{q.ID != "", q.All, q.Dead} {
		if yes {
			chosen++
		}
	}
	if chosen != 1 {
		return Usage("gitring outbox list shows them", "one of id, all and dead")
	}
	done, err := s.calls.OutboxRetry(r.Context(), p, q)
	if err != nil {
		return err
	}
	return writeJSON(w, done)
}

// NotifyTest sends a test message to receivers now.
func (c *Client) NotifyTest(ctx context.Context, r NotifyTestRequest) ([]NotifyTested, error) {
	var out []NotifyTested
	return out, c.ask(ctx, http.MethodPost, "/v1/notify/test", nil, r, &out)
}

// Outbox is everything that has not arrived.
func (c *Client) Outbox(ctx context.Context) ([]ring.Unsaid, error) {
	var out []ring.Unsaid
	return out, c.ask(ctx, http.MethodGet, "/v1/outbox", nil, nil, &out)
}

// OutboxRetry has what has not arrived tried again at once.
func (c *Client) OutboxRetry(ctx context.Context, r OutboxRetryRequest) (OutboxRetried, error) {
	var out OutboxRetried
	return out, c.ask(ctx, http.MethodPost, "/v1/outbox/retry", nil, r, &out)
}
