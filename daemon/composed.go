package daemon

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// composing is what is handed back of each service of an app depends on besides the
// plan: the containers that run.
func composing(w *reconcile.World, app *ring.App, dataRoot string) map[string]ring.Composing {
	first, theirs, ours := map[string]string{}, map[string]bool{}, map[string]bool{}
	for i := range w.Seen.Instances {
		in := &w.Seen.Instances[i]
		service, slot := in.Service, in.Slot
		row, adopted := w.Facts.Adopted[in.ID]
		if adopted {
			service, slot = row.Service, row.Slot
		}
		if !adopted && in.App != app.Name || adopted && row.App != app.Name {
			continue
		}
		theirs[service], ours[service] = theirs[service] || adopted, ours[service] || !adopted
		if slot == 1 && in.Live() {
			first[service] = in.ID
		}
	}
	out := map[string]ring.Composing{}
	for i := range app.Services {
		name := app.Services[i].Name
		out[name] = ring.Composing{DataRoot: dataRoot, Adopted: theirs[name] && !ours[name], Owners: first}
	}
	return out
}

// images are the names by which Compose looks for the images of the services.
func (h *handback) images() map[string]string {
	out := map[string]string{}
	for i := range h.app.Services {
		s := &h.app.Services[i]
		out[s.Name] = cmp.Or(s.HandedImage(h.by[s.Name]), s.Spec.Image)
	}
	return out
}

// madeAnew are the services whose containers a plain docker compose up would make
// anew, each with why.
func madeAnew(app *ring.App, by map[string]ring.Composing, have []runtime.Composed) map[string]string {
	out := map[string]string{}
	for i := range app.Services {
		s := &app.Services[i]
		if s.Kind.Ends() {
			continue // not named to Compose
		}
		hash, why := app.ComposeHash(s, by[s.Name])
		i := slices.IndexFunc(have, func(c runtime.Composed) bool { return c.Service == s.Name && !c.Is(hash) })
		switch {
		case i < 0 && why == "":
		case why != "":
			out[s.Name] = why
		case have[i].Hash != hash:
			out[s.Name] = changedSince
		case have[i].Image == "":
			out[s.Name] = "its container does not name the image it was made of"
		default:
			out[s.Name] = fmt.Sprintf("its container runs %.19s, and %s is %.19s now", have[i].Image, cmp.Or(s.HandedImage(by[s.Name]), s.Spec.Image), cmp.Or(have[i].Now, "not on this host"))
		}
	}
	return out
}

const changedSince = "its container was made by an earlier release of gitring, or what Compose takes into its hash was changed in place since"
