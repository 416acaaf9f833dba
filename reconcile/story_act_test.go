package reconcile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// verbs are the acts of persons that a story can tell.
var verbs = map[string]Verb{
	"pause": Pause, "resume": Resume, "promote": Promote, "abort": Abort, "restart": Restart, "undo": Undo,
	"hold": HoldIt, "release": Release, "scale": Scale, "retry": Retry, "run": RunNow,
	"adopt": Adopt, "leave": Leave,
}

// act is "<verb> <app or service> [to <commit>] [<count>] [<duration>]". "web" is
// the service web/web but for an undo, which is of the app; "web/" is the app.
func (s *story) act(words []string) error {
	a := Act{Verb: verbs[words[0]], Actor: "alice", Reason: "a story", For: time.Hour}
	a.App, a.Service = fullID(words[1])
	if app, whole := strings.CutSuffix(words[1], "/"); whole || a.Verb == Undo {
		a.App, a.Service = app, ""
	}
	for words = words[2:]; len(words) > 0; words = words[1:] {
		if words[0] == "to" {
			a.To, words = shaOf(words[1]), words[1:]
			continue
		}
		if d, err := time.ParseDuration(words[0]); err == nil && d > 0 {
			a.For = d
			continue
		}
		n, err := strconv.Atoi(words[0])
		if err != nil {
			return fmt.Errorf("no such word: %s", words[0])
		}
		a.Replicas = n
	}
	if a.Verb == Undo {
		a.Plan = Before(&s.disk, a.App, a.To)
	}
	switch a.Verb {
	case Adopt:
		a.Take, a.Keep = s.takes(a.App)
	case Leave:
		a.To = s.disk.Apps[a.App].App.Commit
	}
	done, err := Carry(s.world(), a, s.clock())
	if err != nil {
		return err
	}
	s.acted = true
	s.mem.recent.tryAgain(done.Again)
	s.record(done.Facts, done.Events)
	s.mem.wake = s.now
	s.setMark()
	return nil
}

// cannot is "cannot <act> ["text"]": the act is refused, and the refusal says so.
func (s *story) cannot(words []string) error {
	text := ""
	if last := words[len(words)-1]; last[0] == '"' {
		text, words = last[1:], words[:len(words)-1]
	}
	err := s.act(words)
	var u *Unfit
	switch {
	case err == nil:
		return errors.New("it was done")
	case !errors.As(err, &u) && !errors.Is(err, ErrNotFound):
		return err
	case !strings.Contains(s.plain(err.Error()), text):
		return fmt.Errorf("it reads %q", s.plain(err.Error()))
	case u != nil && u.Hint == "":
		return errors.New("it says nothing of what to do")
	}
	return nil
}

// expectOverride is "override <kind> <target> ["text"]", or "override none".
func (s *story) expectOverride(w []string) error {
	all := s.last.Status.Overrides
	if w[0] == "none" {
		if len(all) > 0 {
			return fmt.Errorf("there is %+v", all)
		}
		return nil
	}
	for _, o := range all {
		if o.Kind == w[0] && shorten(o.Target) == w[1] {
			return s.text(o.Reason+" "+o.Commit.Short(), w[2:])
		}
	}
	return fmt.Errorf("there is %+v", all)
}

// shorten is a target as stories name it.
func shorten(target string) string {
	app, service, both := strings.Cut(target, "/")
	if !both {
		return app + "/"
	}
	return shortID(app, service)
}

// expectImage is "image v1 here" or "image v1 gone".
func (s *story) expectImage(name, state string) error {
	if here := s.have[name+"@sha256:"+name]; here != (state == "here") {
		return fmt.Errorf("here: %v", here)
	}
	return nil
}

// imageOff is what the model's engine does when an image goes: not while a
// container uses it.
func (e *engine) imageOff(a ring.Action) (ring.Done, error) {
	for _, b := range e.boxes {
		if b.Image == a.Image {
			return ring.Done{InUse: true}, nil
		}
	}
	delete(e.have, a.Image)
	e.told("image off", a.Image, nil)
	return ring.Done{}, nil
}

// deny is "deny <service>…": what the policy of the host has stopped from now on.
// secret has an app of the next plan wait for a value of a provider, or not any more.
func (s *story) secret(words []string) error {
	next := *s.src.Next
	next.Awaits = nil
	if words[1] == "awaited" {
		next.Await(words[0], "waits for vault:secret/"+words[0]+"/db: it ended with exit status 1; attempt 3")
	}
	s.src.Next, s.mem.wake = &next, s.now
	s.setMark()
	return nil
}

func (s *story) deny(words []string) error {
	denied := map[ring.ServiceID]string{}
	for _, word := range words {
		if word != "none" {
			app, service := fullID(word)
			denied[ring.ID(app, service)] = "cap_add NET_ADMIN"
		}
	}
	t := newDecider(s.world(), s.clock())
	t.stopDenied(denied)
	s.acted = true
	s.record(t.facts, t.events)
	s.mem.wake = s.now
	s.setMark()
	return nil
}
