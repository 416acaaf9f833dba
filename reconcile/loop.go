package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitring/gitring/ring"
)

// An Engine runs containers. Look is one whole observation or an error, never
// a part of one. Do carries out one step; it can be repeated, and its effect is
// the same the second time.
type Engine interface {
	Look(ctx context.Context) (ring.Seen, error)
	Do(ctx context.Context, a ring.Action) (ring.Done, error)
}

// Health watches instances. Watch replaces the whole set; Health is what is
// known now, by container ID.
type Health interface {
	Watch(ps []ring.Probe)
	Health() map[string]ring.Health
}

// Fronts speaks with the fronts of this host, each by its control socket. Watch replaces the
// whole set that is asked; Seen is what each answered last, by container ID, and leaves out
// whoever did not answer within the last 3 s. Route writes the table to disk, then sends it.
// An error of Route means that the front may or may not have it.
type Fronts interface {
	Watch(fronts []ring.FrontAt)
	Seen() map[string]ring.FrontSeen
	Route(ctx context.Context, at ring.FrontAt, table ring.FrontTable) (ring.FrontSeen, error)
}

// Words reads what hosts say of commits at the forges. Watch replaces the whole set that is
// asked for; Seen is what was read last, and leaves out what no forge answered for yet.
type Words interface {
	Watch(at []ring.WordAt)
	Seen() map[ring.WordAt]ring.Word
}

// A Memory remembers what must survive a restart. When Record returns nil,
// facts, events and posts are on disk, all of them; otherwise none is.
type Memory interface {
	Facts(ctx context.Context) (ring.Facts, error)
	Record(ctx context.Context, facts []ring.Fact, events []ring.Event) error
}

// Options of a Loop; all fields but Fronts, Words, Posted, Adopts, Took, Trial and Passed are needed.
type Options struct {
	Host, Gitring string
	Engine        Engine
	Health        Health
	Memory        Memory
	// Fronts, if set, speaks with the fronts of this host.
	Fronts Fronts
	Log    *slog.Logger
	// Posted is called after a post was recorded, to wake the sender.
	Posted func()
	// Adopts, if set, is told before each look which containers are ours though they
	// have none of our labels, by ID.
	Adopts func(ids map[string]bool)
	// Steps and Pulls bound how many run at once; 0 is 8 and 3.
	Steps, Pulls int
	// KeepImages is as in World.
	KeepImages int
	// Signing, if set, is what the host asks of images now.
	Signing func() Signing
	// TagRules, if set, are what the policy says of tags that move now.
	TagRules func() TagRules
	// Words, if set, reads what other hosts say of commits.
	Words Words
	// Took, if set, is told after each look how long it took, and the decision after it.
	Took func(look, decide time.Duration)
	// Trial, if set, says that this process is on trial after an upgrade, and since which
	// release; nil once that is over. Meanwhile the loop looks and decides, and neither
	// records nor carries out anything.
	Trial func() *ring.Trial
	// Passed, if set, is told after each pass, also after one that saw nothing.
	Passed func()
}

// How often the loop looks though nothing happened, and how long a look may take.
const (
	fullLook    = 10 * time.Second
	lookTimeout = 60 * time.Second
	unwritten   = 2 * time.Second        // until a decision that could not be recorded is tried again
	crowdedLook = 300 * time.Millisecond // between looks while steps wait for a place, at least
	crowdedMost = time.Second            // and at most, where few of them end meanwhile
	seenServes  = 300 * time.Millisecond // how long a look serves while nothing is heard that changes it
)

// Loop is the one goroutine that decides. It looks when something happened,
// when the last decision asked for it, and every 10 s.
type Loop struct {
	Options
	poke     chan struct{}
	requests chan request
	ended    chan ending

	far  chan struct{} // some step got further
	over chan struct{} // closed when Run has returned

	mu       sync.Mutex // guards what follows
	status   ring.Status
	changed  chan struct{}     // closed and replaced when status changes
	progress map[string]string // of steps in flight, by target

	// What follows belongs to Run's goroutine.
	start   time.Time
	pulse   pulse
	facts   ring.Facts
	sources []Source
	busy    map[string]ring.Action
	began   map[string]*atomic.Bool // by target of busy: that it has its place
	recent  Recent
	dates   dates
	known   map[string]ring.Health
	seen    ring.Seen
	looked  time.Time // when the look began that brought seen; zero once something may have changed it
	said    string    // the engine's last error, told once
	dark    time.Time // since when the engine cannot be looked at; zero when it can
	failed  int       // looks in a row that failed
	unsaid  string    // the store's, told once
	steps   *pool
	pulls   *pool
	work    sync.WaitGroup
	// acknowledged is what fronts answered to their tables, by container ID, as long as it
	// is newer than what they said when they were asked.
	acknowledged map[string]ring.FrontSeen
	waiting      []chan error // requests that wait for the end of a look
	looks        int          // whole ones while on trial
}

// request is an act of another goroutine, carried out between two looks.
type request struct {
	act   func(l *Loop) ([]ring.Fact, []ring.Event, error)
	look  bool // what it did wants a look
	seen  bool // and one that began a moment before will do: it tells of nothing on the engine
	after bool // and whoever asks waits for the end of it
	done  chan error
}

// ending is a step that ended.
type ending struct {
	action ring.Action
	done   ring.Done
	err    error
}

// New makes a loop for sources; it starts nothing.
func New(o Options, sources []Source) *Loop {
	if o.Steps == 0 {
		o.Steps = 8
	}
	if o.Pulls == 0 {
		o.Pulls = 3
	}
	l := &Loop{
		Options: o, sources: slices.Clone(sources), poke: make(chan struct{}, 1), requests: make(chan request),
		ended: make(chan ending), changed: make(chan struct{}), busy: map[string]ring.Action{}, began: map[string]*atomic.Bool{}, recent: NewRecent(),
		known: map[string]ring.Health{}, far: make(chan struct{}, 1), over: make(chan struct{}), progress: map[string]string{},
		steps: newPool(o.Steps), pulls: newPool(o.Pulls),
	}
	l.status = ring.Status{Host: o.Host, Gitring: o.Gitring, Sources: []ring.SourceStatus{}}
	for _, s := range sources {
		l.status.Sources = append(l.status.Sources, ring.SourceStatus{
			Name: s.Name, Branch: s.Branch, Trust: s.Trust, Sync: ring.SyncUnknown, Reason: "the daemon has not looked yet", Apps: []ring.AppStatus{},
		})
	}
	return l
}

// Poke asks for a look soon; it never blocks.
func (l *Loop) Poke() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// Status is the truth as of the last look; the channel is closed when there is
// a newer one.
func (l *Loop) Status() (ring.Status, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.status
	if trial := l.onTrial(); trial != nil && st.Trial == nil { // it is asked before the first look, too
		st.Trial = &ring.Trial{From: trial.From}
	}
	return st, l.changed
}

// Offer tells the loop what a source learned; reached says that its remote
// answered just now. It blocks until the loop took it or ctx ends.
func (l *Loop) Offer(ctx context.Context, s Source, reached bool) error {
	return l.sendRequest(ctx, request{look: true, seen: true, act: func(l *Loop) ([]ring.Fact, []ring.Event, error) {
		i := slices.IndexFunc(l.sources, func(x Source) bool { return x.Name == s.Name })
		if i < 0 {
			return nil, nil, errors.New("cannot offer an unknown source " + s.Name)
		}
		s.Reached = l.sources[i].Reached
		if reached {
			s.Reached = l.steadyNow() // by the clock that will ask how long ago it was
		}
		l.sources[i] = s
		return nil, nil, nil
	}})
}

// Looked returns when a look that began after the call has ended. Whoever asks
// may just have taken away what was in the way of an app.
func (l *Loop) Looked(ctx context.Context) error {
	return l.sendRequest(ctx, request{look: true, after: true, act: func(l *Loop) ([]ring.Fact, []ring.Event, error) {
		l.recent.admitAgain()
		return nil, nil, nil
	}})
}

// Reread reads the facts again, after the store was trimmed.
func (l *Loop) Reread(ctx context.Context) error {
	return l.sendRequest(ctx, request{act: func(l *Loop) ([]ring.Fact, []ring.Event, error) {
		facts, err := l.Memory.Facts(ctx)
		if err == nil {
			l.facts = facts
		}
		return nil, nil, err
	}})
}

// World is a copy of what the loop would decide from now, for a plan that is
// only to be shown.
func (l *Loop) World(ctx context.Context) (w World, err error) {
	err = l.sendRequest(ctx, request{act: func(l *Loop) ([]ring.Fact, []ring.Event, error) {
		w = l.makeWorld()
		w.Facts = copyFacts(l.facts)
		return nil, nil, nil
	}})
	return w, err
}

func copyFacts(f ring.Facts) ring.Facts {
	for _, table := range ring.Tables() {
		f.Own(table)
	}
	return f
}

func (l *Loop) sendRequest(ctx context.Context, r request) error {
	r.done = make(chan error, 1)
	select {
	case l.requests <- r:
	case <-l.over:
		return ErrOver
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-l.over:
		return l.lastAnswer(r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrOver says that the loop has ended, and looks no more.
var ErrOver = fmt.Errorf("the daemon is stopping: %w", context.Canceled)

// lastAnswer is the answer of a request that the loop took before it ended.
func (l *Loop) lastAnswer(r request) error {
	select {
	case err := <-r.done:
		return err
	default:
		return ErrOver
	}
}

// steadyNow never jumps: the wall clock at the start of the daemon, carried on by
// the monotonic one (I15).
func (l *Loop) steadyNow() time.Time {
	return l.start.Add(time.Since(l.start)).Round(0).UTC()
}

// Run looks and carries out until ctx ends, and returns when every step that
// it started has ended.
func (l *Loop) Run(ctx context.Context) error {
	defer close(l.over)
	l.start = time.Now()
	l.pulse.begin(l.steadyNow())
	l.work.Go(func() { l.pulse.run(ctx, l.steadyNow) })
	facts, err := l.Memory.Facts(ctx)
	if ctx.Err() != nil {
		return nil // it was ended before it began
	}
	if err != nil {
		return err
	}
	l.facts = calmFacts(facts, l.steadyNow())
	stop := context.WithoutCancel(ctx)
	defer l.drainSteps(stop)
	wake := time.NewTimer(0)
	defer wake.Stop()
	var rest time.Time    // no look before it, so that a storm of hints leaves half the time to others
	var crowded time.Time // nor before this one while steps queue; see gather
	for {
		look := false
		var ended []ending
		select {
		case <-ctx.Done():
			return nil
		case e := <-l.ended:
			ended = append(ended, e)
			look = true
		case r := <-l.requests:
			if look = l.answerRequest(stop, r); look {
				crowded = time.Time{} // somebody waits
			}
		case <-l.poke:
			l.looked = time.Time{}
			look = true
		case <-l.far:
			l.retellStatus()
		case <-wake.C:
			l.looked = time.Time{}
			look = true
		}
		if !look {
			continue
		}
		if len(ended) > 0 || !l.stillSeen(l.steadyNow()) { // else nobody is asked anything
			if ended = l.pauseFor(ctx, time.Until(rest), ended); ctx.Err() != nil {
				l.settleEnds(stop, ended...)
				return nil
			}
		}
		l.takeEnds(stop, l.gatherEnds(ctx, stop, ended, crowded))
		began := time.Now()
		next := l.runPass(ctx)
		if ctx.Err() != nil {
			return nil // whoever waits for the look hears that there is none
		}
		if l.Passed != nil {
			l.Passed()
		}
		for _, done := range l.waiting {
			done <- nil
		}
		l.waiting = nil
		rest = time.Now().Add(l.restAfter(time.Since(began)))
		crowded = began.Add(crowdedLook)
		wake.Reset(next)
	}
}

// restAfter is how long no hint brings another look: as long as the last one took, a second at most.
// One that failed may have taken no time at all.
func (l *Loop) restAfter(took time.Duration) time.Duration {
	if l.failed > 0 {
		return time.Second
	}
	return min(took, time.Second)
}

// pauseFor lets d pass before the next look, and takes the ends of steps meanwhile. The end of
// a step that something waits for cuts it short.
func (l *Loop) pauseFor(ctx context.Context, d time.Duration, ended []ending) []ending {
	t := time.NewTimer(d)
	defer t.Stop()
	for !slices.ContainsFunc(ended, isAwaited) {
		select {
		case e := <-l.ended:
			ended = append(ended, e)
		case <-t.C:
			return ended
		case <-ctx.Done():
			return ended
		}
	}
	return ended
}

// isAwaited reports whether what comes after a step waits for the next look: its service may have
// nothing that runs until then, or its app comes into force by it.
func isAwaited(e ending) bool {
	switch e.action.Kind {
	case ring.DoStop, ring.DoResolve, ring.DoVerify, ring.DoPull, ring.DoAdmit:
		return true
	}
	return false
}

// takeEnds drains what happened meanwhile, so that one look serves it all, and one
// transaction the steps that ended.
func (l *Loop) takeEnds(ctx context.Context, ended []ending) {
	for {
		select {
		case e := <-l.ended:
			ended = append(ended, e)
		case r := <-l.requests:
			l.settleEnds(ctx, ended...) // what happened before is answered for
			ended = nil
			l.answerRequest(ctx, r)
		case <-l.poke:
			l.looked = time.Time{}
		default:
			l.settleEnds(ctx, ended...)
			return
		}
	}
}

// drainSteps waits for the steps in flight: what was asked of the engine is
// recorded before the daemon ends.
func (l *Loop) drainSteps(ctx context.Context) {
	all := make(chan struct{})
	go func() { l.work.Wait(); close(all) }()
	for {
		select {
		case e := <-l.ended:
			if !errors.Is(e.err, context.Canceled) { // it never began
				l.settleEnds(ctx, e)
			}
		case <-all:
			return
		}
	}
}

func (l *Loop) answerRequest(ctx context.Context, r request) bool {
	if r.look && !r.seen {
		l.looked = time.Time{}
	}
	facts, events, err := r.act(l)
	if err == nil && len(facts)+len(events) > 0 && l.onTrial() != nil {
		err = ErrOnTrial
	}
	if err == nil && len(facts)+len(events) > 0 {
		err = l.recordFacts(ctx, facts, events)
	}
	if err == nil && r.after {
		l.waiting = append(l.waiting, r.done)
		return true
	}
	r.done <- err
	return r.look
}

func (l *Loop) settleEnds(ctx context.Context, ended ...ending) {
	var facts []ring.Fact
	var events []ring.Event
	for _, e := range ended {
		if !onlyAsks(e.action.Kind) {
			l.looked = time.Time{}
		}
		delete(l.busy, e.action.Target())
		delete(l.began, e.action.Target())
		l.forgetProgress(e.action.Target())
		if e.done.Front != nil {
			put(&l.acknowledged, e.action.Instance, *e.done.Front)
		}
		f, ev := Settle(l.recent, l.facts.Kept, e.action, e.done, e.err, l.steadyNow())
		facts, events = append(facts, f...), append(events, ev...)
	}
	if err := l.recordFacts(ctx, facts, events); err != nil {
		l.Log.Error("cannot record the end of steps", "steps", len(ended), "err", err)
	}
}

// recordFacts writes down, then believes.
func (l *Loop) recordFacts(ctx context.Context, facts []ring.Fact, events []ring.Event) error {
	if len(facts)+len(events) == 0 {
		return nil
	}
	if err := l.Memory.Record(ctx, facts, events); err != nil {
		return err
	}
	posted := false
	for _, f := range facts {
		l.facts.Set(f)
		_, post := f.(ring.Post)
		posted = posted || post
	}
	for _, e := range events {
		l.Log.LogAttrs(ctx, slog.LevelInfo, e.Kind, eventAttrs(e)...)
	}
	if posted && l.Posted != nil {
		l.Posted()
	}
	return nil
}

// eventAttrs are the keys of an event that say something.
func eventAttrs(e ring.Event) []slog.Attr {
	var out []slog.Attr
	for _, kv := range [][2]string{
		{"source", e.Source},
		{"app", e.App},
		{"service", e.Service},
		{"version", e.Version.Short()},
		{"commit", e.Commit.Short()},
		{"actor", e.Actor},
		{"reason", e.Reason},
	} {
		if kv[1] != "" {
			out = append(out, slog.String(kv[0], kv[1]))
		}
	}
	if e.Slot > 0 {
		out = append(out, slog.Int("slot", e.Slot))
	}
	return out
}

// onlyAsks reports whether a step leaves the containers and networks of the engine as they are.
func onlyAsks(k ring.ActionKind) bool { return k == ring.DoAdmit || asksRegistry(k) }

// stillSeen reports whether the last look serves still.
func (l *Loop) stillSeen(now time.Time) bool {
	return !l.looked.IsZero() && now.Sub(l.looked) < seenServes
}

// observe looks at the engine, unless the last look still serves: on the way to a new version
// steps that only ask follow each other within moments.
func (l *Loop) observe(ctx context.Context) error {
	began := l.steadyNow()
	if l.stillSeen(began) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	l.tellAdopted()
	seen, err := l.Engine.Look(ctx)
	if err != nil {
		return err
	}
	now := l.steadyNow()
	if !l.dark.IsZero() && seen.Cluster != nil {
		l.pulse.begin(now) // without quorum no update gets further, and nobody saw it
	}
	l.said, l.dark, l.looked = "", time.Time{}, began
	l.dates.begin(began)
	l.dates.dateInstances(seen.Instances, now)
	l.known = l.dates.dateHealth(l.Health.Health(), seen.Instances, now)
	l.seen = seen
	return nil
}

// runPass is one pass: observe, decide, write down, carry out. It says how long
// to wait for the next one.
func (l *Loop) runPass(ctx context.Context) time.Duration {
	began := l.steadyNow()
	err := l.observe(ctx)
	if ctx.Err() != nil {
		return fullLook
	}
	if err != nil {
		l.looked = time.Time{}
		l.failed++
		l.blindPass(ctx, err)
		return min(fullLook, time.Second<<min(l.failed, 8))
	}
	l.failed = 0
	now := l.steadyNow()
	d := Diff(l.makeWorld(), now)
	anew := !l.looked.Before(began)
	if l.Took != nil && anew {
		l.Took(now.Sub(began), l.steadyNow().Sub(now))
	}
	if trial := l.onTrial(); trial != nil {
		if anew {
			l.looks++
		}
		l.trialPass(trial, &d)
		return l.waitFor(&d, now)
	}
	if err := l.recordFacts(ctx, d.Facts, d.Events); err != nil {
		l.mutePass(d.Status, err)
		return unwritten
	}
	l.unsaid = ""
	l.Health.Watch(d.Probes)
	if l.Fronts != nil {
		l.Fronts.Watch(d.Fronts)
	}
	if l.Words != nil {
		l.Words.Watch(d.Words)
	}
	l.showStatus(d.Status)
	for _, a := range d.Actions {
		l.launchStep(ctx, a)
	}
	return l.waitFor(&d, now)
}

// waitFor is how long after a decision of now the next look is.
func (l *Loop) waitFor(d *Decision, now time.Time) time.Duration {
	if wait := d.Wake.Sub(now); !d.Wake.IsZero() && wait < fullLook {
		return max(wait, time.Millisecond)
	}
	return fullLook
}

// tellAdopted tells the engine whose containers it may look at and change.
func (l *Loop) tellAdopted() {
	if l.Adopts == nil {
		return
	}
	ids := make(map[string]bool, len(l.facts.Adopted))
	for id := range l.facts.Adopted {
		ids[id] = true
	}
	l.Adopts(ids)
}

// mutePass is a pass whose decision cannot be written down: nothing of it is done,
// and people are told why.
func (l *Loop) mutePass(st ring.Status, err error) {
	if says := err.Error(); says != l.unsaid {
		l.unsaid = says
		l.Log.Error("cannot record a decision, so nothing of it is done", "err", err)
	}
	st.Store = err.Error()
	l.showStatus(st)
}

// blindPass is a pass without an observation: not seen is not empty. What trust
// refused is still told.
func (l *Loop) blindPass(ctx context.Context, err error) {
	if says := err.Error(); says != l.said {
		l.said = says
		l.Log.Error("cannot look at the engine; nothing is changed meanwhile", "err", err)
	}
	w, now := l.makeWorld(), l.steadyNow()
	if l.dark.IsZero() {
		l.dark = now
	}
	d := Diff(w, now)
	if trial := l.onTrial(); trial != nil {
		d.Status.Engine = err.Error()
		l.showTrial(trial, &d)
		return
	}
	var told []ring.Fact
	refused := map[string]bool{}
	for _, f := range d.Facts {
		if p, ok := f.(ring.Post); ok && (p.Code == ring.WhyCommitRefused || p.Code == ring.WhyAppRefused) {
			told = append(told, p)
			_, key := p.Row()
			refused[key] = true
		}
	}
	for _, f := range awayPosts(w, l.dark, now) {
		if _, key := f.Row(); !refused[key] {
			told = append(told, f)
		}
	}
	// A refusal is journalled with its first post, and never again.
	events := slices.DeleteFunc(d.Events, func(e ring.Event) bool { return e.Kind != ring.CommitRefused })
	if err := l.recordFacts(ctx, told, events); err != nil {
		l.Log.Error("cannot record what the forge is to be told", "err", err)
	}
	d.Status.Engine = err.Error()
	l.showStatus(d.Status)
}

func (l *Loop) makeWorld() World {
	return World{
		Wall: time.Now().Round(0).UTC(), Awake: l.pulse.awakeSince(l.steadyNow()),
		Host: l.Host, Gitring: l.Gitring, Sources: slices.Clone(l.sources), Facts: l.facts, Seen: l.seen,
		Health: l.known, Fronts: l.frontsSeen(), Words: l.wordsSeen(), Busy: maps.Clone(l.busy), Queued: l.queuedTargets(), Recent: l.recent.clone(),
		Progress: l.howFar(), KeepImages: l.KeepImages, Signing: l.signing(),
		TagRules: l.tagRules(), Zone: time.Local,
	}
}

func (l *Loop) signing() Signing {
	if l.Signing == nil {
		return Signing{}
	}
	return l.Signing()
}

func (l *Loop) tagRules() TagRules {
	if l.TagRules == nil {
		return TagRules{}
	}
	return l.TagRules()
}

func (l *Loop) wordsSeen() map[ring.WordAt]ring.Word {
	if l.Words == nil {
		return nil
	}
	return l.Words.Seen()
}

func (l *Loop) showStatus(s ring.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status = s
	close(l.changed)
	l.changed = make(chan struct{})
}
