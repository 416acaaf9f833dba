package runtime

import (
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What is on a swarm, and not the app's, is in its way.
func TestAnAppIsAdmittedBesideWhatIsOnTheSwarm(t *testing.T) {
	service := func(name string, labels map[string]string) swarm.Service {
		return swarm.Service{Spec: swarm.ServiceSpec{Annotations: swarm.Annotations{Name: name, Labels: labels}}}
	}
	ours := map[string]string{labelHost: "prod", labelApp: "shop", labelService: "web"}
	app := func(n ring.Network) *ring.App {
		s := ring.Service{Name: "web"}
		s.Spec.Networks = []ring.Attachment{{Network: n.Key}}
		return &ring.App{Name: "shop", Files: []string{"shop/compose.yaml"}, Services: []ring.Service{s}, Networks: []ring.Network{n}}
	}
	own, edge := ring.Network{Key: "default"}, ring.Network{Key: "edge", External: "edge"}
	for _, tt := range []struct {
		name     string
		services []swarm.Service
		networks []network.Summary
		of       ring.Network
		coming   []string
		code     ring.Code
		says     string
	}{
		{name: "nothing in the way", of: own},
		{name: "its own service", services: []swarm.Service{service("shop_web", ours)}, of: own},
		{name: "another one's service beside it", services: []swarm.Service{service("shop_db", nil)}, of: own},
		{name: "a service of a stack", services: []swarm.Service{service("shop_web", map[string]string{stackName: "shop"})}, of: own, code: ring.ForeignProject, says: "a service shop_web is on the swarm, and gitring did not make it"},
		{name: "one of another cluster", services: []swarm.Service{service("shop_web", map[string]string{labelHost: "test", labelApp: "shop", labelService: "web"})}, of: own, code: ring.ForeignProject},
		{
			name: "one of another app of ours", services: []swarm.Service{service("shop_web", map[string]string{labelHost: "prod", labelApp: "shop_web", labelService: ""})},
			of: own, code: ring.ForeignProject,
		},
		{name: "a network of one node", networks: []network.Summary{{Name: "shop_default", Scope: "local"}}, of: own, code: ring.BadValue, says: "network shop_default is of one node and not of the swarm"},
		{name: "its own network", networks: []network.Summary{{Name: "shop_default", Scope: swarmScope, Labels: map[string]string{labelApp: "shop", labelHost: "prod"}}}, of: own},
		{name: "another's network", networks: []network.Summary{{Name: "shop_default", Scope: swarmScope, Labels: map[string]string{labelApp: "db", labelHost: "prod"}}}, of: own, code: ring.PolicyDenied},
		{name: "an external network that is there", networks: []network.Summary{{Name: "edge", Scope: swarmScope}}, of: edge},
		{name: "one that is not", of: edge, code: ring.BadValue, says: "network edge is external and not on this swarm"},
		{name: "one that comes", of: edge, coming: []string{"edge"}},
		{name: "one of one node", networks: []network.Summary{{Name: "edge", Scope: "local"}}, of: edge, code: ring.BadValue, says: "network edge is of one node and not of the swarm"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := ring.Action{Kind: ring.DoAdmit, App: "shop", Of: app(tt.of), Coming: tt.coming}
			all := admitOnSwarm("prod", a, tt.services, tt.networks)
			if tt.code == "" {
				require.Empty(t, all)
				return
			}
			require.Len(t, all, 1)
			require.Equal(t, tt.code, all[0].Code)
			require.Contains(t, all[0].Says, tt.says)
			require.NotEmpty(t, all[0].Hint)
			require.Equal(t, "shop/compose.yaml", all[0].File)
		})
	}
}

// A name that no node has, or two, says not where the data is.
func TestAPinNamesOneNodeThatThereIs(t *testing.T) {
	node := func(id, name string) swarm.Node {
		return swarm.Node{ID: id, Description: swarm.NodeDescription{Hostname: name}}
	}
	nodes := []swarm.Node{node("n2", "twin"), node("n1", "edge-1"), node("n3", "twin")}
	for pin, want := range map[string]struct{ says, hint string }{
		"node.hostname == edge-1": {},
		"node.hostname==EDGE-1":   {},
		"node.id==n3":             {},
		"node.id==n9":             {"which no node of the swarm is", "n1 (edge-1), n2 (twin), n3 (twin)"},
		"node.hostname==edge-2":   {"which no node of the swarm is", "n1 (edge-1), n2 (twin), n3 (twin)"},
		"node.hostname==twin":     {"a name of 2 nodes", "pin it by node.id, to one of n2, n3"},
	} {
		a := swarmAction()
		a.Want.Spec.Cluster.Constraints = []string{pin}
		all := pinsOnSwarm(a, nodes)
		if want.says == "" {
			require.Empty(t, all, pin)
			continue
		}
		require.Len(t, all, 1, pin)
		require.Equal(t, ring.VolumeNotPinned, all[0].Code)
		require.Contains(t, all[0].Says, want.says)
		require.Contains(t, all[0].Hint, want.hint)
		a.Want.Spec.Mounts = nil
		require.Empty(t, pinsOnSwarm(a, nodes), "it writes nothing, and waits for its node")
	}
}
