package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gitring/gitring/ring"
)

// ProofRequest is the body of POST /v1/proof. Target is app/service, app/service/slot, or
// the name or ID of a container.
type ProofRequest struct {
	Target string `json:"target"`
	// From is where the chain of commits is to begin; "" is where trust began.
	From ring.SHA `json:"from,omitempty"`
	// After is the last line of the journal that is known already; 0 is none. Those that
	// came since are in the proof, however many they are.
	After int64 `json:"after,omitempty"`
	// Most is how many bytes it may have; 0 is 1 MiB.
	Most int `json:"most,omitempty"`
}

// ProofMade is the answer.
type ProofMade struct {
	// Proof is the file, as "gitring prove --check" reads it.
	Proof json.RawMessage `json:"proof"`
	// Doubts are of commits in it that this host's own rules of today would not pass.
	Doubts []*ring.Refusal `json:"doubts"`
}

func (s *Socket) prove(w http.ResponseWriter, r *http.Request, p Peer) error {
	var a ProofRequest
	if err := readJSON(r, &a); err != nil {
		return err
	}
	if a.Target == "" {
		return Usage("gitring status lists apps and services", "what shall be proven? name a container or app/service")
	}
	made, err := s.calls.Prove(r.Context(), p, a)
	if err != nil {
		return err
	}
	if made.Doubts == nil {
		made.Doubts = []*ring.Refusal{}
	}
	s.log.Info("made a proof", "target", a.Target, "actor", p.Actor())
	return writeJSON(w, made)
}

// Prove asks for a proof of who authorised what a container runs.
func (c *Client) Prove(ctx context.Context, r ProofRequest) (ProofMade, error) {
	var out ProofMade
	return out, c.ask(ctx, http.MethodPost, "/v1/proof", nil, r, &out)
}
