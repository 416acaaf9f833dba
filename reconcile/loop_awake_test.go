package reconcile

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitring/gitring/ring"
)

func TestLoopKnowsSinceWhenItRuns(t *testing.T) {
	var p pulse
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration) time.Time { return begin.Add(after) }
	p.begin(begin)
	for i := 1; i <= 4; i++ {
		p.noteBeat(at(time.Duration(i) * beat))
	}
	if got := p.awakeSince(at(21 * time.Second)); !got.Equal(begin) {
		t.Errorf("without a break it runs since %s", got)
	}
	// Stopped until the 80th second. Whoever looks before the next beat knows it, too.
	if got := p.awakeSince(at(80 * time.Second)); !got.Equal(at(80 * time.Second)) {
		t.Errorf("right after the break it runs since %s", got)
	}
	p.noteBeat(at(81 * time.Second))
	p.noteBeat(at(85 * time.Second))
	if got := p.awakeSince(at(86 * time.Second)); !got.Equal(at(81 * time.Second)) {
		t.Errorf("after the break it runs since %s", got)
	}
}

// A process that was stopped for longer than a deadline of a rollout has not seen
// the version fail: every limit counts from when it goes on.
func TestLoopThatWasFrozenCondemnsNobody(t *testing.T) {
	for _, tt := range []struct {
		name   string
		since  time.Duration // how long the loop has run
		failed bool
	}{
		{"it runs since before the rollout", time.Hour, true},
		{"it runs again for a second", time.Second, false},
		{"it runs again for longer than the limit", 11 * time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				s := tree("c2", "web=v2")
				app := s.Next.Apps[0]
				want := &app.Services[0]
				id := ring.ID(app.Name, want.Name)
				f := ring.NewFacts()
				f.Set(ring.InForce{App: app})
				f.Set(ring.RolloutRow{ID: id, Version: want.Version, Began: now.Add(-20 * time.Minute), Progress: now.Add(-20 * time.Minute)})
				in := ring.Instance{
					ID: "i", Name: ring.ContainerName(app.Name, want.Name, 1, want.Version), Source: "s", App: app.Name, Service: want.Name,
					Slot: 1, Version: want.Version, Commit: s.Next.Commit, State: ring.StateRunning, Since: now.Add(-20 * time.Minute), Policy: "no",
				}
				d := Diff(World{
					Host: "h", Sources: []Source{s}, Facts: f, Seen: ring.Seen{Instances: []ring.Instance{in}},
					Health: map[string]ring.Health{"i": {Reason: "check up: connection refused"}}, Recent: NewRecent(), Awake: now.Add(-tt.since),
				}, now)
				failed := false
				for _, e := range d.Events {
					failed = failed || strings.HasSuffix(e.Kind, "failed")
				}
				counted := false
				for _, f := range d.Facts {
					row, ok := f.(ring.RolloutRow)
					counted = counted || ok && row.Failures > 0
				}
				if failed != tt.failed || counted != tt.failed {
					t.Errorf("the version failed: %v, its instance: %v: %v", failed, counted, d.Events)
				}
			})
		})
	}
}
