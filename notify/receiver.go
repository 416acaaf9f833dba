package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// A Ledger keeps how far each receiver has read the journal and what it is still
// to be told. When a method returns nil the fact is on disk. Each may be called
// from several goroutines.
type Ledger interface {
	// Changed is closed at the next line of the journal. It is taken before Lines
	// is asked, so that no line falls in between.
	Changed() <-chan struct{}
	// Head is the last line of the journal; 0 before the first.
	Head(ctx context.Context) (int64, error)
	// Lines are those after one, in order, at most max.
	Lines(ctx context.Context, after int64, max int) ([]ring.Event, error)
	// Receiver is what is remembered; false for a new one.
	Receiver(ctx context.Context, name string) (ring.Receiver, bool, error)
	// Advance remembers a receiver and queues deliveries, all or nothing. One that
	// was queued before, by its ID, stays as it is.
	Advance(ctx context.Context, r ring.Receiver, queued []ring.Delivery) error
	// Waiting are those neither taken nor given up: what is due, the oldest first, and
	// then what is due later, the soonest first.
	Waiting(ctx context.Context, receiver string, max int) ([]ring.Delivery, error)
	// Undelivered counts what waits and what was given up.
	Undelivered(ctx context.Context, receiver string) (waiting, dead int, err error)
	Delivered(ctx context.Context, id string, at time.Time) error
	Postpone(ctx context.Context, id, says string, next time.Time) error
	GiveUp(ctx context.Context, id, says string, at time.Time) error
}

// Receiver is one that is told what happens here.
type Receiver struct {
	// Name is remembered with what it was told: another name is another receiver.
	Name   string
	Events []string // kinds and patterns; none is ChatEvents, or everything for a web hook
	Apps   []string // none is all
	// URLFile holds the URL of a chat, and Template its words; "" is ours.
	URLFile  string
	Template string
	// Hook is set for a web hook, OTLP for a collector of traces, and neither for a chat.
	Hook *Hook
	OTLP *OTLP
}

// speaker is the way to one receiver.
type speaker interface {
	service() string
	check() error
	say(ctx context.Context, n Note) reply
}

// Receivers tells each receiver what the journal has for it. Each has a goroutine
// of its own: one that hangs delays nobody.
type Receivers struct {
	host   string
	ledger Ledger
	log    *slog.Logger
	// settled is Options' Settled.
	settled func(source string, commit ring.SHA) bool
	all     []*listener
}

// ReceiversOptions are what Receivers need of the world.
type ReceiversOptions struct {
	Host   string
	Ledger Ledger
	Log    *slog.Logger
	// Settled reports whether a source is as a commit asks, as far as it will be. Only receivers of
	// traces ask.
	Settled func(source string, commit ring.SHA) bool
	// Program tells chats; "" is this binary, with the verb WorkerVerb.
	Program string
}

// NewReceivers reads the files of every receiver, as a send would, and starts
// nothing. Its error names the receiver, and repeats nothing of a file.
func NewReceivers(o ReceiversOptions, all []Receiver) (*Receivers, error) {
	r := &Receivers{host: o.Host, ledger: o.Ledger, log: o.Log, settled: o.Settled}
	for _, one := range all {
		var s speaker
		switch {
		case one.Hook != nil:
			s = newHookSpeaker(o.Host, *one.Hook)
		case one.OTLP != nil:
			s = newOTLPSpeaker(o.Host, *one.OTLP)
		default:
			t, err := parseTemplate(one.Template)
			if err != nil {
				return nil, fmt.Errorf("receiver %s: %w", one.Name, err)
			}
			s = &chatSpeaker{host: o.Host, urlFile: one.URLFile, text: t, run: workerProcess(o.Program)}
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("receiver %s: %w", one.Name, err)
		}
		r.add(one, s)
	}
	return r, nil
}

func (r *Receivers) add(one Receiver, s speaker) {
	choice := Choice{Events: one.Events, Apps: one.Apps, Fold: one.Hook == nil, Traces: one.OTLP != nil}
	if len(choice.Events) == 0 {
		choice.Events = ChatEvents
		if one.Hook != nil {
			choice.Events = []string{"*"}
		}
	}
	r.all = append(r.all, &listener{
		Receivers: r, name: one.Name, kind: s.service(), choice: choice, speaker: s, poked: make(chan struct{}, 1),
	})
}

// CheckTemplate says what is wrong with a receiver's template; nil when nothing is.
func CheckTemplate(text string) error {
	_, err := parseTemplate(text)
	return err
}

// Run tells until ctx ends. It returns nil when all that it started has ended.
func (r *Receivers) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, l := range r.all {
		wg.Go(func() { l.run(ctx) })
	}
	wg.Wait()
	return nil
}

// Poke says that something was made due by hand. It never blocks.
func (r *Receivers) Poke() {
	for _, l := range r.all {
		select {
		case l.poked <- struct{}{}:
		default:
		}
	}
}

// Trouble are the receivers that could not be told everything, by name.
func (r *Receivers) Trouble() []ring.ReceiverStatus {
	var out []ring.ReceiverStatus
	for _, l := range r.all {
		if st := l.status(); st.Reason != "" || st.Dead > 0 {
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b ring.ReceiverStatus) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Tested is what became of a test message.
type Tested struct {
	Name    string
	Service string
	Taken   bool
	Reason  string // why it was not taken
}

// ErrNoReceiver is of a name that no receiver has.
var ErrNoReceiver = errors.New("no such receiver")

// Test tells one receiver, or all for "", a message that says it is a test. What
// waits is neither asked nor delayed.
func (r *Receivers) Test(ctx context.Context, name, actor string) ([]Tested, error) {
	var chosen []*listener
	for _, l := range r.all {
		if name == "" || l.name == name {
			chosen = append(chosen, l)
		}
	}
	if len(chosen) == 0 {
		return nil, ErrNoReceiver
	}
	now := time.Now()
	n := Note{Kind: kindTest, Line: now.UnixNano(), At: now.UTC(), Source: "notify", Reason: "asked for by " + actor}
	out := make([]Tested, len(chosen))
	var wg sync.WaitGroup
	for i, l := range chosen {
		wg.Go(func() {
			a := l.speaker.say(ctx, n)
			out[i] = Tested{Name: l.name, Service: l.speaker.service(), Taken: a.taken, Reason: a.says}
		})
	}
	wg.Wait()
	return out, nil
}

// idOf is the ID of what is said of a note: the same after a restart.
func idOf(receiver string, n Note) string {
	id := fmt.Sprintf("%s/%d", receiver, n.Line)
	if n.Total > 0 {
		id += fmt.Sprintf("+%d", n.Total)
	}
	return id
}

func delivery(receiver string, n Note, now time.Time) (ring.Delivery, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return ring.Delivery{}, err
	}
	subject := subjectOf(ring.Event{Source: n.Source, App: n.App, Service: n.Service})
	if n.Total > 0 {
		var of []string
		for _, a := range n.Also {
			of = append(of, subjectOf(ring.Event{Source: a.Source, App: a.App, Service: a.Service}))
		}
		subject = strings.Join(slices.Compact(of[:min(3, len(of))]), ", ")
	}
	return ring.Delivery{ID: idOf(receiver, n), Receiver: receiver, Kind: n.Kind, Subject: subject, Body: body, Queued: now}, nil
}
