package notify

import (
	"context"
	"crypto/sha1" //nolint:gosec // a short name, not a signature
	"encoding/base64"
	"encoding/hex"
	"net/http"

	"github.com/gitring/gitring/ring"
)

// bitbucket speaks the API of Bitbucket Cloud (developer.atlassian.com,
// "Commit statuses"). The same key overwrites what stood there.
type bitbucket struct{}

var bitbucketStates = words{
	ring.PostPending: "INPROGRESS", ring.PostSuccess: "SUCCESSFUL",
	ring.PostFailure: "FAILED", ring.PostError: "FAILED", ring.PostSuperseded: "STOPPED",
}

type bitbucketStatus struct {
	Key         string `json:"key"`
	State       string `json:"state"`
	Name        string `json:"name"`
	URL         string `json:"url"`
	Description string `json:"description"`
	RefName     string `json:"refname,omitempty"`
}

func (bitbucket) dress(h http.Header, f Forge, token string) {
	h.Set("Accept", "application/json")
	if f.Username == "" {
		h.Set("Authorization", "Bearer "+token)
		return
	}
	h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(f.Username+":"+token)))
}

func (bitbucket) say(ctx context.Context, f Forge, r ring.OutboxRow) (string, error) {
	p := r.Post
	var made struct {
		Key string `json:"key"`
	}
	a, err := f.call(ctx, http.MethodPost, f.repoPath("repositories", "commit", string(p.SHA), "statuses", "build"), bitbucketStatus{
		Key: shortKey(p.Context), State: bitbucketStates.of(p.State, p.Phase), Name: p.Context,
		URL: f.TargetURL, Description: p.Description, RefName: f.Branch,
	}, &made)
	if err == nil && made.Key == "" {
		err = unread(a)
	}
	return "", err
}

// shortKey is a context in the 40 characters that a key may have.
func shortKey(context string) string {
	sum := sha1.Sum([]byte(context)) //nolint:gosec // a short name, not a signature
	return hex.EncodeToString(sum[:])
}

func (bitbucket) judge(answer, string) (outcome, bool) { return outcome{}, false }
