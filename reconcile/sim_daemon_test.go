package reconcile

import (
	"cmp"
	"errors"
	"math/rand"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// daemon is the loop without its goroutines, on an engine of the model: it
// looks, decides, writes down and carries out, and can be killed in between.
type daemon struct {
	*engine
	oracle
	disk   ring.Facts // what survives it
	mem    memory
	src    Source
	faults bool            // whether faults may still happen
	mute   bool            // the store takes nothing down
	timed  map[string]bool // services that run by the clock, and never rest
	// restless says that something makes many looks in a short time: what runs by
	// the clock, or what the engine restarts beside us.
	restless bool
	changes  int // mutating calls decided
	kills    int
	cuts     int // starts of ours whose end was not heard of: each is begun again
	last     Decision
	saw      World         // that the last decision is about
	stride   time.Duration // at most between two looks; 0 is fullLook
	// These are of the last look, made use of again: what a look was given is of no use
	// to anybody after the next.
	instances []ring.Instance
	networks  []ring.SeenNetwork
	probed    map[string]ring.Health
	busy      map[string]ring.Action
	sources   []Source
	words     map[ring.WordAt]ring.Word // what other hosts say at the forge
	signing   Signing                   // what the host asks of images
	hides     bool                      // its looks leave out what has ended, as a list without all=true does
	// beside is what another manager of the cluster remembers, which follows; nil where one has gitring.
	beside *ring.Facts
	// keepImages is of how many good plans the images stay; 0 removes none.
	keepImages int
	// tags is what is known of tags that move; nil where none does.
	tags *tagged
	// tagRules are what the policy says of tags that move.
	tagRules TagRules
	// crash is asked at each boundary of a step whether the daemon ends there;
	// nil is never.
	crash func(at boundary, a ring.Action) bool
	// hears is asked whether a hint of the engine's arrives; nil is always.
	hears func() bool
}

// boundary is a moment between two things that a daemon does about a step.
type boundary string

// The boundaries: the decision is on disk and the engine was not asked; the
// engine did it and nobody heard; the end is on disk.
const (
	beforeCall  boundary = "before the call"
	afterCall   boundary = "after the call"
	afterRecord boundary = "after the record"
)

// cutAt ends the daemon where the scenario has it end. It reports whether it did.
func (d *daemon) cutAt(at boundary, a ring.Action) bool {
	if d.crash == nil || !d.crash(at, a) {
		return false
	}
	d.kill(string(at) + " of " + string(a.Kind) + " " + a.Target())
	return true
}

// memory is what a daemon loses when it ends.
type memory struct {
	flights []*flight
	recent  Recent
	known   map[string]ring.Health // of the probes
	dates   dates
	wake    time.Time     // in true time; zero is never
	awake   time.Time     // since when it has run without a break, by its own clock
	clock   time.Duration // what its clock is ahead of true time
}

// flight is a step under way.
type flight struct {
	a       ring.Action
	effect  time.Time // when it takes effect
	end     time.Time // when the loop hears of it
	applied bool
	lands   bool  // whether the effect lands
	half    bool  // or only the first part of it: a removal that stops and does not remove
	err     error // what the loop is told
	done    ring.Done
}

func newDaemon(r *rand.Rand) *daemon {
	d := &daemon{
		engine: newEngine(r), disk: ring.NewFacts(), oracle: newOracle(),
		src: Source{Name: "s", Branch: "main", FreshFor: 5 * time.Minute},
	}
	d.mem = d.wakeUp()
	d.told = d.watchHost
	d.made = d.watchMade
	d.admitted = func(app *ring.App) {
		for _, s := range app.Services {
			d.passed[s.Written+s.Pin.Image] = true
		}
	}
	d.meant = d.watchWriters
	d.given, d.stranger = d.adopted, d.strangers
	return d
}

func (d *daemon) wakeUp() memory {
	return memory{
		recent: NewRecent(), known: map[string]ring.Health{},
		clock: d.skew, wake: d.now, awake: d.now.Add(d.skew),
	}
}

// clock is the daemon's own: the wall's when it started, and steady since.
func (d *daemon) clock() time.Time { return d.now.Add(d.mem.clock) }

// offer is a commit that arrived.
func (d *daemon) offer(p *ring.Plan) {
	d.src.Next, d.src.Refusal = p, nil
	d.plans = append(d.plans, p)
	d.src.Tip, d.src.Commit = p.Commit, &ring.Commit{SHA: p.Commit, Signer: p.Signer}
	d.mem.wake = d.now
}

// seen is a look, in whatever order.
func (d *daemon) seen() ring.Seen {
	s := ring.Seen{
		At: d.wall(), Instances: d.instances[:0], Networks: d.networks[:0],
		Engine: "run " + strconv.Itoa(d.engines), Memory: d.memory,
	}
	if d.swarm != nil {
		s.Engine, s.Cluster, s.Instances = "", d.clusterSeen(), append(s.Instances, d.tasksSeen()...)
	}
	for _, id := range d.each() {
		if b := d.boxes[id]; (d.swarm == nil || b.Run != nil || b.left) && (!b.foreign || d.adopted(id)) && !(d.hides && b.State == ring.StateExited) {
			b.Health = d.frontHealth(b)
			s.Instances = append(s.Instances, b.asSeen())
		}
	}
	d.instances = s.Instances
	d.r.Shuffle(len(s.Instances), func(i, j int) { s.Instances[i], s.Instances[j] = s.Instances[j], s.Instances[i] })
	for _, name := range sortedIDs(d.nets) {
		s.Networks = append(s.Networks, d.nets[name])
	}
	d.networks = s.Networks
	return s
}

// health is what the probes say; after a start of the daemon, not at once.
func (d *daemon) health() map[string]ring.Health {
	if d.probed == nil {
		d.probed = make(map[string]ring.Health, len(d.boxes))
	}
	out := d.probed
	clear(out)
	for _, id := range d.each() {
		b := d.boxes[id]
		if !b.running() {
			delete(d.mem.known, id)
			continue
		}
		h, ok := d.mem.known[id]
		if !ok && d.faults && d.r.Intn(3) == 0 {
			continue // no result yet
		}
		switch {
		case !d.ready(b):
			h = ring.Health{Reason: "readiness check up: 503"}
		case !h.Ready:
			h = ring.Health{Ready: true, Since: d.wall()}
		}
		h.Unlive, h.Canary = d.dead(b), ""
		if n := d.nature(b).badCanary; n > 0 && !d.now.Before(b.since.Add(n)) {
			h.Canary = "canary check ratio: exit code 1"
		}
		if h.Unlive {
			h.Act, h.Reason = b.act, "liveness check alive: no answer"
		}
		d.mem.known[id] = h
		out[id] = h
	}
	return out
}

func (d *daemon) world() World {
	now := d.clock()
	seen := d.seen()
	d.mem.dates.begin(now)
	d.mem.dates.dateInstances(seen.Instances, now)
	if d.busy == nil {
		d.busy = map[string]ring.Action{}
	}
	clear(d.busy)
	d.sources = append(d.sources[:0], d.src)
	w := World{
		Host: "sim", Wall: d.wall(), Awake: d.mem.awake, Facts: d.disk, Seen: seen, Health: d.mem.dates.dateHealth(d.health(), seen.Instances, now),
		Busy: d.busy, Recent: d.mem.recent,
		Sources: d.sources, KeepImages: d.keepImages, Signing: d.signing, Fronts: d.frontsSeen(), Words: d.words,
		TagRules: d.tagRules,
	}
	for _, f := range d.mem.flights {
		w.Busy[f.a.Target()] = f.a
	}
	return w
}

// decide is the first half of a look.
func (d *daemon) decide() Decision {
	d.saw = d.world()
	d.last = Diff(d.saw, d.clock())
	d.mem.wake = time.Time{}
	if !d.last.Wake.IsZero() {
		d.mem.wake = d.last.Wake.Add(-d.mem.clock)
	}
	return d.last
}

// besideLooks is a look of the manager that follows.
func (d *daemon) besideLooks() {
	if d.beside == nil {
		return
	}
	w := d.world()
	w.Facts, w.Recent = *d.beside, NewRecent()
	w.Seen.Cluster.Lease = ring.Lease{Holder: "the other one"}
	did := Diff(w, d.clock())
	if len(did.Actions) > 0 {
		d.violate("S1b: who follows would %s %s", did.Actions[0].Kind, did.Actions[0].Target())
	}
	for _, f := range did.Facts {
		d.beside.Set(f)
	}
}

// moveLease has the manager that followed act, and who acted begin to follow.
func (d *daemon) moveLease() {
	d.kill("for another manager acts")
	for key, word := range d.posts { // who acts now may say that again, and no other closing word
		d.said[key], _, _ = strings.Cut(word, " ")
	}
	clear(d.posts)
	d.disk, *d.beside = *d.beside, d.disk
	d.disk = calmFacts(d.disk, d.clock())
}

// record writes down, one transaction.
func (d *daemon) record(facts []ring.Fact, events []ring.Event) {
	d.watchLeaving(events)
	for _, f := range facts {
		d.watchFact(f)
		d.disk.Set(f)
	}
	for _, e := range events {
		d.note("event %s %s/%s %s %s", e.Kind, e.App, e.Service, e.Commit.Short(), e.Reason)
		d.watchEvent(e)
	}
}

// launch starts the decided steps, with faults in pairs: before a step took
// effect, and after.
func (d *daemon) launch(as []ring.Action) {
	for _, a := range as {
		if d.cutAt(beforeCall, a) {
			return
		}
		d.watchStep(a)
		d.watchSigned(a)
		if a.Kind == ring.DoName && !d.faults { // in a story nobody is told, and nothing else comes later for it
			now := d.now.Add(time.Millisecond)
			d.mem.flights = append(d.mem.flights, &flight{a: a, effect: now, end: now, lands: true})
			continue
		}
		f := &flight{a: a, effect: d.now.Add(d.span(50, 400)), lands: true}
		switch a.Kind {
		case ring.DoRemove, ring.DoStop:
			f.effect = d.now.Add(d.span(100, 3000))
		case ring.DoPull:
			f.effect = f.effect.Add(d.natures[imageOf(a.Image)].pull)
		}
		f.end = f.effect.Add(d.span(1, 200))
		if b := d.boxes[a.Instance]; b != nil && b.hooks && (a.Kind == ring.DoStart || a.Kind == ring.DoRestart) {
			f.end = f.end.Add(d.nature(b).hooks)
		}
		if d.faults && d.r.Intn(12) == 0 {
			f.err = errors.New("engine: timeout")
			f.lands = d.r.Intn(2) == 0
			if a.Kind == ring.DoRoute && !f.lands && d.r.Intn(2) == 0 {
				d.late = append(d.late, lateTable{a, d.now.Add(d.span(500, 20000))})
			}
			f.half = !f.lands && a.Kind == ring.DoRemove && d.r.Intn(2) == 0
			d.unheard(a)
		}
		if a.Kind != ring.DoResolve && a.Kind != ring.DoPull && a.Kind != ring.DoVerify && a.Kind != ring.DoAdmit && a.Kind != ring.DoLog && a.Kind != ring.DoWhose && a.Kind != ring.DoName && !d.timed[a.Service] && !d.followsTime(a) {
			d.changes++
		}
		d.mem.flights = append(d.mem.flights, f)
		d.note("do %s %s %s slot %d: %s", a.Kind, a.Target(), a.Name, a.Slot, a.Reason)
	}
}

func (d *daemon) span(from, to int) time.Duration {
	return time.Duration(from+d.r.Intn(to-from+1)) * time.Millisecond
}

// advance moves the clock to the next thing that happens, at most to "limit",
// and lets it happen.
func (d *daemon) advance(limit time.Time) {
	until := d.now.Add(cmp.Or(d.stride, fullLook))
	if !limit.IsZero() && limit.Before(until) {
		until = limit
	}
	if d.mem.wake.After(d.now) && d.mem.wake.Before(until) {
		until = d.mem.wake
	}
	for _, f := range d.mem.flights {
		for _, at := range []time.Time{f.effect, f.end} {
			if at.After(d.now) && at.Before(until) && !(f.applied && at.Equal(f.effect)) {
				until = at
			}
		}
	}
	for {
		d.now = d.moment(until)
		d.tick()
		d.land()
		if !d.now.Before(until) || d.hears == nil || d.hears() {
			return
		}
	}
}

// land ends the steps that are due.
func (d *daemon) land() {
	if d.takeEffect() {
		return
	}
	var left []*flight
	for _, f := range d.mem.flights {
		if f.end.After(d.now) {
			left = append(left, f)
			continue
		}
		if b := d.boxes[f.a.Instance]; b != nil && f.err == nil && (f.a.Kind == ring.DoStart || f.a.Kind == ring.DoRestart) {
			f.err = d.hook(b)
		}
		facts, events := Settle(d.mem.recent, d.disk.Kept, f.a, f.done, f.err, d.clock())
		if !d.mute {
			d.record(facts, events)
		}
		if d.cutAt(afterRecord, f.a) {
			return
		}
	}
	d.mem.flights = left
}

// takeEffect has happen what steps that are due ask of the engine. It reports whether
// the daemon ended over it.
func (d *daemon) takeEffect() bool {
	for _, f := range d.mem.flights {
		if f.applied || f.effect.After(d.now) {
			continue
		}
		f.applied = true
		if b := d.boxes[f.a.Instance]; f.half && b != nil && b.running() {
			d.exit(b, 137)
		}
		if f.lands {
			done, err := d.apply(f.a)
			if f.done = done; f.err == nil {
				f.err = err
			}
		}
		if d.cutAt(afterCall, f.a) {
			return true
		}
	}
	return false
}

// kill ends the daemon; what it had asked of the engine may still happen. The
// next one starts at once, by the clock on the wall.
func (d *daemon) kill(when string) {
	d.note("the daemon is killed %s", when)
	d.kills++
	d.comeLater(d.mem.flights)
	flights := d.mem.flights
	if d.mem.clock < d.skew { // the next one cannot know that a deadline has not come (fronts' seed 968)
		clear(d.deadlines)
	}
	d.mem = d.wakeUp()
	for _, b := range d.boxes {
		b.Hand = "" // who listened then is gone
	}
	for _, f := range flights {
		d.unheard(f.a)
		if !f.applied && f.lands && d.r.Intn(2) == 0 {
			_, _ = d.apply(f.a)
		}
	}
	d.disk = calmFacts(d.disk, d.clock())
}

func (d *daemon) unheard(a ring.Action) {
	if a.Kind == ring.DoStart || a.Kind == ring.DoRestart {
		d.cuts++
	}
}

// atWork reports whether a step is under way, but for one of what runs by the clock. Whose a
// name is that nobody takes is asked for as long as it is told.
func (d *daemon) atWork() bool {
	for _, f := range d.mem.flights {
		if !d.timed[f.a.Service] && f.a.Kind != ring.DoWhose && f.a.Tag == "" {
			return true
		}
	}
	return false
}

// followsTime reports whether a network goes which the last run by the clock was on: that
// is removed when a newer one has ended.
func (d *daemon) followsTime(a ring.Action) bool {
	return d.timed != nil && a.Kind == ring.DoNetworkOff
}

// longSince reports whether 100 looks were no short time, where something makes many: the
// engine, too, that restarts each second what crashes (seed 612296).
func (d *daemon) longSince(t time.Time) bool {
	return !d.restless && !d.stirred.After(t) || d.now.Sub(t) >= 100*fullLook
}

// idle reports whether nothing is under way and nothing was just decided.
func (d *daemon) idle() bool {
	return len(d.mem.flights) == 0 && len(d.last.Actions) == 0
}
