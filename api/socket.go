package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Bounds of one request on the socket.
const (
	bodyLimit  = 64 << 10
	treeLimit  = 32 << 20 // a zipped folder
	bodyWithin = 30 * time.Second
	sendWithin = 30 * time.Second // one write; who reads slower is dropped
)

// Socket serves Calls on the control socket. Who asks is known by the kernel's
// word; which verbs that allows is in routes.
type Socket struct {
	Table
	calls Calls
	log   *slog.Logger
	// daemon is this process's user; admin says who is of the admin group.
	daemon uint32
	admin  func(Peer) bool
	tags   tags
	// envDir is where the host's env folder is, as people on the host are told; "" for none.
	envDir string
}

// NameEnv has answers on the socket say where the host's env folder is. Who asks there is on the
// host, and there it is no secret. It is called before Run.
func (s *Socket) NameEnv(dir string) { s.envDir = dir }

// Table is what can be asked at a door: routes, and who may use each.
type Table struct {
	routes []route
	within time.Duration // in which a body has to be here
	most   int64         // of a body on TCP
	// count is told of each request: its route, or "other", and the status of the answer.
	count func(route string, code int)
}

// route is one verb: who may use it on the socket, and by which scope on TCP; "" is
// nobody there. A body larger than limit is refused before it is read; takesItself leaves all
// of it to serve. A stream may be open for long.
type route struct {
	method, path string
	right        right
	scope        Scope
	limit        int64
	stream       bool
	serve        func(w http.ResponseWriter, r *http.Request, p Peer) error
}

// takesItself is the limit of a route that reads its body when it has room for it.
const takesItself = -1

// NewSocket starts nothing. It is an error when a call is missing.
func NewSocket(calls Calls, log *slog.Logger) (*Socket, error) {
	if err := calls.missing(); err != nil {
		return nil, err
	}
	s := &Socket{calls: calls, log: log, daemon: uint32(os.Geteuid()), admin: isAdmin} //nolint:gosec // a user id
	s.Table = Table{routes: s.table(), within: bodyWithin, most: bodyLimit}
	return s, nil
}

// planPath is the one route whose right depends on what is asked.
const planPath = "/v1/plan"

// table is every route: what there is, and who may.
func (s *Socket) table() []route {
	return []route{
		{"GET", "/v1/version", mayRead, ScopeRead, 0, false, s.version},
		{"GET", "/v1/status", mayRead, ScopeRead, 0, false, s.status},
		{"GET", "/v1/events", mayRead, ScopeRead, 0, true, s.events},
		{"GET", "/v1/history", mayRead, ScopeRead, 0, false, s.history},
		{"GET", "/v1/commits", mayRead, ScopeRead, 0, false, s.commits},
		{"GET", "/v1/logs", mayRead, ScopeLogs, 0, true, s.logs},
		{"GET", "/v1/outdated", mayRead, ScopeRead, 0, false, s.outdated},
		{"GET", "/v1/jobs", mayRead, ScopeRead, 0, false, s.jobs},
		{"GET", "/v1/acts", mayRead, ScopeRead, 0, false, s.acts},
		{"GET", "/v1/crashes", mayRead, ScopeRead, 0, false, s.crashes},
		{"GET", "/v1/inspect", mayRead, ScopeRead, 0, false, s.inspect},
		{"GET", "/v1/stream", mayRead, ScopeRead, 0, true, s.stream},
		{"GET", "/v1/openapi.json", mayRead, ScopeRead, 0, false, s.openAPI},
		{"GET", "/v1/usage", mayRead, ScopeRead, 0, false, s.usage},
		{"POST", "/v1/refresh", mayWrite, ScopeOperate, bodyLimit, false, s.refresh},
		{"POST", "/v1/secrets/refresh", mayWrite, ScopeOperate, bodyLimit, false, s.refreshSecrets},
		{"POST", planPath, mayRead, ScopeRead, treeLimit, false, s.plan},
		{"POST", "/v1/sync", mayWrite, ScopeOperate, 0, true, s.sync},
		{"POST", "/v1/approve", mayWrite, ScopeApprove, bodyLimit, false, s.approve},
		{"POST", "/v1/act", mayWrite, ScopeOperate, bodyLimit, false, s.act},
		{"POST", "/v1/adopt", mayWrite, ScopeAdmin, bodyLimit, false, s.adopt},
		{"POST", "/v1/leave", mayWrite, ScopeAdmin, bodyLimit, false, s.leave},
		{"GET", "/v1/outbox", mayRead, ScopeRead, 0, false, s.outbox},
		{"POST", "/v1/outbox/retry", mayWrite, ScopeOperate, bodyLimit, false, s.outboxRetry},
		{"GET", "/v1/traffic", mayRead, ScopeRead, 0, false, s.traffic},
		{"POST", "/v1/traffic/upgrade", mayWrite, ScopeOperate, bodyLimit, false, s.trafficUpgrade},
		{"POST", "/v1/notify/test", mayWrite, ScopeOperate, bodyLimit, false, s.notifyTest},
		{"GET", "/v1/trust", mayRead, ScopeRead, 0, false, s.trust},
		{"POST", "/v1/trust/accept", mayTrust, "", bodyLimit, false, s.accept},
		{"POST", "/v1/trust/reverify", mayWrite, "", bodyLimit, false, s.reverify},
		{"POST", "/v1/proof", mayWrite, "", bodyLimit, false, s.prove},
		{"GET", "/v1/doctor", mayRead, ScopeRead, 0, false, s.doctor},
		{"GET", metricsPath, mayRead, ScopeMetrics, 0, false, s.metrics},
	}
}

// Count has fn told of each request: its route, or "other", and the status of the answer. It is
// called before Run, and fn must not block.
func (t *Table) Count(fn func(route string, code int)) { t.count = fn }

// Run serves until ctx ends; l is closed when it returns.
func (s *Socket) Run(ctx context.Context, l net.Listener) error {
	return serve(ctx, &http.Server{
		Handler:           s,
		ConnContext:       withPeer,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}, l)
}

// ServeHTTP finds the route, then the right, then reads the body; nothing is
// called before all three are in order.
func (s *Socket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.count == nil {
		s.answer(w, r)
		return
	}
	out := &counted{ResponseWriter: w}
	s.answer(out, r)
	route := "other" // whatever somebody asks for, there are few routes
	if rt, err := s.find(r.Method, r.URL.Path); err == nil {
		route = rt.method + " " + rt.path
	}
	s.count(route, cmp.Or(out.code, http.StatusOK))
}

func (s *Socket) answer(w http.ResponseWriter, r *http.Request) {
	known, ok := r.Context().Value(peerKey{}).(knownPeer)
	if !ok || known.err != nil {
		writeError(w, Denied("", "cannot tell who asks"))
		return
	}
	rt, err := s.find(r.Method, r.URL.Path)
	if err != nil {
		writeError(w, err)
		return
	}
	if !allowed(known.peer, rt.right, s.daemon, s.admin) {
		s.log.Warn("denied", "path", rt.path, "actor", known.peer.Actor(), "uid", known.peer.UID)
		writeError(w, Denied("ask as root or as a member of the group "+AdminGroup,
			"%s may not do this", known.peer.Actor()))
		return
	}
	if err := takeBody(w, r, rt.limit, s.within); err != nil {
		writeError(w, err)
		return
	}
	out := &answerWriter{ResponseWriter: w, rc: http.NewResponseController(w), r: r}
	err = rt.serve(out, r, known.peer)
	if err == nil {
		return
	}
	if out.begun {
		failLate(out, err)
		return
	}
	writeError(out, err)
}

// failLate tells an error of an answer that had begun.
func failLate(w http.ResponseWriter, err error) {
	fail, _ := json.Marshal(asError(err))
	w.Header().Set(http.TrailerPrefix+errorTrailer, string(fail))
}

// errorTrailer holds the Error of an answer that had begun.
const errorTrailer = "Gitring-Error"

func (t *Table) find(method, path string) (route, error) { return find(t.routes, method, path) }

func find(routes []route, method, path string) (route, error) {
	wrong := false
	for _, rt := range routes {
		if rt.path != path {
			continue
		}
		if rt.method == method {
			return rt, nil
		}
		wrong = true
	}
	if wrong {
		return route{}, &Error{Code: CodeUsage, Message: method + " is not for " + path, Status: http.StatusMethodNotAllowed}
	}
	return route{}, noPath(path)
}

// noPath is the answer to a path that is not there, or not for the one who asks.
func noPath(path string) *Error {
	return NotFound("is the client newer than the daemon? see gitring version", "there is no %s", path)
}

// takeBody reads the whole body within its limits and lifts the read deadline
// again: it would end a stream otherwise.
func takeBody(w http.ResponseWriter, r *http.Request, limit int64, within time.Duration) error {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(within))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &Error{Code: CodeUsage, Message: "the request is too large", Status: http.StatusRequestEntityTooLarge}
	}
	if err != nil {
		return Usage("", "cannot read the request")
	}
	_ = rc.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// answerWriter knows whether the answer has begun, and gives each write its time.
type answerWriter struct {
	http.ResponseWriter
	rc     *http.ResponseController
	r      *http.Request
	begun  bool
	status int // 0 is 200
}

// WriteHeader keeps the status, for the log.
func (a *answerWriter) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answerWriter) code() int {
	if a.status == 0 {
		return http.StatusOK
	}
	return a.status
}

func (a *answerWriter) Write(b []byte) (int, error) {
	a.begun = true
	_ = a.rc.SetWriteDeadline(time.Now().Add(sendWithin))
	return a.ResponseWriter.Write(b)
}

// FlushError is what http.ResponseController calls: a flush begins the answer too.
func (a *answerWriter) FlushError() error {
	a.begun = true
	_ = a.rc.SetWriteDeadline(time.Now().Add(sendWithin))
	return a.rc.Flush()
}

func (a *answerWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func writeJSON(w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	if a, ok := w.(*answerWriter); ok && a.r.Method == http.MethodGet && same(a, b) {
		return nil
	}
	_, _ = w.Write(append(b, '\n')) // a client that went away is nobody's error
	return nil
}

func readJSON(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return Usage("", "cannot read the request: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Usage("", "cannot read the request: there is something after its end")
	}
	return nil
}

func (s *Socket) version(w http.ResponseWriter, r *http.Request, _ Peer) error {
	v, err := s.calls.Version(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, v)
}

func (s *Socket) status(w http.ResponseWriter, r *http.Request, p Peer) error {
	q, err := statusQuery(r.URL.Query())
	if err != nil {
		return err
	}
	st, err := s.statusFor(r.Context(), p)
	if err != nil {
		return err
	}
	if q.chooses() {
		if st, err = s.chosen(r.Context(), st, q); err != nil {
			return err
		}
	}
	w.Header().Set("ETag", statusTag(&st))
	return writeNamed(w, s, p, st)
}

// envMark is the host's env folder in a text of people, as JSON has it.
const envMark = `\u003cenv.dir\u003e`

// envNamed is an answer that says where the env folder is, for who asks on the host.
func envNamed[T any](s *Socket, p Peer, answer T) (out T, err error) {
	if s.envDir == "" || !p.local() {
		return answer, nil
	}
	b, err := json.Marshal(answer)
	if err != nil || !bytes.Contains(b, []byte(envMark)) {
		return answer, err
	}
	dir, err := json.Marshal(s.envDir)
	if err != nil {
		return answer, err
	}
	return out, json.Unmarshal(bytes.ReplaceAll(b, []byte(envMark), dir[1:len(dir)-1]), &out)
}

// writeNamed writes such an answer.
func writeNamed[T any](w http.ResponseWriter, s *Socket, p Peer, answer T) error {
	answer, err := envNamed(s, p, answer)
	if err != nil {
		return err
	}
	return writeJSON(w, answer)
}

func (s *Socket) history(w http.ResponseWriter, r *http.Request, p Peer) error {
	q := query{values: r.URL.Query()}
	h := HistoryQuery{App: q.text("app"), Limit: q.number("limit", 100)}
	if q.err != nil {
		return q.err
	}
	events, err := s.historyFor(r.Context(), p, h)
	if err != nil {
		return err
	}
	hidden, err := s.hiddenNow(r.Context(), p)
	if err == nil {
		events, err = scrubbed(hidden, events)
	}
	if err != nil {
		return err
	}
	if events == nil {
		events = []ring.Event{}
	}
	return writeJSON(w, events)
}

func (s *Socket) approve(w http.ResponseWriter, r *http.Request, p Peer) error {
	var a ApproveRequest
	if err := readJSON(r, &a); err != nil {
		return err
	}
	if digest, moved := strings.CutPrefix(string(a.Commit), "sha256:"); moved {
		if len(digest) < 8 || len(digest) > 64 || strings.Trim(digest, "0123456789abcdef") != "" {
			return Usage("", "a digest has sha256: and 8 to 64 hex digits")
		}
	} else if err := digits(a.Commit); err != nil {
		return err
	}
	if err := s.calls.Approve(r.Context(), p, a); err != nil {
		return err
	}
	s.log.Info("approved", "commit", a.Commit, "actor", p.Actor())
	return writeJSON(w, struct{}{})
}

func (s *Socket) accept(w http.ResponseWriter, r *http.Request, p Peer) error {
	var a AcceptRequest
	if err := readJSON(r, &a); err != nil {
		return err
	}
	if err := digits(a.Commit); err != nil || len(a.Commit) != 40 {
		return Usage("gitring trust show -o json shows the tip in full", "a commit to trust has all its 40 hex digits")
	}
	if a.Reason == "" {
		return Usage("say why with --reason", "a reason is required")
	}
	if err := s.calls.Accept(r.Context(), p, a); err != nil {
		return err
	}
	s.log.Info("trust accepted", "source", a.Source, "commit", a.Commit, "actor", p.Actor(), "reason", a.Reason)
	return writeJSON(w, struct{}{})
}

func (s *Socket) trust(w http.ResponseWriter, r *http.Request, _ Peer) error {
	q := query{values: r.URL.Query()}
	source := q.text("source")
	if q.err != nil {
		return q.err
	}
	all, err := s.calls.Trust(r.Context(), source)
	if err != nil {
		return err
	}
	if all == nil {
		all = []ring.TrustState{}
	}
	return writeJSON(w, all)
}

func (s *Socket) reverify(w http.ResponseWriter, r *http.Request, p Peer) error {
	var a ReverifyRequest
	if err := readJSON(r, &a); err != nil {
		return err
	}
	found, err := s.calls.Reverify(r.Context(), p, a)
	if err != nil {
		return err
	}
	s.log.Info("verified again", "source", found.Source, "commit", found.To, "actor", p.Actor())
	return writeJSON(w, found)
}

func (s *Socket) plan(w http.ResponseWriter, r *http.Request, by Peer) error {
	q := query{values: r.URL.Query()}
	p := PlanRequest{Source: q.text("source"), Rev: q.text("rev")}
	if p.Rev == "" && !by.local() { // its author could have the host's values shown
		return NotFound("name a commit with rev; a folder is planned by the control socket, also by ssh", "no folder is planned here")
	}
	if p.Rev == "" {
		tree, err := unpack(r.Body, treeBytes)
		if err != nil {
			return err
		}
		p.Tree = tree
	}
	changes, err := s.calls.Plan(r.Context(), p)
	if err != nil {
		return err
	}
	return writeNamed(w, s, by, changes)
}

// digits holds a commit to 7 to 40 lower-case hex digits.
func digits(c ring.SHA) error {
	if len(c) < 7 || len(c) > 40 {
		return Usage("", "a commit has 7 to 40 hex digits")
	}
	for _, d := range c {
		if (d < '0' || d > '9') && (d < 'a' || d > 'f') {
			return Usage("", "a commit has 7 to 40 hex digits")
		}
	}
	return nil
}
