package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// The model world of the simulation and of the stories: an engine, a registry
// and their clock, each as simple as it can be, sharing no code with what is
// under test but the types of ring and the hash that names a version.

// nature is what an image does when it runs, counted from each start.
type nature struct {
	readyAfter time.Duration // 0 = at once
	never      bool          // never ready
	dips       []span        // not ready from … to
	badCanary  time.Duration // its check for: canary fails from here; 0 = never
	deadAfter  time.Duration // its liveness check fails from here; 0 = never
	exitAfter  time.Duration // it ends; 0 = never
	exit       int           // with this code
	times      int           // so often, then it stays; 0 = every time
	noStart    bool          // the engine cannot start it
	breaks     int           // so many containers of it the engine never starts, and the next ones it does
	noImage    bool          // the registry says not found
	nowhere    bool          // no node of a swarm takes a run of it
	rejected   bool          // no node of a swarm has it
	stops      time.Duration // from its stop signal to its end, on a swarm
	signer     string        // whose key signed it; "" is nobody's
	pull       time.Duration // what a pull takes
	volumes    []string      // its VOLUME instructions
	exposes    []string      // its EXPOSE instructions
	hooks      time.Duration // what its post_start hooks take
	hookFails  bool
	oom        bool // its ends are for want of memory
	listens    int  // the one port that it listens on; 0 = whichever it is asked for
}

type span struct{ from, to time.Duration }

// good reports whether it comes to stay, and serves.
func (n nature) good() bool {
	return !n.never && n.exitAfter == 0 && !n.noStart && !n.noImage && !n.rejected
}

// moments are when something about it changes by itself.
func (n nature) moments() []time.Duration {
	out := append(make([]time.Duration, 0, 8), n.readyAfter, n.exitAfter, n.deadAfter)
	for _, d := range n.dips {
		out = append(out, d.from, d.to)
	}
	return out
}

// box is a container as it truly is.
type box struct {
	ring.Instance
	holds   []string // writable mounts that outlive it
	image   string
	means   string    // what its tag meant when it was made
	since   time.Time // running since, in true time
	starts  int
	ours    bool // we asked for its end
	shared  bool
	pinned  time.Time // when others gave it a restart policy, which we had not the time to see
	act     string    // what follows from its liveness check
	foreign bool
	from    []string       // the services whose volumes it takes
	kept    []string       // the names of what it was given and keeps
	runs    int            // how often it ran
	inside  map[string]int // the containers whose namespaces it is in, by the run that it joined
	hooks   bool           // it has post_start hooks
	hooked  bool           // and those of this start came to their end
	lies    string         // what lies in its live folder
	reads   string         // and what it took over of that
	readAt  time.Time      // when it did
	broken  bool           // the engine never starts it again
	hiccup  bool           // the engine refuses its next start with the same words
	refused bool           // and did so
	frontOf string         // the service whose front it is
	expose  []string       // the ports that it was made to listen on
	asked   bool           // the engine asks for its health
	left    bool           // a task on a swarm whose run is gone
}

// theirs reports whether it is somebody else's for good, and no container of Compose's
// that a person may give into our hands.
func (b *box) theirs() bool { return b.foreign && b.Version == "" }

func (b *box) running() bool { return b.State == ring.StateRunning }

// lives reports whether it holds what it holds, though somebody may have paused it.
func (b *box) lives() bool { return b.running() || b.State == ring.StatePaused }

// engine is the host: containers, networks, images, and the wall clock.
type engine struct {
	r       *rand.Rand
	now     time.Time     // true time
	skew    time.Duration // of the wall clock
	boxes   map[string]*box
	nets    map[string]ring.SeenNetwork
	have    map[string]bool   // images that are here
	moved   map[string]string // what a tag means, where somebody moved it
	ids     int
	started time.Duration
	engines int      // how often the engine itself started
	memory  int64    // of the host, in bytes; 0 is not known
	sorted  []string // IDs of boxes; nil after a change
	// volumes are the volumes and data folders that are there, names the container
	// names that others hold, foreign the Compose projects that are not ours.
	volumes, names, foreign map[string]bool
	// lent is, by app, another one whose network it would have under that name.
	lent map[string]string

	natures map[string]nature // by image
	// contents are, by what lies in a live folder, what it does to who takes it
	// over: refused, unready, late (unready after 5 s), crash. Any other is good.
	contents map[string]string
	swarm    *swarmModel    // what schedules; nil in an engine that runs containers alone
	closed   bool           // the registry does not answer
	ending   bool           // the engine is about to go, and carries nothing out
	broke    map[string]int // by image, how many containers it will never start
	calls    int            // mutating calls, ever
	log      []line
	bad      error
	// told is what a story may ask about: every mutating call and every end.
	told func(kind, detail string, b *box)
	// meant says that one plan has two containers write one thing.
	meant func(a, b *box, what string) bool
	// given says that a container of Compose's was adopted, and stranger that one of
	// an app runs and was not.
	given, stranger func(string) bool
	// made is asked for every volume and folder that is made empty.
	made   func(name string, b *box)
	fronts // see sim_fronts_test.go
	// admitted is told of every app that this host has nothing against.
	admitted func(app *ring.App)
}

func newEngine(r *rand.Rand) *engine {
	return &engine{
		r: r, now: epoch, boxes: map[string]*box{}, nets: map[string]ring.SeenNetwork{}, natures: map[string]nature{},
		have: map[string]bool{}, moved: map[string]string{}, told: func(string, string, *box) {}, made: func(string, *box) {}, admitted: func(*ring.App) {},
		meant: func(*box, *box, string) bool { return false },
		given: func(string) bool { return false }, stranger: func(string) bool { return false },
		fronts: newFronts(), volumes: map[string]bool{}, names: map[string]bool{}, foreign: map[string]bool{}, broke: map[string]int{},
	}
}

// line is a line of the log, not written out until somebody reads it.
type line struct {
	at     time.Duration
	format string
	args   []any
}

func (l line) String() string {
	return fmt.Sprintf("%8.1fs ", l.at.Seconds()) + fmt.Sprintf(l.format, l.args...)
}

func (e *engine) note(format string, args ...any) {
	e.log = append(e.log, line{e.now.Sub(epoch), format, args})
}

// read is the last lines of the log.
func (e *engine) read(last int) string {
	var out []string
	for _, l := range e.log[max(0, len(e.log)-last):] {
		out = append(out, l.String())
	}
	return strings.Join(out, "\n")
}

func (e *engine) violate(format string, args ...any) {
	if e.bad == nil {
		e.bad = fmt.Errorf(format, args...)
		e.note("VIOLATION %s", e.bad)
	}
}

func (e *engine) nature(b *box) nature {
	if n, ok := e.natures[strings.TrimPrefix(b.means, "sha256:")]; ok {
		return n
	}
	return e.natures[b.image]
}

// each is every container's ID, in order.
func (e *engine) each() []string {
	if e.sorted == nil {
		e.sorted = sortedIDs(e.boxes)
	}
	return e.sorted
}

// drop forgets a container.
func (e *engine) drop(b *box) {
	delete(e.boxes, b.ID)
	e.frontEnds(b)
	e.sorted = nil
}

// wall is what a clock on the wall shows.
func (e *engine) wall() time.Time { return e.now.Add(e.skew) }

// ready is the truth: it would serve.
func (e *engine) ready(b *box) bool {
	n := e.nature(b)
	if e.frontHealth(b) == "unhealthy" {
		return false
	}
	if !b.running() || n.never || e.contents[b.reads] == "unready" || e.contents[b.reads] == "late" && !e.now.Before(b.readAt.Add(5*time.Second)) || e.cut(b) || e.now.Before(b.since.Add(n.readyAfter)) {
		return false
	}
	up := e.now.Sub(b.since)
	return !slices.ContainsFunc(n.dips, func(d span) bool { return up >= d.from && up < d.to })
}

// cut reports whether a container is in namespaces that are none any more: their
// owner was stopped, or started again without it.
func (e *engine) cut(b *box) bool {
	for id, run := range b.inside {
		if o := e.boxes[id]; o == nil || !o.lives() || o.runs != run {
			return true
		}
	}
	return false
}

// dead is the truth of its liveness check.
func (e *engine) dead(b *box) bool {
	n := e.nature(b)
	return n.deadAfter > 0 && b.act != "" && b.running() && !e.now.Before(b.since.Add(n.deadAfter))
}

// ends is when it ends by itself; false when it stays.
func (e *engine) ends(b *box) (time.Time, bool) {
	n := e.nature(b)
	if b.running() && e.contents[b.reads] == "crash" {
		return b.since.Add(time.Second), true
	}
	if !b.running() || n.exitAfter == 0 || n.times > 0 && b.starts > n.times {
		return time.Time{}, false
	}
	return b.since.Add(n.exitAfter), true
}

// moment is the next time that something changes by itself, at most "until".
func (e *engine) moment(until time.Time) time.Time {
	until = e.frontMoment(until)
	if e.swarm != nil {
		until = e.swarmMoment(until)
	}
	for _, b := range e.boxes {
		if !b.running() {
			continue
		}
		if at, ok := e.ends(b); ok && at.After(e.now) && at.Before(until) {
			until = at
		}
		if at := b.readAt.Add(5 * time.Second); e.contents[b.reads] == "late" && at.After(e.now) && at.Before(until) {
			until = at
		}
		for _, d := range e.nature(b).moments() {
			if d == 0 {
				continue
			}
			if at := b.since.Add(d); at.After(e.now) && at.Before(until) {
				until = at
			}
		}
	}
	return until
}

// tick lets what is due happen.
func (e *engine) tick() {
	if e.swarm != nil {
		e.swarmTick()
		e.endRuns()
		return
	}
	e.lateTables()
	for _, id := range e.each() {
		b := e.boxes[id]
		if at, ok := e.ends(b); !ok || e.now.Before(at) {
			continue
		}
		e.exit(b, e.nature(b).exit)
		e.comeBack(b)
	}
}

// comeBack is the engine's own restart policy after an exit.
func (e *engine) comeBack(b *box) {
	switch {
	case b.Policy == "always", b.Policy == "unless-stopped":
	case b.Policy == "on-failure" && b.ExitCode != 0 && (b.MaxRetries == 0 || b.Restarts < b.MaxRetries):
	default:
		return
	}
	if b.broken || b.hiccup || !e.canJoin(b) {
		return // as Docker does: a failed start is not tried again
	}
	e.run(b)
	b.Restarts++
	e.note("the engine restarts %s", b.Name)
}

func (e *engine) exit(b *box, code int) {
	b.State, b.Finished, b.ExitCode = ring.StateExited, e.wall(), code
	e.frontEnds(b)
	b.OOM = e.nature(b).oom
	e.note("%s exits %d", b.Name, code)
	e.told("exit", "", b)
}

// run starts a container, and holds the host to I18.
func (e *engine) run(b *box) {
	b.Hand = ""
	for _, x := range e.boxes {
		if x == b || !x.lives() {
			continue
		}
		for _, h := range b.holds {
			if slices.Contains(x.holds, h) && !(x.shared && b.shared) && !tiedBoxes(x, b) && !e.meant(x, b, h) && !e.pinnedNow(x) && !e.pinnedNow(b) {
				e.violate("I18: %s and %s both hold %s", x.Name, b.Name, h)
			}
		}
	}
	e.started++
	b.State, b.Started, b.since = ring.StateRunning, e.wall().Add(e.started-time.Microsecond), e.now // no two at the same moment
	b.starts++
	b.runs++
	b.ours, b.reads, b.readAt = false, b.lies, e.now
	e.frontBegins(b)
	for id := range b.inside {
		b.inside[id] = e.boxes[id].runs
	}
	e.told("run", "", b)
}

// pinnedNow reports whether the engine may start a container because of what hands of
// others did to it a moment ago: within a look that failed, and the one after it.
func (e *engine) pinnedNow(b *box) bool {
	return !b.pinned.IsZero() && e.now.Sub(b.pinned) < 3*fullLook
}

// tiedBoxes reports whether one of two containers takes its volumes from the other's service.
func tiedBoxes(a, b *box) bool {
	return a.App == b.App && (slices.Contains(a.from, b.Service) || slices.Contains(b.from, a.Service))
}

// canJoin reports whether the namespaces a container wants are there.
func (e *engine) canJoin(b *box) bool {
	for id := range b.inside {
		if o := e.boxes[id]; o == nil || !o.lives() {
			return false
		}
	}
	return true
}

// reboot ends everything and starts what the engine starts by itself.
func (e *engine) reboot() {
	e.engines++
	for _, id := range e.each() {
		if b := e.boxes[id]; b.lives() && !b.theirs() {
			e.exit(b, 137)
		}
	}
	for _, id := range e.each() {
		b := e.boxes[id]
		if b.State != ring.StateExited || b.Policy != "always" && (b.Policy != "unless-stopped" || b.starts == 0) || b.broken || !e.canJoin(b) {
			continue
		}
		if b.hiccup { // it is not tried again
			b.hiccup = false
			continue
		}
		e.run(b)
	}
}

// apply is what a step does; the error is what the loop is told.
func (e *engine) apply(a ring.Action) (ring.Done, error) {
	if e.ending {
		return ring.Done{}, errors.New("the engine is shutting down")
	}
	switch a.Kind {
	case ring.DoResolve:
		e.told("resolve", a.Image, nil)
		return e.resolve(a)
	case ring.DoVerify:
		e.told("verify", a.Image, nil)
		return e.verify(a)
	case ring.DoPull:
		return e.pull(a)
	case ring.DoAdmit:
		e.told("admit", a.App, nil)
		if e.stranger(a.Of.Name) {
			r := &ring.Refusal{Code: ring.ForeignProject, Says: "a Compose project " + a.Of.Name + " runs here that gitring did not start", Hint: "gitring adopt " + a.Of.Name}
			return ring.Done{}, &ring.EngineError{Permanent: true, Refusal: r, Err: r}
		}
		if owner := e.lent[a.Of.Name]; owner != "" && e.hasNetwork(owner) {
			r := &ring.Refusal{Code: ring.PolicyDenied, Says: "network net belongs to project " + owner, Hint: "give it another name", Owner: owner}
			return ring.Done{}, &ring.EngineError{Permanent: true, Refusal: r, Err: r}
		}
		for _, n := range a.Of.Networks {
			if _, there := e.nets[n.External]; n.External != "" && !there && !slices.Contains(a.Coming, n.External) {
				r := &ring.Refusal{Code: ring.BadValue, Says: "network " + n.External + " is external and not on this host", Hint: "docker network create " + n.External}
				return ring.Done{}, &ring.EngineError{Permanent: true, Refusal: r, Err: r}
			}
		}
		e.admitted(a.Of)
		return ring.Done{}, nil
	}
	if a.Kind == ring.DoLog {
		b := e.boxes[a.Instance]
		if b == nil {
			return ring.Done{}, errors.New("no such container")
		}
		e.told("log", "", b)
		return ring.Done{Log: []string{"the log of " + b.Name}}, nil
	}
	if a.Kind == ring.DoWhose {
		return ring.Done{}, e.whose(a)
	}
	if a.Kind == ring.DoName {
		return ring.Done{}, e.shorten(a)
	}
	e.calls++
	if e.swarm != nil {
		return e.applyOnSwarm(a)
	}
	switch a.Kind {
	case ring.DoRoute:
		return e.route(a)
	case ring.DoImageOff:
		return e.imageOff(a)
	case ring.DoNetwork:
		e.nets[a.NetworkName] = ring.SeenNetwork{ID: a.NetworkName, Name: a.NetworkName, App: a.App, Key: a.Network.Key, Definition: a.Network.Definition()}
		return ring.Done{}, nil
	case ring.DoNetworkOff:
		for _, b := range e.boxes {
			if _, ok := b.Addresses[a.NetworkName]; ok && b.lives() {
				return ring.Done{}, errors.New("network has active endpoints")
			}
		}
		if e.nets[a.NetworkName].App == "" && e.nets[a.NetworkName].Name != "" {
			e.violate("I4: network %s is not ours", a.NetworkName)
		}
		delete(e.nets, a.NetworkName)
		return ring.Done{}, nil
	case ring.DoCreate:
		return e.create(a)
	}
	if !slices.Contains(onContainers, a.Kind) {
		e.violate("I13: the engine was asked to %s %s", a.Kind, a.Target())
	}
	b := e.boxes[a.Instance]
	if b == nil {
		if a.Kind == ring.DoRemove {
			return ring.Done{}, nil
		}
		return ring.Done{}, errors.New("no such container")
	}
	if b.foreign && !e.given(b.ID) {
		e.violate("I4: %s on a container that is not ours", a.Kind)
	}
	return ring.Done{}, e.change(a, b)
}

// onContainers is all that may be asked of the engine about a container that is there:
// nothing of it removes a volume or a folder (I13).
var onContainers = []ring.ActionKind{
	ring.DoReload, ring.DoRename, ring.DoStart, ring.DoStop, ring.DoRemove, ring.DoRestart, ring.DoPolicy, ring.DoConnect, ring.DoUpdate, ring.DoUnpause, ring.DoSignal,
}

func (e *engine) change(a ring.Action, b *box) error {
	e.watchCut(a, b)
	if a.Kind != ring.DoStart && a.Kind != ring.DoRename { // told when they take place
		e.told(string(a.Kind), a.Policy, b)
	}
	if a.Kind == ring.DoStart || a.Kind == ring.DoRestart {
		b.lay(a.Want)
	}
	switch a.Kind {
	case ring.DoReload:
		return e.reload(a, b)
	case ring.DoRename:
		return e.rename(a, b)
	case ring.DoStart:
		return e.start(b)
	case ring.DoStop:
		if b.lives() {
			e.exit(b, 137)
		}
	case ring.DoRemove:
		if b.lives() {
			e.exit(b, 137)
		}
		e.note("%s is removed", b.Name)
		e.drop(b)
		delete(e.tables, made(b)) // with the folders of a front; one that others remove leaves them
	case ring.DoRestart:
		if b.lives() {
			e.exit(b, 137)
		}
		if b.broken {
			b.refused = true
			return &ring.EngineError{Broken: true, Err: errors.New("task " + b.ID + ": already exists")}
		}
		if !e.canJoin(b) {
			return errors.New("cannot join network of a non running container")
		}
		e.run(b)
		b.hooked = false
	case ring.DoPolicy:
		b.Policy, b.MaxRetries = a.Policy, a.MaxRetries
	case ring.DoConnect:
		e.attach(a, b)
	case ring.DoUpdate:
		b.Limits = &ring.Resources{Memory: a.Want.Spec.Resources.Memory}
	case ring.DoSignal:
		e.beginProxy(b)
	case ring.DoUnpause:
		if b.State == ring.StatePaused {
			b.State = ring.StateRunning
		}
	}
	return nil
}

// attach joins b to the networks of its service.
func (e *engine) attach(a ring.Action, b *box) {
	for _, at := range a.Want.Spec.Networks {
		name := a.Networks[at.Network]
		if _, ok := e.nets[name]; !ok {
			e.violate("%s joins network %s, which is not there", a.Name, name)
		}
		b.Addresses[name] = "10.0.0.1"
	}
}

// lay has in the live folder what a service wants there.
func (b *box) lay(s *ring.Service) {
	if s != nil && s.Reload != nil {
		b.lies = s.Reload.Live["conf"]
	}
}

// reload swaps what lies there, whole or not at all.
func (e *engine) reload(a ring.Action, b *box) error {
	if !b.running() {
		return errors.New("it does not run")
	}
	was := b.lies
	if a.Back != nil {
		was = a.Back["conf"]
	}
	b.lay(a.Want)
	switch e.contents[b.lies] {
	case "refused":
		b.lies = was
		return &ring.EngineError{Cause: ring.CauseReload, Permanent: true, Err: errors.New("cannot reload: exec failed with exit code 1: bad conf")}
	case "crash":
		b.reads = b.lies
		e.exit(b, 1)
		e.comeBack(b)
		return nil
	}
	b.reads, b.readAt = b.lies, e.now
	e.note("%s reads %s", b.Name, b.reads)
	return nil
}

// nameOfSlot is the name that a slot needs as stories call it: web-1@v2.
func nameOfSlot(a ring.Action) string {
	if a.Want == nil {
		return ""
	}
	return fmt.Sprintf("%s-%d@%s", strings.TrimPrefix(string(ring.ID(a.App, a.Service)), a.Service+"/"), a.Slot, a.Want.Spec.Image)
}

// held is what a step finds that needs the name of a container of somebody else.
func held(name string) error {
	r := &ring.Refusal{Code: ring.Conflict, Says: "the name " + name + " is held by another container, f0e1 (image sales)", Hint: "docker rm or docker rename that container"}
	return &ring.EngineError{Cause: ring.CauseCreate, Refusal: r, Err: r, Wait: 10 * time.Second, Holder: "container f0e1 (image sales)"}
}

// whose asks who else has a name that nobody takes.
func (e *engine) whose(a ring.Action) error {
	if e.names[a.Name] || e.names[nameOfSlot(a)] {
		return held(a.Name)
	}
	return nil
}

// rename fails while somebody else has the name.
func (e *engine) rename(a ring.Action, b *box) error {
	if e.names[a.NewName] || e.names[nameOfSlot(a)] {
		return held(a.NewName)
	}
	for _, x := range e.boxes {
		if x != b && x.Name == a.NewName {
			r := &ring.Refusal{Code: ring.Conflict, Says: "the name " + a.NewName + " is held by another container, " + x.ID, Hint: "docker rm or docker rename that container"}
			return &ring.EngineError{Cause: ring.CauseCreate, Refusal: r, Err: r, Wait: 10 * time.Second}
		}
	}
	e.note("%s is now %s", b.Name, a.NewName)
	b.Name = a.NewName
	e.told("rename", a.NewName, b)
	return nil
}

// shorten gives a name where nobody has it; nobody is told.
func (e *engine) shorten(a ring.Action) error {
	b := e.boxes[a.Instance]
	if b == nil {
		return errors.New("no such container")
	}
	if b.foreign && !e.given(b.ID) {
		e.violate("I4: %s on a container that is not ours", a.Kind)
	}
	if e.names[a.NewName] {
		return held(a.NewName)
	}
	for _, x := range e.boxes {
		if x != b && x.Name == a.NewName {
			return held(a.NewName)
		}
	}
	b.Name = a.NewName
	return nil
}

func (e *engine) pull(a ring.Action) (ring.Done, error) {
	says := ring.Done{Image: ring.Image{Known: true, Volumes: e.natures[imageOf(a.Image)].volumes, Exposes: true, Exposed: e.natures[imageOf(a.Image)].exposes}}
	if e.have[a.Image] {
		e.told("inspect", a.Image, nil)
		return says, nil
	}
	if a.PullPolicy == "never" {
		r := &ring.Refusal{Code: ring.ImageNotFound, Says: "image " + a.Image + " is not on this host, and pull_policy is never", Hint: "build or load it"}
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Refusal: r, Err: r}
	}
	e.told("pull", a.Image, nil)
	if e.closed {
		return ring.Done{}, errors.New("registry: no answer")
	}
	e.have[a.Image] = true
	return says, nil
}

// verify is what a registry has of the signatures of an image: one, or none.
func (e *engine) verify(a ring.Action) (ring.Done, error) {
	if e.closed {
		return ring.Done{}, errors.New("registry: no answer")
	}
	image, digest, fixed := strings.Cut(a.Image, "@")
	code, says := ring.ImageUnsigned, "image "+image+" is not signed"
	switch signer := e.natures[image].signer; {
	case !fixed:
		says = "image " + image + " is of this host alone"
	case signer == a.Asks.Rule:
		v := ring.ImageVerdict{Image: "docker.io/library/" + image + "@" + digest, Rule: a.Asks.Rule, Good: true, Keys: []string{signer}, Form: "bundle", At: e.now}
		return ring.Done{Verdict: &v}, nil
	case signer != "":
		code, says = ring.ImageSignature, "image "+image+" is signed by "+signer
	}
	r := &ring.Refusal{Code: code, Says: says, Hint: "sign it"}
	return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Refusal: r, Err: r}
}

func (e *engine) resolve(a ring.Action) (ring.Done, error) {
	if e.closed {
		return ring.Done{}, errors.New("registry: no answer")
	}
	if e.natures[a.Image].noImage {
		r := &ring.Refusal{Code: ring.ImageNotFound, Says: "image " + a.Image + " is not in the registry", Hint: "push it"}
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Refusal: r, Err: r}
	}
	means := a.Image
	if m, ok := e.moved[a.Image]; ok {
		means = m
	}
	return ring.Done{Pin: ring.Pin{Image: a.Image + "@sha256:" + means}}, nil
}

func (e *engine) create(a ring.Action) (ring.Done, error) {
	e.watchNetworks(a)
	for _, id := range e.each() {
		b := e.boxes[id]
		switch {
		case b.App == a.App && b.Service == a.Service && b.Slot == a.Slot && b.Version == a.Version && b.Name == a.Name:
			if a.Start && !b.running() {
				return ring.Done{}, e.start(b)
			}
			return ring.Done{}, nil
		case b.Name == a.Name:
			return ring.Done{}, errors.New("the name is taken: " + a.Name)
		}
	}
	if e.names[nameOfSlot(a)] {
		return ring.Done{}, held(a.Name)
	}
	if !e.have[a.Want.Pin.Image] && a.Want.FrontOf == "" {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: errors.New("no such image")}
	}
	e.ids++
	asked := slices.ContainsFunc(a.Want.Checks, func(c ring.Check) bool { return c.Docker })
	b := &box{asked: asked, frontOf: a.Want.FrontOf, expose: a.Want.Spec.Expose, image: a.Want.Spec.Image, shared: a.Want.Share, hooks: len(a.Want.Spec.PostStart) > 0, means: a.Want.Pin.Digest(), Instance: ring.Instance{
		ID: fmt.Sprintf("c%03d", e.ids), Name: a.Name, App: a.App, Source: a.Of.Source, Service: a.Service, Slot: a.Slot, Version: a.Version,
		Commit: a.Commit, Kind: a.Want.Kind, Image: a.Want.Pin.Image, State: ring.StateCreated, Created: e.wall(), Policy: "no",
		Addresses: map[string]string{},
	}}
	if r := a.Want.Spec.Resources; r != nil {
		b.Memory = r.Memory
		b.Limits = &ring.Resources{Memory: r.Memory}
	}
	for _, c := range a.Want.Checks {
		if c.For == ring.Liveness {
			b.act = cmp.Or(c.OnFailure, "restart")
		}
	}
	b.lay(a.Want)
	e.attach(a, b)
	e.mounts(a, b)
	if err := e.join(a, b); err != nil {
		return ring.Done{}, err
	}
	done, err := e.keep(a, b)
	if err != nil {
		return done, err
	}
	for _, p := range a.Want.Spec.Ports {
		for _, at := range hostAddresses(p) {
			b.holds = append(b.holds, "port "+p.HostPort+" of "+at)
			b.shared = false
		}
		if p.HostPort != "" {
			b.Writes = append(b.Writes, ring.PortWord+p.Published())
		}
	}
	for _, x := range e.boxes {
		if x.App == b.App && x.Service == b.Service && x.Slot == b.Slot && x.Version == b.Version {
			e.violate("I3: %s and %s fill slot %d with one version", x.Name, b.Name, b.Slot)
		}
	}
	e.boxes[b.ID], e.sorted = b, nil
	e.told("create", "", b)
	done.Instance = b.ID
	if a.Start {
		return done, e.start(b)
	}
	return done, nil
}

// hostAddresses are those of the model's host that a port is published on.
func hostAddresses(p ring.Port) []string {
	first, second := []string{"127.0.0.1", "192.168.1.5"}, []string{"[::1]", "[fd00::5]"}
	if p.HostPort == "" {
		return nil
	}
	switch p.HostIP {
	case "":
		return append(first, second...)
	case "0.0.0.0":
		return first
	case "[::]":
		return second
	}
	return []string{p.HostIP}
}

// mounts is what a container holds and what of that is kept: what its spec
// mounts, and what its image does besides, each slot its own.
func (e *engine) mounts(a ring.Action, b *box) {
	covered := map[string]bool{}
	for _, mt := range a.Want.Spec.Mounts {
		covered[mt.Target] = true
		name, made := mountNameOf(a.Of, a.App, mt)
		if made {
			b.kept = append(b.kept, name)
		}
		if !mt.ReadOnly && name != "" {
			b.holds = append(b.holds, name)
			if mt.Kind == ring.MountData || mt.Kind == ring.MountSeed {
				name = ring.DataRootMark + "/" + mt.Source
			}
			b.Writes = append(b.Writes, name)
		}
	}
	for _, path := range e.natures[b.image].volumes {
		if covered[path] {
			continue
		}
		if !slices.Contains(a.Want.Image.Volumes, path) {
			e.violate("create %s does not know of its image's volume %s", a.Name, path)
		}
		name := fmt.Sprintf("volume %s_%s_%d_%s", a.App, a.Service, a.Slot, path)
		b.kept, b.holds = append(b.kept, name), append(b.holds, name)
	}
}

// hasNetwork reports whether a network of an app is here.
func (e *engine) hasNetwork(app string) bool {
	for _, n := range e.nets {
		if n.App == app {
			return true
		}
	}
	return false
}

// ofHost begins the key of a volume that its app did not make.
const ofHost = "host-"

// mountName is what a mount is called on the host, and whether it is made there
// when it is missing; "" for what does not outlive its container.
func mountName(app string, m ring.Mount) (name string, made bool) {
	switch m.Kind {
	case ring.MountVolume:
		if external, ok := strings.CutPrefix(m.Source, ofHost); ok {
			return "volume " + external, false
		}
		return "volume " + app + "_" + m.Source, true
	case ring.MountData, ring.MountSeed:
		return "data " + app + "_" + m.Source, true
	case ring.MountBind:
		return m.Source, false
	}
	return "", false
}

// mountNameOf is mountName for a plan that says more of what it mounts: a volume by another
// name, or a folder by its path inside the commit.
func mountNameOf(app *ring.App, name string, m ring.Mount) (mounted string, made bool) {
	if (m.Kind == ring.MountData || m.Kind == ring.MountSeed) && strings.Contains(m.Source, "/") {
		return "data " + m.Source, true
	}
	if app != nil && m.Kind == ring.MountVolume {
		for _, v := range app.Volumes {
			if v.Key == m.Source && v.Name != "" && v.External == "" {
				return "volume " + v.Name, true
			}
		}
	}
	return mountName(name, m)
}

// join ties a container to those it joins, which must be there.
func (e *engine) join(a ring.Action, b *box) error {
	s := a.Want.Spec
	for _, name := range s.Ties() {
		o := e.boxes[a.Owners[name]]
		if o == nil {
			return errors.New("no such container to join: " + name)
		}
		if o.App+"/"+o.Service != name && (o.App != b.App || o.Service != name) {
			e.violate("create %s joins %s for %s", a.Name, o.Name, name)
		}
		b.Joined = append(b.Joined, o.ID)
		if name == s.NetworkOf || name == s.PIDOf || name == s.IPCOf {
			if b.inside == nil {
				b.inside = map[string]int{}
			}
			b.inside[o.ID] = 0
		}
		if slices.ContainsFunc(s.VolumesFrom, func(f ring.VolumesFrom) bool { return f.Service == name }) {
			b.holds, b.from = append(b.holds, o.holds...), append(b.from, append(o.from, name)...)
		}
	}
	return nil
}

// keep makes the volumes and folders that are not there, but for those that were.
func (e *engine) keep(a ring.Action, b *box) (ring.Done, error) {
	var done ring.Done
	for _, name := range b.kept {
		if e.volumes[name] {
			continue
		}
		if slices.Contains(a.Kept, name) {
			return done, lost(name)
		}
		e.made(name, b)
	}
	for _, name := range b.kept {
		e.volumes[name] = true
		done.Kept = append(done.Kept, ring.Kept{App: a.App, Name: name})
	}
	return done, nil
}

// lost is a refusal that is no version's fault.
func lost(name string) error {
	r := &ring.Refusal{Code: ring.Conflict, Says: name + " was there and is gone", Hint: "is its disk mounted?"}
	return &ring.EngineError{Cause: ring.CauseFiles, Refusal: r, Err: r, Wait: 10 * time.Second}
}

func (e *engine) start(b *box) error {
	if b.lives() {
		return nil
	}
	if e.nature(b).noStart {
		return &ring.EngineError{Cause: ring.CauseCreate, Permanent: true, Err: errors.New("exec: not found")}
	}
	if n := e.nature(b); b.starts == 0 && e.broke[b.image] < n.breaks && !b.broken {
		b.broken, e.broke[b.image] = true, e.broke[b.image]+1
	}
	if b.broken || b.hiccup {
		b.hiccup, b.refused = false, true
		return &ring.EngineError{Broken: true, Err: errors.New("task " + b.ID + ": already exists")}
	}
	if !e.canJoin(b) {
		return &ring.EngineError{Cause: ring.CauseCreate, Err: errors.New("cannot join network of a non running container")}
	}
	for _, h := range b.holds {
		if port, _, _ := strings.Cut(h, " of "); e.names[port] { // somebody's who is not on the engine
			r := &ring.Refusal{Code: ring.Conflict, Says: port + " of the host is taken (bind: address already in use)", Hint: "ss -ltnp shows who has it"}
			return &ring.EngineError{Cause: ring.CauseCreate, Refusal: r, Err: r, Wait: 10 * time.Second}
		}
	}
	for _, h := range b.holds { // a path of the host, or a folder on a disk of its own
		if gone, was := e.volumes[h]; was && !gone {
			return lost(h)
		}
	}
	if b.Kind.Ends() && b.starts > 0 {
		e.violate("a job ran twice: %s", b.Name)
	}
	b.Restarts = 0
	e.told("start", "", b)
	e.run(b)
	b.hooked = false
	return nil
}

// hook is the end of the post_start hooks of a start of ours. In what ended, or
// what somebody paused, no command runs: it is stopped, as after one that failed.
func (e *engine) hook(b *box) error {
	if !b.hooks {
		return nil
	}
	if e.nature(b).hookFails || !b.running() {
		if b.lives() {
			e.exit(b, 137)
		}
		return &ring.EngineError{Cause: ring.CauseCreate, Err: errors.New("post_start hook: exit code 1")}
	}
	b.hooked = true
	return nil
}

func sortedIDs[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for id := range m {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
