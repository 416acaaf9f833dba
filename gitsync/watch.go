package gitsync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitring/gitring/ring"
)

// watch is what a follower knows between two looks. It belongs to Run's
// goroutine. From the ref on, everything goes by the SHA that was seen: the
// branch may move meanwhile.
type watch struct {
	*Follower
	ready    bool // the anchor was read
	anchor   ring.Anchor
	commit   *ring.Commit // of the anchor; nil while it is not at hand
	reached  bool         // the remote told about the branch, in the last look
	tip      ring.SHA     // as last seen
	absent   string       // why there is no tip
	refusal  *ring.Refusal
	present  bool   // the mirror has tip, and the anchor if it can be had
	settled  bool   // looking at tip again cannot change the answer
	invalid  string // why the trust files as they are now cannot be used, code first
	degraded string // what is wrong with the commit that is trusted

	labels     []ring.SHA // of our containers; nil until the engine told them
	recalled   bool       // the anchor was held against the labels
	introAsked string     // for which anchor and trust set the introduction was asked
}

// begin reports the anchor's commit from the mirror alone.
func (w *watch) begin(ctx context.Context) (ring.Report, bool) {
	w.mirror.sweep()
	w.heads.empty()
	now := w.now().UTC()
	if err := w.read(ctx); err != nil {
		return w.failed(now, err), ctx.Err() == nil
	}
	if err := w.load(ctx, now); err != nil {
		return w.failed(now, err), ctx.Err() == nil
	}
	w.mirror.rest()
	return w.report(now), w.commit != nil
}

// read asks once where trust stands. As long as that is not known nothing else
// is done: an anchor that cannot be read is not an absent one.
func (w *watch) read(ctx context.Context) error {
	if w.ready {
		return nil
	}
	a, err := w.anchors.Anchor(ctx, w.cfg.Name)
	if err != nil {
		return fmt.Errorf("cannot read the anchor of source %s: %w", w.cfg.Name, err)
	}
	w.anchor, w.ready = a, true
	w.invalid = w.counted(w.trust.Load())
	return nil
}

// load gets the anchor's commit out of the mirror, if it is there.
func (w *watch) load(ctx context.Context, now time.Time) error {
	if w.commit != nil || w.anchor.SHA == "" || !w.mirror.has(plumbing.NewHash(string(w.anchor.SHA))) {
		return nil
	}
	seen, err := w.anchors.FirstSeen(ctx, w.cfg.Name, []ring.SHA{w.anchor.SHA}, now)
	if err != nil {
		return fmt.Errorf("cannot read when commit %s was first seen: %w", w.anchor.SHA.Short(), err)
	}
	v, err := w.signed(ctx, w.anchor.SHA, now, seen[w.anchor.SHA])
	if err != nil {
		return w.unlessDamaged(err)
	}
	known, _, err := w.anchors.Verified(ctx, w.cfg.Name, w.anchor.SHA)
	if err != nil {
		return fmt.Errorf("cannot read how %s was trusted: %w", w.anchor.SHA.Short(), err)
	}
	v.Note = known.Note
	c, err := w.carried(v)
	if err != nil {
		return w.unlessDamaged(err)
	}
	w.commit = c
	return nil
}

// carried is a trusted commit as it goes on from here.
func (w *watch) carried(v ring.Verified) (*ring.Commit, error) {
	c, err := commitOf(w.mirror, v, w.cfg.Limits)
	if err == nil && !w.trust.Load().mayRemove(v) {
		c.AllowRemove = 0
	}
	return c, err
}

// unlessDamaged leaves to the next look what a rebuilt mirror cures.
func (w *watch) unlessDamaged(err error) error {
	if !damaging(nil, err) {
		return err
	}
	w.mirror.spoiled(err)
	return nil
}

// signed finds the signer of a trusted commit anew. A key that has gone since
// takes nothing back; one that was revoked is told.
//
// One that a forge landed has no signer of its own: the store knows who signed
// its content. A leave to remove that they gave with it does not outlive the
// daemon: it stands in a commit that may be gone by now.
func (w *watch) signed(ctx context.Context, sha ring.SHA, now, seen time.Time) (ring.Verified, error) {
	v, refusal, err := w.trust.Load().One(w.mirror, sha, now, func(ring.SHA) time.Time { return seen })
	w.degraded = ""
	if err != nil || refusal == nil {
		return v, err
	}
	if refusal.Code == ring.HashMismatch {
		return v, fmt.Errorf("cannot read commit %s: %s: %w", sha, refusal.Says, errDamaged)
	}
	if refusal.Code == ring.Revoked {
		w.degraded = ring.TrustDegraded + ": " + refusal.Says + "; it keeps running"
	}
	cfg := w.trust.Load().cfg
	if cfg.Mode != ForgeMerge && cfg.SignersInRepo == "" || !byForge(refusal) {
		return ring.Verified{SHA: sha, FirstSeen: seen}, nil
	}
	v, _, err = w.anchors.Verified(ctx, w.cfg.Name, sha)
	if err != nil {
		return v, fmt.Errorf("cannot read who signed %s: %w", sha.Short(), err)
	}
	v.SHA, v.FirstSeen, v.Landed = sha, seen, cfg.Mode == ForgeMerge
	return v, nil
}

// look is one look at the remote, from the trust files to the anchor.
func (w *watch) look(ctx context.Context) ring.Report {
	defer w.mirror.rest()
	defer w.heads.rest()
	now := w.now().UTC()
	w.reload(ctx, now)
	err := w.see(ctx, now)
	if err == nil && !w.isShallow() {
		err = w.recall(ctx, now)
	}
	if err == nil && !w.settled && w.tip != "" && !w.isShallow() && w.invalid == "" && w.recalled {
		err = w.judge(ctx, now)
	}
	if err == nil {
		err = w.uphold(ctx, now)
	}
	return w.failed(now, err)
}

func (w *watch) failed(now time.Time, err error) ring.Report {
	r := w.report(now)
	r.Err = err
	return r
}

func (w *watch) report(now time.Time) ring.Report {
	r := ring.Report{Source: w.cfg.Name, At: now, Reached: w.reached, Tip: w.tip, Commit: w.commit, Refusal: w.refusal, Anchor: w.anchor}
	if w.refusal != nil && w.refusal.Code == ring.AwaitingApproval {
		r.Refusal, r.Awaiting = nil, w.refusal.Says
	}
	switch {
	case w.invalid != "":
		r.Reason = w.invalid
	case w.absent != "":
		r.Reason = ring.RefMissing + ": " + w.absent
	default:
		r.Reason = cmp.Or(w.degraded, w.trust.Load().Idle())
	}
	return r
}

// reload reads the trust files again when one of them changed. A bad one changes
// nothing but that no commit is accepted until it is mended.
func (w *watch) reload(ctx context.Context, now time.Time) {
	files := fingerprint(w.cfg.Trust)
	if files == w.files {
		return
	}
	w.files = files
	trust, err := LoadTrust(w.cfg.Trust, w.cfg.Name, w.cfg.Branch)
	if err != nil {
		w.invalid = ring.TrustConfigInvalid + ": " + err.Error()
		return
	}
	if w.invalid = w.counted(trust); w.invalid != "" {
		return
	}
	w.trust.Store(trust)
	w.settled = w.settled && w.refusal == nil // what was refused may be fine now
	if w.commit == nil {
		return
	}
	// The trusted commit is not judged again, only told about.
	if _, err := w.signed(ctx, w.commit.SHA, now, w.commit.FirstSeen); err != nil {
		_ = w.unlessDamaged(err)
	}
	w.log.InfoContext(ctx, "read the trust files again", "source", w.cfg.Name)
}

// fingerprint changes when a trust file does.
func fingerprint(cfg TrustConfig) string {
	var b strings.Builder
	for _, path := range []string{cfg.AllowedSigners, cfg.OpenPGPKeys, cfg.RevokedKeys, cfg.SignersFile} {
		if path == "" {
			continue
		}
		in, err := os.Lstat(path)
		if err != nil {
			fmt.Fprintf(&b, "%v;", err)
			continue
		}
		fmt.Fprintf(&b, "%d %d %v", in.Size(), in.ModTime().UnixNano(), in.Mode())
		if st, ok := in.Sys().(*syscall.Stat_t); ok {
			fmt.Fprintf(&b, " %d %d %v", st.Ino, st.Uid, st.Ctim)
		}
		for dir, up := filepath.Dir(path), ""; dir != up; dir, up = filepath.Dir(dir), dir {
			if in, err := os.Lstat(dir); err == nil { // who may write it decides over the file
				fmt.Fprintf(&b, " %v %d", in.Mode(), owner(in))
			}
		}
		b.WriteByte(';')
	}
	return b.String()
}

// see finds out where the branch is and brings its commits here.
func (w *watch) see(ctx context.Context, now time.Time) error {
	w.reached = false
	if err := w.read(ctx); err != nil {
		return err
	}
	limit := w.cfg.Limits.Update
	if !w.present && (w.mirror.damage() != nil || w.mirror.tip() == "") {
		limit = w.cfg.Limits.Clone
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &errTook{limit})
	defer cancel()
	v, err := w.remote.look(ctx)
	if err != nil {
		return w.world("look at", err)
	}
	defer v.close()
	w.reached = true
	w.found(v)
	if v.tip.IsZero() || w.isShallow() {
		return nil
	}
	if err := w.bring(ctx, v); err != nil {
		return err
	}
	return w.load(ctx, now)
}

func (w *watch) isShallow() bool { return w.refusal != nil && w.refusal.Code == ring.Shallow }

// world wraps an error of the outside. The address in it has no user name and
// no password.
func (w *watch) world(verb string, err error) error {
	return fmt.Errorf("cannot %s %s: %w", verb, w.address, said{bare(err)})
}

// bare takes the URL out of an error: it is named once.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// found takes over what the remote said. A refusal belongs to one tip.
func (w *watch) found(v *view) {
	tip := ring.SHA("")
	if !v.tip.IsZero() {
		tip = ring.SHA(v.tip.String())
	}
	if tip != w.tip || w.mirror.damage() != nil {
		w.present, w.settled = false, false
	}
	if tip != w.tip || !v.shallow && w.isShallow() {
		w.refusal, w.settled = nil, false
	}
	w.tip, w.absent = tip, v.missing
	if tip != "" && v.shallow {
		w.refusal = shallow(tip)
	}
	w.settled = w.settled || tip != "" && tip == w.anchor.SHA && w.refusal == nil
}

func shallow(tip ring.SHA) *ring.Refusal {
	return &ring.Refusal{
		Code: ring.Shallow, Commit: tip,
		Says: "the remote repository is shallow, so the history up to " + tip.Short() + " cannot be checked",
		Hint: "run git fetch --unshallow in the remote repository, or follow the one it was cloned from",
	}
}

// bring makes the mirror hold the tip and, if it can be had, the anchor.
func (w *watch) bring(ctx context.Context, v *view) error {
	if w.present {
		return nil
	}
	if !w.mirror.has(v.tip) && w.mirror.damage() == nil {
		began, clone := time.Now(), w.mirror.tip() == ""
		if err := v.fetch(ctx, w.mirror, v.tip); err != nil {
			return w.world("fetch from", err)
		}
		if clone {
			defer debug.FreeOSMemory() // it needed far more than the daemon after it
		}
		w.log.InfoContext(ctx, "fetched", "source", w.cfg.Name, "commit", w.tip, "took", time.Since(began).Round(time.Millisecond))
	}
	if err := w.mirror.damage(); err != nil {
		v.close() // a server may take one connection at a time
		if err := w.rebuild(ctx, err); err != nil {
			return err
		}
	}
	if !w.mirror.has(plumbing.NewHash(string(w.tip))) {
		return w.world("fetch from", fmt.Errorf("it did not send %s, which its branch points at", w.tip))
	}
	if w.mirror.tip() != w.tip {
		if err := w.mirror.setTip(plumbing.NewHash(string(w.tip))); err != nil {
			return err
		}
	}
	w.present = true
	return w.bringAnchor(ctx)
}

// bringAnchor asks for the anchor by its name when the branch no longer leads to
// it and the mirror was lost. Whether it came is for the verification to see.
func (w *watch) bringAnchor(ctx context.Context) error {
	if w.anchor.SHA == "" || w.mirror.has(plumbing.NewHash(string(w.anchor.SHA))) {
		return nil
	}
	w.present = false // asked for again at the next look
	return w.bringNamed(ctx, []ring.SHA{w.anchor.SHA})
}

// bringNamed asks the remote for commits by their names. Which of them came is
// for the caller to see.
func (w *watch) bringNamed(ctx context.Context, shas []ring.SHA) error {
	for _, sha := range shas {
		if !idForm.MatchString(string(sha)) {
			continue
		}
		if err := w.bringOne(ctx, sha); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) bringOne(ctx context.Context, sha ring.SHA) error {
	v, err := w.remote.look(ctx)
	if err != nil {
		return w.world("look at", err)
	}
	defer v.close()
	if v.bring == nil {
		return nil
	}
	err = v.fetch(ctx, w.mirror, plumbing.NewHash(string(sha)))
	if ctx.Err() != nil {
		return w.world("fetch from", ctx.Err())
	}
	if err != nil {
		w.log.InfoContext(ctx, "remote did not send a commit that was asked for by name", "source", w.cfg.Name, "commit", sha, "reason", err.Error())
	}
	return nil
}

// rebuild clones beside the damaged mirror and swaps. The branch may have moved
// meanwhile; the tip is then the new one.
func (w *watch) rebuild(ctx context.Context, why error) error {
	w.log.WarnContext(ctx, "began to rebuild the mirror", "source", w.cfg.Name, "reason", why.Error())
	v, err := w.remote.look(ctx)
	if err != nil {
		return w.world("look at", err)
	}
	defer v.close()
	if v.bring == nil || v.tip.IsZero() {
		return w.world("fetch from", errors.New("the branch went away meanwhile"))
	}
	next, err := w.mirror.beside()
	if err != nil {
		return err
	}
	next.careful = true
	if err := v.fetch(ctx, next, v.tip); err != nil {
		return w.world("fetch from", err)
	}
	if err := next.setTip(v.tip); err != nil {
		return err
	}
	defer debug.FreeOSMemory()
	if err := w.mirror.swap(next); err != nil {
		return err
	}
	if tip := ring.SHA(v.tip.String()); tip != w.tip {
		w.tip, w.refusal, w.settled = tip, nil, tip == w.anchor.SHA
	}
	w.present = false // the anchor may have been only in the old one
	return nil
}

// tidy keeps the number of packs bounded; every fetch brings one. It comes after
// the report: no commit waits for it, and none for its failure.
func (w *watch) tidy(ctx context.Context) {
	names, err := w.mirror.packNames()
	if errors.Is(err, os.ErrNotExist) || err == nil && len(names) < w.cfg.Limits.Packs || w.mirror.damage() != nil {
		return
	}
	if err == nil {
		err = w.mirror.repack(ctx)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(ctx, w.cfg.Limits.Clone)
		defer cancel()
		err = w.rebuild(ctx, err)
	}
	w.mirror.rest()
	if err != nil {
		w.log.WarnContext(ctx, "could not pack the mirror", "source", w.cfg.Name, "reason", err.Error())
		return
	}
	w.log.InfoContext(ctx, "packed the mirror", "source", w.cfg.Name)
}

// judge verifies the tip and moves the anchor, or refuses. What looks like a
// damaged mirror is fetched anew and judged once more: only what the remote
// really holds is anybody's fault.
func (w *watch) judge(ctx context.Context, now time.Time) error {
	w.heads.begin(w.tip)
	defer func() {
		if w.settled {
			w.heads.empty()
		}
	}()
	verified, refusal, err := w.verify(ctx, now)
	if errors.Is(err, errHeads) {
		w.log.WarnContext(ctx, "emptied the quarantine of heads", "source", w.cfg.Name, "reason", err.Error())
		w.heads.empty()
		w.heads.begin(w.tip)
		verified, refusal, err = w.verify(ctx, now)
	}
	if damaging(refusal, err) {
		if err := w.heal(ctx, refusal, err); err != nil {
			return err
		}
		w.heads.begin(w.tip) // the branch may have moved meanwhile
		verified, refusal, err = w.verify(ctx, now)
	}
	switch {
	case err != nil:
		return fmt.Errorf("cannot verify %s: %w", w.tip.Short(), err)
	case refusal != nil:
		refusal = w.sinceLost(refusal)
		w.refusal, w.settled = refusal, !passing(refusal.Code)
		return nil
	case w.tip == w.anchor.SHA: // the branch moved back while the mirror was rebuilt
		w.settled = true
		return nil
	}
	how, reason := w.how(len(verified))
	if last := verified[len(verified)-1]; last.Landed {
		reason = last.Note + "; " + reason
	}
	return w.advance(ctx, now, how, verified, ring.Event{Kind: ring.CommitAccepted, Reason: reason})
}

// how is what the anchor rests on, and the sentence for the journal.
func (w *watch) how(commits int) (how, reason string) {
	trust := w.trust.Load()
	how = "verified"
	if w.anchor.SHA == "" {
		how = trust.First()
	}
	if warning := trust.Warning(); warning != "" {
		how = warning
	}
	if w.anchor.SHA == "" {
		return how, how
	}
	return how, fmt.Sprintf("%s: new since %s: %d", how, w.anchor.SHA.Short(), commits)
}

func (w *watch) heal(ctx context.Context, refusal *ring.Refusal, why error) error {
	if why == nil {
		why = refusal
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Limits.Clone)
	defer cancel()
	if err := w.rebuild(ctx, why); err != nil {
		return err
	}
	return w.bringAnchor(ctx)
}

// damaging says that the mirror, not a commit, is at fault.
func damaging(refusal *ring.Refusal, err error) bool {
	return errors.Is(err, errDamaged) || errors.Is(err, ErrMissing) || refusal != nil && refusal.Code == ring.HashMismatch
}

// passing refusals can end by themselves, so their tip is judged at each look.
func passing(code ring.Code) bool {
	switch code {
	case ring.KeyNotYetValid, ring.FutureDated, ring.AnchorUnavailable, ring.HashMismatch:
		return true
	case ring.HeadUnavailable, ring.NeedsMergeTree: // the forge or the host may get it
		return true
	}
	return false
}

// verify records when the new commits were first seen, before anything is
// decided by that time.
func (w *watch) verify(ctx context.Context, now time.Time) ([]ring.Verified, *ring.Refusal, error) {
	trust := w.trust.Load()
	fresh := []ring.SHA{w.tip}
	if base := w.base(); base != "" {
		// When there is no range to list, Range below says why.
		if list, refusal, err := between(Until(ctx, w.mirror), base, w.tip, trust.cfg.MaxRange); err == nil && refusal == nil {
			fresh = list
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err // what could not be read to its end says nothing
	}
	seen, err := w.anchors.FirstSeen(ctx, w.cfg.Name, fresh, now)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot record when commits were first seen: %w", err)
	}
	var lost error
	firstSeen := func(sha ring.SHA) time.Time {
		if at, ok := seen[sha]; ok {
			return at
		}
		one, err := w.anchors.FirstSeen(ctx, w.cfg.Name, []ring.SHA{sha}, now)
		if err != nil {
			lost = err
		}
		return one[sha]
	}
	verified, refusal, err := trust.RangeWith(Until(ctx, w.heads), w.aids(ctx), w.anchor.SHA, w.tip, now, firstSeen)
	if over := ctx.Err(); over != nil {
		return nil, nil, over
	}
	if lost != nil {
		return nil, nil, fmt.Errorf("cannot record when a commit was first seen: %w", lost)
	}
	return verified, refusal, err
}

// base is what new commits come after; "" when the tip stands alone.
func (w *watch) base() ring.SHA {
	if w.anchor.SHA != "" {
		return w.anchor.SHA
	}
	return w.cfg.Trust.Introduction
}

// advance moves the anchor to the tip. Nothing is told of it before it is on
// disk.
func (w *watch) advance(ctx context.Context, now time.Time, how string, verified []ring.Verified, e ring.Event) error {
	of := ring.Verified{SHA: w.tip}
	for i, v := range verified {
		if v.SHA == w.tip {
			verified[i].Note = withVouches(v.Note, verified)
			of = verified[i]
		}
	}
	c, err := w.carried(of)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", w.tip.Short(), err)
	}
	e.At, e.Source, e.Commit = now, w.cfg.Name, w.tip
	if e.Actor == "" {
		e.Actor = of.Signer
	}
	a := w.next(now, how, e.Kind == ring.TrustAccepted)
	for i := range verified {
		verified[i].Epoch = w.trust.Load().epoch
	}
	if err := w.anchors.Trust(ctx, a, verified, []ring.Event{e}); err != nil {
		return fmt.Errorf("cannot record that %s is trusted: %w", w.tip.Short(), err)
	}
	w.anchor, w.commit, w.refusal, w.settled, w.degraded = a, c, nil, true, ""
	return nil
}

// maxTold is how many vouched commits are named to people.
const maxTold = 5

// withVouches tells of a tip whom others in its range owe that they count.
func withVouches(note string, verified []ring.Verified) string {
	told := 0
	for _, v := range verified {
		if v.Vouched == "" {
			continue
		}
		if told++; told > maxTold {
			continue
		}
		note += "; vouched by " + v.Vouched + ": " + v.SHA.Short()
	}
	if told > maxTold {
		note += fmt.Sprintf(" and %d more", told-maxTold)
	}
	return strings.TrimPrefix(note, "; ")
}

// next is the anchor at the tip, with what goes along.
func (w *watch) next(now time.Time, how string, byPerson bool) ring.Anchor {
	t := w.trust.Load()
	a := ring.Anchor{
		Source: w.cfg.Name, SHA: w.tip, How: how, At: now,
		Began: w.anchor.Began, TrustVersion: max(w.anchor.TrustVersion, t.version),
	}
	switch {
	case byPerson:
		a.Began = ring.Beginning{SHA: w.tip, How: how, At: now}
	case w.anchor.SHA == "" && t.cfg.Introduction != "":
		a.Began = ring.Beginning{SHA: t.cfg.Introduction, How: ring.ByIntroduction, At: now}
	case w.anchor.SHA == "":
		a.Began = ring.Beginning{SHA: w.tip, How: ring.ByFirstUse, At: now}
	}
	return a
}

// accept is a person's override, TRUST.md section 6. It looks at the remote
// first; when that is away the tip that was last fetched counts.
func (w *watch) accept(ctx context.Context, a acceptance) (*ring.Refusal, error) {
	defer w.mirror.rest()
	defer w.heads.rest()
	now := w.now().UTC()
	w.reload(ctx, now)
	if w.invalid != "" {
		return nil, fmt.Errorf("cannot accept %s: %s", a.sha.Short(), w.invalid)
	}
	err := w.see(ctx, now)
	if err != nil && (!w.ready || w.mirror.tip() == "" || !names(a.sha, w.mirror.tip())) {
		return nil, fmt.Errorf("cannot accept %s: %w", a.sha.Short(), err)
	}
	if err != nil {
		w.tip = w.mirror.tip()
	}
	if !names(a.sha, w.tip) {
		return nil, fmt.Errorf("cannot accept %s: the branch is at %s; only its present tip can be accepted", a.sha.Short(), w.tip.Short())
	}
	if w.isShallow() {
		return w.refusal, nil
	}
	if w.tip == w.anchor.SHA && !w.anchor.FirstUse() {
		return nil, nil // trusted already
	}
	seen, err := w.anchors.FirstSeen(ctx, w.cfg.Name, []ring.SHA{w.tip}, now)
	if err != nil {
		return nil, fmt.Errorf("cannot record when %s was first seen: %w", w.tip.Short(), err)
	}
	trust, err := w.trust.Load().Of(w.mirror, w.anchor.SHA)
	if err != nil {
		return nil, fmt.Errorf("cannot read the signers of %s: %w", w.anchor.SHA.Short(), err)
	}
	w.heads.begin(w.tip)
	one, refusal, err := trust.Answered(Until(ctx, w.heads), w.aids(ctx), w.tip, now, seen[w.tip])
	if over := ctx.Err(); over != nil {
		return nil, over
	}
	if err != nil || refusal != nil {
		return refusal, err
	}
	one.Note = strings.TrimSuffix("accepted by "+a.actor+"; "+one.Note, "; ")
	how := "accepted by " + a.actor + ": " + a.reason
	w.recalled = true // a person has the last word over labels too
	return nil, w.advance(ctx, now, how, []ring.Verified{one}, ring.Event{Kind: ring.TrustAccepted, Actor: a.actor, Reason: a.reason})
}

// names says that sha, maybe shortened, means tip.
func names(sha, tip ring.SHA) bool {
	return len(sha) >= 7 && strings.HasPrefix(string(tip), string(sha))
}
