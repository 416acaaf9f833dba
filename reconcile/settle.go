package reconcile

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Settle is what follows from the end of a step: the tries as they stand, what
// to remember, and what to tell. It changes r in place. What an instance was
// given is remembered even where the step failed after that; known is what is
// on disk already.
func Settle(r Recent, known map[string]ring.Kept, a ring.Action, done ring.Done, err error, now time.Time) ([]ring.Fact, []ring.Event) {
	if a.Kind == ring.DoLog { // what it is the log of was told
		return withLog(a, done, err), nil
	}
	if a.Kind == ring.DoName { // nobody waits for it
		rememberName(r.Tries, a, err, now)
		return nil, nil
	}
	if a.Tag != "" {
		return tagAnswered(a, done, err, now)
	}
	if a.Kind == ring.DoWhose { // told as drift
		toldWhose(r.Tries, a, err, now)
		return nil, nil
	}
	if a.Kind == ring.DoWords && err == nil { // told as the words themselves
		forgetTries(r.Tries, a)
		return nil, nil
	}
	e := ring.Event{
		At: now, Kind: ring.InstanceStep, Source: a.Source, App: a.App, Service: a.Service, Slot: a.Slot, Version: a.Version,
		Commit: a.Commit, Reason: say("%s: %s", a.Kind, a.Reason),
	}
	if a.Kind == ring.DoResolve || a.Kind == ring.DoAdmit {
		e.Version = "" // it carries what was written
	}
	facts, told := append(keptOf(known, a, done, now), filesRead(a, done, err, now)...), stepEvents(e, done)
	if a.Kind == ring.DoVerify {
		if f := verdictFact(a, done, err, now); f != nil {
			facts = append(facts, f)
		}
	}
	if err != nil {
		e.Kind, e.Reason, e.Code = ring.StepFailed, say("%s: %s", a.Kind, err), stepCode(a)
		if a.Want != nil && a.Kind != ring.DoResolve && imageGone(err) {
			delete(r.Images, a.Want.Pin.Image)
		}
		if failTry(r.Tries, a, cmp.Or(a.Instance, done.Instance), err, now) {
			return facts, told // the same error as before: told once
		}
		return facts, append(told, e)
	}
	forgetTries(r.Tries, a)
	switch a.Kind {
	case ring.DoReload:
		e.Kind = ring.Reloaded
	case ring.DoRoute:
		e.Kind, e.Slot, e.Reason = cmp.Or(a.Told, ring.RouteChanged), 0, a.Reason
	case ring.DoResolve:
		facts = append(facts, ring.PinRow{ID: ring.ID(a.App, a.Service), Written: string(a.Version), Pin: done.Pin, At: now})
		if note := pinNote(a.Service, a.Image, done.Pin); note != "" {
			e.Reason += "; " + note
		}
	case ring.DoVerify:
		if done.Verdict != nil {
			e.Reason += "; " + done.Verdict.SignedBy()
		}
	case ring.DoPull:
		done.Image.Known = true // it is here, and has been asked
		r.Images[a.Image] = done.Image
	case ring.DoAdmit:
		r.Admitted[a.App] = string(a.Version)
		return facts, told // asked at each change, and nothing happened
	case ring.DoImageOff, ring.DoFileOff, ring.DoNetworkOff:
		if done.InUse { // it stays, and nobody needs to hear of it
			wait := stillInUse
			if a.Kind == ring.DoImageOff {
				wait = imageInUse
			}
			r.Tries[tryKey(a)] = ring.Try{Kind: a.Kind, Name: a.Name, N: 1, At: now, Next: now.Add(wait)}
			return nil, nil
		}
	case ring.DoRemove, ring.DoRestart, ring.DoStart:
		facts = append(facts, ring.Forget{Table: "intent", Key: a.Instance})
	}
	return append(facts, a.Then...), append([]ring.Event{e}, told...)
}

// stepCode is the code of a step that failed.
func stepCode(a ring.Action) ring.ReasonCode {
	switch a.Kind {
	case ring.DoResolve, ring.DoVerify, ring.DoPull:
		return ring.WhyImagePending
	case ring.DoAdmit:
		return ring.WhyHostCheckPending
	case ring.DoReload:
		return ring.WhyReloadFailed
	case ring.DoRoute:
		return ring.WhyFrontNotReady
	}
	return ring.WhyHostNotReady
}

// keptOf are the volumes and folders that an instance was given, the first time.
func keptOf(known map[string]ring.Kept, a ring.Action, done ring.Done, now time.Time) []ring.Fact {
	var out []ring.Fact
	for _, k := range done.Kept {
		if _, ok := known[k.Name]; ok {
			continue
		}
		k.App, k.At = a.App, now
		out = append(out, k)
	}
	return out
}

// stepEvents are the sentences of a step for the journal.
func stepEvents(e ring.Event, done ring.Done) []ring.Event {
	var out []ring.Event
	for _, says := range done.Told {
		e.Reason = says
		out = append(out, e)
	}
	e.Kind = ring.DriftKept
	for _, says := range done.Drift {
		e.Reason = says
		out = append(out, e)
	}
	return out
}

// forgetTries forgets what a success makes untrue, and what is about versions
// that nobody tries any more. An instance that does not start for what this host
// lacks does so until it is gone: its forerunner, which serves meanwhile, is not
// to be stopped for it again.
func forgetTries(tries map[string]ring.Try, a ring.Action) {
	if len(tries) == 0 {
		return
	}
	target := a.Target()
	delete(tries, target)
	if !outlivesStep(tries[tryKey(a)], a) {
		delete(tries, tryKey(a))
	}
	for key, try := range tries {
		if (a.Kind == ring.DoPull || a.Kind == ring.DoVerify) && strings.HasPrefix(key, target+" ") {
			delete(tries, key)
		}
		if strings.HasPrefix(key, target) && strings.HasPrefix(key[len(target):], " ") && !try.Version.Of(a.Version) && !(try.Kind == ring.DoStart && try.Refusal != nil && !try.Permanent) {
			delete(tries, key)
		}
	}
}

func imageGone(err error) bool {
	var ee *ring.EngineError
	return errors.As(err, &ee) && ee.Cause == ring.CauseImagePull
}
