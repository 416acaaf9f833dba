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
				b, err := s.ask(t.Context(), nil, lists{}, do)
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
				_, err := s.ask(t.Context(), nil, ask, do)
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Equal(t, []lists{{}, {volumes: true, networks: true}}, asked)
	})
}

// A hundred steps are handed on at once and wait for their turn: one answer is newer than all of
// these questions. What is asked later, asks for more, or comes a second later is asked anew.
func TestASurveyServesWhoeverAskedBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s surveys
		made := 0
		do := func(context.Context, lists) (beside, error) {
			made++
			time.Sleep(10 * time.Millisecond)
			return beside{}, nil
		}
		ask := func(since *time.Time, what lists) {
			_, err := s.ask(t.Context(), since, what, do)
			require.NoError(t, err)
		}
		asked := time.Now()
		for range 50 {
			ask(&asked, lists{networks: true})
		}
		require.Equal(t, 1, made, "they all asked before it")
		ask(&asked, lists{})
		require.Equal(t, 1, made, "what is less is in it")
		ask(&asked, lists{volumes: true})
		require.Equal(t, 2, made, "nobody asked for volumes")
		now := time.Now()
		ask(&now, lists{})
		require.Equal(t, 3, made, "it is older than the question")
		ask(nil, lists{})
		require.Equal(t, 4, made, "who says no moment asks now")
		asked = time.Now()
		ask(&asked, lists{})
		require.Equal(t, 5, made)
		time.Sleep(latelyServes + time.Millisecond)
		ask(&asked, lists{})
		require.Equal(t, 6, made, "an answer serves for a moment only")
		time.Sleep(latelyServes + time.Millisecond)
		s.drop()
		require.Nil(t, s.last, "it is as large as the host")
	})
}

func TestASurveyThatFailedServesNobody(t *testing.T) {
	var s surveys
	asked := time.Now()
	_, err := s.ask(t.Context(), &asked, lists{}, func(context.Context, lists) (beside, error) { return beside{}, errors.New("away") })
	require.Error(t, err)
	_, err = s.ask(t.Context(), &asked, lists{}, func(context.Context, lists) (beside, error) { return beside{}, nil })
	require.NoError(t, err)
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
		go func() { _, err := s.ask(t.Context(), nil, lists{}, do); first <- err }()
		synctest.Wait()
		leader, cancel := context.WithCancel(t.Context())
		led, joined := make(chan error, 1), make(chan error, 1)
		go func() { _, err := s.ask(leader, nil, lists{}, do); led <- err }()
		synctest.Wait()
		go func() { _, err := s.ask(t.Context(), nil, lists{}, do); joined <- err }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-led, context.Canceled)
		require.ErrorIs(t, <-joined, broken, "an error of the engine is everybody's, the leader's end is not")
		require.ErrorIs(t, <-first, broken)
	})
}
