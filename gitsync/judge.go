package gitsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitring/gitring/ring"
)

// judge verifies the tip and moves the anchor, or refuses. What looks like a
// damaged mirror is fetched anew and judged once more: only what the remote
// really holds is anybody's fault.
func (w *watch) judge(ctx context.Context, now time.Time) error {
	fetched := w.now().UTC()
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
	return w.advance(ctx, now, how, verified, ring.Event{Kind: ring.CommitAccepted, Reason: reason, Fetched: fetched, Verified: w.now().UTC()})
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

// damaging reports whether the mirror, not a commit, is at fault.
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
