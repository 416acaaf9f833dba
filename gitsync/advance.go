package gitsync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// advance moves the anchor to the tip. Nothing is told of it before it is on
// disk.
func (w *watch) advance(ctx context.Context, now time.Time, how string, verified []ring.Verified, e ring.Event) error {
	of := ring.Verified{SHA: w.tip}
	for i, v := range verified {
		if v.SHA == w.tip {
			verified[i].Note = withLandings(withVouches(v.Note, verified), w.tip, verified)
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
	events := append(w.landings(now, verified), e)
	if err := w.anchors.Trust(ctx, a, verified, events); err != nil {
		return fmt.Errorf("cannot record that %s is trusted: %w", w.tip.Short(), err)
	}
	w.anchor, w.commit, w.refusal, w.settled, w.degraded = a, c, nil, true, ""
	return nil
}

// maxLandings is how many landings of one push have a line of their own in the journal.
const maxLandings = 200

// landings are the lines of the journal that name the head and the signers of what
// was landed before the tip, which has a line of its own.
func (w *watch) landings(now time.Time, verified []ring.Verified) (events []ring.Event) {
	more := 0
	for _, v := range verified {
		if !v.Landed || v.SHA == w.tip {
			continue
		}
		if len(events) == maxLandings {
			more++
			continue
		}
		events = append(events, ring.Event{
			At: now, Kind: ring.CommitLanded, Source: w.cfg.Name, Commit: v.SHA, Actor: v.Signer, Reason: v.Note,
		})
	}
	if more > 0 {
		events = append(events, ring.Event{
			At: now, Kind: ring.CommitLanded, Source: w.cfg.Name, Commit: w.tip, Reason: fmt.Sprintf("and %d landings more", more),
		})
	}
	return events
}

// withLandings tells of a tip which heads were landed with it.
func withLandings(note string, tip ring.SHA, verified []ring.Verified) string {
	told := 0
	for _, v := range slices.Backward(verified) {
		if !v.Landed || v.SHA == tip {
			continue
		}
		if told++; told <= maxTold {
			note += "; " + v.SHA.Short() + " before it: " + v.Note
		}
	}
	if told > maxTold {
		note += fmt.Sprintf("; and %d landings more", told-maxTold)
	}
	return strings.TrimPrefix(note, "; ")
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
