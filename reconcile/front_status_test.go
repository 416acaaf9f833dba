package reconcile

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// The status has what the front says of itself, and what is in flight to one that drains.
func TestTheStatusHasTheNumbersOfTheFront(t *testing.T) {
	s := newStory()
	for _, line := range []string{
		"service web front 8080 min_ready 1s drain 5m", "commit c1 web=v1", "rest", "fault web-1@v1 has 1m in flight",
		"commit c2 web=v2", "until table web: web-1@v1 draining, web-1@v2 active", "expect web-1 v1 running",
	} {
		require.NoError(t, s.tell(line), line)
	}
	web := func() *ring.ServiceStatus {
		all := s.last.Status.Sources[0].Apps[0].Services
		return &all[slices.IndexFunc(all, func(v ring.ServiceStatus) bool { return v.Name == "web" })]
	}
	drains := func() (states []string, flight []int) {
		for _, in := range web().Instances {
			states, flight = append(states, in.State), append(flight, in.InFlight)
		}
		return states, flight
	}
	f := web().Front
	require.Equal(t, ring.FrontServes, f.Phase)
	require.Equal(t, []string{"80/tcp"}, f.Ports)
	require.Equal(t, []int{2, 0}, []int{f.Connections, f.Queued}, "one to each instance, in the model")
	require.Equal(t, "sha256:1", f.Build)
	require.Positive(t, f.Generation)
	states, flight := drains()
	require.Contains(t, states, ring.SlotDraining)
	require.Equal(t, 1, flight[slices.Index(states, ring.SlotDraining)])

	was := f.Generation
	require.NoError(t, s.tell("rest"))
	require.Equal(t, 1, web().Front.Connections)
	require.Greater(t, web().Front.Generation, was, "the table without it")
	states, flight = drains()
	require.Len(t, states, 1)
	require.Equal(t, []int{0}, flight)

	require.NoError(t, s.tell("fault front web/web-front-1 does not answer"))
	require.NoError(t, s.tell("wait 10s"))
	require.Equal(t, ring.FrontUnseen, web().Front.Phase)
	require.Empty(t, web().Front.Build, "nobody knows")
}
