package api

import (
	"net/url"
	"strconv"
	"time"
)

// query reads the values of a URL and keeps the first mistake.
type query struct {
	values url.Values
	err    error
}

func (q *query) text(key string) string { return q.values.Get(key) }

// number is never negative, and otherwise when absent.
func (q *query) number(key string, otherwise int) int {
	s := q.values.Get(key)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if (err != nil || n < 0) && q.err == nil {
		q.err = Usage("", "%s is no number", key)
	}
	return n
}

func (q *query) yes(key string) bool {
	switch q.values.Get(key) {
	case "", "0", "false":
		return false
	case "1", "true":
		return true
	}
	if q.err == nil {
		q.err = Usage("", "%s is 0 or 1", key)
	}
	return false
}

func (q *query) moment(key string) time.Time {
	s := q.values.Get(key)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil && q.err == nil {
		q.err = Usage("", "%s is no time such as 2026-01-31T08:00:00Z", key)
	}
	return t
}
