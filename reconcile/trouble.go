package reconcile

import (
	"cmp"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// What is in trouble is compared, at the end of each look, with what was: a
// beginning that no other event tells, and every end, is journalled once. An end
// needs proof. A source that was not heard yet, a rollout that is under way, a
// service that somebody holds are no proof of anything.

// degradedFor is how long a service may be less than its plan asks before that is
// told: one check that fails and passes again is nobody's business.
const degradedFor = 2 * time.Minute

// wellFor is how long it has to be well before that is told: what crashes again and
// again is ready in between.
const wellFor = degradedFor

// tellTroubles looks at the status that this turn came to. A host that is well costs
// one walk over it and nothing else.
func (t *decider) tellTroubles() {
	for i := range t.overview.Sources {
		st := &t.overview.Sources[i]
		t.sourceTrouble(&t.Sources[i], st)
		for j := range st.Apps {
			a := &st.Apps[j]
			if a.Refusal != nil {
				t.beginTrouble(ring.Trouble{What: ring.TroubleApp, Subject: a.Name, Source: st.Name, Commit: a.Refusal.Commit, Reason: a.Refusal.Says, Told: true})
			}
			for k := range a.Services {
				t.serviceTrouble(st, a, k)
			}
		}
	}
	for _, key := range sortedKeys(t.Facts.Troubles) {
		t.endTrouble(t.Facts.Troubles[key])
	}
}

func (t *decider) sourceTrouble(src *Source, st *ring.SourceStatus) {
	if r := st.Refusal; r != nil {
		t.beginTrouble(ring.Trouble{What: ring.TroubleSource, Subject: st.Name, Source: st.Name, Commit: r.Commit, Reason: r.Says, Told: true})
	}
	if st.Condition(ring.ConditionStale) != nil {
		t.beginTrouble(ring.Trouble{
			What: ring.TroubleStale, Subject: st.Name, Source: st.Name, Told: true,
			Reason: cmp.Or(src.Reason, "the remote does not answer") + "; last reached " + reachedSays(src.Reached),
		})
	}
	if old := st.Condition(ring.ConditionOld); old != nil {
		t.beginTrouble(ring.Trouble{What: ring.TroubleOld, Subject: st.Name, Source: st.Name, Commit: old.Commit, Reason: old.Reason, Told: true})
	}
}

// silentSince is since when the remote does not answer, as far as this process looked;
// zero where nobody can say.
func (s *Source) silentSince(awake time.Time) time.Time { return laterOf(s.Reached, awake) }

func reachedSays(at time.Time) string {
	if at.IsZero() {
		return "before this daemon began"
	}
	return clock(at)
}

func (t *decider) serviceTrouble(st *ring.SourceStatus, a *ring.AppStatus, i int) {
	s := &a.Services[i]
	tr := ring.Trouble{Source: st.Name, Commit: cmp.Or(s.Commit, a.Commit), Reason: s.Reason, Code: s.Code}
	switch {
	case jobFailing(s):
		tr.What, tr.Told = ring.TroubleJob, true
		if s.LastRun != nil {
			tr.Reason = s.LastRun.Reason
		}
	case s.Kind != ring.Worker:
		return
	default:
		t.workerTrouble(tr, a, i)
		return
	}
	tr.Subject = string(ring.ID(a.Name, s.Name))
	t.beginTrouble(tr)
}

// workerTrouble is of a service: its rollout's, and what the version that serves has
// besides. Each ends for itself.
func (t *decider) workerTrouble(tr ring.Trouble, a *ring.AppStatus, i int) {
	s, v := &a.Services[i], t.viewOf(a, i)
	failed := rolloutFailed(v, s)
	if len(s.Conditions) == 0 && !failed && s.Phase != ring.PhaseDegraded {
		return // it is well
	}
	tr.Subject = string(ring.ID(a.Name, s.Name))
	t.rememberLacking(tr, v, s)
	if failed {
		of := tr
		of.What, of.Commit, of.Reason, of.Told = ring.TroubleRollout, s.Rollout.Commit, s.Rollout.Reason, true
		t.beginTrouble(of)
	}
	why, told := standingReason(s)
	if why == "" && (failed || s.Phase != ring.PhaseDegraded) {
		return
	}
	tr.What, tr.Reason, tr.Told = ring.TroubleService, cmp.Or(why, s.Reason), told
	t.beginTrouble(tr)
}

// jobFailing reports whether the last run of a job failed.
func jobFailing(s *ring.ServiceStatus) bool {
	return s.Kind == ring.JobK && s.Phase == ring.PhaseFailed || s.LastRun != nil && s.LastRun.State == jobFailed
}

// rolloutFailed reports whether a version was judged, and does not serve.
func rolloutFailed(v *service, s *ring.ServiceStatus) bool {
	return s.Rollout != nil && s.Rollout.Phase != ring.RolloutProgressing && v != nil && (v.failed != nil || v.filesFailed != nil)
}

// standingReason is why a service is in trouble whatever its phase, and whether something else
// told it already; "" when it is not.
func standingReason(s *ring.ServiceStatus) (why string, told bool) {
	for i := range s.Conditions {
		switch c := &s.Conditions[i]; c.Type {
		case ring.ConditionCrashLooping, ring.ConditionContested:
			return c.Reason, true
		case ring.ConditionFrontFull, ring.ConditionFrontCrashing:
			why = c.Reason
		}
	}
	return why, false
}

// beginTrouble remembers what is in trouble, and tells its beginning where nothing
// else does.
func (t *decider) beginTrouble(tr ring.Trouble) {
	old, known := t.Facts.Troubles[ring.TroubleKey(tr.What, tr.Subject)]
	if !known {
		tr.Since = t.now
		t.setFact(tr)
		if tr.What == ring.TroubleStale {
			t.addEvent(ring.Event{Kind: ring.SourceStale, Source: tr.Source, Reason: tr.Reason})
		}
		if tr.What == ring.TroubleOld {
			t.addEvent(ring.Event{Kind: ring.SourceOld, Source: tr.Source, Commit: tr.Commit, Reason: tr.Reason})
		}
		return
	}
	if old.Source != tr.Source { // the app is another source's now, and no better for it
		old.Source = tr.Source
		t.setFact(old)
	}
	if old.Told {
		return
	}
	if !tr.Told && t.now.Sub(old.Since) < degradedFor {
		return
	}
	old.Told, old.Commit, old.Reason, old.Code = true, tr.Commit, tr.Reason, tr.Code
	t.setFact(old)
	if !tr.Told { // else a crash or hands of others told it
		t.addEvent(t.troubleEvent(ring.AppIsDegraded, old, tr.Reason))
	}
}

// endTrouble tells the end of what is over, and forgets it.
func (t *decider) endTrouble(tr ring.Trouble) {
	says, over := t.troubleOver(tr)
	if !over {
		return
	}
	t.setFact(ring.Forget{Table: "trouble", Key: ring.TroubleKey(tr.What, tr.Subject)})
	if !tr.Told || says == "" {
		return
	}
	kind := map[string]string{
		ring.TroubleRollout: ring.RolloutRecovered, ring.TroubleJob: ring.JobRecovered,
		ring.TroubleSource: ring.SourceRecovered, ring.TroubleStale: ring.SourceRecovered,
		ring.TroubleService: ring.AppRecovered, ring.TroubleApp: ring.AppRecovered, ring.TroubleOld: ring.SourceRenewed,
	}[tr.What]
	t.addEvent(t.troubleEvent(kind, tr, say("%s, which ends what began %s: %s", says, clock(tr.Since), tr.Reason)))
}

func (t *Pass) troubleEvent(kind string, tr ring.Trouble, says string) ring.Event {
	e := ring.Event{Kind: kind, Source: tr.Source, Commit: tr.Commit, Reason: says}
	if kind == ring.AppIsDegraded {
		e.Code = tr.Code
	}
	switch tr.What {
	case ring.TroubleSource, ring.TroubleStale, ring.TroubleOld:
	case ring.TroubleApp:
		e.App = tr.Subject
	default:
		e.App, e.Service = ring.ServiceID(tr.Subject).Split()
	}
	if f, ok := t.Facts.Apps[e.App]; ok && kind != ring.AppIsDegraded {
		e.Commit = f.App.Commit // what is well now
	}
	return e
}

// troubleOver reports whether a trouble ended, and what there is instead; "" where that is of
// nobody's interest.
func (t *decider) troubleOver(tr ring.Trouble) (says string, over bool) {
	src := t.sourceNamed(tr.Source)
	if src == nil {
		return "", true // followed no more
	}
	switch tr.What {
	case ring.TroubleStale:
		from := src.silentSince(t.Awake)
		return "the remote answers again", !src.Reached.IsZero() && !src.Reached.Before(tr.Since) && t.now.Sub(from) <= src.FreshFor
	case ring.TroubleOld:
		switch {
		case src.MaxAge <= 0:
			return "max_age is not set any more", true
		case src.oldAt().IsZero() || src.oldCondition(t.wallClock()) != nil:
			return "", false
		case src.Commit.SHA != tr.Commit:
			return say("commit %s is trusted", src.Commit.SHA.Short()), true
		case t.wallClock().Before(tr.Since):
			return "", false // the clock went back, and no commit came
		}
		return say("max_age is %s now", daysSays(src.MaxAge)), true
	case ring.TroubleSource:
		n := src.Next
		if src.Refusal != nil || n == nil || n.Refusal != nil || src.Tip != n.Commit {
			return "", false
		}
		return say("commit %s is trusted", n.Commit.Short()), true
	case ring.TroubleApp:
		return t.appOver(src, tr)
	case ring.ConditionAvailable, ring.ConditionImageResolved:
		return "", !t.lacked[ring.TroubleKey(tr.What, tr.Subject)]
	}
	return t.serviceOver(tr)
}

func (t *Pass) appOver(src *Source, tr ring.Trouble) (string, bool) {
	if src.Next == nil || src.Next.Refusal != nil {
		return "", false
	}
	if t.appRefusal(src, tr.Subject) != nil {
		return "", false
	}
	f, ok := t.Facts.Apps[tr.Subject]
	switch {
	case ok && !t.staging[tr.Subject].None():
		return "", false // not carried out yet
	case ok && f.App.Source == tr.Source:
		return say("plan %s is in force", f.App.Commit.Short()), true
	}
	return "it is no longer in the repository", t.nextApp(src, tr.Subject) == nil
}

func (t *decider) serviceOver(tr ring.Trouble) (string, bool) {
	s := t.serviceShown(tr)
	if s == nil || s.Phase == ring.PhaseRemoving {
		return "it is no longer in the plan", true
	}
	if tr.What == ring.TroubleJob {
		if jobFailing(s) || s.Kind == ring.Worker {
			return "it is no job any more", s.Kind == ring.Worker
		}
		return "a run succeeded", s.Phase == ring.PhaseCompleted || s.LastRun != nil && s.LastRun.State == jobSucceeded
	}
	if s.Kind != ring.Worker {
		return "it is a job now", true
	}
	if tr.What == ring.TroubleRollout {
		return s.Reason, s.Phase == ring.PhaseReady && s.Rollout == nil
	}
	says := s.Reason
	if s.Rollout != nil {
		says = "well again with the version that was kept"
	}
	why, _ := standingReason(s)
	return says, t.wellForLong(tr, s.Phase == ring.PhaseReady && why == "")
}

// wellForLong reports whether a service is well, and has been for as long as it takes. A trouble
// that nobody was told of is over at once.
func (t *decider) wellForLong(tr ring.Trouble, well bool) bool {
	switch {
	case !tr.Told:
		return well
	case !well && !tr.Well.IsZero():
		tr.Well = time.Time{}
		t.setFact(tr)
	case well && tr.Well.IsZero():
		tr.Well = t.now
		t.setFact(tr)
		t.wakeBy(t.now.Add(wellFor))
	case well && t.now.Sub(tr.Well) < wellFor:
		t.wakeBy(tr.Well.Add(wellFor))
	case well:
		return true
	}
	return false
}

// serviceShown is a service as the status has it; nil when it has not.
func (t *Pass) serviceShown(tr ring.Trouble) *ring.ServiceStatus {
	app, service, _ := strings.Cut(tr.Subject, "/")
	for i := range t.overview.Sources {
		st := &t.overview.Sources[i]
		if st.Name != tr.Source {
			continue
		}
		for j := range st.Apps {
			if st.Apps[j].Name != app {
				continue
			}
			for k := range st.Apps[j].Services {
				if s := &st.Apps[j].Services[k]; s.Name == service {
					return s
				}
			}
		}
	}
	return nil
}
