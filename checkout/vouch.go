package checkout

import (
	"context"
	"fmt"
	"strings"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// Vouched is what "vouch -o json" prints.
type Vouched struct {
	Since   ring.SHA    `json:"since"`
	Head    ring.SHA    `json:"head"`
	Commits []Unsettled `json:"commits"`
	Diff    string      `json:"diff,omitempty"`  // of all commits since, those of others too
	Vouch   ring.SHA    `json:"vouch,omitempty"` // the commit made
	Pushed  bool        `json:"pushed"`
}

// Unsettled is a commit that nobody answers for.
type Unsettled struct {
	Commit  ring.SHA  `json:"commit"`
	Author  string    `json:"author"`
	Subject string    `json:"subject"`
	Code    ring.Code `json:"code"`
	Says    string    `json:"says"`
	// Diff is what the commit itself changed, beside its first parent, if it has one. "" is nothing.
	Diff string `json:"diff,omitempty"`
}

// Vouch is one vouch in a clone.
type Vouch struct {
	*Clone
	Trust   *gitsync.Trust
	Rules   Rules
	message string
	push    bool
	Up      Upstream
	Result  Vouched
}

// NewVouch answers with a message, and pushes where that is wanted.
func NewVouch(c *Clone, message string, push bool) *Vouch {
	return &Vouch{Clone: c, message: message, push: push}
}

// CheckReady tells why the clone is in no state to vouch in.
func (v *Vouch) CheckReady(ctx context.Context, detached bool) (err error) {
	if v.Branch(ctx) == "" && (v.push || !detached) {
		return &exit.Failure{
			Code: exit.Conflict, Says: "HEAD is on no branch, so nothing would follow the new commit",
			Hint: "git switch <branch>, or --detached to make it all the same",
		}
	}
	if _, err := v.Git(ctx, "diff", "--cached", "--quiet"); err != nil {
		return &exit.Failure{
			Code: exit.Conflict, Says: "changes are staged, and a vouch is an empty commit",
			Hint: "commit them first, or take them out with git restore --staged .",
		}
	}
	if v.push {
		v.Up, err = v.pushable(ctx)
	}
	return err
}

// FindUnanswered finds what there is to vouch for since a commit that hosts trust.
func (v *Vouch) FindUnanswered(ctx context.Context, since string, patch bool) (err error) {
	if since == "" {
		return &exit.Failure{
			Code: exit.Usage, Says: "no daemon answers here that says up to where hosts trust",
			Hint: "gitring trust show on a host tells; name it with --since",
		}
	}
	v.Result.Commits = []Unsettled{}
	if v.Result.Since, err = v.CommitOf(ctx, since); err != nil {
		return err
	}
	if v.Result.Head, err = v.CommitOf(ctx, "HEAD"); err != nil {
		return err
	}
	repo, err := v.Repo()
	if err != nil {
		return err
	}
	list, incurable, err := v.Trust.Unanswered(gitsync.Until(ctx, repo), v.aids(ctx), v.Result.Since, v.Result.Head, v.Now())
	if err != nil {
		return err
	}
	if incurable != nil {
		return incurable
	}
	for _, r := range list {
		u := Unsettled{Commit: r.Commit, Code: r.Code, Says: r.Says}
		line, err := v.Git(ctx, "log", "-1", "--no-show-signature", "--format=%an <%ae>%x00%s", string(r.Commit))
		if err != nil {
			return err
		}
		u.Author, u.Subject, _ = strings.Cut(line, "\x00")
		// A later commit may have taken it back: then it is in no diff of all.
		before, err := v.firstParent(ctx, r.Commit)
		if err != nil {
			return err
		}
		if u.Diff, err = v.diff(ctx, patch, before, r.Commit); err != nil {
			return err
		}
		v.Result.Commits = append(v.Result.Commits, u)
	}
	v.Result.Diff, err = v.diff(ctx, patch, v.Result.Since, v.Result.Head)
	return err
}

// firstParent is the first parent of a commit; the empty tree where it has none, as one of an
// unrelated history that was merged.
func (v *Vouch) firstParent(ctx context.Context, c ring.SHA) (ring.SHA, error) {
	line, err := v.Git(ctx, "rev-list", "--parents", "-n", "1", string(c))
	if err != nil {
		return "", err
	}
	if all := strings.Fields(line); len(all) > 1 {
		return ring.SHA(all[1]), nil
	}
	tree, err := v.Git(ctx, "hash-object", "-t", "tree", "/dev/null")
	return ring.SHA(strings.TrimSpace(tree)), err
}

func (v *Vouch) diff(ctx context.Context, patch bool, from, to ring.SHA) (string, error) {
	how := "--stat"
	if patch {
		how = "--patch"
	}
	return v.Git(ctx, "diff", "--no-color", "--no-ext-diff", "--no-textconv", how, string(from), string(to))
}

// MakeCommit makes the commit that answers for all of them.
func (v *Vouch) MakeCommit(ctx context.Context) (err error) {
	o := &v.Result
	n := NewCommit{Tree: string(o.Head) + "^{tree}", Parent: o.Head, Subject: vouchSubject(o), Body: []string{v.message}}
	if n.Tree, err = v.Git(ctx, "rev-parse", "--verify", n.Tree); err != nil {
		return err
	}
	for _, u := range o.Commits {
		n.trailers = append(n.trailers, "Gitring-Vouch: "+string(u.Commit))
	}
	n.trailers = append(n.trailers, v.Rules.targetTrailers()...)
	sha, err := v.WriteCommit(ctx, n)
	if err != nil {
		return err
	}
	awaiting, err := v.passes(ctx, v.Trust, o.Since, sha)
	if err != nil {
		return err
	}
	if awaiting != nil {
		for _, u := range o.Commits {
			if u.Commit == awaiting.Commit && u.Says == awaiting.Says { // as many as before
				return &exit.Failure{Code: exit.Conflict, Says: "you answered for it already: " + awaiting.Says, Hint: awaiting.Hint}
			}
		}
		v.Notice("%s", awaiting.Says)
	}
	if err := v.landed(ctx, o.Head, sha, v.Up, v.push, "gitring vouch"); err != nil {
		return err
	}
	o.Vouch, o.Pushed = sha, v.push
	return nil
}

func vouchSubject(v *Vouched) string {
	if len(v.Commits) == 1 {
		return "Vouch for " + v.Commits[0].Commit.Short()
	}
	return fmt.Sprintf("Vouch for %d commits", len(v.Commits))
}
