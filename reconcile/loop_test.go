package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitring/gitring/ring"
)

// host is an engine, probes and a memory for the real loop, on the model engine
// of the simulation, whose clock is that of the synctest bubble.
type host struct {
	mu      sync.Mutex
	engine  *engine
	facts   ring.Facts
	deaf    error // what Look says
	full    error // what Record says
	foreign error // what DoAdmit says
	looks   int
	looking int
	records int
	journal []ring.Event
	steps   []ring.Action
	flying  map[string]int // steps in flight, by target
	takes   func(ring.Action) time.Duration
	hangs   func(ring.Action) bool // until its context ends
	kept    func(ring.Fact)
	bad     []string
}

func newHost() *host {
	return &host{
		engine: newEngine(rand.New(rand.NewSource(1))), facts: ring.NewFacts(), flying: map[string]int{},
		takes: func(ring.Action) time.Duration { return 200 * time.Millisecond }, hangs: func(ring.Action) bool { return false },
	}
}

func (h *host) Look(ctx context.Context) (ring.Seen, error) {
	h.mu.Lock()
	h.looks++
	h.looking++
	if h.looking > 1 {
		h.bad = append(h.bad, "two looks at once")
	}
	h.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looking--
	if h.deaf != nil {
		return ring.Seen{}, h.deaf
	}
	h.engine.now = time.Now()
	h.engine.tick()
	s := ring.Seen{At: time.Now()}
	if h.engine.swarm != nil {
		s.Cluster, s.Instances = h.engine.clusterSeen(), h.engine.tasksSeen()
	}
	for _, id := range h.engine.each() {
		if h.engine.swarm != nil {
			break
		}
		in := h.engine.boxes[id].Instance
		in.Addresses = maps.Clone(in.Addresses)
		s.Instances = append(s.Instances, in)
	}
	for _, name := range sortedIDs(h.engine.nets) {
		s.Networks = append(s.Networks, h.engine.nets[name])
	}
	return s, nil
}

func (h *host) Do(ctx context.Context, a ring.Action) (ring.Done, error) {
	h.mu.Lock()
	h.steps = append(h.steps, a)
	if h.flying[a.Target()]++; h.flying[a.Target()] > 1 {
		h.bad = append(h.bad, "two steps at once for "+a.Target())
	}
	wait, hang := h.takes(a), h.hangs(a)
	h.mu.Unlock()
	if hang {
		<-ctx.Done()
	} else {
		time.Sleep(wait)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flying[a.Target()]--
	if hang {
		return ring.Done{}, ctx.Err()
	}
	h.engine.now = time.Now()
	if a.Kind == ring.DoAdmit && h.foreign != nil {
		return ring.Done{}, h.foreign
	}
	return h.engine.apply(a)
}

func (h *host) Watch([]ring.Probe) {}

func (h *host) Health() map[string]ring.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.engine.now = time.Now()
	out := map[string]ring.Health{}
	for id, b := range h.engine.boxes {
		if h.engine.ready(b) {
			out[id] = ring.Health{Ready: true, Since: b.Started.Add(h.engine.nature(b).readyAfter)}
		} else {
			out[id] = ring.Health{Reason: "readiness check up: 503"}
		}
	}
	return out
}

func (h *host) Facts(context.Context) (ring.Facts, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return copyFacts(h.facts), nil
}

func (h *host) Record(_ context.Context, facts []ring.Fact, events []ring.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records++
	if h.full != nil {
		return h.full
	}
	for _, f := range facts {
		h.facts.Set(f)
		if h.kept != nil {
			h.kept(f)
		}
	}
	h.journal = append(h.journal, events...)
	return nil
}

// with holds the lock while f looks at the host or changes it.
func (h *host) with(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// made counts steps of a kind.
func (h *host) made(k ring.ActionKind) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, a := range h.steps {
		if a.Kind == k {
			n++
		}
	}
	return n
}

// playLoop runs a loop on h in a bubble until the test's body returns, and
// holds it to what is always so: synctest itself fails when a goroutine stays.
func playLoop(t *testing.T, body func(t *testing.T, h *host, l *Loop)) {
	playLoopWith(t, func(*Options) {}, body)
}

// playLoopWith is the same with other options.
func playLoopWith(t *testing.T, with func(*Options), body func(t *testing.T, h *host, l *Loop)) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		o := Options{Host: "sim", Gitring: "test", Engine: h, Health: h, Memory: h, Log: slog.New(slog.DiscardHandler)}
		with(&o)
		l := New(o, []Source{{Name: "s", Branch: "main", FreshFor: 5 * time.Minute}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		// Deferred, so that a test that gives up half way waits for it too.
		defer h.judge(t)
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		}()
		body(t, h, l)
	})
}

// judge says what went wrong on the host, once the loop has ended.
func (h *host) judge(t *testing.T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for target, n := range h.flying {
		if n != 0 {
			t.Errorf("Run returned with a step on %s in flight", target)
		}
	}
	if h.engine.bad != nil {
		h.bad = append(h.bad, h.engine.bad.Error())
	}
	if len(h.bad) > 0 {
		t.Errorf("%s\n%s", strings.Join(h.bad, "\n"), h.engine.read(40))
	}
}

// tree is a plan of services, each an app of its own, "web=v1".
func tree(commit string, services ...string) Source {
	c := chapter{plan: &ring.Plan{Source: "s", Commit: shaOf(commit)}, tree: map[string]declared{}}
	s := newStory()
	for _, service := range services {
		name, image, _ := strings.Cut(service, "=")
		if err := s.declare([]string{name, "min_ready", "1s"}); err != nil {
			panic(err)
		}
		d := *s.decls[name]
		d.Spec.Image = image
		c.tree[name] = d
	}
	c.build()
	return Source{Name: "s", Branch: "main", FreshFor: 5 * time.Minute, Tip: c.plan.Commit, Commit: &ring.Commit{SHA: c.plan.Commit}, Next: c.plan}
}

func offer(t *testing.T, l *Loop, s Source) {
	t.Helper()
	if err := l.Offer(t.Context(), s, true); err != nil {
		t.Fatal(err)
	}
}

// await waits until the source's sync is the word, at most so long.
func await(t *testing.T, l *Loop, want ring.Sync, limit time.Duration) {
	t.Helper()
	late := time.After(limit)
	for {
		st, changed := l.Status()
		if len(st.Sources) == 1 && st.Sources[0].Sync == want {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("not %s within %s: %s %s", want, limit, st.Sources[0].Sync, st.Sources[0].Reason)
		}
	}
}

func TestLoopCarriesOut(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		if st, _ := l.Status(); st.Sources[0].Sync != ring.SyncUnknown {
			t.Errorf("before the first look it is %s", st.Sources[0].Sync)
		}
		offer(t, l, tree("c1", "web=v1", "db=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		offer(t, l, tree("c2", "web=v2", "db=v1"))
		if err := l.Looked(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st, _ := l.Status(); st.Sources[0].Sync != ring.SyncStaging {
			t.Errorf("after a look it is %s", st.Sources[0].Sync)
		}
		await(t, l, ring.SyncSynced, time.Minute)
		if n := h.made(ring.DoCreate); n != 3 {
			t.Errorf("%d creates", n)
		}
		time.Sleep(time.Minute) // the restart policies
		before := h.made(ring.DoCreate) + h.made(ring.DoRemove) + h.made(ring.DoPolicy)
		time.Sleep(time.Hour)
		if n := h.made(ring.DoCreate) + h.made(ring.DoRemove) + h.made(ring.DoPolicy); n != before {
			t.Errorf("%d steps at rest", n-before)
		}
	})
}

// Whoever ended what was in the way and asks for a look is not told once more
// that it is in the way.
func TestLoopAdmitsAgainWhenSomebodyAsks(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		h.with(func() {
			r := &ring.Refusal{Code: ring.ForeignProject, Says: "a project runs here"}
			h.foreign = &ring.EngineError{Refusal: r, Err: r, Wait: time.Hour}
		})
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncDegraded, time.Minute)
		h.with(func() { h.foreign = nil })
		if err := l.Looked(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st, _ := l.Status(); st.Sources[0].Sync != ring.SyncStaging {
			t.Errorf("after somebody asked it is %s: %s", st.Sources[0].Sync, st.Sources[0].Reason)
		}
		await(t, l, ring.SyncSynced, time.Minute)
	})
}

func TestLoopHealsBesideAHangingPull(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1", "db=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		h.with(func() {
			h.hangs = func(a ring.Action) bool {
				return a.Kind == ring.DoPull && strings.HasPrefix(a.Image, "slow@")
			}
		})
		offer(t, l, tree("c2", "web=slow", "db=v2"))
		time.Sleep(20 * time.Second)
		running := func(name string) (out bool) {
			h.with(func() {
				for _, b := range h.engine.boxes {
					out = out || b.running() && b.App == strings.Split(name, "=")[0] && b.image == strings.Split(name, "=")[1]
				}
			})
			return out
		}
		if !running("db=v2") {
			t.Error("the other app waits for the pull")
		}
		h.with(func() {
			for _, b := range h.engine.boxes {
				if b.App == "web" {
					h.engine.exit(b, 1)
				}
			}
		})
		l.Poke()
		time.Sleep(2 * time.Second)
		if !running("web=v1") {
			t.Error("a crash waits for the pull")
		}
		if n := h.made(ring.DoPull); n != 3 { // v1 for both, slow, v2
			t.Errorf("%d pulls", n)
		}
		time.Sleep(10 * time.Minute) // its own timeout ends the pull, and it is tried again
		if n := h.made(ring.DoPull); n < 4 {
			t.Errorf("%d pulls after the timeout", n)
		}
	})
}

func TestLoopReturnsAfterWhatItStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.takes = func(a ring.Action) time.Duration {
			if a.Kind == ring.DoRemove {
				return 30 * time.Second
			}
			return 200 * time.Millisecond
		}
		l := New(Options{Host: "sim", Engine: h, Health: h, Memory: h, Log: slog.New(slog.DiscardHandler)}, []Source{{Name: "s", FreshFor: time.Hour}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var running sync.WaitGroup
		running.Go(func() { ended <- l.Run(ctx) })
		defer running.Wait()
		defer cancel()
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		offer(t, l, tree("c2", "web=v2"))
		for h.made(ring.DoRemove) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		began := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if waited := time.Since(began); waited < 25*time.Second {
			t.Errorf("Run returned after %s, with a stop under way", waited)
		}
		h.with(func() {
			if len(h.facts.Intents) != 0 {
				t.Error("the end of the step was not recorded")
			}
			if len(h.engine.boxes) != 1 {
				t.Errorf("%d containers", len(h.engine.boxes))
			}
		})
	})
}

func TestLoopDoesNothingItCannotRecord(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(time.Minute)
		h.with(func() { h.full = errors.New("disk full") })
		offer(t, l, tree("c2"))
		h.with(func() {
			for _, b := range h.engine.boxes {
				h.engine.exit(b, 1)
			}
			h.steps = nil
		})
		l.Poke()
		time.Sleep(5 * time.Minute)
		h.with(func() {
			if len(h.steps) > 0 {
				t.Errorf("%s %s without a record", h.steps[0].Kind, h.steps[0].Name)
			}
			if h.records < 100 {
				t.Errorf("tried %d times in 5 minutes", h.records)
			}
			h.full = nil
		})
		time.Sleep(5 * time.Second)
		h.with(func() {
			for _, b := range h.engine.boxes {
				if !b.running() {
					t.Error("not healed though the store writes again")
				}
			}
		})
	})
}

func TestLoopDoesNothingWhileBlind(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(time.Minute)
		h.with(func() {
			h.deaf = errors.New("engine: 500")
			clear(h.engine.boxes)
			h.engine.sorted, h.steps = nil, nil
		})
		offer(t, l, tree("c2", "web=v2"))
		if err := l.Looked(t.Context()); err != nil {
			t.Fatal(err)
		}
		if st, _ := l.Status(); st.Engine != "engine: 500" {
			t.Errorf("the status says of the engine: %q", st.Engine)
		}
		time.Sleep(time.Hour)
		h.with(func() {
			if len(h.steps) > 0 {
				t.Errorf("%s %s, unseen", h.steps[0].Kind, h.steps[0].Name)
			}
			h.deaf = nil
		})
		await(t, l, ring.SyncSynced, time.Minute)
		if st, _ := l.Status(); st.Engine != "" {
			t.Errorf("the status still says of the engine: %q", st.Engine)
		}
	})
}

func TestLoopOffersAndApprovals(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		if err := l.Offer(t.Context(), Source{Name: "other"}, true); err == nil {
			t.Error("an unknown source is taken")
		}
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		offer(t, l, tree("c2"))
		await(t, l, ring.SyncHeld, time.Minute)
		for _, wrong := range []string{"", "c2ffff", "abcdefabcdef", string(shaOf("c1"))} {
			if err := l.Approve(t.Context(), wrong, "alice", "why not"); !errors.Is(err, ErrNothingToApprove) {
				t.Errorf("approve %q: %v", wrong, err)
			}
		}
		if h.made(ring.DoRemove) != 0 {
			t.Error("removed without approval")
		}
		if err := l.Approve(t.Context(), "c2fffff", "alice", "it moved"); err != nil {
			t.Error(err)
		}
		// Approve returns after a look: what it allows is under way.
		if st, _ := l.Status(); st.Sources[0].Sync != ring.SyncApplying {
			t.Errorf("after the approval it is %s", st.Sources[0].Sync)
		}
		await(t, l, ring.SyncSynced, time.Minute)
		h.with(func() {
			if a := h.facts.Approvals[shaOf("c2")]; a.Actor != "alice" || a.Reason != "it moved" {
				t.Errorf("recorded %+v", a)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Looked(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Looked with a context that ended: %v", err)
		}
	})
}

func TestLoopReachedIsByItsOwnClock(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "a=v1", "b=v1", "c=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		time.Sleep(10 * time.Minute)
		stale := tree("c2", "a=v1", "b=v1")
		stale.Reached = time.Now().Add(24 * time.Hour) // whatever a caller thinks
		if err := l.Offer(t.Context(), stale, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if h.made(ring.DoRemove) != 0 {
			t.Error("pruned by a source that was not reached")
		}
		offer(t, l, tree("c2", "a=v1", "b=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		if h.made(ring.DoRemove) != 1 {
			t.Error("not pruned though the source was reached")
		}
	})
}

func TestLoopOutlivesAStormOfHints(t *testing.T) {
	playLoop(t, func(t *testing.T, h *host, l *Loop) {
		offer(t, l, tree("c1", "web=v1"))
		await(t, l, ring.SyncSynced, time.Minute)
		var before int
		h.with(func() { before = h.looks })
		for range 10_000 {
			l.Poke()
			time.Sleep(time.Millisecond)
		}
		h.with(func() {
			// A look takes 10 ms here, and as long again is left to others.
			if n := h.looks - before; n > 550 || n < 100 {
				t.Errorf("%d looks in 10 s", n)
			}
		})
	})
}

func TestLoopForgetsStepsThatNeverBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.hangs = func(a ring.Action) bool { return a.Kind == ring.DoPull }
		l := New(Options{Host: "sim", Engine: h, Health: h, Memory: h, Log: slog.New(slog.DiscardHandler), Pulls: 1}, []Source{{Name: "s", FreshFor: time.Hour}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var running sync.WaitGroup
		running.Go(func() { ended <- l.Run(ctx) })
		defer running.Wait()
		defer cancel()
		var services []string
		for n := range 5 {
			services = append(services, fmt.Sprintf("a%d=v%d", n, n))
		}
		offer(t, l, tree("c1", services...))
		time.Sleep(time.Minute)
		if n := h.made(ring.DoPull); n != 1 {
			t.Errorf("%d pulls at once in a pool of one", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
