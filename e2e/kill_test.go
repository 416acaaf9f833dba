package e2e

import "testing"

// TestADaemonKilledAtAnyMomentConverges pushes good and bad versions and kills the daemon in
// the middle of what it does about them: 25 times in make test, 100 in make e2e.
func TestADaemonKilledAtAnyMomentConverges(t *testing.T) {
	t.Parallel()
	kills, r := amount(t, "KILLS", 25, 100), dice(t)
	f := newFleet(newHost(t))
	f.begin()
	for range kills {
		mark := f.events.mark()
		switch r.IntN(6) {
		case 0, 1: // the one before goes on
		case 2:
			f.bad()
		default:
			f.push(1 + r.IntN(2))
		}
		// A rollout of both makes some 20 events; where none are left to come,
		// the moment comes by itself.
		f.somewhere(r, mark, 12)
		f.kill()
		f.launch()
	}
	f.push(1)
	f.over()
	t.Logf("the daemon was killed %d times", kills)
}
