package admission

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/wording"
)

// Judge holds plans to the policy of this host: each payload that a plan would
// send is built and judged before the plan counts, and once more right before
// it is sent.
type Judge struct {
	Rules    policy.Rules
	dataRoot string
	Runtimes *EngineRuntimes // nil where no engine is asked
	// Live is the policy as its files say now; nil where nothing changes meanwhile.
	Live *LivePolicy
	// Whose is what belongs to whom at this moment; nil where nothing is known of the host.
	Whose func() policy.Whose
	// Signed is "" where one of the patterns names who signed a file of an app's commit, else
	// why not; nil where nobody knows who signs, such as in a folder.
	Signed func(a *ring.App, file string, patterns []string) (why string)
}

// For is the judge of a configuration.
func For(c *config.Config) Judge {
	return Judge{dataRoot: c.DataRoot, Runtimes: &EngineRuntimes{}, Rules: policy.Rules{
		Profile: c.Rules.Profile, Host: c.OwnerName(), Own: ownPaths(c), Content: filepath.Join(c.State, "content"), Live: filepath.Join(c.State, "live"), Secrets: []string{filepath.Join(c.State, "secrets"), c.Secrets.Dir},
		EngineGroups: engineGroups(c.Engine.URL), Services: c.MostServices(), Routes: c.Rules.Routes, Listen: c.Listen.HTTP, ListenAPI: apiAddress(c),
		Lists: c.Rules.Lists, Grants: c.Rules.Grants,
	}}
}

// Anywhere is for a folder that is checked without a configuration.
func Anywhere(profile policy.Profile) Judge {
	return Judge{dataRoot: config.DefaultDataRoot, Rules: policy.Rules{Profile: profile, Content: filepath.Join(config.DefaultState, "content"), Live: filepath.Join(config.DefaultState, "live")}}
}

// Here are the rules with what the engine says of itself.
func (j Judge) Here() policy.Rules {
	r := j.Rules
	if j.Live != nil {
		said, _ := j.Live.Said()
		said.Over(&r)
	}
	r.Now = time.Now()
	r.DefaultRuntime, r.NvidiaRuntimes = j.Runtimes.known(time.Now())
	return r
}

// ownPaths are the daemon's files and folders, which no container gets.
func ownPaths(c *config.Config) []string {
	out := namedPaths(c)
	for _, p := range slices.Clone(out) { // the state may lie on another disk, behind a link
		if real, err := filepath.EvalSymlinks(p); err == nil && real != filepath.Clean(p) {
			out = append(out, real)
		}
	}
	return out
}

// namedPaths are those that the configuration names, as it names them.
func namedPaths(c *config.Config) []string {
	out := append([]string{c.State, c.Env.Dir, c.Listen.Socket, c.Rules.File, c.Secrets.Dir, c.Secrets.HostKeyFile, c.Engine.KeyFile}, c.Rules.SignatureFiles...)
	for _, k := range c.Secrets.Keys {
		out = append(out, k.AgeFile, k.SSHFile, k.OpenPGPFile)
	}
	if file, err := filepath.Abs(c.File); err == nil {
		out = append(out, file)
	}
	for _, s := range c.Sources {
		out = append(out, s.Auth.PasswordFile, s.Auth.SSHKeyFile)
		if s.Trust != nil {
			out = append(out, s.Trust.AllowedSigners, s.Trust.OpenPGPKeys, s.Trust.RevokedKeys, s.Trust.Signers.File)
		}
		if s.Webhook != nil {
			out = append(out, s.Webhook.SecretFile)
		}
		if s.Status != nil {
			out = append(out, s.Status.TokenFile)
		}
	}
	return slices.DeleteFunc(out, func(p string) bool { return p == "" })
}

// engineGroups is the group of the engine's socket; none where it cannot be seen.
func engineGroups(url string) []string {
	socket, ok := strings.CutPrefix(url, "unix://")
	if !ok {
		return nil
	}
	info, err := os.Stat(socket)
	if err != nil {
		return nil
	}
	_, gid, ok := disk.OwnersOf(info)
	if !ok || gid == 0 {
		return nil
	}
	return []string{strconv.Itoa(gid)}
}

// Look reads a commit and holds it to the policy: a refusal for each thing that
// either refuses, in order of place.
func (j Judge) Look(c *ring.Commit, s manifest.Settings) (ring.Plan, []*ring.Refusal) {
	s.Denied = j.Denies
	r := manifest.Look(c, s)
	refusals := j.refusalsOf(&r) // which takes apps out of the plan
	return r.Plan, refusals
}

// LookFurther is look, and what Compose files of the commit nothing reads.
func (j Judge) LookFurther(c *ring.Commit, s manifest.Settings) (ring.Plan, []*ring.Refusal, []manifest.NotRead) {
	s.Denied = j.Denies
	r, notRead := manifest.LookFurther(c, s)
	refusals := j.refusalsOf(&r)
	return r.Plan, refusals, notRead
}

func (j Judge) refusalsOf(r *manifest.Reading) []*ring.Refusal {
	return ByPlace(append(withoutMirror(r.Refusals), j.Reading(r)...))
}

// withoutMirror puts what cannot be read into the words of one who has it in a folder:
// only the daemon has a mirror, which it fetches again.
func withoutMirror(refusals []*ring.Refusal) []*ring.Refusal {
	out := slices.Clone(refusals)
	for i, r := range out {
		if r.Code == ring.Unreadable {
			here := *r
			here.Says = strings.Replace(r.Says, " from the local mirror", "", 1)
			here.Hint = "whoever runs this has to be able to read it"
			out[i] = &here
		}
	}
	return out
}

// Reading is Plan of what was read, and no refusal tells a value of the host.
func (j Judge) Reading(r *manifest.Reading) []*ring.Refusal {
	all := j.Plan(&r.Plan, r.Drafts)
	r.Hide(all...)
	r.Hide(slices.Collect(maps.Values(r.Plan.Refused))...)
	for i := range r.Plan.Decisions {
		d := &r.Plan.Decisions[i]
		d.Value, d.Hint = r.Hidden(d.App, d.Value), r.Hidden(d.App, d.Hint)
	}
	return all
}

// Plan takes the apps out of a plan that the policy refuses, and gives the
// others their powers. It returns a refusal for each thing that is refused, those
// of drafts among them: one push can mend all of an app.
func (j Judge) Plan(p *ring.Plan, drafts []manifest.Draft) []*ring.Refusal {
	rules := j.Here()
	p.Decisions, p.Policy = nil, rules.Hash()
	others := j.Beside(p.Source, p.Apps)
	judged := j.judgeApps(p.Apps, &others)
	if slices.ContainsFunc(judged, appJudged.refused) { // else nothing is left out, and this counts
		j.leaveOutRefused(p.Apps, &others)
		judged = j.judgeApps(p.Apps, &others)
	}
	var carried []ring.App
	var all []*ring.Refusal
	for i, a := range p.Apps {
		found, refusals := judged[i].found, judged[i].refusals
		p.Decisions = append(p.Decisions, decisionsOf(&a, found)...)
		if len(refusals) == 0 {
			a.Powers = judged[i].powers
			notes, beside := notesOf(found)
			a.Notes = append(slices.Clip(a.Notes), notes...)
			carried = append(carried, a)
			if len(beside) > 0 {
				if p.Beside == nil {
					p.Beside = map[string][]string{}
				}
				p.Beside[a.Name] = beside
			}
			continue
		}
		p.Refuse(a.Name, InOne(refusals), a)
		all = append(all, refusals...)
	}
	p.Apps = carried
	defer func() { slices.SortStableFunc(p.Decisions, compareDecisions) }()
	for i := range drafts {
		d := &drafts[i]
		found := j.draftFindings(d, others)
		p.Decisions = append(p.Decisions, decisionsOf(&d.App, found)...)
		refusals, _ := sentences(&d.App, found)
		all = append(all, refusals...)
		// The plan may have another reason by now, such as a bad folder of the host.
		if r := p.Refused[d.Key]; r != nil && len(refusals) > 0 && r.Code == d.Refusals[0].Code && r.Where() == d.Refusals[0].Where() {
			one := InOne(append(d.Refusals[:1:1], ByPlace(slices.Concat(d.Refusals[1:], refusals))...))
			one.App = r.App
			p.Refused[d.Key] = one
		}
	}
	return all
}

// appJudged is what the policy says of an app.
type appJudged struct {
	found    []policy.Finding
	refusals []*ring.Refusal
	powers   []string
}

func (a appJudged) refused() bool { return len(a.refusals) > 0 }

// judgeApps judges each app beside what others have.
func (j Judge) judgeApps(apps []ring.App, w *policy.Whose) []appJudged {
	out := make([]appJudged, len(apps))
	for i := range apps {
		a := &apps[i]
		found, unbuilt := j.Findings(a, w.Of(policy.HolderOf(a)))
		out[i].found = found
		out[i].refusals, out[i].powers = sentences(a, found)
		if unbuilt != nil {
			out[i].refusals = []*ring.Refusal{unbuilt}
		}
		out[i].refusals = append(out[i].refusals, notByEngine(a)...)
		out[i].powers = append(out[i].powers, keptBySwarm(a)...)
	}
	for i, r := range j.portsTwice(apps) {
		out[i].refusals = append(out[i].refusals, r)
	}
	return out
}

// portsTwice refuses apps of a swarm that publish a port of another app of the plan, by their
// places in it. The app that has the port keeps it.
func (j Judge) portsTwice(apps []ring.App) map[int]*ring.Refusal {
	has := func(app string, p ring.Port) bool {
		return j.Whose != nil && slices.ContainsFunc(j.Whose().Holdings, func(h policy.Holding) bool {
			return h.State == policy.InForce && h.App == app && slices.ContainsFunc(h.Ports, p.Clashes)
		})
	}
	out := map[int]*ring.Refusal{}
	for i := range apps {
		for k := range apps {
			s, p, of := portTwice(&apps[i], &apps[k])
			if i == k || s == nil || has(apps[i].Name, p) || i < k && !has(apps[k].Name, p) {
				continue
			}
			at := s.Place("ports")
			out[i] = &ring.Refusal{
				Code: ring.Conflict, Commit: apps[i].Commit, App: apps[i].Name, File: at.File, Line: at.Line,
				Says: fmt.Sprintf("services.%s publishes port %s, which %s/%s publishes on the swarm", s.Name, p.Published(), apps[k].Name, of), Hint: "publish another port",
			}
			break
		}
	}
	return out
}

// portTwice is a service of an app of a swarm with a port that another app publishes, too; nil
// for none.
func portTwice(a, other *ring.App) (*ring.Service, ring.Port, string) {
	for i := range a.Services {
		s := &a.Services[i]
		for _, p := range s.Spec.Ports {
			if s.Spec.Cluster == nil || p.HostPort == "" {
				continue
			}
			for k := range other.Services {
				if slices.ContainsFunc(other.Services[k].Spec.Ports, p.Clashes) {
					return s, p, other.Services[k].Name
				}
			}
		}
	}
	return nil, ring.Port{}, ""
}

// keptBySwarm is what to know of an app whose values a swarm keeps; none for one engine.
func keptBySwarm(a *ring.App) []string {
	var of []string
	for i := range a.Services {
		s := &a.Services[i]
		if s.Spec.Cluster != nil && slices.ContainsFunc(s.Spec.Mounts, func(m ring.Mount) bool { return m.Secret }) {
			of = append(of, s.Name)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return []string{"secrets of " + strings.Join(of, ", ") + " lie in the log of every manager, encrypted; docker swarm update --autolock=true keeps its key off their disks"}
}

// leaveOutRefused takes out what apps ask for that are refused for it: their mounts, and
// all claims of those that are refused whatever else is planned. They do not run, and
// whoever writes one could refuse all others by it.
func (j Judge) leaveOutRefused(apps []ring.App, w *policy.Whose) {
	accepted := w.Accepted()
	for i := range apps {
		me := policy.HolderOf(&apps[i])
		if !j.refuses(&apps[i], w.Of(me).Unmounted()) {
			continue
		}
		w.Unmount(me)
		if j.refuses(&apps[i], accepted.Of(me).Unmounted()) {
			w.Dismiss(me)
		}
	}
}

// Denies reports whether the policy refuses an app by itself, whatever else is planned.
func (j Judge) Denies(a *ring.App) bool {
	var w policy.Whose
	if j.Whose != nil {
		w = j.Whose()
	}
	w = w.Accepted()
	return j.refuses(a, w.Of(policy.HolderOf(a)).Unmounted())
}

func (j Judge) refuses(a *ring.App, others policy.Others) bool {
	found, unbuilt := j.Findings(a, others)
	refusals, _ := sentences(a, found)
	return unbuilt != nil || len(refusals) > 0 || len(notByEngine(a)) > 0
}

// notByEngine refuses what the engine of an app that was read for a swarm cannot carry.
func notByEngine(a *ring.App) []*ring.Refusal {
	if !slices.ContainsFunc(a.Services, func(s ring.Service) bool { return s.Spec.Cluster != nil }) {
		return nil
	}
	return runtime.NotBySwarm(a)
}

// draftFindings judge what an app with faults says. What the policy would refuse for
// something that is not said is left for when all can be read.
func (j Judge) draftFindings(d *manifest.Draft, w policy.Whose) []policy.Finding {
	others := w.Of(policy.HolderOf(&d.App))
	rules := j.of(&d.App)
	found := policy.CheckApp(rules, &d.App, j.root(&d.App), others)
	for i := range d.App.Services {
		requests, err := runtime.Payloads(j.Rules.Host, &d.App, &d.App.Services[i], j.root(&d.App), j.Rules.Content)
		if err != nil {
			continue // it names what has a fault
		}
		for _, r := range requests {
			found = append(found, policy.Check(rules, j.request(d.App.Name, r, others))...)
		}
	}
	return slices.DeleteFunc(found, func(f policy.Finding) bool {
		kind, name, _ := strings.Cut(f.Of, ".")
		s, ok := d.App.Service(name)
		return d.Lost[f.Of] && (kind != "services" || !ok || SayingPlace(&d.App, f) == s.Place(""))
	})
}

// Beside is what belongs to whom where a source has these apps next.
func (j Judge) Beside(source string, apps []ring.App) policy.Whose {
	var w policy.Whose
	if j.Whose != nil {
		w = j.Whose()
	}
	since := map[string]time.Time{}
	for i := range w.Holdings {
		if h := &w.Holdings[i]; h.Source == source {
			since[h.App] = h.Since
		}
	}
	var plan []policy.Holding
	for i := range apps {
		a := &apps[i]
		plan = append(plan, policy.HoldingOf(a, j.root(a), policy.Next, since[a.Name]))
	}
	return w.With(source, plan)
}

func (j Judge) root(a *ring.App) string { return cmp.Or(a.DataRoot, j.dataRoot) }

// App gives the refusals of one app, by place, and its powers: the sentences of
// what it may do beyond what every app may.
func (j Judge) App(a *ring.App, w policy.Whose) (refusals []*ring.Refusal, powers []string) {
	found, refusal := j.Findings(a, w.Of(policy.HolderOf(a)))
	if refusal != nil {
		return []*ring.Refusal{refusal}, nil
	}
	refusals, powers = sentences(a, found)
	return append(refusals, notByEngine(a)...), powers
}

// notesOf are what is worth knowing of an app and nothing beyond what it may: of itself,
// and of apps beside it.
func notesOf(found []policy.Finding) (notes, beside []string) {
	for _, f := range found {
		switch {
		case f.Verdict != policy.Note:
		case policy.IsBeside(f.Rule):
			beside = append(beside, f.Says())
		default:
			notes = append(notes, f.Says())
		}
	}
	slices.Sort(notes)
	slices.Sort(beside)
	return slices.Compact(notes), slices.Compact(beside)
}

// sentences are findings as people read them: those that are refused and those that
// are powers. Notes are in neither.
func sentences(a *ring.App, found []policy.Finding) (refusals []*ring.Refusal, powers []string) {
	found = slices.DeleteFunc(slices.Clone(found), func(f policy.Finding) bool { return f.Verdict == policy.Note })
	for _, f := range together(found, func(f policy.Finding) ring.Place {
		if f.Verdict == policy.Power {
			return ring.Place{} // a power is told without its place
		}
		return SayingPlace(a, f)
	}) {
		if f.Verdict == policy.Power {
			powers = append(powers, f.Says())
			continue
		}
		refusals = append(refusals, refusalOf(a, f))
	}
	slices.Sort(powers)
	return ByPlace(refusals), slices.Compact(powers)
}

// valuesAtOnce is how many values one sentence names.
const valuesAtOnce = 8

// together makes one finding of those that say the same of several values on
// one line, such as the ports of a mail server.
func together(found []policy.Finding, place func(policy.Finding) ring.Place) []policy.Finding {
	type subject struct {
		finding policy.Finding
		at      ring.Place
	}
	var out []policy.Finding
	values, at := map[subject][]string{}, map[subject]int{}
	for _, f := range found {
		s := subject{f, place(f)}
		s.finding.Value, s.finding.At, s.finding.Field, s.finding.Grant = "", "", "", ""
		s.finding.Asks = wording.When(f.Asks != "", "some")
		if _, known := at[s]; !known {
			at[s] = len(out)
			out = append(out, f)
		}
		values[s] = append(values[s], f.Value)
	}
	for s, i := range at {
		all := values[s]
		slices.SortFunc(all, func(x, y string) int { return cmp.Or(cmp.Compare(number(x), number(y)), cmp.Compare(x, y)) })
		all = slices.Compact(all)
		more := max(0, len(all)-valuesAtOnce)
		out[i].Value = strings.Join(all[:len(all)-more], ", ") + wording.When(more > 0, fmt.Sprintf(" and %d more", more))
	}
	return out
}

// number is what a text begins with, so that port 143 comes after port 25.
func number(s string) int {
	n, _ := strconv.Atoi(s[:len(s)-len(strings.TrimLeft(s, "0123456789"))])
	return n
}

// ByPlace has refusals in order of file and line, each once.
func ByPlace(all []*ring.Refusal) []*ring.Refusal {
	slices.SortStableFunc(all, func(x, y *ring.Refusal) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Says, y.Says))
	})
	return slices.CompactFunc(all, func(x, y *ring.Refusal) bool { return x.Where() == y.Where() && x.Says == y.Says })
}

// Findings are what the rules of now say of one app, notes and powers among them.
func (j Judge) Findings(a *ring.App, others policy.Others) ([]policy.Finding, *ring.Refusal) {
	rules := j.of(a)
	found := policy.CheckApp(rules, a, j.root(a), others)
	found = append(found, policy.CheckBeside(rules, a, j.root(a), others)...)
	for i := range a.Services {
		s := &a.Services[i]
		requests, err := runtime.Payloads(j.Rules.Host, a, s, j.root(a), j.Rules.Content)
		if err != nil {
			return nil, &ring.Refusal{
				Code: ring.BadValue, Commit: a.Commit, App: a.Name, File: s.File, Line: s.Line,
				Says: fmt.Sprintf("service %s: %v", s.Name, err), Hint: "gitring validate shows it without a push",
			}
		}
		for _, r := range requests {
			found = append(found, policy.Check(rules, j.request(a.Name, r, others))...)
		}
	}
	return found, nil
}

// request is a payload with what is known of who asks.
func (j Judge) request(app string, r runtime.Request, others policy.Others) policy.Request {
	q := policy.Request{App: app, Key: r.Key, Body: r.Body, DataRoot: j.dataRoot, Others: others}
	if r.App != nil {
		q.DataRoot, q.Source, q.Path = j.root(r.App), r.App.Source, r.App.Path
		for _, t := range r.App.Taken {
			if t.Folder != "" {
				q.Taken = append(q.Taken, path.Join(q.DataRoot, t.As))
			}
		}
	}
	if r.Service != nil {
		q.Service, q.FrontOf = r.Service.Name, r.Service.FrontOf
		for _, m := range r.Service.Spec.Mounts {
			switch m.Kind {
			case ring.MountContent:
				q.Contents = append(q.Contents, m.Source)
			case ring.MountLive:
				q.Lives = append(q.Lives, liveOf(r.Body, m))
			}
		}
	}
	if c, ok := r.Body.(runtime.ContainerRequest); ok {
		q.Owners, q.Elsewhere = c.Owners, c.Elsewhere
		if r.Service != nil && r.Service.FrontOf != "" {
			q.Front = runtime.FrontMounts(j.Rules.Content, c.Name)
		}
	}
	return q
}

// liveOf is where a live folder of the container that a payload makes lies,
// below the folder of all of them. The container's name is gitring's own choice.
func liveOf(body any, m ring.Mount) string {
	c, ok := body.(runtime.ContainerRequest)
	if !ok {
		return ""
	}
	return path.Join(c.Name, ring.LiveName(m.Source))
}

// Allow judges one payload right before it is sent: a plan in force may be from
// before the policy changed.
func (j Judge) Allow(app string, payload any) error {
	r, ok := payload.(runtime.Request)
	if !ok {
		r = runtime.Request{Key: "container", Body: payload}
	}
	r.App = cmp.Or(r.App, j.inForce(app))
	a := cmp.Or(r.App, &ring.App{Name: app})
	var denied []*ring.Refusal
	others := j.accepted(a)
	q := j.request(app, r, others)
	rules := j.of(a)
	asked := policy.Check(rules, q)
	if c, is := r.Body.(runtime.ContainerRequest); j.reports() && !(is && c.HostConfig == nil) {
		// What is in force goes on as it was accepted. What no policy lets pass was never
		// accepted, and how an image begins was judged by no plan.
		asked = slices.DeleteFunc(asked, func(f policy.Finding) bool { return f.Owner })
	}
	found := slices.Concat(
		j.takes(rules, r, others),
		j.image(rules, r),
		asked,
		policy.CheckMounted(rules, q, r.Mounts, r.Beside),
		policy.CheckLeads(rules, q, r.Mounts, r.Leads),
	)
	for _, f := range found {
		if f.Verdict == policy.Deny {
			denied = append(denied, refusalOf(a, f))
		}
	}
	if len(denied) == 0 {
		return nil
	}
	return InOne(denied)
}

// takes is what a new container takes that another app has: networks, names, host names
// and ports.
func (j Judge) takes(rules policy.Rules, r runtime.Request, others policy.Others) []policy.Finding {
	c, ok := r.Body.(runtime.ContainerRequest)
	if !ok || c.HostConfig == nil || r.App == nil || r.Service == nil {
		return nil
	}
	return policy.CheckServiceBeside(rules, r.App, r.Service, j.root(r.App), others)
}

// image is what the rules of now say of the image of a new container: it was let pass by
// those of when its plan came into force.
func (j Judge) image(rules policy.Rules, r runtime.Request) []policy.Finding {
	c, ok := r.Body.(runtime.ContainerRequest)
	if !ok || c.HostConfig == nil || r.App == nil || r.Service == nil || j.reports() {
		return nil
	}
	return policy.CheckImage(rules, r.App, r.Service)
}

// reports reports whether an app in force that breaks a rule is only told of: it was let
// pass once, and its instances are replaced as before. What a plan asks anew is judged
// before it counts, and what only this host knows at each call.
func (j Judge) reports() bool {
	said, _ := j.Live.Said()
	return said.OnViolation == config.OnViolationReport
}

// OwnerHost reports whether the signers own the host.
func (j Judge) OwnerHost() bool {
	rules := j.Here()
	return rules.Profile == policy.Owner
}

// Shared are the folders of the host that containers may have written to: those of
// mounts.bind_roots, and those that a grant opens.
func (j Judge) Shared(a *ring.App) []string {
	rules := j.Here()
	return rules.SharedFolders(j.root(a), a.Path)
}

// inForce is whose the app of a name is that is in force, for a call that is not about one
// service; nil for nobody's.
func (j Judge) inForce(name string) *ring.App {
	if j.Whose == nil {
		return nil
	}
	for _, h := range j.Whose().Holdings {
		if h.App == name && h.State == policy.InForce {
			return &ring.App{Name: h.App, Source: h.Source, Path: h.Path, DataRoot: h.DataRoot}
		}
	}
	return nil
}

// accepted is what belongs to other apps at this moment, without what is only planned.
func (j Judge) accepted(a *ring.App) policy.Others {
	if j.Whose == nil {
		return policy.Others{}
	}
	w := j.Whose().Accepted()
	return w.Of(policy.HolderOf(a))
}

// refusalOf puts a denied finding at its line.
func refusalOf(a *ring.App, f policy.Finding) *ring.Refusal {
	at := SayingPlace(a, f)
	if written, ok := writtenAbove(a, f); ok {
		f.Value = written
		f.Instead = strings.Replace(f.Instead, "use a path relative to the Compose file", "use a path below the app's folder, such as ./data", 1)
	}
	code := ring.PolicyDenied
	if f.Rule == policy.Routes {
		code = ring.RouteTaken
	}
	return &ring.Refusal{
		Code: code, Commit: a.Commit, App: a.Name, File: at.File, Line: at.Line, Says: f.Says(), Hint: f.Hint(),
	}
}

// writtenAbove is a data folder above the app's as its author wrote it, such as ../shared:
// the message would name a path of the host that stands in no file.
func writtenAbove(a *ring.App, f policy.Finding) (string, bool) {
	_, name, _ := strings.Cut(f.Of, ".")
	s, ok := a.Service(name)
	if !ok {
		return "", false
	}
	for _, m := range s.Spec.Mounts {
		if m.Kind != ring.MountData || f.At != "volumes."+m.Target || !strings.HasSuffix(f.Value, "/"+m.Source) {
			continue
		}
		rel, err := filepath.Rel(path.Clean(a.Path), m.Source)
		return rel, err == nil && strings.HasPrefix(rel, "../")
	}
	return "", false
}

// otherwise are keys that say the same as another one does.
var otherwise = map[string]string{
	"tmpfs": "volumes", "labels": "label_file", "gpus": "deploy.resources.reservations.devices", "devices": "deploy.resources.reservations.devices", "limits": "deploy.resources", "deploy.replicas": "scale",
}

// SayingPlace is where the app's files say what was found.
func SayingPlace(a *ring.App, f policy.Finding) ring.Place {
	kind, name, _ := strings.Cut(f.Of, ".")
	s, ok := a.Service(name)
	if kind != "services" || !ok {
		return a.Place(f.Of + "." + f.At)
	}
	keys := append([]string{f.At, reworded(f.At)}, mountedBesides(f.At)...)
	for _, key := range keys {
		if at, exact := s.Places[key]; exact {
			return at
		}
	}
	for _, key := range keys {
		if at := s.Place(key); at != s.Place("") {
			return at
		}
	}
	return s.Place("")
}

// mountedBesides are the other keys of a service that say what is mounted at a target.
func mountedBesides(key string) []string {
	target, ok := strings.CutPrefix(key, "volumes.")
	if !ok {
		return nil
	}
	return []string{"tmpfs." + target, "configs." + target, "secrets." + target}
}

func reworded(key string) string {
	for _, from := range slices.Sorted(maps.Keys(otherwise)) {
		if rest, ok := strings.CutPrefix(key, from); ok {
			return otherwise[from] + rest
		}
	}
	return key
}

// moreWithin is how long a refusal may get by listing what else is refused.
const moreWithin = 300

// InOne is the first refusal with the others behind it, where they are few and
// short, else with their number: a plan holds one for each app.
func InOne(all []*ring.Refusal) *ring.Refusal {
	r := *all[0]
	if len(all) == 1 {
		return &r
	}
	var more []string
	for _, x := range all[1:] {
		at := fmt.Sprintf("line %d", x.Line)
		if x.File != r.File {
			at = x.Where()
		}
		more = append(more, at+": "+x.Says)
	}
	count := fmt.Sprintf(" (and %d more", len(more))
	if list := strings.Join(more, "; "); len(r.Says)+len(list) <= moreWithin {
		count += ": " + list
	}
	r.Says += count + ")"
	return &r
}

// apiAddress is that of the listener for people and programs; "" where there is none.
func apiAddress(c *config.Config) string {
	if c.Listen.API == nil {
		return ""
	}
	return c.Listen.API.Address
}
