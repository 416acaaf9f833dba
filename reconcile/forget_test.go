package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// A service leaves the plan while the create of one of its slots is under way: no
// instance of it is seen, and one is about to be. What it writes has to be known
// then, or its heir would start beside it.
func TestWhatAServiceWritesIsKnownWhileItsCreateIsInFlight(t *testing.T) {
	f := ring.NewFacts()
	id := ring.ID("web", "a")
	f.Set(ring.InForce{App: ring.App{Name: "web", Source: "s", Commit: "c2"}})
	f.Set(ring.RolloutRow{ID: id, Version: "v1", Done: true, Writes: map[ring.Version][]string{"v1": {"volume web_common"}}})
	f.Set(ring.Good{AppName: "web", Service: ring.Service{Name: "a", Version: "v1"}})
	create := ring.Action{Kind: ring.DoCreate, App: "web", Service: "a", Slot: 1, Version: "v1", Name: "web-a-1-v1"}
	forgotten := func(busy map[string]ring.Action) (tables []string) {
		for _, f := range Diff(World{Facts: f, Busy: busy, Recent: NewRecent()}, epoch).Facts {
			if gone, ok := f.(ring.Forget); ok {
				tables = append(tables, gone.Table)
			}
		}
		return tables
	}
	require.Empty(t, forgotten(map[string]ring.Action{create.Target(): create}))
	require.ElementsMatch(t, []string{"rollout", "good"}, forgotten(nil))
}
