package api

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// openPath is where the code of a Local is turned into its cookie.
const openPath = "/open"

// LocalOptions are what Local needs.
type LocalOptions struct {
	// Client asks the daemon whose dashboard this is.
	Client *Client
	// Actor is who looks, for pages. The daemon itself knows by the kernel's word.
	Actor string
	// ReadOnly passes on nothing that changes anything.
	ReadOnly bool
	// Pages makes what answers what is no path of the API. It asks a client that may no more
	// than the dashboard, and finds out by ViewerOf who looks.
	Pages func(*Client) http.Handler
	Now   func() time.Time
	Log   *slog.Logger
}

// Local serves the dashboard to one person on the loopback of their own machine, and passes
// on what it asks of a daemon elsewhere. A code that works once becomes a cookie, which is
// worth nothing to the next Local.
type Local struct {
	LocalOptions
	scopes Scopes
	may    *within
	pages  http.Handler
	origin *http.CrossOriginProtection
	pass   *httputil.ReverseProxy
	// cookie and worth are its name and value.
	cookie, worth string

	mu   sync.Mutex // guards what follows
	code string     // "" once it was used

	requests *rate
	failed   *rate // wrong codes, by address
	streams  streams
	within   time.Duration // a body is read
}

// NewLocal starts nothing. The cookie is named after the port of an address.
func NewLocal(at net.Addr, o LocalOptions) (*Local, error) {
	_, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return nil, fmt.Errorf("cannot serve the dashboard: %w", err)
	}
	l := &Local{
		LocalOptions: o, scopes: Scopes{ScopeLogs, ScopeOperate, ScopeApprove},
		origin: http.NewCrossOriginProtection(), cookie: "gitring-ui-" + port, worth: secret(), code: secret(),
		requests: newRate(webPerActor), failed: newRateOf(webFailed, webFailed/60.0),
		within: bodyWithin,
	}
	if o.ReadOnly {
		l.scopes = Scopes{ScopeLogs}
	}
	l.may = newWithin(o.Client.http.Transport, l.scopes)
	l.pages = o.Pages(o.Client.by(l.may))
	l.pass = &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: o.Client.http.Transport, FlushInterval: -1,
		ModifyResponse: modify,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, err error) { writeError(w, o.Client.away(err)) },
		ErrorLog:       slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return l, nil
}

// secret is 256 random bits as text.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// ListenLocal opens a port on loopback; an address beyond it is refused.
func ListenLocal(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, Usage("127.0.0.1:0 is any free port", "cannot listen on %s: %v", address, err)
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.Unmap().IsLoopback()) {
		return nil, notLocal(address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve the dashboard: %w", err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // a hosts file says what localhost is
		_ = l.Close()
		return nil, notLocal(l.Addr().String())
	}
	return l, nil
}

func notLocal(address string) *Error {
	return Usage("--listen 127.0.0.1:0 is any free port; for others there is listen.api of the host's configuration", "cannot listen on %s: the dashboard is for this machine alone", address)
}

// Address is what a person opens, once, where it listens on l.
func (l *Local) Address(at net.Addr) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "http://" + at.String() + openPath + "?code=" + l.code
}

// Run serves until ctx ends; on is closed when it returns.
func (l *Local) Run(ctx context.Context, on net.Listener) error {
	bounded := limitConns(on, webConns, connsASecond)
	return serve(ctx, &http.Server{
		Handler:           l,
		ConnState:         bounded.heard,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    webHeaders,
		ErrorLog:          slog.NewLogLogger(l.Log.Handler(), slog.LevelDebug),

		DisableGeneralOptionsHandler: true,
	}, bounded)
}

// ServeHTTP asks as Web does, and in that order.
func (l *Local) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w := &answerWriter{ResponseWriter: out, rc: http.NewResponseController(out), r: r}
	h := out.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// It counts until the body is taken: of what is refused before, net/http reads the rest.
	_ = w.rc.SetReadDeadline(time.Now().Add(l.within))
	if err := l.answer(w, r); err != nil {
		l.refuse(w, r, asError(err))
	}
}

// refuse tells programs in JSON, and people in a sentence.
func (l *Local) refuse(w *answerWriter, r *http.Request, e *Error) {
	if e.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	if isAPI(r) {
		writeError(w, e)
		return
	}
	http.Error(w, e.Message+"\n\n"+e.Hint, e.Status)
}

func isAPI(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == metricsPath
}

func (l *Local) answer(w *answerWriter, r *http.Request) error {
	if host := plainHost(r.Host); !isLoopback(host) && !strings.HasSuffix(host, ".localhost") {
		return &Error{Code: CodeWrongHost, Message: "this is no name of this machine", Hint: "ask by 127.0.0.1", Status: http.StatusMisdirectedRequest}
	}
	if err := l.origin.Check(r); err != nil || isAPI(r) && isOfAnotherPage(r) {
		return Denied("use the pages of this host itself", "a page of somewhere else may not do this")
	}
	known := l.knows(r)
	switch {
	case r.URL.Path == openPath:
		return l.open(w, r, known)
	case !known:
		return l.closed()
	case !l.requests.allow("", "", l.Now()):
		return tooMany(time.Second, "%s asks too often", l.Actor)
	case isAPI(r):
		return l.call(w, r)
	}
	if err := takeBody(w, r, bodyLimit, l.within); err != nil {
		return err
	}
	v := Viewer{Actor: l.Actor, Scopes: l.scopes}
	l.pages.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), viewerKey{}, v)))
	return nil
}

// isOfAnotherPage reports whether a browser says that a page of another origin asks. Pages
// of other ports of this machine are of the same site, and so send the cookie.
func isOfAnotherPage(r *http.Request) bool {
	from := r.Header.Get("Sec-Fetch-Site")
	return from != "" && from != "same-origin" && from != "none"
}

// knows reports whether a request has the cookie.
func (l *Local) knows(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(l.cookie), func(c *http.Cookie) bool {
		return subtle.ConstantTimeCompare([]byte(c.Value), []byte(l.worth)) == 1
	})
}

// open turns the code into the cookie. Who has the cookie may open the address again.
func (l *Local) open(w *answerWriter, r *http.Request, known bool) error {
	if r.Method != http.MethodGet {
		return &Error{Code: CodeUsage, Message: r.Method + " is not for " + openPath, Status: http.StatusMethodNotAllowed}
	}
	if r.Header.Get("Sec-Purpose") != "" { // a browser that only guesses would use the code up
		return &Error{Code: CodeUsage, Message: "this address is not fetched ahead of time", Status: http.StatusServiceUnavailable}
	}
	if !known {
		if !l.use(r.URL.Query().Get("code")) {
			if !l.failed.allow(r.RemoteAddr, "", l.Now()) {
				return tooMany(time.Minute/webFailed, "too many wrong codes")
			}
			return l.closed()
		}
		http.SetCookie(w, &http.Cookie{Name: l.cookie, Value: l.worth, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	}
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// use reports whether this is the code, the first time that it is shown.
func (l *Local) use(code string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.code == "" || subtle.ConstantTimeCompare([]byte(code), []byte(l.code)) != 1 {
		return false
	}
	l.code = ""
	return true
}

func (l *Local) closed() *Error {
	return &Error{
		Code: CodeUnauthenticated, Message: "this dashboard is open to the one who started it", Status: http.StatusUnauthorized,
		Hint: "open the address that gitring ui printed; it works once, and gitring ui prints a new one each time it is started",
	}
}

// call passes on what the scopes allow. What no scope allows is not there.
func (l *Local) call(w *answerWriter, r *http.Request) error {
	rt, err := l.may.allowed(r)
	if err != nil {
		return err
	}
	if err := takeBody(w, r, min(rt.limit, bodyLimit), l.within); err != nil {
		return err
	}
	if rt.stream {
		leave, err := l.streams.enter(l.Actor)
		if err != nil {
			return err
		}
		defer leave()
	}
	l.pass.ServeHTTP(w, r)
	return nil
}

// passedOn are the headers that a daemon has a use for. Cookies are not among them.
var passedOn = []string{"Accept", "Content-Type", "If-None-Match", "Last-Event-Id"}

// rewrite makes the request as Client makes its own.
func rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", daemonName, daemonName
	p.Out.Header = http.Header{}
	for _, name := range passedOn {
		if v := p.In.Header.Get(name); v != "" {
			p.Out.Header.Set(name, v)
		}
	}
}

// modify leaves headers out of which there is one here, or that are not the daemon's to set.
func modify(res *http.Response) error {
	res.Header.Del("Cache-Control")
	res.Header.Del("Set-Cookie")
	return nil
}

// away is what a browser is told of a daemon that does not answer.
func (c *Client) away(err error) *Error {
	lost := c.lost(context.Background(), err)
	return Away("gitring status tells whether it is there again", "%v", lost)
}
