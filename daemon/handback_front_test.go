package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/ring"
)

func TestTheLastTableOfAFrontHasNamesThatStayTrue(t *testing.T) {
	row := ring.FrontRow{Service: "shop/web", Front: "f", Table: ring.FrontTable{
		Generation: 7, Service: "shop/web", Ports: []ring.FrontPort{{Port: 80, Carry: ring.CarryAuto}}, CanaryWeight: 20, Connections: 10,
		Instances: []ring.FrontInstance{
			{Name: "111111111111", Version: "v1", State: ring.FrontActive}, {Name: "222222222222", State: ring.FrontDraining}, {Name: "gone", State: ring.FrontActive},
		},
	}}
	got := lastTable(row, ring.FrontSeen{Generation: 9}, "web")
	require.EqualValues(t, 10, got.Generation, "one more than the front's own")
	require.Equal(t, []ring.FrontInstance{
		{Name: "111111111111", Version: "v1", State: ring.FrontActive, Set: ring.SetStable},
		{Name: "222222222222", State: ring.FrontDraining, Set: ring.SetStable},
		{Name: "gone", State: ring.FrontActive, Set: ring.SetStable},
		{Name: "web", State: ring.FrontActive, Set: ring.SetCanary},
	}, got.Instances, "nobody that has something in flight is left out")
	require.Zero(t, got.CanaryWeight)
	require.Equal(t, row.Table.Ports, got.Ports)
	require.Len(t, row.Table.Instances, 3, "the row stays as it was")
	require.Empty(t, row.Table.Instances[0].Set)
}

func TestAFrontIsAServiceOfWhatIsHandedBack(t *testing.T) {
	route := ring.DefaultRoute()
	pids := int64(256)
	spec := ring.Spec{
		Image: ring.FrontImage, User: "65532:65532", CapDrop: []string{"ALL"}, ReadOnly: true, Labels: map[string]string{"traefik.rule": "Host(`$a`)"},
		Ports: []ring.Port{{HostIP: "127.0.0.1", HostPort: "8080", Container: 80, Protocol: "tcp"}}, Networks: []ring.Attachment{{Network: "default", Aliases: []string{"www"}}},
		Resources: &ring.Resources{Memory: 1 << 20, PidsLimit: &pids},
	}
	app := &ring.App{Name: "shop", Services: []ring.Service{{Name: "web", Route: &route, Spec: ring.Spec{Image: "a"}}, {Name: "web-front", FrontOf: "web", Spec: spec}}}
	front := composedFront(&spec, "gitring/front:0123456789ab", "/state/content", "shop-web-front-1-01234567")
	none, err := inPlaceOf([]string{})
	require.NoError(t, err)
	b, err := composeBeside(app, map[string]ring.Composing{}, nil, map[string]map[string]any{"web-front": front, "web": {"ports": none}})
	require.NoError(t, err)
	require.Contains(t, string(b), "ports: !override []")
	var got struct {
		Services map[string]struct {
			Image, Restart string
			ReadOnly       bool `yaml:"read_only"`
			Volumes        []string
			Labels         map[string]string
			Ports          []map[string]any
			Networks       map[string]struct{ Aliases []string }
		}
	}
	require.NoError(t, yaml.Unmarshal(b, &got))
	is := got.Services["web-front"]
	require.Equal(t, "gitring/front:0123456789ab always", is.Image+" "+is.Restart)
	require.True(t, is.ReadOnly)
	require.Equal(t, "Host(`$$a`)", is.Labels["traefik.rule"], "Compose replaces variables in this file")
	require.Equal(t, []map[string]any{{"target": 80, "published": "8080", "host_ip": "127.0.0.1", "protocol": "tcp"}}, is.Ports)
	require.Equal(t, []string{"www"}, is.Networks["default"].Aliases)
	own := "/state/fronts/" + ring.FrontID("shop-web-front-1-01234567")
	require.Equal(t, []string{own + "/table:/table:ro", own + "/run:/run/front", "/state/front:/front:ro"}, is.Volumes)
	require.Empty(t, got.Services["web"].Ports)
}
