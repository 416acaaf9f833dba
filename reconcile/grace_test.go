package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Whoever is stopped has the time that it was made with, also where nothing but its
// container tells of it: a service that left before it was ever good, a version that
// two newer ones have overtaken, one that is tied to what stops.
func TestAStopLeavesTheTimeThatTheInstanceWasMadeWith(t *testing.T) {
	const own = 2 * time.Minute
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		world func(w *World, in *ring.Instance)
		kind  ring.ActionKind
		grace time.Duration
	}{
		{"a service that left, and was never good", func(_ *World, in *ring.Instance) {
			in.Service = "gone"
		}, ring.DoRemove, own},
		{"a service that left and said nothing of it", func(_ *World, in *ring.Instance) {
			in.Service, in.Grace = "gone", 0
		}, ring.DoRemove, ring.DefaultStopGrace},
		{"a service that left, of which the good version has more time", func(w *World, in *ring.Instance) {
			in.Service = "gone"
			s := ring.Service{Name: "gone", Kind: ring.Worker, Replicas: 1, Version: "1:cc", Spec: ring.Spec{StopGrace: time.Hour}}
			w.Facts.Set(ring.Good{AppName: "shop", App: ring.App{Name: "shop", Source: "s", Commit: "c1"}, Service: s, Commit: "c1"})
		}, ring.DoRemove, time.Hour},
		{"a version that is neither wanted nor good", func(*World, *ring.Instance) {}, ring.DoRemove, own},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := stopped(now, 1, theNetwork())
			in := &w.Seen.Instances[0]
			in.State, in.Hand, in.Policy, in.Since, in.Version, in.Grace = ring.StateRunning, "", "no", now, "1:bb", own
			up := *in // the wanted one serves
			up.ID, up.Name, up.Version, up.Since = "id9", ring.ContainerName("shop", "web", 1, "1:aa"), "1:aa", now.Add(-time.Hour)
			tt.world(&w, in)
			id := in.ID
			w.Seen.Instances = append(w.Seen.Instances, up)
			var stops []ring.Action
			for _, a := range Diff(w, now).Actions {
				if a.Instance == id {
					stops = append(stops, a)
				}
			}
			require.Len(t, stops, 1)
			require.Equal(t, tt.kind, stops[0].Kind)
			require.Equal(t, tt.grace, stops[0].Grace)
		})
	}
}
