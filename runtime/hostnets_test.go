package runtime

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// aHost is a host on 192.168.1.0/24 with a VPN, a static route, a bridge of the engine's
// and one of a virtual machine's.
func aHost() hostNets {
	on := func(prefix, device string, idle bool) attachedNet {
		p := netip.MustParsePrefix(prefix)
		return attachedNet{p.Masked(), p.Addr(), device, idle}
	}
	return hostNets{
		attached: []attachedNet{
			on("192.168.1.7/24", "eth0", false), on("fd12::7/64", "eth0", false), on("100.101.2.3/32", "tailscale0", false),
			on("172.17.0.1/16", "docker0", true), on("172.20.0.1/16", "br-0123456789ab", true), on("172.21.0.1/16", "br-ffffffffffff", true),
			on("172.22.0.1/16", "br-eeeeeeeeeeee", false), on("192.168.122.1/24", "virbr0", true),
		},
		routes: []hostRoute{
			{netip.MustParsePrefix("0.0.0.0/0"), "eth0"}, {netip.MustParsePrefix("10.0.0.0/8"), "tun0"}, {netip.MustParsePrefix("172.20.0.0/16"), "br-0123456789ab"},
		},
		servers: []netip.Addr{netip.MustParseAddr("192.168.9.53"), netip.MustParseAddr("fd77::53")},
	}
}

func aBridge(name, app string, subnets ...string) network.Summary {
	n := network.Summary{Name: name, ID: "0123456789abcdef0123", Labels: map[string]string{labelApp: app}}
	for _, s := range subnets {
		n.IPAM.Config = append(n.IPAM.Config, network.IPAMConfig{Subnet: s})
	}
	return n
}

func withSubnets(subnets ...string) *ring.App {
	app := &ring.App{
		Name: "web", Files: []string{"web/compose.yaml"}, Networks: []ring.Network{{Key: "lan"}},
		Services: []ring.Service{{Name: "web", File: "web/compose.yaml", Line: 2, Spec: ring.Spec{Networks: []ring.Attachment{{Network: "lan"}}}}},
		Places:   map[string]ring.Place{"networks.lan.ipam.config": {File: "web/compose.yaml", Line: 9}},
	}
	for _, s := range subnets {
		app.Networks[0].Pools = append(app.Networks[0].Pools, ring.Pool{Subnet: s})
	}
	return app
}

func TestANewNetworkTakesNothingOfTheHost(t *testing.T) {
	for _, c := range []struct {
		name    string
		subnets []string
		here    []network.Summary
		was     *ring.App
		takes   string // refused; "" is not
		told    string
	}{
		{name: "a subnet of nobody's", subnets: []string{"192.168.50.0/24"}},
		{name: "the engine chooses"},
		{name: "the host's network", subnets: []string{"192.168.1.0/24"}, takes: "the host's own address 192.168.1.7 (eth0)"},
		{name: "the host's network in a wider one", subnets: []string{"192.168.0.0/16"}, takes: "the host's own address 192.168.1.7 (eth0)"},
		{name: "the host's neighbours", subnets: []string{"192.168.1.128/25"}, takes: "a part of 192.168.1.0/24, to which the host is attached (eth0)"},
		{name: "the host's gateway", subnets: []string{"192.168.1.0/30"}, takes: "a part of 192.168.1.0/24"},
		{name: "an address on a tunnel", subnets: []string{"100.101.0.0/16"}, takes: "the host's own address 100.101.2.3 (tailscale0)"},
		{name: "beside an address on a tunnel", subnets: []string{"100.64.0.0/16"}},
		{name: "by IPv6", subnets: []string{"fd12::/64"}, takes: "the host's own address fd12::7 (eth0)"},
		{name: "the name server", subnets: []string{"192.168.9.0/24"}, takes: "the host's name server 192.168.9.53"},
		{name: "the name server by IPv6", subnets: []string{"fd77::/64"}, takes: "the host's name server fd77::53"},
		{name: "machines of another program", subnets: []string{"192.168.122.0/24"}, takes: "the host's own address 192.168.122.1 (virbr0)"},
		{name: "the second of two", subnets: []string{"192.168.50.0/24", "192.168.1.0/24"}, takes: "192.168.1.7"},
		{name: "a part of a wider route", subnets: []string{"10.9.0.0/24"}, told: "takes a part of the host's route to 10.0.0.0/8 (tun0)"},
		{name: "a bridge of the engine's, which says so itself", subnets: []string{"172.20.0.0/16"}, here: []network.Summary{aBridge("shop_default", "shop", "172.20.0.0/16")}},
		{name: "a bridge that was left over", subnets: []string{"172.21.0.0/16"}},
		{name: "a bridge of another engine's", subnets: []string{"172.22.0.0/16"}, takes: "172.22.0.1"},
		{name: "its own bridge", subnets: []string{"192.168.1.0/24"}, here: []network.Summary{aBridge("web_lan", "web", "192.168.1.0/24")}},
		{name: "its own network with another subnet", subnets: []string{"192.168.1.0/24"}, here: []network.Summary{aBridge("web_lan", "web", "192.168.50.0/24")}, takes: "192.168.1.7"},
		{name: "another app's network", subnets: []string{"192.168.1.0/24"}, here: []network.Summary{aBridge("shop_lan", "shop", "192.168.1.0/24")}, takes: "192.168.1.7"},
		{name: "the name server that it brought before", subnets: []string{"192.168.9.0/24"}, was: withSubnets("192.168.9.0/24")},
		{name: "the host's network that it claims to have had", subnets: []string{"192.168.1.0/24"}, was: withSubnets("192.168.1.0/24"), takes: "192.168.1.7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := withSubnets(c.subnets...)
			a := ring.Action{Kind: ring.DoAdmit, App: "web", Of: app, Was: c.was}
			b := beside{host: "edge-1", nets: aHost(), networks: c.here}
			told, all := b.hostsOwn(a, joinedNetworks(app)[0])
			require.Contains(t, strings.Join(told, "\n"), c.told)
			require.Equal(t, c.told == "", len(told) == 0, told)
			require.Equal(t, c.takes == "", len(all) == 0, all)

			b.ownerHost = true
			said, none := b.hostsOwn(a, joinedNetworks(app)[0])
			require.Empty(t, none, "the signers own the host")
			if c.takes == "" {
				return
			}
			require.Contains(t, all[0].Says, "takes ")
			require.Contains(t, all[0].Says, c.takes)
			require.Equal(t, ring.PolicyDenied, all[0].Code)
			require.Equal(t, "web/compose.yaml:9", all[0].Where())
			require.Contains(t, strings.Join(said, "\n"), c.takes)
		})
	}
}

// The host's network may change after the app was admitted.
func TestWhatANetworkTakesIsAskedRightBeforeItIsMade(t *testing.T) {
	for _, owner := range []bool{false, true} {
		f := newFake(Options{Host: "edge-1", OwnerHost: func() bool { return owner }})
		f.nets = func(context.Context, engine) (hostNets, error) { return aHost(), nil }
		app := withSubnets("192.168.1.0/24")
		a := ring.Action{Kind: ring.DoNetwork, App: "web", Of: app, Network: &app.Networks[0], NetworkName: "web_lan"}
		_, err := f.Do(t.Context(), a)
		if owner {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "takes the host's own address 192.168.1.7")
		_, made, err := f.network(t.Context(), f.Client(), "web_lan")
		require.NoError(t, err)
		require.False(t, made)
	}
}

// The lines are those of a kernel and a resolver.
func TestWhatTheHostsNetworkIsReadFrom(t *testing.T) {
	for line, want := range map[string]string{
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0":    "0.0.0.0/0 eth0",
		"docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0": "172.17.0.0/16 docker0",
		"tun0\t0000000A\t01000A0A\t0003\t0\t0\t50\t000000FF\t0\t0\t0":   "10.0.0.0/8 tun0",
	} {
		r, ok := route4(line)
		require.True(t, ok)
		require.Equal(t, want, r.prefix.String()+" "+r.device)
	}
	r, ok := route6("fd120000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0")
	require.True(t, ok)
	require.Equal(t, "fd12::/64 eth0", r.prefix.String()+" "+r.device)
	for _, line := range []string{"", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT", "x y"} {
		_, ok := route4(line)
		require.False(t, ok, line)
		_, ok = route6(line)
		require.False(t, ok, line)
	}
	for line, want := range map[string]string{"nameserver 192.168.1.1": "192.168.1.1", "nameserver fe80::1%eth0": "fe80::1", "nameserver 127.0.0.53": "", "# nameserver 1.1.1.1": "", "search x": "", "nameserver": ""} {
		s, ok := nameServer(line)
		require.Equal(t, want != "", ok, line)
		if ok {
			require.Equal(t, want, s.String())
		}
	}
	seen, err := lookAtHost()
	require.NoError(t, err)
	for _, n := range seen.attached {
		require.True(t, n.prefix.IsValid() && n.prefix.Contains(n.address), n)
	}
}
