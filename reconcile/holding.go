package reconcile

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// DataHost is what a host knows of data: by it plans are judged that would leave some
// behind.
type DataHost struct {
	InForce map[string]ring.InForce
	Names   map[string]ring.Name
	Kept    map[string]ring.Kept
	Left    map[string]ring.Left
	// Root is the host's data root; that of an app counts more.
	Root string
	// OneHand reports whether two apps of one source are in one hand: who may write one
	// folder keeps no app of others by it, and takes nothing from it.
	OneHand func(a, b *ring.App) bool
	// Folder reports whether a folder of the host is there, and whether it holds anything.
	Folder func(folder string) (there, holds bool)

	// wrong are, by app, the answers of the plan that cannot be carried out.
	wrong map[string]*ring.Refusal
}

// holding is a volume or a data folder that a service writes and that outlives it.
type holding struct {
	app, service  string
	image, target string // of the service, and where it mounts it
	// key is that of a volume. source is the path of a folder inside the commit, and root
	// what it lies below.
	key, source, root string
	name              string // as ring.Kept.Name
	meant             bool   // its author says what it is, or that it begins empty
	from              string // the app that it is taken over from by the Compose file; "" for none
	place             ring.Place
	commit            ring.SHA // that gave it up; "" for what is in force or planned
}

// makerOf is the app whose name is on a volume.
func (h *holding) makerOf() string { return cmp.Or(h.from, h.app) }

func (h *holding) isFolder() bool { return h.source != "" }

// placeOf is a folder of the host, or a volume by its name there.
func (h *holding) placeOf() string {
	_, where, _ := strings.Cut(h.name, " ")
	return where
}

// calledName is the holding in a sentence.
func (h *holding) calledName() string {
	if h.isFolder() {
		return "folder " + h.placeOf()
	}
	return "volume " + h.placeOf()
}

// holdingsOf are the named volumes and data folders that the services of an app write. An
// anonymous volume has no name by which anybody could ask for it again.
func holdingsOf(app *ring.App, root string) (out []holding) {
	for i := range app.Services {
		s := &app.Services[i]
		for _, m := range s.Spec.Mounts {
			if h, ok := holdingOf(app, root, m); ok {
				h.app, h.service, h.image, h.target = app.Name, s.Name, repositoryOf(s.Spec.Image), m.Target
				h.place = s.Place("volumes." + m.Target)
				out = append(out, h)
			}
		}
	}
	return out
}

func holdingOf(app *ring.App, root string, m ring.Mount) (h holding, ok bool) {
	switch {
	case m.ReadOnly:
		return h, false
	case m.Kind == ring.MountData || m.Kind == ring.MountSeed:
		h.source, h.root = m.Source, cmp.Or(app.DataRoot, root)
		h.name, h.meant = "data "+path.Join(h.root, m.Source), m.MustExist
		return h, true
	case m.Kind != ring.MountVolume || strings.Contains(m.Source, ring.SlotMark):
		return h, false
	}
	v := ring.Volume{Key: m.Source}
	if i := slices.IndexFunc(app.Volumes, func(v ring.Volume) bool { return v.Key == m.Source }); i >= 0 {
		v = app.Volumes[i]
	}
	h.key, h.name = v.Key, "volume "+v.EngineName(app.Name)
	h.meant = v.From == ring.FromNone || v.External != ""
	if v.From != app.Name && v.From != ring.FromNone {
		h.from = v.From
	}
	return h, true
}

// knownThings are all things of this host that were given to an app, or are in force.
func (d *DataHost) knownThings() map[string]bool {
	known := map[string]bool{}
	for name := range d.Kept {
		known[name] = true
	}
	for _, f := range d.InForce {
		for _, h := range holdingsOf(&f.App, d.Root) {
			known[h.name] = true
		}
	}
	return known
}

// plannedApps are, by name, the apps of a plan that have something, those among them that are
// refused and keep what is in force.
func (d *DataHost) plannedApps(plan *ring.Plan) map[string][]string {
	by := map[string][]string{}
	note := func(app *ring.App) {
		for _, h := range holdingsOf(app, d.Root) {
			if !slices.Contains(by[h.name], app.Name) {
				by[h.name] = append(by[h.name], app.Name)
			}
		}
	}
	for i := range plan.Apps {
		note(&plan.Apps[i])
	}
	for _, name := range sortedKeys(plan.Refused) {
		if f, ok := d.InForce[name]; ok {
			note(&f.App)
		}
	}
	return by
}

// givenUp is what apps in force have and a plan of their source does not.
func (d *DataHost) givenUp(plan *ring.Plan, kept map[string][]string) (out []holding) {
	for _, name := range sortedKeys(d.InForce) {
		f := d.InForce[name]
		if f.App.Source != plan.Source || f.Leaving {
			continue
		}
		for _, h := range holdingsOf(&f.App, d.Root) {
			if len(kept[h.name]) == 0 && d.mayHoldData(&h) {
				out = append(out, h)
			}
		}
	}
	return out
}

// leftFor is what apps had that left, or that they gave up before, and that one of a plan
// is like enough to have been meant for.
func (d *DataHost) leftFor(app *ring.App, kept map[string][]string) (out []holding) {
	for _, name := range sortedKeys(d.Left) {
		was := d.Left[name].App
		if was.Source != app.Source || !mayFollow(app, &was) {
			continue
		}
		for _, h := range holdingsOf(&was, d.Root) {
			if len(kept[h.name]) == 0 && !d.inForce(h.name) && d.mayHoldData(&h) {
				h.commit = d.Left[name].Commit
				out = append(out, h)
			}
		}
	}
	return out
}

func (d *DataHost) inForce(name string) bool {
	for _, f := range d.InForce {
		if slices.ContainsFunc(holdingsOf(&f.App, d.Root), func(h holding) bool { return h.name == name }) {
			return true
		}
	}
	return false
}

// mayHoldData reports whether a thing may hold data: an empty folder does not, nor one that
// nobody ever had. One that is gone may lie on a disk that is not mounted.
func (d *DataHost) mayHoldData(h *holding) bool {
	if !h.isFolder() || d.Folder == nil {
		return true
	}
	there, holds := d.Folder(h.placeOf())
	_, had := d.Kept[h.name]
	return holds || !there && had
}

// beginsEmpty reports whether a thing of a plan would be made here, empty.
func (d *DataHost) beginsEmpty(h *holding, known map[string]bool) bool {
	if known[h.name] {
		return false
	}
	if h.isFolder() && d.Folder != nil {
		there, _ := d.Folder(h.placeOf())
		return !there // whoever made it knows of it
	}
	return true
}

// mayFollow reports whether an app of a plan may be the one that left before: it has its
// name or its folder, or at least half of its services, by name and image. Many apps have
// a database of one image, and ask for nothing of each other.
func mayFollow(app, was *ring.App) bool {
	if app.Name == was.Name || path.Clean(app.Path) == path.Clean(was.Path) {
		return true
	}
	same := 0
	for i := range was.Services {
		s, ok := inForce(app, was.Services[i].Name)
		if ok && repositoryOf(s.Spec.Image) != "" && repositoryOf(s.Spec.Image) == repositoryOf(was.Services[i].Spec.Image) {
			same++
		}
	}
	return same > 0 && same*2 >= len(was.Services)
}

// pathWithin is a path inside the commit as the Compose file of an app says it.
func pathWithin(app *ring.App, source string) string {
	rel, err := filepath.Rel(path.Clean("/"+app.Path), path.Clean("/"+source))
	switch {
	case err != nil:
		return source
	case rel == ".." || strings.HasPrefix(rel, "../"):
		return rel
	}
	return "./" + rel
}

// repositoryOf is an image without its tag and digest, and without what Docker puts before
// the name of its own.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return strings.TrimPrefix(strings.TrimPrefix(image, "docker.io/"), "library/")
}
