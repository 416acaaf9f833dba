package gitsync

import (
	"context"
	"fmt"
	"strings"

	"github.com/gitring/gitring/ring"
)

// accept is a person's override (docs/design/trust.md#a-persons-override). It looks at the remote
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
	if err != nil && (!w.ready || w.mirror.tip() == "" || a.sha != w.mirror.tip()) {
		return nil, fmt.Errorf("cannot accept %s: %w", a.sha.Short(), err)
	}
	if err != nil {
		w.tip = w.mirror.tip()
	}
	if a.sha != w.tip {
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
