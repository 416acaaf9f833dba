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
	nameAgain  = 10 * time.Minute // until a name that somebody else has is asked for again
	lastRoute  = 10 * time.Second // of a table, at most
	stillInUse = 5 * time.Second  // until a network or file of a cluster that was in use is tried again
	imageInUse = 6 * time.Hour    // until it is looked at again whether an image that nobody needs may go
)

// askAgain forgets that the registry gave no image for a service, so that
// somebody who pushed one does not wait. Who signed one does not wait either.
func (r Recent) askAgain(id ring.ServiceID) {
	for key, try := range r.Tries {
		if try.Kind == ring.DoVerify || try.Kind == ring.DoResolve && strings.HasSuffix(key, " "+string(id)) {
			delete(r.Tries, key)
		}
	}
}

// tryAgain forgets failed steps by their key, so that they are tried at once.
func (r Recent) tryAgain(keys []string) {
	for _, key := range keys {
		delete(r.Tries, key)
	}
}

// admitAgain forgets that the host had something against an app, so that
// somebody who took it away does not wait.
func (r Recent) admitAgain() {
	for key, try := range r.Tries {
		if try.Kind == ring.DoAdmit {
			delete(r.Tries, key)
		}
	}
}

// sameTry reports whether a is what was tried. What is asked of a registry is the target alone,
// whichever plan asks; a refusal also depends on how it was asked for.
func sameTry(try ring.Try, a ring.Action) bool {
	switch {
	case try.Kind != a.Kind:
		return false
	case a.Kind == ring.DoPull:
		return true
	case a.Kind == ring.DoVerify:
		return try.Asked == askedHow(a)
	case a.Kind == ring.DoResolve:
		return try.Refusal == nil || try.Asked == askedHow(a)
	}
	return try.Version == a.Version && try.Name == a.Name
}

// askedHow is what the answer to a question for an image depends on besides its name.
func askedHow(a ring.Action) string {
	if a.Kind == ring.DoVerify {
		return a.Asks.Rule
	}
	return strings.TrimSpace(a.PullPolicy + " " + a.Platform)
}

// tryKey is where a failed step waits: by its container where it is about one,
// so that two slots that fail in turns do not forget each other's wait. The
// newest failure of a target stands under the target, for those who tell of it. Services
// that want one image and ask in different ways wait each for their own answer.
func tryKey(a ring.Action) string {
	if a.Kind == ring.DoPull || a.Kind == ring.DoVerify {
		return a.Target() + " " + askedHow(a)
	}
	if a.Name == "" {
		return a.Target()
	}
	return a.Target() + " " + a.Name
}

// failTry keeps one more failed try of a step on an instance, by its ID where it is
// known; it says whether the error is the one before.
func failTry(tries map[string]ring.Try, a ring.Action, instance string, err error, now time.Time) (same bool) {
	old := tries[tryKey(a)]
	try := ring.Try{Kind: a.Kind, Version: a.Version, Name: a.Name, Asked: askedHow(a), N: 1, At: now, Err: err.Error()}
	var ee *ring.EngineError
	if errors.As(err, &ee) {
		try.Cause, try.Permanent, try.Refusal = ee.Cause, ee.Permanent, ee.Refusal
		if ee.Broken {
			try.Broken, try.Surely, try.Began = instance, old.Broken == instance, a.Began
		}
	}
	if ee != nil {
		try.Holder = ee.Holder
	}
	if sameTry(old, a) {
		try.N = old.N + 1
		same = old.Err == try.Err
		if ee == nil { // it says nothing of the name
			try.Holder = old.Holder
		}
	}
	wait := min(lastRetry, firstRetry<<min(try.N-1, 16))
	if a.Kind == ring.DoVerify {
		wait = min(lastVerdict, firstVerdict<<min(try.N-1, 16))
	}
	if (try.Permanent || try.Refusal != nil && a.Kind != ring.DoNetwork) && a.Kind != ring.DoAdmit { // what is in the way may go at any time
		wait = permanentWait
	}
	if a.Kind == ring.DoRoute {
		wait = min(wait, lastRoute)
	}
	if ee != nil && ee.Wait > 0 {
		wait = ee.Wait
	}
	try.Next = now.Add(wait)
	tries[a.Target()], tries[tryKey(a)] = try, try
	return same
}

// withHint is a failed try as its service's status tells it: with what to do.
func withHint(try ring.Try) string {
	if try.Refusal == nil || try.Refusal.Hint == "" {
		return try.Err
	}
	return say("%s; %s", try.Err, try.Refusal.Hint)
}
