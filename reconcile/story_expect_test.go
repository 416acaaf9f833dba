package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// expect holds the world, and what happened since the last commit, to a sentence.
func (s *story) expect(w []string) error {
	if len(w) == 0 {
		return errors.New("expect what?")
	}
	switch w[0] {
	case "only":
		return s.expectOnly(w[1:])
	case "nothing":
		return s.expectNothing(w[1:])
	case "sync", "exit", "next", "app", "service", "rollout", "condition", "refusal", "job", "good":
		return s.expectStatus(w[0], w[1:])
	case "post":
		return s.expectPost(w[1:])
	case "event":
		return s.expectEvents(-1, w[1:])
	case "no":
		if len(w) > 1 && w[1] == "post" {
			return s.expectNoPost(w[2:])
		}
		return s.expectEvents(0, w[2:])
	case "never":
		return s.expectNeverStopped(w[2:])
	case "steps:":
		return s.expectSteps(strings.Join(w[1:], " "))
	case "created":
		return count("creates", s.happened("create", word(w, 3)), w[1])
	case "told": // told 2 failed [of shop/backup] ["…"]
		return s.expectRuns(w[1:])
	case "written": // written c1 success, on a swarm: in both contexts
		for _, context := range []string{"gitring/sim", "gitring/sim/web"} {
			if got := s.swarm.record.Words[ring.PostKey(shaOf(w[1]), context)].State; got != w[2] {
				return fmt.Errorf("of %s there is %q", context, got)
			}
		}
		return nil
	case "logged": // logged 1 of shop/backup
		return count("logs read", s.happened("log", word(w, 3)), w[1])
	case "running": // running 2 of shop/backup
		return s.expectRunning(w[1], w[3])
	case "runs":
		return count("runs", s.happened("run", word(w, 3)), w[1])
	case "touched":
		return s.expectUntouched()
	case "asked":
		if w[1] == "signatures" {
			return count("questions about signatures", s.happened("verify", ""), w[2])
		}
		return count("questions to the registry", s.happened("resolve", "")+s.happened("pull", ""), w[2])
	case "crashes": // crashes 2 of web ["text"]
		return s.expectCrashes(w[1], w[3], w[4:])
	case "adopted": // adopted 2 of shop
		return s.expectAdopted(w[1], w[3])
	case "admitted": // admitted 1 web
		return count("questions to the host", s.asked("admit", w[2]), w[1])
	case "looked": // looked 1 v1
		return count("looks at the image", s.asked("inspect", w[2]+"@"), w[1])
	case "reads": // reads web-1 b
		if b := s.boxNamed(w[1]); b == nil || b.reads != w[2] || b.lies != w[2] {
			return fmt.Errorf("it is %+v", b)
		}
		return nil
	case "name":
		return s.expectName(w[1], w[2])
	case "tied":
		return s.expectTied(w[1:])
	case "volumes":
		return s.expectVolumes(w[1:])
	case "gaps":
		return s.expectGaps(strings.TrimSuffix(w[1], ":"), w[2:])
	case "networks":
		return s.expectNetworks(w[1:])
	case "policy":
		return s.expectPolicy(w[1], w[2])
	case "ports": // ports web: 90
		return s.expectPorts(w[1:])
	case "table":
		return s.expectTable(w[1:])
	case "tables":
		return s.expectTables(w[1:])
	case "weight": // weight web 10
		return s.expectWeight(w[1], w[2])
	case "generation": // generation web below 100
		return s.expectGeneration(w[1], w[3])
	case "leaving": // leaving web 1
		return count("of its fronts leave", s.frontsLeaving(w[1]), w[2])
	case "cut":
		return count("were cut", s.cutAll, w[1])
	case "override":
		return s.expectOverride(w[1:])
	case "image":
		return s.expectImage(w[1], w[2])
	case "sent": // sent web 2: so many specs, ever
		return s.expectSent(w[1], w[2])
	case "files": // files a b, or files none
		return s.expectFiles(w[1:])
	}
	if n, err := strconv.Atoi(w[0]); err == nil {
		if w[1] == "events" {
			return s.expectEvents(n, w[2:])
		}
		return s.expectAll(n, w[2:])
	}
	if len(w) > 1 && w[1] == "never" {
		return s.expectExtremes(w[0], w[2], w[3], w[4])
	}
	return s.expectInstances(w)
}

func word(w []string, i int) string {
	if i < len(w) {
		return w[i]
	}
	return ""
}

func count(what string, got int, want string) error {
	if from, to, ranged := strings.Cut(want, ".."); ranged { // 22..26
		least, errLeast := strconv.Atoi(from)
		most, errMost := strconv.Atoi(to)
		if errLeast != nil || errMost != nil || got < least || got > most {
			return fmt.Errorf("%d %s", got, what)
		}
		return nil
	}
	if strconv.Itoa(got) != want {
		return fmt.Errorf("%d %s", got, what)
	}
	return nil
}

// happened counts entries of a kind since the last commit, of a service or all.
func (s *story) happened(kind, service string) int {
	n := 0
	for _, e := range s.since() {
		if e.kind == kind && (service == "" || e.service == service) {
			n++
		}
	}
	return n
}

// is reports whether a container is in a state, in the words of stories.
func (s *story) is(b *box, state string) (bool, error) {
	switch state {
	case "ready":
		return s.ready(b), nil
	case "running":
		return b.running(), nil
	case "unready":
		return b.running() && !s.ready(b), nil
	case "stopped":
		return b.State == ring.StateExited, nil
	case "created":
		return b.State == ring.StateCreated, nil
	}
	return false, fmt.Errorf("no such state: %s", state)
}

// sentences are "web-1 v1 ready, web-2 v1 ready" as triples.
func sentences(w []string) ([][]string, error) {
	var out [][]string
	for _, part := range strings.Split(strings.Join(w, " "), ", ") {
		f := strings.Fields(part)
		if len(f) != 3 {
			return nil, fmt.Errorf("not <instance> <version> <state>: %q", part)
		}
		out = append(out, f)
	}
	return out, nil
}

func (s *story) expectInstances(w []string) error {
	list, err := sentences(w)
	if err != nil {
		return err
	}
	for _, f := range list {
		b := s.boxNamed(f[0] + "@" + f[1])
		if b == nil {
			return fmt.Errorf("%s of %s is not there; there is %s", f[0], f[1], s.boxNames())
		}
		ok, err := s.is(b, f[2])
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s of %s is %s, ready %v", f[0], f[1], b.State, s.ready(b))
		}
	}
	return nil
}

func (s *story) boxNames() string {
	var out []string
	for _, id := range s.each() {
		b := s.boxes[id]
		out = append(out, fmt.Sprintf("%s-%d@%s %s ready %v", shortID(b.App, b.Service), b.Slot, b.image, b.State, s.ready(b)))
	}
	return strings.Join(out, ", ")
}

func (s *story) expectOnly(w []string) error {
	list, err := sentences(w)
	if err != nil {
		return err
	}
	if len(list) != len(s.boxes) {
		return fmt.Errorf("there is %s", s.boxNames())
	}
	return s.expectInstances(w)
}

// expectNothing is "nothing" or "nothing of web".
func (s *story) expectNothing(w []string) error {
	for _, b := range s.boxes {
		if len(w) == 0 || shortID(b.App, b.Service) == w[1] || b.App == w[1] {
			return fmt.Errorf("there is %s", s.boxNames())
		}
	}
	return nil
}

// expectAll is "5 of web v2 ready": exactly so many, all of them so.
func (s *story) expectAll(n int, w []string) error {
	got := 0
	for _, b := range s.boxes {
		if shortID(b.App, b.Service) != w[0] {
			continue
		}
		ok, err := s.is(b, w[2])
		if err != nil {
			return err
		}
		if !ok || b.image != w[1] {
			return fmt.Errorf("there is %s", s.boxNames())
		}
		got++
	}
	return count("instances", got, strconv.Itoa(n))
}

// plain puts names of stories in the place of what people would read.
func (s *story) plain(text string) string {
	for name := range s.commits {
		text = strings.ReplaceAll(text, shaOf(name).Short(), name)
	}
	return text
}

// text says whether what people read contains the quoted words, if there are any.
func (s *story) text(got string, w []string) error {
	for _, q := range w {
		if q[0] == '"' && !strings.Contains(s.plain(got), q[1:]) {
			return fmt.Errorf("it reads %q", s.plain(got))
		}
	}
	return nil
}

func (s *story) expectStatus(what string, w []string) error {
	src := s.last.Status.Sources[0]
	switch what {
	case "exit":
		return count("is the exit code", s.last.Status.ExitCode(), w[0])
	case "sync":
		return s.field(string(src.Sync), src.Reason, w)
	case "next":
		if src.Next == nil {
			return errors.New("there is no next plan")
		}
		return s.field(s.plain(src.Next.Commit.Short()), src.Next.Reason, w)
	}
	appName, serviceName := fullID(w[0])
	i := slices.IndexFunc(src.Apps, func(a ring.AppStatus) bool { return a.Name == appName })
	if i < 0 {
		if word(w, 1) == "none" {
			return nil
		}
		return fmt.Errorf("no app %s in the status", appName)
	}
	a := src.Apps[i]
	switch what {
	case "app":
		return s.field(a.Health, a.Reason, w[1:])
	case "refusal":
		if a.Refusal == nil {
			return s.field("none", "", w[1:])
		}
		return s.field(string(a.Refusal.Code), a.Refusal.Says, w[1:])
	}
	i = slices.IndexFunc(a.Services, func(v ring.ServiceStatus) bool { return v.Name == serviceName })
	if i < 0 {
		return fmt.Errorf("no service %s in the status", serviceName)
	}
	return s.serviceField(what, &a.Services[i], w)
}

// field compares a word, and the reason where the story gives one.
func (s *story) field(got, reason string, w []string) error {
	if got != w[0] {
		return fmt.Errorf("it is %s: %s", got, s.plain(reason))
	}
	return s.text(reason, w[1:])
}

func (s *story) serviceField(what string, v *ring.ServiceStatus, w []string) error {
	switch what {
	case "service":
		return s.field(string(v.Phase), v.Reason, w[1:])
	case "good":
		return s.field(cmp.Or(s.plain(v.LastGood.Short()), "none"), "", w[1:])
	case "job":
		app, name := fullID(w[0])
		run := s.disk.Jobs[ring.VersionKey(ring.ID(app, name), v.Version)]
		return s.field(run.State, run.Reason, w[1:])
	case "condition":
		i := slices.IndexFunc(v.Conditions, func(c ring.Condition) bool { return c.Type == w[1] })
		if i < 0 && word(w, 2) == "none" {
			return nil
		}
		if i < 0 {
			return fmt.Errorf("the conditions are %v", v.Conditions)
		}
		if word(w, 2) == "none" {
			return fmt.Errorf("it stands: %s", s.plain(v.Conditions[i].Reason))
		}
		return s.text(v.Conditions[i].Reason, w[2:])
	}
	r := v.Rollout
	switch {
	case r == nil && w[1] == "none":
		return nil
	case r == nil:
		return errors.New("there is no rollout")
	case len(w) > 2 && w[2][0] != '"' && r.Commit != shaOf(w[2]):
		return fmt.Errorf("it is of %s", s.plain(r.Commit.Short()))
	}
	return s.field(r.Phase, r.Reason, w[1:])
}

// expectPost is "post <context> <state> [<commit>] ["text"]".
func (s *story) expectPost(w []string) error {
	name := s.latest
	if len(w) > 2 && w[2][0] != '"' {
		name = w[2]
	}
	p, ok := s.disk.Posts[ring.PostKey(shaOf(name), w[0])]
	if !ok {
		return errors.New("nothing was posted there")
	}
	if p.State != w[1] {
		return fmt.Errorf("it says %s: %s", p.State, s.plain(p.Description))
	}
	return s.text(p.Description, w[2:])
}

func (s *story) expectNoPost(w []string) error {
	name := s.latest
	if len(w) > 1 {
		name = w[1]
	}
	if p, ok := s.disk.Posts[ring.PostKey(shaOf(name), w[0])]; ok {
		return fmt.Errorf("it says %s: %s", p.State, s.plain(p.Description))
	}
	return nil
}

// expectEvents is "<kind> [<service>] [<commit>] ["text"]", n of them; -1 is some.
func (s *story) expectEvents(n int, w []string) error {
	got := 0
	for _, e := range s.events {
		ok := e.Kind == w[0]
		for _, x := range w[1:] {
			_, commit := s.commits[x]
			switch {
			case x[0] == '"':
				ok = ok && strings.Contains(s.plain(e.Reason), x[1:])
			case commit:
				ok = ok && e.Commit == shaOf(x)
			default:
				ok = ok && shortID(e.App, e.Service) == x
			}
		}
		if ok {
			got++
		}
	}
	if n < 0 && got > 0 {
		return nil
	}
	if got != n {
		return fmt.Errorf("%d such events", got)
	}
	return nil
}

// expectNeverStopped is over the whole story.
func (s *story) expectNeverStopped(names []string) error {
	for _, name := range names {
		there := false
		for _, e := range s.ledger {
			there = there || e.kind == "run" && e.name() == name
			if e.name() == name && (e.kind == "exit" || e.kind == "stop" || e.kind == "remove") {
				return fmt.Errorf("%s: %s at %s", name, e.kind, e.at.Sub(epoch))
			}
		}
		if !there {
			return fmt.Errorf("%s never ran", name)
		}
	}
	return nil
}

// expectSteps compares every step on containers since the last commit.
func (s *story) expectSteps(want string) error {
	var got []string
	for _, e := range s.since() {
		switch e.kind {
		case "create", "start", "stop", "remove", "restart", "reload", "connect", "unpause", "update", "signal":
			got = append(got, e.kind+" "+e.name())
		case "rename":
			to := e.detail
			if strings.Contains(to, fmt.Sprintf("-%d-", e.slot)) {
				to = "back"
			}
			got = append(got, e.kind+" "+e.name()+" "+to)
		case string(ring.DoPolicy):
			got = append(got, "policy "+e.name()+" "+e.detail)
		}
	}
	if g := strings.Join(got, "; "); g != want {
		return fmt.Errorf("the steps were: %s", g)
	}
	return nil
}

// asked counts entries of a kind since the last commit, by the beginning of what they are about.
func (s *story) asked(kind, about string) int {
	n := 0
	for _, e := range s.since() {
		if e.kind == kind && strings.HasPrefix(e.detail, about) {
			n++
		}
	}
	return n
}

// expectName is the name of a container; "its own" for the one that it was made with.
func (s *story) expectName(name, want string) error {
	b := s.boxNamed(name)
	if b == nil {
		return fmt.Errorf("no such instance, or more than one; there is %s", s.boxNames())
	}
	its := []string{ring.ComposeName(b.App, b.Service, b.Slot), ring.ContainerName(b.App, b.Service, b.Slot, b.Version)}
	if b.Name != want && (want != "its" || !slices.Contains(its, b.Name)) {
		return fmt.Errorf("it is %s", b.Name)
	}
	return nil
}

// expectTied is "app-1 vpn-1": the first is tied to the second, which runs since before it.
func (s *story) expectTied(w []string) error {
	a, b := s.boxNamed(w[0]), s.boxNamed(w[1])
	if a == nil || b == nil {
		return fmt.Errorf("there is %s", s.boxNames())
	}
	if !slices.Contains(a.Joined, b.ID) || s.cut(a) {
		return fmt.Errorf("it is tied to %v, which is not %s, or is cut off", a.Joined, b.ID)
	}
	return nil
}

// expectVolumes is the whole list of volumes and data folders that are there.
func (s *story) expectVolumes(want []string) error {
	var got []string
	for _, name := range sortedIDs(s.volumes) {
		if _, short, _ := strings.Cut(name, " "); s.volumes[name] {
			got = append(got, short)
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("there are %v", got)
	}
	return nil
}

func (s *story) expectUntouched() error {
	for _, e := range s.since() {
		if !slices.Contains([]string{"exit", "run", "removed by hand", "admit", "inspect", "log"}, e.kind) { // the last three are questions
			return fmt.Errorf("%s %s", e.kind, cmp.Or(strings.Trim(e.name(), "-0@"), e.detail))
		}
	}
	return nil
}

// expectGaps compares the waits between each end of an instance and its next
// start, a tenth either way and a second for the engine.
func (s *story) expectGaps(name string, want []string) error {
	var got []time.Duration
	var ended time.Time
	for _, e := range s.since() {
		if fmt.Sprintf("%s-%d", e.service, e.slot) != name {
			continue
		}
		switch {
		case e.kind == "exit":
			ended = e.at
		case e.kind == "run" && !ended.IsZero():
			got = append(got, e.at.Sub(ended))
		}
	}
	if len(got) < len(want) {
		return fmt.Errorf("the gaps were %v", got)
	}
	for i, w := range want {
		d, err := time.ParseDuration(w)
		if err != nil {
			return err
		}
		if slack := d/10 + time.Second; got[i] < d-slack || got[i] > d+slack {
			return fmt.Errorf("the gaps were %v", got)
		}
	}
	return nil
}

// expectCrashes is "crashes 2 of web ["text"]": so many records with that text in
// the last one's class, reason or log.
func (s *story) expectCrashes(number, service string, text []string) error {
	var of []ring.Crash
	for _, c := range s.crashes {
		if shortID(c.ID.Split()) == service {
			of = append(of, c)
		}
	}
	if got := strconv.Itoa(len(of)); got != number {
		return fmt.Errorf("%s records", got)
	}
	if len(text) == 0 {
		return nil
	}
	last := of[len(of)-1]
	says := fmt.Sprintf("%s exit %d after %s: %s %s (%s)", last.Class, last.ExitCode, last.Uptime.Round(time.Second), last.Reason, last.Log, last.Signature)
	if !strings.Contains(s.plain(says), text[0][1:]) {
		return fmt.Errorf("the last is: %s", s.plain(says))
	}
	return nil
}

// expectNetworks is the whole list of the engine's networks, as patterns.
func (s *story) expectNetworks(want []string) error {
	got := sortedIDs(s.nets)
	if len(got) != len(want) {
		return fmt.Errorf("there are %v", got)
	}
	for i, pattern := range want {
		if ok, err := path.Match(pattern, got[i]); !ok || err != nil {
			return fmt.Errorf("there are %v", got)
		}
	}
	return nil
}

func (s *story) expectPolicy(name, want string) error {
	b := s.boxNamed(name)
	if b == nil {
		return fmt.Errorf("no such instance, or more than one; there is %s", s.boxNames())
	}
	if b.Policy != want {
		return fmt.Errorf("it is %s", b.Policy)
	}
	return nil
}

// expectExtremes is "web never below 2 ready" or "web never above 3 live".
func (s *story) expectExtremes(service, side, number, _ string) error {
	n, err := strconv.Atoi(number)
	switch {
	case err != nil:
		return err
	case side == "below" && s.low[service] < n:
		return fmt.Errorf("down to %d", s.low[service])
	case side == "above" && s.high[service] > n:
		return fmt.Errorf("up to %d", s.high[service])
	}
	return nil
}

// expectRuns is "2 failed of shop/backup ["text"]": so many runs were told with
// that outcome, over the whole story; those that ran have their log.
func (s *story) expectRuns(w []string) error {
	got := 0
	for _, r := range s.runs {
		app, service := r.ID.Split()
		if r.State != w[1] || shortID(app, service) != w[3] || s.text(r.Reason, w[4:]) != nil {
			continue
		}
		got++
		if strings.Contains(r.Reason, "exit") && len(r.Log) == 0 && s.idle() {
			return fmt.Errorf("no log was kept of %+v", r)
		}
	}
	return count(w[1]+" runs", got, w[0])
}

// expectRunning counts the instances of a service that run now.
func (s *story) expectRunning(want, service string) error {
	n := 0
	for _, b := range s.boxes {
		if b.running() && shortID(b.App, b.Service) == service {
			n++
		}
	}
	return count("running", n, want)
}
