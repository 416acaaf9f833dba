package reconcile

import (
	"context"
	"errors"
	"strings"

	"github.com/gitring/gitring/ring"
)

// ErrNothingToApprove says that no plan of that commit waits.
var ErrNothingToApprove = errors.New("no plan of that commit awaits approval")

// Approve is a person's yes to the plan of a commit, whole or abbreviated.
func (l *Loop) Approve(ctx context.Context, commit, actor, reason string) error {
	return l.sendRequest(ctx, request{look: true, after: true, act: func(l *Loop) ([]ring.Fact, []ring.Event, error) {
		for _, s := range l.sources {
			if s.Next == nil || len(commit) < 7 || !strings.HasPrefix(string(s.Next.Commit), commit) || !l.awaitsApproval(s.Name) {
				continue
			}
			now := l.steadyNow()
			return []ring.Fact{ring.Approval{Commit: s.Next.Commit, Actor: actor, Reason: reason, At: now}},
				[]ring.Event{{At: now, Kind: ring.PlanApproved, Source: s.Name, Commit: s.Next.Commit, Actor: actor, Reason: reason}}, nil
		}
		return nil, nil, ErrNothingToApprove
	}})
}

// Refresh is a person's wish that the tags of a service, or of all services of
// an app, be resolved anew.
func (l *Loop) Refresh(ctx context.Context, app, service, actor, reason string) error {
	return l.sendRequest(ctx, request{look: true, after: true, act: func(l *Loop) ([]ring.Fact, []ring.Event, error) {
		ids := l.servicesNamed(app, service)
		if len(ids) == 0 {
			return nil, nil, ErrNotFound
		}
		now := l.steadyNow()
		var facts []ring.Fact
		for _, id := range ids {
			facts = append(facts, ring.Refresh{ID: id, Actor: actor, Reason: reason, At: now})
			l.recent.askAgain(id)
		}
		return facts, []ring.Event{{At: now, Kind: ring.RefreshAsked, App: app, Service: service, Actor: actor, Reason: reason}}, nil
	}})
}

// servicesNamed are those of an app, in force or next, or the one of that name.
func (l *Loop) servicesNamed(app, service string) []ring.ServiceID {
	names := map[ring.ServiceID]bool{}
	add := func(a ring.App) {
		for _, s := range a.Services {
			if a.Name == app && (service == "" || s.Name == service) {
				names[ring.ID(app, s.Name)] = true
			}
		}
	}
	add(l.facts.Apps[app].App)
	for _, s := range l.sources {
		if s.Next == nil {
			continue
		}
		if a, ok := s.Next.App(app); ok {
			add(a)
		}
	}
	return sortedKeys(names)
}

// awaitsApproval reports whether the plan of a source, as it is now, waits for a yes.
func (l *Loop) awaitsApproval(source string) bool {
	t := newDecider(l.makeWorld(), l.steadyNow())
	t.indexSeen()
	src := t.sourceNamed(source)
	return src != nil && src.Next != nil && src.Next.Refusal == nil && t.guardReason(src, t.servicesPresent(source)) != ""
}

// Do carries out a person's act on an app or a service, and returns what the
// person is told when a look has ended that knew of it. Errors are ErrNotFound,
// *Unfit, or the store's.
func (l *Loop) Do(ctx context.Context, a Act) (done Acted, err error) {
	err = l.sendRequest(ctx, request{look: true, after: true, act: func(l *Loop) ([]ring.Fact, []ring.Event, error) {
		done, err = Carry(l.makeWorld(), a, l.steadyNow())
		if err != nil {
			return nil, nil, err
		}
		l.recent.tryAgain(done.Again)
		return done.Facts, done.Events, nil
	}})
	return done, err
}

// StopDenied has the policy stop these services, each with its reason, and no others: one
// that it stopped before comes back. Jobs and what left the plan are not stopped.
func (l *Loop) StopDenied(ctx context.Context, denied map[ring.ServiceID]string) error {
	return l.sendRequest(ctx, request{look: true, act: func(l *Loop) ([]ring.Fact, []ring.Event, error) {
		t := newDecider(l.makeWorld(), l.steadyNow())
		t.stopDenied(denied)
		return t.facts, t.events, nil
	}})
}
