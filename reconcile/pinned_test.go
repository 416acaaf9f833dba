package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// onNode is an app of a swarm that writes a volume on a node.
func onNode(app, pin string) ring.App {
	a := withData(app, "db", "pgdata", "postgres:16")
	a.Services[0].Spec.Cluster = &ring.ClusterSpec{Constraints: []string{"node.role==worker", pin}}
	return a
}

// On a swarm a volume is where its service is pinned. Another node has another one of that name.
func TestNoVolumeBeginsEmptyOnAnotherNode(t *testing.T) {
	image := func(pin string, known bool) ring.App {
		a := onNode("shop", pin)
		a.Services[0].Spec.Mounts = nil
		if known {
			a.Services[0].Image = ring.Image{Known: true, Volumes: []string{"/var/lib/db"}}
		}
		return a
	}
	const node1, node2 = "node.hostname == node-1", "node.hostname == node-2"
	first, second := onNode("shop", node1), onNode("shop", node2)
	meant := onNode("shop", node2)
	meant.Volumes[0].From = ring.FromNone
	renamed := onNode("shop", node2)
	renamed.Volumes[0].Key, renamed.Services[0].Spec.Mounts[0].Source = "moved", "moved"
	renamed.Volumes[0].From = ring.FromNone
	reads := onNode("shop", node2)
	reads.Services[0].Spec.Mounts[0].ReadOnly = true
	taken := onNode("store", node2)
	taken.Volumes[0].Name, taken.Volumes[0].From = "shop_pgdata", "shop"
	for _, tt := range []struct {
		name      string
		was, next ring.App
		refused   []string
	}{
		{"another node", first, second, []string{"shop"}},
		{"another way to write the same", first, onNode("shop", "Node.Hostname==node-1"), nil},
		{"it is meant", first, meant, nil},
		{"another volume there", first, renamed, nil},
		{"it only reads", first, reads, nil},
		{"a volume of the image, not looked at yet", image(node1, true), image(node2, false), []string{"shop"}},
		{"a volume of the image, on the same node", image(node1, true), image(node1, false), nil},
		{"taken over on another node", first, taken, []string{"shop", "store"}},
		{"on one engine", withData("shop", "db", "pgdata", "postgres:16"), withData("shop", "db", "pgdata", "postgres:16"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := &ring.Plan{Source: "s", Commit: "c2", Apps: []ring.App{tt.next}}
			d := &DataHost{InForce: map[string]ring.InForce{"shop": {App: tt.was}}, Kept: map[string]ring.Kept{"volume shop_pgdata": {}}, OneHand: together}
			d.RefuseLeftBehind(plan)
			require.ElementsMatch(t, tt.refused, keysThat(plan.Refused, func(string) bool { return true }))
			for _, r := range plan.Refused {
				require.Equal(t, ring.VolumeLeftBehind, r.Code)
				require.Contains(t, r.Says, "WOULD BEGIN EMPTY: its data is where node.hostname == node-1, and services.db is pinned to node.hostname == node-2")
				require.Contains(t, r.Hint, "copy the data to the other node")
			}
		})
	}
}

// Nor where a person brings an earlier plan back.
func TestAnUndoLeavesNoVolumeOnAnotherNode(t *testing.T) {
	now := onNode("shop", "node.hostname == node-2")
	for name, tt := range map[string]struct {
		past ring.App
		says string
	}{
		"another node": {onNode("shop", "node.hostname == node-1"), "its data is where node.hostname == node-2, and services.db is pinned to node.hostname == node-1"},
		"the same":     {now, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := World{Facts: ring.Facts{Apps: map[string]ring.InForce{"shop": {App: now}}, Past: map[string]ring.Past{}, Overrides: map[string]ring.OverrideRow{}}}
			_, err := Carry(w, Act{Verb: Undo, App: "shop", Actor: "alice", Reason: "r", Plan: &ring.Past{App: tt.past}}, time.Unix(1e9, 0))
			if tt.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.says)
		})
	}
}
