package notify

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/gitring/gitring/ring"
)

// gitlab speaks the REST API of GitLab (docs.gitlab.com, "Commits API", "Set
// commit pipeline status").
type gitlab struct{}

var gitlabStates = words{
	ring.PostPending: "pending", ring.PostRunning: "running", ring.PostSuccess: "success",
	ring.PostFailure: "failed", ring.PostError: "failed", ring.PostSuperseded: "canceled",
}

type gitlabStatus struct {
	State       string `json:"state"`
	Ref         string `json:"ref,omitempty"`
	Name        string `json:"name"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
	PipelineID  int64  `json:"pipeline_id,omitempty"`
}

func (gitlab) dress(h http.Header, _ Forge, token string) {
	h.Set("Accept", "application/json")
	h.Set("PRIVATE-TOKEN", token)
}

// project is a path below the repository as GitLab names it: by its number, or
// by its whole path as one escaped part.
func (f Forge) project(parts ...string) string {
	return segments(append([]string{"projects", f.Repo}, parts...)...)
}

// say hands back the pipeline that the status stands in: without it, and with
// more than one pipeline of the commit, GitLab takes the newest each time, and
// the closing status could land in another than what it closes.
func (gitlab) say(ctx context.Context, f Forge, r ring.OutboxRow) (string, error) {
	p := r.Post
	body := gitlabStatus{
		State: gitlabStates.of(p.State, p.Phase), Ref: f.Branch, Name: p.Context,
		TargetURL: f.TargetURL, Description: p.Description,
	}
	body.PipelineID, _ = strconv.ParseInt(r.Remote, 10, 64)
	id, err := f.gitlabStatus(ctx, p.SHA, body)
	var o outcome
	if errors.As(err, &o) && o.permanent && body.PipelineID != 0 { // it is gone, or full
		body.PipelineID = 0
		id, err = f.gitlabStatus(ctx, p.SHA, body)
	}
	if id == 0 {
		return r.Remote, err
	}
	return strconv.FormatInt(id, 10), err
}

func (f Forge) gitlabStatus(ctx context.Context, sha ring.SHA, body gitlabStatus) (pipeline int64, err error) {
	var got struct {
		ID         int64 `json:"id"`
		PipelineID int64 `json:"pipeline_id"`
	}
	a, err := f.call(ctx, http.MethodPost, f.project("statuses", string(sha)), body, &got)
	if err == nil && got.ID == 0 && a.ok() {
		err = unread(a)
	}
	return got.PipelineID, err
}

// gitlabSame are the steps of a job that GitLab refuses because it is there, or
// beyond. An outcome is there when an answer was lost, or the daemon ended before it
// noted it: that job is finished, and what it says is what was to be said.
var gitlabSame = []string{":run ", ":enqueue ", ":success from :success", ":drop from :failed", ":cancel from :canceled"}

// judge knows that GitLab keeps the states of a job: to queue what is queued or
// runs, or to run what runs, is a 400, and nothing remains to be said. Two posts
// at once for one commit are a 409, which passes.
func (gitlab) judge(a answer, body string) (outcome, bool) {
	switch a.code {
	case http.StatusBadRequest:
		for _, no := range gitlabSame {
			if strings.Contains(body, "Cannot transition status via "+no) {
				return outcome{done: true}, true
			}
		}
	case http.StatusConflict:
		return outcome{says: "the forge answered 409: it is busy with another status of the commit"}, true
	}
	return outcome{}, false
}
