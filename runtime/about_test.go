package runtime

import (
	"testing"

	"github.com/docker/docker/api/types/system"
	"github.com/stretchr/testify/require"
)

func TestNetworksThatStillFitAreCounted(t *testing.T) {
	of := func(pools ...system.NetworkAddressPool) *system.Info { return &system.Info{DefaultAddressPools: pools} }
	require.Equal(t, 31-3, poolsLeft(of(), 3), "an engine that names none has its own")
	require.Equal(t, 0, poolsLeft(of(), 40), "never fewer than none")
	require.Equal(t, 256-1, poolsLeft(of(system.NetworkAddressPool{Base: "10.10.0.0/16", Size: 24}), 1))
	require.Equal(t, 16+2, poolsLeft(of(system.NetworkAddressPool{Base: "10.10.0.0/20", Size: 24}, system.NetworkAddressPool{Base: "10.0.0.0/15", Size: 16}), 0))
	require.Equal(t, 16, poolsLeft(of(system.NetworkAddressPool{Base: "10.10.0.0/20", Size: 24}, system.NetworkAddressPool{Base: "fd00::/48", Size: 64}), 0), "IPv6 is no help")
	require.Equal(t, -1, poolsLeft(of(system.NetworkAddressPool{Base: "nonsense", Size: 24}), 0))
	require.Equal(t, -1, poolsLeft(of(system.NetworkAddressPool{Base: "10.0.0.0/24", Size: 16}), 0))
}
