package reconcile

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// wide is what a wide scenario has besides: one or two of the features below, and the
// faults that go with them. Its dice are its own.
type wide struct {
	r      *rand.Rand
	report bool // the app says drift: report
	before bool // b runs before a
	live   bool // a reloads its files in place
	secret bool // a is given a value of the host
	cron   *ring.Service
	after  string // app zoo comes "after" web, or web after "zoo"; "beside" is neither, "" is none
	hands  bool   // others change what runs, in ways that need no restart
	deaf   bool   // the store fails for a while, and tips are refused
	need   map[string]int64
	// touched are the services that hands of others changed where that is only told.
	touched map[string]map[ring.Version]bool
	looks   int
	breaks  breaks
	compose bool // Compose ran the app before
}

// marker stands for the keyed hash of a secret: the one thing about it that the
// heart is given, and that no text for people may show (I12).
const marker = "5ec2e7"

// widen gives a scenario its features, two in three times.
func (s *scenario) widen() {
	r := rand.New(rand.NewSource(s.seed*7919 + 17))
	if r.Intn(3) == 0 {
		return
	}
	w := &wide{r: r, touched: map[string]map[ring.Version]bool{}, need: map[string]int64{}}
	s.wide = w
	for n := 1 + r.Intn(2); n > 0; n-- {
		switch r.Intn(8) {
		case 0:
			w.report = r.Intn(2) == 0
			w.hands = true
		case 1:
			w.before = s.job && !s.dep && s.tied == "" && !s.common
		case 2:
			w.live = true
		case 3:
			w.secret = true
		case 4:
			s.cronJob()
		case 5:
			w.after = []string{"after", "zoo", "beside"}[r.Intn(3)]
		case 6:
			w.deaf = true
		case 7:
			s.memory = 4 << 30
			for _, name := range []string{"a", "b"} {
				w.need[name] = int64(r.Intn(4)) << 28
			}
		}
	}
	w.randomBreaks()
	s.hears = s.heard
	w.hands = w.hands || s.memory > 0 // there are bounds to change
	s.restless = len(s.timed) > 0 || w.hands
	s.contents = map[string]string{}
	for _, c := range []string{"1", "2", "3", "4"} {
		s.contents["x"+c] = []string{"", "", "", "refused", "unready", "crash"}[r.Intn(6)]
	}
	for v := 1; v <= 4; v++ {
		s.natures[image("z", v)] = s.randomLifeBy(r)
	}
	for _, c := range s.commits {
		c.plan.AllowRemove = 9
		s.widenPlan(c.plan)
	}
	s.foreigner()
	s.composed()
}

// foreigner is a container of others, running here for ever (I4).
func (s *scenario) foreigner() {
	s.boxes["x001"] = &box{foreign: true, Instance: ring.Instance{ID: "x001", Name: "theirs", App: "theirs", Service: "x", Slot: 1, State: ring.StateRunning}}
	s.nets["theirs"] = ring.SeenNetwork{ID: "theirs", Name: "theirs"}
	s.sorted = nil
}

func (s *scenario) randomLifeBy(r *rand.Rand) nature {
	was := s.r
	s.r = r
	defer func() { s.r = was }()
	return s.randomLife()
}

func (s *scenario) cronJob() {
	r := s.wide.r
	c := &ring.Cron{
		Schedule: []string{"* * * * *", "*/2 * * * *", "@hourly"}[r.Intn(3)], Timezone: "UTC",
		Overlap: []string{ring.OverlapForbid, ring.OverlapForbid, ring.OverlapAllow, ring.OverlapReplace}[r.Intn(4)],
		Missed:  []time.Duration{0, 30 * time.Second, time.Hour}[r.Intn(3)],
		Job:     ring.Job{Retries: r.Intn(2), Timeout: []time.Duration{0, 0, 20 * time.Second}[r.Intn(3)]},
	}
	s.wide.cron = &ring.Service{
		Name: "c", Kind: ring.CronK, Replicas: 1, Rollout: ring.DefaultRollout(), Cron: c,
		Restart: ring.Restart{Policy: ring.NeverStop, Engine: "no"},
		Spec:    ring.Spec{Networks: []ring.Attachment{{Network: "default"}}},
	}
	s.timed = map[string]bool{"c": true}
	for v := 1; v <= 2; v++ {
		s.natures[image("c", v)] = nature{exitAfter: time.Duration(1+r.Intn(90)) * time.Second, exit: max(0, r.Intn(4)-2)}
	}
}

func (s *scenario) widenPlan(p *ring.Plan) {
	w, app := s.wide, &p.Apps[0]
	if w.report {
		app.Drift = ring.DriftReport
	}
	_, hasB := app.Service("b")
	for i := range app.Services {
		v := &app.Services[i]
		if n := w.need[v.Name]; n > 0 {
			v.Spec.Resources = &ring.Resources{Memory: n}
		}
		if v.Name == "a" {
			s.widenA(v, hasB)
		}
		v.Written = ring.WrittenHash(v.Spec)
	}
	if w.cron != nil && w.r.Intn(8) > 0 {
		c := *w.cron
		c.Spec.Image = image("c", 1+w.r.Intn(2))
		c.Written = ring.WrittenHash(c.Spec)
		app.Services = append(app.Services, c)
	}
	if w.after == "" || w.r.Intn(8) == 0 {
		return
	}
	zoo := ring.App{Name: "zoo", Source: "s", Commit: p.Commit, Path: "zoo", Networks: []ring.Network{{Key: "default"}}}
	z := ring.Service{
		Name: "z", Kind: ring.Worker, Replicas: 1 + w.r.Intn(2), Rollout: s.knobs["b"],
		Spec:    ring.Spec{Image: image("z", 1+w.r.Intn(4)), Networks: []ring.Attachment{{Network: "default"}}},
		Restart: ring.Restart{Policy: ring.Always, Engine: "always"},
		Checks:  []ring.Check{{Name: "up", For: ring.Readiness, TCP: &ring.TCPCheck{Port: 80}}},
	}
	z.Written = ring.WrittenHash(z.Spec)
	zoo.Services = []ring.Service{z}
	switch w.after {
	case "after":
		zoo.After = []ring.AfterApp{{App: "web", Until: ring.ReadyDep}}
	case "zoo":
		app.After = []ring.AfterApp{{App: "zoo", Until: ring.ReadyDep}}
	}
	p.Apps = append(p.Apps, zoo)
}

func (s *scenario) widenA(v *ring.Service, hasB bool) {
	w := s.wide
	if w.before && hasB {
		v.Before = "b"
	}
	if w.live {
		v.Reload = &ring.Reload{Paths: []string{"./conf"}, Live: map[string]string{"conf": fmt.Sprint("x", 1+w.r.Intn(4))}, Exec: []string{"reload"}}
		v.Spec.Mounts = append(slices.Clone(v.Spec.Mounts), ring.Mount{Kind: ring.MountLive, Source: "conf", Target: "/etc/app", ReadOnly: true})
		v.Checks = slices.Clone(v.Checks)
		v.Checks[0].Interval, v.Checks[0].Failures, v.Checks[0].Timeout = 2*time.Second, 3, time.Second
	}
	if w.secret {
		pw := ring.Sealed{App: "web", File: "a.env", Name: "PW", MAC: fmt.Sprint(marker, w.r.Intn(3))}
		v.Spec.Environment = map[string]string{"PW": pw.String()}
	}
}

// wideFault is one more fault, or none.
func (s *scenario) wideFault() {
	w := s.wide
	if w == nil {
		return
	}
	s.breakOff()
	if w.deaf && w.r.Intn(12) == 0 {
		if w.r.Intn(2) == 0 {
			s.mute = !s.mute
			s.note("the store fails: %v", s.mute)
			return
		}
		s.refuse(s.src.Refusal == nil)
	}
	if !w.hands || w.r.Intn(12) > 0 {
		return
	}
	ids := s.each()
	b := s.boxes[ids[w.r.Intn(len(ids))]]
	if b.theirs() || b.Kind.Ends() {
		return
	}
	s.touch(b)
}

// refuse is a tip that trust does not let pass, until the next one.
func (s *scenario) refuse(on bool) {
	if s.src.Next == nil {
		return
	}
	s.note("the tip is refused: %v", on)
	s.src.Refusal, s.src.Tip = nil, s.src.Next.Commit
	if on {
		s.src.Tip = ring.SHA("bad" + string(s.src.Next.Commit[3:]))
		s.src.Refusal = &ring.Refusal{Code: ring.Unsigned, Commit: s.src.Tip, Says: "commit is not signed", Hint: "sign it"}
	}
}

// touch is somebody's hand on what runs.
func (s *scenario) touch(b *box) {
	switch s.wide.r.Intn(6) {
	case 0:
		if b.running() {
			s.note("somebody pauses %s", b.Name)
			b.State = ring.StatePaused
		}
	case 1:
		s.note("somebody renames %s", b.Name)
		b.Name = "by-hand-" + b.ID
	case 2:
		s.note("somebody takes %s off its networks", b.Name)
		b.Addresses = map[string]string{}
	case 3:
		if b.Memory > 0 {
			s.note("somebody gives %s less memory", b.Name)
			b.Limits = &ring.Resources{Memory: 1 << 20}
		}
	case 4:
		b.Policy = []string{"no", "unless-stopped", "always"}[s.wide.r.Intn(3)]
		b.pinned = s.now
		s.note("somebody gives %s restart policy %s", b.Name, b.Policy)
	case 5:
		if b.lives() {
			s.note("somebody kills %s", b.Name)
			s.exit(b, 137)
			b.Hand = "killed"
		}
	}
	s.touched(b)
}

// touched remembers what stays as others left it.
func (s *scenario) touched(b *box) {
	if s.wide != nil && s.wide.report {
		if s.wide.touched[b.Service] == nil {
			s.wide.touched[b.Service] = map[ring.Version]bool{}
		}
		s.wide.touched[b.Service][s.versionOf(b)] = true
	}
}

// aside reports whether a service is left as others made it: what they touched was of the
// version that it has now, or of the one that it goes back to.
func (s *scenario) aside(service string) bool {
	if s.wide == nil || len(s.wide.touched[service]) == 0 {
		return false
	}
	if s.wide.touched[service]["compose"] {
		return true // before it was adopted, and somebody may have removed it since (seed 80284)
	}
	for id, g := range s.disk.Good {
		if _, name := id.Split(); name == service && s.wide.touched[service][g.Service.Version] {
			return true
		}
	}
	for app := range s.disk.Apps {
		if v := s.wantOf(app, service); v != nil && s.wide.touched[service][v.Version] {
			return true
		}
	}
	return false
}

// mendWide ends the faults that last.
func (s *scenario) mendWide() {
	s.mute = false
	if s.src.Refusal != nil {
		s.refuse(false)
	}
}

// fine reports whether what v asks for comes to stay, and serves.
func (s *scenario) fine(v *ring.Service) bool {
	if v.Reload != nil {
		if s.noWayBack() {
			return false
		}
		switch s.contents[s.readable(v)] {
		case "unready", "crash":
			return false
		}
	}
	if n, moved := s.natures[strings.TrimPrefix(v.Pin.Digest(), "sha256:")]; moved {
		return n.good()
	}
	return s.natures[v.Spec.Image].good()
}

// starved reports whether the host has no memory for one more of v beside what runs.
func (s *scenario) starved(v *ring.Service) bool {
	if s.wide == nil || s.memory == 0 || s.wide.need[v.Name] == 0 {
		return false
	}
	up, _ := bounds(v.Rollout, v.Replicas)
	return s.declaredMemory()+int64(v.Replicas+up)*s.wide.need[v.Name] > s.memory-s.memory/16
}

func (e *engine) declaredMemory() (sum int64) {
	for _, b := range e.boxes {
		if b.lives() || b.State == ring.StateCreated {
			sum += b.Memory
		}
	}
	return sum
}

// comesAfter reports whether an app may wait for another, which has not all that it wants.
func (s *scenario) comesAfter(app *ring.App) bool {
	for _, a := range app.After {
		f := s.disk.Apps[a.App]
		for i := range f.App.Services {
			v := &f.App.Services[i]
			id := ring.ID(a.App, v.Name)
			row := s.disk.Rollouts[id]
			if s.aside(v.Name) || !v.Kind.Ends() && !(row.Done && row.Version == v.Version && s.disk.Verdicts[ring.VersionKey(id, v.Version)].Good) || s.looping() {
				return true
			}
			if v.Kind == ring.JobK && s.done(a.App, v) == 0 {
				return true
			}
		}
	}
	return false
}

// leansOn reports whether another app came after this one, and may come back to that.
func (s *scenario) leansOn(app string) bool {
	for _, other := range s.src.Next.Apps {
		f := s.disk.Apps[other.Name].App
		for _, v := range f.Services {
			id := ring.ID(f.Name, v.Name)
			row, g := s.disk.Rollouts[id], s.disk.Good[id]
			after := g != nil && slices.ContainsFunc(g.App.After, func(a ring.AfterApp) bool { return a.App == app })
			if after && !(row.Done && row.Version == v.Version && g.Service.Version == v.Version) {
				return true
			}
		}
	}
	return false
}

// restOfHands checks that nothing that others changed stands at rest, where the
// plan is carried out whole.
func (s *scenario) restOfHands(app *ring.App, v *ring.Service) {
	id := ring.ID(app.Name, v.Name)
	row := s.disk.Rollouts[id]
	if v.Kind.Ends() || s.aside(v.Name) || !row.Done || row.Version != v.Version || !s.disk.Verdicts[ring.VersionKey(id, v.Version)].Good {
		return
	}
	for _, x := range s.each() {
		b := s.boxes[x]
		if b.App != app.Name || b.Service != v.Name || b.Version != v.Version {
			continue
		}
		switch {
		case b.State == ring.StatePaused:
			s.violate("drift: at rest %s is paused", b.Name)
		case !b.running():
		case v.Spec.ContainerName == "" && b.Name != ring.ContainerName(b.App, b.Service, b.Slot, b.Version) && b.Name != ring.ComposeName(b.App, b.Service, b.Slot):
			s.violate("drift: at rest %s is not called as it was", b.Name)
		case len(v.Spec.Networks) > 0 && len(b.Addresses) == 0:
			s.violate("drift: at rest %s is on no network", b.Name)
		case v.Spec.Resources != nil && b.Limits.Memory != v.Spec.Resources.Memory:
			s.violate("drift: at rest %s has %d bytes of memory", b.Name, b.Limits.Memory)
		case v.Reload != nil && s.contents[s.readable(v)] == "" && b.reads != s.readable(v):
			s.violate("reload: at rest %s reads %s and not %s", b.Name, b.reads, s.readable(v))
		}
	}
}

// noWayBack reports whether files or a version failed, and that the command refuses those
// that were good, which the instance had read as it started: it is asked every ten
// minutes, the one that is left of another version, too (seed 2698).
func (s *scenario) noWayBack() bool {
	f := s.disk.Apps["web"].App
	v, ok := f.Service("a")
	if !ok || v.Reload == nil {
		return false
	}
	if s.readable(&v) != v.Reload.Live["conf"] && s.contents[s.readable(&v)] == "refused" {
		return true
	}
	g := s.disk.Good[ring.ID("web", "a")]
	d, judged := s.disk.Verdicts[ring.VersionKey(ring.ID("web", "a"), v.Version)]
	if !judged || d.Good || g == nil || g.Service.Reload == nil || s.contents[g.Service.Reload.Live["conf"]] != "refused" {
		return false
	}
	return slices.ContainsFunc(s.each(), func(id string) bool {
		b := s.boxes[id]
		return b.Service == "a" && b.Version == g.Service.Version && b.reads != g.Service.Reload.Live["conf"]
	})
}

// readable is what instances of v are to have read at rest: what the plan wants
// or, where that failed, and be it for what hands of others did meanwhile, what was
// good before. What a command refuses, or nobody comes to read, is asked for in vain.
func (s *scenario) readable(v *ring.Service) string {
	id := ring.ID("web", v.Name)
	good, hasGood := s.disk.Good[id]
	if d, ok := s.disk.Verdicts[ring.VersionKey(id, v.LiveVersion())]; ok && !d.Good && hasGood && good.Service.Reload != nil {
		return good.Service.Reload.Live["conf"]
	}
	return v.Reload.Live["conf"]
}

// watchWords holds every text for people to I12.
func (s *scenario) watchWords(d Decision) {
	w := s.wide
	if w == nil || !w.secret {
		return
	}
	for _, a := range d.Actions {
		s.holdWord(a.Reason)
	}
	for _, e := range d.Events {
		s.holdWord(e.Reason)
	}
	for _, f := range d.Facts {
		switch f := f.(type) {
		case ring.Post:
			s.holdWord(f.Description)
		case ring.Verdict:
			s.holdWord(f.Reason)
		case ring.RolloutRow:
			s.holdWord(f.Cause)
		case ring.Drift:
			s.holdWord(strings.Join(f.What, " "))
		}
	}
	if w.looks++; w.looks%8 > 0 {
		return
	}
	b, err := json.Marshal(d.Status)
	if err != nil {
		panic(err)
	}
	s.holdWord(string(b))
}

func (s *scenario) holdWord(text string) {
	if strings.Contains(text, marker) || ring.HasSealed(text) {
		s.violate("I12: people would read %q", text)
	}
}
