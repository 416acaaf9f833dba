package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

// RollbackOptions is what a person wants to go back to.
type RollbackOptions struct {
	To, Path, Since, Message string
	Limit                    int // of what is listed
	Push, DryRun             bool
}

// RolledBack is what "rollback -o json" prints.
type RolledBack struct {
	App     string        `json:"app,omitempty"`
	Path    string        `json:"path"`
	To      ring.SHA      `json:"to,omitempty"`
	Good    []GoodCommit  `json:"good,omitempty"`
	Commit  ring.SHA      `json:"commit,omitempty"` // the one made
	Pushed  bool          `json:"pushed"`
	Diff    string        `json:"diff,omitempty"`
	Changes *ring.Changes `json:"changes,omitempty"` // as the daemon here plans it
}

// GoodCommit is a commit to go back to.
type GoodCommit struct {
	Commit  ring.SHA `json:"commit"`
	At      string   `json:"at"` // RFC 3339
	Author  string   `json:"author"`
	Subject string   `json:"subject"`
	Verdict string   `json:"verdict,omitempty"` // what the daemon here saw; "" when it did not
	// Signer is who answers for it; Refused is why nobody does, by the rules of now
	// and as of the commit's own time. Both "" when that cannot be told here.
	Signer  string    `json:"signer,omitempty"`
	Refused ring.Code `json:"refused,omitempty"`
	parent  ring.SHA
}

// Rollback is one rollback in a clone.
type Rollback struct {
	*Clone
	ask          RollbackOptions
	daemon       Daemon
	Rules        Rules
	app, path    string // path is of what goes back; "." is all
	head, target ring.SHA
	trusted      *gitsync.Trust
	Up           Upstream
	Result       RolledBack
}

// NewRollback is one of an app, or with "" of the source's folder.
func NewRollback(c *Clone, app string, ask RollbackOptions, daemon Daemon) *Rollback {
	return &Rollback{Clone: c, ask: ask, daemon: daemon, app: app}
}

// A Daemon is what a daemon says of a rollback; each answer is empty where none answers.
type Daemon interface {
	// TrustedUpTo is the commit that hosts trust of a source.
	TrustedUpTo(ctx context.Context, source string) ring.SHA
	// HistoryOf is what happened to an app, or with "" to all, the newest first.
	HistoryOf(ctx context.Context, app string) []ring.Event
	// PlanOf is what a tree would change; why nobody can say is told.
	PlanOf(ctx context.Context, source string, tree fs.FS) *ring.Changes
}

// FindCommits finds where the branch is, and what it goes back to.
func (b *Rollback) FindCommits(ctx context.Context) (err error) {
	if b.head, err = b.CommitOf(ctx, "HEAD"); err == nil && b.ask.To != "" {
		b.target, err = b.CommitOf(ctx, b.ask.To)
	}
	return err
}

// FindFolder finds what goes back, by the rules that count.
func (b *Rollback) FindFolder(ctx context.Context) (err error) {
	f := b.ask
	b.path = path.Clean("./" + cmp.Or(f.Path, b.Rules.path, "."))
	if path.IsAbs(cmp.Or(f.Path, ".")) || b.path == ".." || strings.HasPrefix(b.path, "../") {
		return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("path %q leaves the repository", f.Path), Hint: "a folder inside the commit, such as hosts/edge-1"}
	}
	if b.app != "" {
		if b.path, err = b.folderOf(b.app); err != nil {
			return err
		}
	}
	b.Result = RolledBack{App: b.app, Path: b.path}
	if f.To == "" {
		return nil
	}
	b.Result.To = b.target
	if _, err := b.Git(ctx, "merge-base", "--is-ancestor", string(b.target), string(b.head)); err != nil {
		return &exit.Failure{
			Code: exit.Conflict, Says: fmt.Sprintf("%s is no commit of this branch's past", b.target.Short()),
			Hint: "gitring rollback without --to lists those that are",
		}
	}
	return nil
}

// folderOf is where an app is: in HEAD or, if that lost it, at the target.
func (b *Rollback) folderOf(app string) (string, error) {
	repo, err := b.Repo()
	if err != nil {
		return "", err
	}
	var names []string
	for _, sha := range []ring.SHA{b.head, b.target} {
		if sha == "" {
			continue
		}
		c, err := repo.Commit(sha)
		if err != nil {
			return "", err
		}
		folders := b.appFolders(c)
		if at, ok := folders[app]; ok {
			return at, nil
		}
		names = append(names, slices.Sorted(maps.Keys(folders))...)
	}
	return "", &exit.Failure{Code: exit.NotFound, Says: fmt.Sprintf("no app %q at %s", app, b.head.Short()), Hint: ring.Meant(app, names)}
}

// FindGood finds the commits to go back to, and who answers for each.
func (b *Rollback) FindGood(ctx context.Context) error {
	good, err := b.good(ctx)
	if err != nil {
		return err
	}
	b.Result.Good = good
	return b.mark(ctx, good)
}

// mark tells of each commit who answers for it, by the trust that is named here.
func (b *Rollback) mark(ctx context.Context, list []GoodCommit) error {
	if b.Rules.Config.Mode == "" || b.Rules.Config.Mode == gitsync.Disabled {
		return nil
	}
	trust, err := b.Rules.Trust()
	if err != nil {
		return err
	}
	repo, err := b.Repo()
	if err != nil {
		return err
	}
	for i := range list {
		if err := b.markOne(ctx, trust, repo, &list[i]); err != nil {
			return fmt.Errorf("cannot verify %s: %w", list[i].Commit.Short(), err)
		}
	}
	return nil
}

// markOne judges a commit as of its own time: a key that expired since was good. A
// button's landing is judged by what is here, without asking the forge.
func (b *Rollback) markOne(ctx context.Context, trust *gitsync.Trust, repo *gitsync.Repo, x *GoodCommit) error {
	at, err := time.Parse(time.RFC3339, x.At)
	if err != nil {
		return err
	}
	seen := func(ring.SHA) time.Time { return at }
	one, refusal, err := trust.OneOfHistory(gitsync.Until(ctx, repo), x.Commit, b.Now(), seen)
	if refusal != nil && b.Rules.Config.Mode == gitsync.ForgeMerge && x.parent != "" {
		aids := b.aids(ctx)
		aids.Head = func(pull gitsync.Pull) (ring.SHA, error) {
			sha, err := b.CommitOf(ctx, pull.Ref())
			if err != nil {
				return "", &gitsync.Unavailable{Why: "it is not in this clone"}
			}
			return sha, nil
		}
		var all []ring.Verified
		all, refusal, err = trust.RangeWith(gitsync.Until(ctx, repo), aids, x.parent, x.Commit, b.Now(), seen)
		if len(all) > 0 {
			one = all[len(all)-1]
		}
	}
	switch {
	case errors.Is(err, gitsync.ErrMissing):
		return nil // the clone is shallow
	case err != nil:
		return err
	case refusal == nil:
		x.Signer = one.Signer
	case refusal.Code != ring.HeadUnavailable && refusal.Code != ring.NeedsMergeTree: // nobody can tell here
		x.Refused = refusal.Code
	}
	return nil
}

// Subject is what goes back, in words.
func (b *Rollback) Subject() string {
	switch {
	case b.app != "":
		return b.app
	case b.path != ".":
		return b.path
	}
	return "anything"
}

// good are the earlier commits of the branch that changed the folder, newest
// first, but for the present content and what failed here.
func (b *Rollback) good(ctx context.Context) ([]GoodCommit, error) {
	args := []string{"log", "--no-show-signature", "--first-parent", "--format=%H%x00%cI%x00%an%x00%P%x00%s", fmt.Sprintf("--max-count=%d", b.ask.Limit*4+1), string(b.head), "--", b.spec()}
	log, err := b.Git(ctx, args...)
	if err != nil {
		return nil, err
	}
	seen := b.verdicts(ctx)
	out := []GoodCommit{}
	for line := range strings.Lines(log) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\x00", 5)
		if len(f) != 5 {
			continue
		}
		x := GoodCommit{Commit: ring.SHA(f[0]), At: f[1], Author: f[2], Subject: f[4], Verdict: seen[ring.SHA(f[0])]}
		parent, _, _ := strings.Cut(f[3], " ")
		x.parent = ring.SHA(parent)
		if x.Verdict == "failed" || len(out) == b.ask.Limit || b.same(ctx, x.Commit) {
			continue
		}
		out = append(out, x)
	}
	return out, nil
}

// spec is the folder as Git takes one. To be literal "." would be a file's name.
func (b *Rollback) spec() string {
	if b.path == "." {
		return ":(top)"
	}
	return ":(top,literal)" + b.path
}

// same reports whether the folder is now as it was at a commit.
func (b *Rollback) same(ctx context.Context, sha ring.SHA) bool {
	_, err := b.Git(ctx, "diff", "--quiet", string(sha), string(b.head), "--", b.spec())
	return err == nil
}

// verdicts are what the daemon here saw of commits; none when there is no daemon.
func (b *Rollback) verdicts(ctx context.Context) map[ring.SHA]string {
	events := slices.DeleteFunc(b.daemon.HistoryOf(ctx, b.app), func(e ring.Event) bool {
		return e.Source != "" && e.Source != b.Rules.Source && b.Rules.Source != HandSource && b.Rules.Source != ""
	})
	return verdictsOf(events)
}

// verdictsOf folds events, the newest first: what failed and was well later, such as an
// app that was refused until a person adopted it, did not fail.
func verdictsOf(events []ring.Event) map[ring.SHA]string {
	type part struct {
		commit       ring.SHA
		app, service string
	}
	settled, out := map[part]bool{}, map[ring.SHA]string{}
	for _, e := range events {
		of, verdict := part{e.Commit, e.App, e.Service}, ""
		switch e.Kind {
		case ring.CommitRefused, ring.AppRefused, ring.RolloutFailed, ring.RolloutRestored, ring.JobFailed:
			verdict = "failed"
		case ring.RolloutCompleted, ring.JobSucceeded:
			verdict = "good"
		case ring.CommitAccepted, ring.AppInForce: // of itself no word on what it became
		default:
			continue
		}
		if !settled[of] && (verdict == "failed" || verdict == "good" && out[e.Commit] == "") {
			out[e.Commit] = verdict
		}
		settled[of] = true
	}
	return out
}
