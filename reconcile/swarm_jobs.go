package reconcile

import (
	"cmp"
	"time"

	"github.com/gitring/gitring/ring"
)

// A run of a job on a cluster is a service of its own, made at rest and then started, as a container
// is. Its name has the version, and of a cron job the time that it is for: so there is one, whichever
// manager acts. It stays as long as its version is wanted, for a manager that knows nothing of it.

// runMark says on a cluster which run a service is.
func (t *Pass) runMark(v *service, run ring.JobRun) *ring.RunMark {
	if !t.onCluster() {
		return nil
	}
	m := ring.RunMark{Trigger: cmp.Or(run.Trigger, ring.OnChange), For: run.For}
	if v.want.Kind == ring.CronK || run.Trigger == ring.Asked {
		m.Due = ring.MarkedDue(run.Due)
	}
	return &m
}

// slotOfJob is the slot of a job's run that a person asked for: on a cluster the one of its version
// stays beside it.
func (t *Pass) slotOfJob(run ring.JobRun) int {
	if t.onCluster() && run.Trigger == ring.Asked {
		return 2
	}
	return 1
}

// runObstructed is why no run begins on a cluster: a task of one before still stops, or a service
// writes what this one writes and may start a task at any time.
func (t *decider) runObstructed(v *service, run ring.JobRun) string {
	if !t.onCluster() {
		return ""
	}
	for _, in := range v.instances {
		if in.Live() && v.want.Kind == ring.JobK && in.ID != run.Instance {
			return startedByHand(in)
		}
		if t.stopsOnCluster(in) {
			return stopsSays(in)
		}
	}
	return t.dataHeld(v)
}

// stopsOnCluster reports whether an instance is a task that still stops, or that is left of a run that
// is gone. There is nothing to remove of it.
func (t *Pass) stopsOnCluster(in *instance) bool {
	return t.onCluster() && in.State == ring.StateRemoving
}

func stopsSays(in *instance) string {
	return say("waits for %s on node %s to end", in.Name, in.Node)
}

// beganAgain ends a run whose task was begun a second time: by a leader that forgot that it led before,
// or because its node was drained as it failed, or was lost. What such a run came to says nothing.
func (t *decider) beganAgain(in *instance, run *ring.JobRun) {
	if t.onCluster() && in.Restarts > 0 && run.Stopped == "" {
		run.Stopped, run.Final = "the swarm began it a second time", true
		t.setFact(*run)
	}
}

// stopsAgain stops what the cluster began of a run that had ended: the look that saw its end came between the
// two. It reports whether there is such a one.
func (t *decider) stopsAgain(v *service) bool {
	for _, in := range v.instances {
		run, known := t.runIn(v, in)
		if t.onCluster() && known && (run.State == jobFailed || run.State == jobSucceeded) && in.Restarts > 0 && in.Live() {
			t.addStep(t.stepOn(v, ring.DoStop, in, "the swarm began it a second time"))
			return true
		}
	}
	return false
}

// followOnCluster watches a run that the cluster has yet to begin, or to end. It reports whether
// that is so.
func (t *decider) followOnCluster(v *service, in *instance, run ring.JobRun) bool {
	switch {
	case !t.onCluster():
		return false
	case in.State == ring.StateRemoving:
		v.says = say("is stopping, after %s", cmp.Or(run.Stopped, "somebody stopped it"))
		return true
	case in.State != ring.StateRestarting || run.Stopped != "":
		return false
	}
	v.says = "does not run yet: " + in.Says
	if late := run.Started.Add(startWithin); t.now.Before(late) {
		t.wakeBy(late)
		return false
	}
	run.Stopped, run.Final = say("it did not begin within %s: %s", startWithin, in.Says), true
	t.setFact(run)
	return false
}

// begunBefore is the service, by its ID, of a run that another manager began, where that is gone from the
// swarm and nobody here saw it; "" where there is none, and where its author says that it may begin anew.
// A job that runs for every commit has one mark for all of them, which says nothing.
func (t *Pass) begunBefore(v *service, in *instance) string {
	if !t.onCluster() || v.want.Kind != ring.JobK || !v.mark.Due.IsZero() || v.want.Job.Run == "always" || v.want.Job.Rerun {
		return ""
	}
	id := t.Seen.Cluster.Record.Begun[ring.BegunKey(ring.RunName(v.app.Name, v.want.Name, v.want.Version, *v.mark), *v.mark)]
	if in != nil && in.ID == id {
		return ""
	}
	for _, key := range t.runsOf(v.id) {
		if t.Facts.Jobs[key].Instance == id {
			return "" // what is to be done about it was decided
		}
	}
	return id
}

// begunElsewhere ends a run that another manager began before it begins here.
func (t *decider) begunElsewhere(v *service, in *instance, run ring.JobRun) bool {
	id := t.begunBefore(v, in)
	switch {
	case id == "":
		return false
	case in != nil:
		t.removeInstance(v, in, "its run was begun before")
		return true
	}
	run.Version, run.Commit, run.Instance = v.want.Version, v.app.Commit, id
	t.endRun(v, nil, run, jobFailed, "interrupted: another manager began it, its run is gone from the swarm, and nobody here saw how it ended")
	return true
}

// adoptedRun is the run that an instance of a cluster is by its own mark; false where it has none.
func adoptedRun(v *service, in *instance) (ring.JobRun, bool) {
	if in.Run == nil {
		return ring.JobRun{}, false
	}
	return ring.JobRun{ID: v.id, Trigger: in.Run.Trigger, For: in.Run.For, Due: in.Run.Due, Slot: in.Slot}, true
}

// isNews reports whether an instance of a cluster is a run that is to be written down: it is under
// way, or nothing is known of such a one. A task that still stops is left of one that was removed.
func (t *Pass) isNews(v *service, in *instance) bool {
	run, marked := adoptedRun(v, in)
	if !marked || in.State == ring.StateRemoving {
		return false
	}
	if run.Trigger == ring.OnChange {
		run.Version = in.Version
	}
	_, key := run.Row()
	row, known := t.Facts.Jobs[key]
	return in.Live() || !known || !ring.MarkedDue(row.Due).Equal(run.Due)
}

// marksItsVersion reports whether an instance is what tells other managers that the wanted version
// of a job had its run, or from when on a cron job's times count.
func (t *Pass) marksItsVersion(v *service, in *instance) bool {
	if !t.onCluster() || in.Run == nil {
		return false
	}
	return v.want.Kind == ring.CronK || in.Version == v.want.Version && in.Run.Trigger != ring.Asked
}

// newestRun is when the newest run of a cron job was due that the cluster has; zero for none.
func (v *service) newestRun() (due time.Time) {
	for _, in := range v.instances {
		if in.Run != nil && in.Run.Trigger == ring.OnSchedule && in.Run.Due.After(due) {
			due = in.Run.Due
		}
	}
	return due
}

// countsFrom is the time from which on a cron job of which nothing is remembered is due: from its
// newest run on that the cluster has, as far back as a run may be late.
func (t *Pass) countsFrom(v *service) time.Time {
	wall, newest := t.wallClock(), v.newestRun()
	if newest.IsZero() || newest.After(wall) {
		return wall
	}
	return laterOf(newest, wall.Add(-lateBy(v.want.Cron)))
}

// knowSeen has the row of a cron job know of the runs that the cluster has. It reports whether it
// knew.
func (t *Pass) knowSeen(v *service, row *ring.CronRow) bool {
	knew := true
	for _, in := range v.instances {
		if in.Run == nil || in.Run.Trigger != ring.OnSchedule || in.Run.Due.IsZero() || in.State == ring.StateCreated || isBegun(*row, in.Run.Due) {
			continue
		}
		knew, row.Begun = false, withBegun(*row, in.Run.Due, timetableOf(v.want.Cron))
		if row.Waits.Equal(in.Run.Due) {
			row.Due, row.Waits = in.Run.Due, time.Time{}
		}
	}
	return knew
}
