package manifest

import (
	"fmt"
	"sort"
)

// nearest is the known word closest to the one that was written; "" when none
// is close enough to be what was meant.
func nearest(word string, known []string) string {
	sort.Strings(known)
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := distance(word, k, least); d < least {
			best, least = k, d
		}
	}
	return best
}

// didYouMean is the hint for an unknown word.
func didYouMean(word string, known []string) string {
	if n := nearest(word, known); n != "" {
		return fmt.Sprintf("did you mean %s?", n)
	}
	return "see docs/reference/manifest.md for the keys there are"
}

// distance is the number of letters to add, remove, change or swap with their
// neighbour; bound when it is not below bound.
func distance(a, b string, bound int) int {
	if len(a)-len(b) >= bound || len(b)-len(a) >= bound {
		return bound
	}
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return min(prev[len(b)], bound)
}
