package ring

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAContainerNameIsToldFromAnyOther(t *testing.T) {
	version := Version("1:" + strings.Repeat("0123456789abcdef", 4))
	for _, c := range []struct {
		app, service string
		slot         int
	}{{"shop", "web", 1}, {"shop", "web", 12}, {strings.Repeat("a", 63), strings.Repeat("b", 63), 3}} {
		name := c.app + "-" + c.service + "-" + map[int]string{1: "1", 3: "3", 12: "12"}[c.slot] + "-01234567"
		require.Equal(t, name, ContainerName(c.app, c.service, c.slot, version))
		require.True(t, IsContainerName(name, c.app, c.service, c.slot, version), name)
		for _, other := range []string{name + "0", name[1:], name[:len(name)-1], "", strings.Replace(name, "-0", "-1", 1)} {
			require.False(t, IsContainerName(other, c.app, c.service, c.slot, version), other)
		}
		require.False(t, IsContainerName(name, c.app, c.service, c.slot+1, version))
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { IsContainerName("shop-web-1-01234567", "shop", "web", 1, version) }))
}
