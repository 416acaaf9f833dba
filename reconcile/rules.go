package reconcile

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
