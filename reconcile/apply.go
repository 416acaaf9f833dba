package reconcile

import (
	"strings"

	"github.com/gitring/gitring/ring"
)

// observePlan says what the next plan of a source would change, and changes nothing.
func (t *Pass) observePlan(src *Source) {
	says := "nothing would change"
	if would := t.wouldChange(src, t.servicesPresent(src.Name)); would != "" {
		says = "would " + would
		put(&t.differs, src.Name, true)
	}
	put(&t.watched, src.Name, "observe: "+says)
}

// wouldChange is what carrying out the next plan of a source would do, by services;
// "" when nothing. What runs already, as that version, is nothing new though the
// store does not know of it.
func (t *Pass) wouldChange(src *Source, present map[string][]string) string {
	n := t.changeCounts(src, present)
	var out []string
	for _, class := range []ring.Class{ring.ChangeCreate, ring.ChangeRoll, ring.ChangeRecreate, ring.ChangeInPlace, ring.ChangeRemove} {
		if n[class] > 0 {
			verb := string(class)
			if class == ring.ChangeInPlace {
				verb = "change in place"
			}
			out = append(out, say("%s %d", verb, n[class]))
		}
	}
	return strings.Join(out, ", ")
}

// changeCounts are the services of each class of change in the next plan of a source.
func (t *Pass) changeCounts(src *Source, present map[string][]string) map[ring.Class]int {
	n := map[ring.Class]int{}
	for i := range src.Next.Apps {
		next := &src.Next.Apps[i]
		if !t.withheldReason(next.Name).None() {
			continue
		}
		have, app := t.Facts.Apps[next.Name].App, t.pinnedAs(next)
		for i := range app.Services {
			s := &app.Services[i]
			c := t.classifyNow(&have, &app, s)
			if c.class == ring.ChangeCreate && s.Version != "" && t.runsAs(ring.ID(next.Name, s.Name), s.Version) {
				continue
			}
			n[c.class]++
		}
		n[ring.ChangeRemove] += len(servicesGone(&have, next))
	}
	for _, app := range sortedKeys(present) {
		if t.nextApp(src, app) == nil && t.appRefusal(src, app) == nil && t.withheldReason(app).None() {
			n[ring.ChangeRemove] += len(present[app])
		}
	}
	return n
}

// countPlan tells how many services a plan changes, adds and removes. It is counted
// before anything of the plan is in force, because that is no change any more,
// and from then on taken from what was told.
func (t *Pass) countPlan(src *Source, present map[string][]string) {
	p, told := t.Facts.Posts[ring.PostKey(src.Next.Commit, t.postContext(""))]
	if p.Tally != "" {
		put(&t.tally, src.Name, p.Tally)
		return
	}
	if told && (!p.Open() || p.Phase != "") {
		return // it is told of something else by now
	}
	n := t.changeCounts(src, present)
	changed, added, removed := n[ring.ChangeRoll]+n[ring.ChangeRecreate]+n[ring.ChangeInPlace], n[ring.ChangeCreate], n[ring.ChangeRemove]
	if changed+added+removed > 0 {
		put(&t.tally, src.Name, say("plan %d~ %d+ %d-; ", changed, added, removed))
	}
}

// runsAs reports whether an instance of a version is there.
func (t *Pass) runsAs(id ring.ServiceID, version ring.Version) bool {
	for _, in := range t.seen[id] {
		if in.Version == version {
			return true
		}
	}
	return false
}

// stageWhole puts the apps of a plan in force at once, when each of them could
// be, or none.
func (t *decider) stageWhole(src *Source, present map[string][]string) {
	plan := src.Next
	var all []staged
	waits, dead := "", false
	for _, name := range sortedKeys(plan.Refused) {
		waits, dead = name, true
		break
	}
	for i := range plan.Apps {
		s, ready := t.prepareApp(src, &plan.Apps[i])
		name := plan.Apps[i].Name
		switch {
		case ready:
			all = append(all, s)
		case t.hostRefusal(src, name) != nil && !dead:
			waits, dead = name, true
		case !t.staging[name].None() && waits == "":
			waits = name
		}
	}
	if waits == "" && !t.waved[src.Name].None() {
		for i := range all {
			t.stageWaved(src, all[i].app.Name)
		}
		t.leaveApps(src, present)
		return
	}
	if waits == "" {
		for i := range all {
			t.putInForce(src, all[i].app, all[i].have, all[i].known)
		}
		t.leaveApps(src, present)
		return
	}
	why := ring.Reason{
		Code: ring.WhyAppNotReady,
		Says: say("waits for app %s: this source carries out all of a commit or nothing", waits),
	}
	if dead {
		why = ring.Reason{
			Code: ring.WhyAppRefused, Dead: true,
			Says: say("waits for app %s, which is refused: this source carries out all of a commit or nothing", waits),
		}
	}
	for i := range all {
		put(&t.staging, all[i].app.Name, why)
		put(&t.blocked, all[i].app.Name, dead)
	}
}
