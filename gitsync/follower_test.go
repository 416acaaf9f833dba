package gitsync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestTheFirstSignedTipIsTrustedAndCarriesItsTree(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	sha := o.signed("one")
	r := lookAt(t, o.follow(a)).must()

	require.Equal(t, sha, r.Tip)
	require.Nil(t, r.Refusal)
	require.Equal(t, sha, r.Commit.SHA)
	require.Equal(t, "alice@example.org", r.Commit.Signer)
	require.Equal(t, "set one", r.Commit.Subject)
	b, err := fs.ReadFile(r.Commit.Tree, "compose.yaml")
	require.NoError(t, err)
	require.Equal(t, "one", string(b))
	require.Equal(t, sha, a.anchor.SHA)
	require.Equal(t, "first use", a.anchor.How)
	require.Equal(t, ring.CommitAccepted, a.events[0].Kind)
	require.Equal(t, "alice@example.org", a.events[0].Actor)
}

func TestAPushOfThreeIsVerifiedWholeAndMovesTheAnchor(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	first := o.signed("one")
	w := lookAt(t, o.follow(a))
	w.must()
	two, three, four := o.commit("two", "-S"), o.commit("three", "-S"), o.commit("four", "-S")
	o.push()
	r := w.must()

	require.Equal(t, four, r.Commit.SHA)
	require.Equal(t, "verified", a.anchor.How)
	var good []ring.SHA
	for _, v := range a.good[1:] {
		good = append(good, v.SHA)
	}
	require.Equal(t, []ring.SHA{two, three, four}, good)
	require.ElementsMatch(t, []ring.SHA{first, two, three, four}, a.sawAll())
}

func TestAnUnsignedPushIsRefusedOnceAndTheTrustedCommitStays(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	good := o.signed("one")
	w := lookAt(t, o.follow(a))
	w.must()
	bad := o.commit("two")
	laundered := o.commit("three", "-S")
	o.push()
	r := w.must()

	require.Equal(t, laundered, r.Tip)
	require.Equal(t, ring.Unsigned, r.Refusal.Code)
	require.Equal(t, bad, r.Refusal.Commit)
	require.Equal(t, good, r.Commit.SHA)
	require.Equal(t, good, a.anchor.SHA)
	b, err := fs.ReadFile(r.Commit.Tree, "compose.yaml")
	require.NoError(t, err)
	require.Equal(t, "one", string(b))

	asked := a.asked
	require.Equal(t, ring.Unsigned, w.must().Refusal.Code)
	require.Equal(t, asked, a.asked, "a refused tip was judged again")
}

func TestARefusalGoesWithItsTip(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	good := o.signed("one")
	w := lookAt(t, o.follow(a))
	w.must()
	o.commit("two")
	o.push()
	require.NotNil(t, w.must().Refusal)
	o.git(o.work, "reset", "-q", "--hard", string(good))
	o.push()
	r := w.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, good, r.Commit.SHA)
}

func TestABranchForcedBackOrAsideIsRefusedUntilAPersonAcceptsIt(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.signed("one")
	two := o.signed("two")
	w := lookAt(t, o.follow(a))
	w.must()

	o.git(o.work, "reset", "-q", "--hard", string(one))
	o.push()
	require.Equal(t, ring.Rollback, w.must().Refusal.Code)

	aside := o.signed("aside")
	r := w.must()
	require.Equal(t, ring.NonFastForward, r.Refusal.Code)
	require.Equal(t, two, r.Commit.SHA)
	require.Equal(t, two, a.anchor.SHA)

	refusal, err := w.accept(t.Context(), acceptance{sha: aside, actor: "root", reason: "history was rewritten"})
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, aside, a.anchor.SHA)
	require.Equal(t, "accepted by root: history was rewritten", a.anchor.How)
	e := a.events[len(a.events)-1]
	require.Equal(t, []string{ring.TrustAccepted, "root", "history was rewritten", string(aside)}, []string{e.Kind, e.Actor, e.Reason, string(e.Commit)})
	r = w.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, aside, r.Commit.SHA)
	require.Equal(t, "alice@example.org", r.Commit.Signer)
}

func TestAcceptTakesOnlyTheSignedPresentTip(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.signed("one")
	two := o.signed("two")
	w := lookAt(t, o.follow(a))
	w.must()

	_, err := w.accept(t.Context(), acceptance{sha: one, actor: "root", reason: "r"})
	require.ErrorContains(t, err, "the branch is at "+two.Short())

	o.git(o.work, "reset", "-q", "--hard", string(one))
	bad := o.commit("unsigned")
	o.push()
	_, err = w.accept(t.Context(), acceptance{sha: bad[:39], actor: "root", reason: "r"})
	require.ErrorContains(t, err, "the branch is at "+bad.Short(), "V65f")
	refusal, err := w.accept(t.Context(), acceptance{sha: bad, actor: "root", reason: "r"})
	require.NoError(t, err)
	require.Equal(t, ring.Unsigned, refusal.Code)
	require.Equal(t, two, a.anchor.SHA)

	o.git(o.work, "reset", "-q", "--hard", string(one))
	aside := o.signed("aside")
	w.must()
	require.NoError(t, os.Rename(o.bare, o.bare+".away"))
	refusal, err = w.accept(t.Context(), acceptance{sha: aside, actor: "root", reason: "the forge is away"})
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, aside, a.anchor.SHA)
}

func TestAcceptReachesARunningFollowerAndIsReported(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.signed("one")
	o.signed("two")
	f := o.follow(a)
	reports, stop := running(t, f)
	defer stop()
	next(t, reports, func(r ring.Report) bool { return r.Commit != nil })
	o.git(o.work, "reset", "-q", "--hard", string(one))
	aside := o.signed("aside")

	refusal, err := f.Accept(t.Context(), aside, "root", "why")
	require.NoError(t, err)
	require.Nil(t, refusal)
	next(t, reports, func(r ring.Report) bool { return r.Commit.SHA == aside && r.Refusal == nil })

	_, err = f.Accept(t.Context(), aside[:12], "root", "why")
	require.ErrorContains(t, err, "not a full commit id", "V65f")
	_, err = f.Accept(t.Context(), aside, "root", " ")
	require.ErrorContains(t, err, "who and why")
	done, cancel := context.WithCancel(t.Context())
	cancel()
	stop()
	_, err = f.Accept(done, aside, "root", "nobody runs it")
	require.ErrorIs(t, err, context.Canceled)
}

func TestV46ADeletedBranchIsToldAndTheCommitStays(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	sha := o.signed("one")
	w := lookAt(t, o.follow(a))
	w.must()
	o.git(o.bare, "update-ref", "-d", "refs/heads/main")
	o.git(o.bare, "update-ref", "refs/heads/other", string(sha))
	r := w.must()
	require.Equal(t, "RefMissing: the remote has no branch main; push a signed commit to it (git push origin main), or name another branch in the configuration", r.Reason)
	require.Empty(t, r.Tip)
	require.Equal(t, sha, r.Commit.SHA)

	o.push()
	r = w.must()
	require.Empty(t, r.Reason)
	require.Equal(t, sha, r.Tip)
}

func TestAnEmptyRemoteIsNoError(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	r := lookAt(t, o.follow(&ledger{})).must()
	require.Equal(t, "RefMissing: the remote has no branch at all; push a signed commit to it (git push origin main), or name another branch in the configuration", r.Reason)
	require.Nil(t, r.Commit)
}

func TestARemoteThatIsAwayIsAnErrorAndTakesNothingBack(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	sha := o.signed("one")
	w := lookAt(t, o.follow(a))
	w.must()
	o.commit("two")
	o.push()
	w.must()
	require.NoError(t, os.Rename(o.bare, o.bare+".away"))
	r := w.look(t.Context())
	require.ErrorContains(t, r.Err, "cannot look at file://"+o.bare)
	require.False(t, r.Reached)
	require.Equal(t, sha, r.Commit.SHA)
	require.Equal(t, ring.Unsigned, r.Refusal.Code, "the refusal of the tip last seen")
}

func TestARestartReportsTheTrustedCommitWithoutTheRemote(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	sha := o.signed("one")
	f := o.follow(a)
	lookAt(t, f).must()
	require.NoError(t, os.Rename(o.bare, o.bare+".away"))

	again := o.follow(a, func(c *Config) { c.Dir = f.cfg.Dir })
	r, ok := (&watch{Follower: again}).begin(t.Context())
	require.True(t, ok)
	require.NoError(t, r.Err)
	require.False(t, r.Reached)
	require.Equal(t, sha, r.Commit.SHA)
	require.Equal(t, "alice@example.org", r.Commit.Signer)
	b, err := fs.ReadFile(r.Commit.Tree, "compose.yaml")
	require.NoError(t, err)
	require.Equal(t, "one", string(b))
}

func TestAnAnchorThatCannotBeReadIsNoFirstUse(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{blind: errors.New("disk on fire")}
	o.signed("one")
	w := lookAt(t, o.follow(a))
	r := w.look(t.Context())
	require.ErrorContains(t, r.Err, "disk on fire")
	require.Nil(t, r.Commit)
	require.Empty(t, a.moves)
	a.blind = nil
	require.NotNil(t, w.must().Commit)
}

func TestACommitIsNotReportedBeforeItsTrustIsOnDisk(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{fail: errors.New("disk full")}
	sha := o.signed("one")
	w := lookAt(t, o.follow(a))
	r := w.look(t.Context())
	require.ErrorContains(t, r.Err, "disk full")
	require.Nil(t, r.Commit)
	a.fail = nil
	require.Equal(t, sha, w.must().Commit.SHA)
	require.Len(t, a.moves, 1)
}

func TestV49AnAnchorThatNobodyHasIsNeverReplacedByFirstUse(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	lost := o.signed("one")
	lookAt(t, o.follow(a)).must()

	o.git(o.work, "checkout", "-q", "--orphan", "fresh")
	o.signed("fresh")
	o.git(o.bare, "reflog", "expire", "--expire=now", "--all")
	o.git(o.bare, "gc", "-q", "--prune=now")
	w := lookAt(t, o.follow(a)) // with an empty mirror
	for range 2 {
		r := w.must()
		require.Equal(t, ring.AnchorUnavailable, r.Refusal.Code)
		require.Nil(t, r.Commit)
	}
	require.Equal(t, lost, a.anchor.SHA)
	require.Len(t, a.moves, 1)
}

func TestAMirrorThatWasLostStillTellsAForcePush(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	old := o.signed("one")
	lookAt(t, o.follow(a)).must()
	o.git(o.work, "checkout", "-q", "--orphan", "fresh")
	o.signed("fresh")
	// The remote still has the old commit, though no branch leads to it.
	o.git(o.bare, "config", "uploadpack.allowAnySHA1InWant", "true")
	for _, url := range []string{o.url(), serve(t, o.httpBackend()) + "/remote.git"} {
		f := o.follow(a, at(url))
		f.mirror.careful = true // so that only what is asked for comes
		r := lookAt(t, f).must()
		require.Equal(t, ring.NonFastForward, r.Refusal.Code, url)
		require.Equal(t, old, lookAt(t, f).must().Commit.SHA, "the trusted commit goes on")
	}
}

// V61: what somebody vouched for is told with the tip, also after a restart.
func TestStatusTellsWhatSomebodyVouchedFor(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	w := lookAt(t, o.follow(a))
	w.must()
	web := o.commit("edited on the web", "--no-gpg-sign")
	o.git(o.work, "commit", "-q", "--allow-empty", "-S", "-m", "Answer for it", "-m", "Gitring-Vouch: "+string(web))
	o.push()
	want := "vouched by alice@example.org: " + web.Short()
	require.Equal(t, want, w.must().Commit.Note)

	r, ok := lookAt(t, o.follow(a, func(c *Config) { c.Dir = w.cfg.Dir })).begin(t.Context())
	require.True(t, ok)
	require.Equal(t, want, r.Commit.Note)
}

// A leave to remove is about the whole source: one who may write some paths only
// cannot give it.
func TestALeaveToRemoveNeedsRightsEverywhere(t *testing.T) {
	t.Parallel()
	for want, bind := range map[int][]Binding{
		3: {{Signer: "alice@example.org"}},
		0: {{Signer: "alice@example.org", Paths: []string{"*.yaml"}}},
	} {
		o, a := newOrigin(t), &ledger{}
		o.signed("one")
		dir := filepath.Join(t.TempDir(), "m")
		bound := func(c *Config) { c.Trust.Bindings, c.Dir = bind, dir }
		lookAt(t, o.follow(a, func(c *Config) { c.Dir = dir })).must() // first use takes somebody with rights everywhere
		w := lookAt(t, o.follow(a, bound))
		w.must()
		o.git(o.work, "commit", "-q", "--allow-empty", "-S", "-m", "Take some away", "-m", "Gitring-Allow: remove=3\nGitring-Allow: waves\nGitring-Data: store from shop")
		o.push()
		c := w.must().Commit
		require.Equal(t, want, c.AllowRemove)
		require.Equal(t, want > 0, c.AllowWaves, "and so is a leave not to wait for other hosts")
		require.Equal(t, want > 0, len(c.Data) == 1, "and so is an answer on data")
		r, ok := lookAt(t, o.follow(a, bound)).begin(t.Context())
		require.True(t, ok)
		require.Equal(t, want, r.Commit.AllowRemove, "after a restart")
		require.Equal(t, c.Data, r.Commit.Data)
	}
}

// TestTheIntroductionMayBeTheTipOfAnUnsignedHistory is the first evening: what
// init makes, pushed, with nothing on top of it yet.
func TestTheIntroductionMayBeTheTipOfAnUnsignedHistory(t *testing.T) {
	o := newOrigin(t)
	o.commit("nobody signed this", "--no-gpg-sign")
	o.commit("nor this", "--no-gpg-sign")
	intro := o.signed("trust begins here")
	o.push()
	w := lookAt(t, o.follow(&ledger{}, func(c *Config) { c.Trust.Introduction = intro }))
	r := w.look(t.Context())
	require.NoError(t, r.Err)
	require.Nil(t, r.Refusal)
	require.NotNil(t, r.Commit)
	require.Equal(t, intro, r.Commit.SHA)
}

func TestV52AnIntroductionBeginsTheTrustedHistory(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.commit("before anybody signed")
	intro := o.commit("the first that counts")
	two, three := o.commit("two", "-S"), o.signed("three")
	w := lookAt(t, o.follow(a, func(c *Config) { c.Trust.Introduction = intro }))
	require.Equal(t, three, w.must().Commit.SHA)
	require.Equal(t, "introduction", a.anchor.How)
	var good []ring.SHA
	for _, v := range a.good {
		good = append(good, v.SHA)
	}
	require.Equal(t, []ring.SHA{intro, two, three}, good)
	require.ElementsMatch(t, good, a.sawAll())
}

func TestV47ABranchThatPointsAtATagIsNotACommit(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	o.git(o.work, "tag", "-a", "-m", "v1", "v1")
	o.git(o.work, "push", "-q", "origin", "v1")
	tag := o.git(o.bare, "rev-parse", "v1")
	require.NoError(t, os.WriteFile(filepath.Join(o.bare, "refs", "heads", "main"), []byte(tag+"\n"), 0o644))
	for _, careful := range []bool{false, true} {
		f := o.follow(a)
		f.mirror.careful = careful
		require.Equal(t, ring.NotACommit, lookAt(t, f).must().Refusal.Code)
	}
	require.Empty(t, a.moves)
}

func TestATipTooFarAwayIsAcceptedByAPersonOnly(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	w := lookAt(t, o.follow(a, func(c *Config) { c.Trust.MaxRange = 2 }))
	w.must()
	for _, s := range []string{"two", "three", "four"} {
		o.commit(s, "-S")
	}
	o.push()
	r := w.must()
	require.Equal(t, ring.RangeTooLarge, r.Refusal.Code)
	refusal, err := w.accept(t.Context(), acceptance{sha: r.Tip, actor: "root", reason: "seen"})
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, r.Tip, w.must().Commit.SHA)
}

func TestWhatARemoteSaysIsFitForATerminal(t *testing.T) {
	err := said{errors.New("ERR \x1b[31mred\x07\r\nand\u202e more" + strings.Repeat("x", 1000))}
	require.True(t, strings.HasPrefix(err.Error(), "ERR [31mred and more"), err.Error())
	require.LessOrEqual(t, len(err.Error()), 500)
}

func TestV55ATrustFileIsReadAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.signed("one")
	w := lookAt(t, o.follow(a))
	w.must()
	signers, err := os.ReadFile(o.signers)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(o.signers, []byte("no such line\n"), 0o600))
	two := o.signed("two")
	r := w.must()
	require.True(t, strings.HasPrefix(r.Reason, "TrustConfigInvalid: "), r.Reason)
	require.Contains(t, r.Reason, o.signers)
	require.Equal(t, one, r.Commit.SHA, "a commit was accepted under an invalid trust set")
	require.Equal(t, two, r.Tip)
	_, err = w.accept(t.Context(), acceptance{sha: two, actor: "root", reason: "r"})
	require.ErrorContains(t, err, o.signers)

	require.NoError(t, os.WriteFile(o.signers, signers, 0o600))
	r = w.must()
	require.Empty(t, r.Reason)
	require.Equal(t, two, r.Commit.SHA)

	// A refused tip is fine once its signer is known.
	bob := filepath.Join(t.TempDir(), "bob")
	line := newKey(t, bob)
	o.key = bob
	three := o.signed("three")
	require.Equal(t, ring.UnknownSigner, w.must().Refusal.Code)
	require.NoError(t, os.WriteFile(o.signers, append(signers, "bob@example.org namespaces=\"git\" "+line...), 0o600))
	r = w.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, three, r.Commit.SHA)
	require.Equal(t, "bob@example.org", r.Commit.Signer)
}

func TestARevokedKeyLeavesWhatItSignedRunningAndIsTold(t *testing.T) {
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

	r := w.must()
	require.True(t, strings.HasPrefix(r.Reason, "TrustDegraded: "), r.Reason)
	require.Equal(t, sha, r.Commit.SHA)
	r = lookAt(t, o.follow(a, withList, func(c *Config) { c.Dir = f.cfg.Dir })).must()
	require.True(t, strings.HasPrefix(r.Reason, "TrustDegraded: "), "after a restart: %s", r.Reason)

	o.signed("two")
	r = w.must()
	require.Equal(t, ring.Revoked, r.Refusal.Code)
	require.Equal(t, sha, r.Commit.SHA)
}

func TestDisabledTrustFollowsUnsignedCommitsForwardOnly(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.commit("one")
	o.push()
	f := o.follow(a, func(c *Config) { c.Trust = TrustConfig{Mode: Disabled} })
	require.Contains(t, f.Warning(), "disabled")
	require.Empty(t, o.follow(a).Warning())
	w := lookAt(t, f)
	require.Equal(t, one, w.must().Commit.SHA)
	require.Contains(t, a.anchor.How, "disabled")
	two := o.commit("two")
	o.push()
	require.Equal(t, two, w.must().Commit.SHA)
	o.git(o.work, "reset", "-q", "--hard", string(one))
	o.push()
	require.Equal(t, ring.Rollback, w.must().Refusal.Code)
}

func TestV50AShallowRemoteIsRefused(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	o.signed("two")
	clone := filepath.Join(t.TempDir(), "shallow.git")
	o.git("", "clone", "-q", "--bare", "--depth", "1", o.url(), clone)
	w := lookAt(t, o.follow(a, func(c *Config) { c.URL = "file://" + clone }))
	require.Equal(t, ring.Shallow, w.must().Refusal.Code)
	require.Empty(t, a.moves)
	o.git(clone, "fetch", "-q", "--unshallow", "origin")
	r := w.must()
	require.Nil(t, r.Refusal)
	require.NotNil(t, r.Commit)
}

func TestOnlyTheConfiguredRefReachesTheMirror(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	o.git(o.work, "tag", "v1")
	o.git(o.work, "push", "-q", "origin", "v1", "HEAD:dev")
	f := o.follow(a)
	lookAt(t, f).must()
	refs := o.git(f.cfg.Dir, "for-each-ref", "--format=%(refname)")
	require.Equal(t, "refs/gitring/prod", refs)
	require.Equal(t, "true", o.git(f.cfg.Dir, "rev-parse", "--is-bare-repository"))
	o.git(f.cfg.Dir, "fsck", "--strict")
}

func TestCommitGivesWhatTheMirrorHasTrustedOrNot(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	good := o.signed("one")
	bad := o.commit("two")
	o.push()
	f := o.follow(a)
	lookAt(t, f).must()
	c, err := f.Commit(t.Context(), bad)
	require.NoError(t, err)
	require.Empty(t, c.Signer)
	require.Equal(t, []ring.SHA{good}, c.Parents)
	c, err = f.Commit(t.Context(), good)
	require.NoError(t, err)
	require.Equal(t, "alice@example.org", c.Signer)
	_, err = f.Commit(t.Context(), ring.SHA(strings.Repeat("1", 40)))
	require.ErrorIs(t, err, ErrMissing)
}

func TestNewRefusesWhatItCannotFollowBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for name, tt := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"a source name that climbs out":   {func(c *Config) { c.Name = "../x" }, "a name has letters"},
		"no folder":                       {func(c *Config) { c.Dir = "" }, "no folder"},
		"git protocol":                    {func(c *Config) { c.URL = "git://example.org/x" }, "git:// proves nothing"},
		"plain http to the world":         {func(c *Config) { c.URL = "http://example.org/x" }, "loopback"},
		"a password in the URL":           {func(c *Config) { c.URL = "https://u:hunter2@example.org/x" }, "password_file"},
		"a remote helper":                 {func(c *Config) { c.URL = "ext::sh -c true" }, "remote helpers"},
		"a bare path":                     {func(c *Config) { c.URL = "/srv/repo" }, "file:///path"},
		"another host's file":             {func(c *Config) { c.URL = "file://srv/repo" }, "another host"},
		"ftp":                             {func(c *Config) { c.URL = "ftp://example.org/x" }, "is not one of"},
		"ssh without key":                 {func(c *Config) { c.URL = "ssh://git@example.org/x" }, "ssh_key_file"},
		"ssh without known hosts":         {func(c *Config) { c.URL = "git@example.org:x"; c.Auth.SSHKeyFile = o.key }, "known_hosts_file"},
		"a poll that is too fast":         {func(c *Config) { c.Poll = "10ms" }, "at least 1s"},
		"a branch that climbs out":        {func(c *Config) { c.Branch = "../../config" }, "not a name"},
		"a branch that is an option":      {func(c *Config) { c.Branch = "--upload-pack=x" }, "not a name"},
		"a branch that is a lock":         {func(c *Config) { c.Branch = "main.lock" }, "not a name"},
		"a branch with a reflog":          {func(c *Config) { c.Branch = "main@{1}" }, "not a name"},
		"no branch":                       {func(c *Config) { c.Branch = "" }, "not a name"},
		"a trust file that is not there":  {func(c *Config) { c.Trust.AllowedSigners += ".gone" }, ".gone"},
		"ssh credentials for https":       {func(c *Config) { c.URL = "https://example.org/x"; c.Auth.SSHKeyFile = o.key }, "are for ssh"},
		"a query":                         {func(c *Config) { c.URL = "https://example.org/x?token=hunter2" }, "query"},
		"a URL that is not one":           {func(c *Config) { c.URL = "https://u:hunter2@exa mple" }, "not a URL"},
		"https without path":              {func(c *Config) { c.URL = "https://example.org/" }, "no path"},
		"a mode that nobody knows":        {func(c *Config) { c.Trust.Mode = "loose" }, "is unknown"},
		"a cron expression for no day":    {func(c *Config) { c.Poll = "0 0 30 2 *" }, "never comes"},
		"a branch longer than 200 (name)": {func(c *Config) { c.Branch = strings.Repeat("x", 201) }, "not a name"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Name: "prod", URL: o.url(), Branch: "main", Trust: o.trust(), Dir: filepath.Join(t.TempDir(), "m")}
			tt.change(&cfg)
			_, err := New(cfg, &ledger{}, nil)
			require.ErrorContains(t, err, tt.says)
			require.True(t, strings.HasPrefix(err.Error(), "cannot "), err.Error())
			require.NotContains(t, err.Error(), "hunter2")
			require.NoDirExists(t, cfg.Dir)
		})
	}
}

func TestAddressesAreShownWithoutUserInfo(t *testing.T) {
	for raw, shown := range map[string]string{
		"https://bot@example.org/a/b.git":     "https://example.org/a/b.git",
		"ssh://git@example.org:2222/a.git":    "ssh://example.org:2222/a.git",
		"git@example.org:a/b.git":             "ssh://example.org:22/a/b.git",
		"file:///srv/git/a.git":               "file:///srv/git/a.git",
		"http://[::1]:8080/a":                 "http://[::1]:8080/a",
		"http://localhost:3000/acme/infra":    "http://localhost:3000/acme/infra",
		"https://example.org/with%20space":    "https://example.org/with space",
		"ssh://example.org/~alice/infra.git":  "ssh://example.org/~alice/infra.git",
		"file://localhost/srv/git/a.git":      "file:///srv/git/a.git",
		"HTTPS://example.org/acme/infra.git/": "https://example.org/acme/infra.git/",
	} {
		a, err := parseAddress(raw)
		require.NoError(t, err, raw)
		require.Equal(t, shown, a.String())
	}
}

// running starts Run and hands its reports over; stop ends it and waits.
func running(t *testing.T, f *Follower) (<-chan ring.Report, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reports, ended := make(chan ring.Report, 100), make(chan error, 1)
	go func() {
		ended <- f.Run(ctx, func(_ context.Context, r ring.Report) { reports <- r })
	}()
	stopped := false
	return reports, func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-ended)
	}
}

// next waits for a report.
func next(t *testing.T, reports <-chan ring.Report, is func(ring.Report) bool) ring.Report {
	t.Helper()
	var last []ring.Report
	for {
		select {
		case r := <-reports:
			if is(r) {
				return r
			}
			last = append(last, r)
		case <-t.Context().Done():
			require.FailNow(t, "no such report", "%+v", slices.Clone(last))
		}
	}
}
