package reconcile

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// The fronts of the model: each as simple as it can be. What one has in flight is what a
// story says, or ends a while after nothing new comes to an instance.
type fronts struct {
	front     map[string]*modelFront     // by container ID, those that run
	tables    map[string]ring.FrontTable // on disk, by container name
	silent    map[string]bool            // fronts that do not answer, by container ID
	tableless map[string]bool            // fronts whose process waits for a table on its disk
	claims    map[string]int64           // what fronts that were taken over claim, by container ID; 0 is one more than they were told
	takenOver map[string]bool            // services whose fronts are taken over at each start
	hung      map[string]bool            // fronts that answer again once they are started anew, by container ID
	stalled   map[string]bool            // fronts that answer again once their proxy is started anew, by container ID
	deaf      map[string]bool            // instances that no front can reach, by container ID
	deadlines map[string]time.Time       // by name and Until
	streams   map[string]time.Duration   // how long what is in flight to an instance goes on, by name
	worlds    int                        // proxies that ever began
	load      map[string]float64         // by image, answers a second
	errors    map[string]int64           // by image, percent of them
	slow      map[string]int             // by image, the bucket of their heads
	fullDisk  map[string]bool            // fronts whose folder has no room for a table, by container ID
	crowded   map[string]bool            // fronts that have no room for more clients, by container ID
	ended     map[string]int             // how many proxies of a front ended one after the other, by container ID
	late      []lateTable
	full      map[string]map[int64]bool // by service and generation, tables in which as many drain as may
	cutAll    int                       // what was cut at a deadline
}

// lateTable is a table that comes to its front after who sent it gave up on it.
type lateTable struct {
	a  ring.Action
	at time.Time
}

type modelFront struct {
	in      *box
	table   ring.FrontTable
	process string
	since   time.Time            // of process
	until   map[string]time.Time // by name, until when something is in flight to one that drains
	left    time.Time            // when its health check fails, where it was told to leave
}

func newFronts() fronts {
	return fronts{
		fullDisk: map[string]bool{}, crowded: map[string]bool{}, ended: map[string]int{},
		front: map[string]*modelFront{}, tables: map[string]ring.FrontTable{}, silent: map[string]bool{}, tableless: map[string]bool{}, claims: map[string]int64{}, hung: map[string]bool{}, stalled: map[string]bool{}, takenOver: map[string]bool{},
		load: map[string]float64{}, errors: map[string]int64{}, slow: map[string]int{}, deaf: map[string]bool{}, deadlines: map[string]time.Time{}, full: map[string]map[int64]bool{}, streams: map[string]time.Duration{},
	}
}

// frontBegins is a front that starts: with the table that lies on its disk.
func (e *engine) frontBegins(b *box) {
	if b.frontOf == "" {
		return
	}
	e.worlds++
	b.Gateways = []string{"10.0." + strconv.Itoa(e.worlds%250) + ".1"} // its networks may be others by now
	delete(e.claims, b.ID)                                             // who took it over is gone
	if e.takenOver[b.App+"/"+b.frontOf] {
		e.claims[b.ID] = 1 << 53
	}
	if _, lies := e.tables[made(b)]; lies {
		delete(e.tableless, b.ID)
	}
	if e.hung[b.ID] || e.stalled[b.ID] {
		delete(e.silent, b.ID)
		delete(e.hung, b.ID)
		delete(e.stalled, b.ID)
	}
	for _, f := range e.front {
		if f.in != b && f.in.App == b.App && f.in.frontOf == b.frontOf && slices.ContainsFunc(b.holds, func(h string) bool { return strings.HasPrefix(h, "port ") && slices.Contains(f.in.holds, h) }) {
			e.violate("I24: %s and %s have one port of the host", b.Name, f.in.Name)
		}
	}
	e.front[b.ID] = &modelFront{in: b, table: e.tables[made(b)], process: strconv.Itoa(e.worlds), since: e.now, until: map[string]time.Time{}}
}

// beginProxy has the proxy of a front begin anew: one that hung answers again.
func (e *engine) beginProxy(b *box) {
	f := e.front[b.ID]
	if f == nil {
		e.violate("T29: %s, which is no front that runs, is signaled", b.Name)
		return
	}
	if e.stalled[b.ID] {
		delete(e.stalled, b.ID)
		delete(e.silent, b.ID)
	}
	e.worlds++
	f.process, f.since = strconv.Itoa(e.worlds), e.now
}

// made is the name that a container was made with.
func made(b *box) string { return ring.ContainerName(b.App, b.Service, b.Slot, b.Version) }

// frontEnds is the end of a front, or of what fronts have in flight to an instance.
func (e *engine) frontEnds(b *box) {
	delete(e.front, b.ID)
	for _, f := range e.front {
		delete(f.until, b.ID)
	}
}

// frontMoment is when what is in flight to one that drains ends, at most until.
func (e *engine) frontMoment(until time.Time) time.Time {
	for _, l := range e.late {
		if l.at.After(e.now) && l.at.Before(until) {
			until = l.at
		}
	}
	for _, f := range e.front {
		if f.table.Leaving && f.left.After(e.now) && f.left.Before(until) {
			until = f.left
		}
		for _, at := range f.until {
			if at.After(e.now) && at.Before(until) {
				until = at
			}
		}
	}
	return until
}

// frontHealth is what the engine says of a front that has a health check; "" of any other.
func (e *engine) frontHealth(b *box) string {
	f := e.front[b.ID]
	switch {
	case b.frontOf == "" || !b.asked:
		return ""
	case f == nil || f.table.Generation == 0:
		return "starting"
	case f.table.Leaving && !e.now.Before(f.left):
		return "unhealthy"
	}
	return "healthy"
}

// watchLeft is T02: a front in whose place another one serves is stopped once a proxy before
// it had 5 s to hear that it is unhealthy, and what is in flight through it ended or had its
// time. One that does not say so is waited for 2 min.
func (d *daemon) watchLeft(a ring.Action, b *box) {
	f, other := d.front[b.ID], false
	for id, x := range d.front {
		other = other || id != b.ID && x.in.App == b.App && x.in.frontOf == b.frontOf && x.table.Generation > 0 && d.disk.Intents[id].Kind == ""
	}
	behind := d.wantOf(b.App, b.frontOf)
	if f == nil || !other || behind == nil || behind.Route == nil || publishesSome(b) {
		return
	}
	if b.State == ring.StatePaused { // by others: it hears no table and carries nothing (seed 32481)
		return
	}
	meant, known := d.meantToGo[b.ID]
	if late := d.now.Sub(meant); known && late >= 2*time.Minute+5*time.Second {
		return
	}
	switch {
	case !f.table.Leaving:
		d.violate("T02: %s of %s, which was not told to leave", a.Kind, b.Name)
	case b.asked && d.now.Before(f.left.Add(5*time.Second)):
		d.violate("T02: %s of %s, which has not been unhealthy for 5 s", a.Kind, b.Name)
	}
	for _, in := range f.table.Instances {
		if d.inFlight(f, in.Name) > 0 && d.now.Before(f.left.Add(behind.Route.DrainTimeout)) {
			d.violate("T02: %s of %s, which carries something to %s", a.Kind, b.Name, in.Name)
		}
	}
}

// boxOf is the container that a table names.
func (e *engine) boxOf(name string) *box { return e.boxes[name] } // the IDs of the model are short

// inFlight is how much is in flight to an instance.
func (e *engine) inFlight(f *modelFront, name string) int {
	b := e.boxOf(name)
	if b == nil || !b.lives() { // one that others paused keeps what it has
		return 0
	}
	switch f.state(name) {
	case ring.FrontActive:
		if f.table.Leaving && !e.now.Before(f.left) && !e.now.Before(f.left.Add(e.streams[name])) {
			return 0 // nobody sends it more
		}
		return 1
	case ring.FrontDraining, ring.FrontWarm:
		if e.now.Before(f.until[name]) {
			return 1
		}
	}
	return 0
}

func (f *modelFront) state(name string) ring.FrontState {
	for _, in := range f.table.Instances {
		if in.Name == name {
			return in.State
		}
	}
	return ""
}

// frontsSeen is what the fronts that answer say.
func (e *engine) frontsSeen() map[string]ring.FrontSeen {
	if len(e.front) == 0 {
		return nil
	}
	out := map[string]ring.FrontSeen{}
	for id, f := range e.front {
		if !e.silent[id] && !e.tableless[id] {
			out[id] = e.seenOf(f)
		}
	}
	return out
}

// before reports whether the deadline of what is in flight to a draining one has not come, by
// the true time that the daemon meant.
func (e *engine) before(in ring.FrontInstance) bool {
	at, said := e.deadlines[in.Name+" "+in.Until.String()]
	return said && e.now.Before(at)
}

// claimed is the table that a front which was taken over claims: every instance in flight for
// ever, by a table that nobody sent.
func (e *engine) claimed(f *modelFront, n int64) ring.FrontTable {
	table := f.table
	if table.Generation = n; n == 0 {
		table.Generation = f.table.Generation + 1
	}
	table.Instances = nil
	for _, id := range e.each() {
		if b := e.boxes[id]; b.App == f.in.App && b.Service == f.in.frontOf {
			table.Instances = append(table.Instances, ring.FrontInstance{Name: id, State: ring.FrontDraining, Until: e.wall().Add(1000000 * time.Hour)})
		}
	}
	return table
}

// hears reports whether an instance listens on a port of a table.
func (e *engine) hears(b *box, table ring.FrontTable) bool {
	n := e.nature(b).listens
	return n == 0 || slices.ContainsFunc(table.Ports, func(p ring.FrontPort) bool { return p.Port == n })
}

func (e *engine) seenOf(f *modelFront) ring.FrontSeen {
	table := f.table
	if n, takenOver := e.claims[f.in.ID]; takenOver {
		table = e.claimed(f, n)
	}
	seen := ring.FrontSeen{At: e.wall(), Generation: table.Generation, Process: f.process, Build: "sha256:1", Full: e.crowded[f.in.ID], Crashes: e.ended[f.in.ID]}
	if table.Generation > 0 {
		seen.Table = &table
	}
	for _, in := range table.Instances {
		b := e.boxOf(in.Name)
		x := ring.FrontInstanceSeen{Name: in.Name, InFlight: e.inFlight(f, in.Name)}
		if x.Reached = b != nil && b.running() && !e.deaf[b.ID] && e.hears(b, table); !x.Reached {
			x.Why = "connection refused"
		}
		seen.Connections += x.InFlight
		if b != nil {
			x.Counts = e.counted(f, b, in)
		}
		seen.Instances = append(seen.Instances, x)
	}
	return seen
}

// route is a front that is told a table: on disk first, then in force.
func (e *engine) route(a ring.Action) (ring.Done, error) {
	b := e.boxes[a.Instance]
	if b == nil || made(b) != a.Name {
		return ring.Done{}, errors.New("no such front")
	}
	if b.frontOf != a.Service || b.App != a.App {
		e.violate("a table of %s/%s is told to %s", a.App, a.Service, b.Name)
	}
	if e.fullDisk[b.ID] {
		return ring.Done{}, errors.New("cannot write the table: no space left on device")
	}
	if lies := e.tables[made(b)]; a.Table.Generation > lies.Generation {
		e.tables[made(b)] = *a.Table
	}
	f := e.front[b.ID]
	if f != nil && e.tableless[b.ID] { // it finds one now, and begins with it
		delete(e.tableless, b.ID)
		f.table = e.tables[made(b)]
		return ring.Done{}, errors.New("the front does not answer")
	}
	if f == nil || e.silent[b.ID] {
		return ring.Done{}, errors.New("the front does not answer")
	}
	if a.Table.Generation <= f.table.Generation {
		return ring.Done{}, fmt.Errorf("table %d is not newer than %d", a.Table.Generation, f.table.Generation)
	}
	e.takeTable(f, *a.Table)
	seen := e.seenOf(f)
	return ring.Done{Front: &seen}, nil
}

// takeTable has a front carry by another table: what it names no more is cut.
func (e *engine) takeTable(f *modelFront, table ring.FrontTable) {
	was := f.table
	if table.Leaving && !was.Leaving {
		f.left = e.now
		if after := 1 + e.r.Intn(30); f.in.asked { // by a health check, which comes so often
			f.left = e.now.Add(time.Duration(after) * time.Second)
		}
	}
	for _, in := range was.Instances {
		n := e.inFlight(f, in.Name)
		f.table = table
		switch now := f.state(in.Name); {
		case now == "" && n > 0:
			e.cutAll += n
			if in.State != ring.FrontDraining || e.before(in) && !e.full[table.Service][table.Generation] { // T11: one more cuts the oldest
				e.violate("I20: table %d cuts what is in flight to %s before its deadline", table.Generation, in.Name)
			}
		case now != ring.FrontActive && in.State == ring.FrontActive:
			f.until[in.Name] = e.now.Add(e.streams[in.Name])
		}
		f.table = was
	}
	f.table = table
	e.note("front %s takes %s", f.in.Name, describeTable(table))
	e.told("table", describeTable(table), f.in)
}

// describeTable is a table as stories write it: c001 active, c002 draining.
func describeTable(t ring.FrontTable) string {
	var out []string
	for _, in := range t.Instances {
		out = append(out, in.Name+" "+string(in.State))
	}
	if !t.QueueUntil.IsZero() {
		out = append(out, "queue")
	}
	return strings.Join(out, ", ")
}

// watchCut holds a stop of ours to I20: nothing that a front has in force sends requests to
// is stopped, and nothing that has something in flight before its deadline.
func (e *engine) watchCut(a ring.Action, b *box) {
	if a.Kind == ring.DoReload && b.running() {
		e.watchReload(b)
	}
	stops := []ring.ActionKind{ring.DoStop, ring.DoRemove, ring.DoRestart}
	if !slices.Contains(stops, a.Kind) || !b.running() {
		return
	}
	if !a.Began.IsZero() && !a.Began.Equal(b.Started) { // others started it again since that was decided
		return
	}
	for _, id := range slices.Sorted(maps.Keys(e.front)) {
		f := e.front[id]
		if f.in.App != b.App || f.in.frontOf != b.Service {
			continue
		}
		for _, in := range f.table.Instances {
			if in.Name != b.ID {
				continue
			}
			if in.State != ring.FrontDraining {
				e.violate("I20: %s of %s, which table %d of %s has %s", a.Kind, b.Name, f.table.Generation, f.in.Name, in.State)
			} else if e.inFlight(f, in.Name) > 0 && e.before(in) {
				e.violate("I20: %s of %s, which has something in flight until %s", a.Kind, b.Name, in.Until.Sub(epoch))
			}
		}
	}
}

// watchReload is T13: no front that answers sends an instance requests while that reloads,
// unless it is the only one and nobody may wait.
func (e *engine) watchReload(b *box) {
	for id, f := range e.front {
		if f.in.App != b.App || f.in.frontOf != b.Service || e.silent[id] || f.state(b.ID) != ring.FrontActive {
			continue
		}
		beside := slices.ContainsFunc(f.table.Instances, func(in ring.FrontInstance) bool { return in.Name != b.ID && in.State == ring.FrontActive })
		if beside || f.table.Queue > 0 {
			e.violate("T13: %s reloads, which table %d of %s has active", b.Name, f.table.Generation, f.in.Name)
		}
	}
}

// lateTables has those arrive that are due.
func (e *engine) lateTables() {
	var left []lateTable
	for _, l := range e.late {
		if e.now.Before(l.at) {
			left = append(left, l)
			continue
		}
		_, err := e.route(l.a)
		e.note("a table comes late: %v", err)
	}
	e.late = left
}

// comeLater has tables on the way when their daemon ends arrive a while later, some twice.
func (d *daemon) comeLater(flights []*flight) {
	for _, f := range flights {
		if f.a.Kind != ring.DoRoute || d.r == nil || !d.faults {
			continue
		}
		for range d.r.Intn(3) {
			d.late = append(d.late, lateTable{f.a, d.now.Add(d.span(100, 15000))})
		}
	}
}

// drains reports whether an instance is on its way out of its front, as was written down.
func (d *daemon) drains(b *box) bool {
	kind := d.disk.Intents[b.ID].Kind
	return kind == "drain" || kind == "left"
}

// watchTable holds a table that is about to be sent to I16, I21 and I25, by the truth of the
// model and by what the daemon was told of health.
func (d *daemon) watchTable(a ring.Action, want *ring.Service) {
	table := a.Table
	b := d.boxes[a.Instance]
	good := d.disk.Good[ring.ID(a.App, a.Service)]
	if b == nil || want == nil || want.Route == nil && (good == nil || good.Service.Route == nil) {
		d.violate("I16: table %d of %s/%s is for nobody", table.Generation, a.App, a.Service)
		return
	}
	for _, p := range table.Ports {
		if !slices.Contains(b.expose, strconv.Itoa(p.Port)+"/tcp") {
			d.violate("T02: table %d of %s/%s has %s listen on %d, for which it was not made: %v", table.Generation, a.App, a.Service, b.Name, p.Port, b.expose)
		}
	}
	if f := d.front[b.ID]; f != nil && table.Generation <= f.table.Generation && !d.silent[b.ID] {
		d.violate("I21: table %d is sent to %s, which has %d", table.Generation, b.Name, f.table.Generation)
	}
	green := func(x *box) bool {
		return x.running() && d.ready(x) && d.mem.known[x.ID].Ready && d.disk.Intents[x.ID].Kind == ""
	}
	if !slices.Equal(table.Gateways, b.Gateways) {
		d.violate("S06: table %d is sent to %s with the gateways %v", table.Generation, b.Name, table.Gateways)
	}
	active, ready, draining := 0, 0, 0
	for _, in := range table.Instances {
		x := d.boxOf(in.Name)
		if x == nil || x.App != a.App || x.Service != a.Service {
			d.violate("I16: table %d of %s/%s names %s, which is no instance of it", table.Generation, a.App, a.Service, in.Name)
			return
		}
		switch in.State {
		case ring.FrontDraining:
			if key := in.Name + " " + in.Until.String(); d.deadlines[key].IsZero() {
				d.deadlines[key] = d.now.Add(in.Until.Sub(d.clock()))
			}
			draining++
		case ring.FrontActive:
			active++
			if green(x) {
				ready++
			}
		}
	}
	for _, in := range table.Instances {
		x := d.boxOf(in.Name)
		h, known := d.mem.known[x.ID]
		if in.State == ring.FrontActive && ready > 0 && (!x.lives() || known && !h.Ready) {
			d.violate("I16: table %d of %s/%s has %s active, which is not ready, beside one that is", table.Generation, a.App, a.Service, x.Name)
		}
	}
	d.watchFailed(a, want)
	d.watchWeight(a, want)
	if draining > max(1, want.Replicas) {
		d.violate("I25: %d of %s/%s drain, of %d wanted", draining, a.App, a.Service, want.Replicas)
	}
	if d.full[table.Service] == nil {
		d.full[table.Service] = map[int64]bool{}
	}
	d.full[table.Service][table.Generation] = draining == max(1, want.Replicas)
	if active > 0 || !table.QueueUntil.IsZero() {
		return
	}
	for _, id := range d.each() {
		if x := d.boxes[id]; x.App == a.App && x.Service == a.Service && green(x) && want.Replicas > 0 {
			d.violate("I16: table %d of %s/%s names nobody active, and %s is ready", table.Generation, a.App, a.Service, x.Name)
		}
	}
}

// standing is a front that its plan does not have any more, as it was good, where its service
// was not good without it yet; nil where there is none.
func (d *daemon) standing(app, name string) *ring.Service {
	front := d.disk.Good[ring.ID(app, name)]
	if front == nil || front.Service.FrontOf == "" {
		return nil
	}
	plan := d.disk.Apps[app].App
	behind, there := plan.Service(front.Service.FrontOf)
	good := d.disk.Good[ring.ID(app, front.Service.FrontOf)]
	if _, planned := plan.Service(name); planned || !there || behind.Route != nil || good == nil || good.Service.Route == nil {
		return nil
	}
	return &front.Service
}

// fronted gives service a a front, with a port of the host or with none.
func fronted(port string) func(*scenario) {
	return func(s *scenario) { s.fronted = map[string]string{"a": port} }
}

// directFirst has the first commits do without fronts.
func directFirst(commits int) func(*scenario) { return func(s *scenario) { s.direct = commits } }

// frontLost has the commits after the first ones do without fronts again.
func frontLost(commits int) func(*scenario) { return func(s *scenario) { s.loses = commits } }

// frontMoves has each commit change the labels of its fronts.
func frontMoves(s *scenario) { s.moves = true }

// putPorts has services publish by themselves what their fronts will publish.
func (s *scenario) putPorts(app *ring.App) {
	for i := range app.Services {
		v := &app.Services[i]
		port, has := s.fronted[v.Name]
		if !has || port == "none" || v.Kind.Ends() || len(v.Spec.Networks) == 0 {
			continue
		}
		v.Replicas = min(v.Replicas, 1)
		v.Spec.Ports = []ring.Port{{HostPort: port, Container: 80, Protocol: "tcp"}}
		v.Written = ring.WrittenHash(v.Spec)
	}
}

// putFronts adds the fronts of an app of the nth commit.
func (s *scenario) putFronts(app *ring.App, n int) {
	if n <= s.direct || s.loses > 0 && n > s.loses {
		s.putPorts(app)
		return
	}
	for i := len(app.Services) - 1; i >= 0; i-- {
		v := &app.Services[i]
		port, has := s.fronted[v.Name]
		if !has || v.Kind.Ends() || len(v.Spec.Networks) == 0 {
			continue
		}
		r := ring.DefaultRoute()
		r.Ports = []ring.FrontPort{{Port: 80, Carry: ring.CarryAuto}}
		v.Route = &r
		d := declared{app: app.Name, Service: *v, frontPort: port}
		if s.moves {
			d.frontLabel = strconv.Itoa(n)
		}
		front := d.front()
		if s.moves { // longer than the first look of the next daemon may take
			front.Rollout.StartTimeout = 2 * fullLook
		}
		app.Services = append(app.Services, front)
	}
	slices.SortFunc(app.Services, func(a, b ring.Service) int { return strings.Compare(a.Name, b.Name) })
}

// frontsToo has a wide scenario have fronts, before services that are not tied.
func (s *scenario) frontsToo(surely bool) {
	r := rand.New(rand.NewSource(s.seed*7919 + 5))
	if !surely && r.Intn(4) > 0 || s.tied != "" || s.wide != nil && s.wide.compose {
		return
	}
	s.fronted = map[string]string{}
	for i, name := range []string{"a", "b"} {
		if r.Intn(3) > 0 {
			s.fronted[name] = []string{"none", strconv.Itoa(8081 + i)}[r.Intn(2)]
		}
	}
	s.direct = max(0, r.Intn(len(s.commits)+3)-2)
	for i := range s.commits {
		for j := range s.commits[i].plan.Apps {
			if app := &s.commits[i].plan.Apps[j]; app.Name == "web" {
				s.putFronts(app, i+1)
			}
		}
	}
}

// canariesToo has services with fronts move in steps, and their fronts count answers: some of
// versions that come later fail, in some more often than any judge lets pass.
func (s *scenario) canariesToo() {
	r := rand.New(rand.NewSource(s.seed*7919 + 11))
	s.direct = 0
	for i := 1; i < len(s.commits); i++ { // steps take their time
		s.commits[i].at = s.commits[i-1].at.Add(time.Duration(20+r.Intn(100)) * time.Second)
		s.until = laterOf(s.until, s.commits[i].at.Add(time.Minute))
	}
	for _, name := range []string{"a", "b"} {
		for v := 1; v <= 4; v++ {
			img := image(name, v)
			s.load[img], s.slow[img] = float64(r.Intn(40)), 2
			if n := s.natures[img]; !n.good() && r.Intn(3) > 0 && !(s.job && name == "b") { // a run ends
				s.natures[img] = nature{readyAfter: time.Second}
			}
			if v > 1 && r.Intn(4) == 0 {
				s.errors[img] = int64(20 + r.Intn(60))
			}
		}
	}
	for i := range s.commits {
		for j := range s.commits[i].plan.Apps {
			app := &s.commits[i].plan.Apps[j]
			for k := range app.Services {
				v := &app.Services[k]
				if v.Route == nil || r.Intn(3) == 0 {
					continue
				}
				judge := ring.DefaultJudge()
				judge.Interval, judge.MinRequests = 5*time.Second, 10
				c := ring.CanaryPlan{Judge: &judge, Steps: []ring.CanaryStep{{Weight: 1 + r.Intn(50), For: time.Duration(5+r.Intn(20)) * time.Second}}}
				if r.Intn(2) == 0 {
					c.Steps = append(c.Steps, ring.CanaryStep{Weight: 51 + r.Intn(49), For: time.Duration(5+r.Intn(20)) * time.Second})
				}
				v.Rollout.Strategy, v.Rollout.Canary, v.Rollout.WarmFor = ring.Canary, &c, 0
			}
		}
	}
}

// watchWeight is T23: a table gives a canary no more than one of the steps of its plan.
func (d *daemon) watchWeight(a ring.Action, want *ring.Service) {
	w := a.Table.CanaryWeight
	if w == 0 {
		return
	}
	c := want.Rollout.Canary
	if c == nil || !slices.ContainsFunc(c.Steps, func(s ring.CanaryStep) bool { return s.Weight == w }) {
		d.violate("T23: table %d of %s gives a canary %d %%, which no step says", a.Table.Generation, a.Service, w)
	}
}

// watchNetworks is I26: a front joins no network that its service is not on, and mounts nothing
// of its own.
func (e *engine) watchNetworks(a ring.Action) {
	if a.Want.FrontOf == "" {
		return
	}
	if len(a.Want.Spec.Mounts)+len(a.Want.Spec.VolumesFrom) > 0 {
		e.violate("I26: %s mounts something of a plan", a.Name)
	}
	behind, there := a.Of.Service(a.Want.FrontOf)
	for _, at := range a.Want.Spec.Networks {
		if there && !slices.ContainsFunc(behind.Spec.Networks, func(x ring.Attachment) bool { return x.Network == at.Network }) {
			e.violate("I26: %s joins network %s, which its service is not on", a.Name, at.Network)
		}
	}
}

// watchServed is I23: after a reboot without a daemon a service that was ready is served by the
// table that lies on its front's disk.
func (s *scenario) watchServed(was map[string]bool) {
	for _, id := range s.each() {
		front := s.boxes[id]
		if front.frontOf == "" || !was[id] {
			continue
		}
		f, ready, served := s.front[id], false, false
		for _, x := range s.boxes {
			if x.App == front.App && x.Service == front.frontOf && was[x.ID] && s.ready(x) {
				ready = true
				served = served || f != nil && f.state(x.ID) == ring.FrontActive && s.engine.hears(x, f.table)
			}
		}
		if ready && !served && !s.tableless[id] {
			s.violate("I23: after a reboot without us %s serves nobody of %s", front.Name, front.frontOf)
		}
	}
}

// frontFault is one fault of fronts, or none: one falls silent for a while, or is heard
// again; or what is in flight to an instance lasts for another time than before.
func (s *scenario) frontFault() {
	if len(s.front) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(s.front))
	id := ids[s.r.Intn(len(ids))]
	switch s.r.Intn(30) {
	case 0:
		s.silent[id] = true
		s.note("front %s falls silent", s.boxes[id].Name)
	case 1, 2, 3:
		if s.silent[id] {
			s.note("front %s answers again", s.boxes[id].Name)
		}
		delete(s.silent, id)
	case 4:
		s.note("the proxy of front %s ends", s.boxes[id].Name)
		s.worlds++
		s.front[id].process = strconv.Itoa(s.worlds)
		clear(s.front[id].until)
	}
	for _, name := range s.each() {
		if _, known := s.streams[name]; !known {
			s.streams[name] = time.Duration(s.r.Intn(45)) * time.Second
		}
	}
}

// restOfFronts holds a front at rest to its table: all that is ready is active, and nothing
// drains or waits.
func (s *scenario) restOfFronts(app *ring.App) {
	for i := range app.Services {
		v := &app.Services[i]
		if v.Route == nil || v.Replicas == 0 {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(s.front)) {
			f := s.front[id]
			if f.in.App != app.Name || f.in.frontOf != v.Name || s.aside(f.in.Service) { // one that others paused is left so
				continue
			}
			for _, in := range f.table.Instances {
				if in.State == ring.FrontDraining {
					s.violate("I16: at rest %s drains", in.Name)
				}
			}
			if !f.table.QueueUntil.IsZero() && s.now.Before(f.table.QueueUntil) {
				s.violate("I16: at rest requests to %s wait", v.Name)
			}
			for _, id := range s.each() {
				b := s.boxes[id]
				if b.App == app.Name && b.Service == v.Name && s.ready(b) && f.state(b.ID) != ring.FrontActive && !s.failedBeside(f, b, v) && !s.isHalfSet(f, b, v) {
					s.violate("I16: at rest %s is ready and gets no requests", b.Name)
				}
			}
		}
	}
}

// failedBeside reports whether a container is of a version that failed, and another one gets
// the requests (I22).
func (s *scenario) failedBeside(f *modelFront, b *box, v *ring.Service) bool {
	d, judged := s.disk.Verdicts[ring.VersionKey(ring.ID(b.App, b.Service), b.Version)]
	return judged && !d.Good && v.Rollout.OnFailure != ring.OnFailureContinue && slices.ContainsFunc(f.table.Instances, func(in ring.FrontInstance) bool {
		return in.State == ring.FrontActive && s.boxOf(in.Name).Version != b.Version
	})
}

// frontWaits reports whether a front was never needed: no instance of its service is there to
// be served, or only since its plan; or its service went back to publishing the port itself.
func (s *scenario) frontWaits(v *ring.Service) bool {
	for _, b := range s.boxes {
		if v.FrontOf != "" && b.Service == v.FrontOf && !s.disk.Verdicts[ring.VersionKey(ring.ID("web", v.FrontOf), s.wantedVersion(v.FrontOf))].Good && publishesSome(b) {
			return true
		}
	}
	if v.FrontOf == "" || len(s.disk.Verdicts) > 0 && s.disk.Good[ring.ID("web", v.Name)] != nil {
		return false
	}
	for _, b := range s.boxes {
		if b.Service == v.FrontOf && s.ready(b) {
			return false
		}
	}
	return true
}

// frontWentBack reports whether a front is as it was good, because its service is.
func (s *scenario) frontWentBack(v *ring.Service) bool {
	good, behind := s.disk.Good[ring.ID("web", v.Name)], s.wantOf("web", v.FrontOf)
	if v.FrontOf == "" || behind == nil || good == nil || good.Service.Version == v.Version {
		return false
	}
	d, judged := s.disk.Verdicts[ring.VersionKey(ring.ID("web", v.FrontOf), behind.Version)]
	if !judged || d.Good || behind.Rollout.OnFailure != ring.OnFailureRestore {
		return false
	}
	if s.looping() { // what its service came back to crashes: who runs at this moment says nothing
		return true
	}
	n := 0
	for _, b := range s.boxes {
		if b.frontOf == v.FrontOf && b.running() {
			n++
			if b.Version != good.Service.Version {
				s.violate("T02: at rest %s is not as its service, which was restored, was good with", b.Name)
			}
		}
	}
	if n != 1 {
		s.violate("T02: at rest %d fronts of %s run, which was restored", n, v.FrontOf)
	}
	return true
}

// frontStays reports whether a front is as it was good, because its service failed, or
// waits for what failed, and nothing of the new version serves: it moves with the first instance of it (T02).
func (s *scenario) frontStays(v *ring.Service, count map[ring.Version]int) bool {
	good, behind := s.disk.Good[ring.ID("web", v.Name)], s.wantOf("web", v.FrontOf)
	if v.FrontOf == "" || behind == nil || good == nil || good.Service.Version == v.Version {
		return false
	}
	begun := s.disk.Rollouts[ring.ID("web", v.FrontOf)].Version == behind.Version // else it waits for what failed
	if begun && !s.isPaused(new(s.disk.Apps["web"].App), v.FrontOf) {
		return false
	}
	for _, b := range s.boxes {
		if b.App == "web" && b.Service == v.FrontOf && b.Version == behind.Version && s.ready(b) {
			return false
		}
	}
	return len(count) == 1 && count[good.Service.Version] == 1
}

// isHalfSet reports whether a container is of a second set that is not whole: it stays warm
// until all of it is ready (T22), be it that the host has no memory for the rest.
func (s *scenario) isHalfSet(f *modelFront, b *box, v *ring.Service) bool {
	n, served := 0, false
	for _, x := range s.boxes {
		if x.App != b.App || x.Service != b.Service {
			continue
		}
		if x.Version == v.Version && s.ready(x) {
			n++
		}
		served = served || x.Version != v.Version && s.ready(x) && f.state(x.ID) == ring.FrontActive
	}
	return served && v.Rollout.Strategy == ring.BlueGreen && b.Version == v.Version && n < v.Replicas
}

// counted is what a front counted of an instance since its process began: so many answers a
// second as a story says, shared by weight, of which some are errors.
func (e *engine) counted(f *modelFront, b *box, in ring.FrontInstance) ring.FrontCounts {
	from := b.since
	if f.since.After(from) {
		from = f.since
	}
	n := int64(e.now.Sub(from).Seconds() * e.load[b.image])
	bad := n * e.errors[b.image] / 100
	heads := make([]int64, len(ring.FrontBuckets)+1)
	heads[e.slow[b.image]] = n
	return ring.FrontCounts{Requests: n, Answers2xx: n - bad, Answers5xx: bad, Heads: heads}
}

// publishesSome reports whether a container has a port of the host.
func publishesSome(b *box) bool {
	return slices.ContainsFunc(b.holds, func(h string) bool { return strings.HasPrefix(h, "port ") })
}

// wantedVersion is what the plan in force wants of a service.
func (s *scenario) wantedVersion(name string) ring.Version {
	app := s.disk.Apps["web"].App
	v, _ := app.Service(name)
	return v.Version
}

// watchGiven is T03: what serves by a port of the host is stopped for its front only once that
// is made. One that has the port itself may take its place, as it does without fronts.
func (d *daemon) watchGiven(a ring.Action, b *box, want *ring.Service) {
	if want == nil || want.Route == nil || !b.running() || b.Version == want.Version || want.Replicas == 0 {
		return
	}
	if d.disk.Good[ring.ID(b.App, b.Service)] == nil && !d.ready(b) { // nothing serves that could be given
		return
	}
	taker := false
	for _, x := range d.boxes {
		taker = taker || x.App == b.App && x.frontOf == b.Service
		taker = taker || x != b && x.App == b.App && x.Service == b.Service && x.Version != want.Version && publishesSome(x)
	}
	if publishesSome(b) && !taker {
		d.violate("T03: %s of %s, which has the port, and its front is not made", a.Kind, b.Name)
	}
}

// serves reports whether a container is ready for whoever calls: a front that never took a
// table answers everybody with 503.
func (d *daemon) serves(b *box) bool {
	if b.frontOf == "" {
		return d.ready(b)
	}
	f := d.front[b.ID]
	// One on trial that nobody has an answer of is given up after its time, as every instance is.
	heard := !d.silent[b.ID] || d.disk.Fronts[ring.ID(b.App, b.frontOf)].Front == b.ID
	return d.ready(b) && f != nil && f.table.Generation > 0 && heard
}

// hasPort reports whether an instance runs that has the port itself which its service's front
// is to have.
func (d *daemon) hasPort(app string, want *ring.Service) bool {
	if want.Route == nil {
		return false
	}
	for _, x := range d.boxes {
		if x.App == app && x.Service == want.Name && x.Version != want.Version && x.running() && publishesSome(x) {
			return true
		}
	}
	return false
}

// watchFailed is I22: a version that failed gets no share beside another one.
func (d *daemon) watchFailed(a ring.Action, want *ring.Service) {
	verdict, judged := d.disk.Verdicts[ring.VersionKey(ring.ID(a.App, a.Service), want.Version)]
	if !judged || verdict.Good || want.Rollout.OnFailure == ring.OnFailureContinue {
		return
	}
	failed, others := "", false
	for _, in := range a.Table.Instances {
		x := d.boxOf(in.Name)
		switch {
		case in.State != ring.FrontActive:
		case x.Version == want.Version:
			failed = x.Name
		default:
			others = true
		}
	}
	if failed != "" && others {
		d.violate("I22: table %d gives %s a share, whose version failed", a.Table.Generation, failed)
	}
}
