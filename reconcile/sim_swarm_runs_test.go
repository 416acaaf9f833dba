package reconcile

import (
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// swarmRun is what a seed comes to on a swarm: a few commits, a few faults, and the knobs.
type swarmRun struct {
	*daemon
	commits []commitAt
	knobs   map[string]ring.Rollout
	data    map[string]bool // what writes to a volume, and so runs once
	each    map[string]bool // what runs once on each node
	depends bool            // b depends on a
	jobs    *rand.Rand      // of a job that a may depend on; nil without one
	// patience is how long a node lets a task be that was never healthy: gitring judges first. 0 is none.
	patience time.Duration
	until    time.Time // of the last fault
	hurts    bool      // a node or a hand did something that a version may have failed for
	blind    bool      // there is no quorum
	calm     bool      // no more faults
	killing  int       // one boundary in so many ends the daemon; 0 is none
	moved    int       // how often the lease moved
}

func newSwarmRun(seed int64) *swarmRun {
	r := rand.New(rand.NewSource(seed))
	s := &swarmRun{daemon: newDaemon(r), knobs: map[string]ring.Rollout{}, data: map[string]bool{}, each: map[string]bool{}, depends: r.Intn(3) == 0}
	s.swarm = newSwarmModel()
	s.swarm.lease = ring.Lease{Holder: "n1", Mine: true}
	s.patience = []time.Duration{0, 30 * time.Second}[r.Intn(2)]
	s.watchSwarm()
	if r.Intn(3) == 0 || os.Getenv("GITRING_SIM_WIDE") == "lease" {
		others := ring.NewFacts()
		s.beside = &others
	}
	if seed%5 == 2 {
		s.jobs, s.swarm.once = rand.New(rand.NewSource(-seed)), map[string]int{}
		for v := 1; v <= 3; v++ {
			s.natures[image("j", v)] = nature{exitAfter: time.Duration(1+s.jobs.Intn(90)) * time.Second, exit: max(0, s.jobs.Intn(4)-2)}
		}
	}
	for _, name := range []string{"a", "b"} {
		s.data[name], s.knobs[name] = r.Intn(5) == 0, s.randomKnobs()
		s.each[name] = seed%4 == 3 && !s.data[name] && name == []string{"a", "b"}[seed/4%2]
		for v := 1; v <= 4; v++ {
			n := s.randomNature()
			n.stops = max(0, s.span(-50000, 50000)) // more is refused where it writes
			s.natures[image(name, v)] = n
		}
	}
	at := epoch.Add(time.Second)
	for n := 1 + r.Intn(4); n > 0; n-- {
		s.commits = append(s.commits, commitAt{at: at, plan: s.randomPlan(len(s.commits) + 1)})
		at = at.Add(time.Duration(1+r.Intn(120)) * time.Second)
	}
	s.until = at.Add(time.Duration(r.Intn(120)) * time.Second)
	s.faults = r.Intn(5) > 0
	s.killing = []int{0, 0, 6, 30}[r.Intn(4)]
	s.crash = func(boundary, ring.Action) bool {
		return !s.calm && s.killing > 0 && s.r.Intn(s.killing) == 0
	}
	return s
}

func (s *swarmRun) randomKnobs() ring.Rollout {
	k := ring.DefaultRollout()
	k.MaxSurge, k.MaxUnavailable = ring.Count{N: s.r.Intn(3)}, ring.Count{N: s.r.Intn(3)}
	k.MaxParallel = 1 + s.r.Intn(2)
	k.MinReadyTime = []time.Duration{0, 5 * time.Second, 5 * time.Second}[s.r.Intn(3)]
	k.ProgressDeadline = 150 * time.Second // a node that is lost takes 38 s, and a check that never passes 20 s
	k.OnFailure = []string{ring.OnFailureRestore, ring.OnFailureRestore, ring.OnFailureRestore, ring.OnFailurePause, ring.OnFailureContinue}[s.r.Intn(5)]
	if s.r.Intn(6) == 0 {
		k.Bake = []time.Duration{10 * time.Second, time.Minute}[s.r.Intn(2)]
	}
	if s.r.Intn(8) == 0 {
		k.Strategy = ring.Recreate
	}
	return k
}

func (s *swarmRun) randomNature() nature {
	switch s.r.Intn(12) {
	case 0, 1:
		return nature{never: true}
	case 2:
		return nature{exitAfter: time.Second + s.span(0, 2000), readyAfter: s.span(0, 3000), exit: 1}
	case 3:
		return nature{noStart: true}
	case 4:
		return nature{rejected: true}
	case 5:
		return nature{exitAfter: 40*time.Second + s.span(0, 60000), exit: 2}
	}
	return nature{readyAfter: s.span(0, 8000)}
}

func (s *swarmRun) randomPlan(n int) *ring.Plan {
	sha := ring.SHA(fmt.Sprintf("%07d%033d", n, n))
	app := ring.App{Name: "web", Source: "s", Commit: sha, Path: ".", Networks: []ring.Network{{Key: "default"}}}
	for _, name := range []string{"a", "b"} {
		if n > 1 && s.r.Intn(12) == 0 {
			continue // the service leaves
		}
		v := s.service(name, 1+s.r.Intn(4), len(app.Services) > 0)
		if name == "b" && len(app.Services) == 0 && s.data["a"] && !s.data["b"] && !s.each["b"] { // it takes over what a wrote, which left
			v.Replicas = 1
			v.Spec.Mounts = append(v.Spec.Mounts, ring.Mount{Kind: ring.MountVolume, Source: "data-a", Target: "/data"})
			v.Written = ring.WrittenHash(v.Spec)
		}
		app.Services = append(app.Services, v)
	}
	if len(app.Services) == 0 {
		app.Services = append(app.Services, s.service("a", 1, true))
	}
	if s.jobs != nil && (s.jobs.Intn(8) > 0 || len(app.Services) < 2) { // whoever removes most of an app is asked
		app.Services = append(app.Services, s.job(1+s.jobs.Intn(3)))
		if s.jobs.Intn(2) == 0 {
			app.Services[0].DependsOn = append(app.Services[0].DependsOn, ring.Dependency{Service: "j", Until: ring.Completed})
		}
	}
	app.Written = ring.WrittenApp(app)
	return &ring.Plan{Source: "s", Commit: sha, Apps: []ring.App{app}}
}

// job is one that runs once for a version.
func (s *swarmRun) job(version int) ring.Service {
	v := ring.Service{
		Name: "j", Kind: ring.JobK, Replicas: 1, Job: &ring.Job{Run: "on_change"}, Rollout: ring.DefaultRollout(),
		Spec:    ring.Spec{Image: image("j", version), Networks: []ring.Attachment{{Network: "default"}}, Cluster: &ring.ClusterSpec{}},
		Restart: ring.Restart{Policy: ring.NeverStop},
	}
	v.Written = ring.WrittenHash(v.Spec)
	return v
}

func (s *swarmRun) service(name string, version int, with bool) ring.Service {
	v := ring.Service{
		Name: name, Kind: ring.Worker, Replicas: 1 + s.r.Intn(4), Rollout: s.knobs[name],
		Spec:    ring.Spec{Image: image(name, version), Networks: []ring.Attachment{{Network: "default"}}, Cluster: &ring.ClusterSpec{Patience: s.patience}},
		Restart: ring.Restart{Policy: ring.Always},
	}
	if s.data[name] {
		v.Replicas = 1
		v.Spec.Mounts = append(v.Spec.Mounts, ring.Mount{Kind: ring.MountVolume, Source: "data-" + name, Target: "/data"})
	}
	if s.each[name] {
		v.Replicas, v.Spec.Cluster.Global = 1, true
	}
	if s.r.Intn(2) == 0 {
		v.Spec.Mounts = append(v.Spec.Mounts, ring.Mount{Kind: ring.MountContent, Source: "c" + strconv.Itoa(s.r.Intn(3)), File: "app.conf", Target: "/etc/app.conf"})
	}
	if name == "b" && s.depends && with {
		v.DependsOn = []ring.Dependency{{Service: "a", Until: ring.ReadyDep}}
	}
	v.Written = ring.WrittenHash(v.Spec)
	return v
}

// run plays the schedule and then waits for rest.
func (s *swarmRun) run() error {
	quiet, since := 0, s.now
	over := func() bool { return quiet >= 100 && s.now.Sub(since) >= 100*fullLook }
	for step := 0; step < 6000 && s.bad == nil && !over(); step++ {
		s.commitDue()
		if s.now.Before(s.until) {
			s.fault()
		} else if !s.calm && len(s.commits) == 0 {
			s.mend()
		}
		before := s.changes
		s.look()
		s.advance(time.Time{})
		quiet++
		if s.changes != before || s.atWork() || len(s.commits) > 0 || !s.calm || s.moves() {
			quiet, since = 0, s.now
		}
		if step > 5000 && s.restart() {
			break // what crashes for ever is restarted for ever, by the swarm
		}
	}
	if s.bad == nil && !over() && !s.restart() {
		s.violate("I7: no rest: %d steps in flight", len(s.mem.flights))
	}
	if s.bad == nil {
		s.rest()
	}
	return s.bad
}

func (s *swarmRun) commitDue() {
	if len(s.commits) > 0 && !s.now.Before(s.commits[0].at) {
		s.offer(s.commits[0].plan)
		s.commits = s.commits[1:]
		s.note("commit %s", s.src.Next.Commit.Short())
		for _, v := range s.src.Next.Apps[0].Services {
			s.note("  %s %s replicas %d %v", v.Name, v.Spec.Image, v.Replicas, v.Spec.Mounts)
		}
	}
}

// look is one pass of the daemon, if it sees anything.
func (s *swarmRun) look() {
	if s.blind {
		s.mem.wake = s.now.Add(2 * time.Second)
		return
	}
	if s.src.Next != nil {
		s.src.Reached = s.clock()
	}
	s.besideLooks()
	d := s.decide()
	s.record(d.Facts, d.Events)
	s.launch(d.Actions)
}

// moves reports whether the swarm is in the middle of an update, or tasks come and go.
func (s *swarmRun) moves() bool {
	for _, o := range s.swarm.services {
		if o.u != nil || slices.ContainsFunc(o.tasks, func(x *swarmTask) bool { return x.runs.IsZero() && s.nature(x.box).good() }) {
			return true
		}
	}
	for _, b := range s.boxes {
		if b.Run != nil && b.running() {
			return true
		}
	}
	return false
}

// restart reports whether a version that is in force never serves for long.
func (s *swarmRun) restart() bool {
	for _, o := range s.swarm.services {
		n := s.natures[o.spec.want.Spec.Image]
		if !n.good() {
			return true
		}
	}
	return false
}

// fault is one, or none.
func (s *swarmRun) fault() {
	if !s.faults || s.r.Intn(12) > 0 {
		return
	}
	if s.jobs != nil && s.jobs.Intn(5) == 0 {
		s.letGoOne()
	}
	switch s.r.Intn(8) {
	case 0, 1:
		if s.beside != nil && s.r.Intn(2) == 0 {
			s.moveLease()
			s.moved++
			return
		}
		s.kill("by the scenario")
	case 2:
		s.hurts = true
		n := s.swarm.nodes[s.r.Intn(3)]
		up := 0
		for _, m := range s.swarm.nodes {
			if m.gone.IsZero() {
				up++
			}
		}
		if !n.gone.IsZero() {
			s.comeBackNode(n)
		} else if up > 1 {
			s.lose(n, s.r.Intn(2) == 0)
		}
	case 3:
		s.hurts = true
		s.setQuorum(!s.swarm.quorum)
	case 4:
		for _, name := range sortedIDs(s.swarm.services) {
			if s.r.Intn(2) == 0 && s.swarm.quorum {
				s.hurts = true
				s.byHand(s.swarm.services[name], []string{"edit", "rollback", "remove"}[s.r.Intn(3)])
				break
			}
		}
	}
}

// letGoOne has somebody remove a run, whichever manager saw it.
func (s *swarmRun) letGoOne() {
	for _, id := range s.engine.each() {
		if b := s.boxes[id]; b.Run != nil && s.swarm.quorum {
			s.letGo(b)
			return
		}
	}
}

func (s *swarmRun) setQuorum(there bool) {
	s.note("quorum %v", there)
	s.swarm.quorum, s.blind = there, !there
	if there { // nobody saw anything meanwhile
		s.mem.awake, s.mem.wake = s.clock(), s.now
	}
}

// mend ends all faults.
func (s *swarmRun) mend() {
	s.calm, s.faults = true, false
	for _, n := range s.swarm.nodes {
		if !n.gone.IsZero() {
			s.comeBackNode(n)
		}
	}
	if s.blind {
		s.setQuorum(true)
	}
	s.note("last fault")
}

// rest is what holds when nothing is to be done any more, by the truth: every service of the
// plan serves whole as its plan has it, where that can serve; else as it was good last.
func (s *swarmRun) rest() {
	plan := s.plans[len(s.plans)-1]
	for _, key := range sortedIDs(s.open) {
		if s.open[key] && !strings.HasPrefix(key, string(plan.Commit)+" ") {
			s.violate("I10: %s is under way for good", key)
		}
	}
	app := s.disk.Apps["web"].App
	for i := range plan.Apps[0].Services {
		name := plan.Apps[0].Services[i].Name
		want, in := app.Service(name)
		id := ring.ID("web", name)
		if want.Kind.Ends() {
			if run := s.disk.Jobs[ring.VersionKey(id, want.Version)]; run.State != jobSucceeded && run.State != jobFailed {
				s.violate("I7: the run of %s came to no end: %+v", id, run)
			}
			continue
		}
		if !in || want.Spec.Image != plan.Apps[0].Services[i].Spec.Image {
			s.violate("I7: %s of the newest plan is not in force", id)
			return
		}
		n := s.natures[want.Spec.Image]
		verdict, judged := s.disk.Verdicts[ring.VersionKey(id, want.Version)]
		failed := judged && !verdict.Good
		if failed && n.good() && !s.hurts {
			s.violate("%s failed, and nothing was wrong: %s", id, verdict.Reason)
		}
		if !failed && (n.never || n.noStart || n.rejected) && s.serving(name, want.Version) == 0 && !s.waitsFor(&app, &want) {
			s.violate("I7: %s never came, and nobody says so", id)
		}
		target := want
		if good, ok := s.disk.Good[id]; failed && ok && want.Rollout.OnFailure == ring.OnFailureRestore {
			target = good.Service
		} else if failed {
			continue
		}
		if s.natures[target.Spec.Image].good() && !s.waitsFor(&app, &want) {
			s.whole(name, &target)
		}
	}
	s.restOfFiles(&app)
	for _, o := range s.swarm.services {
		want, in := app.Service(o.Service)
		verdict, judged := s.disk.Verdicts[ring.VersionKey(ring.ID(o.App, o.Service), want.Version)]
		if !in && !s.leansOn(&app, o.Service) {
			s.violate("I7: %s left the plan and is there", o.Name)
		}
		// What failed, or waits, or is here for what leans on it alone stays as it is.
		if in && o.spec.is != o.spec.sent && !(judged && !verdict.Good) && !s.waitsFor(&app, &want) {
			s.violate("I7: the spec of %s is somebody else's", o.Name)
		}
	}
}

// leansOn reports whether a service of the plan, as it last was good, depends on one that left, and
// has not come past that.
func (s *swarmRun) leansOn(app *ring.App, left string) bool {
	return slices.ContainsFunc(app.Services, func(v ring.Service) bool {
		good := s.disk.Good[ring.ID(app.Name, v.Name)]
		return good != nil && good.Service.Version != v.Version && slices.ContainsFunc(good.Service.DependsOn, func(d ring.Dependency) bool { return d.Service == left })
	})
}

// waitsFor reports whether a service may wait for another one for good.
func (s *swarmRun) waitsFor(app *ring.App, want *ring.Service) bool {
	for _, o := range s.swarm.services { // another one that came no further, or failed, has its data
		has := slices.ContainsFunc(o.spec.want.Spec.Mounts, func(m ring.Mount) bool { return m.Kind == ring.MountVolume && slices.Contains(want.Spec.Mounts, m) })
		has = has || firstData(app, want) != "" && slices.ContainsFunc(o.tasks, func(x *swarmTask) bool { return len(x.holds) > 0 }) // there is one volume
		if o.Service != want.Name && has {
			return true
		}
	}
	for _, d := range want.DependsOn {
		on, in := app.Service(d.Service)
		verdict, judged := s.disk.Verdicts[ring.VersionKey(ring.ID(app.Name, d.Service), on.Version)]
		if in && on.Kind.Ends() {
			// One that failed is not run again; nor is one that was stopped because it left the plan.
			if s.disk.Jobs[ring.VersionKey(ring.ID(app.Name, d.Service), on.Version)].State == jobFailed {
				return true
			}
			continue
		}
		if in && (judged && !verdict.Good || !s.natures[on.Spec.Image].good() || s.waitsFor(app, &on)) {
			return true // or that one waits for the data of this one, which is told
		}
	}
	return false
}

// serving is how many tasks of a version serve.
func (s *swarmRun) serving(service string, version ring.Version) (n int) {
	for _, o := range s.swarm.services {
		for _, x := range o.tasks {
			if o.Service == service && x.version == version && s.answers(x) {
				n++
			}
		}
	}
	return n
}

// whole holds a service to its target: so many tasks of it, and no other.
func (s *swarmRun) whole(name string, target *ring.Service) {
	o := s.swarm.services["web_"+name]
	if o == nil {
		s.violate("I7: %s is not there", name)
		return
	}
	if n, want := s.serving(name, target.Version), s.countOn(o, target); n != want || len(o.tasks) != n {
		s.violate("I7: %s has %d of %d %s, and %d tasks", name, n, want, target.Spec.Image, len(o.tasks))
	}
}

// restOfFiles holds what is left of configs to what may be needed still.
func (s *swarmRun) restOfFiles(app *ring.App) {
	for name, f := range s.swarm.files {
		needed := false
		for _, o := range s.swarm.services {
			needed = needed || slices.Contains(o.names(), name)
		}
		content := func(v *ring.Service) bool {
			return slices.ContainsFunc(v.Spec.Mounts, func(m ring.Mount) bool { return m.Source == f.Content })
		}
		for i := range app.Services {
			needed = needed || content(&app.Services[i])
		}
		for _, g := range s.disk.Good {
			needed = needed || content(&g.Service)
		}
		if !needed {
			s.violate("S3: %s is there, and nothing names it", name)
		}
	}
}

// play plays it, and has its story where something did not hold.
func (s *swarmRun) play(lines int) (log string, err error) {
	defer func() {
		if p := recover(); p != nil {
			log, err = s.read(lines), fmt.Errorf("panic: %v", p)
		}
	}()
	if err := s.run(); err != nil {
		return s.read(lines), err
	}
	return "", nil
}

// TestSimulationOfSwarms plays schedules on a swarm. With GITRING_SIM_WIDE=lease each of them has a second
// manager.
func TestSimulationOfSwarms(t *testing.T) {
	var moves, moved atomic.Int64
	playSeeds(t, 300, nil, func(seed int64, lines int) (string, error) {
		s := newSwarmRun(seed)
		defer func() {
			if moves.Add(int64(s.moved)); s.moved > 0 {
				moved.Add(1)
			}
		}()
		return s.play(lines)
	})
	t.Logf("the lease moved %d times, in %d schedules", moves.Load(), moved.Load())
}
