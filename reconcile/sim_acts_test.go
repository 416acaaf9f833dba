package reconcile

import (
	"errors"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// hands are a person who acts at any moment, by dice of its own: the seeds of the
// simulation without a person stay what they are.
type hands struct {
	r    *rand.Rand
	made map[Verb]int
	wide bool // on every app and service, jobs and cron jobs among them
}

// meddleByHand is one act or none; what does not fit is refused, and changes nothing.
func (s *scenario) meddleByHand(h *hands) {
	if h.r.Intn(12) > 0 {
		return
	}
	all := []Verb{Pause, Resume, Promote, Abort, Restart, Undo, HoldIt, Release, Scale, Retry}
	a := Act{
		Verb: all[h.r.Intn(len(all))], App: "web", Service: []string{"a", "b"}[h.r.Intn(2)], Actor: "alice", Reason: "a simulation",
		For: time.Duration(1+h.r.Intn(90)) * time.Second, Replicas: h.r.Intn(4),
	}
	if h.wide {
		s.aim(h, &a)
	}
	if a.Verb == Undo || h.r.Intn(3) == 0 && (a.Verb == HoldIt || a.Verb == Release || a.Verb == Retry) {
		a.Service = ""
	}
	if a.Verb == Undo {
		a.Plan = Before(&s.disk, a.App, "")
	}
	if s.carry(a) {
		h.made[a.Verb]++
	}
}

// aim has an act of a wide scenario be on anything that there may be, a run among them.
func (s *scenario) aim(h *hands, a *Act) {
	switch h.r.Intn(8) {
	case 0:
		a.Service = "c"
	case 1:
		a.App, a.Service = "zoo", "z"
	case 2:
		a.Verb = RunNow
		a.Service = []string{"b", "c"}[h.r.Intn(2)]
	}
}

// approveAll is a person's yes, sooner or later, where a commit waits for one.
func (s *scenario) approveAll() {
	if s.src.Apply != ApplyApprove || s.src.Next == nil || s.mute || s.person != nil && s.person.r.Intn(15) > 0 {
		return
	}
	if _, ok := s.disk.Approvals[s.src.Next.Commit]; !ok {
		s.note("alice approves %s", s.src.Next.Commit.Short())
		s.record([]ring.Fact{ring.Approval{Commit: s.src.Next.Commit, Actor: "alice", Reason: "a simulation", At: s.clock()}}, nil)
		s.mem.wake = s.now
	}
}

// carry does what Loop.Do does, and says whether it was done.
func (s *scenario) carry(a Act) bool {
	if s.mute {
		return false // it is told that it cannot be written down
	}
	done, err := Carry(s.world(), a, s.clock())
	var u *Unfit
	if err != nil {
		if !errors.As(err, &u) && !errors.Is(err, ErrNotFound) {
			s.violate("%s: %v", a.Verb, err)
		}
		return false
	}
	s.acted = true
	s.note("alice: %s %s/%s: %s", a.Verb, a.App, a.Service, done.Says)
	s.mem.recent.tryAgain(done.Again)
	s.record(done.Facts, done.Events)
	s.mem.wake = s.now
	return true
}

// letGo ends everything that stands: Git wins from here on.
func (s *scenario) letGo() {
	for _, app := range []string{"web", "zoo"} {
		s.carry(Act{Verb: Release, App: app, Actor: "alice", Reason: "the end"})
	}
}

// untouched holds every step to a hold: what is in flight when it begins is over
// soon, and nothing more begins.
func (s *scenario) untouched(a ring.Action) {
	if slices.Contains([]ring.ActionKind{ring.DoResolve, ring.DoPull, ring.DoAdmit, ring.DoLog, ring.DoImageOff}, a.Kind) {
		return
	}
	for _, target := range []string{a.App, a.App + "/" + a.Service} {
		if o, ok := s.disk.Overrides[ring.OverrideKey(ring.OverrideHold, target)]; ok && s.clock().Before(o.Until) {
			s.violate("hold: %s %s while %s is held", a.Kind, a.Name, target)
		}
	}
}

// TestAPersonAtAnyMoment plays the simulation with a person who pauses, holds,
// aborts, undoes, scales and restarts in the middle of everything, and lets go in
// the end: then all is as the last commit asks.
func TestAPersonAtAnyMoment(t *testing.T) {
	made, n := map[Verb]int{}, int64(100)
	if v, err := strconv.ParseInt(os.Getenv("GITRING_SIM_N"), 10, 64); err == nil {
		n = v
	}
	for seed := int64(1); seed <= n; seed++ {
		s := newScenario(seed)
		h := &hands{r: rand.New(rand.NewSource(-seed)), made: made}
		s.person = h
		if err := s.run(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, s.read(300))
		}
		if len(s.disk.Overrides) > 0 {
			t.Fatalf("seed %d: overrides stand at the end: %v", seed, s.disk.Overrides)
		}
	}
	for _, verb := range []Verb{Pause, Resume, Abort, Restart, Undo, HoldIt, Release, Scale, Retry} {
		if made[verb] == 0 && n >= 100 {
			t.Errorf("nobody ever did %s", verb)
		}
	}
}
