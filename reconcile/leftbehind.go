package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// An app, a service or a volume under another name has a volume under another name, and
// that would begin empty beside the data. Compose begins it so without a word.

// volumeOf is a named volume that a service writes.
type volumeOf struct {
	app, key, engine string
	image, target    string // of the service, and where it mounts the volume
	meant            bool   // its author says which volume it is, or that it begins empty
	from             string // the app that it is taken over from; "" for none
	place            ring.Place
}

// RefuseLeftBehind takes the apps out of a plan that would begin a volume empty while the
// same plan gives up one with the same image and mount point. The app that has it keeps
// what is in force. It is a function of the plan, of what is in force, by app, of the
// volumes that apps were given once, and of which apps are in one hand: who may write one
// folder keeps no app of others by it.
func RefuseLeftBehind(
	plan *ring.Plan, inForce map[string]ring.InForce, were map[string]ring.Kept, oneHand func(a, b *ring.App) bool,
) []*ring.Refusal {
	known, given := map[string]bool{}, []volumeOf(nil)
	for name := range were {
		if volume, ok := strings.CutPrefix(name, "volume "); ok {
			known[volume] = true
		}
	}
	for _, name := range sortedKeys(inForce) {
		f := inForce[name]
		for _, v := range volumesOf(&f.App) {
			known[v.engine] = true
			if f.App.Source == plan.Source && !f.Leaving {
				given = append(given, v)
			}
		}
	}
	kept, has := map[string]bool{}, map[string]bool{}
	for i := range plan.Apps {
		for _, v := range volumesOf(&plan.Apps[i]) {
			kept[v.engine], has[v.app+" "+v.engine] = true, true
		}
	}
	for name := range plan.Refused { // what is refused keeps what it has
		if f, ok := inForce[name]; ok {
			for _, v := range volumesOf(&f.App) {
				kept[v.engine] = true
			}
		}
	}
	given = slices.DeleteFunc(given, func(v volumeOf) bool { return kept[v.engine] })
	refused := map[string]*ring.Refusal{}
	for i := range plan.Apps {
		app := &plan.Apps[i]
		for _, v := range volumesOf(app) {
			if has[v.from+" "+v.engine] && refused[app.Name] == nil {
				refused[app.Name] = &ring.Refusal{
					Code: ring.Conflict, Commit: plan.Commit, App: app.Name, File: v.place.File, Line: v.place.Line,
					Says: say("volume %s is taken over from app %s, which has it in this commit still", v.engine, v.from),
					Hint: say("take it out of app %s, or mount another volume here", v.from),
				}
			}
			if known[v.engine] || v.meant || refused[app.Name] != nil {
				continue
			}
			at := slices.IndexFunc(given, func(old volumeOf) bool {
				f := inForce[old.app]
				return old.image == v.image && old.target == v.target && oneHand(app, &f.App)
			})
			if at < 0 {
				continue
			}
			old := given[at]
			refused[app.Name] = leftBehind(plan, app, v, old)
			if f, ok := inForce[old.app]; ok && old.app != app.Name {
				stays := *refused[app.Name]
				stays.App, stays.File, stays.Line = old.app, "", 0
				stays.Hint = say("what app %s says in %s decides: %s", app.Name, v.place.File, stays.Hint)
				if next := slices.IndexFunc(plan.Apps, func(a ring.App) bool { return a.Name == old.app }); next >= 0 {
					stays.File = firstOf(plan.Apps[next].Files)
				}
				if refused[old.app] == nil {
					refused[old.app] = &stays
					plan.Refuse(old.app, &stays, f.App)
				}
			}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	var all []*ring.Refusal
	plan.Apps = slices.DeleteFunc(slices.Clone(plan.Apps), func(a ring.App) bool {
		r := refused[a.Name]
		if r != nil {
			plan.Refuse(a.Name, r, a)
		}
		return r != nil
	})
	for _, name := range sortedKeys(refused) {
		all = append(all, refused[name])
	}
	return all
}

func leftBehind(plan *ring.Plan, app *ring.App, v, old volumeOf) *ring.Refusal {
	r := &ring.Refusal{
		Code: ring.VolumeLeftBehind, Commit: plan.Commit, App: app.Name, File: v.place.File, Line: v.place.Line,
		Says: say("VOLUME %s WOULD BEGIN EMPTY: app %s has the data in volume %s, which this commit gives up", v.engine, old.app, old.engine),
		Hint: say("to take the data over: volumes: {%s: {x-gitring: {from: %s}}}; to begin empty: from: none", scalar(v.key), old.app),
	}
	if ring.VolumeName(old.app, v.key) != old.engine { // under another key, or with a name of its own
		from := ""
		if old.app != app.Name {
			from = say(", x-gitring: {from: %s}", old.app)
		}
		r.Hint = say("to take the data over: volumes: {%s: {name: %s%s}}; to begin empty: volumes: {%s: {x-gitring: {from: none}}}", scalar(v.key), scalar(old.engine), from, scalar(v.key))
	}
	return r
}

func takenFrom(app *ring.App, v ring.Volume) string {
	if v.From == app.Name || v.From == ring.FromNone {
		return ""
	}
	return v.From
}

// volumesOf are the named volumes that the services of an app write, but for those that
// somebody else makes.
func volumesOf(app *ring.App) (out []volumeOf) {
	for i := range app.Services {
		s := &app.Services[i]
		for _, m := range s.Spec.Mounts {
			at := slices.IndexFunc(app.Volumes, func(v ring.Volume) bool { return v.Key == m.Source })
			if m.Kind != ring.MountVolume || m.ReadOnly || at < 0 {
				continue
			}
			v := app.Volumes[at]
			out = append(out, volumeOf{
				app: app.Name, key: v.Key, engine: v.EngineName(app.Name), image: repository(s.Spec.Image), target: m.Target,
				meant: v.From == ring.FromNone || v.External != "", from: takenFrom(app, v), place: s.Place("volumes." + m.Target),
			})
		}
	}
	return out
}
