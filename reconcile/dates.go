package reconcile

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// dates turns times of the wall clock, which may jump, into times of the one
// who decides, which never do (I15). The zero value has not looked yet.
type dates struct {
	known, next  map[stamp]time.Time
	looked, look time.Time // when the look before, and this one, began
}

// stamp is what happened to an instance, as the wall clock has it.
type stamp struct {
	instance string
	ready    bool // it became ready; else it started
	at       int64
}

// begin begins a look; what it does not ask for is forgotten at the next.
func (d *dates) begin(now time.Time) {
	d.known, d.next = d.next, d.known
	clear(d.next)
	if d.next == nil {
		d.next = map[stamp]time.Time{}
	}
	d.looked, d.look = d.look, now
}

// dateOf is when, by our own clock, an instance started or became ready, which the
// engine or a probe puts at "at"; a stamp before "after" or in the future is of a clock
// that jumped, and counts from when it was noticed.
func (d *dates) dateOf(instance string, ready bool, at, after, now time.Time) time.Time {
	key := stamp{instance, ready, at.UnixNano()}
	if was, ok := d.known[key]; ok {
		at = was
	} else if at.After(now) || at.Before(after) {
		at = now
	}
	d.next[key] = at
	return at
}

// dateInstances dates since when each instance runs, or is asked by its node whether it does. One that was not there at the
// look before started after it; at the first look of a daemon the past is
// believed.
func (d *dates) dateInstances(ins []ring.Instance, now time.Time) {
	for i := range ins {
		if in := &ins[i]; in.State == ring.StateRunning || in.State == ring.StateCreated && in.Health == "starting" {
			in.Since = d.dateOf(in.ID, false, in.Started, d.looked, now)
		}
	}
}

// dateHealth dates since when each of ins, dated already, is ready: not before it
// started. Known is not changed.
func (d *dates) dateHealth(known map[string]ring.Health, ins []ring.Instance, now time.Time) map[string]ring.Health {
	out := make(map[string]ring.Health, len(known))
	for i := range ins {
		in := &ins[i]
		h, ok := known[in.ID]
		if !ok {
			continue
		}
		if h.Ready {
			h.Since = d.dateOf(in.ID, true, h.Since, in.Since, now)
		}
		out[in.ID] = h
	}
	return out
}

// calmFacts brings facts that a daemon wrote before the clock was set back to now:
// nothing waits for a day that was there already. A rollout under way has its
// progress deadline anew: the time without a daemon is nobody's fault.
func calmFacts(f ring.Facts, now time.Time) ring.Facts {
	past := func(at *time.Time) bool {
		late := at.After(now)
		if late {
			*at = now
		}
		return late
	}
	for key, r := range f.Rollouts {
		began, progress, failure, done := past(&r.Began), past(&r.Progress), past(&r.LastFailure), past(&r.At)
		if !r.Done && r.Progress.Before(now) {
			r.Progress, progress = now, true // while nobody looked, nothing could come further
		}
		watched := false
		for i := range watches {
			watched = past(watches[i].begun(&r)) || watched
		}
		if began || progress || failure || done || watched {
			f.Rollouts[key] = r
		}
	}
	for key, r := range f.Slots {
		if r.Next.After(now.Add(permanentWait)) || r.Last.After(now) {
			r.Next, r.Last = now, now
			f.Slots[key] = r
		}
	}
	for key, r := range f.Jobs {
		started, ended := past(&r.Started), past(&r.Ended)
		if started || ended {
			f.Jobs[key] = r
		}
	}
	for key, r := range f.Intents {
		if past(&r.At) {
			f.Intents[key] = r
		}
	}
	for key, row := range f.Pins {
		if r := *row; past(&r.At) {
			r.At = now.Add(-time.Second) // before a wish that comes back with it, which at worst is carried out twice
			f.Pins[key] = &r
		}
	}
	for key, r := range f.Loads {
		if past(&r.At) { // files have their time to prove themselves from here on
			f.Loads[key] = r
		}
	}
	for key, r := range f.Waves { // a wait is as long as it was given, from here on
		late := past(&r.Since)
		for i := range r.Seen {
			late = past(&r.Seen[i]) || late
		}
		if late {
			f.Waves[key] = r
		}
	}
	for key, r := range f.Tags { // asked again after the whole time, and seen for none of it
		if seen, asked, tried := past(&r.Seen), past(&r.Asked), past(&r.Tried); seen || asked || tried {
			f.Tags[key] = r
		}
	}
	for key, r := range f.Refreshes {
		if past(&r.At) {
			f.Refreshes[key] = r
		}
	}
	for key, r := range f.Posts {
		if past(&r.At) {
			f.Posts[key] = r
		}
	}
	calmOverrides(f, now)
	return f
}
