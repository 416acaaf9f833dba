package gitsync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// labelled is what the engine tells of the commits of containers.
func labelled(shas ...ring.SHA) func(*Config) {
	return func(c *Config) {
		c.Labels = func(context.Context) ([]ring.SHA, error) { return shas, nil }
	}
}

func inMirrorOf(f *Follower) func(*Config) { return func(c *Config) { c.Dir = f.cfg.Dir } }

func TestV51ATipOlderThanWhatContainersWereMadeFromIsRefused(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	one := o.signed("one")
	two := o.signed("two")
	three := o.signed("three")
	f := o.follow(&ledger{})
	lookAt(t, f).must() // fills the mirror, which outlives the database
	o.git(o.work, "reset", "-q", "--hard", string(two))
	o.push()

	a := &ledger{}
	w := lookAt(t, o.follow(a, inMirrorOf(f), labelled(one, three, three)))
	r := w.must()
	require.Equal(t, ring.StateLostRollback, r.Refusal.Code)
	require.Equal(t, two, r.Refusal.Commit)
	require.Contains(t, r.Refusal.Says, three.Short())
	require.Equal(t, three, r.Commit.SHA, "what containers were made from goes on")
	require.Equal(t, three, a.anchor.SHA)
	require.Equal(t, ring.ByLabels, a.anchor.How)
	require.Equal(t, ring.TrustRecovered, a.events[0].Kind)

	// The anchor that was found is written down: the containers may go.
	r = lookAt(t, o.follow(a, inMirrorOf(f), labelled())).must()
	require.Equal(t, ring.StateLostRollback, r.Refusal.Code, "after a restart")
	require.Len(t, a.moves, 1)

	o.git(o.work, "reset", "-q", "--hard", string(three))
	four := o.signed("four")
	r = w.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, four, r.Commit.SHA)
	require.Equal(t, ring.ByLabels, a.anchor.Began.How)
}

func TestALostAnchorComesBackFromTheLabelsAndIsNoFirstUse(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	one := o.signed("one")
	two := o.signed("two")
	bad := o.commit("laundered")
	tip := o.signed("three")

	a := &ledger{}
	r := lookAt(t, o.follow(a, labelled(two, one))).must()
	require.Equal(t, ring.Unsigned, r.Refusal.Code, "a first use would have taken the tip")
	require.Equal(t, bad, r.Refusal.Commit)
	require.Equal(t, two, a.anchor.SHA)

	a = &ledger{}
	r = lookAt(t, o.follow(a, labelled(tip))).must()
	require.Nil(t, r.Refusal)
	require.Equal(t, tip, r.Commit.SHA, "what runs is the tip")
	require.False(t, r.Anchor.FirstUse())
}

func TestLabelsThatAreNoChainOrNowhereAreForAPerson(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	base := o.signed("base")
	left := o.signed("left")
	o.git(o.work, "reset", "-q", "--hard", string(base))
	right := o.signed("right")
	o.git(o.work, "merge", "-q", "-S", "--no-ff", "-X", "ours", "-m", "both", string(left))
	o.push()
	tip := o.head()
	nowhere := ring.SHA(strings.Repeat("ab", 20))
	for name, c := range map[string]struct {
		labels []ring.SHA
		says   []string
	}{
		"two that are apart":              {[]ring.SHA{base, left, right}, []string{left.Short(), right.Short(), "descends from all the others"}},
		"one that nobody has":             {[]ring.SHA{base, nowhere}, []string{nowhere.Short(), "neither the mirror nor the remote"}},
		"one that is no commit id at all": {[]ring.SHA{"main"}, []string{"main"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &ledger{}
			w := lookAt(t, o.follow(a, labelled(c.labels...)))
			for range 2 {
				r := w.must()
				require.Equal(t, ring.StateLost, r.Refusal.Code)
				require.Equal(t, tip, r.Refusal.Commit)
				for _, s := range c.says {
					require.Contains(t, r.Refusal.Says, s)
				}
				require.Contains(t, r.Refusal.Hint, "trust accept "+tip.Short())
				require.Nil(t, r.Commit)
			}
			require.Empty(t, a.moves)
			refusal, err := w.accept(t.Context(), acceptance{sha: tip, actor: "root", reason: "looked at it"})
			require.NoError(t, err)
			require.Nil(t, refusal)
			require.Equal(t, tip, w.must().Commit.SHA)
			r := lookAt(t, o.follow(a, labelled(c.labels...))).must()
			require.Nil(t, r.Refusal, "a person's word outlives a restart")
		})
	}
	t.Run("the one that descends from both", func(t *testing.T) {
		a := &ledger{}
		require.Equal(t, tip, lookAt(t, o.follow(a, labelled(left, tip, base, right))).must().Commit.SHA)
		require.Equal(t, ring.ByLabels, a.anchor.How)
	})
}

func TestWhatTheRemoteGivesBackIsNoLongerLost(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	one := o.signed("one")
	two := o.commit("two", "-S") // made from, and not on the remote any more
	o.git(o.work, "push", "-q", "origin", string(one)+":main")
	w := lookAt(t, o.follow(a, labelled(two)))
	require.Equal(t, ring.StateLost, w.must().Refusal.Code)
	require.Empty(t, a.moves)
	o.push()
	r := w.must()
	require.Nil(t, r.Refusal)
	require.Equal(t, two, r.Commit.SHA)
}

func TestAnEngineThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	o, a := newOrigin(t), &ledger{}
	o.signed("one")
	two := o.signed("two")
	o.commit("laundered")
	o.signed("three")
	away, asked := errors.New("cannot connect to the engine"), 0
	w := lookAt(t, o.follow(a, func(c *Config) {
		c.Labels = func(context.Context) ([]ring.SHA, error) {
			asked++
			return []ring.SHA{two}, away
		}
	}))
	for range 3 {
		r := w.look(t.Context())
		require.ErrorIs(t, r.Err, away)
		require.Nil(t, r.Commit)
	}
	require.Empty(t, a.moves, "nothing is trusted before the engine answered")
	away = nil
	require.Equal(t, ring.Unsigned, w.must().Refusal.Code)
	require.Equal(t, two, a.anchor.SHA)
	w.must()
	require.Equal(t, 4, asked, "asked once it answered")
}

func TestAnOlderStateDirectoryGivesWayToLabelsItNeverHeardOf(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	one := o.signed("one")
	two := o.signed("two")
	three := o.signed("three")
	at := func(sha ring.SHA, known ...ring.SHA) *ledger {
		a := &ledger{anchor: ring.Anchor{Source: "prod", SHA: sha, How: "verified", Began: ring.Beginning{SHA: one, How: ring.ByIntroduction}}}
		for _, k := range known {
			a.good = append(a.good, ring.Verified{SHA: k})
		}
		return a
	}
	f := o.follow(&ledger{})
	lookAt(t, f).must()
	o.git(o.work, "reset", "-q", "--hard", string(two))
	o.push()

	// A backup that knows of one, containers of three, and a forge that serves two.
	a := at(one, one)
	r := lookAt(t, o.follow(a, inMirrorOf(f), labelled(one, three))).must()
	require.Equal(t, ring.StateLostRollback, r.Refusal.Code)
	require.Equal(t, three, a.anchor.SHA)
	require.Equal(t, ring.ByIntroduction, a.anchor.Began.How, "where trust began is not forgotten")

	// A person went back from three to one: the store knows of three.
	a = at(one, one, two, three)
	r = lookAt(t, o.follow(a, inMirrorOf(f), labelled(three))).must()
	require.Nil(t, r.Refusal)
	require.Equal(t, two, a.anchor.SHA)

	// Labels of a history that was given up say nothing to an anchor.
	o.git(o.work, "checkout", "-q", "--orphan", "fresh")
	fresh := o.signed("fresh")
	a = at(fresh, fresh)
	r = lookAt(t, o.follow(a, inMirrorOf(f), labelled(three, "no id"))).must()
	require.Nil(t, r.Refusal)
	require.Empty(t, a.moves)
}

// The furthest of a random history is the one that git says every other is an
// ancestor of.
func TestTheFurthestIsTheOneGitSaysAllOthersLeadTo(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	var all []ring.SHA
	for i := range 14 {
		if i > 2 && i%3 == 0 {
			y.checkout(all[i/2], fmt.Sprint("b", i))
		}
		if i > 4 && i%4 == 0 {
			all = append(all, y.merge("", string(all[i-3])))
			continue
		}
		all = append(all, y.commit("", noon, fmt.Sprint(i)))
	}
	ancestors := map[ring.SHA][]string{}
	for _, sha := range all {
		ancestors[sha] = strings.Fields(y.git("rev-list", string(sha)))
	}
	for mask := 1; mask < 1<<len(all); mask += 211 {
		var some []ring.SHA
		for i, sha := range all {
			if mask&(1<<i) != 0 {
				some = append(some, sha)
			}
		}
		some = distinct(some)
		want := ring.SHA("")
		for _, sha := range some {
			if !slices.ContainsFunc(some, func(other ring.SHA) bool { return !slices.Contains(ancestors[sha], string(other)) }) {
				want = sha
			}
		}
		got, err := furthest(y, some)
		require.NoError(t, err)
		require.Equal(t, want, got, "%v", some)
	}
}

// A mirror that cannot be read says nothing about labels: it is built anew, and
// never taken for a reason to begin again.
func TestADamagedMirrorIsNoReasonForAFirstUse(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	other := o.signed("one")
	label := o.signed("two")
	o.commit("laundered")
	o.signed("tip")
	for name, spoil := range map[string]func(f *Follower) []byte{
		"other bytes": func(*Follower) []byte { return []byte("no object at all") },
		"another's": func(f *Follower) []byte {
			b, err := os.ReadFile(looseIn(f, other))
			require.NoError(t, err)
			return b
		},
	} {
		f := o.follow(&ledger{})
		lookAt(t, f).must()
		f.mirror.rest()
		file := looseIn(f, label)
		require.NoError(t, os.Chmod(file, 0o600))
		require.NoError(t, os.WriteFile(file, spoil(f), 0o600))
		a := &ledger{}
		w := lookAt(t, o.follow(a, inMirrorOf(f), labelled(label)))
		var r ring.Report
		for range 4 {
			r = w.look(t.Context())
		}
		require.NoError(t, r.Err, name)
		require.NotNil(t, r.Refusal, "%s: taken for a first use", name)
		require.Equal(t, ring.Unsigned, r.Refusal.Code, name)
		require.Len(t, a.moves, 1)
		require.Equal(t, ring.ByLabels, a.moves[0].How)
	}
}

func looseIn(f *Follower, sha ring.SHA) string {
	return filepath.Join(f.cfg.Dir, "objects", string(sha[:2]), string(sha[2:]))
}

// TestALabelDoesNotTrustACommitThatThisHostRefused is a container that somebody else
// started with our labels, while the state is whole.
func TestALabelDoesNotTrustACommitThatThisHostRefused(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	one := o.signed("one")
	a := &ledger{}
	f := o.follow(a, labelled(one))
	w := lookAt(t, f)
	w.must()
	bad := o.commit("nobody signed it")
	o.push()
	require.Equal(t, ring.Unsigned, w.must().Refusal.Code)

	r := lookAt(t, o.follow(a, inMirrorOf(f), labelled(one, bad))).must() // after a restart
	require.NotNil(t, r.Refusal)
	require.Equal(t, ring.Unsigned, r.Refusal.Code)
	require.Equal(t, one, a.anchor.SHA)
	require.Equal(t, one, r.Commit.SHA)
}
