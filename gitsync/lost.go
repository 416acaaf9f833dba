package gitsync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitring/gitring/ring"
)

// errUnheard says that nobody could be asked which commits our containers were
// made from. It is the engine's trouble, not the remote's.
var errUnheard = errors.New("cannot tell up to where trust stood")

// recall holds the anchor against the labels of our containers, once after each
// start: they survive what the state directory does not. Until it returned nil
// with recalled set, no commit is judged: a state that was lost must not look
// like a first use.
func (w *watch) recall(ctx context.Context, now time.Time) error {
	if w.recalled || w.tip == "" {
		return nil
	}
	if w.cfg.Labels != nil && w.labels == nil {
		labels, err := w.cfg.Labels(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", errUnheard, err)
		}
		w.labels = distinct(labels)
	}
	top, refusal, err := w.remembered(ctx)
	if err != nil {
		return err
	}
	if refusal != nil {
		w.refusal = refusal
		return nil
	}
	if top != "" {
		if err := w.rebuildAnchor(ctx, now, top); err != nil {
			return err
		}
	}
	w.recalled = true
	if w.refusal != nil && w.refusal.Code == ring.StateLost {
		w.refusal = nil
	}
	w.settled = w.settled || w.tip == w.anchor.SHA && w.refusal == nil
	return w.load(ctx, now)
}

// distinct is never nil.
func distinct(shas []ring.SHA) []ring.SHA {
	out, seen := []ring.SHA{}, map[ring.SHA]bool{}
	for _, sha := range shas {
		if !seen[sha] {
			seen[sha] = true
			out = append(out, sha)
		}
	}
	return out
}

// remembered is the commit of the labels that the anchor has to be moved to; ""
// when it stands further already.
func (w *watch) remembered(ctx context.Context) (ring.SHA, *ring.Refusal, error) {
	if w.anchor.SHA != "" {
		return w.ahead(ctx)
	}
	if len(w.labels) == 0 {
		return "", nil, nil
	}
	here, away := w.divide(w.labels)
	if len(away) > 0 {
		limited, cancel := context.WithTimeout(ctx, w.cfg.Limits.Update)
		defer cancel()
		if err := w.bringNamed(limited, away); err != nil {
			return "", nil, err
		}
		here, away = w.divide(w.labels)
	}
	if len(away) > 0 {
		return "", stateLost(w.tip, "neither the mirror nor the remote has "+listed(away)), nil
	}
	return w.top(here)
}

// ahead is the furthest label that descends from the anchor and that the store
// has never heard of: then the state directory is an older copy of itself. One
// that the store knows was behind the anchor once, or left by a person's word.
func (w *watch) ahead(ctx context.Context) (ring.SHA, *ring.Refusal, error) {
	here, _ := w.divide(w.labels)
	if len(here) == 0 || !w.mirror.has(plumbing.NewHash(string(w.anchor.SHA))) {
		return "", nil, nil // AnchorUnavailable is told by the verification
	}
	notBehind, err := unreached(Until(ctx, w.mirror), w.anchor.SHA, here)
	if err != nil {
		return "", nil, w.spoiling(err)
	}
	var after []ring.SHA
	for _, sha := range notBehind {
		known, err := w.anchors.Standing(ctx, w.cfg.Name, sha)
		if err != nil {
			return "", nil, err
		}
		if known != ring.NeverSeen {
			continue
		}
		missed, err := unreached(Until(ctx, w.mirror), sha, []ring.SHA{w.anchor.SHA})
		if err != nil {
			return "", nil, w.spoiling(err)
		}
		if len(missed) == 0 {
			after = append(after, sha)
		}
	}
	if len(after) == 0 {
		return "", nil, nil
	}
	return w.top(after)
}

// divide tells the commits that can be read here from the others. A label that
// is no id is nowhere.
func (w *watch) divide(shas []ring.SHA) (here, away []ring.SHA) {
	for _, sha := range shas {
		if idForm.MatchString(string(sha)) && w.mirror.has(plumbing.NewHash(string(sha))) {
			here = append(here, sha)
			continue
		}
		away = append(away, sha)
	}
	return here, away
}

// spoiling has a damaged mirror built anew before the next look. The error stays
// one: nothing may be concluded from what could not be read.
func (w *watch) spoiling(err error) error {
	if damaging(nil, err) {
		w.mirror.spoiled(err)
	}
	return err
}

func (w *watch) top(shas []ring.SHA) (ring.SHA, *ring.Refusal, error) {
	top, err := furthest(w.mirror, shas)
	if err != nil {
		return "", nil, w.spoiling(err)
	}
	if top == "" {
		return "", stateLost(w.tip, "no one of "+listed(shas)+" descends from all the others"), nil
	}
	return top, nil, nil
}

// furthest is the one commit that descends from all the others; "" when there is
// none.
func furthest(o Objects, shas []ring.SHA) (ring.SHA, error) {
	left := shas
	for len(left) > 0 {
		top := left[0]
		missed, err := unreached(o, top, shas)
		if err != nil {
			return "", err
		}
		if len(missed) == 0 {
			return top, nil
		}
		// What descends from top too is among those that top does not reach.
		var next []ring.SHA
		for _, sha := range missed {
			for _, l := range left[1:] {
				if l == sha {
					next = append(next, sha)
				}
			}
		}
		left = next
	}
	return "", nil
}

// unreached are those of the commits that are neither from nor behind it.
func unreached(o Objects, from ring.SHA, shas []ring.SHA) ([]ring.SHA, error) {
	w := newWalk(o)
	miss := func() (out []ring.SHA) {
		for _, sha := range shas {
			if w.seen[sha] == nil {
				out = append(out, sha)
			}
		}
		return out
	}
	refusal, err := w.paint(from, fromAnchor) // trusted once: its grammar is not asked for
	for n := 0; refusal == nil && err == nil && len(w.queue) > 0; n++ {
		if n%64 == 0 && len(miss()) == 0 {
			break
		}
		refusal, err = w.step()
	}
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		return nil, fmt.Errorf("cannot read the history of %s: %s: %w", from.Short(), refusal.Says, errDamaged)
	}
	return miss(), nil
}

// rebuildAnchor writes down what the labels say, so that it holds when the
// containers are gone.
func (w *watch) rebuildAnchor(ctx context.Context, now time.Time, top ring.SHA) error {
	a := w.anchor
	a.Source, a.SHA, a.How, a.At, a.Degraded = w.cfg.Name, top, ring.ByLabels, now, false
	if a.Began.SHA == "" {
		a.Began = ring.Beginning{SHA: top, How: ring.ByLabels, At: now}
	}
	reason := "found again on the " + ring.ByLabels
	if was := w.anchor.SHA; was != "" {
		reason += "; the state directory knew only of " + was.Short()
	}
	e := ring.Event{At: now, Kind: ring.TrustRecovered, Source: w.cfg.Name, Commit: top, Reason: reason}
	if err := w.anchors.Trust(ctx, a, nil, []ring.Event{e}); err != nil {
		return fmt.Errorf("cannot record that %s is trusted: %w", top.Short(), err)
	}
	w.anchor, w.commit = a, nil
	w.settled = false
	return nil
}

// sinceLost says in its own words that the branch is older than what the labels
// of containers gave back.
func (w *watch) sinceLost(refusal *ring.Refusal) *ring.Refusal {
	if refusal == nil || refusal.Code != ring.Rollback || w.anchor.How != ring.ByLabels {
		return refusal
	}
	if missed, err := unreached(w.mirror, w.anchor.SHA, []ring.SHA{w.tip}); err != nil || len(missed) > 0 {
		return refusal // below min_commit, which has its own sentence
	}
	return stateLostRollback(w.anchor.SHA, w.tip)
}

// listed names a few commits.
func listed(shas []ring.SHA) string {
	const most = 5
	var names []string
	for _, sha := range shas[:min(most, len(shas))] {
		names = append(names, clip(sha.Short()))
	}
	if more := len(shas) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
