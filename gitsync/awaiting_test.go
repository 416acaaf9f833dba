package gitsync

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// secondKey gives the origin's team another person, who signs from now on until
// back is called.
func (o *origin) secondKey(name string) (line string, by func(func())) {
	o.t.Helper()
	file := filepath.Join(o.t.TempDir(), name)
	line = newKey(o.t, file)
	return line, func(do func()) {
		defer func(was string) { o.key = was }(o.key)
		o.key = file
		do()
	}
}

// V67 through a follower: the tip waits, the anchor stays, and a second person's
// vouch commit moves it.
func TestATipAwaitsItsApprovalAndNothingMoves(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	line, bob := o.secondKey("bob")
	f, err := os.OpenFile(o.signers, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("bob@example.org " + line)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	first := o.signed("one")
	w := lookAt(t, o.follow(a, func(c *Config) {
		c.Trust.Introduction = first
		c.Trust.Require.Approvals = 2
		c.Trust.Bindings = []Binding{allVouch}
	}))
	require.Equal(t, first, w.must().Commit.SHA)

	two := o.signed("two")
	for range 2 { // and a second look changes nothing
		r := w.must()
		require.Equal(t, two, r.Tip)
		require.Nil(t, r.Refusal)
		require.Contains(t, r.Awaiting, "commit "+two.Short()+" has 1 of 2 approvals")
		require.Equal(t, first, r.Commit.SHA)
		require.Equal(t, first, a.anchor.SHA)
	}
	bob(func() {
		o.git(o.work, "commit", "-q", "--allow-empty", "-S", "-m", "vouch\n\nGitring-Vouch: "+string(two))
	})
	o.push()
	r := w.must()
	require.Empty(t, r.Awaiting)
	require.Nil(t, r.Refusal)
	require.Equal(t, o.head(), a.anchor.SHA)
	require.Contains(t, a.good[1].Note, "approved by bob@example.org")
}

// What waits is not carried over to the next tip, and a refusal wins.
func TestARefusedTipDoesNotAwaitAnything(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	first := o.signed("one")
	w := lookAt(t, o.follow(a, func(c *Config) {
		c.Trust.Introduction = first
		c.Trust.Require.Approvals = 2
	}))
	o.signed("two")
	require.NotEmpty(t, w.must().Awaiting)
	o.commit("three")
	o.push()
	r := w.must()
	require.Equal(t, ring.Unsigned, r.Refusal.Code)
	require.Empty(t, r.Awaiting)
}

// The file of bindings is a trust file: a change counts at the next look, and a
// mistake in it stops everything new.
func TestTheFileOfBindingsIsReadAgain(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	file := filepath.Join(t.TempDir(), "signers.yaml")
	bindings := func(text string) {
		require.NoError(t, os.WriteFile(file+".new", []byte("version: 1\nsigners:\n"+text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	bindings("  - {signer: alice@example.org, paths: [web/**]}\n")
	first := o.signed("one")
	w := lookAt(t, o.follow(a, func(c *Config) { c.Trust.SignersFile, c.Trust.Introduction = file, first }))
	require.Empty(t, w.must().Reason)
	o.signed("two")
	require.Equal(t, ring.PathNotAllowed, w.must().Refusal.Code)
	bindings("  - {signer: alice@example.org, pahts: [web/**]}\n")
	r := w.must()
	require.Contains(t, r.Reason, ring.TrustConfigInvalid)
	require.Contains(t, r.Reason, file+`:3: unknown key "pahts"; did you mean "paths"?`)
	bindings("  - {signer: alice@example.org}\n  - {signer: zed@example.org, roles: [vouch]}\n")
	r = w.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, o.head(), a.anchor.SHA)
	require.True(t, strings.HasPrefix(r.Reason, "no key in the trust files has the name of signer zed@example.org"), r.Reason)
}

// V64 through a follower, over a restart: what the file names counts again when
// the daemon comes back, and a person may accept what such a signer signed.
func TestSignersInTheRepositoryOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	line, bob := o.secondKey("bob")
	dir := filepath.Join(t.TempDir(), "git", "prod")
	start := func() *looker {
		return lookAt(t, o.follow(a, func(c *Config) { c.Trust.SignersInRepo, c.Dir = signersPath, dir }))
	}
	o.signed("one")
	w := start()
	w.must()
	o.write(signersPath, "version: 1\nsigners:\n  - signer: bob@example.org\n    keys: "+line)
	joined := o.signed("two")
	require.Equal(t, joined, w.must().Commit.SHA)
	bob(func() { o.signed("three") })
	require.Equal(t, "bob@example.org", w.must().Commit.Signer)

	w = start()
	require.Equal(t, "bob@example.org", w.must().Commit.Signer, "after a restart")
	o.git(o.work, "reset", "-q", "--hard", string(joined))
	bob(func() { o.signed("four") })
	require.Equal(t, ring.NonFastForward, w.must().Refusal.Code)
	refusal, err := w.accept(t.Context(), acceptance{sha: o.head(), actor: "root", reason: "history was rewritten"})
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, o.head(), a.anchor.SHA)
}

// A commit that somebody asks about has the signer whom the repository names: as it was
// trusted, or by the trusted commit's file, never by one that a stranger brought.
func TestACommitThatIsAskedForHasItsSignerFromTheRepository(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	line, bob := o.secondKey("bob")
	other, mallory := o.secondKey("mallory")
	list := func(lines ...string) {
		text := "version: 1\nsigners:\n"
		for i, l := range lines {
			text += []string{"  - signer: bob@example.org\n", "  - signer: mallory@example.org\n"}[i] + "    keys: " + l
		}
		o.write(signersPath, text)
	}
	list(line)
	o.signed("one")
	w := lookAt(t, o.follow(a, func(c *Config) { c.Trust.SignersInRepo = signersPath }))
	w.must()
	var two, three ring.SHA
	bob(func() { two = o.signed("two") })
	require.Equal(t, two, w.must().Commit.SHA)
	signer := func(sha ring.SHA) string {
		c, err := w.Commit(t.Context(), sha)
		require.NoError(t, err)
		return c.Signer
	}
	require.Equal(t, "bob@example.org", signer(two), "as it was trusted")

	o.commit("unsigned")
	bob(func() { three = o.signed("three") })
	list(line, other)
	own := o.commit("mallory lets herself in")
	var four ring.SHA
	mallory(func() { four = o.signed("four") })
	require.Equal(t, ring.Unsigned, w.must().Refusal.Code)
	require.Equal(t, two, a.anchor.SHA)
	require.Equal(t, "bob@example.org", signer(three), "by the file of the trusted commit")
	require.Empty(t, signer(own))
	require.Empty(t, signer(four))
}

// What a signer of the repository's file may answer is held to the paths and roles that the
// file gives, also after a restart.
func TestAnAnswerOfASignerInTheRepositoryNeedsRightsEverywhere(t *testing.T) {
	t.Parallel()
	for limits, want := range map[string]int{
		"":                         3,
		"    paths: ['*.yaml']\n":  0,
		"    roles: [images]\n":    0,
		"    sources: ['prod*']\n": 3,
	} {
		o, a := newOrigin(t), &ledger{}
		line, bob := o.secondKey("bob")
		dir := filepath.Join(t.TempDir(), "git", "prod")
		start := func() *looker {
			return lookAt(t, o.follow(a, func(c *Config) { c.Trust.SignersInRepo, c.Dir = signersPath, dir }))
		}
		o.write(signersPath, "version: 1\nsigners:\n  - signer: bob@example.org\n"+limits+"    keys: "+line)
		o.signed("one")
		w := start()
		w.must()
		bob(func() {
			o.git(o.work, "commit", "-q", "--allow-empty", "-S", "-m", "Take some away", "-m", "Gitring-Allow: remove=3\nGitring-Allow: waves\nGitring-Data: store from shop")
			o.push()
		})
		c := w.must().Commit
		require.Equal(t, o.head(), c.SHA, limits)
		require.Equal(t, want, c.AllowRemove, limits)
		require.Equal(t, want > 0, len(c.Data) == 1, limits)
		require.Equal(t, want > 0, c.AllowWaves, limits)
		r, ok := start().begin(t.Context())
		require.True(t, ok)
		require.Equal(t, want, r.Commit.AllowRemove, "after a restart: %s", limits)

		// Of one whom the configuration names the file takes nothing away.
		o.git(o.work, "commit", "-q", "--allow-empty", "-S", "-m", "Take more away", "-m", "Gitring-Allow: remove=4")
		o.push()
		require.Equal(t, 4, w.must().Commit.AllowRemove)
	}
}
