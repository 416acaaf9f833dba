package runtime

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"github.com/gitring/gitring/ring"
)

// beside is what was on this host at one moment, as far as an app can meet what
// is not its own.
type beside struct {
	host       string
	self       string              // the ID of the container that gitring runs in, "" for none
	api        string              // the engine's
	podman     bool                // it is Podman
	sources    []string            // those that are followed
	root       string              // the host's data root
	adopted    map[string]bool     // IDs of what is ours without our labels
	containers []container.Summary // of any Compose project, running or not
	returning  map[string]bool     // IDs of stopped ones that the engine starts when it starts
	volumes    []*volume.Volume
	networks   []network.Summary
	folders    map[string]filling // of the paths that dataPaths names
	nets       hostNets           // the host's own network, where the app brings subnets
	ownerHost  bool               // the signers own the host, so what takes of it is only told
}

// filling says what is in a data folder.
type filling int

const (
	absent filling = iota
	empty
	filled
)

// admit says why the app of an action cannot be carried out beside what is here,
// the gravest reason first, and tells what is here and stays as it is.
//
// Two programs on one volume destroy it, and a volume or folder that comes up
// empty while the data lies somewhere else looks like a loss to the program,
// which begins anew: so whatever is evidently the same project counts, and
// doubt is a refusal that says how to go on.
func admit(a ring.Action, b beside) (told []string, all []*ring.Refusal) {
	told, r := b.sameName(a)
	all = append(all, r...)
	for _, v := range mountedVolumes(a.Of) {
		all = append(all, b.volume(a, v)...)
		told = append(told, b.loose(a, v)...)
	}
	all = append(all, b.partsOfVolumes(a)...)
	all = append(all, b.notByPodman(a)...)
	all = append(all, b.dataOfForce(a)...)
	all = append(all, b.dataOfInstances(a)...)
	if len(r) == 0 { // else its hint says so already
		all = append(all, b.dataOfOthers(a)...)
	}
	for _, n := range joinedNetworks(a.Of) {
		all = append(all, b.network(a, n)...)
		worth, taken := b.hostsOwn(a, n)
		told, all = append(told, worth...), append(all, taken...)
	}
	return told, append(all, b.ownBridge(a)...)
}

// sameName looks for what runs under the app's name and is not ours, and for
// what would run again beside it after the next restart of the host.
func (b beside) sameName(a ring.Action) (told []string, all []*ring.Refusal) {
	p := b.project(a.App)
	if i := slices.IndexFunc(p.all(), b.isSelf); i >= 0 {
		return nil, one(b.ofSelf(a, p.all()[i]))
	}
	stopped := slices.DeleteFunc(slices.Clone(p.stopped), func(c container.Summary) bool { return !b.foreign(c) })
	returning := slices.DeleteFunc(slices.Clone(stopped), func(c container.Summary) bool { return !b.returning[c.ID] })
	for _, c := range stopped {
		told = append(told, fmt.Sprintf("container %s of Compose project %s is not ours and is stopped; it stays as it is", nameOf(c), a.App))
	}
	theirs := slices.DeleteFunc(slices.Clone(p.running), func(c container.Summary) bool { return !b.foreign(c) })
	says := fmt.Sprintf("a Compose project %s runs here that gitring did not start (%s)", a.App, names(theirs))
	if len(theirs) == 0 {
		theirs = returning
		says = fmt.Sprintf("a stopped Compose project %s is started again with the engine, beside the app (restart: always of %s)", a.App, names(theirs))
	}
	if len(theirs) == 0 {
		return told, nil
	}
	if other := theirs[0].Labels[labelHost]; other != "" {
		return told, []*ring.Refusal{no(a, ring.ForeignProject, nil,
			fmt.Sprintf("an app %s of host %s is on this engine (%s)", a.App, other, names(theirs)),
			fmt.Sprintf("give the app another name on one of the two hosts; if this host was %s before, write host: %s in its configuration again", other, other))}
	}
	r := no(a, ring.ForeignProject, nil, says, "")
	r.Hint = adoptOr(a.App) + down(theirs) + "; then the next look starts the app on them"
	for _, f := range b.foldersOf(a, p) {
		r.Hint += fmt.Sprintf("; its data in %s has to move before that: %s", f.theirs, move(f.theirs, f.ours))
	}
	for _, v := range b.anonymousOf(a, p) {
		r.Hint += fmt.Sprintf("; what %s has in %s is in an anonymous volume that the app would not find, so before that %s", v.service, v.target, v.declare())
	}
	return told, []*ring.Refusal{r}
}

// isSelf reports whether gitring itself runs in a container, also where its short ID is all
// that is known.
func (b beside) isSelf(c container.Summary) bool {
	return len(b.self) >= shortID && strings.HasPrefix(c.ID, b.self)
}

// shortID is how many digits of its ID a container has as its host name.
const shortID = 12

// ofSelf refuses the app whose container gitring runs in: whoever replaces that container
// ends in the middle of it, and nobody is left who would begin the next one.
func (b beside) ofSelf(a ring.Action, c container.Summary) *ring.Refusal {
	at := ring.Place{}
	if s, ok := a.Of.Service(c.Labels[composeService]); ok {
		at = s.Place("image")
	}
	return no(a, ring.Self, &at,
		fmt.Sprintf("gitring itself runs in container %s of this app, and cannot replace the container that it runs in", nameOf(c)),
		"leave gitring's own Compose file out with exclude: in gitring.yaml, and upgrade gitring with docker compose up -d in its folder")
}

// adoptOr is the other way to go on with a project that runs.
func adoptOr(app string) string {
	return fmt.Sprintf("gitring adopt %s --reason '…' takes it over as it runs; or ", app)
}

// down is how to stop a Compose project without touching what it keeps.
func down(cs []container.Summary) string {
	in := ""
	if dir := cs[0].Labels[composeWorkingDir]; dir != "" {
		in = " in " + dir
	}
	return "run docker compose down" + in + ", never with -v: the volumes stay"
}

// A volumeUse is a volume of the app with the first mount that asks for it.
type volumeUse struct {
	ring.Volume
	at *ring.Place
}

// mountedVolumes are the named volumes that services mount, by key. Those that
// stand for anonymous ones are nobody else's.
func mountedVolumes(app *ring.App) []volumeUse {
	var out []volumeUse
	for i := range app.Services {
		s := &app.Services[i]
		for _, m := range s.Spec.Mounts {
			known := slices.ContainsFunc(out, func(u volumeUse) bool { return u.Key == m.Source })
			if m.Kind != ring.MountVolume || known || strings.Contains(m.Source, ring.SlotMark) {
				continue
			}
			at := s.Place("volumes." + m.Target)
			u := volumeUse{ring.Volume{Key: m.Source}, &at}
			for _, v := range app.Volumes {
				if v.Key == m.Source {
					u.Volume = v
				}
			}
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b volumeUse) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// mayTakeOver reports whether a volume is of an app of this host and source that gitring
// runs or ran. One that Compose made is the app's as long as that was taken over and runs.
func (b beside) mayTakeOver(made map[string]string, source string, p project) bool {
	if made[labelApp] == "" {
		return p.ours && len(p.running) > 0 && !slices.ContainsFunc(p.running, func(c container.Summary) bool {
			return c.Labels[labelSource] != source
		})
	}
	return made[labelHost] == b.host && made[labelSource] == source && (p.ours || len(p.running) == 0)
}

// volume judges one volume of the app: a missing one, one that is here under
// another name, one that is somebody else's.
func (b beside) volume(a ring.Action, v volumeUse) []*ring.Refusal {
	name := v.EngineName(a.App)
	i := slices.IndexFunc(b.volumes, func(x *volume.Volume) bool { return x.Name == name })
	if i < 0 && v.External != "" {
		return one(no(a, ring.BadValue, v.at, fmt.Sprintf("volume %s is external and not on this host", name),
			"docker volume create "+name+", or take external out, and gitring makes it"))
	}
	if i < 0 && (v.From == ring.FromNone || slices.Contains(a.Of.Empty, keptVolume(name))) {
		return nil // its author wants an empty one
	}
	if i < 0 {
		return b.elsewhere(a, v, name)
	}
	owner := cmp.Or(b.volumes[i].Labels[labelApp], b.volumes[i].Labels[composeProject])
	if owner == "" || owner == a.App {
		return nil
	}
	p := b.project(owner)
	if v.From == owner && hadVolume(a.Was, name) {
		return nil // it was taken over, and whose it was may have left since
	}
	if v.From == owner && b.mayTakeOver(b.volumes[i].Labels, a.Of.Source, p) {
		return nil // one writer at a time is for the one who decides
	}
	if !b.sameProject(a.Of, b.volumes[i].Labels, p) {
		hint := "use a volume of the app's own, or one of no project, which docker volume create makes; one app never mounts another's"
		if v.External == "" && b.mayTakeOver(b.volumes[i].Labels, a.Of.Source, p) { // a renamed app, and a name: that stayed
			hint = fmt.Sprintf("to take the data over, where app %s has become %s: volumes: {%s: {x-gitring: {from: %s}}}; else %s", owner, a.App, v.Key, owner, hint)
		}
		return one(no(a, ring.PolicyDenied, v.at, fmt.Sprintf("volume %s belongs to project %s", name, owner), hint))
	}
	if len(p.running) > 0 {
		hint := down(p.running)
		if p.ours {
			hint = fmt.Sprintf("it is an app of this host: take it out of the commit first, and %s in the next one", a.App)
		}
		if other := p.running[0].Labels[labelHost]; other != "" && other != b.host {
			hint = fmt.Sprintf("it is an app of host %s on this engine: take it out of what that host follows first, or use a volume of the app's own; if this host was %s before, write host: %s in its configuration again", other, other, other)
		}
		return one(no(a, ring.ForeignProject, v.at, fmt.Sprintf("project %s runs here on volume %s (%s)", owner, name, names(p.running)), hint))
	}
	return nil
}

// partsOfVolumes refuses mounts of a part of a volume on an engine that is too old for them.
func (b beside) partsOfVolumes(a ring.Action) (all []*ring.Refusal) {
	if can(b.api, VolumeParts) {
		return nil
	}
	for i := range a.Of.Services {
		s := &a.Of.Services[i]
		for _, m := range s.Spec.Mounts {
			if m.Kind != ring.MountVolume || m.Subpath == "" {
				continue
			}
			at := s.Place("volumes." + m.Target)
			all = append(all, no(a, ring.Unsupported, &at,
				fmt.Sprintf("services.%s mounts %s of volume %s at %s, which needs Docker 26 (API %s), and this engine has API %s", s.Name, m.Subpath, m.Source, m.Target, since(VolumeParts), b.api),
				"update the engine, or mount the whole volume"))
		}
	}
	return all
}

// hadVolume reports whether the app in force has a volume by a name.
func hadVolume(was *ring.App, name string) bool {
	return was != nil && slices.ContainsFunc(mountedVolumes(was), func(u volumeUse) bool { return u.EngineName(was.Name) == name })
}

// loose tells, when an app first asks for it, of a volume of its name that nobody says
// whose it is, as Compose warns of one: it is used as it is.
func (b beside) loose(a ring.Action, v volumeUse) []string {
	name := v.EngineName(a.App)
	if hadVolume(a.Was, name) || !unlabelled(a.App, v, b.volumes) {
		return nil
	}
	return []string{looseSays(name)}
}

// elsewhere looks for the volume that the app means, where one under its own
// name would be made anew.
func (b beside) elsewhere(a ring.Action, v volumeUse, name string) []*ring.Refusal {
	for _, x := range b.volumes {
		owner := x.Labels[composeProject]
		if x.Labels[composeVolume] != v.Key || owner == "" || owner == a.App || !b.sameProject(a.Of, x.Labels, b.project(owner)) {
			continue
		}
		if other := x.Labels[labelHost]; other != "" && other != b.host { // no name in a Compose file brings that host's data here
			return one(no(a, ring.VolumeElsewhere, v.at,
				fmt.Sprintf("volume %s of this app is here as %s, of app %s of host %s; the app would begin with an empty %s", v.Key, x.Name, owner, other, name),
				fmt.Sprintf("if host %s is another gitring on this engine, that volume stays its own: docker volume create %s, and this app begins empty; if this host was %s before, write host: %s in its configuration again", other, name, other, other)))
		}
		return one(no(a, ring.VolumeElsewhere, v.at,
			fmt.Sprintf("volume %s of this project is here as %s, of project %s; the app would begin with an empty %s", v.Key, x.Name, owner, name),
			fmt.Sprintf("write name: %s at the top of the Compose file, or volumes: {%s: {external: true, name: %s}}; to begin empty: docker volume create %s", owner, v.Key, x.Name, name)))
	}
	return nil
}

// network judges one network that services join.
func (b beside) network(a ring.Action, n networkUse) []*ring.Refusal {
	name := n.EngineName(a.App)
	i := slices.IndexFunc(b.networks, func(x network.Summary) bool { return x.Name == name })
	switch {
	case i < 0 && n.External != "" && !slices.Contains(a.Coming, name):
		says, hint := fmt.Sprintf("network %s is external and not on this host", name), "docker network create "+name+", or take external out, and gitring makes it"
		if maker := a.Makers[name]; maker != "" { // one made by hand would keep the maker out
			says, hint = says+" yet", fmt.Sprintf("app %s of this commit makes it, and this app follows by itself; see that %s is not refused", maker, maker)
		}
		return one(no(a, ring.BadValue, n.at, says, hint))
	case i < 0:
		return nil
	case n.External != "" && b.networks[i].Scope == swarmScope && !b.networks[i].Attachable:
		return one(no(a, ring.BadValue, n.at, fmt.Sprintf("network %s takes Swarm services only", name),
			"make it anew with docker network create --driver overlay --attachable "+name))
	case n.External != "":
		return nil
	}
	owner := cmp.Or(b.networks[i].Labels[labelApp], b.networks[i].Labels[composeProject])
	if owner == "" && !hadNetwork(a.Was, name) { // Compose refuses it too: who else is on it, nobody knows
		return one(no(a, ring.BadValue, n.at, fmt.Sprintf("network %s is here, made by neither gitring nor Compose", name),
			fmt.Sprintf("to join it write networks: {%s: {external: true, name: %s}}; if nobody needs it: docker network rm %s, and gitring makes the app's own", n.Key, name, name)))
	}
	if owner == "" || owner == a.App {
		return nil
	}
	r := no(a, ring.PolicyDenied, n.at, fmt.Sprintf("network %s belongs to project %s", name, owner),
		fmt.Sprintf("to join it write networks: {%s: {external: true, name: %s}}; else give the app's own another name", n.Key, name))
	if b.networks[i].Labels[labelHost] == b.host {
		r.Owner = owner // a network goes with its app
	}
	return one(r)
}

// hadNetwork reports whether the app in force is on a network already.
func hadNetwork(was *ring.App, name string) bool {
	return was != nil && slices.ContainsFunc(joinedNetworks(was), func(n networkUse) bool {
		return n.EngineName(was.Name) == name
	})
}

// swarmScope is the scope of networks that span the hosts of a Swarm.
const swarmScope = "swarm"

// A networkUse is a network of the app with the first service that joins it.
type networkUse struct {
	ring.Network
	at *ring.Place
}

func joinedNetworks(app *ring.App) []networkUse {
	var out []networkUse
	for i := range app.Services {
		s := &app.Services[i]
		for _, j := range s.Spec.Networks {
			n, ok := app.Network(j.Network)
			if !ok || slices.ContainsFunc(out, func(u networkUse) bool { return u.Key == n.Key }) {
				continue
			}
			at := s.Place("networks." + n.Key)
			out = append(out, networkUse{n, &at})
		}
	}
	slices.SortFunc(out, func(a, b networkUse) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// dataPaths are the folders that admission has to know the filling of: those
// of the app, and those of the app in force.
func dataPaths(a ring.Action, root string) []string {
	var out []string
	for _, app := range []*ring.App{a.Of, a.Was} {
		if app == nil {
			continue
		}
		for _, source := range dataSources(app) {
			out = append(out, dataPath(app, root, source))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func dataSources(app *ring.App) []string {
	var out []string
	for _, s := range app.Services {
		for _, m := range s.Spec.Mounts {
			if m.Kind == ring.MountData || m.Kind == ring.MountSeed {
				out = append(out, m.Source)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func dataPath(app *ring.App, root, source string) string {
	return filepath.Join(cmp.Or(app.DataRoot, root), source)
}

// dataOfForce looks whether data of the app in force would stay behind, because
// the app or its data root is somewhere else now.
func (b beside) dataOfForce(a ring.Action) []*ring.Refusal {
	if a.Was == nil {
		return nil
	}
	var all []*ring.Refusal
	wanted := dataSources(a.Of)
	for _, source := range dataSources(a.Was) {
		now := source
		if rel, err := filepath.Rel(a.Was.Path, source); err == nil && filepath.IsLocal(rel) {
			now = path.Join(a.Of.Path, rel)
		}
		was, is := dataPath(a.Was, b.root, source), dataPath(a.Of, b.root, now)
		if was == is || !slices.Contains(wanted, now) || b.folders[is] == filled || slices.Contains(a.Of.Empty, keptData(is)) {
			continue
		}
		kept := slices.Contains(a.Kept, keptData(was))
		switch {
		case b.folders[was] == filled:
			all = append(all, no(a, ring.VolumeElsewhere, dataPlace(a.Of, now),
				fmt.Sprintf("the app's data is in %s, and it would begin with an empty %s", was, is),
				moveStopped(a.App, was, is)))
		case b.folders[was] == absent && b.folders[is] == absent && kept:
			all = append(all, no(a, ring.VolumeElsewhere, dataPlace(a.Of, now),
				fmt.Sprintf("the app's data was in %s, which is gone, and %s is not there either", was, is),
				fmt.Sprintf("bring it back (is its disk mounted?) and move it to %s; to begin empty: mkdir -p %s", is, is)))
		}
	}
	return all
}

// moveStopped is how a folder is moved that instances of an app write.
func moveStopped(app, from, to string) string {
	return fmt.Sprintf("stop gitring, docker stop $(docker ps -q -f label=%s=%s), %s, start gitring", labelApp, app, move(from, to))
}

func move(from, to string) string {
	return fmt.Sprintf("mkdir -p %s && mv -T %s %s", filepath.Dir(to), from, to)
}

func dataPlace(app *ring.App, source string) *ring.Place {
	for i := range app.Services {
		s := &app.Services[i]
		for _, m := range s.Spec.Mounts {
			if m.Source == source && (m.Kind == ring.MountData || m.Kind == ring.MountSeed) {
				at := s.Place("volumes." + m.Target)
				return &at
			}
		}
	}
	return nil
}

// dataOfOthers looks for a project of this folder whose containers have the
// app's data folders beside its Compose file, where Compose puts them.
func (b beside) dataOfOthers(a ring.Action) []*ring.Refusal {
	var all []*ring.Refusal
	for _, name := range b.projects() {
		p := b.project(name)
		if p.ours || name != a.App && !b.evident(a.Of, p) {
			continue
		}
		for _, f := range b.foldersOf(a, p) {
			all = append(all, no(a, ring.VolumeElsewhere, dataPlace(a.Of, f.source),
				fmt.Sprintf("Compose project %s keeps the app's data in %s, and the app would begin with an empty %s", name, f.theirs, f.ours),
				fmt.Sprintf("%s; then %s; to begin empty: docker rm the containers of project %s", down(p.all()), move(f.theirs, f.ours), name)))
		}
		for _, v := range b.anonymousOf(a, p) {
			at := v.at
			all = append(all, no(a, ring.VolumeElsewhere, &at,
				fmt.Sprintf("Compose project %s keeps what %s has in %s in an anonymous volume, and the app would begin with an empty %s", name, v.service, v.target, v.ours),
				fmt.Sprintf("%s; to begin empty: docker rm the containers of project %s", v.declare(), name)))
		}
	}
	return all
}

// A volumePair is an anonymous volume of Compose's and the one of ours that
// would be made in its stead.
type volumePair struct {
	service, target, theirs, ours string
	at                            ring.Place
}

// declare is how an anonymous volume is kept: it has no other name than its own.
func (v volumePair) declare() string {
	return fmt.Sprintf("write volumes: {%s-data: {external: true, name: %s}} and mount %s-data at %s", v.service, v.theirs, v.service, v.target)
}

// anonymousOf are the anonymous volumes of p's containers where the app would
// begin with new ones. Once such a container is removed, nothing says whose they were.
func (b beside) anonymousOf(a ring.Action, p project) []volumePair {
	var out []volumePair
	for _, c := range p.all() {
		s, ok := a.Of.Service(c.Labels[composeService])
		if !ok || !b.foreign(c) || c.Labels[composeOneOff] == "True" {
			continue
		}
		a.Slot, _ = strconv.Atoi(c.Labels[composeNumber])
		for _, m := range a.Of.Mounts(&s) {
			i := slices.IndexFunc(c.Mounts, func(x container.MountPoint) bool {
				return x.Type == mount.TypeVolume && x.Destination == m.Target && anonymousName.MatchString(x.Name)
			})
			if i < 0 || m.Kind != ring.MountVolume || !strings.Contains(m.Source, ring.SlotMark) {
				continue
			}
			ours := volumeOf(b.host, a, m.Source).Name
			if !slices.ContainsFunc(b.volumes, func(x *volume.Volume) bool { return x.Name == ours }) {
				out = append(out, volumePair{s.Name, m.Target, c.Mounts[i].Name, ours, s.Place("volumes." + m.Target)})
			}
		}
	}
	return out
}

// anonymousName is what engines call a volume that nobody named.
var anonymousName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// A folderPair is one data folder at Compose's place and at ours.
type folderPair struct{ source, theirs, ours string }

// foldersOf are the app's data folders that are missing or empty while
// containers of p mount the same path beside their Compose file.
func (b beside) foldersOf(a ring.Action, p project) []folderPair {
	var out []folderPair
	wanted := dataSources(a.Of)
	for _, c := range p.all() {
		dir := c.Labels[composeWorkingDir]
		if !b.foreign(c) || !filepath.IsAbs(dir) {
			continue
		}
		for _, m := range c.Mounts {
			rel, err := filepath.Rel(dir, m.Source)
			source := path.Join(a.Of.Path, rel)
			f := folderPair{source, m.Source, dataPath(a.Of, b.root, source)}
			if m.Type != mount.TypeBind || err != nil || !slices.Contains(wanted, source) || f.theirs == f.ours ||
				b.folders[f.ours] == filled || inForce(a, b.root, f.ours) || slices.Contains(out, f) {
				continue
			}
			out = append(out, f)
		}
	}
	return out
}

// inForce reports whether the app in force has this data folder: what it holds,
// nothing included, is ours.
func inForce(a ring.Action, root, folder string) bool {
	if a.Was == nil {
		return false
	}
	return slices.ContainsFunc(dataSources(a.Was), func(source string) bool { return dataPath(a.Was, root, source) == folder })
}

// no is a refusal of the action's app.
func no(a ring.Action, code ring.Code, at *ring.Place, says, hint string) *ring.Refusal {
	r := &ring.Refusal{Code: code, Commit: a.Commit, App: a.App, Says: says, Hint: hint}
	if at != nil {
		r.File, r.Line = at.File, at.Line
	}
	if r.File == "" && len(a.Of.Files) > 0 {
		r.File = a.Of.Files[0]
	}
	return r
}

func one(r *ring.Refusal) []*ring.Refusal { return []*ring.Refusal{r} }
