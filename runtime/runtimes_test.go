package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEngineThatMapsUsersIsKnownByItsOptions(t *testing.T) {
	require.True(t, mapsUsers([]string{"name=seccomp,profile=builtin", "name=userns"}))
	require.False(t, mapsUsers([]string{"name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"}))
	require.False(t, mapsUsers(nil))
}
