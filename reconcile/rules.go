package reconcile

import "github.com/gitring/gitring/ring"

// rule is one thing that may have to be done for a service. Rules stand in lists, in
// order: the first that ends the pass for the service is the last that is asked.
type rule struct {
	name string
	// ask says what comes of the rule. It writes nothing: the outcome is carried out by
	// apply, before the next rule is asked.
	ask func(*Pass, *service) outcome
	// old does what it decides, and reports whether the pass is over for the service. It
	// is for what is not rewritten yet, and nil where ask is not.
	old func(*decider, *service) bool
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
	reason ring.Reason // of note: what the service lacks
	clears bool        // what it lacked before is over
	moves  []move
	facts  []ring.Fact
	events []ring.Event
}

// decideBy asks rules in order until one ends the pass for the service. It reports whether
// one did.
func (t *decider) decideBy(v *service, rules []rule) bool {
	for i := range rules {
		r := &rules[i]
		before := len(t.steps)
		var o outcome
		over := false
		if r.ask != nil {
			o = r.ask(&t.Pass, v)
			over = t.apply(v, &o)
		} else if over = r.old(t, v); over {
			o.then = stop
		}
		if t.tracing(v) {
			t.traced(r, &o, len(t.steps) > before)
		}
		if over {
			return true
		}
	}
	return false
}

// apply carries an outcome out. It reports whether the pass is over for the service.
func (t *decider) apply(v *service, o *outcome) bool {
	for _, f := range o.facts {
		t.set(f)
	}
	for _, e := range o.events {
		t.event(e)
	}
	if o.clears {
		v.lacks = ""
	}
	if o.then == note && !o.reason.None() {
		v.lacks = o.reason.Says
	}
	made := false
	for i := range o.moves {
		made = t.makeMove(v, &o.moves[i]) || made
	}
	return o.then == stop || o.then == try && made
}

// strategy is how a service comes from one version to the next.
type strategy struct {
	rules    []rule
	overlaps bool // two versions run side by side
}

// strategies are all that there are, by the word of the manifest.
var strategies map[string]strategy

func init() { // the rules ask for the strategy themselves
	keep := []rule{
		{name: "reload in place", old: (*decider).reload},
		{name: "complete", old: closes((*decider).complete)},
		{name: "set restart policies", old: closes((*decider).policy)},
	}
	side := []rule{
		{name: "drop failed instances", ask: (*Pass).failedInstance},
		{name: "start what was created", ask: (*Pass).createdInstance},
		{name: "restart what ended", old: (*decider).heal},
		{name: "create one more", ask: (*Pass).oneMore},
	}
	shrink := rule{name: "remove one not wanted", ask: (*Pass).oneNotWanted}
	strategies = map[string]strategy{
		ring.Rolling:   {overlaps: true, rules: listOf(side, []rule{shrink}, keep)},
		ring.BlueGreen: {overlaps: true, rules: listOf(side, []rule{{name: "switch sets", ask: (*Pass).switchSets}, shrink}, keep)},
		ring.Recreate: {rules: listOf([]rule{
			{name: "drop failed instances", ask: (*Pass).failedInstance},
			{name: "remove what has no slot", ask: (*Pass).slotless},
			{name: "remove what was superseded", ask: (*Pass).supersededInstance},
			{name: "move slots one by one", old: (*decider).moveSlots},
			{name: "take the name", old: (*decider).takeName},
		}, keep)},
	}
}

// strategyOf is how a service moves: two versions that may not overlap are recreated,
// whatever the manifest says.
func strategyOf(v *service) strategy {
	if v.exclusive() {
		return strategies[ring.Recreate]
	}
	if s, known := strategies[v.want.Rollout.Strategy]; known && s.overlaps {
		return s
	}
	return strategies[ring.Rolling]
}

// The lists that every worker's pass begins with, whatever its strategy.
var (
	// beginRules see through what an earlier pass or an earlier daemon began.
	beginRules = []rule{
		{name: "replace what cannot start", ask: (*Pass).brokenInstance},
		{name: "see intents through", old: (*decider).finishIntents},
		{name: "keep stopped ones stopped", old: (*decider).standAside},
		{name: "join namespaces again", old: (*decider).rejoin},
		{name: "end former runs", old: (*decider).formerRuns},
	}
	// waitRules are for a first version that may not start yet.
	waitRules = []rule{{name: "restart what ended", old: (*decider).heal}}
	// stoppedRules are for a rollout that stopped where it is.
	stoppedRules = []rule{
		{name: "start what was created", ask: (*Pass).createdInstance},
		{name: "restart what ended", old: (*decider).heal},
		{name: "complete", old: (*decider).completeStopped},
	}
	// doubleRules leave one instance to a slot that has an adopted one, too.
	doubleRules = []rule{{name: "drop doubles", ask: (*Pass).doubleInstance}}
	// keptRules keep alive what left the plan and is needed still.
	keptRules = stoppedRules[:2]
	// cronRules come before each run of a cron job.
	cronRules = jobRules[:3]
	// jobRules come before each run of a job.
	jobRules = []rule{
		{name: "see intents through", old: (*decider).finishIntents},
		{name: "join namespaces again", old: (*decider).rejoin},
		{name: "remove former workers", ask: (*Pass).formerWorker},
		{name: "follow runs", old: (*decider).followRuns},
		{name: "remove old runs", old: (*decider).oldRuns},
	}
)

func listOf(parts ...[]rule) (out []rule) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// closes makes a rule of what never ends a pass.
func closes(do func(*decider, *service)) func(*decider, *service) bool {
	return func(t *decider, v *service) bool {
		do(t, v)
		return false
	}
}
