package reconcile

import (
	"math"
	"math/rand/v2"
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
		{"a few more than that are chance", count(100, 7, 1), count(100, 2, 1), time.Minute, 1, false, true, 0},
		{"more than that", count(100, 8, 1), count(100, 2, 1), time.Minute, 1, true, true, 1},
		{"bad once of two", count(50, 10, 1), count(200, 0, 1), time.Minute, 2, false, true, 1},
		{"half of 20 at once", count(20, 10, 1), count(0, 0, 1), 0, 2, true, false, 0},
		{"half of 19 is not enough", count(19, 19, 1), count(0, 0, 1), 0, 2, false, false, 0},
		{"slow, but too few to say", count(499, 0, 9), count(5000, 0, 2), time.Minute, 1, false, true, 0},
		{"slow: 150 ms beside 5", count(500, 0, 9), count(500, 0, 2), time.Minute, 1, true, true, 1},
		{"slower by less than 50 ms: 35 beside 5", count(500, 0, 5), count(500, 0, 2), time.Minute, 1, false, true, 0},
		{"slower by half exactly: 300 beside 200", count(500, 0, 11), count(500, 0, 10), time.Minute, 1, false, true, 0},
		{"at most 500 beside 300 may be 301 beside 300", count(500, 0, 12), count(500, 0, 11), time.Minute, 1, false, true, 0},
		{"slower by more: above 500 beside 300", count(500, 0, 13), count(500, 0, 11), time.Minute, 1, true, true, 1},
		{"slower by half at least: above 300 beside 200", count(500, 0, 12), count(500, 0, 10), time.Minute, 1, true, true, 1},
		{"slower than any bucket tells", count(500, 0, 19), count(500, 0, 15), time.Minute, 1, true, true, 1},
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

// playedService is what a canary of a test answers with: which share are errors, and how long
// heads take, log-normal.
type playedService struct{ errors, median, sigma float64 }

// canaryPlay plays a canary of three steps of 5 min with chance, and returns what the judge says.
func canaryPlay(r *rand.Rand, perSecond float64, stable, canary playedService) string {
	const fold = 5 * time.Second // as canaryFold
	answers := func(of playedService, perSecond float64) ring.CanaryCount {
		c := ring.CanaryCount{Heads: make([]int64, len(ring.FrontBuckets)+1)}
		for at := r.ExpFloat64() / perSecond; at < fold.Seconds(); at += r.ExpFloat64() / perSecond {
			c.Answers++
			if r.Float64() < of.errors {
				c.Errors++
			}
			ms, bucket := of.median*math.Exp(of.sigma*r.NormFloat64()), 0
			for bucket < len(ring.FrontBuckets) && ms > float64(ring.FrontBuckets[bucket]) {
				bucket++
			}
			c.Heads[bucket]++
		}
		return c
	}
	j, now := ring.DefaultJudge(), epoch
	for _, weight := range []float64{0.05, 0.25, 0.5} {
		c := canaryCounts{ring.CanaryRow{Since: now}}
		for end := now.Add(5 * time.Minute); now.Before(end); {
			now = now.Add(fold)
			got, other := answers(canary, perSecond*weight), answers(stable, perSecond*(1-weight))
			c.Window.Canary, c.Step.Canary = plusCount(c.Window.Canary, got), plusCount(c.Step.Canary, got)
			c.Window.Stable, c.Step.Stable = plusCount(c.Window.Stable, other), plusCount(c.Step.Stable, other)
			if why := c.judgeWindow(&j, now); why != "" {
				return why
			}
		}
	}
	return ""
}

// TestTheJudgeFailsFewGoodCanariesAndMostBadOnes plays 10,000 canaries that are as good as the
// stable version: at most 3 % of each kind may fail, though many share a rate of errors that
// makes the judge's work hard. Of those with ten times the errors 9 of 10 fail.
func TestTheJudgeFailsFewGoodCanariesAndMostBadOnes(t *testing.T) {
	const each = 667
	kinds := 0
	for _, errors := range []float64{0, 0.005, 0.01, 0.02, 0.05} {
		for _, perSecond := range []float64{1, 4, 12} {
			kinds++
			r := rand.New(rand.NewPCG(7, uint64(kinds)))
			failed, missed := 0, 0
			for i := range each {
				good := playedService{errors: errors, median: 2 * math.Pow(500, r.Float64()), sigma: 0.3 + r.Float64()}
				if canaryPlay(r, perSecond, good, good) != "" {
					failed++
				}
				bad := good
				bad.errors = 10 * errors
				if i < 60 && errors > 0 && perSecond > 1 && canaryPlay(r, perSecond, good, bad) == "" {
					missed++
				}
			}
			t.Logf("%.1f %% errors, %g requests a second: %d of %d good canaries failed, %d of 60 bad ones passed", 100*errors, perSecond, failed, each, missed)
			require.LessOrEqual(t, 100*failed, 3*each, "good canaries that failed, at %g errors and %g requests a second", errors, perSecond)
			require.LessOrEqual(t, missed, 6, "of 60 canaries with ten times the errors that passed, at %g errors and %g requests a second", errors, perSecond)
		}
	}
}

// TestASlowCanaryFails plays those that take five times as long as the stable version.
func TestASlowCanaryFails(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for range 40 {
		good := playedService{median: 30 * math.Pow(20, r.Float64()), sigma: 0.5}
		slow := good
		slow.median *= 5
		require.NotEmpty(t, canaryPlay(r, 20, good, slow), "median %.0f ms", good.median)
	}
}

func TestCountsOfANewProcessBeginAtNothing(t *testing.T) {
	was := ring.CanaryCount{Answers: 100, Errors: 4, Heads: []int64{60, 40}}
	require.Equal(t, ring.CanaryCount{Answers: 20, Errors: 1, Heads: []int64{20, 0}}, lessCount(ring.CanaryCount{Answers: 120, Errors: 5, Heads: []int64{80, 40}}, was))
	require.Equal(t, ring.CanaryCount{Answers: 7}, lessCount(ring.CanaryCount{Answers: 7}, was))
	require.Equal(t, ring.CanaryCount{Answers: 3, Heads: []int64{1, 2, 3}}, plusCount(ring.CanaryCount{Answers: 1, Heads: []int64{1}}, ring.CanaryCount{Answers: 2, Heads: []int64{0, 2, 3}}))
}
