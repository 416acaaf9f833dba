package enginetest

import (
	"github.com/docker/docker/api/types/swarm"
)

// Replicated jobs, as SwarmKit has them: each update is another iteration, whose tasks end what is
// left of the one before. A task that failed is replaced, after the delay of its restart policy; and
// whatever counts as missing is made.

// isJob reports whether a service ends.
func (s *fakeService) isJob() bool { return s.Spec.Mode.ReplicatedJob != nil }

// iterate begins another iteration of a job whose spec was sent.
func (s *fakeService) iterate() {
	s.JobStatus.JobIteration.Index++
	for _, t := range s.tasks {
		if t.wanted() && !t.over() {
			t.DesiredState = swarm.TaskStateRemove
		}
	}
}

// job makes what is missing of a job.
func (m *Manager) job(s *fakeService) {
	done, under := uint64(0), uint64(0)
	for _, t := range s.tasks {
		switch {
		case t.JobIteration == nil || t.JobIteration.Index != s.JobStatus.JobIteration.Index:
		case t.Status.State == swarm.TaskStateComplete:
			done++
		case t.wanted() && t.over(): // it failed: another one is made in its place, and waits
			t.DesiredState = swarm.TaskStateShutdown
			if p := t.Spec.RestartPolicy; p.Condition == swarm.RestartPolicyConditionNone {
				continue // and a new leader would make one at once
			}
			next := m.addTask(s, 0, swarm.TaskStateReady)
			next.run = m.now().Add(*t.Spec.RestartPolicy.Delay)
			next.JobIteration = &swarm.Version{Index: s.JobStatus.JobIteration.Index}
			under++
		case t.wanted():
			under++
		}
	}
	for want := *s.Spec.Mode.ReplicatedJob.TotalCompletions; done+under < want; under++ {
		t := m.addTask(s, 0, swarm.TaskStateComplete)
		t.JobIteration = &swarm.Version{Index: s.JobStatus.JobIteration.Index}
	}
}
