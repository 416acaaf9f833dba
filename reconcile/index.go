package reconcile

import (
	"cmp"
	"path"
	"slices"

	"github.com/gitring/gitring/ring"
)

// index answers by a key what a rule asks about the whole host. Rules are
// asked for every service: one that went through all that is seen each time
// would take a hundred times as long for ten times the services. Each part is
// made when it is first asked for, because most looks ask for few.
//
// Where an answer may change in the course of a look, the index names those
// that have to be looked at, and the rule looks at them.
type index struct {
	decided map[string]bool                         // targets of the steps decided
	order   []*service                              // see inOrder
	seen    []ring.ServiceID                        // see seenIDs
	kept    []string                                // see kept
	nets    *networks                               // see network
	names   map[*ring.Network]map[string]string     // see networks; by the first network of an app
	defined map[*ring.Network]string                // see definition
	makers  map[string]string                       // by the engine's name of a network, the app in force that makes it
	joined  map[string]bool                         // networks that instances are on
	there   map[string]bool                         // by ID, containers that are seen
	byID    map[string]*instance                    // see instance
	next    map[string]map[string]int               // by source, where the apps of its next plan are in it; see nextApp
	folders map[string]map[string][]int             // the same by folder; see nextIn
	heirs   map[string]map[string][]string          // by source and what is written, apps that take it over; see heirsOf
	keepers map[string][]string                     // by what they keep, names of apps in force
	holders map[string][]ring.ServiceID             // by what an instance of them writes
	former  map[string][]*service                   // by what their last good version writes
	steps   []writing                               // in flight, then decided; see stepsOn
	writing map[string][]int                        // by what is written, places in steps
	runs    map[ring.ServiceID][]string             // see runsOf
	past    map[string][]string                     // by app, the keys of its plans; see pastOf
	leavers *leavers                                // see leavers
	apps    map[string]bool                         // with instances, see anything
	outrun  map[string]bool                         // apps of which something newer runs, see isOutrun
	fronts  map[ring.ServiceID][]toldFront          // see frontsOf
	sent    map[ring.ServiceID]*ring.ClusterService // see clusterService
	namers  map[string][]*service                   // see namersOf
	memory  int64                                   // see declared
	summed  bool
}

// networks are those of our apps, there and in flight.
type networks struct {
	of     map[string][]*ring.SeenNetwork // by app
	there  map[string]bool                // by name; true where it is of one of our apps
	making map[string][]ring.Action       // by app; nil where none is
}

// writing is a step as far as it is about what is written.
type writing struct {
	app, service string
	version      ring.Version
	its          []string
	runs, makes  bool // from then on something runs; its volumes may be made
}

// A belonging is a volume or data folder of an app.
type belonging struct {
	name   string
	folder bool
	at     ring.Place
}

// indexSeen sorts what is seen by service.
func (t *Pass) indexSeen() {
	t.takeAdopted()
	type named struct{ app, service string }
	all, of, tied := make([]instance, len(t.Seen.Instances)), map[named][]*instance{}, false
	for i := range all {
		in, v := &t.Seen.Instances[i], &all[i]
		v.Instance, v.intent = in, t.Facts.Intents[in.ID].Kind
		name := named{in.App, in.Service}
		its := of[name]
		if its == nil {
			its = make([]*instance, 0, 4) // few have more
		}
		of[name] = append(its, v)
		tied = tied || len(in.Joined) > 0
	}
	t.seen = make(map[ring.ServiceID][]*instance, len(of))
	for name, ins := range of {
		slices.SortFunc(ins, bySlot)
		t.seen[ring.ID(name.app, name.service)] = ins
	}
	if !tied {
		return
	}
	t.tied, t.elsewhere = map[string][]*instance{}, map[string][]*instance{}
	for _, id := range t.seenIDs() {
		for _, in := range t.seen[id] {
			for _, owner := range in.Joined {
				if y := t.instanceByID(owner); y != nil && y.App != in.App {
					t.elsewhere[owner] = append(t.elsewhere[owner], in)
					continue
				}
				t.tied[owner] = append(t.tied[owner], in)
			}
		}
	}
}

func bySlot(a, b *instance) int {
	if a.Slot != b.Slot {
		return cmp.Compare(a.Slot, b.Slot)
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
}

// inOrder is every view by app and service. There are no more of them after look.
func (t *Pass) inOrder() []*service {
	if len(t.by.order) != len(t.views) {
		t.by.order = make([]*service, 0, len(t.views))
		for _, v := range t.views {
			t.by.order = append(t.by.order, v)
		}
		slices.SortFunc(t.by.order, func(a, b *service) int { return cmp.Compare(a.id, b.id) })
	}
	return t.by.order
}

// namersOf are the services of which a version asks for a container_name: the wanted one or
// the last good one, which are all that a target can be.
func (t *Pass) namersOf(name string) []*service {
	if t.by.namers == nil {
		t.by.namers = map[string][]*service{}
		for _, v := range t.inOrder() {
			asked := v.want.Spec.ContainerName
			if asked != "" {
				t.by.namers[asked] = append(t.by.namers[asked], v)
			}
			if v.good == nil {
				continue
			}
			if good := v.good.Service.Spec.ContainerName; good != "" && good != asked {
				t.by.namers[good] = append(t.by.namers[good], v)
			}
		}
	}
	return t.by.namers[name]
}

// seenIDs are the services that instances are seen of, sorted.
func (t *Pass) seenIDs() []ring.ServiceID {
	if t.by.seen == nil {
		t.by.seen = sortedKeys(t.seen)
	}
	return t.by.seen
}

// namesKept are the names of what instances were given and is never made anew. They
// are the host's, whichever app had them first: an app that was given another
// name has its data where it was. One list serves all steps of a look, which
// remember nothing of the kind themselves.
func (t *Pass) namesKept() []string {
	if t.by.kept == nil {
		t.by.kept = sortedKeys(t.Facts.Kept)
	}
	return t.by.kept
}

// networksBy are the networks that are seen or in flight.
func (t *Pass) networksBy() *networks {
	if t.by.nets != nil {
		return t.by.nets
	}
	n := &networks{of: map[string][]*ring.SeenNetwork{}, there: make(map[string]bool, len(t.Seen.Networks))}
	for i := range t.Seen.Networks {
		s := &t.Seen.Networks[i]
		n.of[s.App] = append(n.of[s.App], s)
		n.there[s.Name] = n.there[s.Name] || s.App != ""
	}
	for target, a := range t.Busy {
		if a.Kind == ring.DoNetwork {
			put(&n.making, a.App, append(n.making[a.App], t.Busy[target]))
		}
	}
	t.by.nets = n
	return n
}

// networkDefinition is that of a network of a plan, hashed once a look.
func (t *Pass) networkDefinition(n *ring.Network) string {
	if n.IsDefault() {
		return n.Definition()
	}
	out, known := t.by.defined[n]
	if !known {
		out = n.Definition()
		put(&t.by.defined, n, out)
	}
	return out
}

// isSeen reports whether a container is seen.
func (t *Pass) isSeen(id string) bool {
	if t.by.there == nil {
		t.by.there = make(map[string]bool, len(t.Seen.Instances))
		for i := range t.Seen.Instances {
			t.by.there[t.Seen.Instances[i].ID] = true
		}
	}
	return t.by.there[id]
}

// instanceByID finds one by the ID of its container; nil where it is not seen.
func (t *Pass) instanceByID(id string) *instance {
	if t.by.byID == nil {
		t.by.byID = make(map[string]*instance, len(t.Seen.Instances))
		for _, ins := range t.seen {
			for _, in := range ins {
				t.by.byID[in.ID] = in
			}
		}
	}
	return t.by.byID[id]
}

// runsOf are the keys of the runs of a service that were known as the look
// began, sorted.
func (t *Pass) runsOf(id ring.ServiceID) []string {
	if t.by.runs == nil {
		t.by.runs = map[ring.ServiceID][]string{}
		for _, key := range sortedKeys(t.Facts.Jobs) {
			of := t.Facts.Jobs[key].ID
			t.by.runs[of] = append(t.by.runs[of], key)
		}
	}
	return t.by.runs[id]
}

// isJoined reports whether an instance is on a network.
func (t *Pass) isJoined(network string) bool {
	if t.by.joined == nil {
		t.by.joined = map[string]bool{}
		for i := range t.Seen.Instances {
			for name := range t.Seen.Instances[i].Addresses {
				t.by.joined[name] = true
			}
		}
		if t.Seen.Cluster != nil {
			for _, s := range t.Seen.Cluster.Services {
				for _, name := range s.Networks {
					t.by.joined[name] = true
				}
			}
			for _, r := range t.Seen.Cluster.Runs {
				for _, name := range r.Networks {
					t.by.joined[name] = true
				}
			}
		}
	}
	return t.by.joined[network]
}

// nextApp finds an app of the next plan of a source; nil when it has none of
// that name.
func (t *Pass) nextApp(src *Source, name string) *ring.App {
	apps := src.Next.Apps
	if len(apps) <= fewApps {
		for i := range apps {
			if apps[i].Name == name {
				return &apps[i]
			}
		}
		return nil
	}
	named := t.by.next[src.Name]
	if named == nil {
		named = make(map[string]int, len(apps))
		for i := len(apps) - 1; i >= 0; i-- { // the first of a name counts
			named[apps[i].Name] = i
		}
		put(&t.by.next, src.Name, named)
	}
	if i, ok := named[name]; ok {
		return &apps[i]
	}
	return nil
}

// fewApps are found sooner by looking at each than by a map that is made for that.
const fewApps = 4

// nextIn are the apps of the next plan of a source that lie in a folder.
func (t *Pass) nextIn(src *Source, folder string) []int {
	at := t.by.folders[src.Name]
	if at == nil {
		at = map[string][]int{}
		for i := range src.Next.Apps {
			own := path.Clean(src.Next.Apps[i].Path)
			at[own] = append(at[own], i)
		}
		put(&t.by.folders, src.Name, at)
	}
	return at[path.Clean(folder)]
}

// isComing reports whether a plan that is not in force yet has a service.
func (t *Pass) isComing(id ring.ServiceID) bool {
	app, service := id.Split()
	return slices.ContainsFunc(t.Sources, func(src Source) bool {
		if src.Next == nil {
			return false
		}
		a, ok := src.Next.App(app)
		if ok {
			_, ok = a.Service(service)
		}
		return ok
	})
}

// isAsked reports whether what is in force is what next asks for.
func isAsked(have *ring.InForce, next *ring.App) bool {
	return !have.Leaving && !have.Undone && have.App.Commit == next.Commit && have.App.Written == next.Written
}

// inForce is the service of a name as an app has it, not copied.
func inForce(have *ring.App, name string) (s *ring.Service, known bool) {
	for i := range have.Services {
		if have.Services[i].Name == name {
			return &have.Services[i], true
		}
	}
	return &nothing, false
}

// nothing is the service that is not there. Nobody changes it.
var nothing ring.Service

// keepersOf are the apps in force that keep one of some, or did when the look
// began, sorted.
func (t *Pass) keepersOf(some []belonging) []string {
	if t.by.keepers == nil {
		t.by.keepers = map[string][]string{}
		for _, name := range sortedKeys(t.Facts.Apps) {
			f := t.Facts.Apps[name]
			t.enterKept(&f.App)
		}
	}
	var out []string
	for _, b := range some {
		out = append(out, t.by.keepers[b.name]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// belongingsOf are all that an app writes by itself and that outlives it. External
// volumes are nobody's, and paths of the host are for their authors to share.
func belongingsOf(app *ring.App) []belonging {
	var out []belonging
	for i := range app.Services {
		s := &app.Services[i]
		for _, m := range s.Spec.Mounts {
			b := belonging{at: s.Place("volumes." + m.Target)}
			switch m.Kind {
			case ring.MountData, ring.MountSeed:
				b.name, b.folder = "data folder "+path.Join(cmp.Or(app.DataRoot, "<data_root>"), m.Source), true
			case ring.MountVolume:
				j := slices.IndexFunc(app.Volumes, func(v ring.Volume) bool { return v.Key == m.Source && v.External == "" })
				if j < 0 {
					continue
				}
				b.name = "volume " + app.Volumes[j].EngineName(app.Name)
			default:
				continue
			}
			out = append(out, b)
		}
	}
	return out
}

// enterKept enters what an app in force keeps, where somebody has asked for it.
func (t *Pass) enterKept(app *ring.App) {
	if t.by.keepers == nil {
		return
	}
	for _, b := range belongingsOf(app) {
		t.by.keepers[b.name] = append(t.by.keepers[b.name], app.Name)
	}
}

// holdersOf are the services of which an instance writes one of some, sorted.
// What an instance writes does not change while it is looked at.
func (t *Pass) holdersOf(some []string) []ring.ServiceID {
	if t.by.holders == nil {
		t.by.holders = map[string][]ring.ServiceID{}
		for id, ins := range t.seen {
			v := t.views[id]
			for _, in := range ins {
				for _, what := range t.writtenAs(id, v, in) {
					t.by.holders[anyAddress(what)] = append(t.by.holders[anyAddress(what)], id)
				}
			}
		}
	}
	var out []ring.ServiceID
	for _, what := range some {
		out = append(out, t.by.holders[anyAddress(what)]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// formersOf are the services whose last good version writes one of some, in
// order: another one than it was as the look began is the one that is wanted.
func (t *Pass) formersOf(some []string) []*service {
	if t.by.former == nil {
		t.by.former = map[string][]*service{}
		for _, v := range t.inOrder() {
			if v.good == nil {
				continue
			}
			for _, what := range v.goodWrites(v.good) {
				t.by.former[anyAddress(what)] = append(t.by.former[anyAddress(what)], v)
			}
		}
	}
	var out []*service
	for _, what := range some {
		out = append(out, t.by.former[anyAddress(what)]...)
	}
	slices.SortFunc(out, func(a, b *service) int { return cmp.Compare(a.id, b.id) })
	return slices.Compact(out)
}

// stepsOn are the steps on one of some, in flight by target and then as decided.
func (t *Pass) stepsOn(some []string) []writing {
	if t.by.writing == nil {
		t.by.writing = map[string][]int{}
		for _, target := range sortedKeys(t.Busy) {
			t.enterStep(t.Busy[target])
		}
		for _, a := range t.steps {
			t.enterStep(a)
		}
	}
	var at []int
	for _, what := range some {
		at = append(at, t.by.writing[anyAddress(what)]...)
	}
	slices.Sort(at)
	var out []writing
	for _, i := range slices.Compact(at) {
		out = append(out, t.by.steps[i])
	}
	return out
}

// enterStep enters a step on what is written, where somebody has asked for such.
func (t *Pass) enterStep(a ring.Action) {
	if t.by.writing == nil {
		return
	}
	w := writing{app: a.App, service: a.Service, version: a.Version, makes: a.Kind == ring.DoCreate && a.Want != nil}
	w.runs = a.Kind == ring.DoStart || a.Kind == ring.DoRestart || a.Kind == ring.DoCreate && a.Start || a.Kind == ring.DoServe
	if !w.runs && !w.makes {
		return
	}
	w.its = t.Facts.Rollouts[ring.ID(a.App, a.Service)].Writes[a.Version]
	if a.Want != nil {
		w.its = writesOf(a.Of, a.Want)
	}
	for _, what := range w.its {
		t.by.writing[anyAddress(what)] = append(t.by.writing[anyAddress(what)], len(t.by.steps))
	}
	t.by.steps = append(t.by.steps, w)
}

// declaredMemory is the memory that runs, or is about to, by what was declared.
func (t *Pass) declaredMemory() int64 {
	if t.by.summed {
		return t.by.memory
	}
	there := make(map[string]bool, len(t.Seen.Instances))
	for i := range t.Seen.Instances {
		in := &t.Seen.Instances[i]
		there[in.Name] = true
		if in.Live() || in.State == ring.StateCreated {
			t.by.memory += in.Memory
		}
	}
	for _, a := range t.Busy {
		if !there[a.Name] {
			t.by.memory += madeBy(a)
		}
	}
	for _, a := range t.steps {
		t.by.memory += madeBy(a)
	}
	t.by.summed = true
	return t.by.memory
}

// memoryNeeded is what an instance of s declares to need, in bytes: what it reserves,
// else what it may take at most; 0 is nothing.
func memoryNeeded(s *ring.Service) int64 {
	r := s.Spec.Resources
	switch {
	case r == nil:
		return 0
	case r.MemoryReservation > 0:
		return r.MemoryReservation
	}
	return max(0, r.Memory)
}

// madeBy is the memory that a step adds.
func madeBy(a ring.Action) int64 {
	if a.Kind != ring.DoCreate || a.Want == nil {
		return 0
	}
	return memoryNeeded(a.Want)
}
