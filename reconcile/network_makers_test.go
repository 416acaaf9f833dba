package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Who reads why an app is refused learns which other app makes the network: only another
// app, of the same commit and source, whose services join what it makes.
func TestTheMakerOfANetworkIsAnotherAppOfTheCommit(t *testing.T) {
	makes := func(app string) ring.App {
		return ring.App{
			Name: app, Source: "prod", Networks: []ring.Network{{Key: "proxy", Name: "net_" + app}},
			Services: []ring.Service{{Name: "web", Replicas: 1, Spec: ring.Spec{Networks: []ring.Attachment{{Network: "proxy"}}}}},
		}
	}
	unused := makes("unused")
	unused.Services = nil
	var p Pass
	p.Sources = []Source{
		{Name: "prod", Next: &ring.Plan{Commit: "c1", Apps: []ring.App{makes("edge"), makes("blog"), unused}}},
		{Name: "other", Next: &ring.Plan{Commit: "c1", Apps: []ring.App{makes("far")}}},
	}
	require.Equal(t, map[string]string{"net_edge": "edge"}, p.networkMakers(&ring.App{Name: "blog", Source: "prod", Commit: "c1"}))
	require.Empty(t, p.networkMakers(&ring.App{Name: "blog", Source: "prod", Commit: "c2"}))
}
