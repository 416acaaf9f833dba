package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func phased(state, phase, description string) ring.Post {
	p := say(state, description)
	p.Phase = phase
	return p
}

func TestAPhaseIsKeptAndIsANewWord(t *testing.T) {
	s := fresh(t)
	s.say(t, say(ring.PostPending, "0/2 ready"))
	require.NoError(t, s.Posted(t.Context(), forgeKey, 1, noon))
	s.say(t, phased(ring.PostPending, ring.PostRunning, "0/2 ready"))
	r := s.one(t, "0/2 ready")
	require.Equal(t, ring.PostRunning, r.Post.Phase)
	require.Empty(t, r.SaidPhase)
	require.NoError(t, s.Posted(t.Context(), forgeKey, r.Seq, noon))
	require.Empty(t, s.due(t))
	facts, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, ring.PostRunning, facts.Posts[forgeKey].Phase)
	s.say(t, say(ring.PostPending, "0/2 ready"))
	require.Equal(t, ring.PostRunning, s.one(t, "0/2 ready").SaidPhase)
}

func TestAnOutcomeDoesNotWaitForTheTurnOfProgress(t *testing.T) {
	s := fresh(t)
	s.say(t, say(ring.PostPending, "1/4"))
	require.NoError(t, s.Retry(t.Context(), forgeKey, 1, "", noon.Add(2*time.Hour)))
	s.say(t, say(ring.PostPending, "2/4"))
	require.Empty(t, s.due(t), "progress goes on waiting")
	s.say(t, say(ring.PostSuccess, "done"))
	s.one(t, "done")
}

func TestOurOwnTroubleCountsAsProgress(t *testing.T) {
	s := fresh(t)
	for n := range maxProgress {
		s.say(t, say(ring.PostPending, fmt.Sprint(n)))
		require.NoError(t, s.Posted(t.Context(), forgeKey, s.one(t, fmt.Sprint(n)).Seq, noon))
	}
	s.say(t, phased(ring.PostError, ring.PostTrouble, "docker unavailable; retrying"))
	require.Empty(t, s.due(t), "an engine that comes and goes must not use up what the forge takes")
	s.say(t, phased(ring.PostError, ring.PostSuperseded, "superseded by ab12cd3"))
	s.one(t, "superseded by ab12cd3")
}

func TestDeploymentsAreBoundedByThemselves(t *testing.T) {
	s := fresh(t)
	for n := range maxContexts + 10 {
		app := fmt.Sprintf("app%d", n)
		s.say(t,
			ring.Post{SHA: sha(1), Context: "gitring/edge-1/" + app, State: ring.PostPending},
			ring.Post{SHA: sha(1), Context: ring.DeploymentContext("edge-1", app), State: ring.PostPending},
		)
	}
	require.Len(t, s.due(t), 2*maxContexts)
	s.say(t, ring.Post{SHA: sha(1), Context: ring.DeploymentContext("edge-1", "app39"), State: ring.PostFailure})
	require.Len(t, s.due(t), 2*maxContexts+1)
}

func TestWhatTheForgeCallsARowIsRemembered(t *testing.T) {
	s := fresh(t)
	s.say(t, say(ring.PostPending, "1/4"))
	require.NoError(t, s.Remember(t.Context(), forgeKey, "4711"))
	require.NoError(t, s.Remember(t.Context(), "gone", "1"))
	s.say(t, say(ring.PostSuccess, "done"))
	require.Equal(t, "4711", s.one(t, "done").Remote)
}

func TestWhyTheNewestPostOfASourceIsNeverSaid(t *testing.T) {
	s := fresh(t)
	at := noon
	s.now = func() time.Time { return at }
	post := func(source string, n int) string {
		s.say(t, ring.Post{Source: source, SHA: sha(n), Context: "gitring/h", State: ring.PostSuccess})
		at = at.Add(time.Second)
		return ring.PostKey(sha(n), "gitring/h")
	}
	require.NoError(t, s.Dead(t.Context(), post("prod", 1), 1, "401"))
	require.NoError(t, s.Posted(t.Context(), post("lab", 2), 1, at))
	unsaid := func() map[string]string {
		why, _, err := s.Unsaid(t.Context())
		require.NoError(t, err)
		return why
	}
	require.Equal(t, map[string]string{"prod": "401"}, unsaid())
	post("prod", 3)
	require.Equal(t, map[string]string{"prod": "401"}, unsaid(), "nobody knows better yet")
	require.NoError(t, s.Posted(t.Context(), ring.PostKey(sha(3), "gitring/h"), 1, at))
	require.Empty(t, unsaid())
}

// With a post on its way while the next is queued, and a no that is none after all.
func TestAllThatIsSaidOfACommitAndContextAreTwentyPosts(t *testing.T) {
	s := fresh(t)
	sent := 0
	for n := range 50 {
		s.say(t, say(ring.PostPending, fmt.Sprintf("%d/100", 2*n)))
		for _, r := range s.due(t) {
			s.say(t, say(ring.PostPending, fmt.Sprintf("%d/100", 2*n+1))) // while it is on its way
			sent++
			require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
		}
	}
	for _, r := range s.due(t) {
		sent++
		require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
	}
	for _, state := range []string{ring.PostFailure, ring.PostSuccess} {
		s.say(t, say(state, "the end"))
		r := s.one(t, "the end")
		sent++
		require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
	}
	require.LessOrEqual(t, sent, 20)
	require.Greater(t, sent, 15)
}

// The clock was a year ahead when the forge did not answer, and is put right.
func TestARowOfAClockThatWasSetBackIsDue(t *testing.T) {
	s := fresh(t)
	s.now = func() time.Time { return noon.Add(365 * 24 * time.Hour) }
	s.say(t, say(ring.PostSuccess, "done"))
	require.NoError(t, s.Retry(t.Context(), forgeKey, 1, "502", s.now().Add(time.Minute)))
	s.now = func() time.Time { return noon }
	s.one(t, "done")
	require.NoError(t, s.Retry(t.Context(), forgeKey, 1, "429", noon.Add(25*time.Hour)))
	require.Empty(t, s.due(t), "as long as a forge may ask to be left alone")
}

func TestWhatIsNeverSaidIsKnownOfStatusesAndDeploymentsApart(t *testing.T) {
	s := fresh(t)
	at := noon
	s.now = func() time.Time { return at }
	d := say(ring.PostSuccess, "healthy")
	d.Context = ring.DeploymentContext("edge-1", "web")
	s.say(t, d)
	require.NoError(t, s.Dead(t.Context(), ring.PostKey(d.SHA, d.Context), 1, "403"))
	at = at.Add(time.Second)
	s.say(t, say(ring.PostSuccess, "done"))
	require.NoError(t, s.Posted(t.Context(), forgeKey, 1, at))
	statuses, deployments, err := s.Unsaid(t.Context())
	require.NoError(t, err)
	require.Empty(t, statuses)
	require.Equal(t, map[string]string{"prod": "403"}, deployments)
}
