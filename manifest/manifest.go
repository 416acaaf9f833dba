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
	Env map[string]map[string][]byte
	// Shared are the files of the host's env folder for all apps of the source, by path
	// below the source's path: they stand in for files above an app's folder that the
	// commit does not hold, and a .env in a folder above an app has variables for it.
	Shared map[string][]byte
	EnvKey []byte
	// Sealed stands in for Env and Shared where nobody has their values: what a plan says of
	// them is known, and nothing else. See SealedValues.
	Sealed SealedValues
	// Only is the folder of the one app that is read, inside the commit; "" reads all. What
	// apps claim from each other is then not judged.
	Only string
	// DataRoots are, by app, the absolute folders below which their data lies;
	// that of "" is every other app's. Apps without one have the host's.
	DataRoots map[string]string
	// GitringYAML stands in for the file of that name where the commit has none.
	GitringYAML []byte
	// Names are, by app, the folders that have these names on the host: of two apps
	// that claim one name only the other one is refused.
	Names map[string]string
	// Held are the apps in force by their names on the engine, as EngineNames has them:
	// of two apps that take one such name only the other one is refused.
	Held map[string]string
	// InForce are the names of the apps that the source has in force, in order. They only serve
	// hints.
	InForce []string
	// Denied reports whether the host denies an app by itself, whatever else is planned:
	// such an app takes no name from another. nil denies none.
	Denied func(a *ring.App) bool
	// Traffic is what the host says of fronts.
	Traffic Traffic
	// NoStatus reports whether the source tells no forge, and so cannot hear of other hosts.
	NoStatus bool
	// Secrets opens encrypted files; nil refuses them. SecretsPrint changes when what it
	// answers may change.
	Secrets      Secrets
	SecretsPrint string
	// NoChown says that the daemon may not give a file to another user, or, where the engine is a
	// swarm, could not read it any more.
	NoChown bool
	// Unplaced says that files with values lie in memory, and that nothing places them there
	// before the engine starts its containers.
	Unplaced bool
	// Swarm says that the engine is a swarm: services are placed by it, and have no front.
	Swarm  bool
	Limits Limits

	// ran is told, in tests, of each run of compose-go: over how many services.
	ran func(services int)
}

// Reading is all that comes of a commit's tree.
type Reading struct {
	Plan ring.Plan
	// Contents are what the plan's services mount, by hash.
	Contents map[string]ring.Content
	// Refusals are one for each fault, in order of place, where a plan has one for
	// each app.
	Refusals []*ring.Refusal
	// Drafts are the refused apps that can be read as far as the policy asks.
	Drafts []Draft
	// Folders are those of all apps, refused ones too. HasGitringYAML reports whether the
	// commit says by itself where they are.
	Folders        []string
	HasGitringYAML bool
	// Projects are the plan's apps as Compose itself would be told to read them, by name.
	Projects map[string]Project
	hidden   map[string]hiddenOf // by app; see Hide
	hiders   map[string]*hider   // of those that were asked for
}

// Project is what docker compose has to be told to read an app's files as they were
// read here. Paths are below the app's folder, or lead out of it inside the commit.
type Project struct {
	Dir      string // where relative paths start; "." is the app's folder
	Files    []string
	EnvFiles []string // in order, besides .env
	Profiles []string
}

// Draft is an app that is refused, by itself or with the whole commit, as far as it can be read: for the policy, whose
// refusals are then told with those of manifest, and for nothing else.
type Draft struct {
	Key string // of Plan.Refused; "" where its refusal is another app's too
	App ring.App
	// Refusals are what manifest refuses of it, in order of place.
	Refusals []*ring.Refusal
	// Lost are the services, networks and volumes that have a fault themselves, as
	// the policy names them: "volumes.data". What they do not say may be in the fault.
	Lost map[string]bool
}

// Look turns a commit's tree into a plan, and tells all that is wrong with it. It
// never fails on bad input: a fault of the whole commit is Plan.Refusal, those of
// one app Plan.Refused. Equal arguments give equal readings.
func Look(c *ring.Commit, s Settings) Reading {
	out, _ := look(c, s, nil)
	return out
}

func look(c *ring.Commit, s Settings, m *Memory) (Reading, *reader) {
	r, plan, outcomes := read(c, s, m)
	out := Reading{Plan: plan, Folders: sortedKeys(r.folders), HasGitringYAML: !r.unread(path.Join(r.settings.Path, gitringFile))}
	switch {
	case plan.Refusal == nil:
		out.Contents, out.Projects = r.keep(plan.Apps), map[string]Project{}
	case r.mistakes.none():
		out.Refusals = []*ring.Refusal{plan.Refusal}
		return out, r
	default:
		out.Refusals = r.mistakes.refusals(c.SHA, "")
		outcomes = r.despite()
	}
	out.hidden = map[string]hiddenOf{}
	for _, o := range outcomes {
		if len(o.hidden.values) > 0 {
			of := out.hidden[o.name]
			of.values, of.services = append(of.values, o.hidden.values...), append(of.services, o.hidden.services...)
			of.folders = append(of.folders, o.hidden.folders...)
			out.hidden[o.name] = of
		}
		if plan.Refusal == nil && o.faults.none() {
			out.Projects[o.name] = o.project
		}
		out.Refusals = append(out.Refusals, o.faults.refusals(c.SHA, o.name)...)
		if plan.Refusal == nil && o.faults.none() || len(o.app.Services) == 0 {
			continue
		}
		out.Drafts = append(out.Drafts, o.draft(c.SHA))
	}
	slices.SortStableFunc(out.Refusals, func(a, b *ring.Refusal) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Says, b.Says))
	})
	// Two apps that claim one name have one fault.
	out.Refusals = slices.CompactFunc(out.Refusals, func(a, b *ring.Refusal) bool { return a.Where() == b.Where() && a.Says == b.Says })
	return out, r
}

// LookFurther is Look, and the Compose files of the commit that nothing reads. It looks
// into every folder, which only a person who asks has time for.
func LookFurther(c *ring.Commit, s Settings) (Reading, []NotRead) {
	out, r := look(c, s, nil)
	if out.Plan.Refusal != nil || r.tree.fault() != nil {
		return out, nil
	}
	return out, r.notRead(r.listed)
}

// Read is Look for who carries out the plan.
func Read(c *ring.Commit, s Settings) (ring.Plan, map[string]ring.Content) {
	r := Look(c, s)
	return r.Plan, r.Contents
}

// Check is Look for who asks what manifest alone refuses.
func Check(c *ring.Commit, s Settings) (ring.Plan, []*ring.Refusal) {
	r := Look(c, s)
	return r.Plan, r.Refusals
}

func read(c *ring.Commit, s Settings, m *Memory) (*reader, ring.Plan, []outcome) {
	plan := ring.Plan{Source: s.Source, Commit: c.SHA, Signer: c.Signer, AllowRemove: c.AllowRemove, AllowWaves: c.AllowWaves, Data: c.Data}
	r := &reader{
		commit: c, settings: s, limits: s.Limits.withDefaults(),
		contents: map[string]ring.Content{}, mounted: map[string]held{}, ciphers: map[string][]string{}, search: search{depth: usualDepth}, folders: map[string]bool{},
		memory: m, fresh: map[string]remembered{},
	}
	r.settings.Path = path.Clean("./" + s.Path)
	if s.Secrets == nil {
		r.settings.Secrets = noOpener{}
	}
	r.tree = newTree(c.Tree, r.settings.Path, r.limits)

	apps, fault := r.discover()
	if fault == nil {
		fault = r.readFleet(&plan)
	}
	if fault != nil {
		plan.Refusal = fault.refusal(c.SHA, "")
		return r, plan, nil
	}
	for _, a := range apps {
		r.folders[a.path] = true
	}
	if only := s.Only; only != "" {
		apps = slices.DeleteFunc(apps, func(a candidate) bool { return a.path != only })
	}
	outcomes := r.readApps(apps)
	if fault := r.tree.fault(); fault != nil {
		plan.Refusal = fault.refusal(c.SHA, "")
		return r, plan, nil
	}
	if m != nil {
		m.apps = r.fresh
	}
	settle(&plan, outcomes, &s)
	plan.Doubts = r.doubts()
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
	// ciphers are, by the hash of a content, the files in it that are encrypted. None of
	// them is ever mounted as it is.
	ciphers  map[string][]string
	nodes    int             // of YAML that the apps came to so far
	mistakes faults          // of gitring.yaml
	sound    []entry         // of a gitring.yaml with mistakes; see despite
	listed   bool            // gitring.yaml lists the apps
	folders  map[string]bool // of the apps
	// elsewhere are the folders of apps that are for other hosts.
	elsewhere []string
	search    search  // where no list of apps says where they are
	entries   []entry // of gitring.yaml, where it lists apps
	fleet     *fleet  // nil where the commit has no file of hosts
	// memory is of the commit before, nil for none, and fresh of this one; see Memory.
	memory *Memory
	fresh  map[string]remembered
}

// outcome is one app as it was read: whole, or what is wrong with it.
type outcome struct {
	app    ring.App
	name   string // the name it goes by; the folder's where its file did not say
	folder string
	path   string
	at     place // where its name is said
	faults faults
	// key is the name under which its refusal stands in the plan; lost is Draft.Lost.
	key  string
	lost map[string]bool
	// includes are the files that it includes, with the place that names them.
	includes map[string]place
	project  Project
	asks     []string // its references to providers
	awaits   []string // Plan.Awaits
	hidden   hiddenOf
}

// draft is an app that is not in the plan and could be read.
func (o *outcome) draft(sha ring.SHA) Draft {
	return Draft{Key: o.key, App: o.app, Refusals: o.faults.refusals(sha, o.name), Lost: o.lost}
}

func (r *reader) readApps(apps []candidate) []outcome {
	var out []outcome
	actual := map[string]string{} // names by what gitring.yaml calls the apps
	for _, a := range apps {
		r.tree.next(len(apps) > 1)
		o, known := r.rememberedApp(a)
		if !known {
			r.tree.next(len(apps) > 1)
			o = r.readAppAnew(a)
		}
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
	r.joinElsewhere(out)
	for i := range out {
		r.nameFormerEnv(&out[i], out)
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
				if hash := contentOf(&s, m); hash != "" {
					out[hash] = r.contents[hash]
				}
			}
		}
	}
	return out
}

// contentOf is the hash of what a service mounts; "" for a mount of anything else.
func contentOf(s *ring.Service, m ring.Mount) string {
	switch m.Kind {
	case ring.MountContent:
		return m.Source
	case ring.MountSeed:
		return m.Seed
	case ring.MountLive:
		return s.Reload.Content()[m.Source]
	}
	return ""
}

// settle sorts outcomes into the apps and refusals of a plan. A name that two apps
// claim is refused for both, or for the one that does not have it yet; a container_name
// or the name of a network is the first one's.
func settle(plan *ring.Plan, outcomes []outcome, s *Settings) {
	denies := deniesOf(outcomes, s.Denied)
	claims(outcomes, s.Names, denies)
	collisions(outcomes, s.Held, denies)
	folders(outcomes)
	oneOwner(outcomes, s.Held, denies)
	boundAsks(outcomes, s.Names)
	for _, o := range outcomes {
		if len(o.asks) > 0 {
			plan.Ask(o.name, o.asks)
		}
		if o.faults.none() {
			plan.Apps = append(plan.Apps, o.app)
			if len(o.awaits) > 0 {
				plan.Await(o.name, o.awaits[0])
			}
		}
	}
	for i, o := range outcomes {
		if o.faults.none() {
			continue
		}
		if o.faults.first().code == ring.AppTaken && plan.Refused[o.name] != nil {
			continue // told once under the name they share
		}
		name := o.name
		for _, other := range []string{o.folder, o.path} {
			if plan.Refused[name] != nil || taken(plan.Apps, name) {
				name = other
			}
		}
		plan.Refuse(name, o.faults.refusal(plan.Commit, name), o.app)
		outcomes[i].key = name
	}
	sort.Slice(plan.Apps, func(i, j int) bool { return plan.Apps[i].Name < plan.Apps[j].Name })
}

func taken(apps []ring.App, name string) bool {
	for _, a := range apps {
		if a.Name == name {
			return true
		}
	}
	return false
}
