package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhatAKilledEngineWillNeverStartIsReplaced kills an engine while it starts a
// container, until it refuses one for ever after that. Nobody clears up behind it.
func TestWhatAKilledEngineWillNeverStartIsReplaced(t *testing.T) {
	t.Parallel()
	r, e := dice(t), newEngine(t)
	h := hostOn(t, e.engine)
	app := h.app("shop")
	// Without a network: what an engine forgets holds addresses that it gives away again.
	quiet := func(version string, data bool) obj {
		s := obj{
			"image": image, "pull_policy": "never", "network_mode": "none", "environment": obj{"VERSION": version},
			"x-gitring": obj{"rollout": obj{"min_ready_time": "200ms", "failure_threshold": 1000}}, // an instance that the engine takes along is no word on its version
		}
		if data {
			s = merged(s, obj{"volumes": []any{"pg:/data"}, "environment": obj{"DATA": "/data"}})
		}
		return s
	}
	push := func(version string) string {
		return h.repo.pushed("Version "+version, files{app + "/compose.yaml": h.compose(app, obj{
			"web": quiet(version, false), "db": quiet(version, true),
		}, obj{"volumes": obj{"pg": obj{}}})})
	}
	first := push("1")
	h.start()
	h.synced(first)
	refused, tries := 0, 0
	for tries = 1; refused == 0 && tries < 12; tries++ {
		mark := h.events.mark()
		sha := push(fmt.Sprint(tries + 1))
		h.events.first(t, mark, func(e engineEvent) bool { return e.Action == "create" && e.service() == "web" })
		pause(time.Duration(50+r.IntN(350)) * time.Millisecond)
		e.end(syscall.SIGKILL)
		e.start()
		h.events = e.listen(t, h.name)
		h.synced(sha)
		refused = strings.Count(h.tail(10000), "remove: the engine will never start it")
	}
	require.Positive(t, refused, "no start was cut short in %d tries", tries)
	cs := h.containers()
	require.Len(t, cs, 2, "no duplicate, and nothing that cannot start")
	for _, c := range cs {
		require.True(t, c.State.Running)
		require.Equal(t, fmt.Sprint(tries), c.env("VERSION"))
	}
	require.NotEmpty(t, h.journal(h.one("db")), "the volume is the one that it was")
	require.NotContains(t, h.tail(10000), "rollout.failed")
	t.Logf("%d refused after %d kills", refused, tries-1)
}
