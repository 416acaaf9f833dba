package main

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

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

type rollbackFlags struct {
	trustFlags
	goBack
}

// goBack is what a person wants to go back to.
type goBack struct {
	to, path, since, message string
	limit                    int // of what is listed
	push, dryRun             bool
}

func rollbackCmd(g *globals) *cobra.Command {
	var f rollbackFlags
	cmd := &cobra.Command{
		Use:   "rollback [app]",
		Short: "Bring back an earlier good tree with one signed commit",
		Long: "rollback lists the commits that can be gone back to: those of this branch that\n" +
			"changed the source's folder, or the app's, without those that the daemon here saw\n" +
			"fail, and who answers for each, or why nobody does. With --to it makes a signed\n" +
			"commit on top of HEAD that holds that folder as it was then and everything else as\n" +
			"it is, so that there is never a conflict. The commit has to pass verify before it is\n" +
			"pushed or any file here changes. Nothing is asked.\n\n" +
			"Exit 7 when it would be refused; nothing is left then.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if f.limit < 1 {
				return usage(cmd, "--limit is at least 1")
			}
			if f.to == "" && (f.push || f.dryRun) {
				return usage(cmd, "--to says which commit to go back to")
			}
			return g.rollback(cmd.Context(), strings.Join(given, ""), f)
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.StringVar(&f.to, "to", "", "the commit to go back to")
	flags.StringVar(&f.path, "path", "", "the source's folder in the repository (default that of --config, else all)")
	flags.StringVar(&f.since, "since", "", "the last trusted commit (default the daemon's, else what was fetched last)")
	flags.StringVarP(&f.message, "message", "m", "", "why")
	flags.IntVarP(&f.limit, "limit", "n", 10, "how many commits to list at most")
	flags.BoolVar(&f.push, "push", false, "push the commit to the branch's upstream, never with force")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what the commit would change, and make none")
	return cmd
}

// rolledBack is what "rollback -o json" prints.
type rolledBack struct {
	App     string        `json:"app,omitempty"`
	Path    string        `json:"path"`
	To      ring.SHA      `json:"to,omitempty"`
	Good    []backTo      `json:"good,omitempty"`
	Commit  ring.SHA      `json:"commit,omitempty"` // the one made
	Pushed  bool          `json:"pushed"`
	Diff    string        `json:"diff,omitempty"`
	Changes *ring.Changes `json:"changes,omitempty"` // as the daemon here plans it
}

// backTo is a commit to go back to.
type backTo struct {
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

func (g *globals) rollback(ctx context.Context, app string, f rollbackFlags) error {
	c, err := openClone(ctx, f.repo, g.person())
	if err != nil {
		return err
	}
	b := newRollback(c, app, f.goBack, daemonHere{g})
	if err := b.findCommits(ctx); err != nil {
		return err
	}
	// Whom to trust is only asked where a commit is made.
	if b.rules, err = g.rules(ctx, f.trustFlags); err != nil && (f.to != "" || g.config != "") {
		return err
	}
	if err := b.findFolder(ctx); err != nil {
		return err
	}
	if f.to == "" {
		return g.listGood(ctx, b, app)
	}
	return g.goBack(ctx, b, f)
}

// listGood shows the commits to go back to.
func (g *globals) listGood(ctx context.Context, b *back, app string) error {
	if err := b.list(ctx); err != nil {
		return err
	}
	good := b.out.Good
	if g.machine() {
		return g.encode(b.out)
	}
	if len(good) == 0 {
		return &exit.Failure{Code: exit.NotFound, Says: "no earlier commit changed " + b.what(), Hint: "git log --first-parent shows all commits; --to takes any of them"}
	}
	var rows [][]screen.Word
	for _, x := range good {
		rows = append(rows, []screen.Word{screen.Painted(x.Commit.Short(), screen.Yellow), screen.Text(strings.Replace(x.At[:16], "T", " ", 1)), screen.Text(cmp.Or(x.Verdict, "-")), answeredBy(x), screen.Text(x.Author), screen.Text(x.Subject)})
	}
	s := g.screen()
	s.Table(0, []string{"COMMIT", "AT", "HERE", "SIGNED", "AUTHOR", "SUBJECT"}, rows)
	_, err := fmt.Fprint(g.out, s)
	g.notice("gitring rollback %s--to %s makes the commit", wording.When(app != "", app+" "), good[0].Commit.Short())
	return err
}

// answeredBy is who answers for a commit, or why nobody does.
func answeredBy(x backTo) screen.Word {
	if x.Refused != "" {
		return screen.Painted(string(x.Refused), screen.Red)
	}
	return screen.Text(cmp.Or(x.Signer, "-"))
}

// goBack makes the commit that goes back.
func (g *globals) goBack(ctx context.Context, b *back, f rollbackFlags) error {
	tree, err := b.prepare(ctx)
	if err != nil {
		return err
	}
	if tree == "" {
		if g.machine() {
			return g.encode(b.out)
		}
		g.notice("nothing to roll back: %s is as it was at %s", cmp.Or(b.out.App, b.out.Path), b.out.To.Short())
		return nil
	}
	if err = b.wouldChange(ctx, tree); err == nil {
		err = g.showWouldChange(&b.out)
	}
	if err != nil || f.dryRun {
		if g.machine() {
			err = errors.Join(err, g.encode(b.out))
		}
		return err
	}
	if err := b.carryOut(ctx, tree); err != nil {
		return err
	}
	if g.machine() {
		return g.encode(b.out)
	}
	return g.madeCommit(b.out.Commit, f.push, b.up)
}

// showWouldChange shows what the commit would change: by the daemon's plan where one
// answers, and by its files.
func (g *globals) showWouldChange(o *rolledBack) error {
	if g.machine() {
		return nil
	}
	s := g.screen()
	s.Quote(0, o.Diff)
	s.Gap()
	if o.Changes != nil {
		o.Changes.Commit = "" // it is none yet
		showChanges(s, o.Changes, g.now())
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}

// daemonHere is what the daemon of this host says of a rollback.
type daemonHere struct{ g *globals }

func (d daemonHere) trusted(ctx context.Context, source string) ring.SHA {
	return d.g.trustedUpTo(ctx, source)
}

func (d daemonHere) history(ctx context.Context, app string) []ring.Event {
	events, err := d.g.daemon().History(ctx, api.HistoryQuery{App: app, Limit: 1000})
	if err != nil {
		return nil
	}
	return events
}

func (d daemonHere) plan(ctx context.Context, source string, tree fs.FS) *ring.Changes {
	changes, err := d.g.daemon().Plan(ctx, api.PlanRequest{Source: source, Tree: tree})
	if nobodyThere(err) {
		d.g.notice("no daemon answers on %s: what would happen there is not known", d.g.socketPath())
		return nil
	}
	if err != nil {
		d.g.notice("the daemon cannot say what would happen: %v", asked(err))
		return nil
	}
	return &changes
}

// back is one rollback in a clone.
type back struct {
	*clone
	ask          goBack
	daemon       host
	rules        rules
	app, path    string // path is of what goes back; "." is all
	head, target ring.SHA
	trusted      *gitsync.Trust
	up           upstream
	out          rolledBack
}

// newRollback is one of an app, or with "" of the source's folder.
func newRollback(c *clone, app string, ask goBack, daemon host) *back {
	return &back{clone: c, ask: ask, daemon: daemon, app: app}
}

// A host is what a daemon says of a rollback; each answer is empty where none answers.
type host interface {
	// trusted is the commit that hosts trust of a source.
	trusted(ctx context.Context, source string) ring.SHA
	// history is what happened to an app, or with "" to all, the newest first.
	history(ctx context.Context, app string) []ring.Event
	// plan is what a tree would change; why nobody can say is told.
	plan(ctx context.Context, source string, tree fs.FS) *ring.Changes
}

// findCommits finds where the branch is, and what it goes back to.
func (b *back) findCommits(ctx context.Context) (err error) {
	if b.head, err = b.commit(ctx, "HEAD"); err == nil && b.ask.to != "" {
		b.target, err = b.commit(ctx, b.ask.to)
	}
	return err
}

// findFolder finds what goes back, by the rules that count.
func (b *back) findFolder(ctx context.Context) (err error) {
	f := b.ask
	b.path = path.Clean("./" + cmp.Or(f.path, b.rules.path, "."))
	if path.IsAbs(cmp.Or(f.path, ".")) || b.path == ".." || strings.HasPrefix(b.path, "../") {
		return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("path %q leaves the repository", f.path), Hint: "a folder inside the commit, such as hosts/edge-1"}
	}
	if b.app != "" {
		if b.path, err = b.folderOf(b.app); err != nil {
			return err
		}
	}
	b.out = rolledBack{App: b.app, Path: b.path}
	if f.to == "" {
		return nil
	}
	b.out.To = b.target
	if _, err := b.git(ctx, "merge-base", "--is-ancestor", string(b.target), string(b.head)); err != nil {
		return &exit.Failure{
			Code: exit.Conflict, Says: fmt.Sprintf("%s is no commit of this branch's past", b.target.Short()),
			Hint: "gitring rollback without --to lists those that are",
		}
	}
	return nil
}

// folderOf is where an app is: in HEAD or, if that lost it, at the target.
func (b *back) folderOf(app string) (string, error) {
	repo, err := b.repo()
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

// list finds the commits to go back to, and who answers for each.
func (b *back) list(ctx context.Context) error {
	good, err := b.good(ctx)
	if err != nil {
		return err
	}
	b.out.Good = good
	return b.mark(ctx, good)
}

// mark tells of each commit who answers for it, by the trust that is named here.
func (b *back) mark(ctx context.Context, list []backTo) error {
	if b.rules.config.Mode == "" || b.rules.config.Mode == gitsync.Disabled {
		return nil
	}
	trust, err := b.rules.trust()
	if err != nil {
		return err
	}
	repo, err := b.repo()
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
func (b *back) markOne(ctx context.Context, trust *gitsync.Trust, repo *gitsync.Repo, x *backTo) error {
	at, err := time.Parse(time.RFC3339, x.At)
	if err != nil {
		return err
	}
	seen := func(ring.SHA) time.Time { return at }
	one, refusal, err := trust.OneOfHistory(gitsync.Until(ctx, repo), x.Commit, b.now(), seen)
	if refusal != nil && b.rules.config.Mode == gitsync.ForgeMerge && x.parent != "" {
		aids := b.aids(ctx)
		aids.Head = func(pull gitsync.Pull) (ring.SHA, error) {
			sha, err := b.commit(ctx, pull.Ref())
			if err != nil {
				return "", &gitsync.Unavailable{Why: "it is not in this clone"}
			}
			return sha, nil
		}
		var all []ring.Verified
		all, refusal, err = trust.RangeWith(gitsync.Until(ctx, repo), aids, x.parent, x.Commit, b.now(), seen)
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

// what goes back, in words.
func (b *back) what() string {
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
func (b *back) good(ctx context.Context) ([]backTo, error) {
	args := []string{"log", "--no-show-signature", "--first-parent", "--format=%H%x00%cI%x00%an%x00%P%x00%s", fmt.Sprintf("--max-count=%d", b.ask.limit*4+1), string(b.head), "--", b.spec()}
	log, err := b.git(ctx, args...)
	if err != nil {
		return nil, err
	}
	seen := b.verdicts(ctx)
	out := []backTo{}
	for line := range strings.Lines(log) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\x00", 5)
		if len(f) != 5 {
			continue
		}
		x := backTo{Commit: ring.SHA(f[0]), At: f[1], Author: f[2], Subject: f[4], Verdict: seen[ring.SHA(f[0])]}
		parent, _, _ := strings.Cut(f[3], " ")
		x.parent = ring.SHA(parent)
		if x.Verdict == "failed" || len(out) == b.ask.limit || b.same(ctx, x.Commit) {
			continue
		}
		out = append(out, x)
	}
	return out, nil
}

// spec is the folder as Git takes one. To be literal "." would be a file's name.
func (b *back) spec() string {
	if b.path == "." {
		return ":(top)"
	}
	return ":(top,literal)" + b.path
}

// same reports whether the folder is now as it was at a commit.
func (b *back) same(ctx context.Context, sha ring.SHA) bool {
	_, err := b.git(ctx, "diff", "--quiet", string(sha), string(b.head), "--", b.spec())
	return err == nil
}

// verdicts are what the daemon here saw of commits; none when there is no daemon.
func (b *back) verdicts(ctx context.Context) map[ring.SHA]string {
	events := slices.DeleteFunc(b.daemon.history(ctx, b.app), func(e ring.Event) bool {
		return e.Source != "" && e.Source != b.rules.source && b.rules.source != handSource && b.rules.source != ""
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
