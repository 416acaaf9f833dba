package gitsync

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// hosted is a follower with the real store, which can be started again.
type hosted struct {
	t      *testing.T
	o      *origin
	dir    string
	store  *store.Store
	change []func(*Config)
	*looker
}

func host(t *testing.T, o *origin, change ...func(*Config)) *hosted {
	h := &hosted{t: t, o: o, dir: filepath.Join(t.TempDir(), "state")}
	mirror := filepath.Join(t.TempDir(), "git", "prod")
	h.change = append([]func(*Config){merging, func(c *Config) { c.Dir = mirror }}, change...)
	h.start()
	t.Cleanup(func() { _ = h.store.Close() })
	return h
}

func (h *hosted) start() {
	h.t.Helper()
	var err error
	h.store, err = store.Open(h.t.Context(), h.dir)
	require.NoError(h.t, err)
	h.looker = lookAt(h.t, h.o.follow(h.store, h.change...))
}

// again is a restart; lost is one after somebody removed the database.
func (h *hosted) again(lost bool) {
	h.t.Helper()
	require.NoError(h.t, h.store.Close())
	if lost {
		files, err := filepath.Glob(filepath.Join(h.dir, "*.db*"))
		require.NoError(h.t, err)
		require.NotEmpty(h.t, files)
		for _, f := range files {
			require.NoError(h.t, os.Remove(f))
		}
	}
	h.start()
}

// unsigned is a commit of a tree that some commit has, with parents and a message.
func (o *origin) unsigned(of ring.SHA, message string, parents ...ring.SHA) ring.SHA {
	o.t.Helper()
	args := []string{"commit-tree", "--no-gpg-sign", string(of) + "^{tree}", "-m", message}
	for _, p := range parents {
		args = append(args, "-p", string(p))
	}
	return ring.SHA(o.git(o.work, args...))
}

// main puts the branch of the remote where it is told, by force where need be.
func (o *origin) main(at ring.SHA) {
	o.t.Helper()
	o.git(o.work, "push", "-q", "--force", "origin", string(at)+":refs/heads/main")
	o.git(o.work, "checkout", "-q", "-B", "main", string(at))
}

func (o *origin) merged(first, second ring.SHA, message string) ring.SHA {
	o.t.Helper()
	o.git(o.work, "checkout", "-q", "--detach", string(first))
	o.git(o.work, "merge", "-q", "--no-ff", "-m", message, string(second))
	return o.head()
}

// V26h through a follower with the real store, at once, after a restart, and after the
// database was lost.
func TestTwoPushesBringNothingThatNobodySigned(t *testing.T) {
	t.Parallel()
	for _, between := range []string{"nothing", "a restart", "the loss of the database"} {
		t.Run(between, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			p := o.signed("one")
			h := host(t, o)
			h.must()
			o.git(o.work, "checkout", "-q", "-b", "evil")
			evil := o.file("web/evil", "evil", "not signed")
			o.main(o.unsigned(p, "Merge", evil, p))
			first := h.must()
			switch between {
			case "a restart":
				h.again(false)
			case "the loss of the database":
				h.again(true)
			}
			back := o.unsigned(evil, "Work\n\nGitring-Head: "+string(evil), p)
			o.main(o.merged(first.Tip, back, "Merge"))
			r := h.must()
			require.NotNil(t, r.Refusal, "what nobody signed runs")
			require.Contains(t, []ring.Code{ring.Unsigned, ring.NotSignedContent}, r.Refusal.Code)
		})
	}
}

// V26j and V60 with the real store.
func TestALandedHeadIsRememberedOverARestart(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	p := o.signed("one")
	h := host(t, o)
	h.must()
	head := o.pull(7, p)
	landed := o.squash(head, "Add (#7)")
	r := h.must()
	require.Nil(t, r.Refusal)
	require.Contains(t, r.Commit.Note, "content by alice@example.org, landed by the forge")
	require.Contains(t, r.Commit.Note, head.Short())
	h.again(false)
	require.Equal(t, landed, h.must().Commit.SHA)
	o.git(o.work, "rm", "-q", "-r", "web")
	o.git(o.work, "commit", "-q", "-S", "-m", "Revert")
	o.push()
	require.Nil(t, h.must().Refusal)
	h.again(false)
	revert := o.head()
	o.squash(head, "Add once more (#7)")
	r = h.must()
	require.NotNil(t, r.Refusal, "what was taken back is here again")
	require.Equal(t, ring.HeadLanded, r.Refusal.Code)

	// A new signed commit on top of it is somebody's word.
	o.git(o.work, "checkout", "-q", "work-7")
	o.git(o.work, "commit", "-q", "--allow-empty", "-S", "-m", "I mean it")
	meant := o.head()
	o.keep(7, meant)
	o.main(revert)
	tip := o.squash(meant, "Add it as meant (#7)") // not the refused commit again, made in the same second
	r = h.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, tip, r.Commit.SHA)
}

// "update branch" merges what was trusted in an earlier look, by way of landings.
func TestAnUpdateFromAnEarlierLandingPassesWithTheRealStore(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	p := o.signed("one")
	h := host(t, o)
	h.must()
	work := o.pull(7, p)
	main := o.squash(o.pull(8, p), "Other (#8)")
	require.Nil(t, h.must().Refusal)
	update := o.merged(work, main, "Merge branch main into work")
	o.keep(7, update)
	o.git(o.work, "checkout", "-q", "main")
	o.squash(o.pull(9, main), "Third (#9)")
	require.Nil(t, h.must().Refusal)
	h.again(false)
	tip := o.squash(update, "Add (#7)")
	r := h.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, tip, r.Commit.SHA)
}

// What a person accepted is where trust begins; what lies behind was refused, and
// branches from there land all the same.
func TestABranchFromBehindAnAcceptedCommitLands(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	h := host(t, o)
	h.must()
	o.commit("nobody's")
	fork := o.signed("two")
	require.Equal(t, ring.Unsigned, h.must().Refusal.Code)
	tip := o.signed("three")
	refusal, err := h.accept(t.Context(), acceptance{sha: tip, actor: "root", reason: "I know"})
	require.NoError(t, err)
	require.Nil(t, refusal)
	landed := o.squash(o.pull(7, fork), "Add (#7)")
	r := h.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, landed, r.Commit.SHA)
}

// Two sources that follow the same repository remember their own landings alone.
func TestTwoSourcesOfOneRepositoryEachLandAHead(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	p := o.signed("one")
	h := host(t, o)
	h.must()
	other := lookAt(t, o.follow(h.store, merging, func(c *Config) { c.Name = "staging" }))
	other.must()
	tip := o.squash(o.pull(7, p), "Add (#7)")
	require.Equal(t, tip, h.must().Commit.SHA)
	require.Equal(t, tip, other.must().Commit.SHA)
}

// trusts writes down what a release before accepted.
func (h *hosted) trusts(tip ring.SHA, began ring.SHA, accepted ...ring.SHA) {
	h.t.Helper()
	var all []ring.Verified
	for _, sha := range append(accepted, tip) {
		all = append(all, ring.Verified{SHA: sha, Note: "content by what was trusted before, landed by the forge", Landed: true})
	}
	a := ring.Anchor{Source: "prod", SHA: tip, How: "verified", At: noon, Began: ring.Beginning{SHA: began, How: ring.ByFirstUse, At: noon}}
	require.NoError(h.t, h.store.Trust(h.t.Context(), a, all, nil))
	h.again(false)
}

func TestReverifyFindsWhatTwoPushesBroughtIn(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	p := o.signed("one")
	h := host(t, o)
	h.must()
	o.git(o.work, "checkout", "-q", "-b", "evil")
	evil := o.file("web/evil", "evil", "not signed")
	hidden := o.unsigned(p, "Merge", evil, p)
	back := o.unsigned(evil, "Work\n\nGitring-Head: "+string(evil), p)
	abused := o.merged(hidden, back, "Merge")
	o.main(abused)
	h.must() // refused by now; but it is in the mirror
	// Taken out again by a landing that leaves it out: nothing of it is in the tip.
	cover := o.unsigned(p, "Merge", abused, p)
	o.main(cover)
	h.must()
	h.trusts(cover, p, hidden, back, abused)
	found, err := h.reverify(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Untold)
	require.NotEmpty(t, found.Refusals, "the abuse is not found")
	require.Equal(t, ring.Unsigned, found.Refusals[0].Code)
	require.Contains(t, found.Refusals[0].Says, back.Short())
	require.Contains(t, found.Refusals[0].Says, evil.Short())
}

func TestReverifySaysOfAHeadThatIsGoneThatItCannotBeTold(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	p := o.signed("one")
	h := host(t, o)
	h.must()
	gone := o.squash(o.pull(7, p), "Add seven (#7)")
	kept := o.squash(o.pull(8, gone), "Add eight (#8)")
	require.Equal(t, kept, h.must().Commit.SHA)
	found, err := h.reverify(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Refusals)
	require.Empty(t, found.Untold)

	o.git(o.bare, "update-ref", "-d", "refs/pull/7/head")
	found, err = h.reverify(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Refusals)
	require.Len(t, found.Untold, 1, "not as if it were fine")
	require.Equal(t, ring.HeadUnavailable, found.Untold[0].Code)
	require.Equal(t, gone, found.Untold[0].Commit)
}

func TestReverifyFetchesAsManyHeadsAsThereAre(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	tip := o.signed("one")
	h := host(t, o)
	h.must()
	for n := range maxHeadsOfLook + 2 {
		tip = o.squash(o.pull(n+1, tip), fmt.Sprintf("Add (#%d)", n+1))
		if n%8 == 7 {
			require.Nil(t, h.must().Refusal)
		}
	}
	require.Nil(t, h.must().Refusal)
	found, err := h.reverify(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Refusals)
	require.Empty(t, found.Untold)
	require.Equal(t, tip, found.To)
}
