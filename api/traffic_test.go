package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestATimeOfABucketLiesBetweenItsBounds(t *testing.T) {
	heads := func(at map[int]int64) []int64 {
		out := make([]int64, len(ring.FrontBuckets)+1)
		for bound, n := range at {
			i := len(ring.FrontBuckets)
			for j, b := range ring.FrontBuckets {
				if b == bound {
					i = j
				}
			}
			out[i] = n
		}
		return out
	}
	for _, x := range []struct {
		name  string
		heads []int64
		share float64
		want  float64
	}{
		{"nobody asked", nil, 0.5, 0},
		{"nobody answered", heads(nil), 0.99, 0},
		{"all within 1 ms", heads(map[int]int64{1: 10}), 0.5, 0.5},
		{"half of them slow", heads(map[int]int64{2: 50, 100: 50}), 0.5, 2},
		{"the slowest of a hundred", heads(map[int]int64{2: 98, 1000: 2}), 0.99, 875},
		{"above all bounds", heads(map[int]int64{-1: 5}), 0.5, 30000},
		{"numbers that nobody can have counted", heads(map[int]int64{5: -3, 10: 4}), 0.5, 7.5},
		{"more buckets than we know", append(heads(map[int]int64{10: 4}), 9, 9), 0.1, 10},
	} {
		t.Run(x.name, func(t *testing.T) {
			got := Quantile(x.heads, x.share)
			if x.name == "more buckets than we know" {
				require.LessOrEqual(t, got, x.want)
				return
			}
			require.InDelta(t, x.want, got, 0.051)
		})
	}
}

func TestASetIsTheSumOfItsInstances(t *testing.T) {
	counts := ring.FrontCounts{Requests: 10, Heads: []int64{0, 10}}
	all := []InstanceNow{
		{Set: ring.SetStable, Counts: counts, Errors: 1}, {Set: ring.SetStable, Counts: counts, Errors: 2}, {Set: ring.SetCanary, Counts: counts, Errors: 4},
	}
	require.Equal(t, SetNow{Requests: 20, Errors: 3, P50: 1.5, P99: 2}, SetOf(all, ring.SetStable))
	require.Equal(t, int64(4), SetOf(all, ring.SetCanary).Errors)
}
