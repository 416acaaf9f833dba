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
	// sent are the signals that somebody had the engine send it in the run that goes
	// on, or ended; stopped says that it told of a stop.
	sent    signals
	stopped bool
}

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
		x.began, x.sent, x.stopped = at, 0, false
	case events.ActionKill:
		if n, err := strconv.Atoi(m.Actor.Attributes["signal"]); err == nil {
			x.sent = x.sent.with(n)
		}
	case events.ActionStop: // comes after the end
		x.stopped = true
	case events.ActionOOM:
		x = death{began: x.began, oom: true}
	case events.ActionDie:
		x = death{began: x.began, oom: x.oom && !x.known, known: true, sent: x.sent}
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
// whose hand it was; stop is its stop signal.
func (d *deaths) tell(in *ring.Instance, stop string) {
	if in.Ended() {
		d.mu.Lock()
		x := d.all[in.ID]
		d.mu.Unlock()
		switch {
		case x.stopped:
			in.Hand = "stopped"
		case x.known:
			in.Hand = x.sent.hand(stop)
		}
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
