package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/ring"
)

type verifyFlags struct {
	source, repo                string
	allowedSigners, openPGPKeys string
	revokedKeys                 string
}

func verifyCmd(g *globals) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify <rev|range>",
		Short: "Check signatures and trust rules in a clone, without a daemon",
		Long: "verify judges one commit, or every commit of a range a..b, as the daemon would:\n" +
			"by the trust of --config, or by the keys given here. It sees commits for the\n" +
			"first time, so an expired key is refused. Exit 7 when one is refused.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error { return g.verify(given[0], f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.repo, "repo", ".", "the clone")
	flags.StringVar(&f.source, "source", "", "the source of --config whose trust counts")
	flags.StringVar(&f.allowedSigners, "allowed-signers", "", "an OpenSSH allowed_signers file")
	flags.StringVar(&f.openPGPKeys, "openpgp-keys", "", "a file of armoured OpenPGP keys")
	flags.StringVar(&f.revokedKeys, "revoked-keys", "", "keys that never count")
	return cmd
}

// verified is what "verify -o json" prints.
type verified struct {
	Commits []verifiedCommit `json:"commits"`
	Refusal *ring.Refusal    `json:"refusal,omitempty"`
}

type verifiedCommit struct {
	Commit      ring.SHA  `json:"commit"`
	Signer      string    `json:"signer,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	ClaimedAt   time.Time `json:"claimed_at"`
	Note        string    `json:"note,omitempty"`
}

func (g *globals) verify(rev string, f verifyFlags) error {
	rules, err := g.rules(f)
	if err != nil {
		return err
	}
	// Who may write the files matters to a host; an answer here changes nothing.
	rules.config.AnyOwner = true
	trust, err := gitsync.LoadTrust(rules.config, rules.source, rules.branch)
	if err != nil {
		return err
	}
	repo, err := gitsync.OpenRepo(f.repo)
	if err != nil {
		return &failure{code: exitNotFound, says: err.Error(), hint: "run it inside a clone, or name one with --repo"}
	}
	v, err := g.judge(repo, trust, rev)
	if err != nil {
		return err
	}
	if err := g.showVerified(v); err != nil {
		return err
	}
	if v.Refusal != nil {
		return outcome(exitRefused)
	}
	return nil
}

// rules are whose commits count.
type rules struct {
	config         gitsync.TrustConfig
	source, branch string
}

func (g *globals) rules(f verifyFlags) (rules, error) {
	given := f.allowedSigners != "" || f.openPGPKeys != ""
	if given && g.config != "" {
		return rules{}, &failure{code: exitUsage, says: "--config and keys given by hand exclude each other", hint: "gitring verify --help"}
	}
	if given {
		t := TrustRules{Mode: "strict", MaxRange: defaultMaxRange}
		grace := Duration(defaultExpiryGrace)
		t.ExpiryGrace = &grace
		for _, p := range []struct{ from, to *string }{{&f.allowedSigners, &t.AllowedSigners}, {&f.openPGPKeys, &t.OpenPGPKeys}, {&f.revokedKeys, &t.RevokedKeys}} {
			abs, err := absolute(*p.from)
			if err != nil {
				return rules{}, err
			}
			*p.to = abs
		}
		return rules{config: t.trustConfig(), source: "verify", branch: defaultBranch}, nil
	}
	if g.config == "" {
		g.config = configFromEnv()
	}
	if g.config == "" {
		return rules{}, &failure{
			code: exitUsage, says: "verify does not know whom to trust",
			hint: "name --config, or --allowed-signers or --openpgp-keys",
		}
	}
	_, s, err := g.sourceOf(f.source)
	if err != nil {
		return rules{}, err
	}
	return rules{config: s.Trust.trustConfig(), source: s.Name, branch: s.Branch}, nil
}

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

// trustConfig is what gitsync asks for.
func (t *TrustRules) trustConfig() gitsync.TrustConfig {
	return gitsync.TrustConfig{
		Mode: t.Mode, AllowedSigners: t.AllowedSigners, OpenPGPKeys: t.OpenPGPKeys, RevokedKeys: t.RevokedKeys,
		Introduction: t.Introduced(), MinCommit: ring.SHA(t.MinCommit),
		ExpiryGrace: time.Duration(*t.ExpiryGrace), MaxRange: t.MaxRange, RequireTarget: t.RequireTarget,
	}
}

// judge asks the rules for one commit, or for a range "from..to".
func (g *globals) judge(repo *gitsync.Repo, trust *gitsync.Trust, rev string) (verified, error) {
	now := g.now()
	firstSeen := func(ring.SHA) time.Time { return now }
	from, to, isRange := strings.Cut(rev, "..")
	if !isRange {
		to = rev
	}
	tip, err := resolve(repo, to)
	if err != nil {
		return verified{}, err
	}
	v := verified{Commits: []verifiedCommit{}}
	if !isRange {
		c, refusal, err := trust.One(repo, tip, now, firstSeen)
		if err != nil {
			return verified{}, fmt.Errorf("cannot verify %s: %w", to, err)
		}
		if v.Refusal = refusal; refusal == nil {
			v.Commits = append(v.Commits, verifiedOf(c))
		}
		return v, nil
	}
	anchor, err := resolve(repo, from)
	if err != nil {
		return verified{}, err
	}
	if anchor == tip {
		return v, nil
	}
	commits, refusal, err := trust.Range(repo, anchor, tip, now, firstSeen)
	if err != nil {
		return verified{}, fmt.Errorf("cannot verify %s: %w", rev, err)
	}
	for _, c := range commits {
		v.Commits = append(v.Commits, verifiedOf(c))
	}
	v.Refusal = refusal
	return v, nil
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
		return "", &failure{code: exitNotFound, says: err.Error(), hint: "git log --oneline lists commits; a shallow clone does not have them all"}
	}
	return sha, nil
}

func (g *globals) showVerified(v verified) error {
	if g.machine() {
		return g.encode(v)
	}
	s := g.screen()
	for _, c := range v.Commits {
		who := c.Signer
		if c.Fingerprint != "" {
			who += " (" + c.Fingerprint + ")"
		}
		s.line(0, " ", w(c.Commit.Short()), word{"good", green}, w(who), w(when(c.Note != "", "- "+c.Note)))
	}
	if r := v.Refusal; r != nil {
		s.line(0, " ", w(r.Commit.Short()), word{"refused", red}, word{string(r.Code) + ":", red}, w(r.Says))
		if r.Hint != "" {
			s.line(2, " ", word{"hint:", dim}, w(r.Hint))
		}
	}
	_, err := fmt.Fprint(g.out, s)
	return err
}
