package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestEqualAnswersInARowAreOneLine(t *testing.T) {
	var kept []ring.Result
	watch(t, nil, func(b *bench) {
		b.opts.Keep = func(rs []ring.Result) error { kept = append(kept, rs...); return nil }
		begin := time.Now().UTC()
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.after(time.Hour)
		require.LessOrEqual(t, len(kept), 8, "a check that passes costs a write in ten minutes")
		require.NotEmpty(t, kept)
		for _, r := range kept {
			require.Equal(t, begin, r.First)
			require.True(t, r.OK)
		}
		b.fail("a/up", true)
		b.after(time.Minute)
		last := kept[len(kept)-1]
		require.False(t, last.OK)
		require.Equal(t, "it said no", last.Says)
		kept = nil
		b.stop()
		require.Len(t, kept, 1, "at the end what only grew is written too")
		require.Equal(t, last.First, kept[0].First)
		require.Greater(t, kept[0].Count, last.Count)
	})
}

func TestTheLastLineOfAnInstanceThatWentIsNotLost(t *testing.T) {
	var kept []ring.Result
	watch(t, nil, func(b *bench) {
		b.opts.Keep = func(rs []ring.Result) error { kept = append(kept, rs...); return nil }
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.after(time.Minute)
		kept = nil
		b.Watch(nil)
		b.after(10 * time.Second)
		require.Len(t, kept, 1)
		require.Greater(t, kept[0].Count, 10)
		kept = nil
		b.after(time.Hour)
		require.Empty(t, kept)
	})
}
