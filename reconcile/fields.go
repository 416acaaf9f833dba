package reconcile

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// classes are what a change of each field of a service does by itself: ring.Service
// and, under "spec.", ring.Spec, by their names in JSON. A field that rolls is
// recreated instead where two instances of the service cannot run side by side, as
// ports, mounts and addresses may have it; those that say so by being there are
// recreated. Every field has its line here.
var classes = map[string]ring.Class{
	"name":     ring.ChangeCreate, // another name is another service
	"written":  ring.ChangeNone,   // and version follow from the rest
	"version":  ring.ChangeNone,
	"changed":  ring.ChangeNone,
	"image":    ring.ChangeNone, // what the pinned image says of itself
	"file":     ring.ChangeNone,
	"line":     ring.ChangeNone,
	"places":   ring.ChangeNone,
	"composed": ring.ChangeNone, // what Compose would hash says nothing that the rest does not

	"kind":       ring.ChangeInPlace,
	"replicas":   ring.ChangeInPlace,
	"depends_on": ring.ChangeInPlace,
	"checks":     ring.ChangeInPlace,
	"rollout":    ring.ChangeInPlace,
	"restart":    ring.ChangeInPlace,
	"job":        ring.ChangeInPlace,
	"cron":       ring.ChangeInPlace,
	"before":     ring.ChangeInPlace,
	"updates":    ring.ChangeInPlace,
	"reload":     ring.ChangeInPlace,
	"share":      ring.ChangeInPlace,
	"route":      ring.ChangeInPlace,
	"front_of":   ring.ChangeInPlace,

	"pin":                      ring.ChangeRoll,
	"spec.image":               ring.ChangeRoll,
	"spec.pull_policy":         ring.ChangeRoll,
	"spec.command":             ring.ChangeRoll,
	"spec.entrypoint":          ring.ChangeRoll,
	"spec.command_text":        ring.ChangeRoll,
	"spec.entrypoint_text":     ring.ChangeRoll,
	"spec.environment":         ring.ChangeRoll,
	"spec.unset":               ring.ChangeRoll,
	"spec.user":                ring.ChangeRoll,
	"spec.working_dir":         ring.ChangeRoll,
	"spec.hostname":            ring.ChangeRoll,
	"spec.labels":              ring.ChangeRoll,
	"spec.ports":               ring.ChangeRoll,
	"spec.expose":              ring.ChangeRoll,
	"spec.mounts":              ring.ChangeRoll,
	"spec.networks":            ring.ChangeRoll,
	"spec.no_network":          ring.ChangeRoll,
	"spec.healthcheck":         ring.ChangeRoll,
	"spec.stop_signal":         ring.ChangeRoll,
	"spec.stop_grace":          ring.ChangeRoll,
	"spec.extra_hosts":         ring.ChangeRoll,
	"spec.init":                ring.ChangeRoll,
	"spec.logging":             ring.ChangeRoll,
	"spec.platform":            ring.ChangeRoll,
	"spec.domainname":          ring.ChangeRoll,
	"spec.annotations":         ring.ChangeRoll,
	"spec.tty":                 ring.ChangeRoll,
	"spec.stdin_open":          ring.ChangeRoll,
	"spec.read_only":           ring.ChangeRoll,
	"spec.dns":                 ring.ChangeRoll,
	"spec.dns_search":          ring.ChangeRoll,
	"spec.dns_opt":             ring.ChangeRoll,
	"spec.group_add":           ring.ChangeRoll,
	"spec.sysctls":             ring.ChangeRoll,
	"spec.ulimits":             ring.ChangeRoll,
	"spec.shm_size":            ring.ChangeRoll,
	"spec.storage_opt":         ring.ChangeRoll,
	"spec.resources":           ring.ChangeRoll,
	"spec.post_start":          ring.ChangeRoll,
	"spec.pre_stop":            ring.ChangeRoll,
	"spec.cap_add":             ring.ChangeRoll,
	"spec.cap_drop":            ring.ChangeRoll,
	"spec.security_opt":        ring.ChangeRoll,
	"spec.device_cgroup_rules": ring.ChangeRoll,
	"spec.device_requests":     ring.ChangeRoll,
	"spec.runtime":             ring.ChangeRoll,
	"spec.cgroup_parent":       ring.ChangeRoll,
	"spec.cgroup":              ring.ChangeRoll,
	"spec.pid":                 ring.ChangeRoll,
	"spec.ipc":                 ring.ChangeRoll,
	"spec.uts":                 ring.ChangeRoll,
	"spec.userns_mode":         ring.ChangeRoll,
	"spec.network_mode":        ring.ChangeRoll,
	"spec.follows":             ring.ChangeRoll,
	"spec.mark":                ring.ChangeRoll,
	"spec.cluster":             ring.ChangeRoll,

	"spec.container_name": ring.ChangeRecreate,
	"spec.mac_address":    ring.ChangeRecreate,
	"spec.devices":        ring.ChangeRecreate,
	"spec.privileged":     ring.ChangeRecreate,
	"spec.network_of":     ring.ChangeRecreate,
	"spec.pid_of":         ring.ChangeRecreate,
	"spec.ipc_of":         ring.ChangeRecreate,
	"spec.volumes_from":   ring.ChangeRecreate,

	// Of the app, and part of the version of who uses it.
	"app.networks":  ring.ChangeRoll,
	"app.volumes":   ring.ChangeRoll,
	"app.data_root": ring.ChangeRoll,
	"app.leaders":   ring.ChangeRoll,
}

// difference is one field that differs: its key in classes, and as people read it.
type difference struct{ key, says string }

// Differs names what of a service's version differs, as people read it:
// "image sha256:a… -> sha256:b…, env LOG_LEVEL, file conf/nginx.conf". Values
// of the environment are never named.
func Differs(oldApp *ring.App, old *ring.Service, newApp *ring.App, s *ring.Service) string {
	return sayAll(versionDifferences(oldApp, old, newApp, s))
}

func sayAll(all []difference) string {
	var out []string
	for _, d := range all {
		if !slices.Contains(out, d.says) { // network_mode is two fields
			out = append(out, d.says)
		}
	}
	return strings.Join(out, ", ")
}

// versionDifferences are those of the version.
func versionDifferences(oldApp *ring.App, old *ring.Service, newApp *ring.App, s *ring.Service) []difference {
	var out []difference
	add := func(key string, says ...string) {
		for _, text := range says {
			out = append(out, difference{key, text})
		}
	}
	a, b := &old.Spec, &s.Spec
	if old.Pin.Digest() != s.Pin.Digest() || a.Image != b.Image {
		add("spec.image", "image "+imageMove(old, s))
	}
	add("spec.environment", keysMoved("env", a.Environment, b.Environment)...)
	add("spec.labels", keysMoved("label", a.Labels, b.Labels)...)
	add("spec.mounts", mountsMoved(a.Mounts, b.Mounts)...)
	add("app.networks", networksMoved(oldApp, newApp, b.Networks)...)
	for _, says := range volumesMoved(oldApp, newApp, b.Mounts) {
		key := "app.volumes"
		if says == "data root" {
			key = "app.data_root"
		}
		add(key, says)
	}
	add("app.leaders", leadersMoved(oldApp, newApp, b)...)
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i, name := range specFields {
		if name == "" || sameField(x.Field(i), y.Field(i)) {
			continue
		}
		says := secretsMoved(markedText(x.Field(i)), markedText(y.Field(i)))
		if len(says) == 0 {
			says = []string{cmp.Or(fieldWords[name], name)}
		}
		add("spec."+name, says...)
	}
	return out
}

// fieldWords are what people call fields that have another name here: Compose's, mostly.
var fieldWords = map[string]string{"network_of": "network_mode", "pid_of": "pid", "ipc_of": "ipc", "mark": "a restart by hand"}

// sameField reports whether a field has the same in both.
func sameField(a, b reflect.Value) bool {
	return surelyEqual(a, b) || reflect.DeepEqual(a.Interface(), b.Interface()) || sameJSON(a.Interface(), b.Interface())
}

// specFields are the fields of a spec by their names outside, "" for those of which
// is said what of them differs.
var specFields = func() (out []string) {
	for f := range reflect.TypeFor[ring.Spec]().Fields() {
		name := jsonName(f)
		switch name {
		case "image", "environment", "labels", "mounts":
			name = ""
		}
		out = append(out, name)
	}
	return out
}()

// jsonName is what a field is called outside.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return strings.ToLower(f.Name)
	}
	return name
}

// inPlaceFields are the fields of a service whose change is one in place, by their
// names outside; "" for all others.
var inPlaceFields = func() (out []string) {
	for f := range reflect.TypeFor[ring.Service]().Fields() {
		name := jsonName(f)
		if classes[name] != ring.ChangeInPlace {
			name = ""
		}
		out = append(out, name)
	}
	return out
}()

// inPlace are the differences that ask for no new version: those of every field of
// a service that classes says so of.
func inPlace(old, s *ring.Service) []difference {
	var out []difference
	x, y := reflect.ValueOf(old).Elem(), reflect.ValueOf(s).Elem()
	for i, key := range inPlaceFields {
		if key == "" || sameField(x.Field(i), y.Field(i)) {
			continue
		}
		says := key
		switch key {
		case "replicas":
			says = say("replicas %d -> %d", old.Replicas, s.Replicas)
		case "reload":
			if says = reloadMoved(old.Reload, s.Reload); says == "" {
				continue // the paths are said in other words
			}
		}
		out = append(out, difference{key, says})
	}
	return out
}

func reloadMoved(a, b *ring.Reload) string {
	if files := ring.LiveDiffers(a.Content(), b.Content()); len(files) > 0 && b != nil {
		return say("files of %s (%s)", strings.Join(files, ", "), b.Does())
	}
	if a != nil && b != nil && a.Does() == b.Does() {
		return ""
	}
	return "reload"
}

// classDifferences gives each difference its class; alone says that what rolls has to be
// recreated here.
func classDifferences(all []difference, alone bool) []ring.FieldChange {
	var out []ring.FieldChange
	for _, d := range all {
		c := classes[d.key]
		if c == ring.ChangeRoll && alone {
			c = ring.ChangeRecreate
		}
		out = append(out, ring.FieldChange{Field: d.says, Class: c})
	}
	return out
}

// gravestClass is the class of all of it.
func gravestClass(all []ring.FieldChange) ring.Class {
	rank := []ring.Class{ring.ChangeNone, ring.ChangeInPlace, ring.ChangeRoll, ring.ChangeRecreate}
	worst := 0
	for _, f := range all {
		for i, c := range rank {
			if f.Class == c {
				worst = max(worst, i)
			}
		}
	}
	return rank[worst]
}
