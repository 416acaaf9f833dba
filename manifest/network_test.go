package manifest

import (
	"strings"
	"testing"

	"github.com/gitring/gitring/ring"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// onNetwork makes an app that joins the network x, declared by the lines from line 5 on.
func onNetwork(lines ...string) map[string]string {
	return map[string]string{"web/compose.yaml": "services:\n  web: {image: a, networks: [x]}\nnetworks:\n  x:\n    " + strings.Join(lines, "\n    ") + "\n"}
}

func TestFormsOfNetworks(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  ring.Network
		note  string
	}{
		{name: "an external one goes by its key", lines: []string{"external: true"}, want: ring.Network{External: "x"}},
		{name: "or by its name", lines: []string{"external: true", "name: proxy"}, want: ring.Network{External: "proxy"}},
		{name: "or by the old form", lines: []string{"external: {name: proxy}"}, want: ring.Network{External: "proxy"}},
		{name: "what else is said of it is noted", lines: []string{"external: true", "driver: macvlan", "ipam: {config: [{subnet: 10.0.0.0/8}]}"}, want: ring.Network{External: "x"}, note: "network x: it is external"},
		{name: "one of another name", lines: []string{"name: proxy"}, want: ring.Network{Name: "proxy"}},
		{name: "what says the default is none", lines: []string{"name: web_x", "driver: bridge", "ipam: {driver: default}"}, want: ring.Network{}},
		{name: "that others may join is noted", lines: []string{"attachable: true"}, want: ring.Network{}, note: "network x: attachable lets every app of this host join it"},
		{
			name:  "driver and options are for policy",
			lines: []string{"driver: macvlan", "driver_opts: {parent: eth0}", "internal: true", "enable_ipv6: true", "enable_ipv4: true", "labels: {a: b}"},
			want:  ring.Network{Driver: "macvlan", DriverOpts: map[string]string{"parent": "eth0"}, Internal: true, IPv6: true, Labels: map[string]string{"a": "b"}},
		},
		{
			name:  "addresses",
			lines: []string{"ipam:", "  driver: own", "  options: {c: d}", "  config:", "    - {subnet: 10.9.0.0/16, gateway: 10.9.0.1, ip_range: 10.9.8.0/24, aux_addresses: {router: 10.9.0.2}}"},
			want: ring.Network{IPAMDriver: "own", IPAMOptions: map[string]string{"c": "d"}, Pools: []ring.Pool{
				{Subnet: "10.9.0.0/16", Gateway: "10.9.0.1", IPRange: "10.9.8.0/24", Aux: map[string]string{"router": "10.9.0.2"}},
			}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Key = "x"
			a := accepted(t, onNetwork(c.lines...))
			if d := cmp.Diff([]ring.Network{c.want}, a.Networks); d != "" {
				t.Error(d)
			}
			if !strings.Contains(notes(a), c.note) {
				t.Errorf("%q is not in %q", c.note, notes(a))
			}
		})
	}
}

// The idiom of reverse proxies: the app's own network, and one that the proxy made.
func TestAServiceJoinsItsOwnAndTheProxysNetwork(t *testing.T) {
	a := accepted(t, map[string]string{"web/compose.yaml": `
services:
  web:
    image: a
    container_name: shop
    networks:
      default:
      proxy: {ipv4_address: 172.30.0.9, aliases: [web.internal], priority: 10}
  db: {image: b}
networks:
  proxy: {external: true}
`})
	want := []ring.Attachment{
		{Network: "default", Aliases: []string{"shop"}},
		{Network: "proxy", Aliases: []string{"shop", "web.internal"}, IPv4: "172.30.0.9", Priority: 10},
	}
	s, _ := a.Service("web")
	if d := cmp.Diff(want, s.Spec.Networks); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]ring.Network{{Key: "default"}, {Key: "proxy", External: "proxy"}}, a.Networks); d != "" {
		t.Error(d)
	}
}

func TestTheDefaultNetworkMayBeAnother(t *testing.T) {
	a := accepted(t, with(web("image: a"), "web/compose.override.yaml", "networks: {default: {name: lan, external: true}}\n"))
	if d := cmp.Diff([]ring.Network{{Key: "default", External: "lan"}}, a.Networks); d != "" {
		t.Error(d)
	}
}

func TestAllOfAnEndpoint(t *testing.T) {
	a := accepted(t, with(web("image: a", "networks:", "  x:", "    link_local_ips: [169.254.8.8, 'fe80::7']", "    mac_address: 02:42:ac:11:65:43", "    driver_opts: {a: b}"),
		"web/compose.override.yaml", "networks: {x: }\n"))
	want := []ring.Attachment{{Network: "x", LinkLocal: []string{"169.254.8.8", "fe80::7"}, MacAddress: "02:42:ac:11:65:43", DriverOpts: map[string]string{"a": "b"}}}
	if d := cmp.Diff(want, a.Services[0].Spec.Networks); d != "" {
		t.Error(d)
	}
}

func TestNetworkModes(t *testing.T) {
	for _, c := range []struct {
		lines []string
		mode  string
		none  bool
		ports int
		note  string
	}{
		{lines: []string{"network_mode: host", "ports: ['80:80']"}, mode: "host", note: "ports are not used"},
		{lines: []string{"network_mode: bridge", "ports: ['80:80']"}, mode: "bridge", ports: 1},
		{lines: []string{"network_mode: none"}, none: true},
	} {
		a := accepted(t, web(append([]string{"image: a"}, c.lines...)...))
		s := a.Services[0].Spec
		if s.NetworkMode != c.mode || s.NoNetwork != c.none || len(s.Networks) != 0 || len(a.Networks) != 0 || len(s.Ports) != c.ports || !strings.Contains(notes(a), c.note) {
			t.Errorf("%v: %s\n%s", c.lines, dump(t, s), notes(a))
		}
	}
}

func TestFormsOfPorts(t *testing.T) {
	a := accepted(t, web("image: a", "ports:", "  - '[::1]:81:80'", "  - 127.0.0.1:81:80", "  - 8000-8001:9000-9001/udp",
		"  - {target: 70, published: '7000', host_ip: '::1', protocol: tcp, mode: host, name: http, app_protocol: http}"))
	want := []ring.Port{
		{HostIP: "::1", HostPort: "7000", Container: 70, Protocol: "tcp"},
		{HostIP: "127.0.0.1", HostPort: "81", Container: 80, Protocol: "tcp"},
		{HostIP: "::1", HostPort: "81", Container: 80, Protocol: "tcp"},
		{HostPort: "8000", Container: 9000, Protocol: "udp"},
		{HostPort: "8001", Container: 9001, Protocol: "udp"},
	}
	if d := cmp.Diff(want, a.Services[0].Spec.Ports); d != "" {
		t.Error(d)
	}
	if !strings.Contains(notes(a), "name and app_protocol of a port") {
		t.Error(notes(a))
	}
}

func TestRefusedNetworks(t *testing.T) {
	endpoint := func(line string) map[string]string {
		return with(web("image: a", "networks:", "  x:", "    "+line), "web/compose.override.yaml", "networks: {x: }\n")
	}
	two := func(a, b string) map[string]string {
		return map[string]string{"web/compose.yaml": "services:\n  a: {image: x, ports: ['" + a + "']}\n  b:\n    image: x\n    ports:\n      - '" + b + "'\n"}
	}
	areRefused(t, []refused{
		{name: "the host's network by name", files: onNetwork("external: true", "name: host"), code: ring.BadValue, line: 6, hint: "network_mode: host"},
		{name: "a name that is none", files: onNetwork("name: a/b"), code: ring.BadName, line: 5},
		{name: "one network under two keys", files: map[string]string{"web/compose.yaml": "services:\n  web: {image: a, networks: [x, y]}\nnetworks:\n  x: {name: z}\n  y:\n    name: z\n"}, code: ring.BadValue, line: 6, says: "both z"},
		{name: "a network of Swarm", files: onNetwork("driver: overlay"), code: ring.Unsupported, line: 5},
		{name: "no IPv4", files: onNetwork("enable_ipv4: false"), code: ring.Unsupported, line: 5, says: "1.47"},
		{name: "an address to keep free that is elsewhere", files: onNetwork("ipam:", "  config:", "    - subnet: 10.0.0.0/24", "      aux_addresses:", "        r: 10.1.0.1"), code: ring.BadValue, line: 9},
		{name: "the name of an interface", files: endpoint("interface_name: eth7"), code: ring.Unsupported, line: 6, says: "1.49"},
		{name: "a gateway's priority", files: endpoint("gw_priority: 1"), code: ring.Unsupported, line: 6, says: "1.48"},
		{name: "an address that is not link-local", files: endpoint("link_local_ips: [10.0.0.1]"), code: ring.BadValue, line: 6},
		{name: "a MAC address that is none", files: endpoint("mac_address: 02-42"), code: ring.BadValue, line: 6},
		{name: "a mode that is a network's name", files: web("image: a", "network_mode: proxy"), code: ring.Unsupported, line: 4, hint: "external: true"},
		{name: "a mode and networks", files: with(web("image: a", "networks: [x]", "network_mode: host"), "web/compose.override.yaml", "networks: {x: }\n"), code: ring.BadValue, line: 5, hint: "one of the two"},
		{name: "a host port of every address and of one", files: two("80:80", "127.0.0.1:80:81"), code: ring.BadValue, line: 6, says: "host port 80 is published by a too"},
		{name: "a host port of all IPv6 and of one", files: two("[::]:80:80", "[::1]:80:81"), code: ring.BadValue, line: 6},
		{name: "an address of a long form that is none", files: web("image: a", "ports:", "  - {target: 80, published: 80, host_ip: localhost}"), code: ring.BadValue, line: 5, says: "localhost"},
	})
	accepted(t, two("127.0.0.1:80:80", "127.0.0.2:80:80"))
	accepted(t, two("0.0.0.0:80:80", "[::1]:80:80"))
	accepted(t, two("80:80/udp", "80:80/tcp"))
}

// People write `default: {external: true, name: proxy}` beside `proxy`: one network, which
// Compose joins once.
func TestAnExternalNetworkOfTwoKeysIsJoinedOnce(t *testing.T) {
	a := accepted(t, map[string]string{"web/compose.yaml": `services:
  web: {image: a, networks: {proxy: {aliases: [front]}, default: {aliases: [site]}}}
  db: {image: a}
networks:
  proxy: {external: true}
  default: {external: true, name: proxy}
`})
	require.Equal(t, []ring.Network{{Key: "default", External: "proxy"}}, a.Networks)
	for name, aliases := range map[string][]string{"web": {"front", "site"}, "db": nil} {
		s, ok := a.Service(name)
		require.True(t, ok)
		require.Equal(t, []ring.Attachment{{Network: "default", Aliases: aliases}}, s.Spec.Networks)
	}
	require.Contains(t, notes(a), "networks default and proxy are both proxy, which is joined once")
}

func TestTwoNetworksOfTheAppMayNotHaveOneName(t *testing.T) {
	plan, _ := Read(repo(map[string]string{"web/compose.yaml": "services: {web: {image: a, networks: [x, y]}}\nnetworks: {x: {name: n}, y: {name: n}}\n"}), settings())
	require.Contains(t, plan.Refused["web"].Says, "networks.x and networks.y are both n")
}

// ${NAME} of an .env may be empty, and is no name to Compose.
func TestAnEmptyContainerNameIsNone(t *testing.T) {
	for _, files := range []map[string]string{
		{"web/compose.yaml": "services: {web: {image: a, container_name: ''}}\n"},
		{"web/compose.yaml": "services: {web: {image: a, container_name: '${NAME}'}}\n", "web/.env": "NAME=\n"},
		{"web/compose.yaml": "services: {web: {image: a, container_name: front}}\n", "web/compose.override.yaml": "services: {web: {container_name: ''}}\n"},
	} {
		plan, _ := Read(repo(files), settings())
		require.Empty(t, plan.Refused)
		require.Empty(t, plan.Apps[0].Services[0].Spec.ContainerName)
	}
	plan, _ := Read(repo(map[string]string{
		"web/compose.yaml": "services: {web: {image: a, container_name: ''}}\n", "web/compose.override.yaml": "services: {web: {container_name: front}}\n",
	}), settings())
	require.Empty(t, plan.Refused)
	require.Equal(t, "front", plan.Apps[0].Services[0].Spec.ContainerName)
}
