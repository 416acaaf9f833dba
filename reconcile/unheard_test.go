package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A service that is ready, without any check, and publishes ports.
func TestAPublishedPortThatNothingListensOnIsNotedAndDecidesNothing(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	service := ring.Service{
		Name: "web", Kind: ring.Worker, Replicas: 1, Version: "1:web", Rollout: ring.DefaultRollout(), Image: ring.Image{Known: true},
		Spec: ring.Spec{Ports: []ring.Port{{HostPort: "80", Container: 8080, Protocol: "tcp"}}},
	}
	facts := ring.NewFacts()
	app := ring.App{Name: "shop", Source: "s", Services: []ring.Service{service}}
	facts.Apps["shop"] = ring.InForce{App: app}
	facts.Good["shop/web"] = &ring.Good{App: app, AppName: "shop", Service: service}
	facts.Rollouts["shop/web"] = ring.RolloutRow{ID: "shop/web", Version: "1:web", Done: true, Ready: 1}
	world := func(age time.Duration, unheard ...ring.Unheard) World {
		in := ring.Instance{
			ID: "c1", App: "shop", Source: "s", Service: "web", Slot: 1, Version: "1:web", State: ring.StateRunning, Kind: ring.Worker,
			Since: now.Add(-age), Started: now.Add(-age), Policy: "no", Unheard: unheard,
		}
		return World{Facts: facts, Seen: ring.Seen{Instances: []ring.Instance{in}}, Recent: NewRecent(), Sources: []Source{{Name: "s"}}}
	}
	of := func(d *Decision) *ring.InstanceStatus { return &d.Status.Sources[0].Apps[0].Services[0].Instances[0] }
	silent, inside := ring.Unheard{Port: "8080/tcp"}, ring.Unheard{Port: "9090/tcp", Loopback: true}
	for _, tc := range []struct {
		unheard []ring.Unheard
		says    string
	}{
		{[]ring.Unheard{silent}, "port 8080/tcp is published, and nothing listens there"},
		{[]ring.Unheard{silent, {Port: "53/udp"}}, "ports 8080/tcp, 53/udp are published, and nothing listens there"},
		{[]ring.Unheard{inside}, "port 9090/tcp is published, and what listens there takes connections from 127.0.0.1 alone"},
		{[]ring.Unheard{silent, inside}, "port 8080/tcp is published, and nothing listens there; port 9090/tcp is published, and what listens there takes connections from 127.0.0.1 alone"},
	} {
		for _, age := range []time.Duration{9 * time.Second, time.Hour} { // before and after min_ready_time
			quiet, d := Diff(world(age), now), Diff(world(age, tc.unheard...), now)
			if age == time.Hour {
				require.Equal(t, tc.says, of(&d).Reason)
				require.Equal(t, ring.SlotReady, of(&d).State)
				of(&d).Reason = ""
			}
			require.Equal(t, quiet, d, "all else is as it was, after %s", age)
		}
		e, known := Explain(world(time.Hour, tc.unheard...), now, "shop/web", 0, false)
		require.True(t, known)
		require.Equal(t, tc.says, e.Instances[0].Reason)
	}
}
