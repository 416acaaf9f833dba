package reconcile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Each state of a rollout is what it comes to by a story of its own.
func TestEachStateHasItsStory(t *testing.T) {
	const bad = "service web start_timeout 5s threshold 1 min_ready 1s\ncommit c1 web=v1\nrest\nversion v2 never ready\n"
	met := map[State]bool{}
	for _, c := range []struct {
		name, story string
		want        State
	}{
		{"at rest", "service web\ncommit c1 web=v1\nrest", Steady},
		{"a pause of what is at rest holds the next rollout, not this one", "service web\ncommit c1 web=v1\nrest\npause web", Steady},
		{"held", "service web\ncommit c1 web=v1\nrest\nhold web", Held},
		{"held while it starts", "service web check http min_ready 1m\ncommit c1 web=v1\nwait 5s\nhold web", Held},
		{"paused while it starts", "service web check http min_ready 1m\ncommit c1 web=v1\nwait 5s\npause web", Paused},
		{"starts", "service web check http min_ready 1m\ncommit c1 web=v1\nwait 5s", Starting},
		{"a first version waits", "service db\nversion d1 never ready\nservice shop/db\nservice shop/web depends_on db ready\ncommit c1 shop/db=d1 shop/web=v1\nwait 5s", Pending},
		{"a newer version waits", "service shop/db min_ready 1s\nservice shop/web depends_on db ready min_ready 1s\ncommit c1 shop/db=v1 shop/web=v1\nrest\nversion d2 never ready\nservice shop/web depends_on db ready\ncommit c2 shop/db=d2 shop/web=v2\nwait 2s", Waiting},
		{"it cannot begin by itself", "service shop/m job\nversion m1 exits 3 after 1s\nservice shop/web depends_on m completed\ncommit c1 shop/m=m1 shop/web=v1\nrest", Blocked},
		{"a first version failed", "service web start_timeout 5s threshold 1\nversion v1 never ready\ncommit c1 web=v1\nrest", Stopped},
		{"comes back", bad + "commit c2 web=v2\nuntil rollout web Restoring", Restoring},
		{"is back", bad + "commit c2 web=v2\nrest", Restored},
		{"serves whole and is watched", "service web min_ready 1s\ncommit c1 web=v1\nrest\nservice web bake 10m\ncommit c2 web=v2\nwait 1m", Watching},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory()
			for _, line := range strings.Split(c.story, "\n") {
				require.NoError(t, s.tell(line), line)
			}
			d := newDecider(s.world(), s.clock())
			d.decide()
			id := ring.ServiceID("web/web")
			if strings.Contains(c.story, "shop/web") {
				id = "shop/web"
			}
			require.Equal(t, c.want, stateOf(&d.Pass, d.views[id]))
			met[c.want] = true
		})
	}
	for state := Steady; state <= Watching; state++ {
		require.True(t, met[state], "no story comes to state %d", state)
	}
}
