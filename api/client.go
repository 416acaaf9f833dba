package api

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

// Client asks a daemon on its socket. Its methods return *ErrUnreachable when
// none answers, *Error as the daemon said it, and the context's error when
// that ended first.
type Client struct {
	socket string // or what else it is reached by, for people
	dial   func(ctx context.Context) (net.Conn, error)
	http   *http.Client
}

// daemonName is the Host of every request: the connection says which daemon is meant.
const daemonName = "gitring"

// NewClient connects at the first call.
func NewClient(socket string) *Client {
	var d net.Dialer
	return NewClientBy(socket, func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) })
}

// NewClientBy asks over connections that dial makes to a daemon's socket; name is what
// people know the daemon by.
func NewClientBy(name string, dial func(ctx context.Context) (net.Conn, error)) *Client {
	return &Client{socket: name, dial: dial, http: &http.Client{
		Transport:     &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Version asks which daemon and engine these are.
func (c *Client) Version(ctx context.Context) (Version, error) {
	var v Version
	return v, c.ask(ctx, http.MethodGet, "/v1/version", nil, nil, &v)
}

// Status is the truth about the host.
func (c *Client) Status(ctx context.Context) (ring.Status, error) {
	return c.StatusOf(ctx, StatusQuery{})
}

// StatusOf is the truth about those services that q chooses.
func (c *Client) StatusOf(ctx context.Context, q StatusQuery) (ring.Status, error) {
	var st ring.Status
	return st, c.ask(ctx, http.MethodGet, "/v1/status", q.values(), nil, &st)
}

// StatusJSON is the same as the daemon wrote it, for "-o json": a newer
// daemon's fields are kept.
func (c *Client) StatusJSON(ctx context.Context, q StatusQuery) (json.RawMessage, error) {
	var raw json.RawMessage
	return raw, c.ask(ctx, http.MethodGet, "/v1/status", q.values(), nil, &raw)
}

// History is what became of commits, newest first.
func (c *Client) History(ctx context.Context, q HistoryQuery) ([]ring.Event, error) {
	v := url.Values{}
	set(v, "app", q.App)
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	var events []ring.Event
	return events, c.ask(ctx, http.MethodGet, "/v1/history", v, nil, &events)
}

// Events calls each for every line of the journal that q asks for, in order.
// Following, it returns when ctx ends or each returns an error, with that error.
func (c *Client) Events(ctx context.Context, q EventQuery, each func(ring.Event) error) error {
	v := url.Values{}
	set(v, "app", q.App)
	for key, n := range map[string]int64{"after": q.After, "limit": int64(q.Limit), "last": int64(q.Last)} {
		if n > 0 {
			v.Set(key, strconv.FormatInt(n, 10))
		}
	}
	flag(v, "follow", q.Follow)
	began := func(res *http.Response) {
		if first, err := strconv.ParseInt(res.Header.Get(firstLine), 10, 64); err == nil && q.Trimmed != nil {
			q.Trimmed(first)
		}
	}
	return c.stream(ctx, http.MethodGet, "/v1/events", v, began, func(raw json.RawMessage) (bool, error) {
		var e ring.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return false, fmt.Errorf("cannot understand the daemon: %w", err)
		}
		return false, each(e)
	})
}

// Logs copies what the instances print, each line after the instance's name.
func (c *Client) Logs(ctx context.Context, q LogQuery, w io.Writer) error {
	v := url.Values{}
	set(v, "app", q.App)
	set(v, "service", q.Service)
	flag(v, "follow", q.Follow)
	flag(v, "timestamps", q.Timestamps)
	set(v, "q", q.Text)
	if q.Tail >= 0 {
		v.Set("tail", strconv.Itoa(q.Tail))
	}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339))
	}
	res, err := c.do(ctx, http.MethodGet, "/v1/logs", v, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	to := &keptError{w: w}
	if _, err := io.Copy(to, res.Body); err != nil {
		if to.err != nil {
			return to.err // the writer's own
		}
		return c.lost(ctx, err)
	}
	return trailer(res)
}

// keptError tells a writer's error from the connection's.
type keptError struct {
	w   io.Writer
	err error
}

func (k *keptError) Write(b []byte) (int, error) {
	n, err := k.w.Write(b)
	k.err = err
	return n, err
}

// Sync asks a source, or all for "", to look at its remote soon.
func (c *Client) Sync(ctx context.Context, source string) error {
	v := url.Values{}
	set(v, "source", source)
	return c.ask(ctx, http.MethodPost, "/v1/sync", v, nil, &struct{}{})
}

// SyncWait looks at the remote now and calls each with the status whenever it
// changed, until nothing of the source is under way. The last status given is
// the outcome. An error of each ends it and is returned.
func (c *Client) SyncWait(ctx context.Context, source string, each func(ring.Status) error) error {
	v := url.Values{"wait": {"1"}}
	set(v, "source", source)
	ended := false
	err := c.stream(ctx, http.MethodPost, "/v1/sync", v, func(*http.Response) {}, func(raw json.RawMessage) (bool, error) {
		var l SyncLine
		if err := json.Unmarshal(raw, &l); err != nil {
			return false, fmt.Errorf("cannot understand the daemon: %w", err)
		}
		switch {
		case l.Error != nil:
			l.Error.Status = statusOf(l.Error.Code)
			return false, l.Error
		case l.Settled:
			ended = true
			return true, nil
		case l.Status != nil:
			return false, each(*l.Status)
		}
		return false, nil
	})
	if err == nil && !ended {
		return &ErrUnreachable{c.socket, io.ErrUnexpectedEOF}
	}
	return err
}

// Approve says yes to the plan that waits for it.
func (c *Client) Approve(ctx context.Context, r ApproveRequest) error {
	return c.ask(ctx, http.MethodPost, "/v1/approve", nil, r, &struct{}{})
}

// Accept moves a source's anchor by a person's decision.
func (c *Client) Accept(ctx context.Context, r AcceptRequest) error {
	return c.ask(ctx, http.MethodPost, "/v1/trust/accept", nil, r, &struct{}{})
}

// Trust says whom a source trusts and up to where, or all for "".
func (c *Client) Trust(ctx context.Context, source string) ([]ring.TrustState, error) {
	v := url.Values{}
	set(v, "source", source)
	var out []ring.TrustState
	return out, c.ask(ctx, http.MethodGet, "/v1/trust", v, nil, &out)
}

// Reverify has the trusted history held against the present keys.
func (c *Client) Reverify(ctx context.Context, r ReverifyRequest) (ring.Reverified, error) {
	var out ring.Reverified
	return out, c.ask(ctx, http.MethodPost, "/v1/trust/reverify", nil, r, &out)
}

// Outdated says what the images in force mean now.
func (c *Client) Outdated(ctx context.Context, q OutdatedQuery) ([]ImageNow, error) {
	v := url.Values{}
	set(v, "app", q.App)
	if q.Tags {
		v.Set("tags", "true")
	}
	var out []ImageNow
	return out, c.ask(ctx, http.MethodGet, "/v1/outdated", v, nil, &out)
}

// Jobs are jobs and cron jobs with their runs.
func (c *Client) Jobs(ctx context.Context, q JobQuery) ([]JobNow, error) {
	v := url.Values{}
	set(v, "app", q.App)
	set(v, "service", q.Service)
	set(v, "run", q.Run)
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Logs {
		v.Set("logs", "1")
	}
	var out []JobNow
	return out, c.ask(ctx, http.MethodGet, "/v1/jobs", v, nil, &out)
}

// Acts says which acts can be done now to an app or a service.
func (c *Client) Acts(ctx context.Context, q ActsQuery) ([]ActNow, error) {
	v := url.Values{}
	set(v, "app", q.App)
	set(v, "service", q.Service)
	set(v, "to", string(q.To))
	var out []ActNow
	return out, c.ask(ctx, http.MethodGet, "/v1/acts", v, nil, &out)
}

// Act does something by hand to an app or a service.
func (c *Client) Act(ctx context.Context, r ActRequest) (Acted, error) {
	var done Acted
	return done, c.ask(ctx, http.MethodPost, "/v1/act", nil, r, &done)
}

// Refresh has image names looked up anew.
func (c *Client) Refresh(ctx context.Context, r RefreshRequest) ([]ImageNow, error) {
	var out []ImageNow
	return out, c.ask(ctx, http.MethodPost, "/v1/refresh", nil, r, &out)
}

// RefreshSecrets asks the providers of an app's values again.
func (c *Client) RefreshSecrets(ctx context.Context, r SecretRefreshRequest) ([]SecretNow, error) {
	var out []SecretNow
	return out, c.ask(ctx, http.MethodPost, "/v1/secrets/refresh", nil, r, &out)
}

// Plan asks what a folder or a commit would change; an error that is
// ErrFolderTooLarge for a folder that is too large to be sent.
func (c *Client) Plan(ctx context.Context, r PlanRequest) (ring.Changes, error) {
	v := url.Values{}
	set(v, "source", r.Source)
	var body any
	if r.Tree != nil {
		// A large folder takes seconds to pack: only for a daemon that is there.
		if err := c.reach(ctx); err != nil {
			return ring.Changes{}, err
		}
		zipped, err := pack(r.Tree, treeLimit)
		if err != nil {
			return ring.Changes{}, err
		}
		body = zipped
	} else {
		set(v, "rev", r.Rev)
	}
	var changes ring.Changes
	return changes, c.ask(ctx, http.MethodPost, "/v1/plan", v, body, &changes)
}

// reach fails where no daemon listens.
func (c *Client) reach(ctx context.Context) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return c.lost(ctx, err)
	}
	return conn.Close()
}

// ask makes one call with one JSON answer. A []byte body is sent as it is.
func (c *Client) ask(ctx context.Context, method, path string, v url.Values, body, into any) error {
	res, err := c.do(ctx, method, path, v, body)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return c.lost(ctx, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("cannot understand the daemon: %w", err)
	}
	return nil
}

// stream calls began once the answer began, and each for every line of it until it says
// that this was the last, or fails.
func (c *Client) stream(ctx context.Context, method, path string, v url.Values, began func(*http.Response), each func(json.RawMessage) (bool, error)) error {
	res, err := c.do(ctx, method, path, v, nil)
	if err != nil {
		return err
	}
	began(res)
	defer res.Body.Close() //nolint:errcheck // only read
	d := json.NewDecoder(res.Body)
	for {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return trailer(res)
		}
		if err != nil {
			return c.lost(ctx, err)
		}
		if last, err := each(raw); err != nil || last {
			return err
		}
	}
}

func (c *Client) do(ctx context.Context, method, path string, v url.Values, body any) (*http.Response, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		r = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		r = bytes.NewReader(raw)
	}
	u := url.URL{Scheme: "http", Host: daemonName, Path: path, RawQuery: v.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), r)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return nil, c.lost(ctx, err)
	}
	e := &Error{Status: res.StatusCode}
	if json.Unmarshal(raw, e) != nil || e.Message == "" {
		return nil, &Error{Code: CodeInternal, Message: fmt.Sprintf("the daemon answered %d", res.StatusCode), Status: res.StatusCode}
	}
	return nil, e
}

// lost is what a broken connection means: the end of our own patience, or a
// daemon that is not there.
func (c *Client) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &ErrUnreachable{c.socket, err}
}

// trailer is the error of an answer that had begun.
func trailer(res *http.Response) error {
	raw := res.Trailer.Get(errorTrailer)
	if raw == "" {
		return nil
	}
	e := &Error{}
	if err := json.Unmarshal([]byte(raw), e); err != nil {
		return fmt.Errorf("cannot understand the daemon: %w", err)
	}
	e.Status = statusOf(e.Code)
	return e
}

func set(v url.Values, key, value string) {
	if value != "" {
		v.Set(key, value)
	}
}

func flag(v url.Values, key string, yes bool) {
	if yes {
		v.Set(key, "1")
	}
}
