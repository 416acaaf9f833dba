package hub

import (
	"slices"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// crashesOf are the crashes that lines tell of, the newest first. How each ended is in its reason
// alone: neither its exit code nor its log is in the journal.
func crashesOf(events []ring.Event, q api.CrashQuery) []api.CrashGroup {
	var all []ring.Crash
	for _, e := range slices.Backward(events) {
		if e.Kind != ring.InstanceCrashed || q.App != "" && e.App != q.App || q.Service != "" && e.Service != q.Service {
			continue
		}
		all = append(all, ring.Crash{
			ID: ring.ID(e.App, e.Service), Slot: e.Slot, Version: e.Version, Commit: e.Commit, At: e.At, Reason: e.Reason, Signature: e.Reason,
		})
	}
	return api.GroupCrashes(all, false)
}

// runStates are how runs of jobs came out, by the kind of their line.
var runStates = map[string]string{ring.JobSucceeded: ring.RunSucceeded, ring.JobFailed: ring.RunFailed, ring.JobSkipped: "skipped"}

// jobsOf are the jobs of a status with the runs that lines tell of, the newest first.
func jobsOf(st *ring.Status, events []ring.Event, q api.JobQuery) []api.JobNow {
	runs := map[ring.ServiceID][]ring.Run{}
	began := map[ring.ServiceID]time.Time{}
	for i := range events {
		e := &events[i]
		id := ring.ID(e.App, e.Service)
		if e.Kind == ring.JobStarted {
			began[id] = e.At
		}
		state, is := runStates[e.Kind]
		if !is {
			continue
		}
		r := ring.Run{ID: id, Version: e.Version, Commit: e.Commit, State: state, Reason: e.Reason, Actor: e.Actor, Started: began[id], Ended: e.At}
		delete(began, id)
		runs[id] = append(runs[id], r)
	}
	out := []api.JobNow{}
	for i := range st.Sources {
		for j := range st.Sources[i].Apps {
			a := &st.Sources[i].Apps[j]
			for k := range a.Services {
				sv := &a.Services[k]
				if !sv.Kind.Ends() || q.App != "" && a.Name != q.App || q.Service != "" && sv.Name != q.Service {
					continue
				}
				n := api.JobNow{App: a.Name, Service: sv.Name, Kind: sv.Kind, Phase: sv.Phase, Reason: sv.Reason, Next: sv.NextRun, Timezone: sv.Timezone, Runs: []ring.Run{}}
				of := runs[ring.ID(a.Name, sv.Name)]
				n.Runs = append(n.Runs, of[max(0, len(of)-q.Limit):]...)
				slices.Reverse(n.Runs) // the newest first
				if !sv.NextRun.IsZero() {
					n.Due = []time.Time{sv.NextRun}
				}
				out = append(out, n)
			}
		}
	}
	return out
}

// explained is what a status says of a service; false where it has none of that name. What the rules
// of the host would decide next is known there alone.
func explained(st *ring.Status, events []ring.Event, q api.InspectQuery) (ring.Explained, bool) {
	for i := range st.Sources {
		src := &st.Sources[i]
		for j := range src.Apps {
			a := &src.Apps[j]
			k := slices.IndexFunc(a.Services, func(s ring.ServiceStatus) bool { return s.Name == q.Service })
			if a.Name != q.App || k < 0 {
				continue
			}
			sv := &a.Services[k]
			e := ring.Explained{
				App: a.Name, Service: sv.Name, Source: src.Name, Phase: sv.Phase, Code: sv.Code, Says: sv.Reason,
				Rollout: sv.Rollout, Refusal: a.Refusal, Ports: sv.Ports, Conditions: sv.Conditions, Instances: []ring.ExplainedInstance{},
				Wanted: &ring.ExplainedWant{Kind: sv.Kind, Replicas: sv.Wanted, Version: sv.Version, Commit: sv.Commit, Image: sv.Image, Pin: sv.Digest},
			}
			for l := range sv.Instances {
				in := ring.ExplainedInstance{InstanceStatus: sv.Instances[l], Started: sv.Instances[l].Started}
				if in.Version == sv.Version {
					in.Stands = "wanted"
				}
				e.Instances = append(e.Instances, in)
			}
			for l := range st.Overrides {
				if on := st.Overrides[l].Target; on == a.Name || on == a.Name+"/"+sv.Name {
					e.Overrides = append(e.Overrides, st.Overrides[l])
				}
			}
			if groups := crashesOf(events, api.CrashQuery{App: a.Name, Service: sv.Name}); len(groups) > 0 {
				e.Crash = &groups[0].Newest
			}
			return e, true
		}
	}
	return ring.Explained{}, false
}
