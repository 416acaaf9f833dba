package runtime

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// Asked at once, the kernel tells of each device what it tells of it alone.
func TestTheAddressesOfAllDevicesAreThoseOfEach(t *testing.T) {
	devices, err := net.Interfaces()
	require.NoError(t, err)
	got, err := hostAddresses(devices)
	require.NoError(t, err)
	some := 0
	for _, device := range devices {
		addresses, err := device.Addrs()
		if err != nil || len(addresses) != len(got[device.Index]) {
			continue // it comes or goes in this moment, as those of containers do
		}
		for _, a := range addresses {
			want, err := netip.ParsePrefix(a.String())
			require.NoError(t, err)
			require.Contains(t, got[device.Index], want, device.Name)
			some++
		}
	}
	require.Positive(t, some, "the loopback device at least")
}
