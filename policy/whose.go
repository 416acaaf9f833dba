package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Holder is an app of one source, by its name and its folder inside the commit.
type Holder struct {
	App, Source, Path string
	// File is the Compose file by which rights on the app are judged.
	File string
}

// same reports whether two holders are one: an app keeps what it has under another name
// and in another folder, and who may rename it is judged elsewhere.
func (o Holder) same(p Holder) bool {
	return o.App == p.App || o.Source == p.Source && path.Clean(o.Path) == path.Clean(p.Path)
}

// State is since when an app is known to have something: the one that comes first
// wins where two apps claim one thing.
type State int

// The states.
const (
	InForce State = iota
	Left          // not in force any more; its data is still here
	Next          // asked for by a plan that is not in force
)

// Holding is what one app has of its own.
type Holding struct {
	Holder
	State State
	Since time.Time // of its first acceptance; zero for one that was never accepted
	// DataRoot is where the app's data lies, absolute; its folder there is Folder.
	DataRoot string
	Data     []string // the data folders that it mounts, absolute and clean
	Volumes  []string // by the engine's name
	Networks []Network
	Names    []Name
	// Containers are the names of its containers on the engine: those that the author
	// chose, and the beginnings of the others, which end in a dash.
	Containers []string
	Routes     []Route
	Ports      []ring.Port
	Mounts     []ring.HostMounts // of its services

	unmounted, dismissed bool // by Unmount and Dismiss
}

// Network is a network that gitring makes for an app. Shared says that the app lets
// others join it: it has a name of its own, or is attachable.
type Network struct {
	Name   string // the engine's
	Shared bool
}

// Name is a name by which others on a network reach a service.
type Name struct {
	Network string // the engine's name
	Name    string
	// Written reports whether the author chose it as an alias, container_name or hostname.
	// Key is the Compose key that says it, below the service.
	Written bool
	Service string
	Key     string
}

// Folder is the folder that gitring keeps for the app.
func (h *Holding) Folder() string { return path.Join(h.DataRoot, h.Path) }

// Whose is what belongs to whom on a host at one moment, over all sources.
type Whose struct {
	Holdings []Holding
	// OneHand reports whether two apps of one source are in one hand: no signer has
	// rights on only one of them. nil is always.
	OneHand func(source string, a, b Holder) bool

	index    *index // of Holdings; nil until it is asked
	accepted *Whose // what Accepted gives; nil until Prepare
}

// Prepare makes what all calls of Accepted share. w is not changed after it.
func (w *Whose) Prepare() {
	a := w.Accepted()
	a.indexed()
	w.accepted = &a
}

// With is w with the apps of one plan instead of what the newest plan of their source
// asks for.
func (w Whose) With(source string, plan []Holding) Whose {
	all := slices.DeleteFunc(slices.Clone(w.Holdings), func(h Holding) bool { return h.State == Next && h.Source == source })
	w.Holdings = append(all, plan...)
	w.index, w.accepted = nil, nil
	w.sort()
	return w
}

// Unmount leaves out what a planned app mounts.
func (w *Whose) Unmount(me Holder) {
	for _, h := range w.planned(me) {
		h.unmounted = true
	}
}

// Dismiss leaves out what a planned app claims outside of its own folder: host names,
// ports, names on networks, volumes and networks of other names, and data.
func (w *Whose) Dismiss(me Holder) {
	for _, h := range w.planned(me) {
		h.unmounted, h.dismissed = true, true
	}
}

// gaveUp reports whether a volume or network of a dismissed app is free for others: one
// whose name begins with the app's own stays its.
func (h *Holding) gaveUp(name string) bool {
	return h.dismissed && !strings.HasPrefix(name, h.App+"_")
}

// planned are the holdings of an app in the newest plan of its source.
func (w *Whose) planned(me Holder) (out []*Holding) {
	for _, i := range w.indexed().apps[me.App] {
		if h := &w.Holdings[i]; h.State == Next && h.Source == me.Source {
			out = append(out, h)
		}
	}
	return out
}

// Accepted is w without what is only asked for.
func (w Whose) Accepted() Whose {
	if w.accepted != nil {
		return *w.accepted
	}
	w.index = nil
	w.Holdings = slices.DeleteFunc(slices.Clone(w.Holdings), func(h Holding) bool { return h.State == Next })
	w.sort()
	return w
}

// sort puts those that came first before the others.
func (w *Whose) sort() {
	slices.SortStableFunc(w.Holdings, func(a, b Holding) int { return a.compare(&b) })
}

// oneHand reports whether two apps are in one hand.
func (w *Whose) oneHand(a, b Holder) bool {
	return a.Source == b.Source && (w.OneHand == nil || w.OneHand(a.Source, a, b))
}

// Other is an app that has something.
type Other struct {
	Holder
	// OneHand reports whether it is in one hand with the app that asks.
	OneHand bool
	// Shared reports whether others may join the network that this is about.
	Shared bool
}

// called is the other app in a sentence.
func (o Other) called() string {
	if o.OneHand {
		return "app " + o.App
	}
	return "app " + o.App + " of source " + o.Source
}

// Others is what belongs to other apps than one, for one look. The zero value is an app
// that is alone.
type Others struct {
	whose    *Whose
	me       Holder
	mine     *held
	noMounts bool
}

// Unmounted is o without what other apps mount.
func (o Others) Unmounted() Others {
	o.noMounts = true
	return o
}

// Of is what other apps than me have, as far as me has to leave it to them. Each thing
// is the first one's: what is in force comes before what is only planned, then whoever
// was accepted earlier. w comes from With or Accepted, and is only read after it.
func (w *Whose) Of(me Holder) Others { return Others{whose: w, me: me, mine: w.mine(me)} }

// first is the first other app that has one of the entries and for which takes says yes.
func (o *Others) first(entries []entry, takes func(h *Holding, e entry, by Other) bool) (Other, entry, bool) {
	for _, e := range entries {
		if o.whose.index.visited != nil {
			*o.whose.index.visited++
		}
		h := &o.whose.Holdings[e.holding]
		if h.same(o.me) || !o.whose.counts(o.me, h) {
			continue
		}
		if by := (Other{Holder: h.Holder, OneHand: o.whose.oneHand(o.me, h.Holder)}); takes(h, e, by) {
			return by, e, true
		}
	}
	return Other{}, entry{}, false
}

// app is an app in other hands, by its name.
func (o *Others) app(name string) (Other, bool) {
	if o.whose == nil {
		return Other{}, false
	}
	var entries []entry
	for _, i := range o.whose.index.apps[name] {
		entries = append(entries, entry{holding: i})
	}
	by, _, ok := o.first(entries, func(_ *Holding, _ entry, by Other) bool { return !by.OneHand })
	return by, ok
}

// volume is whose a volume is, by the engine's name.
func (o *Others) volume(name string) (Other, bool) {
	if o.whose == nil {
		return Other{}, false
	}
	by, _, ok := o.first(o.whose.index.volumes[name], func(h *Holding, _ entry, by Other) bool {
		return !h.gaveUp(name) && (by.OneHand || !o.mine.first(o.mine.volumes, name, h))
	})
	return by, ok
}

// network is whose a network is.
func (o *Others) network(name string) (Other, bool) {
	if o.whose == nil {
		return Other{}, false
	}
	by, e, ok := o.first(o.whose.index.networks[name], func(h *Holding, _ entry, _ Other) bool {
		return !h.gaveUp(name) && !o.mine.first(o.mine.networks, name, h)
	})
	if ok {
		by.Shared = o.whose.Holdings[e.holding].Networks[e.item].Shared
	}
	return by, ok
}

// name is who is called so on a network. A name that ends in a dash stands for all that
// begin so.
func (o *Others) name(network, name string) (Other, bool) {
	if o.whose == nil {
		return Other{}, false
	}
	for _, word := range beginnings(name) {
		key := network + " " + word
		by, _, ok := o.first(o.whose.index.names[key], func(h *Holding, _ entry, _ Other) bool {
			if h.dismissed || o.mine.makes[network] && h.State == Next && !h.makes(network) {
				return false // on a network of my own nobody comes before me who is not there yet
			}
			return !o.mine.first(o.mine.names, key, h)
		})
		if ok {
			return by, true
		}
	}
	return Other{}, false
}

// container is the app whose container is called so, or would be: instance
// tells of the rest of a name behind the beginning that all instances of a service have.
func (o *Others) container(name string, instance func(rest string) bool) (Other, bool) {
	if o.whose == nil || name == "" {
		return Other{}, false
	}
	for _, word := range beginnings(name) {
		if word != name && !instance(strings.TrimPrefix(name, word)) {
			continue
		}
		by, _, ok := o.first(o.whose.index.containers[word], func(h *Holding, _ entry, _ Other) bool {
			return !h.dismissed && !o.mine.first(o.mine.containers, word, h)
		})
		if ok {
			return by, true
		}
	}
	return Other{}, false
}

// route is who answers for a host name.
func (o *Others) route(key string) (Other, bool) {
	if o.whose == nil {
		return Other{}, false
	}
	by, _, ok := o.first(o.whose.index.routes[key], func(h *Holding, _ entry, _ Other) bool {
		return !h.dismissed && !o.mine.first(o.mine.routes, key, h)
	})
	return by, ok
}

// port is the port of an app in other hands with which one clashes.
func (o *Others) port(p ring.Port) (TakenPort, bool) {
	if o.whose == nil || p.HostPort == "" {
		return TakenPort{}, false
	}
	by, e, ok := o.first(o.whose.index.ports[portKey(p)], func(h *Holding, e entry, by Other) bool {
		return !h.dismissed && !by.OneHand && p.Clashes(h.Ports[e.item]) && !o.mine.published(h.Ports[e.item], h)
	})
	if !ok {
		return TakenPort{}, false
	}
	return TakenPort{o.whose.Holdings[e.holding].Ports[e.item], by}, true
}

// folder is for which other app gitring keeps a folder.
func (o *Others) folder(p string) (Other, bool) {
	by, _, ok := o.first(o.whose.index.folders[p], func(h *Holding, _ entry, by Other) bool { return by.OneHand || !o.mine.lives(h) })
	return by, ok
}

// mounted is which app in other hands mounts a data folder.
func (o *Others) mounted(p string) (Other, bool) {
	by, _, ok := o.first(o.whose.index.data[p], func(h *Holding, e entry, by Other) bool {
		d := h.Data[e.item]
		if by.OneHand || h.dismissed && !within(d, h.Folder()) {
			return false
		}
		return !o.mine.first(o.mine.data, d, h) && !o.mine.holds(d, h)
	})
	return by, ok
}

// roots are the folders that hold the data of apps.
func (o *Others) roots() []string {
	if o.whose == nil {
		return nil
	}
	return o.whose.index.roots
}

// writableAbove is as that of the mounts of other apps.
func (o *Others) writableAbove(source string) (outer, who string) {
	if o.whose == nil || o.noMounts {
		return "", ""
	}
	best := entry{holding: len(o.whose.Holdings)}
	for _, above := range ancestors(source) {
		if above == source {
			continue
		}
		by, e, ok := o.first(o.whose.index.mounts[above], func(h *Holding, e entry, _ Other) bool {
			all := h.Mounts[e.item].Mounts
			return !h.unmounted && !all[e.sub].ReadOnly && !mountedInPlace(source, all[e.sub], all)
		})
		if ok && e.before(best) {
			best, outer, who = e, above, o.whose.Holdings[e.holding].Mounts[e.item].Who+" of "+by.called()
		}
	}
	return outer, who
}

func (e entry) before(x entry) bool {
	return cmp.Or(cmp.Compare(e.holding, x.holding), cmp.Compare(e.item, x.item), cmp.Compare(e.sub, x.sub)) < 0
}

// TakenPort is a port of the host that another app publishes.
type TakenPort struct {
	Port ring.Port
	By   Other
}

// counts reports whether what a holding names is kept from me. Within one hand only the
// plan itself counts: its authors see all of it, and what they move between two apps of
// theirs is theirs to move. What two sources only plan is the first one's by name.
func (w *Whose) counts(me Holder, h *Holding) bool {
	if h.State == Next && h.Source != me.Source {
		return h.Source < me.Source
	}
	return h.State == Next || !w.oneHand(me, h.Holder)
}

func (h *Holding) compare(o *Holding) int {
	return cmp.Or(cmp.Compare(rank(h.State), rank(o.State)), h.Since.Compare(o.Since), cmp.Compare(h.Source, o.Source), cmp.Compare(h.App, o.App))
}

// rank puts what is accepted before what is only planned.
func rank(s State) int {
	if s == Next {
		return 1
	}
	return 0
}

// held is what an app has already, with the holding that says so.
type held struct {
	volumes, data, networks, names, containers, routes map[string]*Holding
	ports                                              []heldPort
	// folders are those that gitring keeps for me, and makes the networks that are mine,
	// those that are only planned among them.
	folders []string
	makes   map[string]bool
}

// holds reports whether data that another app only asks for lies in my folder, which is
// mine. Of folders inside one another the innermost counts.
func (m *held) holds(d string, other *Holding) bool {
	return other.State == Next && slices.ContainsFunc(m.folders, func(folder string) bool {
		theirs := other.Folder()
		return within(d, folder) && (!within(d, theirs) || theirs != folder && within(folder, theirs))
	})
}

// makes reports whether the holding has a network of this name.
func (h *Holding) makes(network string) bool {
	return slices.ContainsFunc(h.Networks, func(n Network) bool { return n.Name == network })
}

// first reports whether one of mine came before that of another.
func (m *held) first(of map[string]*Holding, what string, other *Holding) bool {
	own, ok := of[what]
	return ok && own.compare(other) < 0
}

// heldPort is a port of the host with the holding that says so.
type heldPort struct {
	port ring.Port
	by   *Holding
}

// published reports whether a port of mine that p clashes with came before that of another.
func (m *held) published(p ring.Port, other *Holding) bool {
	return slices.ContainsFunc(m.ports, func(own heldPort) bool { return own.port.Clashes(p) && own.by.compare(other) < 0 })
}

// lives reports whether some data of mine lay in the folder of another app before that
// came.
func (m *held) lives(other *Holding) bool {
	for d, own := range m.data {
		if within(d, other.Folder()) && own.compare(other) < 0 {
			return true
		}
	}
	return false
}

func (w *Whose) mine(me Holder) *held {
	m := &held{
		volumes: map[string]*Holding{}, data: map[string]*Holding{}, networks: map[string]*Holding{},
		names: map[string]*Holding{}, routes: map[string]*Holding{}, containers: map[string]*Holding{}, makes: map[string]bool{},
	}
	put := func(of map[string]*Holding, what string, h *Holding) {
		if of[what] == nil {
			of[what] = h
		}
	}
	for _, i := range w.indexed().held(me) {
		h := &w.Holdings[i]
		if h.DataRoot != "" {
			m.folders = append(m.folders, h.Folder())
		}
		for _, n := range h.Networks {
			m.makes[n.Name] = true
		}
		if h.State == Next {
			continue
		}
		for _, v := range h.Volumes {
			put(m.volumes, v, h)
		}
		for _, d := range h.Data {
			put(m.data, d, h)
		}
		for _, n := range h.Networks {
			put(m.networks, n.Name, h)
		}
		for _, n := range h.Names {
			put(m.names, n.Network+" "+n.Name, h)
		}
		for _, c := range h.Containers {
			put(m.containers, c, h)
		}
		for _, r := range h.Routes {
			put(m.routes, r.key(), h)
		}
		for _, p := range h.Ports {
			m.ports = append(m.ports, heldPort{p, h})
		}
	}
	return m
}

// HoldingOf is what an app has by its plan. dataRoot is the app's, absolute.
func HoldingOf(a *ring.App, dataRoot string, state State, since time.Time) Holding {
	h := Holding{Holder: HolderOf(a), State: state, Since: since, DataRoot: path.Clean(dataRoot), Mounts: HostMountsOf(a, dataRoot)}
	for _, v := range a.Volumes {
		if v.External == "" {
			h.Volumes = append(h.Volumes, v.EngineName(a.Name))
		}
	}
	engine := map[string]string{}
	for _, n := range a.Networks {
		name := cmp.Or(n.External, n.Name, ring.NetworkName(a.Name, n.Key))
		engine[n.Key] = name
		if n.External == "" {
			h.Networks = append(h.Networks, Network{name, n.Name != "" || slices.Contains(a.Attachable, n.Key)})
		}
	}
	for i := range a.Services {
		s := &a.Services[i]
		for _, m := range s.Spec.Mounts {
			if m.Kind == ring.MountData || m.Kind == ring.MountSeed {
				h.Data = append(h.Data, path.Join(dataRoot, m.Source))
			}
		}
		h.Names = append(h.Names, namesOf(a.Name, s, engine)...)
		h.Containers = append(h.Containers, instanceMark(a.Name, s.Name))
		if s.Spec.ContainerName != "" {
			h.Containers = append(h.Containers, s.Spec.ContainerName)
		}
		h.Routes = append(h.Routes, RoutesOf(s)...)
		for _, p := range s.Spec.Ports {
			if p.HostPort != "" {
				h.Ports = append(h.Ports, p)
			}
		}
	}
	return h
}

// HolderOf is an app as a holder.
func HolderOf(a *ring.App) Holder {
	o := Holder{App: a.Name, Source: a.Source, Path: path.Clean(a.Path)}
	file := ""
	if len(a.Files) > 0 {
		file = a.Files[0]
	}
	o.File = ring.RuleFile(o.Path, file)
	return o
}

// namesOf are the names by which a service is reached on its networks.
func namesOf(app string, s *ring.Service, engine map[string]string) []Name {
	var out []Name
	for _, at := range s.Spec.Networks {
		add := func(name, key string, written bool) {
			if name != "" {
				out = append(out, Name{Network: engine[at.Network], Name: strings.ToLower(name), Written: written, Service: writtenAs(s), Key: key})
			}
		}
		if !at.Unnamed {
			add(s.Name, "", false)
		}
		add(instanceMark(app, s.Name), "", false)
		for _, alias := range at.Aliases {
			add(alias, "networks."+at.Network+".aliases", alias != writtenAs(s))
		}
		add(s.Spec.ContainerName, "container_name", s.Spec.ContainerName != s.Name)
		add(s.Spec.Hostname, "hostname", s.Spec.Hostname != s.Name)
	}
	return out
}

// instanceMark stands for the names of all instances of a service, which begin so.
func instanceMark(app, service string) string { return app + "-" + service + "-" }
