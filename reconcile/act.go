package reconcile

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Verb is what a person does to an app or a service by hand.
type Verb string

// The verbs. Those that stand until they end are overrides.
const (
	Pause   Verb = "pause"
	Resume  Verb = "resume"
	Promote Verb = "promote"
	Abort   Verb = "abort"
	Restart Verb = "restart"
	Undo    Verb = "undo"
	HoldIt  Verb = "hold"
	Release Verb = "release"
	Scale   Verb = "scale"
	Retry   Verb = "retry"
)

// Act is a person's act on an app, or on one service of it. For is how long an
// override stands, To the commit that an undo goes to, "" the one before.
type Act struct {
	Verb         Verb
	App, Service string
	Actor        string
	Reason       string
	For          time.Duration
	To           ring.SHA
	Replicas     int
	// Plan is, for an undo, what Before found and the host's rules let pass.
	Plan *ring.Past
	// Take are, for an adoption, the containers that the engine has, and Keep what
	// they were given that outlives them.
	Take []ring.Adopted
	Keep []ring.Kept
}

// Acted is what came of an act: what to remember, what to tell, and what the
// person is told.
type Acted struct {
	Facts  []ring.Fact
	Events []ring.Event
	Says   string
	Until  time.Time
	At     time.Time // of a wish that a job runs
	// Again are the steps, by their key in Tries, that are tried again at once.
	Again []string
}

// ErrNotFound says that this host has no such app, or that the app has no such service.
var ErrNotFound = errors.New("no such app or service on this host")

// Unfit says that an act does not fit what is there, and what to do.
type Unfit struct{ Says, Hint string }

func (u *Unfit) Error() string { return u.Says }

func unfitAct(hint, format string, args ...any) error { return &Unfit{say(format, args...), hint} }

// Carry decides a person's act; it changes nothing in the world.
func Carry(w World, a Act, now time.Time) (Acted, error) {
	p := &person{decider: newDecider(w, now), Act: a}
	p.indexSeen()
	p.scalePlans()
	p.makeViews()
	for _, v := range p.inOrder() {
		p.chooseTarget(v)
	}
	err := p.act()
	p.done.Facts, p.done.Events = p.facts, p.events
	if err != nil {
		return Acted{}, err
	}
	return p.done, nil
}

// person is a decider for which a person decides.
type person struct {
	*decider
	Act
	done  Acted
	names []string // of what is tried again
}

func (p *person) act() error {
	if p.Verb == Undo && p.leftCommit() {
		return unfitAct(say("gitring rollback makes the commit that has %s again; what it keeps in volumes and data folders is still here", p.App),
			"%s has left its commit: an undo brings back an earlier plan of an app that the commit has", p.App)
	}
	if !p.targetExists() {
		return ErrNotFound
	}
	switch p.Verb {
	case HoldIt:
		return p.beginOverride(ring.OverrideRow{Kind: ring.OverrideHold})
	case Release:
		return p.release()
	case Retry:
		return p.retry()
	case Undo:
		return p.undoIt()
	case RunNow:
		return p.runIt()
	case Adopt:
		return p.adoptIt()
	case Leave:
		return p.leaveIt()
	}
	return p.onService()
}

// targetExists reports whether the target is in force, next, or runs without a place in a plan.
func (p *person) targetExists() bool {
	id := ring.ID(p.App, p.Service)
	if f, ok := p.Facts.Apps[p.App]; ok && p.Service == "" && !f.Leaving {
		return true
	}
	for seen := range p.seen {
		if app, _ := seen.Split(); app == p.App && p.Service == "" {
			return true
		}
	}
	for i := range p.Sources {
		if next := p.Sources[i].Next; next != nil && p.Service == "" {
			if _, ok := next.App(p.App); ok {
				return true
			}
		}
	}
	return p.Service != "" && (p.views[id] != nil || len(p.seen[id]) > 0 || p.isComing(id))
}

// leftCommit reports whether an app was here and that no plan has it any more.
func (p *person) leftCommit() bool {
	if f, ok := p.Facts.Apps[p.App]; ok {
		return f.Leaving
	}
	coming := slices.ContainsFunc(p.Sources, func(src Source) bool {
		if src.Next == nil {
			return false
		}
		_, ok := src.Next.App(p.App)
		return ok
	})
	for _, k := range p.Facts.Kept {
		if k.App == p.App && !coming {
			return true
		}
	}
	return false
}

// onService are the verbs for one service in force.
func (p *person) onService() error {
	v := p.views[ring.ID(p.App, p.Service)]
	switch {
	case v == nil && p.Verb == Pause:
		return p.beginOverride(ring.OverrideRow{Kind: ring.OverridePause}) // before it is deployed at all
	case v == nil:
		return unfitAct("gitring status lists apps and services", "%s is not in force here", p.target())
	case v.want.Kind != ring.Worker && p.Verb != Abort:
		return unfitAct(say("gitring run %[1]s --reason '…' starts it, gitring hold %[1]s --reason '…' keeps it from starting", v.id), "%s is a %s: it has no rollout", v.id, v.want.Kind)
	case p.Verb != Pause && p.Verb != Scale && !p.heldBy(v.id).None():
		return unfitAct(say("gitring release %s --reason '…'", p.standingOn(ring.OverrideHold, v.id).Target), "%s is %s", v.id, p.heldBy(v.id).Says)
	}
	switch p.Verb {
	case Pause:
		return p.beginOverride(ring.OverrideRow{Kind: ring.OverridePause})
	case Scale:
		return p.scaleTo(v)
	case Resume:
		return p.resume(v)
	case Promote:
		return p.promote(v)
	case Abort:
		return p.abort(v)
	case Restart:
		return p.restart(v)
	}
	return unfitAct("", "%s is nothing that can be done to a service", p.Verb)
}

func (p *person) target() string { return strings.TrimSuffix(p.App+"/"+p.Service, "/") }

// beginOverride begins an override, or replaces the one of its kind.
func (p *person) beginOverride(o ring.OverrideRow) error {
	if o.Kind == ring.OverridePause && p.Service == "" {
		return unfitAct("name one as app/service", "a pause is of one service")
	}
	o.Target, o.Actor, o.Reason, o.At, o.Until = p.target(), p.Actor, p.Reason, p.now, p.now.Add(p.For)
	p.setFact(o)
	p.tellOverride(ring.OverrideBegan, o, p.Actor, say("until %s: %s", clock(o.Until), o.Reason))
	p.done.Says, p.done.Until = say("%s until %s", o.Target+" "+strings.SplitN(overrideSays(&o), " by ", 2)[0], clock(o.Until)), o.Until
	return nil
}

// tellAct is an event of an act that is over when it is done.
func (p *person) tellAct(kind string, v *service, says string) {
	e := ring.Event{Kind: kind, App: p.App, Service: p.Service, Actor: p.Actor, Reason: says}
	e.Source = p.Facts.Apps[p.App].App.Source
	if v != nil {
		e.Version, e.Commit = v.want.Version, v.app.Commit
	}
	p.addEvent(e)
}

// release ends what stands on the target; of an app, what stands on its services too.
func (p *person) release() error {
	var ended []string
	for _, key := range sortedKeys(p.Facts.Overrides) {
		o := p.Facts.Overrides[key]
		if o.Target != p.target() && !(p.Service == "" && strings.HasPrefix(o.Target, p.App+"/")) || o.Kind == ring.OverrideLeft {
			continue
		}
		p.endOverride(o, p.Actor, "released: "+p.Reason)
		ended = append(ended, nameOf(&o)+" of "+o.Target)
	}
	if o := p.overrideOn(ring.OverrideLeft, ring.ServiceID(p.App)); o != nil && len(ended) == 0 {
		return unfitAct(say("gitring adopt %s --reason '…' takes it back", p.App), "%s is %s", p.App, overrideSays(o))
	}
	if len(ended) == 0 {
		return unfitAct("gitring status lists what stands", "nothing is overridden on %s", p.target())
	}
	p.done.Says = "ended " + strings.Join(ended, ", ") + "; Git wins again"
	return nil
}

// resume ends a pause, and has a rollout that stopped by itself go on.
func (p *person) resume(v *service) error {
	o := p.standingOn(ring.OverridePause, v.id)
	if o != nil {
		p.endOverride(*o, p.Actor, "resumed: "+p.Reason)
	}
	stopped := v.failedInPlace()
	if stopped {
		p.forgetFailure(v)
	}
	switch {
	case o == nil && !stopped && v.failed != nil:
		return unfitAct(say("gitring retry %s --reason '…'", v.id), "%s is not paused: its version %s failed and is not tried again", v.id, v.want.Version.Short())
	case o == nil && !stopped:
		return unfitAct("gitring status lists what stands", "%s is not paused", v.id)
	}
	p.tellAct(ring.RolloutResumed, v, p.Reason)
	p.done.Says = say("%s goes on", v.id)
	return nil
}

// forgetFailure forgets that the wanted version of a service, and of all that is tied to
// it, failed: the rollout begins anew.
func (p *person) forgetFailure(v *service) {
	for _, m := range v.members() {
		if m.failed == nil {
			continue
		}
		if job := p.views[ring.ID(m.app.Name, m.want.Before)]; job != nil {
			run, _ := p.beforeRow(m)
			p.spendRun(job, run)
		}
		row := ring.RolloutRow{ID: m.id, Checks: m.rollout.Checks, Writes: m.rollout.Writes, Done: true}
		if m.sent != nil && m.sent.Version == m.want.Version {
			row.Again = m.sent.Index
		}
		p.takeBack(m)
		p.setFact(row)
		p.forgetSteps(m.id, m.want.Spec.Image)
		p.names = append(p.names, string(m.id))
	}
}

// retry has what failed tried again: versions, runs of jobs, and what waits for its next try, be
// it a step or the start of a slot that crashed.
func (p *person) retry() error {
	for _, v := range p.inOrder() {
		if !p.isTarget(v.app.Name, v.want.Name) {
			continue
		}
		if run, ok := p.jobRun(v.id, v.want); v.want.Kind == ring.JobK && ok && run.State == jobFailed {
			p.runsAnew(run)
			p.discardRun(v)
			p.names = append(p.names, string(v.id))
		}
		if v.want.Kind == ring.Worker && v.failed != nil {
			p.forgetFailure(v)
		}
		p.retryBefore(v)
		if v.filesFailed != nil {
			p.setFact(ring.Forget{Table: "verdict", Key: ring.VersionKey(v.id, v.filesFailed.Version)})
			p.names = append(p.names, string(v.id))
		}
		if steps, waits := p.forgetSteps(v.id, v.want.Spec.Image), p.endWaits(v); steps || waits {
			p.names = append(p.names, string(v.id))
		}
	}
	for i := range p.Sources {
		if next := p.Sources[i].Next; next != nil {
			p.retryNext(next)
		}
	}
	if slices.Sort(p.names); len(p.names) == 0 {
		return unfitAct(say("gitring status says what is wrong; gitring refresh %s --reason '…' asks a registry again", p.target()), "nothing of %s has failed", p.target())
	}
	p.tellAct(ring.RetryAsked, nil, p.Reason)
	p.done.Says = "tries again: " + strings.Join(slices.Compact(p.names), ", ")
	return nil
}

// retryBefore has what a job failed that runs before it tried again, where a
// person names the job.
func (p *person) retryBefore(v *service) {
	for _, name := range v.runsBefore() {
		s := p.views[ring.ID(v.app.Name, name)]
		if run, ok := p.beforeRow(s); ok && run.State == jobFailed && s.failed != nil && !p.isTarget(s.app.Name, name) {
			p.forgetFailure(s)
			p.names = append(p.names, string(s.id))
		}
	}
}

// runsAnew has the run of a job's version begin once more. On a cluster, where it is written down that it
// began, the row says that this is known.
func (p *person) runsAnew(run ring.JobRun) {
	if !p.onCluster() {
		p.setFact(ring.Forget{Table: "job", Key: ring.VersionKey(run.ID, run.Version)})
		return
	}
	run.State, run.Tries, run.Cut = "", 0, 0
	p.setFact(run)
}

// discardRun has the container of a run that failed removed: a run is never begun in
// the container of another.
func (p *person) discardRun(v *service) {
	for _, in := range v.instances {
		if in.Version == v.want.Version && in.Ended() && in.intent == "" {
			p.setFact(ring.Intent{Instance: in.ID, Kind: intentRemove, Reason: "runs again: " + p.Reason, At: p.now})
		}
	}
}

// retryNext is retry for an app on its way into force.
func (p *person) retryNext(next *ring.Plan) {
	a, ok := next.App(p.App)
	if !ok {
		return
	}
	for _, s := range a.Services {
		if id := ring.ID(a.Name, s.Name); p.isTarget(a.Name, s.Name) && p.forgetSteps(id, s.Spec.Image) {
			p.names = append(p.names, string(id))
		}
	}
	if key := "admit " + a.Name; p.Service == "" && p.Tries[key].N > 0 {
		p.done.Again = append(p.done.Again, key)
		p.names = append(p.names, a.Name)
	}
}

func (p *person) isTarget(app, service string) bool {
	return app == p.App && (p.Service == "" || p.Service == service)
}

// forgetSteps has the failed steps of a service tried again at once; it says
// whether there are any.
func (p *person) forgetSteps(id ring.ServiceID, image string) bool {
	found := false
	for _, key := range sortedKeys(p.Tries) {
		its := key == string(id) || strings.HasPrefix(key, string(id)+" ") ||
			strings.HasPrefix(key, "resolve ") && strings.HasSuffix(key, " "+string(id)) ||
			strings.HasPrefix(key, "verify "+ring.ParseImage(image).Name+"@") ||
			key == "pull "+image || strings.HasPrefix(key, "pull "+image+" ") || strings.HasPrefix(key, "pull "+image+"@")
		if its {
			p.done.Again, found = append(p.done.Again, key), true
		}
	}
	return found
}

// endWaits has the slots of a worker that crashed started again at once; it says whether any
// waits. Its crashes stay counted: where it ends again, the next wait is the longer one.
func (p *person) endWaits(v *service) bool {
	found := false
	for _, key := range sortedKeys(p.Facts.Slots) {
		row := p.Facts.Slots[key]
		well := slices.ContainsFunc(v.instances, func(in *instance) bool { return in.ready && in.inSlot(v.id) == key })
		if row.ID == v.id && v.want.Kind == ring.Worker && !well && !row.Stopped && p.now.Before(row.Next) {
			row.Next, found = time.Time{}, true
			p.setFact(row)
		}
	}
	return found
}

// promote goes on at once, past what is only time.
func (p *person) promote(v *service) error {
	waits := ""
	for _, m := range v.members() {
		if why := p.awaitsTime(m); why != "" {
			row := m.rollout
			row.Promoted = p.now
			p.setFact(row)
			waits = cmp.Or(waits, why)
		}
	}
	if waits == "" {
		return unfitAct("gitring status says what the rollout waits for", "no rollout of %s waits for time to pass", v.id)
	}
	p.tellAct(ring.RolloutPromoted, v, say("past %s: %s", waits, p.Reason))
	p.done.Says = say("%s goes on, past %s", v.id, waits)
	return nil
}

// awaitsTime is what a rollout waits for that is only time, and that a person may
// say is over; "" when it waits for nothing such.
func (t *Pass) awaitsTime(v *service) string {
	if v.rollout.Version != v.want.Version || v.rollout.Done || v.failed != nil {
		return ""
	}
	if v.inSteps() && !v.rollout.Stepped.IsZero() {
		if v.isPromoted(v.rollout.Stepped) {
			return ""
		}
		return say("step %d of %d", v.rollout.Step+1, len(v.want.Rollout.Canary.Steps))
	}
	if w, since := v.watchNow(); w != nil {
		if v.isPromoted(since) {
			return ""
		}
		return say("%s %s", w.knob, w.asked(&v.want.Rollout))
	}
	if strategyNamed(v.want.Rollout.Strategy).secondSet && t.isUnripe(v) {
		return say("min_ready_time %s", v.want.Rollout.MinReadyTime)
	}
	return ""
}

// isUnripe reports whether every slot of the wanted version has an instance that runs,
// and one of them is ready for less than its time.
func (t *Pass) isUnripe(v *service) bool {
	young := false
	for slot := 1; slot <= v.want.Replicas; slot++ {
		in := v.inSlot(slot)
		if in == nil || in.down || !in.Live() {
			return false
		}
		young = young || !in.ready && in.young
	}
	return young
}

// restart makes a version of its own of the same spec.
func (p *person) restart(v *service) error {
	if o := p.overrideOn(ring.OverridePause, v.id); o != nil {
		return unfitAct(say("gitring resume %s --reason '…'", v.id), "%s is %s", v.id, p.pauseReason(v.id).Says)
	}
	p.setFact(ring.Mark{ID: v.id, Written: v.want.Written, Mark: p.now.UTC().Format(time.RFC3339Nano), Actor: p.Actor, Reason: p.Reason, At: p.now})
	p.tellAct(ring.RestartAsked, v, p.Reason)
	p.done.Says = say("%s restarts as a rollout", v.id)
	return nil
}

// scaleTo replaces the count of a service.
func (p *person) scaleTo(v *service) error {
	planned := *v.want
	if app, ok := p.planned[p.App]; ok {
		planned, _ = app.Service(p.Service)
	}
	if why := onlyOnce(v.app, &planned); !mayCount(v.app, &planned, p.Replicas) {
		return unfitAct("only what may run twice can be scaled; share: true says so of data", "%s cannot run %d times: %s", v.id, p.Replicas, why)
	}
	err := p.beginOverride(ring.OverrideRow{Kind: ring.OverrideScale, Replicas: p.Replicas})
	for i := range v.app.Services {
		if s := &v.app.Services[i]; s.Kind == ring.Worker && s.Replicas > p.Replicas && slices.Contains(s.Spec.Owners(), v.want.Name) {
			p.done.Says += say("; %s, which joins it, with it", s.Name)
		}
	}
	return err
}

// undoIt brings back an earlier plan of an app.
func (p *person) undoIt() error {
	have, ok := p.Facts.Apps[p.App]
	switch past := p.Plan; {
	case p.Service != "":
		return unfitAct(say("gitring undo %s --reason '…'", p.App), "an undo is of a whole app")
	case !ok || have.Leaving:
		return ErrNotFound
	case past == nil:
		return noPast(&p.Facts, p.App, p.To)
	case past.App.Source != have.App.Source:
		return unfitAct("gitring rollback makes the commit that brings it back", "the earlier plan of %s is of source %s", p.App, past.App.Source)
	default:
		if why := p.withheldReason(p.App); !why.None() && p.overrideOn(ring.OverrideHold, ring.ServiceID(p.App)) != nil {
			return unfitAct(say("gitring release %s --reason '…'", p.App), "%s is %s", p.App, why.Says)
		}
		if h, old := movedPin(&past.App, &have.App); h != nil {
			return unfitAct(nodeHint(&past.App, h), "%s", nodeSays(h, old))
		}
		p.setFact(*past) // with what the host's rules say of it today
		for i := range past.App.Services {
			s := &past.App.Services[i]
			id := ring.ID(p.App, s.Name)
			if d, ok := p.Facts.Verdicts[ring.VersionKey(id, s.Version)]; ok && !d.Good {
				p.setFact(ring.Forget{Table: "verdict", Key: ring.VersionKey(id, s.Version)}) // a person wants it tried
				p.pardonRun(&past.App, s)
			}
		}
		_, key := past.Row()
		return p.beginOverride(ring.OverrideRow{Kind: ring.OverrideUndo, Commit: past.App.Commit, Past: key})
	}
}

// noPast says which plans there are.
func noPast(f *ring.Facts, app string, to ring.SHA) error {
	have := f.Apps[app]
	now := ring.PastKey(&have.App)
	var there []string
	for _, p := range pastOf(f, app) {
		if ring.PastKey(&p.App) != now {
			there = append(there, p.App.Commit.Short())
		}
	}
	hint := "gitring rollback makes the commit that brings an earlier tree back"
	if len(there) > 0 {
		hint = say("--to one of %s; or gitring rollback, which makes a commit", strings.Join(there, ", "))
	}
	if to != "" {
		return unfitAct(hint, "no other plan of %s by commit %s has completed on this host", app, to.Short())
	}
	return unfitAct(hint, "no earlier plan of %s has completed on this host", app)
}
