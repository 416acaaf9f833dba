package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestThePlanSaysWhatNoRestartAndATagMean(t *testing.T) {
	service := func(name, image string, places ...string) ring.Service {
		s := ring.Service{
			Name: name, Kind: ring.Worker, Replicas: 1, Rollout: ring.DefaultRollout(), Restart: ring.Restart{Policy: ring.Always, Engine: "always"},
			Spec: ring.Spec{Image: image}, Places: map[string]ring.Place{},
		}
		for _, p := range places {
			s.Places[p] = ring.Place{File: "c", Line: 1}
		}
		s.Written = ring.WrittenHash(s.Spec)
		return s
	}
	job := service("job", "tool@sha256:1")
	job.Kind, job.Job, job.Restart = ring.JobK, &ring.Job{Run: "on_change"}, ring.Restart{Policy: ring.NeverStop, Engine: "no"}
	always := service("asked", "nginx:latest", "restart")
	always.Spec.PullPolicy = "always"
	clocked := service("clocked", "redis:7", "restart")
	clocked.Updates = &ring.Updates{}
	front := service("web-front", ring.FrontImage)
	front.FrontOf, front.Pin = "web", ring.Pin{Image: ring.FrontImage}
	next := ring.App{Name: "shop", Source: "s", Commit: "c1", Services: []ring.Service{
		service("web", "nginx:latest"), service("db", "postgres:16", "restart"), service("any", "x@sha256:2", "deploy.restart_policy.condition"), job, always, clocked, front,
	}}
	w := World{Facts: ring.NewFacts(), Recent: NewRecent(), Sources: []Source{{Name: "s"}}}
	plan := func() string {
		notes := Plan(w, &ring.Plan{Source: "s", Commit: "c1", Apps: []ring.App{next}}, time.Unix(0, 0)).Apps[0].Notes
		return strings.Join(notes, "\n")
	}
	says := plan()
	for _, c := range Plan(w, &ring.Plan{Source: "s", Commit: "c1", Apps: []ring.App{next}}, time.Unix(0, 0)).Apps[0].Services {
		require.Equal(t, c.Service == "web-front", c.FrontOf == "web", c.Service)
	}
	require.Contains(t, says, `no restart is written, so what ends is started again, which Compose does not do: web; write restart: "no"`)
	require.Contains(t, says, "the tag has when it is looked up: nginx:latest, postgres:16; a change of the service, gitring refresh shop or pull_policy: always moves it")

	have := next
	have.Services = []ring.Service{service("web", "nginx:latest"), service("db", "postgres:15", "restart"), next.Services[2], job, always}
	w.Facts.Apps["shop"] = ring.InForce{App: have}
	says = plan()
	require.NotContains(t, says, "no restart", "what runs is not told anew")
	require.Contains(t, says, "the tag has when it is looked up: postgres:16;")
}

// A plan repeats no note of an app that it leaves as it is.
func TestAPlanRepeatsNoNoteOfAnAppThatStaysAsItIs(t *testing.T) {
	app := func(spec string, notes ...string) ring.App {
		s := ring.Service{Name: "web", Kind: ring.Worker, Spec: ring.Spec{Image: "web@sha256:1", Hostname: spec}, Pin: ring.Pin{Image: "web@sha256:1"}}
		s.Places = map[string]ring.Place{"restart": {File: "c", Line: 1}}
		s.Written = ring.WrittenHash(s.Spec)
		return ring.App{Name: "shop", Source: "s", Commit: "c1", Services: []ring.Service{s}, Notes: notes}
	}
	w := World{Facts: ring.NewFacts(), Recent: NewRecent(), Sources: []Source{{Name: "s"}}}
	changes := func(next ring.App) ring.AppChanges {
		return Plan(w, &ring.Plan{Source: "s", Commit: "c1", Apps: []ring.App{next}}, time.Unix(0, 0)).Apps[0]
	}
	plan := func(next ring.App) []string { return changes(next).Notes }
	have := app("a", "was read so")
	w.Facts.Apps["shop"] = ring.InForce{App: have}
	have.Services[0].Version = changes(have).Services[0].To // of the services that the fact shares
	require.Equal(t, []string{"is new"}, plan(app("a", "was read so", "is new")))
	require.Equal(t, []string{"was read so", "is new"}, plan(app("b", "was read so", "is new")))
}
