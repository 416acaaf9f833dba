package reconcile

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// killed is a scenario that is played once undisturbed and then once for every
// boundary of every step of it, with the daemon killed there.
type killed struct {
	name string
	// commits are what each asks, 3 min apart: "a:1x3 b:2" is image a:1 in three
	// replicas and b:2 in one. One that begins with "soon " comes after 3 s.
	commits []string
	set     func(s *scenario)
}

func data(s *scenario)                { s.data["a"] = true }
func tied(how string) func(*scenario) { return func(s *scenario) { s.tied = how } }

func knob(set func(k *ring.Rollout)) func(*scenario) {
	return func(s *scenario) {
		for _, name := range []string{"a", "b"} {
			k := s.knobs[name]
			set(&k)
			s.knobs[name] = k
		}
	}
}

func natured(image string, n nature) func(*scenario) {
	return func(s *scenario) { s.natures[image] = n }
}

func all(sets ...func(*scenario)) func(*scenario) {
	return func(s *scenario) {
		for _, set := range sets {
			set(s)
		}
	}
}

var (
	never  = nature{never: true}
	crashy = nature{exitAfter: 2 * time.Second, exit: 1}
	broken = nature{noStart: true}
	late   = nature{exitAfter: 40 * time.Second, exit: 1}
	volume = nature{volumes: []string{"/v"}, readyAfter: time.Second}
	job    = func(s *scenario) { s.job = true }
)

// watchedFor has versions baked for a while.
func watchedFor(d time.Duration) func(*scenario) {
	return knob(func(k *ring.Rollout) { k.Bake = d })
}

// inTwoSteps has versions come as canaries.
func inTwoSteps(s *scenario) {
	judge := ring.DefaultJudge()
	judge.Interval, judge.MinRequests = 5*time.Second, 10
	knob(func(k *ring.Rollout) {
		k.Strategy = ring.Canary
		k.Canary = &ring.CanaryPlan{Judge: &judge, Steps: []ring.CanaryStep{{Weight: 10, For: 20 * time.Second}, {Weight: 60, For: 20 * time.Second}}}
	})(s)
	for v := 1; v <= 4; v++ {
		s.load[image("a", v)], s.slow[image("a", v)] = 20, 2
	}
}

// answering has so many percent of the answers of an image be errors.
func answering(image string, errors int64) func(*scenario) {
	return func(s *scenario) { s.errors[image] = errors }
}

var killings = []killed{
	{"a first deploy", []string{"a:1"}, nil},
	{"a first deploy of three", []string{"a:1x3"}, nil},
	{"a first deploy of two services", []string{"a:1x2 b:1x2"}, nil},
	{"an update", []string{"a:1", "a:2"}, nil},
	{"an update of three", []string{"a:1x3", "a:2x3"}, nil},
	{"an update of two services at once", []string{"a:1x2 b:1x2", "a:2x2 b:2x2"}, nil},
	{"an update with a surge of two", []string{"a:1x3", "a:2x3"}, knob(func(k *ring.Rollout) { k.MaxSurge.N, k.MaxParallel = 2, 2 })},
	{"an update below the count", []string{"a:1x3", "a:2x3"}, knob(func(k *ring.Rollout) { k.MaxSurge.N, k.MaxUnavailable.N = 0, 1 })},
	{"an update with room above and below", []string{"a:1x4", "a:2x4"}, knob(func(k *ring.Rollout) { k.MaxUnavailable.N, k.MaxParallel = 1, 2 })},
	{"an update by halves", []string{"a:1x4", "a:2x4"}, knob(func(k *ring.Rollout) { k.MaxSurge = ring.Count{N: 50, Percent: true} })},
	{"more replicas", []string{"a:1", "a:1x3"}, nil},
	{"fewer replicas", []string{"a:1x3", "a:1"}, nil},
	{"fewer replicas of another version", []string{"a:1x3", "a:2"}, nil},
	{"more replicas of another version", []string{"a:1", "a:2x3"}, nil},
	{"no replicas", []string{"a:1x2 b:1", "a:1x0 b:1"}, nil},
	{"a version that is never ready", []string{"a:1x2", "a:2x2"}, natured("a:2", never)},
	{"a version that crashes", []string{"a:1x2", "a:2x2"}, natured("a:2", crashy)},
	{"a version that cannot start", []string{"a:1x2", "a:2x2"}, natured("a:2", broken)},
	{"a first deploy that is never ready", []string{"a:1"}, natured("a:1", never)},
	{"a failed version and its fix", []string{"a:1x2", "a:2x2", "a:3x2"}, natured("a:2", never)},
	{"a failed version and its revert", []string{"a:1x2", "a:2x2", "a:1x2"}, natured("a:2", never)},
	{"a failure that pauses", []string{"a:1x2", "a:2x2"}, all(natured("a:2", never), knob(func(k *ring.Rollout) { k.OnFailure = ring.OnFailurePause }))},
	{"a failure that is gone past", []string{"a:1x2", "a:2x2"}, all(natured("a:2", crashy), knob(func(k *ring.Rollout) { k.OnFailure = ring.OnFailureContinue }))},
	{"a revert", []string{"a:1x2", "a:2x2", "a:1x2"}, nil},
	{"a revert while it moves", []string{"a:1x3", "a:2x3", "soon a:1x3"}, nil},
	{"a train of commits", []string{"a:1x2", "soon a:2x2", "soon a:3x2", "soon a:4x2"}, nil},
	{"a service that leaves", []string{"a:1x2 b:1x2", "a:1x2"}, nil},
	{"a service that comes", []string{"a:1", "a:1 b:1x2"}, nil},
	{"a service in the place of another", []string{"a:1", "b:1"}, nil},
	{"an update of data", []string{"a:1", "a:2"}, data},
	{"an update of data that is never ready", []string{"a:1", "a:2"}, all(data, natured("a:2", never))},
	{"an update of data that crashes", []string{"a:1", "a:2"}, all(data, natured("a:2", crashy))},
	{"an update of data, reverted while it moves", []string{"a:1", "a:2", "soon a:1"}, data},
	{"an update of a volume of the image", []string{"a:1", "a:2"}, all(natured("a:1", volume), natured("a:2", volume))},
	{"a volume that changes hands", []string{"a:1 b:1", "a:1 b:2"}, func(s *scenario) { s.common = true }},
	{"recreated, one at a time", []string{"a:1x3", "a:2x3"}, knob(func(k *ring.Rollout) { k.Strategy = ring.Recreate })},
	{"recreated, and never ready", []string{"a:1x2", "a:2x2"}, all(natured("a:2", never), knob(func(k *ring.Rollout) { k.Strategy = ring.Recreate }))},
	{"a name of its own", []string{"a:1", "a:2"}, func(s *scenario) { s.named = true }},
	{"a name of its own, restored", []string{"a:1", "a:2"}, all(natured("a:2", never), func(s *scenario) { s.named = true })},
	{"a joined network, its owner moves", []string{"a:1 b:1", "a:2 b:1"}, tied("network")},
	{"a joined network, its guest moves", []string{"a:1 b:1", "a:1 b:2"}, tied("network")},
	{"a joined network, the owner fails", []string{"a:1 b:1", "a:2 b:2"}, all(tied("network"), natured("a:2", never))},
	{"volumes of another service", []string{"a:1 b:1", "a:2 b:1"}, tied("volumes")},
	{"a follower", []string{"a:1 b:1x2", "a:2 b:1x2"}, tied("follows")},
	{"hooks", []string{"a:1x2", "a:2x2"}, func(s *scenario) { s.hooks["a"] = true }},
	{"a job", []string{"a:1 b:1", "a:1 b:2"}, job},
	{"a job that fails", []string{"a:1 b:1"}, all(job, natured("b:1", nature{exitAfter: time.Second, exit: 3}))},
	{"a dependency", []string{"a:1 b:1", "a:2 b:2"}, func(s *scenario) { s.dep = true }},
	{"a dependency that fails", []string{"a:1 b:1", "a:2 b:2"}, all(natured("a:2", never), func(s *scenario) { s.dep = true })},
	{"a tag that is asked at each commit", []string{"a:1", "a:2", "a:1"}, func(s *scenario) { s.always["a"] = true }},
	{"an update behind a front", []string{"a:1x2", "a:2x2"}, fronted("8080")},
	{"an update of one behind a front", []string{"a:1", "a:2"}, fronted("8080")},
	{"an update behind a front without a port", []string{"a:1x2", "a:2x2"}, fronted("none")},
	{"an update of data behind a front", []string{"a:1", "a:2"}, all(data, fronted("8080"))},
	{"an update of data behind a front that is never ready", []string{"a:1", "a:2"}, all(data, fronted("8080"), natured("a:2", never))},
	{"a version behind a front that is never ready", []string{"a:1x2", "a:2x2"}, all(fronted("8080"), natured("a:2", never))},
	{"a version behind a front that crashes", []string{"a:1x2", "a:2x2"}, all(fronted("8080"), natured("a:2", crashy))},
	{"a revert behind a front while it moves", []string{"a:1x3", "a:2x3", "soon a:1x3"}, fronted("8080")},
	{"a train of commits behind a front", []string{"a:1x2", "soon a:2x2", "soon a:3x2", "soon a:4x2"}, fronted("8080")},
	{"fewer replicas behind a front", []string{"a:1x3", "a:1"}, fronted("8080")},
	{"a service with a front that leaves", []string{"a:1x2 b:1x2", "b:1x2"}, fronted("8080")},
	{"a second set behind a front", []string{"a:1x2", "a:2x2"}, all(fronted("8080"), knob(func(k *ring.Rollout) { k.Strategy, k.WarmFor = ring.BlueGreen, 20*time.Second }))},
	{"a canary behind a front", []string{"a:1x2", "a:2x2"}, all(fronted("8080"), inTwoSteps)},
	{"a canary behind a front that fails", []string{"a:1x2", "a:2x2"}, all(fronted("8080"), inTwoSteps, answering("a:2", 60))},
	{"a revert behind a front within a canary", []string{"a:1x2", "a:2x2", "soon a:1x2"}, all(fronted("8080"), inTwoSteps)},
	{"a front comes before a service", []string{"a:1", "a:2"}, all(fronted("8080"), directFirst(1))},
	{"a front comes before data", []string{"a:1", "a:2"}, all(data, fronted("8080"), directFirst(1))},
	{"a front comes with a version that is never ready", []string{"a:1", "a:2"}, all(fronted("8080"), directFirst(1), natured("a:2", never))},
	{"a front comes before data with a version that is never ready", []string{"a:1", "a:2"}, all(data, fronted("8080"), directFirst(1), natured("a:2", never))},
	{"a front leaves a service", []string{"a:1", "a:2"}, all(fronted("8080"), frontLost(1))},
	{"a front leaves data", []string{"a:1", "a:2"}, all(data, fronted("8080"), frontLost(1))},
	{"a front without a port leaves", []string{"a:1x2", "a:2x2"}, all(fronted("none"), frontLost(1))},
	{"a front leaves with a version that is never ready", []string{"a:1", "a:2"}, all(fronted("8080"), frontLost(1), natured("a:2", never))},
	{"a front leaves data with a version that crashes", []string{"a:1", "a:2"}, all(data, fronted("8080"), frontLost(1), natured("a:2", crashy))},
	{"a newer commit while a front leaves", []string{"a:1", "a:2", "soon a:3"}, all(fronted("8080"), frontLost(1))},
	{"a front changes with its service", []string{"a:1x2", "a:2x2"}, all(fronted("8080"), frontMoves)},
	{"a front without a port changes with its service", []string{"a:1x2", "a:2x2"}, all(fronted("none"), frontMoves)},
	{"a front would change with a version that is never ready", []string{"a:1x2", "a:2x2"}, all(fronted("none"), frontMoves, natured("a:2", never))},
	{"a front changes with a version that is watched and crashes", []string{"a:1x2", "a:2x2"}, all(fronted("8080"), frontMoves, natured("a:2", late), watchedFor(time.Minute))},
	{"a newer commit while a front comes", []string{"a:1", "a:2", "soon a:3"}, all(fronted("8080"), directFirst(1))},
	{"a slot that crashes later", []string{"a:1x2", "a:2x2"}, natured("a:2", nature{exitAfter: 45 * time.Second, exit: 2, times: 1})},
}

// scene is the scenario of k, the same each time.
func (k *killed) scene() *scenario {
	s := &scenario{daemon: newDaemon(rand.New(rand.NewSource(7))), seed: 1, knobs: map[string]ring.Rollout{}, data: map[string]bool{}, hooks: map[string]bool{}, always: map[string]bool{}}
	for _, name := range []string{"a", "b"} {
		r := ring.DefaultRollout()
		r.MinReadyTime, r.StartTimeout, r.ProgressDeadline = 2*time.Second, 10*time.Second, 40*time.Second
		s.knobs[name] = r
		for v := 1; v <= 4; v++ {
			s.natures[image(name, v)] = nature{readyAfter: time.Second}
		}
	}
	if k.set != nil {
		k.set(s)
	}
	at := epoch.Add(time.Second)
	for i, asks := range k.commits {
		asks, soon := strings.CutPrefix(asks, "soon ")
		if i > 0 && soon {
			at = at.Add(3 * time.Second)
		} else if i > 0 {
			at = at.Add(3 * time.Minute)
		}
		s.commits = append(s.commits, commitAt{at: at, plan: s.asked(i+1, asks)})
	}
	s.until = at
	watch, ran := s.told, map[ring.Version]int{}
	s.told = func(kind, detail string, b *box) {
		watch(kind, detail, b)
		if kind == "start" && b.Kind == ring.JobK {
			if ran[b.Version]++; ran[b.Version] > 1 {
				s.violate("lesson L51: job %s runs a second time", b.Name)
			}
		}
	}
	return s
}

// asked is the plan that a line of a killed scenario means.
func (s *scenario) asked(n int, line string) *ring.Plan {
	sha := ring.SHA(fmt.Sprintf("%07d%033d", n, n))
	app := ring.App{Name: "web", Source: "s", Commit: sha, Path: ".", Networks: []ring.Network{{Key: "default"}}}
	for _, word := range strings.Fields(line) {
		img, count, many := strings.Cut(word, "x")
		name, _, _ := strings.Cut(img, ":")
		v := s.service(name, img, len(app.Services) > 0)
		v.Replicas = 1
		if n, err := strconv.Atoi(count); many && err == nil {
			v.Replicas = n
		}
		app.Services = append(app.Services, v)
	}
	if s.common {
		s.give(&app, []string{"a", "b"}[(n-1)%2])
	}
	s.putFronts(&app, n)
	return &ring.Plan{Source: "s", Commit: sha, Apps: []ring.App{app}}
}

// shape is what a scenario came to: what runs, and the verdicts. Which slots of
// equal instances are whose is not part of it.
func (s *scenario) shape() string {
	count := map[string]int{}
	for _, id := range s.each() {
		b := s.boxes[id]
		if b.Kind == ring.JobK {
			continue // kept for its log, for a day
		}
		what := "rests"
		if b.running() {
			what = "runs"
		}
		if !s.nature(b).good() {
			what = "is"
		}
		count[fmt.Sprintf("%s %s %s", b.Service, b.Version.Short(), what)]++
	}
	var out []string
	for _, key := range sortedKeys(count) {
		out = append(out, fmt.Sprintf("%s x%d", key, count[key]))
	}
	app := s.disk.Apps["web"].App
	for _, v := range app.Services { // what came in between may have been met or not
		if v.Kind == ring.JobK {
			out = append(out, say("%s %s %s", v.Name, v.Version.Short(), s.disk.Jobs[ring.VersionKey(ring.ID("web", v.Name), v.Version)].State))
			continue
		}
		d, known := s.disk.Verdicts[ring.VersionKey(ring.ID("web", v.Name), v.Version)]
		out = append(out, fmt.Sprintf("%s %s good %v, known %v", v.Name, v.Version.Short(), d.Good, known))
	}
	return strings.Join(out, "\n")
}

// boundaries plays k undisturbed, and is how many steps it takes.
func (k *killed) boundaries() (steps int, shape string, err error) {
	s := k.scene()
	s.crash = func(at boundary, _ ring.Action) bool {
		if at == beforeCall {
			steps++
		}
		return false
	}
	err = s.run()
	return steps, s.shape(), err
}

// kill plays k with the daemon killed at the nth passing of a boundary.
func (k *killed) kill(at boundary, nth int) (s *scenario, err error) {
	s = k.scene()
	n := 0
	s.crash = func(here boundary, _ ring.Action) bool {
		if here == at {
			n++
		}
		return here == at && n == nth
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return s, s.run()
}

// TestKilledAtEveryBoundaryOfEveryStepItComesToTheSame is exhaustive: each
// scenario, each step of it, killed before the call, after the call, and after
// the record. The invariants hold at every step, and at rest the host is what
// it is when nothing happened.
func TestKilledAtEveryBoundaryOfEveryStepItComesToTheSame(t *testing.T) {
	type point struct {
		k     *killed
		at    boundary
		nth   int
		shape string
	}
	var points []point
	for i := range killings {
		k := &killings[i]
		if only := os.Getenv("GITRING_KILL"); !strings.Contains(k.name, only) {
			continue // GITRING_KILL=front plays those with that word
		}
		steps, shape, err := k.boundaries()
		if err != nil || steps == 0 {
			t.Fatalf("%s, undisturbed, %d steps: %v", k.name, steps, err)
		}
		for nth := 1; nth <= steps; nth++ {
			for _, at := range []boundary{beforeCall, afterCall, afterRecord} {
				points = append(points, point{k, at, nth, shape})
			}
		}
	}
	var next, bad atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(len(points)) || bad.Load() > 3 {
					return
				}
				p := points[i]
				s, err := p.k.kill(p.at, p.nth)
				if err == nil && s.shape() != p.shape {
					err = fmt.Errorf("it came to\n%s\nand undisturbed to\n%s", s.shape(), p.shape)
				}
				if err != nil {
					bad.Add(1)
					t.Errorf("%s, killed %s of step %d: %v\n%s", p.k.name, p.at, p.nth, err, s.read(200))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d scenarios, %d crashes", len(killings), len(points))
}
