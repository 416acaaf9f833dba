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

// A host that comes and goes each minute does not fill the forge with its words.
func TestAHostThatComesAndGoesTellsLittle(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	sha := shaOf("c1")
	w := World{Host: "h", Facts: ring.NewFacts(), Sources: []Source{{Name: "s", Commit: &ring.Commit{SHA: sha}, Next: &ring.Plan{Source: "s", Commit: sha, Awaited: true}}}}
	var told []time.Duration
	for minute := range 8 * 60 {
		at := now.Add(time.Duration(minute) * time.Minute)
		d := newDecider(w, at)
		state, says := ring.PostSuccess, "healthy 2/2"
		if minute%2 == 1 {
			state, says = ring.PostFailure, "web/web is not ready"
		}
		if d.decidePost(&w.Sources[0], sha, "", state, ring.Reason{Says: says}) {
			told = append(told, at.Sub(now))
			for _, f := range d.facts {
				w.Facts.Set(f)
			}
		}
	}
	require.Greater(t, len(told), 4, "its word still follows it")
	for i := range told {
		n := 0
		for _, other := range told[i:] {
			if other-told[i] < time.Hour {
				n++
			}
		}
		require.LessOrEqual(t, n, 6, "words within an hour of %s: %v", told[i], told)
	}
	require.LessOrEqual(t, len(told), 20, "in 8 hours")
}
