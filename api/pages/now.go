package pages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// foldFrom is how many apps are more than a page shows at a glance: beyond it, those that are
// healthy are folded.
const foldFrom = 20

// mostPips is of how many instances each has a mark; of more the number is told.
const mostPips = 100

type nowView struct {
	Host     string
	Gitring  string
	At       *moment
	Troubles []trouble
	Sources  []*sourceView
	Acts     bool
}

// trouble is something of the host that is wrong, whatever runs on it.
type trouble struct {
	Tone, What, Says string
	// Link is the page that says more; "" for none.
	Link string
}

type sourceView struct {
	Mark                  Mark
	Name, Branch          string
	Commit                ring.SHA
	Subject, Signer, Note string
	Checked, Committed    *moment
	Checking              bool
	Reason                string
	// Runs are the commits that run here in the place of the one that is wanted.
	Runs         []runsView
	Next         *nextView
	Trusted, Tip ring.SHA // "" where it says nothing new
	Refusal      *ring.Refusal
	Warnings     []trouble
	// Apps need an eye; Well do not.
	Apps, Well []*appView
	Folded     bool
	Acts       bool
}

// runsView is a commit that runs where another is wanted.
type runsView struct {
	Commit   ring.SHA
	Signer   string
	Services []string
}

type nextView struct {
	Commit  ring.SHA
	Reason  string
	Approve bool
	Release string // where the hold that it waits for can be ended; "" where it waits for none
}

type appView struct {
	Mark      Mark
	Name      string
	Commit    ring.SHA
	Reason    string
	Refusal   *ring.Refusal
	Notes     []string
	Overrides []overrideView
	Services  []*serviceView
	Acts      bool
	// Signer is whose Commit is; "" where nobody knows. Behind says that some of its services
	// run another one. Ran are the commits that its services run.
	Signer string
	Behind bool
	Ran    []runsView
}

type overrideView struct {
	Kind, Target, Actor, Reason string
	Until                       *moment
	What                        string // "to 3", "to 442e027"
}

type serviceView struct {
	App, Name string
	Kind      ring.Kind
	Mark      Mark
	Runs      bool // it comes to an end, and has runs instead of instances that are ready
	Ready     int
	Wanted    int
	Pips      []Mark
	Commit    ring.SHA // that runs
	Asked     ring.SHA // that is wanted, where it is another one
	Reason    string
	Rollout   *rolloutView
	Next      *dueMoment
	Last      *runView
	Trouble   []string
	Front     string
	Logs      bool
	Acts      bool
	// Printed is what its check that fails now printed last, for who may read logs.
	Printed []string
}

type rolloutView struct {
	Mark   Mark
	Commit ring.SHA
	Reason string
	// Canary says which step it is in; "" for none.
	Canary string
	// Failed leads to what the version printed, for who may read logs.
	Failed bool
}

type runView struct {
	Mark   Mark
	Reason string
	At     *moment
}

func nowPage(ctx context.Context, a *asking) (*drawn, error) {
	st := a.status
	v := &nowView{Host: st.Host, Gitring: st.Gitring, At: a.clock.of(st.At), Troubles: troubles(st), Acts: a.may(api.ScopeOperate)}
	for i := range v.Troubles {
		if t := &v.Troubles[i]; t.Link != "" && !a.h.has("doctor") {
			t.Link = ""
		} else if t.Link != "" {
			t.Link = a.h.Under + t.Link
		}
	}
	count := 0
	for i := range st.Sources {
		count += len(st.Sources[i].Apps)
	}
	marks := []Mark{}
	for i := range st.Sources {
		s := a.source(&st.Sources[i], count > foldFrom)
		s.Runs = a.runsBeside(ctx, &st.Sources[i])
		a.sign(ctx, s)
		a.print(ctx, &st.Sources[i], s)
		v.Sources = append(v.Sources, s)
		marks = append(marks, s.Mark)
		for _, app := range s.Apps {
			marks = append(marks, app.Mark)
		}
	}
	for _, t := range v.Troubles {
		marks = append(marks, Mark{Tone: t.Tone, Rank: ranks[t.Tone]})
	}
	return &drawn{template: "now", title: titleOf("Now", st.Host, marks), live: "status", view: v}, nil
}

// hostTone is the tone of the host: of the most wrong that the page of now shows. The mark of
// every page has it.
func hostTone(st *ring.Status) string {
	tone, _, _, _ := hostState(st)
	return tone
}

// HostWord is the state of a host in a word, the most wrong first: of a source, of an app, or of the
// host itself. Says is why, and at the place of the source that it is of; 0 where it is of none.
func HostWord(st *ring.Status) (word, says string, at int) {
	_, word, says, at = hostState(st)
	return word, says, at
}

func hostState(st *ring.Status) (tone, word, says string, at int) {
	if len(st.Sources) == 0 {
		return toneOff, string(ring.SyncUnknown), "", 0
	}
	rank := len(ranks)
	is := func(m Mark, why string, of int) {
		if m.Rank < rank {
			rank, tone, word, says, at = m.Rank, m.Tone, m.Word, why, of
		}
	}
	for i := range st.Sources {
		src := &st.Sources[i]
		is(sourceMark(src), src.Reason, i)
		for j := range src.Apps {
			a := &src.Apps[j]
			why := a.Reason
			if a.Refusal != nil {
				why = a.Refusal.Says
			}
			mark := appMark(a)
			if appIsDown(a, st.At) {
				mark = downMark(markOf(ring.Degraded))
				if a.Refusal != nil {
					why = a.Reason
				}
			}
			is(mark, strings.TrimSuffix(a.Name+": "+strings.TrimPrefix(why, a.Name+": "), ": "), i)
		}
	}
	for _, t := range troubles(st) {
		is(Mark{Tone: t.Tone, Rank: ranks[t.Tone], Word: map[string]string{toneBad: ring.Degraded, toneWait: hostWaits}[t.Tone]}, t.What+": "+t.Says, 0)
	}
	return tone, word, says, at
}

// hostWaits is the word of a host on which something waits for a person, and every app is well.
const hostWaits = "Needs an eye"

// commitsBeside are how many commits that run in the place of the wanted ones are named.
const commitsBeside = 3

// runsBeside are the commits that run where a source wants another, and who signed them.
func (a *asking) runsBeside(ctx context.Context, src *ring.SourceStatus) []runsView {
	var out []runsView
	for i := range src.Apps {
		for j := range src.Apps[i].Services {
			sv := &src.Apps[i].Services[j]
			if sv.Running == "" || sv.Running == sv.Commit {
				continue
			}
			at := slices.IndexFunc(out, func(r runsView) bool { return r.Commit == sv.Running })
			if at < 0 {
				if len(out) == commitsBeside {
					continue
				}
				at, out = len(out), append(out, runsView{Commit: sv.Running, Signer: a.signedBy(ctx, sv.Running).signer})
			}
			out[at].Services = append(out[at].Services, src.Apps[i].Name+"/"+sv.Name)
		}
	}
	return out
}

// sign says who signed what each app of a source has in force, and what the well ones run. Of
// commits that nobody knows yet only some are looked up at once: the next page has the others.
func (a *asking) sign(ctx context.Context, s *sourceView) {
	lookups := 0
	signer := func(c ring.SHA) string {
		if c == s.Commit {
			return s.Signer
		}
		of, known := a.h.signers.known(c, a.clock.now)
		if !known && lookups < commitsBeside {
			lookups++
			of = a.signedBy(ctx, c)
		}
		return of.signer
	}
	for _, app := range s.Apps {
		app.Signer = signer(app.Commit)
	}
	for _, app := range s.Well {
		for _, sv := range app.Services {
			if sv.Commit != "" && len(app.Ran) < commitsBeside && !slices.ContainsFunc(app.Ran, func(r runsView) bool { return r.Commit == sv.Commit }) {
				app.Ran = append(app.Ran, runsView{Commit: sv.Commit, Signer: signer(sv.Commit)})
			}
		}
	}
}

// printsAsked is of how many services a page asks what their checks print now.
const printsAsked = 5

// print has the services whose check fails now show what it printed last. Who does not answer
// costs a page nothing but these lines.
func (a *asking) print(ctx context.Context, src *ring.SourceStatus, s *sourceView) {
	if !a.may(api.ScopeLogs) || a.h.Stored {
		return
	}
	asked := 0
	for _, app := range s.Apps {
		for _, v := range app.Services {
			if asked == printsAsked || !checkFails(src, v) {
				continue
			}
			asked++
			e, err := a.answers.Inspect(ctx, api.InspectQuery{App: v.App, Service: v.Name})
			for i := range e.Instances { // one stands for all slots, which mostly print the same
				for _, c := range e.Instances[i].Printed {
					v.Printed = c.Lines
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// checkFails reports whether an instance of a service is on its way, or was ready before.
func checkFails(src *ring.SourceStatus, v *serviceView) bool {
	for i := range src.Apps {
		for j := range src.Apps[i].Services {
			sv := &src.Apps[i].Services[j]
			if src.Apps[i].Name == v.App && sv.Name == v.Name {
				return ring.AwaitsChecks(sv)
			}
		}
	}
	return false
}

// titleOf is what a tab says: how many things are wrong comes first.
func titleOf(page, host string, marks []Mark) string {
	n := 0
	for _, m := range marks {
		if m.Tone == toneBad {
			n++
		}
	}
	return wording.When(n > 0, fmt.Sprintf("(%d) ", n)) + page + " · " + host
}

func troubles(st *ring.Status) []trouble {
	var out []trouble
	add := func(tone, what, says string) {
		if says != "" {
			out = append(out, trouble{Tone: tone, What: what, Says: says})
		}
	}
	if st.Trial != nil {
		add(toneWait, "on trial", "upgraded from "+st.Trial.From+"; nothing is changed until the upgrade is found well. Where this lasts: sudo gitring upgrade --resume")
	}
	add(toneBad, "store", st.Store)
	add(toneBad, "engine", st.Engine)
	add(toneBad, "configuration", wording.When(st.Config != "", "not read anew: "+st.Config))
	add(toneWait, "configuration", wording.When(st.Config == "" && st.ConfigDiffers, "its file was changed since it was read; systemctl reload gitring takes it up"))
	add(toneWait, "tokens", st.API)
	if add(toneBad, "doctor", st.Doctor); st.Doctor != "" {
		out[len(out)-1].Link = "/doctor"
	}
	add(toneWait, "backup", st.Backup)
	add(toneWait, "hub", st.Hub)
	for _, r := range st.Receivers {
		says := fmt.Sprintf("is not told: %d waiting", r.Waiting)
		if r.Dead > 0 {
			says += fmt.Sprintf(", %d given up", r.Dead)
		}
		add(toneWait, "receiver "+r.Name, says+wording.When(r.Reason != "", "; "+r.Reason))
	}
	return out
}

// source is one source with its apps, the most wrong first.
func (a *asking) source(src *ring.SourceStatus, fold bool) *sourceView {
	v := &sourceView{
		Mark: sourceMark(src), Name: src.Name, Branch: src.Branch, Commit: cmp.Or(src.Commit, src.Trusted), Subject: src.Subject, Signer: src.Signer, Note: src.Note,
		Checked: a.clock.of(src.Checked), Committed: a.clock.of(src.Committed), Checking: src.Checking, Refusal: src.Refusal, Acts: a.may(api.ScopeOperate),
	}
	if f := src.Followed; f != nil {
		v.Commit, v.Subject, v.Signer, v.Committed = f.Commit, f.Subject, f.Signer, a.clock.of(f.Committed)
		v.Warnings = append(v.Warnings, trouble{Tone: toneWait, What: "followed", Says: f.HeldUp(src.Commit)})
	} else if src.Commit != "" && src.Trusted != src.Commit {
		v.Trusted = src.Trusted
	}
	if src.Tip != src.Commit && src.Tip != src.Trusted && (src.Refusal == nil || src.Refusal.Commit != src.Tip) {
		v.Tip = src.Tip
	}
	if n := src.Next; n != nil {
		v.Next = &nextView{Commit: n.Commit, Reason: n.Reason, Approve: n.AwaitsYes() && a.may(api.ScopeApprove)}
		v.Next.Release = a.releaseOf(n)
	}
	warn := func(what, says string) {
		if says != "" {
			v.Warnings = append(v.Warnings, trouble{Tone: toneWait, What: what, Says: says})
		}
	}
	warn("trust", src.Trust)
	if f := src.FirstUse; f != nil {
		warn("trust", "rests on first use of "+f.Commit.Short())
	}
	for _, c := range src.Conditions {
		warn(conditionWords(c.Type), c.Reason)
	}
	for _, doubt := range src.Doubts {
		warn("warning", doubt)
	}
	warn("forge", wording.When(src.Forge != "", "takes no statuses: "+src.Forge))
	warn("fetching", wording.When(src.Unconfined != "", "is not kept from "+src.Unconfined))
	for i := range src.Apps {
		app := a.app(&src.Apps[i])
		if app.Mark.Rank < ranks[toneBad] && v.Mark.Tone == toneMove {
			v.Mark = downMark(v.Mark)
		}
		if app.Mark.Tone == toneGood {
			v.Well = append(v.Well, app)
		} else {
			v.Apps = append(v.Apps, app)
		}
	}
	slices.SortStableFunc(v.Apps, func(x, y *appView) int { return cmp.Compare(x.Mark.Rank, y.Mark.Rank) })
	v.Folded = fold && len(v.Well) > 0
	v.Reason = unlessEnds(src.Reason, saidBelow(src))
	return v
}

// releaseOf is where the hold can be ended that a commit waits for; "" where it waits for none,
// and for who may not end it.
func (a *asking) releaseOf(n *ring.Next) string {
	if app, _ := n.On.Split(); n.Code == ring.WhyHeldByPerson && app != "" && a.may(api.ScopeOperate) {
		return a.h.path("act", app) + "?verb=release"
	}
	return ""
}

// saidBelow is what stands below the reason of a source, and may say the same.
func saidBelow(src *ring.SourceStatus) []string {
	var out []string
	if src.Refusal != nil {
		out = append(out, src.Refusal.Says)
	}
	if src.Next != nil {
		out = append(out, src.Next.Reason)
	}
	for i := range src.Apps {
		a := &src.Apps[i]
		out = append(out, a.Reason)
		if a.Refusal != nil {
			out = append(out, a.Refusal.Says)
		}
		for j := range a.Services {
			out = append(out, a.Services[j].Reason)
		}
	}
	return out
}

// conditionSays is what a condition of a service is in words: "too few ready", "crash looping".
func conditionSays(c *ring.Condition) string {
	return cmp.Or(ring.ConditionWords(c), wording.When(c.Status == ring.ConditionFalse, "not ")+conditionWords(c.Type))
}

// conditionWords are such as "policy violated".
func conditionWords(of string) string {
	var b strings.Builder
	for i, r := range of {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}

func (a *asking) app(app *ring.AppStatus) *appView {
	v := &appView{Mark: appMark(app), Name: app.Name, Commit: app.Commit, Refusal: app.Refusal, Acts: a.may(api.ScopeOperate)}
	if appIsDown(app, a.status.At) {
		v.Mark = downMark(v.Mark)
	}
	v.Overrides = a.overrides(app.Name)
	var once said
	for i := range app.Services {
		if isFoldedFront(app, &app.Services[i]) {
			continue
		}
		sv := a.service(app.Name, &app.Services[i])
		once.say(sv.Reason)
		v.Behind = v.Behind || sv.Asked != ""
		v.Services = append(v.Services, sv)
	}
	if v.Refusal != nil {
		once.say(v.Refusal.Says)
	}
	v.Reason = once.tell(app.Reason)
	slices.SortStableFunc(v.Services, func(x, y *serviceView) int { return cmp.Compare(x.Mark.Rank, y.Mark.Rank) })
	return v
}

// isFoldedFront reports whether a service is the front of one that the page has, and says no more
// than that one: it is no service of the person's. What is wrong with it has a row.
func isFoldedFront(app *ring.AppStatus, sv *ring.ServiceStatus) bool {
	name, is := strings.CutSuffix(sv.Name, ring.FrontSuffix)
	i := slices.IndexFunc(app.Services, func(s ring.ServiceStatus) bool { return s.Name == name })
	if !is || i < 0 || app.Services[i].Front == nil {
		return false
	}
	own, behind := serviceMark(sv), serviceMark(&app.Services[i])
	return own.Tone == toneGood || own.Tone != toneBad && own.Rank >= behind.Rank
}

// overrides are those that stand on an app or on a service of it; all for "".
func (a *asking) overrides(app string) []overrideView {
	var out []overrideView
	for i := range a.status.Overrides {
		o := &a.status.Overrides[i]
		if of, _, _ := strings.Cut(o.Target, "/"); app == "" || of == app {
			out = append(out, a.override(o))
		}
	}
	return out
}

func (a *asking) override(o *ring.Override) overrideView {
	v := overrideView{Kind: o.Kind, Target: o.Target, Actor: o.Actor, Reason: o.Reason, Until: a.clock.of(o.Until)}
	switch {
	case o.Replicas != nil:
		v.What = fmt.Sprintf("to %d", *o.Replicas)
	case o.Commit != "":
		v.What = "to " + o.Commit.Short()
	}
	return v
}

func (a *asking) service(app string, sv *ring.ServiceStatus) *serviceView {
	v := &serviceView{
		App: app, Name: sv.Name, Kind: sv.Kind, Mark: serviceMark(sv), Runs: sv.Kind.Ends(), Ready: sv.Ready, Wanted: sv.Wanted,
		Commit: cmp.Or(sv.Running, sv.Commit), Reason: sv.Reason, Next: a.clock.due(sv.NextRun, sv.Timezone),
		Logs: a.may(api.ScopeLogs), Acts: a.may(api.ScopeOperate),
	}
	if ring.IsDown(sv, a.status.At) {
		v.Mark = downMark(v.Mark)
	}
	once := said{sv.Reason}
	if sv.Running != "" && sv.Running != sv.Commit {
		v.Asked = sv.Commit
	}
	for i := range sv.Instances {
		v.Pips = append(v.Pips, markOf(sv.Instances[i].State))
	}
	for len(v.Pips) < min(sv.Wanted, mostPips) && !v.Runs { // a hub shows what a host says
		v.Pips = append(v.Pips, Mark{Word: "not there", Shape: "open", Tone: toneOff})
	}
	if r := sv.Rollout; r != nil {
		v.Rollout = &rolloutView{Mark: markOf(ring.RolloutWord(r.Phase, r.Code, sv.Phase)), Commit: r.Commit, Reason: once.tell(r.Reason), Failed: v.Logs && r.Code == ring.WhyRolloutFailed}
		if c := r.Canary; c != nil {
			v.Rollout.Canary = canarySays(c)
		}
	}
	if l := sv.LastRun; l != nil {
		v.Last = &runView{markOf(l.State), l.Reason, a.clock.of(l.Ended)}
	}
	for _, c := range sv.Conditions {
		if c.Type == ring.ConditionProgressing || c.Type == ring.ConditionAvailable && v.Mark.Tone == toneMove {
			continue
		}
		if why := once.tell(c.Reason); why != "" || c.Type != ring.ConditionAvailable {
			v.Trouble = append(v.Trouble, conditionSays(&c)+wording.When(why != "", ": "+why))
		}
	}
	if f := sv.Front; f != nil && f.Queued > 0 {
		v.Front = wording.Counted(f.Queued, "request") + " waiting"
	}
	return v
}
