package store

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// written is a journal of n lines, every third of app web.
func written(t *testing.T, n int) *Store {
	t.Helper()
	s := fresh(t)
	var events []ring.Event
	for i := range n {
		e := ring.Event{Kind: ring.InstanceStep, App: []string{"web", "db", ""}[i%3], Reason: fmt.Sprint(i + 1), At: noon.Add(time.Duration(i) * time.Second)}
		events = append(events, e)
	}
	require.NoError(t, s.Record(t.Context(), nil, events[:n/2]))
	require.NoError(t, s.Record(t.Context(), nil, events[n/2:]))
	return s
}

func seqs(events []ring.Event) []int64 {
	var all []int64
	for _, e := range events {
		all = append(all, e.Seq)
	}
	return all
}

func TestEventsComeBackInOrder(t *testing.T) {
	s := written(t, 9)
	for _, c := range []struct {
		q    EventQuery
		want []int64
	}{
		{EventQuery{}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{EventQuery{After: 7}, []int64{8, 9}},
		{EventQuery{After: 9}, nil},
		{EventQuery{Limit: 2}, []int64{1, 2}},
		{EventQuery{Limit: 2, Desc: true}, []int64{9, 8}},
		{EventQuery{App: "web"}, []int64{1, 4, 7}},
		{EventQuery{App: "web", After: 1, Desc: true, Limit: 1}, []int64{7}},
		{EventQuery{App: "nobody' OR 1=1 --"}, nil},
	} {
		got, err := s.Events(t.Context(), c.q)
		require.NoError(t, err)
		require.Equal(t, c.want, seqs(got), "%+v", c.q)
	}
}

func TestKindsAreChosenHoweverManyOthersCameSince(t *testing.T) {
	s := fresh(t)
	events := []ring.Event{{Kind: ring.CommitAccepted, App: "web"}}
	for range 50 {
		events = append(events, ring.Event{Kind: ring.InstanceStep, App: "web"})
	}
	require.NoError(t, s.Record(t.Context(), nil, append(events, ring.Event{Kind: ring.CommitRefused, App: "web"})))
	got, err := s.Events(t.Context(), EventQuery{App: "web", Kinds: []string{ring.CommitAccepted, ring.CommitRefused}, Limit: 2, Desc: true})
	require.NoError(t, err)
	require.Equal(t, []int64{52, 1}, seqs(got))
}

func TestAnEventComesBackAsItWasInUTC(t *testing.T) {
	s := fresh(t)
	berlin := time.FixedZone("Berlin", 3600)
	e := ring.Event{
		Seq: 77, At: noon.In(berlin).Add(5), Kind: ring.JobFailed, Source: "prod", App: "web", Service: "web", Slot: 3,
		Version: "1:a", Commit: sha(1), Actor: "alice", Via: "socket", Reason: "exit 1 <\"ü\">\n",
	}
	require.NoError(t, s.Record(t.Context(), nil, []ring.Event{e, {Kind: ring.DaemonStarted}}))
	got, err := s.Events(t.Context(), EventQuery{})
	require.NoError(t, err)
	e.Seq, e.At = 1, noon.Add(5)
	require.Equal(t, []ring.Event{e, {Seq: 2, At: noon, Kind: ring.DaemonStarted}}, got)
}

func TestWhoeverChangesTheJournalIsFoundOut(t *testing.T) {
	const forged = `'{"seq":1,"at":"2025-11-21T12:00:00Z","kind":"instance.step","reason":"nothing"}'`
	const open = "DROP TRIGGER journal_stays; DROP TRIGGER journal_kept; DROP TRIGGER journal_follows; DROP TRIGGER journal_head; DROP TRIGGER chain_base; "
	for _, c := range []struct{ name, sql, says string }{
		{"a word", "UPDATE journal SET body = replace(body, '\"5\"', '\"6\"') WHERE seq = 5", "line 5 was changed"},
		{"a time", "UPDATE journal SET at = at + 1 WHERE seq = 5", "line 5 has another number or time than it says"},
		{"a hash", "UPDATE journal SET hash = zeroblob(32) WHERE seq = 5", "line 5 was changed"},
		{"a word, and its hash made anew", fmt.Sprintf("UPDATE journal SET body = '{}', hash = x'%x' WHERE seq = 1", sha256.Sum256(append(make([]byte, 32), "{}"...))), "line 1 has another number"},
		{"a word, its hash and what follows on it", fmt.Sprintf("UPDATE journal SET body = %[1]s, hash = x'%[2]x' WHERE seq = 1", forged, sha256.Sum256(append(make([]byte, 32), forged[1:len(forged)-1]...))), "line 2 does not follow the one before it"},
		{"a line is gone", "DELETE FROM journal WHERE seq = 5", "line 5 is missing"},
		{"the first line is gone", "DELETE FROM journal WHERE seq = 1", "line 1 is missing"},
		{"the last line is gone", "DELETE FROM journal WHERE seq = 9", "line 9 is missing"},
		{"all lines are gone", "DELETE FROM journal", "line 1 is missing"},
		{"a line more", "INSERT INTO journal (seq, at, prev, hash, body) SELECT 10, at, hash, hash, body FROM journal WHERE seq = 9", "line 10 was changed"},
		{"two lines change places", "UPDATE journal SET seq = -1 WHERE seq = 5; UPDATE journal SET seq = 5 WHERE seq = 6; UPDATE journal SET seq = 6 WHERE seq = -1", "line 5 does not follow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := written(t, 9)
			require.NoError(t, s.CheckJournal(t.Context()))
			s.sql(t, open+c.sql)
			require.ErrorContains(t, s.CheckJournal(t.Context()), c.says)
		})
	}
}

func TestTheJournalOnlyGrows(t *testing.T) {
	for name, sql := range map[string]string{
		"update":         "UPDATE journal SET body = '{}' WHERE seq = 5",
		"delete":         "DELETE FROM journal WHERE seq = 1",
		"replace":        "INSERT OR REPLACE INTO journal (seq, at, prev, hash, body) SELECT seq, at, prev, hash, '{}' FROM journal WHERE seq = 9",
		"a gap":          "INSERT INTO journal (seq, at, prev, hash, body) SELECT 11, at, hash, hash, body FROM journal WHERE seq = 9",
		"a wrong base":   "UPDATE chain SET base_seq = 5, base_hash = zeroblob(32)",
		"a base ahead":   "UPDATE chain SET base_seq = 50",
		"another chain":  "INSERT INTO chain VALUES (2, 0, zeroblob(32), 0, zeroblob(32))",
		"no hash before": "INSERT INTO journal (seq, at, prev, hash, body) SELECT 10, at, zeroblob(32), hash, body FROM journal WHERE seq = 9",
	} {
		t.Run(name, func(t *testing.T) {
			s := written(t, 9)
			_, err := s.db.rawW.ExecContext(t.Context(), sql)
			require.Error(t, err)
			require.NoError(t, s.CheckJournal(t.Context()))
		})
	}
}
