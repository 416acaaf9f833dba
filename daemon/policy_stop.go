package daemon

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/ring"
)

// violationStopAfter is for how long a service breaks the rules before on_violation: stop
// has it stopped. A test is built with another one.
var violationStopAfter = "10m"

// stopAfter is violationStopAfter, and the default where a build has no time there.
func stopAfter() time.Duration {
	d, err := time.ParseDuration(violationStopAfter)
	if err != nil {
		return 10 * time.Minute
	}
	return d
}

// stopping is what on_violation: stop knows: since when a service breaks the rules, and
// when it was asked to be stopped. It is of watchPolicy's goroutine.
type stopping struct {
	since, asked map[ring.ServiceID]time.Time
}

// seenWithin is how long a stop may take to be seen in the status. One that is not there
// later was ended by a person.
const seenWithin = time.Minute

// due are the services to be stopped now. denied are those that break the rules, with the
// reason; standing are those that the policy has stopped already.
func (s *stopping) due(denied map[ring.ServiceID]string, standing map[ring.ServiceID]bool, after time.Duration, now time.Time) map[ring.ServiceID]string {
	if s.since == nil {
		s.since, s.asked = map[ring.ServiceID]time.Time{}, map[ring.ServiceID]time.Time{}
	}
	gone := func(id ring.ServiceID, _ time.Time) bool { _, still := denied[id]; return !still }
	maps.DeleteFunc(s.since, gone)
	maps.DeleteFunc(s.asked, gone)
	out := map[ring.ServiceID]string{}
	for id, why := range denied {
		at, asked := s.asked[id]
		if asked && !standing[id] && now.Sub(at) > seenWithin {
			delete(s.asked, id) // released by hand: its time begins anew
			delete(s.since, id)
		}
		if _, known := s.since[id]; !known {
			s.since[id] = now
		}
		if standing[id] || now.Sub(s.since[id]) >= after {
			out[id] = why
			if _, asked := s.asked[id]; !asked {
				s.asked[id] = now
			}
		}
	}
	return out
}

// stopDenied has the policy stop what has broken its rules for long enough, and lets go of
// what does not break them any more.
func (d *Daemon) stopDenied(ctx context.Context, now time.Time) {
	st, _ := d.loop.Status()
	standing := map[ring.ServiceID]bool{}
	for _, o := range st.Overrides {
		if o.Kind == string(ring.OverrideStop) {
			standing[ring.ServiceID(o.Target)] = true
		}
	}
	denied := map[ring.ServiceID]string{}
	if said, _ := d.policy.Said(); said.OnViolation == config.OnViolationStop {
		denied, _ = d.stoppable()
	}
	due := d.stops.due(denied, standing, stopAfter(), now)
	if maps.EqualFunc(due, standing, func(string, bool) bool { return true }) {
		return
	}
	if err := d.loop.StopDenied(ctx, due); err != nil && ctx.Err() == nil {
		d.log.Warn("could not have stopped what the policy denies, will be tried again", "err", err)
	}
}

// stoppable are the services in force that break the rules, with the reason, and why
// others that break them are not stopped.
func (d *Daemon) stoppable() (denied map[ring.ServiceID]string, spared []string) {
	inForce, _ := d.ledger.apps()
	denied = map[ring.ServiceID]string{}
	for _, v := range d.violations.now() {
		f, ok := inForce[v.app]
		if !ok {
			continue
		}
		for i := range f.App.Services {
			s := &f.App.Services[i]
			id := ring.ID(v.app, s.Name)
			if v.service != "" && v.service != s.Name || s.Kind != ring.Worker || denied[id] != "" {
				continue
			}
			if by := neededBy(inForce, &f.App, s); by != "" {
				spared = append(spared, string(id)+" is not stopped: "+by)
				continue
			}
			denied[id] = v.says
		}
	}
	slices.Sort(spared)
	return denied, slices.Compact(spared)
}

// neededBy says which other service has the data of one, "" for none: whoever needs it is
// not to lose the one that serves it.
func neededBy(inForce map[string]ring.InForce, app *ring.App, s *ring.Service) string {
	mine := dataOf(app, s)
	for _, name := range slices.Sorted(maps.Keys(inForce)) {
		other := inForce[name].App
		for i := range other.Services {
			o := &other.Services[i]
			if name == app.Name && o.Name == s.Name {
				continue
			}
			if name == app.Name && slices.ContainsFunc(o.Spec.VolumesFrom, func(from ring.VolumesFrom) bool { return from.Service == s.Name }) {
				return fmt.Sprintf("%s takes its volumes", ring.ID(name, o.Name))
			}
			for _, theirs := range dataOf(&other, o) {
				if i := slices.IndexFunc(mine, func(d string) bool { return meets(d, theirs) }); i >= 0 {
					return fmt.Sprintf("%s needs its %s", ring.ID(name, o.Name), mine[i])
				}
			}
		}
	}
	return ""
}

// dataOf are the volumes and data folders that a service mounts.
func dataOf(app *ring.App, s *ring.Service) (out []string) {
	for _, m := range app.Mounts(s) {
		switch m.Kind {
		case ring.MountVolume:
			v := ring.Volume{Key: m.Source} // an anonymous one is declared nowhere
			if i := slices.IndexFunc(app.Volumes, func(v ring.Volume) bool { return v.Key == m.Source }); i >= 0 {
				v = app.Volumes[i]
			}
			out = append(out, "volume "+v.EngineName(app.Name))
		case ring.MountData, ring.MountSeed:
			out = append(out, "folder "+path.Join("/", app.DataRoot, m.Source))
		}
	}
	return out
}

// meets reports whether two volumes are one, or two folders are one or lie in each other.
func meets(a, b string) bool {
	return a == b || strings.HasPrefix(a, "folder ") && (strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/"))
}
