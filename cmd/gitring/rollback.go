package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/show"
	"github.com/gitring/gitring/wording"
)

type rollbackFlags struct {
	trustFlags
	checkout.RollbackOptions
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
			if f.Limit < 1 {
				return usage(cmd, "--limit is at least 1")
			}
			if f.To == "" && (f.Push || f.DryRun) {
				return usage(cmd, "--to says which commit to go back to")
			}
			return g.rollback(cmd.Context(), strings.Join(given, ""), f)
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.StringVar(&f.To, "to", "", "the commit to go back to")
	flags.StringVar(&f.Path, "path", "", "the source's folder in the repository (default that of --config, else all)")
	flags.StringVar(&f.Since, "since", "", "the last trusted commit (default the daemon's, else what was fetched last)")
	flags.StringVarP(&f.Message, "message", "m", "", "why")
	flags.IntVarP(&f.Limit, "limit", "n", 10, "how many commits to list at most")
	flags.BoolVar(&f.Push, "push", false, "push the commit to the branch's upstream, never with force")
	flags.BoolVar(&f.DryRun, "dry-run", false, "show what the commit would change, and make none")
	return cmd
}

func (g *globals) rollback(ctx context.Context, app string, f rollbackFlags) error {
	c, err := checkout.Open(ctx, f.repo, g.person())
	if err != nil {
		return err
	}
	b := checkout.NewRollback(c, app, f.RollbackOptions, daemonHere{g})
	if err := b.FindCommits(ctx); err != nil {
		return err
	}
	// Whom to trust is only asked where a commit is made.
	if b.Rules, err = g.rules(ctx, f.trustFlags); err != nil && (f.To != "" || g.config != "") {
		return err
	}
	if err := b.FindFolder(ctx); err != nil {
		return err
	}
	if f.To == "" {
		return g.listGood(ctx, b, app)
	}
	return g.goBack(ctx, b, f)
}

// listGood shows the commits to go back to.
func (g *globals) listGood(ctx context.Context, b *checkout.Rollback, app string) error {
	if err := b.FindGood(ctx); err != nil {
		return err
	}
	good := b.Result.Good
	if g.machine() {
		return g.encode(b.Result)
	}
	if len(good) == 0 {
		return &exit.Failure{Code: exit.NotFound, Says: "no earlier commit changed " + b.Subject(), Hint: "git log --first-parent shows all commits; --to takes any of them"}
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
func answeredBy(x checkout.GoodCommit) screen.Word {
	if x.Refused != "" {
		return screen.Painted(string(x.Refused), screen.Red)
	}
	return screen.Text(cmp.Or(x.Signer, "-"))
}

// goBack makes the commit that goes back.
func (g *globals) goBack(ctx context.Context, b *checkout.Rollback, f rollbackFlags) error {
	tree, err := b.PrepareTree(ctx)
	if err != nil {
		return err
	}
	if tree == "" {
		if g.machine() {
			return g.encode(b.Result)
		}
		g.notice("nothing to roll back: %s is as it was at %s", cmp.Or(b.Result.App, b.Result.Path), b.Result.To.Short())
		return nil
	}
	if err = b.FindChanges(ctx, tree); err == nil {
		err = g.showWouldChange(&b.Result)
	}
	if err != nil || f.DryRun {
		if g.machine() {
			err = errors.Join(err, g.encode(b.Result))
		}
		return err
	}
	if err := b.MakeCommit(ctx, tree); err != nil {
		return err
	}
	if g.machine() {
		return g.encode(b.Result)
	}
	return g.madeCommit(b.Result.Commit, f.Push, b.Up)
}

// showWouldChange shows what the commit would change: by the daemon's plan where one
// answers, and by its files.
func (g *globals) showWouldChange(o *checkout.RolledBack) error {
	if g.machine() {
		return nil
	}
	s := g.screen()
	s.Quote(0, o.Diff)
	s.Gap()
	if o.Changes != nil {
		o.Changes.Commit = "" // it is none yet
		show.Changes(s, o.Changes, g.now())
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}

// daemonHere is what the daemon of this host says of a rollback.
type daemonHere struct{ g *globals }

func (d daemonHere) TrustedUpTo(ctx context.Context, source string) ring.SHA {
	return d.g.trustedUpTo(ctx, source)
}

func (d daemonHere) HistoryOf(ctx context.Context, app string) []ring.Event {
	events, err := d.g.daemon().History(ctx, api.HistoryQuery{App: app, Limit: 1000})
	if err != nil {
		return nil
	}
	return events
}

func (d daemonHere) PlanOf(ctx context.Context, source string, tree fs.FS) *ring.Changes {
	changes, err := d.g.daemon().Plan(ctx, api.PlanRequest{Source: source, Tree: tree})
	if d.g.nobodyThere(err) {
		d.g.notice("no daemon answers on %s: what would happen there is not known", d.g.socketPath())
		return nil
	}
	if err != nil {
		d.g.notice("the daemon cannot say what would happen: %v", asked(err))
		return nil
	}
	return &changes
}
