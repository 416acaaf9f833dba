package ring

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Nearest is the known word closest to the one that was written, by letters to
// add, remove, change or swap with their neighbour; "" when none is close enough
// to be what was meant. A beginning of a known word means that word.
func Nearest(word string, known []string) string {
	best, least := "", min(len(word)/2, max(2, len(word)/3))+1
	shortest := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
	for _, k := range slices.SortedFunc(slices.Values(known), shortest) {
		d := Distance(word, k, least)
		if word != "" && strings.HasPrefix(k, word) {
			d = 0 // the rest of it is only missing
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// Meant is the hint for an unknown word: the nearest known one, else all of
// them; "" when none is known.
func Meant(word string, known []string) string {
	if n := Nearest(word, known); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	if len(known) == 0 {
		return ""
	}
	return "known here: " + strings.Join(known, ", ")
}

// Distance is how many such changes make b of a; bound when it is not below
// bound.
func Distance(a, b string, bound int) int {
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
