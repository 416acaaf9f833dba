package report

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

const (
	// every is how often a hub is told where nothing changes.
	every = time.Minute
	// lookEvery is how often the status is compared with what was told.
	lookEvery = time.Second
	// pause is the least between two reports, and short that between two of a long journal: whatever
	// a hub answers, no more is sent.
	pause = 500 * time.Millisecond
	short = 200 * time.Millisecond
	// firstAgain and lastAgain are how long is waited after a failure, at first and in the end.
	firstAgain = time.Second
	lastAgain  = time.Minute
	// forgives is how long it takes until one time counts no more that a hub went its own way, and
	// mostAstray how many times count.
	forgives   = 2 * time.Minute
	mostAstray = 7
	// mostUnheard bounds what is remembered of reports whose answer did not come.
	mostUnheard = 16
	// toldAfter is for how long a hub may take nothing before people are told.
	toldAfter = 5 * time.Minute
)

// Line is a line of the journal, and the beginning of its hash, of 8 hex digits.
type Line struct {
	ring.Event
	Hash string
}

// Options are what a Reporter needs.
type Options struct {
	// Host is the name of this host, and Gitring its release.
	Host, Gitring string
	// URL is the hub's. TokenFile holds the token; it is read at each report.
	URL, TokenFile string
	// Status is the present truth, and Tag is equal for two that say the same.
	Status func(ctx context.Context) (ring.Status, error)
	Tag    func(st *ring.Status) string
	// Lines are those of the journal with a greater number, at most limit, in their order.
	Lines func(ctx context.Context, after int64, limit int) ([]Line, error)
	// Appended is closed when the next line is written.
	Appended func() <-chan struct{}
	Now      func() time.Time
	Log      *slog.Logger
}

// Reporter tells one hub. What it waits for delays nothing else.
type Reporter struct {
	Options
	transport http.RoundTripper

	// Of the goroutine of Run.
	cursor  *ring.Cursor  // that the hub named last; nil before it named one
	tag     string        // of the status that it took last
	failed  int           // in a row
	unheard []ring.Cursor // up to which it was sent lines since then, without an answer
	astray  int           // how often the hub named a line that it was not sent; falls with time
	strayed time.Time     // until when astray was counted
	told    string        // in the log

	mu    sync.Mutex // guards what follows
	taken time.Time  // when a report was taken last; at first, when there could have been one
	ever  bool
	why   string // nothing is taken; "" where it is
}

// New starts nothing.
func New(o Options) *Reporter {
	return &Reporter{Options: o, transport: newTransport(), taken: o.Now()}
}

// Trouble is since when the hub took no report, and why; "" where it takes them, or has not for a
// moment alone.
func (r *Reporter) Trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	away := r.Now().Sub(r.taken)
	if r.why == "" || away < toldAfter {
		return ""
	}
	since := wording.When(r.ever, "took the last report at "+r.taken.UTC().Format("2006-01-02 15:04 UTC")) + wording.When(!r.ever, "has taken no report since "+r.taken.UTC().Format("2006-01-02 15:04 UTC"))
	return "the hub " + since + ": " + r.why
}

// Run tells until ctx ends.
func (r *Reporter) Run(ctx context.Context) error {
	if t, ok := r.transport.(*http.Transport); ok {
		defer t.CloseIdleConnections()
	}
	for {
		appended := r.Appended()
		more, err := r.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		r.note(err)
		switch {
		case errors.Is(err, errElsewhere):
			r.failed = 0
			r.stray(r.Now())
			if !sleep(ctx, again(r.astray)) {
				return nil
			}
		case err != nil:
			r.failed++
			if !sleep(ctx, again(r.failed)) {
				return nil
			}
		case more:
			r.failed = 0
			if !sleep(ctx, short) {
				return nil
			}
		default:
			r.failed = 0
			if !sleep(ctx, pause) || !r.changed(ctx, appended) {
				return nil
			}
		}
	}
}

// stray counts a hub that named a line of its own choice. One that did so again and again is told
// less often, and each forgives after forgives one.
func (r *Reporter) stray(now time.Time) {
	if gone := now.Sub(r.strayed); r.astray > 0 && gone >= 0 && gone < time.Duration(r.astray)*forgives {
		r.astray -= int(gone / forgives)
		r.strayed = r.strayed.Add(gone / forgives * forgives)
	} else {
		r.astray, r.strayed = 0, now
	}
	r.astray = min(r.astray+1, mostAstray)
}

// errElsewhere is a hub that names another line than the one that it was sent up to, and than the one
// up to which it was sent lines before, without an answer. That is right once, where the hub was
// restored, and is no reason to hurry.
var errElsewhere = errors.New("the hub goes on after another line than it was told up to")

// once makes one report. more reports whether there is more to be told at once.
func (r *Reporter) once(ctx context.Context) (more bool, err error) {
	m, err := r.make(ctx, r.Now())
	if err != nil {
		return false, err
	}
	at, err := r.send(ctx, m)
	if err != nil {
		if m.sent && len(r.unheard) < mostUnheard && !slices.Contains(r.unheard, m.last) {
			r.unheard = append(r.unheard, m.last)
		}
		return false, err
	}
	was, unheard := r.cursor, r.unheard
	r.cursor, r.tag, r.unheard = &at, m.tag, nil
	switch {
	case m.asked:
		return true, nil
	case slices.Contains(unheard, at): // it had taken them, and its answer was lost
		return at != m.last || m.more, nil
	case m.sent && at != m.last, !m.sent && at != *was:
		return false, errElsewhere
	}
	return m.more, nil
}

// changed waits until there is something to tell; false where ctx ended.
func (r *Reporter) changed(ctx context.Context, appended <-chan struct{}) bool {
	latest := time.NewTimer(jittered(every))
	defer latest.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-latest.C:
			return true
		case <-appended:
			return true
		case <-look.C:
			if st, err := r.Status(ctx); err == nil && r.Tag(&st) != r.tag {
				return true
			}
		}
	}
}

// note keeps what came of a report, and tells a change of it once.
func (r *Reporter) note(err error) {
	says := ""
	if err != nil {
		says = err.Error()
	}
	taken := err == nil || errors.Is(err, errElsewhere)
	r.mu.Lock()
	if taken {
		r.taken, r.ever, r.why = r.Now(), true, ""
	} else {
		r.why = says
	}
	r.mu.Unlock()
	switch {
	case says == r.told || errors.Is(err, errElsewhere):
		return
	case says == "":
		r.Log.Info("the hub takes reports again")
	default:
		r.Log.Warn("could not report to the hub, will be tried again without end", "err", says)
	}
	r.told = says
}

// again is how long is waited after so many failures in a row.
func again(failed int) time.Duration {
	wait := lastAgain
	if failed < 7 {
		wait = min(lastAgain, firstAgain<<(failed-1))
	}
	return jittered(wait)
}

// jittered is a time, up to a fifth shorter, so that many hosts do not come together.
func jittered(d time.Duration) time.Duration {
	return d - rand.N(d/5) //nolint:gosec // no secret
}

// sleep waits; false where ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
