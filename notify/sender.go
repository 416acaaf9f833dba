package notify

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitring/gitring/ring"
)

// The pace of posting (docs/design/forges.md#pace).
const (
	firstWait = 2 * time.Second
	longWait  = 10 * time.Minute
	giveUp    = 24 * time.Hour
	// idle is between two looks at the outbox when nobody pokes.
	idle = 10 * time.Second
	// batch is how many rows one look takes.
	batch = 200
	// maxSpread is how long progress waits at most for its turn.
	maxSpread = 2 * time.Second
	// maxRemotes is of how many commits a line knows what the forge calls them.
	maxRemotes = 64
)

// Sender says what the outbox holds. Each source has a goroutine of its own
// while it has something to say, so that a forge that hangs delays no other.
type Sender struct {
	outbox Outbox
	forges map[string]Forge
	log    *slog.Logger
	poked  chan struct{}
	again  atomic.Int64 // how often a person asked to try at once

	mu      sync.Mutex // guards what follows
	trouble map[about]string
}

// about is what a post was to be told to: a token that may write statuses need
// not be one that may write deployments, and what works says nothing of the other.
type about struct {
	source      string
	deployments bool
}

// New makes a Sender for the forges by source. A source without one has
// nothing to say: its rows are marked as posted. It starts nothing.
func New(outbox Outbox, forges map[string]Forge, log *slog.Logger) *Sender {
	return &Sender{
		outbox: outbox, forges: forges, log: log,
		poked: make(chan struct{}, 1), trouble: map[about]string{},
	}
}

// Again is Poke by a person: a forge that is left alone for a while is asked at once.
func (s *Sender) Again() {
	s.again.Add(1)
	s.Poke()
}

// Poke says that the outbox has something new. It never blocks.
func (s *Sender) Poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}

// Trouble is what went wrong at the last attempt, by source; a source whose
// last post was taken is not in it.
func (s *Sender) Trouble() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for a, says := range s.trouble {
		if _, told := all[a.source]; !told || !a.deployments { // of two, that with statuses
			all[a.source] = says
		}
	}
	return all
}

// Recall takes over what an earlier run could not say for good, by source.
// It is called before Run.
func (s *Sender) Recall(statuses, deployments map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, of := range []map[string]string{statuses, deployments} {
		for source, says := range of {
			if f, speaks := s.forges[source]; speaks && (i == 0 || f.Deployments) {
				s.trouble[about{source, i == 1}] = says
			}
		}
	}
}

// Run sends until ctx ends. It returns nil when all that it started has ended.
func (s *Sender) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	d := &desk{Sender: s, lines: map[string]*line{}, free: make(chan struct{}, 1)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	outboxFails := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-s.poked:
		case <-d.free:
		}
		next, err := d.look(ctx, time.Now(), &wg)
		if err != nil && !outboxFails && ctx.Err() == nil {
			s.log.Warn("outbox not read, will be tried again", "err", err)
		}
		outboxFails = err != nil
		timer.Reset(next)
	}
}

// desk hands out rows to the lines. It belongs to Run's goroutine; a line that
// is busy belongs to its own.
type desk struct {
	*Sender
	lines map[string]*line
	free  chan struct{} // a line has ended its batch
}

// look hands what is due to the lines that are free, and says when to look again.
func (d *desk) look(ctx context.Context, now time.Time, wg *sync.WaitGroup) (time.Duration, error) {
	rows, err := d.outbox.Due(ctx, now, batch)
	if err != nil {
		return idle, err
	}
	by := map[string][]ring.OutboxRow{}
	for _, r := range rows {
		if _, speaks := d.forges[r.Post.Source]; !speaks {
			if err := d.outbox.Posted(ctx, r.Key, r.Seq, now); err != nil {
				return idle, err
			}
			continue
		}
		by[r.Post.Source] = append(by[r.Post.Source], r)
	}
	for source, rows := range by {
		l := d.line(source)
		if !l.take(now) {
			continue // it pokes when it is free
		}
		wg.Go(func() {
			l.release(l.say(ctx, rows))
			select {
			case d.free <- struct{}{}:
			default:
			}
		})
	}
	next := idle
	for _, l := range d.lines {
		if w := l.wake(now); w > 0 {
			next = min(next, w)
		}
	}
	return next, nil
}

func (d *desk) line(source string) *line {
	l, ok := d.lines[source]
	if !ok {
		l = &line{
			Sender: d.Sender, source: source, forge: d.forges[source],
			said: map[string]int64{}, remotes: map[ring.SHA]string{},
		}
		d.lines[source] = l
	}
	return l
}

// tell keeps the trouble of a source for status, and logs it when it is new.
func (s *Sender) tell(of about, says string) {
	s.mu.Lock()
	was := s.trouble[of]
	if says == "" {
		delete(s.trouble, of)
	} else {
		s.trouble[of] = says
	}
	s.mu.Unlock()
	source := of.source
	switch {
	case says == was:
	case says == "":
		s.log.Info("statuses are posted again", "source", source, "deployments", of.deployments)
	default:
		s.log.Warn("status not posted", "source", source, "deployments", of.deployments, "reason", says)
	}
}

// backoff is the wait after n failures in a row: 2 s doubled up to 10 min,
// a fifth of it left to chance.
func backoff(n int) time.Duration {
	d := longWait
	if n < 10 { // 2 s * 2^9 is more than 10 min, whatever comes after
		d = min(firstWait<<max(n-1, 0), longWait)
	}
	return d - rand.N(d/5) //nolint:gosec // spreading load needs no secrecy
}
