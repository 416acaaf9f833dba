package proof

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// mostLeast bounds how often the commit is read to leave values out.
const mostLeast = 150

// Least takes out of a statement what of the host its version does not depend on, so that
// a proof tells no more of the host than it has to. The error is a *Fault where the version
// is not the statement's: then the commit, the image and the host's values of now do not
// give what runs.
func Least(c *ring.Commit, s *Statement) error {
	found, err := Compute(c, s)
	if err != nil {
		return err
	}
	if found.Service.Version != s.Version {
		return versionFault(s, found)
	}
	l := &least{c: c, s: s, like: found, left: mostLeast}
	l.take(func(v *Values) { v.Only = found.App.Path })
	l.take(func(v *Values) { v.Traffic = nil })
	l.take(func(v *Values) { v.NoStatus = false })
	l.take(func(v *Values) { v.NoChown = false })
	l.take(func(v *Values) { v.DataRoot = "" })
	for _, of := range []func(v *Values) *map[string]string{
		func(v *Values) *map[string]string { return &v.Facts },
		func(v *Values) *map[string]string { return &v.Interpolation },
	} {
		if l.take(func(v *Values) { *of(v) = nil }) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(*of(&s.Values))) {
			l.take(func(v *Values) { *of(v) = without(*of(v), name) })
		}
	}
	l.sealed(func(v *Values) *manifest.SealedValues { return &v.Env })
	l.sealed(func(v *Values) *manifest.SealedValues { return &v.Files })
	return nil
}

// least is a statement that is made smaller.
type least struct {
	c    *ring.Commit
	s    *Statement
	like *Computed
	left int
}

// take makes a change of the values if the same service comes out.
func (l *least) take(change func(v *Values)) bool {
	if l.left--; l.left < 0 {
		return false
	}
	tried := *l.s
	change(&tried.Values)
	got, err := Compute(l.c, &tried)
	if err != nil || !alike(got, l.like) {
		return false
	}
	l.s.Values = tried.Values
	return true
}

func alike(a, b *Computed) bool {
	return a.Service.Version == b.Service.Version && a.Service.Replicas == b.Service.Replicas && a.Service.Kind == b.Service.Kind &&
		a.App.Path == b.App.Path && slices.Equal(a.App.Files, b.App.Files)
}

// sealed leaves out values that the service does not have, first all of them, then all
// whose hashes stand nowhere in its spec, then one file at a time.
func (l *least) sealed(of func(v *Values) *manifest.SealedValues) {
	all := *of(&l.s.Values)
	if len(all) == 0 || l.take(func(v *Values) { *of(v) = nil }) {
		return
	}
	used := map[string]bool{}
	eachTextOf(&l.like.Service.Spec, func(text string) {
		for _, v := range ring.SealedIn(text) {
			used[v.MAC] = true
		}
	})
	l.take(func(v *Values) {
		*of(v) = kept(*of(v), func(_, _, _ string, v manifest.SealedValue) bool { return v.MAC == "" || used[v.MAC] })
	})
	for folder, files := range *of(&l.s.Values) {
		for file := range files {
			l.take(func(v *Values) {
				*of(v) = kept(*of(v), func(f, g, _ string, _ manifest.SealedValue) bool { return f != folder || g != file })
			})
			l.take(func(v *Values) {
				*of(v) = kept(*of(v), func(f, g, name string, v manifest.SealedValue) bool {
					return f != folder || g != file || v.MAC != "" && used[v.MAC]
				})
			})
			l.take(func(v *Values) {
				*of(v) = kept(*of(v), func(f, g, name string, _ manifest.SealedValue) bool { return f != folder || g != file || name != "" })
			})
		}
	}
}

// eachTextOf gives each text of a spec, as a version is made of it.
func eachTextOf(spec *ring.Spec, fn func(string)) {
	text, _ := json.Marshal(spec)
	var all any
	_ = json.Unmarshal(text, &all)
	eachText(all, fn)
}

func eachText(v any, fn func(string)) {
	switch v := v.(type) {
	case string:
		fn(v)
	case []any:
		for _, x := range v {
			eachText(x, fn)
		}
	case map[string]any:
		for _, x := range v {
			eachText(x, fn)
		}
	}
}

func kept(all manifest.SealedValues, keep func(folder, file, name string, v manifest.SealedValue) bool) manifest.SealedValues {
	out := manifest.SealedValues{}
	for folder, files := range all {
		for file, names := range files {
			for name, v := range names {
				if keep(folder, file, name, v) {
					out.Put(folder, file, name, v)
				}
			}
		}
	}
	return out
}

func without(all map[string]string, name string) map[string]string {
	out := maps.Clone(all)
	delete(out, name)
	return out
}
