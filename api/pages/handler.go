package pages

import (
	"cmp"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

// Policy is the content security policy of every page: nothing inline, nothing from elsewhere,
// no frame.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// makeWithin is how long a page may take: doctor asks the world.
const makeWithin = 30 * time.Second

// Handler serves the pages. It may be asked by many at once.
type Handler struct {
	Options
	templates *template.Template
	assets    *assets
	mux       *http.ServeMux
	stored    []string // entries of the menu whose pages are there
	looker    looker
	keeper    keeper
	signers   signers
}

// New starts nothing.
func New(o Options) *Handler {
	h := &Handler{Options: o, assets: loadAssets(), mux: http.NewServeMux()}
	h.keeper.most = cmp.Or(o.KeptBytes, keptBytes)
	h.templates = h.loadTemplates()
	for i := range routes {
		rt := &routes[i]
		if o.Stored && !rt.stored {
			continue
		}
		h.stored = append(h.stored, rt.nav)
		h.mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, rt) })
	}
	return h
}

// has reports whether there is a page, or something of pages. Of a host that a hub knows only what it
// told is there.
func (h *Handler) has(what string) bool {
	return !h.Stored || slices.Contains(h.stored, "/"+what)
}

// route is one page. Whoever lacks its scope gets none of it.
type route struct {
	pattern string
	scope   api.Scope
	// nav is the entry of the menu that it belongs to.
	nav string
	// stored reports whether the page can be made of what a hub keeps.
	stored bool
	// kept reports whether what the page shows changes with the version alone, and fresh whether it may
	// be so old besides. A page with neither is made for everybody who asks.
	kept  bool
	fresh time.Duration
	page  func(ctx context.Context, a *asking) (*drawn, error)
}

// drawn is what a page is made of.
type drawn struct {
	template string
	title    string
	live     string
	code     int // 0 is 200
	view     any
}

// asking is one request for a page.
type asking struct {
	h       *Handler
	r       *http.Request
	viewer  api.Viewer
	answers Answers
	status  *ring.Status // of which nothing may be changed
	clock   clock
}

// may reports whether the viewer has a scope.
func (a *asking) may(s api.Scope) bool { return a.viewer.Scopes.Has(s) }

// ServeHTTP asks first who it is: nobody sees anything without being signed in.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	if (r.Method == http.MethodGet || r.Method == http.MethodHead) && h.assets.serve(w, r) {
		return
	}
	v, known := h.Viewer(r)
	switch {
	case r.URL.Path == signInPath && h.SignIn != nil:
		h.signIn(w, r, v, known)
	case r.Method == http.MethodGet && h.OIDC != nil && r.URL.Path == api.OIDCPath:
		h.signInWith(w, r, v, known)
	case r.Method == http.MethodGet && h.OIDC != nil && r.URL.Path == api.OIDCBackPath:
		h.signedInWith(w, r, v, known)
	case r.URL.Path == signOutPath && h.SignOut != nil:
		h.signOut(w, r, v, known)
	case !known && h.SignIn != nil && r.Method == http.MethodGet:
		http.Redirect(w, r, signInPath+"?then="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
	case !known:
		h.fail(w, r, v, false, nil, &api.Error{Code: api.CodeUnauthenticated, Message: "nobody is signed in", Hint: "open the page by the address that was printed", Status: http.StatusUnauthorized})
	default:
		h.mux.ServeHTTP(w, r)
	}
}

// guard sets what holds for every answer of pages.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, rt *route) {
	v, known := h.Viewer(r)
	if !known || !v.Scopes.Has(rt.scope) {
		h.fail(w, r, v, known, nil, api.Denied("sign in with a token that has the scope "+string(rt.scope), "you may not see this page"))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	// A page is made to its end for all who wait for it. Who only waits may leave.
	waits, leave := context.WithTimeout(r.Context(), makeWithin)
	defer leave()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), makeWithin)
	defer cancel()
	a := &asking{h: h, r: r, viewer: v, answers: h.Answers(v), clock: clock{h.Now()}}
	seen, err := h.looker.now(waits, a.answers, a.clock.now)
	if err != nil {
		h.fail(w, r, v, true, nil, err)
		return
	}
	a.status = &seen.status
	fill := func() (*made, time.Duration, error) {
		m, err := h.draw(ctx, a, rt)
		return m, rt.fresh, err
	}
	var p *keptPage
	if rt.kept && r.Method != http.MethodPost {
		p = h.keeper.page(waits, seen.version, r.URL.RequestURI()+" "+v.Scopes.String(), a.clock.now, fill)
	} else {
		p = &keptPage{}
		p.page, _, p.err = fill()
	}
	if p.err != nil {
		h.fail(w, r, v, true, a.status, p.err)
		return
	}
	h.send(w, r, p, v, true)
}

// draw makes a page.
func (h *Handler) draw(ctx context.Context, a *asking, rt *route) (*made, error) {
	d, err := rt.page(ctx, a)
	if err != nil {
		return nil, err
	}
	main, err := h.main(d.template, d.view)
	if err != nil {
		return nil, err
	}
	m := &made{title: d.title, live: d.live, tone: hostTone(a.status), nav: rt.nav, code: d.code, host: a.status.Host, main: main}
	if m.code == 0 {
		m.code = http.StatusOK
	}
	return m, nil
}

func (h *Handler) send(w http.ResponseWriter, r *http.Request, p *keptPage, v api.Viewer, known bool) {
	before, after, err := h.around(p.page, v, known)
	if err != nil {
		http.Error(w, "this page cannot be made", http.StatusInternalServerError)
		return
	}
	send(w, r, p, before, after)
}

// failView is a page that says what is in the way.
type failView struct {
	Code          int
	Message, Hint string
}

// fail answers with a page that says why there is no other. The status is nil where nobody
// knows it, or the viewer may not.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, v api.Viewer, known bool, st *ring.Status, err error) {
	f := failOf(err)
	main, err := h.main("fail", f)
	if err != nil {
		http.Error(w, f.Message, f.Code)
		return
	}
	p := &keptPage{page: &made{title: f.Message, tone: toneOff, code: f.Code, main: main}}
	if st != nil {
		p.page.tone, p.page.host = hostTone(st), st.Host
	}
	h.send(w, r, p, v, known)
}

func failOf(err error) failView {
	var e *api.Error
	var away *api.ErrUnreachable
	switch {
	case errors.As(err, &e):
		return failView{Code: orServerError(e.Status), Message: e.Message, Hint: e.Hint}
	case errors.As(err, &away):
		return failView{http.StatusBadGateway, away.Error(), "is the daemon running? systemctl status gitring"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return failView{http.StatusGatewayTimeout, "the daemon did not answer in time", "ask again in a moment"}
	}
	return failView{Code: http.StatusInternalServerError, Message: err.Error()}
}

func orServerError(code int) int {
	if code < 400 {
		return http.StatusInternalServerError
	}
	return code
}

// localPath is a path of ours to go on to; "/" for anything else.
func localPath(then string) string {
	u, err := url.Parse(then)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(then, "/") || strings.HasPrefix(then, "//") || strings.ContainsAny(then, "\\\r\n\t") {
		return "/"
	}
	return then
}
