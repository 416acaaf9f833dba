package api

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
)

// AdoptRequest is the body of POST /v1/adopt: what Compose runs of an app is to be
// gitring's. Compare only looks, and says what differs; then no Reason is needed.
type AdoptRequest struct {
	App     string `json:"app"`
	Reason  string `json:"reason,omitempty"`
	Compare bool   `json:"compare,omitempty"`
}

// Adoption is the answer: what is adopted now, or would be.
type Adoption struct {
	Says       string             `json:"says"`
	Containers []AdoptedContainer `json:"containers"`
	// Starts are services that gitring starts at once, because Compose runs none, or
	// too few, of them.
	Starts []string `json:"starts,omitempty"`
	// Obstacles are why it cannot be, where it is only compared.
	Obstacles []Obstacle `json:"obstacles,omitempty"`
}

// AdoptedContainer is one of Compose's, and what of it differs from what gitring
// makes in its place when its service first changes, in Compose's words.
type AdoptedContainer struct {
	Name    string   `json:"name"`
	Service string   `json:"service"`
	Slot    int      `json:"slot"`
	Differs []string `json:"differs"`
}

// Obstacle is in the way of an adoption.
type Obstacle struct {
	Says string `json:"says"`
	Hint string `json:"hint"`
}

// LeaveRequest is the body of POST /v1/leave: an app is handed back to Compose. To is
// the folder that the project is written into, "" one below the daemon's state.
type LeaveRequest struct {
	App    string `json:"app"`
	Reason string `json:"reason"`
	To     string `json:"to,omitempty"`
	// WithSecrets writes what encrypted files hold into the folder.
	WithSecrets bool `json:"with_secrets,omitempty"`
}

// Left is the answer: where the project is, and what to run there.
type Left struct {
	Says    string   `json:"says"`
	Dir     string   `json:"dir"`
	Command string   `json:"command"`
	Notes   []string `json:"notes,omitempty"`
}

func (s *Socket) adopt(w http.ResponseWriter, r *http.Request, p Peer) error {
	var a AdoptRequest
	if err := readJSON(r, &a); err != nil {
		return err
	}
	if a.App == "" || strings.Contains(a.App, "/") {
		return Usage("gitring status lists apps", "adopt what? an app is required")
	}
	if strings.TrimSpace(a.Reason) == "" && !a.Compare {
		return Usage("say why with --reason", "a reason is required")
	}
	done, err := s.calls.Adopt(r.Context(), p, a)
	if err != nil {
		return err
	}
	if !a.Compare {
		s.log.Info("adopted", "app", a.App, "actor", p.Actor(), "reason", a.Reason)
	}
	return writeJSON(w, done)
}

func (s *Socket) leave(w http.ResponseWriter, r *http.Request, p Peer) error {
	var a LeaveRequest
	if err := readJSON(r, &a); err != nil {
		return err
	}
	if a.App == "" || strings.Contains(a.App, "/") {
		return Usage("gitring status lists apps", "leave what? an app is required")
	}
	if strings.TrimSpace(a.Reason) == "" {
		return Usage("say why with --reason", "a reason is required")
	}
	if a.To != "" && !filepath.IsAbs(a.To) {
		return Usage("begin it with /", "%q is no absolute folder", a.To)
	}
	if a.To != "" && p.UID != 0 && p.UID != s.daemon {
		return Denied("leave --to out, and it is written below the daemon's state; or ask as root", "%s may not have the daemon write into %s", p.Actor(), a.To)
	}
	done, err := s.calls.Leave(r.Context(), p, a)
	if err != nil {
		return err
	}
	s.log.Info("left", "app", a.App, "actor", p.Actor(), "reason", a.Reason)
	return writeJSON(w, done)
}

// Adopt takes over what Compose runs of an app, or only compares.
func (c *Client) Adopt(ctx context.Context, r AdoptRequest) (Adoption, error) {
	var done Adoption
	return done, c.ask(ctx, http.MethodPost, "/v1/adopt", nil, r, &done)
}

// Leave hands an app back to Compose.
func (c *Client) Leave(ctx context.Context, r LeaveRequest) (Left, error) {
	var done Left
	return done, c.ask(ctx, http.MethodPost, "/v1/leave", nil, r, &done)
}
