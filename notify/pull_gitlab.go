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

// gitlabPulls speaks the REST API of GitLab (docs.gitlab.com, "Merge requests API" and
// "Notes API").
type gitlabPulls struct{}

type gitlabPull struct {
	IID    int      `json:"iid"`
	SHA    ring.SHA `json:"sha"`
	Target string   `json:"target_branch"`
	From   int64    `json:"source_project_id"`
	To     int64    `json:"target_project_id"`
}

func (gitlabPulls) open(f Forge, page int) string {
	q := url.Values{"state": {"opened"}, "target_branch": {f.Branch}, "order_by": {"updated_at"}, "sort": {"desc"}, "per_page": {strconv.Itoa(f.page(maxPulls))}, "page": {strconv.Itoa(page)}}
	return f.project("merge_requests") + "?" + q.Encode()
}

func (gitlabPulls) take(f Forge, body []byte) ([]Pull, bool, error) {
	var list []gitlabPull
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, false, err
	}
	var out []Pull
	for _, p := range list {
		if p.Target != f.Branch || p.IID <= 0 || !isSHA(p.SHA) {
			continue // the sha of a new one comes a moment later
		}
		out = append(out, Pull{Number: p.IID, Head: p.SHA, Ref: fmt.Sprintf("refs/merge-requests/%d/head", p.IID), Fork: p.From == 0 || p.From != p.To})
	}
	return out, len(list) >= f.page(maxPulls), nil
}

func (gitlabPulls) whole(_ context.Context, _ Forge, p Pull) (ring.SHA, error) { return p.Head, nil }

func (gitlabPulls) me(ctx context.Context, f Forge) (string, error) { return userMe(ctx, f) }

type gitlabNote struct {
	ID     int64    `json:"id"`
	Body   string   `json:"body"`
	Author numbered `json:"author"`
}

func (n gitlabNote) remark() remark {
	return remark{id: strconv.FormatInt(n.ID, 10), author: strconv.FormatInt(n.Author.ID, 10), text: n.Body}
}

func (gitlabPulls) remarks(ctx context.Context, f Forge, number, page int) ([]remark, bool, error) {
	path := fmt.Sprintf("%s?sort=asc&order_by=created_at&per_page=%d&page=%d", f.project("merge_requests", strconv.Itoa(number), "notes"), f.page(commentsOfPage), page)
	var list []gitlabNote
	if _, err := f.call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, false, err
	}
	var out []remark
	for _, n := range list {
		out = append(out, n.remark())
	}
	return out, len(list) >= f.page(commentsOfPage), nil
}

func (gitlabPulls) add(ctx context.Context, f Forge, number int, text string) (remark, error) {
	var n gitlabNote
	_, err := f.call(ctx, http.MethodPost, f.project("merge_requests", strconv.Itoa(number), "notes"), bodied{text}, &n)
	return n.remark(), err
}

func (gitlabPulls) edit(ctx context.Context, f Forge, number int, at remark, text string) (remark, error) {
	_, err := f.call(ctx, http.MethodPut, f.project("merge_requests", strconv.Itoa(number), "notes", at.id), bodied{text}, nil)
	return at, err
}

func (gitlabPulls) marker(what string) string { return "<!-- " + what + " -->" }
func (gitlabPulls) longest() int              { return 60 << 10 }
