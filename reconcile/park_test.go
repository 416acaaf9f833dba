package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A database that made room and is wanted again: its exit was ours, whichever
// daemon asked for it and whether or not it is running again already.
func TestTheExitOfAKeptInstanceIsNoFailure(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := ring.DefaultRollout()
	k.FailureThreshold = 1
	s := ring.Service{
		Name: "db", Kind: ring.Worker, Replicas: 1, Version: "1:aa", Rollout: k,
		Spec: ring.Spec{Mounts: []ring.Mount{{Kind: ring.MountVolume, Source: "pg", Target: "/pg"}}},
	}
	app := ring.App{Name: "shop", Source: "s", Commit: "c2", Services: []ring.Service{s}}
	id := ring.ID("shop", "db")
	kept := ring.Instance{
		ID: "kept", Name: "shop-db-1-aa", App: "shop", Source: "s", Service: "db", Slot: 1, Version: "1:aa", Kind: ring.Worker,
		State: ring.StateExited, Started: now.Add(-time.Hour), Finished: now.Add(-time.Second), Policy: "no",
	}
	start := ring.Action{Kind: ring.DoStart, App: "shop", Service: "db", Version: "1:aa", Instance: "kept"}
	running := kept
	running.State, running.Since = ring.StateRunning, now.Add(-time.Millisecond)

	for _, tt := range []struct {
		name string
		in   ring.Instance
		busy map[string]ring.Action
		want []ring.ActionKind
	}{
		{name: "it is started", in: kept, want: []ring.ActionKind{ring.DoStart}},
		{name: "its start is under way", in: kept, busy: map[string]ring.Action{start.Target(): start}},
		{name: "it runs, and an earlier daemon's stop may yet end it", in: running},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := ring.NewFacts()
			for _, f := range []ring.Fact{
				ring.InForce{App: app, Since: now},
				ring.Good{AppName: "shop", App: app, Service: s, Commit: "c1"},
				ring.RolloutRow{ID: id, Version: s.Version, Commit: "c2", Began: now, Progress: now},
				ring.Intent{Instance: "kept", Kind: intentPark, At: now.Add(-time.Minute)},
			} {
				facts.Set(f)
			}
			d := Diff(World{
				Host: "h", Sources: []Source{{Name: "s", FreshFor: time.Hour, Reached: now}}, Facts: facts, Busy: tt.busy,
				Seen: ring.Seen{At: now, Instances: []ring.Instance{tt.in}},
			}, now)
			var got []ring.ActionKind
			for _, a := range d.Actions {
				got = append(got, a.Kind)
			}
			require.Equal(t, tt.want, got)
			require.NotContains(t, d.Facts, ring.Forget{Table: "intent", Key: "kept"}, "or the next look takes its exit for a failure")
			for _, f := range d.Facts {
				_, verdict := f.(ring.Verdict)
				require.False(t, verdict, "%+v", f)
			}
		})
	}
}

func TestAStartThatTookEffectForgetsThatItWasKept(t *testing.T) {
	a := ring.Action{Kind: ring.DoStart, App: "shop", Service: "db", Instance: "kept"}
	facts, _ := Settle(NewRecent(), nil, a, ring.Done{}, nil, time.Now())
	require.Equal(t, []ring.Fact{ring.Forget{Table: "intent", Key: "kept"}}, facts)
}
