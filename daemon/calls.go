package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/history"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
	"github.com/gitring/gitring/store"
)

// calls is what the socket can ask of this daemon.
func (d *Daemon) calls() api.Calls {
	return d.onTrial(api.Calls{
		Version: d.version, Status: d.status, Labels: d.labels, Lines: d.lines, Events: d.events, AppsNamed: d.store.AppsNamed, Appended: d.store.Changed, History: d.history, Commits: d.commits,
		Logs: d.logs, Poke: d.poke, Look: d.look, Approve: d.approve, Accept: d.accept, Plan: d.plan,
		Outdated: d.outdated, Refresh: d.refresh, RefreshSecrets: d.refreshSecrets, Trust: d.trust, Reverify: d.reverify, Prove: d.prove, Act: d.act, Acts: d.acts, Jobs: d.jobs, Adopt: d.adopt, Leave: d.leave,
		Crashes: d.crashes, Inspect: d.inspect, Usage: d.usage, NotifyTest: d.notifyTest, Outbox: d.outbox, OutboxRetry: d.outboxRetry,
		Metrics: d.metricsPage(), Doctor: d.doctor,
		Traffic: d.traffic, TrafficUpgrade: d.trafficUpgrade,
	})
}

// version asks nobody: whoever polls it is no load on the engine.
func (d *Daemon) version(context.Context) (api.Version, error) {
	v := api.Version{Gitring: ring.Release}
	if e := d.engineIs.Load(); e != nil {
		v.Engine, v.EngineAPI = "docker "+e.Version, e.API
	}
	return v, nil
}

// How often the engine is asked for its version: it changes by a restart of it alone.
const (
	versionEvery  = time.Minute
	versionSoon   = 5 * time.Second
	versionWithin = 5 * time.Second
)

// watchVersion keeps the engine's version, none while it is away. An engine that gitring does not
// work with ends the daemon: what runs goes on without it.
func (d *Daemon) watchVersion(ctx context.Context) error {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		again := versionEvery
		limited, cancel := context.WithTimeout(ctx, versionWithin)
		e, err := d.engine.Version(limited)
		cancel()
		if _, is := errors.AsType[*runtime.UnfitError](err); is {
			return unfit(err)
		}
		if err == nil {
			d.engineIs.Store(&e)
		} else {
			d.engineIs.Store(nil)
			again = versionSoon
		}
		t.Reset(again)
	}
}

// unfit is an error of an engine, with the hint where gitring does not work with it.
func unfit(err error) error {
	if e, is := errors.AsType[*runtime.UnfitError](err); is {
		return &ring.HostError{Says: e.Says, Hint: e.Hint, Err: err}
	}
	return err
}

// labels are those that Compose files give to the services in force.
func (d *Daemon) labels(ctx context.Context) (map[ring.ServiceID]map[string]string, error) {
	facts, err := d.store.Facts(ctx)
	if err != nil {
		return nil, err
	}
	out := map[ring.ServiceID]map[string]string{}
	for name, f := range facts.Apps {
		for i := range f.App.Services {
			s := &f.App.Services[i]
			out[ring.ID(name, s.Name)] = s.Spec.Labels
		}
	}
	return out, nil
}

// status is the loop's, with what only this moment knows: whether a source is
// looking, and whether a forge takes what it is told.
func (d *Daemon) status(context.Context) (ring.Status, error) {
	st, _ := d.loop.Status()
	d.clusterStatus(&st)
	trouble := d.sender.Trouble()
	st.Receivers, st.Policy = d.receivers.Trouble(), d.policy.Hash()
	st.ConfigDiffers = d.differs.Load()
	if d.tokens != nil {
		st.API = d.tokens.Trouble()
	}
	if d.reporter != nil {
		st.Hub = d.reporter.Trouble()
	}
	if kept := d.kept.Load(); kept != nil {
		st.Config = *kept
	}
	if failed := d.reports.failed.Load(); failed != nil {
		st.Doctor = *failed
	}
	st.Backup = backupSays(store.BackedUp(d.cfg.State), time.Now())
	st.Sources = slices.Clone(st.Sources)
	same := twins(st.Sources, d.forges)
	for i := range st.Sources {
		s := &st.Sources[i]
		if f := d.follower(s.Name); f != nil {
			s.Checking, s.FirstUse, s.Unconfined = f.git.Checking(), f.firstUse(), f.git.Unconfined()
		}
		s.Conditions = append(slices.Clip(s.Conditions), d.policyConditions(s.Name)...)
		s.Conditions = append(s.Conditions, d.keyFiles.conditions(d.cfg.Secrets.Keys, s.Name)...)
		s.Forge = trouble[s.Name]
		if f := d.follower(s.Name); f != nil && f.pulls != nil {
			s.Forge = cmp.Or(s.Forge, f.pulls.Trouble())
		}
		s.Forge = cmp.Or(s.Forge, same[s.Name])
	}
	return st, nil
}

// backupAge is how old the last backup may be before people are told.
const backupAge = 30 * 24 * time.Hour

// backupSays is how old a backup is, where that is too old. Whoever never made one makes
// them otherwise.
func backupSays(made, now time.Time) string {
	age := now.Sub(made)
	if made.IsZero() || age <= backupAge {
		return ""
	}
	return fmt.Sprintf("the last one was made %s, %d days ago; gitring backup <file> makes one", made.UTC().Format(time.DateOnly), int(age.Hours()/24))
}

func (d *Daemon) events(ctx context.Context, q api.EventQuery) ([]ring.Event, error) {
	if q.Last > 0 {
		out, err := d.store.Events(ctx, store.EventQuery{App: q.App, Limit: q.Last, Desc: true})
		slices.Reverse(out)
		return out, err
	}
	return d.store.Events(ctx, store.EventQuery{After: q.After, App: q.App, Limit: q.Limit})
}

func (d *Daemon) history(ctx context.Context, q api.HistoryQuery) ([]ring.Event, error) {
	return d.store.Events(ctx, store.EventQuery{App: q.App, Kinds: history.Kinds, Limit: cmp.Or(q.Limit, 100), Desc: true})
}

// chosen is the source of a name, all for "".
func (d *Daemon) chosen(source string) ([]*follower, error) {
	if source == "" {
		return d.sources, nil
	}
	if f := d.follower(source); f != nil {
		return []*follower{f}, nil
	}
	return nil, d.noSource(source)
}

// one is the source of a name, the only one for "".
func (d *Daemon) one(source string) (*follower, error) {
	fs, err := d.chosen(source)
	if err != nil {
		return nil, err
	}
	if len(fs) != 1 {
		return nil, api.Usage("name one with --source", "this host has %d sources", len(fs))
	}
	return fs[0], nil
}

func (d *Daemon) poke(_ context.Context, source string) error {
	fs, err := d.chosen(source)
	for _, f := range fs {
		f.poke()
	}
	return err
}

// look is poke, and waits until the loop has looked at what the source found.
func (d *Daemon) look(ctx context.Context, source string) error {
	fs, err := d.chosen(source)
	if err != nil {
		return err
	}
	began := time.Now().UTC()
	for _, f := range fs {
		f.poke()
	}
	for _, f := range fs {
		r, err := f.wait(ctx, began)
		if err != nil {
			return err
		}
		if r.Err != nil {
			return api.Away("gitring status says what stands meanwhile", "source %s: %s", f.cfg.Name, r.Err)
		}
	}
	return d.loop.Looked(ctx)
}

func (d *Daemon) approve(ctx context.Context, p api.Peer, r api.ApproveRequest) error {
	moved := strings.HasPrefix(string(r.Commit), "sha256:")
	if st, _ := d.loop.Status(); !moved && !awaits(&st, r.Commit) {
		return nothingToApprove(r.Commit)
	}
	err := d.loop.Approve(ctx, string(r.Commit), p.Actor(), r.Reason)
	if errors.Is(err, reconcile.ErrNothingToApprove) && moved {
		return api.NotFound("gitring status says what waits", "no tag that moved to %s awaits approval", r.Commit)
	}
	if errors.Is(err, reconcile.ErrNothingToApprove) {
		return nothingToApprove(r.Commit)
	}
	return err
}

// awaits reports whether the plan of a commit waits for a yes: the journal shall not
// hold one that nobody asked for. The source's sync does not tell: a newer tip
// may be refused meanwhile.
func awaits(st *ring.Status, commit ring.SHA) bool {
	return slices.ContainsFunc(st.Sources, func(s ring.SourceStatus) bool {
		return s.Next != nil && s.Next.AwaitsYes() && strings.HasPrefix(string(s.Next.Commit), string(commit))
	})
}

func nothingToApprove(commit ring.SHA) error {
	return api.NotFound("gitring status says what waits", "no plan of commit %s awaits approval", commit.Short())
}

func (d *Daemon) accept(ctx context.Context, p api.Peer, r api.AcceptRequest) error {
	f, err := d.one(r.Source)
	if err != nil {
		return err
	}
	refusal, err := f.git.Accept(ctx, r.Commit, answerable(p), r.Reason)
	if tip := d.tipOf(f.cfg.Name); err != nil && tip != "" && tip != r.Commit {
		return api.Conflicting("gitring verify and git log say what it holds; then gitring trust accept "+string(tip)+" --reason '…'", "%s", err)
	}
	if err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	return nil
}

// plan says what a tree or a commit would change here; it changes nothing.
func (d *Daemon) plan(ctx context.Context, r api.PlanRequest) (ring.Changes, error) {
	f, err := d.one(r.Source)
	if err != nil {
		return ring.Changes{}, err
	}
	p, err := d.plannedOf(ctx, f, r)
	if err != nil {
		return ring.Changes{}, err
	}
	for i := range p.Apps {
		if app, ok := p.next.App(p.Apps[i].App); ok {
			p.Apps[i].Notes = append(slices.Clone(p.Apps[i].Notes), d.loose(ctx, &app)...)
			p.Apps[i].Notes = append(p.Apps[i].Notes, d.subnets(ctx, &app)...)
		}
	}
	d.askHost(ctx, &p)
	st, _ := d.loop.Status()
	for i := range st.Sources {
		if src := &st.Sources[i]; src.Name == f.cfg.Name && p.Commit != "" {
			foundOut(&p, src)
		}
	}
	p.UnderWay = slices.DeleteFunc(reconcile.Moving(p.world, f.cfg.Name, time.Now()), func(m ring.Move) bool { return isChange(&p.Changes, &m) })
	return p.Changes, nil
}

// asksAtOnce is how many apps of a plan the engine is asked about at once.
const asksAtOnce = 8

// askHost adds what the host would refuse of a plan, as the engine and the disk are now: the
// loop asks the same before it carries anything out.
func (d *Daemon) askHost(ctx context.Context, p *plannedHere) {
	asks, refused := reconcile.Admissions(p.world, &p.next, time.Now())
	answers := make([]error, len(asks))
	var g errgroup.Group
	g.SetLimit(asksAtOnce)
	for i := range asks {
		g.Go(func() error {
			_, answers[i] = d.engine.Do(ctx, asks[i])
			return nil
		})
	}
	_ = g.Wait() // each has its own answer
	for i, err := range answers {
		e, is := errors.AsType[*ring.EngineError](err)
		switch {
		case err == nil:
		case is && e.Refusal != nil:
			refused = append(refused, e.Refusal)
		default:
			p.Doubts = append(slices.Clip(p.Doubts), fmt.Sprintf("%s: what is in the way on this host is not known: %s", asks[i].App, err))
		}
	}
	for _, r := range refused {
		c := *r
		if c.Commit = p.Commit; c.File == "" {
			if app, ok := p.next.App(c.App); ok && len(app.Files) > 0 {
				c.File = app.Files[0]
			}
		}
		p.Refusals = append(p.Refusals, &c)
		p.Apps = slices.DeleteFunc(p.Apps, func(x ring.AppChanges) bool { return x.App == c.App })
	}
}

// plannedOf is what a folder or a commit would change here.
func (d *Daemon) plannedOf(ctx context.Context, f *follower, r api.PlanRequest) (plannedHere, error) {
	if r.Tree != nil {
		return f.plannedFolder(ctx, &ring.Commit{Tree: r.Tree})
	}
	c, err := d.commit(ctx, f, r.Rev)
	if err != nil {
		return plannedHere{}, err
	}
	return f.planned(ctx, d.judge, c)
}

// foundOut adds what only looking at this host and a registry could tell of a commit, and
// what the daemon found out since it has the commit: which apps are refused besides, and
// why it is not carried out yet. What the plan has asked anew itself is not taken from there.
func foundOut(p *plannedHere, src *ring.SourceStatus) {
	c := &p.Changes
	if next := src.Next; next != nil && next.Commit == c.Commit && c.Awaiting == "" {
		c.Waits = waitsBy(c.Waits, next)
	}
	for i := range src.Apps {
		a := &src.Apps[i]
		if a.Refusal == nil || a.Refusal.Commit != c.Commit || slices.ContainsFunc(c.Refusals, func(r *ring.Refusal) bool { return r.App == a.Name }) {
			continue
		}
		if p.askedAnew(src.Name, a) {
			continue
		}
		r := *a.Refusal
		if at := p.triedAt(a); !at.IsZero() {
			r.Says += "; tried last at " + at.UTC().Format("15:04:05") + " UTC"
		}
		c.Refusals = append(c.Refusals, &r)
		c.Apps = slices.DeleteFunc(c.Apps, func(x ring.AppChanges) bool { return x.App == a.Name })
	}
}

// askedAnew reports whether an app was refused by what a plan does anew: reading the commit,
// with the values and the policy of now, and asking this host what is in the way.
func (p *plannedHere) askedAnew(source string, a *ring.AppStatus) bool {
	for i := range p.world.Sources {
		src := &p.world.Sources[i]
		if src.Name != source || src.Next == nil {
			continue
		}
		if r := src.Next.Refused[a.Name]; r != nil && r.Code == a.Refusal.Code {
			return true
		}
	}
	try := p.world.Recent.Tries[ring.Action{Kind: ring.DoAdmit, App: a.Name}.Target()]
	return try.Refusal != nil && try.Refusal.Code == a.Refusal.Code
}

// triedAt is when the step was tried last for whose outcome an app is refused, such as a pull;
// zero where that is not known.
func (p *plannedHere) triedAt(a *ring.AppStatus) (at time.Time) {
	app, _ := p.next.App(a.Name)
	for i := range app.Services {
		s := &app.Services[i]
		step := ring.Action{App: a.Name, Service: s.Name, Image: s.Spec.Image}
		for _, kind := range []ring.ActionKind{ring.DoResolve, ring.DoPull, ring.DoVerify} {
			step.Kind = kind
			try := p.world.Recent.Tries[step.Target()]
			if try.Refusal != nil && try.Refusal.Code == a.Refusal.Code && try.At.After(at) {
				at = try.At
			}
		}
	}
	return at
}

// waitsBy is why a commit waits, by the plan and by the status: what holds its apps is in both, and
// what the status says of earlier waves is newer.
func waitsBy(planned string, next *ring.Next) string {
	if planned == "" {
		return next.Reason
	}
	switch next.Code {
	case ring.WhyHeldByPerson, ring.WhyLeftToCompose, ring.WhyUndoneByPerson, ring.WhyHeldInFile:
		return planned
	case ring.WhyWaveWaiting, ring.WhyWaveFailed:
		return next.Reason
	}
	return next.Reason + "; " + planned
}

// isChange reports whether a move is a change of the plan already: it begins at this moment.
func isChange(c *ring.Changes, m *ring.Move) bool {
	for i := range c.Apps {
		for _, s := range c.Apps[i].Services {
			if c.Apps[i].App == m.App && s.Service == m.Service {
				return s.Class != ring.ChangeNone && s.To == m.To
			}
		}
	}
	return false
}

// tipOf is the newest commit seen of a source.
func (d *Daemon) tipOf(source string) ring.SHA {
	st, _ := d.loop.Status()
	for _, s := range st.Sources {
		if s.Name == source {
			return s.Tip
		}
	}
	return ""
}

// commit is one of the mirror, by its full id or by the start of one that the
// status shows.
func (d *Daemon) commit(ctx context.Context, f *follower, rev string) (*ring.Commit, error) {
	st, _ := d.loop.Status()
	sha, ok := shown(&st, rev)
	if !ok {
		return nil, api.NotFound("name a folder, or run it in a clone, or name a full commit id, or one that gitring status shows",
			"%q is no folder here, and no commit that is known", rev)
	}
	c, err := f.git.Commit(ctx, sha)
	if errors.Is(err, gitsync.ErrMissing) {
		return nil, api.NotFound("push it first, or run it in a clone that has it", "no commit %s in the mirror of source %s", sha.Short(), f.cfg.Name)
	}
	return c, err
}

var fullID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// shown is the full id of which rev is all or the start: of 7 digits or more,
// and of one commit of the status only.
func shown(st *ring.Status, rev string) (ring.SHA, bool) {
	if fullID.MatchString(rev) {
		return ring.SHA(rev), true
	}
	if len(rev) < 7 {
		return "", false
	}
	var all []ring.SHA
	for _, src := range st.Sources {
		all = append(all, src.Tip, src.Commit, src.Trusted)
		for _, a := range src.Apps {
			all = append(all, a.Commit)
			for _, sv := range a.Services {
				all = append(all, sv.Commit, sv.LastGood)
				for _, in := range sv.Instances {
					all = append(all, in.Commit)
				}
			}
		}
	}
	all = slices.DeleteFunc(all, func(sha ring.SHA) bool { return !strings.HasPrefix(string(sha), rev) })
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != 1 {
		return "", false
	}
	return all[0], true
}
