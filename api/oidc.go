package api

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// signInWithin is how long somebody may take at the issuer.
	signInWithin = 5 * time.Minute
	// signInsAtOnce of a queue are asked of the issuer at once. Each keeps its turn for turnFor at least,
	// so that no more than that many are asked in a second, however fast the issuer answers.
	signInsAtOnce = 8
	turnFor       = time.Second
	// signInsWaiting wait in a queue at once, each for turnWithin at most.
	signInsWaiting = 32
	turnWithin     = 5 * time.Second
	// finishesOf are the answers of an issuer that one address brings in a minute without a queue of
	// its own.
	finishesOf = 30
	// longestCode is far above any code of an issuer.
	longestCode = 4 << 10
)

// What the rows of Roles begin with that are no e-mail.
const (
	RowOfGroup   = "group:"
	RowOfSubject = "sub:"
)

// Person is whom an issuer says somebody to be. Email is one that the issuer has verified, in lower
// case; "" where there is none. Subject is never empty.
type Person struct {
	Subject, Email string
	Groups         []string
}

// account is what a person is called in journals: the door, and who it is.
func (p *Person) account() string {
	if p.Email != "" {
		return "oidc/" + p.Email
	}
	return "oidc/" + RowOfSubject + p.Subject
}

// An Issuer knows people. Begin is the address at which one of them signs in, and Finish is who did,
// by the code that the issuer sent back. Both are handed the same fresh nonce and verifier, and both
// end within seconds. An error holds no token and no code.
type Issuer interface {
	Begin(ctx context.Context, state, nonce, verifier string) (address string, err error)
	Finish(ctx context.Context, code, nonce, verifier string) (Person, error)
}

// OIDC lets people in whom an issuer knows.
type OIDC struct {
	// Name is the issuer's URL.
	Name   string
	Issuer Issuer
	// Roles are what each row may do: an e-mail, group:<name> or sub:<subject>. Nobody may anything
	// without a row.
	Roles map[string]Scopes
}

// rows are those that a person has.
func (o *OIDC) rows(p *Person) (rows []string) {
	names := []string{RowOfSubject + p.Subject}
	if p.Email != "" {
		names = append(names, p.Email)
	}
	for _, group := range p.Groups {
		names = append(names, RowOfGroup+group)
	}
	for _, name := range names {
		if _, ok := o.Roles[name]; ok && !slices.Contains(rows, name) {
			rows = append(rows, name)
		}
	}
	return rows
}

// scopes are what rows allow now.
func (o *OIDC) scopes(rows []string) (all Scopes) {
	for _, name := range ScopeNames {
		if slices.ContainsFunc(rows, func(row string) bool { return slices.Contains(o.Roles[row], Scope(name)) }) {
			all = append(all, Scope(name))
		}
	}
	return all
}

// signIns are those that come back from an issuer, as far as anything is kept of them: the rest is
// in a cookie of the browser that began. Nobody can tell a stranger's code from a good one before the
// issuer is asked, so whoever comes back waits in the place of being refused.
type signIns struct {
	finishes *rate
	// few is the queue of addresses that bring few answers, and many that of the others: a flood of one
	// address delays nobody elsewhere, and whoever shares its address, behind a proxy, still gets on.
	few, many queue

	mu           sync.Mutex // guards what follows
	over, before map[string]struct{}
	since        time.Time // of over; before are the states of signInWithin earlier
}

// queue bounds how many are asked of the issuer at once, and how many wait for that.
type queue struct{ turns, waiting chan struct{} }

func newQueue() queue {
	return queue{make(chan struct{}, signInsAtOnce), make(chan struct{}, signInsWaiting)}
}

func newSignIns() *signIns {
	return &signIns{finishes: newRateOf(finishesOf, finishesOf/60.0), few: newQueue(), many: newQueue(), over: map[string]struct{}{}}
}

// enter waits for a turn of those who come from an address.
func (s *signIns) enter(ctx context.Context, remote string, now time.Time) (leave func(), err error) {
	if s.finishes.allow(remote, "", now) {
		return s.few.enter(ctx)
	}
	return s.many.enter(ctx)
}

func (q queue) enter(ctx context.Context) (leave func(), err error) {
	full := tooMany(turnWithin, "too many sign in at this moment")
	full.Hint = "reload this page in a few seconds: this sign-in is not over"
	select {
	case q.waiting <- struct{}{}:
		defer func() { <-q.waiting }()
	default:
		return nil, full
	}
	ctx, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	select {
	case q.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, full
	}
	end := time.Now().Add(turnFor)
	return func() { time.AfterFunc(time.Until(end), func() { <-q.turns }) }, nil
}

// first reports whether a state comes back for the first time. Whoever asks has a turn, so that the
// pace of those bounds what is kept.
func (s *signIns) first(state string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch age := now.Sub(s.since); {
	case age >= 2*signInWithin:
		s.before, s.over, s.since = nil, map[string]struct{}{}, now
	case age >= signInWithin:
		s.before, s.over, s.since = s.over, map[string]struct{}{}, now
	}
	_, again := s.over[state]
	_, earlier := s.before[state]
	s.over[state] = struct{}{}
	return !again && !earlier
}

// signIn is what a browser keeps of a sign-in until it comes back, sealed.
type signIn struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Then     string    `json:"then"`
	Until    time.Time `json:"until"`
}

// BeginSignIn is where a browser goes to sign in with the issuer. then is a path of these pages.
func (w *Web) BeginSignIn(out http.ResponseWriter, r *http.Request, then string) (address string, err error) {
	of := signIn{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), Then: then, Until: w.Now().Add(signInWithin).UTC()}
	if address, err = w.OIDC.Issuer.Begin(r.Context(), of.State, of.Nonce, of.Verifier); err != nil {
		return "", w.issuerAway(r, err)
	}
	c, err := w.sessions.sealed(w.sessions.signInName(), of, signInWithin)
	if errors.Is(err, errLongCookie) {
		return "", Usage("begin at "+w.at()+SignInPath, "the address of the page to go to is longer than a browser keeps")
	}
	if err != nil {
		return "", err
	}
	http.SetCookie(out, c)
	return address, nil
}

// issuerErrors are the words by which an issuer sends somebody back.
var issuerErrors = regexp.MustCompile(`^[a-z_]{1,64}$`)

// FinishSignIn begins the session of whom the issuer sent back, and is where they wanted to go.
func (w *Web) FinishSignIn(out http.ResponseWriter, r *http.Request) (then string, err error) {
	over := w.sessions.cookie(w.sessions.signInName(), "", -1)
	of, code, err := w.cameBack(r)
	if err != nil {
		http.SetCookie(out, over)
		return "", err
	}
	leave, err := w.signIns.enter(r.Context(), r.RemoteAddr, w.Now())
	if err != nil {
		return "", err // with the cookie kept: it goes on when the page is reloaded
	}
	defer leave()
	http.SetCookie(out, over)
	if !w.Now().Before(of.Until) || !w.signIns.first(of.State, w.Now()) {
		return "", w.notBegun()
	}
	p, err := w.OIDC.Issuer.Finish(r.Context(), code, of.Nonce, of.Verifier)
	if err != nil {
		return "", w.issuerAway(r, err)
	}
	rows := w.OIDC.rows(&p)
	if len(w.OIDC.scopes(rows)) == 0 {
		w.Log.Info("signed in nobody", "actor", p.account(), "address", r.RemoteAddr, "reason", "api.oidc.roles has no row for them")
		return "", Denied("somebody adds a row to api.oidc.roles, and reloads", "%s may do nothing here", strings.TrimPrefix(p.account(), "oidc/"))
	}
	c, err := w.sessions.begin(session{Account: p.account(), Issuer: w.OIDC.Name, Rows: rows})
	if errors.Is(err, errLongCookie) {
		return "", Denied("somebody joins rows of theirs in api.oidc.roles, and reloads", "%s has %d rows, more than a browser keeps in a cookie",
			strings.TrimPrefix(p.account(), "oidc/"), len(rows))
	}
	if err != nil {
		return "", err
	}
	http.SetCookie(out, c)
	w.Log.Info("signed in", "actor", p.account(), "address", r.RemoteAddr)
	return of.Then, nil
}

// cameBack is the sign-in that this browser began and that comes back now, with the issuer's code.
// Nothing of it costs more than another page does.
func (w *Web) cameBack(r *http.Request) (of signIn, code string, err error) {
	query := r.URL.Query()
	if !w.sessions.open(r, w.sessions.signInName(), &of) || !w.Now().Before(of.Until) || subtle.ConstantTimeCompare([]byte(of.State), []byte(query.Get("state"))) != 1 {
		return of, "", w.notBegun()
	}
	if says := query.Get("error"); says != "" {
		if !issuerErrors.MatchString(says) {
			says = "an error"
		}
		return of, "", Denied("ask those who run "+w.OIDC.Name, "%s did not sign you in: it said %s", w.OIDC.Name, says)
	}
	// Who is asked may be another issuer than who answers: RFC 9207.
	if iss := query.Get("iss"); iss != "" && iss != w.OIDC.Name {
		return of, "", Denied("begin again at "+SignInPath, "another issuer than %s sent this answer", w.OIDC.Name)
	}
	code = query.Get("code")
	if code == "" || len(code) > longestCode {
		return of, "", Usage("begin again at "+SignInPath, "%s sent no code", w.OIDC.Name)
	}
	return of, code, nil
}

func (w *Web) notBegun() error {
	return Usage("begin again at "+w.at()+SignInPath, "this sign-in was not begun in this browser, or not within %v, or it is over", signInWithin)
}

// issuerAway is the answer where the issuer did not say who somebody is. Strangers can cause it, so it
// is told once a minute for an address.
func (w *Web) issuerAway(r *http.Request, err error) error {
	if left, ok := w.told.tell(whose(r.RemoteAddr).String(), "issuer", w.Now()); ok {
		w.Log.Warn("could not sign in, told once a minute", "issuer", w.OIDC.Name, "address", whose(r.RemoteAddr).String(), "err", err, "left_out", left)
	}
	return &Error{
		Code: CodeAway, Message: "cannot sign in with " + w.OIDC.Name + ": " + err.Error(),
		Hint: "a token signs in meanwhile; sessions go on until they end", Status: http.StatusBadGateway,
	}
}

// at is the address of these pages, as an issuer sends people back to it.
func (w *Web) at() string { return OIDCHome(w.URL, w.Address) }

// Paths of the pages that sign in.
const (
	SignInPath = "/signin"
	// OIDCPath begins a sign-in with the issuer, and OIDCBackPath ends it.
	OIDCPath     = SignInPath + "/oidc"
	OIDCBackPath = OIDCPath + "/back"
)

// OIDCHome is the address of the pages of a listener: url, or its own where no url is said.
func OIDCHome(at, address string) string {
	if at != "" {
		return strings.TrimRight(at, "/")
	}
	return (&url.URL{Scheme: "http", Host: address}).String()
}
