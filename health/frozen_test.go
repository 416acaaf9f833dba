package health

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// The process was stopped while it asked: its own timeout was over long before it went
// on, and the instance had no chance to answer.
func TestAFailureOfAProcessThatWasFrozenIsNotTheInstances(t *testing.T) {
	watch(t, nil, func(b *bench) {
		asked, began := 0, time.Now()
		b.ask = func(context.Context, ring.Instance, ring.Check) answer {
			if asked++; asked == 5 {
				time.Sleep(time.Minute)
				return failed("no answer within 2s")
			}
			return passed()
		}
		c := tcp("up", ring.Readiness, "")
		c.Failures = 1
		ps := probe("a", c)
		b.Watch(ps)
		b.after(90 * time.Second)
		require.Greater(t, asked, 5)
		h := b.Health()["a"]
		require.True(t, h.Ready)
		require.Less(t, h.Since.Sub(began), 30*time.Second, "it was ready all the time")
	})
}
