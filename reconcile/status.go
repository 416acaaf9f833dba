package reconcile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// deriveStatus derives what people, the forge and exit codes are told. It decides
// nothing, and nothing decides by it.
func (t *decider) deriveStatus() {
	t.overview = ring.Status{Host: t.Host, Gitring: t.Gitring, At: t.now.UTC(), Cluster: ring.ClusterStatusOf(t.Host, &t.Seen)}
	if len(t.Sources) > 0 {
		t.overview.Sources = make([]ring.SourceStatus, len(t.Sources))
	}
	for i := range t.Sources {
		t.sourceStatus(&t.Sources[i], &t.overview.Sources[i])
	}
	t.overview.Overrides = t.overrideStatus()
}

func (t *Pass) sourceStatus(src *Source, st *ring.SourceStatus) {
	names := t.appNames(src)
	*st = ring.SourceStatus{
		Name: src.Name, Branch: src.Branch, Tip: src.Tip, Trust: src.Trust, Checking: src.Checking,
		Checked: src.Reached, Refusal: src.Refusal, Apps: make([]ring.AppStatus, len(names)),
	}
	if src.Commit != nil {
		st.Trusted = src.Commit.SHA
	}
	if src.Next != nil {
		st.Doubts = src.Next.Doubts
	}
	if st.Refusal == nil && src.Next != nil && src.Next.Refusal != nil {
		st.Refusal = src.Next.Refusal
	}
	for i, name := range names {
		t.appStatus(src, name, &st.Apps[i])
	}
	f := t.appBehind(src)
	st.Commit, st.Signer, st.Subject, st.Committed = f.App.Commit, f.Signer, f.Subject, f.Committed
	if c := src.Commit; c != nil && (st.Commit == "" || st.Commit == c.SHA) {
		st.Signer, st.Subject, st.Committed, st.Note = c.Signer, c.Subject, c.ClaimedAt, c.Note
	}
	st.Followed = t.followed(src, &f)
	st.Next = t.nextStatus(src)
	sync, why := t.syncState(src, st)
	if src.Awaiting != "" && st.Refusal == nil {
		sync, why = ring.SyncHeld, ring.Reason{Code: ring.WhyAwaitingApproval, Says: src.Awaiting}
	}
	st.Sync, st.Reason, st.Code, st.On = sync, why.Says, why.Code, why.On
	if stale := src.staleCondition(t.now, t.Awake); stale != nil {
		st.Conditions = append(st.Conditions, *stale)
	}
	if old := src.oldCondition(t.wallClock()); old != nil {
		st.Conditions = append(st.Conditions, *old)
	} else if at := src.oldAt(); !at.IsZero() {
		t.wakeAt(at.Add(1)) // longer than max_age, not as long
	}
}

// staleCondition is the condition Stale of a source: what its branch holds is not known here; nil
// when it is. awake is since when this process looks.
func (s *Source) staleCondition(now, awake time.Time) *ring.Condition {
	from := s.silentSince(awake)
	if from.IsZero() || now.Sub(from) <= s.FreshFor {
		return nil
	}
	return &ring.Condition{
		Type: ring.ConditionStale, Status: ring.ConditionTrue, Since: from.Add(s.FreshFor),
		Reason: "the remote was last reached " + reachedSays(s.Reached) + "; newer commits are not known here",
	}
}

// oldCondition is the condition Old of a source at now, a time of the wall clock as FirstSeen
// is; nil when it is not old.
func (s *Source) oldCondition(now time.Time) *ring.Condition {
	at := s.oldAt()
	if at.IsZero() || !now.After(at) {
		return nil
	}
	return &ring.Condition{
		Type: ring.ConditionOld, Status: ring.ConditionTrue, Since: at, Commit: s.Commit.SHA,
		Reason: say("no commit for max_age %s: %s was first seen %s", daysSays(s.MaxAge), s.Commit.SHA.Short(), clock(s.Commit.FirstSeen)),
	}
}

// oldAt is the time after which a source is old, if no commit comes until then;
// zero is never. A forge that hides commits looks like a quiet repository. A signed
// empty commit tells the two apart.
func (s *Source) oldAt() time.Time {
	if s.MaxAge <= 0 || s.Commit == nil || s.Commit.FirstSeen.IsZero() {
		return time.Time{}
	}
	return s.Commit.FirstSeen.Add(s.MaxAge)
}

// daysSays writes a duration as people configure it: 30d, or 36h0m0s.
func daysSays(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return say("%dd", d/(24*time.Hour))
	}
	return d.String()
}

// appNames are the apps in force, next and refused of a source.
func (t *Pass) appNames(src *Source) []string {
	names := map[string]bool{}
	for name, f := range t.Facts.Apps {
		if f.App.Source == src.Name {
			names[name] = true
		}
	}
	if src.Next != nil {
		for i := range src.Next.Apps {
			names[src.Next.Apps[i].Name] = true
		}
		for name, r := range src.Next.Refused {
			if !t.refusalTold(src, names, r) {
				names[name] = true
			}
		}
	}
	return sortedKeys(names)
}

// refusalTold reports whether a refusal already stands with an app in force, under the name
// that its file can no longer give. A file of another app is no word on that one.
func (t *Pass) refusalTold(src *Source, names map[string]bool, r *ring.Refusal) bool {
	for name := range names {
		if name != r.App && t.appRefusal(src, name) == r {
			return true
		}
	}
	return false
}

// followed is the trusted commit of a source, where the app that is behind is refused, or the
// whole commit waits for an app that is; nil elsewhere. An app may be behind that is not in
// force at all.
func (t *Pass) followed(src *Source, behind *ring.InForce) *ring.Followed {
	c, next := src.Commit, src.Next
	if c == nil || next == nil || next.Commit != c.SHA || next.Refusal != nil || behind.App.Commit == "" || behind.App.Commit == c.SHA {
		return nil
	}
	out := ring.Followed{Commit: c.SHA, Subject: c.Subject, Signer: c.Signer, Committed: c.ClaimedAt}
	for _, name := range t.appNames(src) {
		if t.appRefusal(src, name) != nil && (name == behind.App.Name || src.Apply == ApplyCommit) {
			out.App = name
			return &out
		}
	}
	return nil
}

// appBehind is the app in force that is furthest behind: its commit is the newest
// one that every app is at or needed no change for.
func (t *Pass) appBehind(src *Source) ring.InForce {
	var lag ring.InForce
	for _, name := range t.names {
		f, ok := t.Facts.Apps[name] // tidy may have forgotten it
		if !ok || f.App.Source != src.Name {
			continue
		}
		if lag.App.Name == "" || f.Since.Before(lag.Since) {
			lag = f
		}
	}
	if lag.App.Name == "" && src.Next != nil && len(src.Next.Apps) == 0 && len(src.Next.Refused) == 0 {
		lag.App.Commit = src.Next.Commit
	}
	return lag
}

func (t *Pass) nextStatus(src *Source) *ring.Next {
	if src.Next == nil || src.Next.Refusal != nil {
		return nil
	}
	if why := t.held[src.Name]; !why.None() {
		return &ring.Next{Commit: src.Next.Commit, Reason: why.Says, Code: why.Code}
	}
	if t.differs[src.Name] {
		return &ring.Next{Commit: src.Next.Commit, Reason: t.watched[src.Name], Code: ring.WhyObserveOnly}
	}
	if why := t.waved[src.Name]; !why.None() {
		return &ring.Next{Commit: src.Next.Commit, Reason: why.Says, Code: why.Code}
	}
	for i := range src.Next.Apps {
		name := src.Next.Apps[i].Name
		if why := t.staging[name]; !why.None() && t.hostRefusal(src, name) == nil {
			return &ring.Next{Commit: src.Next.Commit, Reason: say("app %s: %s", name, why.Says), Code: why.Code, On: why.On}
		}
	}
	return nil
}

// syncState is the first state that applies (docs/design/host.md#sync), with its reason.
func (t *Pass) syncState(src *Source, st *ring.SourceStatus) (ring.Sync, ring.Reason) {
	if src.Next == nil && len(st.Apps) == 0 && st.Refusal == nil {
		return ring.SyncUnknown, ring.Reason{Says: cmp.Or(src.Reason, "nothing trusted yet")}
	}
	if st.Refusal != nil {
		return ring.SyncRefused, ring.Reason{Says: cmp.Or(src.Reason, st.Refusal.Says)}
	}
	if why := t.held[src.Name]; !why.None() {
		return ring.SyncHeld, why
	}
	if t.differs[src.Name] && len(src.Next.Refused) == 0 {
		return ring.SyncHeld, ring.Reason{Code: ring.WhyObserveOnly, Says: t.watched[src.Name]}
	}
	var held, stopped, applying, rolling, degraded ring.Reason
	staging := t.waved[src.Name]
	var behind, blocked, idle ring.Reason // what waits for another app or service: that one's own reason comes first
	for i := range st.Apps {
		a := &st.Apps[i]
		if a.Health == ring.Held {
			firstReason(&held, ring.Reason{Code: a.Code, On: a.On, Says: a.Reason}, "app ", a.Name, ": ")
			if a.Code == ring.WhyHeldInFile || !t.withheldReason(a.Name).None() {
				continue // nothing of it goes on
			}
		}
		switch why := t.stagingOf(a.Name); {
		case a.Refusal != nil:
			firstReason(&degraded, ring.Reason{Code: ring.WhyAppRefused, Says: a.Refusal.Says}, "app ", a.Name, " is refused: ")
		case why.None():
		case t.blocked[a.Name]:
			firstReason(&blocked, why, "app ", a.Name, ": ")
		case !t.stays[a.Name].None():
			firstReason(&behind, why, "app ", a.Name, ": ")
		default:
			firstReason(&staging, why, "app ", a.Name, ": ")
		}
		if f, ok := t.Facts.Apps[a.Name]; ok && f.Leaving && !f.App.NoPrune {
			firstReason(&applying, ring.Reason{Code: ring.WhyLeftPlan, Says: " is being removed"}, "app ", a.Name)
		}
		for j := range a.Services {
			s := &a.Services[j]
			var waits ring.Sync
			if !isHalted(s) && (isWorking(s) || isBad(s)) {
				waits = t.standsBehind(t.viewOf(a, j))
			}
			switch {
			case isHalted(s) && s.Phase != ring.PhaseFailed && !t.isSuperseding(a.Name):
				firstReason(&stopped, s.Why(), a.Name, "/", s.Name, " ")
			case waits == ring.SyncDegraded: // what it waits for is told first
				firstReason(&blocked, s.Why(), a.Name, "/", s.Name, " ")
			case waits == ring.SyncHeld:
				firstReason(&idle, s.Why(), a.Name, "/", s.Name, " ")
			case isWorking(s):
				firstReason(&applying, s.Why(), a.Name, "/", s.Name, " ")
				if s.Rollout != nil || s.Kind == ring.JobK && s.Phase == ring.PhaseProgressing {
					firstReason(&rolling, s.Why(), a.Name, "/", s.Name, " ")
				}
			case isBad(s):
				firstReason(&degraded, s.Why(), a.Name, "/", s.Name, " ")
			}
		}
	}
	if stopped = cmp.Or(stopped, idle); held.None() && !stopped.None() {
		held = src.orElse(stopped)
	}
	switch {
	case held.None(): // else the others go on, and what comes to an end is waited for
	case !staging.None():
		return ring.SyncStaging, src.orElse(staging)
	case !rolling.None():
		return ring.SyncApplying, src.orElse(rolling)
	default:
		return ring.SyncHeld, held
	}
	staging, degraded = cmp.Or(staging, behind), cmp.Or(degraded, blocked)
	switch {
	case !staging.None():
		return ring.SyncStaging, src.orElse(staging)
	case !applying.None():
		return ring.SyncApplying, src.orElse(applying)
	case !degraded.None():
		return ring.SyncDegraded, src.orElse(degraded)
	}
	if watched := t.watched[src.Name]; watched != "" {
		return ring.SyncSynced, src.orElse(ring.Reason{Code: ring.WhyObserveOnly, Says: watched})
	}
	return ring.SyncSynced, src.orElse(ring.Reason{Says: emptySays(src, st)})
}

// orElse is the reason of the source's own, such as that its remote is away, or why.
func (src *Source) orElse(why ring.Reason) ring.Reason {
	if src.Reason != "" {
		return ring.Reason{Says: src.Reason}
	}
	return why
}

// stagingOf is why an app keeps what is in force of it, or its next plan is not in force.
func (t *Pass) stagingOf(app string) ring.Reason {
	return cmp.Or(t.stays[app].Reason, t.staging[app])
}

// emptySays is told of a source that asks for nothing here, which is seldom meant:
// its path may be misspelt.
func emptySays(src *Source, st *ring.SourceStatus) string {
	if src.Next == nil || len(src.Next.Apps) > 0 || len(st.Apps) > 0 {
		return ""
	}
	return say("commit %s has no app for this host under the source's path", src.Next.Commit.Short())
}

// firstReason is the first reason of its kind: the words of all others are never joined.
func firstReason(kept *ring.Reason, why ring.Reason, before ...string) {
	if kept.None() {
		*kept = why
		kept.Says = strings.Join(before, "") + why.Says
	}
}

// isWorking reports whether a rollout, job or removal is not finished.
func isWorking(s *ring.ServiceStatus) bool {
	switch s.Phase {
	case ring.PhasePending, ring.PhaseProgressing, ring.PhaseRemoving:
		return true
	}
	return s.Rollout != nil && (s.Rollout.Phase == ring.RolloutProgressing || s.Rollout.Phase == ring.RolloutRestoring)
}

// isBad reports whether a service is not what its plan asks, and stays so.
func isBad(s *ring.ServiceStatus) bool {
	return s.Phase == ring.PhaseDegraded || s.Phase == ring.PhaseFailed || s.Rollout != nil && !isWorking(s) && !isHalted(s)
}

// isHalted reports whether a rollout stopped where it is until somebody decides. One that
// waits for this host to be mended goes on by itself.
func isHalted(s *ring.ServiceStatus) bool {
	return s.Rollout != nil && s.Rollout.Phase == ring.RolloutPaused && s.Phase != ring.PhaseDegraded
}

// standsBehind says what a service waits for, at whatever distance, where no step that is under way
// lets it begin: one that failed (SyncDegraded), or that a person has in their hands (SyncHeld).
func (t *Pass) standsBehind(v *service) ring.Sync {
	met := map[*service]bool{}
	for v != nil && !v.waits.None() && !met[v] {
		met[v] = true
		on := t.views[v.waits.On]
		switch {
		case v.waits.Dead, on != nil && v.waits.Code == ring.WhyTransferPending && t.blocked[on.app.Name]:
			return ring.SyncDegraded
		case on != nil && (stateOf(t, on) == Held || stateOf(t, on) == Paused):
			return ring.SyncHeld
		}
		v = on
	}
	return ""
}

// isSuperseding reports whether a newer plan of an app is on its way into force: what
// stopped under the older one stops nothing any more.
func (t *Pass) isSuperseding(app string) bool {
	why := t.staging[app]
	return !why.None() && !t.blocked[app] && why.Code != ring.WhyHeldInFile
}

func (t *Pass) appStatus(src *Source, name string, st *ring.AppStatus) {
	*st = ring.AppStatus{Name: name, Health: ring.Unknown, Services: []ring.ServiceStatus{}, Refusal: t.appRefusal(src, name)}
	f, ok := t.Facts.Apps[name]
	if ok && f.App.Source == src.Name {
		st.Commit, st.Notes, st.Powers = f.App.Commit, slices.Concat(f.App.Notes, pinNotes(&f.App)), f.App.Powers
		all := t.apps[name]
		st.Services = make([]ring.ServiceStatus, len(all))
		for i := range all {
			t.serviceStatus(&all[i], &st.Services[i])
		}
		st.Services = append(st.Services, t.orphanStatus(&f.App)...)
	}
	health, why := t.appHealth(st, ok)
	st.Health, st.Reason, st.Code, st.On = health, why.Says, why.Code, why.On
}

// viewOf is the view of service i of an app's status; nil for one that has none,
// because it is in no plan in force.
func (t *Pass) viewOf(a *ring.AppStatus, i int) *service {
	if all := t.apps[a.Name]; i < len(all) {
		return &all[i]
	}
	return nil
}

func (t *Pass) appHealth(st *ring.AppStatus, known bool) (health string, why ring.Reason) {
	if why := t.staging[st.Name]; why.Code == ring.WhyHeldInFile {
		return ring.Held, why
	}
	if why := t.handedOverride(st.Name); !why.None() {
		return ring.Held, why
	}
	health = ring.Healthy
	for i := range st.Services {
		s := &st.Services[i]
		switch {
		case isBad(s):
			return ring.Degraded, s.Why()
		case isHalted(s) && !t.isSuperseding(st.Name):
			health, why = ring.Held, s.Why()
		case isWorking(s) && health == ring.Healthy:
			health, why = ring.Progressing, s.Why()
		}
	}
	switch {
	case st.Refusal != nil && !known:
		return ring.Unknown, ring.Reason{Code: ring.WhyAppRefused, Says: st.Refusal.Says}
	case st.Refusal != nil:
		return ring.Degraded, ring.Reason{Code: ring.WhyAppRefused, Says: st.Refusal.Says}
	case !t.staging[st.Name].None():
		return ring.Progressing, t.staging[st.Name]
	case !known:
		return ring.Unknown, ring.Reason{}
	}
	if why.None() {
		why = t.stays[st.Name].Reason
	}
	return health, why
}

// orphanStatus lists what runs of an app without a place in its plan.
func (t *Pass) orphanStatus(app *ring.App) []ring.ServiceStatus {
	var out []ring.ServiceStatus
	if len(t.strays) == 0 {
		return nil
	}
	for _, id := range t.findLeavers().of[app.Name] {
		_, service := id.Split()
		s := ring.ServiceStatus{Name: service, Kind: t.kindSeen(id), Phase: ring.PhaseRemoving, Code: ring.WhyLeftPlan, Reason: say("not in plan %s", app.Commit.Short()), Instances: []ring.InstanceStatus{}}
		if app.NoPrune {
			s.Phase, s.Code, s.Reason = ring.PhaseHeld, ring.WhyNotPruned, "orphan: prune is false"
		} else if why := t.leanedSays(id); why != "" {
			s.Phase, s.Code, s.Reason = ring.PhaseHeld, ring.WhyNeededStill, why
		} else if !t.isFresh(app) {
			s.Reason += "; waits until the remote is reached"
		}
		for _, in := range t.seen[id] {
			s.Instances = append(s.Instances, t.instanceStatus(nil, in))
		}
		out = append(out, s)
	}
	return out
}

func (t *Pass) serviceStatus(v *service, st *ring.ServiceStatus) {
	*st = ring.ServiceStatus{
		Name: v.want.Name, Kind: v.want.Kind, Wanted: v.want.Replicas, Version: v.want.Version,
		Commit: v.want.Changed, Instances: make([]ring.InstanceStatus, len(v.instances)),
	}
	if v.good != nil {
		st.LastGood = v.good.Commit
	}
	for i, in := range v.instances {
		if in.ready {
			st.Ready++
		}
		if in.Version == v.want.Version && in.Live() {
			st.Updated++
		}
		if in.inferred {
			st.Health = "inferred"
		}
		st.Instances[i] = t.instanceStatus(v, in)
	}
	t.fillRunning(v, st)
	st.Tag = t.tagStatus(v)
	switch v.want.Kind {
	case ring.JobK:
		t.jobStatus(v, st)
		return
	case ring.CronK:
		t.cronStatus(v, st)
		return
	}
	phase, why := t.phaseOf(v, st)
	if v.hasFront() {
		phase, why = t.frontedPhase(v, phase, why)
		st.Front = t.frontStatus(v)
	}
	st.Phase = phase
	st.Because(why)
	st.Rollout = t.rolloutStatus(v)
	st.Conditions = t.conditionsOf(v, st)
}

// phaseOf is the state of a service in the words of the status, with why it is so.
func (t *Pass) phaseOf(v *service, st *ring.ServiceStatus) (ring.Phase, ring.Reason) {
	progress := readySays(st.Ready, v.target.Replicas)
	failed := func(format string, args ...any) ring.Reason {
		return ring.Reason{Code: ring.WhyRolloutFailed, Says: say(format, args...)}
	}
	blocked := func(before, what string) (ring.Phase, ring.Reason) {
		return ring.PhaseDegraded, ring.Reason{Code: ring.WhyHostNotReady, Says: say("%s%s; %s", before, progress, what)}
	}
	switch stateOf(t, v) {
	case Held:
		return ring.PhaseHeld, t.heldBy(v.id).After(progress)
	case Paused:
		return ring.PhaseHeld, v.pausedBy.After(progress)
	case Blocked:
		return ring.PhaseDegraded, v.waits
	case Pending:
		return ring.PhasePending, v.waits
	case Waiting:
		if t.isBackForGood(v) {
			return ring.PhaseReady, v.waits.After(progress)
		}
		return ring.PhaseProgressing, v.waits
	case Stopped:
		if v.good != nil {
			return ring.PhaseHeld, failed("%s", v.failed.Reason) // what served before does
		}
		return ring.PhaseFailed, failed("%s", v.failed.Reason)
	case Restored:
		if t.isSettled(v) {
			return ring.PhaseReady, failed("kept %s: %s", v.good.Commit.Short(), v.failed.Reason)
		}
	case Restoring:
		if stuck := t.stuckReason(v); stuck != "" {
			return blocked(say("restoring %s, ", v.good.Commit.Short()), stuck)
		}
		return ring.PhaseProgressing, failed("restoring %s, %s: %s", v.good.Commit.Short(), progress, v.failed.Reason)
	case Starting, Watching:
		if stuck := t.stuckReason(v); stuck != "" {
			return blocked("", stuck)
		}
		if why := t.stepAwaits(v); !why.None() {
			return ring.PhaseHeld, why.After(progress)
		}
		return ring.PhaseProgressing, ring.Reason{Says: progress + v.stepSays() + t.watchSays(v) + t.slowestSays(v)}
	}
	return t.steadyPhase(v, progress)
}

// steadyPhase is the phase after completion: what is not ready is either on its way
// or wrong.
func (t *Pass) steadyPhase(v *service, progress string) (ring.Phase, ring.Reason) {
	if phase, why := t.livePhase(v); phase != "" {
		return phase, why
	}
	if why := t.outlastingRun(v); !why.None() { // of the same version, so no rollout waits for it
		return ring.PhasePending, why
	}
	if t.onCluster() && !t.isSettled(v) {
		return t.servedPhase(v, progress)
	}
	if t.isSettled(v) {
		if v.missing != "" {
			return ring.PhaseDegraded, ring.Reason{Code: ring.WhyHostNotReady, Says: progress + "; " + v.missing}
		}
		if t.isUnguarded(v) {
			return ring.PhaseProgressing, ring.Reason{Says: progress + "; its restart policy is being set"}
		}
		return ring.PhaseReady, ring.Reason{Says: progress}
	}
	if try, ok := t.refusedStep(v); ok {
		return ring.PhaseDegraded, ring.Reason{Code: ring.WhyHostNotReady, Says: say("%s; %s", progress, t.stuckSays(v, try))}
	}
	for _, in := range v.instances {
		if !in.holdsSlot() || in.ready || t.isResting(v, in) || !in.down {
			continue
		}
		if in.Live() && t.now.Before(in.Since.Add(v.target.Rollout.StartTimeout)) {
			continue
		}
		return ring.PhaseDegraded, ring.Reason{Code: ring.WhyInstanceNotReady, On: v.id, Says: say("%s; slot %d %s", progress, in.Slot, in.reason)}
	}
	if try, ok := t.Tries[string(v.id)]; ok && (try.Permanent || try.Refusal != nil) && t.freeSlot(v) > 0 {
		return ring.PhaseDegraded, ring.Reason{Code: ring.WhyHostNotReady, Says: say("%s; %s", progress, withHint(try))}
	}
	return ring.PhaseProgressing, ring.Reason{Says: progress + t.slowestSays(v)}
}

// servedPhase is the phase of a service at rest that a cluster does not serve whole.
func (t *Pass) servedPhase(v *service, progress string) (ring.Phase, ring.Reason) {
	if try, ok := t.refusedStep(v); ok {
		return ring.PhaseDegraded, ring.Reason{Code: ring.WhyHostNotReady, Says: say("%s; %s", progress, withHint(try))}
	}
	if hand := handOnSpec(v); hand != "" && onlyReports(v.app) {
		return ring.PhaseDegraded, ring.Reason{Code: ring.WhyHostNotReady, Says: say("%s; %s", progress, hand)}
	}
	for _, in := range v.instances {
		if t.isAway(in) {
			return ring.PhaseDegraded, ring.Reason{Code: ring.WhyInstanceNotReady, On: v.id, Says: say("%s; slot %d %s", progress, in.Slot, in.reason)}
		}
	}
	if says := t.failingSays(v); says != "" {
		return ring.PhaseDegraded, ring.Reason{Code: ring.WhyInstanceNotReady, On: v.id, Says: say("%s; %s", progress, says)}
	}
	return ring.PhaseProgressing, ring.Reason{Says: progress + t.slowestSays(v)}
}

// failingSays is the newest instance of a service that failed, where its slot is not ready again;
// "" where it is, and where none failed.
func (t *Pass) failingSays(v *service) string {
	f := v.failedTask()
	if f == nil || slices.ContainsFunc(v.instances, func(in *instance) bool { return in.Slot == f.Slot && in.ready }) {
		return ""
	}
	return failedSays(v.sent)
}

// kindSeen is the kind of a service that is seen and in no plan.
func (t *Pass) kindSeen(id ring.ServiceID) ring.Kind {
	if ins := t.seen[id]; len(ins) > 0 {
		return ins[0].Kind
	}
	return t.clusterService(id).Kind
}

// slowestSays names an instance that is waited for.
func (t *Pass) slowestSays(v *service) string {
	if says, _ := t.portPublishers(v); says != "" {
		return "; " + says
	}
	for _, in := range v.instances {
		if in.Version == v.target.Version && !in.ready && in.reason != "" {
			return say("; slot %d %s", in.Slot, in.reason)
		}
	}
	if far := t.Progress["pull "+v.target.Pin.Image]; far != "" {
		return say("; pulling %s (%s)", v.target.Pin.Image, far)
	}
	if try, ok := t.Tries[string(v.id)]; ok && try.Err != "" {
		return "; " + withHint(try)
	}
	if f := v.failedTask(); f != nil && !t.isSettled(v) {
		return "; " + failedSays(v.sent)
	}
	if why := cmp.Or(v.missing, t.noNodeSays(v)); why != "" {
		return "; " + why
	}
	return ""
}

// rolloutStatus is the rollout of the wanted version, whoever holds the service; nil when
// it is over, and when another version is wanted by now.
func (t *Pass) rolloutStatus(v *service) *ring.RolloutStatus {
	if v.rollout.Version != v.want.Version {
		return nil
	}
	st := &ring.RolloutStatus{Version: v.rollout.Version, Commit: v.rollout.Commit, Canary: v.canaryStatus()}
	switch rolloutState(v) {
	case Restored:
		st.Phase, st.Reason = ring.RolloutIsRestored, v.failed.Reason
	case Restoring:
		st.Phase, st.Reason = ring.RolloutRestoring, v.failed.Reason
	case Stopped:
		st.Phase, st.Reason = ring.RolloutPaused, v.failed.Reason
	case Starting, Watching:
		if held := cmp.Or(t.heldBy(v.id), v.pausedBy); !held.None() {
			st.Phase, st.Reason, st.Code = ring.RolloutPaused, held.Says, held.Code
		} else if stuck := t.stuckReason(v); stuck != "" {
			st.Phase, st.Reason, st.Code = ring.RolloutPaused, stuck, ring.WhyHostNotReady
		} else if why := t.stepAwaits(v); !why.None() {
			st.Phase, st.Reason, st.Code = ring.RolloutPaused, why.Says, why.Code
		} else {
			st.Phase, st.Reason = ring.RolloutProgressing, t.changeReason(v)+t.watchSays(v)
		}
	default:
		return t.liveRollout(v)
	}
	if v.failed != nil {
		st.Commit, st.Code = v.failed.Commit, ring.WhyRolloutFailed
	}
	return st
}

func (t *Pass) jobStatus(v *service, st *ring.ServiceStatus) {
	run, ok := t.jobRun(v.id, v.want)
	switch {
	case !t.heldBy(v.id).None():
		st.Phase = ring.PhaseHeld
		st.Because(t.heldBy(v.id))
	case len(v.runsBefore()) > 0:
		t.beforeStatus(v, st)
	case ok && run.State == jobSucceeded && (t.isAskedFor(v) || len(t.underWay(v.id)) > 0):
		st.Phase, st.Reason = ring.PhaseProgressing, cmp.Or(v.says, t.askedWaits(v), "runs again, as a person asked")
	case ok && run.State == jobSucceeded:
		st.Phase, st.Reason = ring.PhaseCompleted, say("completed %s UTC", run.Ended.UTC().Format("2006-01-02 15:04"))
		if last := t.lastRun(v); last.Trigger == ring.Asked && last.Ended.After(run.Ended) {
			st.Reason += say("; run again %s UTC, %s: %s", last.Ended.UTC().Format("2006-01-02 15:04"), dueSays(last), last.Reason)
		}
		st.LastGood = run.Commit
	case ok && run.State == jobFailed:
		st.Phase, st.Code, st.Reason = ring.PhaseFailed, ring.WhyJobFailed, run.Reason
	case v.waits.Dead:
		st.Phase = ring.PhaseDegraded
		st.Because(v.waits)
	case !v.waits.None():
		st.Phase = ring.PhasePending
		st.Because(v.waits)
	default:
		st.Phase, st.Reason = ring.PhaseProgressing, cmp.Or(v.says, t.lastError(v), "is running")
	}
}

func (t *Pass) instanceStatus(v *service, in *instance) ring.InstanceStatus {
	st := ring.InstanceStatus{
		ID: in.ID, Name: in.Name, Slot: in.Slot, Version: in.Version, Commit: in.Commit, Reason: in.reason, Node: in.Node,
		Adopted: t.adoptedRow(in) != nil,
	}
	if in.Live() {
		st.Started, st.Address = utc(in.Started), addressOf(in.Instance)
	}
	var row ring.SlotRow
	if v != nil {
		row, _ = t.slotRow(v, in)
	}
	if row.Instance == in.ID {
		st.Restarts = row.Crashes
	}
	job, leaves := in.Kind.Ends(), t.leavingSays(in)
	switch {
	case leaves != "":
		st.State, st.InFlight = leaves, t.inFlightTo(v, in)
	case in.State == ring.StateCreated:
		st.State = ring.SlotCreating
	case in.State == ring.StateRemoving:
		st.State = ring.SlotStopping
	case in.Ended() && job:
		st.State = ring.SlotCompleted
	case in.Ended() && (in.intent != "" || v == nil || t.isResting(v, in)):
		st.State = ring.SlotStopped
	case in.Ended() && row.Instance == in.ID && t.now.Before(row.Next):
		st.State, st.Reason = ring.SlotBackingOff, say("%s; next try %s", in.reason, row.Next.UTC().Format("15:04:05"))
	case in.Ended():
		st.State = ring.SlotCrashed
	case in.ready || job:
		st.State, st.Reason = ring.SlotReady, cmp.Or(in.reason, unheardSays(in))
	case in.failing:
		st.State, st.Failing = ring.SlotStarting, true
		if v != nil && v.rollout.Done {
			st.State = ring.SlotNotReady
		}
	case v != nil && v.rollout.Done && in.down:
		st.State = ring.SlotNotReady
	default:
		st.State = ring.SlotStarting
	}
	return st
}

// leavingSays is how far the way out of a live instance is: it drains, from the moment that
// it was meant to go, and then is being stopped; "" where it stays.
func (t *Pass) leavingSays(in *instance) string {
	if !in.Live() {
		return ""
	}
	id := ring.ID(in.App, in.Service)
	if t.isStopping(id, in) {
		var drain time.Duration
		if v := t.views[id]; v != nil {
			drain = v.want.Rollout.DrainDelay
		} else if g, ok := t.Facts.Good[id]; ok {
			drain = g.Service.Rollout.DrainDelay
		}
		if !t.now.Before(t.Facts.Intents[in.ID].At.Add(drain)) {
			return ring.SlotStopping
		}
		return ring.SlotDraining
	}
	if in.isLeaving() || in.intent == intentOut {
		return ring.SlotDraining
	}
	return ""
}

// isStopping reports whether a step which stops an instance is in flight.
func (t *Pass) isStopping(id ring.ServiceID, in *instance) bool {
	a := t.inFlight(id)
	return a != nil && a.Instance == in.ID && (a.Kind == ring.DoRemove || a.Kind == ring.DoStop)
}
