package admission

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// Suggestion is the smallest set of grants under which the apps of a commit pass, beside
// what the policy lets pass already.
type Suggestion struct {
	Apps []SuggestedApp `json:"apps"`
	// Refused is what no grant lets pass.
	Refused []*ring.Refusal `json:"refused,omitempty"`
	// StaysRefused are the apps of Refused that lack grants, too. None is suggested: it
	// would change nothing.
	StaysRefused []StaysRefused `json:"stays_refused,omitempty"`
}

// StaysRefused is an app that is refused with every grant that it lacks.
type StaysRefused struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Path   string `json:"path"`
	Grants int    `json:"grants"` // how many it lacks
}

// SuggestedApp are the grants of one app.
type SuggestedApp struct {
	Name   string           `json:"name"`
	Source string           `json:"source"`
	Path   string           `json:"path"`
	Grants []SuggestedGrant `json:"grants"`
}

// SuggestedGrant is one grant, with the place that asks for it and what it would give.
type SuggestedGrant struct {
	Feature string `json:"feature"`
	Value   string `json:"value"`
	Service string `json:"service,omitempty"`
	Danger  string `json:"danger,omitempty"`
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Risk    string `json:"risk"`
}

// need is a grant that an app lacks.
type need struct {
	grant policy.Grant
	place ring.Place
	risk  string
}

// Suggest finds the smallest set of grants under which a commit passes. Each is left out
// once: one without which the app passes all the same is dropped. What is in mounts.never,
// belongs to others, or is refused by every profile is never suggested.
func (j Judge) Suggest(c *ring.Commit, s manifest.Settings) Suggestion {
	r := manifest.Look(c, s)
	return j.SuggestFor(&r)
}

// SuggestFor is suggest of what was read already.
func (j Judge) SuggestFor(r *manifest.Reading) Suggestion {
	before := j.Rules.Grants
	var needs []need
	for { // a grant may show what another app's refusal hid
		j.Rules.Grants = slices.Concat(before, grantsOf(needs))
		more := j.missing(r)
		if len(more) == 0 {
			break
		}
		needs = append(needs, more...)
	}
	needs = j.needed(r, before, needs)
	var s Suggestion
	for { // an app that stays refused may have others refused, too
		j.Rules.Grants = slices.Concat(before, grantsOf(needs))
		refused := j.refusedOf(r)
		s.tell(refused)
		useful := slices.DeleteFunc(slices.Clone(needs), func(n need) bool { return isOf(refused, n.grant.App) })
		if len(useful) == len(needs) {
			s.Apps = byApp(needs)
			return s
		}
		s.leaveOut(needs, refused)
		needs = j.needed(r, before, useful)
	}
}

// refusedOf is what is refused of a reading, of which nothing changes.
func (j Judge) refusedOf(r *manifest.Reading) []*ring.Refusal {
	p := r.Plan
	p.Apps, p.Refused, p.Claims, p.Beside = slices.Clone(p.Apps), maps.Clone(p.Refused), maps.Clone(p.Claims), maps.Clone(p.Beside)
	return ByPlace(slices.Concat(withoutMirror(r.Refusals), j.Plan(&p, r.Drafts)))
}

func isOf(refused []*ring.Refusal, app string) bool {
	return slices.ContainsFunc(refused, func(r *ring.Refusal) bool { return r.App == app })
}

// tell adds the refusals of apps that none is known of yet: of those that are, the
// grants are left out by now, and what they lack is no news.
func (s *Suggestion) tell(refused []*ring.Refusal) {
	known := s.Refused
	for _, r := range refused {
		if len(known) == 0 || !isOf(known, r.App) {
			s.Refused = append(s.Refused, r)
		}
	}
}

// leaveOut notes the apps whose grants would change nothing.
func (s *Suggestion) leaveOut(needs []need, refused []*ring.Refusal) {
	for _, a := range byApp(needs) {
		if isOf(refused, a.Name) {
			s.StaysRefused = append(s.StaysRefused, StaysRefused{Name: a.Name, Source: a.Source, Path: a.Path, Grants: len(a.Grants)})
		}
	}
}

func grantsOf(needs []need) []policy.Grant {
	var out []policy.Grant
	for _, n := range needs {
		out = append(out, n.grant)
	}
	return out
}

// missing are the grants that the apps of a reading lack.
func (j Judge) missing(r *manifest.Reading) []need {
	apps := r.Plan.Apps
	others := j.Beside(r.Plan.Source, apps)
	j.leaveOutRefused(apps, &others)
	var out []need
	for i := range apps {
		found, _ := j.Findings(&apps[i], others.Of(policy.HolderOf(&apps[i])))
		out = append(out, needsOf(&apps[i], found)...)
	}
	for i := range r.Drafts {
		out = append(out, needsOf(&r.Drafts[i].App, j.draftFindings(&r.Drafts[i], others))...)
	}
	return out
}

// needsOf are the grants that the denied findings of an app ask for, each once.
func needsOf(a *ring.App, found []policy.Finding) []need {
	var out []need
	for _, f := range found {
		if f.Verdict != policy.Deny || f.Asks == "" {
			continue
		}
		at := SayingPlace(a, f)
		n := need{place: at, risk: f.Risk, grant: policy.Grant{
			App: a.Name, Source: a.Source, Path: path.Clean(a.Path), Feature: f.Rule, Value: f.Asks, Danger: policy.GivesRoot(f.Rule, f.Asks), Reason: "suggested",
		}}
		if kind, name, _ := strings.Cut(f.Of, "."); kind == "services" {
			n.grant.Service = name
		}
		if !slices.ContainsFunc(out, func(o need) bool {
			return o.grant.Feature == n.grant.Feature && o.grant.Value == n.grant.Value && o.grant.Service == n.grant.Service
		}) {
			out = append(out, n)
		}
	}
	return out
}

// needed leaves out each grant once, and keeps those without which something is refused.
func (j Judge) needed(r *manifest.Reading, before []policy.Grant, needs []need) []need {
	j.Rules.Grants = slices.Concat(before, grantsOf(needs))
	others := j.Beside(r.Plan.Source, r.Plan.Apps)
	j.leaveOutRefused(r.Plan.Apps, &others)
	for i := 0; i < len(needs); {
		without := slices.Delete(slices.Clone(needs), i, i+1)
		j.Rules.Grants = slices.Concat(before, grantsOf(without))
		if j.lacks(r, others, needs[i].grant) {
			i++
			continue
		}
		needs = without
	}
	return needs
}

// lacks reports whether the app of a grant is refused something that a grant could give.
func (j Judge) lacks(r *manifest.Reading, others policy.Whose, g policy.Grant) bool {
	var found []policy.Finding
	for i := range r.Plan.Apps {
		if a := &r.Plan.Apps[i]; a.Name == g.App && path.Clean(a.Path) == g.Path {
			more, _ := j.Findings(a, others.Of(policy.HolderOf(a)))
			found = append(found, more...)
		}
	}
	for i := range r.Drafts {
		if d := &r.Drafts[i]; d.App.Name == g.App && path.Clean(d.App.Path) == g.Path {
			found = append(found, j.draftFindings(d, others)...)
		}
	}
	return slices.ContainsFunc(found, func(f policy.Finding) bool { return f.Verdict == policy.Deny && f.Asks != "" })
}

// byApp orders grants by app, and by the place that asks for them.
func byApp(needs []need) []SuggestedApp {
	out := []SuggestedApp{}
	all := grantsOf(needs)
	for _, n := range needs {
		g := n.grant
		at := slices.IndexFunc(out, func(a SuggestedApp) bool { return a.Name == g.App && a.Path == g.Path })
		if at < 0 {
			at = len(out)
			out = append(out, SuggestedApp{Name: g.App, Source: g.Source, Path: g.Path})
		}
		together := slices.ContainsFunc(all, func(o policy.Grant) bool { return policy.RootTogether(&g, &o) || policy.RootTogether(&o, &g) })
		out[at].Grants = append(out[at].Grants, SuggestedGrant{
			Feature: g.Feature, Value: g.Value, Service: g.Service, Danger: wording.When(g.Danger || together, policy.Equivalent),
			File: n.place.File, Line: n.place.Line, Risk: n.risk,
		})
	}
	slices.SortFunc(out, func(a, b SuggestedApp) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Path, b.Path)) })
	for _, a := range out {
		slices.SortStableFunc(a.Grants, func(x, y SuggestedGrant) int {
			return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Feature, y.Feature), cmp.Compare(x.Value, y.Value))
		})
	}
	return out
}

// Grants is how many there are.
func (s *Suggestion) Grants() int {
	n := 0
	for _, a := range s.Apps {
		n += len(a.Grants)
	}
	return n
}

// Only leaves what is about one app.
func (s *Suggestion) Only(app string) {
	s.Apps = slices.DeleteFunc(s.Apps, func(a SuggestedApp) bool { return a.Name != app })
	s.Refused = slices.DeleteFunc(s.Refused, func(r *ring.Refusal) bool { return r.App != app })
	s.StaysRefused = slices.DeleteFunc(s.StaysRefused, func(a StaysRefused) bool { return a.Name != app })
}

// Place is where a grant is asked for.
func (g *SuggestedGrant) Place() string {
	if g.Line == 0 {
		return g.File
	}
	return g.File + ":" + strconv.Itoa(g.Line)
}

// EmptyReason leaves it to a person to say why: a grant without a reason is refused.
func EmptyReason(*SuggestedGrant) string { return "" }

// AskedAtInit is the reason of a grant whose person was asked by init.
func AskedAtInit(g *SuggestedGrant) string { return "asked for by " + g.Place() + " at init" }

// Yaml is the suggestion as it stands in a policy, below its profile. roots are folders
// that all apps may write to, beside their own.
func (s *Suggestion) Yaml(roots []string, reason func(*SuggestedGrant) string) string {
	var b strings.Builder
	if len(roots) > 0 {
		b.WriteString("mounts:\n  bind_roots:\n")
		for _, root := range roots {
			fmt.Fprintf(&b, "    - %s\n", strconv.Quote("+"+root))
		}
	}
	if len(s.Apps) > 0 {
		b.WriteString("apps:\n")
	}
	for _, a := range s.Apps {
		fmt.Fprintf(&b, "  - name: %s\n    source: %s\n    path: %s\n    grants:\n", strconv.Quote(a.Name), strconv.Quote(a.Source), strconv.Quote(a.Path))
		for i := range a.Grants {
			g := &a.Grants[i]
			fmt.Fprintf(&b, "      # %s: %s\n      - {feature: %s, value: %s", g.Place(), g.Risk, g.Feature, strconv.Quote(g.Value))
			if g.Service != "" {
				fmt.Fprintf(&b, ", service: %s", strconv.Quote(g.Service))
			}
			if g.Danger != "" {
				fmt.Fprintf(&b, ", danger: %s", g.Danger)
			}
			fmt.Fprintf(&b, ", reason: %s}\n", strconv.Quote(reason(g)))
		}
	}
	return b.String()
}

// folderUse is a folder of the host that apps mount outside of their own data.
type folderUse struct {
	Folder string   `json:"folder"`
	Grants int      `json:"grants"`
	Apps   []string `json:"apps"`
}

// Folders are those that bind roots could open in place of grants, the most used first.
// Folders by which the host itself runs are not among them.
func (s *Suggestion) Folders() []folderUse {
	by := map[string]*folderUse{}
	for _, a := range s.Apps {
		for _, g := range a.Grants {
			p, _, _ := strings.Cut(g.Value, ":")
			root := rootFor(p)
			if g.Feature != "mounts.bind" || g.Danger != "" || root == "" {
				continue
			}
			if by[root] == nil {
				by[root] = &folderUse{Folder: root}
			}
			by[root].Grants++
			if !slices.Contains(by[root].Apps, a.Name) {
				by[root].Apps = append(by[root].Apps, a.Name)
			}
		}
	}
	var out []folderUse
	for _, root := range slices.Sorted(maps.Keys(by)) { // an outer folder comes before those in it
		u := by[root]
		if i := slices.IndexFunc(out, func(o folderUse) bool { return strings.HasPrefix(root, o.Folder+"/") }); i >= 0 {
			out[i].Grants += u.Grants
			for _, app := range u.Apps {
				if !slices.Contains(out[i].Apps, app) {
					out[i].Apps = append(out[i].Apps, app)
				}
			}
			continue
		}
		out = append(out, *u)
	}
	slices.SortStableFunc(out, func(x, y folderUse) int { return cmp.Compare(y.Grants, x.Grants) })
	return out
}

// hostsOwn are folders of which no part is data of apps.
var hostsOwn = []string{"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var"}

// aboveData are folders that hold the data of many, and not of apps alone.
var aboveData = []string{"home", "media", "mnt", "opt", "srv"}

// rootFor is the folder that a person would name to hold the data at p: two parts of it,
// three below /home and below a pool of shares, one where that is mounted itself, as /data
// is; "" where there is none.
func rootFor(p string) string {
	parts := strings.Split(strings.TrimPrefix(path.Clean(p), "/"), "/")
	depth := 2
	if len(parts) == 1 && parts[0] != "" && !slices.Contains(aboveData, parts[0]) {
		depth = 1
	}
	if parts[0] == "home" || parts[0] == "mnt" && len(parts) > 2 && (parts[1] == "user" || parts[1] == "disks") {
		depth = 3
	}
	if slices.Contains(hostsOwn, parts[0]) || len(parts) < depth {
		return ""
	}
	return "/" + strings.Join(parts[:depth], "/")
}

// WithRoots is a judge under whose policy all apps may write to some more folders.
func (j Judge) WithRoots(roots []string) Judge {
	lists := policy.ListsOf(cmp.Or(j.Rules.Profile, policy.Compose))
	if j.Rules.Lists != nil {
		lists = *j.Rules.Lists
	}
	lists.BindRoots = slices.Concat(lists.BindRoots, roots)
	j.Rules.Lists = &lists
	return j
}

// RootEquivalent counts the grants that give root on the host.
func (s *Suggestion) RootEquivalent() int {
	n := 0
	for _, a := range s.Apps {
		for _, g := range a.Grants {
			if g.Danger != "" {
				n++
			}
		}
	}
	return n
}

// AsGrants are the grants as the policy has them once it is written.
func (s *Suggestion) AsGrants() []policy.Grant {
	var out []policy.Grant
	for _, a := range s.Apps {
		for i := range a.Grants {
			g := &a.Grants[i]
			out = append(out, policy.Grant{
				App: a.Name, Source: a.Source, Path: a.Path, Service: g.Service, Feature: g.Feature, Value: g.Value,
				Reason: AskedAtInit(g), Danger: g.Danger != "",
			})
		}
	}
	return out
}
