package manifest

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

func (a *appReader) note(says string, args ...any) {
	a.notes = append(a.notes, fmt.Sprintf(says, args...))
}

func (a *appReader) noted(says string, args ...any) { a.noteOnce(fmt.Sprintf(says, args...)) }

// noteOnce adds a note that is not told yet: several services may read one file.
func (a *appReader) noteOnce(says string) {
	if !slices.Contains(a.notes, says) {
		a.notes = append(a.notes, says)
	}
}

// build makes the app of what compose-go understood.
func (a *appReader) build(p *types.Project) ring.App {
	app := ring.App{
		Name: a.name, Source: a.settings.Source, Commit: a.commit.SHA,
		Path: a.from.path, Files: a.from.files, Services: []ring.Service{},
		DataRoot: or2(a.settings.DataRoots[a.name], a.settings.DataRoots[""]),
	}
	if e := a.from.entry; e != nil {
		if len(e.files) > 0 {
			a.namesAnother(e.place.file)
		}
		app.NoPrune, app.Hold, app.Drift = e.noPrune, e.hold, e.drift
		for _, w := range e.after {
			app.After = append(app.After, w.AfterApp)
		}
	}
	b := &builderOf{appReader: a, project: p, extras: map[string]*extras{}, volumes: map[string]bool{}, networks: map[string]bool{}, hostFiles: map[string]ring.Place{}}
	b.joinOnce()
	names := sortedKeys(p.Services)
	for _, name := range names {
		b.extras[name] = a.extrasOf(name)
	}
	b.volumeFrom = a.volumesFrom()
	a.wound() // faults from here on are of what is said together: nothing of it is wrong by itself
	b.consistent()
	for _, name := range names {
		app.Services = append(app.Services, b.service(p.Services[name]))
	}
	app.Networks, app.Volumes = b.appNetworks(), b.appVolumes()
	for _, n := range app.Networks {
		if n.External == "" && b.project.Networks[n.Key].Attachable {
			app.Attachable = append(app.Attachable, n.Key)
		}
	}
	app.Places = b.ownPlaces()
	b.checkJoins(app)
	b.checkCron(app)
	b.checkBefore(app)
	b.checkAddresses(app)
	b.checkContainerIDs(app)
	routes := b.routes(&app)
	b.checkHostPorts(app, routes)
	b.checkWriters(app)
	b.addFronts(&app, routes)
	b.secondSet(&app)
	b.secretPlaces(&app)
	b.noCiphers(&app)
	app.Notes = a.notes
	if len(a.naming) > 0 {
		app.Naming = sortedKeys(a.naming)
	}
	return app
}

// ownPlaces are where the files say what the app's networks and volumes are.
func (a *appReader) ownPlaces() map[string]ring.Place {
	out := map[string]ring.Place{}
	for _, f := range a.files { // the later counts, as it does in a merge
		in := placesOf{}
		in.mapping("networks", f.root.get("networks"))
		in.mapping("volumes", f.root.get("volumes"))
		maps.Copy(out, in)
	}
	return out
}

// builderOf builds one app's services.
type builderOf struct {
	*appReader
	project *types.Project
	extras  map[string]*extras
	// volumes and networks that some service uses: others are not made. False is one
	// that is not declared.
	volumes, networks map[string]bool
	// hostFiles are where a config or secret names a file of the host, by service and target.
	hostFiles map[string]ring.Place
	// volumeFrom is x-gitring from of each volume that says it, as written.
	volumeFrom map[string]written
}

// entryPlace finds an entry of a service's list; the key itself when none fits,
// as for one port of a range.
func (a *appReader) entryPlace(service, key string, fits func(*node) bool) place {
	for _, f := range slices.Backward(a.files) {
		n, _, _ := f.root.at([]string{"services", service, key})
		if n.kind != list {
			continue
		}
		for _, it := range n.items {
			if fits(it) {
				return it.place
			}
		}
	}
	return a.place("services", service, key)
}

func labels(l types.Labels) map[string]string {
	if len(l) == 0 {
		return nil
	}
	return map[string]string(l)
}

func sortedSet(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	out := slices.Clone(words)
	sort.Strings(out)
	return slices.Compact(out)
}
