package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// declared is a service as stories declare it; Image is what a commit gives it.
type declared struct {
	ring.Service
	app  string
	from string // the app that its volume is taken over from
	// frontPort is the port of the host that its front publishes, or none.
	frontPort string
	// frontLabel is a label that moved to its front; "" is none.
	frontLabel string
}

// route changes how its front carries requests.
func (d *declared) route(set func(r *ring.Route)) error {
	if d.Route == nil {
		return errors.New("it has no front")
	}
	r := *d.Route
	set(&r)
	d.Route = &r
	return nil
}

// front is the front of a service, as the manifest makes it.
func (d *declared) front() ring.Service {
	k := ring.DefaultRollout()
	k.MinReadyTime, k.StartTimeout = 0, 10*time.Second
	s := ring.Service{
		Name: d.Name + ring.FrontSuffix, Kind: ring.Worker, Replicas: 1, FrontOf: d.Name, Rollout: k,
		Restart: ring.Restart{Policy: ring.Always, Engine: "always"},
	}
	s.Spec.Image, s.Spec.Networks = ring.FrontImage, d.Spec.Networks
	port := 0
	if len(d.Route.Ports) > 0 {
		port = d.Route.Ports[0].Port
		s.Spec.Expose = []string{strconv.Itoa(port) + "/tcp"}
	}
	if d.frontPort != "none" {
		s.Spec.Ports = []ring.Port{{HostPort: d.frontPort, Container: port, Protocol: "tcp"}}
	}
	if d.frontLabel != "" { // as a label that a proxy finds: its front tells its health
		s.Spec.Labels = map[string]string{"traefik.http.routers.web.rule": d.frontLabel}
		s.Checks = []ring.Check{{Name: "docker", For: ring.Readiness, Docker: true}}
	}
	s.Written = ring.WrittenHash(s.Spec)
	return s
}

// declare is "service <name> <setting> <value> …"; a second line about the same
// service changes what it names.
func (s *story) declare(words []string) error {
	app, name := fullID(words[0])
	d, ok := s.decls[words[0]]
	if !ok {
		k := ring.DefaultRollout()
		d = &declared{app: app, Service: ring.Service{
			Name: name, Kind: ring.Worker, Replicas: 1, Rollout: k,
			Checks:  []ring.Check{{Name: "up", For: ring.Readiness, HTTP: &ring.HTTPCheck{Port: 80, Path: "/"}}},
			Restart: ring.Restart{Policy: ring.Always, Engine: "always"},
		}}
		d.Spec.Networks = []ring.Attachment{{Network: "default"}}
		s.decls[words[0]] = d
	}
	for words = words[1:]; len(words) > 0; {
		n, err := d.set(words)
		if err != nil {
			return err
		}
		words = words[n:]
	}
	return nil
}

// set reads one setting and says how many words it took.
func (d *declared) set(words []string) (int, error) {
	switch words[0] {
	case "share":
		d.Share = true
		return 1, nil
	case "unshared":
		d.Share = false
		return 1, nil
	case "independent":
		d.DependsOn = nil
		return 1, nil
	case "worker": // what was a job
		d.Kind, d.Job, d.Cron, d.Replicas = ring.Worker, nil, nil, 1
		d.Restart = ring.Restart{Policy: ring.Always, Engine: "always"}
		return 1, nil
	case "job":
		d.Kind, d.Checks, d.Replicas = ring.JobK, nil, 1
		d.Job = &ring.Job{Run: "on_change"}
		d.Restart = ring.Restart{Policy: ring.NeverStop, Engine: "no"}
		return 1, nil
	}
	if words[0] == "cron" { // cron "0 3 * * *"
		d.Kind, d.Checks, d.Replicas = ring.CronK, nil, 1
		d.Cron = &ring.Cron{Schedule: strings.TrimPrefix(words[1], `"`), Timezone: "UTC", Overlap: ring.OverlapForbid, Missed: time.Hour}
		d.Restart = ring.Restart{Policy: ring.NeverStop, Engine: "no"}
		return 2, nil
	}
	if words[0] == "exposed" { // its front listens on what the image exposes
		return 1, d.route(func(r *ring.Route) { r.Ports, r.Exposed = nil, ring.CarryAuto })
	}
	if words[0] == "hooks" {
		d.Spec.PostStart = []ring.Hook{{Command: []string{"warm", "up"}}}
		return 1, nil
	}
	if len(words) < 2 {
		return 0, fmt.Errorf("no such setting, or no value: %s", words[0])
	}
	if words[0] == "depends_on" {
		if len(words) < 3 {
			return 0, errors.New("depends_on <service> <started|ready|completed>")
		}
		d.DependsOn = append(slices.Clone(d.DependsOn), ring.Dependency{Service: words[1], Until: ring.Until(words[2])})
		return 3, nil
	}
	return 2, d.setting(words[0], words[1])
}

func (d *declared) setting(key, value string) (err error) {
	k := &d.Rollout
	duration := func(to *time.Duration) { *to, err = time.ParseDuration(value) }
	number := func(to *int) { *to, err = strconv.Atoi(value) }
	count := func(to *ring.Count) {
		digits, percent := strings.CutSuffix(value, "%")
		to.Percent = percent
		to.N, err = strconv.Atoi(digits)
	}
	switch key {
	case "replicas":
		number(&d.Replicas)
	case "mode": // mode global, on a swarm
		d.Spec.Cluster = &ring.ClusterSpec{Global: value == "global"}
	case "check":
		return d.check(value)
	case "min_ready":
		duration(&k.MinReadyTime)
	case "start_timeout":
		duration(&k.StartTimeout)
	case "patience":
		to := ring.ClusterSpec{}
		if d.Spec.Cluster != nil {
			to = *d.Spec.Cluster
		}
		duration(&to.Patience)
		d.Spec.Cluster = &to
	case "deadline":
		duration(&k.ProgressDeadline)
	case "threshold":
		number(&k.FailureThreshold)
	case "surge":
		count(&k.MaxSurge)
	case "unavailable":
		count(&k.MaxUnavailable)
	case "parallel":
		number(&k.MaxParallel)
	case "on_failure":
		k.OnFailure = value
	case "strategy":
		k.Strategy = value
	case "delay":
		duration(&d.Restart.Delay)
	case "window":
		duration(&d.Restart.Window)
	case "bake":
		duration(&k.Bake)
	case "warm":
		duration(&k.WarmFor)
	case "back_parallel": // two at a time on the way back, by Compose's rollback_config
		b := ring.Back{MaxSurge: k.MaxSurge, MaxUnavailable: k.MaxUnavailable, MinReadyTime: k.MinReadyTime}
		number(&b.MaxParallel)
		k.Back = &b
	case "memory": // in MiB, as its limit
		n := 0
		number(&n)
		d.Spec.Resources = &ring.Resources{Memory: int64(n) << 20}
	case "volume":
		d.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: value, Target: "/data"}}
	case "config": // a file of the commit with that content
		d.Spec.Mounts = []ring.Mount{{Kind: ring.MountContent, Source: value, File: "app.conf", Target: "/etc/app.conf"}}
	case "data":
		d.Spec.Mounts = []ring.Mount{{Kind: ring.MountData, Source: value, Target: "/data"}}
	case "from": // the app that had its volume, or none
		d.from = value
	case "external": // a volume by its name on the host
		d.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: ofHost + value, Target: "/data"}}
	case "bind":
		d.Spec.Mounts = []ring.Mount{{Kind: ring.MountBind, Source: value, Target: "/data"}}
	case "joins":
		d.Spec.NetworkOf = value
		d.Spec.Networks = nil
		if value == "nobody" {
			d.Spec.NetworkOf, d.Spec.Networks = "", []ring.Attachment{{Network: "default"}}
		}
	case "volumes_from":
		d.Spec.VolumesFrom = []ring.VolumesFrom{{Service: value}}
	case "follows":
		d.Spec.Follows = []string{value}
	case "live":
		d.Reload = &ring.Reload{Paths: []string{"./conf"}, Live: map[string]string{"conf": value}, Exec: []string{"reload"}}
		d.Spec.Mounts = []ring.Mount{{Kind: ring.MountLive, Source: "conf", Target: "/etc/app", ReadOnly: true}}
	case "reload_by":
		r := *d.Reload
		r.Exec = []string{value}
		d.Reload = &r
	case "container_name":
		d.Spec.ContainerName = value
	case "pull":
		d.Spec.PullPolicy = value
	case "updates": // updates 24h: its tag is asked by the clock; updates never
		d.Updates = nil
		if value == "never" {
			return nil
		}
		u := ring.Updates{Word: "every_" + value}
		duration(&u.Every)
		d.Updates = &u
	case "min_age":
		u := *d.Updates
		duration(&u.MinAge)
		d.Updates = &u
	case "open": // open "Sat 02:00-05:00"
		u := *d.Updates
		u.Window = strings.TrimPrefix(value, `"`)
		d.Updates = &u
	case "port":
		i := strings.LastIndex(value, ":") // after the address, if one is said
		d.Spec.Ports = []ring.Port{{HostIP: value[:max(i, 0)], HostPort: value[i+1:], Container: 80, Protocol: "tcp"}}
	case "front": // front 8080, or front none: without a port of the host
		r := ring.DefaultRoute()
		if d.Route != nil {
			r = *d.Route
		}
		r.Ports = []ring.FrontPort{{Port: 80, Carry: ring.CarryAuto}}
		d.Route, d.Spec.Ports, d.frontPort = &r, nil, value
		if value == "off" {
			d.Route, d.frontPort = nil, ""
		}
	case "container_port": // what its front listens on and sends to
		return d.route(func(r *ring.Route) {
			n := 0
			number(&n)
			r.Ports = []ring.FrontPort{{Port: n, Carry: ring.CarryAuto}}
		})
	case "label":
		d.frontLabel = value
	case "drain":
		return d.route(func(r *ring.Route) { duration(&r.DrainTimeout) })
	case "queue":
		return d.route(func(r *ring.Route) { duration(&r.Queue) })
	case "steps": // steps 10:1m,50:manual
		c := ring.CanaryPlan{}
		for _, word := range strings.Split(value, ",") {
			weight, lasts, _ := strings.Cut(word, ":")
			var step ring.CanaryStep
			if step.Weight, err = strconv.Atoi(weight); err != nil {
				return err
			}
			if step.Manual = lasts == "manual"; !step.Manual {
				if step.For, err = time.ParseDuration(lasts); err != nil {
					return err
				}
			}
			c.Steps = append(c.Steps, step)
		}
		judge := ring.DefaultJudge()
		c.Judge = &judge
		k.Strategy, k.Canary = ring.Canary, &c
	case "on_quiet":
		c := *k.Canary
		judge := *c.Judge
		judge.OnQuiet = value
		c.Judge = &judge
		k.Canary = &c
	case "drain_delay":
		duration(&k.DrainDelay)
	case "env":
		name, v, _ := strings.Cut(value, "=")
		d.Spec.Environment = map[string]string{name: v}
	case "restart":
		if value == "unless-stopped" {
			d.Restart.Policy, d.Restart.Engine = ring.Always, value
			return nil
		}
		d.Restart.Policy = value
		d.Restart.Engine = map[string]string{ring.Always: "always", ring.OnFail: "on-failure", ring.NeverStop: "no"}[value]
	case "retries":
		d.job(func(j *ring.Job) { number(&j.Retries) })
	case "timeout":
		d.job(func(j *ring.Job) { duration(&j.Timeout) })
	case "run":
		d.job(func(j *ring.Job) { j.Run = value })
	case "rerun": // rerun interrupted
		d.job(func(j *ring.Job) { j.Rerun = value == "interrupted" })
	case "replace": // replace older
		d.job(func(j *ring.Job) { j.Replace = value == "older" })
	case "before":
		d.Before = strings.TrimPrefix(value, "none")
	case "zone":
		d.timing(func(c *ring.Cron) { c.Timezone = value })
	case "overlap":
		d.timing(func(c *ring.Cron) { c.Overlap = value })
	case "missed":
		d.timing(func(c *ring.Cron) { duration(&c.Missed) })
	default:
		return fmt.Errorf("no such setting: %s", key)
	}
	return err
}

// job changes a copy: earlier commits keep theirs.
func (d *declared) job(change func(*ring.Job)) {
	if d.Cron != nil {
		d.timing(func(c *ring.Cron) { change(&c.Job) })
		return
	}
	j := *d.Job
	change(&j)
	d.Job = &j
}

// timing changes a copy too.
func (d *declared) timing(change func(*ring.Cron)) {
	c := *d.Cron
	change(&c)
	d.Cron = &c
}

func (d *declared) check(value string) error {
	live := ring.Check{Name: "alive", For: ring.Liveness, TCP: &ring.TCPCheck{Port: 80}}
	http := ring.Check{Name: "up", For: ring.Readiness, HTTP: &ring.HTTPCheck{Port: 80, Path: "/"}}
	switch value {
	case "http":
		d.Checks = []ring.Check{http}
	case "none":
		d.Checks = nil
	case "http+liveness":
		d.Checks = []ring.Check{http, live}
	case "http+liveness-stop":
		live.OnFailure = "stop"
		d.Checks = []ring.Check{http, live}
	default:
		return fmt.Errorf("no such check: %s", value)
	}
	return nil
}

// declareApp is "app <name> <setting> …".
func (s *story) declareApp(words []string) error {
	a := s.app(words[0])
	switch strings.Join(words[1:min(2, len(words))], "") {
	case "in": // in <folder>
		a.Path, a.Files = words[2], []string{words[2] + "/compose.yaml"}
	case "after":
		a.After = []ring.AfterApp{{App: words[2], Until: ring.Until(words[3])}}
	case "keeps": // keeps orphans
		a.NoPrune = true
	case "joins": // joins network proxy: a network of the app with a name of its own
		a.Networks = []ring.Network{{Key: "default", Name: words[3]}}
	case "uses": // uses network proxy: one that another app makes
		a.Networks = []ring.Network{{Key: "default", External: words[3]}}
	case "trades": // trades network a for b: it makes a, and joins b, which another app makes
		a.Networks = []ring.Network{{Key: "default", Name: words[3]}, {Key: "other", External: words[5]}}
	case "network":
		a.Networks = []ring.Network{{Key: "default", Labels: map[string]string{"is": words[2]}}}
	case "drift":
		a.Drift = words[2]
	case "held":
		a.Hold = &ring.Hold{Reason: strings.TrimPrefix(words[2], `"`)}
	case "released":
		a.Hold = nil
	default:
		return fmt.Errorf("no such setting: %v", words[1:])
	}
	return nil
}

func (s *story) app(name string) *ring.App {
	if s.apps[name] == nil {
		s.apps[name] = newApp(name)
	}
	return s.apps[name]
}

// version is "version <name> <clause>[, <clause>…]": what such an image does.
func (s *story) version(words []string) error {
	var n nature
	for _, clause := range strings.Split(strings.Join(words[1:], " "), ", ") {
		if err := n.clause(strings.Fields(clause)); err != nil {
			return err
		}
	}
	s.natures[words[0]] = n
	return nil
}

func (n *nature) clause(w []string) (err error) {
	at := func(i int) (d time.Duration) {
		if i >= len(w) {
			err = fmt.Errorf("a clause is too short: %v", w)
			return 0
		}
		d, e := time.ParseDuration(w[i])
		if e != nil {
			err = e
		}
		return d
	}
	switch text := strings.Join(w, " "); {
	case text == "is good":
	case text == "never ready":
		n.never = true
	case text == "cannot start":
		n.noStart = true
	case text == "is on no node":
		n.rejected = true
	case text == "finds no node":
		n.nowhere = true
	case text == "is out of memory":
		n.oom = true
	case strings.HasPrefix(text, "listens on "): // listens on 90
		n.listens, err = strconv.Atoi(w[2])
	case text == "hooks fail":
		n.hookFails = true
	case strings.HasPrefix(text, "hooks take "):
		n.hooks = at(2)
	case strings.HasPrefix(text, "exposes "): // exposes 90
		n.exposes = append(n.exposes, w[1]+"/tcp")
	case strings.HasPrefix(text, "has volume "): // has volume /var/lib/db
		n.volumes = append(n.volumes, w[2])
	case strings.HasPrefix(text, "is signed by "):
		n.signer = w[3]
	case text == "not in the registry":
		n.noImage = true
	case strings.HasPrefix(text, "ready after "):
		n.readyAfter = at(2)
	case strings.HasPrefix(text, "stops in "): // stops in 40s, on a swarm
		n.stops = at(2)
	case strings.HasPrefix(text, "not ready from "): // not ready from 3s to 5s
		n.dips = append(n.dips, span{from: at(3), to: at(5)})
	case strings.HasPrefix(text, "breaks "): // breaks 2 containers
		n.breaks, err = strconv.Atoi(w[1])
	case strings.HasPrefix(text, "fails its canary check after "):
		n.badCanary = at(5)
	case strings.HasPrefix(text, "not live after "):
		n.deadAfter = at(3)
	case strings.HasPrefix(text, "pull takes "):
		n.pull = at(2)
	case strings.HasPrefix(text, "exits "): // exits 1 after 3s [5 times]
		n.exitAfter = at(3)
		if n.exit, err = strconv.Atoi(w[1]); err == nil && len(w) > 4 {
			n.times, err = strconv.Atoi(w[4])
		}
	default:
		return fmt.Errorf("no such clause: %s", text)
	}
	return err
}

// commit is "commit <name> [like <name>] [<service>=<version>…] [-<service or app>…]
// [empty] [refused <app>] [torn <app>] [allow_remove=<n>]": a tree that changes what it names.
func (s *story) commit(words []string) error {
	name := words[0]
	plan := &ring.Plan{Source: "s", Commit: shaOf(name), Refused: map[string]*ring.Refusal{}}
	next := chapter{asksForData: s.asksForData, plan: plan, tree: map[string]declared{}, apps: map[string]ring.App{}}
	for service, was := range s.tree {
		d := *s.decls[service]
		d.Spec.Image = was.Spec.Image
		next.tree[service] = d
	}
	for app, a := range s.apps {
		next.apps[app] = *a
	}
	for words = words[1:]; len(words) > 0; words = words[1:] {
		word := words[0]
		service, version, set := strings.Cut(word, "=")
		switch {
		case word == "like" && len(words) > 1:
			next.tree, next.apps = maps.Clone(s.commits[words[1]].tree), s.commits[words[1]].apps
			words = words[1:]
		case word == "refused" && len(words) > 1:
			plan.Refused[words[1]] = &ring.Refusal{Code: ring.UnknownKey, Commit: plan.Commit, App: words[1], Says: "services.web has no key imgae", Hint: "image"}
			words = words[1:]
		case word == "torn" && len(words) > 1:
			plan.Refused[words[1]] = &ring.Refusal{Code: ring.Yaml, Commit: plan.Commit, App: words[1], Says: "found a tab that indents", Hint: "use spaces"}
			words = words[1:]
		case word == "empty":
			clear(next.tree)
		case service == "answer": // answer=store:shop
			app, from, _ := strings.Cut(version, ":")
			plan.Data = append(plan.Data, ring.DataAnswer{App: app, From: from})
		case service == "waves": // waves=canary:10m,edge-1+edge-2
			waves, err := wavesOf(version)
			if err != nil {
				return err
			}
			plan.Waves = waves
		case word == "awaited":
			plan.Awaited = true
		case word == "allow_waves":
			plan.AllowWaves = true
		case service == "allow_remove":
			plan.AllowRemove, _ = strconv.Atoi(version)
		case set:
			if s.decls[service] == nil {
				return fmt.Errorf("no such service: %s", service)
			}
			d := *s.decls[service]
			d.Spec.Image = version
			next.tree[service] = d
		case word[0] == '-':
			maps.DeleteFunc(next.tree, func(n string, d declared) bool { return n == word[1:] || d.app == word[1:] })
		default:
			return fmt.Errorf("no such part of a commit: %s", word)
		}
	}
	refused := maps.Clone(plan.Refused)
	next.build()
	s.again = func() *ring.Plan {
		anew := chapter{asksForData: s.asksForData, tree: next.tree, apps: next.apps, plan: &ring.Plan{Source: plan.Source, Commit: plan.Commit, AllowRemove: plan.AllowRemove, Waves: plan.Waves, AllowWaves: plan.AllowWaves, Awaited: plan.Awaited, Data: plan.Data, Refused: maps.Clone(refused)}}
		anew.build()
		s.judgeData(anew.plan)
		return anew.plan
	}
	s.judgeData(plan)
	s.tree, s.commits[name] = next.tree, next
	s.latest = name
	s.note("commit %s", name)
	s.setMark()
	s.offer(plan)
	return nil
}

// judgeData is what the host makes of a plan that leaves data behind, in the stories that ask
// for it.
func (s *story) judgeData(plan *ring.Plan) {
	if !s.asksForData {
		return
	}
	d := DataHost{
		InForce: s.disk.Apps, Names: s.disk.Names, Kept: s.disk.Kept, Left: s.disk.Left, OneHand: together,
		Folder: func(folder string) (there, holds bool) { there = s.volumes["data "+folder]; return there, there },
	}
	d.TakeOver(plan)
	d.RefuseLeftBehind(plan)
	for i := range plan.Apps {
		plan.Apps[i].Written = ring.WrittenApp(plan.Apps[i])
	}
}

// build makes the plan of the tree.
func (c *chapter) build() {
	apps := map[string]ring.App{}
	for _, name := range sortedIDs(c.tree) {
		d := c.tree[name]
		if r := c.plan.Refused[d.app]; r != nil && r.Code == ring.Yaml {
			continue
		}
		app, ok := apps[d.app]
		if !ok {
			app, ok = c.apps[d.app]
		}
		if !ok {
			app = *newApp(d.app)
		}
		d.Written = ring.WrittenHash(d.Spec)
		app.Commit = c.plan.Commit
		for _, m := range d.Spec.Mounts {
			if name, named := strings.CutPrefix(m.Source, ofHost); named && m.Kind == ring.MountVolume {
				app.Volumes = append(slices.Clone(app.Volumes), ring.Volume{Key: m.Source, External: name})
				continue
			}
			if m.Kind == ring.MountVolume && c.asksForData { // as a Compose file declares it
				v := ring.Volume{Key: m.Source, From: d.from}
				if d.from != "" && d.from != ring.FromNone {
					v.Name = ring.VolumeName(d.from, v.Key)
				}
				app.Volumes = append(slices.Clone(app.Volumes), v)
			}
		}
		app.Services = append(slices.Clone(app.Services), d.Service)
		if d.Route != nil {
			app.Services = append(app.Services, d.front())
		}
		apps[d.app] = app
	}
	for _, name := range sortedIDs(apps) {
		app := apps[name]
		slices.SortFunc(app.Services, func(a, b ring.Service) int { return strings.Compare(a.Name, b.Name) })
		if r := c.plan.Refused[name]; r != nil {
			c.plan.Refuse(name, r, app)
			continue
		}
		app.Written = ring.WrittenApp(app)
		c.plan.Apps = append(c.plan.Apps, app)
	}
}

// approve is a person's yes, as Loop.Approve writes it down.
func (s *story) approve(words []string) error {
	if strings.HasPrefix(words[0], "sha256:") {
		facts, events, err := approvalOfMove(s.world(), words[0], "alice", "a story", s.clock())
		s.record(facts, events)
		s.mem.wake = s.now
		return err
	}
	yes := approvalOf(s.world(), s.src.Name, "alice", "a story", s.clock())
	if yes == nil || s.src.Next.Commit != shaOf(words[0]) {
		return errors.New("nothing to approve")
	}
	s.record([]ring.Fact{yes}, nil)
	s.mem.wake = s.now
	return nil
}

// refresh is a person's wish, as Loop.Refresh writes it down.
func (s *story) refresh(words []string) error {
	app, name := fullID(words[0])
	if s.decls[words[0]] == nil {
		return fmt.Errorf("no such service: %s", words[0])
	}
	id := ring.ID(app, name)
	s.mem.recent.askAgain(id)
	s.record([]ring.Fact{ring.Refresh{ID: id, Actor: "alice", Reason: "a story", At: s.clock()}}, nil)
	s.mem.wake = s.now
	s.setMark()
	return nil
}

// fault is what happens to the host, by hand or by bad luck.
func (s *story) fault(what string) error {
	if key, ok := strings.CutPrefix(what, "the policy asks for key "); ok {
		s.signing.Rules = ring.ImageRules{{Match: "**", Hash: key}}
		return nil
	}
	switch what {
	case "the engine restarts", "the host reboots":
		s.note("%s", what)
		s.reboot()
		if what == "the host reboots" && !s.gone {
			s.daemon.kill("by the reboot")
		}
		return nil
	case "the engine shuts down": // it still answers, and carries nothing out
		s.ending = true
		for _, id := range s.each() {
			if b := s.boxes[id]; b.running() {
				s.exit(b, 0)
			}
		}
		return nil
	case "the engine is back":
		s.ending = false
		s.reboot()
		return nil
	case "the daemon is killed":
		s.daemon.kill("by the story")
		if s.asksForData && s.again != nil { // it reads the commit again
			s.src.Next = s.again()
			s.plans = append(s.plans, s.src.Next)
		}
		return nil
	case "the daemon is gone":
		s.gone = true
		s.daemon.kill("for good")
		return nil
	case "the daemon is back":
		s.gone = false
		s.daemon.kill("and back")
		return nil
	case "looks hide what ended", "looks show all":
		s.hides = what == "looks hide what ended"
		return nil
	case "looks fail", "looks work":
		s.blind = what == "looks fail"
		return nil
	case "the remote is away", "the remote is back":
		s.away = what == "the remote is away"
		if s.ahead != nil && !s.away {
			s.src, s.ahead = *s.ahead, nil
		}
		return nil
	case "the daemon is upgraded": // from a release that knew no codes of reasons
		disk, struck := withoutCodes(s.disk)
		if struck == 0 {
			return errors.New("no row has a code: there is nothing to upgrade")
		}
		s.disk = disk
		s.daemon.kill("for an upgrade")
		return nil
	case "the remote answers": // and what it has newly is not verified yet
		s.away, s.src.Tip = false, s.ahead.Tip
		return nil
	case "the registry is away", "the registry is back":
		s.closed = what == "the registry is away"
		return nil
	case "the policy asks for no signature":
		s.signing = Signing{}
		return nil
	case "violations are told", "violations are held":
		s.signing.Reports = what == "violations are told"
		return nil
	case "the networks are removed": // under what runs on them
		clear(s.nets)
		for _, b := range s.boxes {
			clear(b.Addresses)
		}
		return nil
	case "the images are pruned":
		clear(s.have)
		return nil
	case "the database is copied":
		past, src := copyFacts(s.disk), s.src
		s.copied, s.behind = &past, &src
		return nil
	case "the backup is restored": // all that the daemon knew when the database was copied, and no word from the remote yet
		src := s.src
		s.ahead, s.src, s.away = &src, *s.behind, true
		s.src.Reached = time.Time{}
		s.fallBack(*s.copied)
		return nil
	case "the database falls back": // to what it was when it was copied
		s.fallBack(*s.copied)
		return nil
	case "the database is lost", "the state is lost": // the first leaves the marks of jobs, as files
		marks := s.disk.Jobs
		if s.disk = ring.NewFacts(); what == "the database is lost" {
			s.disk.Jobs = marks
		}
		clear(s.posts) // what was told is forgotten, and told again
		s.daemon.kill("with its database")
		return nil
	}
	if s.faultOfForge(what) || s.faultOfSwarm(strings.Fields(what)) {
		return nil
	}
	if by, ok := strings.CutPrefix(what, "the daemon is stopped for "); ok { // SIGSTOP
		d, err := time.ParseDuration(by)
		s.suspend(d)
		return err
	}
	if name, ok := strings.CutSuffix(what, " is not signed"); ok { // fault c9 is not signed
		s.src.Tip = shaOf(name)
		s.src.Refusal = &ring.Refusal{Code: ring.Unsigned, Commit: s.src.Tip, Says: "commit " + s.src.Tip.Short() + " is not signed", Hint: "sign it"}
		return nil
	}
	return s.faultOf(strings.Fields(what))
}

func (s *story) faultOf(w []string) error {
	if len(w) == 5 && w[0] == "the" && w[1] == "policy" && w[3] == "min_age" { // the policy has min_age 72h
		age, err := time.ParseDuration(w[4])
		s.tagRules.MinAge = age
		return err
	}
	if len(w) == 5 && w[0] == "the" && w[1] == "policy" && w[3] == "moving" { // the policy has moving deny
		s.tagRules.Deny = w[4] == "deny"
		return nil
	}
	if len(w) == 4 && w[0] == "tag" && w[2] == "means" { // tag v1 means other
		s.moved[w[1]] = w[3]
		return nil
	}
	switch {
	case w[0] == "front", w[0] == "answers", len(w) == 5 && w[1] == "has" && w[3] == "in":
		return s.faultOfFront(w)
	case len(w) == 4 && w[0] == "project": // project web is foreign, project web is gone
		s.foreign[w[1]] = w[3] == "foreign"
		return nil
	case len(w) == 5 && w[0] == "project": // project store has shop's network: a network of its own would have that one's name
		s.lent = map[string]string{w[1]: strings.TrimSuffix(w[3], "'s")}
		return nil
	case len(w) == 4 && w[0] == "memory": // memory is now 2048, in MiB
		n, err := strconv.Atoi(w[3])
		s.memory = int64(n) << 20
		return err
	case len(w) == 4 && w[0] == "image": // image v1 is here
		s.have[w[1]+"@sha256:"+w[1]] = true
		return nil
	case len(w) == 4 && w[0] == "name": // name proxy is taken, name web-1@v2 is free
		s.names[w[1]] = w[3] == "taken"
		return nil
	case len(w) == 4 && w[0] == "port": // port 8080 is taken, port 8080 is free
		s.names["port "+w[1]] = w[3] == "taken"
		return nil
	case len(w) == 4 && (w[0] == "volume" || w[0] == "data"): // volume db_data is gone, volume db_data is back
		name := w[0] + " " + w[1]
		if !s.volumes[name] && w[3] == "gone" {
			return fmt.Errorf("there is no %s; there is %v", name, sortedIDs(s.volumes))
		}
		s.volumes[name] = w[3] == "back"
		return nil
	}
	if len(w) == 4 && w[0] == "the" && w[1] == "clock" { // the clock jumps 24h
		d, err := time.ParseDuration(w[3])
		s.skew += d
		return err
	}
	if len(w) != 2 && len(w) != 4 {
		return fmt.Errorf("no such fault: %v", w)
	}
	b := s.boxNamed(w[1])
	if b == nil {
		return fmt.Errorf("no such instance: %s", w[1])
	}
	switch w[0] {
	case "stop": // by hand
		s.exit(b, 143)
		b.Hand = "stopped"
	case "kill": // by hand
		s.exit(b, 137)
		b.Hand = "killed"
	case "letgo": // a run on a swarm, by hand
		s.letGo(b)
	case "again": // a run on a swarm, by its leader
		s.beginAgain(b)
	case "break": // the engine never starts it again
		b.broken = true
	case "hiccup": // the engine refuses its next start
		b.hiccup = true
	case "mend": // by hand: the engine starts it after all
		b.broken = false
		s.run(b)
	case "freeze":
		b.State = ring.StatePaused
	case "rename":
		b.Name = "by-hand"
	case "unplug":
		clear(b.Addresses)
	case "squeeze":
		b.Limits = &ring.Resources{Memory: 1 << 20}
	case "pin": // its restart policy
		b.Policy = "unless-stopped"
	case "remove":
		s.drop(b)
		s.ledger = append(s.ledger, entry{at: s.now, kind: "removed by hand", service: shortID(b.App, b.Service), slot: b.Slot, version: b.image})
	case "crash", "end": // crash web-1 exit 1; one that ends is not started again
		code, err := strconv.Atoi(w[3])
		if err != nil {
			return err
		}
		s.exit(b, code)
		if w[0] == "crash" {
			s.comeBack(b)
		}
	default:
		return fmt.Errorf("no such fault: %v", w)
	}
	return nil
}

// boxNamed finds "web-1" or "web-1@v1"; nil when there is none, or more.
func (s *story) boxNamed(name string) *box {
	slotted, version, _ := strings.Cut(name, "@")
	var found *box
	for _, id := range s.each() {
		b := s.boxes[id]
		if fmt.Sprintf("%s-%d", shortID(b.App, b.Service), b.Slot) != slotted || version != "" && b.image != version {
			continue
		}
		if found != nil && b.frontOf == "" {
			return nil
		}
		found = b // of two fronts the newer one
	}
	return found
}
