package reconcile

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// ErrNothingToApprove says that no plan of that commit waits.
var ErrNothingToApprove = errors.New("no plan of that commit awaits approval")

// Approve is a person's yes to the plan of a commit, whole or abbreviated, or to the digest that
// a tag moved to.
func (l *Loop) Approve(ctx context.Context, commit, actor, reason string) error {
	return l.sendRequest(ctx, request{look: true, after: true, act: func(l *Loop) ([]ring.Fact, []ring.Event, error) {
		if strings.HasPrefix(commit, "sha256:") {
			return approvalOfMove(l.makeWorld(), commit, actor, reason, l.steadyNow())
		}
		for _, s := range l.sources {
			if s.Next == nil || len(commit) < 7 || !strings.HasPrefix(string(s.Next.Commit), commit) {
				continue
			}
			now := l.steadyNow()
			if yes := approvalOf(l.makeWorld(), s.Name, actor, reason, now); yes != nil {
				return []ring.Fact{yes}, []ring.Event{{At: now, Kind: ring.PlanApproved, Source: s.Name, Commit: s.Next.Commit, Actor: actor, Reason: reason}}, nil
			}
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

// approvalOf is what a person's yes to the plan of a source, as it is now, settles: the guard,
// and then the waves before this host. One yes is never for both, as nobody saw the other.
// Nil when the plan waits for none.
func approvalOf(w World, source, actor, reason string, now time.Time) ring.Fact {
	t := newDecider(w, now)
	t.indexSeen()
	src := t.sourceNamed(source)
	if src == nil || src.Next == nil || src.Next.Refusal != nil {
		return nil
	}
	present := t.servicesPresent(source)
	if t.guardReason(src, present) != "" {
		return ring.Approval{Commit: src.Next.Commit, Actor: actor, Reason: reason, At: now}
	}
	return t.passWaves(src, present)
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
