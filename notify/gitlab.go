package notify

import (
	"net/http"
	"strings"

	"github.com/gitring/gitring/ring"
)

// gitlab speaks the REST API of GitLab (docs.gitlab.com, "Commits API", "Set
// commit pipeline status").
type gitlab struct{}

var gitlabStates = map[string]string{
	ring.PostPending: "pending", ring.PostSuccess: "success",
	ring.PostFailure: "failed", ring.PostError: "failed",
}

type gitlabStatus struct {
	State       string `json:"state"`
	Ref         string `json:"ref,omitempty"`
	Name        string `json:"name"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
}

func (gitlab) dress(h http.Header, _ Forge, token string) {
	h.Set("Accept", "application/json")
	h.Set("PRIVATE-TOKEN", token)
}

// project is the repository as GitLab names it: its number, or its whole path
// as one escaped part.
func (f Forge) project(parts ...string) string {
	return segments(append([]string{"projects", f.Repo}, parts...)...)
}

func (gitlab) status(f Forge, p ring.Post) (string, any) {
	return f.project("statuses", string(p.SHA)), gitlabStatus{
		State: stated(gitlabStates, p.State), Ref: f.Branch, Name: p.Context, TargetURL: f.TargetURL, Description: p.Description,
	}
}

// judge knows that GitLab keeps the states of a job: to say a second time what
// it shows already is a 400, and nothing remains to be said.
func (gitlab) judge(a answer, body string) (outcome, bool) {
	if a.code == http.StatusBadRequest && strings.Contains(body, "Cannot transition status via") {
		return outcome{done: true}, true
	}
	return outcome{}, false
}
