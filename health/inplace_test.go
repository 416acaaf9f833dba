package health

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// asking is a readiness check that asks for a path.
func asking(name, path string) ring.Check {
	c := check(name, ring.Readiness, "")
	c.HTTP = &ring.HTTPCheck{Port: 80, Path: path}
	return c
}

func TestAnEditedCheckOfAReadyInstanceStaysGreenUntilItFailedAsOftenAsItsThreshold(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.Watch(probe("a", asking("up", "/old")))
		b.after(time.Minute)
		ready := b.Health()["a"]
		require.True(t, ready.Ready)
		b.times("a/up")

		edited := asking("up", "/new")
		b.fail("a/up", true)
		edited.Interval = 10 * time.Second
		begin := time.Now()
		b.Watch(probe("a", edited))
		require.Equal(t, ready, b.Health()["a"], "nothing is known of the new one yet")
		b.after(0)
		require.Equal(t, []time.Time{begin}, b.times("a/up"), "it is asked at once, whatever the old one's interval was")
		require.True(t, b.Health()["a"].Ready, "one failure of three")
		b.after(25 * time.Second)
		require.False(t, b.Health()["a"].Ready, "its streak is its own: three failures of its own are enough")
		require.Contains(t, b.Health()["a"].Reason, "it said no")
	})
}

func TestAnEditedCheckOfAReadyInstanceThatPassesKeepsSinceWhen(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.Watch(probe("a", asking("up", "/old")))
		b.after(time.Minute)
		since := b.Health()["a"].Since
		b.Watch(probe("a", asking("up", "/new")))
		b.after(time.Minute)
		require.Equal(t, ring.Health{Ready: true, Since: since}, b.Health()["a"])
	})
}

func TestAnEditedCheckOfAnInstanceThatIsNotReadyBeginsAnew(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.fail("a/up", true)
		b.Watch(probe("a", asking("up", "/old")))
		b.after(time.Minute)
		require.False(t, b.Health()["a"].Ready)
		b.fail("a/up", false)
		b.Watch(probe("a", asking("up", "/new")))
		require.False(t, b.Health()["a"].Ready, "not before it answered")
		b.after(0)
		require.True(t, b.Health()["a"].Ready, "it is asked at once")
	})
}

func TestACheckThatWasEditedWhileNoDaemonRanDoesNotTakeOverFailures(t *testing.T) {
	old := asking("up", "/old")
	loaded := ring.Streak{Instance: "a", Check: "up", Started: epoch, Asks: asksOf(old), Count: 2, At: epoch, Says: "x"}
	watch(t, []ring.Streak{loaded}, func(b *bench) {
		b.fail("a/up", true)
		b.Watch(probe("a", asking("up", "/new")))
		b.after(0)
		b.stop()
		saves := b.saves()
		require.Len(t, saves, 1)
		require.Equal(t, 1, saves[0][0].Count, "two failures of the old one do not count")
	})
}

func TestTheFirstChecksOfAnInstanceThatServesDoNotTakeItOut(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.fail("a/up", true)
		p := probe("a", asking("up", "/"))
		p[0].Ready = epoch
		b.Watch(p)
		require.Equal(t, ring.Health{Ready: true, Since: epoch}, b.Health()["a"])
		b.after(0)
		require.True(t, b.Health()["a"].Ready, "one failure of three")
		b.after(time.Minute)
		require.False(t, b.Health()["a"].Ready)
	})
}

func TestALivenessCheckThatIsNewBeginsWithNothing(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.after(time.Minute)
		b.fail("a/alive", true)
		b.Watch(probe("a", tcp("up", ring.Readiness, ""), tcp("alive", ring.Liveness, "restart")))
		b.after(0)
		require.False(t, b.Health()["a"].Unlive, "one failure of three")
		b.after(time.Minute)
		require.True(t, b.Health()["a"].Unlive)
	})
}
