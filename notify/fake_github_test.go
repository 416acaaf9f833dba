package notify

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// fakeGitHub is GitHub Enterprise Server as docs.github.com describes it:
// "REST API endpoints for commit statuses" and "… for deployments".
type fakeGitHub struct {
	*fake
	posts       map[string]int // by context, lower case
	deployments []fakeDeployment
}

type fakeDeployment struct {
	ID          int64    `json:"id"`
	SHA         string   `json:"sha"`
	Ref         string   `json:"ref"`
	Environment string   `json:"environment"`
	States      []string `json:"-"`
}

const githubLimit = `{"message":"Validation Failed","errors":[{"resource":"Status","code":"custom","message":"This SHA and context has reached the maximum number of statuses."}],"documentation_url":"https://docs.github.com/rest/commits/statuses#create-a-commit-status","status":"422"}`

func newFakeGitHub(t *testing.T) *fakeGitHub {
	t.Helper()
	f := &fakeGitHub{posts: map[string]int{}, fake: newFakeOf(t, GitHub, "/api/v3", "acme/infra", map[string]string{
		"Accept": "application/vnd.github+json", "X-Github-Api-Version": "2022-11-28",
		"Authorization": "Bearer " + secret, "User-Agent": "gitring",
	})}
	f.on("POST", "/repos/acme/infra/statuses/"+string(sha), f.status)
	f.on("GET", "/repos/acme/infra/deployments", f.list)
	f.on("POST", "/repos/acme/infra/deployments", f.create)
	return f
}

// status takes 1000 posts for a commit and context, which is written in either case.
func (f *fakeGitHub) status(_ url.Values, body []byte) fakeAnswer {
	var b struct {
		State       string `json:"state"`
		TargetURL   string `json:"target_url"`
		Description string `json:"description"`
		Context     string `json:"context"`
	}
	f.read(body, &b)
	f.oneOf("state", b.State, "error", "failure", "pending", "success")
	f.atMost("description", b.Description, 140)
	f.atMost("context", b.Context, 255)
	if b.TargetURL != "" && !strings.HasPrefix(b.TargetURL, "https://") {
		f.not("target_url %q", b.TargetURL)
	}
	key := strings.ToLower(b.Context)
	if f.posts[key]++; f.posts[key] > 1000 {
		return fakeAnswer{code: http.StatusUnprocessableEntity, body: githubLimit}
	}
	f.shown[b.Context] = b.State + ": " + b.Description
	return created(map[string]any{"id": f.posts[key], "state": b.State, "context": b.Context})
}

func (f *fakeGitHub) list(q url.Values, _ []byte) fakeAnswer {
	found := []fakeDeployment{}
	for _, d := range f.deployments {
		if d.SHA == q.Get("sha") && d.Environment == q.Get("environment") {
			found = append([]fakeDeployment{d}, found...)
		}
	}
	return ok(found)
}

func (f *fakeGitHub) create(_ url.Values, body []byte) fakeAnswer {
	var b struct {
		Ref         string    `json:"ref"`
		Environment string    `json:"environment"`
		Description string    `json:"description"`
		AutoMerge   *bool     `json:"auto_merge"`
		Required    *[]string `json:"required_contexts"`
		Production  bool      `json:"production_environment"`
	}
	f.read(body, &b)
	if b.AutoMerge == nil || *b.AutoMerge {
		f.not("it would merge the default branch into the commit")
	}
	if b.Required == nil || len(*b.Required) != 0 {
		f.not("it would wait for all statuses of the commit")
	}
	f.atMost("environment", b.Environment, 255)
	n := len(f.deployments)
	f.deployments = append(f.deployments, fakeDeployment{ID: int64(n + 1), SHA: b.Ref, Ref: b.Ref, Environment: b.Environment})
	f.routes["POST "+f.root+"/repos/acme/infra/deployments/"+string(rune('1'+n))+"/statuses"] = func(_ url.Values, body []byte) fakeAnswer {
		var b struct {
			State        string `json:"state"`
			LogURL       string `json:"log_url"`
			Description  string `json:"description"`
			AutoInactive *bool  `json:"auto_inactive"`
		}
		f.read(body, &b)
		f.oneOf("state", b.State, "error", "failure", "inactive", "in_progress", "queued", "pending", "success")
		f.atMost("description", b.Description, 140)
		if b.AutoInactive == nil || !*b.AutoInactive {
			f.not("what it replaces would stay active")
		}
		f.deployments[n].States = append(f.deployments[n].States, b.State)
		f.shown[f.deployments[n].Environment] = b.State + ": " + b.Description
		return created(map[string]any{"id": 1})
	}
	return created(f.deployments[n])
}
