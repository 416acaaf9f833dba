package gitsync

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// reads counts the objects that are read, and does something at one of them.
type reads struct {
	Objects
	n, at int
	do    func()
}

func (r *reads) Raw(sha ring.SHA) (string, []byte, error) {
	if r.n++; r.n == r.at {
		r.do()
	}
	return r.Objects.Raw(sha)
}

func TestARangeStopsWithItsContextInWhateverMode(t *testing.T) {
	t.Parallel()
	const commits = 200
	y := newYard(t)
	m, root, tip := y.signedChain(commits)
	for _, mode := range []string{Strict, ForgeMerge, Tip, Disabled} {
		trust := y.trust(func(c *TrustConfig) { c.Mode = mode })
		whole := &reads{Objects: m}
		all, refusal, err := trust.Range(whole, root, tip, noon, nil)
		require.NoError(t, err)
		require.Nil(t, refusal)
		require.Len(t, all, commits)
		for _, part := range []int{1, whole.n / 2, whole.n - 1, whole.n} {
			ctx, cancel := context.WithCancel(t.Context())
			r := &reads{Objects: m, at: part, do: cancel}
			all, refusal, err := trust.RangeWith(Until(ctx, r), Aids{}, root, tip, noon, nil)
			require.Equal(t, part, r.n, "mode %s: it went on", mode)
			if part == whole.n { // nothing was left to be read
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, context.Canceled)
			require.Nil(t, refusal)
			require.Empty(t, all)
			cancel()
		}
	}
}

// patience is a context that is over when it was asked so many times.
type patience struct {
	context.Context
	asked, most int
}

func (p *patience) Err() error {
	if p.asked++; p.most > 0 && p.asked > p.most {
		return context.Canceled
	}
	return p.Context.Err()
}

// The daemon is stopped in the middle of a range of 2,000 commits: nothing came of
// it, and the next start verifies all of it.
func TestAStopInTheMiddleOfALongRangeDecidesNothing(t *testing.T) {
	t.Parallel()
	const commits = 2000
	y := newYard(t)
	m, root, tip := y.signedChain(commits)
	y.mirrorOf(m, tip)
	cfg := Config{
		Name: "prod", URL: "file://" + filepath.Join(y.dir, ".git"), Branch: "main", Poll: "60s",
		Trust: y.trust().cfg, Dir: filepath.Join(t.TempDir(), "git", "prod"),
	}
	look := func(a *ledger, most int) (*looker, ring.Report, int) {
		f, err := New(cfg, a, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		f.now = func() time.Time { return noon }
		defer f.mirror.rest()
		l := lookAt(t, f)
		p := &patience{Context: t.Context(), most: most}
		r := l.look(p)
		return l, r, p.asked
	}
	fresh := func() *ledger { return &ledger{anchor: ring.Anchor{Source: "prod", SHA: root, How: "verified"}} }
	first := fresh()
	_, r, asked := look(first, 0)
	require.NoError(t, r.Err)
	require.Len(t, first.good, commits)
	require.Greater(t, asked, 2*commits, "each commit is a chance to stop")
	for _, most := range []int{asked / 4, asked * 3 / 4} {
		a := fresh()
		l, r, n := look(a, most)
		require.ErrorIs(t, r.Err, context.Canceled)
		require.Less(t, n, most+10, "it went on")
		require.Equal(t, root, a.anchor.SHA)
		require.Empty(t, a.moves)
		require.Empty(t, a.good)
		require.Empty(t, a.events)
		require.Nil(t, l.refusal)
		require.False(t, l.settled)

		_, r, _ = look(a, 0) // the next start
		require.NoError(t, r.Err)
		require.Nil(t, r.Refusal)
		require.Equal(t, first.anchor.SHA, a.anchor.SHA)
		require.Equal(t, first.good, a.good)
	}
}
