package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

const (
	onTime     = time.Minute // a run that begins so late is not late
	mostBeside = 10          // runs of one cron job at a time, where they overlap
)

// forgetRuns drops what is due and what was asked of services that are no more:
// one that comes back begins without a past.
func (t *decider) forgetRuns() {
	for _, id := range sortedKeys(t.Facts.Cron) {
		if v := t.views[id]; v == nil && !t.isComing(id) || v != nil && v.want.Kind != ring.CronK {
			t.setFact(ring.Forget{Table: "cron", Key: string(id)})
			t.forgetTries(id)
		}
	}
	for _, id := range sortedKeys(t.Facts.Asks) {
		if v := t.views[id]; v == nil || !v.want.Kind.Ends() {
			t.setFact(ring.Forget{Table: "ask", Key: string(id)})
		}
	}
}

// wallClock is what the clock on the wall shows: cron jobs are due by it, and the age of
// a source's newest commit is measured by it. Nothing else is. It may jump.
func (t *Pass) wallClock() time.Time {
	if t.Wall.IsZero() {
		return t.now
	}
	return t.Wall
}

// wakeAt asks for a look when the clock on the wall shows u.
func (t *Pass) wakeAt(u time.Time) {
	if !u.IsZero() {
		t.wakeBy(t.now.Add(u.Sub(t.wallClock())))
	}
}

// decideCron runs a job whenever it is due: each due time once at most, whatever the
// clock and the daemon do. A new version changes what the next run runs.
func (t *decider) decideCron(v *service) {
	if t.onCluster() && !t.isBusy(string(v.id)) && !t.handsOff(v.id) && t.adoptRun(v) {
		return // what is due asks what is under way
	}
	t.updateDue(v)
	t.noMoreTries(v)
	if t.isBusy(string(v.id)) {
		return
	}
	if t.handsOff(v.id) {
		t.hearOut(v)
		return
	}
	if t.decideBy(v, cronRules) {
		return
	}
	t.followRuns(v)
	if t.adoptRun(v) {
		return
	}
	for _, run := range t.underWay(v.id) {
		if run.State == "" && t.cronHeld(v).None() {
			t.startRun(v, max(1, run.Slot), run)
		}
	}
	run, ok := t.dueRun(v, t.Facts.Cron[v.id])
	if ok = ok && t.cronHeld(v).None(); !ok {
		if len(t.underWay(v.id)) == 0 {
			t.keepRuns(v)
		}
		return
	}
	if run.Slot = t.placeFor(v, run); run.Slot > 0 {
		t.startRun(v, run.Slot, run)
		t.takeOffDue(v)
	}
}

// updateDue keeps the row of a cron job true: what is due next, and what was due since
// the last look.
func (t *decider) updateDue(v *service) {
	c, wall := v.want.Cron, t.wallClock()
	row, known := t.Facts.Cron[v.id]
	was := row
	switch {
	case !known || row.Schedule != c.Words():
		// Of another schedule nothing is caught up.
		row.ID, row.Schedule = v.id, c.Words()
		from := wall
		if !known && t.onCluster() {
			t.knowSeen(v, &row)
			from = t.countsFrom(v)
		}
		row.Next, row.From = nextDue(row, timetableOf(c), from), from
	case wall.Before(row.From.Add(-onTime)): // the clock was set back
		row.Next, row.From = nextDue(row, timetableOf(c), wall), wall
		if wall.Before(row.Waits) { // it falls due again
			row.Waits = time.Time{}
		}
	case !row.Next.IsZero() && !wall.Before(row.Next):
		t.decideFallen(v, &row)
		row.Next, row.From = nextDue(row, timetableOf(c), wall), wall
	}
	knew := t.knowBegun(v, &row)
	knew = t.knowSeen(v, &row) && knew
	t.expireRun(v, &row)
	if row.Schedule != was.Schedule || !row.From.Equal(was.From) || !row.Waits.Equal(was.Waits) || !knew {
		t.setFact(row)
	}
	t.wakeAt(row.Next)
}

// knowBegun has the row know of every run that was begun: the marks of runs are files,
// and may be newer than a database that lost its end. It reports whether it knew.
func (t *Pass) knowBegun(v *service, row *ring.CronRow) bool {
	knew := true
	for _, key := range t.runsOf(v.id) {
		run, ok := t.Facts.Jobs[key]
		if !ok || run.Trigger != ring.OnSchedule || run.Due.IsZero() || isBegun(*row, run.Due) {
			continue
		}
		knew, row.Begun = false, withBegun(*row, run.Due, timetableOf(v.want.Cron))
		if row.Waits.Equal(run.Due) {
			row.Due, row.Waits = run.Due, time.Time{}
		}
	}
	return knew
}

// decideFallen decides about what fell due up to now: the newest within the time that a
// run may be late is wanted, and everything else is told as skipped.
func (t *decider) decideFallen(v *service, row *ring.CronRow) {
	wall := t.wallClock()
	first := row.Next
	due := timetableOf(v.want.Cron).newestDue(first, wall, lateBy(v.want.Cron))
	switch {
	case due.IsZero():
		t.skipDue(v, first, say("%s late, and at most %s is caught up", agoSays(wall.Sub(first)), lateBy(v.want.Cron)))
		return
	case isBegun(*row, due):
		return // by a clock that was set back since
	case due.After(first):
		t.skipDue(v, first, say("missed, and only the newest of what was missed is caught up: that of %s", clock(due)))
	}
	if why := t.cronHeld(v); !why.None() {
		t.skipDue(v, due, why.Says)
		return
	}
	if !row.Waits.IsZero() {
		t.skipDue(v, row.Waits, "did not begin before the next one was due: "+t.runHindrance(v))
		row.Waits = time.Time{}
	}
	if why := t.overlapReason(v, due); why != "" {
		t.skipDue(v, due, why)
		return
	}
	row.Waits = due
}

// expireRun skips a run that was due and could not begin for too long.
func (t *decider) expireRun(v *service, row *ring.CronRow) {
	if row.Waits.IsZero() {
		return
	}
	until := row.Waits.Add(lateBy(v.want.Cron))
	if t.wallClock().Before(until) {
		t.wakeAt(until)
		return
	}
	t.skipDue(v, row.Waits, say("could not begin within %s: %s", lateBy(v.want.Cron), t.runHindrance(v)))
	row.Waits = time.Time{}
}

// runHindrance is what kept a run from beginning.
func (t *Pass) runHindrance(v *service) string {
	return cmp.Or(t.runObstacle(v), "another run was under way")
}

// runObstacle is that where it is no other run; "" where nothing is known of one.
func (t *Pass) runObstacle(v *service) string {
	if !t.Images[v.want.Pin.Image].Known && t.Progress["pull "+v.want.Pin.Image] != "" {
		return "its image is being pulled"
	}
	return cmp.Or(t.cronHeld(v).Says, v.waits.Says, v.missing, t.lastError(v))
}

// askedWaits is what a run waits for that a person asked for; "" for nothing.
func (t *Pass) askedWaits(v *service) string {
	why := t.runObstacle(v)
	if why == "" || !t.isAskedFor(v) || len(t.underWay(v.id)) > 0 {
		return ""
	}
	return "asked for, waits: " + why
}

// lateBy is how late a run may begin.
func lateBy(c *ring.Cron) time.Duration { return max(c.Missed, onTime) }

// agoSays is a long time in words that people take in.
func agoSays(d time.Duration) time.Duration {
	if d > time.Hour {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}

func (t *decider) skipDue(v *service, due time.Time, why string) {
	t.skipRun(v, ring.JobRun{ID: v.id, Trigger: ring.OnSchedule, Due: due}, why)
}

// cronHeld is why no run of a cron job begins for now. A hold that the commit
// declares stops it as a person's does.
func (t *Pass) cronHeld(v *service) ring.Reason {
	if why := t.heldBy(v.id); !why.None() {
		return why
	}
	if t.isObserved(v.app.Name) {
		return ring.Reason{Code: ring.WhyObserveOnly, Says: "its source is only observed"}
	}
	h := v.app.Hold
	if src := t.sourceNamed(v.app.Source); src != nil && src.Next != nil {
		if next := t.nextApp(src, v.app.Name); next != nil {
			h = next.Hold
		}
	}
	if h == nil || !h.Until.IsZero() && !t.now.Before(h.Until) {
		return ring.Reason{}
	}
	return declaredReason(h)
}

// overlapPolicy is how runs of v that fall together are treated. What two instances
// cannot have at once, two runs cannot either, be they of two versions.
func (v *service) overlapPolicy(active []ring.JobRun) string {
	o := cmp.Or(v.want.Cron.Overlap, ring.OverlapForbid)
	if o != ring.OverlapAllow {
		return o
	}
	mine := v.wantedWrites()
	unshared := func(run ring.JobRun) bool {
		return !run.Share && slices.ContainsFunc(run.Writes, func(what string) bool { return anyClash(mine, what) })
	}
	if v.aloneBecause() != "" || slices.ContainsFunc(active, unshared) {
		return ring.OverlapForbid
	}
	return o
}

// overlapReason is why a run does not begin beside what was under way when it was due; ""
// when it may, or takes its place. What ended before that may not be written down yet:
// nobody was there.
func (t *Pass) overlapReason(v *service, due time.Time) string {
	at := t.now.Add(due.Sub(t.wallClock()))
	active := slices.DeleteFunc(t.underWay(v.id), func(run ring.JobRun) bool {
		in := v.instanceByID(run.Instance)
		return in != nil && in.Ended() && !in.Finished.After(at)
	})
	if len(active) == 0 {
		return ""
	}
	switch v.overlapPolicy(active) {
	case ring.OverlapReplace:
		return ""
	case ring.OverlapAllow:
		if len(active) < mostBeside {
			return ""
		}
		return say("%d runs are under way", len(active))
	}
	return say("the run %s is still under way", dueSays(active[0]))
}

// dueRun is the run that is to begin: one that was due, then one that a person
// asked for.
func (t *decider) dueRun(v *service, row ring.CronRow) (ring.JobRun, bool) {
	if !row.Waits.IsZero() {
		return ring.JobRun{ID: v.id, Trigger: ring.OnSchedule, Due: row.Waits}, true
	}
	if _, ok := t.Facts.Asks[v.id]; !ok {
		return ring.JobRun{}, false // one that is tried again is under way
	}
	return t.askedRun(v)
}

// placeFor is the slot of a run that is to begin; 0 while what is under way is in
// its way. One that replaces stops that.
func (t *decider) placeFor(v *service, run ring.JobRun) int {
	active := t.underWay(v.id)
	how := v.overlapPolicy(active)
	if how != ring.OverlapAllow && len(active) > 0 {
		if how == ring.OverlapReplace && run.Trigger == ring.OnSchedule {
			t.giveWay(v, active, run)
		}
		v.missing = say("the run %s is under way", dueSays(active[0]))
		return 0
	}
	if i := slices.IndexFunc(v.instances, func(in *instance) bool { return in.Live() }); i >= 0 && how != ring.OverlapAllow {
		v.missing = startedByHand(v.instances[i])
		return 0
	}
	for slot := 1; slot <= mostBeside; slot++ {
		taken := slices.ContainsFunc(active, func(r ring.JobRun) bool { return max(1, r.Slot) == slot }) ||
			slices.ContainsFunc(v.instances, func(in *instance) bool { return in.Slot == slot && (in.Live() || in.isLeaving()) })
		if !taken {
			return slot
		}
	}
	return 0
}

// giveWay stops what is under way for the run that replaces it.
func (t *decider) giveWay(v *service, active []ring.JobRun, next ring.JobRun) {
	for _, run := range active {
		in := v.instanceByID(run.Instance)
		switch {
		case run.State == "":
			run.Reason = say("replaced by the run %s", dueSays(next))
			t.endRun(v, nil, run, jobFailed, run.Reason)
		case run.Stopped == "" && in != nil && in.Live():
			run.Stopped, run.Final = say("a stop for the run %s", dueSays(next)), true
			t.setFact(run)
			t.addStep(t.stepOn(v, ring.DoStop, in, run.Stopped))
		}
	}
}

// takeOffDue takes the due time off the list once its run has begun: whatever the
// clock says later, none begins for it again.
func (t *decider) takeOffDue(v *service) {
	row := t.Facts.Cron[v.id]
	for slot := 1; slot <= mostBeside; slot++ {
		run, ok := t.Facts.Jobs[ring.RunKey(v.id, ring.CronMark(slot))]
		if ok && !row.Waits.IsZero() && run.Due.Equal(row.Waits) && run.State == jobStarted {
			row.Begun = withBegun(row, row.Waits, timetableOf(v.want.Cron))
			row.Due, row.Waits = row.Waits, time.Time{}
			t.setFact(row)
			return
		}
	}
}

// lastRun is the run of a service that ended last.
func (t *Pass) lastRun(v *service) ring.JobRun {
	var last ring.JobRun
	for _, key := range t.runsOf(v.id) {
		if run, ok := t.Facts.Jobs[key]; ok && (run.State == jobSucceeded || run.State == jobFailed) && run.Ended.After(last.Ended) {
			last = run
		}
	}
	return last
}

func (t *Pass) isAskedFor(v *service) bool {
	_, ok := t.Facts.Asks[v.id]
	return ok
}

// cronStatus is the phase of a cron job: that it waits for its time is as it
// should be, and a run that failed is told until one succeeds.
func (t *Pass) cronStatus(v *service, st *ring.ServiceStatus) {
	row := t.Facts.Cron[v.id]
	st.NextRun, st.DueSince = row.Next, utc(row.Waits)
	if c := v.want.Cron; c != nil {
		st.Timezone = c.Timezone
	}
	if row.Last != "" {
		st.LastRun = &ring.RunOutcome{State: row.Last, Reason: row.LastSays, Ended: row.LastEnd.UTC()}
	}
	next := "next " + t.hourSays(row.Next)
	if row.Next.IsZero() {
		next = "is never due again"
	}
	st.Phase, st.Reason = ring.PhaseReady, next
	if row.Last == jobSucceeded {
		st.Phase, st.Reason = ring.PhaseCompleted, say("%s; last run succeeded %s", next, t.hourSays(row.LastEnd))
	}
	switch active := t.underWay(v.id); {
	case len(active) > 0:
		st.Reason = say("is running, %s; %s", dueSays(active[0]), next)
		if active[0].Due.IsZero() {
			st.Reason = "is running; " + next
		}
	case !row.Waits.IsZero():
		st.Reason = say("due %s, waits: %s; %s", t.hourSays(row.Waits), t.runHindrance(v), next)
	case t.isAskedFor(v):
		st.Reason = say("asked for, waits: %s; %s", t.runHindrance(v), next)
	}
	if row.Last == jobFailed {
		st.Phase, st.Code, st.Reason = ring.PhaseDegraded, ring.WhyJobFailed, say("last run failed %s: %s; %s", t.hourSays(row.LastEnd), row.LastSays, next)
	}
	if why := t.cronHeld(v); !why.None() {
		st.Phase, st.Code, st.Reason = ring.PhaseHeld, why.Code, say("%s; %s", why.Says, next)
	}
}

// hourSays is a time near enough without its date.
func (t *Pass) hourSays(u time.Time) string {
	if d := u.Sub(t.wallClock()); d > -12*time.Hour && d < 24*time.Hour {
		return u.UTC().Format("15:04") + " UTC"
	}
	return clock(u)
}
