package notify

import (
	"net/http"
	"strconv"
	"time"
)

const limitReached = "the forge's rate limit is reached"

// comeBack is when a forge that said "too many" wants to be asked again: its
// Retry-After, else the time at which its budget is new (GitHub says it in
// x-ratelimit-reset, GitLab in RateLimit-Reset, both in seconds since 1970),
// else a minute, which is what GitHub asks for where it says nothing.
func comeBack(h http.Header) time.Duration {
	if wait := retryAfter(h); wait > 0 {
		return wait
	}
	for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset"} {
		at, err := strconv.ParseInt(h.Get(name), 10, 64)
		if err == nil && at > 1e9 { // some forges count seconds from now instead
			at = min(at, 1<<40) // beyond which a time is less than itself
			return bounded(min(time.Unix(at, 0).Sub(theirNow(h)), giveUp) + time.Second)
		}
		if err == nil && at > 0 {
			return bounded(time.Duration(at) * time.Second)
		}
	}
	return time.Minute
}

// retryAfter is the header in either of its two forms; 0 when it says nothing.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseInt(v, 10, 32); err == nil {
		return bounded(time.Duration(s) * time.Second)
	}
	if t, err := http.ParseTime(v); err == nil {
		return bounded(t.Sub(theirNow(h)))
	}
	return 0
}

// theirNow is the forge's clock, which its other times are by.
func theirNow(h http.Header) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return time.Now()
}

// bounded keeps a forge's wish between a second and the time at which a post
// is given up anyway.
func bounded(d time.Duration) time.Duration { return min(max(d, time.Second), giveUp) }
