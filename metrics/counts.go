package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Counts are what is counted as it happens, from 0 at the start of a daemon. The zero value
// is ready, and nil counts nothing. It is safe for concurrent use.
type Counts struct {
	mu      sync.Mutex                    // guards what follows
	numbers map[string]map[string]float64 // by family, then by joined labels
	spreads map[string]map[string]*spread
}

// between joins the values of labels in a key; no label of ours holds it.
const between = "\xff"

// Add counts one more. A name that is no counter, or a wrong number of labels, is a mistake of
// the program, and counts nothing.
func (c *Counts) Add(name string, labels ...string) {
	c.AddMany(name, 1, labels...)
}

// AddMany counts n more.
func (c *Counts) AddMany(name string, n int, labels ...string) {
	if c == nil || !fits(name, Counter, labels) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plus(name, float64(n), labels)
}

// Begin has a series there, with 0, before anything was counted.
func (c *Counts) Begin(name string, labels ...string) {
	c.AddMany(name, 0, labels...)
}

func (c *Counts) plus(name string, n float64, labels []string) {
	if c.numbers == nil {
		c.numbers = map[string]map[string]float64{}
	}
	if c.numbers[name] == nil {
		c.numbers[name] = map[string]float64{}
	}
	c.numbers[name][strings.Join(labels, between)] += n
}

// Observe counts a duration, in seconds.
func (c *Counts) Observe(name string, seconds float64, labels ...string) {
	if c == nil || !fits(name, Histogram, labels) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spreads == nil {
		c.spreads = map[string]map[string]*spread{}
	}
	if c.spreads[name] == nil {
		c.spreads[name] = map[string]*spread{}
	}
	key := strings.Join(labels, between)
	s := c.spreads[name][key]
	bounds := family(name).Buckets
	if s == nil {
		s = &spread{labels: slices.Clone(labels), counts: make([]uint64, len(bounds)+1)}
		c.spreads[name][key] = s
	}
	at, _ := slices.BinarySearch(bounds, max(0, seconds)) // a bound is the greatest of its bucket
	s.counts[at]++
	s.sum += max(0, seconds)
}

func fits(name, kind string, labels []string) bool {
	f := family(name)
	return f != nil && f.Kind == kind && len(f.Labels) == len(labels)
}

// onto adds what was counted to a page.
func (c *Counts) onto(p page) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, series := range c.numbers {
		for key, n := range series {
			p.add(name, n, labelsOf(name, key)...)
		}
	}
	for name, series := range c.spreads {
		for s := range maps.Values(series) {
			p.spreads[name] = append(p.spreads[name], spread{labels: s.labels, counts: slices.Clone(s.counts), sum: s.sum})
		}
	}
}

func labelsOf(name, key string) []string {
	if len(family(name).Labels) == 0 {
		return nil
	}
	return strings.Split(key, between)
}
