package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
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
			"they changed, and makes an empty commit on top of them, signed with your own Git\n" +
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

// vouched is what "vouch -o json" prints.
type vouched struct {
	Since   ring.SHA    `json:"since"`
	Head    ring.SHA    `json:"head"`
	Commits []unsettled `json:"commits"`
	Diff    string      `json:"diff,omitempty"`
	Vouch   ring.SHA    `json:"vouch,omitempty"` // the commit made
	Pushed  bool        `json:"pushed"`
}

// unsettled is a commit that nobody answers for.
type unsettled struct {
	Commit  ring.SHA  `json:"commit"`
	Author  string    `json:"author"`
	Subject string    `json:"subject"`
	Code    ring.Code `json:"code"`
	Says    string    `json:"says"`
}

func (g *globals) vouch(ctx context.Context, f vouchFlags) error {
	c, err := openClone(ctx, f.repo, g.person())
	if err != nil {
		return err
	}
	v := newVouch(c, f.message, f.push)
	if err := v.ready(ctx, f.loose); err != nil {
		return err
	}
	if v.trust, v.rules, err = g.trust(ctx, f.trustFlags); err != nil {
		return err
	}
	if err := v.look(ctx, cmp.Or(f.since, string(g.trustedUpTo(ctx, v.rules.source))), f.diff); err != nil {
		return err
	}
	if len(v.out.Commits) == 0 {
		if g.machine() {
			return g.encode(v.out)
		}
		g.notice("nothing to vouch for: every commit since %s is answered for", v.out.Since.Short())
		return nil
	}
	if !g.machine() {
		if err := g.showUnsettled(&v.out); err != nil {
			return err
		}
	}
	if err := g.agreed(f.yes, fmt.Sprintf("answer for %s?", wording.Counted(len(v.out.Commits), "commit")), "the diff above is what you answer for; --yes says that you did look"); err != nil {
		return err
	}
	if err := v.make(ctx); err != nil {
		return err
	}
	if g.machine() {
		return g.encode(v.out)
	}
	return g.madeCommit(v.out.Vouch, v.out.Pushed, v.up)
}

// vouch is one vouch in a clone.
type vouch struct {
	*clone
	trust   *gitsync.Trust
	rules   rules
	message string
	push    bool
	up      upstream
	out     vouched
}

// newVouch answers with a message, and pushes where that is wanted.
func newVouch(c *clone, message string, push bool) *vouch {
	return &vouch{clone: c, message: message, push: push}
}

// ready says whether the clone is in a state to vouch in.
func (v *vouch) ready(ctx context.Context, detached bool) (err error) {
	if v.branch(ctx) == "" && (v.push || !detached) {
		return &exit.Failure{
			Code: exit.Conflict, Says: "HEAD is on no branch, so nothing would follow the new commit",
			Hint: "git switch <branch>, or --detached to make it all the same",
		}
	}
	if _, err := v.git(ctx, "diff", "--cached", "--quiet"); err != nil {
		return &exit.Failure{
			Code: exit.Conflict, Says: "changes are staged, and a vouch is an empty commit",
			Hint: "commit them first, or take them out with git restore --staged .",
		}
	}
	if v.push {
		v.up, err = v.pushable(ctx)
	}
	return err
}

// look finds what there is to vouch for since a commit that hosts trust.
func (v *vouch) look(ctx context.Context, since string, patch bool) (err error) {
	if since == "" {
		return &exit.Failure{
			Code: exit.Usage, Says: "no daemon answers here that says up to where hosts trust",
			Hint: "gitring trust show on a host tells; name it with --since",
		}
	}
	v.out.Commits = []unsettled{}
	if v.out.Since, err = v.commit(ctx, since); err != nil {
		return err
	}
	if v.out.Head, err = v.commit(ctx, "HEAD"); err != nil {
		return err
	}
	repo, err := v.repo()
	if err != nil {
		return err
	}
	list, incurable, err := v.trust.Unanswered(gitsync.Until(ctx, repo), v.aids(ctx), v.out.Since, v.out.Head, v.now())
	if err != nil {
		return err
	}
	if incurable != nil {
		return incurable
	}
	for _, r := range list {
		u := unsettled{Commit: r.Commit, Code: r.Code, Says: r.Says}
		line, err := v.git(ctx, "log", "-1", "--no-show-signature", "--format=%an <%ae>%x00%s", string(r.Commit))
		if err != nil {
			return err
		}
		u.Author, u.Subject, _ = strings.Cut(line, "\x00")
		v.out.Commits = append(v.out.Commits, u)
	}
	how := []string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--stat"}
	if patch {
		how[len(how)-1] = "--patch"
	}
	v.out.Diff, err = v.git(ctx, append(how, string(v.out.Since), string(v.out.Head))...)
	return err
}

// make makes the commit that answers for all of them.
func (v *vouch) make(ctx context.Context) (err error) {
	o := &v.out
	n := newCommit{tree: string(o.Head) + "^{tree}", parent: o.Head, subject: vouchSubject(o), body: []string{v.message}}
	if n.tree, err = v.git(ctx, "rev-parse", "--verify", n.tree); err != nil {
		return err
	}
	for _, u := range o.Commits {
		n.trailers = append(n.trailers, "Gitring-Vouch: "+string(u.Commit))
	}
	n.trailers = append(n.trailers, v.rules.targetTrailers()...)
	sha, err := v.write(ctx, n)
	if err != nil {
		return err
	}
	awaiting, err := v.passes(ctx, v.trust, o.Since, sha)
	if err != nil {
		return err
	}
	if awaiting != nil {
		for _, u := range o.Commits {
			if u.Commit == awaiting.Commit && u.Says == awaiting.Says { // as many as before
				return &exit.Failure{Code: exit.Conflict, Says: "you answered for it already: " + awaiting.Says, Hint: awaiting.Hint}
			}
		}
		v.notice("%s", awaiting.Says)
	}
	if err := v.landed(ctx, o.Head, sha, v.up, v.push, "gitring vouch"); err != nil {
		return err
	}
	o.Vouch, o.Pushed = sha, v.push
	return nil
}

func vouchSubject(v *vouched) string {
	if len(v.Commits) == 1 {
		return "Vouch for " + v.Commits[0].Commit.Short()
	}
	return fmt.Sprintf("Vouch for %d commits", len(v.Commits))
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

func (g *globals) showUnsettled(v *vouched) error {
	s := g.screen()
	s.Line(0, " ", screen.Text("since"), screen.Painted(v.Since.Short(), screen.Bold), screen.Text("nobody answers for:"))
	for _, u := range v.Commits {
		s.Line(2, "  ", screen.Painted(u.Commit.Short(), screen.Yellow), screen.Text(u.Author), screen.Text(u.Subject), screen.Painted(string(u.Code), screen.Red))
	}
	s.Gap()
	s.Quote(0, v.Diff)
	s.Gap()
	_, err := fmt.Fprint(g.out, s)
	return err
}

// madeCommit tells what became of a commit.
func (g *globals) madeCommit(sha ring.SHA, pushed bool, up upstream) error {
	s := g.screen()
	if pushed {
		s.Line(0, " ", screen.Painted("pushed", screen.Green), screen.Text(sha.Short()), screen.Text("to "+up.remote+" "+strings.TrimPrefix(up.ref, "refs/heads/")))
	} else {
		s.Line(0, " ", screen.Painted("committed", screen.Green), screen.Text(sha.Short()))
	}
	_, err := fmt.Fprint(g.out, s)
	if !pushed {
		g.notice("git push brings it to the hosts")
	}
	return err
}
