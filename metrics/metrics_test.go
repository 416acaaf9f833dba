package metrics

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// series reads a page with rules of its own: every line that is no comment, by name and labels.
func series(t *testing.T, text string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " ")
		v, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		require.NoError(t, err, line)
		require.NotContains(t, out, line[:at], "a series twice")
		out[line[:at]] = v
	}
	return out
}

// host is a status with one of everything.
func host() ring.Status {
	return ring.Status{
		Host: "edge-1", Gitring: "0.5.0", At: noon, Engine: "cannot reach the engine",
		Sources: []ring.SourceStatus{{
			Name: "prod", Sync: ring.SyncDegraded, Checked: noon.Add(-time.Minute), Committed: noon.Add(-time.Hour), Commit: "1234567890123456789012345678901234567890",
			Signer: "alice@example.org", Refusal: &ring.Refusal{Code: ring.Unsigned},
			Conditions: []ring.Condition{{Type: ring.ConditionStale, Status: ring.ConditionTrue}},
			Apps: []ring.AppStatus{{
				Name: "web", Health: ring.Degraded,
				Services: []ring.ServiceStatus{
					{
						Name: "api", Kind: ring.Worker, Phase: ring.PhaseDegraded, Wanted: 3, Ready: 1, Updated: 2,
						Conditions: []ring.Condition{
							{Type: ring.ConditionAvailable, Status: ring.ConditionFalse}, {Type: ring.ConditionCrashLooping, Status: ring.ConditionTrue},
						},
						Instances: []ring.InstanceStatus{{ID: "c0ffee", Name: "web-api-1"}},
					},
					{Name: "nightly", Kind: ring.CronK, Phase: ring.PhaseReady, DueSince: noon.Add(-6 * time.Minute)},
				},
			}},
		}},
		Overrides: []ring.Override{
			{Kind: "hold", Target: "db", Since: noon.Add(-2 * time.Hour)}, {Kind: "hold", Target: "web/api", Since: noon.Add(-30 * time.Hour)},
		},
	}
}

func TestAPageTellsWhatTheStatusTells(t *testing.T) {
	s := Scrape{
		Now: noon, Status: host(),
		Outbox: []ring.Unsaid{
			{To: "team", State: ring.UnsaidWaits, Queued: noon.Add(-time.Hour)},
			{To: "team", State: ring.UnsaidDead, Queued: noon.Add(-3 * time.Hour)},
			{To: "gone", State: ring.UnsaidLeft, Queued: noon},
		},
		Expiry:    map[string]time.Time{"prod": noon.Add(time.Hour)},
		Succeeded: map[ring.ServiceID]time.Time{"web/nightly": noon.Add(-24 * time.Hour)},
	}
	got := series(t, s.Text())
	unix := func(ago time.Duration) float64 { return float64(noon.Add(-ago).Unix()) }
	for name, want := range map[string]float64{
		`gitring_build_info{version="0.5.0",host="edge-1"}`: 1,
		`gitring_engine_up`:       0,
		`gitring_store_up`:        1,
		`gitring_config_rejected`: 0,
		`gitring_source_sync{source="prod",sync="Degraded"}`:                                         1,
		`gitring_source_sync{source="prod",sync="Synced"}`:                                           0,
		`gitring_source_refused{source="prod"}`:                                                      1,
		`gitring_source_last_checked_timestamp_seconds{source="prod"}`:                               unix(time.Minute),
		`gitring_source_tip_timestamp_seconds{source="prod"}`:                                        unix(time.Hour),
		`gitring_source_condition{source="prod",condition="Stale"}`:                                  1,
		`gitring_source_condition{source="prod",condition="Old"}`:                                    0,
		`gitring_key_expiry_timestamp_seconds{source="prod"}`:                                        unix(-time.Hour),
		`gitring_app_health{source="prod",app="web",health="Degraded"}`:                              1,
		`gitring_app_health{source="prod",app="web",health="Healthy"}`:                               0,
		`gitring_app_refused{source="prod",app="web"}`:                                               0,
		`gitring_service_phase{source="prod",app="web",service="api",phase="Degraded"}`:              1,
		`gitring_service_phase{source="prod",app="web",service="api",phase="Ready"}`:                 0,
		`gitring_service_instances_wanted{source="prod",app="web",service="api",kind="worker"}`:      3,
		`gitring_service_instances_ready{source="prod",app="web",service="api",kind="worker"}`:       1,
		`gitring_service_instances_updated{source="prod",app="web",service="api",kind="worker"}`:     2,
		`gitring_service_condition{source="prod",app="web",service="api",condition="Available"}`:     0,
		`gitring_service_condition{source="prod",app="web",service="api",condition="Admitted"}`:      1,
		`gitring_service_condition{source="prod",app="web",service="api",condition="CrashLooping"}`:  1,
		`gitring_service_condition{source="prod",app="web",service="api",condition="Contested"}`:     0,
		`gitring_service_condition{source="prod",app="web",service="nightly",condition="Available"}`: 1,
		`gitring_overrides{kind="hold"}`:                                                             2,
		`gitring_overrides{kind="undo"}`:                                                             0,
		`gitring_override_oldest_timestamp_seconds{kind="hold"}`:                                     unix(30 * time.Hour),
		`gitring_outbox_pending{receiver="team"}`:                                                    2,
		`gitring_outbox_pending{receiver="prod"}`:                                                    0,
		`gitring_outbox_oldest_timestamp_seconds{receiver="team"}`:                                   unix(3 * time.Hour),
		`gitring_job_last_success_timestamp_seconds{source="prod",app="web",service="nightly"}`:      unix(24 * time.Hour),
		`gitring_job_late{source="prod",app="web",service="nightly"}`:                                1,
	} {
		require.Contains(t, got, name)
		require.InDelta(t, want, got[name], 0.001, name)
	}
	for name := range got {
		for _, never := range []string{"1234567", "c0ffee", "web-api-1", "alice", "gone", `undo"}`} {
			if never == `undo"}` && strings.HasPrefix(name, "gitring_overrides") {
				continue
			}
			require.NotContains(t, name, never)
		}
	}
}

func TestBeforeTheFirstLookNobodySaysThatTheEngineIsUp(t *testing.T) {
	s := Scrape{Now: noon, Status: ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Sync: ring.SyncUnknown}}}}
	got := series(t, s.Text())
	require.NotContains(t, got, "gitring_engine_up")
	require.NotContains(t, got, "gitring_store_up")
	require.NotContains(t, got, `gitring_source_last_checked_timestamp_seconds{source="prod"}`, "the year 1 is no time of a look")
	require.InDelta(t, 1, got[`gitring_source_sync{source="prod",sync="Unknown"}`], 0)
}

func TestExactlyOneStateOfASetHolds(t *testing.T) {
	s := Scrape{Now: noon, Status: host()}
	sum := map[string]float64{}
	for name, v := range series(t, s.Text()) {
		for _, set := range []string{"gitring_source_sync{", "gitring_app_health{", "gitring_service_phase{"} {
			if strings.HasPrefix(name, set) {
				sum[name[:strings.LastIndex(name, ",")]] += v
			}
		}
	}
	require.Len(t, sum, 4)
	for name, v := range sum {
		require.InDelta(t, 1, v, 0, name)
	}
}

func TestAFrontThatDoesNotAnswerIsDownAndTellsNothingElse(t *testing.T) {
	s := Scrape{Now: noon, Status: host(), Fronts: []Front{
		{Source: "prod", App: "web", Service: "api", Seen: &ring.FrontSeen{
			Connections: 7, Queued: 2, Full: true, Instances: []ring.FrontInstanceSeen{{Name: "c0ffee", InFlight: 3}, {Name: "beef", InFlight: 1}},
		}},
		{Source: "prod", App: "shop", Service: "web"},
	}}
	got := series(t, s.Text())
	for name, want := range map[string]float64{
		`gitring_front_up{source="prod",app="web",service="api"}`:          1,
		`gitring_front_connections{source="prod",app="web",service="api"}`: 7,
		`gitring_front_queued{source="prod",app="web",service="api"}`:      2,
		`gitring_front_full{source="prod",app="web",service="api"}`:        1,
		`gitring_front_in_flight{source="prod",app="web",service="api"}`:   4,
		`gitring_front_up{source="prod",app="shop",service="web"}`:         0,
	} {
		require.Contains(t, got, name)
		require.InDelta(t, want, got[name], 0, name)
	}
	require.NotContains(t, got, `gitring_front_connections{source="prod",app="shop",service="web"}`)
	require.NotContains(t, s.Text(), "c0ffee")
}

// An older process counts on after a newer one took over, and what it counted last is told
// when it has ended.
func TestWhatAnOlderProcessCountsAfterATakeoverIsAddedUp(t *testing.T) {
	c := &Carried{}
	requests := func(n int64) ring.FrontCounts { return ring.FrontCounts{Requests: n} }
	hear := func(process string, n int64, before ...ring.FrontBefore) {
		c.Hear("front1", "web/api", &ring.FrontSeen{
			Process: process, Instances: []ring.FrontInstanceSeen{{Name: "web1", Counts: requests(n)}}, Before: before,
		})
	}
	was := func(process string, n int64) ring.FrontBefore {
		return ring.FrontBefore{Process: process, Counts: map[string]ring.FrontCounts{"web1": requests(n)}}
	}
	hear("aa", 1000)
	hear("aa", 1010)                             // 10
	hear("bb", 5)                                // 5, and the older one did not answer in time
	hear("bb", 6, was("aa", 1013))               // 1 and 3
	hear("bb", 6, was("aa", 1020))               // 7
	hear("bb", 6, was("aa", 1020))               // it has ended
	hear("cc", 1, was("aa", 1020), was("bb", 8)) // 1 and 2
	hear("dd", 1, was("bb", 8), was("cc", 4))    // 1 and 3
	s := Scrape{Now: noon, Status: host(), Fronts: []Front{{Source: "prod", App: "web", Service: "api"}}, Carried: c}
	require.InDelta(t, 33, series(t, s.Text())[`gitring_front_requests_total{source="prod",app="web",service="api",set="stable"}`], 0)
}

func TestWhatFrontsCountIsAddedUpOverTheirProcesses(t *testing.T) {
	c := &Carried{}
	table := &ring.FrontTable{Instances: []ring.FrontInstance{{Name: "old1"}, {Name: "new1", Set: ring.SetCanary}}}
	hear := func(container, process string, old, canary int64) {
		heads := make([]int64, len(ring.FrontBuckets)+1)
		heads[1], heads[2] = old/2, old-old/2
		c.Hear(container, "web/api", &ring.FrontSeen{Process: process, Table: table, Instances: []ring.FrontInstanceSeen{
			{Name: "old1", Counts: ring.FrontCounts{Requests: old, Answers2xx: old, BytesIn: 10 * old, BytesOut: 100 * old, Heads: heads, HeadMicros: 3000 * old}},
			{Name: "new1", Counts: ring.FrontCounts{Requests: canary, Answers5xx: canary, NoAnswer: 1, DialErrors: 2, Retries: 3}},
		}})
	}
	hear("front1", "aa", 1000, 50) // where its counters stand: this daemon has counted nothing yet
	hear("front1", "aa", 1010, 52)
	hear("front1", "bb", 4, 1) // another process, from 0
	hear("front1", "bb", 4, 1)
	hear("front1", "bb", 2, 1) // it was left out of the table, and named again
	hear("front2", "cc", 7, 7) // a front in its place
	hear("front2", "cc", 8, 7)
	fronts := []Front{{Source: "prod", App: "web", Service: "api"}}
	s := Scrape{Now: noon, Status: host(), Fronts: fronts, Carried: c}
	got := series(t, s.Text())
	for name, want := range map[string]float64{
		`gitring_front_requests_total{source="prod",app="web",service="api",set="stable"}`:                            17,
		`gitring_front_requests_total{source="prod",app="web",service="api",set="canary"}`:                            3,
		`gitring_front_answers_total{source="prod",app="web",service="api",set="stable",class="2xx"}`:                 17,
		`gitring_front_answers_total{source="prod",app="web",service="api",set="stable",class="5xx"}`:                 0,
		`gitring_front_answers_total{source="prod",app="web",service="api",set="canary",class="5xx"}`:                 3,
		`gitring_front_answers_total{source="prod",app="web",service="api",set="canary",class="none"}`:                1,
		`gitring_front_dial_errors_total{source="prod",app="web",service="api",set="canary"}`:                         2,
		`gitring_front_retries_total{source="prod",app="web",service="api",set="canary"}`:                             3,
		`gitring_front_bytes_total{source="prod",app="web",service="api",set="stable",direction="in"}`:                170,
		`gitring_front_bytes_total{source="prod",app="web",service="api",set="stable",direction="out"}`:               1700,
		`gitring_front_answer_duration_seconds_sum{source="prod",app="web",service="api",set="stable"}`:               0.051,
		`gitring_front_answer_duration_seconds_count{source="prod",app="web",service="api",set="stable"}`:             17,
		`gitring_front_answer_duration_seconds_bucket{source="prod",app="web",service="api",set="stable",le="0.001"}`: 0,
		`gitring_front_answer_duration_seconds_bucket{source="prod",app="web",service="api",set="stable",le="0.005"}`: 17,
	} {
		require.Contains(t, got, name)
		require.InDelta(t, want, got[name], 1e-9, name)
	}
	require.NotContains(t, s.Text(), "old1")
	require.NotContains(t, s.Text(), "front1")
	// a service without a front any more has no series, and nothing is kept of it
	s.Fronts = nil
	require.NotContains(t, s.Text(), "gitring_front_requests_total")
	s.Fronts = fronts
	require.NotContains(t, s.Text(), "gitring_front_requests_total")
}

func TestAJobIsLateAfterFiveMinutes(t *testing.T) {
	for since, want := range map[time.Duration]float64{0: 0, 4 * time.Minute: 0, 5 * time.Minute: 0, 5*time.Minute + time.Second: 1} {
		st := host()
		st.Sources[0].Apps[0].Services[1].DueSince = noon.Add(-since)
		s := Scrape{Now: noon, Status: st}
		require.InDelta(t, want, series(t, s.Text())[`gitring_job_late{source="prod",app="web",service="nightly"}`], 0, since)
	}
}

func TestLinesOfTheJournalAreCounted(t *testing.T) {
	j := NewJournal()
	st := host()
	j.Know(&st)
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	for _, e := range []ring.Event{
		{At: at(0), Kind: ring.CommitAccepted, Source: "prod", Commit: "a"},
		{At: at(2), Kind: ring.RolloutBegan, Source: "prod", App: "web", Service: "api", Commit: "a"},
		{At: at(40), Kind: ring.RolloutCompleted, Source: "prod", App: "web", Service: "api", Commit: "a"},
		{At: at(100), Kind: ring.RestartAsked, App: "web", Service: "api"},
		{At: at(101), Kind: ring.RolloutBegan, Source: "prod", App: "web", Service: "api", Commit: "a"},
		{At: at(108), Kind: ring.RolloutCompleted, Source: "prod", App: "web", Service: "api", Commit: "a"},
		{At: at(200), Kind: ring.CommitAccepted, Source: "prod", Commit: "b"},
		{At: at(201), Kind: ring.RolloutBegan, Source: "prod", App: "web", Service: "api", Commit: "b"},
		{At: at(250), Kind: ring.RolloutFailed, Source: "prod", App: "web", Service: "api", Commit: "b", Code: ring.WhyInstanceNotReady},
		{At: at(261), Kind: ring.RolloutRestored, Source: "prod", App: "web", Service: "api", Commit: "b"},
		{At: at(262), Kind: ring.RolloutCompleted, Source: "prod", App: "web", Service: "api", Commit: "b"}, // began before the counting did
		{At: at(300), Kind: ring.InstanceCrashed, Source: "prod", App: "web", Service: "api"},
		{At: at(301), Kind: ring.InstanceCrashed, Source: "prod", App: "left", Service: "long-ago"},
		{At: at(302), Kind: ring.JobFailed, Source: "prod", App: "web", Service: "nightly", Code: ring.WhyJobFailed},
	} {
		j.Count(e)
	}
	s := Scrape{Now: noon, Status: st, Journal: j}
	got := series(t, s.Text())
	for name, want := range map[string]float64{
		`gitring_events_total{kind="commit.accepted"}`:                        2,
		`gitring_events_total{kind="drift.seen"}`:                             0,
		`gitring_rollouts_total{result="completed"}`:                          3,
		`gitring_rollouts_total{result="failed"}`:                             1,
		`gitring_rollouts_total{result="restored"}`:                           1,
		`gitring_rollouts_total{result="superseded"}`:                         0,
		`gitring_verdicts_total{result="good",code=""}`:                       3,
		`gitring_verdicts_total{result="failed",code="InstanceNotReady"}`:     1,
		`gitring_verdicts_total{result="failed",code="JobFailed"}`:            1,
		`gitring_crashes_total{source="prod",app="web",service="api"}`:        1,
		`gitring_crashes_total{source="prod",app="web",service="nightly"}`:    0,
		`gitring_push_to_ready_seconds_count{source="prod"}`:                  1,
		`gitring_push_to_ready_seconds_sum{source="prod"}`:                    40,
		`gitring_push_to_ready_seconds_bucket{source="prod",le="30"}`:         0,
		`gitring_push_to_ready_seconds_bucket{source="prod",le="60"}`:         1,
		`gitring_push_to_ready_seconds_bucket{source="prod",le="+Inf"}`:       1,
		`gitring_rollout_duration_seconds_count{result="completed"}`:          2,
		`gitring_rollout_duration_seconds_sum{result="completed"}`:            45,
		`gitring_rollout_duration_seconds_sum{result="restored"}`:             60,
		`gitring_rollout_duration_seconds_bucket{result="completed",le="5"}`:  0,
		`gitring_rollout_duration_seconds_bucket{result="completed",le="10"}`: 1,
	} {
		require.Contains(t, got, name)
		require.InDelta(t, want, got[name], 0.001, name)
	}
	require.NotContains(t, got, `gitring_crashes_total{source="prod",app="left",service="long-ago"}`, "what left the commit has no series")
}

func TestTheRestartOfAnOldCommitIsNoSlowPush(t *testing.T) {
	j := NewJournal()
	j.Count(ring.Event{At: noon, Kind: ring.CommitAccepted, Source: "prod", Commit: "a"})
	j.Count(ring.Event{At: noon.AddDate(0, 0, 7), Kind: ring.RefreshAsked, App: "web"})
	j.Count(ring.Event{At: noon.AddDate(0, 0, 7), Kind: ring.RolloutBegan, Source: "prod", App: "web", Service: "api", Commit: "a"})
	j.Count(ring.Event{At: noon.AddDate(0, 0, 7), Kind: ring.RolloutCompleted, Source: "prod", App: "web", Service: "api", Commit: "a"})
	s := Scrape{Now: noon, Status: host(), Journal: j}
	require.NotContains(t, s.Text(), "gitring_push_to_ready_seconds")
}

func TestWhatIsRememberedBetweenLinesIsBounded(t *testing.T) {
	j := NewJournal()
	for i := range 3 * mostCommits {
		j.Count(ring.Event{Kind: ring.CommitAccepted, Commit: ring.SHA(strconv.Itoa(i))})
	}
	require.Len(t, j.accepted, mostCommits)
	require.Contains(t, j.accepted, ring.SHA(strconv.Itoa(3*mostCommits-1)))
	for i := range mostRollouts + 7 {
		j.Count(ring.Event{Kind: ring.RolloutBegan, App: "a", Service: strconv.Itoa(i)})
	}
	require.Len(t, j.began, mostRollouts)
}

func TestManyMayCountAtOnce(t *testing.T) {
	var c Counts
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				c.Add(Fetches, "prod", FetchOK)
				c.Observe(LookTook, 0.02)
				s := Scrape{Counts: []*Counts{&c}}
				_ = s.Text()
			}
		})
	}
	wg.Wait()
	s := Scrape{Counts: []*Counts{&c}}
	got := series(t, s.Text())
	require.InDelta(t, 4000, got[`gitring_fetches_total{source="prod",result="ok"}`], 0)
	require.InDelta(t, 0, got[`gitring_look_duration_seconds_bucket{le="0.01"}`], 0)
	require.InDelta(t, 4000, got[`gitring_look_duration_seconds_bucket{le="0.025"}`], 0)
	require.InDelta(t, 4000, got[`gitring_look_duration_seconds_count`], 0)
}

func TestAValueAtABoundIsInItsBucket(t *testing.T) {
	var c Counts
	c.Observe(LookTook, 0.01)
	c.Observe(LookTook, 1000)
	c.Observe(LookTook, -3) // a clock that was set back took no time
	s := Scrape{Counts: []*Counts{&c}}
	got := series(t, s.Text())
	require.InDelta(t, 1, got[`gitring_look_duration_seconds_bucket{le="0.005"}`], 0)
	require.InDelta(t, 2, got[`gitring_look_duration_seconds_bucket{le="0.01"}`], 0)
	require.InDelta(t, 2, got[`gitring_look_duration_seconds_bucket{le="60"}`], 0)
	require.InDelta(t, 3, got[`gitring_look_duration_seconds_bucket{le="+Inf"}`], 0)
	require.InDelta(t, 1000.01, got[`gitring_look_duration_seconds_sum`], 0.0001)
}

func TestAMistakeOfTheProgramCountsNothing(t *testing.T) {
	var c Counts
	c.Add("gitring_nothing_total")
	c.Add(Fetches, "one label too few")
	c.Add(LookTook)
	c.Observe(Fetches, 1, "prod", "ok")
	(*Counts)(nil).Add(Fetches, "prod", "ok")
	s := Scrape{Counts: []*Counts{&c, nil}}
	require.NotContains(t, s.Text(), "fetches")
	require.NotContains(t, s.Text(), "nothing")
}

func TestAValueThatWouldBreakALineIsEscaped(t *testing.T) {
	var c Counts
	c.Add(APIRequests, "a\"b\\c\nd\xfe", "200")
	s := Scrape{Counts: []*Counts{&c}}
	require.Contains(t, s.Text(), `gitring_api_requests_total{route="a\"b\\c\nd`+"\uFFFD"+`",code="200"} 1`)
}

func TestEqualValuesGiveEqualBytes(t *testing.T) {
	var c Counts
	for _, src := range []string{"b", "a", "c"} {
		c.Add(Fetches, src, FetchOK)
	}
	s := Scrape{Now: noon, Status: host(), Journal: NewJournal(), Counts: []*Counts{&c}}
	first := s.Text()
	for range 20 {
		require.Equal(t, first, s.Text())
	}
}

// everything is a page on which each family has a series.
func everything() string {
	var c Counts
	for _, f := range Families {
		labels := slices.Repeat([]string{"x"}, len(f.Labels))
		c.Observe(f.Name, 0.3, labels...)
		if f.Name != "gitring_crashes_total" {
			c.Add(f.Name, labels...)
		}
	}
	j := NewJournal()
	st := host()
	j.Know(&st)
	s := Scrape{
		Now: noon, Status: st, Journal: j, Counts: []*Counts{&c}, Outbox: []ring.Unsaid{{To: "team", Queued: noon}},
		Expiry: map[string]time.Time{"prod": noon}, Succeeded: map[ring.ServiceID]time.Time{"web/nightly": noon},
		Fronts: []Front{{Source: "prod", App: "web", Service: "api", Seen: &ring.FrontSeen{}}},
	}
	return s.Text()
}

func TestEveryFamilyCanHaveASeriesAndIsNamedAsPrometheusWants(t *testing.T) {
	text := everything()
	names := map[string]bool{}
	label := regexp.MustCompile(`^(source|app|service|kind|phase|sync|health|condition|result|receiver|call|route|code|version|host|set|class|direction)$`)
	for _, f := range Families {
		require.Contains(t, text, "# TYPE "+f.Name+" "+f.Kind+"\n")
		require.False(t, names[f.Name], "twice")
		names[f.Name] = true
		require.Regexp(t, `^gitring_[a-z_]+$`, f.Name)
		require.Equal(t, f.Kind == Counter, strings.HasSuffix(f.Name, "_total"), f.Name)
		require.Equal(t, f.Kind == Histogram, len(f.Buckets) > 0, f.Name)
		require.True(t, slices.IsSorted(f.Buckets))
		require.Regexp(t, `^[A-Z].*\.$`, f.Help)
		for _, l := range f.Labels {
			require.Regexp(t, label, l)
		}
	}
}

func TestPromtoolFindsNoFault(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not here (Debian package prometheus): its check of the page is left out")
	}
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(everything())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, string(bytes.TrimSpace(out)))
}

// The page of the docs has a row for each metric, with kind, labels and the words of its help.
func TestTheReferenceHasEveryMetric(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/metrics.md")
	require.NoError(t, err)
	var want, got []string
	for _, f := range slices.Concat(Families, HubFamilies) {
		labels := "–"
		if len(f.Labels) > 0 {
			labels = "`" + strings.Join(f.Labels, "` `") + "`"
		}
		want = append(want, "| `"+f.Name+"` | "+f.Kind+" | "+labels+" | "+f.Help+" |")
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| `gitring_") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
}
