package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What plan says of a commit before it is pushed.
func TestAPlanTellsWhichHostsItWouldWaitFor(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := chapter{plan: &ring.Plan{Source: "s", Commit: shaOf("c1")}, tree: map[string]declared{"web": {app: "web", Service: ring.Service{Name: "web", Kind: ring.Worker, Replicas: 1, Spec: ring.Spec{Image: "v1"}}}}}
	c.build()
	c.plan.Waves = []ring.Wave{{Hosts: []string{"canary-1"}, Soak: 10 * time.Minute}, {Hosts: []string{"edge-1", "edge-2"}}}
	w := World{Host: "h", Facts: ring.NewFacts(), Sources: []Source{{Name: "s"}}}
	says := func() string { return Plan(w, c.plan, now).Waits }
	require.Equal(t, "would wait for canary-1 (soaks 10m0s), then for edge-1, edge-2", says())
	w.Facts.Set(ring.WaveRow{Source: "s", Commit: c.plan.Commit, Passed: true})
	require.Empty(t, says(), "it was let pass")
	w.Facts.Set(ring.WaveRow{Source: "s", Commit: shaOf("c0"), Passed: true})
	require.NotEmpty(t, says(), "another one was")
	c.plan.AllowWaves = true
	require.Empty(t, says())
	c.plan.AllowWaves, c.plan.Waves = false, nil
	require.Empty(t, says())

	c.plan.Doubts = []string{"waves: nobody-* names no host"}
	require.Equal(t, c.plan.Doubts, Plan(w, c.plan, now).Doubts)
	w.Sources[0].Next = c.plan
	d := newDecider(w, now)
	var st ring.SourceStatus
	d.indexSeen()
	d.sourceStatus(&w.Sources[0], &st)
	require.Equal(t, c.plan.Doubts, st.Doubts, "the status has them for as long as the plan is the newest")
}
