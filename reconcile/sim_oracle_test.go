package reconcile

import (
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// An oracle holds every step, fact and event to the invariants of docs/testing/rollout-table.md
// section 7, from the truth of the model and never by the code under test.
//
//	I1   watchStop
//	I2   watchCreate
//	I3   engine.create
//	I4   engine.apply: no step is on a container or network of others, which foreigner puts there
//	I5   watchCreate: a version is the plan's or the last good one, and its commit one that
//	     arrived and asks for just that (asks). That a commit is verified is gitsync's to
//	     hold: the model offers verified commits alone
//	I6   not here: gitsync and store, which hold the anchors, have tests of their own
//	I7   inTime, atRest, restOf, restOfTies, restOfHands; rest has to come within 4,000
//	     looks, after which 100 looks make no call
//	I8   watchLeaving, watchEvent, watchStop; that the surge goes: restOf
//	I9   atRest
//	I10  watchPost
//	I11  watchFirst: nothing is created that the host was not asked about. What policy
//	     says is in policy's vectors and TestEveryFieldThatIsSentToTheEngineHasARule
//	I12  watchWords: no sealed value in a reason, event, post or status. The values
//	     themselves never reach the heart: TestAValueOfTheHostReachesItsContainersAndNothingElse
//	I13  engine.apply: there is no step that removes a volume, and an unknown one is a
//	     violation; watchMade: nothing that was there is replaced by an empty one
//	I14  watchBudget
//	I15  aftermath
//	I16  watchTable, restOfFronts
//	I17  not here: TestASecondDaemonIsRefused in store, TestASecondDaemonChangesNothing in e2e
//	I18  engine.run
//	I19  aftermath
//	I20  fronts.watchCut and takeTable, from what a front has in force and in flight
//	I21  fronts.takeTable, watchTable
//	I22  watchFailed
//	I23  watchServed
//	I24  engine.frontBegins, and engine.run: a port of the host is held as what is written is
//	I25  watchTable
//	I26  watchNetworks; what is mounted on an engine is runtime's to hold
//
// And besides: one start of a run for one reason, written down before (watchBegun);
// no overlap that is not wished for; a job before a rollout (watchJob, watchFirst);
// memory (watchMemory); a hold (untouched).
type oracle struct {
	watched
	posts   map[string]string                  // closing posts, by key
	open    map[string]bool                    // what the forge shows as under way, by key, whoever told it
	said    map[string]string                  // the closing words of managers that acted before, by key
	protect map[ring.ServiceID]map[string]bool // I8: what was ready and old when a rollout failed
	leaving map[string]bool                    // what was meant to go before the look that fails a rollout
	starts  map[string][]time.Time             // again, of one container
	stirred time.Time                          // when anything ended last, which makes looks
	trials  map[string]int                     // of one container, by rollouts whose hooks did not end
	posted  []ring.Post
	plans   []*ring.Plan // that ever arrived
	events  []ring.Event
	runs    []ring.Run // of jobs and cron jobs, as they were told
	crashes []ring.Crash
}

func newOracle() oracle {
	return oracle{watched: newWatched(), posts: map[string]string{}, said: map[string]string{}, open: map[string]bool{}, protect: map[ring.ServiceID]map[string]bool{}, starts: map[string][]time.Time{}, trials: map[string]int{}}
}

func (d *daemon) watchStep(a ring.Action) {
	want := d.wantOf(a.App, a.Service)
	switch a.Kind {
	case ring.DoRemove, ring.DoStop:
		d.watchStop(a, want)
		if b := d.boxes[a.Instance]; b != nil && b.running() {
			b.ours = true
		}
	case ring.DoCreate:
		d.watchCreate(a, want)
	case ring.DoServe, ring.DoServeOff, ring.DoFileOff, ring.DoWords:
		d.watchSent(a, want)
	case ring.DoRoute:
		d.watchTable(a, want)
	}
}

// watchHost remembers what was started again, for I14.
func (d *daemon) watchHost(kind, _ string, b *box) {
	if kind == "exit" {
		d.stirred = d.now
	}
	if kind == "start" && b.Kind.Ends() {
		d.watchBegun(b)
	}
	if kind != "start" || b.starts == 0 {
		return
	}
	if !d.onTrial(b) {
		d.starts[b.ID] = append(d.starts[b.ID], d.now)
	}
}

// onTrial reports whether a start is one more try of a rollout whose hooks did not come to
// their end: a failure, and no crash. As many as the threshold are, each time that
// the rollout began, was resumed or retried, and one for each end of the daemon, which forgets
// how long it waited; what is more, the backoff bounds.
func (d *daemon) onTrial(b *box) bool {
	id := ring.ID(b.App, b.Service)
	row, want := d.disk.Rollouts[id], d.wantOf(b.App, b.Service)
	v, judged := d.disk.Verdicts[ring.VersionKey(id, b.Version)]
	if !b.hooks || b.hooked || want == nil || row.Version != b.Version || row.Done || judged && !v.Good {
		return false
	}
	begun := 0
	for _, e := range d.events {
		again := e.Kind == ring.RetryAsked && (e.Service == "" || e.Service == b.Service)
		if e.App == b.App && (again || e.Service == b.Service && (e.Kind == ring.RolloutBegan || e.Kind == ring.RolloutResumed)) {
			begun++
		}
	}
	d.trials[b.ID]++
	return d.trials[b.ID] <= max(1, want.Rollout.FailureThreshold)*max(1, begun)+d.kills
}

// watchMade holds the host to the promise that nothing that was there is ever
// replaced by an empty one.
func (d *daemon) watchMade(name string, b *box) {
	if _, was := d.disk.Kept[name]; was {
		d.violate("I13: %s was there, and is made anew for %s", name, b.Name)
	}
}

// watchWriters is the exception to one writer across services and commits: one
// plan gives what both write to both.
func (d *daemon) watchWriters(a, b *box, what string) bool {
	if a.App == b.App && a.Service == b.Service {
		return false
	}
	for _, p := range d.plans {
		if hasWriter(p, a, what, a.image) && hasWriter(p, b, what, "") || hasWriter(p, b, what, b.image) && hasWriter(p, a, what, "") {
			return true
		}
	}
	return false
}

// hasWriter reports whether in a plan the service of a container writes something, as
// an image or as any.
func hasWriter(p *ring.Plan, b *box, what, image string) bool {
	app, _ := p.App(b.App)
	s, _ := app.Service(b.Service)
	return (image == "" || s.Spec.Image == image) && slices.ContainsFunc(s.Spec.Mounts, func(m ring.Mount) bool {
		name, _ := mountNameOf(&app, b.App, m)
		return !m.ReadOnly && name == what
	})
}

// wantOf is the service that the plan in force asks for.
func (d *daemon) wantOf(app, service string) *ring.Service {
	all := d.disk.Apps[app].App.Services
	if front := d.standing(app, service); front != nil {
		return front
	}
	for i := range all {
		if all[i].Name != service {
			continue
		}
		v := &all[i]
		if n := d.counted(app, service, v.Replicas); n != v.Replicas {
			scaled := *v
			scaled.Replicas = n
			return &scaled
		}
		return v // nobody changes it
	}
	return nil
}

// counted is how many of a service are wanted: a person's count, or the plan's.
func (d *daemon) counted(app, service string, planned int) int {
	if len(d.disk.Overrides) == 0 {
		return planned
	}
	n := d.countedAlone(app, service, planned)
	f := d.disk.Apps[app]
	if s, ok := f.App.Service(service); ok && s.Kind == ring.Worker {
		for _, name := range s.Spec.Owners() { // it is of its owner's slot
			if owner, ok := f.App.Service(name); ok {
				n = min(n, d.counted(app, name, owner.Replicas))
			}
		}
	}
	return n
}

func (d *daemon) countedAlone(app, service string, planned int) int {
	if _, stopped := d.disk.Overrides[ring.OverrideKey(ring.OverrideStop, app+"/"+service)]; stopped {
		return 0
	}
	o, ok := d.disk.Overrides[ring.OverrideKey(ring.OverrideScale, app+"/"+service)]
	if !ok || !d.clock().Before(o.Until) {
		return planned
	}
	f := d.disk.Apps[app]
	if s, _ := f.App.Service(service); o.Replicas > max(1, planned) && d.alone(app, &s) && s.Rollout.Strategy != ring.Recreate {
		return planned // by a newer commit it may not run twice
	}
	return o.Replicas
}

// alone reports whether two versions of it may not overlap.
func (d *daemon) alone(app string, v *ring.Service) bool {
	if v == nil {
		return false
	}
	for _, x := range d.disk.Apps[app].App.Services {
		if slices.Contains(x.Spec.Owners(), v.Name) {
			return true
		}
	}
	if v.Spec.ContainerName != "" || v.Spec.NetworkOf != "" || len(v.Spec.Owners()) > 0 || len(d.natures[v.Spec.Image].volumes) > 0 && !v.Share {
		return true
	}
	for _, m := range v.Spec.Mounts {
		if !m.ReadOnly && m.Kind != ring.MountTmpfs && m.Kind != ring.MountContent && !v.Share {
			return true
		}
	}
	for _, p := range v.Spec.Ports {
		if p.HostPort != "" {
			return true
		}
	}
	return v.Rollout.Strategy == ring.Recreate
}

func (d *daemon) watchStop(a ring.Action, want *ring.Service) {
	b := d.boxes[a.Instance]
	if b == nil {
		return
	}
	d.watchGiven(a, b, want)
	d.watchLeft(a, b)
	for _, f := range d.mem.flights {
		if f.a.Kind == ring.DoLog && f.a.Instance == b.ID && a.Kind == ring.DoRemove && b.Kind.Ends() {
			d.violate("the log of %s is read while it is removed", b.Name)
		}
	}
	for _, id := range d.each() {
		if x := d.boxes[id]; b.running() && x.running() && x.App == b.App && !x.Kind.Ends() && slices.Contains(x.Joined, b.ID) {
			d.violate("shared fate: %s is stopped while %s, which is tied to it, runs", b.Name, x.Name)
		}
	}
	if want == nil || want.Kind.Ends() {
		return
	}
	id := ring.ID(a.App, a.Service)
	gone := slices.ContainsFunc(b.Joined, func(id string) bool {
		o := d.boxes[id]
		if o == nil {
			return true
		}
		v, ok := d.disk.Verdicts[ring.VersionKey(ring.ID(o.App, o.Service), o.Version)]
		return ok && !v.Good // and goes with it
	})
	if d.protect[id][a.Instance] && !gone && !d.cut(b) && !(b.refused && !b.lives()) { // what the engine never starts again is replaced
		d.violate("I8: %s is stopped after the rollout failed", a.Name)
	}
	good, hasGood := d.disk.Good[id]
	if d.alone(a.App, want) || hasGood && d.alone(a.App, &good.Service) || !d.serves(b) || d.dead(b) {
		return
	}
	ready := 0
	for _, x := range d.boxes {
		if x.App == a.App && x.Service == a.Service && x != b && d.serves(x) && !d.stopping(x.ID) && !d.drains(x) {
			ready++
		}
	}
	n := want.Replicas
	if hasGood {
		n = min(n, good.Service.Replicas)
	}
	if _, down := bounds(want.Rollout, n); ready < n-down {
		for _, x := range d.each() {
			y := d.boxes[x]
			d.note("  %s %s ready %v since %s health %+v", y.Name, y.State, d.ready(y), y.since.Sub(epoch), d.mem.known[x])
		}
		d.violate("I1: stopping %s leaves %d ready of at least %d", a.Name, ready, n-down)
	}
}

// bounds are how many more of n a rollout may have, and how many fewer may be ready. They
// are written out here: an oracle does not ask what it judges.
func bounds(k ring.Rollout, n int) (more, fewer int) {
	if k.Strategy == ring.BlueGreen {
		return n, 0
	}
	more, fewer = k.MaxSurge.N, min(k.MaxUnavailable.N, n)
	if k.MaxSurge.Percent {
		more = (n*k.MaxSurge.N + 99) / 100
	}
	if k.MaxUnavailable.Percent {
		fewer = min(n*k.MaxUnavailable.N/100, n)
	}
	if more+fewer == 0 {
		more = 1
	}
	if k.Strategy == ring.Canary && k.Canary != nil { // they come on top
		for _, step := range k.Canary.Steps {
			more = max(more, (n*step.Weight+99)/100, k.Canary.Replicas)
		}
	}
	return more, fewer
}

func (d *daemon) stopping(id string) bool {
	for _, f := range d.mem.flights {
		if f.a.Instance == id && (f.a.Kind == ring.DoRemove || f.a.Kind == ring.DoStop) {
			return true
		}
	}
	return false
}

func (d *daemon) watchCreate(a ring.Action, want *ring.Service) {
	id := ring.ID(a.App, a.Service)
	if want == nil {
		d.violate("create %s, which no plan in force wants", a.Name)
		return
	}
	good, hasGood := d.disk.Good[id]
	if a.Version != want.Version && !(hasGood && a.Version == good.Service.Version) {
		d.violate("I5: create %s, neither wanted nor good", a.Name)
	}
	if !d.asks(a) {
		d.violate("I5: create %s for commit %s, which does not ask for it", a.Name, a.Commit.Short())
	}
	d.watchFirst(a, want)
	verdict, ok := d.disk.Verdicts[ring.VersionKey(id, a.Version)]
	if ok && !verdict.Good && want.Rollout.OnFailure != ring.OnFailureContinue && !(hasGood && good.Service.Version == a.Version) {
		d.violate("quarantine: create %s, whose version failed", a.Name)
	}
	if want.Kind.Ends() || d.alone(a.App, want) || hasGood && a.Version == good.Service.Version && d.alone(a.App, &good.Service) {
		return
	}
	live, drain := 0, 0
	for _, x := range d.boxes {
		switch {
		case x.App != a.App || x.Service != a.Service || x.State == ring.StateExited:
		case d.drains(x):
			drain++
		default:
			live++
		}
	}
	if live == 0 {
		drain = 0 // where nobody else is left, serving comes first
	}
	if !ok || verdict.Good {
		d.watchMemory(a, want, live+drain, want.Replicas)
	}
	n := want.Replicas
	if hasGood {
		n = max(n, good.Service.Replicas)
	}
	up, _ := bounds(want.Rollout, n)
	if d.hasPort(a.App, want) { // T03: what publishes the port goes last, whatever max_surge says
		up = max(up, 1)
	}
	if live+1 > n+up {
		d.violate("I2: create %s with %d live, at most %d", a.Name, live, n+up)
	}
}

// asks reports whether a create is what the commit that it names asks for.
func (d *daemon) asks(a ring.Action) bool {
	return slices.ContainsFunc(d.plans, func(p *ring.Plan) bool {
		if p.Commit != a.Commit {
			return false
		}
		app, _ := p.App(a.App)
		s, ok := app.Service(a.Service)
		return ok && s.Written == a.Want.Written
	})
}

// watchFact holds what is written down to the invariants.
func (d *daemon) watchFact(f ring.Fact) {
	switch f := f.(type) {
	case ring.Run:
		d.watchRun(f)
	case ring.JobRun:
		d.watchJob(f)
	case ring.Intent:
		if _, known := d.meantToGo[f.Instance]; !known && (f.Kind == "drain" || f.Kind == "left") {
			d.meantToGo[f.Instance] = d.now
		}
	case ring.Crash:
		d.watchCrash(f)
	case ring.Post:
		d.posted = append(d.posted, f)
		d.watchPost(f)
	case ring.Forget:
		if f.Table == "intent" {
			delete(d.meantToGo, f.Key)
		}
		if b := d.boxes[f.Key]; f.Table == "intent" && b != nil {
			b.ours = false // it stays after all
		}
		if id, _, _ := strings.Cut(f.Key, "@"); f.Table == "verdict" || f.Table == "override" {
			delete(d.protect, ring.ServiceID(strings.TrimPrefix(id, "scale "))) // a person has it tried again
		}
	case ring.OverrideRow:
		delete(d.protect, ring.ServiceID(f.Target)) // what a person wants counts from here on
	case ring.InForce:
		d.watchMoved(f)
		for _, s := range f.App.Services {
			old := d.disk.Apps[f.App.Name]
			if was, ok := old.App.Service(s.Name); !ok || was.Version != s.Version || was.Replicas != s.Replicas {
				delete(d.protect, ring.ID(f.App.Name, s.Name))
			}
		}
	}
}

// turnedWord reports whether a host that others wait for may say another closing word: of
// the commit as a whole, a success at most every 10 minutes.
func (d *daemon) turnedWord(p ring.Post, was string) bool {
	awaited := slices.ContainsFunc(d.plans, func(plan *ring.Plan) bool { return plan.Commit == p.SHA && plan.Awaited })
	old := d.disk.Posts[ring.PostKey(p.SHA, p.Context)]
	switch {
	case !awaited || p.Context != "gitring/sim":
		return false
	case strings.HasPrefix(was, "success "):
		return p.State == ring.PostFailure
	}
	return strings.HasPrefix(was, "failure ") && p.State == ring.PostSuccess && p.At.Sub(old.At) >= 10*time.Minute
}

func (d *daemon) watchPost(p ring.Post) {
	key := ring.PostKey(p.SHA, p.Context)
	was := d.posts[key]
	d.open[key] = p.Open()
	if strings.HasPrefix(was, "failure ") && strings.Contains(was, "rejected: ") && p.State != ring.PostFailure {
		was = "" // a person trusts the commit after all, or nothing is in the way any more
	}
	if was != "" && d.turnedWord(p, was) {
		was = ""
	}
	if was != "" {
		d.violate("I10: %s says %s after %s", key, p.State, was)
	}
	if p.State == ring.PostPending {
		return
	}
	if said := d.said[key]; said != "" && said != p.State {
		d.violate("I10: %s says %s, and who acted before said %s", key, p.State, said)
	}
	d.posts[key] = p.State + " " + p.Description
	if d.swarm == nil || d.swarm.lease.Holder == "" { // else it was decided when it was written down
		d.watchSuccess(ring.PostKey(p.SHA, p.Context), p.State, p.Description)
	}
}

// watchSuccess holds a closing word that is decided now to what runs.
func (d *daemon) watchSuccess(key, state, says string) {
	if state != ring.PostSuccess || strings.HasPrefix(says, "observe: ") { // which carries nothing out
		return
	}
	sha, context, _ := strings.Cut(key, " ")
	for name, f := range d.disk.Apps {
		if context != "gitring/sim" && context != "gitring/sim/"+name {
			continue
		}
		for _, s := range f.App.Services {
			if n := d.done(name, &s); n < d.counted(name, s.Name, s.Replicas) {
				d.violate("I10: success of %s with %d of %d %s", sha[:7], n, s.Replicas, s.Name)
			}
		}
	}
}

// watchRun keeps a run that was told, the one with its log in the place of the
// one without.
// watchCrash keeps the records of crashes; one written again with its log is one.
func (d *daemon) watchCrash(c ring.Crash) {
	if c.Signature == "" || c.Class == "" || c.Reason == "" || c.Instance == "" {
		d.violate("a crash is recorded as %+v", c)
	}
	i := slices.IndexFunc(d.crashes, func(x ring.Crash) bool { return x.Instance == c.Instance && x.At.Equal(c.At) })
	if i < 0 {
		d.crashes = append(d.crashes, c)
		return
	}
	d.crashes[i] = c
}

func (d *daemon) watchRun(r ring.Run) {
	_, key := r.Row()
	for i := range d.runs {
		if _, k := d.runs[i].Row(); k == key {
			d.runs[i] = r
			return
		}
	}
	d.runs = append(d.runs, r)
}

// done counts what a service has of what its plan asks.
func (d *daemon) done(app string, s *ring.Service) int {
	if s.Kind == ring.CronK {
		return s.Replicas // between two runs it is what it should be
	}
	if s.Kind == ring.JobK {
		for _, x := range d.disk.Apps[app].App.Services {
			if x.Before == s.Name {
				return 1 // it has no run of its own
			}
		}
		run := d.disk.Jobs[ring.VersionKey(ring.ID(app, s.Name), s.Version)]
		if run.State == "succeeded" || s.Job.Run == "once" {
			return 1
		}
		return 0
	}
	n := 0
	if d.swarm != nil {
		return d.doneOnSwarm(app, s)
	}
	for _, b := range d.boxes {
		if b.App != app || b.Service != s.Name || b.Version != s.Version && !d.stands(b, s) {
			continue
		}
		rests := s.Restart.Policy == ring.OnFail && b.State == ring.StateExited && b.ExitCode == 0
		if d.ready(b) || rests {
			n++
		}
	}
	return n
}

// watchLeaving remembers, before a decision that fails a rollout is written down, what
// was on its way out: that look itself is to stop nothing any more (I8).
func (d *daemon) watchLeaving(events []ring.Event) {
	if !slices.ContainsFunc(events, func(e ring.Event) bool { return e.Kind == ring.RolloutFailed }) {
		return
	}
	d.leaving = map[string]bool{}
	for id := range d.disk.Intents {
		d.leaving[id] = true
	}
}

// codedKinds are the events whose reason has a code that programs may ask for.
var codedKinds = map[string]bool{
	ring.RolloutFailed: true, ring.JobFailed: true, ring.PlanAwaiting: true, ring.CommitRefused: true, ring.AppRefused: true, ring.StepFailed: true, ring.WaveWaiting: true, ring.WaveHeld: true, ring.WaveStuck: true,
}

func (d *daemon) watchEvent(e ring.Event) {
	if codedKinds[e.Kind] && e.Code == "" {
		d.violate("%s of %s/%s has a reason without a code: %s", e.Kind, e.App, e.Service, e.Reason)
	}
	d.events = append(d.events, e)
	for _, b := range d.boxes {
		mine := b.App == e.App && b.Service == e.Service && b.Slot == e.Slot && b.Version == e.Version
		if e.Kind == ring.InstanceCrashed && mine && b.ours && !b.running() {
			d.violate("lesson L04: the end of %s, which we asked for, is told as a crash", b.Name)
		}
	}
	if e.Kind != ring.RolloutFailed {
		return
	}
	d.watchAwake(e)
	id := ring.ID(e.App, e.Service)
	good, ok := d.disk.Good[id]
	if !ok || good.Service.Version == e.Version {
		return
	}
	want := d.wantOf(e.App, e.Service)
	if want.Rollout.OnFailure != ring.OnFailureRestore || want.Replicas < good.Service.Replicas {
		return
	}
	d.protect[id] = map[string]bool{}
	for _, b := range d.boxes {
		if b.App == e.App && b.Service == e.Service && d.versionOf(b) == good.Service.Version && d.ready(b) && b.Slot <= good.Service.Replicas {
			if !d.leaving[b.ID] {
				d.protect[id][b.ID] = true
			}
		}
	}
}

// watchBudget checks I14: starts again of one container stay inside the
// backoff: at once, then 10, 20, 40, 80, 160 s, a tenth less each. A daemon
// that starts after the clock was set ahead cannot know better than to forgive.
func (d *daemon) watchBudget(forgiven int) {
	for id, at := range d.starts {
		for i := range at {
			n := 0
			for _, u := range at[i:] {
				if u.Sub(at[i]) < 5*time.Minute {
					n++
				}
			}
			if n > 7+forgiven {
				d.violate("I14: %s was started %d times in 5 minutes", id, n)
			}
		}
	}
}

// imageOf is what a pin was written as.
func imageOf(pin string) string {
	image, _, _ := strings.Cut(pin, "@")
	return image
}
