package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// A canary gets a share of the requests first, in steps. The old set stays whole until the
// last step has passed; then the rest goes as a rolling update. What it answers is judged
// beside what the old set answers.

// canaryFold is how often counters are added up while a step lasts.
const canaryFold = 5 * time.Second

// inSteps reports whether the rollout is in one of the steps of a canary. A first deploy and a
// return to the last good version have none.
func (v *service) inSteps() bool {
	c := v.want.Rollout.Canary
	return c != nil && v.hasFront() && strategyOf(v).steps && v.isRolling() && v.target == v.want &&
		v.good != nil && v.good.Service.Version != v.want.Version && v.rollout.Step < len(c.Steps)
}

// canaryStepNow is the step under way; only of one that is in steps.
func (v *service) canaryStepNow() ring.CanaryStep {
	return v.want.Rollout.Canary.Steps[v.rollout.Step]
}

// canaryCount is how many instances the step under way has.
func (v *service) canaryCount() int {
	c, d := v.want.Rollout.Canary, v.want.Replicas
	if c.Replicas > 0 {
		return min(c.Replicas, d)
	}
	return min(d, max(1, (d*v.canaryStepNow().Weight+99)/100))
}

// roomNow is how far the rollout may go above and below d: a canary comes on top.
func roomNow(v *service, d int) (surge, unavailable int) {
	if v.inSteps() {
		return v.canaryCount(), 0
	}
	return roomOf(v.settingsNow(), d)
}

// weighCanary has a table give the canary its share.
func (v *service) weighCanary(table *ring.FrontTable, seats []seat) {
	if !v.inSteps() {
		return
	}
	table.CanaryWeight, table.Match = v.canaryStepNow().Weight, v.want.Rollout.Canary.Match
	if v.rollout.Step > 0 && v.rollout.Stepped.IsZero() { // not all that are to share it are there yet
		table.CanaryWeight = v.want.Rollout.Canary.Steps[v.rollout.Step-1].Weight
	}
	for i := range seats {
		if seats[i].in.Version == v.want.Version {
			seats[i].Set = ring.SetCanary
		}
	}
}

// canaryStep is a canary whose steps are not over: no old instance goes. What was superseded
// before it ever served all requests does.
func (t *Pass) canaryStep(v *service) outcome {
	if !v.inSteps() {
		return outcome{}
	}
	var interim, old []*instance
	ready := 0
	for _, in := range v.instances {
		switch {
		case !in.holdsSlot():
		case in.Version == v.want.Version && in.ready:
			ready++
		case in.Version != v.want.Version && in.Version != v.good.Service.Version:
			interim = append(interim, in)
		case in.Version != v.want.Version:
			old = append(old, in)
		}
	}
	if o := t.firstToGo(v, interim); o.then == stop {
		return o
	}
	if o := t.lowerOldSet(v, old); o.then == stop {
		return o
	}
	o, row, step := outcome{then: stop}, v.rollout, v.canaryStepNow()
	all := len(v.want.Rollout.Canary.Steps)
	switch {
	case row.Stepped.IsZero() && ready < v.canaryCount():
	case row.Stepped.IsZero():
		row.Stepped, row.Canary = t.now, nil
		o.facts = []ring.Fact{row}
		o.events = []ring.Event{{
			Kind: ring.CanaryStepped, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version,
			Commit: v.app.Commit, Reason: say("step %d of %d: %d %% of the requests%s", row.Step+1, all, step.Weight, stepLasts(step)),
		}}
	case v.isPromoted(row.Stepped), !t.now.Before(row.Stepped.Add(step.For)) && t.stepAwaits(v).None():
		row.Step, row.Stepped, row.Canary = row.Step+1, time.Time{}, nil
		o.facts = []ring.Fact{row}
		t.wakeBy(t.now.Add(1))
	default:
		t.wakeBy(row.Stepped.Add(step.For))
	}
	return o
}

func stepLasts(step ring.CanaryStep) string {
	if step.Manual {
		return ", until a person promotes it"
	}
	return say(" for %s", step.For)
}

// stepAwaits is why a step whose time is over does not pass by itself; zero where it does, and
// where its time is not over.
func (t *Pass) stepAwaits(v *service) ring.Reason {
	if !v.inSteps() || v.rollout.Stepped.IsZero() || v.isPromoted(v.rollout.Stepped) {
		return ring.Reason{}
	}
	step, judge, row := v.canaryStepNow(), v.want.Rollout.Canary.Judge, v.rollout.Canary
	over := !t.now.Before(v.rollout.Stepped.Add(step.For))
	awaits := func(why string) ring.Reason {
		return ring.Reason{
			Code: ring.WhyAwaitingPromote, On: v.id,
			Says: say("step %d at %d %% %s; gitring rollout promote %s", v.rollout.Step+1, step.Weight, why, v.id),
		}
	}
	switch {
	case over && step.Manual:
		return awaits("waits for a person")
	case over && judge != nil && judge.OnQuiet == ring.QuietPause && (row == nil || row.Judged == 0):
		return awaits("was not judged: too few requests came")
	}
	return ring.Reason{}
}

// isStepping reports whether a step of a canary is under way: its share of the requests is given.
func (v *service) isStepping() bool { return v.inSteps() && !v.rollout.Stepped.IsZero() }

// stepSays is the step under way, for people; "" where none is.
func (v *service) stepSays() string {
	if !v.isStepping() {
		return ""
	}
	step, until := v.canaryStepNow(), "a person promotes it"
	if !step.Manual {
		until = v.rollout.Stepped.Add(step.For).UTC().Format("15:04:05") + " UTC"
	}
	return say("; step %d of %d at %d %% until %s", v.rollout.Step+1, len(v.want.Rollout.Canary.Steps), step.Weight, until)
}

// judgeCanary adds up what the front counted, and gives the verdict where that says so. It
// reports whether it did.
func (t *decider) judgeCanary(v *service) bool {
	if !v.inSteps() || v.rollout.Stepped.IsZero() {
		return false
	}
	for _, in := range v.instances {
		if why := t.Health[in.ID].Canary; why != "" && in.Version == v.want.Version && in.holdsSlot() {
			t.failCanary(v, say("slot %d %s", in.Slot, why))
			return true
		}
	}
	judge := v.want.Rollout.Canary.Judge
	if judge == nil {
		return false
	}
	t.wakeBy(t.now.Add(canaryFold))
	fronts := t.frontsOf(v.id)
	i := slices.IndexFunc(fronts, func(f toldFront) bool { return f.has() })
	if i < 0 || v.rollout.Canary != nil && t.now.Sub(v.rollout.Canary.At) < time.Second {
		return false
	}
	row := v.rollout
	c := t.addCounts(v, &fronts[i])
	fails := c.judgeWindow(judge, t.now)
	row.Canary = &c.CanaryRow
	t.setFact(row)
	if fails == "" {
		return false
	}
	t.failCanary(v, fails)
	return true
}

func (t *decider) failCanary(v *service, why string) {
	why = say("canary at %d %%: %s", v.canaryStepNow().Weight, why)
	t.addEvent(ring.Event{
		Kind: ring.CanaryFailed, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version,
		Commit: v.rollout.Commit, Reason: why, Code: ring.WhyCanaryFailed, On: v.id,
	})
	t.failRollout(v, ring.Reason{Code: ring.WhyCanaryFailed, Says: why})
}

// canaryCounts are those of a step.
type canaryCounts struct{ ring.CanaryRow }

// addCounts are the counts of the step with what the front counted since. The first look of a
// step only remembers where its counters stand; those of a new process begin at 0.
func (t *Pass) addCounts(v *service, f *toldFront) canaryCounts {
	var c canaryCounts
	first := v.rollout.Canary == nil
	if first {
		c.Since = t.now
	} else {
		c.CanaryRow = *v.rollout.Canary
	}
	last := c.Last
	if c.Process != f.seen.Process {
		last = nil
	}
	c.Process, c.At, c.Last = f.seen.Process, t.now, map[string]ring.CanaryCount{}
	for _, in := range v.instances {
		seen, tried := f.reached(ring.FrontName(in.ID))
		if !tried {
			continue
		}
		now := seen.Counts.Answered()
		now.Heads = slices.Clone(now.Heads)
		c.Last[seen.Name] = now
		if first {
			continue
		}
		since := lessCount(now, last[seen.Name])
		if in.Version == v.want.Version {
			c.Window.Canary, c.Step.Canary = plusCount(c.Window.Canary, since), plusCount(c.Step.Canary, since)
		} else {
			c.Window.Stable, c.Step.Stable = plusCount(c.Window.Stable, since), plusCount(c.Step.Stable, since)
		}
	}
	return c
}

// lessCount is what came since; a counter that went back began anew.
func lessCount(now, was ring.CanaryCount) ring.CanaryCount {
	if now.Answers < was.Answers || now.Errors < was.Errors {
		return now
	}
	out := ring.CanaryCount{Answers: now.Answers - was.Answers, Errors: now.Errors - was.Errors, Heads: slices.Clone(now.Heads)}
	for i := range min(len(out.Heads), len(was.Heads)) {
		out.Heads[i] = max(0, out.Heads[i]-was.Heads[i])
	}
	return out
}

func plusCount(a, b ring.CanaryCount) ring.CanaryCount {
	out := ring.CanaryCount{Answers: a.Answers + b.Answers, Errors: a.Errors + b.Errors}
	for i := range max(len(a.Heads), len(b.Heads)) {
		var n int64
		if i < len(a.Heads) {
			n += a.Heads[i]
		}
		if i < len(b.Heads) {
			n += b.Heads[i]
		}
		out.Heads = append(out.Heads, n)
	}
	return out
}

// The figures of the judge that no manifest changes.
const (
	leastErrors  = 3   // in a window that is bad for them
	leastAnswers = 20  // of which half may not fail, at any weight
	leastHeads   = 500 // of each set, until the time to their heads is compared
	slowerBy     = 50  // ms, at least
)

// judgeWindow closes the window when it is long and full enough, and says why the canary
// failed; "" where it did not.
func (c *canaryCounts) judgeWindow(j *ring.Judge, now time.Time) string {
	w := &c.Window
	if w.Canary.Answers >= leastAnswers && 2*w.Canary.Errors >= w.Canary.Answers {
		return ratesSay(w)
	}
	if now.Sub(c.Since) < j.Interval || w.Canary.Answers < int64(j.MinRequests) {
		return ""
	}
	why := badWindow(j, w, &c.Step)
	c.Window, c.Since, c.Judged = ring.CanarySums{}, now, c.Judged+1
	if why == "" {
		c.Bad = 0
		return ""
	}
	if c.Bad++; c.Bad < j.Failures {
		return ""
	}
	return why
}

// badWindow is why a window is bad; "" where it is not.
func badWindow(j *ring.Judge, w, step *ring.CanarySums) string {
	// A window of the stable version may be as short as one of the canary, and then its rate is
	// half chance. So its whole step counts, unless this window of it is worse: what breaks both
	// fails nobody.
	rate := 2*max(rateOf(w.Stable), rateOf(step.Stable)) + float64(j.MaxErrors)/1000
	if allowed := rate * float64(w.Canary.Answers); w.Canary.Errors >= leastErrors && isBeyond(float64(w.Canary.Errors), allowed) {
		return ratesSay(w)
	}
	if step.Canary.Answers < leastHeads || step.Stable.Answers < leastHeads {
		return ""
	}
	// Of a time only its bucket is known. It is slower for certain when the least that it can be
	// is above the most that the other one can be.
	canary, stable := belowBucket(p99(step.Canary)), p99(step.Stable)
	if canary*100 >= stable*j.MaxP99 && canary >= stable+slowerBy {
		return say("p99 above %d ms, at most %d ms of the stable version", canary, stable)
	}
	return ""
}

// isBeyond reports whether so many errors are more than are allowed, by more than they scatter:
// the root of that number. Without it, one of ten canaries that are as good as the stable
// version failed where 2 % of all answers are errors.
func isBeyond(errors, allowed float64) bool {
	more := errors - allowed
	return more > 0 && more*more > allowed
}

// belowBucket is the bound below the one of a bucket, in milliseconds.
func belowBucket(bound int) int {
	below := 0
	for _, b := range ring.FrontBuckets {
		if b < bound {
			below = b
		}
	}
	return below
}

// rateOf is the share of answers that were errors, 0 to 1.
func rateOf(c ring.CanaryCount) float64 {
	if c.Answers == 0 {
		return 0
	}
	return float64(c.Errors) / float64(c.Answers)
}

// ratesSay is both rates, for people.
func ratesSay(w *ring.CanarySums) string {
	return say("%.1f %% of %d answers failed, %.1f %% of %d of the stable version",
		100*rateOf(w.Canary), w.Canary.Answers, 100*rateOf(w.Stable), w.Stable.Answers)
}

// p99 is the time in milliseconds within which 99 % of the heads came, at most: the bound of
// its bucket. What is above all of them counts as twice the last.
func p99(c ring.CanaryCount) int {
	var all, sum int64
	for _, n := range c.Heads {
		all += n
	}
	for i, n := range c.Heads {
		if sum += n; all > 0 && sum*100 >= all*99 {
			if i < len(ring.FrontBuckets) {
				return ring.FrontBuckets[i]
			}
			break
		}
	}
	if all == 0 {
		return 0
	}
	return 2 * ring.FrontBuckets[len(ring.FrontBuckets)-1]
}

// canaryStatus is the step under way, for people; nil where none is.
func (v *service) canaryStatus() *ring.CanaryStatus {
	if !v.inSteps() {
		return nil
	}
	st := &ring.CanaryStatus{Step: v.rollout.Step + 1, Weight: v.canaryStepNow().Weight, Since: utc(v.rollout.Stepped)}
	if c := v.rollout.Canary; c != nil {
		st.Answers, st.Errors, st.P99, st.Judged = c.Step.Canary.Answers, 100*rateOf(c.Step.Canary), p99(c.Step.Canary), c.Judged
	}
	return st
}
