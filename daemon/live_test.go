package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestTheFilesToReloadAreWrittenWithTheRestOfThePlan(t *testing.T) {
	all := contents{hashOf("a"): {}, hashOf("b"): {}}
	app := ring.App{Services: []ring.Service{{
		Reload: &ring.Reload{Live: map[string]string{"conf": hashOf("a")}}, Spec: ring.Spec{Mounts: []ring.Mount{{Kind: ring.MountLive, Source: "conf"}}},
	}}}
	require.Equal(t, contents{hashOf("a"): {}}, mountedBy([]ring.App{app}, all))
}

// What lies in live folders, and what would come back, is mounted by nobody: the
// folders hold copies.
func TestPruneKeepsWhatIsReloadedInPlace(t *testing.T) {
	live := func(digit string) ring.Service {
		return ring.Service{
			Name: "s" + digit, Reload: &ring.Reload{Live: map[string]string{"conf": hashOf(digit)}, Signal: "SIGHUP"},
			Spec: ring.Spec{Mounts: []ring.Mount{{Kind: ring.MountLive, Source: "conf", Target: "/conf"}}},
		}
	}
	s := newTestContentStore(t, nothing)
	scatter(t, s, "abcdef")
	app := ring.App{Name: "web", Source: "prod", Commit: older, Services: []ring.Service{live("a")}}
	require.NoError(t, s.store.Record(t.Context(), []ring.Fact{
		ring.InForce{App: app},
		ring.Good{AppName: "web", App: ring.App{Name: "web", Source: "prod"}, Service: live("b"), Commit: older},
		ring.Past{App: ring.App{Name: "web", Commit: older, Services: []ring.Service{live("c")}}},
		ring.Loaded{ID: "web/sd", Instance: "1", Live: map[string]string{"conf": hashOf("d")}, Next: map[string]string{"conf": hashOf("e")}},
	}, nil))
	require.NoError(t, s.prune(t.Context()))
	for _, d := range []string{"a", "b", "c", "d", "e"} {
		require.True(t, s.has(t, d), d)
	}
	require.False(t, s.has(t, "f"), "nothing names it")
}
