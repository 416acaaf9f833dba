package notify

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// github speaks the REST API of GitHub and GitHub Enterprise Server.
type github struct{}

func (github) dress(h http.Header, token string) {
	h.Set("Accept", "application/vnd.github+json")
	h.Set("X-GitHub-Api-Version", "2022-11-28")
	h.Set("Authorization", "Bearer "+token)
}

// judge knows that GitHub takes 1000 statuses per commit and context and
// answers 422 from then on, and that it says 403 where others say 429.
func (github) judge(res *http.Response, body string, now time.Time) outcome {
	switch res.StatusCode {
	case http.StatusUnprocessableEntity:
		if strings.Contains(body, "maximum number of statuses") {
			return outcome{done: true}
		}
	case http.StatusForbidden, http.StatusTooManyRequests:
		if wait, limited := rateLimited(res, body, now); limited {
			return outcome{wait: wait, says: "the forge's rate limit is reached"}
		}
	}
	return judge(res, now)
}

// rateLimited says until when GitHub wants to be left alone: Retry-After, else
// the reset of a used up budget, else a minute
// (docs.github.com, "Best practices for using the REST API").
func rateLimited(res *http.Response, body string, now time.Time) (time.Duration, bool) {
	if wait := retryAfter(res.Header, now); wait > 0 {
		return wait, true
	}
	if res.Header.Get("X-Ratelimit-Remaining") == "0" {
		at, err := strconv.ParseInt(res.Header.Get("X-Ratelimit-Reset"), 10, 64)
		if err == nil {
			return bounded(time.Unix(at, 0).Sub(theirNow(res.Header, now)) + time.Second), true
		}
		return time.Minute, true
	}
	if res.StatusCode == http.StatusTooManyRequests || strings.Contains(body, "rate limit") {
		return time.Minute, true
	}
	return 0, false
}
