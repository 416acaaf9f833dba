package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

type vouchFlags struct {
	trustFlags
	since, message         string
	push, diff, yes, loose bool
}

func vouchCmd(g *globals) *cobra.Command {
	var f vouchFlags
	cmd := &cobra.Command{
		Use:   "vouch [range]",
		Short: "Answer for commits of others with one signed commit",
		Long: "vouch shows which commits since the last trusted one nobody answers for, and what\n" +
			"each changed, and makes an empty commit on top of them, signed with your own Git\n" +
			"settings, that names each in a trailer Gitring-Vouch. Pushed, it unwedges every\n" +
			"host. Your key needs the role vouch, and the paths that changed.\n\n" +
			"The last trusted commit is that of the daemon here, unless --since or a range\n" +
			"a..HEAD says it. Exit 7 when the commit would be refused; nothing is left then.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) == 1 {
				from, to, isRange := strings.Cut(given[0], "..")
				if !isRange || from == "" || to != "" && to != "HEAD" || f.since != "" {
					return usage(cmd, "a range is <last trusted commit>..HEAD, and takes the place of --since")
				}
				f.since = from
			}
			return g.vouch(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.StringVar(&f.since, "since", "", "the last trusted commit")
	flags.StringVarP(&f.message, "message", "m", "", "why you answer for them")
	flags.BoolVar(&f.diff, "diff", false, "show the whole diff, not only which files")
	flags.BoolVar(&f.push, "push", false, "push the commit to the branch's upstream, never with force")
	flags.BoolVarP(&f.yes, "yes", "y", false, "make the commit without asking")
	flags.BoolVar(&f.loose, "detached", false, "also where HEAD is on no branch")
	return cmd
}

func (g *globals) vouch(ctx context.Context, f vouchFlags) error {
	c, err := checkout.Open(ctx, f.repo, g.person())
	if err != nil {
		return err
	}
	v := checkout.NewVouch(c, f.message, f.push)
	if err := v.CheckReady(ctx, f.loose); err != nil {
		return err
	}
	if v.Trust, v.Rules, err = g.trust(ctx, f.trustFlags); err != nil {
		return err
	}
	if err := v.FindUnanswered(ctx, cmp.Or(f.since, string(g.trustedUpTo(ctx, v.Rules.Source))), f.diff); err != nil {
		return err
	}
	if len(v.Result.Commits) == 0 {
		if g.machine() {
			return g.encode(v.Result)
		}
		g.notice("nothing to vouch for: every commit since %s is answered for", v.Result.Since.Short())
		return nil
	}
	if !g.machine() {
		if err := g.showUnsettled(&v.Result); err != nil {
			return err
		}
	}
	if err := g.agreed(f.yes, fmt.Sprintf("answer for %s?", wording.Counted(len(v.Result.Commits), "commit")), "the diff above is what you answer for; --yes says that you did look"); err != nil {
		return err
	}
	if err := v.MakeCommit(ctx); err != nil {
		return err
	}
	if g.machine() {
		return g.encode(v.Result)
	}
	return g.madeCommit(v.Result.Vouch, v.Result.Pushed, v.Up)
}

// agreed is nil when a person said yes, by a flag or when asked.
func (g *globals) agreed(yes bool, question, look string) error {
	if yes {
		return nil
	}
	if !g.asks() || g.machine() {
		return &exit.Failure{Code: exit.Usage, Says: "nobody can be asked here", Hint: look}
	}
	ok, err := g.yes(question)
	if err == nil && !ok {
		return &exit.Failure{Code: exit.Conflict, Says: "left as it was"}
	}
	return err
}

func (g *globals) showUnsettled(v *checkout.Vouched) error {
	s := g.screen()
	s.Line(0, " ", screen.Text("since"), screen.Painted(v.Since.Short(), screen.Bold), screen.Text("nobody answers for:"))
	for _, u := range v.Commits {
		s.Line(2, "  ", screen.Painted(u.Commit.Short(), screen.Yellow), screen.Text(u.Author), screen.Text(u.Subject), screen.Painted(string(u.Code), screen.Red))
		s.Quote(4, u.Diff)
	}
	if len(v.Commits) != 1 || v.Diff != v.Commits[0].Diff {
		s.Gap()
		all := "in all:"
		if v.Diff == "" {
			all = "in all: nothing"
		}
		s.Line(0, " ", screen.Text("since"), screen.Text(v.Since.Short()+","), screen.Text(all))
		s.Quote(0, v.Diff)
	}
	s.Gap()
	_, err := fmt.Fprint(g.out, s)
	return err
}

// madeCommit tells what became of a commit.
func (g *globals) madeCommit(sha ring.SHA, pushed bool, up checkout.Upstream) error {
	s := g.screen()
	if pushed {
		s.Line(0, " ", screen.Painted("pushed", screen.Green), screen.Text(sha.Short()), screen.Text("to "+up.Remote+" "+strings.TrimPrefix(up.Ref, "refs/heads/")))
	} else {
		s.Line(0, " ", screen.Painted("committed", screen.Green), screen.Text(sha.Short()))
	}
	_, err := fmt.Fprint(g.out, s)
	if !pushed {
		g.notice("git push brings it to the hosts")
	}
	return err
}
