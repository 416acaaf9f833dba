package reconcile

import (
	"errors"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Waits between tries of a step that failed, by target.
const (
	firstRetry = time.Second // doubles
	lastRetry  = 5 * time.Minute
)

// Settle is what follows from the end of a step: the tries as they stand, what
// to remember, and what to tell. It changes tries and images in place; they
// live in the loop's memory only.
func Settle(tries map[string]ring.Try, images map[string]bool, a ring.Action, done ring.Done, err error, now time.Time) ([]ring.Fact, []ring.Event) {
	e := ring.Event{
		At: now, Kind: ring.InstanceStep, Source: a.Source, App: a.App, Service: a.Service, Slot: a.Slot, Version: a.Version,
		Commit: a.Commit, Reason: say("%s: %s", a.Kind, a.Reason),
	}
	if a.Kind == ring.DoResolve {
		e.Version = "" // it carries the spec as written
	}
	if err != nil {
		e.Kind, e.Reason = ring.StepFailed, say("%s: %s", a.Kind, err)
		if a.Want != nil && imageGone(err) {
			delete(images, a.Want.Pin.Image)
		}
		if fail(tries, a, err, now) {
			return nil, nil // the same as before: told once
		}
		return nil, []ring.Event{e}
	}
	forgetTries(tries, a)
	switch a.Kind {
	case ring.DoResolve:
		row := ring.PinRow{ID: ring.ID(a.App, a.Service), Written: string(a.Version), Pin: done.Pin, At: now}
		return []ring.Fact{row}, []ring.Event{e}
	case ring.DoPull:
		images[a.Image] = true
	case ring.DoRemove, ring.DoRestart, ring.DoStart:
		return []ring.Fact{ring.Forget{Table: "intent", Key: a.Instance}}, []ring.Event{e}
	}
	return nil, []ring.Event{e}
}

// again says that a is what was tried. What is asked of a registry is the
// target alone, whichever service of whichever plan asks.
func again(try ring.Try, a ring.Action) bool {
	if try.Kind != a.Kind || a.Kind == ring.DoPull || a.Kind == ring.DoResolve {
		return try.Kind == a.Kind
	}
	return try.Version == a.Version && try.Name == a.Name
}

// tryKey is where a failed step waits: by its container where it is about one,
// so that two slots that fail in turns do not forget each other's wait. The
// newest failure of a target stands under the target, for those who tell of it.
func tryKey(a ring.Action) string {
	if a.Name == "" {
		return a.Target()
	}
	return a.Target() + " " + a.Name
}

// forgetTries forgets what a success makes untrue, and what is about versions
// that nobody tries any more.
func forgetTries(tries map[string]ring.Try, a ring.Action) {
	delete(tries, a.Target())
	delete(tries, tryKey(a))
	for key, try := range tries {
		if strings.HasPrefix(key, a.Target()+" ") && try.Version != a.Version {
			delete(tries, key)
		}
	}
}

func imageGone(err error) bool {
	var ee *ring.EngineError
	return errors.As(err, &ee) && ee.Cause == ring.CauseImagePull
}

// fail keeps one more failed try; it says whether the error is the one before.
func fail(tries map[string]ring.Try, a ring.Action, err error, now time.Time) (same bool) {
	old := tries[tryKey(a)]
	try := ring.Try{Kind: a.Kind, Version: a.Version, Name: a.Name, N: 1, At: now, Err: err.Error()}
	if again(old, a) {
		try.N = old.N + 1
		same = old.Err == try.Err
	}
	wait := min(lastRetry, firstRetry<<min(try.N-1, 16))
	var ee *ring.EngineError
	if errors.As(err, &ee) {
		try.Cause, try.Permanent, try.Refusal = ee.Cause, ee.Permanent, ee.Refusal
	}
	if try.Permanent || try.Refusal != nil {
		wait = permanentWait
	}
	try.Next = now.Add(wait)
	tries[a.Target()], tries[tryKey(a)] = try, try
	return same
}
