package notify

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// fakeBitbucket is Bitbucket Cloud (developer.atlassian.com, "Commit statuses"):
// a key is at most 40 characters, a url is required, and the same key overwrites.
type fakeBitbucket struct{ *fake }

func newFakeBitbucket(t *testing.T) *fakeBitbucket {
	t.Helper()
	f := &fakeBitbucket{newFakeOf(t, Bitbucket, "/2.0", "acme/infra", map[string]string{
		"Accept": "application/json", "Authorization": "Bearer " + secret, "User-Agent": "gitring",
	})}
	f.on("POST", "/repositories/acme/infra/commit/"+string(sha)+"/statuses/build", f.status)
	return f
}

func (f *fakeBitbucket) status(_ url.Values, body []byte) fakeAnswer {
	var b struct {
		Key         string `json:"key"`
		State       string `json:"state"`
		Name        string `json:"name"`
		URL         string `json:"url"`
		Description string `json:"description"`
		RefName     string `json:"refname"`
	}
	f.read(body, &b)
	f.oneOf("state", b.State, "INPROGRESS", "SUCCESSFUL", "FAILED", "STOPPED")
	f.atMost("key", b.Key, 40)
	f.oneOf("refname", b.RefName, "main")
	if !strings.HasPrefix(b.URL, "http") {
		return fakeAnswer{code: http.StatusBadRequest, body: `{"type":"error","error":{"message":"Bad request","fields":{"url":["required key not provided"]}}}`}
	}
	f.shown[b.Name] = b.State + ": " + b.Description
	return created(map[string]any{"type": "build", "key": b.Key, "state": b.State})
}
