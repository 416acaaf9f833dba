package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// Rows that people alone read keep nothing from going on: each is named without its
// value, the others are there, and with its age it goes.
func TestARowForPeopleThatCannotBeReadIsLeftOutAndSaid(t *testing.T) {
	for _, c := range []struct{ name, do, says string }{
		{"a crash's value", `UPDATE records SET value = '{"reason": 77123}' WHERE kind = 'crash'`, `table "crash": its field reason is of another type`},
		{"a crash's log", `UPDATE records SET log = '["hunter2' WHERE kind = 'crash'`, `table "crash": its value is no JSON`},
		{"a time in it", `UPDATE records SET value = '{"at": "hunter2"}' WHERE kind = 'crash'`, `table "crash": a field of it has no meaning`},
		{"a run", `UPDATE records SET value = x'00ff' WHERE kind = 'run'`, `table "run": its value is no JSON`},
		{"an answer", `UPDATE results SET value = '{"instance": "hunter2"}'`, `row "c1 up" of table "results": its value is of another row`},
		{"a streak", `UPDATE streaks SET value = '{"instance": "hunter2"}'`, `row "c1 up" of table "streaks": its value is of another row`},
		{"an age that is none", `UPDATE records SET at = 'hunter2'`, ""},
		{"a moment that is none", `UPDATE results SET first = 'hunter2', last = 'hunter2'`, ""},
		{"a streak's age", `UPDATE streaks SET at = 'hunter2'`, ""},
		{"a move's time", `UPDATE audit SET at = 'hunter2'`, ""},
		{"a line's time", `DROP TRIGGER journal_stays; UPDATE journal SET at = 'hunter2' WHERE seq = 1`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := full(t)
			s := opened(t, dir)
			run := ring.Run{ID: "web/job", Trigger: ring.OnSchedule, State: "failed", Ended: noon}
			require.NoError(t, s.Record(t.Context(), []ring.Fact{crashAt("web/web", 0), run}, nil))
			require.NoError(t, s.SaveResults(t.Context(), []ring.Result{{Instance: "c1", Check: "up", First: noon, Last: noon}}))
			require.NoError(t, s.SaveStreaks(t.Context(), []ring.Streak{{Instance: "c1", Check: "up"}}))
			require.NoError(t, s.Close())
			spoil(t, dir, c.do)

			s = opened(t, dir)
			require.Empty(t, s.Notice(), "no decision reads it")
			require.NoError(t, s.Record(t.Context(), []ring.Fact{crashAt("web/db", 1)}, nil))
			require.NoError(t, s.SaveResults(t.Context(), []ring.Result{{Instance: "c1", Check: "alive", First: noon, Last: noon}}))
			require.NoError(t, s.SaveStreaks(t.Context(), []ring.Streak{{Instance: "c1", Check: "alive"}}))
			crashes, err1 := s.Crashes(t.Context(), "web/db", 0)
			_, err2 := s.Crashes(t.Context(), "", 0)
			_, err3 := s.Runs(t.Context(), "", 0)
			results, err4 := s.Results(t.Context(), "c1")
			streaks, err5 := s.Streaks(t.Context())
			moves, err := s.Audit(t.Context(), "prod", 10)
			require.NoError(t, err)
			require.NoError(t, err1)
			require.Len(t, crashes, 1)
			require.NotEmpty(t, results)
			require.NotEmpty(t, streaks)
			require.Len(t, moves, 2)
			var said string
			for _, err := range []error{err2, err3, err4, err5} {
				if err != nil {
					var out *LeftOut
					require.ErrorAs(t, err, &out)
					require.False(t, isDamage(err), "the database is not lost for it")
					said += err.Error()
				}
			}
			require.Contains(t, said, c.says)
			require.Equal(t, c.says == "", said == "")
			require.NotContains(t, said, "hunter2", "a value may be anything")
			require.NotContains(t, said, "77123", "a value may be anything")

			s.now = func() time.Time { return noon.AddDate(0, 4, 0) }
			require.NoError(t, s.Trim(t.Context(), s.now()))
			require.Zero(t, s.count(t, "SELECT count(*) FROM records")+s.count(t, "SELECT count(*) FROM results")+s.count(t, "SELECT count(*) FROM journal"))
		})
	}
}
