package notify

import (
	"context"
	"net/http"

	"github.com/gitring/gitring/ring"
)

// bitbucketDC speaks the REST API of Bitbucket Data Center
// (developer.atlassian.com/server/bitbucket/rest, "Builds and Deployments").
type bitbucketDC struct{}

var bitbucketDCStates = words{
	ring.PostPending: "INPROGRESS", ring.PostSuccess: "SUCCESSFUL",
	ring.PostFailure: "FAILED", ring.PostError: "FAILED", ring.PostSuperseded: "CANCELLED",
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

func (bitbucketDC) say(ctx context.Context, f Forge, r ring.OutboxRow) (string, error) {
	p, ref := r.Post, ""
	if f.Branch != "" {
		ref = "refs/heads/" + f.Branch
	}
	project, slug := f.projectAndSlug()
	_, err := f.call(ctx, http.MethodPost, segments("projects", project, "repos", slug, "commits", string(p.SHA), "builds"), bitbucketDCBuild{
		Key: p.Context, State: bitbucketDCStates.of(p.State, p.Phase), Name: p.Context,
		URL: f.TargetURL, Description: p.Description, Ref: ref,
	}, nil)
	return "", err
}

func (bitbucketDC) judge(answer, string) (outcome, bool) { return outcome{}, false }
