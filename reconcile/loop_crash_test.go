package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// crashAll ends what runs of a service.
func crashAll(h *host, app string) {
	h.with(func() {
		for _, b := range h.engine.boxes {
			if b.App == app && b.running() {
				b.Policy = "no"
				h.engine.exit(b, 1)
			}
		}
	})
}

// startedWithin says how long it takes until a service runs again; limit when it
// takes longer.
func startedWithin(h *host, app string, limit time.Duration) time.Duration {
	for d := time.Duration(0); d < limit; d += 50 * time.Millisecond {
		up := false
		h.with(func() {
			for _, b := range h.engine.boxes {
				up = up || b.App == app && b.running()
			}
		})
		if up {
			return d
		}
		time.Sleep(50 * time.Millisecond)
	}
	return limit
}

func TestLoopSeesACrashWithinASecondOfItsEvent_LessonU24(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(12 * time.Second)
		crashAll(h, "web")
		l.Poke() // as the event does
		if d := startedWithin(h, "web", time.Minute); d > time.Second {
			t.Errorf("it runs again after %s", d)
		}
	})
}

func TestLoopSeesACrashWithoutEvents_Lesson21(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(12 * time.Second)
		crashAll(h, "web")
		if d := startedWithin(h, "web", time.Minute); d > fullLook+time.Second {
			t.Errorf("it runs again after %s", d)
		}
	})
}

// A log driver that never answers delays the restart by its bound, and that of
// nobody else.
func TestLoopRestartsThoughNoLogCanBeRead_LessonU14(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1", "db=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(12 * time.Second)
		h.with(func() { h.hangs = func(a ring.Action) bool { return a.Kind == ring.DoLog && a.App == "web" } })
		crashAll(h, "web")
		crashAll(h, "db")
		l.Poke()
		if d := startedWithin(h, "db", time.Minute); d > time.Second {
			t.Errorf("the other one runs again after %s", d)
		}
		if d := startedWithin(h, "web", time.Minute); d > logWithin+time.Second {
			t.Errorf("it runs again after %s", d)
		}
	})
}

// heard are the ends, starts, removals and readings of logs on a host, in order.
func heard(h *host) *[]string {
	var out []string
	h.with(func() {
		h.takes = func(a ring.Action) time.Duration {
			if a.Kind == ring.DoLog {
				return 3 * time.Second
			}
			return 200 * time.Millisecond
		}
		h.engine.told = func(kind, _ string, _ *box) {
			switch kind {
			case "exit", "run", "log", "remove":
				out = append(out, kind)
			}
		}
	})
	return &out
}

func TestLoopReadsTheLastWordsBeforeItStartsAgain(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(12 * time.Second)
		order := heard(h)
		crashAll(h, "web")
		l.Poke()
		time.Sleep(20 * time.Second)
		h.with(func() {
			if got := strings.Join(*order, " "); got != "exit log run" {
				t.Errorf("the order was %s", got)
			}
		})
	})
}

func TestLoopReadsTheLastWordsBeforeItRemovesWhatFailed(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(12 * time.Second)
		order := heard(h)
		h.with(func() { h.engine.natures["bad"] = nature{readyAfter: time.Minute, exitAfter: 2 * time.Second, exit: 3} })
		offer(t, l, tree("c2", "web=bad"))
		await(t, l, ring.SyncDegraded, 5*time.Minute)
		time.Sleep(time.Minute)
		h.with(func() {
			got := strings.Join(*order, " ")
			if want := "run exit log remove run exit log remove"; got != want {
				t.Errorf("the order was %s", got)
			}
		})
	})
}
