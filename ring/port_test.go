package ring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Each row was tried on a real engine, or is in the conformance suite of runtime.
func TestTwoPortsClashWhereTheHostHasOne(t *testing.T) {
	for _, c := range []struct {
		name    string
		a, b    string
		clashes bool
	}{
		{"one port on all addresses, twice", "80/tcp", "80/tcp", true},
		{"another port", "80/tcp", "81/tcp", false},
		{"another protocol", "53/tcp", "53/udp", false},
		{"a third protocol", "53/sctp", "53/udp", false},
		{"udp twice", "53/udp", "53/udp", true},
		{"one address twice", "192.168.1.5:80/tcp", "192.168.1.5:80/tcp", true},
		{"two addresses", "192.168.1.5:80/tcp", "192.168.1.6:80/tcp", false},
		{"an address and the loopback", "192.168.1.5:80/tcp", "127.0.0.1:80/tcp", false},
		{"two loopbacks", "127.0.0.1:80/tcp", "127.0.0.2:80/tcp", false},
		{"the loopback and no address said", "127.0.0.1:80/tcp", "80/tcp", true},
		{"an address and no address said", "192.168.1.5:80/tcp", "80/tcp", true},
		{"an address and all of its family", "192.168.1.5:80/tcp", "0.0.0.0:80/tcp", true},
		{"an address and all of the other family", "192.168.1.5:80/tcp", "[::]:80/tcp", false},
		{"all of one family and all of the other", "0.0.0.0:80/tcp", "[::]:80/tcp", false},
		{"all of a family and no address said", "[::]:80/tcp", "80/tcp", true},
		{"an address of the second family and all of it", "[fd00::5]:80/tcp", "[::]:80/tcp", true},
		{"an address of the second family and all of the first", "[fd00::5]:80/tcp", "0.0.0.0:80/tcp", false},
		{"an address of the second family and no address said", "[fd00::5]:80/tcp", "80/tcp", true},
		{"one address of the second family in two ways", "[0:0:0:0:0:0:0:1]:80/tcp", "[::1]:80/tcp", true},
		{"an address of the first family as the second writes it", "[::ffff:10.0.0.1]:80/tcp", "10.0.0.1:80/tcp", true},
		{"an address and another port on all", "192.168.1.5:80/tcp", "0.0.0.0:81/tcp", false},
		{"an address and another protocol on all", "192.168.1.5:53/tcp", "0.0.0.0:53/udp", false},
		{"one port in two ways", "0080/tcp", "80/tcp", true},
		{"as an earlier release kept it", "::1:80/tcp", "[::1]:80/tcp", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := ring.ParsePublished(c.a), ring.ParsePublished(c.b)
			require.Equal(t, c.clashes, a.Clashes(b))
			require.Equal(t, c.clashes, b.Clashes(a), "the other way round")
		})
	}
	chosen := ring.Port{Container: 80, Protocol: "tcp"}
	require.False(t, chosen.Clashes(chosen), "the engine chooses a free port for each")
}

func TestAPublishedPortReadsAsItIsWritten(t *testing.T) {
	for want, p := range map[string]ring.Port{
		"80/tcp":             {HostPort: "080", Container: 1},
		"127.0.0.1:80/udp":   {HostIP: "127.0.0.1", HostPort: "80", Protocol: "UDP"},
		"[::1]:80/tcp":       {HostIP: "0:0:0:0:0:0:0:1", HostPort: "80", Protocol: "tcp"},
		"10.0.0.1:80/tcp":    {HostIP: "::ffff:10.0.0.1", HostPort: "80", Protocol: "tcp"},
		"[::]:65535/sctp":    {HostIP: "[::]", HostPort: "65535", Protocol: "sctp"},
		"0.0.0.0:100/tcp":    {HostIP: "0.0.0.0", HostPort: "100", Protocol: "tcp"},
		"[fe80::1]:8080/tcp": {HostIP: "fe80::1", HostPort: "8080", Protocol: "tcp"},
	} {
		require.Equal(t, want, p.Published())
		require.Equal(t, want, ring.ParsePublished(want).Published())
	}
}
