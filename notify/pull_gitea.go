package notify

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
)

// giteaPulls speaks the API of Gitea and Forgejo, whose pull requests and comments
// have GitHub's form. Their list cannot choose the branch, and that of comments has
// no pages.
type giteaPulls struct{ githubPulls }

func (giteaPulls) open(f Forge, page int) string {
	q := url.Values{"state": {"open"}, "sort": {"recentupdate"}, "limit": {strconv.Itoa(f.page(maxPulls))}, "page": {strconv.Itoa(page)}}
	return f.repoPath("repos", "pulls") + "?" + q.Encode()
}

func (giteaPulls) take(f Forge, body []byte) ([]Pull, bool, error) {
	var list []githubPull
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, false, err
	}
	return githubTake(f, list), len(list) > 0, nil
}

func (giteaPulls) remarks(ctx context.Context, f Forge, number, _ int) ([]remark, bool, error) {
	all, _, err := githubRemarks(ctx, f, f.repoPath("repos", "issues", strconv.Itoa(number), "comments"))
	return all, false, err
}
