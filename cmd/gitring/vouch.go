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
	c, err := g.openClone(ctx, f.repo)
	if err != nil {
		return err
	}
	up, err := c.ready(ctx, f)
	if err != nil {
		return err
	}
	trust, rules, err := g.trust(ctx, f.trustFlags)
	if err != nil {
		return err
	}
	v, err := c.unanswered(ctx, trust, rules, f)
	if err != nil {
		return err
	}
	if len(v.Commits) == 0 {
		if g.machine() {
			return g.encode(v)
		}
		g.notice("nothing to vouch for: every commit since %s is answered for", v.Since.Short())
		return nil
	}
	if err := c.vouchFor(ctx, v, trust, rules, up, f); err != nil {
		return err
	}
	if g.machine() {
		return g.encode(v)
	}
	return g.madeCommit(v.Vouch, v.Pushed, up)
}

// ready says whether the clone is in a state to vouch in.
func (c *clone) ready(ctx context.Context, f vouchFlags) (up upstream, err error) {
	if c.branch(ctx) == "" && (f.push || !f.loose) {
		return up, &exit.Failure{
			Code: exit.Conflict, Says: "HEAD is on no branch, so nothing would follow the new commit",
			Hint: "git switch <branch>, or --detached to make it all the same",
		}
	}
	if _, err := c.git(ctx, "diff", "--cached", "--quiet"); err != nil {
		return up, &exit.Failure{
			Code: exit.Conflict, Says: "changes are staged, and a vouch is an empty commit",
			Hint: "commit them first, or take them out with git restore --staged .",
		}
	}
	if f.push {
		up, err = c.pushable(ctx)
	}
	return up, err
}

// unanswered looks what there is to vouch for.
func (c *clone) unanswered(ctx context.Context, trust *gitsync.Trust, rules rules, f vouchFlags) (*vouched, error) {
	since := cmp.Or(f.since, string(c.g.trustedUpTo(ctx, rules.source)))
	if since == "" {
		return nil, &exit.Failure{
			Code: exit.Usage, Says: "no daemon answers here that says up to where hosts trust",
			Hint: "gitring trust show on a host tells; name it with --since",
		}
	}
	v := &vouched{Commits: []unsettled{}}
	var err error
	if v.Since, err = c.commit(ctx, since); err != nil {
		return nil, err
	}
	if v.Head, err = c.commit(ctx, "HEAD"); err != nil {
		return nil, err
	}
	repo, err := c.repo()
	if err != nil {
		return nil, err
	}
	list, incurable, err := trust.Unanswered(gitsync.Until(ctx, repo), c.aids(ctx), v.Since, v.Head, c.g.now())
	if err != nil {
		return nil, err
	}
	if incurable != nil {
		return nil, incurable
	}
	for _, r := range list {
		u := unsettled{Commit: r.Commit, Code: r.Code, Says: r.Says}
		line, err := c.git(ctx, "log", "-1", "--no-show-signature", "--format=%an <%ae>%x00%s", string(r.Commit))
		if err != nil {
			return nil, err
		}
		u.Author, u.Subject, _ = strings.Cut(line, "\x00")
		v.Commits = append(v.Commits, u)
	}
	how := []string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--stat"}
	if f.diff {
		how[len(how)-1] = "--patch"
	}
	v.Diff, err = c.git(ctx, append(how, string(v.Since), string(v.Head))...)
	return v, err
}

// vouchFor shows v, asks, and makes the commit.
func (c *clone) vouchFor(ctx context.Context, v *vouched, trust *gitsync.Trust, rules rules, up upstream, f vouchFlags) error {
	if !c.g.machine() {
		if err := c.g.showUnsettled(v); err != nil {
			return err
		}
	}
	if err := c.g.agreed(f.yes, fmt.Sprintf("answer for %s?", wording.Counted(len(v.Commits), "commit")), "the diff above is what you answer for; --yes says that you did look"); err != nil {
		return err
	}
	n := newCommit{tree: string(v.Head) + "^{tree}", parent: v.Head, subject: vouchSubject(v), body: []string{f.message}}
	var err error
	if n.tree, err = c.git(ctx, "rev-parse", "--verify", n.tree); err != nil {
		return err
	}
	for _, u := range v.Commits {
		n.trailers = append(n.trailers, "Gitring-Vouch: "+string(u.Commit))
	}
	n.trailers = append(n.trailers, rules.targetTrailers()...)
	sha, err := c.write(ctx, n)
	if err != nil {
		return err
	}
	awaiting, err := c.passes(ctx, trust, v.Since, sha)
	if err != nil {
		return err
	}
	if awaiting != nil {
		for _, u := range v.Commits {
			if u.Commit == awaiting.Commit && u.Says == awaiting.Says { // as many as before
				return &exit.Failure{Code: exit.Conflict, Says: "you answered for it already: " + awaiting.Says, Hint: awaiting.Hint}
			}
		}
		c.g.notice("%s", awaiting.Says)
	}
	if err := c.landed(ctx, v.Head, sha, up, f.push, "gitring vouch"); err != nil {
		return err
	}
	v.Vouch, v.Pushed = sha, f.push
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
	if !g.person() || g.machine() {
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
