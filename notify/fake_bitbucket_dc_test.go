package notify

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// fakeBitbucketDC is Bitbucket Data Center (developer.atlassian.com/server,
// "Updating build status for commits"): a ref is whole, and there is no answer to read.
type fakeBitbucketDC struct{ *fake }

func newFakeBitbucketDC(t *testing.T) *fakeBitbucketDC {
	t.Helper()
	f := &fakeBitbucketDC{newFakeOf(t, BitbucketDC, "/bb/rest/api/latest", "OPS/infra", map[string]string{
		"Accept": "application/json", "Authorization": "Bearer " + secret, "User-Agent": "gitring", "X-Atlassian-Token": "no-check",
	})}
	f.on("POST", "/projects/OPS/repos/infra/commits/"+string(sha)+"/builds", f.status)
	return f
}

func (f *fakeBitbucketDC) status(_ url.Values, body []byte) fakeAnswer {
	var b struct {
		Key         string `json:"key"`
		State       string `json:"state"`
		Name        string `json:"name"`
		URL         string `json:"url"`
		Description string `json:"description"`
		Ref         string `json:"ref"`
	}
	f.read(body, &b)
	f.oneOf("state", b.State, "INPROGRESS", "SUCCESSFUL", "FAILED", "CANCELLED", "UNKNOWN")
	f.oneOf("ref", b.Ref, "refs/heads/main")
	f.atMost("key", b.Key, 255)
	f.atMost("description", b.Description, 255)
	if !strings.HasPrefix(b.URL, "http") {
		return fakeAnswer{code: http.StatusBadRequest, body: `{"errors":[{"context":"url","message":"url is required","exceptionName":null}]}`}
	}
	f.shown[b.Name] = b.State + ": " + b.Description
	return fakeAnswer{code: http.StatusNoContent}
}
