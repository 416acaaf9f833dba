package notify

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gitring/gitring/ring"
)

// githubDeployed are the words of GitHub's deployment statuses
// (docs.github.com, "REST API endpoints for deployment statuses").
var githubDeployed = words{
	ring.PostPending: "queued", ring.PostRunning: "in_progress", ring.PostSuccess: "success",
	ring.PostFailure: "failure", ring.PostError: "error", ring.PostSuperseded: "inactive",
}

// githubDeployment is a request for one. GitHub would merge the default branch
// into the commit, and wait for every status of it, if it were not told to do neither.
type githubDeployment struct {
	Ref                   string   `json:"ref"`
	Environment           string   `json:"environment"`
	Description           string   `json:"description"`
	AutoMerge             bool     `json:"auto_merge"`
	RequiredContexts      []string `json:"required_contexts"`
	ProductionEnvironment bool     `json:"production_environment"`
}

type githubDeploymentStatus struct {
	State        string `json:"state"`
	LogURL       string `json:"log_url,omitempty"`
	Description  string `json:"description"`
	AutoInactive bool   `json:"auto_inactive"`
}

func (github) deploy(ctx context.Context, f Forge, r ring.OutboxRow) (string, error) {
	id, err := f.githubDeployment(ctx, r)
	if err != nil {
		return r.Remote, err
	}
	_, err = f.call(ctx, http.MethodPost, f.repoPath("repos", "deployments", id, "statuses"), githubDeploymentStatus{
		githubDeployed.of(r.Post.State, r.Post.Phase), f.TargetURL, r.Post.Description, true,
	}, nil)
	if o := (outcome{}); errors.As(err, &o) && o.permanent {
		return "", err // it may be gone: look for it the next time
	}
	return id, err
}

// githubDeployment finds the row's, and makes it if there is none: to make one is
// not idempotent, and an answer may have been lost.
func (f Forge) githubDeployment(ctx context.Context, r ring.OutboxRow) (string, error) {
	if r.Remote != "" {
		return r.Remote, nil
	}
	environment, _ := r.Post.Environment()
	type deployment struct {
		ID int64 `json:"id"`
	}
	var found []deployment
	query := url.Values{"sha": {string(r.Post.SHA)}, "environment": {environment}, "per_page": {"1"}}
	a, err := f.call(ctx, http.MethodGet, f.repoPath("repos", "deployments")+"?"+query.Encode(), nil, &found)
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		return deploymentID(a, found[0].ID, nil)
	}
	var made deployment
	a, err = f.call(ctx, http.MethodPost, f.repoPath("repos", "deployments"), githubDeployment{
		Ref: string(r.Post.SHA), Environment: environment, Description: "gitring",
		RequiredContexts: []string{}, ProductionEnvironment: true,
	}, &made)
	return deploymentID(a, made.ID, err)
}

// deploymentID is the number that a forge gave a deployment; without one it is told
// of none.
func deploymentID(a answer, id int64, err error) (string, error) {
	if err == nil && id == 0 {
		err = unread(a)
	}
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(id, 10), nil
}
