package api

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/doctor"
	"github.com/gitring/gitring/ring"
)

const commit = ring.SHA("ab12cd3ab12cd3ab12cd3ab12cd3ab12cd3ab12c")

// daemon is what a Socket asks, as a test wants it.
type daemon struct {
	mu       sync.Mutex
	called   []string
	status   ring.Status
	events   []ring.Event
	appended chan struct{}
	look     func(ctx context.Context) error
	logs     func(ctx context.Context, q LogQuery, out func(string) io.WriteCloser) error
	plan     func(r PlanRequest) (ring.Changes, error)
	database int   // another one has other hashes
	fail     error // of every call
}

func (d *daemon) note(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.called = append(d.called, fmt.Sprintf(format, args...))
	return d.fail
}

func (d *daemon) calls() Calls {
	return Calls{
		Version: func(context.Context) (Version, error) {
			return Version{Gitring: "0.1.0", Engine: "docker 28.5.2", EngineAPI: "1.51"}, d.note("version")
		},
		Status: func(context.Context) (ring.Status, error) {
			err := d.note("status")
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.status, err
		},
		Labels: func(context.Context) (map[ring.ServiceID]map[string]string, error) {
			return map[ring.ServiceID]map[string]string{"web/api": {"tier": "web", "team": "a"}, "web/db": {"tier": "data"}}, d.note("labels")
		},
		Events: func(_ context.Context, q EventQuery) ([]ring.Event, error) {
			err := d.note("events after=%d app=%s last=%d limit=%d", q.After, q.App, q.Last, q.Limit)
			d.mu.Lock()
			defer d.mu.Unlock()
			var out []ring.Event
			for _, e := range d.events {
				if e.Seq > q.After && (q.App == "" || e.App == q.App) {
					out = append(out, e)
				}
			}
			if q.Last > 0 {
				out = out[max(0, len(out)-q.Last):]
			}
			return out[:min(len(out), q.Limit)], err
		},
		Lines: func(_ context.Context, q EventQuery) ([]Line, error) {
			err := d.note("lines")
			d.mu.Lock()
			defer d.mu.Unlock()
			var out []Line
			for _, e := range d.events {
				if e.Seq > q.After && (q.App == "" || e.App == q.App) {
					out = append(out, Line{Event: e, Hash: d.hash(e)})
				}
			}
			if q.Last > 0 {
				return out[max(0, len(out)-q.Last):], err
			}
			return out[:min(len(out), q.Limit)], err
		},
		AppsNamed: func(context.Context) ([]string, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			var out []string
			for _, e := range d.events {
				if e.App != "" && !slices.Contains(out, e.App) {
					out = append(out, e.App)
				}
			}
			return out, nil
		},
		Appended: func() <-chan struct{} {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.appended
		},
		Commits: func(_ context.Context, q HistoryQuery) ([]CommitNow, error) {
			return []CommitNow{{Commit: "a1", Source: q.App, Outcome: "live"}}, d.note("commits app=%s", q.App)
		},
		History: func(_ context.Context, q HistoryQuery) ([]ring.Event, error) {
			return nil, d.note("history app=%s limit=%d", q.App, q.Limit)
		},
		Logs: func(ctx context.Context, q LogQuery, out func(string) io.WriteCloser) error {
			if err := d.note("logs %+v", q); err != nil || d.logs == nil {
				return err
			}
			return d.logs(ctx, q, out)
		},
		Poke: func(_ context.Context, source string) error { return d.note("poke %s", source) },
		Look: func(ctx context.Context, source string) error {
			if err := d.note("look %s", source); err != nil || d.look == nil {
				return err
			}
			return d.look(ctx)
		},
		Approve: func(_ context.Context, p Peer, r ApproveRequest) error {
			return d.note("approve %s by uid %d: %s", r.Commit, p.UID, r.Reason)
		},
		Accept: func(_ context.Context, p Peer, r AcceptRequest) error {
			return d.note("accept %s %s by uid %d: %s", r.Source, r.Commit, p.UID, r.Reason)
		},
		Trust: func(_ context.Context, source string) ([]ring.TrustState, error) {
			return []ring.TrustState{{Source: source, Mode: "strict"}}, d.note("trust %s", source)
		},
		Prove: func(_ context.Context, p Peer, r ProofRequest) (ProofMade, error) {
			return ProofMade{Proof: json.RawMessage(`{"format":"f"}`)}, d.note("prove %s from %s after %d by uid %d", r.Target, r.From, r.After, p.UID)
		},
		Reverify: func(_ context.Context, p Peer, r ReverifyRequest) (ring.Reverified, error) {
			return ring.Reverified{Source: r.Source, Commits: 3}, d.note("reverify %s by uid %d: %s", r.Source, p.UID, r.Reason)
		},
		Outdated: func(_ context.Context, q OutdatedQuery) ([]ImageNow, error) {
			return nil, d.note("outdated app=%s tags=%t", q.App, q.Tags)
		},
		Crashes: func(_ context.Context, q CrashQuery) ([]CrashGroup, error) {
			return []CrashGroup{{App: q.App}}, d.note("crashes %s/%s logs=%t", q.App, q.Service, q.Logs)
		},
		Usage: func(context.Context) (map[string]ring.Usage, error) {
			return map[string]ring.Usage{"c1": {CPU: 0.5, Memory: 1 << 20}}, d.note("usage")
		},
		Inspect: func(_ context.Context, q InspectQuery) (ring.Explained, error) {
			return ring.Explained{App: q.App, Service: q.Service, Slot: q.Slot, Phase: ring.PhaseReady}, d.note("inspect %s/%s/%d", q.App, q.Service, q.Slot)
		},
		Jobs: func(_ context.Context, q JobQuery) ([]JobNow, error) {
			return nil, d.note("jobs %s/%s run=%s limit=%d logs=%v", q.App, q.Service, q.Run, q.Limit, q.Logs)
		},
		Traffic: func(_ context.Context, q TrafficQuery) ([]FrontNow, error) {
			return []FrontNow{{App: q.App, Service: q.Service, Phase: ring.PhaseReady}}, d.note("traffic %s/%s", q.App, q.Service)
		},
		TrafficUpgrade: func(_ context.Context, p Peer, r UpgradeRequest) (Upgrading, error) {
			return Upgrading{Fronts: []ring.ServiceID{"web/web"}}, d.note("upgrade by=%d: %s", p.UID, r.Reason)
		},
		Acts: func(_ context.Context, q ActsQuery) ([]ActNow, error) {
			return []ActNow{{Verb: "hold"}}, d.note("acts %s/%s to=%s", q.App, q.Service, q.To)
		},
		Act: func(_ context.Context, p Peer, r ActRequest) (Acted, error) {
			return Acted{Says: "done"}, d.note("act %s %s/%s for=%s to=%s n=%d by=%d: %s", r.Verb, r.App, r.Service, r.For, r.To, r.Replicas, p.UID, r.Reason)
		},
		Adopt: func(_ context.Context, p Peer, r AdoptRequest) (Adoption, error) {
			return Adoption{Says: "done"}, d.note("adopt %s compare=%v by=%d: %s", r.App, r.Compare, p.UID, r.Reason)
		},
		Leave: func(_ context.Context, p Peer, r LeaveRequest) (Left, error) {
			return Left{Says: "done"}, d.note("leave %s to=%s by=%d: %s", r.App, r.To, p.UID, r.Reason)
		},
		NotifyTest: func(_ context.Context, p Peer, r NotifyTestRequest) ([]NotifyTested, error) {
			return []NotifyTested{{Name: "team", Service: "slack", Reason: "slack: it answered 403"}}, d.note("notify test %s by=%d", r.Name, p.UID)
		},
		Outbox: func(context.Context) ([]ring.Unsaid, error) { return nil, d.note("outbox") },
		OutboxRetry: func(_ context.Context, p Peer, r OutboxRetryRequest) (OutboxRetried, error) {
			return OutboxRetried{Count: 3}, d.note("outbox retry id=%s all=%v dead=%v by=%d", r.ID, r.All, r.Dead, p.UID)
		},
		Doctor:  func(context.Context) (doctor.Report, error) { return doctor.Report{Host: "edge-1"}, d.note("doctor") },
		Metrics: Metrics(func(context.Context) (string, error) { return "gitring_engine_up 1\n", d.note("metrics") }, "text/plain; version=0.0.4"),
		RefreshSecrets: func(_ context.Context, p Peer, r SecretRefreshRequest) ([]SecretNow, error) {
			return []SecretNow{{Ref: "vault:secret/" + r.App + "/db", Changed: true}}, d.note("refresh secrets of %s by uid %d", r.App, p.UID)
		},
		Refresh: func(_ context.Context, p Peer, r RefreshRequest) ([]ImageNow, error) {
			return []ImageNow{{App: r.App, Service: "web", Image: "web:1", Pinned: "sha256:a", Now: "sha256:b", Newer: true}},
				d.note("refresh %s/%s by uid %d: %s", r.App, r.Service, p.UID, r.Reason)
		},
		Plan: func(_ context.Context, r PlanRequest) (ring.Changes, error) {
			if err := d.note("plan source=%s rev=%s tree=%v", r.Source, r.Rev, r.Tree != nil); err != nil || d.plan == nil {
				return ring.Changes{Source: r.Source}, err
			}
			return d.plan(r)
		},
	}
}

// hash is of the line, and of the database that it lies in.
func (d *daemon) hash(e ring.Event) string { return fmt.Sprintf("%07x%d", e.Seq, d.database) }

func (d *daemon) append(e ring.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
	close(d.appended)
	d.appended = make(chan struct{})
}

func (d *daemon) set(change func(st *ring.Status)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := ring.Status{Host: "edge-1", Sources: append([]ring.SourceStatus{}, d.status.Sources...)}
	change(&st)
	d.status = st
}

func (d *daemon) takeCalled() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.called
	d.called = nil
	return out
}

func newDaemon() *daemon {
	return &daemon{appended: make(chan struct{}), status: ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Sync: ring.SyncSynced}}}}
}

func newSocket(t testing.TB, d *daemon) *Socket {
	t.Helper()
	s, err := NewSocket(d.calls(), quiet)
	require.NoError(t, err)
	return s
}

// socketPath is short: a unix socket's has at most 107 bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "g")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "gitring.sock")
}

// serveSocket runs a Socket and returns its client and what stops it.
func serveSocket(t *testing.T, d *daemon) (*Client, func()) {
	t.Helper()
	path := socketPath(t)
	l, err := ListenSocket(path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	s := newSocket(t, d)
	s.within = 300 * time.Millisecond // shorter than the streams below
	go func() { done <- s.Run(ctx, l) }()
	var once sync.Once
	c := NewClient(path)
	stop := func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-done)
			c.Close()
		})
	}
	t.Cleanup(stop)
	return c, stop
}

func TestEveryCallThroughTheSocket(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	ctx := context.Background()

	v, err := c.Version(ctx)
	require.NoError(t, err)
	require.Equal(t, Version{Gitring: "0.1.0", Engine: "docker 28.5.2", EngineAPI: "1.51"}, v)

	st, err := c.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, d.status, st)
	raw, err := c.StatusJSON(ctx, StatusQuery{})
	require.NoError(t, err)
	require.Contains(t, string(raw), `"host":"edge-1"`)

	h, err := c.History(ctx, HistoryQuery{App: "web", Limit: 7})
	require.NoError(t, err)
	require.Equal(t, []ring.Event{}, h)

	require.NoError(t, c.Sync(ctx, "prod"))
	require.NoError(t, c.Approve(ctx, ApproveRequest{Commit: commit, Reason: "yes"}))
	require.NoError(t, c.Accept(ctx, AcceptRequest{Source: "prod", Commit: commit, Reason: "moved"}))
	trust, err := c.Trust(ctx, "prod")
	require.NoError(t, err)
	require.Equal(t, []ring.TrustState{{Source: "prod", Mode: "strict"}}, trust)
	again, err := c.Reverify(ctx, ReverifyRequest{Source: "prod", Reason: "bob left"})
	require.NoError(t, err)
	require.Equal(t, ring.Reverified{Source: "prod", Commits: 3}, again)
	jobs, err := c.Jobs(ctx, JobQuery{App: "web", Service: "backup", Limit: 3, Logs: true})
	require.NoError(t, err)
	require.Equal(t, []JobNow{}, jobs)
	acted, err := c.Act(ctx, ActRequest{Verb: "undo", App: "web", To: "ab12cd3", For: "2h", Reason: "bad"})
	require.NoError(t, err)
	require.Equal(t, Acted{Says: "done"}, acted)
	images, err := c.Outdated(ctx, OutdatedQuery{App: "web", Tags: true})
	require.NoError(t, err)
	require.Equal(t, []ImageNow{}, images)
	images, err = c.Refresh(ctx, RefreshRequest{App: "web", Service: "db", Reason: "new base"})
	require.NoError(t, err)
	require.Equal(t, []ImageNow{{App: "web", Service: "web", Image: "web:1", Pinned: "sha256:a", Now: "sha256:b", Newer: true}}, images)
	changes, err := c.Plan(ctx, PlanRequest{Source: "prod", Rev: "ab12cd3"})
	require.NoError(t, err)
	require.Equal(t, "prod", changes.Source)
	require.NoError(t, c.Logs(ctx, LogQuery{App: "web", Service: "web", Tail: 5, Since: time.Unix(1000, 0), Timestamps: true}, io.Discard))
	require.NoError(t, c.Logs(ctx, LogQuery{App: "web", Tail: -1, Follow: true}, io.Discard))

	require.Equal(t, []string{
		"version", "status", "status", "history app=web limit=7", "poke prod",
		fmt.Sprintf("approve %s by uid %d: yes", commit, os.Geteuid()),
		fmt.Sprintf("accept prod %s by uid %d: moved", commit, os.Geteuid()),
		"trust prod", fmt.Sprintf("reverify prod by uid %d: bob left", os.Geteuid()),
		"jobs web/backup run= limit=3 logs=true",
		fmt.Sprintf("act undo web/ for=2h to=ab12cd3 n=0 by=%d: bad", os.Geteuid()), "outdated app=web tags=true", fmt.Sprintf("refresh web/db by uid %d: new base", os.Geteuid()),
		"plan source=prod rev=ab12cd3 tree=false",
		"logs {App:web Service:web Follow:false Tail:5 Since:1970-01-01 00:16:40 +0000 UTC Timestamps:true Text:}",
		"logs {App:web Service: Follow:true Tail:-1 Since:0001-01-01 00:00:00 +0000 UTC Timestamps:false Text:}",
	}, d.takeCalled())
}

// routes by hand, so that a new one without a row here is seen.
var everyRoute = map[string]struct {
	method, target, body string
	right                right
	scope                Scope // on TCP; "" is not there for anybody
}{
	"/v1/version":         {"GET", "/v1/version", "", mayRead, "read"},
	"/v1/status":          {"GET", "/v1/status", "", mayRead, "read"},
	"/v1/events":          {"GET", "/v1/events", "", mayRead, "read"},
	"/v1/history":         {"GET", "/v1/history", "", mayRead, "read"},
	"/v1/logs":            {"GET", "/v1/logs?app=web", "", mayRead, "logs"},
	"/v1/commits":         {"GET", "/v1/commits", "", mayRead, "read"},
	"/v1/usage":           {"GET", "/v1/usage", "", mayRead, "read"},
	"/v1/outdated":        {"GET", "/v1/outdated?app=web", "", mayRead, "read"},
	"/v1/jobs":            {"GET", "/v1/jobs?app=web", "", mayRead, "read"},
	"/v1/acts":            {"GET", "/v1/acts?app=web", "", mayRead, "read"},
	"/v1/crashes":         {"GET", "/v1/crashes?app=web", "", mayRead, "read"},
	"/v1/inspect":         {"GET", "/v1/inspect?app=web&service=db&slot=2", "", mayRead, "read"},
	"/v1/refresh":         {"POST", "/v1/refresh", `{"app":"web","reason":"r"}`, mayWrite, "operate"},
	"/v1/secrets/refresh": {"POST", "/v1/secrets/refresh", `{"app":"web"}`, mayWrite, "operate"},
	"/v1/plan":            {"POST", "/v1/plan?rev=main", "", mayRead, "read"},
	"/v1/act":             {"POST", "/v1/act", `{"verb":"hold","app":"web","reason":"r"}`, mayWrite, "operate"},
	"/v1/adopt":           {"POST", "/v1/adopt", `{"app":"web","reason":"r"}`, mayWrite, "admin"},
	"/v1/leave":           {"POST", "/v1/leave", `{"app":"web","reason":"r"}`, mayWrite, "admin"},
	"/v1/outbox":          {"GET", "/v1/outbox", "", mayRead, "read"},
	"/metrics":            {"GET", "/metrics", "", mayRead, "metrics"},
	"/v1/outbox/retry":    {"POST", "/v1/outbox/retry", `{"dead":true}`, mayWrite, "operate"},
	"/v1/notify/test":     {"POST", "/v1/notify/test", `{}`, mayWrite, "operate"},
	"/v1/sync":            {"POST", "/v1/sync", "", mayWrite, "operate"},
	"/v1/approve":         {"POST", "/v1/approve", `{"commit":"ab12cd3"}`, mayWrite, "approve"},
	"/v1/trust":           {"GET", "/v1/trust?source=prod", "", mayRead, "read"},
	"/v1/proof":           {"POST", "/v1/proof", `{"target":"web/db"}`, mayWrite, ""},
	"/v1/trust/reverify":  {"POST", "/v1/trust/reverify", `{"source":"prod"}`, mayWrite, ""},
	"/v1/trust/accept":    {"POST", "/v1/trust/accept", `{"commit":"ab12cd3ab12cd3ab12cd3ab12cd3ab12cd3ab12c","reason":"r"}`, mayTrust, ""},
	"/v1/stream":          {"GET", "/v1/stream", "", mayRead, "read"},
	"/v1/openapi.json":    {"GET", "/v1/openapi.json", "", mayRead, "read"},
	"/v1/traffic":         {"GET", "/v1/traffic?app=web&service=db", "", mayRead, "read"},
	"/v1/traffic/upgrade": {"POST", "/v1/traffic/upgrade", `{"reason":"r"}`, mayWrite, "operate"},
	"/v1/doctor":          {"GET", "/v1/doctor", "", mayRead, "read"},
}

func TestWhoMayDoWhat(t *testing.T) {
	peers := []struct {
		name string
		peer Peer
		may  map[right]bool
	}{
		{"root", Peer{UID: 0}, map[right]bool{mayRead: true, mayWrite: true, mayTrust: true}},
		{"the daemon's user", Peer{UID: 900}, map[right]bool{mayRead: true, mayWrite: true}},
		{"an admin", Peer{UID: 1000, GID: 77}, map[right]bool{mayRead: true, mayWrite: true, mayTrust: true}},
		{"anyone else", Peer{UID: 1001}, map[right]bool{mayRead: true}},
	}
	d := newDaemon()
	s := newSocket(t, d)
	s.daemon, s.admin = 900, func(p Peer) bool { return p.GID == 77 }
	require.Len(t, everyRoute, len(s.routes))
	for _, rt := range s.routes {
		row, ok := everyRoute[rt.path]
		require.True(t, ok, "%s has no row", rt.path)
		for _, p := range peers {
			t.Run(p.name+" "+rt.path, func(t *testing.T) {
				w := askAs(s, knownPeer{peer: p.peer}, row.method, row.target, row.body)
				if p.may[row.right] {
					require.Equal(t, http.StatusOK, w.Code, w.Body)
					require.Equal(t, rt.path == "/v1/openapi.json", len(d.takeCalled()) == 0)
					return
				}
				require.Equal(t, http.StatusForbidden, w.Code)
				require.JSONEq(t, fmt.Sprintf(`{"code":"Denied","error":"uid %d may not do this","hint":"ask as root or as a member of the group gitring-admin"}`, p.peer.UID), w.Body.String())
				require.Empty(t, d.takeCalled(), "asked before the right was looked at")
			})
		}
		t.Run("nobody knows who "+rt.path, func(t *testing.T) {
			require.Equal(t, http.StatusForbidden, askAs(s, knownPeer{err: errors.New("no")}, row.method, row.target, row.body).Code)
			require.Empty(t, d.takeCalled())
		})
	}
	require.False(t, allowed(Peer{UID: 1001}, right(99), 900, s.admin), "an unknown right is nobody's")
}

func askAs(s *Socket, who knownPeer, method, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if strings.HasPrefix(target, "/v1/stream") {
		cancel() // it would not end
	}
	r = r.WithContext(context.WithValue(ctx, peerKey{}, who))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestARequestWithoutAPeerIsDenied(t *testing.T) {
	w := httptest.NewRecorder()
	newSocket(t, newDaemon()).ServeHTTP(w, httptest.NewRequest("GET", "/v1/status", nil))
	require.Equal(t, http.StatusForbidden, w.Code)
}

func TestWrongRequests(t *testing.T) {
	for _, tc := range []struct {
		name, method, target, body string
		code                       int
		says                       string
	}{
		{"no such path", "GET", "/v1/nothing", "", 404, "there is no /v1/nothing"},
		{"the root", "GET", "/", "", 404, "there is no /"},
		{"a path below a path", "GET", "/v1/status/", "", 404, "there is no"},
		{"the wrong method", "POST", "/v1/status", "", 405, "POST is not for /v1/status"},
		{"GET of a write", "GET", "/v1/sync", "", 405, "GET is not for /v1/sync"},
		{"after is no number", "GET", "/v1/events?after=x", "", 400, "after is no number"},
		{"after is negative", "GET", "/v1/events?after=-1", "", 400, "after is no number"},
		{"follow is a word", "GET", "/v1/events?follow=please", "", 400, "follow is 0 or 1"},
		{"limit is no number", "GET", "/v1/history?limit=x", "", 400, "limit is no number"},
		{"logs of nothing", "GET", "/v1/logs", "", 400, "whose logs?"},
		{"since is no time", "GET", "/v1/logs?app=web&since=yesterday", "", 400, "since is no time"},
		{"wait is a word", "POST", "/v1/sync?wait=x", "", 400, "wait is 0 or 1"},
		{"approve nothing", "POST", "/v1/approve", "", 400, "cannot read the request"},
		{"approve with an unknown key", "POST", "/v1/approve", `{"commit":"ab12cd3","force":true}`, 400, "unknown field"},
		{"approve twice in one", "POST", "/v1/approve", `{"commit":"ab12cd3"}{"commit":"ab12cd3"}`, 400, "after its end"},
		{"approve a word", "POST", "/v1/approve", `{"commit":"main"}`, 400, "7 to 40 hex digits"},
		{"approve upper case", "POST", "/v1/approve", `{"commit":"AB12CD3"}`, 400, "7 to 40 hex digits"},
		{"V65f accept a short id", "POST", "/v1/trust/accept", `{"commit":"ab12cd3","reason":"r"}`, 400, "all its 40 hex digits"},
		{"accept without a reason", "POST", "/v1/trust/accept", `{"commit":"ab12cd3ab12cd3ab12cd3ab12cd3ab12cd3ab12c"}`, 400, "a reason is required"},
		{"refresh without a reason", "POST", "/v1/refresh", `{"app":"web","reason":" "}`, 400, "a reason is required"},
		{"a service without its app", "GET", "/v1/jobs?service=web", "", 400, "without its app"},
		{"a run by too little of it", "GET", "/v1/jobs?run=ab", "", 400, "7 digits"},
		{"a number of runs that is none", "GET", "/v1/jobs?limit=many", "", 400, "limit"},
		{"an adoption without a reason", "POST", "/v1/adopt", `{"app":"web"}`, 400, "a reason is required"},
		{"an adoption of nothing", "POST", "/v1/adopt", `{"reason":"r"}`, 400, "an app is required"},
		{"an adoption of a service", "POST", "/v1/adopt", `{"app":"web/web","reason":"r"}`, 400, "an app is required"},
		{"leaving without a reason", "POST", "/v1/leave", `{"app":"web","reason":" "}`, 400, "a reason is required"},
		{"leaving into a folder of nobody knows where", "POST", "/v1/leave", `{"app":"web","reason":"r","to":"x"}`, 400, "no absolute folder"},
		{"an act without a reason", "POST", "/v1/act", `{"verb":"hold","app":"web","reason":" "}`, 400, "a reason is required"},
		{"an act on nothing", "POST", "/v1/act", `{"verb":"hold","reason":"r"}`, 400, "an app is required"},
		{"an act for too long", "POST", "/v1/act", `{"verb":"hold","app":"web","reason":"r","for":"721h"}`, 400, "how long an act can stand"},
		{"an act for a time that has gone", "POST", "/v1/act", `{"verb":"scale","app":"web","reason":"r","for":"-1h"}`, 400, "how long an act can stand"},
		{"an act that does not stand", "POST", "/v1/act", `{"verb":"abort","app":"web","reason":"r","for":"1h"}`, 400, "does not stand"},
		{"an undo to no commit", "POST", "/v1/act", `{"verb":"undo","app":"web","reason":"r","to":"main"}`, 400, "hex digits"},
		{"fewer than none", "POST", "/v1/act", `{"verb":"scale","app":"web","reason":"r","replicas":-1}`, 400, "-1 replicas"},
		{"refresh nothing", "POST", "/v1/refresh", `{"reason":"r"}`, 400, "an app is required"},
		{"refresh secrets of nothing", "POST", "/v1/secrets/refresh", `{"reason":"r"}`, 400, "an app is required"},
		{"accept a path", "POST", "/v1/trust/accept", `{"commit":"../../../x","reason":"r"}`, 400, "all its 40 hex digits"},
		{"a body that is too large", "POST", "/v1/approve", `{"reason":"` + strings.Repeat("x", bodyLimit) + `"}`, 413, "too large"},
		{"a body where none is wanted", "POST", "/v1/sync", "x", 413, "too large"},
		{"plan of no zip", "POST", "/v1/plan", "x", 400, "it is no zip"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDaemon()
			w := askAs(newSocket(t, d), knownPeer{peer: Peer{UID: 0}}, tc.method, tc.target, tc.body)
			require.Equal(t, tc.code, w.Code)
			require.Equal(t, "application/json", w.Header().Get("Content-Type"))
			var e Error
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &e))
			require.NotEmpty(t, e.Code)
			require.Contains(t, e.Message, tc.says)
			require.Empty(t, d.takeCalled())
		})
	}
}

// Each kind of error arrives at the client as what it was, from every call.
func TestErrorsArriveAsTheyWere(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	ctx := context.Background()
	everyCall := map[string]func() error{
		"version":  func() error { _, err := c.Version(ctx); return err },
		"status":   func() error { _, err := c.Status(ctx); return err },
		"history":  func() error { _, err := c.History(ctx, HistoryQuery{}); return err },
		"events":   func() error { return c.Events(ctx, EventQuery{}, func(ring.Event) error { return nil }) },
		"logs":     func() error { return c.Logs(ctx, LogQuery{App: "web"}, io.Discard) },
		"sync":     func() error { return c.Sync(ctx, "x") },
		"wait":     func() error { return c.SyncWait(ctx, "x", func(ring.Status) error { return nil }) },
		"approve":  func() error { return c.Approve(ctx, ApproveRequest{Commit: commit}) },
		"accept":   func() error { return c.Accept(ctx, AcceptRequest{Commit: commit, Reason: "r"}) },
		"acts":     func() error { _, err := c.Acts(ctx, ActsQuery{App: "web"}); return err },
		"outdated": func() error { _, err := c.Outdated(ctx, OutdatedQuery{}); return err },
		"crashes":  func() error { _, err := c.Crashes(ctx, CrashQuery{}); return err },
		"prove":    func() error { _, err := c.Prove(ctx, ProofRequest{Target: "web/db"}); return err },
		"inspect":  func() error { _, err := c.Inspect(ctx, InspectQuery{App: "web", Service: "db"}); return err },
		"jobs":     func() error { _, err := c.Jobs(ctx, JobQuery{}); return err },
		"notify":   func() error { _, err := c.NotifyTest(ctx, NotifyTestRequest{}); return err },
		"outbox":   func() error { _, err := c.Outbox(ctx); return err },
		"say":      func() error { _, err := c.OutboxRetry(ctx, OutboxRetryRequest{All: true}); return err },
		"act":      func() error { _, err := c.Act(ctx, ActRequest{Verb: "hold", App: "web", Reason: "r"}); return err },
		"refresh":  func() error { _, err := c.Refresh(ctx, RefreshRequest{App: "web", Reason: "r"}); return err },
		"plan":     func() error { _, err := c.Plan(ctx, PlanRequest{Rev: "main"}); return err },
	}
	for _, tc := range []struct {
		fail error
		kind error
		want Error
	}{
		{NotFound("see gitring status", "there is no source x"), ErrNotFound, Error{Code: "NotFound", Message: "there is no source x", Hint: "see gitring status", Status: 404}},
		{fmt.Errorf("cannot do it: %w", Conflicting("", "nothing waits")), ErrConflict, Error{Code: "Conflict", Message: "nothing waits", Hint: "", Status: 409}},
		{Denied("", "not you"), ErrDenied, Error{Code: "Denied", Message: "not you", Hint: "", Status: 403}},
		{Usage("", "which source?"), ErrUsage, Error{Code: "Usage", Message: "which source?", Hint: "", Status: 400}},
		{Away("", "cannot fetch: no route"), nil, Error{Code: "Away", Message: "cannot fetch: no route", Hint: "", Status: 502}},
		{&ring.Refusal{Code: ring.Unsigned, Says: "commit ab12cd3 is not signed", Hint: "sign it"}, ErrRefused, Error{Code: "Unsigned", Message: "Unsigned: commit ab12cd3 is not signed", Hint: "sign it", Status: 422}},
		{errors.New("cannot write: disk full"), nil, Error{Code: "Internal", Message: "cannot write: disk full", Hint: "", Status: 500}},
	} {
		for name, call := range everyCall {
			t.Run(tc.want.Code+" "+name, func(t *testing.T) {
				d.mu.Lock()
				d.fail = tc.fail
				d.mu.Unlock()
				err := call()
				var got *Error
				require.ErrorAs(t, err, &got)
				require.Equal(t, tc.want, *got)
				for _, kind := range []error{ErrUsage, ErrDenied, ErrNotFound, ErrConflict, ErrRefused} {
					require.Equal(t, kind == tc.kind, errors.Is(err, kind), "%v", kind)
				}
			})
		}
	}
}

func TestStatusOfEveryCode(t *testing.T) {
	for _, e := range []*Error{Usage("", ""), Denied("", ""), NotFound("", ""), Conflicting("", ""), Away("", "")} {
		require.Equal(t, e.Status, statusOf(e.Code), e.Code)
	}
	require.Equal(t, 500, statusOf(CodeInternal))
	require.Equal(t, 422, statusOf(string(ring.Unsigned)))
}

func TestEventsPageThroughTheJournal(t *testing.T) {
	d := newDaemon()
	for i := range 1300 {
		d.events = append(d.events, ring.Event{Seq: int64(i + 1), App: []string{"web", "db"}[i%2], Kind: ring.InstanceStep})
	}
	c, _ := serveSocket(t, d)
	list := func(q EventQuery) []int64 {
		var seqs []int64
		require.NoError(t, c.Events(context.Background(), q, func(e ring.Event) error { seqs = append(seqs, e.Seq); return nil }))
		return seqs
	}
	require.Len(t, list(EventQuery{}), 1300)
	require.Equal(t, []int64{1299, 1300}, list(EventQuery{After: 1298}))
	require.Equal(t, []int64{1298, 1300}, list(EventQuery{Last: 2, App: "db"}))
	require.Equal(t, []int64{1, 3, 5}, list(EventQuery{Limit: 3, App: "web"}))
	require.Len(t, list(EventQuery{Limit: 501}), 501)
	require.Empty(t, list(EventQuery{After: 1300}))
	own := errors.New("own")
	require.ErrorIs(t, c.Events(context.Background(), EventQuery{}, func(ring.Event) error { return own }), own)
}

func TestEventsFollow(t *testing.T) {
	d := newDaemon()
	d.events = []ring.Event{{Seq: 1, App: "web"}, {Seq: 2, App: "db"}}
	c, stop := serveSocket(t, d)
	got := make(chan int64)
	ended := make(chan error)
	go func() {
		ended <- c.Events(context.Background(), EventQuery{Follow: true}, func(e ring.Event) error { got <- e.Seq; return nil })
	}()
	require.EqualValues(t, 1, <-got)
	require.EqualValues(t, 2, <-got)
	for seq := int64(3); seq < 50; seq++ {
		d.append(ring.Event{Seq: seq})
		require.Equal(t, seq, <-got)
	}
	stop() // the daemon ends, and with it the stream, in order
	require.NoError(t, <-ended)
}

func TestAFollowerThatGoesAwayIsForgotten(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	ctx, cancel := context.WithCancel(context.Background())
	d.events = []ring.Event{{Seq: 1}}
	err := c.Events(ctx, EventQuery{Follow: true}, func(ring.Event) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
}

func TestSyncWait(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	looking := make(chan struct{})
	d.look = func(ctx context.Context) error {
		select {
		case <-looking:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	sync := func(s ring.Sync) func(*ring.Status) {
		return func(st *ring.Status) { st.Sources = []ring.SourceStatus{{Name: "prod", Sync: s}} }
	}
	var seen []ring.Sync
	begin := time.Now()
	err := c.SyncWait(context.Background(), "prod", func(st ring.Status) error {
		now := st.Sources[0].Sync
		seen = append(seen, now)
		switch now {
		case ring.SyncSynced:
			if len(seen) == 1 { // still the old state: the look is not over
				d.set(sync(ring.SyncStaging))
				close(looking)
			}
		case ring.SyncStaging:
			d.set(sync(ring.SyncApplying))
		case ring.SyncApplying:
			d.set(sync(ring.SyncSynced))
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []ring.Sync{ring.SyncSynced, ring.SyncStaging, ring.SyncApplying, ring.SyncSynced}, seen)
	require.GreaterOrEqual(t, time.Since(begin), 3*frame-50*time.Millisecond, "more than five a second")
	require.Contains(t, d.takeCalled(), "look prod")
}

// A source is held while an undo stands; what it brings back is awaited all the same.
func TestSyncWaitFollowsAnUndo(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	d.look = func(context.Context) error { return nil }
	held := func(target string, r *ring.RolloutStatus) func(*ring.Status) {
		return func(st *ring.Status) {
			st.Sources = []ring.SourceStatus{{Name: "prod", Sync: ring.SyncHeld, Apps: []ring.AppStatus{{Name: "web", Services: []ring.ServiceStatus{{Name: "web", Rollout: r}}}}}}
			st.Overrides = []ring.Override{{Kind: "undo", Target: target}}
		}
	}
	d.set(held("web", &ring.RolloutStatus{Phase: ring.RolloutProgressing}))
	n := 0
	require.NoError(t, c.SyncWait(context.Background(), "prod", func(ring.Status) error {
		if n++; n == 1 {
			d.set(held("web", nil))
		}
		return nil
	}))
	require.Equal(t, 2, n, "it waited for the rollout of the undo")

	for _, rests := range []func(*ring.Status){
		held("web", &ring.RolloutStatus{Phase: ring.RolloutPaused}),
		held("other", &ring.RolloutStatus{Phase: ring.RolloutProgressing}), // what is held may wait for ever
	} {
		d.set(rests)
		n = 0
		require.NoError(t, c.SyncWait(context.Background(), "prod", func(ring.Status) error { n++; return nil }))
		require.Equal(t, 1, n)
	}
}

func TestSyncWaitTellsOnlyChanges(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	n := 0
	done := make(chan struct{})
	d.look = func(context.Context) error { <-done; return nil }
	time.AfterFunc(5*frame, func() { close(done) })
	require.NoError(t, c.SyncWait(context.Background(), "", func(ring.Status) error { n++; return nil }))
	require.Equal(t, 1, n)
}

func TestSyncWaitOfARemoteThatIsAway(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	seen := make(chan struct{}, 1)
	d.look = func(context.Context) error { <-seen; return Away("", "cannot fetch prod: no route to host") }
	err := c.SyncWait(context.Background(), "prod", func(ring.Status) error { seen <- struct{}{}; return nil })
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, Error{Code: CodeAway, Message: "cannot fetch prod: no route to host", Hint: "", Status: 502}, *e, "after the stream had begun")
}

func TestSyncWaitEndsWithItsCaller(t *testing.T) {
	d := newDaemon()
	c, _ := serveSocket(t, d)
	gone := make(chan struct{})
	d.look = func(ctx context.Context) error { defer close(gone); <-ctx.Done(); return ctx.Err() }
	ctx, cancel := context.WithCancel(context.Background())
	require.ErrorIs(t, c.SyncWait(ctx, "prod", func(ring.Status) error { cancel(); return nil }), context.Canceled)
	<-gone // the daemon no longer looks on behalf of nobody
}

func TestADaemonThatStopsInTheMiddle(t *testing.T) {
	d := newDaemon()
	c, stop := serveSocket(t, d)
	d.look = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	seen := make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- c.SyncWait(context.Background(), "prod", func(ring.Status) error { close(seen); return nil })
	}()
	<-seen
	stop()
	err := <-ended
	require.Error(t, err)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "the daemon is stopping", e.Message)
}

func TestSettled(t *testing.T) {
	for sync, want := range map[ring.Sync]bool{
		ring.SyncUnknown: true, ring.SyncRefused: true, ring.SyncHeld: true, ring.SyncStaging: false,
		ring.SyncApplying: false, ring.SyncDegraded: true, ring.SyncSynced: true,
	} {
		st := &ring.Status{Sources: []ring.SourceStatus{{Name: "a", Sync: sync}, {Name: "b", Sync: ring.SyncSynced}}}
		require.Equal(t, want, settled(st, "a"), sync)
		require.Equal(t, want, settled(st, ""), sync)
		require.True(t, settled(st, "b"), "another source is none of its business")
	}
}

func TestLogsPrefixEachLine(t *testing.T) {
	d := newDaemon()
	d.logs = func(_ context.Context, _ LogQuery, out func(string) io.WriteCloser) error {
		one, two := out("web-web-1-1a2b3c4d"), out("web-web-2-1a2b3c4d")
		for _, w := range []struct {
			to   io.Writer
			text string
		}{{one, "he"}, {two, "first\nsecond\nthi"}, {one, "llo\n"}, {two, "rd"}, {one, ""}} {
			_, err := io.WriteString(w.to, w.text)
			require.NoError(t, err)
		}
		require.NoError(t, two.Close())
		return one.Close()
	}
	c, _ := serveSocket(t, d)
	var got bytes.Buffer
	require.NoError(t, c.Logs(context.Background(), LogQuery{App: "web", Tail: -1}, &got))
	require.Equal(t, "web-web-2-1a2b3c4d | first\nweb-web-2-1a2b3c4d | second\nweb-web-1-1a2b3c4d | hello\nweb-web-2-1a2b3c4d | third\n", got.String())
}

func TestALineWithoutAnEndIsBounded(t *testing.T) {
	var got bytes.Buffer
	w := &lineWriter{to: &got, prefix: "a | "}
	for range 100 {
		_, err := w.Write(bytes.Repeat([]byte("x"), 1000))
		require.NoError(t, err)
		require.Less(t, len(w.rest), lineCap)
	}
	require.NoError(t, w.Close())
	require.Equal(t, 100_000, strings.Count(got.String(), "x"))
	require.Equal(t, 6, strings.Count(got.String(), "a | "))
}

func TestLogsThatFailAfterTheyBegan(t *testing.T) {
	d := newDaemon()
	d.logs = func(_ context.Context, _ LogQuery, out func(string) io.WriteCloser) error {
		_, err := io.WriteString(out("web-1"), "a line\n")
		require.NoError(t, err)
		return errors.New("cannot read the logs: engine away")
	}
	c, _ := serveSocket(t, d)
	var got bytes.Buffer
	err := c.Logs(context.Background(), LogQuery{App: "web", Tail: -1}, &got)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, Error{Code: "Internal", Message: "cannot read the logs: engine away", Hint: "", Status: 500}, *e)
	require.Equal(t, "web-1 | a line\n", got.String())
}

func TestLogsEndWithTheirReader(t *testing.T) {
	d := newDaemon()
	gone := make(chan struct{})
	d.logs = func(ctx context.Context, _ LogQuery, out func(string) io.WriteCloser) error {
		_, err := io.WriteString(out("web-1"), "a line\n")
		require.NoError(t, err)
		<-ctx.Done()
		close(gone)
		return ctx.Err()
	}
	c, _ := serveSocket(t, d)
	own := errors.New("pipe closed")
	err := c.Logs(context.Background(), LogQuery{App: "web", Tail: -1, Follow: true}, writerFunc(func([]byte) (int, error) { return 0, own }))
	require.ErrorIs(t, err, own)
	<-gone
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestPlanOfAFolder(t *testing.T) {
	dir := t.TempDir()
	for path, body := range map[string]string{
		"gitring.yaml": "version: 1\n", "web/compose.yaml": "services: {}\n", "web/run.sh": "#!/bin/sh\n", ".git/config": "[core]\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(body), 0o644))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "web/run.sh"), 0o755))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "web/link")))

	d := newDaemon()
	var files []string
	d.plan = func(r PlanRequest) (ring.Changes, error) {
		return ring.Changes{Source: r.Source}, fs.WalkDir(r.Tree, ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			body, err := fs.ReadFile(r.Tree, path)
			files = append(files, fmt.Sprintf("%s %s %q", info.Mode(), path, body))
			return err
		})
	}
	c, _ := serveSocket(t, d)
	changes, err := c.Plan(context.Background(), PlanRequest{Source: "prod", Tree: os.DirFS(dir)})
	require.NoError(t, err)
	require.Equal(t, "prod", changes.Source)
	require.Equal(t, []string{
		`-rw-r--r-- gitring.yaml "version: 1\n"`,
		`-rw-r--r-- web/compose.yaml "services: {}\n"`,
		`Lrwxrwxrwx web/link "/etc/passwd"`,
		`-rwxr-xr-x web/run.sh "#!/bin/sh\n"`,
	}, files)
}

// A commit's tree has its links' targets as content, and no ReadLink.
func TestPlanOfACommitsTree(t *testing.T) {
	raw, err := pack(onlyFS{fstest.MapFS{"link": {Data: []byte("target"), Mode: fs.ModeSymlink | 0o777}, "a": {Data: []byte("a")}}}, treeLimit)
	require.NoError(t, err)
	tree, err := unpack(bytes.NewReader(raw), treeBytes)
	require.NoError(t, err)
	body, err := fs.ReadFile(tree, "link")
	require.NoError(t, err)
	require.Equal(t, "target", string(body))
}

type onlyFS struct{ m fstest.MapFS }

func (o onlyFS) Open(name string) (fs.File, error) {
	f, ok := o.m[name]
	if ok && f.Mode&fs.ModeSymlink != 0 {
		return fstest.MapFS{name: {Data: f.Data}}.Open(name)
	}
	return o.m.Open(name)
}

func (o onlyFS) ReadDir(name string) ([]fs.DirEntry, error) { return o.m.ReadDir(name) }

func TestAFolderIsNotTakenBlindly(t *testing.T) {
	zipped := func(add func(z *zip.Writer)) []byte {
		var buf bytes.Buffer
		z := zip.NewWriter(&buf)
		add(z)
		require.NoError(t, z.Close())
		return buf.Bytes()
	}
	entry := func(name string, mode fs.FileMode) []byte {
		return zipped(func(z *zip.Writer) {
			h := &zip.FileHeader{Name: name}
			h.SetMode(mode)
			_, err := z.CreateHeader(h)
			require.NoError(t, err)
		})
	}
	bomb := zipped(func(z *zip.Writer) {
		for i := range 5 {
			w, err := z.Create(fmt.Sprint(i))
			require.NoError(t, err)
			_, err = io.CopyN(w, zeros{}, 600<<10)
			require.NoError(t, err)
		}
	})
	require.Less(t, len(bomb), 100<<10)
	for _, tc := range []struct {
		name, says string
		body       []byte
	}{
		{"no zip", "it is no zip", []byte("PK")},
		{"a name that climbs", "no path inside it", entry("../x", 0o644)},
		{"an absolute name", "no path inside it", entry("/etc/passwd", 0o644)},
		{"a backslash", "no path inside it", entry(`a\b`, 0o644)},
		{"a device", "no file, folder or link", entry("dev", fs.ModeDevice|0o644)},
		{"a bomb", "larger than 2 MiB", bomb},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := unpack(bytes.NewReader(tc.body), 2<<20)
			require.ErrorIs(t, err, ErrUsage)
			require.ErrorContains(t, err, tc.says)
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestAFolderThatIsTooLargeIsNotSent(t *testing.T) {
	noise := make([]byte, 512<<10)
	for i, x := 0, uint64(1); i < len(noise); i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		noise[i] = byte(x)
	}
	_, err := pack(fstest.MapFS{"a": {Data: noise}, "b": {Data: noise}, "c": {Data: noise}}, 1<<20)
	require.ErrorContains(t, err, "larger than 1 MiB")
	require.ErrorIs(t, err, ErrFolderTooLarge)
}

// unread is a folder of which nothing may be read.
type unread struct{ t *testing.T }

func (u unread) Open(name string) (fs.File, error) {
	u.t.Errorf("%s was read, for a daemon that is not there", name)
	return nil, fs.ErrPermission
}

func TestAFolderIsOnlyPackedForADaemonThatIsThere(t *testing.T) {
	_, err := NewClient(socketPath(t)).Plan(context.Background(), PlanRequest{Tree: unread{t}})
	var away *ErrUnreachable
	require.ErrorAs(t, err, &away)
}

func TestUnreachable(t *testing.T) {
	path := socketPath(t)
	c := NewClient(path)
	_, err := c.Status(context.Background())
	var away *ErrUnreachable
	require.ErrorAs(t, err, &away)
	require.Equal(t, path, away.Socket)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Contains(t, err.Error(), "cannot reach the daemon on "+path+": dial unix")

	require.ErrorAs(t, c.SyncWait(context.Background(), "", func(ring.Status) error { return nil }), &away)
	require.ErrorAs(t, c.Logs(context.Background(), LogQuery{App: "a"}, io.Discard), &away)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = c.Status(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// A daemon that is killed gives no proper end; half an answer is none.
func TestADaemonThatIsKilled(t *testing.T) {
	path := socketPath(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	answers := []string{
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1a\r\n{\"status\":{\"host\":\"edge\"}}\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n{\"status\":{\"host\":\"edge\"}}\n", // an end, but not settled
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
		"",
	}
	go func() {
		for _, a := range answers {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, a)
			_ = conn.Close()
		}
	}()
	for i := range answers {
		c := NewClient(path)
		err := c.SyncWait(context.Background(), "", func(ring.Status) error { return nil })
		var away *ErrUnreachable
		require.ErrorAs(t, err, &away, "answer %d", i)
		c.Close()
	}
}

func TestAnAnswerThatIsNotOurs(t *testing.T) {
	path := socketPath(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/status" {
			http.Error(w, "<html>oops", 500)
			return
		}
		_, _ = io.WriteString(w, "<html>")
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	c := NewClient(path)
	defer c.Close()
	_, err = c.Status(context.Background())
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "the daemon answered 500", e.Message)
	_, err = c.Version(context.Background())
	require.ErrorContains(t, err, "cannot understand the daemon")
}

func TestACallThatIsMissing(t *testing.T) {
	c := newDaemon().calls()
	c.Look = nil
	_, err := NewSocket(c, quiet)
	require.EqualError(t, err, "cannot serve the socket: the call Look is missing")
}

func TestTheSocketsFolderLetsItsReadersThrough(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	path := socketPath(t)
	l, err := ListenSocket(path)
	require.NoError(t, err)
	fi, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), fi.Mode().Perm())
	require.NoError(t, l.Close())

	require.NoError(t, os.Chmod(filepath.Dir(path), 0o750)) // somebody's decision, such as RuntimeDirectoryMode=
	l, err = ListenSocket(path)
	require.NoError(t, err)
	fi, err = os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o750), fi.Mode().Perm())
	require.NoError(t, l.Close())
}

func TestListenSocket(t *testing.T) {
	path := socketPath(t)
	l, err := ListenSocket(path)
	require.NoError(t, err)
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o660), fi.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "something was left behind")

	_, err = ListenSocket(path)
	require.ErrorContains(t, err, "another daemon answers on "+path)

	// A daemon that was killed leaves its socket behind.
	require.NoError(t, l.(*socketFile).UnixListener.Close())
	second, err := ListenSocket(path)
	require.NoError(t, err)
	_ = l.Close()
	_, err = os.Stat(path)
	require.NoError(t, err, "the end of the old one took the socket of the new one")
	require.NoError(t, second.Close())
	_, err = os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist)

	// A datagram socket is somebody's, though it takes no connection.
	other, err := net.ListenPacket("unixgram", path)
	require.NoError(t, err)
	_, err = ListenSocket(path)
	require.ErrorContains(t, err, "cannot tell whether a daemon answers on "+path)
	require.NoError(t, other.Close())
	_ = os.Remove(path)

	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err = ListenSocket(path)
	require.ErrorContains(t, err, "is no socket")
	body, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(body))
}

// On the host it is no secret where the env folder is, and there people look for it. Elsewhere
// an answer has the folder's name in the configuration.
func TestAnswersOnTheHostNameTheEnvFolder(t *testing.T) {
	s := &Socket{envDir: `/srv/env "of" host`}
	st := ring.Status{Sources: []ring.SourceStatus{{Apps: []ring.AppStatus{{
		Name: "web", Reason: "the host's TAG in <env.dir>/web/.env changed", Refusal: &ring.Refusal{Hint: "set it in <env.dir>/web/.env"},
	}}}}}
	here, err := envNamed(s, Peer{UID: 1000}, st)
	require.NoError(t, err)
	require.Equal(t, `set it in /srv/env "of" host/web/.env`, here.Sources[0].Apps[0].Refusal.Hint)
	require.Equal(t, `the host's TAG in /srv/env "of" host/web/.env changed`, here.Sources[0].Apps[0].Reason)
	require.Equal(t, "set it in <env.dir>/web/.env", st.Sources[0].Apps[0].Refusal.Hint, "the snapshot is everybody's")
	away, err := envNamed(s, Peer{Account: "token/ci"}, st)
	require.NoError(t, err)
	require.Equal(t, st, away)
	s.envDir = ""
	nowhere, err := envNamed(s, Peer{}, st)
	require.NoError(t, err)
	require.Equal(t, st, nowhere)
}
