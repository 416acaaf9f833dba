package reconcile

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"github.com/gitring/gitring/ring"
)

// TagRules are what the host's policy says of tags that are followed by the clock.
type TagRules struct {
	Deny   bool
	MinAge time.Duration // images.min_age
}

// Waits after a registry that did not answer; they double, up to the time between two questions.
const firstAskAgain = 5 * time.Minute

// follower is a service whose tag is followed by the clock.
type follower struct {
	app *ring.App
	s   *ring.Service
}

func (f *follower) id() ring.ServiceID { return ring.ID(f.app.Name, f.s.Name) }

// minAge is how long the host has to see a new digest before a service follows it: the longer of
// what the policy and the service say.
func (t *Pass) minAge(s *ring.Service) time.Duration { return max(t.TagRules.MinAge, s.Updates.MinAge) }

// spread is a time between two questions, a tenth longer or shorter, so that neither all tags
// nor all hosts ask at once. The same question always has the same.
func (t *Pass) spread(every time.Duration, row *ring.TagRow) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Host + "\n" + row.Tag)) // a hash takes all
	_ = binary.Write(h, binary.BigEndian, row.Asked.Unix())
	tenth := every / 10
	return every - tenth + time.Duration(h.Sum64()%uint64(2*tenth+1))
}

// regularAsk is when a tag is asked next, by how often its services want that.
func (t *Pass) regularAsk(row *ring.TagRow, every time.Duration) time.Time {
	return row.Asked.Add(t.spread(every, row))
}

// mayRetry is when a registry that did not answer may be asked again; zero is at once. One
// that limits requests says when, and is believed up to the time between two questions.
func mayRetry(row *ring.TagRow, every time.Duration) time.Time {
	if row.Fails == 0 {
		return time.Time{}
	}
	wait := max(firstAskAgain<<min(row.Fails-1, 16), row.Later.Sub(row.Tried))
	return row.Tried.Add(min(every, wait))
}

// confirmedFrom is from when on an answer that names the new digest lets a service follow it: its
// age is reached, its window is open, and nobody resolved the service since. ok is false where it
// cannot be followed now, and at is then when that may change.
func (t *Pass) confirmedFrom(row *ring.TagRow, f *follower) (at time.Time, ok bool) {
	ripe := row.Seen.Add(t.minAge(f.s))
	if pin := t.Facts.Pin(f.id(), pinWritten(f.app, f.s)); pin != nil {
		ripe = laterOf(ripe, pin.At) // what was resolved since the answer is newer than that
	}
	s := f.s
	if s.Updates.Window == "" {
		return ripe, !t.now.Before(ripe)
	}
	w, err := ring.ParseWindow(s.Updates.Window)
	if err != nil { // manifest lets no other pass
		return time.Time{}, false
	}
	wall := t.hostClock()
	opened, open := w.At(wall)
	if !open || t.now.Before(ripe) {
		from := laterOf(wall, wall.Add(ripe.Sub(t.now)))
		if _, open := w.At(from); open && from.After(wall) {
			return ripe, false
		}
		return t.now.Add(w.Next(from).Sub(wall)), false
	}
	return laterOf(ripe, t.now.Add(opened.Sub(wall))), true
}

// hostClock is the time on the wall as the host's clock shows it.
func (t *Pass) hostClock() time.Time {
	wall, zone := t.Wall, t.Zone
	if wall.IsZero() {
		wall = t.now
	}
	if zone == nil {
		zone = time.UTC
	}
	return wall.In(zone)
}

// followersOf are the services in force whose tags are followed by the clock, by tag.
func (t *Pass) followersOf() map[string][]follower {
	var out map[string][]follower
	for _, name := range sortedKeys(t.Facts.Apps) {
		f := t.Facts.Apps[name]
		if f.Leaving {
			continue
		}
		for i := range f.App.Services {
			s := &f.App.Services[i]
			if s.Updates == nil || s.FrontOf != "" {
				continue
			}
			if key := ring.TagKey(s.Spec.Image, s.Spec.Platform); key != "" {
				put(&out, key, append(out[key], follower{&f.App, s}))
			}
		}
	}
	return out
}
