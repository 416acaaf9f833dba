package policy

import (
	"fmt"
	"reflect"
	"strings"
)

// roots are the structs at which a path begins, by the names of their types:
// wherever one stands inside another, its fields have the same rules.
var roots = map[string]string{
	"runtime.ContainerRequest": "Request",
	"runtime.NetworkRequest":   "NetworkRequest",
	"runtime.VolumeRequest":    "VolumeRequest",
	"container.Config":         "Config",
	"container.HostConfig":     "HostConfig",
	"container.ExecOptions":    "Exec",
	"network.EndpointSettings": "Endpoint",
	"network.NetworkingConfig": "Networking",
	"network.CreateOptions":    "Network",
	"volume.CreateOptions":     "Volume",
	"swarm.ServiceSpec":        "Service",
}

// deepest is far below any payload; a value that contains itself ends there.
const deepest = 32

func check(rules map[string]rule, r Rules, req Request) []Finding {
	if r.Profile == "" {
		r.Profile = Compose
	}
	w := walker{rules: rules, r: &r, req: &req}
	w.walk(spot{v: reflect.ValueOf(req.Body)}, 0)
	return sorted(w.out)
}

type walker struct {
	rules map[string]rule
	r     *Rules
	req   *Request
	out   []Finding
}

// spot is one value on the walk.
type spot struct {
	path   string
	v      reflect.Value
	parent reflect.Value // the struct that v is a field of
	key    string        // of the map above, "" where there is none
	via    string        // the path until it last began anew
}

// walk judges a value by the rule of its path and goes on below it, where the
// fields have rules of their own.
func (w *walker) walk(at spot, depth int) {
	v := deref(at.v)
	if !v.IsValid() || at.v.IsZero() {
		return
	}
	if v.Kind() == reflect.Struct {
		if path := rooted(v.Type(), at.path); path != at.path {
			at.path, at.via = path, at.path
		}
	}
	rule, ruled := w.rules[at.path]
	if ruled {
		l := &look{walker: w, rule: rule, spot: at, v: v}
		l.judge()
		if rule.final() {
			return
		}
	}
	if depth < deepest && composite(v.Type()) {
		w.below(at, v, depth+1)
		return
	}
	if !ruled {
		w.unknown(at, v)
	}
}

// below walks what a value is made of. Items of lists and maps share one path.
func (w *walker) below(at spot, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				continue // most are: a path is made for none of them
			}
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			w.walk(spot{path: step(at.path, f), v: v.Field(i), parent: v, key: at.key, via: at.via}, depth)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			w.walk(spot{path: items(at.path), v: it.Value(), parent: at.parent, key: fmt.Sprint(it.Key()), via: at.via}, depth)
		}
	default: // a list, or composite would have said no
		for i := range v.Len() {
			w.walk(spot{path: items(at.path), v: v.Index(i), parent: at.parent, key: at.key, via: at.via}, depth)
		}
	}
}

// unknown denies a value that no rule speaks of, and does not show it.
func (w *walker) unknown(at spot, v reflect.Value) {
	l := &look{walker: w, rule: rule{name: UnknownField, risk: "this release has no rule for the engine's field " + at.path, grade: forbidden}, spot: at, v: v}
	l.find(finding{at: at.path, key: strings.TrimSuffix(at.path, "[]")})
}

func deref(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// composite reports whether a value of the type is made of structs with fields of
// their own, which are judged one by one.
func composite(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return composite(t.Elem())
	case reflect.Interface:
		return true // what it holds decides
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				return true
			}
		}
	}
	return false
}

// step is the path of a field. An embedded struct's fields are the embedder's.
func step(path string, f reflect.StructField) string {
	if f.Anonymous {
		return path
	}
	if path == "" {
		return f.Name
	}
	return path + "." + f.Name
}

func items(path string) string { return strings.TrimSuffix(path, "[]") + "[]" }

// rooted is where the path of a struct begins anew.
func rooted(t reflect.Type, path string) string {
	if root, ok := roots[t.String()]; ok {
		return root
	}
	if path == "" {
		return t.Name()
	}
	return path
}

// Uncovered are the exported fields of the bodies' types, at any depth, that no
// rule speaks of, and the rules that speak of no field of them.
func Uncovered(bodies ...any) (unruled, idle []string) {
	c := coverage{met: map[string]bool{}}
	for _, b := range bodies {
		c.see(reflect.TypeOf(b), "", 0)
	}
	for path := range table {
		if !c.met[path] {
			idle = append(idle, path)
		}
	}
	return sortedWords(c.unruled), sortedWords(idle)
}

type coverage struct {
	met     map[string]bool
	unruled []string
}

func (c *coverage) see(t reflect.Type, path string, depth int) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		path = rooted(t, path)
	}
	c.met[path] = true
	rule, ruled := table[path]
	switch {
	case ruled && rule.grade == allowed && composite(t):
		c.unruled = append(c.unruled, path+": is allowed whole, with fields that a later engine adds")
	case ruled && rule.final():
	case depth > deepest || !composite(t) || t.Kind() == reflect.Interface:
		if !ruled {
			c.unruled = append(c.unruled, path)
		}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				c.see(f.Type, step(path, f), depth+1)
			}
		}
	default:
		c.see(t.Elem(), items(path), depth+1)
	}
}
