package reconcile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Explain answers why a service is as it is: by the same rules, from the same
// world, as a look would decide now. Slot 0 is all slots. With rules it has the rules that
// were asked, too. It changes nothing. It reports whether this host knows such a service.
func Explain(w World, now time.Time, id ring.ServiceID, slot int, rules bool) (ring.Explained, bool) {
	t := newDecider(w, now)
	if rules {
		t.trace = &trace{of: id}
	}
	t.decide()
	app, service := id.Split()
	out := ring.Explained{App: app, Service: service, Slot: slot, Instances: []ring.ExplainedInstance{}}
	st, as := t.statusOf(app, service)
	v := t.views[id]
	if st == nil && !t.isComing(id) && len(t.seen[id]) == 0 {
		return out, false
	}
	e := &explainer{decider: t, id: id, v: v, app: as, out: &out}
	if st != nil {
		out.Phase, out.Code, out.Says, out.Rollout, out.Conditions = st.Phase, st.Code, st.Reason, st.Rollout, st.Conditions
		out.Ports = t.portsTold(st, app)
	}
	e.fillSource()
	e.fillSteps()
	e.fillTries()
	e.fillInstances(slot)
	if v != nil {
		e.fillWanted()
		e.fillInputs()
	}
	e.fillOverrides()
	e.fillRule()
	if rules {
		out.Trace = t.trace.asked
	}
	return out, true
}

// portsTold are the ports that a service is reached at: those of its front, where it has one.
func (t *Pass) portsTold(st *ring.ServiceStatus, app string) []string {
	if st.Front == nil {
		return st.Ports
	}
	front, _ := t.statusOf(app, st.Name+ring.FrontSuffix)
	if front == nil {
		return nil
	}
	return front.Ports
}

// statusOf finds a service, and its app, in the status of this pass.
func (t *Pass) statusOf(app, service string) (*ring.ServiceStatus, *ring.AppStatus) {
	for i := range t.overview.Sources {
		for j := range t.overview.Sources[i].Apps {
			a := &t.overview.Sources[i].Apps[j]
			if a.Name != app {
				continue
			}
			for k := range a.Services {
				if a.Services[k].Name == service {
					return &a.Services[k], a
				}
			}
			return nil, a
		}
	}
	return nil, nil
}

// explainer fills one answer.
type explainer struct {
	*decider
	id  ring.ServiceID
	v   *service // nil for what no plan in force has
	app *ring.AppStatus
	out *ring.Explained
}

func (e *explainer) fillSource() {
	app, _ := e.id.Split()
	e.out.Source = e.Facts.Apps[app].App.Source
	for i := range e.Sources {
		src := &e.Sources[i]
		if e.out.Source == "" && src.Next != nil && e.nextApp(src, app) != nil {
			e.out.Source = src.Name
		}
	}
	if e.app != nil {
		e.out.Refusal = e.app.Refusal
	}
}

// isAbout reports whether a step is about the service, or fetches its image.
func (e *explainer) isAbout(a ring.Action) bool {
	app, service := e.id.Split()
	return a.App == app && a.Service == service && a.Kind != ring.DoLog
}

func (e *explainer) fillSteps() {
	for _, target := range sortedKeys(e.Busy) {
		if a := e.Busy[target]; e.isAbout(a) {
			e.out.Steps = append(e.out.Steps, ring.ExplainedStep{Kind: a.Kind, Slot: a.Slot, Reason: a.Reason, Far: e.Progress[target], Now: true})
		}
	}
	for _, a := range e.decider.steps {
		if e.isAbout(a) {
			e.out.Steps = append(e.out.Steps, ring.ExplainedStep{Kind: a.Kind, Slot: a.Slot, Reason: a.Reason})
		}
	}
}

// fillTries are the failed steps of the service: those of its containers rather than
// the newest of them once more. What was asked for an image that no plan names any
// more is the past.
func (e *explainer) fillTries() {
	for _, key := range sortedKeys(e.Tries) {
		try := e.Tries[key]
		image := e.v != nil && key == "pull "+e.v.target.Pin.Image
		asks := try.Kind == ring.DoResolve && strings.HasSuffix(key, " "+string(e.id)) && e.namesImage(key)
		its := key == string(e.id) && try.Name == "" || strings.HasPrefix(key, string(e.id)+" ")
		if !image && !asks && !its || e.isRefusedReload(try) {
			continue
		}
		row := ring.ExplainedTry{Kind: try.Kind, Name: try.Name, N: try.N, Err: try.Err, Cause: try.Cause, Next: utc(try.Next)}
		if try.Refusal != nil {
			row.Hint = try.Refusal.Hint
		}
		e.out.Tries = append(e.out.Tries, row)
	}
}

// isRefusedReload reports whether a step was the reload of files that failed for good: the verdict on
// them says so, and they are not tried again.
func (e *explainer) isRefusedReload(try ring.Try) bool {
	return e.v != nil && e.v.filesFailed != nil && try.Kind == ring.DoReload && try.Version == e.v.filesFailed.Version
}

// namesImage reports whether the plan in force or the next one has the image of a resolve's
// target for the service.
func (e *explainer) namesImage(target string) bool {
	app, service := e.id.Split()
	of := func(image string) bool {
		return target == ring.Action{Kind: ring.DoResolve, Image: image, App: app, Service: service}.Target()
	}
	if e.v != nil && of(e.v.want.Spec.Image) {
		return true
	}
	for i := range e.Sources {
		src := &e.Sources[i]
		if src.Next == nil {
			continue
		}
		if next := e.nextApp(src, app); next != nil {
			if s, ok := next.Service(service); ok && of(s.Spec.Image) {
				return true
			}
		}
	}
	return false
}

func (e *explainer) fillInstances(slot int) {
	for _, in := range e.seen[e.id] {
		if slot != 0 && in.Slot != slot {
			continue
		}
		row := ring.ExplainedInstance{
			InstanceStatus: e.instanceStatus(e.v, in), Stands: e.standsFor(in), Engine: in.State,
			Started: utc(in.Started), Policy: cmp.Or(in.Policy, "no"),
		}
		if h, ok := e.Health[in.ID]; ok && h.Ready {
			row.Ready = utc(h.Since)
		}
		if crash, ok := e.Facts.Slots[ring.SlotKey(e.id, in.Slot, in.Version)]; ok {
			row.Crashes, row.ExitCode, row.OOM, row.Class, row.NextTry = crash.Crashes, crash.ExitCode, crash.OOM, crash.Class, utc(crash.Next)
		}
		if in.Ended() && row.ExitCode == 0 {
			row.ExitCode, row.OOM = in.ExitCode, in.OOM
		}
		e.out.Instances = append(e.out.Instances, row)
	}
}

// standsFor is what the version of an instance is to the service.
func (e *explainer) standsFor(in *instance) string {
	switch {
	case e.v == nil:
		return "not in the plan"
	case in.Version == e.v.want.Version && e.v.failed != nil:
		return "wanted, and failed"
	case in.Version == e.v.want.Version:
		return "wanted"
	case e.v.good != nil && in.Version == e.v.good.Service.Version:
		return "last good"
	}
	return "superseded"
}

func (e *explainer) fillWanted() {
	v := e.v
	w := &ring.ExplainedWant{
		Kind: v.want.Kind, Replicas: v.want.Replicas, Version: v.want.Version, Commit: v.want.Changed, Image: v.want.Spec.Image,
		Pin: v.want.Pin.Image, Pinned: "taken over from what was in force", File: v.want.File,
	}
	if row := e.Facts.Pin(v.id, pinWritten(v.app, v.want)); row != nil {
		w.Pinned = "asked for " + clock(row.At)
		if row.Pin.Note != "" {
			w.Pinned += "; " + row.Pin.Note
		}
	}
	if g := v.good; g != nil {
		e.out.LastGood = &ring.ExplainedGood{Version: g.Service.Version, Commit: g.Commit, At: utc(g.At)}
		if g.Service.Version != v.want.Version {
			w.Differs = Differs(&g.App, &g.Service, v.app, v.want)
		} else {
			w.Differs = sayAll(inPlace(&g.Service, v.want))
		}
	}
	e.out.Wanted = w
}

// fillInputs are what the version is made of: a change of any of them is another one.
func (e *explainer) fillInputs() {
	s, app := e.v.want, e.v.app
	add := func(name, says string) {
		e.out.Inputs = append(e.out.Inputs, ring.ExplainedInput{Name: name, Says: says})
	}
	add("image", s.Pin.Digest())
	nothing, none := ring.Service{Spec: ring.Spec{Image: s.Spec.Image}, Pin: s.Pin}, ring.App{}
	for _, d := range versionDifferences(&none, &nothing, app, s) {
		if d.key != "spec.mounts" && d.key != "spec.networks" {
			add(d.says, "")
		}
	}
	for _, m := range s.Spec.Mounts {
		add("mount "+m.Target, mountSays(m))
	}
	for _, at := range s.Spec.Networks {
		n, _ := app.Network(at.Network)
		add("network "+at.Network, "definition "+n.Definition())
	}
	for _, name := range s.Spec.Leaders() {
		leader, _ := app.Service(name)
		add("service "+name, "version "+leader.Version.Short())
	}
	for _, key := range sortedKeys(s.Reload.Content()) {
		add("files of "+key, say("%.8s, reloaded in place: no part of the version", s.Reload.Live[key]))
	}
}

func mountSays(m ring.Mount) string {
	switch m.Kind {
	case ring.MountContent:
		return say("content %.8s %s", m.Source, m.File)
	case ring.MountLive:
		return "the files of " + m.Source
	}
	return say("%s %s", m.Kind, m.Source)
}

// fillOverrides are those that stand on the service, or on its app.
func (e *explainer) fillOverrides() {
	app, _ := e.id.Split()
	for _, o := range e.overrideStatus() {
		if o.Target == string(e.id) || o.Target == app {
			e.out.Overrides = append(e.out.Overrides, o)
		}
	}
}

// nothingToDo is what follows where all is as it should be.
const nothingToDo = "nothing to do"

// fillRule names the rule that decides now and what comes next. The order is that
// of the rules themselves: what is above keeps those below from being asked.
func (e *explainer) fillRule() {
	o := e.out
	o.Phase = cmp.Or(o.Phase, ring.PhasePending)
	rule, next := e.decidingRule()
	if rest, rests := strings.CutPrefix(next, nothingToDo); rests && e.app != nil && e.app.Refusal != nil {
		next = "mend what is refused: " + cmp.Or(e.app.Refusal.Hint, "push a commit that mends it") + rest
	}
	o.Rule, o.Next = rule, next
	o.Says = cmp.Or(o.Says, rule)
	for _, in := range o.Instances {
		if !in.NextTry.IsZero() && in.NextTry.After(e.now) && (o.Until.IsZero() || in.NextTry.Before(o.Until)) {
			o.Until = in.NextTry
		}
	}
	for _, try := range o.Tries {
		if try.Next.After(e.now) && (o.Until.IsZero() || try.Next.Before(o.Until)) {
			o.Until = try.Next
		}
	}
	if o.Slot != 0 && len(o.Instances) == 0 {
		o.Says = say("slot %d has no instance: %s", o.Slot, o.Says)
	}
}

// decidingRule is the rule that decides, and what follows from it for whoever asks.
func (e *explainer) decidingRule() (rule, next string) {
	app, service := e.id.Split()
	name := string(e.id)
	switch {
	case e.isObserved(app):
		return "its source is only observed: nothing is changed here", "set apply: auto for the source in the configuration, and restart gitring"
	case !e.heldBy(e.id).None():
		return e.heldBy(e.id).Says, "gitring release " + e.overrideTarget(ring.OverrideHold) + " --reason '…' lets gitring go on"
	}
	if e.v == nil {
		return e.ruleOutsidePlan(app, service)
	}
	if len(e.v.instances) == 0 && len(e.out.Steps) == 0 && e.app != nil && e.app.Refusal != nil {
		return say("the newest commit of the app is refused: %s", e.app.Refusal.Says), cmp.Or(e.app.Refusal.Hint, "push a commit that mends it")
	}
	if rule, next = e.ruleOfRuns(name); rule != "" {
		return rule, next
	}
	return e.ruleOfWorker(name)
}

// overrideTarget is what an override stands on: the service, or all of its app.
func (e *explainer) overrideTarget(k ring.OverrideKind) string {
	if o := e.standingOn(k, e.id); o != nil {
		return o.Target
	}
	return string(e.id)
}

// ruleOutsidePlan is for a service that no plan in force has: it is on its way here, or on
// its way out.
func (e *explainer) ruleOutsidePlan(app, service string) (rule, next string) {
	if e.app != nil && e.app.Refusal != nil {
		return say("the app is refused: %s", e.app.Refusal.Says), cmp.Or(e.app.Refusal.Hint, "push a commit that mends it")
	}
	for name, why := range e.decider.held {
		if e.out.Source == name {
			return why.Says, say("gitring approve %s, or push a newer commit", e.nextCommit(name))
		}
	}
	if why := e.staging[app]; !why.None() {
		e.out.Waits = append(e.out.Waits, why.Says)
		if why.Code == ring.WhyHeldInFile {
			return why.Says, "the app's hold in gitring.yaml ends it; push a commit without it"
		}
		return "its plan is not in force yet: " + why.Says, "wait: gitring goes on by itself as soon as that is done; gitring sync --wait follows it"
	}
	f, known := e.Facts.Apps[app]
	switch {
	case len(e.seen[e.id]) > 0 && !e.stays[app].None():
		return "it left the commit: " + e.stays[app].Says, "wait: it goes when that app is in force; gitring status says what keeps that one"
	case len(e.seen[e.id]) > 0 && known && f.App.NoPrune:
		return "it left the commit, and prune is false: it stays as an orphan", "remove it by hand, or set prune: true in gitring.yaml"
	case len(e.seen[e.id]) > 0 && known && !e.isFresh(&f.App):
		return "it left the commit, and nothing is removed before the remote answers again", "look at gitring status for what is wrong with the source"
	case len(e.seen[e.id]) > 0:
		return "it left the commit and is removed", "wait: what depends on it goes first"
	}
	return "its plan is about to come into force", "wait: the next look decides"
}

// nextCommit is the commit that a source would carry out next.
func (e *explainer) nextCommit(source string) string {
	if src := e.decider.sourceNamed(source); src != nil && src.Next != nil {
		return src.Next.Commit.Short()
	}
	return "<sha>"
}

// ruleOfRuns is what jobs and cron jobs have of their own.
func (e *explainer) ruleOfRuns(name string) (rule, next string) {
	v := e.v
	if !v.want.Kind.Ends() {
		return "", ""
	}
	if len(e.out.Steps) > 0 {
		return e.ruleOfStep()
	}
	switch e.out.Phase {
	case ring.PhaseCompleted:
		return "it ran, and runs again when its version changes or somebody asks", nothingToDo + "; gitring run " + name + " --reason '…' runs it again"
	case ring.PhaseFailed, ring.PhaseDegraded:
		return "its run failed: " + e.out.Says, say("gitring jobs %s shows the run and its log; gitring retry %s --reason '…' runs it again, or push a commit that mends it", name, name)
	case ring.PhasePending:
		e.out.Waits = append(e.out.Waits, e.out.Says)
		return e.out.Says, dependencyHint(v.waits)
	case ring.PhaseHeld:
		return e.out.Says, "gitring release " + name + " --reason '…' lets it go on"
	case ring.PhaseReady:
		return "it is between two runs: " + e.out.Says, nothingToDo + "; gitring run " + name + " --reason '…' runs it now"
	}
	return "its run is under way", say("wait for its end; gitring logs %s shows what it writes", name)
}

// ruleOfStep is for a service that a step of ours is moving.
func (e *explainer) ruleOfStep() (rule, next string) {
	s := e.out.Steps[0]
	where := ""
	if s.Slot > 0 {
		where = say(" slot %d", s.Slot)
	}
	rule = say("%s%s: %s", s.Kind, where, s.Reason)
	if s.Far != "" {
		rule += " (" + s.Far + ")"
	}
	return rule, "wait: gitring is at it; gitring events -f shows each step"
}

// dependencyHint is what to look at for a service that waits for another.
func dependencyHint(why ring.Reason) string {
	switch why.Code {
	case ring.WhyDependencyNotReady, ring.WhyNamespaceNotReady, ring.WhyGroupNotReady, ring.WhyJobBeforeNotDone:
		return say("gitring inspect %s says why that is not there yet", why.On)
	case ring.WhyTransferPending:
		return say("gitring inspect %s says why it has not let go yet", why.On)
	}
	return "wait: it begins as soon as that is there; gitring status shows the other apps"
}

// ruleOfWorker is the rest, in the order of the rules.
func (e *explainer) ruleOfWorker(name string) (rule, next string) {
	v := e.v
	revert := "git revert works"
	if src := e.sourceNamed(e.v.app.Source); src != nil && src.Apply == ApplyApprove {
		revert += ", and awaits approval"
	}
	fix := say("push a commit that mends it (%s), or gitring retry %s --reason '…'", revert, name)
	if v.failed != nil && v.failed.Code == ring.WhyProgramEnded {
		fix += meantToEnd
	}
	state := stateOf(&e.Pass, v)
	if state == Steady && !v.pausedBy.None() && e.onTrial(v) {
		state = Paused // what is reloaded in place waits, too
	}
	switch state {
	case Paused:
		return v.pausedBy.Says, "gitring resume " + e.overrideTarget(ring.OverridePause) + " --reason '…' lets it go on"
	case Blocked, Pending, Waiting:
		e.out.Waits = append(e.out.Waits, v.waits.Says)
		return v.waits.Says, dependencyHint(v.waits)
	case Stopped:
		return "the rollout failed and stopped where it is: " + v.failed.Reason, fix + say("; gitring logs %s shows what it wrote", name)
	}
	if stuck := e.stuckReason(v); stuck != "" {
		e.out.Waits = append(e.out.Waits, stuck)
		return "something of this host is in the way: " + stuck, "mend it on the host: gitring tries again by itself"
	}
	switch {
	case len(e.out.Steps) > 0:
		return e.ruleOfStep()
	case v.filesFailed != nil:
		return "the newest files to reload failed, and those of " + v.good.Commit.Short() + " are kept: " + v.filesFailed.Reason, fix
	case state == Restoring, state == Restored:
		return say("version %s failed, and %s is kept: %s", v.want.Version.Short(), v.good.Commit.Short(), v.failed.Reason), fix
	case v.failed != nil:
		return "the version failed before and stays: " + v.failed.Reason, fix
	}
	return e.seenSo(name)
}

// meantToEnd is what to write for a program that ends by itself.
const meantToEnd = `; if it is meant to end, write restart: "no" in its file, which makes it a job`

// seenSo explains a service by what is seen of it, with no rule in its way.
func (e *explainer) seenSo(name string) (rule, next string) {
	v := e.v
	logs := say("gitring logs %s and gitring crashes %s show why", name, name)
	for _, in := range e.out.Instances {
		switch in.State {
		case ring.SlotBackingOff, ring.SlotCrashed:
			rule = say("slot %d %s; it is started again after a wait that grows", in.Slot, in.Reason)
			if in.ExitCode == 0 && !in.OOM {
				logs += meantToEnd
			}
			if !e.now.Before(in.NextTry) {
				return rule, "wait: it is started again; " + logs
			}
			return rule, say("wait for the next try %s, or gitring retry %s --reason '…' tries now; %s", clock(in.NextTry), name, logs)
		}
	}
	if says, whose := e.portPublishers(v); says != "" {
		e.out.Waits = append(e.out.Waits, says)
		return "its port is taken: " + says, say("publish one of them on another port; gitring inspect %s shows who has it", whose)
	}
	for _, try := range e.out.Tries {
		return say("%s failed %s: %s", try.Kind, timesSays(try.N), try.Err), cmp.Or(try.Hint, say("wait for the next try %s, or gitring retry %s --reason '…' tries now", clock(try.Next), name))
	}
	if v.missing != "" {
		e.out.Waits = append(e.out.Waits, v.missing)
		return "it lacks what it needs: " + v.missing, "wait: it goes on as soon as that is there"
	}
	for _, in := range e.out.Instances {
		if in.Stands == "wanted" && in.State != ring.SlotReady && in.State != ring.SlotStopped {
			return say("slot %d is %s: %s", in.Slot, in.State, cmp.Or(in.Reason, "it was just started")), e.patienceSays(name)
		}
	}
	switch {
	case e.out.Phase == ring.PhaseReady && v.rollout.Done:
		return "every slot runs the wanted version, ready", nothingToDo
	case slices.ContainsFunc(e.out.Instances, func(in ring.ExplainedInstance) bool { return in.State == ring.SlotStopped }):
		return "an instance ended as its restart policy lets it, and rests", say("nothing, if that is meant; else restart: always in its file, or gitring restart %s --reason '…'", name)
	case !v.rollout.Done:
		return "the rollout is under way: " + e.out.Says, e.patienceSays(name)
	}
	return e.out.Says, say("gitring logs %s shows what it writes; gitring events shows what was done", name)
}

// patienceSays is until when a rollout may take, and what follows then.
func (e *explainer) patienceSays(name string) string {
	v := e.v
	if v.rollout.Done {
		return "wait for its checks; " + e.wordsOf(name)
	}
	if v.isStepping() { // no deadline counts meanwhile
		return e.stepEnds(name)
	}
	deadline := v.rollout.Progress.Add(v.want.Rollout.ProgressDeadline)
	e.out.Until = utc(deadline)
	return say("wait: without progress until %s the rollout fails (%s); %s", clock(deadline), v.onFailure(), e.wordsOf(name))
}

// wordsOf is where what a service writes is shown. What a check printed is not in its log.
func (e *explainer) wordsOf(name string) string {
	logs := say("gitring logs %s shows what it writes", name)
	for _, in := range e.out.Instances {
		if h := e.Health[in.ID]; !h.Ready && h.Reason != "" {
			return say("gitring inspect %s shows what a check printed that fails; ", name) + logs
		}
	}
	return logs
}

// stepEnds is what ends the step of a canary.
func (e *explainer) stepEnds(name string) string {
	v := e.v
	both := say("gitring traffic %s shows both sets", name)
	if v.canaryStepNow().Manual || !e.stepAwaits(v).None() {
		return say("gitring rollout promote %s goes on, gitring rollout abort %s --reason '…' goes back; %s", name, name, both)
	}
	end := v.rollout.Stepped.Add(v.canaryStepNow().For)
	e.out.Until = utc(end)
	return say("wait: the step ends %s, gitring rollout promote %s ends it now; %s", clock(end), name, both)
}

// timesSays is how often something happened.
func timesSays(n int) string {
	if n == 1 {
		return "once"
	}
	return say("%d times", n)
}
