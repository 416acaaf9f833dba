package reconcile

import (
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// progressEvery is how often progress is told to the forge at most.
const progressEvery = 15 * time.Second

// rejected begins the description of a refusal, for people.
const rejected = "rejected: "

// turnBackAfter is how long a host says failure at least, before it says success to hosts
// that wait for its word.
const turnBackAfter = 10 * time.Minute

// turnsSlower is how often that time doubles, each time a failure was taken back: a host that
// comes and goes tells at most 6 words in its first hour, and then one in 40 minutes.
const turnsSlower = 3

// derivePosts derives what the forge is told. Each (commit, context) is closed once,
// success never before completion. What other hosts wait for follows the host; see turnsAt.
func (t *decider) derivePosts() {
	for i := range t.Sources {
		src, st := &t.Sources[i], t.besidesCron(&t.overview.Sources[i])
		t.refusalPosts(src)
		if src.Awaiting != "" && src.Tip != "" {
			t.decidePost(src, src.Tip, "", ring.PostPending, ring.Reason{Code: ring.WhyAwaitingApproval, Says: "awaiting approval: " + src.Awaiting})
		}
		if src.Next == nil {
			continue
		}
		t.supersedePosts(src)
		t.summaryPost(src, st)
		for j := range st.Apps {
			t.appPost(src, st, &st.Apps[j])
		}
	}
	t.tellTogether()
	t.writeWords()
}

// besidesCron is the status without what runs of cron jobs came to: that is of
// their time, not of the commit, which the forge is told about.
func (t *Pass) besidesCron(st *ring.SourceStatus) *ring.SourceStatus {
	failing := func(s *ring.ServiceStatus) bool { return s.Kind == ring.CronK && s.Phase == ring.PhaseDegraded }
	any := func(a *ring.AppStatus) bool {
		for i := range a.Services { // they are large
			if failing(&a.Services[i]) {
				return true
			}
		}
		return false
	}
	found := false
	for i := range st.Apps {
		found = found || any(&st.Apps[i])
	}
	if !found {
		return st
	}
	out := *st
	out.Apps = slices.Clone(st.Apps)
	for i := range out.Apps {
		a := &out.Apps[i]
		if !any(a) {
			continue
		}
		a.Services = slices.Clone(a.Services)
		for j := range a.Services {
			if failing(&a.Services[j]) {
				a.Services[j].Phase = ring.PhaseReady
			}
		}
		_, known := t.Facts.Apps[a.Name]
		health, why := t.appHealth(a, known)
		a.Health, a.Reason, a.Code, a.On = health, why.Says, why.Code, why.On
	}
	return &out
}

// refusalPosts tells the tip, and the commit at fault, why it is not trusted.
func (t *decider) refusalPosts(src *Source) {
	r := src.Refusal
	if r == nil {
		return
	}
	why := ring.Reason{Code: ring.WhyCommitRefused, Says: say("%s%s %s: %s", rejected, r.Code, r.Commit.Short(), r.Says)}
	told := true
	for _, sha := range []ring.SHA{src.Tip, r.Commit} {
		if sha != "" && (src.Commit == nil || sha != src.Commit.SHA) && t.decidePost(src, sha, "", ring.PostFailure, why) {
			told = false
		}
	}
	if !told {
		t.addEvent(ring.Event{Kind: ring.CommitRefused, Source: src.Name, Commit: r.Commit, Reason: say("%s: %s", r.Code, r.Says), Code: ring.WhyCommitRefused})
	}
}

// supersedePosts closes what is open on older commits of the source.
func (t *decider) supersedePosts(src *Source) {
	t.adoptWords(src)
	open := func(key string) bool {
		p := t.Facts.Posts[key]
		return p.Source == src.Name && p.Open()
	}
	for _, key := range keysThat(t.Facts.Posts, open) {
		p := t.Facts.Posts[key]
		if !t.ourName(p) {
			t.supersedePost(p, "this host is called "+t.Host+" now")
			continue
		}
		if !t.stillOpen(src, p) {
			t.supersedePost(p, supersededBy(src))
		}
	}
}

// stillOpen reports whether a source, or another one, is at the commit of an open post.
func (t *Pass) stillOpen(src *Source, p ring.Post) bool {
	return p.SHA == src.Next.Commit || p.SHA == src.Tip && src.Awaiting != "" ||
		p.Context == t.postContext("") && len(t.sharingSources(p.SHA)) > 0
}

func supersededBy(src *Source) string { return say("superseded by %s", src.Next.Commit.Short()) }

// supersedePost closes an open post that says nothing of how its commit is.
func (t *decider) supersedePost(p ring.Post, why string) {
	p.State, p.Phase, p.Description, p.At = ring.PostError, ring.PostSuperseded, postText(why), t.now
	if now, _ := t.postTold(p); now.Open() {
		t.tellPost(p)
	}
}

// ourName reports whether a post is told under the name that the host has now.
func (t *Pass) ourName(p ring.Post) bool {
	in, deployment := p.Environment()
	if !deployment {
		in = strings.TrimPrefix(in, "gitring/")
	}
	host, _, _ := strings.Cut(in, "/")
	return host == t.Host
}

func (t *decider) summaryPost(src *Source, st *ring.SourceStatus) {
	sha := src.Next.Commit
	if r := src.Next.Refusal; r != nil {
		t.summarizeCommit(src, sha, ring.PostFailure, rejectionSays(r, ""))
		return
	}
	sync, why := t.syncState(src, &ring.SourceStatus{Apps: st.Apps})
	if says := t.watched[src.Name]; says != "" && len(src.Next.Refused) == 0 {
		state := ring.PostSuccess
		if src.Next.Awaited { // nothing ran here that could let the commit through elsewhere
			state = ring.PostPending
		}
		t.summarizeCommit(src, sha, state, ring.Reason{Code: ring.WhyObserveOnly, Says: says})
		return
	}
	switch sync {
	case ring.SyncSynced:
		t.summarizeCommit(src, sha, ring.PostSuccess, ring.Reason{Says: healthySays(st.Apps) + t.lastedSays(src, "", st.Apps)})
	case ring.SyncDegraded:
		for i := range st.Apps {
			a := &st.Apps[i]
			if a.Refusal != nil {
				t.summarizeCommit(src, sha, ring.PostFailure, rejectionSays(a.Refusal, "app "+a.Name+" "))
				return
			}
			if why, final := t.worstService(a); !why.None() {
				why.Says = say("%s/%s", a.Name, why.Says)
				t.summarizeCommit(src, sha, verdictOf(final), why)
				return
			}
		}
	case ring.SyncHeld:
		t.heldPost(src, st, why)
	case ring.SyncStaging:
		t.summarizeCommit(src, sha, ring.PostPending, ring.Reason{
			Code: why.Code, On: why.On, Says: verifiedSays(src) + t.tally[src.Name] + withoutProgress(why.Says),
		})
	case ring.SyncApplying:
		t.summarizeCommit(src, sha, ring.PostRunning, ring.Reason{Says: t.progressSays(st.Apps)})
	default:
		t.summarizeCommit(src, sha, ring.PostPending, ring.Reason{Says: t.progressSays(st.Apps)})
	}
}

// heldPost tells of what waits for a person: a plan, or a rollout that one
// stopped. A rollout that stopped because its version failed is told as what it
// is, once nothing else is under way. It is no word on a plan of which nothing is carried
// out yet, and a failure that is told is never taken back.
func (t *decider) heldPost(src *Source, st *ring.SourceStatus, why ring.Reason) {
	state := ring.PostPending
	if !t.held[src.Name].None() {
		t.summarizeCommit(src, src.Next.Commit, state, why)
		return
	}
	for i := range st.Apps {
		a := &st.Apps[i]
		if slices.ContainsFunc(a.Services, func(s ring.ServiceStatus) bool { return isWorking(&s) }) {
			state = ring.PostPending
			break
		}
		if slices.ContainsFunc(a.Services, func(s ring.ServiceStatus) bool { return t.failedHere(a.Name, s.Name) }) {
			worst, _ := t.worstService(a)
			worst.Says = say("%s/%s", a.Name, worst.Says)
			state, why = ring.PostFailure, worst
		}
	}
	t.summarizeCommit(src, src.Next.Commit, state, why)
}

// appPost tells an app's own context, where the commit changes it or it is not well.
func (t *decider) appPost(src *Source, st *ring.SourceStatus, a *ring.AppStatus) {
	sha := src.Next.Commit
	if a.Refusal != nil {
		if a.Refusal.Commit == sha {
			if t.decidePost(src, sha, a.Name, ring.PostFailure, rejectionSays(a.Refusal, "")) {
				t.addEvent(ring.Event{Kind: ring.AppRefused, Source: src.Name, App: a.Name, Commit: sha, Reason: a.Refusal.Error(), Code: ring.WhyAppRefused})
			}
		}
		return
	}
	if !t.held[src.Name].None() || t.watched[src.Name] != "" || !t.handedOverride(a.Name).None() || !t.staging[a.Name].None() {
		return
	}
	changed := changesService(a, sha)
	_, told := t.Facts.Posts[ring.PostKey(sha, t.postContext(a.Name))]
	defer func() { t.deploymentPost(src, sha, a.Name, changed) }()
	alone := []ring.AppStatus{*a}
	switch a.Health {
	case ring.Degraded, ring.Held:
		for i := range a.Services {
			if isWorking(&a.Services[i]) {
				return // closed when everything of it came to rest
			}
		}
		if why, final := t.worstService(a); !why.None() {
			t.decidePost(src, sha, a.Name, verdictOf(final), why)
		}
	case ring.Healthy:
		if changed || told {
			t.decidePost(src, sha, a.Name, ring.PostSuccess, ring.Reason{Says: healthySays(alone) + t.lastedSays(src, a.Name, alone)})
		}
	default:
		if changed || told {
			t.decidePost(src, sha, a.Name, underWay(a), ring.Reason{Says: t.progressSays(alone)})
		}
	}
}

func healthySays(apps []ring.AppStatus) string {
	return "healthy " + countsSays(apps, func(a *ring.AppStatus, i int) int { return a.Services[i].Ready })
}

// progressSays is how far a commit has come: old instances that serve meanwhile are
// none of it.
func (t *Pass) progressSays(apps []ring.AppStatus) string {
	return countsSays(apps, func(a *ring.AppStatus, i int) (n int) {
		v := t.viewOf(a, i)
		if v == nil {
			return 0
		}
		for _, in := range v.instances {
			if in.ready && in.Version == v.want.Version {
				n++
			}
		}
		return n
	}) + " ready"
}

// countsSays is "2/4" of all that some apps want: of instances as ready counts them,
// and of jobs that have completed.
func countsSays(apps []ring.AppStatus, ready func(a *ring.AppStatus, i int) int) string {
	n, wanted := 0, 0
	for i := range apps {
		for j := range apps[i].Services {
			s := &apps[i].Services[j]
			switch s.Kind {
			case ring.JobK:
				wanted++
				if s.Phase == ring.PhaseCompleted {
					n++
				}
			case ring.CronK: // between two runs it is what it should be
				n, wanted = n+1, wanted+1
			default:
				n, wanted = n+min(ready(&apps[i], j), s.Wanted), wanted+s.Wanted
			}
		}
	}
	return say("%d/%d", n, wanted)
}

// verifiedSays names who answers for the commit, without the host of an address.
func verifiedSays(src *Source) string {
	if src.Commit == nil || src.Commit.SHA != src.Next.Commit || src.Commit.Signer == "" {
		return ""
	}
	name, _, _ := strings.Cut(src.Commit.Signer, "@")
	return "verified by " + name + "; "
}

// withoutProgress is what a commit waits for, without how far it is: that changes too
// often for a forge.
func withoutProgress(why string) string {
	says, _, _ := strings.Cut(why, " (")
	return says
}

// lastedSays is " in 38s" where the forge was told of the way there: since the first of
// the apps that the commit changes came into force.
func (t *Pass) lastedSays(src *Source, app string, apps []ring.AppStatus) string {
	sha := src.Next.Commit
	if p, told := t.Facts.Posts[ring.PostKey(sha, t.postContext(app))]; !told || !p.Open() {
		return ""
	}
	var since time.Time
	for i := range apps {
		f := t.Facts.Apps[apps[i].Name]
		if !changesService(&apps[i], sha) || f.Since.IsZero() {
			continue
		}
		if since.IsZero() || f.Since.Before(since) {
			since = f.Since
		}
	}
	if since.IsZero() || t.now.Before(since) {
		return ""
	}
	return " in " + t.now.Sub(since).Round(time.Second).String()
}

// changesService reports whether a commit changes a service of an app.
func changesService(a *ring.AppStatus, sha ring.SHA) bool {
	return slices.ContainsFunc(a.Services, func(s ring.ServiceStatus) bool { return s.Commit == sha })
}

// underWay says whether something of an app is being changed, or waits for its turn.
func underWay(a *ring.AppStatus) string {
	if slices.ContainsFunc(a.Services, func(s ring.ServiceStatus) bool { return s.Rollout != nil || s.Phase == ring.PhaseProgressing }) {
		return ring.PostRunning
	}
	return ring.PostPending
}

// deploymentPost tells the forge's list of deployments what it told of an app
// whose services the commit changes.
func (t *decider) deploymentPost(src *Source, sha ring.SHA, app string, changed bool) {
	if !src.Deployments || !changed {
		return
	}
	p, told := t.Facts.Posts[ring.PostKey(sha, t.postContext(app))]
	if !told {
		return
	}
	p.Context = ring.DeploymentContext(t.Host, app)
	if old, ok := t.postTold(p); !ok || !old.Same(p) {
		t.tellPost(p)
	}
}

// worstService is the first service of an app that is not well, with its reason. It is
// not final where all that is wrong is of this host and not of the commit.
func (t *Pass) worstService(a *ring.AppStatus) (why ring.Reason, final bool) {
	for i := range a.Services {
		s := &a.Services[i]
		if !isBad(s) && !t.failedHere(a.Name, s.Name) {
			continue
		}
		v := t.views[ring.ID(a.Name, s.Name)]
		final = v == nil || !t.awaitsHost(v)
		if why.None() || final {
			why = s.Why()
			why.Says = s.Name + " " + why.Says
		}
		if final {
			break
		}
	}
	return why, final
}

// failedHere reports whether a rollout stopped because its version failed, and not
// because a person stopped it.
func (t *Pass) failedHere(app, service string) bool {
	v := t.views[ring.ID(app, service)]
	return v != nil && v.want.Kind != ring.JobK && v.failedInPlace()
}

func verdictOf(final bool) string {
	if final {
		return ring.PostFailure
	}
	return ring.PostPending
}

// rejectionSays is the refusal of an app, or of all that a commit has, with words before it.
func rejectionSays(r *ring.Refusal, before string) ring.Reason {
	why := ring.Reason{Code: ring.WhyAppRefused, Says: say("%s%s%s: %s", before, rejected, r.Code, r.Says)}
	if where := r.Where(); where != "" {
		why.Says = say("%s%s%s %s: %s", before, rejected, r.Code, where, r.Says)
	}
	return why
}

// decidePost decides one post, unless it is told already, closed, or only progress
// told a moment ago. It reports whether it did. PostRunning is pending, under way.
func (t *decider) decidePost(src *Source, sha ring.SHA, app, state string, why ring.Reason) bool {
	p := ring.Post{
		Source: src.Name, SHA: sha, Context: t.postContext(app), State: state, Description: postText(why.Says), At: t.now, Code: why.Code,
	}
	if app == "" && src.Next != nil && sha == src.Next.Commit {
		p.Tally = t.tally[src.Name]
	}
	if state == ring.PostRunning {
		p.State, p.Phase = ring.PostPending, ring.PostRunning
	}
	before := t.Facts.Posts[ring.PostKey(sha, p.Context)]
	old, ok := t.postTold(p)
	now := !before.Same(old) // it was written down before
	if !ok {
		return t.tellPost(p)
	}
	if old.Same(p) {
		return now
	}
	at, turns := turnsAt(src, sha, app, old, p)
	if p.Turns = old.Turns; turns && p.State == ring.PostSuccess {
		p.Turns++
	}
	if turns && t.now.Before(at) && !t.now.Before(old.At) {
		t.wakeBy(at)
		return false
	}
	if !turns && !old.Open() && !reopensPost(src, sha, app, state, old.Code) {
		return now
	}
	// What was told at a time to come was told by a clock that was set back since.
	if next := old.At.Add(progressEvery); p.State == ring.PostPending && old.State == p.State && t.now.Before(next) && !t.now.Before(old.At) {
		t.wakeBy(next)
		return false
	}
	return t.tellPost(p)
}

// turnsAt is from when a closing word may turn into the other one: only what a host says of
// its newest commit as a whole, and only where other hosts wait for that. A failure is told
// almost at once, and taken back late, so that a host that comes and goes tells little.
func turnsAt(src *Source, sha ring.SHA, app string, old, now ring.Post) (time.Time, bool) {
	switch {
	case app != "" || src.Next == nil || sha != src.Next.Commit || !src.Next.Awaited || old.Code == ring.WhyCommitRefused:
	case old.State == ring.PostSuccess && now.State == ring.PostFailure:
		return old.At.Add(progressEvery), true
	case old.State == ring.PostFailure && now.State == ring.PostSuccess:
		return old.At.Add(turnBackAfter << min(old.Turns, turnsSlower)), true
	}
	return time.Time{}, false
}

// reopensPost reports whether a closing post was a no that is none any more: a person
// trusts the commit after all, or what was in the way on this host is gone.
func reopensPost(src *Source, sha ring.SHA, app, state string, told ring.ReasonCode) bool {
	switch told {
	case ring.WhyCommitRefused:
		return app == "" && sha == src.commitSHA() && state != ring.PostFailure
	case ring.WhyAppRefused:
		return state == ring.PostSuccess
	}
	return false
}

func (s *Source) commitSHA() ring.SHA {
	if s.Commit == nil {
		return ""
	}
	return s.Commit.SHA
}
