package reconcile

import (
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// pinned is a volume of one node of a cluster: a service writes it and is pinned to that node.
// Under another pin it is another volume of that name, and an empty one.
type pinned struct {
	holding
	pin string // as written
}

// pinnedOf are the volumes that an app has on nodes. Where its image was not looked at yet, it
// has those that the image of the app before has.
func pinnedOf(app, before *ring.App) (out []pinned) {
	for _, s := range app.Services {
		pin := s.Spec.PinnedTo()
		if pin == "" {
			continue
		}
		if old, ok := before.Service(s.Name); ok && !s.Image.Known {
			s.Image = old.Image
		}
		for _, m := range app.Mounts(&s) {
			if m.Kind != ring.MountVolume || m.ReadOnly {
				continue
			}
			v := ring.Volume{Key: m.Source}
			if i := slices.IndexFunc(app.Volumes, func(v ring.Volume) bool { return v.Key == m.Source }); i >= 0 {
				v = app.Volumes[i]
			}
			at := s.Place("deploy.placement.constraints")
			out = append(out, pinned{holding{app: app.Name, service: s.Name, key: v.Key, name: "volume " + v.EngineName(app.Name), place: at}, pin})
		}
	}
	return out
}

// movedPin is the first volume that an app would begin empty on another node, and as which another
// plan has it; nil for none. What its author says begins empty does.
func movedPin(app, before *ring.App) (h, old *pinned) {
	had := pinnedOf(before, before)
	for _, h := range pinnedOf(app, before) {
		none := slices.ContainsFunc(app.Volumes, func(v ring.Volume) bool { return v.Key == h.key && v.From == ring.FromNone })
		i := slices.IndexFunc(had, func(o pinned) bool { return o.name == h.name && nodeOf(o.pin) != nodeOf(h.pin) })
		if i >= 0 && !none {
			return &h, &had[i]
		}
	}
	return nil, nil
}

// nodeOf is a pin without what may be written in several ways.
func nodeOf(pin string) string {
	by, node, _ := strings.Cut(pin, "==")
	return strings.ToLower(strings.TrimSpace(by) + "==" + strings.TrimSpace(node)) // as Swarm compares them
}

func nodeSays(h, old *pinned) string {
	return say("VOLUME %s WOULD BEGIN EMPTY: its data is where %s, and services.%s is pinned to %s", h.placeOf(), old.pin, h.service, h.pin)
}

func nodeHint(app *ring.App, h *pinned) string {
	hint := "keep the pin, or copy the data to the other node and mount it there as a volume of another name"
	if !slices.ContainsFunc(app.Volumes, func(v ring.Volume) bool { return v.Key == h.key }) {
		return hint // it is the image's
	}
	return hint + say("; to begin empty: volumes: {%s: {x-gitring: {from: none}}}", yamlScalar(h.key))
}

// refuseMoved refuses the apps of a plan that would leave a volume behind on another node.
func (d *DataHost) refuseMoved(plan *ring.Plan, refused map[string]*ring.Refusal) {
	for i := range plan.Apps {
		app := &plan.Apps[i]
		none := slices.Contains(plan.Data, ring.DataAnswer{App: app.Name, From: ring.FromNone})
		for _, name := range sortedKeys(d.InForce) {
			f := d.InForce[name]
			h, old := movedPin(app, &f.App)
			if h == nil || none || refused[app.Name] != nil {
				continue
			}
			refused[app.Name] = &ring.Refusal{
				Code: ring.VolumeLeftBehind, Commit: plan.Commit, App: app.Name, File: h.place.File, Line: h.place.Line,
				Says: nodeSays(h, old), Hint: nodeHint(app, h),
			}
			d.keepApp(plan, app, &old.holding, refused)
		}
	}
}
