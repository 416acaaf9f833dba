package notify

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gitring/gitring/ring"
)

// gitlabDeployed are the words of GitLab's deployments (docs.gitlab.com,
// "Deployments API"), which know nothing queued.
var gitlabDeployed = words{
	ring.PostPending: "running", ring.PostSuccess: "success",
	ring.PostFailure: "failed", ring.PostError: "failed", ring.PostSuperseded: "canceled",
}

type gitlabDeployment struct {
	ID     int64  `json:"id"`
	SHA    string `json:"sha"`
	Status string `json:"status"`
}

func (gitlab) deploy(ctx context.Context, f Forge, r ring.OutboxRow) (string, error) {
	status := gitlabDeployed.of(r.Post.State, r.Post.Phase)
	d, err := f.gitlabDeployment(ctx, r, status)
	if err != nil {
		return r.Remote, err
	}
	id, err := deploymentID(answer{code: http.StatusOK}, d.ID, nil)
	if err != nil {
		return "", err
	}
	if d.Status == status { // which GitLab would answer with a 400
		return id, nil
	}
	_, err = f.call(ctx, http.MethodPut, f.project("deployments", id), map[string]string{"status": status}, nil)
	return id, err
}

// gitlabDeployment is the row's as it stands, made if there is none.
func (f Forge) gitlabDeployment(ctx context.Context, r ring.OutboxRow, status string) (gitlabDeployment, error) {
	var d gitlabDeployment
	if r.Remote != "" {
		_, err := f.call(ctx, http.MethodGet, f.project("deployments", r.Remote), nil, &d)
		if a := (outcome{}); err == nil || !errors.As(err, &a) || !a.permanent {
			return d, err
		}
	}
	environment, _ := r.Post.Environment()
	query := url.Values{"environment": {environment}, "order_by": {"id"}, "sort": {"desc"}, "per_page": {"100"}}
	var all []gitlabDeployment
	if _, err := f.call(ctx, http.MethodGet, f.project("deployments")+"?"+query.Encode(), nil, &all); err != nil {
		return d, err
	}
	for _, d := range all {
		if d.SHA == string(r.Post.SHA) {
			return d, nil
		}
	}
	_, err := f.call(ctx, http.MethodPost, f.project("deployments"), map[string]any{
		"environment": environment, "sha": string(r.Post.SHA), "ref": f.Branch, "tag": false, "status": status,
	}, &d)
	d.Status = status
	return d, err
}
