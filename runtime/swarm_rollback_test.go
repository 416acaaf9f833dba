package runtime

import (
	"testing"

	"github.com/docker/docker/api/types/swarm"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What the rules believe of a service that somebody rolls back by hand is what the engines say: which
// version is in force then, which one was left, and how far the way back is.
func TestOnSwarmAHandRollsAServiceBack(t *testing.T) {
	swarmOrSkip(t)
	const started, completed, paused ring.UpdateState = "rollback_started", "rollback_completed", "rollback_paused"
	crashing := command("tell", "broken", "3")
	for i, tt := range []struct {
		name        string
		first, next func(*ring.Action, *ring.Service)
		at, ends    ring.UpdateState
	}{
		{"in the middle of an update", nil, broken, ring.UpdateRunning, completed},
		{"after its update paused", nil, crashing, ring.UpdatePaused, completed},
		{"to a version that fails", crashing, nil, ring.UpdateCompleted, paused},
		{"to a version that fails and of which no task was replaced yet", crashing, broken, ring.UpdateRunning, completed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := realSwarmRig(t, 900+i)
			first := r.action(tt.first)
			r.must(t, first)
			if tt.first == nil {
				r.await(t, "whole", serving(first.Version, 2))
			}
			next := r.action(tt.next)
			r.must(t, onto(r.service(t), next))
			left, _ := r.await(t, "there", func(s ring.ClusterService, _ []ring.Instance) bool { return s.Update == tt.at })
			require.Equal(t, []ring.Version{next.Version, first.Version}, []ring.Version{left.Version, left.Previous})
			require.False(t, left.Update.RolledBack())

			was, _, err := r.c.ServiceInspectWithRaw(t.Context(), left.ID, swarm.ServiceInspectOptions{})
			require.NoError(t, err)
			_, err = r.c.ServiceUpdate(t.Context(), was.ID, was.Version, was.Spec, swarm.ServiceUpdateOptions{Rollback: "previous"}) // as docker service rollback
			require.NoError(t, err)
			seen := map[ring.UpdateState]bool{}
			back, _ := r.await(t, string(tt.ends), func(s ring.ClusterService, _ []ring.Instance) bool {
				require.Equal(t, []ring.Version{first.Version, next.Version}, []ring.Version{s.Version, s.Previous}, "%s: %s", s.Update, s.Says)
				require.True(t, s.Update.RolledBack(), "%s: %s", s.Update, s.Says)
				require.False(t, s.Changed(), "the spec is the one that was sent")
				seen[s.Update] = true
				return s.Update == tt.ends
			})
			t.Log(seen, back.Says)
			for state := range seen {
				require.Contains(t, []ring.UpdateState{started, tt.ends}, state)
			}
			if tt.first == nil {
				r.await(t, "whole", serving(first.Version, 2))
			}
		})
	}
}
