package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A floor that an act breaks is told from one that a task broke which ended by itself.
func TestAFloorIsBrokenByActs(t *testing.T) {
	task := func(slot int, id, state string) swarmTask {
		out := swarmTask{ID: id, Slot: slot}
		out.Status.State = state
		return out
	}
	others := func(more ...swarmTask) []swarmTask {
		return append([]swarmTask{task(2, "b", "running"), task(3, "c", "running")}, more...)
	}
	for name, tt := range map[string]struct {
		then    []swarmTask
		missing int
	}{
		"it serves":                                {others(task(1, "a", "running")), 0},
		"an update ended it":                       {others(task(1, "a", "shutdown"), task(1, "new", "complete")), 1},
		"it ended, and its record is gone":         {others(task(1, "new", "starting")), 1},
		"its check failed, and it ended well":      {others(task(1, "a", "complete"), task(1, "new", "starting")), 0},
		"it crashed beside one that never was":     {others(task(1, "a", "failed"), task(1, "new", "shutdown")), 0},
		"the new one serves, the old one is ended": {others(task(1, "a", "shutdown"), task(1, "new", "running")), 0},
	} {
		f := floorOf{served: map[int]map[string]bool{}}
		require.Zero(t, f.missing(others(task(1, "a", "running"))))
		require.Equal(t, tt.missing, f.missing(tt.then), name)
	}

	f := floorOf{served: map[int]map[string]bool{}}
	require.Zero(t, f.missing(others(task(1, "a", "running"))))
	f.noteLost(true)
	f.noteLost(false)
	require.Zero(t, f.missing(others(task(1, "a", "shutdown"), task(1, "new", "starting"))), "the swarm replaces what a lost node had")
	require.Zero(t, f.missing(others(task(1, "a", "shutdown"), task(1, "new", "running"))))
	require.Equal(t, 1, f.missing(others(task(1, "new", "shutdown"))), "it is whole again, and acts count")
}
