package reconcile

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/gitring/gitring/ring"
)

// Names: that of an app belongs to one folder of one source from its first acceptance on,
// with its env folder, its volumes and its data, also after it left. Without this whoever
// may write one folder would get the values and volumes of an app in another.

// recordNames notes whose the names are that are in use and that nobody noted: of apps in
// force from before names were noted, and, where the store was lost, of what runs.
func (t *decider) recordNames() {
	for _, app := range keysThat(t.Facts.Apps, func(app string) bool { _, ok := t.Facts.Names[app]; return !ok }) {
		f := t.Facts.Apps[app]
		t.setFact(ring.NameOf(&f.App, ring.Name{At: f.Since}, t.now))
	}
	var lost []*ring.Instance
	for i := range t.Seen.Instances {
		in := &t.Seen.Instances[i]
		if in.App == "" || in.Source == "" || in.Path == "" {
			continue
		}
		if _, ok := t.Facts.Names[in.App]; !ok {
			lost = append(lost, in)
		}
	}
	slices.SortFunc(lost, func(a, b *ring.Instance) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	for _, in := range lost {
		if _, ok := t.Facts.Names[in.App]; !ok {
			t.setFact(ring.Name{App: in.App, Source: in.Source, Path: path.Clean(in.Path), At: in.Created})
		}
	}
}

// acceptName notes an app that comes into force under its name.
func (t *decider) acceptName(app *ring.App) {
	before := t.Facts.Names[app.Name]
	if before.Source != app.Source {
		before.Volumes, before.Taken = nil, nil
	}
	if n := ring.NameOf(app, before, t.now); !n.Same(t.Facts.Names[app.Name]) {
		t.setFact(n)
	}
}

// nameRefusal refuses an app whose name is another's. Another folder of the same source
// takes it by a commit of somebody who may change both; another source by the policy alone.
func (t *Pass) nameRefusal(src *Source, next *ring.App) *ring.Refusal {
	have, ok := t.Facts.Names[next.Name]
	folder := path.Clean(next.Path)
	switch {
	case !ok, have.Source == next.Source && have.Path == folder, src.Names[next.Name] == folder:
		return nil
	case have.Source == next.Source && src.Next.MayTake(next.Name, have.Rule()):
		return nil
	}
	r := &ring.Refusal{
		Code: ring.AppTaken, Commit: next.Commit, App: next.Name, File: firstOf(next.Files),
		Says: say("app %s belongs to %s of source %s on this host", next.Name, folderNamed(have.Path), have.Source),
		Hint: say("give it another name: in Compose `name:`, or in gitring.yaml; or have it take the name over, with the data, volumes and values that go with it, in the daemon's configuration: policy: {apps: [{name: %s, source: %s, path: %s}]}",
			next.Name, next.Source, yamlScalar(folder)),
	}
	if have.Source == next.Source {
		r.Says += ", and whoever signed this may not change both folders"
	}
	return r
}

func folderNamed(folder string) string {
	if folder == "." {
		return "the root"
	}
	return "folder " + folder
}

// yamlScalar is a text as YAML reads it inside braces.
func yamlScalar(s string) string {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '/' && r != '-' && r != '_' && r != '.' {
			return fmt.Sprintf("%q", s)
		}
	}
	if s == "." {
		return `"."`
	}
	return s
}
