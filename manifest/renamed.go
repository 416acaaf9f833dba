package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// nameFormerEnv has hints say where the host's values lie of an app that takes over what
// another name had: the env folder goes by the name. It leaves remembered faults as they are.
func (r *reader) nameFormerEnv(o *outcome) {
	if r.hasEnv(o.name) {
		return
	}
	for _, from := range r.formerNames(o) {
		if !r.hasEnv(from) {
			continue
		}
		o.faults.list = slices.Clone(o.faults.list)
		for i := range o.faults.list {
			f := &o.faults.list[i]
			if strings.Contains(f.hint, "<env.dir>/"+o.name+"/") {
				f.hint += fmt.Sprintf("; this host has values for %s, whose data app %s takes over: mv <env.dir>/%s <env.dir>/%s", from, o.name, from, o.name)
			}
		}
		return
	}
}

// hasEnv reports whether the host's env folder has anything for an app.
func (r *reader) hasEnv(app string) bool {
	return len(r.settings.Env[app]) > 0 || len(r.settings.Sealed[app]) > 0
}

// formerNames are the apps whose data an app takes over, by its file or by a trailer.
func (r *reader) formerNames(o *outcome) []string {
	var out []string
	for _, v := range o.app.Volumes {
		if v.From != ring.FromNone {
			out = append(out, v.From)
		}
	}
	for _, d := range r.commit.Data {
		if d.App == o.name && d.From != ring.FromNone {
			out = append(out, d.From)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return name == "" })
}
