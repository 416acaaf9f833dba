package checkout

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// aids are what trust mode forge-merge asks of the world, of a clone: heads come
// from the remote, as the daemon gets them, else from refs that are here.
func (c *Clone) aids(ctx context.Context) gitsync.Aids {
	return gitsync.Aids{
		NoStore: true,
		Head:    func(pull gitsync.Pull) (ring.SHA, error) { return c.head(ctx, pull) },
		Merge: func(ours, theirs ring.SHA) (ring.SHA, error) {
			objects, err := c.Git(ctx, "rev-parse", "--git-path", "objects")
			if err != nil {
				return "", err
			}
			if !filepath.IsAbs(objects) {
				objects = filepath.Join(c.Dir, objects)
			}
			if objects, err = filepath.Abs(objects); err != nil {
				return "", err
			}
			return gitsync.MergeTree(ctx, ours, theirs, objects)
		},
	}
}

// Remote is the one that the branch here follows, else origin.
func (c *Clone) Remote(ctx context.Context) string {
	if up, ok := c.Upstream(ctx); ok {
		return up.Remote
	}
	return "origin"
}

// head fetches the head of a pull request; no ref is written.
func (c *Clone) head(ctx context.Context, pull gitsync.Pull) (ring.SHA, error) {
	remote, quiet := c.Remote(ctx), []string{"GIT_TERMINAL_PROMPT=0"}
	line, err := c.gitWith(ctx, nil, quiet, "ls-remote", "--quiet", remote, pull.Ref())
	var said *gitError
	switch {
	case errors.As(err, &said):
		if sha, err := c.CommitOf(ctx, pull.Ref()); err == nil {
			return sha, nil
		}
		return "", &gitsync.Unavailable{Why: "the remote " + remote + " does not answer: " + said.says}
	case err != nil:
		return "", err
	}
	id, _, _ := strings.Cut(line, "\t")
	if !config.FullSHA.MatchString(id) {
		return "", gitsync.ErrMissing
	}
	if sha := ring.SHA(id); c.has(ctx, sha) {
		return sha, nil
	}
	_, err = c.gitWith(ctx, nil, quiet, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", remote, pull.Ref())
	if errors.As(err, &said) {
		return "", &gitsync.Unavailable{Why: "it cannot be fetched: " + said.says}
	}
	return ring.SHA(id), err
}
