package reconcile

import (
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// Twenty hosts follow one branch, each by Diff alone, and hear of each other by a forge that
// the schedule makes slow, silent, poor in words or lying. What a commit comes to on a host
// is the schedule's word, not the engine's: nothing here is about rollouts.

const (
	fleetSize = 20
	fleetFor  = 9 * time.Hour
	fleetLook = 5 * time.Minute // at most between two looks of a host
)

// fleetCommit is one of the branch.
type fleetCommit struct {
	sha     ring.SHA
	tree    string
	trailer bool
	at      time.Duration
}

// fleetHost is a host of the fleet, and what really happened there.
type fleetHost struct {
	name    string
	lag     time.Duration // until it has what is pushed
	dead    time.Duration // from when it does nothing any more; zero is never
	facts   ring.Facts
	recent  Recent
	next    int // the commit that it has; -1 is none
	looked  time.Duration
	settles map[int]time.Duration // commits in force, when they come to an end
	good    map[string]bool       // trees that completed here
	allowed map[int]bool          // by a person
	since   time.Duration         // since when it waits for others; -1 is not
	told    bool                  // and that people were told of this wait
}

type fleetWord struct {
	state string
	at    time.Duration
}

// fleetRun is one schedule.
type fleetRun struct {
	r       *rand.Rand
	waves   [][]string // names by wave
	soaks   []time.Duration
	commits []fleetCommit
	hosts   []*fleetHost
	// truth is what hosts wrote, by commit and host, the oldest first.
	truth map[string][]fleetWord
	poor  bool // one word for failure and error
	lies  bool
	away  [2]time.Duration // when the forge does not answer
	calm  bool             // nothing fails, nobody is dead, the forge answers
	yes   bool             // persons let commits pass
	stuck int              // how often people were told that a wait is long
	now   time.Duration
	log   []string
	bad   string
}

var fleetBegins = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func newFleetRun(seed int64) *fleetRun {
	r := rand.New(rand.NewSource(seed))
	f := &fleetRun{r: r, truth: map[string][]fleetWord{}, poor: r.Intn(3) == 0, lies: r.Intn(5) == 0, calm: r.Intn(4) == 0, yes: r.Intn(4) == 0}
	sizes := []int{1 + r.Intn(2), 2 + r.Intn(4), 3 + r.Intn(6)}[:1+r.Intn(3)]
	for i := range fleetSize {
		f.hosts = append(f.hosts, &fleetHost{
			name: fmt.Sprintf("h%02d", i), facts: ring.NewFacts(), recent: NewRecent(), next: -1, lag: time.Duration(r.Intn(180)) * time.Second,
			settles: map[int]time.Duration{}, good: map[string]bool{}, allowed: map[int]bool{}, since: -1,
		})
		if !f.calm && r.Intn(15) == 0 {
			f.hosts[i].dead = time.Duration(r.Int63n(int64(fleetFor)))
		}
	}
	at := 0
	for _, n := range sizes {
		var names []string
		for range n {
			names, at = append(names, f.hosts[at].name), at+1
		}
		f.waves = append(f.waves, names)
		f.soaks = append(f.soaks, time.Duration(r.Intn(4))*5*time.Minute)
	}
	if !f.calm && r.Intn(2) == 0 {
		begin := time.Duration(r.Int63n(int64(fleetFor)))
		f.away = [2]time.Duration{begin, begin + time.Duration(r.Int63n(int64(4*time.Hour)))}
	}
	trees := []string{"t0"}
	when := time.Duration(0)
	for i := range 1 + r.Intn(8) {
		tree := fmt.Sprintf("t%d", i)
		if i > 1 && r.Intn(4) == 0 {
			tree = trees[r.Intn(len(trees))] // a revert
		}
		trees = append(trees, tree)
		f.commits = append(f.commits, fleetCommit{sha: shaOf(fmt.Sprintf("c%d", i)), tree: tree, trailer: i > 0 && r.Intn(12) == 0, at: when})
		if when += time.Duration(1+r.Intn(90)) * time.Minute; r.Intn(3) == 0 {
			when -= time.Duration(r.Int63n(int64(when))) / 2 // close behind
		}
	}
	slices.SortFunc(f.commits, func(a, b fleetCommit) int { return int(a.at - b.at) })
	for i := range f.commits {
		f.commits[i].sha = shaOf(fmt.Sprintf("c%d", i))
	}
	return f
}

func (f *fleetRun) note(format string, args ...any) {
	f.log = append(f.log, fmt.Sprintf("%9s  %s", f.now.Round(time.Second), fmt.Sprintf(format, args...)))
}

func (f *fleetRun) violate(format string, args ...any) {
	if f.bad == "" {
		f.bad = fmt.Sprintf(format, args...)
		f.note("VIOLATED %s", f.bad)
	}
}

// waveOf is the index of a host's wave; len(waves) is after all.
func (f *fleetRun) waveOf(host string) int {
	for i, names := range f.waves {
		if slices.Contains(names, host) {
			return i
		}
	}
	return len(f.waves)
}

// plan is what a commit asks of a host.
func (f *fleetRun) plan(h *fleetHost, n int) *ring.Plan {
	c := f.commits[n]
	app := *newApp("web")
	s := ring.Service{Name: "web", Kind: ring.Worker, Replicas: 1, Spec: ring.Spec{Image: c.tree}}
	s.Written = ring.WrittenHash(s.Spec)
	app.Services, app.Commit = []ring.Service{s}, c.sha
	app.Written = ring.WrittenApp(app)
	p := &ring.Plan{Source: "s", Commit: c.sha, Apps: []ring.App{app}, AllowWaves: c.trailer}
	for i := range f.waveOf(h.name) {
		p.Waves = append(p.Waves, ring.Wave{Hosts: f.waves[i], Soak: f.soaks[i]})
	}
	return p
}

// heard is what a host reads at the forge now.
func (f *fleetRun) heard(asks []ring.WordAt) map[ring.WordAt]ring.Word {
	out := map[ring.WordAt]ring.Word{}
	if f.now >= f.away[0] && f.now < f.away[1] {
		return out
	}
	for _, a := range asks {
		if f.lies && f.r.Intn(3) == 0 {
			out[a] = ring.Word{State: []string{"", ring.PostSuccess, ring.PostFailure, ring.PostError, ring.PostPending}[f.r.Intn(5)]}
			continue
		}
		said := f.truth[string(a.Commit)+a.Host]
		if len(said) == 0 {
			continue
		}
		state := said[len(said)-1].state
		if f.poor && state == ring.PostError {
			state = ring.PostFailure
		}
		out[a] = ring.Word{State: state}
	}
	return out
}

func (f *fleetRun) say(h *fleetHost, n int, state string) {
	key := string(f.commits[n].sha) + h.name
	f.truth[key] = append(f.truth[key], fleetWord{state, f.now})
	f.note("%s says %s of c%d", h.name, state, n)
}

// look is one look of a host.
func (f *fleetRun) look(h *fleetHost) {
	h.looked = f.now
	now := fleetBegins.Add(f.now)
	src := Source{Name: "s", Branch: "main", Tip: f.commits[h.next].sha, Reached: now, FreshFor: time.Hour, Commit: &ring.Commit{SHA: f.commits[h.next].sha}, Next: f.plan(h, h.next)}
	w := World{Host: h.name, Sources: []Source{src}, Facts: copyFacts(h.facts), Recent: h.recent.clone()}
	d := Diff(w, now)
	w.Words = f.heard(d.Words)
	if f.yes && f.r.Intn(40) == 0 {
		if yes := approvalOf(w, "s", "alice", "a schedule", now); yes != nil {
			h.allowed[h.next] = true
			h.facts.Set(yes)
			w.Facts = copyFacts(h.facts)
			f.note("%s: a person lets c%d pass", h.name, h.next)
		}
	}
	d = Diff(w, now)
	for _, e := range d.Events {
		if e.Kind == ring.WaveStuck {
			h.told = true
			f.stuck++
			f.note("%s is stuck: %s", h.name, e.Reason)
		}
	}
	for _, fact := range d.Facts {
		h.facts.Set(fact)
		if in, ok := fact.(ring.InForce); ok {
			f.inForce(h, in)
		}
	}
	for _, a := range d.Actions {
		switch a.Kind {
		case ring.DoResolve, ring.DoPull, ring.DoAdmit:
			done := ring.Done{Pin: ring.Pin{Image: a.Image + "@sha256:" + a.Image}, Image: ring.Image{Known: true}}
			facts, _ := Settle(h.recent, h.facts.Kept, a, done, nil, now)
			for _, fact := range facts {
				h.facts.Set(fact)
			}
		}
	}
}

// inForce holds what came into force to the rules, by what hosts really wrote.
func (f *fleetRun) inForce(h *fleetHost, in ring.InForce) {
	n := slices.IndexFunc(f.commits, func(c fleetCommit) bool { return c.sha == in.App.Commit })
	if n < 0 || n != h.next || in.App.Services[0].Spec.Image != f.commits[n].tree {
		f.violate("%s has %s in force, which is not what it was given", h.name, in.App.Commit)
		return
	}
	f.note("c%d is in force on %s", n, h.name)
	if _, again := h.settles[n]; again {
		return
	}
	h.settles[n] = f.now + time.Duration(10+f.r.Intn(600))*time.Second
	h.since, h.told = -1, false
	free := f.lies || f.commits[n].trailer || h.allowed[n] || h.good[f.commits[n].tree] || f.sameAsBefore(h, n)
	if free {
		return
	}
	for i := range f.waveOf(h.name) {
		var all time.Duration
		for _, name := range f.waves[i] {
			at, ok := f.succeeded(name, n)
			if !ok {
				f.violate("c%d is in force on %s before %s succeeded", n, h.name, name)
				return
			}
			all = max(all, at)
		}
		if f.now < all+f.soaks[i] {
			f.violate("c%d is in force on %s after %s of a soak of %s", n, h.name, f.now-all, f.soaks[i])
		}
	}
}

// sameAsBefore reports whether a commit asks for the tree that is in force on a host already.
func (f *fleetRun) sameAsBefore(h *fleetHost, n int) bool {
	last := -1
	for m := range h.settles {
		if m != n && m > last {
			last = m
		}
	}
	return last >= 0 && f.commits[last].tree == f.commits[n].tree
}

// succeeded is when a host wrote success of a commit.
func (f *fleetRun) succeeded(host string, n int) (time.Duration, bool) {
	for _, w := range f.truth[string(f.commits[n].sha)+host] {
		if w.state == ring.PostSuccess {
			return w.at, true
		}
	}
	return 0, false
}

// settle is the end of what is in force on a host: as the schedule says, and said at the forge.
func (f *fleetRun) settle(h *fleetHost) {
	for n, at := range h.settles {
		if at == 0 || f.now < at {
			continue
		}
		h.settles[n] = 0
		switch {
		case n != h.next:
			f.say(h, n, ring.PostError) // superseded
		case !f.calm && f.r.Intn(12) == 0:
			f.say(h, n, ring.PostFailure)
			if f.r.Intn(2) == 0 { // and after all
				h.settles[n] = f.now + time.Duration(1+f.r.Intn(60))*time.Minute
			}
		case !f.calm && f.r.Intn(12) == 0:
			f.say(h, n, ring.PostError)
			h.settles[n] = f.now + time.Duration(1+f.r.Intn(60))*time.Minute
		default:
			f.say(h, n, ring.PostSuccess)
			h.good[f.commits[n].tree] = true
			h.facts.Set(ring.Past{App: h.facts.Apps["web"].App, At: fleetBegins.Add(f.now)})
		}
	}
}

// isWaiting holds a host that waits, and that looks so often, to telling somebody.
func (f *fleetRun) isWaiting(h *fleetHost, every time.Duration) {
	if _, came := h.settles[h.next]; came {
		h.since = -1
		return
	}
	if h.since < 0 {
		h.since, h.told = f.now, false
	}
	if f.now-h.since > 6*time.Hour+2*every && !h.told {
		f.violate("%s waits since %s, and nobody is told", h.name, h.since)
	}
}

func (f *fleetRun) play() {
	const tick = 30 * time.Second
	for ; f.now < fleetFor+12*time.Hour && f.bad == ""; f.now += tick {
		for _, h := range f.hosts {
			if h.dead > 0 && f.now >= h.dead {
				continue
			}
			f.settle(h)
			given := h.next
			for n, c := range f.commits {
				if f.now >= c.at+h.lag {
					h.next = max(h.next, n)
				}
			}
			if h.next < 0 {
				continue
			}
			_, came := h.settles[h.next]
			every := fleetLook
			if f.now > fleetFor {
				every = 4 * fleetLook
			}
			if h.next == given && (came || f.now-h.looked < every) {
				continue
			}
			for range 4 { // resolve, pull, ask the host, in force
				f.look(h)
				if _, came := h.settles[h.next]; came {
					break
				}
			}
			f.isWaiting(h, every)
		}
	}
	for _, h := range f.hosts {
		if _, came := h.settles[len(f.commits)-1]; f.calm && !f.lies && !came && f.bad == "" {
			f.violate("nothing failed, and the last commit never came to %s", h.name)
		}
	}
}

// TestSimulationOfWaves plays schedules of a fleet. GITRING_SIM_WAVES says how many, and
// GITRING_SIM_SEED from where; a seed replays bit for bit.
func TestSimulationOfWaves(t *testing.T) {
	n, from := 40, int64(1)
	if v, err := strconv.Atoi(os.Getenv("GITRING_SIM_WAVES")); err == nil {
		n = v
	}
	if v, err := strconv.ParseInt(os.Getenv("GITRING_SIM_SEED"), 10, 64); err == nil {
		from = v
	}
	came, waited, told := 0, 0, 0
	for seed := from; seed < from+int64(n); seed++ {
		f := newFleetRun(seed)
		f.play()
		if f.bad != "" {
			log := f.log
			for _, line := range log[max(0, len(log)-80):] {
				t.Log(line)
			}
			t.Fatalf("seed %d: %s", seed, f.bad)
		}
		told += f.stuck
		for _, h := range f.hosts {
			came += len(h.settles)
			for _, line := range h.facts.Waves {
				if line.Waited {
					waited++
				}
			}
		}
	}
	t.Logf("%d schedules: %d plans came into force, %d last ones had waited, people were told of %d long waits", n, came, waited, told)
	if n >= 20 && (came == 0 || waited == 0 || told == 0) {
		t.Fatal("the schedules are too dull")
	}
}
