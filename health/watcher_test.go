package health

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// bench is a Watcher in a bubble, with answers by check name.
type bench struct {
	*Watcher
	t     *testing.T
	stop  func()
	pokes atomic.Int32

	mu     sync.Mutex // guards what follows
	fails  map[string]bool
	asked  map[string][]time.Time
	saved  [][]ring.Streak
	refuse error
}

// watch runs a story in a bubble: begin is called before Run starts.
func watch(t *testing.T, loaded []ring.Streak, story func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, fails: map[string]bool{}, asked: map[string][]time.Time{}}
		b.Watcher = New(Options{Poke: func() { b.pokes.Add(1) }, Save: b.save}, loaded)
		b.ask = b.answer
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.Run(ctx) }()
		var once sync.Once
		b.stop = func() { once.Do(func() { cancel(); require.NoError(t, <-done) }) }
		defer b.stop()
		story(b)
	})
}

func (b *bench) save(rows []ring.Streak) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return b.refuse
	}
	b.saved = append(b.saved, rows)
	return nil
}

func (b *bench) answer(_ context.Context, in ring.Instance, c ring.Check) answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := in.ID + "/" + c.Name
	b.asked[key] = append(b.asked[key], time.Now())
	if b.fails[key] {
		return failed("it said no").printing("no database")
	}
	return passed()
}

func (b *bench) fail(key string, yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails[key] = yes
}

// times are when a check was asked, since the last call.
func (b *bench) times(key string) []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.asked[key]
	b.asked[key] = nil
	return out
}

func (b *bench) saves() [][]ring.Streak {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.saved
	b.saved = nil
	return out
}

func (b *bench) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func instance(id string) ring.Instance {
	return ring.Instance{ID: id, State: ring.StateRunning, Started: epoch, Addresses: map[string]string{"n": "10.0.0.2"}}
}

func probe(id string, checks ...ring.Check) []ring.Probe {
	in := instance(id)
	return []ring.Probe{{Instance: &in, Checks: checks}}
}

func tcp(name string, use ring.CheckFor, onFailure string) ring.Check {
	c := check(name, use, onFailure)
	c.TCP = &ring.TCPCheck{Port: 80}
	return c
}

func TestFirstProbeAtOnceThenByTheInterval(t *testing.T) {
	watch(t, nil, func(b *bench) {
		begin := time.Now()
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.after(0)
		require.Equal(t, []time.Time{begin}, b.times("a/up"))
		require.Equal(t, ring.Health{Ready: true, Since: begin.UTC()}, b.Health()["a"])
		last, gaps := begin, map[time.Duration]bool{}
		b.after(10 * time.Minute)
		for _, at := range b.times("a/up") {
			gap := at.Sub(last)
			require.GreaterOrEqual(t, gap, 4500*time.Millisecond)
			require.LessOrEqual(t, gap, 5500*time.Millisecond)
			last = at
			gaps[gap] = true
		}
		require.Greater(t, len(gaps), 50, "there is no jitter")
	})
}

func TestABootingInstanceIsAskedMoreOften(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.fail("a/up", true)
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.after(3 * time.Second)
		times := b.times("a/up")
		require.Len(t, times, 6, "at 0, 50, 150, 350, 750 and 1550 ms")
		require.Equal(t, 1550*time.Millisecond, times[5].Sub(times[0]))
		b.after(time.Minute)
		require.Less(t, len(b.times("a/up")), 16, "it never came back to its interval")
		b.fail("a/up", false)
		b.after(6 * time.Second)
		b.fail("a/up", true)
		b.times("a/up")
		b.after(time.Minute)
		require.LessOrEqual(t, len(b.times("a/up")), 14, "one that was ready before is not booting")
	})
}

func TestExecIsNotAskedMoreOften(t *testing.T) {
	watch(t, nil, func(b *bench) {
		c := check("up", ring.Readiness, "")
		c.Exec = []string{"true"}
		b.fail("a/up", true)
		b.Watch(probe("a", c))
		b.after(4 * time.Second)
		require.Len(t, b.times("a/up"), 1)
	})
}

func TestPokesAndSavesWhenAVerdictChanges(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.after(0)
		require.EqualValues(t, 1, b.pokes.Load())
		saves := b.saves()
		require.Len(t, saves, 1)
		require.Len(t, saves[0], 1)
		require.True(t, saves[0][0].Passing)
		require.Equal(t, "a", saves[0][0].Instance)
		require.Equal(t, epoch, saves[0][0].Started)

		b.after(time.Hour)
		require.EqualValues(t, 1, b.pokes.Load(), "an answer like the one before is no news")
		require.LessOrEqual(t, len(b.saves()), 2, "an idle host writes nothing")

		b.times("a/up")
		b.fail("a/up", true)
		for asked := 0; asked < 2; asked += len(b.times("a/up")) {
			b.after(100 * time.Millisecond)
		}
		require.EqualValues(t, 1, b.pokes.Load(), "two failures of three")
		require.True(t, b.Health()["a"].Ready)
		b.saves()
		b.after(6 * time.Second)
		require.EqualValues(t, 2, b.pokes.Load())
		require.Equal(t, ring.Health{Failing: true, Reason: "readiness check up: it said no"}, b.Health()["a"])
		saves = b.saves()
		require.NotEmpty(t, saves)
		require.False(t, saves[len(saves)-1][0].Passing)
		b.after(time.Minute)
		require.EqualValues(t, 2, b.pokes.Load(), "still not ready is no news")
	})
}

func TestSavesAtMostEveryTenSecondsWithoutAVerdict(t *testing.T) {
	watch(t, nil, func(b *bench) {
		c := tcp("up", ring.Readiness, "")
		c.Interval, c.Failures = time.Second, 100
		b.Watch(probe("a", c))
		b.after(0)
		b.saves()
		for i := range 60 { // it flaps below its threshold
			b.fail("a/up", i%2 == 0)
			b.after(time.Second)
		}
		n := len(b.saves())
		require.GreaterOrEqual(t, n, 4)
		require.LessOrEqual(t, n, 6)
	})
}

func TestWhatCannotBeSavedIsSavedLater(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.mu.Lock()
		b.refuse = errors.New("disk full")
		b.mu.Unlock()
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.after(25 * time.Second)
		require.Empty(t, b.saves())
		b.mu.Lock()
		b.refuse = nil
		b.mu.Unlock()
		b.after(11 * time.Second)
		require.Len(t, b.saves(), 1)
	})
}

func TestWhatIsUnsavedIsSavedAtTheEnd(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.after(0)
		b.saves()
		b.fail("a/up", true)
		b.after(5600 * time.Millisecond) // one failure: no verdict, and not 10 s yet
		require.Empty(t, b.saves())
		b.stop()
		saves := b.saves()
		require.Len(t, saves, 1)
		require.False(t, saves[0][0].Last)
	})
}

func TestLoadedStreaksContinue(t *testing.T) {
	old := ring.Streak{Instance: "a", Check: "up", Started: epoch, Passing: true, Since: epoch.Add(time.Second), Count: 7, Last: true, At: at(60)}
	t.Run("for the same start", func(t *testing.T) {
		// The bubble's clock begins in 2000; the streak has to be older.
		old := old
		old.Since = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)
		watch(t, []ring.Streak{old}, func(b *bench) {
			b.Watch(probe("a", tcp("up", ring.Readiness, "")))
			require.Equal(t, ring.Health{Ready: true, Since: old.Since}, b.Health()["a"])
			b.after(6 * time.Second)
			require.Equal(t, ring.Health{Ready: true, Since: old.Since}, b.Health()["a"])
			require.Zero(t, b.pokes.Load(), "nothing changed")
		})
	})
	t.Run("not for another start", func(t *testing.T) {
		watch(t, []ring.Streak{old}, func(b *bench) {
			ps := probe("a", tcp("up", ring.Readiness, ""))
			ps[0].Instance.Started = epoch.Add(time.Hour)
			b.fail("a/up", true)
			b.Watch(ps)
			require.False(t, b.Health()["a"].Ready)
		})
	})
	t.Run("one from the future counts from now", func(t *testing.T) {
		watch(t, []ring.Streak{old}, func(b *bench) {
			b.Watch(probe("a", tcp("up", ring.Readiness, "")))
			require.Equal(t, ring.Health{Ready: true, Since: time.Now().UTC()}, b.Health()["a"])
		})
	})
}

func TestARestartBeginsAnew(t *testing.T) {
	watch(t, nil, func(b *bench) {
		ps := probe("a", tcp("up", ring.Readiness, ""))
		b.Watch(ps)
		b.after(0)
		require.True(t, b.Health()["a"].Ready)
		b.fail("a/up", true)
		ps[0].Instance.Started = epoch.Add(time.Hour)
		b.Watch(ps)
		require.False(t, b.Health()["a"].Ready)
		require.Equal(t, "readiness check up: no answer yet", b.Health()["a"].Reason)
		b.after(0)
		require.Equal(t, "readiness check up: it said no", b.Health()["a"].Reason)
	})
}

func TestALateAnswerIsNotAboutTheNextStart(t *testing.T) {
	watch(t, nil, func(b *bench) {
		gate := make(chan struct{})
		b.ask = func(_ context.Context, in ring.Instance, _ ring.Check) answer {
			if in.Started.Equal(epoch) {
				<-gate
				return passed()
			}
			return failed("it said no")
		}
		ps := probe("a", tcp("up", ring.Readiness, ""))
		b.Watch(ps)
		b.after(0)
		ps[0].Instance.Started = epoch.Add(time.Hour)
		b.Watch(ps)
		b.after(0)
		close(gate)
		b.after(0)
		require.Equal(t, ring.Health{Reason: "readiness check up: it said no"}, b.Health()["a"])
	})
}

func TestLivenessWaitsForStartup_Lesson8(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.fail("a/boot", true)
		b.fail("a/alive", true)
		b.Watch(probe("a", tcp("boot", ring.Startup, ""), tcp("up", ring.Readiness, ""), tcp("alive", ring.Liveness, "restart")))
		b.after(10 * time.Minute)
		require.Empty(t, b.times("a/alive"), "asked while it starts")
		require.False(t, b.Health()["a"].Unlive)
		b.fail("a/boot", false)
		b.after(30 * time.Second)
		require.True(t, b.Health()["a"].Unlive)
		require.Equal(t, "restart", b.Health()["a"].Act)
		b.times("a/boot")
		b.after(time.Minute)
		require.Empty(t, b.times("a/boot"), "a startup check is done when it passed")
	})
}

func TestWithoutAStartupCheckLivenessWaitsForReadiness(t *testing.T) {
	both := []ring.Check{tcp("up", ring.Readiness, ""), tcp("alive", ring.Liveness, "restart")}
	watch(t, nil, func(b *bench) {
		b.fail("a/up", true)
		b.fail("a/alive", true)
		b.Watch(probe("a", both...))
		b.after(110 * time.Second)
		require.Empty(t, b.times("a/alive"), "a slow boot was asked for life")
		b.after(10 * time.Second)
		b.after(30 * time.Second)
		require.True(t, b.Health()["a"].Unlive, "one that hangs while it starts stays for ever")
	})
	watch(t, nil, func(b *bench) {
		b.Watch(probe("a", both...))
		b.after(6 * time.Second)
		require.NotEmpty(t, b.times("a/alive"))
		b.fail("a/up", true)
		b.fail("a/alive", true)
		b.after(30 * time.Second)
		require.True(t, b.Health()["a"].Unlive, "it was alive, and is no longer")
	})
	watch(t, nil, func(b *bench) {
		b.fail("a/alive", true)
		b.Watch(probe("a", both[1]))
		b.after(16 * time.Second)
		require.True(t, b.Health()["a"].Unlive, "there is nothing to wait for")
	})
}

func TestTheEnginesOwnVerdict(t *testing.T) {
	docker := ring.Check{Name: "docker", For: ring.Readiness, Docker: true}
	watch(t, nil, func(b *bench) {
		look := func(word string) ring.Health {
			ps := probe("a", docker)
			ps[0].Instance.Health = word
			b.Watch(ps)
			return b.Health()["a"]
		}
		require.Equal(t, "readiness check docker: the container's HEALTHCHECK has not passed yet", look("starting").Reason)
		b.after(3 * time.Second)
		ready := look("healthy")
		require.Equal(t, ring.Health{Ready: true, Since: time.Now().UTC()}, ready)
		require.EqualValues(t, 1, b.pokes.Load())
		b.after(time.Minute)
		require.Equal(t, ready, look("healthy"))
		require.EqualValues(t, 1, b.pokes.Load())
		b.saves()
		require.Equal(t, ring.Health{Failing: true, Reason: "readiness check docker: the container's HEALTHCHECK fails"}, look("unhealthy"))
		b.after(0)
		require.Len(t, b.saves(), 1)
		require.Empty(t, b.times("a/docker"), "nobody asks the instance")
	})
	watch(t, nil, func(b *bench) {
		life := docker
		life.For, life.OnFailure, life.Failures = ring.Liveness, "restart", 3
		ps := probe("a", life)
		ps[0].Instance.Health = "unhealthy"
		b.Watch(ps)
		require.True(t, b.Health()["a"].Unlive, "the engine has counted already")
	})
}

func TestWhatSaysNothingChangesNothing(t *testing.T) {
	watch(t, nil, func(b *bench) {
		away := atomic.Bool{}
		b.ask = func(context.Context, ring.Instance, ring.Check) answer {
			if away.Load() {
				return unknown("exec true could not be run")
			}
			return passed()
		}
		c := check("up", ring.Readiness, "")
		c.Exec = []string{"true"}
		away.Store(true)
		b.Watch(probe("a", c))
		b.after(time.Minute)
		require.Equal(t, ring.Health{Reason: "readiness check up: exec true could not be run"}, b.Health()["a"])
		away.Store(false)
		b.after(6 * time.Second)
		ready := b.Health()["a"]
		require.True(t, ready.Ready)
		away.Store(true)
		b.after(time.Hour)
		require.Equal(t, ready, b.Health()["a"])
	})
}

func TestOneSlowInstanceDelaysNoOther_LessonU14(t *testing.T) {
	watch(t, nil, func(b *bench) {
		usual := b.ask
		b.ask = func(ctx context.Context, in ring.Instance, c ring.Check) answer {
			if in.ID == "slow" {
				<-ctx.Done()
			}
			return usual(ctx, in, c)
		}
		b.Watch(append(probe("slow", tcp("up", ring.Readiness, "")), probe("fast", tcp("up", ring.Readiness, ""))...))
		b.after(0)
		require.True(t, b.Health()["fast"].Ready)
		require.False(t, b.Health()["slow"].Ready)
	})
}

func TestChecksChangeInPlace(t *testing.T) {
	watch(t, nil, func(b *bench) {
		up, warm := tcp("up", ring.Readiness, ""), tcp("warm", ring.Readiness, "")
		b.Watch(probe("a", up))
		b.after(0)
		ready := b.Health()["a"]
		slower := up
		slower.Interval = time.Minute
		b.Watch(probe("a", slower))
		require.Equal(t, ready, b.Health()["a"], "another interval is the same check")
		b.after(10 * time.Second)
		b.times("a/up")
		b.after(10 * time.Minute)
		require.LessOrEqual(t, len(b.times("a/up")), 12)
		b.Watch(probe("a", slower, warm))
		require.True(t, b.Health()["a"].Ready)
		b.after(0)
		require.True(t, b.Health()["a"].Ready)
		b.Watch(probe("a", warm))
		b.after(10 * time.Minute)
		b.times("a/up")
		b.after(10 * time.Minute)
		require.Empty(t, b.times("a/up"), "a check that is gone is still asked")
	})
}

func TestWatchingNothingEndsEveryGoroutine(t *testing.T) {
	watch(t, nil, func(b *bench) {
		synctest.Wait()
		idle := runtime.NumGoroutine()
		var ps []ring.Probe
		for i := range 100 {
			ps = append(ps, probe(fmt.Sprint(i), tcp("up", ring.Readiness, ""), tcp("alive", ring.Liveness, ""))...)
		}
		b.Watch(ps)
		b.after(10 * time.Second)
		require.Len(t, b.Health(), 100)
		const others = 20 // the runtime starts and ends some of its own
		require.InDelta(t, idle+200, runtime.NumGoroutine(), others)
		b.Watch(nil)
		b.after(0)
		require.InDelta(t, idle, runtime.NumGoroutine(), others)
		require.Empty(t, b.Health())
	})
}

func TestACheckThatIsWantedBackAtOnceIsAskedOn(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.after(0)
		b.Watch(nil)
		_, _, turn := b.turn(probeKey{instance: "a", check: "up", started: epoch.UnixNano()}) // its time comes now, before Run wakes
		require.Equal(t, wait, turn, "Run still counts its goroutine")
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.times("a/up")
		b.after(time.Minute)
		require.NotEmpty(t, b.times("a/up"))
	})
}

func TestManyIdleInstancesCostLittle(t *testing.T) {
	var before, after runtime.MemStats
	watch(t, nil, func(b *bench) {
		runtime.GC()
		runtime.ReadMemStats(&before)
		var ps []ring.Probe
		for i := range 300 {
			ps = append(ps, probe(fmt.Sprint(i), tcp("up", ring.Readiness, ""))...)
		}
		b.ask = func(context.Context, ring.Instance, ring.Check) answer { return passed() }
		b.Watch(ps)
		b.after(time.Minute)
		runtime.GC()
		runtime.ReadMemStats(&after)
	})
	used := int64(after.HeapAlloc+after.StackInuse) - int64(before.HeapAlloc+before.StackInuse)
	require.Less(t, used, int64(6<<20), "300 instances hold %d KiB", used>>10)
}

func TestWhatACheckPrintedStandsUntilItPasses(t *testing.T) {
	watch(t, nil, func(b *bench) {
		b.Watch(probe("a", tcp("up", ring.Readiness, "")))
		b.fail("a/up", true)
		b.after(time.Minute)
		require.Equal(t, map[string]string{"up": "no database"}, b.Printed("a"))
		require.Empty(t, b.Printed("b"))
		b.fail("a/up", false)
		b.after(time.Minute)
		require.Empty(t, b.Printed("a"))
		b.fail("a/up", true)
		b.after(time.Minute)
		b.Watch(probe("a", tcp("other", ring.Readiness, "")))
		require.Empty(t, b.Printed("a"), "a check that there is no more says nothing")
	})
}
