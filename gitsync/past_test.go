package gitsync

import (
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
	tip := o.squash(meant, "Add once more (#7)")
	require.Equal(t, tip, h.must().Commit.SHA)
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
