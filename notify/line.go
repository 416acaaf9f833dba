package notify

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// line is the way to one source's forge. While it is taken, one goroutine
// owns all of it but what the mutex guards.
type line struct {
	*Sender
	source string
	forge  Forge
	fails  int // in a row; a new post does not make a forge come back sooner
	hold   time.Time
	since  time.Time // when hold was set
	asked  int64     // how often a person asked to try at once, as last heard
	// said are posts that the forge took and the outbox could not note: they
	// are noted later and never said twice.
	said map[string]int64
	// remotes are what the forge calls what it shows of a commit, for contexts
	// that are new: the pipeline of a commit is one for all of them.
	remotes map[ring.SHA]string

	mu    sync.Mutex // guards what follows
	taken bool
	later []time.Time // when something put off is due, each once
	stuck time.Time   // the outbox failed: not before
}

func (l *line) take(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken || now.Before(l.stuck) {
		return false
	}
	l.taken = true
	return true
}

// release gives the line back. After an error of the outbox it rests: its rows
// are still due and would come back at once.
func (l *line) release(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = false
	if err != nil {
		l.stuck = time.Now().Add(idle)
	}
}

// wake is in how long something that was put off is due; 0 when nothing is
// known or the line is busy. What was due by now is forgotten: it was handed out, or
// was told meanwhile with something newer.
func (l *line) wake(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken {
		return 0
	}
	l.later = slices.DeleteFunc(l.later, func(at time.Time) bool { return !at.After(now) })
	if len(l.later) == 0 {
		return 0
	}
	return slices.MinFunc(l.later, time.Time.Compare).Sub(now)
}

func (l *line) due(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.ContainsFunc(l.later, at.Equal) {
		l.later = append(l.later, at)
	}
}

// say goes through a batch. After a failure that is the forge's, the rest is
// put off: asking again for every row would only make it worse. The error is
// the outbox's.
func (l *line) say(ctx context.Context, rows []ring.OutboxRow) error {
	for _, r := range rows {
		if err := l.one(ctx, r); err != nil {
			if ctx.Err() == nil {
				l.log.Warn("outbox not written, will be tried again", "source", l.source, "err", err)
			}
			return err
		}
	}
	return nil
}

// one deals with a row; the error is the outbox's.
func (l *line) one(ctx context.Context, r ring.OutboxRow) error {
	now := time.Now()
	if now.Before(l.since) { // the clock was set back: hold is of another time
		l.since, l.hold = time.Time{}, time.Time{}
	}
	if asked := l.again.Load(); asked != l.asked {
		l.asked, l.hold, l.fails = asked, time.Time{}, 0
	}
	if seq, ok := l.said[r.Key]; ok && seq == r.Seq {
		return l.note(ctx, r, now)
	}
	if r.Said() == r.Post.Says() {
		return l.outbox.Posted(ctx, r.Key, r.Seq, now)
	}
	_, deployment := r.Post.Environment()
	if deployment && !l.forge.Deployments { // nobody asks for them any more
		return l.outbox.Posted(ctx, r.Key, r.Seq, now)
	}
	if from := r.Post.At.Add(spread(r.Key)); r.Post.Open() && r.Attempts == 0 && now.Before(from) && !now.Before(r.Post.At) {
		return l.putOff(ctx, r, full(from))
	}
	if now.Before(l.hold) {
		if l.hold.Sub(r.Post.At) >= giveUp {
			return l.outbox.Dead(ctx, r.Key, r.Seq, "given up: the forge did not take a status for too long")
		}
		return l.putOff(ctx, r, l.hold)
	}
	known := r.Remote
	if r.Remote == "" && !deployment {
		r.Remote = l.remotes[r.Post.SHA]
	}
	remote, o := l.forge.post(ctx, r)
	if ctx.Err() != nil {
		return ctx.Err() // cut off by our own end: nothing was learned
	}
	if remote != known {
		if err := l.outbox.Remember(ctx, r.Key, remote); err != nil {
			l.log.Warn("outbox not written, will be looked up again", "source", l.source, "err", err)
		}
	}
	if remote != "" && !deployment {
		if len(l.remotes) >= maxRemotes {
			clear(l.remotes)
		}
		l.remotes[r.Post.SHA] = remote
	}
	return l.settle(ctx, r, o, time.Now())
}

func (l *line) about(r ring.OutboxRow) about {
	_, deployment := r.Post.Environment()
	return about{l.source, deployment}
}

// settle writes down what became of an attempt.
func (l *line) settle(ctx context.Context, r ring.OutboxRow, o outcome, now time.Time) error {
	if o.done {
		l.fails, l.hold = 0, time.Time{}
		l.tell(l.about(r), "")
		l.said[r.Key] = r.Seq
		return l.note(ctx, r, now)
	}
	l.tell(l.about(r), o.says)
	if o.permanent {
		l.fails = 0 // it is there, and it answered
		return l.outbox.Dead(ctx, r.Key, r.Seq, o.says)
	}
	l.fails++
	wait := o.wait
	if wait == 0 {
		wait = backoff(max(l.fails, r.Attempts+1))
	}
	l.since, l.hold = now, full(now.Add(wait))
	if l.hold.Sub(r.Post.At) >= giveUp {
		return l.outbox.Dead(ctx, r.Key, r.Seq, fmt.Sprintf("given up after %s: %s", giveUp, o.says))
	}
	l.due(l.hold)
	return l.outbox.Retry(ctx, r.Key, r.Seq, o.says, l.hold)
}

// spread is how long progress waits before it is told: many hosts hear of a
// commit at once, and a rollout that is over by then is told once. It is the
// same for a row each time.
func spread(key string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // which never fails
	return time.Duration(h.Sum32()%uint32(maxSpread/time.Millisecond)) * time.Millisecond
}

// full is the next full second: an outbox that keeps no fractions must not make
// a row due before its time.
func full(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

// note tells the outbox that a row was said.
func (l *line) note(ctx context.Context, r ring.OutboxRow, now time.Time) error {
	err := l.outbox.Told(ctx, r.Key, r.Seq, now)
	if err == nil {
		delete(l.said, r.Key)
	}
	return err
}

func (l *line) putOff(ctx context.Context, r ring.OutboxRow, until time.Time) error {
	l.due(until)
	return l.outbox.Retry(ctx, r.Key, r.Seq, "", until)
}
