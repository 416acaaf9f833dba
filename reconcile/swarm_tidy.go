package reconcile

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// removeServed removes a service that the plan in force does not have from the cluster.
func (t *decider) removeServed(id ring.ServiceID, app *ring.App) {
	s := t.clusterService(id)
	if s == nil {
		return
	}
	t.addStep(ring.Action{
		Kind: ring.DoServeOff, App: s.App, Service: s.Service, Version: s.Version, Commit: app.Commit, Index: s.Index,
		Reason: say("not in plan %s", app.Commit.Short()),
	})
}

// looseFiles removes configs and secrets that no spec names, the one before included, and no
// plan in force or last good version would have made anew.
func (t *decider) looseFiles() {
	if !t.onCluster() {
		return
	}
	named := t.namedFiles()
	for _, file := range t.Seen.Cluster.Files {
		f, ok := t.Facts.Apps[file.App]
		if !ok || f.App.NoPrune || !t.isFresh(&f.App) || t.isJoining(file.App) || named[file.Name] || named[file.Content] {
			continue
		}
		t.addStep(ring.Action{
			Kind: ring.DoFileOff, App: file.App, Commit: f.App.Commit, Name: file.Name, Secret: file.Secret, Instance: file.ID,
			Reason: "no service names it",
		})
	}
}

// namedFiles are the names of the files that services of the cluster name, and the contents that
// plans in force and last good versions are made from.
func (t *Pass) namedFiles() map[string]bool {
	named := map[string]bool{}
	for i := range t.Seen.Cluster.Services {
		for _, name := range t.Seen.Cluster.Services[i].Files {
			named[name] = true
		}
	}
	for i := range t.Seen.Cluster.Runs {
		for _, name := range t.Seen.Cluster.Runs[i].Files {
			named[name] = true
		}
	}
	add := func(app *ring.App, s *ring.Service) {
		for _, m := range app.Mounts(s) {
			if m.Kind == ring.MountContent {
				named[m.Source] = true
			}
		}
	}
	for _, name := range sortedKeys(t.Facts.Apps) {
		f := t.Facts.Apps[name]
		for i := range f.App.Services {
			add(&f.App, &f.App.Services[i])
		}
	}
	for _, id := range sortedKeys(t.Facts.Good) {
		add(&t.Facts.Good[id].App, &t.Facts.Good[id].Service)
	}
	return named
}

// clusterHas reports whether the cluster still has a service or a file of an app.
func (t *Pass) clusterHas(app string) bool {
	return t.onCluster() && (slices.ContainsFunc(t.Seen.Cluster.Services, func(s ring.ClusterService) bool { return s.App == app }) ||
		slices.ContainsFunc(t.Seen.Cluster.Files, func(f ring.ClusterFile) bool { return f.App == app }))
}
