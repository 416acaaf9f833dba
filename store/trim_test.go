package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/gitring/gitring/ring"
)

func TestOldLinesGoAndTheChainStillHolds(t *testing.T) {
	s := written(t, 1500) // one a second; more than one step
	require.NoError(t, s.Trim(t.Context(), noon.Add(keepLinesFor)))
	require.Equal(t, 1500, s.count(t, "SELECT count(*) FROM journal"), "none is older yet")

	require.NoError(t, s.Trim(t.Context(), noon.Add(keepLinesFor+1201*time.Second)))
	require.NoError(t, s.CheckJournal(t.Context()))
	events, err := s.Events(t.Context(), EventQuery{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, []int64{1202}, seqs(events), "1201 were older")

	require.NoError(t, s.Trim(t.Context(), noon.Add(10*keepLinesFor)))
	require.Zero(t, s.count(t, "SELECT count(*) FROM journal"))
	require.NoError(t, s.CheckJournal(t.Context()))
	require.NoError(t, s.Record(t.Context(), nil, []ring.Event{{Kind: "x"}}))
	require.NoError(t, s.CheckJournal(t.Context()))
	events, err = s.Events(t.Context(), EventQuery{})
	require.NoError(t, err)
	require.Equal(t, []int64{1501}, seqs(events), "numbers go on")

	s.sql(t, "UPDATE chain SET head_hash = zeroblob(32)")
	require.Error(t, s.CheckJournal(t.Context()), "also over a journal that was trimmed")
}

func TestLinesBeyondTheirNumberGo(t *testing.T) {
	s := written(t, 1500)
	require.NoError(t, s.repeat(t.Context(), func(tx *gorm.DB) (int64, error) { return trimJournal(tx, noon, 100) }))
	require.Equal(t, 100, s.count(t, "SELECT count(*) FROM journal"))
	require.Equal(t, 1401, s.count(t, "SELECT min(seq) FROM journal"))
	require.NoError(t, s.CheckJournal(t.Context()))
}

func TestAClockThatWasSetBackKeepsLines(t *testing.T) {
	s := fresh(t)
	require.NoError(t, s.Record(t.Context(), nil, []ring.Event{{Kind: "a", At: noon}, {Kind: "b", At: noon.Add(-10 * keepLinesFor)}}))
	require.NoError(t, s.Trim(t.Context(), noon))
	require.Equal(t, 2, s.count(t, "SELECT count(*) FROM journal"), "no line goes before an older number")
}

func TestPostsGoWhenTheyAreDone(t *testing.T) {
	s := fresh(t)
	for n, context := range []string{"said", "dead", "waiting", "retrying"} {
		s.say(t, ring.Post{SHA: sha(n), Context: context, State: ring.PostSuccess})
	}
	key := func(n int, context string) string { return ring.PostKey(sha(n), context) }
	require.NoError(t, s.Posted(t.Context(), key(0, "said"), 1, noon))
	require.NoError(t, s.Dead(t.Context(), key(1, "dead"), 1, "404"))
	require.NoError(t, s.Retry(t.Context(), key(3, "retrying"), 1, "502", noon))
	left := func(after time.Duration) []string {
		require.NoError(t, s.Trim(t.Context(), noon.Add(after)))
		var contexts []string
		require.NoError(t, s.db.r.Raw("SELECT context FROM outbox ORDER BY sha").Scan(&contexts).Error)
		return contexts
	}
	require.Equal(t, []string{"said", "dead", "waiting", "retrying"}, left(keepDeadFor))
	require.Equal(t, []string{"said", "waiting", "retrying"}, left(keepDeadFor+1))
	require.Equal(t, []string{"waiting", "retrying"}, left(keepSaidFor+1))
	s.now = func() time.Time { return noon.Add(keepUnsaidFor) }
	s.say(t, ring.Post{SHA: sha(2), Context: "waiting", State: ring.PostFailure})
	require.Equal(t, []string{"waiting"}, left(keepUnsaidFor+1), "it has something new to say")
}

func TestCommitsBeyondTheirNumberGoButNoAnchor(t *testing.T) {
	s := fresh(t)
	for n := range 20 {
		_, err := s.FirstSeen(t.Context(), "prod", []ring.SHA{sha(n)}, noon.Add(time.Duration(n)))
		require.NoError(t, err)
	}
	s.trust(t, 0) // the oldest
	s.trust(t, 1)
	s.trust(t, 2)
	require.NoError(t, s.Trust(t.Context(), ring.Anchor{Source: "test", SHA: sha(0)}, []ring.Verified{{SHA: sha(0)}}, nil))
	require.NoError(t, s.Trust(t.Context(), anchored(0), nil, nil))
	for _, verified := range []bool{true, false} {
		require.NoError(t, s.repeat(t.Context(), func(tx *gorm.DB) (int64, error) { return trimCommits(tx, verified, 3) }))
	}
	require.Equal(t, 3, s.count(t, "SELECT count(*) FROM commits WHERE verified > 0"))
	require.Equal(t, 2, s.count(t, "SELECT count(*) FROM commits WHERE sha = ?", string(sha(0))))
	require.Zero(t, s.count(t, "SELECT count(*) FROM commits WHERE sha = ?", string(sha(1))))
	require.Equal(t, 3, s.count(t, "SELECT count(*) FROM commits WHERE verified = 0"))
	require.Equal(t, 1, s.count(t, "SELECT count(*) FROM commits WHERE sha = ?", string(sha(19))))
}

func TestTheAuditAndStreaksAreBounded(t *testing.T) {
	s := fresh(t)
	for n := range 20 {
		s.trust(t, n)
		s.now = func() time.Time { return noon.Add(time.Duration(n)) }
		require.NoError(t, s.SaveStreaks(t.Context(), []ring.Streak{{Instance: fmt.Sprint(n), Check: "http"}}))
	}
	for table, column := range map[string]string{"audit": "id", "streaks": "at"} {
		require.NoError(t, s.repeat(t.Context(), func(tx *gorm.DB) (int64, error) { return trimOldest(tx, table, column, 5) }))
		require.Equal(t, 5, s.count(t, "SELECT count(*) FROM "+table))
	}
	require.Equal(t, 1, s.count(t, "SELECT count(*) FROM streaks WHERE instance = '19'"))
	require.Equal(t, 1, s.count(t, "SELECT count(*) FROM audit WHERE to_sha = ?", string(sha(19))))
}

// manyVersions is a service that had n versions; the first is in force again.
func manyVersions(id ring.ServiceID, n int) []ring.Fact {
	var facts []ring.Fact
	for i := range n {
		v, written := ring.Version(fmt.Sprintf("1:%04d", i)), fmt.Sprintf("w%04d", i)
		facts = append(facts, ring.Verdict{ID: id, Version: v, Good: true}, ring.PinRow{ID: id, Written: written},
			ring.JobRun{ID: id, Version: v, State: "succeeded"})
	}
	return append(facts, ring.SlotRow{ID: id, Slot: 1}, ring.RolloutRow{ID: id, Version: "1:0001"})
}

func TestFactsOfManyVersionsAreBoundedAndThoseInUseStay(t *testing.T) {
	s := fresh(t)
	at := 0
	s.now = func() time.Time { return noon.Add(time.Duration(at) * time.Second) }
	for _, f := range append(manyVersions("web/web", 230), ring.InForce{App: ring.App{Name: "web", Services: []ring.Service{
		{Name: "web", Version: "1:0000", Written: "w0000"},
	}}}, ring.Good{AppName: "web", Service: ring.Service{Name: "web", Version: "1:0002", Written: "w0002"}}) {
		at++
		require.NoError(t, s.write(t.Context(), func(tx *gorm.DB) error { return s.put(tx, f) }))
	}
	require.NoError(t, s.Trim(t.Context(), noon.Add(time.Hour)))
	facts, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Len(t, facts.Verdicts, keepVerdicts+3, "in force, last good, and of the rollout")
	require.Len(t, facts.Pins, keepPins+2)
	require.Len(t, facts.Jobs, keepJobs+3)
	for _, v := range []string{"0000", "0001", "0002", "0180", "0229"} {
		require.Contains(t, facts.Verdicts, "web/web@1:"+v)
		require.Contains(t, facts.Jobs, "web/web@1:"+v)
	}
	require.NotContains(t, facts.Verdicts, "web/web@1:0179")
	require.Contains(t, facts.Pins, "web/web@w0000")
	require.Len(t, facts.Slots, 1)

	require.NoError(t, s.Trim(t.Context(), noon.Add(10*keepLeftJobs)))
	again, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Equal(t, facts, again, "of a service that is here, age does not count")
}

func TestFactsOfServicesThatLeftGo(t *testing.T) {
	s := fresh(t)
	require.NoError(t, s.Record(t.Context(), append(manyVersions("old/web", 3),
		ring.Good{AppName: "old", Service: ring.Service{Name: "web"}},
		ring.Approval{Commit: sha(1)}, ring.Intent{Instance: "c1"}), nil))
	require.NoError(t, s.Trim(t.Context(), noon.Add(keepLeft)))
	facts, err := s.Facts(t.Context())
	require.NoError(t, err)
	require.Len(t, facts.Verdicts, 3)

	require.NoError(t, s.Trim(t.Context(), noon.Add(keepLeft+1)))
	facts, err = s.Facts(t.Context())
	require.NoError(t, err)
	require.Empty(t, facts.Verdicts)
	require.Empty(t, facts.Pins)
	require.Empty(t, facts.Slots)
	require.Empty(t, facts.Rollouts)
	require.Empty(t, facts.Good)
	require.Len(t, facts.Jobs, 3, "a job that ran is remembered longer")
	require.Len(t, facts.Approvals, 1)
	require.Len(t, facts.Intents, 1)

	require.NoError(t, s.Trim(t.Context(), noon.Add(keepLeftJobs+1)))
	facts, err = s.Facts(t.Context())
	require.NoError(t, err)
	require.Empty(t, facts.Jobs)
	marks, err := s.JobMarks()
	require.NoError(t, err)
	require.Empty(t, marks, "or the next Open would bring them back")
}

func TestAFactWrittenMeanwhileIsNotTrimmed(t *testing.T) {
	s := fresh(t)
	require.NoError(t, s.Record(t.Context(), []ring.Fact{ring.Verdict{ID: "a/b", Version: "1:a"}}, nil))
	seen := factRow{Kind: "verdict", Key: "a/b@1:a", At: ns(noon)}
	s.now = func() time.Time { return noon.Add(time.Second) }
	require.NoError(t, s.Record(t.Context(), []ring.Fact{ring.Verdict{ID: "a/b", Version: "1:a", Good: true}}, nil))
	require.NoError(t, s.dropFacts(t.Context(), []factRow{seen}))
	require.Equal(t, 1, s.count(t, "SELECT count(*) FROM facts"))
}

func TestIntentsAndApprovalsAreBounded(t *testing.T) {
	var rows []factRow
	for n := range keepIntents + 10 {
		rows = append(rows, factRow{"intent", fmt.Sprint(n), int64(n)}, factRow{"approval", fmt.Sprint(n), int64(n)}, factRow{"app", fmt.Sprint(n), 0})
	}
	facts := ring.NewFacts()
	gone := map[string]int{}
	for _, r := range spent(rows, &facts, noon) {
		gone[r.Kind]++
		require.Less(t, r.At, int64(keepIntents+10-keepApprovals), "the oldest go")
	}
	require.Equal(t, map[string]int{"intent": 10, "approval": keepIntents + 10 - keepApprovals}, gone)
}

func TestRowsAreToldByTheirService(t *testing.T) {
	for _, f := range every(t) {
		table, key := f.Row()
		if table == "app" || table == "intent" || table == "approval" || table == postTable {
			require.Empty(t, serviceOf(factRow{Kind: table, Key: key}), table)
		}
	}
	for key, f := range map[string]ring.Fact{
		"verdict": ring.Verdict{ID: "a/b", Version: "1:c"}, "pin": ring.PinRow{ID: "a/b", Written: "c"},
		"job": ring.JobRun{ID: "a/b", Version: "1:c"}, "slot": ring.SlotRow{ID: "a/b", Slot: 12},
		"rollout": ring.RolloutRow{ID: "a/b"}, "good": ring.Good{AppName: "a", Service: ring.Service{Name: "b"}},
	} {
		table, k := f.Row()
		require.Equal(t, key, table)
		require.EqualValues(t, "a/b", serviceOf(factRow{Kind: table, Key: k}), k)
	}
}

func TestTrimEndsWithItsContext(t *testing.T) {
	s := written(t, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Trim(ctx, noon.Add(10*keepLinesFor)), context.Canceled)
	require.Equal(t, 10, s.count(t, "SELECT count(*) FROM journal"))
}

// The apps of the journal are those of all lines that were ever there since the start, and each
// line is looked at once.
func TestTheAppsThatTheJournalNames(t *testing.T) {
	s := fresh(t)
	named := func(want ...string) {
		t.Helper()
		got, err := s.AppsNamed(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	named()
	add := func(apps ...string) {
		t.Helper()
		for _, app := range apps {
			require.NoError(t, s.Record(t.Context(), nil, []ring.Event{{Kind: ring.AppInForce, App: app}}))
		}
	}
	add("web", "", "db", "web")
	named("db", "web")
	add("cache", "")
	named("cache", "db", "web")
	require.EqualValues(t, 6, s.named.upTo)
	named("cache", "db", "web")
}

// A line that a release wrote which knew of no doors has no word for one, and keeps its hash: what
// it holds is hashed as it was written, and never written anew.
func TestALineOfBeforeDoorsKeepsItsHash(t *testing.T) {
	s := fresh(t)
	const body = `{"seq":1,"at":"2025-11-21T12:00:00Z","kind":"override.began","app":"web","reason":"moving the disk","actor":"root"}`
	before := make([]byte, sha256.Size) // of the first line
	sum := sha256.Sum256(append(slices.Clone(before), body...))
	s.sql(t, "INSERT INTO journal (seq, at, prev, hash, body) VALUES (1, ?, ?, ?, ?)", noon.UnixNano(), before, sum[:], body)
	require.NoError(t, s.Record(t.Context(), nil, []ring.Event{{Kind: ring.OverrideEnded, App: "web", Actor: "token/ann"}}))
	require.NoError(t, s.CheckJournal(t.Context()))
	lines, err := s.HashedEvents(t.Context(), EventQuery{})
	require.NoError(t, err)
	require.Len(t, lines, 2)
	require.Equal(t, sum[:], lines[0].Hash)
	require.Equal(t, "root", lines[0].Actor)
	require.Empty(t, lines[0].Via)
	require.Equal(t, "token", lines[1].Via)
}
