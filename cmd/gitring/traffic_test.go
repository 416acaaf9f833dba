package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// trafficScreen is what a person sees on a terminal of that width.
func trafficScreen(width int, at time.Time, all ...api.FrontNow) string {
	s := screen.New(false, width)
	showTraffic(s, all, at)
	return s.String()
}

func TestTrafficFitsATerminalOf80Columns(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	instance := func(name string, state ring.FrontState, set string, weight float64, requests, errors int64) api.InstanceNow {
		return api.InstanceNow{
			Name: "0123456789ab", Instance: name, State: state, Set: set, Weight: weight, Reached: true, InFlight: 3,
			Counts: ring.FrontCounts{Requests: requests}, Errors: errors, P50: 2.5, P99: 1412,
		}
	}
	front := api.FrontNow{
		App: "shop", Service: "web", Container: "shop-web-front-1-01234567", Phase: ring.PhaseReady, At: now, Generation: 17,
		Build: "sha256:" + strings.Repeat("ab", 32), Newest: true, Connections: 1, Queued: 12, QueuedSince: now.Add(-3 * time.Second),
		Ports: []api.PortNow{{Port: 8080, Protocol: "tcp", Carry: "http", Published: []string{"80/tcp"}}, {Port: 53, Protocol: "udp", Carry: "udp", Unheard: true}},
		Instances: []api.InstanceNow{
			instance("shop-web-1-01234567", ring.FrontActive, ring.SetStable, 200.0/3, 1203411, 0),
			instance("shop-web-2-89abcdef", ring.FrontActive, ring.SetCanary, 20, 34, 2),
			instance("shop-web-3-01234567", ring.FrontDraining, ring.SetStable, 0, 7, 0),
		},
		Canary: &api.CanaryNow{Weight: 20, Stable: api.SetNow{Requests: 1203418, P50: 2, P99: 30}, Canary: api.SetNow{Requests: 34, Errors: 2, P50: 3, P99: 45}, Says: "step 1 of 3"},
	}
	seen := trafficScreen(80, now, front)
	for _, line := range strings.Split(seen, "\n") {
		require.LessOrEqual(t, len(line), 80, line)
	}
	for _, part := range []string{
		"shop/web  Ready  80/tcp -> 8080/tcp http, 53/udp",
		"table 17, proxy abababab, 1 connection, 12 waiting for 3s",
		"no instance listens on 53/udp",
		"66.7%", "20%", "1203411", "1.4s", "2.5ms", "active canary", "draining",
		"canary [##--------] 20% step 1 of 3",
		"p99 1.4s", // below its row, by its name
		"stable  1203418   [----------] 0.0%", "[----------] 5.9%",
	} {
		require.Contains(t, seen, part)
	}

	away := front
	away.At = time.Time{}
	require.Contains(t, trafficScreen(80, now, away), "the front does not answer; it serves by the last table that it was told")
	require.NotContains(t, trafficScreen(80, now, away), "waiting for")
	none := api.FrontNow{App: "shop", Service: "web", Phase: ring.PhasePending, Reason: "waits for port 80/tcp"}
	require.Contains(t, trafficScreen(80, now, none), "its front does not run: waits for port 80/tcp")
	other := front
	other.Newest = false
	require.Contains(t, trafficScreen(80, now, other), "proxy abababab of another release")
}
