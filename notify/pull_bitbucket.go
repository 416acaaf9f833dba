package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gitring/gitring/ring"
)

// bitbucketPulls speaks the API of Bitbucket Cloud (developer.atlassian.com,
// "Pullrequests"). It keeps no ref for a head: what is read is the branch, and of a
// fork nothing.
type bitbucketPulls struct{}

type bitbucketSide struct {
	Commit struct {
		Hash string `json:"hash"` // its first 12 digits
	} `json:"commit"`
	Branch struct {
		Name string `json:"name"`
	} `json:"branch"`
	Repository *struct {
		UUID string `json:"uuid"`
	} `json:"repository"` // null when it was deleted
}

func (bitbucketPulls) open(f Forge, page int) string {
	q := url.Values{
		"q":    {`state="OPEN" AND destination.branch.name="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(f.Branch) + `"`},
		"sort": {"-updated_on"}, "pagelen": {strconv.Itoa(f.page(maxPulls))}, "page": {strconv.Itoa(page)},
	}
	return f.repoPath("repositories", "pullrequests") + "?" + q.Encode()
}

func (bitbucketPulls) take(f Forge, body []byte) ([]Pull, bool, error) {
	var list struct {
		Values []struct {
			ID          int           `json:"id"`
			Source      bitbucketSide `json:"source"`
			Destination bitbucketSide `json:"destination"`
		} `json:"values"`
		Next string `json:"next"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, false, err
	}
	var out []Pull
	for _, p := range list.Values {
		from, to := p.Source, p.Destination
		if to.Branch.Name != f.Branch || p.ID <= 0 || !isHex(from.Commit.Hash) {
			continue
		}
		pull := Pull{Number: p.ID, Head: ring.SHA(from.Commit.Hash), Fork: true}
		if from.Repository != nil && to.Repository != nil && from.Repository.UUID == to.Repository.UUID && to.Repository.UUID != "" {
			pull.Fork, pull.Ref = false, "refs/heads/"+from.Branch.Name
		}
		out = append(out, pull)
	}
	return out, list.Next != "", nil
}

func isHex(s string) bool {
	return len(s) >= 7 && len(s) <= 40 && strings.Trim(s, "0123456789abcdef") == ""
}

func (bitbucketPulls) whole(ctx context.Context, f Forge, p Pull) (ring.SHA, error) {
	f.doing = "read commits"
	var c struct {
		Hash ring.SHA `json:"hash"`
	}
	if _, err := f.call(ctx, http.MethodGet, f.repoPath("repositories", "commit", string(p.Head)), nil, &c); err != nil {
		return "", err
	}
	if !isSHA(c.Hash) || !strings.HasPrefix(string(c.Hash), string(p.Head)) {
		return "", outcome{says: "the forge names another commit than it was asked for"}
	}
	return c.Hash, nil
}

type bitbucketUser struct {
	UUID string `json:"uuid"`
}

// me has no answer for a token that belongs to a repository: whose a comment is could
// not be told then, so none is written.
func (bitbucketPulls) me(ctx context.Context, f Forge) (string, error) {
	f.doing = "read who it belongs to (GET /user): an API token with status.username can"
	var who bitbucketUser
	if _, err := f.call(ctx, http.MethodGet, segments("user"), nil, &who); err != nil {
		return "", err
	}
	if who.UUID == "" {
		return "", outcome{says: "the forge does not say whose the token is; see status.api_url"}
	}
	return who.UUID, nil
}

type bitbucketComment struct {
	ID      int64           `json:"id,omitempty"`
	Content bitbucketText   `json:"content"`
	User    bitbucketUser   `json:"user"`
	Deleted bool            `json:"deleted"`
	Inline  json.RawMessage `json:"inline"`
}

type bitbucketText struct {
	Raw string `json:"raw"`
}

// bitbucketNew is what a comment is made or changed with.
type bitbucketNew struct {
	Content bitbucketText `json:"content"`
}

func (c bitbucketComment) remark() remark {
	return remark{id: strconv.FormatInt(c.ID, 10), author: c.User.UUID, text: c.Content.Raw}
}

func (bitbucketPulls) remarks(ctx context.Context, f Forge, number, page int) ([]remark, bool, error) {
	path := fmt.Sprintf("%s?pagelen=%d&page=%d", f.repoPath("repositories", "pullrequests", strconv.Itoa(number), "comments"), f.page(commentsOfPage), page)
	var list struct {
		Values []bitbucketComment `json:"values"`
		Next   string             `json:"next"`
	}
	if _, err := f.call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, false, err
	}
	var out []remark
	for _, c := range list.Values {
		if !c.Deleted {
			out = append(out, c.remark())
		}
	}
	return out, list.Next != "", nil
}

func (bitbucketPulls) add(ctx context.Context, f Forge, number int, text string) (remark, error) {
	var c bitbucketComment
	_, err := f.call(ctx, http.MethodPost, f.repoPath("repositories", "pullrequests", strconv.Itoa(number), "comments"), bitbucketNew{bitbucketText{text}}, &c)
	return c.remark(), err
}

func (bitbucketPulls) edit(ctx context.Context, f Forge, number int, at remark, text string) (remark, error) {
	_, err := f.call(ctx, http.MethodPut, f.repoPath("repositories", "pullrequests", strconv.Itoa(number), "comments", at.id), bitbucketNew{bitbucketText{text}}, nil)
	return at, err
}

// marker is the name of a link that nothing follows: Bitbucket shows HTML as it is
// written.
func (bitbucketPulls) marker(what string) string { return "[//]: # (" + what + ")" }
func (bitbucketPulls) longest() int              { return 30 << 10 } // Bitbucket takes 32,768 characters
