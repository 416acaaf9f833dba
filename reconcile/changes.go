package reconcile

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// sameService reports whether nothing of a service changed, in its version or in place.
// It is asked of every service at every look: what its instances run is not gone
// through, because one version has one spec.
func sameService(a, b *ring.Service) bool {
	if a.Version != b.Version || a.Version == "" && !sameJSON(a.Spec, b.Spec) {
		return false
	}
	x, y := a.Rollout, b.Rollout
	x.Back, y.Back = nil, nil
	return a.Name == b.Name && a.Kind == b.Kind && a.Replicas == b.Replicas && a.Written == b.Written && a.Pin == b.Pin &&
		a.Before == b.Before && a.Share == b.Share && a.File == b.File && a.Restart == b.Restart && x == y &&
		equalValues(a.Rollout.Back, b.Rollout.Back) && equalValues(a.Job, b.Job) && equalValues(a.Cron, b.Cron) && equalValues(a.Reload, b.Reload) && equalValues(a.Composed, b.Composed) &&
		sameList(a.DependsOn, b.DependsOn) && sameList(a.Checks, b.Checks) &&
		a.Image.Known == b.Image.Known && sameList(a.Image.Volumes, b.Image.Volumes) && equalValues(a.Image.Healthcheck, b.Image.Healthcheck)
}

// equalValues reports whether two values are equal. Most often they are one and the same.
func equalValues[T any](a, b *T) bool {
	return a == b || a != nil && b != nil && (surelyEqual(reflect.ValueOf(a), reflect.ValueOf(b)) || reflect.DeepEqual(a, b) || sameJSON(a, b))
}

// sameList is same for lists.
func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || surelyEqual(reflect.ValueOf(a), reflect.ValueOf(b)) || reflect.DeepEqual(a, b) || sameJSON(a, b))
}

// surelyEqual reports whether two values of one type are surely the same, as nearly all are: they
// are compared as they lie, where DeepEqual would remember its way.
func surelyEqual(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Int, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Pointer:
		return a.Pointer() == b.Pointer() || !a.IsNil() && !b.IsNil() && surelyEqual(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !surelyEqual(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.IsNil() != b.IsNil() || a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !surelyEqual(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if words, ok := a.Interface().(map[string]string); ok {
			return a.IsNil() == b.IsNil() && maps.Equal(words, b.Interface().(map[string]string))
		}
	}
	return false
}

func imageMove(old, s *ring.Service) string {
	x, y := shortDigest(old.Pin), shortDigest(s.Pin)
	if old.Spec.Image != s.Spec.Image {
		x, y = old.Spec.Image, s.Spec.Image
	}
	return x + " -> " + y
}

func shortDigest(p ring.Pin) string {
	d := p.Digest()
	if len(d) > len("sha256:")+8 {
		return d[:len("sha256:")+8]
	}
	return d
}

// tellValues gives the variables that differ their values, where everybody who reads the
// repository may read them.
func tellValues(fields []ring.FieldChange, from, to map[string]string) {
	for i := range fields {
		name, ok := strings.CutPrefix(fields[i].Field, "env ")
		if a, b := from[name], to[name]; ok && plainValue(name, a) && plainValue(name, b) {
			fields[i].Values = &ring.ValueChange{From: a, To: b}
		}
	}
}

var (
	secretName  = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|cred|auth|private|salt|seed|dsn|cookie|session|hash`)
	secretValue = regexp.MustCompile(`://[^/]*@|-----BEGIN`)
)

// plainValue reports whether a variable's value can be shown: it is short, of the commit
// and not of the host, and neither it nor its name looks like a secret's.
func plainValue(name, value string) bool {
	return len(value) <= 60 && !strings.ContainsAny(value, "\r\n\x1b") && !ring.HasSealed(value) && !secretName.MatchString(name) && !secretValue.MatchString(value)
}

// keysMoved names the keys whose value differs.
func keysMoved(word string, a, b map[string]string) []string {
	if maps.Equal(a, b) {
		return nil
	}
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
	if slices.Equal(a, b) {
		return nil
	}
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
		case x.Kind == ring.MountLive && y.Kind == ring.MountLive && x.Source == y.Source:
			out = append(out, "files of "+y.Source+" that are not reloaded")
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
		if okX && okY && !(x.IsDefault() && y.IsDefault()) && !reflect.DeepEqual(x, y) && x.Definition() != y.Definition() {
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
			if before, after := find(oldApp, m.Source), find(newApp, m.Source); !equalValues(&before, &after) {
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
	t := newDecider(w, now)
	t.indexSeen()
	out := ring.Changes{Source: next.Source, Commit: next.Commit, Apps: []ring.AppChanges{}, Decisions: next.Decisions, Policy: next.Policy}
	if next.Refusal != nil {
		out.Refusals = []*ring.Refusal{next.Refusal}
		return out
	}
	for _, name := range sortedKeys(next.Refused) {
		out.Refusals = append(out.Refusals, next.Refused[name])
	}
	src := Source{Name: next.Source, Next: next}
	if s := t.sourceNamed(next.Source); s != nil {
		src.Apply, src.Names = s.Apply, s.Names
	}
	present := t.servicesPresent(next.Source)
	out.Awaiting = t.guardReason(&src, present)
	for i := range next.Apps {
		if r := t.nameRefusal(&src, &next.Apps[i]); r != nil {
			out.Refusals = append(out.Refusals, r)
			continue
		}
		c := t.appChanges(&next.Apps[i])
		if s := t.transferReason(&src, c.App, &next.Apps[i], nil); !s.None() && src.Apply != ApplyCommit {
			c.Order = strings.TrimPrefix(c.Order+", "+s.Says, ", ")
		}
		out.Apps = append(out.Apps, c)
	}
	t.tellHandovers(next, out.Apps)
	for _, name := range sortedKeys(present) {
		if _, ok := next.App(name); ok || next.Refused[name] != nil {
			continue
		}
		c := ring.AppChanges{App: name, Services: []ring.ServiceChange{}}
		for _, s := range present[name] {
			c.Services = append(c.Services, ring.ServiceChange{Service: s, Class: ring.ChangeRemove, Reason: "app " + name + " is not in the commit; volumes stay"})
		}
		have := t.Facts.Apps[name].App
		orderChanges(c.Services, &have, &ring.App{})
		if src.Apply != ApplyCommit {
			c.Order = t.stayReason(&src, name).Says
		}
		out.Apps = append(out.Apps, c)
	}
	return out
}

func (t *Pass) appChanges(next *ring.App) ring.AppChanges {
	have, app := t.Facts.Apps[next.Name].App, t.pinnedAs(next)
	out := ring.AppChanges{App: next.Name, Notes: next.Notes, Powers: next.Powers, Services: []ring.ServiceChange{}}
	for i := range app.Services {
		out.Services = append(out.Services, t.serviceChange(&have, &app, &app.Services[i]))
	}
	out.Order = orderOfApps(&app)
	for _, old := range servicesGone(&have, next) {
		out.Services = append(out.Services, ring.ServiceChange{Service: old.Name, Class: ring.ChangeRemove, Reason: "not in the commit; volumes stay", From: old.Version})
	}
	orderChanges(out.Services, &have, &app)
	out.Notes = slices.Concat(out.Notes, newcomerNotes(&have, &app, out.Services))
	return out
}

// pinnedAs is an app of a plan with the pins and versions that it would have now. A
// service whose image is to be resolved first has neither.
func (t *Pass) pinnedAs(next *ring.App) ring.App {
	have, app := t.Facts.Apps[next.Name].App, *next
	app.Services = slices.Clone(next.Services)
	t.putMarks(&app)
	for _, i := range leadersFirst(&app) {
		s := &app.Services[i]
		old, known := inForce(&have, s.Name)
		p, ok := t.carriedPin(&app, s, &have, old, known)
		if s.Pin = p; ok && leadersPinned(&app, s) {
			s.Version, s.Image = ring.VersionOf(&app, s, p), t.saysOfItself(&app, s, old)
		}
	}
	return app
}

// servicesGone are the services that an app has now and not in its next plan.
func servicesGone(have, next *ring.App) (out []*ring.Service) {
	for i := range have.Services {
		old := &have.Services[i]
		if _, stays := inForce(next, old.Name); !stays {
			out = append(out, old)
		}
	}
	return out
}

// classified is what a plan means for a service, without words.
type classified struct {
	class  ring.Class
	known  bool   // the service is in force
	anew   bool   // its instances are made anew
	why    string // two of them may not overlap
	old, s *ring.Service
}

// classifyChange says what a plan means for a service. Where most of it is only counted,
// nothing is said of what differs.
func (t *Pass) classifyChange(have, next *ring.App, s *ring.Service) classified {
	c := classified{class: ring.ChangeCreate, s: s}
	c.old, c.known = inForce(have, s.Name)
	switch {
	case s.Kind == ring.JobK:
		if c.known && (len(runsBefore(next, s.Name)) > 0 || c.old.Version == s.Version && s.Job.Run != "always") {
			c.class = ring.ChangeNone
		}
		return c
	case !c.known:
		return c
	}
	if s.Pin.Image == "" {
		written := *s
		written.Pin, written.Image = c.old.Pin, c.old.Image // so that only what is written is compared
		c.s = &written
	}
	if c.anew = s.Pin.Image == "" || c.old.Version != s.Version; !c.anew {
		c.class = gravestClass(classDifferences(inPlace(c.old, c.s), false))
		return c
	}
	c.why = aloneReason(next, c.s)
	if c.why == "" && c.old.Kind == ring.Worker && !c.old.Share {
		if what := firstCommon(writesOf(have, c.old), writesOf(next, c.s)); what != "" {
			c.why = say("writable %s, which the version before does not share", what)
		}
	}
	switch {
	case s.Kind == ring.CronK:
		c.class = ring.ChangeInPlace
	case c.why != "":
		c.class = ring.ChangeRecreate
	default:
		c.class = ring.ChangeRoll
	}
	return c
}

// serviceChange is the same as people read it.
func (t *Pass) serviceChange(have, next *ring.App, s *ring.Service) ring.ServiceChange {
	c := t.classifyChange(have, next, s)
	out := ring.ServiceChange{Service: s.Name, From: c.old.Version, To: s.Version, Class: c.class}
	switch {
	case s.Kind == ring.JobK && len(runsBefore(next, s.Name)) > 0:
		out.Reason = "runs before " + strings.Join(runsBefore(next, s.Name), ", ")
		return out
	case s.Kind == ring.JobK && c.class == ring.ChangeCreate:
		out.Reason = "job runs"
		return out
	case s.Kind == ring.JobK:
		return out
	case !c.known:
		out.Reason = "new: image " + s.Spec.Image + comesFirst(s)
		return out
	}
	differ := inPlace(c.old, c.s)
	if c.anew {
		differ = append(versionDifferences(have, c.old, next, c.s), differ...)
	}
	if s.Pin.Image == "" {
		differ = markUnresolved(differ, s)
	}
	out.Fields, out.Reason = classDifferences(differ, c.why != ""), sayAll(differ)
	tellValues(out.Fields, c.old.Spec.Environment, c.s.Spec.Environment)
	switch {
	case c.anew && s.Kind == ring.CronK:
		out.Reason += "; from the next run on"
	case c.class == ring.ChangeRecreate:
		out.Gap, out.GapSeconds = t.recreateGap(next, c.old, c.s, c.why)
		out.Reason += comesFirst(s)
	case c.class == ring.ChangeRoll:
		out.Needs = t.spareSays(s)
		out.Reason += comesFirst(s)
	}
	return out
}

// markUnresolved says once of an image that a registry has to be asked for it.
func markUnresolved(differ []difference, s *ring.Service) []difference {
	const toBe = " to be resolved"
	i := slices.IndexFunc(differ, func(d difference) bool { return d.key == "spec.image" })
	if i < 0 {
		return append(differ, difference{"spec.image", "image " + s.Spec.Image + toBe})
	}
	differ[i].says += "," + toBe
	return differ
}

// aloneReason is why a slot of s has to be empty before the next instance starts; ""
// when two may run side by side.
func aloneReason(app *ring.App, s *ring.Service) string {
	if its := strategyNamed(s.Rollout.Strategy); !its.overlaps {
		return "strategy " + its.name
	}
	return app.Alone(s)
}

// sameJSON compares what a restart would read back: nil and empty are one.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
