package notify

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
)

// fakeGitLab keeps the states of a job as GitLab does (docs.gitlab.com, "Commits
// API" and "Deployments API"): each status is a job of a pipeline, one is made
// where there is none, and to run what runs is a 400.
type fakeGitLab struct {
	*fake
	pipeline    int64
	jobs        map[string]string // by name, the state of the job that is not finished
	deployments []gitlabFakeDeployment
}

type gitlabFakeDeployment struct {
	ID          int64  `json:"id"`
	IID         int64  `json:"iid"`
	SHA         string `json:"sha"`
	Ref         string `json:"ref"`
	Status      string `json:"status"`
	environment string
}

func newFakeGitLab(t *testing.T) *fakeGitLab {
	t.Helper()
	f := &fakeGitLab{jobs: map[string]string{}, fake: newFakeOf(t, GitLab, "/api/v4", "acme/team/infra", map[string]string{
		"Accept": "application/json", "Private-Token": secret, "User-Agent": "gitring", "Authorization": "",
	})}
	f.on("POST", "/projects/acme%2Fteam%2Finfra/statuses/"+string(sha), f.status)
	f.on("GET", "/projects/acme%2Fteam%2Finfra/deployments", f.list)
	f.on("POST", "/projects/acme%2Fteam%2Finfra/deployments", f.create)
	return f
}

func (f *fakeGitLab) status(_ url.Values, body []byte) fakeAnswer {
	var b struct {
		State       string `json:"state"`
		Ref         string `json:"ref"`
		Name        string `json:"name"`
		TargetURL   string `json:"target_url"`
		Description string `json:"description"`
		PipelineID  int64  `json:"pipeline_id"`
	}
	f.read(body, &b)
	f.oneOf("state", b.State, "pending", "running", "success", "failed", "canceled", "skipped")
	f.oneOf("ref", b.Ref, "main")
	f.atMost("name", b.Name, 255)
	f.atMost("description", b.Description, 255)
	if b.PipelineID != 0 && b.PipelineID != f.pipeline {
		return fakeAnswer{code: http.StatusNotFound, body: `{"message":"404 Pipeline for pipeline_id, sha and ref Not Found"}`}
	}
	if b.PipelineID == 0 { // as when the one before is full or archived
		f.pipeline++
	}
	events := map[string]string{"pending": "enqueue", "running": "run"}
	was := f.jobs[b.Name]
	if event := events[b.State]; event != "" && (was == b.State || was == "running") {
		return fakeAnswer{code: http.StatusBadRequest, body: fmt.Sprintf(`{"message":"Cannot transition status via :%s from :%s (Reason(s): Status cannot transition via \"%s\")"}`, event, was, event)}
	}
	f.jobs[b.Name] = b.State
	if events[b.State] == "" { // finished: another post is another job
		delete(f.jobs, b.Name)
	}
	f.shown[b.Name] = b.State + ": " + b.Description
	return created(map[string]any{"id": 93, "sha": string(sha), "ref": b.Ref, "status": b.State, "name": b.Name, "pipeline_id": f.pipeline})
}

func (f *fakeGitLab) list(q url.Values, _ []byte) fakeAnswer {
	found := []gitlabFakeDeployment{}
	for _, d := range f.deployments {
		if d.environment == q.Get("environment") {
			found = append([]gitlabFakeDeployment{d}, found...)
		}
	}
	if q.Get("order_by") != "id" || q.Get("sort") != "desc" {
		f.not("the oldest come first by default")
	}
	return ok(found)
}

func (f *fakeGitLab) create(_ url.Values, body []byte) fakeAnswer {
	var b struct {
		Environment string `json:"environment"`
		SHA         string `json:"sha"`
		Ref         string `json:"ref"`
		Tag         *bool  `json:"tag"`
		Status      string `json:"status"`
	}
	f.read(body, &b)
	f.oneOf("status", b.Status, "running", "success", "failed", "canceled")
	f.oneOf("ref", b.Ref, "main")
	if b.Tag == nil || *b.Tag {
		f.not("a branch is no tag")
	}
	n := len(f.deployments)
	f.deployments = append(f.deployments, gitlabFakeDeployment{ID: int64(42 + n), IID: int64(n + 1), SHA: b.SHA, Ref: b.Ref, Status: b.Status, environment: b.Environment})
	f.shown[b.Environment] = b.Status
	at := fmt.Sprintf("%s/projects/acme%%2Fteam%%2Finfra/deployments/%d", f.root, 42+n)
	f.routes["GET "+at] = func(url.Values, []byte) fakeAnswer { return ok(f.deployments[n]) }
	f.routes["PUT "+at] = func(_ url.Values, body []byte) fakeAnswer {
		var b struct {
			Status string `json:"status"`
		}
		f.read(body, &b)
		f.oneOf("status", b.Status, "running", "success", "failed", "canceled")
		d := &f.deployments[n]
		if d.Status == b.Status {
			return fakeAnswer{code: http.StatusBadRequest, body: `{"message":{"status":["cannot transition via \"` + b.Status + `\""]}}`}
		}
		d.Status = b.Status
		f.shown[d.environment] = b.Status
		return ok(d)
	}
	return created(f.deployments[n])
}
