package gitsync

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// defaultPoll is the interval of a source that names none.
const defaultPoll = 60 * time.Second

// jitter spreads hosts that were started together: a tenth, either way.
const jitter = 0.1

// schedule says when a remote is looked at unasked: every so often, or at the
// times of a cron expression in UTC.
type schedule struct {
	every time.Duration
	cron  cron.Schedule // nil for a duration
}

// parseSchedule reads a duration of at least 1s or a cron expression of five
// fields (or @hourly, @daily and so on). "" is the default.
func parseSchedule(s string) (schedule, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return schedule{every: defaultPoll}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		if d < time.Second {
			return schedule{}, fmt.Errorf("cannot poll every %s: at least 1s", s)
		}
		return schedule{every: d}, nil
	}
	c, err := parseCron(s)
	if err != nil {
		return schedule{}, err
	}
	return schedule{cron: c}, nil
}

func parseCron(s string) (c cron.Schedule, err error) {
	// The parser takes a zone before the fields and panics when no fields
	// follow it; and @every rounds what is below a second up without a word.
	if strings.Contains(s, "TZ=") {
		return nil, fmt.Errorf("cannot poll at %q: times are in UTC, leave the time zone away", s)
	}
	if strings.HasPrefix(s, "@every") {
		return nil, fmt.Errorf("cannot poll at %q: write the duration alone, such as 60s", s)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot poll at %q: %v", s, p)
		}
	}()
	c, err = cron.ParseStandard(s)
	if err != nil {
		return nil, fmt.Errorf("cannot poll at %q: neither a duration such as 60s nor a cron expression of five fields: %w", s, err)
	}
	if c.Next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, fmt.Errorf("cannot poll at %q: that day never comes", s)
	}
	return c, nil
}

// next is the time of the look after now.
func (s schedule) next(now time.Time) time.Time {
	if s.cron != nil {
		return s.cron.Next(now.UTC())
	}
	return now.Add(spread(s.every))
}

// interval is the time between two looks: of a cron expression, between the
// next two.
func (s schedule) interval(now time.Time) time.Duration {
	if s.cron == nil {
		return s.every
	}
	first := s.cron.Next(now.UTC())
	return s.cron.Next(first).Sub(first)
}

func spread(d time.Duration) time.Duration {
	return d + time.Duration(jitter*(2*rand.Float64()-1)*float64(d))
}
