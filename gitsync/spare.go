package gitsync

import (
	"context"
	"log/slog"
	"sync"
)

// Spare is a process that fetches which was started and told nothing yet: not
// whose remote, no folder, no credential. The next source that needs one takes it
// and has not to wait until a program of this size has started, which is longer
// than all of a look. There is one for all sources, because each costs memory.
type Spare struct {
	program string // "" is this binary
	log     *slog.Logger
	wanted  chan struct{} // of capacity 1

	mu   sync.Mutex
	proc *process // guarded by mu; nil while there is none
}

// NewSpare starts nothing; until Run does, every source starts its own.
func NewSpare(log *slog.Logger) *Spare { return &Spare{log: log, wanted: make(chan struct{}, 1)} }

// Run has a process ready, from after the first use of one, until ctx ends.
func (s *Spare) Run(ctx context.Context) error {
	defer s.drop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wanted:
		}
		if err := s.ready(); err != nil && err.Error() != told {
			told = err.Error()
			s.log.Warn("cannot have a process that fetches ready; looks start their own", "err", err)
		}
	}
}

// ready starts one unless there is one.
func (s *Spare) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return nil
	}
	p, err := startProcess(s.program)
	if err == nil {
		s.proc = p
	}
	return err
}

// want asks for one; it never blocks.
func (s *Spare) want() {
	if s == nil {
		return
	}
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// take is the one that is ready, from now on the caller's; nil when there is none.
func (s *Spare) take() *process {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc
	s.proc = nil
	return p
}

func (s *Spare) drop() {
	if p := s.take(); p != nil {
		p.end()
	}
}

// begun is a process that knows what it may touch: the spare one, or where there
// is none, or it was killed while it waited, a new one.
func (c *child) begun(ctx context.Context, files map[string][]byte) (*process, told, error) {
	if p := c.spare.take(); p != nil {
		t, err := c.tell(ctx, p, files)
		if p.dead() == nil || ctx.Err() != nil {
			return p, t, err
		}
	}
	p, err := startProcess(c.program)
	if err != nil {
		return nil, told{}, err
	}
	t, err := c.tell(ctx, p, files)
	return p, t, err
}

func (c *child) tell(ctx context.Context, p *process, files map[string][]byte) (told, error) {
	p.memory, p.file = c.begin.Memory, c.begin.File
	p.hide(c.user(), c.auth, files, c.begin.Proxies)
	return p.ask(ctx, question{Begin: &c.begin})
}
