package proxy

import (
	"time"

	"github.com/gitring/gitring/ring"
)

// wants is what a request asks of the choice of its instance.
type wants struct {
	canary  bool             // it matches what always goes to the canary
	version string           // the one its cookie names
	tried   map[*member]bool // those that it could not connect to
}

// choose gives the instance for a request, nil where there is none. It is a smooth weighted
// round robin, so each share is kept evenly and not only in the long run.
func choose(active []*member, weight int, w wants, now time.Time) *member {
	active = without(active, w.tried)
	if some := keep(active, func(m *member) bool { return w.canary && m.isCanary() }); len(some) > 0 {
		return smooth(some, 100, now)
	}
	if some := keep(active, func(m *member) bool { return w.version != "" && m.at.Version == w.version }); len(some) > 0 {
		return smooth(some, weight, now)
	}
	return smooth(active, weight, now)
}

func without(all []*member, tried map[*member]bool) []*member {
	if len(tried) == 0 {
		return all
	}
	return keep(all, func(m *member) bool { return !tried[m] })
}

func keep(all []*member, want func(*member) bool) (out []*member) {
	for _, m := range all {
		if want(m) {
			out = append(out, m)
		}
	}
	return out
}

// smooth leaves out instances that are passed over, but never the last one.
func smooth(all []*member, weight int, now time.Time) *member {
	some := all
	for _, m := range all {
		if now.Before(m.passed) {
			some = keep(all, func(m *member) bool { return !now.Before(m.passed) })
			break
		}
	}
	if len(some) == 0 {
		some = all
	}
	canaries := 0
	for _, m := range some {
		if m.isCanary() {
			canaries++
		}
	}
	var best *member
	total := 0
	for _, m := range some {
		share := shareOf(m.isCanary(), weight, canaries, len(some)-canaries)
		total += share
		m.share += share
		if share > 0 && (best == nil || m.share > best.share) {
			best = m
		}
	}
	if best != nil {
		best.share -= total
	}
	return best
}

// shareOf is the weight of one instance. The weight of a set is split evenly over it, and
// counts only while both sets have somebody.
func shareOf(canary bool, weight, canaries, stable int) int {
	switch {
	case canaries == 0 || stable == 0:
		return 1
	case canary:
		return weight * stable
	}
	return (100 - weight) * canaries
}

func (m *member) isCanary() bool { return m.at.Set == ring.SetCanary }
