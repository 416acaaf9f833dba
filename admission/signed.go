package admission

import (
	"maps"
	"slices"
	"strings"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// of are the rules for one app: with who signed the files of its commit, where that is known.
func (j Judge) of(a *ring.App) policy.Rules {
	r := j.Here()
	if j.Signed == nil || a == nil {
		return r
	}
	r.Signed = func(of, at string, signers []string) string {
		files := filesOfUse(a, of, at)
		if len(files) == 0 {
			return "no file of the commit is known to ask for it"
		}
		for _, file := range files {
			if why := j.Signed(a, file, signers); why != "" {
				return why
			}
		}
		return ""
	}
	return r
}

// filesOfUse are the files in which a use stands. Where not one line says it, such as a
// key that is missing or a list that counts whole, those are all Compose files of the app.
// What is in force has no places after a restart: it remembers its files.
func filesOfUse(a *ring.App, of, at string) []string {
	use := strings.TrimSuffix(of+"."+at, ".")
	if files, known := a.UseFiles[use]; known {
		return files
	}
	places, keys := a.Places, []string{use}
	if kind, name, _ := strings.Cut(of, "."); kind == "services" {
		s, ok := a.Service(name)
		if !ok {
			return nil
		}
		places, keys = s.Places, append([]string{at, reworded(at)}, mountedBesides(at)...)
	}
	if len(places) == 0 {
		return nil
	}
	files := everyFile(a)
	for _, key := range keys {
		if place, exact := places[key]; exact && (strings.Contains(at, ".") || slices.Contains(oneValue, at)) {
			files = []string{place.File}
			break
		}
	}
	if len(a.Naming) > 0 { // who names a file, or a service of one, asks for what it says
		files = slices.Concat(files, everyFile(a), a.Naming)
		slices.Sort(files)
		files = slices.Compact(files)
	}
	a.UseFiles = maps.Clone(a.UseFiles) // the copy that is judged may share it
	if a.UseFiles == nil {
		a.UseFiles = map[string][]string{}
	}
	a.UseFiles[use] = files
	return files
}

// oneValue are the keys of a service with one value, of which the last file's counts.
var oneValue = []string{
	"privileged", "network_mode", "pid", "ipc", "uts", "userns_mode", "cgroup", "cgroup_parent", "runtime", "working_dir", "user", "read_only",
	"oom_kill_disable", "oom_score_adj", "shm_size", "stop_grace_period", "pids_limit", "mem_limit", "cpu_rt_period", "cpu_rt_runtime",
}

// everyFile are the Compose files that say anything of an app.
func everyFile(a *ring.App) []string {
	out := slices.Clone(a.Files)
	add := func(places map[string]ring.Place) {
		for _, at := range places {
			out = append(out, at.File)
		}
	}
	add(a.Places)
	for i := range a.Services {
		add(a.Services[i].Places)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Unsigned is a judge of commits of which nobody knows yet who signs them.
func (j Judge) Unsigned() Judge {
	j.Signed = nil
	return j
}
