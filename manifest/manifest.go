// Package manifest turns a commit's tree into a plan: which apps there are, and
// what each of their services runs. It is pure: what it reads is the tree, and
// what it knows of the host is what Settings says. Nothing of the daemon's
// environment or of the host's files can be reached through a manifest.
package manifest

import (
	"cmp"
	"path"
	"slices"
	"sort"

	"github.com/gitring/gitring/ring"
)

// Settings is what a plan depends on besides the commit. Zero Limits are the
// defaults of DefaultLimits; a Path of "" is the root.
type Settings struct {
	Source string
	Path   string
	Host   string
	// Facts are matched by the targets of gitring.yaml.
	Facts map[string]string
	// Interpolation holds the host's values that Compose files may use; they win
	// over those of the commit.
	Interpolation map[string]string
	// Env are the files of the host's env folder: by app, then by path below the
	// app's folder there. The app's ".env" adds to that of the commit; another
	// stands in for a file that the commit does not hold. Their values stand in the
	// plan sealed, by a keyed hash with EnvKey; without a key nothing of them is used.
	Env    map[string]map[string][]byte
	EnvKey []byte
	// DataRoots are, by app, the absolute folders below which their data lies;
	// that of "" is every other app's. Apps without one have the host's.
	DataRoots map[string]string
	Limits    Limits
}

// Read turns a commit's tree into the plan, and gives the contents that its
// services mount, by hash. It never fails on bad input: a fault of the whole
// commit is Plan.Refusal, a fault of one app Plan.Refused. Equal arguments give
// equal plans.
func Read(c *ring.Commit, s Settings) (ring.Plan, map[string]ring.Content) {
	r, plan, _ := read(c, s)
	if plan.Refusal != nil {
		return plan, nil
	}
	return plan, r.keep(plan.Apps)
}

// Check is Read for the author of a commit: each fault is a refusal of its own,
// where a plan has one for each app. They are in order of place.
func Check(c *ring.Commit, s Settings) (ring.Plan, []*ring.Refusal) {
	r, plan, outcomes := read(c, s)
	if plan.Refusal != nil {
		if r.mistakes.none() {
			return plan, []*ring.Refusal{plan.Refusal}
		}
		return plan, r.mistakes.refusals(c.SHA, "")
	}
	var all []*ring.Refusal
	for _, o := range outcomes {
		all = append(all, o.faults.refusals(c.SHA, o.name)...)
	}
	slices.SortStableFunc(all, func(a, b *ring.Refusal) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Says, b.Says))
	})
	// Two apps that claim one name have one fault.
	return plan, slices.CompactFunc(all, func(a, b *ring.Refusal) bool { return a.Where() == b.Where() && a.Says == b.Says })
}

func read(c *ring.Commit, s Settings) (*reader, ring.Plan, []outcome) {
	plan := ring.Plan{Source: s.Source, Commit: c.SHA, Signer: c.Signer, AllowRemove: c.AllowRemove}
	r := &reader{
		commit: c, settings: s, limits: s.Limits.withDefaults(),
		contents: map[string]ring.Content{}, mounted: map[string]held{},
	}
	r.settings.Path = path.Clean("./" + s.Path)
	r.tree = newTree(c.Tree, r.limits)

	apps, fault := r.discover()
	if fault != nil {
		plan.Refusal = fault.refusal(c.SHA, "")
		return r, plan, nil
	}
	outcomes := r.readApps(apps)
	if fault := r.tree.fault(); fault != nil {
		plan.Refusal = fault.refusal(c.SHA, "")
		return r, plan, nil
	}
	plan.Apps, plan.Refused = settle(outcomes, c.SHA)
	return r, plan, outcomes
}

// reader holds what one Read knows.
type reader struct {
	commit   *ring.Commit
	settings Settings
	limits   Limits
	tree     *tree
	contents map[string]ring.Content
	mounted  map[string]held // by path inside the commit
	mistakes faults          // of gitring.yaml
}

// outcome is one app as it was read: whole, or what is wrong with it.
type outcome struct {
	app    ring.App
	name   string // the name it goes by; the folder's where its file did not say
	folder string
	path   string
	at     place // where its name is said
	faults faults
	// includes are the files that it includes, with the place that names them.
	includes map[string]place
}

func (r *reader) readApps(apps []candidate) []outcome {
	var out []outcome
	actual := map[string]string{} // names by what gitring.yaml calls the apps
	for _, a := range apps {
		o := r.readApp(a)
		if r.tree.fault() != nil {
			return nil
		}
		if a.entry != nil {
			actual[r.title(*a.entry)] = o.name
		}
		out = append(out, o)
	}
	out = withoutIncluded(out, apps)
	for _, o := range out {
		for i := range o.app.After {
			o.app.After[i].App = actual[o.app.After[i].App]
		}
	}
	return out
}

// keep leaves only the contents that some app mounts: those of a refused app
// are not materialised.
func (r *reader) keep(apps []ring.App) map[string]ring.Content {
	out := map[string]ring.Content{}
	for _, a := range apps {
		for _, s := range a.Services {
			for _, m := range s.Spec.Mounts {
				switch m.Kind {
				case ring.MountContent:
					out[m.Source] = r.contents[m.Source]
				case ring.MountSeed:
					out[m.Seed] = r.contents[m.Seed]
				}
			}
		}
	}
	return out
}

// settle sorts outcomes into apps and refusals. A name that two apps claim is
// refused for both: which of them runs is not for a sort order to decide.
func settle(outcomes []outcome, sha ring.SHA) ([]ring.App, map[string]*ring.Refusal) {
	claims(outcomes)
	collisions(outcomes)
	folders(outcomes)
	var apps []ring.App
	refused := map[string]*ring.Refusal{}
	for _, o := range outcomes {
		if o.faults.none() {
			apps = append(apps, o.app)
		}
	}
	for _, o := range outcomes {
		if o.faults.none() {
			continue
		}
		if o.faults.first().code == ring.AppTaken && refused[o.name] != nil {
			continue // told once under the name they share
		}
		name := o.name
		for _, other := range []string{o.folder, o.path} {
			if refused[name] != nil || taken(apps, name) {
				name = other
			}
		}
		refused[name] = o.faults.refusal(sha, name)
	}
	sort.Slice(apps, func(i, j int) bool { return apps[i].Name < apps[j].Name })
	if len(refused) == 0 {
		refused = nil
	}
	return apps, refused
}

func taken(apps []ring.App, name string) bool {
	for _, a := range apps {
		if a.Name == name {
			return true
		}
	}
	return false
}
