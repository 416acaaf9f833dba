package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitring/gitring/ring"
)

// blindHost is a host whose engine does not answer; its journal is looked at.
type blindHost struct {
	*host
	gone   bool
	events []ring.Event
}

func (h *blindHost) Look(ctx context.Context) (ring.Seen, error) {
	if h.gone {
		return ring.Seen{}, errors.New("no engine")
	}
	return h.host.Look(ctx)
}

func (h *blindHost) Record(ctx context.Context, facts []ring.Fact, events []ring.Event) error {
	h.events = append(h.events, events...)
	return h.host.Record(ctx, facts, events)
}

// The first post of a refusal is the last chance to journal it: what people are
// told comes from the journal.
func TestARefusalIsJournalledWhileTheEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &blindHost{host: newHost(), gone: true}
		l := New(Options{Host: "sim", Engine: h, Health: h, Memory: h, Log: slog.New(slog.DiscardHandler)}, []Source{{Name: "s", FreshFor: time.Hour}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		src := Source{Name: "s", FreshFor: time.Hour, Tip: shaOf("c1"), Refusal: &ring.Refusal{Code: ring.Unsigned, Commit: shaOf("c1"), Says: "not signed", Hint: "sign it"}}
		offer(t, l, src)
		time.Sleep(time.Minute)
		offer(t, l, src)
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range h.events {
			if e.Kind == ring.CommitRefused {
				n++
			}
		}
		if n != 1 {
			t.Errorf("journalled %d times", n)
		}
	})
}
