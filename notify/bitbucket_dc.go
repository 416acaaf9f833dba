package notify

import (
	"net/http"

	"github.com/gitring/gitring/ring"
)

// bitbucketDC speaks the REST API of Bitbucket Data Center
// (developer.atlassian.com/server/bitbucket/rest, "Builds and Deployments").
type bitbucketDC struct{}

var bitbucketDCStates = map[string]string{
	ring.PostPending: "INPROGRESS", ring.PostSuccess: "SUCCESSFUL",
	ring.PostFailure: "FAILED", ring.PostError: "FAILED",
}

type bitbucketDCBuild struct {
	Key         string `json:"key"`
	State       string `json:"state"`
	Name        string `json:"name"`
	URL         string `json:"url"`
	Description string `json:"description"`
	Ref         string `json:"ref,omitempty"`
}

func (bitbucketDC) dress(h http.Header, _ Forge, token string) {
	h.Set("Accept", "application/json")
	h.Set("X-Atlassian-Token", "no-check")
	h.Set("Authorization", "Bearer "+token)
}

func (bitbucketDC) status(f Forge, p ring.Post) (string, any) {
	ref := ""
	if f.Branch != "" {
		ref = "refs/heads/" + f.Branch
	}
	project, slug := f.projectAndSlug()
	return segments("projects", project, "repos", slug, "commits", string(p.SHA), "builds"), bitbucketDCBuild{
		Key: p.Context, State: stated(bitbucketDCStates, p.State), Name: p.Context,
		URL: f.TargetURL, Description: p.Description, Ref: ref,
	}
}

func (bitbucketDC) judge(answer, string) (outcome, bool) { return outcome{}, false }
