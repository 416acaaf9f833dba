package gitsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitring/gitring/ring"
)

// counted holds the trust set to trust_version, which only rises: whoever brings
// back an old configuration brings back the keys that it trusted.
func (w *watch) counted(t *Trust) (invalid string) {
	if t.version >= w.anchor.TrustVersion {
		return ""
	}
	what := fmt.Sprintf("trust_version is %d", t.version)
	if t.version == 0 {
		what = "there is no trust_version"
	}
	return fmt.Sprintf("%s: %s, and %d was in use before; no commit is accepted until the trust set is brought up to date, or given a version above %d",
		ring.TrustRollback, what, w.anchor.TrustVersion, w.anchor.TrustVersion)
}

// uphold writes down what changed about the anchor without moving it: a higher
// trust_version, a key that was revoked since, an introduction that took the
// place of first use. Each is told once, by the journal.
func (w *watch) uphold(ctx context.Context, now time.Time) error {
	if w.anchor.SHA == "" {
		return nil
	}
	next := w.anchor
	var events []ring.Event
	tell := func(kind string, commit ring.SHA, reason string) {
		events = append(events, ring.Event{At: now, Kind: kind, Source: w.cfg.Name, Commit: commit, Reason: reason})
	}
	if v := w.trust.Load().version; w.invalid == "" && v > next.TrustVersion {
		next.TrustVersion = v
		tell(ring.TrustVersion, "", fmt.Sprintf("trust_version is %d now", v))
	}
	if w.commit != nil && next.Degraded != (w.degraded != "") {
		if next.Degraded = w.degraded != ""; next.Degraded {
			tell(ring.TrustIsDegraded, next.SHA, w.degraded)
		}
	}
	if w.invalid == "" && next.FirstUse() {
		introduced, err := w.introducedSince(ctx, now)
		if err != nil {
			return err
		}
		if introduced {
			next.Began = ring.Beginning{SHA: w.cfg.Trust.Introduction, How: ring.ByIntroduction, At: now}
			tell(ring.TrustIntroduced, next.Began.SHA, "the introduction of the configuration took the place of first use")
		}
	}
	if next == w.anchor {
		return nil
	}
	if err := w.anchors.Trust(ctx, next, nil, events); err != nil {
		return fmt.Errorf("cannot record what is known of %s: %w", next.SHA.Short(), err)
	}
	w.anchor = next
	return nil
}

// introducedSince reports whether the introduction, written down after first use,
// vouches for what was trusted: it lies between, or all that came after it up to
// the first use passes the rules. Asked once for each anchor and trust set.
func (w *watch) introducedSince(ctx context.Context, now time.Time) (bool, error) {
	t := w.trust.Load()
	intro, began := t.cfg.Introduction, w.anchor.Began.SHA
	asked := string(w.anchor.SHA) + t.epoch
	if here, _ := w.divide([]ring.SHA{intro, began, w.anchor.SHA}); intro == "" || w.introAsked == asked || len(here) < 3 {
		return false, nil
	}
	says, err := w.introduces(ctx, now, t, intro, began)
	if err != nil {
		return false, w.unlessDamaged(err)
	}
	w.introAsked = asked
	if says != "" {
		w.log.WarnContext(ctx, "introduction does not vouch for what was trusted on first use", "source", w.cfg.Name, "commit", intro, "reason", says)
	}
	return says == "", nil
}

// introduces is "" when it does, or why not.
func (w *watch) introduces(ctx context.Context, now time.Time, t *Trust, intro, began ring.SHA) (says string, err error) {
	missed, err := unreached(Until(ctx, w.mirror), w.anchor.SHA, []ring.SHA{intro})
	if err != nil {
		return "", err
	}
	if len(missed) > 0 {
		return "what is trusted does not descend from it", nil
	}
	var lost error
	firstSeen := func(sha ring.SHA) time.Time {
		seen, err := w.anchors.FirstSeen(ctx, w.cfg.Name, []ring.SHA{sha}, now)
		lost = errors.Join(lost, err)
		return seen[sha]
	}
	v := &verification{t: t, o: w.mirror, now: now, firstSeen: firstSeen}
	p, refusal, err := readCommit(w.mirror, intro)
	if refusal == nil && err == nil {
		_, refusal = v.introducer(p)
	}
	if refusal == nil && err == nil {
		if missed, err = unreached(Until(ctx, w.mirror), intro, []ring.SHA{began}); err == nil && len(missed) > 0 {
			_, refusal, err = t.RangeWith(Until(ctx, w.heads), w.aids(ctx), intro, began, now, firstSeen)
		}
	}
	if err = errors.Join(err, lost, ctx.Err()); err != nil || refusal == nil {
		return "", err
	}
	return refusal.Says, nil
}
