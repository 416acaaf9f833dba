package runtime

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
)

// project is what the engine knows of one Compose project.
type project struct {
	name             string
	running, stopped []container.Summary
	ours             bool // containers of it are this host's
}

func (p project) all() []container.Summary { return slices.Concat(p.running, p.stopped) }

// foreign reports whether a container is not this host's, nor given into our hands.
func (b beside) foreign(c container.Summary) bool {
	host, labelled := c.Labels[labelHost]
	return host != b.host && (labelled || !b.adopted[c.ID])
}

func (b beside) projects() []string {
	names := map[string]bool{}
	for _, c := range b.containers {
		names[c.Labels[composeProject]] = true
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

func (b beside) project(name string) project {
	p := project{name: name}
	for _, c := range b.containers {
		if c.Labels[composeProject] != name {
			continue
		}
		p.ours = p.ours || !b.foreign(c)
		switch ring.State(c.State) {
		case ring.StateRunning, ring.StatePaused, ring.StateRestarting:
			p.running = append(p.running, c)
		default:
			p.stopped = append(p.stopped, c)
		}
	}
	return p
}

// evident reports whether a project of another name is what stands in the app's
// folder. Its containers decide where there are any; without them, names do:
// Compose calls a project after its folder unless it is told otherwise.
func (b beside) evident(app *ring.App, p project) bool {
	for _, c := range p.all() {
		if b.samePlace(app, c.Labels) {
			return true
		}
	}
	switch {
	case len(p.all()) > 0 && app.Path != ".":
		return false
	case app.Path != ".":
		return composeName(path.Base(app.Path)) == p.name
	case p.ours:
		return false
	case len(p.all()) > 0:
		return slices.Equal(services(p), appServices(app))
	}
	return slices.Equal(b.volumeKeys(p.name), appVolumeKeys(app))
}

// sameProject is evident, also by what a volume of ours says of itself where no
// container is left to say it.
func (b beside) sameProject(app *ring.App, labels map[string]string, p project) bool {
	return len(p.all()) == 0 && labels[labelHost] != "" && b.samePlace(app, labels) || b.evident(app, p)
}

// samePlace reports whether what has these labels was made from the app's Compose
// file: by us, with the same path in a commit of the same source; by Compose, from a
// folder of that name, wherever the clone is. An app at the root has no folder to
// compare. A source that is not followed any more may be this one under its former name.
func (b beside) samePlace(app *ring.App, labels map[string]string) bool {
	dir, files := labels[composeWorkingDir], strings.Split(labels[composeFiles], ",")
	if !filepath.IsAbs(dir) {
		if source := labels[labelSource]; source != app.Source && slices.Contains(b.sources, source) {
			return false
		}
		return dir == app.Path && slices.ContainsFunc(files, func(f string) bool { return f != "" && slices.Contains(app.Files, f) })
	}
	if app.Path == "." {
		return false
	}
	folder := "/" + path.Base(app.Path)
	return strings.HasSuffix(dir, folder) || slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(path.Dir(f), folder) })
}

// services are those of a project's containers.
func services(p project) []string {
	names := map[string]bool{}
	for _, c := range p.all() {
		if c.Labels[composeOneOff] != "True" {
			names[c.Labels[composeService]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func appServices(app *ring.App) []string {
	names := map[string]bool{}
	for _, s := range app.Services {
		names[s.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// volumeKeys are those that Compose made volumes for.
func (b beside) volumeKeys(project string) []string {
	keys := map[string]bool{}
	for _, v := range b.volumes {
		if v.Labels[composeProject] == project && v.Labels[labelHost] == "" {
			keys[v.Labels[composeVolume]] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

func appVolumeKeys(app *ring.App) []string {
	keys := map[string]bool{}
	for _, v := range mountedVolumes(app) {
		if v.External == "" {
			keys[v.Key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// composeName is what Compose makes of a folder's name.
func composeName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, strings.ToLower(folder))
	return strings.TrimLeft(name, "_-")
}

func nameOf(c container.Summary) string {
	if len(c.Names) == 0 {
		return short(c.ID)
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// names are those of containers, the first few.
func names(cs []container.Summary) string {
	const shown = 5
	var out []string
	for _, c := range cs {
		out = append(out, nameOf(c))
	}
	slices.Sort(out)
	if len(out) > shown {
		out = append(out[:shown], fmt.Sprintf("and %d more", len(out)-shown))
	}
	return strings.Join(out, ", ")
}
