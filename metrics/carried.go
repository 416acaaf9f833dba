package metrics

import (
	"slices"

	"github.com/gitring/gitring/ring"
)

// Names of what fronts count.
const (
	frontRequests = "gitring_front_requests_total"
	frontAnswers  = "gitring_front_answers_total"
	frontDials    = "gitring_front_dial_errors_total"
	frontRetries  = "gitring_front_retries_total"
	frontBytes    = "gitring_front_bytes_total"
	frontTook     = "gitring_front_answer_duration_seconds"
)

// headBounds are ring.FrontBuckets in seconds.
var headBounds = func() (out []float64) {
	for _, ms := range ring.FrontBuckets {
		out = append(out, float64(ms)/1000)
	}
	return out
}()

// Carried adds up what fronts count. A front counts from 0 with each of its processes, so
// differences are added up. It belongs to one goroutine. The zero value is ready.
type Carried struct {
	last map[string]lastHeard // by container
	sums map[carriedOf]*ring.FrontCounts
}

// lastHeard is what the processes of one front said last, by process and instance.
type lastHeard struct {
	service ring.ServiceID
	counts  map[string]map[string]ring.FrontCounts
}

// mostProcesses is how many processes of a front are remembered that it does not name.
const mostProcesses = 8

// carriedOf is a service, and the set of its instances.
type carriedOf struct {
	service ring.ServiceID
	set     string
}

// Hear takes what a front said. Of a container that was never heard before, the first answer
// only tells where its counters stand.
func (c *Carried) Hear(container string, service ring.ServiceID, seen *ring.FrontSeen) {
	was, known := c.last[container]
	now := lastHeard{service: service, counts: map[string]map[string]ring.FrontCounts{}}
	take := func(process, name string, counts ring.FrontCounts) {
		if now.counts[process] == nil {
			now.counts[process] = map[string]ring.FrontCounts{}
		}
		now.counts[process][name] = counts
		if !known {
			return
		}
		before := was.counts[process][name]
		if counts.Requests < before.Requests { // it was left out, and named again
			before = ring.FrontCounts{}
		}
		set := ring.SetStable
		if seen.Table.State(name).Set == ring.SetCanary {
			set = ring.SetCanary
		}
		c.add(carriedOf{service, set}, counts, before)
	}
	for _, in := range seen.Instances {
		take(seen.Process, in.Name, in.Counts)
	}
	for _, b := range seen.Before {
		for name, counts := range b.Counts {
			take(b.Process, name, counts)
		}
	}
	for process, counts := range was.counts { // it may only not have answered in time
		if now.counts[process] == nil && len(now.counts) < mostProcesses {
			now.counts[process] = counts
		}
	}
	if c.last == nil {
		c.last = map[string]lastHeard{}
	}
	c.last[container] = now
}

func (c *Carried) add(of carriedOf, now, before ring.FrontCounts) {
	sum := c.sums[of]
	if sum == nil {
		sum = &ring.FrontCounts{Heads: make([]int64, len(ring.FrontBuckets)+1)}
		if c.sums == nil {
			c.sums = map[carriedOf]*ring.FrontCounts{}
		}
		c.sums[of] = sum
	}
	grow := func(to *int64, now, before int64) { *to += max(0, now-before) }
	grow(&sum.Requests, now.Requests, before.Requests)
	grow(&sum.Answers1xx, now.Answers1xx, before.Answers1xx)
	grow(&sum.Answers2xx, now.Answers2xx, before.Answers2xx)
	grow(&sum.Answers3xx, now.Answers3xx, before.Answers3xx)
	grow(&sum.Answers4xx, now.Answers4xx, before.Answers4xx)
	grow(&sum.Answers5xx, now.Answers5xx, before.Answers5xx)
	grow(&sum.NoAnswer, now.NoAnswer, before.NoAnswer)
	grow(&sum.DialErrors, now.DialErrors, before.DialErrors)
	grow(&sum.Retries, now.Retries, before.Retries)
	grow(&sum.BytesIn, now.BytesIn, before.BytesIn)
	grow(&sum.BytesOut, now.BytesOut, before.BytesOut)
	grow(&sum.HeadMicros, now.HeadMicros, before.HeadMicros)
	for i := range min(len(sum.Heads), len(now.Heads)) {
		var was int64
		if i < len(before.Heads) {
			was = before.Heads[i]
		}
		grow(&sum.Heads[i], now.Heads[i], was)
	}
}

// onto adds what was carried for the services that have a front, and forgets all others: so
// the series are as many as the plans in force say.
func (c *Carried) onto(p page, fronts []Front) {
	if c == nil {
		return
	}
	has := map[ring.ServiceID]*Front{}
	for i := range fronts {
		has[ring.ID(fronts[i].App, fronts[i].Service)] = &fronts[i]
	}
	for container, heard := range c.last {
		if has[heard.service] == nil {
			delete(c.last, container)
		}
	}
	for of, sum := range c.sums {
		f := has[of.service]
		if f == nil {
			delete(c.sums, of)
			continue
		}
		labels := []string{f.Source, f.App, f.Service, of.set}
		with := func(more string) []string { return append(slices.Clip(labels), more) }
		p.add(frontRequests, float64(sum.Requests), labels...)
		for class, n := range map[string]int64{
			"1xx": sum.Answers1xx, "2xx": sum.Answers2xx, "3xx": sum.Answers3xx, "4xx": sum.Answers4xx, "5xx": sum.Answers5xx, "none": sum.NoAnswer,
		} {
			p.add(frontAnswers, float64(n), with(class)...)
		}
		p.add(frontDials, float64(sum.DialErrors), labels...)
		p.add(frontRetries, float64(sum.Retries), labels...)
		p.add(frontBytes, float64(sum.BytesIn), with("in")...)
		p.add(frontBytes, float64(sum.BytesOut), with("out")...)
		s := spread{labels: labels, counts: make([]uint64, len(sum.Heads)), sum: float64(sum.HeadMicros) / 1e6}
		for i, n := range sum.Heads {
			s.counts[i] = uint64(n)
		}
		p.spreads[frontTook] = append(p.spreads[frontTook], s)
	}
}
