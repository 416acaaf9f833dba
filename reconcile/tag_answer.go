package reconcile

import (
	"errors"
	"slices"
	"time"

	"github.com/gitring/gitring/ring"
)

const (
	movesKept = 24 * time.Hour
	// flapsTold is how many moves of a tag within that time, of which some go back, make it
	// Contested; mostMoves bounds what is kept of them.
	flapsTold = 3
	mostMoves = 48
)

// tagAnswered is what follows from a question by the clock. The row is that of the question: no
// other one of the same tag is in flight beside it.
func tagAnswered(a ring.Action, done ring.Done, err error, now time.Time) ([]ring.Fact, []ring.Event) {
	row, _ := a.Record.(ring.TagRow)
	e := ring.Event{At: now, Source: a.Source, App: a.App, Service: a.Service, Commit: a.Commit}
	if err != nil {
		return tagUnanswered(row, e, err, now)
	}
	row.Asked, row.Tried, row.Fails, row.Later, row.Says = now, time.Time{}, 0, time.Time{}, done.Pin.Note
	if done.Pin.Note != "" { // the registry does not have it; what is pinned stays, and so does what was seen
		return []ring.Fact{row}, nil
	}
	was := row.Pin
	if was.Image == "" && a.Want != nil {
		was = a.Want.Pin
	}
	if was.Digest() == done.Pin.Digest() {
		if row.Pin.Image == "" {
			row.Pin, row.Seen, row.Judged = done.Pin, now, true // it runs, and so nothing goes back
		}
		return []ring.Fact{row}, nil
	}
	facts := []ring.Fact{}
	if row.Pin.Image != "" {
		facts = append(facts, ring.Forget{Table: "approval", Key: string(row.Approved())}) // it was of what the tag meant then
	}
	before := flaps(recentMoves(row.Moves, now))
	row.Moves = append(recentMoves(row.Moves, now), ring.MovedTag{At: now, From: was.Digest(), To: done.Pin.Digest()})
	row.Moves = row.Moves[max(0, len(row.Moves)-mostMoves):]
	row.Pin, row.Seen, row.Told, row.Judged, row.Back = done.Pin, now, "", false, false
	e.Kind = ring.TagMoved
	e.Reason = say("image %s moved %s -> %s, first seen %s UTC", a.Image, shortDigest(was), shortDigest(done.Pin), now.UTC().Format("2006-01-02 15:04"))
	events := []ring.Event{e}
	if before < flapsTold && flaps(row.Moves) >= flapsTold {
		e.Kind, e.Reason = ring.TagContested, flapsSays(&row, row.Moves)
		events = append(events, e)
	}
	return append(facts, row), events
}

// tagUnanswered is what follows where there is no answer: the pin stays, and it is told once.
func tagUnanswered(row ring.TagRow, e ring.Event, err error, now time.Time) ([]ring.Fact, []ring.Event) {
	says := err.Error()
	told := row.Says == says // only an answer takes it away
	row.Tried, row.Says, row.Later = now, says, time.Time{}
	row.Fails++
	var ee *ring.EngineError
	switch {
	case !errors.As(err, &ee):
	case ee.Refusal != nil: // the registry has it no more, or not for this machine
		row.Asked, row.Tried, row.Fails = now, time.Time{}, 0
	case ee.Wait > 0:
		row.Later = now.Add(ee.Wait)
	}
	if told {
		return []ring.Fact{row}, nil
	}
	e.Kind, e.Reason, e.Code = ring.StepFailed, say("%s: %s; image %s stays as it is", ring.DoResolve, says, row.Image), ring.WhyImagePending
	return []ring.Fact{row}, []ring.Event{e}
}

func recentMoves(all []ring.MovedTag, now time.Time) []ring.MovedTag {
	return slices.DeleteFunc(slices.Clone(all), func(m ring.MovedTag) bool { return now.Sub(m.At) >= movesKept })
}

// flaps is how many moves there are from the first to a digest that the tag had before, and on;
// 0 where none goes back.
func flaps(moves []ring.MovedTag) int {
	for i, m := range moves {
		for _, before := range moves[:i] {
			if before.From == m.To {
				return len(moves)
			}
		}
	}
	return 0
}

func flapsSays(row *ring.TagRow, moves []ring.MovedTag) string {
	last := moves[len(moves)-1]
	return say("tag %s moved %d times within 24h, and back again, last %s -> %s; name the image by its digest, or find out who moves it",
		row.Image, len(moves), shortDigest(ring.Pin{Image: last.From}), shortDigest(ring.Pin{Image: last.To}))
}

// flapCondition is the condition of a service whose tag goes back and forth; false where it
// does not.
func (t *Pass) flapCondition(v *service) (ring.Condition, bool) {
	if v.want.Updates == nil {
		return ring.Condition{}, false
	}
	row := t.Facts.Tags[ring.TagKey(v.want.Spec.Image, v.want.Spec.Platform)]
	moves := recentMoves(row.Moves, t.now)
	if flaps(moves) < flapsTold {
		return ring.Condition{}, false
	}
	return ring.Condition{Type: ring.ConditionContested, Reason: flapsSays(&row, moves), Since: moves[len(moves)-1].At.UTC()}, true
}
