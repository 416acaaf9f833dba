package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// One service of one replica that served, and whose instance is gone or not ready.
func TestSinceWhenAServiceIsNotAvailableOutlivesTheDaemon(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	service := ring.Service{
		Name: "web", Kind: ring.Worker, Replicas: 2, Version: "1:web", Rollout: ring.DefaultRollout(), Image: ring.Image{Known: true}, Changed: "c1",
		Checks: []ring.Check{{Name: "up", For: ring.Readiness, HTTP: &ring.HTTPCheck{Port: 80}}},
	}
	app := ring.App{Name: "shop", Source: "s", Services: []ring.Service{service}}
	facts := ring.NewFacts()
	facts.Apps["shop"] = ring.InForce{App: app}
	facts.Good["shop/web"] = &ring.Good{App: app, AppName: "shop", Service: service}
	facts.Rollouts["shop/web"] = ring.RolloutRow{ID: "shop/web", Version: "1:web", Done: true, Ready: 2, Began: begin.Add(-24 * time.Hour)}
	look := func(after time.Duration, ready ...bool) (*ring.Condition, []string) {
		now := begin.Add(after)
		w := World{Facts: copyFacts(facts), Recent: NewRecent(), Sources: []Source{{Name: "s"}}, Health: map[string]ring.Health{}}
		for i, up := range ready {
			id := string(rune('a' + i))
			w.Health[id] = ring.Health{Ready: up, Since: begin.Add(-time.Hour)}
			w.Seen.Instances = append(w.Seen.Instances, ring.Instance{
				ID: id, App: "shop", Source: "s", Service: "web", Slot: i + 1, Version: "1:web", State: ring.StateRunning, Kind: ring.Worker,
				Since: begin.Add(-time.Hour), Started: begin.Add(-time.Hour), Policy: "no",
			})
		}
		d := Diff(w, now)
		for _, f := range d.Facts { // and the daemon is another one
			facts.Set(f)
		}
		var kinds []string
		for _, e := range d.Events {
			if strings.HasPrefix(e.Kind, "app.") {
				kinds = append(kinds, e.Kind)
			}
		}
		all := d.Status.Sources[0].Apps[0].Services[0].Conditions
		i := slices.IndexFunc(all, func(c ring.Condition) bool { return c.Type == ring.ConditionAvailable })
		if i < 0 {
			return nil, kinds
		}
		return &all[i], kinds
	}
	c, told := look(0, true, true)
	require.Nil(t, c)
	require.Empty(t, told)
	for _, after := range []time.Duration{time.Second, 20 * time.Second, time.Minute} {
		c, told = look(after, true, false)
		require.Equal(t, &ring.Condition{
			Type: "Available", Status: "False", Reason: "1 of 2 ready, at least 2 should be", Since: begin.Add(time.Second), Commit: "c1",
		}, c)
		require.Empty(t, told, "a moment is nobody's business")
	}
	c, told = look(90*time.Second, true, true)
	require.Nil(t, c)
	require.Empty(t, told)
	c, _ = look(2*time.Minute, false, true)
	require.Equal(t, begin.Add(2*time.Minute), c.Since, "it began anew")
}
