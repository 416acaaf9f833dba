package reconcile

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/gitring/gitring/ring"
)

// inst is an instance in the eyes of one look.
type inst struct {
	*ring.Instance
	intent string // what a stop of ours was for; "" when none was meant
	// ready: every check green without a break for min_ready_time. down: known
	// not to serve, so that its removal costs nothing. Neither: not known, or
	// not for long enough.
	ready, down bool
	inferred    bool
	rests       bool // it ended as it may, and stays so
	young       bool // it is green, for less than min_ready_time
	reason      string
	unlive, act string
	slotKey     string // see slot
}

// ownGrace is the time that it was made with between stop signal and kill.
func (in *inst) ownGrace() time.Duration { return cmp.Or(in.Grace, ring.DefaultStopGrace) }

// leaving says that we decided to remove it.
func (in *inst) leaving() bool { return in.intent == intentRemove }

// holds says that it takes its slot: whatever its state, but for one that goes.
func (in *inst) holds() bool { return !in.leaving() }

// begun says that its start has not been seen through: it is not ready, and
// started again.
func (in *inst) begun() bool { return in.intent == intentHooks || in.intent == intentRejoin }

// The kinds of intents.
const (
	intentRemove  = "remove"
	intentPark    = "park"
	intentRestart = "restart"
	intentStop    = "stop"   // for good: a liveness check says so
	intentHooks   = "hooks"  // started, and its post_start hooks not seen through
	intentRejoin  = "rejoin" // its namespaces are none any more: to be restarted
	intentAgain   = "again"  // it ended with the engine: to be started again
)

// service is the view of one service in one look.
type service struct {
	id   ring.ServiceID
	app  *ring.App
	want *ring.Service
	all  []*inst
	// target is what its instances should run now, of the app of: the wanted
	// one, or the last good one while the wanted one failed or has to wait.
	of     *ring.App
	target *ring.Service
	good   *ring.Good
	// waits is why the wanted version may not start yet.
	waits   string
	blocked bool // and will not by itself: what it waits for failed
	// failed is the verdict on the wanted version when that is "failed".
	failed *ring.Verdict
	row    ring.RolloutRow
	halt   string // why a person paused its rollouts; "" when nobody did
	says   string // the reason people read
	lacks  string // what it cannot have now: an owner, a name
	differ string // see why; "" until somebody asks
	fate   *fate  // what it is tied to; nil for nothing
	key    string // see wanted
	// lone is why instances of loneOf, a target, cannot run side by side.
	lone   string
	loneOf *ring.Service
	// spoiled is the verdict on what the plan wants to be reloaded in place, where
	// that failed: want has what was good in its stead.
	spoiled *ring.Verdict
}

// view makes the view of a service in force.
func (t *turn) view(v *service, app *ring.App, want *ring.Service) {
	id := ring.ID(app.Name, want.Name)
	want = t.looked(want)
	*v = service{id: id, app: app, want: want, all: t.seen[id], of: app, target: want}
	if g, ok := t.Facts.Good[id]; ok {
		v.good = t.goodNow(id, g)
	}
	v.row = t.Facts.Rollouts[id]
	t.views[id] = v
	t.live(v)
	t.probe(v.all, v.want, v.good)
	for _, in := range v.all {
		t.judge(v, in)
	}
}

// wanted is the key of what is said of the wanted version.
func (v *service) wanted() string {
	if v.key == "" {
		v.key = ring.VersionKey(v.id, v.want.Version)
	}
	return v.key
}

// goodNow is a good service as this look has it: with what its image says of
// itself, and a person's count.
func (t *turn) goodNow(id ring.ServiceID, g *ring.Good) *ring.Good {
	looked := t.looked(&g.Service)
	n, scaled := t.scaled(id)
	scaled = scaled && n != looked.Replicas && mayCount(&g.App, looked, n)
	if looked == &g.Service && !scaled {
		return g
	}
	out := *g
	out.Service = *looked
	if scaled {
		out.Service.Replicas = n
	}
	return &out
}

// probe asks for the checks of each instance's own version.
func (t *turn) probe(ins []*inst, want *ring.Service, good *ring.Good) {
	for _, in := range ins {
		if in.State != ring.StateRunning {
			continue
		}
		if checks, known := t.checksOf(in, want, good); known && len(checks) > 0 {
			t.out.Probes = append(t.out.Probes, ring.Probe{Instance: in.Instance, Checks: checks, Ready: t.unasked(in, want, good)})
		}
	}
}

func (t *turn) checksOf(in *inst, want *ring.Service, good *ring.Good) ([]ring.Check, bool) {
	checks, known := t.ownChecks(in, want, good)
	return withImages(in, checks), known
}

// ownChecks are the checks that the plan of an instance's version has.
func (t *turn) ownChecks(in *inst, want *ring.Service, good *ring.Good) ([]ring.Check, bool) {
	if want != nil && in.Version == want.Version {
		return want.Checks, true
	}
	if good != nil && in.Version == good.Service.Version {
		return good.Service.Checks, true
	}
	c, ok := t.Facts.Rollouts[ring.ID(in.App, in.Service)].Checks[in.Version]
	return c, ok
}

// judge folds what is known of an instance into ready, down, or neither.
func (t *turn) judge(v *service, in *inst) {
	if !in.Live() {
		in.down = in.State != ring.StateCreated
		in.reason = string(in.State)
		if in.Ended() {
			in.reason, in.rests = exitSays(in.Instance), t.rests(v, in)
		}
		return
	}
	if in.State != ring.StateRunning {
		in.down, in.reason = in.State == ring.StateRestarting || in.State == ring.StatePaused, string(in.State)
		return
	}
	checks, known := t.checksOf(in, v.want, v.good)
	if !known {
		in.reason = "its checks are not known"
		return
	}
	since := in.Since
	if (&ring.Service{Checks: checks}).Gated() {
		h, ok := t.Health[in.ID]
		if was := t.unasked(in, v.want, v.good); !ok && !was.IsZero() {
			h, ok = ring.Health{Ready: true, Since: was}, true
		}
		if !ok {
			in.reason = "no check has answered yet"
			return
		}
		in.unlive, in.act = unlive(h), h.Act
		if !h.Ready {
			in.down, in.reason = true, h.Reason
			return
		}
		since = h.Since
	} else {
		in.inferred = true
		if h, ok := t.Health[in.ID]; ok {
			in.unlive, in.act = unlive(h), h.Act
		}
	}
	if in.begun() {
		in.reason = t.Facts.Intents[in.ID].Reason
		return
	}
	steady := since.Add(v.minReady(in))
	if t.now.Before(steady) && !(v.promoted() && in.Version == v.want.Version) {
		t.wake(steady)
		in.young, in.reason = true, say("ready, for less than %s", v.minReady(in))
		return
	}
	in.ready = true
}

// minReady is how long an instance must be green; what is brought back, as long
// as the way back asks.
func (v *service) minReady(in *inst) time.Duration {
	if v.good != nil && in.Version == v.good.Service.Version && in.Version != v.want.Version {
		return v.want.Rollout.Returning().MinReadyTime
	}
	return v.want.Rollout.MinReadyTime
}

// knobs are those of the way that v goes: forth, or back.
func (v *service) knobs() ring.Rollout {
	if v.restoring() && v.want.Rollout.Back != nil {
		return v.want.Rollout.Returning()
	}
	return v.target.Rollout
}

func unlive(h ring.Health) string {
	if h.Unlive {
		return h.Reason
	}
	return ""
}

func exitSays(in *ring.Instance) string {
	if in.OOM {
		return say("exited with code %d, out of memory", in.ExitCode)
	}
	return say("exited with code %d", in.ExitCode)
}

// service decides one service.
func (t *turn) service(v *service) {
	if v.fate == nil {
		t.weigh(v)
	}
	switch v.want.Kind { // both keep their hands off what is held
	case ring.JobK:
		t.job(v)
		return
	case ring.CronK:
		t.cron(v)
		return
	}
	if t.handsOff(v.id) {
		return
	}
	if t.busy(string(v.id)) {
		return
	}
	// From here nothing of this service is in flight.
	if t.replaceBroken(v) || t.finishIntents(v) || t.standAside(v) || t.rejoin(v) || t.formerRuns(v) {
		return
	}
	if v.waits != "" && v.good == nil {
		t.heal(v) // nothing may start yet, and nothing is to be kept at full count
		return
	}
	if v.stopped() {
		if !t.startCreated(v) && !t.heal(v) && !v.left() && !v.watched() {
			t.complete(v)
		}
		return
	}
	found := t.drift(v)
	if v.exclusive() {
		t.recreate(v)
	} else {
		t.rolling(v)
	}
	t.putBack(v, found)
}

// weigh chooses the target and gives the verdict on it; it moves nothing.
func (t *turn) weigh(v *service) {
	if _, failed := t.quarantine(v); failed { // it may be tried again
		t.roomier(v)
		t.acquit(v)
		t.mended(v)
		t.renewed(v)
	}
	t.choose(v)
	if v.want.Kind.Ends() {
		return
	}
	if t.handsOff(v.id) {
		t.standStill(v)
		return
	}
	t.begin(v)
	if v.row.Done && t.lower(v) {
		t.set(v.row)
	}
	if v.halt != "" {
		t.standStill(v)
		return
	}
	t.account(v)
	t.tryContent(v)
}

// choose sets the target: the last good version while the wanted one failed
// (restore, quarantine) or waits for what it depends on.
func (t *turn) choose(v *service) {
	v.failed, v.waits, v.blocked, v.says = nil, "", false, ""
	v.halt = t.halted(v.id)
	if d, failed := t.quarantine(v); failed {
		failure := d // on its own: most have none, and none is made for those
		v.failed = &failure
	}
	v.of, v.target = v.app, v.want
	if v.failed != nil && v.restores() {
		v.of, v.target = &v.good.App, &v.good.Service
		v.says = v.failed.Reason
		return
	}
	if v.row.Version == v.want.Version { // begun: what it depends on gates only the beginning
		if why := t.undone(v); why != "" && !v.row.Done {
			v.waits, v.blocked, v.says = why, true, why
			v.of, v.target = &v.good.App, &v.good.Service
			return
		}
		v.waits, v.blocked = t.before(v) // as after a person had a version tried again that it failed
	} else {
		v.waits, v.blocked = t.gate(v)
	}
	if v.waits == "" {
		return
	}
	v.says = v.waits
	if v.good != nil {
		v.of, v.target = &v.good.App, &v.good.Service
	}
}

// restores says that a failure of the wanted version brings another one back.
func (v *service) restores() bool {
	return v.onFailure() == ring.OnFailureRestore && v.good != nil && v.good.Service.Version != v.want.Version
}

// restoring says that the target is not what the plan in force wants, because
// that failed.
func (v *service) restoring() bool { return v.failed != nil && v.target != v.want }

// paused says that the rollout stopped where it is: what runs is kept alive,
// nothing more is created or removed.
func (v *service) paused() bool {
	return v.failed != nil && !v.restoring() && v.onFailure() != ring.OnFailureContinue && !v.row.Done
}

// begin starts a rollout when another version is wanted than the row speaks of.
func (t *turn) begin(v *service) {
	if v.row.Version == v.want.Version || v.waits != "" {
		return
	}
	if old := v.row; old.Version != "" && !old.Done {
		t.event(ring.Event{
			Kind: ring.RolloutSuperseded, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: old.Version,
			Commit: old.Commit, Reason: say("superseded by %s", v.app.Commit.Short()),
		})
	}
	v.row = ring.RolloutRow{
		ID: v.id, Version: v.want.Version, Commit: v.app.Commit, Began: t.now, Progress: t.now, Checks: t.checks(v), Writes: t.written(v), Shared: t.shared(v),
		Engine: t.Seen.Engine,
	}
	if v.failed != nil { // quarantined: a newer commit wants what already failed
		v.row.Cause = v.failed.Reason
		t.set(v.row)
		return
	}
	t.set(v.row)
	if len(v.all) > 0 && !slices.ContainsFunc(v.all, func(in *inst) bool { return in.Version != v.want.Version }) && v.good == nil {
		return // the store is new, what runs is not: nothing moves
	}
	t.event(ring.Event{
		Kind: ring.RolloutBegan, Source: v.app.Source, App: v.app.Name, Service: v.want.Name, Version: v.want.Version,
		Commit: v.app.Commit, Reason: t.why(v),
	})
}

// checks are those of the wanted version and of what else still runs.
func (t *turn) checks(v *service) map[ring.Version][]ring.Check {
	out := map[ring.Version][]ring.Check{v.want.Version: v.want.Checks}
	for _, in := range v.all {
		if c, ok := v.row.Checks[in.Version]; ok && in.Version != v.want.Version {
			out[in.Version] = c
		}
	}
	for _, version := range t.expected(v) {
		if c, ok := v.row.Checks[version]; ok && version != v.want.Version {
			out[version] = c
		}
	}
	return out
}

// why is what differs from the last good version, as people read it.
func (t *turn) why(v *service) string {
	if v.good == nil {
		return "first deploy"
	}
	if v.good.Service.Version == v.want.Version {
		return "back to the last good version"
	}
	if v.differ == "" {
		v.differ = cmp.Or(Differs(&v.good.App, &v.good.Service, v.app, v.want), "version "+v.want.Version.Short())
	}
	return v.differ
}

// account counts progress and failures of the rollout under way, and ends it
// when they say so. It only remembers; it never moves anything.
func (t *turn) account(v *service) {
	if v.row.Done || v.restoring() {
		return
	}
	if v.waits != "" {
		if v.moves() && t.now.Sub(v.row.Progress) >= v.want.Rollout.ProgressDeadline/10 && t.undone(v) != "" {
			v.row.Progress = t.now // the time until it is mended is not the version's
			t.set(v.row)
		}
		return
	}
	if t.excuse(v) {
		return
	}
	if v.watched() {
		t.watch(v)
		return
	}
	row, ready, failing, permanent := v.row, 0, false, false
	row.Counted = slices.Clone(row.Counted)
	for _, in := range v.all {
		if in.Version != v.want.Version || !in.holds() {
			continue
		}
		if in.ready {
			ready++
			continue
		}
		if t.stale(v, in) {
			continue
		}
		why := t.failure(v, in)
		if why == "" || slices.Contains(row.Counted, in.ID) {
			continue
		}
		row.Counted = append(row.Counted, in.ID)
		failing = true
		row.LastFailure, row.Cause = t.now, say("slot %d %s", in.Slot, why)
		t.failedStart(v, in, why, row.Failures+1)
		permanent = permanent || in.Ended() && cannotRun(in.ExitCode)
	}
	if failing {
		row.Failures++ // instances that end together, as when the engine restarts, are one failure
	}
	if ready > row.Ready {
		row.Ready, row.Progress, row.Failures = ready, t.now, 0
	}
	try, tried := t.Tries[string(v.id)]
	tried = tried && try.Version == v.want.Version && try.Cause != "" && (try.Kind == ring.DoCreate || try.Kind == ring.DoStart)
	stuck := t.stuck(v) != ""
	tried = tried && !try.At.Before(row.Began) && !stuck
	if stuck && t.now.Sub(row.Progress) >= v.want.Rollout.ProgressDeadline/10 {
		row.Progress = t.now // the time until it is mended is not the version's
	}
	if tried && try.At.After(row.LastFailure) && try.Cause != ring.CauseImagePull {
		row.Failures++
		row.LastFailure, row.Cause = try.At, say("%s: %s", try.Cause, try.Err)
	}
	if !sameRow(row, v.row) {
		v.row = row
		t.set(row)
	}
	if v.failed != nil {
		return
	}
	k := v.want.Rollout
	deadline := latest(row.Progress, t.Awake).Add(k.ProgressDeadline)
	switch {
	case row.Failures >= v.threshold():
		t.fail(v, row.Cause)
	case permanent, tried && try.Permanent && row.Failures > 0:
		t.fail(v, row.Cause)
	case !t.now.Before(deadline) && !t.settled(v) && (v.fate == nil || !t.filled(v)) && !stuck:
		t.fail(v, t.deadlineSays(v, ready))
	default:
		t.wake(deadline)
	}
}

// stuck is what is wrong on this host where no other version would fare better,
// such as a disk that is not mounted; or whatever the host refuses where there is
// nothing to restore. It fails nothing, and is tried again for as long as it is wanted.
func (t *turn) stuck(v *service) string {
	if try, ok := t.refusedStep(v); ok {
		return hinted(try)
	}
	return t.short(v)
}

// awaitsHost says that a rollout goes on once something of this host is mended:
// it is not closed, however long that takes.
func (t *turn) awaitsHost(v *service) bool {
	if v.row.Done || v.failed != nil {
		return false
	}
	try, ok := t.refusedStep(v)
	return ok && !try.Permanent || t.undone(v) != "" || t.short(v) != ""
}

// refusedStep is the try that v is stuck with.
func (t *turn) refusedStep(v *service) (ring.Try, bool) {
	if len(t.Tries) == 0 {
		return ring.Try{}, false
	}
	for slot := 0; slot <= v.target.Replicas; slot++ {
		key := string(v.id)
		if slot > 0 {
			key += " " + ring.ContainerName(v.app.Name, v.want.Name, slot, v.target.Version)
		}
		try := t.Tries[key]
		if try.Refusal == nil || try.Version != v.target.Version || try.Kind != ring.DoCreate && try.Kind != ring.DoStart {
			continue
		}
		if !try.Permanent || try.Kind == ring.DoCreate && (!v.restores() || v.restoring()) {
			return try, true
		}
	}
	return ring.Try{}, false
}

// hinted is a failed try as its service's status tells it: with what to do.
func hinted(try ring.Try) string {
	if try.Refusal == nil || try.Refusal.Hint == "" {
		return try.Err
	}
	return say("%s; %s", try.Err, try.Refusal.Hint)
}

// lastGap is how rarely a version is tried at last for whose tries the old one has
// to stop.
const lastGap = 6 * time.Hour

// triesPort says that it is time to look again whether a port of the host that
// somebody else has is free. Only a start tells, and for that the old one stops: so
// it is done ever more rarely.
func (t *turn) triesPort(try ring.Try) bool {
	if !taken(try.Err) {
		return false
	}
	due := try.At.Add(min(lastGap, permanentWait<<min(try.N-1, 8)))
	if t.now.Before(due) {
		t.wake(due)
		return false
	}
	return true
}

// undone is why the wanted version cannot be started now that the old one has
// stopped for it; the old one serves until that is mended.
func (t *turn) undone(v *service) string {
	if !v.restores() {
		return ""
	}
	for _, in := range v.all {
		if in.Version != v.want.Version || in.Live() || !in.holds() {
			continue
		}
		try := t.Tries[string(v.id)+" "+in.Name]
		if try.Kind != ring.DoStart || try.Version != in.Version || try.Refusal == nil || try.Permanent || t.triesPort(try) {
			continue
		}
		if slices.ContainsFunc(v.all, func(old *inst) bool { return old.Version == v.good.Service.Version && old.holds() }) {
			return hinted(try)
		}
	}
	return ""
}

// threshold is how many failures in a row end the rollout. Where the old
// instance had to stop first, the first one does: nothing serves meanwhile.
func (v *service) threshold() int {
	parked := slices.ContainsFunc(v.all, func(in *inst) bool { return in.intent == intentPark })
	if parked && v.restores() {
		return 1
	}
	return max(1, v.want.Rollout.FailureThreshold)
}

func sameRow(a, b ring.RolloutRow) bool {
	return a.Ready == b.Ready && a.Progress.Equal(b.Progress) && a.Failures == b.Failures &&
		a.LastFailure.Equal(b.LastFailure) && len(a.Counted) == len(b.Counted) && a.Cause == b.Cause
}

// failure is why an instance of a version under rollout counts as failed.
func (t *turn) failure(v *service, in *inst) string {
	if in.Ended() {
		if t.rests(v, in) || in.intent != "" {
			return ""
		}
		return in.reason
	}
	if in.State == ring.StateRestarting {
		return "is restarted by the engine: " + exitSays(in.Instance)
	}
	if !in.Live() {
		return ""
	}
	if in.unlive != "" && in.act != "" {
		return in.unlive
	}
	if !in.down {
		return "" // ready, only not for long enough; or not known, which is no failure
	}
	limit := patience(v.want)
	until := latest(t.readSince(v, in), t.Awake).Add(limit)
	if t.now.Before(until) {
		t.wake(until)
		return ""
	}
	return say("not ready within %s: %s", limit, in.reason)
}

func readySays(ready, wanted int) string {
	return strconv.Itoa(ready) + "/" + strconv.Itoa(wanted) + " ready"
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (t *turn) deadlineSays(v *service, ready int) string {
	says := say("%s: %d/%d ready, no progress within %s", ring.CauseDeadline, ready, v.want.Replicas, v.want.Rollout.ProgressDeadline)
	if why := t.unmade(v.of, v.target); why != "" {
		return says + "; " + why
	}
	for _, in := range v.all {
		if in.Version == v.want.Version && !in.ready && in.reason != "" {
			return says + "; slot " + say("%d %s", in.Slot, in.reason)
		}
	}
	return says
}

// fail gives the verdict on the wanted version; the target follows from it.
func (t *turn) fail(v *service, reason string) {
	t.verdict(v, v.row.Commit, reason)
	t.failTied(v, reason)
	t.choose(v)
}

func (t *turn) verdict(v *service, c ring.SHA, reason string) {
	t.set(ring.Verdict{ID: v.id, Version: v.want.Version, Commit: c, Reason: reason, At: t.now, Memory: t.starved(v), Live: v.liveVersion()})
	t.event(ring.Event{
		Kind: ring.RolloutFailed, Source: v.app.Source, App: v.app.Name, Service: v.want.Name,
		Version: v.want.Version, Commit: c, Reason: reason,
	})
}

// settled says that the target fills every slot, ready, and nothing else is left.
func (t *turn) settled(v *service) bool {
	n := 0
	for _, in := range v.all {
		if in.Version != v.target.Version || !in.holds() || in.Slot > v.target.Replicas {
			return false
		}
		if !in.ready && !t.rests(v, in) || !t.took(v, in) {
			return false
		}
		n++
	}
	for slot := 1; slot <= v.target.Replicas; slot++ {
		if n < v.target.Replicas && t.doneIn(v, slot) {
			n++
		}
	}
	return n == v.target.Replicas
}

// complete closes the rollout when it is settled: the version is good, and what
// a restore would bring back from now on.
func (t *turn) complete(v *service) {
	if !t.settled(v) || !v.row.Done && !t.whole(v, t.settled) || t.bakes(v) {
		return
	}
	if v.fate != nil && v.target == v.want && !v.row.Done { // one verdict, in one moment
		for _, m := range v.fate.of {
			if m != v && m.moves() {
				t.close(m)
			}
		}
	}
	t.close(v)
}

// left says that what v is tied to went back to an older version: v cannot be
// good beside that, however well it runs until it is stopped with it.
func (v *service) left() bool {
	return v.fate != nil && slices.ContainsFunc(v.fate.of, func(m *service) bool { return m != v && m.restoring() })
}

// close says that a service is what its target asks.
func (t *turn) close(v *service) {
	if v.target == v.want {
		t.reloaded(v)
		t.keepGood(v)
	}
	if v.row.Done || v.waits != "" {
		return
	}
	v.row.Done, v.row.At = true, t.now
	t.lower(v)
	t.set(v.row)
	e := ring.Event{
		Kind: ring.RolloutCompleted, Source: v.app.Source, App: v.app.Name, Service: v.want.Name,
		Version: v.want.Version, Commit: v.app.Commit, Reason: readySays(v.target.Replicas, v.target.Replicas),
	}
	if v.restoring() {
		e.Kind, e.Commit = ring.RolloutRestored, v.row.Commit
		e.Reason = say("kept %s: %s", v.good.Commit.Short(), v.failed.Reason)
	}
	t.event(e)
}

// keepGood remembers the service as it completed. A change in place (replicas,
// checks, knobs) is part of what a restore brings back.
func (t *turn) keepGood(v *service) {
	key := v.wanted()
	if d, ok := t.Facts.Verdicts[key]; !ok || !d.Good {
		t.set(ring.Verdict{ID: v.id, Version: v.want.Version, Good: true, Commit: v.app.Commit, Reason: "completed", At: t.now})
		v.failed = nil
	}
	with := t.beside(v)
	if v.good != nil && v.row.Done && sameService(&v.good.Service, v.want) {
		// An unrelated commit; a rollout that completes is this plan's.
		if len(with)+len(v.good.With) > 0 && !sameJSON(with, v.good.With) {
			g := *v.good
			g.With = with
			v.good = &g
			t.set(t.asGit(g))
		}
		return
	}
	app := *v.app
	app.Services = leaders(v.app, &v.want.Spec, nil)
	g := ring.Good{AppName: app.Name, App: app, Service: *v.want, Commit: v.app.Commit, At: t.now, With: with}
	v.good = &g
	t.set(t.asGit(g))
}

// leaders are what a service is tied to or follows, at whatever distance where
// volumes are taken: their versions are part of its own, and what they mount
// decides what it mounts.
func leaders(app *ring.App, of *ring.Spec, out []ring.Service) []ring.Service {
	for _, name := range of.Leaders() {
		if slices.ContainsFunc(out, func(s ring.Service) bool { return s.Name == name }) {
			continue
		}
		s, _ := app.Service(name)
		out = append(out, ring.Service{Name: name, Version: s.Version, Image: s.Image, Spec: ring.Spec{Mounts: s.Spec.Mounts, VolumesFrom: s.Spec.VolumesFrom}})
		out = leaders(app, &ring.Spec{VolumesFrom: s.Spec.VolumesFrom}, out)
	}
	return out
}

// finishIntents carries on with what was meant before: a daemon that ended
// between the record and the call, or a call that failed.
func (t *turn) finishIntents(v *service) bool {
	for _, in := range v.all {
		switch in.intent {
		case intentRemove:
			if !v.exclusive() && !v.spare(in) && t.mayBeStopping(v, in) {
				if in.Version == v.target.Version {
					return true // its name is taken until then
				}
				continue
			}
			if !v.exclusive() && !v.spare(in) || v.stays(in) {
				// What else served when its removal was meant does not serve now.
				t.set(ring.Forget{Table: "intent", Key: in.ID})
				in.intent = ""
				continue
			}
			it := t.Facts.Intents[in.ID]
			if !t.telling(in) && !t.untie(in, it.Reason) {
				a := t.removal(v, in, it)
				a.Delay = max(0, a.Delay-max(0, t.now.Sub(it.At))) // it drains from the moment that it was meant to go
				t.do(a)
			}
			return true
		case intentPark:
			if in.ready && in.Version == v.target.Version {
				// It was to make room and is wanted again. Not before it is ready:
				// a stop that a daemon before us asked for may still be under way.
				t.set(ring.Forget{Table: "intent", Key: in.ID})
				in.intent = ""
			}
		case intentAgain:
			if in.Live() || in.Version != v.want.Version || in.Slot > v.want.Replicas { // or not wanted: it is healed as any
				t.set(ring.Forget{Table: "intent", Key: in.ID})
				in.intent = ""
			}
		case intentStop:
			if why := t.Facts.Intents[in.ID].Reason; in.Live() {
				if !t.untie(in, why) {
					t.do(t.step(v, ring.DoStop, in, why))
				}
				return true
			}
		case intentRestart, intentHooks, intentRejoin:
			if t.seeThrough(v, in) {
				return true
			}
		}
	}
	return false
}

// mayBeStopping says that a stop which nobody saw the end of may be under way: a daemon
// before us asked for it, or the answer got lost. The instance may serve until its
// time is over, as one that does not hear the signal, and is not to be counted on.
func (t *turn) mayBeStopping(v *service, in *inst) bool {
	at := t.Facts.Intents[in.ID].At
	if try, ok := t.Tries[string(v.id)+" "+in.Name]; ok && try.Kind == ring.DoRemove {
		at = latest(at, try.At)
	}
	until := at.Add(max(v.want.Grace(), in.ownGrace()) + v.want.Rollout.DrainDelay + stopMargin)
	if !in.Live() || at.After(t.now) || !t.now.Before(until) { // a clock that was set back says nothing
		return false
	}
	t.wake(until)
	return true
}

// stopMargin is how much longer than its grace a stop may take.
const stopMargin = 2 * time.Second

// seeThrough begins a start again that nobody saw the end of. It says whether the
// look is over for v.
func (t *turn) seeThrough(v *service, in *inst) bool {
	it := t.Facts.Intents[in.ID]
	if in.intent != intentRestart {
		if v.want.Kind.Ends() { // a run is never begun twice
			t.set(ring.Forget{Table: "intent", Key: in.ID})
			in.intent = ""
			return false
		}
		if in.Live() && !t.apart(in) {
			t.do(t.step(v, ring.DoRestart, in, it.Reason))
			return true
		}
		return false
	}
	if in.Live() && in.Since.After(it.At) && !v.hooked(in) {
		t.set(ring.Forget{Table: "intent", Key: in.ID})
		in.intent = ""
		return false
	}
	if !in.Live() && t.apart(in) { // tied to what is not there: kept until it is
		t.set(ring.Intent{Instance: in.ID, Kind: intentPark, Reason: it.Reason, At: t.now})
		in.intent = intentPark
		return false
	}
	if !in.Live() {
		if v.lacks = t.occupiedFor(v, in); v.lacks != "" {
			return true
		}
	}
	t.do(t.step(v, ring.DoRestart, in, it.Reason))
	return true
}

// remove writes down that an instance goes, and takes the step.
func (t *turn) remove(v *service, in *inst, why string) {
	if t.telling(in) || t.untie(in, why) {
		return
	}
	it := ring.Intent{Instance: in.ID, Kind: intentRemove, Reason: why, At: t.now}
	if in.Version == v.target.Version && in.Slot <= v.target.Replicas {
		it.ID, it.Slot = v.id, in.Slot
	}
	t.set(it)
	in.intent = intentRemove
	t.forgetSlot(v, in)
	t.do(t.removal(v, in, it))
}

// step makes an action on an instance.
func (t *turn) step(v *service, k ring.ActionKind, in *inst, why string) ring.Action {
	a := ring.Action{
		Kind: k, App: v.app.Name, Service: v.want.Name, Slot: in.Slot, Version: in.Version, Commit: v.app.Commit,
		Instance: in.ID, Name: in.Name, Began: in.Started, Reason: why, Grace: v.want.Grace(), Delay: v.want.Rollout.DrainDelay,
	}
	switch {
	case in.Version == v.want.Version:
		a.Of, a.Want = v.app, v.want
	case v.good != nil && in.Version == v.good.Service.Version:
		a.Of, a.Want = &v.good.App, &v.good.Service
	default: // its spec is not known any more: neither its own time nor the newer one is cut
		a.Grace = max(a.Grace, in.Grace)
		return a
	}
	a.Grace, a.Networks = a.Want.Grace(), t.networks(a.Of)
	return a
}

// create makes the instance of a slot, once its networks are there. An image
// that went missing is pulled first; after failures in a row it waits.
func (t *turn) create(v *service, slot int, start bool, why string) bool {
	if t.networksMissing(v.of, v.target) {
		v.lacks = t.unmade(v.of, v.target)
		return false
	}
	if v.row.Failures > 1 && !v.restoring() {
		if next := v.row.LastFailure.Add(backoff(string(v.id), v.row.Failures)); t.now.Before(next) {
			t.wake(next)
			return false
		}
	}
	if t.awaits(v, slot) || t.leftAlone(v, slot) {
		return false
	}
	owners, lacks := t.owners(v, slot)
	if lacks != "" {
		v.lacks = lacks
		return false
	}
	if t.making(v) {
		return false
	}
	start = start && len(v.target.Spec.PostStart) == 0 && v.target.Spec.ContainerName == ""
	start = start && t.occupied(v, v.of, v.target) == ""
	a := ring.Action{
		Kind: ring.DoCreate, App: v.app.Name, Service: v.want.Name, Slot: slot, Version: v.target.Version,
		Commit: v.target.Changed, Of: v.of, Want: v.target, Start: start, Networks: t.networks(v.of),
		Name: ring.ContainerName(v.app.Name, v.want.Name, slot, v.target.Version), Reason: why, Kept: t.kept(), Owners: owners,
	}
	if !v.target.Image.Known { // what it keeps for itself is not known
		t.do(t.pull(v.of, v.target, "has to be looked at"))
		return false
	}
	if try, ok := t.Tries[a.Target()]; ok && try.Kind == ring.DoCreate && try.Cause == ring.CauseImagePull && !t.Images[v.target.Pin.Image].Known {
		t.do(t.pull(v.of, v.target, "is missing on this host"))
		return false
	}
	return t.do(a)
}

// freeSlot is the lowest slot that is to be filled, because no instance of the
// target holds it; 0 when there is none.
func (t *turn) freeSlot(v *service) int {
	for slot := 1; slot <= v.target.Replicas; slot++ {
		if v.inSlot(slot) == nil && !t.doneIn(v, slot) {
			return slot
		}
	}
	return 0
}

// inSlot is the target's instance of a slot.
func (v *service) inSlot(slot int) *inst {
	for _, in := range v.all {
		if in.Slot == slot && in.Version == v.target.Version && in.holds() {
			return in
		}
	}
	return nil
}
