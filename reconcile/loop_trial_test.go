package reconcile

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// Whatever a new release makes of what it sees, nothing is recorded and no step is taken
// until its trial is over; then it goes on as if it had just started.
func TestALoopOnTrialLooksAndDecidesAndChangesNothing(t *testing.T) {
	var on atomic.Bool
	trial := func(o *Options) {
		o.Trial = func() *ring.Trial {
			if on.Load() {
				return &ring.Trial{From: "0.1.0"}
			}
			return nil
		}
	}
	playLoopWith(t, trial, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(2 * time.Minute) // at rest
		on.Store(true)
		if st, _ := l.Status(); st.Trial == nil {
			t.Error("whoever asks before the next look is not told of the trial")
		}
		records, steps, looks := 0, 0, 0
		h.with(func() { records, steps, looks = h.records, len(h.steps), h.looks })
		unchanged := func() {
			h.with(func() {
				if h.records != records || len(h.steps) != steps {
					t.Errorf("on trial: %d records, %d steps", h.records-records, len(h.steps)-steps)
				}
			})
		}

		l.Poke()
		time.Sleep(50 * time.Millisecond) // the look before serves the plan, and counts once
		offer(t, l, tree("c2", "web=v2"))
		st, _ := l.Status()
		h.with(func() {
			if st.Trial == nil || st.Trial.Looks != h.looks-looks {
				t.Errorf("%+v after %d looks", st.Trial, h.looks-looks)
			}
		})
		time.Sleep(2 * time.Minute)
		unchanged()
		h.with(func() {
			if h.looks < looks+10 {
				t.Errorf("only %d looks", h.looks-looks)
			}
		})
		if st, _ := l.Status(); st.Trial == nil || st.Trial.From != "0.1.0" || st.Trial.Looks < 10 {
			t.Fatalf("the status does not say so: %+v", st.Trial)
		}
		if _, err := l.Do(t.Context(), Act{Verb: HoldIt, App: "web", Actor: "ops", Reason: "r", For: time.Hour}); !errors.Is(err, ErrOnTrial) {
			t.Errorf("an act on trial: %v", err)
		}
		h.with(func() { h.deaf = errors.New("away") })
		time.Sleep(time.Minute)
		if st, _ := l.Status(); st.Engine != "away" || st.Trial == nil {
			t.Errorf("an engine that is away is not told: %q %v", st.Engine, st.Trial)
		}
		h.with(func() { h.deaf = nil })
		unchanged()

		on.Store(false)
		l.Poke()
		time.Sleep(time.Second)
		await(t, l, ring.SyncSynced, time.Minute)
		if st, _ := l.Status(); st.Trial != nil || st.Sources[0].Commit != shaOf("c2") {
			t.Errorf("after it the new commit is not in force: %+v", st.Sources[0].Commit)
		}
	})
}

func TestStepsThatOnlyAskAreNoChange(t *testing.T) {
	seen := ring.Seen{Instances: []ring.Instance{{ID: "i1", State: ring.StateRunning}, {ID: "i2", State: ring.StateExited}}}
	got := WouldDo([]ring.Action{
		{Kind: ring.DoAdmit, App: "web"},
		{Kind: ring.DoResolve, Image: "web:1"},
		{Kind: ring.DoLog, Instance: "i2"},
		{Kind: ring.DoWhose, Name: "n"},
		{Kind: ring.DoStop, App: "web", Service: "api", Slot: 1, Instance: "i1", Reason: "r"},
		{Kind: ring.DoRemove, App: "web", Service: "api", Slot: 2, Instance: "i2"},
		{Kind: ring.DoStart, App: "web", Service: "api", Slot: 2, Instance: "i2"},
		{Kind: ring.DoPull, Image: "web@sha256:1"},
	}, seen)
	want := []ring.TrialStep{
		{Does: "stop", On: "web/api", Slot: 1, Ends: true, Reason: "r"},
		{Does: "remove", On: "web/api", Slot: 2},
		{Does: "start", On: "web/api", Slot: 2},
		{Does: "pull", On: "pull web@sha256:1"},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, not %+v", got[i], want[i])
		}
	}
}
