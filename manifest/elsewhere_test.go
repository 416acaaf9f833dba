package manifest

import (
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
	"github.com/stretchr/testify/require"
)

func TestAContainerOfAnotherAppIsJoinedByItsName(t *testing.T) {
	files := map[string]string{
		"gate/compose.yaml": "services: {vpn: {image: a, container_name: gluetun}, dns: {image: a}}\n",
		"load/compose.yaml": "services:\n  qb: {image: a, network_mode: 'container:gluetun', expose: [80]}\n  dig: {image: a, network_mode: 'container:gate-dns-1'}\n",
	}
	var memory Memory
	for range 2 { // the second time from memory
		plan := memory.Look(repo(files), settings()).Plan
		require.Nil(t, plan.Refusal)
		require.Empty(t, plan.Refused)
		load, _ := plan.App("load")
		require.Equal(t, "gate/vpn", serviceOf(t, load, "qb").Spec.NetworkOf)
		require.Equal(t, "gate/dns", serviceOf(t, load, "dig").Spec.NetworkOf)
		qb := serviceOf(t, load, "qb")
		require.Empty(t, qb.Spec.NetworkMode)
		require.Empty(t, qb.Spec.Networks)
		require.Empty(t, qb.Spec.Owners(), "it shares no fate with what it joins")
		require.Equal(t, ring.ServiceID("gate/vpn"), qb.Spec.Elsewhere())
		require.NotEmpty(t, qb.Composed.Not)
		require.Contains(t, strings.Join(load.Notes, "\n"), "qb: network_mode container:gluetun is service vpn of app gate")
	}
}

func TestAContainerThatCannotBeJoinedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		code  ring.Code
		files map[string]string
		says  string
	}{
		"of nobody":              {ring.PolicyDenied, nil, "no app of this source has"},
		"of itself":              {ring.PolicyDenied, map[string]string{"load/compose.yaml": "services: {qb: {image: a, container_name: gluetun, network_mode: 'container:gluetun'}}\n"}, "no app of this source has"},
		"a job":                  {ring.BadValue, map[string]string{"gate/compose.yaml": "services: {vpn: {image: a, container_name: gluetun, restart: 'no'}}\n"}, "which is a job and ends"},
		"of two replicas":        {ring.BadValue, map[string]string{"gluetun/compose.yaml": "services: {x: {image: a, deploy: {replicas: 2}}}\n", "load/compose.yaml": "services: {qb: {image: a, network_mode: 'container:gluetun-x-1'}}\n"}, "which has not one replica"},
		"in another one's":       {ring.Unsupported, map[string]string{"gate/compose.yaml": "services: {vpn: {image: a, container_name: gluetun, network_mode: 'service:x'}, x: {image: a}}\n"}, "whose network is another one's"},
		"that waits for this":    {ring.Unsupported, map[string]string{"gate/compose.yaml": "services: {vpn: {image: a, container_name: gluetun}}\n", gitringFile: "version: 1\napps: [{path: gate, after: [{app: mid}]}, {path: mid, after: [{app: load}]}, {path: load}]\n", "mid/compose.yaml": "services: {x: {image: a}}\n"}, "which itself waits for app load"},
		"with ports of its own":  {ring.BadValue, map[string]string{"gate/compose.yaml": "services: {vpn: {image: a, container_name: gluetun}}\n", "load/compose.yaml": "services: {qb: {image: a, network_mode: 'container:gluetun', ports: ['80:80']}}\n"}, "its network is that of gluetun"},
		"with a check over HTTP": {ring.BadValue, map[string]string{"gate/compose.yaml": "services: {vpn: {image: a, container_name: gluetun}}\n", "load/compose.yaml": "services: {qb: {image: a, network_mode: 'container:gluetun', x-gitring: {checks: [{name: up, for: readiness, http: {port: 80}}]}}}\n"}, "no address of its own"},
	} {
		files := map[string]string{"load/compose.yaml": "services: {qb: {image: a, network_mode: 'container:gluetun'}}\n"}
		for f, text := range c.files {
			files[f] = text
		}
		plan, _ := Read(repo(files), settings())
		r := plan.Refused["load"]
		if r == nil || r.Code != c.code || !strings.Contains(r.Says, c.says) || r.File != "load/compose.yaml" || r.Hint == "" {
			t.Errorf("%s: %s %v", name, dump(t, r), plan.Refusal)
		}
	}
}

// Of two apps with the name the one in force is meant, whichever comes first.
func TestTheContainerOfTheAppInForceIsJoined(t *testing.T) {
	vpn := "services: {vpn: {image: a, container_name: gluetun}}\n"
	files := map[string]string{"a/compose.yaml": vpn, "b/compose.yaml": vpn, "load/compose.yaml": "services: {qb: {image: a, network_mode: 'container:gluetun'}}\n"}
	for held, want := range map[string]string{"": "a/vpn", "a": "a/vpn", "b": "b/vpn"} {
		s := settings()
		s.Held = map[string]string{"container_name gluetun": held}
		plan, _ := Read(repo(files), s)
		load, ok := plan.App("load")
		require.True(t, ok, dump(t, plan.Refused))
		require.Equal(t, want, load.Services[0].Spec.NetworkOf)
	}
}
