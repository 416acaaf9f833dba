package runtime

import (
	"context"
	"errors"
	"sync"
)

// surveys lets those who ask at once what is on this host share an answer: a
// commit that brings a hundred apps would else list all there is a hundred times.
// An answer is never older than the question: whoever comes while the engine is
// being asked waits for the next one.
type surveys struct {
	mu    sync.Mutex
	next  *survey       // guarded by mu: not begun yet; nil for none
	begun chan struct{} // guarded by mu: closed when the last one has ended
}

// lists are those that somebody asks for, besides the containers.
type lists struct{ volumes, networks bool }

type survey struct {
	ask  lists // guarded by surveys.mu until it begins
	done chan struct{}
	all  beside // after done
	err  error  // after done
}

// ask returns what do found, called after ask was.
func (s *surveys) ask(ctx context.Context, ask lists, do func(context.Context, lists) (beside, error)) (beside, error) {
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
	if x.err = ctx.Err(); x.err == nil {
		x.all, x.err = do(ctx, ask)
	}
}
