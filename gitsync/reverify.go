package gitsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gitring/gitring/ring"
)

// mostReverified bounds what a reverification tells. Each refusal costs another
// pass over the history.
const mostReverified = 100

// Reverify holds all that was trusted since trust began against the present trust
// set and tells what would not pass now. It changes nothing: a trusted commit
// stays trusted. It needs Run, as Accept does. To is "" when nothing is trusted.
func (f *Follower) Reverify(ctx context.Context) (ring.Reverified, error) {
	type result struct {
		found ring.Reverified
		err   error
	}
	answers := make(chan result, 1)
	select {
	case f.works <- func(running context.Context, w *watch) {
		running, cancel := context.WithCancel(running)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)() // nobody waits for it any more
		found, err := w.reverify(running)
		answers <- result{found, err}
	}:
	case <-ctx.Done():
		return ring.Reverified{}, ctx.Err()
	}
	select {
	case r := <-answers:
		return r.found, r.err
	case <-ctx.Done():
		return ring.Reverified{}, ctx.Err()
	}
}

func (w *watch) reverify(ctx context.Context) (ring.Reverified, error) {
	defer w.mirror.rest()
	defer w.heads.rest()
	out := ring.Reverified{Source: w.cfg.Name, Refusals: []*ring.Refusal{}}
	if err := w.read(ctx); err != nil {
		return out, err
	}
	out.From, out.To = w.anchor.Began.SHA, w.anchor.SHA
	if out.To == "" {
		return out, nil
	}
	if out.From == "" { // trusted by a release that did not write it down
		out.From = out.To
	}
	if _, away := w.divide([]ring.SHA{out.From, out.To}); len(away) > 0 {
		return out, fmt.Errorf("cannot verify the history again: the mirror does not have %s", listed(away))
	}
	now := w.now().UTC()
	var lost error
	firstSeen := func(sha ring.SHA) time.Time {
		v, _, err := w.anchors.Verified(ctx, w.cfg.Name, sha)
		lost = errors.Join(lost, err)
		return v.FirstSeen
	}
	w.heads.begin(w.tip)
	w.heads.all = true
	defer func() { w.heads.all = false; w.heads.empty() }()
	n, refusals, untold, err := w.trust.Load().Again(ctx, Until(ctx, w.heads), w.aids(ctx), out.From, out.To, now, firstSeen)
	if err = errors.Join(err, lost, ctx.Err()); err != nil {
		return out, fmt.Errorf("cannot verify the history again: %w", err)
	}
	out.Commits, out.Refusals, out.Untold = n, append(out.Refusals, refusals...), untold
	return out, nil
}

// Again is RangeWith that does not end at the first refusal: each refused commit
// is taken as answered for and the rest is judged. It tells how many commits
// there are, and the refusals in the order in which they are met. untold are of
// landings that cannot be judged any more, because their head is gone or git is.
func (t *Trust) Again(ctx context.Context, o Objects, aids Aids, anchor, tip ring.SHA, now time.Time, firstSeen func(ring.SHA) time.Time) (commits int, refused, untold []*ring.Refusal, _ error) {
	if anchor == tip {
		return 0, nil, nil, nil
	}
	ids, refusal, err := between(o, anchor, tip, t.cfg.MaxRange)
	if err != nil || refusal != nil {
		return 0, only(refusal), nil, err
	}
	if t.cfg.Mode == ForgeMerge {
		refused, untold, err = t.audited(o, aids, anchor, tip, now, firstSeen)
		return len(ids), refused, untold, err
	}
	v := &verification{t: t, o: o, now: now, firstSeen: firstSeen, aids: aids, assumed: map[ring.SHA]voucher{}}
	for len(refused) < mostReverified {
		if err := ctx.Err(); err != nil {
			return 0, nil, nil, err
		}
		_, refusal, err := v.since(anchor, "the commit where trust began", tip)
		if err != nil {
			return 0, nil, nil, err
		}
		if refusal == nil {
			break
		}
		_, met := v.assumed[refusal.Commit]
		if !met {
			refused = append(refused, refusal)
		}
		if met || incurable(refusal) || t.cfg.Mode == Tip {
			break // no answer for it lets the rest be judged
		}
		v.assumed[refusal.Commit] = voucher{sha: refusal.Commit}
	}
	return len(ids), refused, untold, nil
}

// audited judges all landings since trust began as one range. So nothing is believed
// because an earlier look accepted it, and each commit that one accepted is named when
// it would not pass now.
func (t *Trust) audited(o Objects, aids Aids, anchor, tip ring.SHA, now time.Time, firstSeen func(ring.SHA) time.Time) (refused, untold []*ring.Refusal, _ error) {
	a := &audit{tip: tip, standing: aids.Standing, met: map[ring.Refusal]bool{}}
	aids.Standing, aids.Carriers = nil, nil
	v := &verification{t: t, o: o, now: now, firstSeen: firstSeen, aids: aids, audit: a}
	_, refusal, err := v.since(anchor, "the commit where trust began", tip)
	if err != nil {
		return nil, nil, err
	}
	if refusal != nil {
		a.tell(refusal)
	}
	return a.refused, a.untold, nil
}

func only(r *ring.Refusal) []*ring.Refusal {
	if r == nil {
		return nil
	}
	return []*ring.Refusal{r}
}
