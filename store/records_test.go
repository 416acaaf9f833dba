package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func crashAt(id ring.ServiceID, n int) ring.Crash {
	return ring.Crash{
		ID: id, Slot: 1, Instance: "c1", At: noon.Add(time.Duration(n) * time.Second), ExitCode: n, Class: "transient",
		Uptime: time.Minute, Crashes: n, Reason: "exited with code 1", Log: []string{fmt.Sprint("line ", n)}, Signature: "s",
	}
}

func TestACrashComesBackWholeAndTheNewestFirst(t *testing.T) {
	s := fresh(t)
	a, b, other := crashAt("web/web", 1), crashAt("web/db", 2), crashAt("web-2/web", 3)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{a, b, other}, []ring.Event{{Kind: ring.InstanceCrashed}}))
	for _, c := range []struct {
		of    ring.ServiceID
		limit int
		want  []ring.Crash
	}{
		{"", 0, []ring.Crash{other, b, a}},
		{"", 2, []ring.Crash{other, b}},
		{"web", 0, []ring.Crash{b, a}},
		{"web/web", 0, []ring.Crash{a}},
		{"we", 0, nil},
	} {
		got, err := s.Crashes(t.Context(), c.of, c.limit)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%q", c.of)
	}
	bare, err := s.CrashRecords(t.Context(), RecordQuery{Of: "web/web"})
	require.NoError(t, err)
	a.Log = nil
	require.Equal(t, []ring.Crash{a}, bare, "logs only when asked for")
	facts, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, ring.NewFacts(), facts, "no decision reads it")
}

func TestACrashWrittenAgainWithItsLogIsOne(t *testing.T) {
	s := fresh(t)
	c := crashAt("web/web", 1)
	bare := c
	bare.Log = nil
	require.NoError(t, s.Record(t.Context(), []ring.Fact{bare}, nil))
	require.NoError(t, s.Record(t.Context(), []ring.Fact{c}, nil))
	got, err := s.Crashes(t.Context(), "", 0)
	require.NoError(t, err)
	require.Equal(t, []ring.Crash{c}, got)
}

func TestNoServiceKeepsMoreCrashesOrRunsThanItsShare(t *testing.T) {
	s := fresh(t)
	var facts []ring.Fact
	for n := range 110 {
		facts = append(facts, crashAt("web/web", n), ring.Run{ID: "web/job", State: "failed", Ended: noon.Add(time.Duration(n) * time.Second), Log: []string{"x"}})
	}
	facts = append(facts, crashAt("web/db", -1000), ring.Run{ID: "web/other", State: "succeeded", Ended: noon.Add(-time.Hour)})
	require.NoError(t, s.Record(t.Context(), facts, nil))
	crashes, err := s.Crashes(t.Context(), "web/web", 0)
	require.NoError(t, err)
	require.Len(t, crashes, 100)
	require.Equal(t, 109, crashes[0].ExitCode)
	require.Equal(t, 10, crashes[99].ExitCode)
	runs, err := s.Runs(t.Context(), "web/job", 0)
	require.NoError(t, err)
	require.Len(t, runs, 50)
	require.Equal(t, noon.Add(109*time.Second), runs[0].Ended)
	require.Equal(t, []string{"x"}, runs[0].Log)
	all, err := s.Crashes(t.Context(), "web/db", 0)
	require.NoError(t, err)
	require.Len(t, all, 1, "a crash loop takes nothing from its neighbours")
	runs, err = s.Runs(t.Context(), "web/other", 3)
	require.NoError(t, err)
	require.Len(t, runs, 1)
}

func TestRecordsGoWhenTheyAreOld(t *testing.T) {
	s := fresh(t)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{crashAt("web/web", 0), crashAt("web/web", 10)}, nil))
	require.NoError(t, s.Trim(t.Context(), noon.Add(keepRecords+5*time.Second)))
	got, err := s.Crashes(t.Context(), "", 0)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, 10, got[0].ExitCode)
}

func TestARecordThatCannotBeReadIsNamedAndTheOthersAreThere(t *testing.T) {
	s := fresh(t)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{crashAt("web/web", 0), crashAt("web/db", 1)}, nil))
	s.sql(t, "UPDATE records SET value = '{' WHERE subject = 'web/db'")
	got, err := s.Crashes(t.Context(), "", 0)
	require.ErrorContains(t, err, `table "crash"`)
	require.Len(t, got, 1)
}

func TestResultsOfACheckAreBoundedInNumberAndAge(t *testing.T) {
	s := fresh(t)
	var rs []ring.Result
	for n := range 60 {
		at := noon.Add(time.Duration(n) * time.Second)
		rs = append(rs, ring.Result{Instance: "c1", Check: "up", OK: n%2 == 0, First: at, Last: at, Count: 1, Took: time.Millisecond})
	}
	old := ring.Result{Instance: "c1", Check: "alive", First: noon.Add(-keepResultsFor), Last: noon.Add(-keepResultsFor), Count: 3}
	require.NoError(t, s.SaveResults(t.Context(), append(rs, old)))
	last := rs[59]
	last.Last, last.Count = last.Last.Add(time.Hour), 700
	require.NoError(t, s.SaveResults(t.Context(), []ring.Result{last}), "the line goes on")
	got, err := s.Results(t.Context(), "c1")
	require.NoError(t, err)
	require.Len(t, got, 51)
	require.Equal(t, old, got[0])
	require.Equal(t, last, got[1])
	require.Equal(t, rs[10], got[50])
	require.NoError(t, s.Trim(t.Context(), noon.Add(time.Second)))
	got, err = s.Results(t.Context(), "c1")
	require.NoError(t, err)
	require.Len(t, got, 50)
	got, err = s.Results(t.Context(), "c2")
	require.NoError(t, err)
	require.Empty(t, got)
}

// A job that skips every minute for an hour keeps the runs before it, with their logs.
func TestWhatWasSkippedTakesNoRunAway(t *testing.T) {
	s := fresh(t)
	run := func(n int, state string) ring.Run {
		r := ring.Run{ID: "web/sync", Trigger: ring.OnSchedule, State: state, Reason: state, Ended: noon.Add(time.Duration(n) * time.Minute)}
		if state != "skipped" {
			r.Log = []string{fmt.Sprint("line ", n)}
		}
		return r
	}
	ran := run(0, "succeeded")
	require.NoError(t, s.Record(t.Context(), []ring.Fact{ran}, nil))
	for n := range 2 * keepRuns {
		require.NoError(t, s.Record(t.Context(), []ring.Fact{run(n+1, "skipped")}, nil))
	}
	all, err := s.Runs(t.Context(), "web/sync", 0)
	require.NoError(t, err)
	require.Len(t, all, keepRuns+1)
	require.Equal(t, run(2*keepRuns, "skipped"), all[0])
	got, err := s.RunRecords(t.Context(), RecordQuery{Of: "web/sync", Limit: 1, Logs: true, Ran: true})
	require.NoError(t, err)
	require.Equal(t, []ring.Run{ran}, got)
}

// Records of a clock that was ahead are as old as they are, once it is set right.
func TestAClockThatWasAheadHidesNoNewerRun(t *testing.T) {
	s := fresh(t)
	run := func(at time.Time) ring.Run {
		return ring.Run{ID: "web/sync", Trigger: ring.OnSchedule, State: "succeeded", Reason: "exit code 0", Ended: at, Log: []string{at.String()}}
	}
	for n := range keepRuns {
		require.NoError(t, s.Record(t.Context(), []ring.Fact{run(noon.AddDate(10, 0, n))}, nil))
	}
	now := run(noon)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{now}, nil))
	got, err := s.Runs(t.Context(), "web/sync", 0)
	require.NoError(t, err)
	require.Len(t, got, keepRuns)
	require.Equal(t, now, got[0])
}
