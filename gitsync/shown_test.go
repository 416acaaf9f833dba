package gitsync

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// shower shows what a yard has, as a host does that accepted all of it.
func (y *yard) shower(trust *Trust, want Wanted) *showing {
	return &showing{
		trust: trust, o: y, want: want, now: noon, head: y.aids().Head,
		standing: func(ring.SHA) (ring.Standing, error) { return ring.OwnSignature, nil },
		accepted: func(ring.SHA) (bool, error) { return true, nil },
	}
}

// judgedAlone is what somebody finds who has nothing but what was shown.
func judgedAlone(t *testing.T, trust *Trust, s Shown, tip ring.SHA) ([]ring.Verified, *ring.Refusal) {
	t.Helper()
	given, refusal := NewGiven(s.Objects)
	require.Nil(t, refusal)
	all, refusal, err := trust.RangeWith(given, AidsAlone(given, s.Heads), s.From, tip, noon, nil)
	require.NoError(t, err)
	return all, refusal
}

func TestWhatIsShownIsEnoughToJudge(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	first := y.edit("alice", "first", map[string]string{"web/compose.yaml": "services: {}\n"})
	for i := range 5 {
		y.edit("alice", "more", map[string]string{"web/n": fmt.Sprint(i)})
	}
	tip := y.head()
	read := 0
	s, err := y.shower(y.trust(), Wanted{Commit: tip, Read: func(c *ring.Commit) error {
		f, err := c.Tree.Open("web/compose.yaml")
		if err == nil {
			read++
			err = f.Close()
		}
		return err
	}}).way(t.Context(), first, "introduction")
	require.NoError(t, err)
	require.Equal(t, 1, read)
	require.Equal(t, first, s.From)
	require.Equal(t, "introduction", s.How)
	require.Empty(t, s.LeftOut)
	require.Equal(t, 5, s.Commits)
	all, refusal := judgedAlone(t, y.trust(), s, tip)
	require.Nil(t, refusal)
	require.Len(t, all, 5)
	given, _ := NewGiven(s.Objects)
	c, err := given.Commit(ring.Verified{SHA: tip})
	require.NoError(t, err)
	_, err = c.Tree.Open("web/compose.yaml")
	require.NoError(t, err)
	_, err = c.Tree.Open("web/n")
	require.Error(t, err, "nobody read it, so it is not shown")
}

// A way that is too long begins later, says so, and is judged from there.
func TestAWayThatIsTooLongBeginsLaterAndSaysSo(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	first := y.commit("alice", noon.Add(-time.Hour), "first")
	for i := range 30 {
		y.commit("alice", noon.Add(time.Duration(i-31)*time.Minute), fmt.Sprint(i))
	}
	tip := y.head()
	most := 12
	s, err := y.shower(y.trust(), Wanted{Commit: tip, Fits: func(all []Object, _ int) bool { return len(all) <= most }}).way(t.Context(), first, "introduction")
	require.NoError(t, err)
	require.LessOrEqual(t, len(s.Objects), most)
	require.Greater(t, s.Commits, 3)
	require.NotEqual(t, first, s.From)
	require.Empty(t, s.How, "that is of where trust began")
	require.Contains(t, s.LeftOut, "too large")
	all, refusal := judgedAlone(t, y.trust(), s, tip)
	require.Nil(t, refusal)
	require.Len(t, all, s.Commits)

	_, err = y.shower(y.trust(), Wanted{Commit: tip, Fits: func([]Object, int) bool { return false }}).way(t.Context(), first, "introduction")
	require.ErrorContains(t, err, "alone are larger")
}

// A landing whose head is gone cannot be shown, so the way begins after it, with what stands
// alone.
func TestAWayBeginsAfterALandingWhoseHeadIsGone(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	first := y.edit("alice", "first", map[string]string{"a": "1"})
	landed := func(n int) ring.SHA {
		y.branch(fmt.Sprint("work", n), y.head())
		head := y.edit("alice", "work", map[string]string{fmt.Sprint("b", n): "b"})
		y.back()
		y.pull(n, head)
		return y.squash("", head, fmt.Sprintf("Work (#%d)", n))
	}
	gone := landed(1)
	on := y.edit("alice", "on top", map[string]string{"a": "2"})
	tip := landed(2)
	y.git("update-ref", "-d", "refs/pull/1/head")
	trust := y.trust(forgeMerge)
	s, err := y.shower(trust, Wanted{Commit: tip}).way(t.Context(), first, "introduction")
	require.NoError(t, err)
	require.Equal(t, on, s.From)
	require.Contains(t, s.LeftOut, gone.Short())
	all, refusal := judgedAlone(t, trust, s, tip)
	require.Nil(t, refusal)
	require.Len(t, all, 1)
	require.True(t, all[0].Landed)

	// It is the commit itself: then there is nothing to show.
	y.git("update-ref", "-d", "refs/pull/2/head")
	_, err = y.shower(trust, Wanted{Commit: tip}).way(t.Context(), first, "introduction")
	refused, ok := err.(*ring.Refusal) //nolint:errorlint // as it is given back
	require.True(t, ok, "%v", err)
	require.Equal(t, ring.HeadUnavailable, refused.Code)
}

// Commits that would not pass by the keys of now are shown all the same, and told of.
func TestWhoLeftSinceIsADoubtAndNoEnd(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	first := y.commit("alice", noon, "first")
	y.key("bob")
	by := y.commit("bob", noon, "by bob, who left")
	tip := y.commit("alice", noon, "on top")
	s, err := y.shower(y.trust(), Wanted{Commit: tip}).way(t.Context(), first, "introduction")
	require.NoError(t, err)
	require.Equal(t, first, s.From)
	require.Len(t, s.Doubts, 1)
	require.Equal(t, by, s.Doubts[0].Commit)
	_, refusal := judgedAlone(t, y.trust(), s, tip)
	require.Equal(t, ring.UnknownSigner, refusal.Code)
}

func TestACommitWasThereWhenASignedOneWasBuiltOnIt(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.allow("bob", `valid-before="20250610"`)
	anchor := y.commit("alice", noon.Add(-20*day), "anchor")
	early := y.commit("bob", noon.Add(-10*day), "in time")
	on := y.commit("alice", noon.Add(-9*day), "built on it in time")
	late := y.commit("bob", noon.Add(-8*day), "dated in time, and built on late")
	tip := y.commit("alice", noon.Add(-1*day), "built on it late")
	seen, refusal, err := y.trust().SeenBefore(y, anchor, tip, noon)
	require.NoError(t, err)
	require.Nil(t, refusal)
	for _, tt := range []struct {
		of   ring.SHA
		want time.Time
	}{{early, noon.Add(-9 * day)}, {on, noon.Add(-1 * day)}, {late, noon.Add(-1 * day)}, {tip, noon}} {
		require.Equal(t, tt.want, seen(tt.of).UTC(), tt.of)
	}
	_, refusal, err = y.trust().Range(y, anchor, tip, noon, seen)
	require.NoError(t, err)
	require.Equal(t, ring.KeyExpiredFirstSeen, refusal.Code)
	require.Equal(t, late, refusal.Commit)
}
