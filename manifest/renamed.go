package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// nameFormerEnv has hints begin with where the host's values lie of an app that was renamed:
// the env folder goes by the name. It leaves remembered faults as they are.
func (r *reader) nameFormerEnv(o *outcome, all []outcome) {
	if len(o.faults.list) == 0 || r.hasEnv(o.name) {
		return
	}
	for _, from := range r.formerNames(o) {
		if r.hasEnv(from) {
			r.nameEnvOf(o, from, "whose data app "+o.name+" takes over", func(*fault) bool { return true })
			return
		}
	}
	for _, from := range r.gone(all) {
		has := func(f *fault) bool { return r.answers(from, o.name, f) }
		if slices.ContainsFunc(o.faults.list, func(f fault) bool { return has(&f) }) {
			r.nameEnvOf(o, from, "which is in force and not in this commit; if "+o.name+" is its new name", has)
			return
		}
	}
}

// nameEnvOf has the hints of faults that the env folder of another name answers say so.
func (r *reader) nameEnvOf(o *outcome, from, why string, has func(*fault) bool) {
	o.faults.list = slices.Clone(o.faults.list)
	for i := range o.faults.list {
		f := &o.faults.list[i]
		if strings.Contains(f.hint, "<env.dir>/"+o.name+"/") && has(f) {
			f.hint = fmt.Sprintf("this host has values for %s, %s: mv <env.dir>/%s <env.dir>/%s; else %s", from, why, from, o.name, f.hint)
		}
	}
}

// gone are the apps with values on this host that leave with this commit.
func (r *reader) gone(all []outcome) (out []string) {
	here := map[string]bool{}
	for i := range all {
		here[all[i].name], here[all[i].key] = true, true
	}
	for _, name := range r.settings.InForce {
		if !here[name] && r.hasEnv(name) {
			out = append(out, name)
		}
	}
	return out
}

// answers reports whether the env folder of another name has what an app was refused for.
func (r *reader) answers(from, app string, f *fault) bool {
	a := appReader{reader: r}
	host := a.hostEnvOf(from, r.settings.Env[from])
	if f.variable == "" {
		file, ok := strings.CutPrefix(f.answers[0], app+"/")
		_, has := host.files[file]
		return ok && has
	}
	if _, has := host.files[dotEnv]; !has {
		return false
	}
	of, _ := host.variables(dotEnv, false)
	_, has := of[f.variable]
	return has
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
