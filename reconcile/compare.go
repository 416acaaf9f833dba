package reconcile

import (
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

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
	x.Canary, y.Canary = nil, nil
	return a.Name == b.Name && a.Kind == b.Kind && a.Replicas == b.Replicas && a.Written == b.Written && a.Pin == b.Pin &&
		a.Before == b.Before && a.Share == b.Share && a.File == b.File && a.Restart == b.Restart && x == y &&
		equalValues(a.Rollout.Back, b.Rollout.Back) && equalValues(a.Rollout.Canary, b.Rollout.Canary) && equalValues(a.Route, b.Route) && a.FrontOf == b.FrontOf && equalValues(a.Job, b.Job) && equalValues(a.Cron, b.Cron) && equalValues(a.Updates, b.Updates) && equalValues(a.Reload, b.Reload) && equalValues(a.Composed, b.Composed) &&
		sameList(a.DependsOn, b.DependsOn) && sameList(a.Checks, b.Checks) &&
		a.Image.Known == b.Image.Known && sameList(a.Image.Volumes, b.Image.Volumes) && equalValues(a.Image.Healthcheck, b.Image.Healthcheck)
}

// sameJSON compares what a restart would read back: nil and empty are one.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
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

// hostsValue begins what is said of a value of the host that changed.
const hostsValue = "the host's "

// secretsMoved names the values of encrypted files, and of the host, by which alone two
// texts differ; none where they differ in anything else.
func secretsMoved(a, b string) (names []string) {
	var from, to []ring.Sealed
	frame := func(text string, all *[]ring.Sealed) string {
		rest, _ := ring.Open(text, func(s ring.Sealed) (string, error) {
			*all = append(*all, s)
			s.MAC = ""
			return s.String(), nil
		})
		return rest
	}
	if before, after := frame(a, &from), frame(b, &to); before != after {
		return nil
	}
	for i, s := range to {
		switch {
		case from[i] == s:
		case s.From == ring.FromEnvFolder:
			names = append(names, hostsValue+strings.TrimPrefix(s.Name+" in ", " in ")+"<env.dir>/"+path.Join(s.App, s.File)+" changed")
		case !s.Opened():
			names = append(names, s.File+" changed: may roll")
		case s.Name == "":
			names = append(names, "secret "+s.File+" changed")
		default:
			names = append(names, "secret "+s.Name+" of "+s.File+" changed")
		}
	}
	return names
}

// markedText is a field as text, with its sealed values as they stand in texts.
func markedText(v reflect.Value) string {
	text, _ := json.Marshal(v.Interface()) // a spec can be written
	return strings.ReplaceAll(string(text), `\u001b`, ring.SealMark)
}

// keysMoved names the keys whose value differs, and the secrets where it is theirs.
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
		says := secretsMoved(a[k], b[k])
		if len(says) == 0 {
			says = []string{word + " " + k}
		}
		for _, text := range says {
			if !slices.Contains(out, text) { // several variables may be made of one secret
				out = append(out, text)
			}
		}
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
