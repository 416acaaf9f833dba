package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gitring/gitring/ring"
)

// githubPulls speaks the REST API of GitHub (docs.github.com, "REST API endpoints for
// pull requests" and "for issue comments": every pull request is an issue there).
type githubPulls struct{}

type githubPull struct {
	Number int          `json:"number"`
	Head   githubBranch `json:"head"`
	Base   githubBranch `json:"base"`
}

type githubBranch struct {
	SHA  ring.SHA `json:"sha"`
	Ref  string   `json:"ref"`
	Repo *struct {
		ID int64 `json:"id"`
	} `json:"repo"` // null when it was deleted
}

func (githubPulls) open(f Forge, page int) string {
	q := url.Values{"state": {"open"}, "base": {f.Branch}, "sort": {"updated"}, "direction": {"desc"}, "per_page": {strconv.Itoa(f.page(maxPulls))}, "page": {strconv.Itoa(page)}}
	return f.repoPath("repos", "pulls") + "?" + q.Encode()
}

func (githubPulls) take(f Forge, body []byte) ([]Pull, bool, error) {
	var list []githubPull
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, false, err
	}
	return githubTake(f, list), len(list) >= f.page(maxPulls), nil
}

func githubTake(f Forge, list []githubPull) []Pull {
	var out []Pull
	for _, p := range list {
		if p.Base.Ref != f.Branch || p.Number <= 0 || !isSHA(p.Head.SHA) {
			continue
		}
		own := p.Head.Repo != nil && p.Base.Repo != nil && p.Head.Repo.ID == p.Base.Repo.ID
		out = append(out, Pull{Number: p.Number, Head: p.Head.SHA, Ref: fmt.Sprintf("refs/pull/%d/head", p.Number), Fork: !own})
	}
	return out
}

func (githubPulls) whole(_ context.Context, _ Forge, p Pull) (ring.SHA, error) { return p.Head, nil }

type numbered struct {
	ID int64 `json:"id"`
}

// me is asked of the forge, but for the token of an App: it is nobody's, and what it
// writes bears the App's number.
func (githubPulls) me(ctx context.Context, f Forge) (string, error) {
	if f.App != nil {
		return asApp, nil
	}
	return userMe(ctx, f)
}

const asApp = "the app"

// userMe is GET /user, which GitHub, GitLab, Gitea and Forgejo share.
func userMe(ctx context.Context, f Forge) (string, error) {
	f.doing = "read who it belongs to (GET /user)"
	var who numbered
	if _, err := f.call(ctx, http.MethodGet, segments("user"), nil, &who); err != nil {
		return "", err
	}
	if who.ID == 0 {
		return "", outcome{says: "the forge does not say whose the token is; see status.api_url"}
	}
	return strconv.FormatInt(who.ID, 10), nil
}

type githubComment struct {
	ID   int64    `json:"id"`
	Body string   `json:"body"`
	User numbered `json:"user"`
	App  *struct {
		numbered
		ClientID string `json:"client_id"`
	} `json:"performed_via_github_app"` // null when no App wrote it
}

func (c githubComment) remark(f Forge) remark {
	r := remark{id: strconv.FormatInt(c.ID, 10), author: strconv.FormatInt(c.User.ID, 10), text: c.Body}
	if f.App != nil && c.App != nil && (f.App.ID == strconv.FormatInt(c.App.ID, 10) || f.App.ID == c.App.ClientID) {
		r.author = asApp
	}
	return r
}

func (githubPulls) remarks(ctx context.Context, f Forge, number, page int) ([]remark, bool, error) {
	path := fmt.Sprintf("%s?per_page=%d&page=%d", f.repoPath("repos", "issues", strconv.Itoa(number), "comments"), f.page(commentsOfPage), page)
	return githubRemarks(ctx, f, path)
}

func githubRemarks(ctx context.Context, f Forge, path string) ([]remark, bool, error) {
	var list []githubComment
	if _, err := f.call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, false, err
	}
	var out []remark
	for _, c := range list {
		out = append(out, c.remark(f))
	}
	return out, len(list) >= f.page(commentsOfPage), nil
}

type bodied struct {
	Body string `json:"body"`
}

func (githubPulls) add(ctx context.Context, f Forge, number int, text string) (remark, error) {
	var c githubComment
	_, err := f.call(ctx, http.MethodPost, f.repoPath("repos", "issues", strconv.Itoa(number), "comments"), bodied{text}, &c)
	return c.remark(f), err
}

func (githubPulls) edit(ctx context.Context, f Forge, _ int, at remark, text string) (remark, error) {
	_, err := f.call(ctx, http.MethodPatch, f.repoPath("repos", "issues", "comments", at.id), bodied{text}, nil)
	return at, err
}

func (githubPulls) marker(what string) string { return "<!-- " + what + " -->" }
func (githubPulls) longest() int              { return 60 << 10 } // GitHub takes 65,536 characters
