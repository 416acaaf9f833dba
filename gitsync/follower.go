package gitsync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitring/gitring/ring"
)

// Config is what one follower needs to know.
type Config struct {
	Name   string // of the source
	URL    string // file, https, ssh; http to a loopback address
	Branch string // without refs/heads/
	Path   string // of the source in the repository; not used here
	Auth   Auth
	Trust  TrustConfig
	Poll   string // duration of at least 1s or cron expression in UTC; "" is 60s
	Dir    string // of the bare mirror; its parent must exist or be creatable
	Limits Limits
	// Isolated fetches in a process of its own. The program must answer to
	// FetchVerb with ServeFetch.
	Isolated bool
	// RequireConfinement refuses to fetch where this host cannot keep the process that
	// fetches from all that it does not need.
	RequireConfinement bool
	// Pulls says that heads of pull requests are judged, by Propose.
	Pulls bool
	// Spare is a process that stands ready for that; nil is none.
	Spare *Spare
	// Labels are the commits that containers of this source were made from; nil
	// when there is nobody to ask. They count when the anchor is lost. It is
	// called until it answers once after the start.
	Labels func(ctx context.Context) ([]ring.SHA, error)
}

// Anchors is what must survive a restart. When a method returns nil the fact is
// on disk.
type Anchors interface {
	// Anchor is up to where the source is trusted; the zero Anchor when nothing
	// ever was.
	Anchor(ctx context.Context, source string) (ring.Anchor, error)
	// FirstSeen says when each commit was first seen here, and records now for
	// those that never were.
	FirstSeen(ctx context.Context, source string, shas []ring.SHA, now time.Time) (map[ring.SHA]time.Time, error)
	// Verified is a commit as it was trusted; false when it was not, or so long ago
	// that it was let go.
	Verified(ctx context.Context, source string, sha ring.SHA) (ring.Verified, bool, error)
	// Standing is what is known of a commit that lies behind the anchor.
	Standing(ctx context.Context, source string, sha ring.SHA) (ring.Standing, error)
	// Carriers are the commits that Trust was told of with this payload.
	Carriers(ctx context.Context, source, payload string) ([]ring.Carrier, error)
	// Trust moves the anchor, or changes what goes along with it, and records the
	// commits and events, all or nothing.
	Trust(ctx context.Context, a ring.Anchor, commits []ring.Verified, events []ring.Event) error
}

// Follower follows one branch of one remote.
type Follower struct {
	cfg      Config
	address  address
	schedule schedule
	anchors  Anchors
	log      *slog.Logger
	remote   remote
	child    *child // nil when this process fetches
	mirror   *mirror
	heads    *heads // Run's own
	pulls    *proposals

	poke  chan struct{}                      // of capacity 1: look now
	asks  chan acceptance                    // answered by Run's goroutine
	works chan func(context.Context, *watch) // done by Run's goroutine between two looks
	busy  atomic.Bool                        // a look is under way
	// changers are which commits changed files last.
	changers changers
	trust    atomic.Pointer[Trust]
	files    string           // fingerprint of the trust files as loaded; Run's own
	now      func() time.Time // the wall clock, by which commits are judged
}

// acceptance is a person's override on its way to Run's goroutine.
type acceptance struct {
	sha           ring.SHA
	actor, reason string
	answer        chan<- answer
}

type answer struct {
	refusal *ring.Refusal
	err     error
}

var (
	sourceForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	branchForm = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,200}$`)
)

// New checks the whole configuration and loads the trust files; it starts
// nothing and touches neither network nor mirror.
func New(cfg Config, anchors Anchors, log *slog.Logger) (*Follower, error) {
	f := &Follower{now: time.Now, cfg: cfg, anchors: anchors, log: log, poke: make(chan struct{}, 1), asks: make(chan acceptance), works: make(chan func(context.Context, *watch))}
	f.cfg.Limits = cfg.Limits.withDefaults()
	if !sourceForm.MatchString(cfg.Name) || strings.Contains(cfg.Name, "..") || strings.HasSuffix(cfg.Name, ".lock") {
		return nil, fmt.Errorf("cannot follow source %q: a name has letters, digits, dot, dash and underscore", cfg.Name)
	}
	if cfg.Dir == "" {
		return nil, fmt.Errorf("cannot follow source %s: no folder for the mirror", cfg.Name)
	}
	branch, err := branchRef(cfg.Branch)
	if err != nil {
		return nil, fmt.Errorf("cannot follow source %s: %w", cfg.Name, err)
	}
	if f.address, err = parseAddress(cfg.URL); err != nil {
		return nil, fmt.Errorf("cannot follow source %s: url: %w", cfg.Name, err)
	}
	if f.schedule, err = parseSchedule(cfg.Poll); err != nil {
		return nil, fmt.Errorf("cannot follow source %s: poll: %w", cfg.Name, err)
	}
	if cfg.Isolated {
		f.child = newChild(f.cfg, f.address, log)
	}
	if f.remote, err = f.remoteOf(branch, f.cfg.Limits); err != nil {
		return nil, fmt.Errorf("cannot follow source %s: auth: %w", cfg.Name, err)
	}
	f.files = fingerprint(cfg.Trust)
	trust, err := LoadTrust(cfg.Trust, cfg.Name, cfg.Branch)
	if err != nil {
		return nil, err
	}
	f.trust.Store(trust)
	f.mirror = newMirror(cfg.Dir, cfg.Name, f.cfg.Limits)
	f.mirror.careful = cfg.Trust.Mode == ForgeMerge || cfg.Pulls // git may be asked to merge what is in it
	f.heads = f.newHeads()
	f.pulls = f.newProposals()
	return f, nil
}

// remoteOf is the far end for one ref. What is wrong with the settings is found
// here, whoever fetches later.
func (f *Follower) remoteOf(ref plumbing.ReferenceName, lim Limits) (remote, error) {
	r, err := newRemote(f.address, ref, f.cfg.Auth, lim, files{}, nil)
	if err != nil || f.child == nil {
		return r, err
	}
	return f.child.remote(ref, lim), nil
}

// branchRef holds a branch to the names of docs/design/trust.md#limits.
func branchRef(branch string) (plumbing.ReferenceName, error) {
	ref := plumbing.NewBranchReferenceName(branch)
	ok := branchForm.MatchString(branch) && ref.Validate() == nil && !strings.HasSuffix(branch, ".lock") && !strings.HasPrefix(branch, "-")
	for _, bad := range []string{"..", "@{", "//", "/-", ".lock/"} {
		ok = ok && !strings.Contains(branch, bad)
	}
	if !ok {
		return "", fmt.Errorf("branch %q is not a name gitring takes: letters, digits and . _ / - only, as in main or release/1.2", branch)
	}
	return ref, nil
}

// Run follows until ctx ends; then it returns nil, and all it started has ended.
// It first reports the anchor's commit from the mirror, without network, when
// both are known. Then it looks at the remote: at once, on schedule and when
// poked. Every look that was completed is reported, whatever it found; out is
// called from one goroutine.
func (f *Follower) Run(ctx context.Context, out func(context.Context, ring.Report)) error {
	defer f.remote.rest()
	defer f.child.rest()
	defer f.mirror.rest()
	defer f.heads.rest()
	f.pulls.sweep()
	w := &watch{Follower: f}
	if r, ok := w.begin(ctx); ok {
		out(ctx, r)
	}
	pace := f.newPace(time.Now())
	for {
		timer := time.NewTimer(time.Until(pace.at()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-f.poke:
			pace.poked = true
			f.busy.Store(true)
		case a := <-f.asks:
			refusal, err := w.accept(ctx, a)
			a.answer <- answer{refusal, err}
			out(ctx, w.report(time.Now().UTC()))
		case work := <-f.works:
			work(ctx, w)
		case <-timer.C:
			f.busy.Store(true)
			pace.begin(time.Now())
			r := w.look(ctx)
			if ctx.Err() != nil {
				return nil // a look cut short says nothing about the remote
			}
			pace.end(time.Now(), r.Err)
			f.busy.Store(len(f.poke) > 0)
			out(ctx, r)
			w.tidy(ctx)
		}
		timer.Stop()
	}
}

// unheardEvery is how soon after a look that waits for the engine the next is due.
const unheardEvery = 10 * time.Second

// pace says when the next look is due.
type pace struct {
	schedule schedule
	every    time.Duration // pokes lead to one look in that time
	due      time.Time     // by schedule or backoff
	began    time.Time     // the last look
	quiet    time.Time     // the remote asked to be left alone until then
	poked    bool
	failures *backoff.ExponentialBackOff
	most     time.Duration
}

func (f *Follower) newPace(now time.Time) *pace {
	lim := f.cfg.Limits
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = min(f.schedule.interval(now), 5*time.Second)
	b.RandomizationFactor, b.Multiplier, b.MaxInterval = jitter, 2, lim.MaxBackoff
	return &pace{schedule: f.schedule, every: lim.PokeEvery, due: now, failures: b, most: lim.MaxBackoff}
}

func (p *pace) at() time.Time {
	at := p.due
	if soon := p.began.Add(p.every); p.poked && soon.Before(at) {
		at = soon
	}
	if at.Before(p.quiet) {
		at = p.quiet
	}
	return at
}

func (p *pace) begin(now time.Time) { p.began, p.poked = now, false }

func (p *pace) end(now time.Time, err error) {
	if err == nil {
		p.failures.Reset()
		p.due = p.schedule.next(now)
		return
	}
	if errors.Is(err, errUnheard) { // the remote is well: it is the engine that is awaited
		p.due = now.Add(min(p.schedule.interval(now), unheardEvery))
		return
	}
	p.due = now.Add(min(p.failures.NextBackOff(), p.most))
	if wait, ok := errors.AsType[*errWait](err); ok {
		p.quiet = wait.until
	}
}

// Poke asks for a look now and never blocks. Any number of pokes lead to one
// look at once and at most one a second after it, the last of them after the
// last poke.
func (f *Follower) Poke() {
	select {
	case f.poke <- struct{}{}:
		f.busy.Store(true)
	default:
	}
}

// Checking reports whether a look is under way or was asked for.
func (f *Follower) Checking() bool { return f.busy.Load() || len(f.poke) > 0 }

// Interval is the time between two looks: of a cron expression, between the
// next two.
func (f *Follower) Interval() time.Duration { return f.schedule.interval(time.Now()) }

// Remote is the URL for people, without user name and password.
func (f *Follower) Remote() string { return f.address.String() }

// Warning is what status shows of the trust mode for as long as it stands; ""
// for strict.
func (f *Follower) Warning() string { return f.trust.Load().Warning() }

// TrustEpoch is a print of the trust files as they count now.
func (f *Follower) TrustEpoch() string { return f.trust.Load().epoch }

// Unconfined is what this host does not keep the process that fetches from, each
// with the reason; "" while that is nothing, or is not known yet.
func (f *Follower) Unconfined() string { return f.child.unconfined() }

// Accept trusts the present tip of the branch because a person says so: its own
// signature still has to be good, its place in history and its distance do not.
// sha is a full id: one content may have several, so a short one could come to mean
// another. The commit is reported through Run, which
// has to be running; without it Accept ends with ctx.
func (f *Follower) Accept(ctx context.Context, sha ring.SHA, actor, reason string) (*ring.Refusal, error) {
	if strings.TrimSpace(reason) == "" || actor == "" {
		return nil, fmt.Errorf("cannot accept %s: the journal needs who and why", sha.Short())
	}
	if !idForm.MatchString(string(sha)) {
		return nil, fmt.Errorf("cannot accept %q: not a full commit id of 40 lower-case hex digits", clip(string(sha)))
	}
	answers := make(chan answer, 1)
	select {
	case f.asks <- acceptance{sha, actor, reason, answers}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-answers:
		return a.refusal, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Commit is a commit of the mirror, whether it is trusted or not; Signer is ""
// when it would not be. The error wraps ErrMissing when the mirror has none, and
// is a *ring.Refusal when it cannot be read as a commit.
func (f *Follower) Commit(ctx context.Context, rev ring.SHA) (*ring.Commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v, refusal, err := f.trust.Load().One(f.mirror, rev, time.Now().UTC(), nil)
	if err == nil && refusal != nil {
		v = ring.Verified{}
		if byForge(refusal) {
			v, err = f.answering(ctx, rev)
		}
		v.SHA = rev
	}
	if err != nil {
		return nil, err
	}
	return commitOf(f.mirror, v, f.cfg.Limits)
}

// answering is who answers for a commit of which the configuration's keys say nothing:
// who did when it was trusted, or a signer whom the trusted commit names.
func (f *Follower) answering(ctx context.Context, rev ring.SHA) (ring.Verified, error) {
	t := f.trust.Load()
	landed := t.cfg.Mode == ForgeMerge
	v, known, err := f.anchors.Verified(ctx, f.cfg.Name, rev)
	if err != nil {
		return v, fmt.Errorf("cannot read who signed %s: %w", rev.Short(), err)
	}
	if v.Landed = landed; known || t.cfg.SignersInRepo == "" {
		return v, nil
	}
	a, err := f.anchors.Anchor(ctx, f.cfg.Name)
	if err != nil || a.SHA == "" {
		return v, err
	}
	of, err := t.Of(f.mirror, a.SHA)
	if err != nil { // what is wrong with the file is told where the commit is judged
		return v, nil
	}
	one, refusal, err := of.One(f.mirror, rev, time.Now().UTC(), nil)
	if err != nil || refusal != nil {
		return v, err
	}
	return one, nil
}
