package reconcile

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// tellValues gives the variables that differ their values, where everybody who reads the
// repository may read them.
func tellValues(fields []ring.FieldChange, from, to map[string]string) {
	for i := range fields {
		name, ok := strings.CutPrefix(fields[i].Field, "env ")
		if a, b := from[name], to[name]; ok && plainValue(name, a) && plainValue(name, b) {
			fields[i].Values = &ring.ValueChange{From: a, To: b}
		}
	}
}

var (
	secretName  = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|cred|auth|private|salt|seed|dsn|cookie|session|hash`)
	secretValue = regexp.MustCompile(`://[^/]*@|-----BEGIN`)
)

// plainValue reports whether a variable's value can be shown: it is short, of the commit
// and not of the host, and neither it nor its name looks like a secret's.
func plainValue(name, value string) bool {
	return len(value) <= 60 && !strings.ContainsAny(value, "\r\n\x1b") && !ring.HasSealed(value) && !secretName.MatchString(name) && !secretValue.MatchString(value)
}

// Plan says what carrying out next would do on this host, and changes nothing.
// An image that was never resolved here is named as written.
func Plan(w World, next *ring.Plan, now time.Time) ring.Changes {
	t := newDecider(w, now)
	t.indexSeen()
	out := ring.Changes{Source: next.Source, Commit: next.Commit, Apps: []ring.AppChanges{}, Decisions: next.Decisions, Policy: next.Policy, Doubts: next.Doubts}
	if next.Refusal != nil {
		out.Refusals = []*ring.Refusal{next.Refusal}
		return out
	}
	for _, name := range sortedKeys(next.Refused) {
		out.Refusals = append(out.Refusals, next.Refused[name])
	}
	src := Source{Name: next.Source, Next: next}
	if s := t.sourceNamed(next.Source); s != nil {
		src.Apply, src.Names = s.Apply, s.Names
	}
	present := t.servicesPresent(next.Source)
	out.Awaiting, out.Waits = t.guardReason(&src, present), t.wavesSay(&src, present)
	for i := range next.Apps {
		if r := t.nameRefusal(&src, &next.Apps[i]); r != nil {
			out.Refusals = append(out.Refusals, r)
			continue
		}
		c := t.appChanges(&next.Apps[i])
		out.Waits = joinSays(out.Waits, t.withheldSays(&next.Apps[i], &c))
		if s := t.transferReason(&src, c.App, &next.Apps[i], nil); !s.None() && src.Apply != ApplyCommit {
			c.Order = strings.TrimPrefix(c.Order+", "+s.Says, ", ")
		}
		out.Apps = append(out.Apps, c)
	}
	t.tellHandovers(next, out.Apps)
	out.Doubts = slices.Concat(out.Doubts, t.portDoubts(next))
	for _, name := range sortedKeys(present) {
		if _, ok := next.App(name); ok || next.Refused[name] != nil || t.isLeft(name) {
			continue
		}
		c := ring.AppChanges{App: name, Services: []ring.ServiceChange{}}
		for _, s := range present[name] {
			c.Services = append(c.Services, ring.ServiceChange{Service: s, Class: ring.ChangeRemove, Reason: "app " + name + " is not in the commit; volumes stay"})
		}
		have := t.Facts.Apps[name].App
		orderChanges(c.Services, &have, &ring.App{})
		if src.Apply != ApplyCommit {
			c.Order = t.stayReason(&src, name).Says
		}
		out.Waits = joinSays(out.Waits, t.withheldSays(&ring.App{Name: name}, &c))
		out.Apps = append(out.Apps, c)
	}
	return out
}

// WouldUndo says what bringing back an earlier plan of an app would do, with the images that it
// ran. It changes nothing.
func WouldUndo(w World, past *ring.App, now time.Time) ring.AppChanges {
	t := newDecider(w, now)
	t.indexSeen()
	return t.changesTo(past, t.markedApp(*past))
}

// appChanges are those to the next plan of an app. Nothing of one that was left to Compose changes.
func (t *Pass) appChanges(next *ring.App) ring.AppChanges {
	if !t.isLeft(next.Name) {
		return t.changesTo(next, t.pinnedAs(next))
	}
	out := ring.AppChanges{App: next.Name, Files: next.Files, Services: []ring.ServiceChange{}}
	for i := range next.Services {
		s := &next.Services[i]
		out.Services = append(out.Services, ring.ServiceChange{Service: s.Name, FrontOf: s.FrontOf, Class: ring.ChangeNone, Reason: "left to Compose"})
	}
	return out
}

// withheldSays is why changes of an app would not be carried out yet, by a person's word or by the
// commit's own; "" where nothing is withheld.
func (t *Pass) withheldSays(next *ring.App, c *ring.AppChanges) string {
	why := t.withheldReason(next.Name)
	if why.None() && t.isHeldInFile(next.Hold) {
		why = declaredReason(next.Hold)
	}
	changes := slices.ContainsFunc(c.Services, func(s ring.ServiceChange) bool { return s.Class != ring.ChangeNone })
	if why.None() {
		return t.servicesHeldSays(c)
	}
	if !changes && why.Code != ring.WhyLeftToCompose {
		return ""
	}
	return say("app %s: %s", next.Name, why.Says)
}

// servicesHeldSays is who holds services of an app that would change, where nobody holds all of it.
func (t *Pass) servicesHeldSays(c *ring.AppChanges) (says string) {
	for i := range c.Services {
		id := ring.ID(c.App, c.Services[i].Service)
		if why := t.heldBy(id); c.Services[i].Class != ring.ChangeNone && !why.None() {
			says = joinSays(says, say("service %s: %s", id, why.Says))
		}
	}
	return says
}

// joinSays puts two sentences into one line; either may be "".
func joinSays(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// changesTo are those to the plan of an app, given with the pins that it would have.
func (t *Pass) changesTo(next *ring.App, app ring.App) ring.AppChanges {
	have := t.Facts.Apps[next.Name].App
	out := ring.AppChanges{App: next.Name, Files: next.Files, Notes: next.Notes, Powers: next.Powers, Services: []ring.ServiceChange{}}
	for i := range app.Services {
		out.Services = append(out.Services, t.serviceChange(&have, &app, &app.Services[i]))
	}
	out.Order = orderOfApps(&app)
	for _, old := range servicesGone(&have, next) {
		why := "not in the commit; volumes stay"
		if _, stays := next.Service(old.FrontOf); stays {
			why = say("%s has no front any more", old.FrontOf)
		}
		out.Services = append(out.Services, ring.ServiceChange{Service: old.Name, Class: ring.ChangeRemove, Reason: why, From: old.Version})
	}
	orderChanges(out.Services, &have, &app)
	if !slices.ContainsFunc(out.Services, func(s ring.ServiceChange) bool { return s.Class != ring.ChangeNone }) {
		// A status says the same of what runs; only what is new is about this plan.
		out.Notes = slices.DeleteFunc(slices.Clone(out.Notes), func(note string) bool { return slices.Contains(have.Notes, note) })
	}
	out.Notes = slices.Concat(out.Notes, newcomerNotes(&have, &app, out.Services))
	return out
}

// serviceChange is the same as people read it.
func (t *Pass) serviceChange(have, next *ring.App, s *ring.Service) ring.ServiceChange {
	c := t.classifyNow(have, next, s)
	out := ring.ServiceChange{Service: s.Name, FrontOf: s.FrontOf, From: c.old.Version, To: s.Version, Class: c.class}
	switch {
	case c.known && c.old.Kind == ring.Worker && s.Kind.Ends():
		out.Reason = "becomes " + kindSays(s.Kind) + ": what runs is stopped and removed first"
		return out
	case c.known && c.old.Kind.Ends() && s.Kind == ring.Worker:
		out.Reason = "no longer " + kindSays(c.old.Kind) + ": it keeps running" + comesFirst(s)
		return out
	case s.Kind == ring.JobK && len(runsBefore(next, s.Name)) > 0:
		out.Reason = "runs before " + strings.Join(runsBefore(next, s.Name), ", ")
		return out
	case s.Kind == ring.JobK && c.class == ring.ChangeCreate:
		out.Reason = "job runs"
		return out
	case s.Kind == ring.JobK:
		return out
	case !c.known && s.FrontOf != "":
		out.Reason = "new: the front of " + s.FrontOf
		if had, ok := inForce(have, s.FrontOf); ok {
			out.Gap, out.GapSeconds = definedGap(had, s)
		}
		return out
	case !c.known:
		out.Reason = "new: image " + s.Spec.Image + comesFirst(s)
		return out
	}
	differ := inPlace(c.old, c.s)
	if c.anew {
		differ = append(versionDifferences(c.of, c.old, next, c.s), differ...)
	}
	if s.Pin.Image == "" {
		differ = markUnresolved(differ, s)
	}
	out.Fields, out.Reason = classDifferences(differ, c.why != ""), sayAll(differ)
	tellValues(out.Fields, c.old.Spec.Environment, c.s.Spec.Environment)
	gap, seconds, fronted := frontGap(next, c)
	switch {
	case c.anew && s.Kind == ring.CronK:
		out.Reason += "; from the next run on"
	case c.class == ring.ChangeRecreate:
		if out.Gap, out.GapSeconds = t.recreateGap(next, c.old, c.s, c.why); out.Gap != "" && fronted {
			out.Gap, out.GapSeconds = gap, seconds
		}
		out.Reason += comesFirst(s)
	case c.class == ring.ChangeRoll:
		if out.Gap, out.GapSeconds = gap, seconds; out.Gap == "" {
			out.Gap, out.GapSeconds = definedGap(c.old, c.s)
		}
		out.Needs = t.spareSays(s)
		out.Reason += comesFirst(s)
	}
	return out
}

// kindSays is what ends by itself, in words.
func kindSays(k ring.Kind) string {
	if k == ring.CronK {
		return "a cron job"
	}
	return "a job"
}

// markUnresolved says once of an image that a registry has to be asked for it.
func markUnresolved(differ []difference, s *ring.Service) []difference {
	const toBe = " to be resolved"
	i := slices.IndexFunc(differ, func(d difference) bool { return d.key == "spec.image" })
	if i < 0 {
		return append(differ, difference{"spec.image", "image " + s.Spec.Image + toBe})
	}
	differ[i].says += "," + toBe
	return differ
}
