package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// nearest is a hint that names the known word closest to the one written, and
// all of them when none is close.
func nearest(word string, known []string) string {
	best, distance := "", len(word)/2+1
	for _, k := range known {
		d := edits(word, k)
		if word != "" && strings.HasPrefix(k, word) {
			d = 1 // the rest of it is only missing
		}
		if d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) == 0 {
		return ""
	}
	return "known here: " + strings.Join(known, ", ")
}

// edits is how many letters have to be put in, taken out, changed or swapped
// with their neighbour to make b of a.
func edits(a, b string) int {
	before := make([]int, len(b)+1) // the row before last
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
