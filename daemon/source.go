package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// follower carries what one source learns to the loop: a trusted commit's tree
// becomes its plan here, once, and its files are on disk before the loop hears
// of it.
type follower struct {
	d        *Daemon
	cfg      *config.SourceConfig
	git      *gitsync.Follower
	settings manifest.Settings
	pulls    *notify.Pulls // nil where nobody asks for them

	// What follows belongs to run's goroutine.
	source reconcile.Source // as last offered
	told   string           // the last error of a look, told once
	lacks  string           // why a content is missing, told once
	twin   string           // whose mirror it is, told once
	env    string           // the print of the host's values that the plan was read with
	beside string           // and of what belongs to whom
	data   string           // and of the folders for which an app of it is refused
	hands  gitsync.Hands
	claims claimsMade
	mended time.Time
	memory manifest.Memory // of the apps as the last commit had them

	mu    sync.Mutex // guards what follows
	last  ring.Report
	heard chan struct{} // closed and replaced when last changes
}

// mendEvery is how often a source looks for contents that a hand took away.
const mendEvery = time.Minute

func (d *Daemon) wireSources(ctx context.Context) error {
	d.spare = gitsync.NewSpare(d.log)
	for i := range d.cfg.Sources {
		s := &d.cfg.Sources[i]
		f := &follower{d: d, cfg: s, settings: config.SettingsOf(d.cfg, s), heard: make(chan struct{})}
		var err error
		git := config.GitConfig(d.cfg, s)
		git.Spare = d.spare
		git.Labels = func(ctx context.Context) ([]ring.SHA, error) { return d.remembered(ctx, s.Name) }
		if err := checkConfinement(ctx, git); err != nil {
			return err
		}
		f.git, err = gitsync.New(git, d.store, d.log)
		if err != nil {
			return err // it names the source
		}
		f.source = reconcile.Source{Name: s.Name, Branch: s.Branch, Apply: s.Apply, Trust: f.git.Warning(), FreshFor: freshFor(s.Poll, f.git.Interval()), Names: d.cfg.Rules.Takes(s.Name), Silent: s.Status == nil, Deployments: s.Status != nil && s.Status.Deployments}
		if s.MaxAge != nil {
			f.source.MaxAge = time.Duration(*s.MaxAge)
		}
		d.sources = append(d.sources, f)
	}
	return nil
}

// checkConfinement tells at once what each look would tell.
func checkConfinement(ctx context.Context, git gitsync.Config) error {
	if !git.RequireConfinement {
		return nil
	}
	err := gitsync.CheckConfinement(ctx, git)
	if _, lacks := errors.AsType[*gitsync.NotConfinedError](err); lacks {
		return &ring.HostError{
			Says: err.Error(), Err: err,
			Hint: "run a Linux of 6.7 or later with seccomp and Landlock (CONFIG_SECURITY_LANDLOCK, and landlock in the list lsm=), or take require_confinement out",
		}
	}
	return err
}

// freshFor is how long after the remote was reached its plan may lower counts
// (docs/design/rollout.md#one-look): max(5 min, 10 × poll), or twice a cron's interval.
func freshFor(poll string, interval time.Duration) time.Duration {
	if _, err := time.ParseDuration(poll); err != nil {
		return max(5*time.Minute, 2*interval)
	}
	return max(5*time.Minute, 10*interval)
}

func (f *follower) poke() {
	if f != nil {
		f.git.Poke()
	}
}

func (f *follower) pokePulls() {
	if f != nil {
		f.pulls.Poke()
	}
}

func (f *follower) run(ctx context.Context) error { return f.git.Run(ctx, f.report) }

// report takes one look of the source to the loop.
func (f *follower) report(ctx context.Context, r ring.Report) {
	f.tell(r)
	f.d.countFetch(f.cfg.Name, r.Err)
	next := f.source
	said, _ := f.d.policy.Said()
	next.Names = said.Takes(f.cfg.Name)
	next.Tip, next.Refusal, next.Awaiting, next.Reason = r.Tip, r.Refusal, r.Awaiting, r.Reason
	if next.Ahead = ""; r.Awaiting != "" {
		next.Ahead = r.Tip // it lacks nothing but people who answer for it
	}
	if r.Err != nil && next.Reason == "" {
		next.Reason = r.Err.Error()
	}
	reached := r.Reached && r.Err == nil
	env, err := f.d.env.look(f.d.log, time.Now())
	commit := cmp.Or(r.Commit, next.Commit)
	switch {
	case commit == nil:
	case err != nil:
		// No plan is read without the host's values: they are not empty, only not
		// there at this moment.
		next.Reason, reached = err.Error(), false
	case f.signers(ctx, &next, &reached):
		// nothing is judged without knowing in whose hands it is
	case f.unread(&next, commit):
		reached = false // nothing new is accepted under rules that nobody meant
	case next.Commit != nil && next.Commit.SHA == commit.SHA && f.env == env && f.beside == f.d.seenBy(f.cfg.Name) && f.data == foldersNow(next.Next):
		f.mend(ctx)
	default:
		f.d.loop.Poke() // it looks at the engine while the commit is read
		beside := f.d.seenBy(f.cfg.Name)
		values, err := f.d.env.readAndTell(f.d.log)
		var plan *ring.Plan
		if err == nil {
			plan, err = f.plan(ctx, commit, values)
		}
		if err != nil {
			// The follower carries the commit in every report, so this is tried
			// again. Until then nothing is removed by the plan before it.
			f.d.log.Error("could not prepare a commit, will be tried again", "source", f.cfg.Name, "commit", commit.SHA.Short(), "err", err)
			next.Reason, reached = err.Error(), false
			break
		}
		next.Commit, next.Next, f.env, f.beside, f.data = commit, plan, values.print, beside, foldersNow(plan)
		f.d.ledger.plan(f.cfg.Name, plan.Apps)
	}
	f.source = next
	if err := f.d.loop.Offer(ctx, next, reached); err != nil {
		if !errors.Is(err, context.Canceled) {
			f.d.log.Error("could not offer a report", "source", f.cfg.Name, "err", err)
		}
		return
	}
	f.d.contentStore.taken(f.cfg.Name)
	f.tellTwin()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = r
	close(f.heard)
	f.heard = make(chan struct{})
}

// foldersNow is a print of the folders for which apps of a plan are refused: a person may
// move one, or make one, instead of pushing a commit.
func foldersNow(plan *ring.Plan) string {
	if plan == nil {
		return ""
	}
	var b strings.Builder
	for _, app := range slices.Sorted(maps.Keys(plan.Refused)) {
		for folder := range strings.Lines(plan.Refused[app].Folders) {
			folder = strings.TrimSuffix(folder, "\n")
			there, holds := runtime.HoldsData(folder)
			fmt.Fprintln(&b, folder, there, holds)
		}
	}
	return b.String()
}

// unread reports whether a commit has to wait because the policy cannot be read.
func (f *follower) unread(next *reconcile.Source, commit *ring.Commit) bool {
	_, wrong := f.d.policy.Said()
	if wrong == "" || next.Commit != nil && next.Commit.SHA == commit.SHA {
		return false
	}
	next.Reason = "PolicyInvalid: " + wrong
	return true
}

// seenBy is all that a plan of a source is judged by besides the commit.
func (d *Daemon) seenBy(source string) string {
	said, _ := d.policy.Said()
	return d.policy.Hash() + fmt.Sprint(said.Takes(source)) + d.signedPrint(source) + d.ledger.seenBy(source) + d.noFronts.said(time.Now()) + fmt.Sprint(d.secrets.asked().round())
}

// tell logs what changed about following a source: errors once, refusals by the
// journal.
func (f *follower) tell(r ring.Report) {
	says := ""
	if r.Err != nil {
		says = r.Err.Error()
	}
	if says != f.told && says != "" {
		f.d.log.Warn("could not follow, will be tried again", "source", f.cfg.Name, "err", says)
	}
	if says == "" && f.told != "" {
		f.d.log.Info("followed again", "source", f.cfg.Name)
	}
	f.told = says
}

// plan reads a commit's tree, and writes the files that its containers mount.
func (f *follower) plan(ctx context.Context, c *ring.Commit, v HostValues) (*ring.Plan, error) {
	plan, err := f.readPlan(ctx, c, v)
	if errors.Is(err, errNotKept) { // an app that was not carried out meanwhile is read anew
		f.memory = manifest.Memory{}
		return f.readPlan(ctx, c, v)
	}
	return plan, err
}

// readPlan is plan, with what is remembered of the commit before.
func (f *follower) readPlan(ctx context.Context, c *ring.Commit, v HostValues) (*ring.Plan, error) {
	s := f.here(v)
	r := f.memory.Look(c, s)
	v.apply(&r.Plan, f.d.cfg.DataRoot)
	plan, files, _ := f.judged(f.d.judge, r, v)
	if err := f.limit(ctx, c, &plan); err != nil {
		return nil, err
	}
	f.d.secrets.asked().uses(f.cfg.Name, plan.Asks)
	maps.DeleteFunc(files, func(_ string, c ring.Content) bool { return lacksValue(c) }) // nobody can write them yet
	if err := f.d.contentStore.keep(f.cfg.Name, plan.Apps, files, openedBy(s), time.Now().UTC()); err != nil {
		return nil, err
	}
	if r := plan.Refusal; r != nil && r.Code == ring.Unreadable {
		// Not the author's fault: the mirror mends itself at the next look.
		return nil, fmt.Errorf("cannot read commit %s: %s", c.SHA.Short(), r.Says)
	}
	if err := f.d.contentStore.put(ctx, f.cfg.Name, files); err != nil {
		return nil, err
	}
	return &plan, nil
}

// asked is what a commit asks of this host, whatever the policy says of it.
func (f *follower) asked(c *ring.Commit, v HostValues) manifest.Reading {
	return f.askedBy(f.here(v), c, v)
}

// askedBy is asked with settings that the caller looks at afterwards.
func (f *follower) askedBy(s manifest.Settings, c *ring.Commit, v HostValues) manifest.Reading {
	r := manifest.Look(c, s)
	v.apply(&r.Plan, f.d.cfg.DataRoot)
	return r
}

// askedFurther is asked of a folder, and tells which Compose files in it no app reads.
func (f *follower) askedFurther(c *ring.Commit, v HostValues) (manifest.Reading, []string) {
	r, notRead := manifest.LookFurther(c, closed(f.here(v)))
	v.apply(&r.Plan, f.d.cfg.DataRoot)
	return r, manifest.SayNotRead(notRead)
}

// here are the settings with what this host knows at this moment.
func (f *follower) here(v HostValues) manifest.Settings {
	s := v.Settings(f.settings, f.d.env.key)
	s.Names, s.Held = f.d.ledger.names(f.settings.Source), f.d.ledger.held(f.settings.Source)
	s.InForce = f.d.ledger.inForce(f.settings.Source)
	s.Traffic.Never = f.d.noFronts.said(time.Now())
	s.Denied = f.d.judge.Denies
	s.NoChown = !mayChown() || s.Swarm && os.Geteuid() != 0 // only root reads what it gave away
	s.Unplaced = f.d.unplaced()
	if f.d.secrets != nil {
		of := f.d.ledger.signersOf(f.settings.Source)
		s.Secrets, s.SecretsPrint = openerFor{secretFiles: f.d.secrets, source: f.settings.Source, signers: of, opened: &[]openedFile{}}, f.d.secrets.print(of)
	}
	return s
}

// closed are the settings for a commit that nobody verified: its encrypted files stay shut.
func closed(s manifest.Settings) manifest.Settings {
	if o, ok := s.Secrets.(openerFor); ok {
		o.closed = true
		s.Secrets = o
	}
	return s
}

// look is the plan of a commit on this host, with each thing that is refused by itself, in order of place. Nothing is
// written.
func (f *follower) look(c *ring.Commit, v HostValues) (ring.Plan, contents, []*ring.Refusal) {
	return f.judged(f.d.judge, f.asked(c, v), v)
}

// judged is what a commit asks as far as this host lets it, by a judge of it.
func (f *follower) judged(j admission.Judge, r manifest.Reading, v HostValues) (ring.Plan, contents, []*ring.Refusal) {
	data := f.d.ledger.dataOf(f.settings.Source)
	if data != nil {
		data.TakeOver(&r.Plan)
	}
	refusals := v.refusals(&r.Plan, append(r.Refusals, j.Reading(&r)...))
	if data != nil {
		refusals = append(refusals, data.RefuseLeftBehind(&r.Plan)...)
	}
	plan, files := r.Plan, mountedBy(r.Plan.Apps, r.Contents)
	for i := range plan.Apps {
		a := &plan.Apps[i]
		a.Written = ring.WrittenApp(*a)
		a.Notes = slices.Concat(a.Notes, plan.Beside[a.Name])
	}
	return plan, files, refusals
}

// mend puts back files that a hand took out of the folder of contents.
func (f *follower) mend(ctx context.Context) {
	if time.Since(f.mended) < mendEvery {
		return
	}
	f.mended = time.Now()
	err := f.d.contentStore.mend(ctx, f.cfg.Name, func(ctx context.Context, sha ring.SHA) (contents, error) {
		v, err := f.d.env.read()
		if err != nil {
			return nil, err
		}
		return f.contentsAt(ctx, sha, v)
	})
	err = errors.Join(err, f.d.rollWhatLost(ctx))
	says := ""
	if err != nil {
		says = err.Error()
	}
	if says != "" && says != f.lacks && ctx.Err() == nil {
		f.d.log.Error("could not put back files that containers mount", "source", f.cfg.Name, "err", says)
	}
	f.lacks = says
}

// contentsAt are those of an earlier commit with the host's values of today, as the
// mirror has it. What runs keeps its files, also under a policy that came after it.
func (f *follower) contentsAt(ctx context.Context, sha ring.SHA, v HostValues) (contents, error) {
	c, err := f.git.Commit(ctx, sha)
	if err != nil {
		return nil, err
	}
	s := f.here(v)
	files := f.askedBy(s, c, v).Contents
	if opened := openedBy(s); len(opened) > 0 {
		return files, f.d.secrets.kept.keepOpened(opened, time.Time{})
	}
	return files, nil
}

// wait returns the first report of a look that began after since.
func (f *follower) wait(ctx context.Context, since time.Time) (ring.Report, error) {
	for {
		f.mu.Lock()
		r, heard := f.last, f.heard
		f.mu.Unlock()
		if r.At.After(since) {
			return r, nil
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return ring.Report{}, ctx.Err()
		}
	}
}
