package notify

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// statusesOfPage is how many statuses are asked for at once, and wordPages how far a list is
// gone through. Gitea gives 50 at most.
const (
	statusesOfPage = 100
	giteaPage      = 50
	wordPages      = 10
)

// readPages asks for page after page until one is not full; take reads one, and says how many
// it had.
func readPages(full int, take func(page int) (int, error)) error {
	for page := 1; page <= wordPages; page++ {
		n, err := take(page)
		if err != nil {
			return err
		}
		if n < full {
			return nil
		}
	}
	return nil
}

// The words of GitHub, Gitea and Forgejo, which have ours. Gitea's warning is no success.
var plainWords = map[string]string{
	"pending": ring.PostPending, "success": ring.PostSuccess, "failure": ring.PostFailure, "error": ring.PostError, "warning": ring.PostError,
}

// combined is a page of the newest status of each context, by either name of its state.
type combined struct {
	Statuses []struct {
		Context     string `json:"context"`
		State       string `json:"state"`  // GitHub
		Status      string `json:"status"` // Gitea, Forgejo
		Description string `json:"description"`
	} `json:"statuses"`
}

// hearCombined is of the forges that keep the newest status of each context apart.
func (f Forge) hearCombined(ctx context.Context, sha ring.SHA, contexts []string, size string, full int) (map[string]ring.Word, error) {
	said := map[string]ring.Word{}
	err := readPages(full, func(page int) (int, error) {
		var got combined
		path := fmt.Sprintf("%s?%s=%d&page=%d", f.repoPath("repos", "commits", string(sha), "status"), size, full, page)
		_, err := f.call(ctx, http.MethodGet, path, nil, &got)
		for _, s := range got.Statuses {
			// GitHub takes contexts in either case for one.
			if i := slices.IndexFunc(contexts, func(c string) bool { return strings.EqualFold(c, s.Context) }); i >= 0 {
				said[contexts[i]] = wordIn(plainWords, s.State+s.Status, s.Description)
			}
		}
		return len(got.Statuses), err
	})
	return said, err
}

func (github) hear(ctx context.Context, f Forge, sha ring.SHA, contexts []string) (map[string]ring.Word, error) {
	return f.hearCombined(ctx, sha, contexts, "per_page", statusesOfPage)
}

func (gitea) hear(ctx context.Context, f Forge, sha ring.SHA, contexts []string) (map[string]ring.Word, error) {
	return f.hearCombined(ctx, sha, contexts, "limit", giteaPage)
}

// GitLab has one word for failure and error, which is taken for failure.
var gitlabWords = map[string]string{
	"success": ring.PostSuccess, "failed": ring.PostFailure, "canceled": ring.PostError, "skipped": ring.PostError,
}

// hear takes the newest job of each name: a commit may have several pipelines.
func (gitlab) hear(ctx context.Context, f Forge, sha ring.SHA, contexts []string) (map[string]ring.Word, error) {
	said, newest := map[string]ring.Word{}, map[string]int64{}
	err := readPages(statusesOfPage, func(page int) (int, error) {
		var got []struct {
			ID          int64  `json:"id"`
			Name        string `json:"name"`
			Status      string `json:"status"`
			Description string `json:"description"` // null where there is none
		}
		path := fmt.Sprintf("%s?per_page=%d&page=%d", f.project("repository", "commits", string(sha), "statuses"), statusesOfPage, page)
		_, err := f.call(ctx, http.MethodGet, path, nil, &got)
		for _, s := range got {
			if slices.Contains(contexts, s.Name) && s.ID > newest[s.Name] {
				newest[s.Name] = s.ID
				said[s.Name] = wordIn(gitlabWords, s.Status, s.Description)
			}
		}
		return len(got), err
	})
	return said, err
}

// Bitbucket, too, has one word for failure and error.
var bitbucketWords = map[string]string{
	"SUCCESSFUL": ring.PostSuccess, "FAILED": ring.PostFailure, "STOPPED": ring.PostError, "CANCELLED": ring.PostError,
}

func (bitbucket) hear(ctx context.Context, f Forge, sha ring.SHA, contexts []string) (map[string]ring.Word, error) {
	said := map[string]ring.Word{}
	err := readPages(statusesOfPage, func(page int) (int, error) {
		var got struct {
			Values []struct {
				Key         string `json:"key"`
				State       string `json:"state"`
				Description string `json:"description"`
			} `json:"values"`
		}
		path := fmt.Sprintf("%s?pagelen=%d&page=%d", f.repoPath("repositories", "commit", string(sha), "statuses"), statusesOfPage, page)
		_, err := f.call(ctx, http.MethodGet, path, nil, &got)
		for _, s := range got.Values {
			if i := slices.IndexFunc(contexts, func(c string) bool { return shortKey(c) == s.Key }); i >= 0 {
				said[contexts[i]] = wordIn(bitbucketWords, s.State, s.Description)
			}
		}
		return len(got.Values), err
	})
	return said, err
}

// hear asks for each key by itself: Data Center has no list of them.
func (bitbucketDC) hear(ctx context.Context, f Forge, sha ring.SHA, contexts []string) (map[string]ring.Word, error) {
	said := map[string]ring.Word{}
	project, slug := f.projectAndSlug()
	for _, c := range contexts {
		var got struct {
			State       string `json:"state"`
			Description string `json:"description"`
		}
		path := segments("projects", project, "repos", slug, "commits", string(sha), "builds") + "?key=" + url.QueryEscape(c)
		a, err := f.call(ctx, http.MethodGet, path, nil, &got)
		switch {
		case a.code == http.StatusNotFound: // no such key, or no such commit: nothing is said either way
		case err != nil:
			return nil, err
		default:
			said[c] = wordIn(bitbucketWords, got.State, got.Description)
		}
	}
	return said, nil
}
