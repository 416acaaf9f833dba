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

// countedHost is a host whose engine refuses looks, and which counts them.
type countedHost struct {
	*host
	gone  bool
	looks int
}

func (h *countedHost) Look(ctx context.Context) (ring.Seen, error) {
	if h.looks++; h.gone {
		return ring.Seen{}, errors.New("no engine")
	}
	return h.host.Look(ctx)
}

// Looks that fail come more and more rarely, and hints make no storm of them.
func TestLooksThatFailMakeNoStorm(t *testing.T) {
	for name, tt := range map[string]struct {
		hints time.Duration // between hints; 0 is none
		most  int           // looks in a minute
	}{
		"by itself":           {0, 8},
		"in a storm of hints": {time.Millisecond, 61},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &countedHost{host: newHost(), gone: true}
				l := New(Options{Host: "sim", Engine: h, Health: h, Memory: h, Log: slog.New(slog.DiscardHandler)}, nil)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- l.Run(ctx) }()
				for until := time.Now().Add(time.Minute); time.Now().Before(until); {
					if tt.hints == 0 {
						time.Sleep(time.Minute)
						continue
					}
					l.Poke()
					time.Sleep(tt.hints)
				}
				if h.looks > tt.most || h.looks < tt.most-2 {
					t.Errorf("%d looks in a minute, not about %d", h.looks, tt.most)
				}
				h.gone, h.looks = false, 0
				time.Sleep(fullLook + time.Second)
				if h.looks == 0 {
					t.Error("the engine is back, and nobody looked")
				}
				h.gone, h.looks = true, 0
				time.Sleep(fullLook + 3*time.Second)
				if h.looks < 2 {
					t.Error("the first look that failed was not soon followed by another")
				}
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
