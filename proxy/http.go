package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitring/gitring/ring"
)

// Bounds of a client's heads: docs/design/traffic.md.
const (
	headMost  = 256 << 10
	idleLimit = 75 * time.Second
	streams   = 250 // at once on one HTTP/2 connection
)

// serveHTTP serves what is handed to it as HTTP/1.1 and h2c, until the process ends: what was
// accepted is served on when the port is closed.
func (p *port) serveHTTP() {
	s := &http.Server{
		Handler: http.HandlerFunc(p.answer), ReadHeaderTimeout: p.f.limits.head, IdleTimeout: p.f.limits.idle, MaxHeaderBytes: headMost - 4096,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: 256 << 10, MaxReceiveBufferPerStream: 64 << 10,
			SendPingTimeout: headLimit, WriteByteTimeout: stallLimit,
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, guardKey{}, c) },
		ConnState:   p.f.idle.note,
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	_ = s.Serve(p.http)
}

type (
	guardKey struct{}
	callKey  struct{}
)

// call is one request on its way.
type call struct {
	f      *Front
	p      *port
	in     *http.Request
	claim  *claim
	to     atomic.Pointer[member] // of claim, for those who read the body meanwhile
	w      wants
	began  time.Time
	sent   atomic.Bool // a head was answered
	failed bool        // the answer is ours, and closes its connection by itself
	body   *requestBody
	rc     *http.ResponseController
	stop   context.CancelCauseFunc

	writing atomic.Int64 // since when a write to the client waits, unix nanoseconds
	reading atomic.Int64 // the same of its body

	ending sync.Mutex // held while deadlines are set: the answer does not end meanwhile
	ended  bool       // guarded by ending: the connection is the next request's
	hit    bool       // guarded by ending: the server takes the connection's deadline for its end
}

// errCut is why a request ended at a deadline.
var errCut = errors.New("the instance goes: its deadline passed")

// errStalled is why a request ended whose client neither sent nor read for too long.
var errStalled = errors.New("the client did not move for too long")

func (p *port) answer(w http.ResponseWriter, r *http.Request) {
	f := p.f
	g, _ := r.Context().Value(guardKey{}).(*guard)
	if g != nil {
		defer g.stayHTTP()
		f.idle.gotHead(g)
	}
	ctx, stop := context.WithCancelCause(r.Context())
	defer stop(nil)
	c := &call{f: f, p: p, in: r, began: time.Now(), stop: stop, rc: http.NewResponseController(w), claim: &claim{}}
	c.claim.cut = c.cut
	defer c.over()
	_ = c.rc.EnableFullDuplex() // an instance may answer before it read all: the server must not take the rest
	c.w = f.wants(r)
	out := &answer{ResponseWriter: w, c: c, g: g}
	if r.Method == http.MethodConnect {
		out.counted = true
		w.Header().Set("Connection", "close")
		out.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if p.carry() == ring.CarryTCP { // the port became tcp: this connection is of before
		w.Header().Set("Connection", "close")
	}
	if err := f.claim(ctx, c.w, c.claim); err != nil {
		c.fail(out, err)
		return
	}
	c.to.Store(c.claim.m)
	defer func() {
		f.release(c.claim)
		if v := recover(); v != nil { // the answer ended too early
			if context.Cause(ctx) == nil {
				c.claim.m.counts.noAnswer.Add(1)
			}
			panic(v)
		}
	}()
	f.stalling.add(c)
	defer f.stalling.remove(c)
	if r.Body != nil && r.Body != http.NoBody {
		c.body = &requestBody{ReadCloser: r.Body, c: c}
		r.Body = c.body
	}
	f.proxy.ServeHTTP(out, r.WithContext(context.WithValue(ctx, callKey{}, c)))
}

// cut ends the request at a deadline, whatever it waits for.
func (c *call) cut() { c.end(errCut) }

func (c *call) end(why error) {
	c.stop(why)
	c.ending.Lock()
	defer c.ending.Unlock()
	if c.ended { // to end it now would end the next request, or panic where it was HTTP/2
		return
	}
	c.hit = true
	_ = c.rc.SetReadDeadline(time.Unix(1, 0))
	if c.sent.Load() { // else the client hears of it
		_ = c.rc.SetWriteDeadline(time.Unix(1, 0))
	}
}

// over is called when the answer has ended, by itself or not. One that ended in the moment in
// which it was cut leaves no connection to another request, which would fail on it.
func (c *call) over() {
	c.ending.Lock()
	defer c.ending.Unlock()
	c.ended = true
	if c.hit && c.sent.Load() && !c.failed && c.in.ProtoMajor == 1 {
		panic(http.ErrAbortHandler)
	}
}

// fail answers a request that no instance answered.
func (c *call) fail(w *answer, err error) {
	status := http.StatusBadGateway
	cause := context.Cause(c.in.Context())
	var dial dialError
	switch {
	case errors.Is(err, errFraming), w.g != nil && w.g.isBroken():
		status = http.StatusBadRequest
	case errors.Is(err, errStalled):
		status = http.StatusRequestTimeout
	case errors.Is(err, errNobody), errors.Is(err, errFull), errors.Is(err, errTried), errors.As(err, &dial):
		status = http.StatusServiceUnavailable
	}
	ours := errors.Is(err, errCut) || errors.Is(err, errStalled) || cause != nil
	if m := c.claim.m; m != nil && status == http.StatusBadGateway && !ours {
		m.counts.noAnswer.Add(1)
	}
	w.counted, c.failed = true, true // the answer is ours, and no instance's
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	} else {
		w.Header().Set("Connection", "close")
	}
	if cause == nil {
		c.log(status, err)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	if c.in.Method != http.MethodHead {
		_, _ = io.WriteString(w, http.StatusText(status)+"\n")
	}
}

// log tells of an error where the route wants it, without query and headers.
func (c *call) log(status int, err error) {
	c.f.mu.Lock()
	wanted := c.f.table.LogErrors
	name := ""
	if c.claim.m != nil {
		name = c.claim.m.name
	}
	c.f.mu.Unlock()
	if !wanted {
		return
	}
	path, _, _ := strings.Cut(c.in.RequestURI, "?")
	why := ""
	if err != nil {
		why = " error=" + strconv.Quote(short(logged(err)))
	}
	c.f.Log.Printf("answered status=%d method=%s path=%q instance=%s took=%s%s", status, c.in.Method, short(path), name, time.Since(c.began).Round(time.Millisecond), why)
}

// wants is what a request asks of the choice of its instance.
func (f *Front) wants(r *http.Request) (w wants) {
	f.mu.Lock()
	match, sticky, service := f.table.Match, f.table.Sticky, f.table.Service
	f.mu.Unlock()
	if match != nil {
		for name, value := range match.Header {
			w.canary = w.canary || r.Header.Get(name) == value
		}
		for name, value := range match.Cookie {
			c, err := r.Cookie(name)
			w.canary = w.canary || err == nil && c.Value == value
		}
	}
	if sticky == ring.StickyCookie {
		if c, err := r.Cookie(stickyName(service)); err == nil {
			w.version = c.Value
		}
	}
	return w
}

func stickyName(service string) string {
	return "gitring_" + service[strings.LastIndex(service, "/")+1:]
}

// setSticky names the version that answered, while two of them serve and the client does not
// name it itself.
func (c *call) setSticky(h http.Header) {
	f := c.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.table.Sticky != ring.StickyCookie || c.claim.m == nil {
		return
	}
	version, two := c.claim.m.at.Version, false
	for _, m := range f.active() {
		two = two || m.at.Version != version
	}
	if !two || version == "" || version == c.w.version {
		return
	}
	cookie := http.Cookie{Name: stickyName(f.table.Service), Value: version, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	h.Add("Set-Cookie", cookie.String())
}

// newProxy is made once; what differs between requests is in their call.
func (f *Front) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: carrier{}, FlushInterval: -1, BufferPool: buffers{}, ErrorLog: log.New(io.Discard, "", 0),
		ModifyResponse: func(res *http.Response) error { return callOf(res.Request).modify(res) },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if why := context.Cause(r.Context()); why != nil && !errors.Is(err, errFraming) {
				err = why
			}
			callOf(r).fail(w.(*answer), err)
		},
	}
}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

// rewrite touches neither the query, the path, nor the host.
func rewrite(pr *httputil.ProxyRequest) {
	c := callOf(pr.In)
	pr.Out.Host = pr.In.Host
	pr.Out.URL.RawQuery = pr.In.URL.RawQuery
	pr.Out.Trailer = pr.In.Trailer // filled while the body is read
	target, _, _ := strings.Cut(pr.In.RequestURI, "?")
	if pr.In.URL.EscapedPath() != target && strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "//") {
		pr.Out.URL.Opaque = target // as it was written
	}
	if g, _ := pr.In.Context().Value(guardKey{}).(*guard); g == nil || !g.asked() {
		pr.Out.Header.Del("Upgrade") // what no upgrade was expected of stays HTTP, h2c above all
		pr.Out.Header.Del("Connection")
	}
	c.forward(pr.In, pr.Out)
}

// forward sets X-Forwarded-*. What a client says is kept only if it may speak for others.
func (c *call) forward(in, out *http.Request) {
	c.f.mu.Lock()
	tr, added := c.f.trust, c.f.table.Forwarded
	c.f.mu.Unlock()
	client, err := netip.ParseAddrPort(in.RemoteAddr)
	peer := client.Addr().Unmap().WithZone("")
	believed := err == nil && tr.believes(peer, *c.p.at.Load(), c.f.names.place())
	for name := range out.Header {
		if speaksForOthers(name) && !believed {
			delete(out.Header, name)
		}
	}
	if believed { // the ReverseProxy took them out
		for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
			if v := in.Header[name]; v != nil {
				out.Header[name] = v
			}
		}
	}
	if !added {
		return
	}
	via := append([]string(nil), out.Header["X-Forwarded-For"]...)
	out.Header.Set("X-Forwarded-For", strings.Join(append(via, peer.String()), ", "))
	if out.Header.Get("X-Forwarded-Proto") == "" {
		out.Header.Set("X-Forwarded-Proto", "http")
	}
	if out.Header.Get("X-Forwarded-Host") == "" {
		out.Header.Set("X-Forwarded-Host", in.Host)
	}
}

// speaksForOthers reports whether a header says who asked in truth. Servers that pass headers
// as variables take _ for -.
func speaksForOthers(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	return name == "forwarded" || name == "x-real-ip" || strings.HasPrefix(name, "x-forwarded-")
}

// carrier is the transport of all calls.
type carrier struct{}

func (carrier) RoundTrip(r *http.Request) (*http.Response, error) { return callOf(r).carry(r) }

// carry sends the request. Where nothing was sent yet, another instance is tried. What may
// have been sent is not repeated, but once, and only if that does no harm.
func (c *call) carry(r *http.Request) (*http.Response, error) {
	limit := c.began.Add(dialBudget)
	if now := time.Now(); now.After(c.began.Add(time.Second)) { // it was queued
		limit = now.Add(dialBudget)
	}
	repeated := false
	for try := 1; ; try++ {
		sent := &trip{}
		res, err := c.send(r, sent)
		if err == nil {
			return res, nil
		}
		var dial dialError
		nothing := errors.As(err, &dial) || sent.nothing()
		switch {
		case r.Context().Err() != nil || c.body != nil && c.body.touched.Load():
			return nil, err
		case nothing && try < dialTries && time.Now().Before(limit):
			if sent.pooled && !errors.As(err, &dial) { // the connection was dead; its instance need not be
				c.claim.m.ways.closeIdle()
				continue
			}
			if c.another(r.Context()) != nil {
				return nil, err
			}
		case sent.pooled && sent.unanswered() && !repeated && safe(r):
			repeated = true
			c.claim.m.counts.retries.Add(1)
			c.claim.m.ways.closeIdle() // others in the pool are as old
		default:
			return nil, err
		}
	}
}

// another gives the instance back and takes one that was not tried.
func (c *call) another(ctx context.Context) error {
	f := c.f
	if c.w.tried == nil {
		c.w.tried = map[*member]bool{}
	}
	c.w.tried[c.claim.m] = true
	next := &claim{cut: c.cut}
	if err := f.claim(ctx, c.w, next); err != nil {
		return err
	}
	next.m.counts.retries.Add(1)
	f.release(c.claim)
	c.claim = next
	c.to.Store(next.m)
	return nil
}

// safe reports whether to send a request twice does no harm. TRACE, which HTTP calls safe, is
// left out: it tells of the way of one message.
func safe(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return bodiless(r)
	}
	return false
}

func bodiless(r *http.Request) bool {
	return r.ContentLength == 0 && (r.Body == nil || r.Body == http.NoBody)
}

// trip is one try to send a request.
type trip struct {
	conn    *countedConn
	pooled  bool
	in, out int64
	h2      bool
}

// nothing reports whether no byte was sent.
func (t *trip) nothing() bool { return t.conn != nil && !t.h2 && t.conn.out.Load() == t.out }

// unanswered reports whether no byte came back.
func (t *trip) unanswered() bool { return t.conn != nil && !t.h2 && t.conn.in.Load() == t.in }

func (c *call) send(r *http.Request, t *trip) (*http.Response, error) {
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if conn, ok := info.Conn.(*countedConn); ok {
			t.conn, t.pooled, t.in, t.out = conn, info.Reused, conn.in.Load(), conn.out.Load()
		}
	}})
	m := c.claim.m
	out := r.Clone(ctx)
	out.Trailer = r.Trailer
	out.URL.Scheme, out.URL.Host = "http", net.JoinHostPort(m.name, c.p.number())
	if c.in.ProtoMajor == 2 {
		t.h2 = true
		if out.Body != nil {
			out.Body = io.NopCloser(out.Body)
		}
		return m.ways.h2.RoundTrip(out)
	}
	// A body stays open, to be read by another try: the server closes it.
	if v, ok := out.Header["Idempotency-Key"]; ok { // else the pool would repeat what it has
		delete(out.Header, "Idempotency-Key")
		out.Header["idempotency-key"] = v
	}
	if v, ok := out.Header["X-Idempotency-Key"]; ok {
		delete(out.Header, "X-Idempotency-Key")
		out.Header["x-idempotency-key"] = v
	}
	if !safe(r) {
		if r.Method == http.MethodTrace && bodiless(r) { // else the pool would repeat it by itself
			out.Body, out.ContentLength = io.NopCloser(emptyBody{}), -1
		} else if out.Body != nil {
			out.Body = io.NopCloser(out.Body)
		}
		return m.ways.once.RoundTrip(out)
	}
	// A body that is empty only once it is read keeps the pool from repeating by itself.
	out.Body, out.ContentLength = io.NopCloser(emptyBody{}), -1
	return m.ways.safe.RoundTrip(out)
}

type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }

// modify looks at the head of an answer.
func (c *call) modify(res *http.Response) error {
	if c.p.at.Load().Carry == ring.CarryAuto && tiesConnection(res.Header) {
		c.p.noticeNTLM()
		res.Header.Set("Connection", "close")
		res.Close = true
	}
	return nil
}

// tiesConnection reports whether an answer has a user logged in on a connection. Pooled
// connections would mix users up.
func tiesConnection(h http.Header) bool {
	return slices.ContainsFunc(h["Www-Authenticate"], func(v string) bool {
		word, _, _ := strings.Cut(strings.TrimSpace(v), " ")
		return strings.EqualFold(word, "NTLM") || strings.EqualFold(word, "Negotiate")
	})
}

// noticeNTLM makes an auto port tcp from now on.
func (p *port) noticeNTLM() {
	if p.ntlm.Swap(true) {
		return
	}
	p.f.Log.Printf("port=%s carried=tcp reason=%q", p.number(), "an answer ties a user to a connection (NTLM or Negotiate)")
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	for _, m := range p.f.members {
		go m.ways.closeIdle()
	}
	p.f.tell()
}

// answer is a response on its way to the client.
type answer struct {
	http.ResponseWriter
	c       *call
	g       *guard
	wrote   bool
	counted bool
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	c := a.c
	if status >= 200 {
		if a.wrote {
			return
		}
		a.wrote = true
		c.sent.Store(true)
		h := a.Header()
		for _, name := range []string{"Date", "Content-Type"} {
			if _, ok := h[name]; !ok {
				h[name] = nil // nobody adds what the instance did not say
			}
		}
		c.setSticky(h)
		if c.f.retired.Load() || c.p.carry() == ring.CarryTCP {
			h.Set("Connection", "close")
		}
	}
	if !a.counted && c.claim.m != nil {
		c.claim.m.counts.answered(status, time.Since(c.began))
		if status >= 500 {
			c.log(status, nil)
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(b []byte) (int, error) {
	if !a.wrote {
		a.WriteHeader(http.StatusOK)
	}
	a.c.writing.Store(time.Now().UnixNano())
	n, err := a.ResponseWriter.Write(b)
	a.c.writing.Store(0)
	if m := a.c.claim.m; m != nil && !a.counted {
		m.counts.bytesOut.Add(int64(n))
	}
	return n, err
}

func (a *answer) FlushError() error {
	a.c.writing.Store(time.Now().UnixNano())
	defer a.c.writing.Store(0)
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack is asked for when the connection becomes another protocol.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if a.g != nil {
		a.g.becomeRaw()
	}
	c := a.c
	c.sent.Store(true)
	c.claim.m.counts.answered(http.StatusSwitchingProtocols, time.Since(c.began))
	c.f.stalling.remove(c) // it may be silent as long as it likes
	c.f.mu.Lock()
	c.claim.stream = true
	c.f.mu.Unlock()
	c.f.setCut(c.claim, func() {
		c.stop(errCut)
		_ = conn.Close()
	})
	return newUpgraded(c.f, conn, c.claim.m.counts), rw, nil
}

// upgraded is a connection that is HTTP no more. It copies through a buffer that is as large
// as what goes through it: most such connections say little.
type upgraded struct {
	net.Conn
	f      *Front
	counts *counts
	once   sync.Once
}

func newUpgraded(f *Front, c net.Conn, n *counts) *upgraded {
	f.upgraded.Add(1)
	return &upgraded{Conn: c, f: f, counts: n}
}

func (u *upgraded) Close() error {
	u.once.Do(func() { u.f.upgraded.Add(-1) })
	return u.Conn.Close()
}

// CloseWrite passes on that the instance says no more.
func (u *upgraded) CloseWrite() error {
	if c, ok := u.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return u.Conn.Close()
}

// ReadFrom carries what the instance says.
func (u *upgraded) ReadFrom(r io.Reader) (int64, error) {
	return carryOn(u.Conn, r, &u.counts.bytesOut)
}

// WriteTo carries what the client says.
func (u *upgraded) WriteTo(w io.Writer) (int64, error) { return carryOn(w, u.Conn, &u.counts.bytesIn) }

func carryOn(w io.Writer, r io.Reader, n *atomic.Int64) (sum int64, _ error) {
	buf := make([]byte, 1<<10)
	for {
		k, err := r.Read(buf)
		if k > 0 {
			if _, werr := w.Write(buf[:k]); werr != nil {
				return sum, werr
			}
			sum += int64(k)
			n.Add(int64(k))
		}
		switch {
		case err == io.EOF:
			return sum, nil
		case err != nil:
			return sum, err
		case k == len(buf) && k < copyBuffer:
			buf = make([]byte, 2*len(buf))
		}
	}
}

// requestBody knows whether anybody read of it, and since when a read waits.
type requestBody struct {
	io.ReadCloser
	c       *call
	touched atomic.Bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.touched.Store(true)
	b.c.reading.Store(time.Now().UnixNano())
	n, err := b.ReadCloser.Read(p)
	b.c.reading.Store(0)
	b.c.to.Load().counts.bytesIn.Add(int64(n))
	return n, err
}
