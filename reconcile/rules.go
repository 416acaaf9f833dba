package reconcile

import "github.com/gitring/gitring/ring"

// rule is one thing that may have to be done for a service. Rules stand in lists, in
// order: the first that ends the pass for the service is the last that is asked.
type rule struct {
	name string
	// ask says what comes of the rule. It writes nothing: the outcome is carried out by
	// apply, before the next rule is asked.
	ask func(*Pass, *service) outcome
	// each is asked of one instance after the other, and slot of one wanted slot after the
	// other. An outcome is carried out before the next one is asked.
	each []func(*Pass, *service, *instance) outcome
	slot func(*Pass, *service, int) outcome
	// runs is for the runs of jobs, which have rows and ends of their own (runs.go). It
	// reports whether the pass is over for the service.
	runs func(*decider, *service) bool
}

// then is how a rule ends.
type then int

const (
	skip then = iota // it has nothing to do with the service as it is
	note             // something is remembered or asked for, and the next rule is asked
	try              // the pass is over for the service if the move was made
	stop             // the pass is over for the service
)

// outcome is what comes of a rule. The zero value is that it skips.
type outcome struct {
	then   then
	reason ring.Reason // what the service lacks, where it lacks something
	clears bool        // what it lacked before is over
	// The moves are all made, in order; of a try, those up to the first that is made.
	// Most outcomes have one, or none.
	move   move
	more   []move
	facts  []ring.Fact
	events []ring.Event
}

// add asks for one move more.
func (o *outcome) add(m move) {
	if o.move.kind == 0 {
		o.move = m
		return
	}
	o.more = append(o.more, m)
}

// decideBy asks rules in order until one ends the pass for the service. It reports whether
// one did.
func (t *decider) decideBy(v *service, rules []rule) bool {
	for i := range rules {
		if t.askRule(v, &rules[i]) {
			return true
		}
	}
	return false
}

// askRule asks one rule. It reports whether the pass is over for the service.
func (t *decider) askRule(v *service, r *rule) bool {
	if t.isTracing(v) {
		defer t.trace.noteSkipped(r, len(t.trace.asked))
	}
	switch {
	case r.ask != nil:
		return t.carryOut(v, r, r.ask(&t.Pass, v))
	case r.runs != nil:
		if r.runs(t, v) {
			return t.carryOut(v, r, outcome{then: stop})
		}
		return false
	case r.slot != nil:
		for slot := 1; slot <= v.target.Replicas; slot++ {
			if t.carryOut(v, r, r.slot(&t.Pass, v, slot)) {
				return true
			}
		}
		return false
	}
	for _, in := range v.instances {
		for _, ask := range r.each {
			if t.carryOut(v, r, ask(&t.Pass, v, in)) {
				return true
			}
		}
	}
	return false
}

// carryOut applies what came of a rule. For who asked for the rules it is noted, unless it
// changed nothing. It reports whether the pass is over for the service.
func (t *decider) carryOut(v *service, r *rule, o outcome) bool {
	if o.then == skip {
		return false
	}
	steps, done := len(t.steps), len(t.facts)+len(t.events)
	over := t.apply(v, &o)
	if t.isTracing(v) && (over || !o.reason.None() || len(t.steps) > steps || len(t.facts)+len(t.events) > done) {
		t.noteTrace(r, &o, len(t.steps) > steps)
	}
	return over
}

// apply carries an outcome out. It reports whether the pass is over for the service.
func (t *decider) apply(v *service, o *outcome) bool {
	for _, f := range o.facts {
		t.setFact(f)
	}
	for _, e := range o.events {
		t.addEvent(e)
	}
	if o.clears {
		v.missing = ""
	}
	switch {
	case o.reason.None():
	case v.want.Kind.Ends():
		v.says = o.reason.Says // of a job, all that there is to say
	default:
		v.missing = o.reason.Says
	}
	if o.move.kind == 0 {
		return o.then == stop
	}
	if t.makeMove(v, &o.move) && o.then == try {
		return true
	}
	for i := range o.more {
		if t.makeMove(v, &o.more[i]) && o.then == try {
			return true
		}
	}
	return o.then == stop
}

// strategy is how a service comes from one version to the next.
type strategy struct {
	name     string // the word of the manifest
	rules    []rule
	overlaps bool // two versions run side by side
	// secondSet: the new version comes as a whole set beside the old one, which stays
	// whole until then as the one to go back to.
	secondSet bool
	// room is how far a rollout of so many replicas may go above and below them; nil is
	// as far as the knobs say.
	room func(k ring.Rollout, d int) (surge, unavailable int)
}

// strategies are all that there are, by the word of the manifest.
var strategies = map[string]strategy{}

func init() { // the rules ask for the strategy themselves
	keep := listOf([]rule{{name: "reload in place", ask: (*Pass).staleFiles}, {name: "complete", ask: (*Pass).completionOutcome}}, policyRules, nameRules)
	side := []rule{
		{name: "drop failed instances", ask: (*Pass).failedInstance},
		{name: "start what was created", ask: (*Pass).createdInstance},
		healRules[0], healRules[1],
		{name: "create one more", ask: (*Pass).oneMore},
	}
	shrink := rule{name: "remove one not wanted", ask: (*Pass).oneNotWanted}
	for _, s := range []strategy{
		{name: ring.Rolling, overlaps: true, rules: listOf(side, []rule{shrink}, keep)},
		{
			name: ring.BlueGreen, overlaps: true, secondSet: true, room: roomForSecondSet,
			rules: listOf(side, []rule{{name: "switch sets", ask: (*Pass).switchSets}, shrink}, keep),
		},
		{name: ring.Recreate, rules: listOf([]rule{
			{name: "drop failed instances", ask: (*Pass).failedInstance},
			{name: "remove what has no slot", ask: (*Pass).slotlessInstance},
			{name: "remove what was superseded", ask: (*Pass).supersededInstance},
			{name: "move slots one by one", slot: (*Pass).slotMove},
			{name: "take the name", each: eachOf((*Pass).unnamedInstance)},
		}, keep)},
	} {
		strategies[s.name] = s
	}
}

// strategyOf is how a service moves: two versions that may not overlap are recreated,
// whatever the manifest says.
func strategyOf(v *service) strategy {
	if v.isExclusive() {
		return strategies[ring.Recreate]
	}
	return strategyNamed(v.want.Rollout.Strategy)
}

// strategyNamed is the strategy of a word of the manifest; rolling where it knows none.
func strategyNamed(name string) strategy {
	if s, known := strategies[name]; known {
		return s
	}
	return strategies[ring.Rolling]
}

// roomOf is how far a rollout of d replicas may go above and below d.
func roomOf(k ring.Rollout, d int) (surge, unavailable int) {
	if its := strategyNamed(k.Strategy); its.room != nil {
		return its.room(k, d)
	}
	return k.Room(d)
}

// The lists that every worker's pass begins with, whatever its strategy.
var (
	// beginRules see through what an earlier pass or an earlier daemon began.
	beginRules = []rule{
		{name: "replace what cannot start", ask: (*Pass).brokenInstance},
		intentRule,
		{name: "keep stopped ones stopped", each: eachOf((*Pass).asideInstance)},
		tieRule,
		{name: "follow former runs", runs: (*decider).formerRuns},
		{name: "remove former runs", each: eachOf((*Pass).formerRun)},
	}
	intentRule = rule{name: "see intents through", each: eachOf((*Pass).meantBefore)}
	tieRule    = rule{name: "join namespaces again", each: eachOf((*Pass).cutInstance)}
	// healRules keep alive what should run: a crashed instance starts again, with its own
	// spec, inside its backoff.
	healRules = []rule{
		{name: "note what ended with the engine", ask: (*Pass).engineEnded},
		{name: "restart what ended", each: []func(*Pass, *service, *instance) outcome{
			(*Pass).interruptedInstance, (*Pass).engineRestarted, (*Pass).unliveInstance, (*Pass).stableInstance, (*Pass).endedInstance,
		}},
	}
	// waitRules are for a first version that may not start yet.
	waitRules = healRules
	// stoppedRules are for a rollout that stopped where it is.
	stoppedRules = []rule{
		{name: "start what was created", ask: (*Pass).createdInstance},
		healRules[0], healRules[1],
		{name: "complete", ask: (*Pass).completionStopped},
	}
	// doubleRules leave one instance to a slot that has an adopted one, too.
	doubleRules = []rule{{name: "drop doubles", ask: (*Pass).doubleInstance}}
	// keptRules keep alive what left the plan and is needed still.
	keptRules = stoppedRules[:3]
	// policyRules set the engine's restart policy to what the Compose file says.
	policyRules = []rule{{name: "set restart policies", each: eachOf((*Pass).otherPolicy)}}
	// nameRules give the names that Compose gives to what serves.
	nameRules = []rule{{name: "take Compose's name", each: eachOf((*Pass).longNamed)}}
	// cronRules come before each run of a cron job.
	cronRules = jobRules[:3]
	// jobRules come before each run of a job.
	jobRules = []rule{
		intentRule,
		tieRule,
		{name: "remove former workers", ask: (*Pass).formerWorker},
		{name: "follow runs", runs: (*decider).followRuns},
		{name: "remove old runs", each: eachOf((*Pass).oldRun)},
	}
)

func eachOf(ask func(*Pass, *service, *instance) outcome) []func(*Pass, *service, *instance) outcome {
	return []func(*Pass, *service, *instance) outcome{ask}
}

func listOf(parts ...[]rule) (out []rule) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
