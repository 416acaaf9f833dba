package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// The pace of telling receivers.
const (
	// gather is how long a listener waits after a line: what one look brought is
	// then read as one.
	gather = time.Second
	// shortestPause and longestPause are the waits between two attempts.
	shortestPause = time.Minute
	longestPause  = time.Hour
	// believed is how often a receiver that asks to be told again sooner than that is.
	believed = 3
	// linesAtOnce and saidAtOnce bound one turn.
	linesAtOnce = 500
	saidAtOnce  = 50
	// keepCursor is how long a cursor that moved without a message may be only in
	// memory: lines that nobody chose are read again after a restart, and no more.
	keepCursor = 10 * time.Minute
)

// listener reads the journal for one receiver and tells it. All but what the
// mutex guards belongs to run's goroutine.
type listener struct {
	*Receivers
	name    string
	kind    string
	choice  Choice
	speaker speaker
	poked   chan struct{}

	cursor int64
	memory memory
	kept   time.Time // when the cursor was written down
	wake   time.Time // when the fold wants to be asked again
	fails  int       // in a row, of a receiver that is away
	hold   time.Time // nothing is sent before
	since  time.Time // when hold was set
	// said are IDs that were taken and could not be noted: noted later, and not
	// said twice.
	said map[string]bool

	mu      sync.Mutex // guards what follows
	reason  string
	waiting int
	dead    int
	held    int // messages that become one when somebody is there again
}

func (l *listener) status() ring.ReceiverStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ring.ReceiverStatus{Name: l.name, Service: l.kind, Waiting: l.waiting + l.held, Dead: l.dead, Reason: l.reason}
}

// run reads and tells until ctx ends.
func (l *listener) run(ctx context.Context) {
	l.said = map[string]bool{}
	for ready := false; !ready; {
		err := l.begin(ctx)
		if ready = err == nil; !ready && !rest(ctx, idle) {
			return
		}
	}
	told := false
	for {
		changed := l.ledger.Changed()
		next, err := l.turn(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !told {
			l.log.Warn("what a receiver is to be told could not be read or noted, will be tried again", "receiver", l.name, "err", err)
		}
		if told = err != nil; told {
			next = time.Now().Add(idle)
		}
		if !l.sleep(ctx, changed, next) {
			return
		}
	}
}

// begin takes up where the receiver was, and a new one at the journal's end.
func (l *listener) begin(ctx context.Context) error {
	r, known, err := l.ledger.Receiver(ctx, l.name)
	if err != nil {
		return err
	}
	head, err := l.ledger.Head(ctx)
	if err != nil {
		return err
	}
	if !known || r.Cursor > head { // the journal began anew, and would be waited for
		r.Cursor, known = head, false
	}
	l.cursor, l.memory = r.Cursor, memory{}
	if known && json.Unmarshal(r.State, &l.memory) != nil {
		l.memory = memory{} // of another release: it folds anew
	}
	l.memory.fresh = head + 1
	return l.keep(ctx, nil)
}

// turn reads what is new, tells what is due, and says when to come back; zero is
// when there is a new line.
func (l *listener) turn(ctx context.Context) (time.Time, error) {
	if err := l.read(ctx); err != nil {
		return time.Time{}, err
	}
	next, err := l.tell(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return soonest(l.wake, next), nil
}

// read folds the journal's new lines into deliveries.
func (l *listener) read(ctx context.Context) error {
	for {
		lines, err := l.ledger.Lines(ctx, l.cursor, linesAtOnce)
		if err != nil {
			return err
		}
		now := time.Now()
		if len(lines) == 0 && (l.wake.IsZero() || now.Before(l.wake)) {
			return nil
		}
		l.memory.away, l.memory.settled = l.gone(), l.settled
		m, notes, wake := l.choice.fold(l.memory, lines, now)
		var queued []ring.Delivery
		for _, n := range notes {
			d, err := delivery(l.name, n, now)
			if err != nil {
				return err
			}
			queued = append(queued, d)
		}
		was, at := l.memory, l.cursor
		l.memory = m
		if len(lines) > 0 {
			l.cursor = lines[len(lines)-1].Seq
		}
		if len(queued) > 0 || !same(was, m) || now.Sub(l.kept) > keepCursor {
			if err := l.keep(ctx, queued); err != nil {
				l.memory, l.cursor = was, at
				return err
			}
		}
		l.wake = wake
		if len(lines) < linesAtOnce {
			return nil
		}
	}
}

// gone is until when a receiver is left alone that has more to hear already than is
// told one by one.
func (l *listener) gone() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting < alone || l.hold.IsZero() {
		return time.Time{}
	}
	return later(l.hold, time.Now().Add(gather)) // until it took something
}

func same(a, b memory) bool {
	x, err := json.Marshal(a)
	y, too := json.Marshal(b)
	return err == nil && too == nil && string(x) == string(y)
}

// keep writes down how far it got, with what is to be said.
func (l *listener) keep(ctx context.Context, queued []ring.Delivery) error {
	state, err := json.Marshal(l.memory)
	if err != nil {
		return err
	}
	if err := l.ledger.Advance(ctx, ring.Receiver{Name: l.name, Cursor: l.cursor, State: state}, queued); err != nil {
		return err
	}
	l.kept = time.Now()
	return nil
}

// tell makes one attempt for each delivery that is due, in order, as long as
// somebody is there. After some it comes back, so that the journal is read too.
func (l *listener) tell(ctx context.Context) (next time.Time, err error) {
	rows, err := l.ledger.Waiting(ctx, l.name, saidAtOnce)
	if err != nil {
		return next, err
	}
	tried := false
	for _, d := range rows {
		now := time.Now()
		if now.Before(l.since) { // the clock was set back: hold is of another time
			l.since, l.hold = time.Time{}, time.Time{}
		}
		if d.Next.Sub(now) > giveUp { // and so is this, as nobody is left alone for longer
			d.Next = time.Time{}
		}
		if at := later(d.Next, l.hold); at.After(now) {
			next = soonest(next, at)
			continue
		}
		if err := l.one(ctx, d); err != nil {
			return next, err
		}
		tried = true
	}
	if tried {
		next = time.Now()
	}
	return next, l.count(ctx)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// one deals with a delivery; the error is the ledger's, or our own end.
func (l *listener) one(ctx context.Context, d ring.Delivery) error {
	if l.said[d.ID] {
		return l.note(ctx, d)
	}
	var n Note
	if err := json.Unmarshal(d.Body, &n); err != nil {
		return l.ledger.GiveUp(ctx, d.ID, "cannot read what was to be said", time.Now())
	}
	a := l.speaker.say(ctx, n)
	if ctx.Err() != nil {
		return ctx.Err() // cut off by our own end: nothing was learned
	}
	now := time.Now()
	l.hear(a)
	switch {
	case a.taken:
		if l.fails > 0 {
			l.wake = now // what waited for somebody to be there
		}
		l.fails, l.hold = 0, time.Time{}
		l.said[d.ID] = true
		return l.note(ctx, d)
	case a.gone:
		return l.ledger.GiveUp(ctx, d.ID, a.says, now)
	}
	l.fails++
	wait := pause(d.Attempts + 1)
	if a.away {
		wait = pause(max(l.fails, d.Attempts+1))
	}
	if a.wait > 0 && (a.wait > wait || d.Attempts < believed) {
		wait = a.wait
	}
	at := full(now.Add(wait))
	l.since, l.hold = time.Time{}, time.Time{}
	if a.away {
		l.since, l.hold = now, at
	}
	if at.Sub(d.Queued) >= giveUp {
		return l.ledger.GiveUp(ctx, d.ID, fmt.Sprintf("given up after %s: %s", giveUp, a.says), now)
	}
	return l.ledger.Postpone(ctx, d.ID, a.says, at)
}

// pause is the wait after n failures: 1 min doubled up to 60, a fifth of it left
// to chance.
func pause(n int) time.Duration {
	d := longestPause
	if n < 7 { // 1 min * 2^6 is more than 60 min
		d = min(shortestPause<<max(n-1, 0), longestPause)
	}
	if d > shortestPause {
		d -= rand.N(d / 5) //nolint:gosec // spreading load needs no secrecy
	}
	return d
}

func (l *listener) note(ctx context.Context, d ring.Delivery) error {
	err := l.ledger.Delivered(ctx, d.ID, time.Now())
	if err == nil {
		delete(l.said, d.ID)
	}
	return err
}

// hear keeps why the last attempt failed for status, and logs it when it is new.
func (l *listener) hear(a reply) {
	l.mu.Lock()
	was := l.reason
	l.reason = a.says
	l.kind = l.speaker.service()
	l.mu.Unlock()
	switch {
	case a.says == was:
	case a.says == "":
		l.log.Info("receiver is told again", "receiver", l.name)
	default:
		l.log.Warn("receiver not told", "receiver", l.name, "reason", a.says)
	}
}

func (l *listener) count(ctx context.Context) error {
	waiting, dead, err := l.ledger.Undelivered(ctx, l.name)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting, l.dead, l.held = waiting, dead, 0
	if !l.hold.IsZero() {
		l.held = len(l.memory.Held) + l.memory.Lost
	}
	return nil
}

// sleep returns when there is something to do, and false when ctx ended.
func (l *listener) sleep(ctx context.Context, changed <-chan struct{}, next time.Time) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(time.Until(next))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-changed:
		return rest(ctx, gather)
	case <-l.poked:
		l.hold, l.fails = time.Time{}, 0
	case <-due:
	}
	return true
}

func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
