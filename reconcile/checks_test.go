package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAHealthcheckOfTheImageAloneCountsAsReadiness(t *testing.T) {
	up := ring.Check{Name: "up", For: ring.Readiness, TCP: &ring.TCPCheck{Port: 80}}
	alive := ring.Check{Name: "alive", For: ring.Liveness, Docker: true}
	for _, c := range []struct {
		name, word string
		checks     []ring.Check
		want       []string
	}{
		{"an engine that runs none", "", []ring.Check{up}, []string{"up"}},
		{"beside those of the plan", "starting", []ring.Check{up}, []string{"healthcheck", "up"}},
		{"alone", "healthy", nil, []string{"healthcheck"}},
		{"asked already", "unhealthy", []ring.Check{alive, up}, []string{"alive", "up"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, x := range withImages(&instance{Instance: &ring.Instance{Health: c.word}}, c.checks) {
				got = append(got, x.Name)
				if x.Name == "healthcheck" {
					require.Equal(t, ring.Readiness, x.For)
					require.True(t, x.Docker)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// A look at the engine: an instance whose image brings a HEALTHCHECK is probed by
// it and is not ready before the engine says so, and what waits for
// service_healthy does not go on.
func TestAnInstanceIsNotReadyBeforeTheHealthcheckOfItsImage(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	app := ring.App{Name: "web", Source: "s", Services: []ring.Service{
		{Name: "db", Kind: ring.Worker, Replicas: 1, Version: "1:db", Rollout: ring.DefaultRollout(), Restart: ring.Restart{Policy: ring.Always}},
		{
			Name: "web", Kind: ring.Worker, Replicas: 1, Version: "1:web", Rollout: ring.DefaultRollout(), Image: ring.Image{Known: true},
			DependsOn: []ring.Dependency{{Service: "db", Until: ring.ReadyDep}},
		},
	}}
	look := func(word string, h map[string]ring.Health) Decision {
		facts := ring.NewFacts()
		facts.Apps["web"] = ring.InForce{App: app}
		facts.Rollouts["web/db"] = ring.RolloutRow{ID: "web/db", Version: "1:db", Done: true}
		in := ring.Instance{
			ID: "c1", App: "web", Source: "s", Service: "db", Slot: 1, Version: "1:db", State: ring.StateRunning,
			Since: now.Add(-time.Hour), Started: now.Add(-time.Hour), Health: word, Policy: "no",
		}
		return Diff(World{Facts: facts, Seen: ring.Seen{Instances: []ring.Instance{in}}, Health: h, Recent: NewRecent(), Sources: []Source{{Name: "s"}}}, now)
	}
	made := func(d Decision) (out []string) {
		for _, a := range d.Actions {
			out = append(out, string(a.Kind)+" "+a.Service)
		}
		return out
	}
	d := look("starting", map[string]ring.Health{"c1": {Reason: "readiness check healthcheck: it has not passed yet"}})
	require.Len(t, d.Probes, 1)
	require.True(t, d.Probes[0].Checks[0].Docker)
	require.NotContains(t, made(d), "create web")
	d = look("healthy", map[string]ring.Health{"c1": {Ready: true, Since: now.Add(-time.Hour)}})
	require.Contains(t, made(d), "create web")
	d = look("", nil)
	require.Empty(t, d.Probes, "no check at all: it is inferred")
	require.Contains(t, made(d), "create web")
}

func TestAHealthcheckOfTheImageHasTheTimeItAsksFor_Lesson24(t *testing.T) {
	own := &ring.Healthcheck{StartPeriod: 5 * time.Minute, Interval: 10 * time.Second, Retries: 6}
	for _, c := range []struct {
		name string
		s    ring.Service
		want time.Duration
	}{
		{"none", ring.Service{}, 2 * time.Minute},
		{"the image's", ring.Service{Image: ring.Image{Healthcheck: own}}, 6 * time.Minute},
		{"with the engine's defaults", ring.Service{Image: ring.Image{Healthcheck: &ring.Healthcheck{StartPeriod: time.Minute}}}, 150 * time.Second},
		{"shorter than the plan's", ring.Service{Image: ring.Image{Healthcheck: &ring.Healthcheck{Interval: time.Second, Retries: 1}}}, 2 * time.Minute},
		{"Compose's is in the plan already", ring.Service{Image: ring.Image{Healthcheck: own}, Spec: ring.Spec{Healthcheck: &ring.Healthcheck{Test: []string{"CMD", "x"}}}}, 2 * time.Minute},
	} {
		c.s.Rollout.StartTimeout = 2 * time.Minute
		require.Equal(t, c.want, patienceOf(&c.s), c.name)
	}
}

// The first checks of a service that ran without any, as a change in place.
func TestFirstChecksDoNotTakeAServiceOut(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	before := ring.Service{Name: "web", Kind: ring.Worker, Replicas: 1, Version: "1:web", Rollout: ring.DefaultRollout(), Restart: ring.Restart{Policy: ring.Always}}
	after := before
	after.Checks = []ring.Check{{Name: "up", For: ring.Readiness, TCP: &ring.TCPCheck{Port: 80}, Interval: time.Second}}
	facts := ring.NewFacts()
	facts.Apps["web"] = ring.InForce{App: ring.App{Name: "web", Source: "s", Services: []ring.Service{after}}}
	facts.Good["web/web"] = &ring.Good{AppName: "web", App: ring.App{Name: "web"}, Service: before}
	facts.Rollouts["web/web"] = ring.RolloutRow{ID: "web/web", Version: "1:web", Done: true}
	since := now.Add(-time.Hour)
	in := ring.Instance{ID: "c1", App: "web", Source: "s", Service: "web", Slot: 1, Version: "1:web", State: ring.StateRunning, Since: since, Started: since, Policy: "no"}
	w := World{Facts: facts, Seen: ring.Seen{Instances: []ring.Instance{in}}, Recent: NewRecent(), Sources: []Source{{Name: "s"}}}
	d := Diff(w, now)
	require.Equal(t, since, d.Probes[0].Ready)
	require.Equal(t, 1, d.Status.Sources[0].Apps[0].Services[0].Ready)
	require.Equal(t, ring.PhaseReady, d.Status.Sources[0].Apps[0].Services[0].Phase)

	w.Facts.Rollouts["web/web"] = ring.RolloutRow{ID: "web/web", Version: "1:web"}
	d = Diff(w, now)
	require.Zero(t, d.Probes[0].Ready, "in a rollout nothing is taken for granted")
}
