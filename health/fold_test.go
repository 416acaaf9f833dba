package health

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gitring/gitring/ring"
)

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }

// story steps a check through results, one every 5 s: S passes, F fails.
func story(c ring.Check, results string) ring.Streak {
	var s ring.Streak
	for i, r := range results {
		s = Step(s, c, r == 'S', "it said no", at(5*i))
	}
	return s
}

func TestStep(t *testing.T) {
	type want struct {
		passing bool
		since   int // seconds; -1 is not looked at
	}
	for _, tc := range []struct {
		name                string
		failures, successes int
		results             string
		want                want
	}{
		{"nothing known is not passing", 3, 1, "", want{false, -1}},
		{"one success is enough by default", 3, 1, "S", want{true, 0}},
		{"a boot that fails at first counts from its first success", 3, 1, "FFFFS", want{true, 20}},
		{"more successes do not move the time", 3, 1, "SSSS", want{true, 0}},
		{"two successes are asked for and one is there", 3, 2, "S", want{false, -1}},
		{"two successes count from the first of them", 3, 2, "FSS", want{true, 5}},
		{"a failure between two successes begins again", 3, 2, "SFS", want{false, -1}},
		{"a short failure keeps the verdict but not the time", 3, 1, "SSFS", want{true, 15}},
		{"flapping below the threshold never gets old", 3, 1, "SFFSFFS", want{true, 30}},
		{"failures at the threshold end it", 3, 1, "SFFF", want{false, -1}},
		{"failures below the threshold do not", 3, 1, "SFF", want{true, -1}},
		{"recovery counts from the first success after", 3, 1, "SFFFSS", want{true, 20}},
		{"a threshold of one ends it at once", 1, 1, "SSF", want{false, -1}},
		{"thresholds left out are one", 0, 0, "SF", want{false, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := story(ring.Check{Failures: tc.failures, Successes: tc.successes}, tc.results)
			require.Equal(t, tc.want.passing, s.Passing)
			if tc.want.since >= 0 {
				require.Equal(t, at(tc.want.since), s.Since)
			}
		})
	}
}

// The oracle looks at the whole history at once and knows nothing of streaks.
func TestStepAgainstHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ring.Check{Failures: rapid.IntRange(1, 4).Draw(t, "failures"), Successes: rapid.IntRange(1, 4).Draw(t, "successes")}
		results := rapid.SliceOfN(rapid.Bool(), 0, 40).Draw(t, "results")
		var s ring.Streak
		for i, ok := range results {
			s = Step(s, c, ok, "no", at(i))
		}
		passing := false
		for i := range results {
			if ends(results[:i+1], true, c.Successes) {
				passing = true
			}
			if ends(results[:i+1], false, c.Failures) {
				passing = false
			}
		}
		if s.Passing != passing {
			t.Fatalf("passing is %v, the history says %v", s.Passing, passing)
		}
		if n := len(results); passing && results[n-1] {
			first := n - 1
			for first > 0 && results[first-1] {
				first--
			}
			if !s.Since.Equal(at(first)) {
				t.Fatalf("since %v, the history says %v", s.Since, at(first))
			}
		}
	})
}

func ends(results []bool, with bool, n int) bool {
	if len(results) < n {
		return false
	}
	for _, r := range results[len(results)-n:] {
		if r != with {
			return false
		}
	}
	return true
}

func TestSinceNeverMovesBackWhilePassing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ring.Check{Failures: rapid.IntRange(1, 3).Draw(t, "failures"), Successes: rapid.IntRange(1, 3).Draw(t, "successes")}
		var s ring.Streak
		for i := range rapid.IntRange(1, 40).Draw(t, "n") {
			was := s
			now := at(rapid.IntRange(-86400, 86400).Draw(t, fmt.Sprint("clock", i))) // the clock jumps as it likes
			s = Step(s, c, rapid.Bool().Draw(t, fmt.Sprint("ok", i)), "no", now)
			if was.Passing && s.Passing && s.Since.Before(was.Since) {
				t.Fatalf("since moved back from %v to %v", was.Since, s.Since)
			}
		}
	})
}

func check(name string, use ring.CheckFor, onFailure string) ring.Check {
	return ring.Check{Name: name, For: use, Failures: 3, Successes: 1, Interval: 5 * time.Second, Timeout: 2 * time.Second, OnFailure: onFailure}
}

func TestFold(t *testing.T) {
	boot, up, warm := check("boot", ring.Startup, ""), check("up", ring.Readiness, ""), check("warm", ring.Readiness, "")
	alive, lamp, halt := check("alive", ring.Liveness, ""), check("lamp", ring.Liveness, "alert"), check("halt", ring.Liveness, "stop")
	for _, tc := range []struct {
		name    string
		checks  []ring.Check
		results map[string]string
		want    ring.Health
	}{
		{name: "no check says nothing", want: ring.Health{}},
		{
			name: "a check without an answer is not ready", checks: []ring.Check{up},
			want: ring.Health{Reason: "readiness check up: no answer yet"},
		},
		{
			name: "ready is since the latest of all", checks: []ring.Check{boot, up, warm},
			results: map[string]string{"boot": "S", "up": "FFS", "warm": "FSS"},
			want:    ring.Health{Ready: true, Since: at(10)},
		},
		{
			name: "two readiness checks are judged each on its own", checks: []ring.Check{up, warm},
			results: map[string]string{"up": "SSS", "warm": "FFF"},
			want:    ring.Health{Failing: true, Reason: "readiness check warm: it said no"},
		},
		{
			name: "a startup check is named before a readiness check", checks: []ring.Check{up, boot},
			results: map[string]string{"up": "F", "boot": "F"},
			want:    ring.Health{Reason: "startup check boot: it said no"},
		},
		{
			name: "ready after a short failure begins no earlier than the next answer", checks: []ring.Check{up},
			results: map[string]string{"up": "SSF"},
			want:    ring.Health{Ready: true, Since: at(10).Add(7500 * time.Millisecond)},
		},
		{
			name: "a failed liveness check asks for a restart", checks: []ring.Check{up, alive},
			results: map[string]string{"up": "SSSS", "alive": "SFFF"},
			want:    ring.Health{Ready: true, Since: at(0), Unlive: true, Act: "restart", Reason: "liveness check alive: it said no"},
		},
		{
			name: "one that never passed is unlive all the same", checks: []ring.Check{alive},
			results: map[string]string{"alive": "FFF"},
			want:    ring.Health{Unlive: true, Act: "restart", Reason: "liveness check alive: it said no"},
		},
		{
			name: "a liveness check below its threshold does nothing", checks: []ring.Check{up, alive},
			results: map[string]string{"up": "SSS", "alive": "SFF"},
			want:    ring.Health{Ready: true, Since: at(0)},
		},
		{
			name: "liveness never acts before startup succeeded", checks: []ring.Check{boot, alive},
			results: map[string]string{"boot": "FFFF", "alive": "FFFF"},
			want:    ring.Health{Failing: true, Reason: "startup check boot: it said no"},
		},
		{
			name: "liveness acts on an instance that is not ready either", checks: []ring.Check{boot, up, alive},
			results: map[string]string{"boot": "S", "up": "SFFF", "alive": "SFFF"},
			want:    ring.Health{Failing: true, Unlive: true, Act: "restart", Reason: "liveness check alive: it said no"},
		},
		{
			name: "stop is its own act", checks: []ring.Check{up, halt},
			results: map[string]string{"up": "S", "halt": "FFF"},
			want:    ring.Health{Ready: true, Since: at(0), Unlive: true, Act: "stop", Reason: "liveness check halt: it said no"},
		},
		{
			name: "an alert only tells", checks: []ring.Check{up, lamp},
			results: map[string]string{"up": "S", "lamp": "FFF"},
			want:    ring.Health{Ready: true, Since: at(0), Reason: "liveness check lamp: it said no"},
		},
		{
			name: "the reason for not being ready is worth more than an alert", checks: []ring.Check{up, lamp},
			results: map[string]string{"up": "F", "lamp": "FFF"},
			want:    ring.Health{Reason: "readiness check up: it said no"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			streaks := map[string]ring.Streak{}
			for _, c := range tc.checks {
				if r, ok := tc.results[c.Name]; ok {
					streaks[c.Name] = story(c, r)
				}
			}
			require.Equal(t, tc.want, Fold(tc.checks, streaks))
		})
	}
}

func TestReasonTellsHowFarSuccessesAre(t *testing.T) {
	c := check("up", ring.Readiness, "")
	c.Successes = 3
	h := Fold([]ring.Check{c}, map[string]ring.Streak{"up": story(c, "FSS")})
	require.Equal(t, "readiness check up: answered well 2 of 3 times in a row", h.Reason)
}

func TestFoldDoesNotCareForOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var checks []ring.Check
		streaks := map[string]ring.Streak{}
		for i := range rapid.IntRange(0, 6).Draw(t, "checks") {
			use := rapid.SampledFrom([]ring.CheckFor{ring.Startup, ring.Readiness, ring.Liveness}).Draw(t, "for")
			act := rapid.SampledFrom([]string{"", "restart", "alert", "stop"}).Draw(t, "act")
			c := check(fmt.Sprint("c", i), use, act)
			c.Docker = rapid.Bool().Draw(t, "docker")
			checks = append(checks, c)
			if results := rapid.StringMatching(`[SF]{0,5}`).Draw(t, "results"); results != "" {
				streaks[c.Name] = story(c, results)
			}
		}
		want := Fold(checks, streaks)
		r := rand.New(rand.NewPCG(uint64(rapid.Int64().Draw(t, "seed")), 0))
		r.Shuffle(len(checks), func(i, j int) { checks[i], checks[j] = checks[j], checks[i] })
		if got := Fold(checks, streaks); got != want {
			t.Fatalf("%+v, and in another order %+v", want, got)
		}
		if want.Unlive && (want.Act == "" || want.Act == "alert" || want.Reason == "") {
			t.Fatalf("unlive without an act or a reason: %+v", want)
		}
	})
}

func TestTwoChecksOfOneKindEachHaveAVerdict_LessonU4(t *testing.T) {
	a, b := check("a", ring.Readiness, ""), check("b", ring.Readiness, "")
	a.TCP, b.TCP = &ring.TCPCheck{Port: 80}, &ring.TCPCheck{Port: 81}
	checks := []ring.Check{a, b}
	green, red := story(a, "SS"), story(b, "FFF")
	require.False(t, Fold(checks, map[string]ring.Streak{"a": green, "b": red}).Ready, "one of the two does not stand in for the other")
	require.False(t, Fold(checks, map[string]ring.Streak{"a": green}).Ready)
	require.True(t, Fold(checks, map[string]ring.Streak{"a": green, "b": story(b, "FFS")}).Ready, "and both can pass")
}
