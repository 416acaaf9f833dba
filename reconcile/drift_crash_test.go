package reconcile

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What we remove to make it anew is made anew though its app only tells of what
// others change, wherever the daemon is killed on the way.
func TestOurOwnRemovalIsNoDriftWhereverTheDaemonIsKilled(t *testing.T) {
	play := func(crash func(boundary) bool) {
		s := newStory()
		tell := func(lines ...string) {
			for _, line := range lines {
				require.NoError(t, s.tell(line), line)
			}
		}
		tell("service eye/a min_ready 1s replicas 2", "service eye/b joins a min_ready 1s replicas 2", "app eye drift report", "commit c1 eye/a=e1 eye/b=e1", "rest", "mark")
		s.crash = func(at boundary, _ ring.Action) bool { return crash(at) }
		tell("fault break eye/a-1", "fault crash eye/a-1 exit 1", "rest",
			"expect only eye/a-1 e1 ready, eye/a-2 e1 ready, eye/b-1 e1 ready, eye/b-2 e1 ready",
			"expect no event drift.seen", "expect tied eye/b-1 eye/a-1")
	}
	steps := 0
	play(func(at boundary) bool {
		if at == beforeCall {
			steps++
		}
		return false
	})
	require.Greater(t, steps, 5)
	for nth := 1; nth <= steps; nth++ {
		for _, at := range []boundary{beforeCall, afterCall, afterRecord} {
			t.Run(fmt.Sprintf("%s of step %d", at, nth), func(*testing.T) {
				n := 0
				play(func(here boundary) bool {
					if here == at {
						n++
					}
					return here == at && n == nth
				})
			})
		}
	}
}
