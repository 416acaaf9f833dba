package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

var forgeKey = ring.PostKey(sha(1), "gitring/edge-1/web")

func say(state, description string) ring.Post {
	return ring.Post{Source: "prod", SHA: sha(1), Context: "gitring/edge-1/web", State: state, Description: description, At: noon}
}

func (s *Store) say(t *testing.T, posts ...ring.Post) {
	t.Helper()
	var facts []ring.Fact
	for _, p := range posts {
		facts = append(facts, p)
	}
	require.NoError(t, s.Record(t.Context(), facts, nil))
}

// due is what is to be said an hour after noon.
func (s *Store) due(t *testing.T) []ring.OutboxRow {
	t.Helper()
	rows, err := s.Due(t.Context(), noon.Add(time.Hour), 100)
	require.NoError(t, err)
	return rows
}

func (s *Store) one(t *testing.T, description string) ring.OutboxRow {
	t.Helper()
	rows := s.due(t)
	require.Len(t, rows, 1)
	require.Equal(t, description, rows[0].Post.Description)
	return rows[0]
}

func TestTheLatestPostWins(t *testing.T) {
	s := fresh(t)
	s.say(t, say(ring.PostPending, "1/4"), say(ring.PostPending, "2/4"))
	s.say(t, say(ring.PostSuccess, "done"))
	r := s.one(t, "done")
	require.Equal(t, ring.OutboxRow{Key: forgeKey, Seq: 3, Post: say(ring.PostSuccess, "done")}, r)
	facts, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]ring.Post{forgeKey: say(ring.PostSuccess, "done")}, facts.Posts)

	require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
	require.Empty(t, s.due(t))
	facts, err = s.Facts(t.Context())
	require.NoError(t, err)
	require.Len(t, facts.Posts, 1, "what was said is known to be said")
}

func TestSayingTheSameAgainChangesNothing(t *testing.T) {
	s := fresh(t)
	s.say(t, say(ring.PostPending, "1/4"))
	again := say(ring.PostPending, "1/4")
	again.At = noon.Add(time.Minute)
	s.say(t, again)
	r := s.one(t, "1/4")
	require.EqualValues(t, 1, r.Seq)
	require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
	s.say(t, again)
	require.Empty(t, s.due(t))

	s.say(t, say(ring.PostPending, "2/4"), say(ring.PostPending, "1/4"))
	r = s.one(t, "1/4")
	require.Equal(t, "1/4", r.SaidDescription, "back to what the forge shows")
	require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
	require.Empty(t, s.due(t))
	require.Equal(t, 1, s.count(t, "SELECT sent FROM outbox"), "it was not sent again")
}

func TestAnAnswerToAnOlderPostLeavesTheNewerOneDue(t *testing.T) {
	t.Run("posted", func(t *testing.T) {
		s := fresh(t)
		s.say(t, say(ring.PostPending, "1/4"))
		r := s.one(t, "1/4")
		s.say(t, say(ring.PostSuccess, "done"))
		require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
		require.Equal(t, 1, s.one(t, "done").Sent)
	})
	t.Run("posted, and the newer one is what the forge showed before", func(t *testing.T) {
		s := fresh(t)
		s.say(t, say(ring.PostSuccess, "A"))
		require.NoError(t, s.Posted(t.Context(), forgeKey, s.one(t, "A").Seq, noon))
		s.say(t, say(ring.PostFailure, "B"))
		r := s.one(t, "B")
		s.say(t, say(ring.PostSuccess, "A"))
		require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
		require.Empty(t, s.one(t, "A").SaidDescription, "the forge shows B")
	})
	t.Run("tried without a clear outcome, likewise", func(t *testing.T) {
		s := fresh(t)
		s.say(t, say(ring.PostSuccess, "A"))
		require.NoError(t, s.Posted(t.Context(), forgeKey, s.one(t, "A").Seq, noon))
		s.say(t, say(ring.PostFailure, "B"))
		r := s.one(t, "B")
		s.say(t, say(ring.PostSuccess, "A"))
		require.NoError(t, s.Retry(t.Context(), r.Key, r.Seq, "timed out", noon))
		require.Empty(t, s.one(t, "A").SaidDescription, "the forge may show B")
	})
	t.Run("dead", func(t *testing.T) {
		s := fresh(t)
		s.say(t, say(ring.PostPending, "1/4"))
		r := s.one(t, "1/4")
		s.say(t, say(ring.PostSuccess, "done"))
		require.NoError(t, s.Dead(t.Context(), r.Key, r.Seq, "422"))
		s.one(t, "done")
	})
}

func TestARetryWaitsAndCounts(t *testing.T) {
	s := fresh(t)
	s.say(t, say(ring.PostPending, "1/4"))
	later := noon.Add(2 * time.Hour)
	require.NoError(t, s.Retry(t.Context(), forgeKey, 1, "502", noon.Add(time.Minute)))
	require.NoError(t, s.Retry(t.Context(), forgeKey, 1, "502", later))
	require.Empty(t, s.due(t))
	s.say(t, say(ring.PostSuccess, "done"))
	require.Empty(t, s.due(t), "a forge that asked to be left alone is, whatever is new")
	rows, err := s.Due(t.Context(), later, 1)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Equal(t, "done", rows[0].Post.Description)
	require.Zero(t, rows[0].Attempts, "they count for one post")
	require.Equal(t, later, rows[0].Next)
}

func TestARowThatIsPutOffWasNotTried(t *testing.T) {
	s := fresh(t)
	s.say(t, say(ring.PostPending, "1/4"))
	require.NoError(t, s.Posted(t.Context(), forgeKey, 1, noon))
	s.say(t, say(ring.PostPending, "2/4"))
	require.NoError(t, s.Retry(t.Context(), forgeKey, 2, "", noon.Add(time.Minute)))
	r := s.one(t, "2/4")
	require.Zero(t, r.Attempts)
	require.Equal(t, "1/4", r.SaidDescription, "what the forge shows is still known")
	require.Equal(t, noon.Add(time.Minute), r.Next)
}

func TestAnAnswerMayComeTwice(t *testing.T) {
	s := fresh(t)
	s.say(t, say(ring.PostPending, "1/4"))
	for range 2 {
		require.NoError(t, s.Posted(t.Context(), forgeKey, 1, noon))
	}
	s.say(t, say(ring.PostSuccess, "done"))
	require.NoError(t, s.Posted(t.Context(), forgeKey, 2, noon))
	require.NoError(t, s.Posted(t.Context(), forgeKey, 1, noon), "late")
	require.Empty(t, s.due(t))
	require.Equal(t, 2, s.count(t, "SELECT sent FROM outbox"))
}

func TestADeadPostIsSilentUntilThereIsSomethingNew(t *testing.T) {
	s := fresh(t)
	s.say(t, say(ring.PostPending, "1/4"))
	require.NoError(t, s.Dead(t.Context(), forgeKey, 1, "401"))
	require.Empty(t, s.due(t))
	s.say(t, say(ring.PostPending, "1/4"))
	require.Empty(t, s.due(t))
	s.say(t, say(ring.PostSuccess, "done"))
	s.one(t, "done")
}

func TestAnswersToARowThatIsGoneAreNoError(t *testing.T) {
	s := fresh(t)
	require.NoError(t, s.Posted(t.Context(), "x", 1, noon))
	require.NoError(t, s.Retry(t.Context(), "x", 1, "", noon))
	require.NoError(t, s.Dead(t.Context(), "x", 1, ""))
	require.Zero(t, s.count(t, "SELECT count(*) FROM outbox"))
}

func TestProgressIsDroppedBeyondTheBudgetAndAnOutcomeNever(t *testing.T) {
	s := fresh(t)
	sent := 0
	for n := range 50 {
		s.say(t, say(ring.PostPending, fmt.Sprintf("%d/50", n)))
		for _, r := range s.due(t) {
			sent++
			require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
		}
	}
	require.Equal(t, maxProgress, sent)
	for n, state := range []string{ring.PostFailure, ring.PostError, ring.PostSuccess} {
		s.say(t, say(state, "the end"))
		r := s.one(t, "the end")
		require.Equal(t, maxProgress+n, r.Sent)
		s.say(t, say(ring.PostPending, "once more"))
		s.one(t, "the end")
		require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, noon))
	}
}

func TestProgressOfManyContextsIsDroppedAndTheHostsOwnNever(t *testing.T) {
	s := fresh(t)
	for n := range maxContexts + 10 {
		s.say(t, ring.Post{SHA: sha(1), Context: fmt.Sprintf("gitring/edge-1/app%d", n), State: ring.PostPending})
	}
	require.Len(t, s.due(t), maxContexts)
	s.say(t,
		ring.Post{SHA: sha(1), Context: "gitring/edge-1", State: ring.PostPending},
		ring.Post{SHA: sha(1), Context: "gitring/edge-1/app35", State: ring.PostFailure},
		ring.Post{SHA: sha(2), Context: "gitring/edge-1/app35", State: ring.PostPending},
	)
	require.Len(t, s.due(t), maxContexts+3)
}

func TestDueAreTheLongestWaitingFirst(t *testing.T) {
	s := fresh(t)
	for n := range 5 {
		s.now = func() time.Time { return noon.Add(time.Duration(-n) * time.Minute) }
		s.say(t, ring.Post{SHA: sha(n), Context: "gitring/h", State: ring.PostSuccess})
	}
	require.NoError(t, s.Retry(t.Context(), ring.PostKey(sha(4), "gitring/h"), 1, "502", noon))
	rows, err := s.Due(t.Context(), noon, 3)
	require.NoError(t, err)
	var got []ring.SHA
	for _, r := range rows {
		got = append(got, r.Post.SHA)
	}
	require.Equal(t, []ring.SHA{sha(3), sha(2), sha(1)}, got)
}

// Who was told what stands in the journal once: outcomes alone, and only what a forge took or refused.
func TestTheJournalSaysWhichOutcomeAForgeTook(t *testing.T) {
	s := fresh(t)
	told := func() (lines []string) {
		events, err := s.Events(t.Context(), EventQuery{Kinds: []string{ring.ForgeTold, ring.ForgeUntold}})
		require.NoError(t, err)
		for _, e := range events {
			require.Equal(t, []string{"prod", string(sha(1)), "web"}, []string{e.Source, string(e.Commit), e.App})
			require.False(t, e.Began.IsZero())
			require.False(t, e.At.Before(e.Began), "%s before %s", e.At, e.Began)
			lines = append(lines, e.Kind+" "+e.Reason)
		}
		return lines
	}
	s.say(t, say(ring.PostPending, "1/4"))
	r := s.one(t, "1/4")
	later := noon.Add(time.Minute)
	require.NoError(t, s.Told(t.Context(), r.Key, r.Seq, later))
	require.Empty(t, told(), "progress is no outcome")

	s.say(t, say(ring.PostSuccess, "done"))
	first := s.one(t, "done")
	s.say(t, say(ring.PostFailure, "not healthy"))
	require.NoError(t, s.Told(t.Context(), first.Key, first.Seq, later))
	require.Empty(t, told(), "a newer outcome took its place on the way, and is told next")
	r = s.one(t, "not healthy")
	for range 2 { // the answer may be noted twice
		require.NoError(t, s.Told(t.Context(), r.Key, r.Seq, later))
	}
	require.Equal(t, []string{"forge.told failure as gitring/edge-1/web"}, told())

	s.say(t, say(ring.PostSuccess, "again"))
	r = s.one(t, "again")
	require.NoError(t, s.Posted(t.Context(), r.Key, r.Seq, later))
	require.Len(t, told(), 1, "nobody is to be told any more")

	s.say(t, say(ring.PostFailure, "not healthy"))
	r = s.one(t, "not healthy")
	for range 2 {
		require.NoError(t, s.Dead(t.Context(), r.Key, r.Seq, "the forge answered 422"))
	}
	require.Equal(t, []string{"forge.told failure as gitring/edge-1/web", "forge.given_up failure as gitring/edge-1/web: the forge answered 422"}, told())
}
