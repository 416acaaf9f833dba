package notify

import (
	"net/url"
	"testing"
)

// fakeGitea is Gitea or Forgejo: the schema CreateStatusOption of their swagger.
type fakeGitea struct{ *fake }

func newFakeGitea(t *testing.T, kind string) *fakeGitea {
	t.Helper()
	f := &fakeGitea{newFakeOf(t, kind, "/api/v1", "acme/infra", map[string]string{
		"Accept": "application/json", "Authorization": "token " + secret, "User-Agent": "gitring",
	})}
	f.on("POST", "/repos/acme/infra/statuses/"+string(sha), f.status)
	return f
}

func (f *fakeGitea) status(_ url.Values, body []byte) fakeAnswer {
	var b struct {
		State       string `json:"state"`
		TargetURL   string `json:"target_url"`
		Description string `json:"description"`
		Context     string `json:"context"`
	}
	f.read(body, &b)
	f.oneOf("state", b.State, "pending", "success", "error", "failure") // warning and skipped are not in every release
	f.atMost("context", b.Context, 255)
	f.atMost("description", b.Description, 140)
	f.shown[b.Context] = b.State + ": " + b.Description
	return created(map[string]any{"id": 1, "status": b.State, "context": b.Context})
}
