package reconcile

import (
	"cmp"
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
	fronts   []ring.FrontAt
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
	// elsewhere are instances of other apps that are in its network. It waits for none of them.
	elsewhere map[string][]*instance
	// strays are the services that are seen and in no plan in force, sorted.
	strays []ring.ServiceID
	held   map[string]ring.Reason // source -> what its plan awaits
	// waved is, by source, why its plan waits for hosts of earlier waves; asks are the words
	// of them that are wanted.
	waved map[string]ring.Reason
	asks  []ring.WordAt
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
	// moves are why services do not have yet what their tags moved to and they may follow.
	moves  map[ring.ServiceID]ring.Reason
	lacked map[string]bool
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
	// toWrite are the words of this look that are to be written down, by PostKey.
	toWrite map[string]ring.CommitWord
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
		Actions: t.steps, Facts: t.facts, Events: t.events, Probes: t.probes, Fronts: t.fronts, Words: t.asks, Status: t.overview, Wake: t.soonest,
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
	if t.isBusy(target) || t.isUntouchable(&a) || t.mayNotFetch(&a) {
		return false
	}
	if len(t.Tries) > 0 {
		if try, ok := t.Tries[tryKey(a)]; ok && sameTry(try, a) && t.now.Before(try.Next) {
			t.wakeBy(try.Next)
			return false
		}
	}
	a.Source = cmp.Or(a.Source, t.Facts.Apps[a.App].App.Source)
	t.steps = append(roomForAll(t.steps, len(t.views)), a)
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

// anyStep reports whether a step of a service that is decided or in flight is such a one.
func (t *Pass) anyStep(id ring.ServiceID, such func(*ring.Action) bool) bool {
	if a := t.inFlight(id); a != nil && such(a) {
		return true
	}
	for i := range t.steps { // they are large
		if a := &t.steps[i]; ring.ID(a.App, a.Service) == id && such(a) {
			return true
		}
	}
	return false
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

// isObserved reports whether the source of an app is only watched: nothing of it is
// changed, whatever was in force before.
func (t *Pass) isObserved(app string) bool {
	src := t.sourceNamed(t.Facts.Apps[app].App.Source)
	return src != nil && src.Apply == ApplyObserve
}

// isFresh reports whether the source of an app was reached lately enough to lower
// counts or remove services by its plan.
func (t *Pass) isFresh(app *ring.App) bool {
	src := t.sourceNamed(app.Source)
	return src != nil && src.isFresh(t.now)
}
