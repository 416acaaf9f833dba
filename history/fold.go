package history

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// unrolled are, by source and commit, the services that a commit in force asks anew and that
// are not there yet, each with why.
type unrolled map[[2]string]map[string]string

// unrolledOf are those of the apps in force, as far as the status tells.
func unrolledOf(inForce map[string]ring.InForce, st *ring.Status) unrolled {
	out := unrolled{}
	for i := range st.Sources {
		for j := range st.Sources[i].Apps {
			a := &st.Sources[i].Apps[j]
			f, ok := inForce[a.Name]
			if !ok || f.App.Source != st.Sources[i].Name {
				continue
			}
			for k := range a.Services {
				sv := &a.Services[k]
				at := slices.IndexFunc(f.App.Services, func(s ring.Service) bool { return s.Name == sv.Name })
				if at < 0 || sv.Kind == ring.CronK || f.App.Services[at].Changed != f.App.Commit || isThere(sv) {
					continue
				}
				key := [2]string{f.App.Source, string(f.App.Commit)}
				if out[key] == nil {
					out[key] = map[string]string{}
				}
				out[key][a.Name+"/"+sv.Name] = sv.Reason
			}
		}
	}
	return out
}

// Present is what of the commits of a journal counts now.
type Present struct {
	open unrolled
	// runs has the commits, by source, of which something is in force or runs; nil where
	// nobody knows.
	runs map[[2]string]bool
	// undone are the apps whose plan a person brought back, each with the commit of that plan
	// and by whom.
	undone map[string]undoneApp
	// synced are the commits, by source, that their hosts are as.
	synced map[[2]string]bool
	// held are the commits, by source, that a person's hold or undo keeps from coming, with why.
	held map[[2]string]string
}

type undoneApp struct {
	to    ring.SHA
	asked ring.Version // what the plan asks that is back
	says  string
}

// PresentOf is what the ledger and the status tell.
func PresentOf(inForce map[string]ring.InForce, st *ring.Status) Present {
	p := Present{open: unrolledOf(inForce, st), runs: map[[2]string]bool{}, undone: map[string]undoneApp{}, synced: map[[2]string]bool{}, held: map[[2]string]string{}}
	for name := range inForce {
		app := inForce[name].App
		p.runs[[2]string{app.Source, string(app.Commit)}] = true
		for i := range app.Services {
			p.runs[[2]string{app.Source, string(app.Services[i].Changed)}] = true
		}
		if inForce[name].Undone {
			p.undone[name] = undoneApp{app.Commit, ring.AskedVersion(&app), name + ": undone to " + app.Commit.Short()}
		}
	}
	for i := range st.Sources {
		if src := &st.Sources[i]; src.Sync == ring.SyncSynced {
			p.synced[[2]string{src.Name, string(src.Commit)}] = true
		}
		if n := st.Sources[i].Next; n != nil && isHold(n.Code) {
			p.held[[2]string{st.Sources[i].Name, string(n.Commit)}] = n.Reason
		}
		for j := range st.Sources[i].Apps {
			for k := range st.Sources[i].Apps[j].Services {
				p.runs[[2]string{st.Sources[i].Name, string(st.Sources[i].Apps[j].Services[k].Running)}] = true
			}
		}
	}
	for i := range st.Overrides {
		o := &st.Overrides[i]
		if of, undone := p.undone[o.Target]; undone && o.Kind == string(ring.OverrideUndo) {
			of.says += " by " + o.Actor + ": " + o.Reason
			p.undone[o.Target] = of
		}
	}
	return p
}

// PresentOfStatus is what a status alone tells, where nobody has the plans in force: whatever is
// of a commit that an app or a service names counts as in force.
func PresentOfStatus(st *ring.Status) Present {
	p := PresentOf(nil, st)
	for i := range st.Sources {
		src := &st.Sources[i]
		for j := range src.Apps {
			p.runs[[2]string{src.Name, string(src.Apps[j].Commit)}] = true
			for k := range src.Apps[j].Services {
				p.runs[[2]string{src.Name, string(src.Apps[j].Services[k].Commit)}] = true
			}
		}
	}
	return p
}

// isHold reports whether a person keeps something as it is, and a yes to a plan changes nothing.
func isHold(code ring.ReasonCode) bool {
	return code == ring.WhyHeldByPerson || code == ring.WhyUndoneByPerson || code == ring.WhyLeftToCompose
}

// isThere reports whether a service is what its plan asks.
func isThere(sv *ring.ServiceStatus) bool {
	return sv.Rollout == nil && (sv.Phase == ring.PhaseReady || sv.Phase == ring.PhaseCompleted)
}

// Commits is what became of each commit that lines tell of, the newest first as the lines are; with
// an app, of those that it took, as far as they are about it.
func Commits(events []ring.Event, app string, now Present) []api.CommitNow {
	if app != "" {
		events = OfApp(events, app)
		for _, of := range now.open {
			maps.DeleteFunc(of, func(id, _ string) bool { return !strings.HasPrefix(id, app+"/") })
		}
	}
	return Fold(events, now)
}

// OfApp are the lines about an app, and those about the commits that it took.
func OfApp(events []ring.Event, app string) []ring.Event {
	its := map[ring.SHA]bool{}
	for i := range events {
		if events[i].App == app {
			its[events[i].Commit] = true
		}
	}
	return slices.DeleteFunc(events, func(e ring.Event) bool { return e.App != app && (e.App != "" || !its[e.Commit]) })
}

// Fold makes a commit of all lines of the journal about it. The lines are the newest
// first, and so are the commits, by when each was first seen.
func Fold(events []ring.Event, now Present) []api.CommitNow {
	folds := map[[2]string]*fold{}
	var order []*fold
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		if e.Commit == "" || strings.HasPrefix(e.Kind, "override.") {
			continue
		}
		key := [2]string{e.Source, string(e.Commit)}
		f := folds[key]
		if f == nil {
			f = &fold{now: api.CommitNow{Source: e.Source, Commit: e.Commit, At: e.At}, last: map[string]*ring.Event{}}
			folds[key] = f
			order = append(order, f)
		}
		f.take(e)
	}
	passed := map[string]bool{} // sources with a newer commit that was carried out
	for _, f := range slices.Backward(order) {
		f.passed = passed[f.now.Source]
		passed[f.now.Source] = f.passed || f.done(now)
	}
	commits := make([]api.CommitNow, len(order))
	back := map[string]bool{}
	for i, f := range order {
		f.takenBack(now, back)
		commits[len(order)-1-i] = f.outcome(now)
		for name, of := range now.undone { // what comes after it was taken back
			if f.now.Commit == of.to {
				back[name] = true
			}
		}
	}
	return commits
}

// answers is whose content a commit brings, where its signer is somebody else.
var answers = regexp.MustCompile(`(content by|vouched by) .*`)

// fold is what the journal says of one commit.
type fold struct {
	now      api.CommitNow
	last     map[string]*ring.Event // the newest line of each app, and of each service
	refused  *ring.Event
	awaiting *ring.Event
	said     []string // what persons did
	undone   []string // which apps of it a person took back
	moves    []move   // of tags that its services follow, the oldest first
	again    bool     // an app of it asks for what an undo brought back, so that runs
	passed   bool     // a newer commit of its source was carried out
}

// move is a tag that moved after the commit had it resolved, with what came of it.
type move struct{ id, says, verdict string }

// movesTold is of how many of the newest moves a commit's line tells.
const movesTold = 3

// takeMove notes a move, or what came of the newest one of a service.
func (f *fold) takeMove(e *ring.Event) {
	id := e.App + "/" + e.Service
	if e.Kind == ring.TagFollowed {
		f.moves = append(f.moves, move{id, id + ": " + e.Reason, api.OutcomeAccepted})
		return
	}
	verdict := map[string]string{
		ring.RolloutCompleted: api.OutcomeLive, ring.RolloutFailed: api.OutcomeFailed, ring.RolloutAborted: api.OutcomeFailed,
		ring.RolloutRestored: api.OutcomeRestored, ring.RolloutSuperseded: api.OutcomeSuperseded,
		ring.JobSucceeded: api.OutcomeLive, ring.JobFailed: api.OutcomeJob,
	}[e.Kind]
	for i := len(f.moves) - 1; i >= 0 && verdict != ""; i-- {
		if m := &f.moves[i]; m.id == id {
			if m.verdict == api.OutcomeAccepted || m.verdict == api.OutcomeFailed {
				m.verdict = verdict
			}
			return
		}
	}
}

// movesSay are the newest moves with what came of each.
func (f *fold) movesSay() (out []string) {
	for _, m := range f.moves[max(0, len(f.moves)-movesTold):] {
		out = append(out, m.says+" ("+m.verdict+")")
	}
	if more := len(f.moves) - movesTold; more > 0 {
		out = append(out, fmt.Sprintf("%d moves of tags before", more))
	}
	return out
}

// keptOver are the ends of a rollout that a newer commit does not change.
var keptOver = []string{ring.RolloutCompleted, ring.RolloutFailed, ring.RolloutRestored, ring.RolloutAborted}

func (f *fold) take(e *ring.Event) {
	f.takeMove(e)
	switch e.Kind {
	case ring.TagApproved:
		f.said = append(f.said, fmt.Sprintf("approved by %s: %s", e.Actor, e.Reason))
	case ring.CommitAccepted:
		f.refused, f.now.Signer = nil, cmp.Or(e.Actor, f.now.Signer)
		if whose := answers.FindString(e.Reason); whose != "" {
			f.said = append(f.said, whose)
		}
	case ring.CommitRefused:
		f.refused = e
	case ring.PlanAwaiting:
		f.awaiting = e
	case ring.PlanApproved:
		f.awaiting = nil
		f.said = append(f.said, fmt.Sprintf("approved by %s: %s", e.Actor, e.Reason))
	case ring.TrustAccepted:
		f.refused = nil
		f.said = append(f.said, fmt.Sprintf("accepted by %s: %s", e.Actor, e.Reason))
	case ring.RolloutBegan:
		if id := e.App + "/" + e.Service; f.last[id] == nil { // a restart takes nothing back
			f.last[id] = e
		}
	case ring.RolloutSuperseded:
		// What completed ran: only a rollout back to it did not end. What failed has failed: a
		// newer commit came while the version before it was brought back.
		if id := e.App + "/" + e.Service; f.last[id] == nil || !slices.Contains(keptOver, f.last[id].Kind) {
			f.last[id] = e
		}
	case ring.RolloutCompleted, ring.RolloutFailed, ring.RolloutRestored, ring.RolloutAborted, ring.JobSucceeded, ring.JobFailed:
		f.last[e.App+"/"+e.Service] = e
	case ring.AppRecovered: // by a change of the host, with the commit as it is
		if at := f.last[e.App]; e.Service == "" && at != nil && at.Kind == ring.AppRefused {
			f.last[e.App] = e
		}
	case ring.AppInForce, ring.AppRefused, ring.AppRemoved:
		f.last[e.App] = e
		f.awaiting = nil
	}
}

// takenBack notes the apps that the commit had in force and whose plan of an earlier commit is
// back. A commit that asks for the same as that one is not taken back.
func (f *fold) takenBack(now Present, back map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(back)) {
		switch e := f.last[name]; {
		case e == nil || e.Kind != ring.AppInForce:
		case e.Version != "" && e.Version == now.undone[name].asked:
			f.again = true
		default:
			f.undone = append(f.undone, now.undone[name].says)
		}
	}
}

// done reports whether something of the commit was carried out, or nothing was left to do for it.
func (f *fold) done(now Present) bool {
	return len(f.last) > 0 || now.synced[[2]string{f.now.Source, string(f.now.Commit)}]
}

// outcome is what became of the commit.
func (f *fold) outcome(now Present) api.CommitNow {
	c := f.now
	key := [2]string{c.Source, string(c.Commit)}
	open := now.open[key]
	of := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(open)) {
		if e := f.last[id]; e == nil || e.Kind == ring.RolloutBegan {
			of[api.OutcomeAccepted] = append(of[api.OutcomeAccepted], strings.TrimSuffix(id+": "+open[id], ": "))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.last)) {
		e := f.last[id]
		says := id + ": " + e.Reason
		switch e.Kind {
		case ring.RolloutFailed, ring.RolloutAborted:
			of[api.OutcomeFailed] = append(of[api.OutcomeFailed], says)
		case ring.RolloutRestored:
			of[api.OutcomeRestored] = append(of[api.OutcomeRestored], says)
		case ring.AppRefused:
			of[api.OutcomePartly] = append(of[api.OutcomePartly], says)
		case ring.JobFailed:
			of[api.OutcomeJob] = append(of[api.OutcomeJob], says)
		case ring.RolloutBegan:
			if _, told := open[id]; !told {
				of[api.OutcomeAccepted] = append(of[api.OutcomeAccepted], id+": its rollout has not completed")
			}
		case ring.RolloutSuperseded:
			of[api.OutcomeSuperseded] = append(of[api.OutcomeSuperseded], id)
		default:
			of[api.OutcomeLive] = append(of[api.OutcomeLive], id)
		}
	}
	switch {
	case f.refused != nil:
		c.Outcome, of[api.OutcomeRefused] = api.OutcomeRefused, []string{f.refused.Reason}
	case now.held[key] != "" && len(f.last) == 0:
		c.Outcome, of[api.OutcomeHeld] = api.OutcomeHeld, []string{now.held[key]}
	case f.awaiting != nil && !f.passed:
		c.Outcome, of[api.OutcomeAwaiting] = api.OutcomeAwaiting, []string{f.awaiting.Reason}
	case len(f.last) == 0 && len(open) == 0 && now.synced[key]: // it changed nothing that runs
		c.Outcome = api.OutcomeLive
		return f.saying(c, nil)
	case len(f.last) == 0 && len(open) == 0 && f.passed:
		c.Outcome = api.OutcomeReplaced
		return f.saying(c, nil)
	default:
		c.Outcome = api.OutcomeAccepted
		for _, o := range []string{api.OutcomeFailed, api.OutcomeRestored, api.OutcomePartly, api.OutcomeJob, api.OutcomeSuperseded, api.OutcomeAccepted, api.OutcomeLive} {
			if len(of[o]) > 0 {
				c.Outcome = o
				break
			}
		}
	}
	switch {
	case c.Outcome != api.OutcomeLive:
	case len(f.undone) > 0:
		c.Outcome, of[api.OutcomeUndone] = api.OutcomeUndone, f.undone
	case now.runs != nil && !now.runs[key] && !f.again:
		c.Outcome = api.OutcomeReplaced
	}
	if c.Outcome == api.OutcomeLive || c.Outcome == api.OutcomeSuperseded {
		return f.saying(c, nil)
	}
	return f.saying(c, of[c.Outcome])
}

// saying is the commit with what persons and tags did, and why it is as it is.
func (f *fold) saying(c api.CommitNow, why []string) api.CommitNow {
	c.Says = strings.Join(slices.Concat(f.said, f.movesSay(), why), "; ")
	return c
}
