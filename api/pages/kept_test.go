package pages

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// slow is a daemon behind a slow line: it answers when it is let.
type slow struct {
	*fake
	let chan struct{}
}

func (s *slow) Status(ctx context.Context) (ring.Status, error) {
	select {
	case <-s.let:
		return s.fake.Status(ctx)
	case <-ctx.Done():
		return ring.Status{}, ctx.Err()
	}
}

func TestWhoWaitsForASlowDaemonMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{rich(), make(chan struct{})}
		h := s.handler(everything)
		h.Answers = func(api.Viewer) Answers { return s }
		looks := func(ctx context.Context) <-chan int {
			code := make(chan int, 1)
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx))
				code <- w.Code
			}()
			synctest.Wait()
			return code
		}
		firstLeft, leaveFirst := context.WithCancel(t.Context())
		first := looks(firstLeft)
		gone, leave := context.WithCancel(t.Context())
		second, third := looks(gone), looks(t.Context())
		leave()
		synctest.Wait()
		require.Len(t, second, 1, "who left waits on")
		require.Empty(t, third)
		leaveFirst()
		synctest.Wait()
		require.Empty(t, third, "the answer went away with who was first")
		time.Sleep(makeWithin / 2)
		close(s.let)
		synctest.Wait()
		require.Equal(t, http.StatusOK, <-third)
		require.Equal(t, http.StatusOK, <-first)
		require.Equal(t, 1, s.asked["status"], "the daemon was asked by each")
	})
}

func TestASlowDaemonIsGivenUpByAllAndAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{rich(), make(chan struct{})}
		var l looker
		ended := make(chan error, 3)
		for range 3 {
			go func() { _, err := l.now(t.Context(), s, noon); ended <- err }()
		}
		time.Sleep(makeWithin)
		synctest.Wait()
		require.Len(t, ended, 3)
		for range 3 {
			require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		}
		close(s.let)
		seen, err := l.now(t.Context(), s, noon)
		require.NoError(t, err)
		require.Equal(t, "edge-1", seen.status.Host)
	})
}

// broken breaks off in the middle of an answer.
type broken struct {
	*slow
}

func (b *broken) Status(context.Context) (ring.Status, error) {
	<-b.let
	panic("a fault of ours")
}

func TestAnAskingThatBreaksOffKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broken{&slow{rich(), make(chan struct{})}}
		var l looker
		broke, waited := make(chan any, 1), make(chan error, 1)
		go func() {
			defer func() { broke <- recover() }()
			_, _ = l.now(t.Context(), b, noon)
		}()
		synctest.Wait()
		go func() { _, err := l.now(t.Context(), b, noon); waited <- err }()
		synctest.Wait()
		close(b.let)
		require.NotNil(t, <-broke)
		require.ErrorIs(t, <-waited, errNotMade)
		_, err := l.now(t.Context(), rich(), noon)
		require.NoError(t, err)
	})
}

func TestWhoWaitsForAPageMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keeper
		let := make(chan struct{})
		first := make(chan *keptPage, 1)
		go func() {
			first <- k.page(t.Context(), "1", "/", noon, func() (*made, time.Duration, error) {
				<-let
				return &made{main: []byte("x")}, 0, nil
			})
		}()
		synctest.Wait()
		gone, leave := context.WithCancel(t.Context())
		leave()
		p := k.page(gone, "1", "/", noon, func() (*made, time.Duration, error) { return nil, 0, errors.New("made twice") })
		require.ErrorIs(t, p.err, context.Canceled)
		close(let)
		require.NoError(t, (<-first).err)
	})
}
