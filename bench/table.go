package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one figure. Target is what gitring is to reach, Peer what the
// well-known peer of docs/testing/performance.md needs; "" is none.
type row struct {
	what, measured, target, peer, how string
}

type table []row

func (t *table) add(r row) { *t = append(*t, r) }

func (t table) print(w io.Writer, machine string) {
	fmt.Fprintf(w, "\n%s\n\n", machine)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "figure\tmeasured\ttarget\tpeer\thow")
	for _, r := range t {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", r.what, r.measured, cmp.Or(r.target, "-"), cmp.Or(r.peer, "-"), r.how)
	}
	out.Flush()
}

// spread is a row of times.
type spread []time.Duration

func (s spread) sorted() spread {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// median of an even number is the mean of the two in the middle.
func (s spread) median() time.Duration {
	if len(s) == 0 {
		return 0
	}
	o := s.sorted()
	return (o[len(o)/2] + o[(len(o)-1)/2]) / 2
}

// String is the median and the ends.
func (s spread) String() string {
	if len(s) == 0 {
		return "nothing"
	}
	o := s.sorted()
	return fmt.Sprintf("%s (%s to %s)", millis(s.median()), millis(o[0]), millis(o[len(o)-1]))
}

func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// counts is a tally of requests as people read it, the most first.
func counts(n map[string]int) string {
	keys := make([]string, 0, len(n))
	for k := range n {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%d %s", n[k], k))
	}
	return strings.Join(parts, ", ")
}

func total(n map[string]int) (all int) {
	for _, v := range n {
		all += v
	}
	return all
}
