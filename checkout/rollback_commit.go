package checkout

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// ownFolder of a repository holds what gitring is told by signed commits, such as
// who may sign: nobody who brings back a service means to bring that back.
const ownFolder = ".gitring"

// PrepareTree is the tree to go back to; "" where that is the present one.
func (b *Rollback) PrepareTree(ctx context.Context) (tree string, err error) {
	if b.Up, err = b.mayChange(ctx); err != nil {
		return "", err
	}
	if b.trusted, err = b.Rules.Trust(); err != nil {
		return "", err
	}
	if tree, err = b.tree(ctx); err != nil {
		return "", err
	}
	now, err := b.Git(ctx, "rev-parse", "--verify", string(b.head)+"^{tree}")
	if err != nil || now == tree {
		return "", err
	}
	return tree, nil
}

// MakeCommit makes the commit, holds it to verify, and only then pushes it and
// touches anything here.
func (b *Rollback) MakeCommit(ctx context.Context, tree string) error {
	sha, err := b.WriteCommit(ctx, b.commitOf(ctx, tree))
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
		b.Notice("%s", awaiting.Says)
	}
	if err := b.landed(ctx, b.head, sha, b.Up, b.ask.Push, "gitring rollback"); err != nil {
		return err
	}
	b.Result.Commit, b.Result.Pushed = sha, b.ask.Push
	return nil
}

// mayChange says whether anything uncommitted is in the way, and where to push.
func (b *Rollback) mayChange(ctx context.Context) (up Upstream, err error) {
	changed, err := b.Git(ctx, "status", "--porcelain", "--untracked-files=no", "--", b.spec())
	if err != nil {
		return up, err
	}
	if changed != "" && !b.ask.DryRun {
		return up, &exit.Failure{
			Code: exit.Conflict, Says: "there are changes under " + b.path + " that are not committed",
			Hint: "commit them, or put them aside with git stash, and try again",
		}
	}
	if b.Branch(ctx) == "" && !b.ask.DryRun {
		return up, &exit.Failure{Code: exit.Conflict, Says: "HEAD is on no branch, so nothing would follow the new commit", Hint: "git switch <branch>"}
	}
	if b.ask.Push {
		return b.pushable(ctx)
	}
	return up, nil
}

// tree is HEAD's, with the folder as it was at the target. It is put together in
// an index of its own, so that what is staged here stays out of it.
func (b *Rollback) tree(ctx context.Context) (string, error) {
	index, done, err := ownIndex()
	if err != nil {
		return "", err
	}
	defer done()
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
	for _, own := range []string{ownFolder, b.Rules.Config.SignersInRepo} {
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
func (b *Rollback) exchange(git func(...string) (string, error), old string) error {
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
func (b *Rollback) keep(ctx context.Context, git func(...string) (string, error), index []string, own string) error {
	if _, err := git("rm", "-r", "-q", "--cached", "--ignore-unmatch", "--", ":(top,literal)"+own); err != nil {
		return err
	}
	now, err := b.Git(ctx, "ls-tree", "-r", "-z", "--full-tree", string(b.head), "--", own)
	if err != nil || now == "" {
		return err
	}
	_, err = b.gitWith(ctx, strings.NewReader(now), index, "update-index", "-z", "--index-info")
	return err
}

// at is the tree of a folder at a commit; false when there was none.
func (b *Rollback) at(ctx context.Context, sha ring.SHA, folder string) (string, bool) {
	rev := string(sha) + ":" + folder
	if folder == "." {
		rev = string(sha) + "^{tree}"
	}
	id, err := b.Git(ctx, "rev-parse", "--verify", "--quiet", rev)
	if err != nil {
		return "", false
	}
	tree, err := b.Git(ctx, "rev-parse", "--verify", "--quiet", id+"^{tree}")
	return tree, err == nil
}

// commitOf says what goes back, to when and why.
func (b *Rollback) commitOf(ctx context.Context, tree string) NewCommit {
	subject, _ := b.Git(ctx, "log", "-1", "--no-show-signature", "--format=%s", string(b.target))
	where := "This brings everything back"
	if b.path != "." {
		where = "This brings " + b.path + " back"
	}
	n := NewCommit{
		Tree: tree, Parent: b.head, Subject: "Roll back to " + b.target.Short(),
		Body:     []string{b.ask.Message, fmt.Sprintf("%s to commit %s:\n%s", where, b.target, wording.SafeLine(subject))},
		trailers: b.Rules.targetTrailers(),
	}
	switch {
	case b.app != "":
		n.Subject = "Roll back " + b.app + " to " + b.target.Short()
	case b.path != ".":
		n.Subject = "Roll back " + path.Base(b.path) + " to " + b.target.Short()
	}
	return n
}

// anchor is since when the commit has to pass: what hosts trust, else what was
// fetched last, else HEAD.
func (b *Rollback) anchor(ctx context.Context) ring.SHA {
	if b.ask.Since != "" {
		if sha, err := b.CommitOf(ctx, b.ask.Since); err == nil {
			return sha
		}
	}
	if sha := b.daemon.TrustedUpTo(ctx, b.Rules.Source); sha != "" && b.has(ctx, sha) {
		return sha
	}
	if up, ok := b.Upstream(ctx); ok && up.seen != "" {
		return up.seen
	}
	return b.head
}

// FindChanges finds what the tree would change.
func (b *Rollback) FindChanges(ctx context.Context, tree string) error {
	stat, err := b.Git(ctx, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--stat", string(b.head), tree)
	if err != nil {
		return err
	}
	b.Result.Diff = stat
	repo, err := b.Repo()
	if err != nil {
		return err
	}
	source := b.Rules.Source
	if source == HandSource {
		source = ""
	}
	b.Result.Changes = b.daemon.PlanOf(ctx, source, repo.Tree(ring.SHA(tree)))
	return nil
}

// appFolders are the folders of the apps of a commit, by name.
func (b *Rollback) appFolders(c *ring.Commit) map[string]string {
	return manifest.Folders(c, manifest.Settings{Source: cmp.Or(b.Rules.Source, "source"), Path: b.path, Host: "rollback"})
}
