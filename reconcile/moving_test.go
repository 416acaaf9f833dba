package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// moving is what is under way after the lines of a story.
func moving(t *testing.T, lines ...string) []ring.Move {
	t.Helper()
	s := newStory()
	for _, line := range lines {
		require.NoError(t, s.tell(line), line)
	}
	s.turn()
	w := s.world()
	require.Len(t, w.Sources, 1)
	require.Empty(t, Moving(w, "no such source", s.clock()))
	return Moving(w, w.Sources[0].Name, s.clock())
}

func TestAPlanKnowsWhatIsMoving(t *testing.T) {
	before := []string{"service web replicas 2 min_ready 5s start_timeout 10s threshold 1", "commit c1 web=v1", "rest"}
	with := func(lines ...string) []string { return append(append([]string{}, before...), lines...) }

	require.Empty(t, moving(t, before...), "at rest nothing is")

	all := moving(t, with("commit c2 web=v2", "wait 7s")...)
	require.Len(t, all, 1)
	m := all[0]
	require.Equal(t, "web", m.Service)
	require.Equal(t, ring.RolloutProgressing, m.Phase)
	require.Len(t, m.From, 1, "what still runs of the old one")
	require.NotEqual(t, m.From[0], m.To)
	require.Equal(t, 2, m.Wanted)
	require.NotZero(t, m.Updated)
	require.False(t, m.Since.IsZero())

	all = moving(t, with("version v2 never ready", "commit c2 web=v2", "rest")...)
	require.Len(t, all, 1)
	require.Equal(t, ring.RolloutIsRestored, all[0].Phase)
	require.Zero(t, all[0].Updated)
	require.False(t, all[0].Since.IsZero(), "since when it failed")

	all = moving(t, "service shop/job job", "version m1 exits 0 after 1m", "commit c1 shop/job=m1", "wait 5s")
	require.Len(t, all, 1)
	require.Equal(t, string(ring.PhaseProgressing), all[0].Phase)
	require.Empty(t, moving(t, "service shop/job job", "version m1 exits 0 after 1s", "commit c1 shop/job=m1", "rest"))
}
