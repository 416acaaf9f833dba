package runtime

import (
	"strconv"
	"sync"
	"time"

	"github.com/docker/docker/api/types/events"

	"github.com/gitring/gitring/ring"
)

// deaths are the last ends of containers, as events told of them. After the
// engine has started a container again an inspect says nothing of that end any
// more. Losing one costs a number in a record.
type deaths struct {
	mu  sync.Mutex
	all map[string]death // guarded by mu: by container ID
}

type death struct {
	exit  int
	oom   bool
	began time.Time     // of the run that goes on, or ended; zero is not known
	ran   time.Duration // 0 is not known
	known bool          // that it ended; else only that it began, or ran out of memory
	// signalled says that somebody sent it a signal that ends programs, by the
	// engine; hand is what they did, once it ended of that.
	signalled bool
	hand      string
}

// fatal are the signals, by number, with which people end a container: TERM,
// KILL, INT and QUIT. One of its own is told by the stop event that follows.
var fatal = map[string]bool{"15": true, "9": true, "2": true, "3": true}

// deathsKept bounds what is remembered of containers that are gone.
const deathsKept = 10_000

// hear remembers what an event tells of an end.
func (d *deaths) hear(m events.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) >= deathsKept || d.all == nil {
		d.all = map[string]death{}
	}
	x, at := d.all[m.Actor.ID], time.Unix(0, m.TimeNano)
	switch m.Action {
	case events.ActionStart:
		x.began, x.signalled, x.hand = at, false, ""
	case events.ActionKill:
		x.signalled = x.signalled || fatal[m.Actor.Attributes["signal"]]
	case events.ActionStop: // comes after the end
		x.hand = "stopped"
	case events.ActionOOM:
		x = death{began: x.began, oom: true}
	case events.ActionDie:
		x = death{began: x.began, oom: x.oom && !x.known, known: true, signalled: x.signalled}
		if x.signalled {
			x.hand = "killed"
		}
		x.exit, _ = strconv.Atoi(m.Actor.Attributes["exitCode"])
		if !x.began.IsZero() {
			x.ran = max(0, at.Sub(x.began))
		}
	case events.ActionDestroy:
		delete(d.all, m.Actor.ID)
		return
	default:
		return
	}
	d.all[m.Actor.ID] = x
}

// tell adds to a running instance how its last run ended, and to one that ended
// whose hand it was.
func (d *deaths) tell(in *ring.Instance) {
	if in.Ended() {
		d.mu.Lock()
		in.Hand = d.all[in.ID].hand
		d.mu.Unlock()
	}
	if in.State != ring.StateRunning || in.Restarts == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.all[in.ID]; x.known {
		in.ExitCode, in.OOM, in.RanBefore = x.exit, x.oom, x.ran
	}
}
