package reconcile

import (
	"cmp"
	"slices"

	"github.com/gitring/gitring/ring"
)

// An engine that schedules by itself is sent whole specs, and says what came of them. No rule
// makes, starts or stops one of its instances.

// onCluster reports whether the engine schedules by itself.
func (t *Pass) onCluster() bool { return t.Seen.Cluster != nil }

// clusterServices are those of this cluster; none elsewhere.
func (t *Pass) clusterServices() []ring.ClusterService {
	if !t.onCluster() {
		return nil
	}
	return t.Seen.Cluster.Services
}

// clusterService is a service as the cluster has it; nil where it has none.
func (t *Pass) clusterService(id ring.ServiceID) *ring.ClusterService {
	if !t.onCluster() {
		return nil
	}
	if t.by.sent == nil {
		t.by.sent = make(map[ring.ServiceID]*ring.ClusterService, len(t.Seen.Cluster.Services))
		for i := range t.Seen.Cluster.Services {
			s := &t.Seen.Cluster.Services[i]
			t.by.sent[ring.ID(s.App, s.Service)] = s
		}
	}
	return t.by.sent[id]
}

// judgeTask folds what is known of an instance of a cluster into ready, down, or neither. Its
// node asks its check, and says that it runs once that passed.
func (t *Pass) judgeTask(v *service, in *instance) {
	if in.Kind.Ends() {
		t.judgeRun(in)
		return
	}
	in.inferred = in.Health == ""
	switch {
	case in.State == ring.StateCreated:
		in.reason = "does not run yet"
		return
	case in.State != ring.StateRunning:
		in.down, in.reason = true, string(in.State)
		return
	case t.isAway(in):
		in.reason = say("is on node %s, which does not answer", in.Node)
		return
	}
	steady := in.Since.Add(v.minReady(in))
	if t.now.Before(steady) && !(in.Version == v.want.Version && v.isPromoted(in.Since)) {
		t.wakeBy(steady)
		in.young, in.reason = true, t.youngSays(v, in)
		return
	}
	in.ready, in.fit = true, true
}

// judgeRun does so for a run of a job.
func (t *Pass) judgeRun(in *instance) {
	in.down, in.reason = in.State != ring.StateCreated, cmp.Or(in.Says, string(in.State))
	switch {
	case in.Ended():
		in.reason = cmp.Or(in.Says, t.endSays(in))
	case in.State != ring.StateRunning:
	case t.isAway(in):
		in.reason = say("is on node %s, which does not answer", in.Node)
	default:
		in.ready, in.fit, in.down, in.reason = true, true, false, ""
	}
}

// isAway reports whether the node of an instance does not answer its cluster. The cluster starts
// another one elsewhere; nobody knows what this one does.
func (t *Pass) isAway(in *instance) bool {
	named := func(n ring.Node) bool { return n.Name == in.Node }
	return in.Node != "" && slices.ContainsFunc(t.Seen.Cluster.Nodes, named) &&
		!slices.ContainsFunc(t.Seen.Cluster.Nodes, func(n ring.Node) bool { return named(n) && n.State == "ready" })
}

// settingsWanted is what of the target changes in place, as the cluster was told of it.
func (v *service) settingsWanted() string {
	return ring.ClusterSettings(v.target, v.of.Alone(v.target) != "")
}

// isServed reports whether the cluster came as far as the target asks: its update is over, every
// instance is ready, and none of another version is left.
func (t *Pass) isServed(v *service) bool {
	s := v.sent
	if s == nil || s.Version != v.target.Version || s.Settings != v.settingsWanted() || s.Update != "" && s.Update != ring.UpdateCompleted {
		return false
	}
	if s.Changed() && !v.rollout.Done {
		return false
	}
	n := 0
	for _, in := range v.instances {
		switch {
		case t.isAway(in):
		case t.isElsewhere(v, in) && (in.Version == v.target.Version || in.State != ring.StateRunning): // it may stay, and counts for nothing
		case in.Version != v.target.Version || !in.ready:
			return false
		default:
			n++
		}
	}
	return n == v.target.Replicas && t.noNodeSays(v) == ""
}

// failedSays is the newest instance of a service that failed, with the words of its node; "" where
// none did.
func failedSays(s *ring.ClusterService) string {
	f := s.Failed
	switch {
	case f == nil:
		return ""
	case f.Node == "":
		return say("slot %d: %s", f.Slot, f.Says)
	}
	return say("slot %d on node %s: %s", f.Slot, f.Node, f.Says)
}
