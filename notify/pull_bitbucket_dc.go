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

// bitbucketDCPulls speaks the REST API of Bitbucket Data Center
// (developer.atlassian.com/server/bitbucket/rest, "Pull Requests").
type bitbucketDCPulls struct{ bitbucketPulls }

type bitbucketDCRef struct {
	ID         string   `json:"id"`
	Latest     ring.SHA `json:"latestCommit"`
	Repository struct {
		ID int64 `json:"id"`
	} `json:"repository"`
}

func (f Forge) dcPull(parts ...string) string {
	project, slug := f.projectAndSlug()
	return segments(append([]string{"projects", project, "repos", slug, "pull-requests"}, parts...)...)
}

func (bitbucketDCPulls) open(f Forge, page int) string {
	q := url.Values{"state": {"OPEN"}, "at": {"refs/heads/" + f.Branch}, "direction": {"INCOMING"}, "order": {"NEWEST"}, "limit": {strconv.Itoa(f.page(maxPulls))}, "start": {strconv.Itoa((page - 1) * f.page(maxPulls))}}
	return f.dcPull() + "?" + q.Encode()
}

func (bitbucketDCPulls) take(f Forge, body []byte) ([]Pull, bool, error) {
	var list struct {
		Values []struct {
			ID   int            `json:"id"`
			From bitbucketDCRef `json:"fromRef"`
			To   bitbucketDCRef `json:"toRef"`
		} `json:"values"`
		Last bool `json:"isLastPage"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, false, err
	}
	var out []Pull
	for _, p := range list.Values {
		if p.To.ID != "refs/heads/"+f.Branch || p.ID <= 0 || !isSHA(p.From.Latest) {
			continue
		}
		own := p.From.Repository.ID != 0 && p.From.Repository.ID == p.To.Repository.ID
		out = append(out, Pull{Number: p.ID, Head: p.From.Latest, Ref: fmt.Sprintf("refs/pull-requests/%d/from", p.ID), Fork: !own})
	}
	return out, !list.Last && len(list.Values) > 0, nil
}

func (bitbucketDCPulls) whole(_ context.Context, _ Forge, p Pull) (ring.SHA, error) {
	return p.Head, nil
}

// me is in a header of every answer; nothing else tells.
func (bitbucketDCPulls) me(ctx context.Context, f Forge) (string, error) {
	f.doing = "read pull requests"
	a, err := f.call(ctx, http.MethodGet, f.dcPull()+"?limit=1", nil, nil)
	if err != nil {
		return "", err
	}
	name, err := url.PathUnescape(a.header.Get("X-Ausername"))
	if err != nil || name == "" {
		return "", outcome{says: "the forge does not say whose the token is (header X-AUSERNAME); see status.api_url"}
	}
	return name, nil
}

type bitbucketDCComment struct {
	ID      int64  `json:"id"`
	Version int    `json:"version"`
	Text    string `json:"text"`
	Author  struct {
		Name string `json:"name"`
	} `json:"author"`
}

func (c bitbucketDCComment) remark() remark {
	return remark{id: strconv.FormatInt(c.ID, 10), version: c.Version, author: c.Author.Name, text: c.Text}
}

// remarks are among the activities: the list of comments is one of a file.
func (bitbucketDCPulls) remarks(ctx context.Context, f Forge, number, page int) ([]remark, bool, error) {
	path := fmt.Sprintf("%s?limit=%d&start=%d", f.dcPull(strconv.Itoa(number), "activities"), f.page(commentsOfPage), (page-1)*f.page(commentsOfPage))
	var list struct {
		Values []struct {
			Action  string              `json:"action"`
			Comment *bitbucketDCComment `json:"comment"`
		} `json:"values"`
		Last bool `json:"isLastPage"`
	}
	if _, err := f.call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, false, err
	}
	var out []remark
	for _, v := range list.Values {
		if v.Action == "COMMENTED" && v.Comment != nil {
			out = append(out, v.Comment.remark())
		}
	}
	return out, !list.Last && len(list.Values) > 0, nil
}

type bitbucketDCNew struct {
	Text    string `json:"text"`
	Version *int   `json:"version,omitempty"`
}

func (bitbucketDCPulls) add(ctx context.Context, f Forge, number int, text string) (remark, error) {
	var c bitbucketDCComment
	_, err := f.call(ctx, http.MethodPost, f.dcPull(strconv.Itoa(number), "comments"), bitbucketDCNew{Text: text}, &c)
	return c.remark(), err
}

func (bitbucketDCPulls) edit(ctx context.Context, f Forge, number int, at remark, text string) (remark, error) {
	var c bitbucketDCComment
	_, err := f.call(ctx, http.MethodPut, f.dcPull(strconv.Itoa(number), "comments", at.id), bitbucketDCNew{Text: text, Version: &at.version}, &c)
	return c.remark(), err
}
