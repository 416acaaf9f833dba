package gitsync

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	if err != nil {
		return nil, err
	}
	whole, err := w.trust.Load().mayAnswer(w.mirror, v)
	if err != nil {
		return nil, fmt.Errorf("cannot tell what the signer of %s may answer: %w", v.SHA.Short(), err)
	}
	if !whole {
		c.AllowRemove, c.AllowWaves, c.Data = 0, false, nil
	}
	return c, nil
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
		r.Reason = ring.RefMissing + ": " + w.absent + "; push a signed commit to it (git push origin " + w.cfg.Branch + "), or name another branch in the configuration"
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
		b.WriteString(inodeOf(in))
		for dir, up := filepath.Dir(path), ""; dir != up; dir, up = filepath.Dir(dir), dir {
			if in, err := os.Lstat(dir); err == nil { // who may write it decides over the file
				fmt.Fprintf(&b, " %v %d", in.Mode(), owner(in))
			}
		}
		b.WriteByte(';')
	}
	return b.String()
}
