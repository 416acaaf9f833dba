package reconcile

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// recreateGap is how long a service will not answer while a slot of it is recreated: the
// stop of the old instance and the start of the new one. There is none where
// nothing runs.
func (t *Pass) recreateGap(app *ring.App, old, s *ring.Service, why string) (says string, seconds int) {
	id := ring.ID(app.Name, s.Name)
	if !slices.ContainsFunc(t.seen[id], func(in *instance) bool { return in.Live() }) {
		return "", 0
	}
	stop := old.Grace()
	if len(old.Spec.PreStop) > 0 {
		stop *= 2 // the hooks have a grace of their own
	}
	took, measured := t.startTook(id, s)
	says = say("stop up to %s + start", stop)
	switch {
	case !measured:
		says += say(" (at most %s)", patienceOf(s))
	case took < time.Second:
		says += " under 1s"
	default:
		says += say(" about %s", took.Round(time.Second))
	}
	if measured && s.Gated() {
		says += say(", or %s if it never becomes ready", plainly(patienceOf(s)))
	}
	if measured {
		seconds = int(math.Ceil((stop + took).Seconds()))
	}
	if s.Replicas > 1 {
		says += say(", one of %d slots at a time", s.Replicas)
	}
	return says + ": " + why, seconds
}

// frontSeconds is how long a host port is with nobody while its front is made anew or comes:
// half a second was measured.
const frontSeconds = 1

// frontGap is the gap of a service with a front, or of the front itself; false where it is
// as without one. Words and rules are those of docs/design/traffic.md.
func frontGap(next *ring.App, c classified) (says string, seconds int, known bool) {
	old, s := c.old, c.s
	waits := ""
	if s.Route != nil && c.class == ring.ChangeRecreate && s.Route.Queue > 0 {
		waits = say("waits up to %s", plainly(s.Route.Queue))
	}
	switch {
	case s.FrontOf != "" && c.class == ring.ChangeRecreate:
		return say("front made anew, gap %ds", frontSeconds), frontSeconds, true
	case s.Route == nil:
		return "", 0, false
	case old.Route == nil && !holdsHostPort(next, s.HasFront()):
		return "", 0, false // the front is added beside what serves
	case old.Route == nil && waits != "":
		return say("last gap %ds, then %s: %s", frontSeconds, waits, c.why), frontSeconds, true
	case old.Route == nil && c.class == ring.ChangeRoll:
		return say("last gap %ds", frontSeconds), frontSeconds, true
	case old.Route != nil && waits != "":
		return waits + ": " + c.why, 0, true
	}
	return "", 0, false
}

// plainly is a duration as people write it: 2m for 2m0s.
func plainly(d time.Duration) string {
	says := d.String()
	if strings.HasSuffix(says, "m0s") {
		says = strings.TrimSuffix(says, "0s")
	}
	if strings.HasSuffix(says, "h0m") {
		says = strings.TrimSuffix(says, "0m")
	}
	return says
}

func holdsHostPort(app *ring.App, service string) bool {
	s, ok := app.Service(service)
	return ok && slices.ContainsFunc(s.Spec.Ports, func(p ring.Port) bool { return p.HostPort != "" })
}

// startTook is how long the slowest start of an instance that runs now took until
// it was ready. One that was not ready for a while since says nothing of that.
func (t *Pass) startTook(id ring.ServiceID, s *ring.Service) (longest time.Duration, measured bool) {
	for _, in := range t.seen[id] {
		if in.State != ring.StateRunning {
			continue
		}
		if !s.Gated() {
			measured = true // ready as soon as it runs
			continue
		}
		h := t.Health[in.ID]
		if took := h.Since.Sub(in.Since); h.Ready && took >= 0 && took <= patienceOf(s) {
			longest, measured = max(longest, took), true
		}
	}
	return longest, measured
}

// orderOfApps is what an app waits for before anything of it begins.
func orderOfApps(app *ring.App) string {
	var out []string
	for _, a := range app.After {
		out = append(out, say("after app %s is %s", a.App, a.Until))
	}
	return strings.Join(out, ", ")
}

// orderChanges says of each change what it waits for: the jobs before it, what it depends
// on where that moves too, and for what goes, those that depend on it.
func orderChanges(all []ring.ServiceChange, have, next *ring.App) {
	moving := map[string]ring.Class{}
	for _, c := range all {
		moving[c.Service] = c.Class
	}
	for i := range all {
		c := &all[i]
		var out []string
		switch c.Class {
		case ring.ChangeCreate, ring.ChangeRoll, ring.ChangeRecreate:
			s, _ := next.Service(c.Service)
			if s.Before != "" && !(s.Kind == ring.JobK && c.Class == ring.ChangeCreate) {
				out = append(out, say("job %s runs first", s.Before))
			}
			for _, d := range s.DependsOn {
				switch moving[d.Service] {
				case ring.ChangeCreate, ring.ChangeRoll, ring.ChangeRecreate:
					out = append(out, say("after %s is %s", d.Service, d.Until))
				}
			}
		case ring.ChangeRemove:
			old, known := have.Service(c.Service)
			if !known {
				continue
			}
			for _, s := range have.Services {
				goes := moving[s.Name] == ring.ChangeRemove && s.Name != old.Name
				if goes && (slices.ContainsFunc(s.DependsOn, func(d ring.Dependency) bool { return d.Service == old.Name }) || slices.Contains(s.Spec.Owners(), old.Name)) {
					out = append(out, say("after %s is gone", s.Name))
				}
			}
			out = append(out, say("stops within %s", old.Grace()))
		}
		c.Order = strings.Join(out, ", ")
	}
}
