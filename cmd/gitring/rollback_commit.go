package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// ownFolder of a repository holds what gitring is told by signed commits, such as
// who may sign: nobody who brings back a service means to bring that back.
const ownFolder = ".gitring"

// prepare is the tree to go back to; "" where that is the present one.
func (b *back) prepare(ctx context.Context) (tree string, err error) {
	if b.up, err = b.mayChange(ctx); err != nil {
		return "", err
	}
	if b.trusted, err = b.rules.trust(); err != nil {
		return "", err
	}
	if tree, err = b.tree(ctx); err != nil {
		return "", err
	}
	now, err := b.git(ctx, "rev-parse", "--verify", string(b.head)+"^{tree}")
	if err != nil || now == tree {
		return "", err
	}
	return tree, nil
}

// carryOut makes the commit, holds it to verify, and only then pushes it and
// touches anything here.
func (b *back) carryOut(ctx context.Context, tree string) error {
	sha, err := b.write(ctx, b.commitOf(ctx, tree))
	if err != nil {
		return err
	}
	if err := b.clear(ctx, b.head, sha); err != nil {
		return err
	}
	awaiting, err := b.passes(ctx, b.trusted, b.anchor(ctx), sha)
	if err != nil {
		return err
	}
	if awaiting != nil {
		b.notice("%s", awaiting.Says)
	}
	if err := b.landed(ctx, b.head, sha, b.up, b.ask.push, "gitring rollback"); err != nil {
		return err
	}
	b.out.Commit, b.out.Pushed = sha, b.ask.push
	return nil
}

// mayChange says whether anything uncommitted is in the way, and where to push.
func (b *back) mayChange(ctx context.Context) (up upstream, err error) {
	changed, err := b.git(ctx, "status", "--porcelain", "--untracked-files=no", "--", b.spec())
	if err != nil {
		return up, err
	}
	if changed != "" && !b.ask.dryRun {
		return up, &exit.Failure{
			Code: exit.Conflict, Says: "there are changes under " + b.path + " that are not committed",
			Hint: "commit them, or put them aside with git stash, and try again",
		}
	}
	if b.branch(ctx) == "" && !b.ask.dryRun {
		return up, &exit.Failure{Code: exit.Conflict, Says: "HEAD is on no branch, so nothing would follow the new commit", Hint: "git switch <branch>"}
	}
	if b.ask.push {
		return b.pushable(ctx)
	}
	return up, nil
}

// tree is HEAD's, with the folder as it was at the target. It is put together in
// an index of its own, so that what is staged here stays out of it.
func (b *back) tree(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "gitring-rollback-")
	if err != nil {
		return "", fmt.Errorf("cannot make a folder for an index: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	git := func(args ...string) (string, error) { return b.gitWith(ctx, nil, index, args...) }

	old, was := b.at(ctx, b.target, b.path)
	if !was {
		return "", &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("%s was not there yet at %s", b.path, b.target.Short()),
			Hint: "gitring rollback without --to lists commits that have it",
		}
	}
	if err := b.exchange(git, old); err != nil {
		return "", err
	}
	for _, own := range []string{ownFolder, b.rules.config.SignersInRepo} {
		if own == "" || b.path != "." && !strings.HasPrefix(own, b.path+"/") {
			continue
		}
		if err := b.keep(ctx, git, index, own); err != nil {
			return "", err
		}
	}
	return git("write-tree")
}

// exchange puts the old folder in the place of the present one.
func (b *back) exchange(git func(...string) (string, error), old string) error {
	if b.path == "." {
		_, err := git("read-tree", old)
		return err
	}
	if _, err := git("read-tree", string(b.head)); err != nil {
		return err
	}
	if _, err := git("rm", "-r", "-q", "--cached", "--ignore-unmatch", "--", b.spec()); err != nil {
		return err
	}
	_, err := git("read-tree", "--prefix="+b.path+"/", old)
	return err
}

// keep puts a file or folder of HEAD over that of the target.
func (b *back) keep(ctx context.Context, git func(...string) (string, error), index []string, own string) error {
	if _, err := git("rm", "-r", "-q", "--cached", "--ignore-unmatch", "--", ":(top,literal)"+own); err != nil {
		return err
	}
	now, err := b.git(ctx, "ls-tree", "-r", "-z", "--full-tree", string(b.head), "--", own)
	if err != nil || now == "" {
		return err
	}
	_, err = b.gitWith(ctx, strings.NewReader(now), index, "update-index", "-z", "--index-info")
	return err
}

// at is the tree of a folder at a commit; false when there was none.
func (b *back) at(ctx context.Context, sha ring.SHA, folder string) (string, bool) {
	rev := string(sha) + ":" + folder
	if folder == "." {
		rev = string(sha) + "^{tree}"
	}
	id, err := b.git(ctx, "rev-parse", "--verify", "--quiet", rev)
	if err != nil {
		return "", false
	}
	tree, err := b.git(ctx, "rev-parse", "--verify", "--quiet", id+"^{tree}")
	return tree, err == nil
}

// commitOf says what goes back, to when and why.
func (b *back) commitOf(ctx context.Context, tree string) newCommit {
	subject, _ := b.git(ctx, "log", "-1", "--no-show-signature", "--format=%s", string(b.target))
	where := "This brings everything back"
	if b.path != "." {
		where = "This brings " + b.path + " back"
	}
	n := newCommit{
		tree: tree, parent: b.head, subject: "Roll back to " + b.target.Short(),
		body:     []string{b.ask.message, fmt.Sprintf("%s to commit %s:\n%s", where, b.target, screen.Clean(subject))},
		trailers: b.rules.targetTrailers(),
	}
	switch {
	case b.app != "":
		n.subject = "Roll back " + b.app + " to " + b.target.Short()
	case b.path != ".":
		n.subject = "Roll back " + path.Base(b.path) + " to " + b.target.Short()
	}
	return n
}

// anchor is since when the commit has to pass: what hosts trust, else what was
// fetched last, else HEAD.
func (b *back) anchor(ctx context.Context) ring.SHA {
	if b.ask.since != "" {
		if sha, err := b.commit(ctx, b.ask.since); err == nil {
			return sha
		}
	}
	if sha := b.daemon.trusted(ctx, b.rules.source); sha != "" && b.has(ctx, sha) {
		return sha
	}
	if up, ok := b.upstream(ctx); ok && up.seen != "" {
		return up.seen
	}
	return b.head
}

// wouldChange finds what the tree would change.
func (b *back) wouldChange(ctx context.Context, tree string) error {
	stat, err := b.git(ctx, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--stat", string(b.head), tree)
	if err != nil {
		return err
	}
	b.out.Diff = stat
	repo, err := b.repo()
	if err != nil {
		return err
	}
	source := b.rules.source
	if source == handSource {
		source = ""
	}
	b.out.Changes = b.daemon.plan(ctx, source, repo.Tree(ring.SHA(tree)))
	return nil
}

// appFolders are the folders of the apps of a commit, by name.
func (b *back) appFolders(c *ring.Commit) map[string]string {
	return manifest.Folders(c, manifest.Settings{Source: cmp.Or(b.rules.source, "source"), Path: b.path, Host: "rollback"})
}
