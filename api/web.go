package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Bounds of listen.api.
const (
	webConns    = 128
	webHeaders  = 16 << 10
	webPerActor = 20 // requests a second
	webFailed   = 10 // failed sign-ins a minute and address
	// againEvery is how often the right to a stream is looked at anew.
	againEvery = 15 * time.Second
	// streamsAtOnce are of all, streamsOfOne of one actor.
	streamsAtOnce = 64
	streamsOfOne  = 8
)

// WebOptions are what Web needs besides the calls of the socket.
type WebOptions struct {
	Tokens *Tokens
	// OIDC is nil where nobody signs in with an issuer.
	OIDC *OIDC
	// SessionKey is of LoadSessionKey.
	SessionKey []byte
	// Address is where it listens, and URL how the world names it; "" where nobody does.
	Address, URL string
	Hosts        []string // names besides that a request may be for
	// CertFile and KeyFile are of TLS; "" is plain HTTP.
	CertFile, KeyFile string
	// Pages answers what is no path of the API; nil is none. It is asked too where nobody is
	// signed in, and finds out by ViewerOf.
	Pages http.Handler
	// Conns is how many connections may be open at once; 0 is 128.
	Conns int
	Now   func() time.Time
	Log   *slog.Logger
}

// Web serves the calls of a Table to people and programs on TCP, each within the scopes
// of its token. What no scope allows is not there.
type Web struct {
	WebOptions
	table    *Table
	sessions *sessions
	cert     *certificate // nil for plain HTTP
	origin   *http.CrossOriginProtection
	names    map[string]bool

	requests *rate // by the id of a token
	failed   *rate // sign-ins, by address
	signIns  *signIns
	told     told
	streams  streams
	every    time.Duration
}

// NewWeb starts nothing.
func NewWeb(t *Table, o WebOptions) (*Web, error) {
	w := &Web{
		WebOptions: o, table: t, origin: http.NewCrossOriginProtection(), names: map[string]bool{},
		requests: newRate(webPerActor), failed: newRateOf(webFailed, webFailed/60.0), signIns: newSignIns(), every: againEvery,
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("cannot serve listen.api: %w", err)
	}
	for _, name := range append([]string{u.Hostname()}, o.Hosts...) {
		if name != "" {
			w.names[plainHost(name)] = true
		}
	}
	_, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve listen.api: %w", err)
	}
	cookie, secure := "gitring-"+port, u.Scheme == "https"
	if secure {
		cookie = "__Host-gitring"
	}
	if w.sessions, err = newSessions(o.SessionKey, cookie, secure, o.Now); err != nil {
		return nil, err
	}
	if o.CertFile != "" {
		if w.cert, err = newCertificate(o.CertFile, o.KeyFile); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Run serves until ctx ends; l is closed when it returns.
func (w *Web) Run(ctx context.Context, l net.Listener) error {
	perSecond := connsASecond
	if w.cert != nil {
		perSecond = securedSecond
	}
	bounded := limitConns(l, cmp.Or(w.Conns, webConns), perSecond)
	server := &http.Server{
		Handler:           w,
		ConnState:         bounded.heard,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    webHeaders,
		ErrorLog:          slog.NewLogLogger(w.Log.Handler(), slog.LevelDebug),

		DisableGeneralOptionsHandler: true,
	}
	if w.cert == nil {
		return serve(ctx, server, bounded)
	}
	// One request at a time on a connection is bounded more easily than many.
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: w.cert.now, NextProtos: []string{"http/1.1"}}
	return serve(ctx, server, tls.NewListener(bounded, config))
}

// Viewer is who asks, for pages.
type Viewer struct {
	Actor  string
	Scopes Scopes
	// Apps are those that the viewer may see; none is no limit.
	Apps Apps
	// Session reports whether a browser is signed in, and so can sign out.
	Session bool
	token   Token
}

type viewerKey struct{}

// ViewerOf is who is signed in of a request that Pages answers.
func ViewerOf(ctx context.Context) (Viewer, bool) {
	v, ok := ctx.Value(viewerKey{}).(Viewer)
	return v, ok
}

// asking is a request, and what is known of it.
type asking struct {
	w     *answerWriter
	r     *http.Request
	token Token
	// by is who asks; "" where nobody is signed in.
	by      string
	session bool
	route   string
	denied  string // why, for the log
}

// key tells those who ask apart: several tokens may have one name, and whom an issuer knows has none.
func (a *asking) key() string { return cmp.Or(a.token.ID, a.by) }

// ServeHTTP asks in this order: is the request for us, is it of our own pages, who asks,
// how often, may they; nothing is called before all of it is in order.
func (w *Web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	began := w.Now()
	a := &asking{w: &answerWriter{ResponseWriter: out, rc: http.NewResponseController(out), r: r}, r: r}
	h := out.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	// It counts until the body is taken: of what is refused before, net/http reads the rest.
	_ = a.w.rc.SetReadDeadline(time.Now().Add(w.table.within))
	if err := w.answer(a); err != nil {
		w.refuse(a, err)
	}
	w.log(a, w.Now().Sub(began))
}

func (w *Web) refuse(a *asking, err error) {
	e := asError(err)
	a.denied = e.Message
	if a.w.begun {
		failLate(a.w, err)
		return
	}
	switch e.Status {
	case http.StatusUnauthorized:
		a.w.Header().Set("WWW-Authenticate", `Bearer realm="gitring"`)
	case http.StatusTooManyRequests:
		a.w.Header().Set("Retry-After", "1")
		if e.after > 0 {
			a.w.Header().Set("Retry-After", fmt.Sprint(int(math.Ceil(e.after.Seconds()))))
		}
	}
	writeError(a.w, e)
}

func (w *Web) answer(a *asking) error {
	if !w.isForUs(a.r) {
		return &Error{Code: CodeWrongHost, Message: "this is no name of this host", Hint: "ask by the url of listen.api, or name it in its hosts", Status: http.StatusMisdirectedRequest}
	}
	if err := w.origin.Check(a.r); err != nil {
		return Denied("use the pages of this host itself", "a page of somewhere else may not do this")
	}
	signing := a.r.URL.Path == sessionPath
	known, err := w.who(a)
	if err != nil {
		return err
	}
	if known && !w.requests.allow("", a.key(), w.Now()) {
		return tooMany(time.Second, "%s asks too often", a.by)
	}
	switch {
	case signing:
		return w.session(a, known)
	case w.Pages != nil && !strings.HasPrefix(a.r.URL.Path, "/v1/") && a.r.URL.Path != metricsPath:
		r := a.r
		if known && a.token.Apps.limited() { // pages are of the whole host
			return noPath(r.URL.Path)
		}
		if known {
			r = r.WithContext(context.WithValue(r.Context(), viewerKey{}, w.viewer(a)))
		}
		a.route = "page"
		if err := takeBody(a.w, r, bodyLimit, w.table.within); err != nil {
			return err
		}
		w.Pages.ServeHTTP(a.w, r)
		if code := a.w.code(); code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusTooManyRequests {
			a.denied = http.StatusText(code)
		}
		return nil
	case !known:
		return unauthenticated()
	}
	return w.call(a)
}

func (w *Web) viewer(a *asking) Viewer {
	return Viewer{Actor: a.by, Scopes: a.token.Scopes, Apps: a.token.Apps, Session: a.session, token: a.token}
}

// call finds the route and the right to it, and serves it.
func (w *Web) call(a *asking) error {
	rt, err := w.table.find(a.r.Method, a.r.URL.Path)
	if err != nil {
		return err
	}
	a.route = rt.path
	if err := mayCall(&rt, w.viewer(a)); err != nil {
		return err
	}
	if rt.limit != takesItself {
		if err := takeBody(a.w, a.r, min(rt.limit, w.table.most), w.table.within); err != nil {
			return err
		}
	}
	p := peerOfViewer(w.viewer(a))
	if !rt.stream {
		return rt.serve(a.w, a.r, p)
	}
	leave, err := w.streams.enter(a.by)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(a.r.Context())
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { w.watch(ctx, a, cancel) })
	return rt.serve(a.w, a.r.WithContext(ctx), p)
}

// watch ends a stream once the one who reads it has no right to it any more.
func (w *Web) watch(ctx context.Context, a *asking, end func()) {
	t := time.NewTicker(w.every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now, ok := w.Tokens.Now(a.token)
		if a.session {
			now, _, ok = w.holder(a.r)
		}
		if !ok || now.Scopes.String() != a.token.Scopes.String() || now.Apps.String() != a.token.Apps.String() {
			end()
			return
		}
	}
}

// who finds out who asks: by a token, or by the session of one. A wrong token counts
// against its address; a right one is let in however many wrong ones came from there.
func (w *Web) who(a *asking) (known bool, err error) {
	if text, shown := strings.CutPrefix(a.r.Header.Get("Authorization"), "Bearer "); shown {
		t, ok := w.Tokens.Of(text)
		if !ok {
			return false, w.wrong(a)
		}
		a.token, a.by = t, "token/"+t.Name
		return true, nil
	}
	if t, account, ok := w.holder(a.r); ok {
		a.token, a.by, a.session = t, account, true
	}
	return a.session, nil
}

// holder is who a request's session stands for, with what they may do at this moment. Whoever signed
// in with an issuer has no token, only the rights of one.
func (w *Web) holder(r *http.Request) (now Token, account string, ok bool) {
	s, ok := w.sessions.of(r)
	if !ok {
		return Token{}, "", false
	}
	if was, ok := s.token(); ok {
		now, ok = w.Tokens.Now(was)
		return now, "token/" + now.Name, ok
	}
	if w.OIDC == nil || s.Account == "" || s.Issuer != w.OIDC.Name {
		return Token{}, "", false
	}
	now = Token{Scopes: w.OIDC.scopes(s.Rows), Until: s.Until.Format(time.RFC3339)}
	return now, s.Account, len(now.Scopes) > 0
}

// wrong is the answer to a token that grants nothing.
func (w *Web) wrong(a *asking) error {
	a.route = "sign-in"
	if !w.failed.allow(a.r.RemoteAddr, "", w.Now()) {
		return tooMany(time.Minute/webFailed, "too many wrong tokens from this address")
	}
	return unauthenticated()
}

func unauthenticated() *Error {
	return &Error{Code: CodeUnauthenticated, Message: "nobody is signed in", Hint: "send Authorization: Bearer with a token; gitring token new <name> --scope <scopes> makes one", Status: http.StatusUnauthorized}
}

func tooMany(after time.Duration, format string, args ...any) *Error {
	return &Error{Code: CodeTooMany, Message: fmt.Sprintf(format, args...), Hint: "ask again later, as Retry-After says", Status: http.StatusTooManyRequests, after: after}
}

// isForUs holds the Host of a request to the names of this host: a name of somebody
// else's that leads here is an attack on a browser, or a mistake.
func (w *Web) isForUs(r *http.Request) bool {
	host := plainHost(r.Host)
	if isLoopback(host) || w.names[host] {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap().WithZone("") == ip.Unmap()
}

// isLoopback reports whether a plain host is this machine, as only it can be asked.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// plainHost is a host's name without port, brackets and the last dot.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// log writes the access log. What a stranger can cause is a line a minute for each token
// and address.
func (w *Web) log(a *asking, took time.Duration) {
	if w.table.count != nil {
		route := "other"
		if rt, err := w.table.find(a.r.Method, a.route); err == nil {
			route = rt.method + " " + rt.path
		}
		w.table.count(route, a.w.code())
	}
	args := []any{"actor", a.by, "address", whose(a.r.RemoteAddr).String(), "method", a.r.Method, "path", a.route, "status", a.w.code(), "ms", took.Milliseconds()}
	switch {
	case a.denied != "" && a.w.code() < 500:
		left, ok := w.told.tell(a.key()+" "+whose(a.r.RemoteAddr).String(), "denied", w.Now())
		if !ok {
			return
		}
		w.Log.Info("denied, told once a minute", append(args, "reason", a.denied, "left_out", left)...)
	case a.r.Method != http.MethodGet && a.r.Method != http.MethodHead && a.route != reportPath:
		w.Log.Info("asked by the api", args...)
	default:
		w.Log.Debug("asked by the api", args...)
	}
}

// --- sessions ---------------------------------------------------------------

const sessionPath = "/v1/session"

// SignInRequest is the body of POST /v1/session.
type SignInRequest struct {
	Token string `json:"token"`
}

// SignedIn says who asks, and what they may do.
type SignedIn struct {
	Actor  string `json:"actor"`
	Scopes Scopes `json:"scopes"`
	// Apps are those that the token is limited to; absent where it is not.
	Apps  Apps   `json:"apps,omitempty"`
	Until string `json:"until"` // of the token: a day, or never; of who has none, the session's end
}

// session is the one thing that strangers may do: sign in.
func (w *Web) session(a *asking, known bool) error {
	a.route = sessionPath
	switch a.r.Method {
	case http.MethodPost:
		var in SignInRequest
		if err := takeBody(a.w, a.r, 1<<10, w.table.within); err != nil {
			return err
		}
		if err := readJSON(a.r, &in); err != nil {
			return err
		}
		if err := w.SignIn(a.w, a.r, in.Token); err != nil {
			return err
		}
		t, _ := w.Tokens.Of(in.Token)
		a.by, a.token = "token/"+t.Name, t
	case http.MethodDelete:
		w.SignOut(a.w)
		return writeJSON(a.w, struct{}{})
	case http.MethodGet:
		if !known {
			return unauthenticated()
		}
	default:
		return &Error{Code: CodeUsage, Message: a.r.Method + " is not for " + sessionPath, Status: http.StatusMethodNotAllowed}
	}
	return writeJSON(a.w, SignedIn{Actor: a.by, Scopes: a.token.Scopes, Apps: a.token.Apps, Until: a.token.Until})
}

// SignIn has a browser hold a session of a token. An error is the answer to it.
func (w *Web) SignIn(out http.ResponseWriter, r *http.Request, token string) error {
	t, ok := w.Tokens.Of(strings.TrimSpace(token))
	if !ok {
		return w.wrong(&asking{r: r})
	}
	if t.Scopes.Reports() != "" {
		return Denied("it is for the host's own reports; sign in with one that has the scope "+string(ScopeRead), "a token that reports opens no pages")
	}
	if t.Apps.limited() {
		return Denied("send it to the API as Authorization: Bearer; for the pages ask for a token without apps=", "a token that is limited to apps opens no pages")
	}
	c, err := w.sessions.begin(session{ID: t.ID, Sum: t.sum[:]})
	if err != nil {
		return err
	}
	http.SetCookie(out, c)
	return nil
}

// SignOut has the browser forget its session.
func (w *Web) SignOut(out http.ResponseWriter) { http.SetCookie(out, w.sessions.end()) }

// --- streams -----------------------------------------------------------------

// streams bounds what is open for long.
type streams struct {
	mu sync.Mutex // guards what follows
	of map[string]int
	n  int
}

// enter takes a place; it is given back by the function.
func (s *streams) enter(actor string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n >= streamsAtOnce || s.of[actor] >= streamsOfOne {
		return nil, tooMany(10*time.Second, "too many streams are open: %d of %s", s.of[actor], actor)
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.n++
	s.of[actor]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.n--
		if s.of[actor]--; s.of[actor] == 0 {
			delete(s.of, actor)
		}
	}, nil
}
