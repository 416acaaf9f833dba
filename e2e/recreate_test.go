package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where two versions cannot run side by side, all that can be done before is done before
// the old container stops; then it is the engine's own stop and start, and two renames.
func TestARecreateStopsTheOldContainerLast(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app, other := h.app("web"), subnet()
	of := func(version string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web(version, obj{
			"ports": []any{"127.0.0.1::8080"}, "container_name": app + "-edge", "networks": []any{"default", "other"},
		}, rollout(obj{"strategy": "recreate"}))}, obj{"networks": obj{"other": obj{"ipam": obj{"config": []any{obj{"subnet": other}}}}}})}
	}
	h.start()
	h.deployed("The first", of("one"))
	settled(h)
	old := h.of(app, "web").ID
	mark := h.events.mark()
	h.deployed("The second", of("two"))
	settled(h)

	var order []string
	var gap [2]int64
	for _, e := range h.events.after(mark, "create", "kill", "stop", "rename", "start") {
		who := "new"
		if e.Actor.ID == old {
			who = "old"
		}
		order = append(order, e.Action+" "+who)
		switch e.Action {
		case "kill":
			gap[0] = e.TimeNano
		case "start":
			gap[1] = e.TimeNano
		}
	}
	require.Equal(t, []string{"create new", "kill old", "stop old", "rename old", "rename new", "start new"}, order)
	require.Len(t, h.of(app, "web").NetworkSettings.Networks, 2)
	// What was not joined before the stop would be joined after the start.
	require.False(t, slices.ContainsFunc(h.events.after(mark, "update"), func(e engineEvent) bool {
		return e.Actor.ID == old && e.TimeNano > gap[0] && e.TimeNano < gap[1]
	}), "the old container's restart policy is changed before it stops")
	t.Logf("from the old container's signal to the new one's start: %d ms", (gap[1]-gap[0])/1e6)
}
