package reconcile

import (
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

// Moving is what goes on of a source, or did not complete, by the same rules as the
// status: a plan that has nothing more to change is not therefore carried out.
func Moving(w World, source string, now time.Time) (out []ring.Move) {
	t := newDecider(w, now)
	t.decide()
	for i := range t.overview.Sources {
		src := &t.overview.Sources[i]
		if src.Name != source {
			continue
		}
		for j := range src.Apps {
			for k := range src.Apps[j].Services {
				if m, ok := t.moveOf(src.Apps[j].Name, &src.Apps[j].Services[k]); ok {
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// moveOf is what moves a service. A cron job that runs at its time is at rest: no plan
// asked for the run.
func (t *Pass) moveOf(app string, st *ring.ServiceStatus) (ring.Move, bool) {
	m := ring.Move{
		App: app, Service: st.Name, Phase: string(st.Phase), To: st.Version, Commit: st.Commit,
		Updated: st.Updated, Wanted: st.Wanted, Reason: st.Reason, ServicePhase: st.Phase,
	}
	r := st.Rollout
	switch {
	case r == nil && st.Kind == ring.JobK && st.Phase == ring.PhaseProgressing:
		return m, true
	case r == nil && st.Phase == ring.PhaseRemoving:
		m.To = ""
		return m, true
	case r == nil:
		return ring.Move{}, false
	}
	m.Code = r.Code
	m.Phase, m.To, m.Commit, m.Since = r.Phase, r.Version, r.Commit, t.movedSince(app, st)
	for i := range st.Instances {
		old := st.Instances[i].Version
		if r.Version == st.Version && old != r.Version && old != "" && !slices.Contains(m.From, old) { // files that are reloaded replace nothing
			m.From = append(m.From, old)
		}
	}
	return m, true
}

// movedSince is when what moves a service began, or failed; zero where nobody wrote it down.
func (t *Pass) movedSince(app string, st *ring.ServiceStatus) time.Time {
	v := t.views[ring.ID(app, st.Name)]
	switch {
	case v == nil:
		return time.Time{}
	case v.failed != nil:
		return v.failed.At.UTC()
	case v.filesFailed != nil:
		return v.filesFailed.At.UTC()
	}
	return t.movesSince(v)
}
