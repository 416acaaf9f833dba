package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// TestTheJudgeOfACanary is the table of docs/design/traffic.md: what each window comes to.
func TestTheJudgeOfACanary(t *testing.T) {
	count := func(answers, errors int64, bucket int) ring.CanaryCount {
		heads := make([]int64, len(ring.FrontBuckets)+1)
		heads[bucket] = answers
		return ring.CanaryCount{Answers: answers, Errors: errors, Heads: heads}
	}
	for _, tt := range []struct {
		name           string
		canary, stable ring.CanaryCount
		after          time.Duration
		failures       int
		fails, judged  bool
		bad            int
	}{
		{"too short", count(200, 20, 1), count(200, 0, 1), 10 * time.Second, 1, false, false, 0},
		{"too few answers", count(49, 20, 1), count(200, 0, 1), time.Minute, 1, false, false, 0},
		{"no errors", count(200, 0, 1), count(200, 0, 1), time.Minute, 1, false, true, 0},
		{"two errors are chance", count(50, 2, 1), count(200, 0, 1), time.Minute, 1, false, true, 0},
		{"three errors of 50", count(50, 3, 1), count(200, 0, 1), time.Minute, 1, true, true, 1},
		{"as many as twice the stable ones and a percent", count(100, 5, 1), count(100, 2, 1), time.Minute, 1, false, true, 0},
		{"more than that", count(100, 6, 1), count(100, 2, 1), time.Minute, 1, true, true, 1},
		{"bad once of two", count(50, 10, 1), count(200, 0, 1), time.Minute, 2, false, true, 1},
		{"half of 20 at once", count(20, 10, 1), count(0, 0, 1), 0, 2, true, false, 0},
		{"half of 19 is not enough", count(19, 19, 1), count(0, 0, 1), 0, 2, false, false, 0},
		{"slow, but too few to say", count(499, 0, 9), count(5000, 0, 2), time.Minute, 1, false, true, 0},
		{"slow: 150 ms beside 5", count(500, 0, 9), count(500, 0, 2), time.Minute, 1, true, true, 1},
		{"slower by less than 50 ms: 35 beside 5", count(500, 0, 5), count(500, 0, 2), time.Minute, 1, false, true, 0},
		{"slower by half exactly: 300 beside 200", count(500, 0, 11), count(500, 0, 10), time.Minute, 1, false, true, 0},
		{"slower by more: 500 beside 300", count(500, 0, 12), count(500, 0, 11), time.Minute, 1, true, true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := ring.DefaultJudge()
			j.Failures = tt.failures
			c := canaryCounts{ring.CanaryRow{Since: epoch, Window: ring.CanarySums{Canary: tt.canary, Stable: tt.stable}}}
			c.Step = c.Window
			why := c.judgeWindow(&j, epoch.Add(tt.after))
			require.Equal(t, tt.fails, why != "", why)
			require.Equal(t, tt.judged, c.Judged == 1)
			require.Equal(t, tt.bad, c.Bad)
		})
	}
}

func TestCountsOfANewProcessBeginAtNothing(t *testing.T) {
	was := ring.CanaryCount{Answers: 100, Errors: 4, Heads: []int64{60, 40}}
	require.Equal(t, ring.CanaryCount{Answers: 20, Errors: 1, Heads: []int64{20, 0}}, lessCount(ring.CanaryCount{Answers: 120, Errors: 5, Heads: []int64{80, 40}}, was))
	require.Equal(t, ring.CanaryCount{Answers: 7}, lessCount(ring.CanaryCount{Answers: 7}, was))
	require.Equal(t, ring.CanaryCount{Answers: 3, Heads: []int64{1, 2, 3}}, plusCount(ring.CanaryCount{Answers: 1, Heads: []int64{1}}, ring.CanaryCount{Answers: 2, Heads: []int64{0, 2, 3}}))
}
