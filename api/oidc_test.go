package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// someIssuer stands in for an issuer: whoever comes with the code of a person is that person.
type someIssuer struct {
	people map[string]Person // by code

	mu     sync.Mutex // guards what follows
	away   error
	began  []string // states
	asked  []string // code, nonce and verifier of each Finish
	nonces map[string]string
}

func (i *someIssuer) Begin(_ context.Context, state, nonce, verifier string) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.away != nil {
		return "", i.away
	}
	i.began = append(i.began, state)
	if i.nonces == nil {
		i.nonces = map[string]string{}
	}
	i.nonces[nonce] = verifier
	return "https://id.example.org/auth?" + url.Values{"state": {state}}.Encode(), nil
}

func (i *someIssuer) Finish(_ context.Context, code, nonce, verifier string) (Person, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, code)
	if i.away != nil {
		return Person{}, i.away
	}
	p, ok := i.people[code]
	if !ok || i.nonces[nonce] != verifier || len(verifier) < 43 {
		return Person{}, errors.New("it refused the code: invalid_grant")
	}
	return p, nil
}

// browser is somebody's browser at a door: its cookies, and nothing else.
type browser struct {
	w       *webDoor
	from    string // its address; "" is the one that all have behind a proxy
	cookies map[string]*http.Cookie
}

func (w *webDoor) browser() *browser { return &browser{w: w, cookies: map[string]*http.Cookie{}} }

// keep takes the cookies of an answer.
func (b *browser) keep(out *httptest.ResponseRecorder) {
	for _, c := range out.Result().Cookies() {
		b.cookies[c.Name] = c
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
}

func (b *browser) request(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "edge-1.example.org"
	if b.from != "" {
		r.RemoteAddr = b.from
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	return r
}

// begin leaves for the issuer, and is the state that it went with.
func (b *browser) begin(then string) (state string, err error) {
	out := httptest.NewRecorder()
	at, err := b.w.BeginSignIn(out, b.request(OIDCPath), then)
	b.keep(out)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(at)
	require.NoError(b.w.t, err)
	return u.Query().Get("state"), nil
}

func (b *browser) back(query url.Values) (then string, err error) {
	out := httptest.NewRecorder()
	then, err = b.w.FinishSignIn(out, b.request(OIDCBackPath+"?"+query.Encode()))
	b.keep(out)
	return then, err
}

// signIn goes the whole way.
func (b *browser) signIn(code string) error {
	state, err := b.begin("/history")
	if err != nil {
		return err
	}
	_, err = b.back(url.Values{"state": {state}, "code": {code}})
	return err
}

// who asks the door who the browser is: 401 is nobody.
func (b *browser) who(t *testing.T) (code int, body string) {
	out := b.w.ask("GET", "/v1/session", "", "", func(r *http.Request) {
		for _, c := range b.cookies {
			r.AddCookie(c)
		}
	})
	return out.Code, out.Body.String()
}

const issuerName = "https://id.example.org"

func newOIDCDoor(t *testing.T, roles map[string]Scopes) (*webDoor, *someIssuer) {
	i := &someIssuer{people: map[string]Person{
		"alice": {Subject: "1", Email: "alice@example.org", Groups: []string{"ops", "all"}},
		"bob":   {Subject: "2", Email: "bob@example.org", Groups: []string{"all"}},
		"carol": {Subject: "3"},
		// She is called at the issuer as somebody else is by e-mail, or is in a group of such a name.
		"mallory": {Subject: "alice@example.org", Groups: []string{"alice@example.org", "group:ops", "sub:3", "OPS", "*", ""}},
	}}
	w := newWebDoor(t, func(o *WebOptions) { o.OIDC = &OIDC{Name: issuerName, Issuer: i, Roles: roles} })
	return w, i
}

var someRoles = map[string]Scopes{"group:ops": {ScopeOperate}, "alice@example.org": {ScopeApprove}, "sub:3": {ScopeRead}}

func TestWhomAnIssuerKnowsMayWhatTheRowsSay(t *testing.T) {
	w, _ := newOIDCDoor(t, someRoles)
	alice := w.browser()
	require.NoError(t, alice.signIn("alice"))
	code, body := alice.who(t)
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, `{"actor":"oidc/alice@example.org","scopes":["operate","approve"],"until":"2026-11-26T20:00:00Z"}`, body)
	carol := w.browser()
	require.NoError(t, carol.signIn("carol"), "who has no verified e-mail is known by the subject")
	_, body = carol.who(t)
	require.Contains(t, body, `"actor":"oidc/sub:3"`)
	for _, nobody := range []string{"bob", "mallory"} {
		b := w.browser()
		err := b.signIn(nobody)
		require.ErrorIs(t, err, ErrDenied, nobody)
		require.ErrorContains(t, err, "may do nothing here")
		code, _ = b.who(t)
		require.Equal(t, http.StatusUnauthorized, code, nobody)
	}
}

// Whom an issuer knows is asked to slow down as whoever has a token is, and nobody else with them.
func TestOneWhomAnIssuerKnowsAsksTooOftenForNobodyElse(t *testing.T) {
	w, _ := newOIDCDoor(t, someRoles)
	alice, carol := w.browser(), w.browser()
	require.NoError(t, alice.signIn("alice"))
	require.NoError(t, carol.signIn("carol"))
	code := http.StatusOK
	for n := 0; code == http.StatusOK; n++ {
		require.LessOrEqual(t, n, webPerActor)
		code, _ = alice.who(t)
	}
	require.Equal(t, http.StatusTooManyRequests, code)
	code, _ = carol.who(t)
	require.Equal(t, http.StatusOK, code)
}

// What somebody did stands in the journal with who it was.
func TestAnActOfWhomAnIssuerKnowsNamesThePerson(t *testing.T) {
	w, _ := newOIDCDoor(t, someRoles)
	alice := w.browser()
	require.NoError(t, alice.signIn("alice"))
	var by Peer
	w.socket.calls.Act = func(_ context.Context, p Peer, _ ActRequest) (Acted, error) {
		by = p
		return Acted{}, nil
	}
	out := w.ask("POST", "/v1/act", "", `{"verb":"hold","app":"web","reason":"r"}`, func(r *http.Request) { r.AddCookie(alice.cookies[w.sessions.name]) })
	require.Equal(t, http.StatusOK, out.Code, out.Body)
	require.Equal(t, "oidc/alice@example.org", by.Actor())
	require.Equal(t, ring.ViaOIDC, (&ring.Event{Kind: "app.held", Actor: by.Actor()}).ActedVia())
	carol := w.browser()
	require.NoError(t, carol.signIn("carol"))
	out = w.ask("POST", "/v1/act", "", `{"verb":"hold","app":"web","reason":"r"}`, func(r *http.Request) { r.AddCookie(carol.cookies[w.sessions.name]) })
	require.Equal(t, http.StatusForbidden, out.Code, "she may only read")
}

// Rights are looked up at each request: without its row a session ends, and another scope counts at once.
func TestASessionOfAnIssuerIsWorthWhatItsRowsAreWorthNow(t *testing.T) {
	w, _ := newOIDCDoor(t, someRoles)
	alice := w.browser()
	require.NoError(t, alice.signIn("alice"))
	now := func(roles map[string]Scopes, name string) (int, string) {
		t.Helper()
		w.OIDC = &OIDC{Name: name, Issuer: &someIssuer{away: errors.New("connection refused")}, Roles: roles}
		return alice.who(t)
	}
	code, body := now(map[string]Scopes{"alice@example.org": {ScopeRead}}, issuerName)
	require.Equal(t, http.StatusOK, code, "the issuer is away, and the session goes on")
	require.Contains(t, body, `"scopes":["read"]`)
	code, _ = now(map[string]Scopes{"bob@example.org": {ScopeAdmin}, "group:all": {ScopeAdmin}}, issuerName)
	require.Equal(t, http.StatusUnauthorized, code, "her rows are gone; one that came since counts at the next sign-in")
	code, _ = now(someRoles, "https://other.example.org")
	require.Equal(t, http.StatusUnauthorized, code, "another issuer's word")
	w.OIDC = nil
	code, _ = alice.who(t)
	require.Equal(t, http.StatusUnauthorized, code, "no issuer counts any more")
	code, _ = now(someRoles, issuerName)
	require.Equal(t, http.StatusOK, code)
	w.after(SessionLife)
	code, _ = alice.who(t)
	require.Equal(t, http.StatusUnauthorized, code, "8 hours are over")
}

func TestAStreamOfAnIssuersSessionEndsWithItsRight(t *testing.T) {
	w, _ := newOIDCDoor(t, someRoles)
	alice := w.browser()
	require.NoError(t, alice.signIn("alice"))
	a := &asking{r: alice.request("/v1/stream"), session: true}
	known, err := w.who(a)
	require.NoError(t, err)
	require.True(t, known)
	w.every = time.Millisecond
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); w.watch(ctx, a, func() { close(ended) }) }()
	select {
	case <-ended:
		t.Fatal("it ended with its right")
	case <-time.After(20 * time.Millisecond):
	}
	w.after(SessionLife)
	<-ended
	<-done
}

// Each of these is somebody who wants another one's session, or wants another one in theirs.
func TestASignInEndsWhereItBeganAndOnce(t *testing.T) {
	w, i := newOIDCDoor(t, someRoles)
	refused := func(b *browser, query url.Values) {
		t.Helper()
		asked := len(i.asked)
		_, err := b.back(query)
		require.ErrorIs(t, err, ErrUsage)
		require.ErrorContains(t, err, "this sign-in was not begun in this browser")
		require.Len(t, i.asked, asked, "the issuer is not asked")
		code, _ := b.who(t)
		require.Equal(t, http.StatusUnauthorized, code)
	}
	begun := func() (*browser, string) {
		b := w.browser()
		state, err := b.begin("/")
		require.NoError(t, err)
		return b, state
	}
	_, state := begun()
	refused(w.browser(), url.Values{"state": {state}, "code": {"alice"}}) // their answer in a browser that began nothing
	victim, _ := begun()
	refused(victim, url.Values{"state": {state}, "code": {"alice"}}) // and in one that began its own
	victim, _ = begun()
	refused(victim, url.Values{"code": {"alice"}})
	late, lateState := begun()
	cookie := *late.cookies[w.sessions.signInName()]
	w.after(signInWithin)
	refused(late, url.Values{"state": {lateState}, "code": {"alice"}})
	require.Equal(t, int(signInWithin.Seconds()), cookie.MaxAge)

	// Once it came back it is over, also with a copy of the cookie.
	attacker, state := begun()
	copied := w.browser()
	for name, c := range attacker.cookies {
		copied.cookies[name] = c
	}
	_, err := attacker.back(url.Values{"state": {state}, "code": {"alice"}})
	require.NoError(t, err)
	refused(copied, url.Values{"state": {state}, "code": {"bob"}})

	// A cookie of one kind is none of the other.
	forged := w.browser()
	signedIn := *attacker.cookies[w.sessions.name]
	signedIn.Name = w.sessions.signInName()
	forged.cookies[signedIn.Name] = &signedIn
	refused(forged, url.Values{"state": {""}, "code": {"alice"}})
	under, _ := begun()
	flow := *under.cookies[w.sessions.signInName()]
	flow.Name = w.sessions.name
	under.cookies = map[string]*http.Cookie{flow.Name: &flow}
	code, _ := under.who(t)
	require.Equal(t, http.StatusUnauthorized, code)
}

func TestWhatAnIssuerAnswersBesidesACode(t *testing.T) {
	w, i := newOIDCDoor(t, someRoles)
	back := func(query url.Values) error {
		b := w.browser()
		state, err := b.begin("/")
		require.NoError(t, err)
		query.Set("state", state)
		_, err = b.back(query)
		return err
	}
	require.ErrorContains(t, back(url.Values{"error": {"access_denied"}, "error_description": {"<script>"}}), issuerName+" did not sign you in: it said access_denied")
	err := back(url.Values{"error": {"<script>alert(1)</script>"}})
	require.ErrorIs(t, err, ErrDenied)
	require.NotContains(t, err.Error(), "script")
	require.ErrorContains(t, back(url.Values{"code": {"alice"}, "iss": {"https://evil.example.org"}}), "another issuer than")
	require.NoError(t, back(url.Values{"code": {"alice"}, "iss": {issuerName}}))
	require.ErrorIs(t, back(url.Values{}), ErrUsage)
	require.ErrorIs(t, back(url.Values{"code": {strings.Repeat("x", longestCode+1)}}), ErrUsage)
	asked := len(i.asked)
	require.ErrorContains(t, back(url.Values{"code": {"nobody's"}}), "cannot sign in with "+issuerName+": it refused the code: invalid_grant")
	require.Len(t, i.asked, asked+1)
	i.away = errors.New("connection refused")
	_, err = w.browser().begin("/")
	var answer *Error
	require.ErrorAs(t, err, &answer)
	require.Equal(t, http.StatusBadGateway, answer.Status)
	require.Equal(t, "cannot sign in with "+issuerName+": connection refused", answer.Message)
}

// Strangers can ask as often as they like: of an issuer that is away the log has a line a minute.
func TestAnIssuerThatIsAwayIsToldOnceAMinute(t *testing.T) {
	w, i := newOIDCDoor(t, someRoles)
	var said strings.Builder
	w.Log, i.away = slog.New(slog.NewTextHandler(&said, nil)), errors.New("connection refused")
	for range 100 {
		_, err := w.browser().begin("/")
		require.Error(t, err)
	}
	require.Equal(t, 1, strings.Count(said.String(), "\n"), said.String())
	require.Contains(t, said.String(), issuerName)
	w.after(time.Minute)
	_, err := w.browser().begin("/")
	require.Error(t, err)
	require.Equal(t, 2, strings.Count(said.String(), "\n"))
	require.Contains(t, said.String(), "left_out=99")
}

func TestTheCookiesOfASignInAreForTheseAloneAndShort(t *testing.T) {
	for address, name := range map[string]string{"https://edge-1.example.org": "__Host-gitring", "http://edge-1.example.org": "gitring-9481"} {
		w, _ := newOIDCDoor(t, someRoles)
		var err error
		w.Web, err = NewWeb(&w.socket.Table, WebOptions{Tokens: w.Tokens, SessionKey: make([]byte, 32), Address: "127.0.0.1:9481", URL: address, Now: w.now, Log: quiet, OIDC: w.OIDC})
		require.NoError(t, err)
		b := w.browser()
		state, err := b.begin("/")
		require.NoError(t, err)
		flow := b.cookies[name+"-signin"]
		require.NotNil(t, flow)
		_, err = b.back(url.Values{"state": {state}, "code": {"alice"}})
		require.NoError(t, err)
		require.NotContains(t, b.cookies, name+"-signin", "it is taken away")
		for _, c := range []*http.Cookie{flow, b.cookies[name]} {
			require.True(t, c.HttpOnly)
			require.Equal(t, http.SameSiteLaxMode, c.SameSite)
			require.Equal(t, name == "__Host-gitring", c.Secure)
			require.Equal(t, "/", c.Path)
			require.Empty(t, c.Domain)
		}
		require.Equal(t, 300, flow.MaxAge)
		require.Equal(t, 8*3600, b.cookies[name].MaxAge)
	}
}

// comesBack begins a sign-in and comes back with a code, which nobody has before the issuer is asked.
func (b *browser) comesBack(code string) (state string, err error) {
	state, err = b.begin("/")
	require.NoError(b.w.t, err)
	_, err = b.back(url.Values{"state": {state}, "code": {code}})
	return state, err
}

// A flood of answers asks the issuer at a bounded pace, keeps no token out, and keeps nobody out whom
// the issuer knows, who has the address of those who flood, as behind a proxy.
func TestAFloodOfSignInsAsksTheIssuerFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, i := newOIDCDoor(t, someRoles)
		token := w.token("ann", "read")
		for range 10 * finishesOf { // in no browser that began
			_, err := w.browser().back(url.Values{"state": {"x"}, "code": {"x"}})
			require.ErrorIs(t, err, ErrUsage)
		}
		for range 10 * finishesOf { // without a code
			b := w.browser()
			state, err := b.begin("/")
			require.NoError(t, err)
			_, err = b.back(url.Values{"state": {state}, "error": {"access_denied"}})
			require.ErrorIs(t, err, ErrDenied)
		}
		require.Empty(t, w.signIns.over, "nothing is kept of whom the issuer is not asked about")
		start := time.Now()
		for range 10 * finishesOf {
			_, err := w.browser().comesBack("nobody's")
			require.ErrorContains(t, err, "invalid_grant")
		}
		took := int(time.Since(start) / turnFor)
		require.LessOrEqual(t, len(i.asked), 2*signInsAtOnce*(took+1))
		require.GreaterOrEqual(t, took, (10*finishesOf-finishesOf)/signInsAtOnce-1)
		require.NoError(t, w.browser().signIn("alice"))
		require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", token, "").Code)
	})
}

// Who comes back while strangers do waits for a turn, and somebody of another address for less.
func TestWhoComesBackAmongStrangersWaitsInThePlaceOfBeingRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, i := newOIDCDoor(t, someRoles)
		for range finishesOf {
			w.signIns.finishes.allow("192.0.2.1:1234", "", w.now())
		}
		var strangers sync.WaitGroup
		for range 2 * signInsAtOnce {
			strangers.Go(func() { _, _ = w.browser().comesBack("nobody's") })
		}
		synctest.Wait()
		require.Len(t, i.asked, signInsAtOnce)
		start := time.Now()
		elsewhere := w.browser()
		elsewhere.from = "198.51.100.7:1"
		require.NoError(t, elsewhere.signIn("carol"))
		require.Zero(t, time.Since(start), "of another address")
		require.NoError(t, w.browser().signIn("alice"))
		require.Equal(t, 2*turnFor, time.Since(start))
		strangers.Wait()
	})
}

// Where there is no turn within a while the sign-in is not over: the page reloaded goes on.
func TestASignInThatHadNoTurnGoesOnLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, i := newOIDCDoor(t, someRoles)
		alice := w.browser()
		state, err := alice.begin("/history")
		require.NoError(t, err)
		query := url.Values{"state": {state}, "code": {"alice"}}
		refused := func() {
			t.Helper()
			_, err := alice.back(query)
			var answer *Error
			require.ErrorAs(t, err, &answer)
			require.Equal(t, http.StatusTooManyRequests, answer.Status)
			require.Equal(t, "reload this page in a few seconds: this sign-in is not over", answer.Hint)
			require.Empty(t, i.asked)
		}
		for range signInsAtOnce {
			w.signIns.few.turns <- struct{}{}
		}
		start := time.Now()
		refused()
		require.Equal(t, turnWithin, time.Since(start))
		for range signInsWaiting {
			w.signIns.few.waiting <- struct{}{}
		}
		refused()
		require.Equal(t, turnWithin, time.Since(start), "where too many wait nobody waits")
		<-w.signIns.few.waiting
		<-w.signIns.few.turns
		then, err := alice.back(query)
		require.NoError(t, err)
		require.Equal(t, "/history", then)
		require.NotContains(t, alice.cookies, w.sessions.signInName())
	})
}

// A state counts once while its cookie does, and is forgotten soon after.
func TestAStateThatCameBackIsKnownAsLongAsItsCookieCounts(t *testing.T) {
	s, at := newSignIns(), time.Now()
	require.True(t, s.first("a", at))
	at = at.Add(signInWithin - time.Second)
	require.True(t, s.first("b", at))
	for range 2 {
		require.False(t, s.first("b", at))
		require.False(t, s.first("a", at))
		at = at.Add(signInWithin - time.Second)
	}
	at = at.Add(signInWithin)
	require.True(t, s.first("c", at))
	at = at.Add(2 * signInWithin)
	require.True(t, s.first("d", at))
	require.Len(t, s.over, 1)
	require.Empty(t, s.before)
}

// A browser drops a cookie that is too long and says nothing, so nobody is sent one.
func TestACookieThatNoBrowserKeepsIsRefused(t *testing.T) {
	roles := map[string]Scopes{}
	big := Person{Subject: "9", Email: "big@example.org"}
	for n := range 200 {
		group := fmt.Sprintf("a-group-of-our-company-%03d", n)
		roles[RowOfGroup+group] = Scopes{ScopeRead}
		big.Groups = append(big.Groups, group)
	}
	w, i := newOIDCDoor(t, roles)
	some := big
	some.Groups = big.Groups[:60]
	i.people["big"], i.people["some"] = big, some
	b := w.browser()
	require.NoError(t, b.signIn("some"))
	require.LessOrEqual(t, len(b.cookies[w.sessions.name].String()), longestCookie)
	b = w.browser()
	err := b.signIn("big")
	require.ErrorIs(t, err, ErrDenied)
	require.EqualError(t, err, "big@example.org has 200 rows, more than a browser keeps in a cookie")
	require.Empty(t, b.cookies)
	_, err = b.begin("/" + strings.Repeat("x", longestCookie))
	require.ErrorIs(t, err, ErrUsage)
	require.ErrorContains(t, err, "longer than a browser keeps")
	require.Empty(t, b.cookies)
}
