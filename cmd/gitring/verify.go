package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// trustFlags say whose commits count in a clone.
type trustFlags struct {
	repo string
	trustees
}

// trustees are whose commits count, as a person names them.
type trustees struct {
	source                      string // of a configuration
	branch                      string // of keys given by hand
	allowedSigners, openPGPKeys string
	revokedKeys                 string
}

// byHand reports whether keys are given, not a configuration.
func (f trustees) byHand() bool { return f.allowedSigners != "" || f.openPGPKeys != "" }

func (f *trustFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.repo, "repo", ".", "the clone")
	flags.StringVar(&f.source, "source", "", "the source of --config whose trust counts")
	flags.StringVar(&f.branch, "branch", config.DefaultBranch, "the branch that hosts follow, with keys given here")
	flags.StringVar(&f.allowedSigners, "allowed-signers", "", "an OpenSSH allowed_signers file")
	flags.StringVar(&f.openPGPKeys, "openpgp-keys", "", "a file of armoured OpenPGP keys")
	flags.StringVar(&f.revokedKeys, "revoked-keys", "", "keys that never count")
}

func verifyCmd(g *globals) *cobra.Command {
	var f trustFlags
	var prePush bool
	cmd := &cobra.Command{
		Use:   "verify <rev|range>",
		Short: "Check signatures and trust rules in a clone, without a daemon",
		Long: "verify judges one commit, or every commit of a range a..b, as the daemon would:\n" +
			"by the trust of --config, by the keys given here, or by what gitring init wrote\n" +
			"into the clone's own settings. It sees commits for the first time, so an expired\n" +
			"key is refused. One commit alone is judged by its signature and by what its signer\n" +
			"may change, against its parent; the way that led to it is a range's to judge.\n" +
			"Exit 7 when one is refused.\n\n" +
			"--pre-push reads what git tells a pre-push hook and judges what would come to the\n" +
			"branch that hosts follow. gitring init --hook writes that hook.",
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			if prePush == (len(given) == 1) {
				return usage(cmd, "verify wants a commit, a range a..b, or --pre-push")
			}
			return g.verify(cmd.Context(), strings.Join(given, ""), f)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&prePush, "pre-push", false, "judge what git's lines on stdin say is pushed")
	return cmd
}

// verified is what "verify -o json" prints.
type verified struct {
	Commits []verifiedCommit `json:"commits"`
	Refusal *ring.Refusal    `json:"refusal,omitempty"`
	// Judged is what one commit alone was held to.
	Judged string `json:"judged,omitempty"`
	// empty is why there was nothing to judge.
	empty string
}

type verifiedCommit struct {
	Commit      ring.SHA  `json:"commit"`
	Signer      string    `json:"signer,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	ClaimedAt   time.Time `json:"claimed_at"`
	Note        string    `json:"note,omitempty"`
}

// verify judges a revision or a range; "" is what git tells a pre-push hook.
func (g *globals) verify(ctx context.Context, rev string, f trustFlags) error {
	trust, rules, err := g.trust(ctx, f)
	if err != nil {
		return err
	}
	repo, err := gitsync.OpenRepo(f.repo)
	if err != nil {
		return &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "run it inside a clone, or name one with --repo"}
	}
	j := newJudge(ctx, cloneAt(f.repo, g.person()), repo, trust, rules)
	var v verified
	if rev == "" {
		v, err = j.pushed(g.in)
	} else {
		v, err = j.rev(rev)
	}
	if err != nil {
		return err
	}
	if err := g.showVerified(v); err != nil {
		return err
	}
	if rev == "" && v.Refusal != nil && v.Refusal.Code == ring.AwaitingApproval {
		return nil // it has to be pushed for others to answer for it
	}
	if v.Refusal != nil && v.Refusal.Code == ring.AwaitingApproval {
		return exit.Outcome(exit.Held)
	}
	if v.Refusal != nil {
		return exit.Outcome(exit.Refused)
	}
	return nil
}

// trust is complete trust for judging in a clone.
func (g *globals) trust(ctx context.Context, f trustFlags) (*gitsync.Trust, rules, error) {
	r, err := g.rules(ctx, f)
	if err != nil {
		return nil, r, err
	}
	trust, err := r.trust()
	return trust, r, err
}

// rules are whose commits count, by what was typed. Where the clone names a
// configuration, that counts for the rest of the verb, too.
func (g *globals) rules(ctx context.Context, f trustFlags) (rules, error) {
	if g.config == "" && !f.byHand() {
		g.config = configFromEnv()
	}
	r, err := rulesOf(ctx, cloneAt(f.repo, g.person()), f.trustees, g.config)
	g.config = r.file
	return r, err
}

// rules are whose commits count.
type rules struct {
	config         gitsync.TrustConfig
	source, branch string
	path           string // of the source in the repository
	file           string // the configuration that says so; "" for keys given by hand
}

// trust is what the rules come to. Who may write the files of it matters to a
// host; an answer here changes nothing.
func (r *rules) trust() (*gitsync.Trust, error) {
	r.config.AnyOwner = true
	trust, err := gitsync.LoadTrust(r.config, r.source, r.branch)
	if err != nil && r.source == handSource {
		err = fmt.Errorf("cannot use the keys given: %w", errors.Unwrap(err))
	}
	return trust, err
}

// rulesOf finds the rules: of keys given by hand, of a configuration that was named, or
// of the one that the clone names.
func rulesOf(ctx context.Context, c *clone, f trustees, file string) (rules, error) {
	r := rules{file: file}
	if f.byHand() && file != "" {
		return r, &exit.Failure{Code: exit.Usage, Says: "--config and keys given by hand exclude each other", Hint: "keep one of the two"}
	}
	if f.byHand() {
		return f.handRules()
	}
	if r.file == "" {
		r.file = c.setting(ctx, configSetting)
	}
	if r.file == "" {
		return r, &exit.Failure{
			Code: exit.Usage, Says: "nothing here says whom to trust",
			Hint: "name --config, or --allowed-signers or --openpgp-keys",
		}
	}
	_, s, err := config.ReadSource(r.file, f.source)
	if err != nil {
		return r, err
	}
	r.config, r.source, r.branch, r.path = s.Trust.TrustConfig(), s.Name, s.Branch, s.Path
	return r, nil
}

// handRules are strict rules by keys given by hand.
func (f trustees) handRules() (rules, error) {
	t := config.TrustRules{Mode: "strict", MaxRange: config.DefaultMaxRange}
	grace := config.Duration(config.DefaultExpiryGrace)
	t.ExpiryGrace = &grace
	for _, p := range []struct{ from, to *string }{{&f.allowedSigners, &t.AllowedSigners}, {&f.openPGPKeys, &t.OpenPGPKeys}, {&f.revokedKeys, &t.RevokedKeys}} {
		abs, err := absolute(*p.from)
		if err != nil {
			return rules{}, err
		}
		*p.to = abs
	}
	return rules{config: t.TrustConfig(), source: handSource, branch: f.branch, path: "."}, nil
}

// handSource is the source of keys given by hand, which have no name of one.
const handSource = "verify"

// configSetting of a clone names the configuration that its commits are for.
const configSetting = "gitring.config"

// absolute leaves "" as it is.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", path, err)
	}
	return abs, nil
}

// A judge holds commits of a clone to the rules that hosts hold them to.
type judge struct {
	repo  *gitsync.Repo
	seen  gitsync.Objects // repo, until the verb ends
	trust *gitsync.Trust
	rules rules
	aids  gitsync.Aids
	now   time.Time
}

// newJudge judges what a repository has, which is that of a clone, until ctx ends.
func newJudge(ctx context.Context, c *clone, repo *gitsync.Repo, trust *gitsync.Trust, rules rules) *judge {
	return &judge{repo: repo, seen: gitsync.Until(ctx, repo), trust: trust, rules: rules, aids: c.aids(ctx), now: c.now()}
}

// rev asks the rules for one commit, or for a range "from..to".
func (j *judge) rev(rev string) (verified, error) {
	firstSeen := func(ring.SHA) time.Time { return j.now }
	from, to, isRange := strings.Cut(rev, "..")
	if !isRange {
		return j.one(rev)
	}
	v := verified{Commits: []verifiedCommit{}}
	tip, err := resolve(j.repo, to)
	if err != nil {
		return v, err
	}
	anchor, err := resolve(j.repo, from)
	if err != nil {
		return v, err
	}
	if anchor == tip {
		v.empty = fmt.Sprintf("%s holds no commit, because both ends are %s", rev, tip.Short())
		return v, nil
	}
	commits, refusal, err := j.trust.RangeWith(j.seen, j.aids, anchor, tip, j.now, firstSeen)
	if err != nil {
		return v, incomplete(rev, err)
	}
	for _, c := range commits {
		v.Commits = append(v.Commits, verifiedOf(c))
	}
	v.Refusal = refusal
	return v, nil
}

// one is rev for one commit, which says what it was held to.
func (j *judge) one(rev string) (verified, error) {
	v := verified{Commits: []verifiedCommit{}}
	sha, err := resolve(j.repo, rev)
	if err != nil {
		return v, err
	}
	c, refusal, err := j.trust.OneOfHistory(j.seen, sha, j.now, nil)
	if err != nil {
		return v, incomplete(rev, err)
	}
	v.Judged = "its signature; no signer is bound to roles, branches or paths"
	switch {
	case j.rules.config.Mode == gitsync.Disabled:
		v.Judged = "its form alone, because trust is disabled"
	case j.trust.Binds():
		v.Judged = fmt.Sprintf("its signature, and what its signer may change on branch %s of source %s", j.rules.branch, j.rules.source)
	}
	if v.Refusal = refusal; refusal == nil {
		v.Commits = append(v.Commits, verifiedOf(c))
	}
	return v, nil
}

// incomplete is an error of a clone that may not have all that is asked of it.
func incomplete(rev string, err error) error {
	if errors.Is(err, gitsync.ErrMissing) {
		return &exit.Failure{
			Code: exit.NotFound, Says: fmt.Sprintf("cannot verify %s: %v", rev, err),
			Hint: "commits are held against their parents, and a shallow clone does not have them: git fetch --unshallow, or fetch-depth: 0 in CI",
		}
	}
	return fmt.Errorf("cannot verify %s: %w", rev, err)
}

func verifiedOf(c ring.Verified) verifiedCommit {
	return verifiedCommit{Commit: c.SHA, Signer: c.Signer, Fingerprint: c.Fingerprint, ClaimedAt: c.ClaimedAt, Note: c.Note}
}

// resolve takes "" as HEAD, as Git does in "a..".
func resolve(repo *gitsync.Repo, rev string) (ring.SHA, error) {
	if rev == "" {
		rev = "HEAD"
	}
	sha, err := repo.Resolve(rev)
	if err != nil {
		return "", &exit.Failure{Code: exit.NotFound, Says: err.Error(), Hint: "git log --oneline lists commits; a shallow clone does not have them all"}
	}
	return sha, nil
}

func (g *globals) showVerified(v verified) error {
	if g.machine() {
		return g.encode(v)
	}
	s := g.screen()
	if v.empty != "" {
		s.Line(0, " ", screen.Text("nothing to verify:"), screen.Text(v.empty))
	}
	for _, c := range v.Commits {
		who := c.Signer
		if c.Fingerprint != "" {
			who += " (" + c.Fingerprint + ")"
		}
		s.Line(0, " ", screen.Text(c.Commit.Short()), screen.Painted("good", screen.Green), screen.Text(who), screen.Text(wording.When(c.Note != "", "- "+c.Note)))
	}
	if r := v.Refusal; r != nil {
		s.Line(0, " ", screen.Text(r.Commit.Short()), screen.Painted("refused", screen.Red), screen.Painted(string(r.Code)+":", screen.Red), screen.Text(r.Says))
		if r.Hint != "" {
			s.Line(2, " ", screen.Painted("hint:", screen.Dim), screen.Text(r.Hint))
		}
	}
	if v.Judged != "" {
		s.Line(2, " ", screen.Painted("judged:", screen.Dim), screen.Text(v.Judged))
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}
