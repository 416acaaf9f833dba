package notify

import (
	"context"
	"net/http"
	"strings"

	"github.com/gitring/gitring/ring"
)

// github speaks the REST API of GitHub and GitHub Enterprise Server
// (docs.github.com, "REST API endpoints for commit statuses").
type github struct{}

// plainStates are the words of GitHub, Gitea and Forgejo.
var plainStates = words{
	ring.PostPending: "pending", ring.PostSuccess: "success",
	ring.PostFailure: "failure", ring.PostError: "error",
}

// plainStatus is the body that GitHub, Gitea and Forgejo share.
type plainStatus struct {
	State       string `json:"state"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
	Context     string `json:"context"`
}

func (github) dress(h http.Header, _ Forge, token string) {
	h.Set("Accept", "application/vnd.github+json")
	h.Set("X-GitHub-Api-Version", "2022-11-28")
	h.Set("Authorization", "Bearer "+token)
}

func (github) say(ctx context.Context, f Forge, r ring.OutboxRow) (string, error) {
	p := r.Post
	var made struct {
		ID int64 `json:"id"`
	}
	a, err := f.call(ctx, http.MethodPost, f.repoPath("repos", "statuses", string(p.SHA)), plainStatus{
		plainStates.of(p.State, p.Phase), f.TargetURL, p.Description, p.Context,
	}, &made)
	if err == nil && made.ID == 0 && a.ok() {
		err = unread(a)
	}
	return "", err
}

// judge knows that GitHub takes 1000 statuses per commit and context and
// answers 422 from then on, and that it says 403 where others say 429
// (docs.github.com, "Rate limits for the REST API").
func (github) judge(a answer, body string) (outcome, bool) {
	switch a.code {
	case http.StatusUnprocessableEntity:
		if strings.Contains(body, "maximum number of statuses") {
			return outcome{done: true}, true
		}
	case http.StatusForbidden:
		if a.header.Get("Retry-After") != "" || a.header.Get("X-Ratelimit-Remaining") == "0" || strings.Contains(body, "rate limit") {
			return outcome{says: limitReached, wait: comeBack(a.header)}, true
		}
	}
	return outcome{}, false
}
