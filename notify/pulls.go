package notify

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// The pace of looking at pull requests. The list is asked for every pullsEvery, and at
// a webhook's word not sooner than pullsSoonest after the last time. Of one source
// headsEach heads are judged in headsWithin, whatever people push.
const (
	pullsEvery   = 60 * time.Second
	pullsSoonest = 10 * time.Second
	headsEach    = 4
	headsWithin  = time.Minute
	// editionEvery is how often it is asked whether plans are still what they were.
	editionEvery = 10 * time.Second
	// meFor is how long an answer to "who am I" counts: a token may be exchanged.
	meFor = time.Hour
)

// PullOptions are what Pulls needs of others.
type PullOptions struct {
	Source, Host string
	// Forge has Branch set: the one that pull requests are into.
	Forge Forge
	// Edition changes when all heads have to be judged again; "" is that nothing can
	// be judged now.
	Edition func(ctx context.Context) (string, error)
	// Judge is the plan of a head, whose Head is its full id by then. No plan and no
	// error is that nothing may be said of it. It runs nothing and changes nothing.
	Judge func(ctx context.Context, p Pull) (*PullPlan, error)
	// Post queues the status of a head that was judged.
	Post func(ctx context.Context, p ring.Post) error
	Log  *slog.Logger
}

// Pulls tells open pull requests of one source what landing them would do here: a
// status and one comment each, which is changed in place. It asks the forge in a
// goroutine of its own and delays nobody. What is to be told is kept in memory alone:
// after a restart each head is judged again, and a comment that says it already is
// left as it is.
type Pulls struct {
	PullOptions
	poked chan struct{} // of capacity 1

	mu      sync.Mutex // guards what follows
	trouble string
}

// NewPulls starts nothing.
func NewPulls(o PullOptions) *Pulls { return &Pulls{PullOptions: o, poked: make(chan struct{}, 1)} }

// Poke says that pull requests may have changed. It never blocks.
func (p *Pulls) Poke() {
	if p == nil {
		return
	}
	select {
	case p.poked <- struct{}{}:
	default:
	}
}

// Trouble is what went wrong at the last attempt; "" when nothing did.
func (p *Pulls) Trouble() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trouble
}

// Run tells until ctx ends. It returns nil when all that it started has ended.
func (p *Pulls) Run(ctx context.Context) error {
	b := newBoard(p)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-p.poked:
			b.asked = true
		}
		wake := b.round(ctx, time.Now())
		timer.Reset(max(time.Until(wake), time.Millisecond))
	}
}

// board is what is known of the open pull requests. It belongs to Run's goroutine.
type board struct {
	*Pulls
	asked bool      // a webhook said so
	last  time.Time // the list was asked for
	next  time.Time // and is to be asked for again
	hold  time.Time // the forge is left alone until then
	fails int
	etag  string
	list  []Pull // the last updated first
	told  map[int]*telling
	spent []time.Time // heads that were judged, within headsWithin
	me    string
	since time.Time // when me was asked for
}

// telling is one open pull request.
type telling struct {
	key    string // of what was judged: the head and the edition
	judged time.Time
	again  time.Time
	plan   *PullPlan // nil: nothing may be said
	post   *ring.Post
	// at is our comment, as far as it is known; said is that it says what it should.
	at    remark
	said  bool
	later time.Time // not before: the forge did not take it
	// trouble is why.
	trouble string
}

func newBoard(p *Pulls) *board { return &board{Pulls: p, told: map[int]*telling{}} }

// round does what is due and says when something is due again.
func (b *board) round(ctx context.Context, now time.Time) time.Time {
	if now.Before(b.hold) {
		return b.hold
	}
	if due := b.due(); !now.Before(due) {
		if err := b.look(ctx, now); err != nil {
			return b.failed(ctx, now, err)
		}
	}
	wake := b.due()
	edition, err := b.Edition(ctx)
	if err != nil {
		return b.failed(ctx, now, err)
	}
	if len(b.list) > 0 { // what runs here may change at any time, and nobody pokes for it
		wake = earlier(wake, now.Add(editionEvery))
	}
	if edition == "" {
		return wake
	}
	later, err := b.judge(ctx, now, edition)
	if err != nil {
		return b.failed(ctx, now, err)
	}
	trouble, err := b.tellAll(ctx, now)
	if err != nil {
		return b.failed(ctx, now, err)
	}
	if ctx.Err() == nil {
		b.fails = 0
		b.tell(trouble)
	}
	return earlier(wake, later)
}

func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// due is when the list is to be asked for.
func (b *board) due() time.Time {
	if b.asked {
		return earlier(b.next, b.last.Add(pullsSoonest))
	}
	return b.next
}

// look asks for the list. Of one that is closed nothing is told any more.
func (b *board) look(ctx context.Context, now time.Time) error {
	b.last, b.asked = now, false
	b.next = now.Add(pullsEvery - pullsEvery/10 + rand.N(pullsEvery/5)) //nolint:gosec // spreading load needs no secrecy
	l, err := b.Forge.listPulls(ctx, b.etag)
	if err != nil {
		b.next = now // first of all once the forge is asked again
		return err
	}
	if l.same {
		return nil
	}
	b.etag, b.list = l.etag, l.pulls
	open := map[int]bool{}
	for _, p := range l.pulls {
		open[p.Number] = true
	}
	for number := range b.told {
		if !open[number] {
			delete(b.told, number)
		}
	}
	return nil
}

// judge has the heads judged that are new or of an older edition, as many as may be
// now. later is when the next one may; the error is of the world.
func (b *board) judge(ctx context.Context, now time.Time, edition string) (later time.Time, _ error) {
	for _, p := range b.turns() {
		t, key := b.told[p.Number], string(p.Head)+" "+edition
		if p.Ref == "" || t.key == key {
			continue
		}
		if now.Before(t.again) {
			later = earlier(later, t.again)
			continue
		}
		if at, free := b.budget(now); !free {
			return earlier(later, at), nil
		}
		b.spent = append(b.spent, now)
		t.judged = now
		plan, err := b.judgeOne(ctx, p)
		if ctx.Err() != nil {
			return later, nil // cut off by our own end: nothing was learned
		}
		if err != nil {
			t.again = now.Add(pullsEvery)
			later = earlier(later, t.again)
			b.Log.Debug("pull request not judged, will be tried again", "source", b.Source, "err", err)
			if o, ok := errors.AsType[outcome](err); ok {
				return later, o
			}
			continue
		}
		t.key, t.plan, t.said = key, plan, false
		t.post = b.postOf(plan, now)
	}
	return later, nil
}

// turns are those in the order in which they are judged: before those of strangers
// the ones of the repository's own branches, and before one that was judged already
// those that were not, or longer ago. So nobody takes the turns of others by pushing.
func (b *board) turns() []Pull {
	for _, p := range b.list {
		if b.told[p.Number] == nil {
			b.told[p.Number] = &telling{}
		}
	}
	out := slices.Clone(b.list)
	slices.SortStableFunc(out, func(x, y Pull) int {
		if x.Fork != y.Fork {
			if y.Fork {
				return -1
			}
			return 1
		}
		return b.told[x.Number].judged.Compare(b.told[y.Number].judged)
	})
	return out
}

func (b *board) judgeOne(ctx context.Context, p Pull) (*PullPlan, error) {
	head, err := pullers[b.Forge.Kind].whole(ctx, b.Forge, p)
	if err != nil {
		return nil, err
	}
	p.Head = head
	return b.Judge(ctx, p)
}

// budget reports whether one more head may be judged, else when.
func (b *board) budget(now time.Time) (time.Time, bool) {
	for len(b.spent) > 0 && !now.Before(b.spent[0].Add(headsWithin)) {
		b.spent = b.spent[1:]
	}
	if len(b.spent) < headsEach {
		return now, true
	}
	return b.spent[0].Add(headsWithin), false
}

// postOf is the status of a head.
func (b *board) postOf(plan *PullPlan, now time.Time) *ring.Post {
	if plan == nil {
		return nil
	}
	state, says := plan.Post()
	return &ring.Post{Source: b.Source, SHA: plan.Head, Context: PlanContext(b.Host), State: state, Description: says, At: now.UTC()}
}

// tellAll says what is not said yet. What the forge will not take of one pull request
// is in nobody else's way: trouble says so, and it is tried again now and then.
func (b *board) tellAll(ctx context.Context, now time.Time) (trouble string, _ error) {
	for _, p := range b.list {
		t := b.told[p.Number]
		if t == nil || t.plan == nil {
			continue
		}
		if t.post != nil {
			if err := b.Post(ctx, *t.post); err != nil {
				return "", err
			}
			t.post = nil
		}
		if t.said {
			continue
		}
		if now.Before(t.later) {
			trouble = t.trouble
			continue
		}
		err := b.comment(ctx, now, p.Number, t)
		if o, ok := errors.AsType[outcome](err); ok && o.permanent && ctx.Err() == nil {
			t.later, t.trouble = now.Add(longWait), troubleOf(err)
			trouble = t.trouble
			continue
		}
		if err != nil {
			if o, ok := errors.AsType[outcome](err); ok && o.wait == 0 {
				t.later, t.trouble = now.Add(pullsEvery), troubleOf(err) // the others come first
			}
			return "", err
		}
		t.said = true
	}
	return trouble, nil
}

func troubleOf(err error) string { return "pull requests: " + err.Error() }

// comment makes our comment say what it should: it is looked for first, so that one
// that was written and never answered is not written twice.
func (b *board) comment(ctx context.Context, now time.Time, number int, t *telling) error {
	of := pullers[b.Forge.Kind]
	marker := of.marker("gitring plan " + b.Host)
	text := t.plan.text(marker, of.longest())
	if t.at.id != "" && sameText(t.at.text, text) {
		return nil
	}
	f := b.Forge
	f.doing = "write comments on pull requests"
	if t.at.id != "" { // however many others wrote since
		edited, err := of.edit(ctx, f, number, t.at, text)
		if o, ok := errors.AsType[outcome](err); !ok || !o.permanent {
			if err == nil {
				t.at = edited
				t.at.text = text
			}
			return err
		}
		t.at = remark{} // somebody deleted or changed it
	}
	me, err := b.whoAmI(ctx, now)
	if err != nil {
		return err
	}
	found, err := b.Forge.ourRemark(ctx, number, me, marker)
	if err != nil {
		return err
	}
	t.at = found
	switch {
	case found.id == "" && t.plan.Untrusted != nil: // its status says it
		return nil
	case found.id == "":
		found, err = of.add(ctx, f, number, text)
	case sameText(found.text, text):
		return nil
	default:
		found, err = of.edit(ctx, f, number, found, text)
	}
	if err != nil {
		return err
	}
	found.text = text
	t.at = found
	return nil
}

func (b *board) whoAmI(ctx context.Context, now time.Time) (string, error) {
	if b.me != "" && now.Before(b.since.Add(meFor)) {
		return b.me, nil
	}
	me, err := pullers[b.Forge.Kind].me(ctx, b.Forge)
	if err != nil {
		return "", err
	}
	b.me, b.since = me, now
	return me, nil
}

// failed leaves the forge alone for a while: what it did not take is tried again, less
// and less often. What it will never take is tried as rarely: somebody may mend the
// token, and nothing is lost by waiting.
func (b *board) failed(ctx context.Context, now time.Time, err error) time.Time {
	if ctx.Err() != nil {
		return now // cut off by our own end
	}
	b.fails++
	wait := backoff(b.fails)
	if o, ok := errors.AsType[outcome](err); ok && (o.permanent || o.wait > 0) {
		wait = o.wait
		if o.permanent {
			wait = longWait
		}
	}
	b.hold = now.Add(wait)
	b.tell(troubleOf(err))
	return b.hold
}

// tell keeps the trouble for status, and logs it when it is new.
func (b *board) tell(says string) {
	b.mu.Lock()
	was := b.trouble
	b.trouble = says
	b.mu.Unlock()
	switch {
	case says == was:
	case says == "":
		b.Log.Info("pull requests are told again", "source", b.Source)
	default:
		b.Log.Warn("pull requests not told", "source", b.Source, "reason", says)
	}
}

// isPlan reports whether a status is of a pull request's head.
func isPlan(context string) bool { return strings.HasSuffix(context, planEnds) }

const planEnds = "/plan"

// PlanContext is the context of the status with a plan: gitring/<host>/plan.
func PlanContext(host string) string { return "gitring/" + host + planEnds }
