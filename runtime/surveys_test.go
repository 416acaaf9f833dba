package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An answer that began before the question is none: a person may have done in
// between what the refusal said.
func TestASurveyIsSharedAndNeverOlderThanTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s surveys
		var made atomic.Int32
		do := func(context.Context, lists) (beside, error) {
			made.Add(1)
			at := time.Now()
			time.Sleep(time.Second)
			return beside{host: at.Format(time.RFC3339Nano)}, nil
		}
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // all while the first is under way
				asked := time.Now()
				b, err := s.ask(t.Context(), lists{}, do)
				if err != nil {
					t.Error(err)
				}
				if began, _ := time.Parse(time.RFC3339Nano, b.host); began.Before(asked) {
					t.Errorf("asked %s after it began", asked.Sub(began))
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 2, made.Load(), "one for the first, one for all who came meanwhile")
	})
}

func TestASurveyAsksForWhatAnyoneNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s surveys
		var asked []lists
		do := func(_ context.Context, ask lists) (beside, error) {
			asked = append(asked, ask)
			time.Sleep(time.Second)
			return beside{}, nil
		}
		var all sync.WaitGroup
		for i, ask := range []lists{{}, {volumes: true}, {}, {networks: true}} {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				_, err := s.ask(t.Context(), ask, do)
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Equal(t, []lists{{}, {volumes: true, networks: true}}, asked)
	})
}

func TestASurveyOutlivesTheOneWhoLedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s surveys
		broken := errors.New("the engine stumbled")
		do := func(ctx context.Context, _ lists) (beside, error) {
			select {
			case <-time.After(time.Second):
				return beside{}, broken
			case <-ctx.Done():
				return beside{}, ctx.Err()
			}
		}
		first := make(chan error, 1)
		go func() { _, err := s.ask(t.Context(), lists{}, do); first <- err }()
		synctest.Wait()
		leader, cancel := context.WithCancel(t.Context())
		led, joined := make(chan error, 1), make(chan error, 1)
		go func() { _, err := s.ask(leader, lists{}, do); led <- err }()
		synctest.Wait()
		go func() { _, err := s.ask(t.Context(), lists{}, do); joined <- err }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-led, context.Canceled)
		require.ErrorIs(t, <-joined, broken, "an error of the engine is everybody's, the leader's end is not")
		require.ErrorIs(t, <-first, broken)
	})
}
