package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// inOutbox is where a post is kept; its key is all that can disagree.
const inOutbox = "post"

func TestARowOfAnyTableThatCannotBeReadIsFoundAtTheStart(t *testing.T) {
	s := fresh(t)
	require.NoError(t, s.Record(t.Context(), every(t), nil))
	require.NoError(t, s.checkRows(t.Context()))
	for _, f := range every(t) {
		table, key := f.Row()
		for name, damage := range map[string]string{
			"cut":     "UPDATE facts SET value = substr(value, 1, length(value)/2) WHERE kind = ?",
			"empty":   "UPDATE facts SET value = '' WHERE kind = ?",
			"null":    "UPDATE facts SET value = 'null' WHERE kind = ?",
			"a list":  "UPDATE facts SET value = '[]' WHERE kind = ?",
			"renamed": "UPDATE facts SET key = key || '~' WHERE kind = ?",
		} {
			t.Run(table+"/"+name, func(t *testing.T) {
				named := fmt.Sprintf("%q of table %q", key, table)
				if name == "renamed" {
					named = fmt.Sprintf("%q of table %q", key+"~", table)
				}
				s.sql(t, "CREATE TEMP TABLE was AS SELECT * FROM facts")
				if table == inOutbox {
					named = fmt.Sprintf("%q of table %q", key+"~", table)
					s.sql(t, "UPDATE outbox SET key = key || '~'")
				} else {
					s.sql(t, damage, table)
				}
				err := s.checkRows(t.Context())
				require.ErrorContains(t, err, named)
				require.True(t, isDamage(err))
				s.sql(t, "DELETE FROM facts")
				s.sql(t, "INSERT INTO facts SELECT * FROM was")
				s.sql(t, "DROP TABLE was")
				s.sql(t, "UPDATE outbox SET key = rtrim(key, '~')")
				require.NoError(t, s.checkRows(t.Context()), "with the row put back all is well")
			})
		}
	}
}

// full is a closed state directory with a row in each table.
func full(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	require.NoError(t, s.Record(t.Context(), every(t), []ring.Event{{Kind: ring.JobStarted, App: "web"}}))
	s.trust(t, 1)
	s.trust(t, 2)
	require.NoError(t, s.Advance(t.Context(), ring.Receiver{Name: "chat", Cursor: 1, State: []byte("{}")},
		[]ring.Delivery{{ID: "chat-1", Receiver: "chat", Kind: "x", Body: []byte("{}"), Queued: noon}}))
	require.NoError(t, s.Close())
	return dir
}

// spoil runs SQL on a state directory that nobody has open.
func spoil(t *testing.T, dir string, all ...string) {
	t.Helper()
	_, raw, err := handle(filepath.Join(dir, fileName), writerQuery, 1)
	require.NoError(t, err)
	for _, q := range all {
		_, err := raw.ExecContext(t.Context(), q)
		require.NoError(t, err)
	}
	require.NoError(t, raw.Close())
}

func TestADatabaseWithARowThatCannotBeReadIsMovedAsideWhole(t *testing.T) {
	closed := full(t)
	var run ring.JobRun
	for _, f := range every(t) {
		if r, ok := f.(ring.JobRun); ok {
			run = r
		}
	}
	for _, c := range []struct{ name, do, says string }{
		{"JSON that was cut", `UPDATE facts SET value = '{"hidden": "hunter2' WHERE kind = 'adopted'`, `of table "adopted": its value is no JSON`},
		{"a field of another type", `UPDATE facts SET value = '{"name": 77123}' WHERE kind = 'kept'`, `of table "kept": its field name is of another type`},
		{"a time that is none", `UPDATE facts SET value = '{"at": "hunter2"}' WHERE kind = 'intent'`, `of table "intent": a field of it has no meaning`},
		{"a key that does not agree", "UPDATE facts SET key = 'x' WHERE kind = 'intent'", `row "x" of table "intent": its value is of another row`},
		{"a job's row", "UPDATE facts SET value = 'null' WHERE kind = 'job'", `row "web/migrate@1:abcdef" of table "job": its value is of another row`},
		{"a post", "UPDATE outbox SET sha = 'x'", `of table "post": its value is of another row`},
		{"many rows", "UPDATE facts SET value = ''", "; and "},
		{"a number that is text", "UPDATE outbox SET seq = 'hunter2'", `of table "outbox": a column of it is of another type`},
		{"a time of a commit", "UPDATE commits SET first_seen = 'hunter2'", `of table "commits": a column of it is of another type`},
		{"a receiver's cursor", "UPDATE receivers SET cursor = 'hunter2'", `of table "receivers": a column of it is of another type`},
		{"what waits for a receiver", "UPDATE deliveries SET line = 'hunter2'", `of table "deliveries": a column of it is of another type`},
		{"how often an anchor moved", "UPDATE anchors SET moves = 'hunter2'", `of table "anchors": a column of it is of another type`},
		{"an anchor's commit", "UPDATE anchors SET sha = 'hunter2', moves = 99", `row "prod" of table "anchors": it names no source and commit`},
		{"all facts", "DROP TABLE facts", `cannot read table "facts": it is gone`},
		{"what is kept for people", "DROP TABLE results; DROP TABLE records", `cannot read table "records": it is gone; table "results": it is gone`},
		{"the journal's end", "DELETE FROM chain", `of table "chain": it is gone`},
		{"the journal's end is before its last line", "UPDATE chain SET head_seq = head_seq - 1", `of table "chain": it says that the journal ends at line 2, and there is a line 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyOf(t, closed)
			spoil(t, dir, c.do)
			bad, err := os.ReadFile(filepath.Join(dir, fileName))
			require.NoError(t, err)
			s := opened(t, dir)
			require.Contains(t, s.Notice(), "the database was damaged (")
			require.Contains(t, s.Notice(), c.says)
			aside := filepath.Join(dir, fileName+".damaged-20251121T120000Z")
			require.Contains(t, s.Notice(), "it is kept as "+aside+", and a new one is made from Git, files and labels")
			require.Contains(t, s.Notice(), "what people had set by hand (holds, pauses, counts, approvals, adoptions) is to be set again")
			require.NotContains(t, s.Notice(), "hunter2", "a value may be anything")
			require.NotContains(t, s.Notice(), "77123", "a value may be anything")
			kept, err := os.ReadFile(aside)
			require.NoError(t, err)
			require.Equal(t, bad, kept, "nothing of it is lost")

			// What files tell is there, and nothing else: no row is believed alone.
			s.trusts(t, anchored(2))
			want := ring.NewFacts()
			want.Set(run)
			got, err := s.Facts(t.Context())
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got))
			facts, events := record(1000)
			require.NoError(t, s.Record(t.Context(), facts, events))
			require.NoError(t, s.CheckJournal(t.Context()))
			require.NoError(t, s.Close())
			require.Empty(t, opened(t, dir).Notice(), "it is told once")
		})
	}
	t.Run("a whole one is not", func(t *testing.T) {
		require.Empty(t, opened(t, copyOf(t, closed)).Notice())
	})
}

// History, and what receivers are to be told, would end at such a line for ever.
func TestALineOfTheJournalThatIsNoneIsDamageToo(t *testing.T) {
	dir := full(t)
	file := filepath.Join(dir, fileName)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	bad := bytes.Replace(raw, []byte(`"kind":"job.started"`), []byte(`"kind";"job.started"`), 1)
	require.NotEqual(t, raw, bad)
	require.NoError(t, os.WriteFile(file, bad, 0o600))
	s := opened(t, dir)
	require.Contains(t, s.Notice(), `cannot read a line of table "journal": SQL logic error: malformed JSON`)
	s.trusts(t, anchored(2))
	events, err := s.Events(t.Context(), EventQuery{Kinds: []string{ring.JobStarted}})
	require.NoError(t, err)
	require.Empty(t, events)
}

// An anchor moves in the database first; a crash in between must not cost it when the
// database is found unreadable at the next start.
func TestAnAnchorThatOnlyADatabaseWithBadRowsKnowsIsNotLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := opened(t, dir)
	s.trust(t, 1)
	file := filepath.Join(dir, "anchors", "prod")
	old, err := os.ReadFile(file)
	require.NoError(t, err)
	s.trust(t, 2)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{ring.Intent{Instance: "c"}}, nil))
	require.NoError(t, s.Close())
	for name, body := range map[string][]byte{"the file is old": old, "the file is torn": []byte("{")} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, dir)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "anchors", "prod"), body, 0o600))
			spoil(t, dir, "UPDATE facts SET value = '{'")
			s := opened(t, dir)
			require.Contains(t, s.Notice(), "the database was damaged")
			s.trusts(t, anchored(2))
		})
	}
}

func TestADatabaseWithATableOfANewerGitringIsLeftAlone(t *testing.T) {
	for name, spoilt := range map[string][]string{
		"its row alone":                        nil,
		"beside a row that cannot be read":     {"UPDATE facts SET value = '{' WHERE kind = 'good'"},
		"beside an anchor that cannot be read": {"UPDATE anchors SET sha = 'x'"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := full(t)
			spoil(t, dir, append([]string{`INSERT INTO facts VALUES ('lease', 'web/web', '{"id": "web/web"}', 1)`}, spoilt...)...)
			before, err := os.ReadFile(filepath.Join(dir, fileName))
			require.NoError(t, err)
			_, err = Open(t.Context(), dir)
			require.EqualError(t, err, "cannot use the database "+filepath.Join(dir, fileName)+
				`: a newer gitring has written it, this one does not know the table "lease" of its row "web/web"; run that one, or move the file, its -wal and its -shm away: then a new one is made from Git, files and labels, and what people had set by hand (holds, pauses, counts, approvals, adoptions) is to be set again`)
			after, err := os.ReadFile(filepath.Join(dir, fileName))
			require.NoError(t, err)
			require.Equal(t, before, after, "the newer one finds what it wrote")
			aside, err := filepath.Glob(filepath.Join(dir, "*damaged*"))
			require.NoError(t, err)
			require.Empty(t, aside)

			require.NoError(t, os.Remove(filepath.Join(dir, fileName)))
			s := opened(t, dir)
			s.trusts(t, anchored(2))
		})
	}
}
