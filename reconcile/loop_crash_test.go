package reconcile

import (
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
