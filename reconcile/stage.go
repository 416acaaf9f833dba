package reconcile

import (
	"maps"

	"github.com/gitring/gitring/ring"
)

// stagePlan brings the newest plan of a source into force, app by app: each only
// when everything for it is here, at once and whole. Until then the plan in
// force stays, and is healed, as if there were no next one.
func (t *decider) stagePlan(src *Source) {
	plan := src.Next
	if plan == nil || plan.Refusal != nil {
		return
	}
	if src.Apply == ApplyObserve {
		t.observePlan(src)
		return
	}
	if t.inForce(src) {
		return
	}
	present := t.servicesPresent(src.Name)
	t.judgeWaves(src, present)
	if why := t.guardReason(src, present); why != "" {
		put(&t.held, src.Name, ring.Reason{Code: ring.WhyAwaitingApproval, Says: awaitingSays(plan.Commit, why)})
		t.tellAwaited(ring.AwaitedRow{Source: src.Name, Commit: plan.Commit, Reason: why})
		return
	}
	if _, ok := t.Facts.Awaited[src.Name]; ok {
		t.setFact(ring.Forget{Table: "awaited", Key: src.Name})
	}
	if why := t.waved[src.Name]; why.Code == ring.WhyWaveFailed {
		put(&t.held, src.Name, why)
	}
	t.countPlan(src, present)
	if src.Apply == ApplyCommit {
		t.stageWhole(src, present)
		return
	}
	var waiting []staged
	for i := range plan.Apps {
		s, ready := t.prepareApp(src, &plan.Apps[i])
		switch {
		case !ready:
		case !t.waved[src.Name].None():
			t.stageWaved(src, s.app.Name)
		case !t.behindOther(src, &s.app, nil).None():
			waiting = append(waiting, s)
		default:
			t.putInForce(src, s.app, s.have, s.known)
		}
	}
	t.forceAtOnce(src, waiting)
	t.leaveApps(src, present)
	for i := range plan.Apps {
		t.blockApp(src, plan.Apps[i].Name)
	}
	for _, name := range sortedKeys(t.stays) {
		if present[name] != nil && t.nextApp(src, name) == nil {
			t.blockApp(src, name)
		}
	}
}

// stageWaved remembers that an app which has all it needs, or which goes, waits for other hosts.
// One that failed on them is not on its way: what is in force is told as it is.
func (t *Pass) stageWaved(src *Source, app string) {
	if why := t.waved[src.Name]; why.Code == ring.WhyWaveWaiting {
		put(&t.staging, app, why)
	}
}

// blockApp says of an app that waits for a refused one, at whatever distance, that
// it waits for nothing that is under way.
func (t *Pass) blockApp(src *Source, name string) {
	stay, stays := t.stays[name]
	if !stays && t.staging[name].None() || t.hostRefusal(src, name) != nil {
		return
	}
	on := t.refusedBefore(src, name, map[string]bool{})
	if on != "" || stay.Dead {
		put(&t.blocked, name, true)
	}
	if on == "" {
		return
	}
	why := ring.Reason{Code: ring.WhyAppRefused, Dead: true, Says: say("waits for app %s, which is refused", on)}
	if stays {
		if why.Says = stay.Says; on != stay.on { // else it says so already
			why.Says = say("%s and waits for app %s, which is refused", why.Says, on)
		}
		stay.Reason = why
		t.stays[name] = stay
	}
	if !t.staging[name].None() {
		t.staging[name] = why
	}
}

// refusedBefore is a refused app that the named one waits for; "" when there is none.
func (t *Pass) refusedBefore(src *Source, name string, met map[string]bool) string {
	if met[name] {
		return "" // a circle waits for itself
	}
	met[name] = true
	if stay, ok := t.stays[name]; ok {
		if t.refusedHere(src, stay.on) {
			return stay.on
		}
		if on := t.refusedBefore(src, stay.on, met); on != "" {
			return on
		}
	}
	app := t.nextApp(src, name)
	if app == nil {
		return ""
	}
	for _, after := range app.After {
		if t.refusedHere(src, after.App) {
			return after.App
		}
		if on := t.refusedBefore(src, after.App, met); on != "" {
			return on
		}
	}
	return ""
}

// refusedHere reports whether an app of a plan is refused, by who read the plan or by this host.
func (t *Pass) refusedHere(src *Source, app string) bool {
	return src.Next.Refused[app] != nil || t.hostRefusal(src, app) != nil
}

// hostRefusal is why this host refuses an app of a source; nil where it does not.
func (t *Pass) hostRefusal(src *Source, app string) *ring.Refusal {
	if r := t.nameTaken[[2]string{src.Name, app}]; r != nil {
		return r
	}
	return t.refused[app]
}

// inForce reports whether every app of the plan is in force and none is left over.
func (t *Pass) inForce(src *Source) bool {
	n := 0
	for _, f := range t.Facts.Apps {
		if f.App.Source == src.Name && !f.Leaving {
			n++
		}
	}
	if n != len(src.Next.Apps) {
		return false
	}
	for i := range src.Next.Apps {
		next := &src.Next.Apps[i]
		if f, ok := t.Facts.Apps[next.Name]; !ok || f.App.Source != src.Name || !isAsked(&f, next) || t.isRefreshing(next) {
			return false
		}
	}
	for i := range t.Seen.Instances {
		if in := &t.Seen.Instances[i]; in.Source == src.Name {
			if _, ok := t.Facts.Apps[in.App]; !ok {
				return false
			}
		}
	}
	return true
}

// staged is an app of a next plan that has all it needs, and what is in force.
type staged struct {
	app   ring.App
	have  ring.InForce
	known bool
}

// prepareApp resolves and pulls what one app needs, and has the host asked. It says
// whether the app is ready to be in force, which it is not where it is already.
func (t *decider) prepareApp(src *Source, next *ring.App) (s staged, ready bool) {
	have, ok := t.Facts.Apps[next.Name]
	if r := t.nameRefusal(src, next); r != nil {
		put(&t.nameTaken, [2]string{src.Name, next.Name}, r)
		return s, false
	}
	same := ok && isAsked(&have, next)
	if same && !t.isRefreshing(next) {
		return s, false
	}
	if says := src.Next.Awaits[next.Name]; says != "" {
		put(&t.staging, next.Name, ring.Reason{Code: ring.WhySecretPending, Says: says})
		return s, false
	}
	if why := t.withheldReason(next.Name); !why.None() {
		put(&t.staging, next.Name, why)
		return s, false
	}
	if r := t.keptByOthers(next); r != nil {
		put(&t.refused, next.Name, r)
		return s, false
	}
	if h := next.Hold; t.isHeldInFile(h) {
		put(&t.staging, next.Name, declaredReason(h))
		t.wakeBy(h.Until)
		return s, false
	}
	if why := t.waitsFor(src, next); !why.None() && src.Apply != ApplyCommit && t.waved[src.Name].None() {
		put(&t.staging, next.Name, why)
		return s, false
	}
	app, ready := t.pinApp(next, &have.App)
	for i := range app.Services {
		s := &app.Services[i]
		old, _ := inForce(&have.App, s.Name)
		if s.Version != "" && old.Version != s.Version && !(t.imageVerified(&app, s) && t.imagePulled(&app, s)) {
			ready = false
		}
	}
	if !ready || t.hostRefusal(src, next.Name) != nil {
		return s, false
	}
	if same && samePins(&have.App, &app) {
		t.endRefreshes(&app)
		return s, false
	}
	return staged{app, have, ok}, t.admitApp(&app, have, ok)
}

// waitsFor is why an app cannot be staged because of the apps it is after.
func (t *Pass) waitsFor(src *Source, next *ring.App) ring.Reason {
	for _, after := range next.After {
		if src.Next.Refused[after.App] != nil {
			return waitsForApp(after.App)
		}
		if t.nextApp(src, after.App) == nil {
			continue // of another source: its own state gates the rollout
		}
		if t.inForceAt(after.App, next.Commit) || t.waitsInTurn(src, after.App, next.Name) {
			continue // or the two come into force at once
		}
		return waitsForApp(after.App)
	}
	return ring.Reason{}
}

func waitsForApp(name string) ring.Reason {
	return ring.Reason{Code: ring.WhyAppNotReady, Says: say("waits for app %s", name)}
}

// inForceAt reports whether a commit's plan of an app is in force.
func (t *Pass) inForceAt(app string, commit ring.SHA) bool {
	f, ok := t.Facts.Apps[app]
	return ok && f.App.Commit == commit
}

// putInForce puts an app in force.
func (t *decider) putInForce(src *Source, app ring.App, have ring.InForce, known bool) {
	for i := range app.Services {
		s := &app.Services[i]
		old, ok := inForce(&have.App, s.Name)
		s.Changed = app.Commit
		if ok && old.Version == s.Version && maps.Equal(old.Reload.Content(), s.Reload.Content()) {
			s.Changed = old.Changed
		}
		t.keepPin(&app, s)
		if !ok || old.Pin.Digest() != s.Pin.Digest() {
			t.resolvedAnew(&app, s)
		}
	}
	t.tellFollowed(&have.App, &app)
	t.endRefreshes(&app)
	f := ring.InForce{App: app, Since: t.now}
	if c := src.Commit; c != nil && c.SHA == app.Commit {
		f.Signer, f.Subject, f.Committed = c.Signer, c.Subject, c.ClaimedAt
	}
	t.setFact(f)
	t.acceptName(&app)
	t.giveUpData(&have.App, &app)
	t.forgetVerdicts()
	if !known || !sameApp(have.App, app) {
		t.addEvent(ring.Event{
			Kind: ring.AppInForce, Source: app.Source, App: app.Name, Commit: app.Commit, Version: ring.AskedVersion(&app),
			Reason: say("plan %s is in force", app.Commit.Short()),
		})
	}
	t.tellPowers(&have.App, &app)
}

// sameApp reports whether b asks nothing new, whichever commit asked.
func sameApp(a, b ring.App) bool {
	if len(a.Services) != len(b.Services) {
		return false
	}
	for i := range a.Services {
		x, y := &a.Services[i], &b.Services[i]
		if x.Changed != y.Changed || x.Line != y.Line || !sameService(x, y) {
			return false
		}
	}
	a.Commit, a.Services, b.Services = b.Commit, nil, nil
	return sameJSON(a, b)
}

// leaveApps marks apps of src that are not in its plan; tidy removes what is left. One
// that another takes over from serves until that can.
func (t *decider) leaveApps(src *Source, present map[string][]string) {
	for _, name := range sortedKeys(present) {
		if t.nextApp(src, name) != nil || t.appRefusal(src, name) != nil || !t.withheldReason(name).None() {
			continue
		}
		if !t.waved[src.Name].None() {
			t.stageWaved(src, name)
			continue
		}
		if stay := t.stayReason(src, name); !stay.None() {
			put(&t.stays, name, stay)
			continue
		}
		if _, known := t.Facts.Apps[name]; !known && !t.isAtTip(src) {
			continue // it may have come since what is remembered
		}
		app := t.Facts.Apps[name].App
		t.giveUpData(&app, &ring.App{Commit: src.Next.Commit})
		app.Name, app.Source, app.Commit = name, src.Name, src.Next.Commit
		app.Powers = nil
		app.Services, app.Networks, app.Volumes = nil, nil, nil // volumes are never removed: nothing here names them any more
		t.setFact(ring.InForce{App: app, Since: t.now, Leaving: true})
		t.addEvent(ring.Event{Kind: ring.AppInForce, Source: src.Name, App: name, Commit: src.Next.Commit, Reason: "left the commit", Code: ring.WhyLeftPlan})
	}
}

// tellAwaited tells once that a plan began to wait for a person. What the forge was told
// cannot stand for that: it is late, or of two sources at once.
func (t *decider) tellAwaited(row ring.AwaitedRow) {
	if t.Facts.Awaited[row.Source] == row {
		return
	}
	t.setFact(row)
	t.addEvent(ring.Event{Kind: ring.PlanAwaiting, Source: row.Source, Commit: row.Commit, Reason: row.Reason, Code: ring.WhyAwaitingApproval})
}
