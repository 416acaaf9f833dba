package notify

import (
	"net/http"
	"time"
)

// gitea speaks the API of Gitea and Forgejo.
type gitea struct{}

func (gitea) dress(h http.Header, token string) {
	h.Set("Accept", "application/json")
	h.Set("Authorization", "token "+token)
}

func (gitea) judge(res *http.Response, _ string, now time.Time) outcome { return judge(res, now) }
