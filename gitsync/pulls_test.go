package gitsync

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func withPulls(c *Config) { c.Pulls = true }

// trusted is a follower that trusts the remote's main, whose files are those given.
func (o *origin) trusted(a *ledger, change ...func(*Config)) (*Follower, ring.SHA) {
	o.t.Helper()
	o.write("app/compose.yaml", "one")
	anchor := o.signed("one")
	f := o.follow(a, append([]func(*Config){withPulls}, change...)...)
	lookAt(o.t, f).must()
	o.t.Cleanup(f.pulls.child.rest)
	o.t.Cleanup(f.child.rest)
	return f, anchor
}

// proposes makes a branch at a commit and keeps its head as pull request 7.
func (o *origin) proposes(at ring.SHA, commits func()) ring.SHA {
	o.t.Helper()
	o.git(o.work, "checkout", "-q", "-B", "proposed", string(at))
	commits()
	head := o.head()
	o.keep(7, head)
	o.git(o.work, "checkout", "-q", "main")
	return head
}

// judged is what is handed on of a head, with the files of its tree.
type judged struct {
	Proposed
	files map[string]string
}

func propose(t *testing.T, f *Follower, head ring.SHA, change ...func(*Proposal)) (judged, error) {
	p := Proposal{Head: head, Ref: "refs/pull/7/head"}
	for _, c := range change {
		c(&p)
	}
	var out judged
	err := f.Propose(t.Context(), p, func(p Proposed) error {
		out = judged{Proposed: p, files: map[string]string{}}
		if p.Commit == nil {
			return nil
		}
		return fs.WalkDir(p.Commit.Tree, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := fs.ReadFile(p.Commit.Tree, path)
			out.files[path] = string(b)
			return err
		})
	})
	return out, err
}

func fork(p *Proposal) { p.Fork = true }

func TestASignedHeadIsJudgedAndReadAndNothingStaysOfIt(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"file", "http", "a process of its own"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			o, a := newOrigin(t), &ledger{}
			var how []func(*Config)
			switch way {
			case "http":
				how = append(how, at(serve(t, o.httpBackend())+"/remote.git"))
			case "a process of its own":
				how = append(how, at(serve(t, o.httpBackend())+"/remote.git"), isolated)
			}
			f, anchor := o.trusted(a, how...)
			head := o.proposes(anchor, func() { o.file("web/a", "a", "add a", "-S") })
			asked, before := a.asked, a.anchor
			for _, who := range []func(*Proposal){func(*Proposal) {}, fork} {
				got, err := propose(t, f, head, who)
				require.NoError(t, err)
				require.Nil(t, got.Refusal)
				require.Equal(t, anchor, got.Trusted)
				require.Equal(t, head, got.Commit.SHA)
				require.Equal(t, "alice@example.org", got.Commit.Signer)
				require.Equal(t, map[string]string{"app/compose.yaml": "one", "compose.yaml": "one", "web/a": "a"}, got.files)
				require.Zero(t, got.Behind)
				require.False(t, got.Merged)
			}
			require.NoDirExists(t, f.pulls.dir, "the quarantine outlived the judgement")
			if f.pulls.child != nil {
				require.Nil(t, f.pulls.child.proc, "the process outlived the judgement")
			}
			require.False(t, f.mirror.has(plumbing.NewHash(string(head))), "the head came into the mirror")
			require.Equal(t, asked, a.asked, "a fact was written about a commit that nobody landed")
			require.Equal(t, before, a.anchor)
		})
	}
}

func TestAHeadThatTheRulesRefuseIsToldForABranchAndNotReadForAFork(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		name    string
		commits func(o *origin)
		trust   func(*TrustConfig)
		want    ring.Code
	}{
		{name: "unsigned", commits: func(o *origin) { o.file("web/a", "a", "add a") }, want: ring.Unsigned},
		{name: "laundered by the next who signs", commits: func(o *origin) {
			o.file("web/a", "a", "add a")
			o.file("web/b", "b", "add b", "-S")
		}, want: ring.Unsigned},
		{name: "by a key that nobody knows", commits: func(o *origin) {
			key := filepath.Join(o.t.TempDir(), "mallory")
			newKey(o.t, key)
			o.file("web/a", "a", "add a", "-S"+key)
		}, want: ring.UnknownSigner},
		{name: "outside of the signer's paths", commits: func(o *origin) { o.file("db/a", "a", "add a", "-S") }, trust: func(c *TrustConfig) {
			c.Bindings = []Binding{{Signer: "alice@example.org", Paths: []string{"compose.yaml", "app/**", "web/**"}, Roles: []Role{RoleCommit}}}
		}, want: ring.PathNotAllowed},
		{name: "names its own key in the file of signers", commits: func(o *origin) {
			key := filepath.Join(o.t.TempDir(), "mallory")
			line := newKey(o.t, key)
			text := "version: 1\nsigners:\n  - signer: mallory@example.org\n    keys: [" + strings.TrimSpace(line) + "]\n"
			o.file(signersPath, text, "let me in", "-S"+key)
			o.file("web/a", "a", "add a", "-S"+key)
		}, trust: inRepo, want: ring.UnknownSigner},
		{name: "more commits than are looked at", commits: func(o *origin) {
			for i := range 4 {
				o.file("web/a", fmt.Sprint(i), "again", "-S")
			}
		}, trust: func(c *TrustConfig) { c.MaxRange = 3 }, want: ring.RangeTooLarge},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			o, a := newOrigin(t), &ledger{}
			f, anchor := o.trusted(a)
			if r.trust != nil { // after first use, which takes a signer without limits only
				f = o.follow(a, withPulls, func(c *Config) { r.trust(&c.Trust) })
				lookAt(t, f).must()
				t.Cleanup(f.pulls.child.rest)
				t.Cleanup(f.child.rest)
			}
			head := o.proposes(anchor, func() { r.commits(o) })
			got, err := propose(t, f, head)
			require.NoError(t, err)
			require.NotNil(t, got.Refusal)
			require.Equal(t, r.want, got.Refusal.Code, got.Refusal.Says)
			require.Nil(t, got.Commit)
			require.Empty(t, got.files)

			got, err = propose(t, f, head, fork)
			require.ErrorIs(t, err, ErrForkUnread)
			require.Equal(t, judged{}, got, "something of a stranger's head was handed on")
			require.NoDirExists(t, f.pulls.dir)
			require.Equal(t, anchor, a.anchor.SHA)
		})
	}
}

func TestAForkIsHeldToSignaturesWhereTheSourceAsksForNone(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a, func(c *Config) { c.Trust = TrustConfig{Mode: Disabled} })
	head := o.proposes(anchor, func() { o.file("web/a", "a", "add a") })
	got, err := propose(t, f, head)
	require.NoError(t, err)
	require.Equal(t, "a", got.files["web/a"], "the source's own branch is as good as main")
	_, err = propose(t, f, head, fork)
	require.ErrorIs(t, err, ErrForkUnread)

	f.cfg.Trust = o.trust()
	f.cfg.Trust.Mode = Tip
	laundered := o.proposes(head, func() { o.file("web/b", "b", "add b", "-S") })
	got, err = propose(t, f, laundered)
	require.NoError(t, err)
	require.Nil(t, got.Refusal)
	_, err = propose(t, f, laundered, fork)
	require.ErrorIs(t, err, ErrForkUnread)
}

func TestAHeadThatIsBehindIsReadAsItsMerge(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, first := o.trusted(a)
	o.file("db/a", "meanwhile", "meanwhile", "-S")
	second := o.file("db/b", "meanwhile", "meanwhile", "-S")
	o.push()
	lookAt(t, f).must()

	head := o.proposes(first, func() { o.file("web/a", "a", "add a", "-S") })
	got, err := propose(t, f, head)
	require.NoError(t, err)
	require.Nil(t, got.Refusal)
	require.Equal(t, second, got.Trusted)
	require.Equal(t, 2, got.Behind)
	require.True(t, got.Merged)
	require.Equal(t, map[string]string{"app/compose.yaml": "one", "compose.yaml": "one", "db/a": "meanwhile", "db/b": "meanwhile", "web/a": "a"}, got.files)

	head = o.proposes(first, func() { o.file("db/a", "mine", "conflict", "-S") })
	got, err = propose(t, f, head)
	require.NoError(t, err)
	require.False(t, got.Merged)
	require.Equal(t, 2, got.Behind)
	require.Contains(t, got.Alone, "conflicts")
	require.Equal(t, "mine", got.files["db/a"], "what conflicts is read as it stands")

	got, err = propose(t, f, first)
	require.NoError(t, err)
	require.Equal(t, "meanwhile", got.files["db/b"], "a head that landed long ago changes nothing")
}

func TestAnUnsignedHeadThatIsBehindIsRefusedToo(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, first := o.trusted(a)
	o.file("db/a", "meanwhile", "meanwhile", "-S")
	o.push()
	lookAt(t, f).must()
	head := o.proposes(first, func() { o.file("web/a", "a", "add a") })
	got, err := propose(t, f, head)
	require.NoError(t, err)
	require.Equal(t, ring.Unsigned, got.Refusal.Code)
	require.Equal(t, head, got.Refusal.Commit)
}

func TestOnlyTheCommitThatTheForgeNamedIsFetched(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a)
	named := o.proposes(anchor, func() { o.file("web/a", "a", "add a", "-S") })
	other := o.proposes(anchor, func() { o.file("web/b", "b", "add b", "-S") }) // pushed over meanwhile
	_, err := propose(t, f, named)
	require.ErrorIs(t, err, ErrMoved)
	o.git(o.bare, "update-ref", "-d", "refs/pull/7/head")
	_, err = propose(t, f, other)
	require.ErrorIs(t, err, ErrMoved)

	for _, ref := range []string{"refs/heads/../x", "HEAD", "refs/tags/v1", "refs/pull/07/head", "refs/pull/7/merge", "refs/pull/7/head/x"} {
		_, err := propose(t, f, other, func(p *Proposal) { p.Ref = ref })
		require.Error(t, err, ref)
		require.NotErrorIs(t, err, ErrMoved, ref)
	}
	o.git(o.work, "push", "-q", "origin", "proposed:refs/heads/feature/x")
	got, err := propose(t, f, other, func(p *Proposal) { p.Ref = "refs/heads/feature/x" })
	require.NoError(t, err)
	require.Equal(t, "b", got.files["web/b"])
}

func TestALargeHeadIsRefusedWithinLimitsOfItsOwn(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a)
	lim := f.proposalLimits()
	require.Equal(t, int64(maxProposedBytes), lim.Received, "the limits of the branch are for the branch")
	require.Equal(t, maxProposedObjects, lim.Objects)
	f.cfg.Limits.Received = 256 << 10 // lower ones count
	noise := make([]byte, 1<<20)
	rand.New(rand.NewSource(1)).Read(noise)
	head := o.proposes(anchor, func() { o.file("large", string(noise), "large", "-S") })
	got, err := propose(t, f, head)
	require.NoError(t, err)
	require.Equal(t, ring.TooLarge, got.Refusal.Code)
	require.NoDirExists(t, f.pulls.dir)
	_, err = propose(t, f, head, fork)
	require.ErrorIs(t, err, ErrForkUnread)
	require.Equal(t, anchor, a.anchor.SHA)
}

func TestHeadsWaitForATrustedCommitAndAUsableTrustSet(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	anchor := o.signed("one")
	f := o.follow(a, withPulls)
	head := o.proposes(anchor, func() { o.file("web/a", "a", "add a", "-S") })
	_, err := propose(t, f, head)
	require.ErrorIs(t, err, ErrNothingTrusted)
	edition, err := f.ProposalEdition(t.Context())
	require.NoError(t, err)
	require.Empty(t, edition)

	lookAt(t, f).must()
	first, err := f.ProposalEdition(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, first)
	require.NoError(t, os.WriteFile(o.signers, []byte("no key at all"), 0o600))
	_, err = propose(t, f, head)
	require.ErrorContains(t, err, o.signers)
	second, err := f.ProposalEdition(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, first, second, "other trust files judge again")

	f.cfg.Trust.AllowedSigners, f.cfg.Trust.Mode = "", Disabled
	a.anchor.TrustVersion = 3
	_, err = propose(t, f, head)
	require.ErrorContains(t, err, ring.TrustRollback)
}

func TestTheQuarantineGoesWhenItsReaderFails(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, anchor := o.trusted(a)
	head := o.proposes(anchor, func() { o.file("web/a", "a", "add a", "-S") })
	broken := errors.New("the engine is away")
	err := f.Propose(t.Context(), Proposal{Head: head, Ref: "refs/pull/7/head"}, func(Proposed) error {
		require.DirExists(t, f.pulls.dir)
		return broken
	})
	require.ErrorIs(t, err, broken)
	require.NoDirExists(t, f.pulls.dir)
}

func TestNothingIsMergedWhileAnotherProcessMayHoldTheMirrorsFilesOpen(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	f, first := o.trusted(a, isolated)
	o.file("db/a", "meanwhile", "meanwhile", "-S")
	o.push()
	f.child.rest() // what begins anew has no process yet
	lookAt(t, f).must()
	head := o.proposes(first, func() { o.file("web/a", "a", "add a", "-S") })
	p, err := f.child.take(t.Context(), nil) // a look of the branch is under way
	require.NoError(t, err)
	_, err = propose(t, f, head)
	require.ErrorIs(t, err, errLater)
	require.NoError(t, p.dead(), "the look was cut short")
	f.child.give(p)
	got, err := propose(t, f, head)
	require.NoError(t, err)
	require.True(t, got.Merged)
	require.Nil(t, f.pulls.child.proc, "the process of a stranger's head outlived it")
	require.NoDirExists(t, f.pulls.dir+incomingEnds)
}
