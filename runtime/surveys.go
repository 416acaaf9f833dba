package runtime

import (
	"context"
	"errors"
	"sync"
	"time"
)

// surveys lets those who ask at once what is on this host share an answer: a
// commit that brings a hundred apps would else list all there is a hundred times.
// An answer is never older than the question: whoever comes while the engine is
// being asked waits for the next one. A question that waited for its turn is as old as
// the step that asks it: what was answered since serves it, for a moment.
type surveys struct {
	mu    sync.Mutex
	next  *survey       // guarded by mu: not begun yet; nil for none
	begun chan struct{} // guarded by mu: closed when the last one has ended
	last  *survey       // guarded by mu: that ended without an error; nil for none
}

// lists are those that somebody asks for, besides the containers.
type lists struct{ volumes, networks bool }

type survey struct {
	ask  lists     // guarded by surveys.mu until it begins
	at   time.Time // when it began
	done chan struct{}
	all  beside // after done
	err  error  // after done
}

// ask returns what do found, called after since, which is when the question was asked; nil
// is now.
func (s *surveys) ask(ctx context.Context, since *time.Time, ask lists, do func(context.Context, lists) (beside, error)) (beside, error) {
	if all, ok := s.answered(since, ask); ok {
		return all, nil
	}
	for {
		x, lead := s.join(ask)
		if lead {
			s.run(ctx, x, do)
		}
		select {
		case <-x.done:
		case <-ctx.Done():
			return beside{}, ctx.Err()
		}
		// It ended with the one who led it, not with us.
		if !lead && (errors.Is(x.err, context.Canceled) || errors.Is(x.err, context.DeadlineExceeded)) && ctx.Err() == nil {
			continue
		}
		return x.all, x.err
	}
}

// answered is what was found since a moment, as far as all that is asked for is in it.
func (s *surveys) answered(since *time.Time, ask lists) (beside, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropOld()
	x := s.last
	if x == nil || since == nil || x.at.Before(*since) || ask.volumes && !x.ask.volumes || ask.networks && !x.ask.networks {
		return beside{}, false
	}
	return x.all, true
}

// drop lets go of an answer that serves nobody any more: it is as large as the host.
func (s *surveys) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropOld()
}

// dropOld is drop, with the lock held.
func (s *surveys) dropOld() {
	if s.last != nil && time.Since(s.last.at) > latelyServes {
		s.last = nil
	}
}

// join enters the next survey; the first to do so leads it.
func (s *surveys) join(ask lists) (_ *survey, lead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lead = s.next == nil; lead {
		s.next = &survey{done: make(chan struct{})}
	}
	s.next.ask.volumes = s.next.ask.volumes || ask.volumes
	s.next.ask.networks = s.next.ask.networks || ask.networks
	return s.next, lead
}

// run carries out a survey, after the one before it. Nobody joins it from then on.
func (s *surveys) run(ctx context.Context, x *survey, do func(context.Context, lists) (beside, error)) {
	defer close(x.done)
	s.mu.Lock()
	before := s.begun
	s.mu.Unlock()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	s.next, s.begun = nil, x.done
	ask := x.ask
	s.mu.Unlock()
	x.at = time.Now()
	if x.err = ctx.Err(); x.err == nil {
		x.all, x.err = do(ctx, ask)
	}
	if x.err == nil {
		s.mu.Lock()
		s.last = x
		s.mu.Unlock()
	}
}
