package notify

import (
	"net/http"

	"github.com/gitring/gitring/ring"
)

// gitea speaks the API of Gitea and Forgejo.
type gitea struct{}

func (gitea) dress(h http.Header, _ Forge, token string) {
	h.Set("Accept", "application/json")
	h.Set("Authorization", "token "+token)
}

func (gitea) status(f Forge, p ring.Post) (string, any) {
	return github{}.status(f, p)
}

func (gitea) judge(answer, string) (outcome, bool) { return outcome{}, false }
