package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
)

// newCommit is a commit to be made on top of HEAD.
type newCommit struct {
	tree     string
	parent   ring.SHA
	subject  string
	body     []string // paragraphs; "" ones are left out
	trailers []string
}

func (n newCommit) message() string {
	parts := []string{n.subject}
	for _, p := range n.body {
		if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	if len(n.trailers) > 0 {
		parts = append(parts, strings.Join(n.trailers, "\n"))
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// write makes the commit, signed, with the person's own configuration, and with
// settings of the form key=value above it. No ref, index or file is touched: one
// that is not wanted after all is garbage that nobody sees.
func (c *clone) write(ctx context.Context, n newCommit, settings ...string) (ring.SHA, error) {
	var args []string
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	args = append(args, "commit-tree", "-S", n.tree)
	if n.parent != "" {
		args = append(args, "-p", string(n.parent))
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

// advance moves HEAD's branch to a commit on top of it, with the index and the
// files that differ.
func (c *clone) advance(ctx context.Context, from, to ring.SHA, why string) error {
	if _, err := c.git(ctx, "read-tree", "-m", "-u", string(from), string(to)); err != nil {
		return fmt.Errorf("cannot bring the work tree to %s: %w", to.Short(), err)
	}
	if _, err := c.git(ctx, "update-ref", "-m", why, "HEAD", string(to), string(from)); err != nil {
		return fmt.Errorf("cannot move the branch to %s: %w", to.Short(), err)
	}
	return nil
}

// clear says whether advance would overwrite what is not committed.
func (c *clone) clear(ctx context.Context, from, to ring.SHA) error {
	_, _ = c.git(ctx, "update-index", "-q", "--refresh") // what only looks changed is none
	_, err := c.git(ctx, "read-tree", "-n", "-m", "-u", string(from), string(to))
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
func (c *clone) landed(ctx context.Context, from, to ring.SHA, up upstream, push bool, why string) error {
	if push {
		if err := c.push(ctx, to, up); err != nil {
			return err
		}
	}
	err := c.advance(ctx, from, to, why)
	if err != nil && push {
		return &exit.Failure{Code: exit.Error, Says: "pushed " + to.Short() + ", but " + err.Error(), Hint: "git pull --ff-only brings it here"}
	}
	return err
}
