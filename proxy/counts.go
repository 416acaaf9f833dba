package proxy

import (
	"sync/atomic"
	"time"

	"github.com/gitring/gitring/ring"
)

// counts are ring.FrontCounts while they grow.
type counts struct {
	requests, noAnswer, dialErrors, retries atomic.Int64
	bytesIn, bytesOut, headMicros           atomic.Int64
	classes                                 [6]atomic.Int64 // by the first digit of the status
	heads                                   []atomic.Int64
}

func newCounts() *counts { return &counts{heads: make([]atomic.Int64, len(ring.FrontBuckets)+1)} }

// answered counts the head of an answer, and how long it took.
func (c *counts) answered(status int, took time.Duration) {
	if class := status / 100; class >= 1 && class <= 5 {
		c.classes[class].Add(1)
	}
	if status < 200 && status != 101 {
		return // the head that counts follows
	}
	i, ms := 0, took.Milliseconds()
	for i < len(ring.FrontBuckets) && ms > int64(ring.FrontBuckets[i]) {
		i++
	}
	c.heads[i].Add(1)
	c.headMicros.Add(max(0, took.Microseconds()))
}

func (c *counts) seen() ring.FrontCounts {
	out := ring.FrontCounts{
		Requests: c.requests.Load(), Answers1xx: c.classes[1].Load(), Answers2xx: c.classes[2].Load(), Answers3xx: c.classes[3].Load(),
		Answers4xx: c.classes[4].Load(), Answers5xx: c.classes[5].Load(), NoAnswer: c.noAnswer.Load(), DialErrors: c.dialErrors.Load(),
		Retries: c.retries.Load(), BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(), HeadMicros: c.headMicros.Load(),
	}
	for i := range c.heads {
		if n := c.heads[i].Load(); n > 0 {
			if out.Heads == nil {
				out.Heads = make([]int64, len(c.heads))
			}
			out.Heads[i] = n
		}
	}
	return out
}
