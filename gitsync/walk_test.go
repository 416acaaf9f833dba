package gitsync

import (
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// history holds commits that exist in memory only, for histories git would take
// minutes to make.
type history map[ring.SHA][]byte

func (m history) Raw(sha ring.SHA) (string, []byte, error) {
	if b, ok := m[sha]; ok {
		return "commit", b, nil
	}
	return "", nil, fmt.Errorf("cannot read %s: %w", sha, ErrMissing)
}

const noTree = ring.SHA("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

func (m history) add(when time.Time, text string, parents ...ring.SHA) ring.SHA {
	d := plain(noTree, when, parents...)
	d.text = text
	b := []byte(d.payload())
	sha, _ := objectHash("commit", b)
	m[sha] = b
	return sha
}

// chain is n commits on top of base, a second apart.
func (m history) chain(base ring.SHA, from time.Time, n int) ring.SHA {
	for i := range n {
		var parents []ring.SHA
		if base != "" {
			parents = []ring.SHA{base}
		}
		base = m.add(from.Add(time.Duration(i)*time.Second), fmt.Sprintln("commit", i), parents...)
	}
	return base
}

func TestV53ARangeThatIsTooLargeIsRefusedInBoundedTime(t *testing.T) {
	m := history{}
	anchor := m.chain("", noon.Add(-30*day), 1)
	full := m.chain(anchor, noon.Add(-20*day), DefaultMaxRange)
	over := m.add(noon, "one too many\n", full)
	far := m.chain(over, noon, 30_000)
	trust, err := LoadTrust(TrustConfig{Mode: Disabled}, "prod", "main")
	require.NoError(t, err)

	all, refusal, err := trust.Range(m, anchor, full, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Len(t, all, DefaultMaxRange)

	for name, tip := range map[string]ring.SHA{"by one": over, "by far": far} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		reads := counted{Objects: m}
		_, refusal, err = trust.Range(&reads, anchor, tip, noon, nil)
		require.NoError(t, err, name)
		require.Equal(t, ring.RangeTooLarge, refusal.Code, name)
		require.Contains(t, refusal.Says, "10000", name)
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, reads.n, DefaultMaxRange+maxSkew+10, name)
		require.Less(t, time.Since(began), 20*time.Second, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(128<<20), name)
	}
}

type counted struct {
	Objects
	n int
}

func (c *counted) Raw(sha ring.SHA) (string, []byte, error) { c.n++; return c.Objects.Raw(sha) }

func TestAStepForwardReadsNothingBehindTheAnchor(t *testing.T) {
	m := history{}
	anchor := m.chain("", noon.Add(-30*day), 2_000)
	tip := m.add(noon, "new\n", anchor)
	reads := counted{Objects: m}
	ids, refusal, err := between(&reads, anchor, tip, 10)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Equal(t, []ring.SHA{tip}, ids)
	require.LessOrEqual(t, reads.n, 3)
}

func TestAMergeOfABranchForkedLongBeforeTheAnchorCountsTheBranchAlone(t *testing.T) {
	m := history{}
	fork := m.chain("", noon.Add(-30*day), 50)
	anchor := m.chain(fork, noon.Add(-20*day), 500)
	side := m.chain(fork, noon.Add(-10*day), 3)
	tip := m.add(noon, "merge\n", anchor, side)
	ids, refusal, err := between(m, anchor, tip, 10)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Len(t, ids, 4)
	require.Equal(t, tip, ids[3])
}

func TestHistoryBehindTheAnchorNeedNotKeepTheGrammar(t *testing.T) {
	m := history{}
	junk := []byte("tree nonsense\n\n\n")
	sha, _ := objectHash("commit", junk)
	m[sha] = junk
	anchor := m.add(noon.Add(-time.Hour), "anchor\n", sha)
	tip := m.add(noon, "tip\n", anchor)
	trust, err := LoadTrust(TrustConfig{Mode: Disabled}, "prod", "main")
	require.NoError(t, err)
	all, refusal, err := trust.Range(m, anchor, tip, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.Len(t, all, 1)
	_, refusal, err = trust.Range(m, "", anchor, noon, nil)
	require.NoError(t, err)
	require.Nil(t, refusal, "first use looks at the tip alone")
}

func TestMinCommitIsLookedForOnce(t *testing.T) {
	m := history{}
	floor := m.chain("", noon.Add(-30*day), 5)
	anchor := m.chain(floor, noon.Add(-20*day), 300)
	trust, err := LoadTrust(TrustConfig{Mode: Disabled, MinCommit: floor}, "prod", "main")
	require.NoError(t, err)
	reads := counted{Objects: m}
	for i := range 3 {
		tip := m.chain(anchor, noon.Add(time.Duration(i)*time.Hour), 1)
		_, refusal, err := trust.Range(&reads, anchor, tip, noon.Add(day), nil)
		require.NoError(t, err)
		require.Nil(t, refusal)
		anchor = tip
	}
	require.Less(t, reads.n, 330)
}

// reach is everything a commit reaches, found without the walk.
func reach(parents map[ring.SHA][]ring.SHA, from ring.SHA) map[ring.SHA]bool {
	all, todo := map[ring.SHA]bool{}, []ring.SHA{from}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !all[id] {
			all[id] = true
			todo = append(todo, parents[id]...)
		}
	}
	return all
}

func TestARangeIsWhatTipReachesAndAnchorDoesNot(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	counts := map[ring.Code]int{}
	for i := range 3_000 {
		m, parents := history{}, map[ring.SHA][]ring.SHA{}
		var ids []ring.SHA
		clocks := i%3 == 0 // a third has clocks that are wrong by weeks
		for n := range 2 + r.Intn(30) {
			var of []ring.SHA
			for k := r.Intn(4); k > 0 && len(ids) > 0; k-- {
				if p := ids[max(0, len(ids)-1-r.Intn(8))]; !slices.Contains(of, p) {
					of = append(of, p)
				}
			}
			when := noon.Add(time.Duration(n) * time.Hour)
			if clocks {
				when = when.Add(time.Duration(r.Intn(60)-30) * day)
			}
			id := m.add(when, fmt.Sprintln(i, n), of...)
			parents[id] = of
			ids = append(ids, id)
		}
		anchor, tip := ids[r.Intn(len(ids))], ids[r.Intn(len(ids))]
		if anchor == tip {
			continue
		}
		old, all := reach(parents, anchor), reach(parents, tip)
		got, refusal, err := between(m, anchor, tip, 1000)
		require.NoError(t, err)
		var want ring.Code
		switch {
		case old[tip]:
			want = ring.Rollback
		case !all[anchor]:
			want = ring.NonFastForward
		}
		counts[want]++
		if want != "" {
			require.NotNil(t, refusal)
			require.Equal(t, want, refusal.Code)
			continue
		}
		require.Nil(t, refusal)
		at := map[ring.SHA]int{}
		for k, id := range got {
			require.NotContains(t, at, id)
			at[id] = k
			require.False(t, old[id], "a commit behind the anchor is in the range")
		}
		for id := range all {
			_, in := at[id]
			require.Equal(t, !old[id], in, "a commit of the range is left out")
		}
		for id, k := range at {
			for _, p := range parents[id] {
				if _, in := at[p]; in {
					require.Less(t, at[p], k, "a child comes before its parent")
				}
			}
		}
	}
	for _, code := range []ring.Code{"", ring.Rollback, ring.NonFastForward} {
		require.Greater(t, counts[code], 100, "too few of %q to mean anything", code)
	}
}
