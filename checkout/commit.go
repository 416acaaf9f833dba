package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// passes holds a commit that was just made to the code that hosts hold it to. That
// more people have to answer for it is no fault of the commit: it is handed back.
func (c *Clone) passes(ctx context.Context, trust *gitsync.Trust, anchor, sha ring.SHA) (awaiting *ring.Refusal, err error) {
	repo, err := c.Repo()
	if err != nil {
		return nil, err
	}
	_, refusal, err := trust.RangeWith(gitsync.Until(ctx, repo), c.aids(ctx), anchor, sha, c.Now(), nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot verify the new commit: %w", err)
	case refusal == nil:
		return nil, nil
	case refusal.Code == ring.AwaitingApproval:
		return refusal, nil
	}
	return nil, refusal
}

// NewCommit is a commit to be made on top of HEAD.
type NewCommit struct {
	Tree     string
	Parent   ring.SHA
	Subject  string
	Body     []string // paragraphs; "" ones are left out
	trailers []string
}

func (n NewCommit) message() string {
	parts := []string{n.Subject}
	for _, p := range n.Body {
		if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	if len(n.trailers) > 0 {
		parts = append(parts, strings.Join(n.trailers, "\n"))
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// NameIt is the command that tells Git who makes its commits.
const NameIt = "git config --global user.name 'Your Name' && git config --global user.email you@example.com"

// Named refuses where Git does not know in whose name it would make a commit.
func (c *Clone) Named(ctx context.Context) error {
	for _, ident := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} {
		if _, err := c.Git(ctx, "var", ident); err != nil {
			return &exit.Failure{Code: exit.Error, Says: "cannot make a commit: Git does not know your name and address", Hint: NameIt}
		}
	}
	return nil
}

// WriteCommit makes the commit, signed, with the person's own configuration, and with
// settings of the form key=value above it. No ref, index or file is touched: one
// that is not wanted after all is garbage that nobody sees.
func (c *Clone) WriteCommit(ctx context.Context, n NewCommit, settings ...string) (ring.SHA, error) {
	if err := c.Named(ctx); err != nil {
		return "", err
	}
	var args []string
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	args = append(args, "commit-tree", "-S", n.Tree)
	if n.Parent != "" {
		args = append(args, "-p", string(n.Parent))
	}
	sha, err := c.gitWith(ctx, strings.NewReader(n.message()), nil, args...)
	var said *gitError
	if errors.As(err, &said) {
		return "", &exit.Failure{
			Code: exit.Error, Says: "cannot make a signed commit: " + said.says,
			Hint: "gitring init --set-git-config sets signing up; see docs/how-to/sign-commits.md",
		}
	}
	return ring.SHA(sha), err
}

// ownIndex is the environment of a git that works on an index of its own, so that what is
// staged here stays out of it; done takes that away again.
func ownIndex() (env []string, done func(), err error) {
	dir, err := os.MkdirTemp("", "gitring-index-")
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a folder for an index: %w", err)
	}
	return []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}, func() { _ = os.RemoveAll(dir) }, nil
}

// Advance moves HEAD's branch to a commit on top of it, with the index and the
// files that differ.
func (c *Clone) Advance(ctx context.Context, from, to ring.SHA, why string) error {
	if _, err := c.Git(ctx, "read-tree", "-m", "-u", string(from), string(to)); err != nil {
		return fmt.Errorf("cannot bring the work tree to %s: %w", to.Short(), err)
	}
	if _, err := c.Git(ctx, "update-ref", "-m", why, "HEAD", string(to), string(from)); err != nil {
		return fmt.Errorf("cannot move the branch to %s: %w", to.Short(), err)
	}
	return nil
}

// clear says whether advance would overwrite what is not committed.
func (c *Clone) clear(ctx context.Context, from, to ring.SHA) error {
	_, _ = c.Git(ctx, "update-index", "-q", "--refresh") // what only looks changed is none
	_, err := c.Git(ctx, "read-tree", "-n", "-m", "-u", string(from), string(to))
	var said *gitError
	if errors.As(err, &said) {
		return &exit.Failure{
			Code: exit.Conflict, Says: "what is not committed here is in the way: " + said.says,
			Hint: "commit it, or put it aside with git stash -u, and try again",
		}
	}
	return err
}

// landed pushes a commit when asked, and then moves the branch here to it.
func (c *Clone) landed(ctx context.Context, from, to ring.SHA, up Upstream, push bool, why string) error {
	if push {
		if err := c.push(ctx, to, up); err != nil {
			return err
		}
	}
	err := c.Advance(ctx, from, to, why)
	if err != nil && push {
		return &exit.Failure{Code: exit.Error, Says: "pushed " + to.Short() + ", but " + err.Error(), Hint: "git pull --ff-only brings it here"}
	}
	return err
}
