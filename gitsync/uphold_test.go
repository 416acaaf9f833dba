package gitsync

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func (l *ledger) kinds() (kinds []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestV56ALowerTrustVersionAcceptsNothingAndStopsNothing(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.signed("one")
	version := func(n int) func(*Config) { return func(c *Config) { c.Trust.Version = n } }
	f := o.follow(a, version(5))
	lookAt(t, f).must()
	require.Equal(t, 5, a.anchor.TrustVersion)
	two := o.signed("two")

	for _, n := range []int{4, 0} {
		w := lookAt(t, o.follow(a, version(n), inMirrorOf(f)))
		r := w.must()
		require.True(t, strings.HasPrefix(r.Reason, "TrustRollback: "), r.Reason)
		require.Contains(t, r.Reason, "5 was in use before")
		require.Equal(t, one, r.Commit.SHA, "what runs goes on")
		require.Equal(t, two, r.Tip)
		_, err := w.accept(t.Context(), acceptance{sha: two, actor: "root", reason: "r"})
		require.ErrorContains(t, err, "TrustRollback", "nor by a person, under keys that may be those of a thief")
	}
	require.Len(t, a.moves, 1)
	require.Equal(t, two, lookAt(t, o.follow(a, version(5), inMirrorOf(f))).must().Commit.SHA)
}

func TestV56AReloadWithALowerTrustVersionKeepsTheSetBefore(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	signers, err := os.ReadFile(o.signers)
	require.NoError(t, err)
	counted := func(line string) {
		require.NoError(t, os.WriteFile(o.signers, append([]byte(line+"\n"), signers...), 0o600))
	}
	counted("# trust_version: 7")
	o.signed("one")
	w := lookAt(t, o.follow(a))
	w.must()
	require.Equal(t, 7, a.anchor.TrustVersion)

	counted("#trust_version: 6")
	two := o.signed("two")
	r := w.must()
	require.Contains(t, r.Reason, "TrustRollback: trust_version is 6, and 7 was in use before")
	require.NotEqual(t, two, r.Commit.SHA)

	// A higher one is written down at once, whether a commit comes or not.
	o.git(o.work, "reset", "-q", "--hard", string(r.Commit.SHA))
	o.push()
	counted("# trust_version: 9")
	r = w.must()
	require.Empty(t, r.Reason)
	require.Equal(t, 9, a.anchor.TrustVersion)
	require.Equal(t, []string{ring.CommitAccepted, ring.TrustVersion}, a.kinds())
	w.must()
	require.Len(t, a.moves, 2, "and only once")

	counted("")
	require.Contains(t, w.must().Reason, "TrustRollback: there is no trust_version")
}

func TestATrustVersionStandsInOnePlace(t *testing.T) {
	load := func(version int, text string) (*Trust, error) {
		file := filepath.Join(t.TempDir(), "allowed_signers")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: file, Version: version}, "prod", "main")
	}
	trust, err := load(0, "# the keys of edge\n#  trust_version:  12 \n")
	require.NoError(t, err)
	require.Equal(t, 12, trust.Version())
	trust, err = load(3, "# trust_versions are for others\n")
	require.NoError(t, err)
	require.Equal(t, 3, trust.Version())
	for text, want := range map[string]string{
		"# trust_version: 1\n":                       ":1: trust_version stands in the configuration already",
		"\n# trust_version: seven\n":                 `:2: "seven" is no trust_version`,
		"# trust_version: 0\n":                       `:1: "0" is no trust_version`,
		"# trust_version: -1\n":                      `:1: "-1" is no trust_version`,
		"# trust_version: 99999999999999999999\n":    "is no trust_version",
		"# trust_version: 1\n\n# trust_version: 2\n": ":1: trust_version stands in the configuration already",
	} {
		_, err := load(4, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err = load(0, "# trust_version: 1\n\n# trust_version: 2\n")
	require.ErrorContains(t, err, ":3: trust_version stands in ")
	require.ErrorContains(t, err, "allowed_signers:1 already")
	dir := t.TempDir()
	keys, bindings := filepath.Join(dir, "allowed_signers"), filepath.Join(dir, "signers.yaml")
	require.NoError(t, os.WriteFile(keys, nil, 0o600))
	require.NoError(t, os.WriteFile(bindings, []byte("# trust_version: 4\nversion: 1\nsigners: []\n"), 0o600))
	trust, err = LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: keys, SignersFile: bindings}, "prod", "main")
	require.NoError(t, err)
	require.Equal(t, 4, trust.Version())
	require.NoError(t, os.WriteFile(keys, []byte("# trust_version: 4\n"), 0o600))
	_, err = LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: keys, SignersFile: bindings}, "prod", "main")
	require.ErrorContains(t, err, "signers.yaml:1: trust_version stands in "+keys+":1 already")
	_, err = load(-1, "")
	require.ErrorContains(t, err, "trust_version -1 is negative")
}

func TestAnEpochIsAnotherWhenAnythingOfTheTrustSetIs(t *testing.T) {
	o := newOrigin(t)
	epoch := func(change func(*TrustConfig)) string {
		cfg := o.trust()
		change(&cfg)
		trust, err := LoadTrust(cfg, "prod", "main")
		require.NoError(t, err)
		return trust.Epoch()
	}
	same := func(*TrustConfig) {}
	first := epoch(same)
	require.Equal(t, first, epoch(same))
	seen := map[string]bool{first: true}
	revoked := filepath.Join(t.TempDir(), "revoked")
	require.NoError(t, os.WriteFile(revoked, nil, 0o600))
	for _, change := range []func(*TrustConfig){
		func(c *TrustConfig) { c.Mode = Tip },
		func(c *TrustConfig) { c.RevokedKeys = revoked },
		func(c *TrustConfig) {
			c.Bindings = []Binding{{Signer: "alice@example.org", Paths: []string{"apps/**"}}}
		},
		func(c *TrustConfig) {
			b, err := os.ReadFile(o.signers)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(o.signers, append(b, '\n'), 0o600))
		},
	} {
		e := epoch(change)
		require.False(t, seen[e])
		seen[e] = true
	}
}

func TestARevokedKeyIsJournalledOnceForEachCommitThatItSigned(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	revoked := filepath.Join(t.TempDir(), "revoked")
	require.NoError(t, os.WriteFile(revoked, nil, 0o600))
	withList := func(c *Config) { c.Trust.RevokedKeys = revoked }
	sha := o.signed("one")
	f := o.follow(a, withList)
	w := lookAt(t, f)
	w.must()
	public, err := os.ReadFile(o.key + ".pub")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(revoked, public, 0o600))
	w.must()
	w.must()
	require.Contains(t, lookAt(t, o.follow(a, withList, inMirrorOf(f))).must().Reason, "TrustDegraded: ")
	require.Equal(t, []string{ring.CommitAccepted, ring.TrustIsDegraded}, a.kinds())
	e := a.events[1]
	require.Equal(t, sha, e.Commit)
	require.Contains(t, e.Reason, "it keeps running")
	require.True(t, a.anchor.Degraded)

	// Taken back, and revoked again: that is news.
	require.NoError(t, os.WriteFile(revoked, nil, 0o600))
	require.Empty(t, w.must().Reason)
	require.NoError(t, os.WriteFile(revoked, public, 0o600))
	require.Contains(t, w.must().Reason, "TrustDegraded: ")
	require.Equal(t, []string{ring.CommitAccepted, ring.TrustIsDegraded, ring.TrustIsDegraded}, a.kinds())
}

func TestFirstUseIsToldUntilAnIntroductionOrAPersonTakesItsPlace(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	before := o.commit("long before", "-S")
	one := o.signed("one")
	a := &ledger{}
	f := o.follow(a)
	w := lookAt(t, f)
	r := w.must()
	require.True(t, r.Anchor.FirstUse())
	require.Equal(t, one, r.Anchor.Began.SHA)
	two := o.signed("two")
	r = w.must()
	require.True(t, r.Anchor.FirstUse(), "all rests on it still")
	require.Equal(t, one, r.Anchor.Began.SHA)

	introduced := func(sha ring.SHA, signer string) *ledger {
		b := &ledger{anchor: a.anchor, good: a.good}
		again := o.follow(b, inMirrorOf(f), func(c *Config) { c.Trust.Introduction, c.Trust.IntroductionSigner = sha, signer })
		l := lookAt(t, again)
		r := l.must()
		require.Equal(t, two, r.Commit.SHA)
		l.must()
		require.LessOrEqual(t, len(b.moves), 1)
		return b
	}
	for name, sha := range map[string]ring.SHA{"the first use": one, "one after it": two, "one before it, with all between signed": before} {
		b := introduced(sha, "")
		require.Equal(t, ring.Beginning{SHA: sha, How: ring.ByIntroduction, At: b.anchor.Began.At}, b.anchor.Began, name)
		require.Equal(t, []string{ring.TrustIntroduced}, b.kinds())
		require.Equal(t, two, b.anchor.SHA)
	}
	require.True(t, introduced(ring.SHA(strings.Repeat("ab", 20)), "").anchor.FirstUse(), "one that nobody has")
	require.True(t, introduced(one, "bob@example.org").anchor.FirstUse(), "one that somebody else signed")
	require.False(t, introduced(one, "alice@example.org").anchor.FirstUse())

	refusal, err := w.accept(t.Context(), acceptance{sha: two, actor: "root", reason: "I know this one"})
	require.NoError(t, err)
	require.Nil(t, refusal)
	r = w.must()
	require.False(t, r.Anchor.FirstUse())
	require.Equal(t, two, r.Anchor.Began.SHA)
	require.Equal(t, "accepted by root: I know this one", r.Anchor.Began.How)
}

func TestAnIntroductionThatLeadsToFirstUseOverAnUnsignedCommitVouchesForNothing(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	before := o.commit("before", "-S")
	o.commit("nobody signed this")
	o.signed("first")
	f := o.follow(a)
	lookAt(t, f).must()
	r := lookAt(t, o.follow(a, inMirrorOf(f), func(c *Config) { c.Trust.Introduction = before })).must()
	require.True(t, r.Anchor.FirstUse())
	require.Len(t, a.moves, 1)
}

func TestReverifyTellsWhatWouldNotPassNowAndTakesNothingBack(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	alice := o.key
	bob := filepath.Join(t.TempDir(), "bob")
	line := newKey(t, bob)
	signers, err := os.ReadFile(o.signers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(o.signers, append(signers, "bob@example.org "+line...), 0o600))
	one := o.signed("one")
	w := lookAt(t, o.follow(a))
	w.must()
	o.key = bob
	two := o.commit("two", "-S")
	three := o.commit("three", "-S")
	o.key = alice
	o.commit("nobody's")
	vouched := o.head()
	o.git(o.work, "commit", "-q", "-S", "--allow-empty", "-m", "vouch\n\nGitring-Vouch: "+string(vouched))
	o.push()
	tip := o.head()
	require.Equal(t, tip, w.must().Commit.SHA)

	found, err := w.reverify(t.Context())
	require.NoError(t, err)
	require.Equal(t, ring.Reverified{Source: "prod", From: one, To: tip, Commits: 4, Refusals: []*ring.Refusal{}}, found)

	require.NoError(t, os.WriteFile(o.signers, signers, 0o600)) // bob left
	moves, asked := len(a.moves), a.asked
	r := w.must()
	require.Equal(t, tip, r.Commit.SHA, "a signer who left takes nothing back")
	require.Nil(t, r.Refusal)
	require.Equal(t, asked, a.asked, "and nothing is judged again by itself")
	found, err = w.reverify(t.Context())
	require.NoError(t, err)
	var refused []ring.SHA
	for _, r := range found.Refusals {
		require.Equal(t, ring.UnknownSigner, r.Code)
		refused = append(refused, r.Commit)
	}
	require.Equal(t, []ring.SHA{two, three}, refused)
	require.Len(t, a.moves, moves)
	require.Equal(t, tip, w.must().Commit.SHA)
}

func TestReverifyAndTrustedThroughARunningFollower(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	sha := o.signed("one")
	revoked := filepath.Join(t.TempDir(), "revoked")
	require.NoError(t, os.WriteFile(revoked, []byte("SHA256:"+strings.Repeat("A", 43)+"\n"), 0o640))
	f := o.follow(a, func(c *Config) { c.Trust.RevokedKeys, c.Trust.Version = revoked, 3 })
	reports, stop := running(t, f)
	defer stop()
	next(t, reports, func(r ring.Report) bool { return r.Commit != nil })
	found, err := f.Reverify(t.Context())
	require.NoError(t, err)
	require.Equal(t, sha, found.To)

	s, err := f.Trusted(t.Context())
	require.NoError(t, err)
	require.Equal(t, []any{"prod", "main", Strict, 3, sha, ring.ByFirstUse, "alice@example.org", 1},
		[]any{s.Source, s.Branch, s.Mode, s.Version, s.Trusted, s.How, s.Signer, s.Revoked})
	require.Equal(t, sha, s.Began.SHA)
	require.Len(t, s.Epoch, 12)
	require.Len(t, s.Signers, 1)
	require.Equal(t, []ring.Grant{{Roles: []string{"commit", "merge", "vouch"}}}, s.Signers[0].Grants)
	require.Equal(t, []string{"alice@example.org", "ssh"}, []string{s.Signers[0].Principal, s.Signers[0].Kind})
	require.Equal(t, ring.TrustFile{Key: "allowed_signers", Path: o.signers, Owner: os.Geteuid(), Mode: "0600"}, s.Files[0])
	require.Equal(t, "0640", s.Files[1].Mode)
	require.NoError(t, os.Chmod(o.signers, 0o666))
	s, err = f.Trusted(t.Context())
	require.NoError(t, err)
	require.Contains(t, s.Files[0].Wrong, "can be written by others")
	require.Equal(t, a.good[0].Epoch, s.Epoch, "what passed says under which set")
}
