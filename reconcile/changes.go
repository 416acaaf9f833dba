package reconcile

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// sameService says that nothing of a service changed, in its version or in place.
func sameService(a, b *ring.Service) bool {
	x, y := *a, *b
	x.Changed, y.Changed = "", ""
	x.Line, y.Line = 0, 0
	return reflect.DeepEqual(x, y) || sameJSON(x, y)
}

// Differs names what of a service's version differs, as people read it:
// "image sha256:a… -> sha256:b…, env LOG_LEVEL, file conf/nginx.conf". Values
// of the environment are never named.
func Differs(oldApp *ring.App, old *ring.Service, newApp *ring.App, s *ring.Service) string {
	var out []string
	a, b := old.Spec, s.Spec
	if old.Pin.Digest() != s.Pin.Digest() || a.Image != b.Image {
		out = append(out, "image "+imageMove(old, s))
	}
	out = append(out, keysMoved("env", a.Environment, b.Environment)...)
	out = append(out, keysMoved("label", a.Labels, b.Labels)...)
	out = append(out, mountsMoved(a.Mounts, b.Mounts)...)
	out = append(out, networksMoved(oldApp, newApp, b.Networks)...)
	out = append(out, volumesMoved(oldApp, newApp, b.Mounts)...)
	out = append(out, leadersMoved(oldApp, newApp, &b)...)
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if x.Field(i).IsZero() && y.Field(i).IsZero() {
			continue // most are, and to look closer costs
		}
		f := x.Type().Field(i)
		switch f.Name {
		case "Image", "Environment", "Labels", "Mounts":
			continue
		}
		if !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

func imageMove(old, s *ring.Service) string {
	x, y := short(old.Pin), short(s.Pin)
	if old.Spec.Image != s.Spec.Image {
		x, y = old.Spec.Image, s.Spec.Image
	}
	return fmt.Sprintf("%s -> %s", x, y)
}

func short(p ring.Pin) string {
	d := p.Digest()
	if len(d) > len("sha256:")+8 {
		return d[:len("sha256:")+8]
	}
	return d
}

// keysMoved names the keys whose value differs.
func keysMoved(word string, a, b map[string]string) []string {
	keys := map[string]bool{}
	for k, v := range a {
		if w, ok := b[k]; !ok || w != v {
			keys[k] = true
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys[k] = true
		}
	}
	var out []string
	for _, k := range sortedKeys(keys) {
		out = append(out, word+" "+k)
	}
	return out
}

func mountsMoved(a, b []ring.Mount) []string {
	before, after := map[string]ring.Mount{}, map[string]ring.Mount{}
	keys := map[string]bool{}
	for _, m := range a {
		before[m.Target] = m
		keys[m.Target] = true
	}
	for _, m := range b {
		after[m.Target] = m
		keys[m.Target] = true
	}
	var out []string
	for _, k := range sortedKeys(keys) {
		x, y := before[k], after[k]
		switch {
		case x == y:
		case x.Kind == ring.MountContent && y.Kind == ring.MountContent:
			out = append(out, "file "+strings.TrimPrefix(y.File+" at "+k, " at "))
		default:
			out = append(out, "mount "+k)
		}
	}
	return out
}

func networksMoved(oldApp, newApp *ring.App, joined []ring.Attachment) []string {
	var out []string
	for _, at := range joined {
		x, okX := oldApp.Network(at.Network)
		y, okY := newApp.Network(at.Network)
		if okX && okY && !reflect.DeepEqual(x, y) && x.Definition() != y.Definition() {
			out = append(out, "network "+at.Network)
		}
	}
	return out
}

// volumesMoved names what the mounts of a service now mean another thing on the host.
func volumesMoved(oldApp, newApp *ring.App, mounts []ring.Mount) []string {
	find := func(a *ring.App, key string) ring.Volume {
		for _, v := range a.Volumes {
			if v.Key == key {
				v.Labels = nil // they name no other bytes
				return v
			}
		}
		return ring.Volume{}
	}
	var out []string
	for _, m := range mounts {
		switch m.Kind {
		case ring.MountVolume:
			if !sameJSON(find(oldApp, m.Source), find(newApp, m.Source)) {
				out = append(out, "volume "+m.Source)
			}
		case ring.MountData, ring.MountSeed:
			if oldApp.DataRoot != newApp.DataRoot && !slices.Contains(out, "data root") {
				out = append(out, "data root")
			}
		}
	}
	return out
}

// leadersMoved names the services that a service is tied to or follows and that
// are replaced themselves.
func leadersMoved(oldApp, newApp *ring.App, spec *ring.Spec) []string {
	var out []string
	for _, name := range spec.Leaders() {
		x, okX := oldApp.Service(name)
		y, okY := newApp.Service(name)
		if okX && okY && x.Version != y.Version {
			out = append(out, "service "+name)
		}
	}
	return out
}

// Plan says what carrying out next would do on this host, and changes nothing.
// An image that was never resolved here is named as written.
func Plan(w World, next *ring.Plan, now time.Time) ring.Changes {
	t := newTurn(w, now)
	t.index()
	out := ring.Changes{Source: next.Source, Commit: next.Commit, Apps: []ring.AppChanges{}}
	if next.Refusal != nil {
		out.Refusals = []*ring.Refusal{next.Refusal}
		return out
	}
	for _, name := range sortedKeys(next.Refused) {
		out.Refusals = append(out.Refusals, next.Refused[name])
	}
	src := Source{Name: next.Source, Next: next}
	if s := t.source(next.Source); s != nil {
		src.Apply = s.Apply
	}
	present := t.present(next.Source)
	out.Awaiting = t.guard(&src, present)
	for i := range next.Apps {
		out.Apps = append(out.Apps, t.appChanges(&next.Apps[i]))
	}
	for _, name := range sortedKeys(present) {
		if _, ok := next.App(name); ok || next.Refused[name] != nil {
			continue
		}
		c := ring.AppChanges{App: name, Services: []ring.ServiceChange{}}
		for _, s := range present[name] {
			c.Services = append(c.Services, ring.ServiceChange{Service: s, Class: ring.ChangeRemove, Reason: "app " + name + " is not in the commit; volumes stay"})
		}
		out.Apps = append(out.Apps, c)
	}
	return out
}

func (t *turn) appChanges(next *ring.App) ring.AppChanges {
	have := t.Facts.Apps[next.Name].App
	out := ring.AppChanges{App: next.Name, Notes: next.Notes, Powers: next.Powers, Services: []ring.ServiceChange{}}
	app := *next
	app.Services = slices.Clone(next.Services)
	t.mark(&app)
	for _, i := range leadersFirst(&app) {
		s := &app.Services[i]
		old, known := have.Service(s.Name)
		p, ok := t.carry(&app, s, &have, &old, known)
		if s.Pin = p; ok && led(&app, s) {
			s.Version, s.Image = ring.VersionOf(&app, s, p), t.saysOfItself(&app, s, &old)
		}
	}
	for i := range app.Services {
		out.Services = append(out.Services, t.serviceChange(&have, &app, app.Services[i]))
	}
	for _, old := range have.Services {
		if _, ok := next.Service(old.Name); !ok {
			out.Services = append(out.Services, ring.ServiceChange{Service: old.Name, Class: ring.ChangeRemove, Reason: "not in the commit; volumes stay", From: old.Version})
		}
	}
	return out
}

func (t *turn) serviceChange(have, next *ring.App, s ring.Service) ring.ServiceChange {
	old, known := have.Service(s.Name)
	pinned := s.Pin.Image != ""
	out := ring.ServiceChange{Service: s.Name, From: old.Version, To: s.Version}
	switch {
	case s.Kind == ring.JobK && known && old.Version == s.Version && s.Job.Run != "always":
		out.Class = ring.ChangeNone
		return out
	case s.Kind == ring.JobK:
		out.Class, out.Reason = ring.ChangeCreate, "job runs"
		return out
	case !known:
		out.Class, out.Reason = ring.ChangeCreate, "new: image "+s.Spec.Image
		return out
	case old.Version == s.Version:
		if out.Reason = inPlace(&old, &s); out.Reason != "" {
			out.Class = ring.ChangeInPlace
			return out
		}
		out.Class = ring.ChangeNone
		return out
	}
	if !pinned {
		s.Pin, s.Image = old.Pin, old.Image // so that only what is written is compared
	}
	out.Class, out.Reason = ring.ChangeRoll, Differs(have, &old, next, &s)
	if !pinned {
		out.Reason = strings.TrimPrefix(out.Reason+", image "+s.Spec.Image+" to be resolved", ", ")
	}
	why := next.Alone(&s)
	if s.Rollout.Strategy == ring.Recreate {
		why = "strategy recreate"
	}
	if why != "" {
		out.Class = ring.ChangeRecreate
		out.Gap = fmt.Sprintf("from the stop of the old one (at most %s) until the new one is ready: %s", old.Grace(), why)
	}
	return out
}

// inPlace names what changes of a service without a new version.
func inPlace(a, b *ring.Service) string {
	var out []string
	if a.Replicas != b.Replicas {
		out = append(out, fmt.Sprintf("replicas %d -> %d", a.Replicas, b.Replicas))
	}
	for _, f := range []struct {
		name string
		a, b any
	}{
		{"kind", a.Kind, b.Kind},
		{"checks", a.Checks, b.Checks},
		{"rollout", a.Rollout, b.Rollout},
		{"restart", a.Restart, b.Restart},
		{"depends_on", a.DependsOn, b.DependsOn},
		{"job", a.Job, b.Job},
		{"share", a.Share, b.Share},
	} {
		if !sameJSON(f.a, f.b) {
			out = append(out, f.name)
		}
	}
	return strings.Join(out, ", ")
}

// sameJSON compares what a restart would read back: nil and empty are one.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
