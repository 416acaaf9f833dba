package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// hostAtRest is a world of so many services, three instances each, ten services
// to an app, where everything is as its plan asks.
func hostAtRest(services int) (World, time.Time) {
	now := epoch.Add(24 * time.Hour)
	w := World{Host: "bench", Facts: ring.NewFacts(), Health: map[string]ring.Health{}, Recent: NewRecent()}
	plan := &ring.Plan{Source: "s", Commit: shaOf("c1")}
	for n := range services {
		if n%10 == 0 {
			plan.Apps = append(plan.Apps, *newApp(fmt.Sprintf("app%03d", n/10)))
			plan.Apps[n/10].Commit = plan.Commit
		}
		app := &plan.Apps[n/10]
		s := ring.Service{
			Name: fmt.Sprintf("service%d", n%10), Kind: ring.Worker, Replicas: 3, Rollout: ring.DefaultRollout(),
			Restart: ring.Restart{Policy: ring.Always, Engine: "always"}, Changed: plan.Commit,
			Checks: []ring.Check{{Name: "up", For: ring.Readiness, HTTP: &ring.HTTPCheck{Port: 80, Path: "/"}, Interval: 5 * time.Second}},
			Spec: ring.Spec{
				Image: "example.org/app:1", Command: []string{"serve", "--port", "80"}, Environment: map[string]string{"LOG_LEVEL": "info", "MODE": "prod"},
				Networks: []ring.Attachment{{Network: "default", Aliases: []string{"web"}}},
			},
			Pin: ring.Pin{Image: "example.org/app@sha256:" + fmt.Sprintf("%064x", n)},
		}
		s.Written = ring.WrittenHash(s.Spec)
		s.Version = ring.VersionOf(app, &s, s.Pin)
		app.Services = append(app.Services, s)
	}
	for i := range plan.Apps {
		restApp(&w, &plan.Apps[i], now)
	}
	w.Sources = []Source{{Name: "s", Branch: "main", Tip: plan.Commit, Commit: &ring.Commit{SHA: plan.Commit}, Next: plan, Reached: now, FreshFor: 5 * time.Minute}}
	return w, now
}

func restApp(w *World, app *ring.App, now time.Time) {
	w.Facts.Set(ring.InForce{App: *app, Since: epoch})
	net := app.Networks[0]
	name := ring.NetworkName(app.Name, net.Key)
	w.Seen.Networks = append(w.Seen.Networks, ring.SeenNetwork{ID: name, Name: name, App: app.Name, Key: net.Key, Definition: net.Definition()})
	alone := *app
	alone.Services = nil
	for _, s := range app.Services {
		id := ring.ID(app.Name, s.Name)
		w.Facts.Set(ring.Good{AppName: app.Name, App: alone, Service: s, Commit: app.Commit, At: epoch})
		w.Facts.Set(ring.Verdict{ID: id, Version: s.Version, Good: true, Commit: app.Commit, At: epoch})
		w.Facts.Set(ring.RolloutRow{ID: id, Version: s.Version, Commit: app.Commit, Began: epoch, Progress: epoch, Ready: 3, Done: true, At: epoch, Checks: map[ring.Version][]ring.Check{s.Version: s.Checks}})
		for slot := 1; slot <= 3; slot++ {
			in := ring.Instance{
				ID: fmt.Sprintf("%s-%d", id, slot), Name: ring.ComposeName(app.Name, s.Name, slot), App: app.Name, Source: "s",
				Service: s.Name, Slot: slot, Version: s.Version, Commit: app.Commit, Kind: s.Kind, Image: s.Pin.Image, State: ring.StateRunning,
				Created: epoch, Started: epoch, Since: epoch, Policy: "always", Addresses: map[string]string{name: "10.0.0.1"},
			}
			w.Seen.Instances = append(w.Seen.Instances, in)
			w.Health[in.ID] = ring.Health{Ready: true, Since: epoch}
		}
	}
}

// BenchmarkDiff is a look at a host where there is nothing to do.
func BenchmarkDiff(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("%dx3", n), func(b *testing.B) {
			w, now := hostAtRest(n)
			d := Diff(w, now) // the posts of a first look
			for _, f := range d.Facts {
				w.Facts.Set(f)
			}
			if d = Diff(w, now); len(d.Actions)+len(d.Facts)+len(d.Events) > 0 || d.Status.Sources[0].Sync != ring.SyncSynced {
				b.Fatalf("not at rest: %s %s, %d actions, %d facts, %d events", d.Status.Sources[0].Sync, d.Status.Sources[0].Reason, len(d.Actions), len(d.Facts), len(d.Events))
			}
			b.ReportAllocs()
			for b.Loop() {
				Diff(w, now)
			}
		})
	}
}
