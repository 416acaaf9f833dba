package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// An instance that is meant to go is shown on its way, whatever its checks say.
func TestWhatIsOnItsWayOutIsShownSo_LessonA15(t *testing.T) {
	meant := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const drain = 20 * time.Second
	service := ring.Service{
		Name: "web", Kind: ring.Worker, Replicas: 1, Version: "1:web", Rollout: ring.DefaultRollout(), Image: ring.Image{Known: true},
	}
	service.Rollout.DrainDelay = drain
	app := ring.App{Name: "shop", Source: "s", Services: []ring.Service{service}}
	gone := app
	gone.Services = nil
	step := func(kind ring.ActionKind, id string) map[string]ring.Action {
		return map[string]ring.Action{"shop/web": {Kind: kind, App: "shop", Service: "web", Instance: id}}
	}
	for _, tc := range []struct {
		name  string
		app   ring.App
		after time.Duration
		busy  map[string]ring.Action
		stays bool
		ended bool
		want  string
	}{
		{name: "it waits for its turn", app: app, after: time.Second, want: ring.SlotDraining},
		{name: "and drains", app: app, after: drain - 1, busy: step(ring.DoRemove, "c1"), want: ring.SlotDraining},
		{name: "and is stopped after that", app: app, after: drain, busy: step(ring.DoRemove, "c1"), want: ring.SlotStopping},
		{name: "one that makes room too", app: app, after: drain, busy: step(ring.DoStop, "c1"), stays: true, want: ring.SlotStopping},
		{name: "a step on another is nothing to it", app: app, after: drain, busy: step(ring.DoRemove, "c2"), stays: true, want: ring.SlotReady},
		{name: "nor is a restart", app: app, after: drain, busy: step(ring.DoRestart, "c1"), stays: true, want: ring.SlotReady},
		{name: "one that left the plan drains as its last good says", app: gone, after: drain - 1, busy: step(ring.DoRemove, "c1"), want: ring.SlotDraining},
		{name: "and is stopped", app: gone, after: drain, busy: step(ring.DoRemove, "c1"), want: ring.SlotStopping},
		{name: "what ended is not on its way", app: app, after: drain, busy: step(ring.DoRemove, "c1"), ended: true, want: ring.SlotStopped},
	} {
		t.Run(tc.name, func(t *testing.T) {
			facts := ring.NewFacts()
			facts.Apps["shop"] = ring.InForce{App: tc.app}
			facts.Good["shop/web"] = &ring.Good{App: app, AppName: "shop", Service: service}
			facts.Rollouts["shop/web"] = ring.RolloutRow{ID: "shop/web", Version: "1:web", Done: true, Ready: 1}
			if !tc.stays {
				facts.Intents["c1"] = ring.Intent{Instance: "c1", Kind: intentRemove, Reason: "it goes", At: meant}
			}
			in := ring.Instance{
				ID: "c1", App: "shop", Source: "s", Service: "web", Slot: 1, Version: "1:web", State: ring.StateRunning, Kind: ring.Worker,
				Since: meant.Add(-time.Hour), Started: meant.Add(-time.Hour), Policy: "no",
			}
			if tc.ended {
				in.State = ring.StateExited
			}
			d := Diff(World{Facts: facts, Seen: ring.Seen{Instances: []ring.Instance{in}}, Recent: NewRecent(), Busy: tc.busy, Sources: []Source{{Name: "s"}}}, meant.Add(tc.after))
			require.Equal(t, tc.want, d.Status.Sources[0].Apps[0].Services[0].Instances[0].State)
		})
	}
}
