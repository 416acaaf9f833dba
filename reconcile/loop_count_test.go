package reconcile

import (
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// A crash is counted once and for good, however much else is written down beside it:
// hints, acts of people and commits to others come all the time meanwhile.
func TestLoopCountsEveryCrashWhateverElseIsWritten_Lesson3(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1", "db=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(12 * time.Second)
		ends, counted := 0, 0
		h.with(func() {
			h.engine.natures["v1"] = nature{exitAfter: 2 * time.Second, exit: 1}
			h.engine.told = func(kind, _ string, b *box) {
				if kind == "exit" && b.App == "web" {
					ends++
				}
			}
		})
		crashAll(h, "web")
		for i := range 600 { // of 1 s each: ten minutes
			l.Poke()
			switch i % 20 {
			case 3:
				_, _ = l.Do(t.Context(), Act{Verb: HoldIt, App: "db", Actor: "alice", Reason: "a test", For: time.Hour})
			case 11:
				_, _ = l.Do(t.Context(), Act{Verb: Release, App: "db", Actor: "alice", Reason: "a test"})
			case 15:
				offer(t, l, tree("c1", "web=v1", "db=v1"))
			}
			time.Sleep(time.Second)
			h.with(func() {
				for _, row := range h.facts.Slots {
					if row.ID != "web/web" {
						continue
					}
					if row.Crashes < counted {
						t.Fatalf("%d crashes after %d", row.Crashes, counted)
					}
					counted = row.Crashes
				}
			})
		}
		h.with(func() {
			if ends < 6 || ends > 9 {
				t.Errorf("it ended %d times in ten minutes of a backoff", ends)
			}
			if counted != ends {
				t.Errorf("%d crashes are counted of %d ends", counted, ends)
			}
		})
	})
}
