package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// How long a request may wait while what cannot overlap is replaced: for the stop of the old
// instance, the start of the new one, and 6 s besides, of which what is in flight has 5 s. The
// clock is the simulation's, so the time is counted and no machine is too slow for it.
func TestNoRequestWaitsLongerThanStopAndStartAndSixSeconds(t *testing.T) {
	for _, starts := range []time.Duration{0, 3 * time.Second, 20 * time.Second} {
		for _, streams := range []time.Duration{0, 2 * time.Second, time.Hour} {
			t.Run(fmt.Sprintf("a start of %s, %s in flight", starts, streams), func(t *testing.T) {
				s := newStory()
				for _, line := range []string{
					"service web front 8080 volume data min_ready 10s drain 10m queue 5m", "commit c1 web=v1", "rest",
					fmt.Sprintf("version v2 ready after %s", starts), fmt.Sprintf("fault web-1@v1 has %s in flight", streams), "commit c2 web=v2", "rest",
				} {
					require.NoError(t, s.tell(line), line)
				}
				var from, drained, exit, runs, until time.Time
				for _, e := range s.since() {
					switch {
					case e.kind == "table" && e.detail == "web-1@v1 draining, queue":
						from = e.at
					case e.kind == "table" && e.detail == "queue":
						drained = e.at
					case e.kind == "exit" && e.name() == "web-1@v1":
						exit = e.at
					case e.kind == "run" && e.name() == "web-1@v2":
						runs = e.at
					case e.kind == "table" && e.detail == "web-1@v2 active":
						until = e.at
					}
				}
				require.True(t, from.Before(drained) && drained.Before(exit) && exit.Before(runs) && runs.Before(until), s.read(60))
				stopAndStart := runs.Sub(drained) + starts
				require.LessOrEqual(t, until.Sub(from)-stopAndStart, 6*time.Second, s.read(60))
			})
		}
	}
}
