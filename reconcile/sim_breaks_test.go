package reconcile

import (
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Breaks between a daemon and its world, which cost time and are to cost nothing
// else: hints that get lost or that nobody sent, a process that is stopped for a
// while, a database that is lost.
//
// Nothing that decides is told of a hint: World has no room for one. What the model
// holds is that every decision is made as well without, or with one too many.

// breaks are those of a scenario, with dice of their own.
type breaks struct {
	hints bool // of the engine get lost, are late, or come for nothing
	stops bool // SIGSTOP, or a host that gives the process no time
	loses bool // the database, once
}

// randomBreaks is nothing for half of the wide scenarios.
func (w *wide) randomBreaks() {
	b := &w.breaks
	switch w.r.Intn(8) {
	case 0, 1:
		b.hints = true
	case 2, 3:
		b.stops = true
	case 4:
		b.loses = true
	case 5:
		b.hints, b.stops = true, true
	}
}

// heard reports whether a hint of the engine's arrives. One that does not leaves the
// daemon to its full look, or to whatever else it waits for.
func (s *scenario) heard() bool {
	return s.wide == nil || !s.wide.breaks.hints || s.wide.r.Intn(3) > 0
}

// nudge has the daemon look for no reason: a hint came twice, late, or of what is
// over already.
func (s *scenario) nudge() {
	if s.wide == nil || !s.wide.breaks.hints || s.wide.r.Intn(4) > 0 {
		return
	}
	at := s.now.Add(time.Duration(s.wide.r.Intn(2000)) * time.Millisecond)
	if s.mem.wake.IsZero() || at.Before(s.mem.wake) {
		s.mem.wake = at
	}
}

// breakOff is one such fault, or none.
func (s *scenario) breakOff() {
	b := &s.wide.breaks
	switch {
	case b.stops && s.wide.r.Intn(20) == 0:
		s.suspend([]time.Duration{15 * time.Second, time.Minute, 5 * time.Minute}[s.wide.r.Intn(3)])
	case b.loses && s.wide.r.Intn(30) == 0:
		b.loses = false
		s.loseDatabase()
	}
}

// suspend stops the process for a while. What it asked of the engine happens; it
// hears of that afterwards. Limits of rollouts count from then on (watchAwake).
func (d *daemon) suspend(by time.Duration) {
	d.note("the daemon is stopped for %s", by)
	for end := d.now.Add(by); d.now.Before(end) && d.bad == nil; {
		until := end
		for _, f := range d.mem.flights {
			if f.effect.After(d.now) && f.effect.Before(until) {
				until = f.effect
			}
		}
		d.now = d.moment(until)
		d.tick()
		d.takeEffect()
	}
	d.note("and goes on")
	d.mem.awake, d.mem.wake = d.clock(), d.now
}

// watchAwake holds a verdict for want of time to the time that somebody looked; one
// that is given for another service, to the shortest of the app.
func (d *daemon) watchAwake(e ring.Event) {
	limit := time.Duration(1<<63 - 1)
	for _, v := range d.disk.Apps[e.App].App.Services {
		switch k := v.Rollout; {
		case strings.Contains(e.Reason, ring.CauseDeadline):
			limit = min(limit, k.ProgressDeadline)
		case strings.Contains(e.Reason, "not ready within"):
			limit = min(limit, k.StartTimeout)
		default:
			return
		}
	}
	if since := d.clock().Sub(d.mem.awake); since < limit {
		d.violate("awake: %s fails after %s of looking, of %s: %s", e.Service, since, limit, e.Reason)
	}
}

// loseDatabase is a daemon that finds its database gone, or too damaged to be read:
// it begins with an empty one, and with the marks of jobs, which are files.
func (d *daemon) loseDatabase() {
	d.kill("with its database") // what it had asked of the engine was right by what it knew (seed 215014)
	runs := d.disk.Jobs
	d.disk = ring.NewFacts()
	d.disk.Jobs = runs
	d.forgetBooks()
}

// forgetBooks has the oracle expect no more of a daemon than its database knows.
func (d *daemon) forgetBooks() {
	clear(d.posts) // what was told is forgotten, and told again
	clear(d.protect)
	clear(d.starts) // and so is how often what was started (seed 88480)
	for _, b := range d.boxes {
		b.ours = false                     // nobody knows of it any more
		b.hooked = b.hooked || b.running() // nor that its hooks were not seen through
	}
}
