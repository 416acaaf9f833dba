package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What an app in force may newly do on the host is told once, when it comes
// into force; what it could do before is not told again.
func TestNewPowersAreToldWhenAnAppComesIntoForce(t *testing.T) {
	told := func(before, after []string) []string {
		tu := &decider{own: map[string]bool{}, Pass: Pass{now: time.Unix(1, 0), World: World{Facts: ring.Facts{Apps: map[string]ring.InForce{}, Names: map[string]ring.Name{}}}}}
		have := ring.InForce{App: ring.App{Name: "vpn", Powers: before}}
		tu.putInForce(&Source{Name: "prod"}, ring.App{Name: "vpn", Source: "prod", Commit: "a1", Powers: after}, have, true)
		var out []string
		for _, e := range tu.events {
			if e.Kind == ring.AppPowers {
				require.Equal(t, "vpn", e.App)
				require.Equal(t, ring.SHA("a1"), e.Commit)
				out = append(out, e.Reason)
			}
		}
		return out
	}
	require.Equal(t, []string{"new powers: a; c"}, told([]string{"b"}, []string{"a", "b", "c"}))
	require.Empty(t, told([]string{"a", "b"}, []string{"a"}), "fewer is no news")
	require.Empty(t, told([]string{"a"}, []string{"a"}))
	require.Empty(t, told(nil, nil))
}
