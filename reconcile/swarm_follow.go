package reconcile

import (
	"cmp"
	"slices"

	"github.com/gitring/gitring/ring"
)

// Where several managers of a cluster run gitring, one acts. The others fetch and verify, and
// decide nothing: what they remember of apps may be old once they act, so they forget it, and find
// what runs as a daemon does that lost its database.

// follow is a whole look of a manager that does not act.
func (t *decider) follow() {
	t.indexSeen()
	forget(t, "app", t.Facts.Apps)
	forget(t, "verdict", t.Facts.Verdicts)
	forget(t, "rollout", t.Facts.Rollouts)
	forget(t, "pin", t.Facts.Pins)
	forget(t, "refresh", t.Facts.Refreshes)
	forget(t, "hands", t.Facts.Hands)
	forget(t, "drift", t.Facts.Drift)
	forget(t, "trouble", t.Facts.Troubles)
	forget(t, "cron", t.Facts.Cron)
	t.noteRuns()
	for _, key := range keysThat(t.Facts.Posts, func(key string) bool { p := t.Facts.Posts[key]; return p.Open() }) {
		t.setFact(ring.Forget{Table: "post", Key: key}) // who acts closes it
	}
	for _, id := range sortedKeys(t.Facts.Good) { // the way back from what runs is known still
		its := t.Facts.Good[id].Service.Version
		if s := t.clusterService(id); s == nil || s.Version != its && s.Good != its {
			t.setFact(ring.Forget{Table: "good", Key: string(id)})
		}
	}
	for i := range t.Sources {
		t.learnGood(t.Sources[i].Next)
	}
	t.makeViews()
	t.deriveStatus()
}

// learnGood remembers what serves whole as a plan of this manager's own has it: once it acts, it can
// go back to that. What a service is comes from the plan, which was verified here; the cluster only
// shows which version serves, and by which digest.
func (t *decider) learnGood(plan *ring.Plan) {
	if plan == nil || plan.Refusal != nil {
		return
	}
	var all []*service
	for i := range plan.Apps {
		app := t.pinnedAsSeen(&plan.Apps[i])
		for j := range app.Services {
			s := &app.Services[j]
			id := ring.ID(app.Name, s.Name)
			all = append(all, &service{
				id: id, app: &app, want: s, of: &app, target: s, instances: t.seen[id], sent: t.clusterService(id), scheduled: true,
			})
		}
	}
	for _, v := range all {
		if g := t.Facts.Good[v.id]; g != nil && g.Service.Version == v.want.Version || !t.servesLong(v) {
			continue
		}
		app := *v.app
		app.Services = leadersOf(v.app, &v.want.Spec, nil)
		t.setFact(ring.Good{AppName: app.Name, App: app, Service: *v.want, Commit: app.Commit, At: t.now, With: writingToo(v, all)})
	}
}

// pinnedAsSeen is an app with the images and versions that run of it. A service of which nothing
// runs, or another version, has none.
func (t *Pass) pinnedAsSeen(next *ring.App) ring.App {
	app := *next
	app.Services = slices.Clone(next.Services)
	for _, i := range leadersFirst(&app) {
		s := &app.Services[i]
		s.Changed = app.Commit // where it was written so at the latest
		if p, ok := t.carriedPin(&app, s, &ring.App{}, &ring.Service{}, false); ok && leadersPinned(&app, s) {
			s.Pin, s.Version = p, ring.VersionOf(&app, s, p)
			s.Image = t.saysOfItself(&app, s, &ring.Service{})
		}
	}
	return app
}

// servesLong reports whether a version serves whole, for as long as it takes to be good.
func (t *Pass) servesLong(v *service) bool {
	s := v.sent
	if v.want.Kind != ring.Worker || v.want.Version == "" || s == nil || s.Version != v.want.Version || s.Changed() || s.Update != "" && s.Update != ring.UpdateCompleted {
		return false
	}
	n := 0
	for _, in := range v.instances {
		if t.isAway(in) {
			continue
		}
		t.judgeTask(v, in)
		good := in.Since.Add(v.want.Rollout.Bake)
		if t.now.Before(good) {
			t.wakeBy(good)
			return false
		}
		if in.Version != s.Version || !in.ready {
			return false
		}
		n++
	}
	if s.Global {
		return n > 0 && n == t.onNodes(v.want).Replicas
	}
	return n > 0 && n == s.Replicas
}

// writingToo are, by what a service writes, the others of its plan that write it, too.
func writingToo(v *service, all []*service) map[string][]ring.ServiceID {
	var out map[string][]ring.ServiceID
	for _, what := range v.wantedWrites() {
		for _, x := range all {
			if x != v && anyClash(x.wantedWrites(), what) {
				put(&out, what, append(out[what], x.id))
			}
		}
	}
	return out
}

// noteRuns remembers of runs what the cluster shows of them: whoever acts next begins none again, though
// nothing is left of it by then. What is due, or was asked for, counts by its own times.
func (t *decider) noteRuns() {
	there := map[string]bool{}
	for i := range t.Seen.Instances {
		there[t.Seen.Instances[i].ID] = true
	}
	for _, key := range sortedKeys(t.Facts.Jobs) {
		run := t.Facts.Jobs[key]
		switch {
		case run.State != jobStarted && run.State != "":
		case !run.Due.IsZero():
			t.setFact(ring.Forget{Table: "job", Key: key})
		case !there[run.Instance]:
			run.State, run.Ended = jobFailed, t.now
			run.Reason = cmp.Or(run.Reason, "interrupted: its run is gone from the swarm, and nobody here saw how it ended")
			t.setFact(run)
		}
	}
	for i := range t.Seen.Instances {
		in := &t.Seen.Instances[i]
		if in.Run == nil || !in.Run.Due.IsZero() || in.State == ring.StateCreated {
			continue
		}
		run := runSeen(in)
		_, key := run.Row()
		was, known := t.Facts.Jobs[key]
		switch {
		case !known, was.Instance != run.Instance && run.Started.After(was.Started), was.Instance == run.Instance && was.State == jobStarted && in.Ended():
			t.setFact(run)
		}
	}
}

// runSeen is the run that an instance of a cluster is, as somebody knows it who did not begin it.
func runSeen(in *ring.Instance) ring.JobRun {
	run := ring.JobRun{
		ID: ring.ID(in.App, in.Service), Version: in.Version, Commit: in.Commit, Trigger: in.Run.Trigger, For: in.Run.For, Due: in.Run.Due, Slot: in.Slot,
		Instance: in.ID, Tries: 1, Started: in.Started, Writes: in.Writes, State: jobStarted,
	}
	switch {
	case !in.Ended():
	case in.ExitCode == 0:
		run.State, run.Ended, run.Reason = jobSucceeded, in.Finished, "exit code 0"
	default:
		run.State, run.Ended, run.ExitCode, run.Reason = jobFailed, in.Finished, in.ExitCode, cmp.Or(in.Says, exitSays(in))
	}
	return run
}

// forget removes all rows of a table.
func forget[K ~string, V any](t *decider, table string, rows map[K]V) {
	for _, key := range sortedKeys(rows) {
		t.setFact(ring.Forget{Table: table, Key: string(key)})
	}
}
