package notify

import (
	"context"
	"net/http"

	"github.com/gitring/gitring/ring"
)

// gitea speaks the API of Gitea and Forgejo.
type gitea struct{}

func (gitea) dress(h http.Header, _ Forge, token string) {
	h.Set("Accept", "application/json")
	h.Set("Authorization", "token "+token)
}

// say is GitHub's: path and body are the same, and so are the four states that
// every release of both knows.
func (gitea) say(ctx context.Context, f Forge, r ring.OutboxRow) (string, error) {
	return github{}.say(ctx, f, r)
}

func (gitea) judge(answer, string) (outcome, bool) { return outcome{}, false }
