package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gitring/gitring/ring"
)

// driver is what tells one forge from another.
type driver interface {
	dress(h http.Header, token string)
	judge(res *http.Response, body string, now time.Time) outcome
}

func driverOf(kind string) (driver, error) {
	switch kind {
	case GitHub:
		return github{}, nil
	case Gitea, Forgejo:
		return gitea{}, nil
	}
	return nil, fmt.Errorf("cannot post statuses to %q: status.forge is github, gitea or forgejo", kind)
}

// outcome of one attempt. The zero value is "try again, in our own time".
type outcome struct {
	done bool
	// permanent says that trying this post again cannot help.
	permanent bool
	// wait is the forge's own word on when to come back; 0 is none.
	wait time.Duration
	says string
}

// message is the body, the same for all forges here.
type message struct {
	State       string `json:"state"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description"`
	Context     string `json:"context"`
}

// post makes one attempt. now is for the forge's words on time.
func (f Forge) post(ctx context.Context, p ring.Post, now time.Time) outcome {
	d, err := driverOf(f.Kind)
	if err != nil {
		return outcome{permanent: true, says: err.Error()}
	}
	if !isSHA(p.SHA) {
		return outcome{permanent: true, says: "cannot post: not the id of a commit"}
	}
	token, err := f.token()
	if err != nil {
		return outcome{says: err.Error()}
	}
	body, err := json.Marshal(message{p.State, f.TargetURL, describe(p.Description), p.Context})
	if err != nil {
		return outcome{permanent: true, says: "cannot write the status"}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.statusURL(string(p.SHA)), bytes.NewReader(body))
	if err != nil {
		return outcome{permanent: true, says: "cannot use status.api_url"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "gitring")
	d.dress(req.Header, token)
	res, err := f.client().Do(req)
	if err != nil {
		return outcome{says: "cannot reach the forge: " + because(ctx, err)}
	}
	defer res.Body.Close() //nolint:errcheck // only read
	text, _ := io.ReadAll(io.LimitReader(res.Body, 8<<10))
	return d.judge(res, string(text), now)
}

// judge is what an answer means everywhere. Nothing of the answer's body is
// repeated: it is somebody else's text.
func judge(res *http.Response, now time.Time) outcome {
	code := res.StatusCode
	says := fmt.Sprintf("the forge answered %d", code)
	switch {
	case code >= 200 && code <= 299:
		return outcome{done: true}
	case code >= 300 && code <= 399:
		return outcome{permanent: true, says: says + ", a redirect, which is not followed: has the repository moved? see status.repo and status.api_url"}
	case code == http.StatusUnauthorized:
		return outcome{permanent: true, says: says + ": the token is not valid; see status.token_file"}
	case code == http.StatusForbidden:
		return outcome{permanent: true, says: says + ": the token may not write commit statuses"}
	case code == http.StatusNotFound:
		return outcome{permanent: true, says: says + ": no such repository or commit, or the token may not see it"}
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		return outcome{says: says, wait: retryAfter(res.Header, now)}
	}
	return outcome{permanent: true, says: says}
}

// because is the reason of a failed request without its URL.
func because(ctx context.Context, err error) string {
	var ne net.Error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &ne) && ne.Timeout() {
		return fmt.Sprintf("no answer within %s", timeout)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err.Error()
}

// retryAfter is the header in either of its two forms; 0 when it says nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseInt(v, 10, 32); err == nil {
		return bounded(time.Duration(s) * time.Second)
	}
	if t, err := http.ParseTime(v); err == nil {
		return bounded(t.Sub(theirNow(h, now)))
	}
	return 0
}

// theirNow is the forge's clock, which its other times are by.
func theirNow(h http.Header, now time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return now
}

// bounded keeps a forge's wish between a second and the time at which a post
// is given up anyway.
func bounded(d time.Duration) time.Duration { return min(max(d, time.Second), giveUp) }

func isSHA(s ring.SHA) bool {
	if len(s) != 40 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
