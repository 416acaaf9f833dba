package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// Pass is what one pass of Diff sees: the world, the views of it, and the facts as they
// are by now. It decides nothing: no method of it writes a fact, an event or a step. It
// notes when one of its answers will change by itself, and keeps what it computed.
type Pass struct {
	World
	now time.Time
	// soonest is when one of its answers changes by itself; zero for never.
	soonest time.Time
	// steps are those decided so far, probes what is to be asked of what runs, and
	// overview is the state of everything, once it was looked at.
	steps    []ring.Action
	probes   []ring.Probe
	overview ring.Status
	by       index
	raw      []ring.Instance // as seen, before takeAdopted; nil where nothing is adopted
	// by service, sorted by slot, then creation, then ID: the order in which
	// the engine listed them decides nothing
	seen   map[ring.ServiceID][]*instance
	views  map[ring.ServiceID]*service
	apps   map[string][]service // views by app, in the order of its plan
	names  []string             // of the apps in force when the views were made, sorted
	groups []*group
	tied   map[string][]*instance // by container ID, the instances that are tied to it
	// strays are the services that are seen and in no plan in force, sorted.
	strays []ring.ServiceID
	held   map[string]ring.Reason // source -> what its plan awaits
	// staging is, by app, why its next plan is not in force yet; refusals by
	// app are those that only this host could find.
	staging map[string]ring.Reason
	refused map[string]*ring.Refusal
	// nameTaken are the refusals of a name that belongs to another folder or source, by
	// source and app: the app that has the name is not refused by them.
	nameTaken map[[2]string]*ring.Refusal
	blocked   map[string]bool // apps that wait for a refused one
	stays     map[string]stay // apps that serve until another can take over from them
	// imageless are the services whose next plan waits for an image, and lacked what is
	// missing since a time that is remembered, by TroubleKey.
	imageless map[ring.ServiceID]imageless
	lacked    map[string]bool
	// watched is, by source that is only observed, what its plan would change, and
	// differs says that it would change anything.
	watched map[string]string
	differs map[string]bool
	// tally is, by source whose plan is being staged, how much of the host it changes.
	tally map[string]string
	// parts are, by commit, what several sources make of it that share it.
	parts map[ring.SHA][]part
	// planned are apps as their plan has them, where a person's count is in force.
	planned map[string]ring.App
	// scales are a person's counts that are in force, and those that follow them.
	scales map[ring.ServiceID]int
	// writers are the services by what they write; nil until somebody asks.
	writers map[string][]*service
}

// decider is the one that writes: facts, events and steps. A fact that it sets is seen
// by all that asks the pass after it.
type decider struct {
	Pass
	facts  []ring.Fact
	events []ring.Event
	own    map[string]bool // tables of Facts that were copied before a change
	trace  *trace          // nil where nobody asks which rules were asked
}

// newPass has looked at nothing yet.
func newPass(w World, now time.Time) Pass {
	return Pass{World: w, now: now, views: make(map[ring.ServiceID]*service, len(w.Facts.Rollouts))}
}

// newDecider has looked at nothing yet.
func newDecider(w World, now time.Time) *decider { return &decider{Pass: newPass(w, now)} }

// decision is all that was decided.
func (t *decider) decision() Decision {
	return Decision{
		Actions: t.steps, Facts: t.facts, Events: t.events, Probes: t.probes, Status: t.overview, Wake: t.soonest,
	}
}

// put has m made when something is first put into it: at rest there is nothing to say.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Diff decides one look. Equal arguments give equal decisions, in whatever
// order instances were seen.
func Diff(w World, now time.Time) Decision {
	t := newDecider(w, now)
	t.decide()
	return t.decision()
}

// decide asks every rule, in order.
func (t *decider) decide() {
	t.indexSeen()
	t.updateOverrides()
	t.handBack()
	t.undoPlans()
	t.carryMarks()
	t.recordNames()
	for i := range t.Sources {
		t.stagePlan(&t.Sources[i])
	}
	t.standIn()
	t.scalePlans()
	t.makeViews()
	t.judgeGroups()
	for _, v := range t.inOrder() {
		if !t.givenUp(v) {
			t.decideService(v)
		} else if v.group == nil {
			t.judgeService(v)
		}
	}
	t.tidyHost()
	t.rememberPlans()
	t.imagesOff()
	t.deriveStatus()
	t.derivePosts()
	t.tellTroubles()
}

// indexSeen sorts what is seen by service.
func (t *Pass) indexSeen() {
	t.takeAdopted()
	type named struct{ app, service string }
	all, of, tied := make([]instance, len(t.Seen.Instances)), map[named][]*instance{}, false
	for i := range all {
		in, v := &t.Seen.Instances[i], &all[i]
		v.Instance, v.intent = in, t.Facts.Intents[in.ID].Kind
		name := named{in.App, in.Service}
		its := of[name]
		if its == nil {
			its = make([]*instance, 0, 4) // few have more
		}
		of[name] = append(its, v)
		tied = tied || len(in.Joined) > 0
	}
	t.seen = make(map[ring.ServiceID][]*instance, len(of))
	for name, ins := range of {
		slices.SortFunc(ins, bySlot)
		t.seen[ring.ID(name.app, name.service)] = ins
	}
	if !tied {
		return
	}
	t.tied = map[string][]*instance{}
	for _, id := range t.seenIDs() {
		for _, in := range t.seen[id] {
			for _, owner := range in.Joined {
				t.tied[owner] = append(t.tied[owner], in)
			}
		}
	}
}

func bySlot(a, b *instance) int {
	if a.Slot != b.Slot {
		return cmp.Compare(a.Slot, b.Slot)
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
}

// makeViews makes the view of every service in force, before any is decided:
// dependents ask for the state of their dependencies.
func (t *decider) makeViews() {
	t.probes = make([]ring.Probe, 0, len(t.Seen.Instances))
	t.apps = make(map[string][]service, len(t.Facts.Apps))
	t.names = sortedKeys(t.Facts.Apps)
	for _, name := range t.names {
		f := t.Facts.Apps[name]
		all := make([]service, len(f.App.Services))
		for i := range all {
			t.makeView(&all[i], &f.App, &f.App.Services[i])
		}
		t.apps[name] = all
		t.groupServices(all)
	}
	for id := range t.seen {
		if t.views[id] == nil {
			t.strays = append(t.strays, id)
		}
	}
	slices.Sort(t.strays)
	for _, id := range t.strays {
		t.probeInstances(t.seen[id], nil, t.Facts.Good[id])
	}
}

// setFact decides a fact: remembered, and true for the rest of this pass.
func (t *decider) setFact(f ring.Fact) {
	table, key := f.Row()
	if !t.own[table] {
		put(&t.own, table, true)
		t.Facts.Own(table)
	}
	t.Facts.Put(table, key, f)
	t.facts = append(roomForMore(t.facts), f)
	t.implyViews(f, table, key)
}

// implyViews has the views say what a fact says. Nothing else writes the row of a service or
// the intent of an instance.
func (t *decider) implyViews(f ring.Fact, table, key string) {
	switch f := f.(type) {
	case ring.InForce:
		t.enterKept(&f.App)
	case ring.RolloutRow:
		if v := t.views[f.ID]; v != nil {
			v.rollout = f
		}
	case ring.Intent:
		if in := t.instanceByID(f.Instance); in != nil {
			in.intent = f.Kind
		}
	case ring.Forget:
		if table != "intent" {
			return
		}
		if in := t.instanceByID(key); in != nil {
			in.intent = ""
		}
	}
}

func (t *decider) addEvent(e ring.Event) {
	e.At = t.now
	t.events = append(roomForMore(t.events), e)
}

// wakeBy asks for another look at u, or sooner.
func (t *Pass) wakeBy(u time.Time) {
	if u.IsZero() || !u.After(t.now) {
		return
	}
	if t.soonest.IsZero() || u.Before(t.soonest) {
		t.soonest = u
	}
}

// addStep decides a step, unless its target is busy or has to wait after a failure.
// It reports whether the step was decided.
func (t *decider) addStep(a ring.Action) bool {
	target := a.Target()
	if t.isBusy(target) || t.isUntouchable(&a) {
		return false
	}
	if len(t.Tries) > 0 {
		if try, ok := t.Tries[tryKey(a)]; ok && sameTry(try, a) && t.now.Before(try.Next) {
			t.wakeBy(try.Next)
			return false
		}
	}
	a.Source = cmp.Or(a.Source, t.Facts.Apps[a.App].App.Source)
	t.steps = append(roomForMore(t.steps), a)
	if t.by.decided == nil {
		t.by.decided = map[string]bool{}
	}
	t.by.decided[target] = true
	if t.by.summed {
		t.by.memory += madeBy(a)
	}
	t.enterStep(a)
	return true
}

// isBusy reports whether a step on target is in flight or was just decided.
func (t *Pass) isBusy(target string) bool {
	_, ok := t.Busy[target]
	return ok || t.by.decided[target]
}

// inFlight is the step of a service that is in flight; nil where none is. A step is
// large: only one that is there is copied.
func (t *Pass) inFlight(id ring.ServiceID) *ring.Action {
	if _, any := t.Busy[string(id)]; !any {
		return nil
	}
	a := t.Busy[string(id)]
	return &a
}

// sourceNamed finds a configured source; nil when there is none of that name.
func (t *Pass) sourceNamed(name string) *Source {
	for i := range t.Sources {
		if t.Sources[i].Name == name {
			return &t.Sources[i]
		}
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// keysThat are the keys of which is says so, sorted.
func keysThat[K cmp.Ordered, V any](m map[K]V, is func(K) bool) (out []K) {
	for k := range m {
		if is(k) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// roomForMore has room for one more, and for as many again where there is none: append's own
// steps are small, and a look in which a thousand rollouts begin would copy its actions,
// which are large, a dozen times.
func roomForMore[T any](all []T) []T {
	if len(all) < cap(all) {
		return all
	}
	return slices.Grow(all, max(4, len(all)))
}

func say(format string, args ...any) string { return fmt.Sprintf(format, args...) }
