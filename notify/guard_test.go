package notify

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoMessageIsSentToAnAddressOfTheHostOrItsCloud(t *testing.T) {
	for address, want := range map[string][2]bool{ // may be reached; where private addresses are allowed
		"93.184.216.34": {true, true}, "2606:2800:220:1::1": {true, true}, "8.8.8.8": {true, true},
		"127.0.0.1": {false, true}, "127.8.8.8": {false, true}, "::1": {false, true}, "10.0.0.1": {false, true},
		"172.16.3.4": {false, true}, "172.32.0.1": {true, true}, "192.168.1.1": {false, true}, "100.64.0.1": {false, true},
		"fd12:3456::1": {false, true}, "fec0::1": {false, true}, "198.18.0.1": {false, true},
		"169.254.169.254": {false, false}, "169.254.1.1": {false, false}, "fe80::1": {false, false}, "fe80::1%eth0": {false, false},
		"fd00:ec2::254": {false, false}, "100.100.100.200": {false, false}, "168.63.129.16": {false, false},
		"0.0.0.0": {false, false}, "0.1.2.3": {false, false}, "::": {false, false}, "224.0.0.1": {false, false}, "ff02::1": {false, false}, "255.255.255.255": {false, false},
		// The same in other clothes.
		"::ffff:127.0.0.1": {false, true}, "::ffff:169.254.169.254": {false, false}, "::ffff:8.8.8.8": {true, true},
		"::127.0.0.1": {false, true}, "::169.254.169.254": {false, false},
		"64:ff9b::7f00:1": {false, true}, "64:ff9b::a9fe:a9fe": {false, false}, "64:ff9b::808:808": {true, true}, "64:ff9b:1::a9fe:a9fe": {false, false},
		"fd00:ec2::23": {false, false}, "fd20:ce::254": {false, false}, "fd00:42::42": {false, false}, "fd00:c1::a9fe:a9fe": {false, false}, "192.0.0.192": {false, false},
		"::ffff:0:127.0.0.1": {false, true}, "::ffff:0:169.254.169.254": {false, false},
		"64:ff9b:1:a9fe:a9:fe00::": {false, false}, "64:ff9b:1:a9:fe:a9fe::": {false, false}, "64:ff9b:1:0:a9:fea9:fe00::": {false, false}, "64:ff9b:1::a00:1": {false, true},
		"2002:7f00:1::": {false, true}, "2002:a9fe:a9fe::1": {false, false}, "2002:808:808::1": {true, true},
		"2001:0:4136:e378:8000:63bf:5601:5601": {false, false}, // Teredo of 169.254.169.254, which is kept inverted
	} {
		a := netip.MustParseAddr(address)
		require.Equal(t, want[0], forbidden(a, false) == "", address)
		require.Equal(t, want[1], forbidden(a, true) == "", "%s, private allowed", address)
	}
	require.NotEmpty(t, forbidden(netip.Addr{}, true))
}

// The address is judged at the connection: what a name meant before says nothing.
func TestTheAddressIsJudgedWhenTheConnectionIsMade(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = guarded(false).Dial("tcp", l.Addr().String())
	require.ErrorAs(t, err, &errForbidden{})
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	_, err = guarded(false).Dial("tcp", net.JoinHostPort("localhost", port))
	require.ErrorAs(t, err, &errForbidden{})
	c, err := guarded(true).Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = guarded(true).Dial("tcp", "169.254.169.254:80")
	require.ErrorAs(t, err, &errForbidden{})
	_, err = guarded(true).Dial("udp", "127.0.0.1:53")
	require.ErrorAs(t, err, &errForbidden{})
}
