package reconcile

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gitring/gitring/ring"
)

// storiesKilled are the stories of a swarm that hold whenever the daemon ends.
var storiesKilled = []string{
	"first", "update", "fails-unready", "fails-rejected", "fails-pause", "superseded-good", "hand-edit", "hand-removed", "files", "leaves", "depends", "data", "settings-meanwhile", "global", "job", "job-fails",
	"job-moves", "job-data", "job-leaves", "job-worker", "job-timeout",
}

// tellKilled tells a story in which the daemon ends at one boundary of a step on the swarm, the
// nth such step; 0 is none. It returns how many such steps there were.
func tellKilled(text string, at boundary, nth int) (steps int, bad string) {
	s := newStory()
	s.crash = func(b boundary, a ring.Action) bool {
		onSwarm := a.Kind == ring.DoServe || a.Kind == ring.DoServeOff || a.Kind == ring.DoFileOff || a.Kind == ring.DoNetwork ||
			a.Kind == ring.DoCreate || a.Kind == ring.DoStart || a.Kind == ring.DoStop || a.Kind == ring.DoRemove
		if b != beforeCall && nth == 0 || b != at && nth > 0 || !onSwarm {
			return false
		}
		steps++
		return steps == nth
	}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		err := s.tell(line)
		if err == nil {
			err = s.bad
		}
		if err != nil {
			return steps, say("line %d: %s\n  %v\n%s", i+1, line, err, s.read(60))
		}
	}
	return steps, ""
}

// A daemon that ends before a call to the swarm, after it, or after its end was written down goes
// on as if nothing had been: no spec is sent twice, and no closing word is said again. The
// expectations of the stories hold, which count both.
func TestKilledAtEveryStepOnASwarmTheStoryHolds(t *testing.T) {
	type point struct {
		name, text string
		at         boundary
		nth        int
	}
	var points []point
	for _, name := range storiesKilled {
		raw, err := os.ReadFile("testdata/stories/swarm-" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		steps, bad := tellKilled(string(raw), "", 0)
		if bad != "" || steps == 0 {
			t.Fatalf("%s, undisturbed, %d steps: %s", name, steps, bad)
		}
		for nth := 1; nth <= steps; nth++ {
			for _, at := range []boundary{beforeCall, afterCall, afterRecord} {
				points = append(points, point{name, string(raw), at, nth})
			}
		}
	}
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(points)) || failed.Load() > 3 {
					return
				}
				p := points[i]
				if _, bad := tellKilled(p.text, p.at, p.nth); bad != "" {
					failed.Add(1)
					t.Errorf("%s, killed %s of step %d: %s", p.name, p.at, p.nth, bad)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d stories, %d crashes", len(storiesKilled), len(points))
}
