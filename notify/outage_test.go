package notify

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
)

// life is one run of the daemon's way out, on the real store: what it holds is what
// the next one finds.
type life struct {
	*Sender
	store *store.Store
	end   func()
}

func begin(t *testing.T, dir, token string, w *wire) *life {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	require.NoError(t, err)
	l := &life{store: s, Sender: New(s, map[string]Forge{"prod": {
		Kind: GitHub, APIURL: "https://forge.example.org/api/v3", Repo: "acme/infra", TokenFile: token,
		Deployments: true, Client: &http.Client{Transport: w},
	}}, slog.New(slog.DiscardHandler))}
	statuses, deployments, err := s.Unsaid(t.Context())
	require.NoError(t, err)
	l.Recall(statuses, deployments)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	l.end = func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, s.Close())
	}
	return l
}

// says is what the loop does with a decision: it returns when the post is on disk, and
// pokes. No time may pass in it.
func (l *life) says(t *testing.T, posts ...ring.Post) {
	t.Helper()
	began := time.Now()
	var facts []ring.Fact
	for _, p := range posts {
		facts = append(facts, p)
	}
	require.NoError(t, l.store.Record(t.Context(), facts, nil))
	l.Poke()
	require.Zero(t, time.Since(began), "the host waited for the forge")
	synctest.Wait()
}

// A forge that is away for ten minutes, a rollout in the middle of it, and a daemon
// that is restarted twice: what is left to say is the outcome, once for each context.
func TestTenMinutesAwayWithRestartsLeaveOneClosingStatusEach(t *testing.T) {
	dir, token := t.TempDir(), tokenFile(t, secret)
	synctest.Test(t, func(t *testing.T) {
		w := &wire{do: away}
		contexts := []string{"gitring/edge-1", "gitring/edge-1/db", "gitring/edge-1/web"}
		l := begin(t, dir, token, w)
		for i := range 40 { // of 15 s each: ten minutes
			for _, c := range contexts {
				p := post(c, ring.PostPending, fmt.Sprintf("%d/40 ready", i))
				p.Phase = ring.PostRunning
				l.says(t, p)
			}
			after(15 * time.Second)
			if i == 13 || i == 26 {
				l.end()
				l = begin(t, dir, token, w)
			}
		}
		require.Less(t, len(w.times()), 30, "the forge was asked too often")
		for _, c := range contexts {
			l.says(t, post(c, ring.PostSuccess, "healthy 4/4"))
		}
		l.end()
		l = begin(t, dir, token, w)
		w.behave(nil)
		after(11 * time.Minute)
		require.ElementsMatch(t, []string{"gitring/edge-1 success", "gitring/edge-1/db success", "gitring/edge-1/web success"}, w.taken())
		require.Empty(t, l.Trouble())
		l.end()
		l = begin(t, dir, token, w)
		after(time.Hour)
		require.Len(t, w.taken(), 3, "said again after a restart")
		l.end()
	})
}

func TestAForgeThatHangsDelaysNobody(t *testing.T) {
	dir, token := t.TempDir(), tokenFile(t, secret)
	synctest.Test(t, func(t *testing.T) {
		w := &wire{do: func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}
		l := begin(t, dir, token, w)
		for i := range 30 {
			l.says(t, post(fmt.Sprintf("gitring/edge-1/app%d", i), ring.PostSuccess, "healthy"))
		}
		began := time.Now()
		l.end()
		require.Zero(t, time.Since(began), "the end waited for the forge")
	})
}

func TestWhatAPersonHasToPutRightIsStillShownAfterARestart(t *testing.T) {
	dir, token := t.TempDir(), tokenFile(t, secret)
	synctest.Test(t, func(t *testing.T) {
		w := &wire{do: func(*http.Request) (*http.Response, error) { return says(http.StatusUnauthorized, nil), nil }}
		const why = "the forge answered 401: the token is not valid; see status.token_file"
		l := begin(t, dir, token, w)
		l.says(t, post("gitring/edge-1", ring.PostSuccess, "healthy"))
		require.Equal(t, map[string]string{"prod": why}, l.Trouble())
		l.end()
		l = begin(t, dir, token, w)
		require.Equal(t, map[string]string{"prod": why}, l.Trouble())
		w.behave(nil)
		l.says(t, post("gitring/edge-1/web", ring.PostSuccess, "healthy"))
		require.Empty(t, l.Trouble())
		l.end()
		l = begin(t, dir, token, w)
		require.Empty(t, l.Trouble())
		l.end()
	})
}

func TestNoMoreThanTwentyPostsAndAlwaysTheOutcome(t *testing.T) {
	dir, token := t.TempDir(), tokenFile(t, secret)
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		l := begin(t, dir, token, w)
		for i := range 60 {
			l.says(t, post("gitring/edge-1", ring.PostPending, fmt.Sprintf("%d/60 ready", i)))
			after(15 * time.Second)
		}
		progress := len(w.taken())
		require.Greater(t, progress, 15)
		l.says(t, post("gitring/edge-1", ring.PostSuccess, "healthy 60/60"))
		require.Equal(t, "gitring/edge-1 success", w.taken()[progress])
		require.LessOrEqual(t, len(w.taken()), 20)
		l.end()
	})
}
