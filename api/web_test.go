package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// door is a Web with a file of tokens and a clock.
type webDoor struct {
	*Web
	socket *Socket
	t      *testing.T
	d      *daemon
	file   string
	mu     sync.Mutex
	at     time.Time
}

func newWebDoor(t *testing.T, change ...func(*WebOptions)) *webDoor {
	t.Helper()
	w := &webDoor{t: t, d: newDaemon(), file: filepath.Join(t.TempDir(), "tokens"), at: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)}
	require.NoError(t, os.WriteFile(w.file, nil, 0o600))
	o := WebOptions{
		Tokens: NewTokens(w.file, func(string) error { return nil }, w.now), SessionKey: make([]byte, 32), Address: "127.0.0.1:9481",
		URL: "http://edge-1.example.org", Now: w.now, Log: quiet,
	}
	for _, c := range change {
		c(&o)
	}
	var err error
	w.socket = newSocket(t, w.d)
	w.Web, err = NewWeb(&w.socket.Table, o)
	require.NoError(t, err)
	return w
}

func (w *webDoor) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *webDoor) after(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// token writes a line, and gives the token.
func (w *webDoor) token(name, scopes string) string {
	w.t.Helper()
	set, err := ParseScopes(scopes)
	require.NoError(w.t, err)
	text, line := NewToken(name, set, "2026-12-24")
	w.write(append(w.read(), line.Line())...)
	return text
}

func (w *webDoor) read() []string {
	body, err := os.ReadFile(w.file)
	require.NoError(w.t, err)
	return strings.Split(strings.TrimSpace(string(body)), "\n")
}

// write replaces the lines of the file. Its time is moved on: two writes within one tick of
// the file system's clock look the same.
func (w *webDoor) write(lines ...string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(w.file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	w.after(rereadEvery)
}

func (w *webDoor) revoke(name string) {
	w.write(slices.DeleteFunc(w.read(), func(line string) bool { return strings.Contains(line, " "+name+" ") })...)
}

// ask is one request, with what is changed of it.
func (w *webDoor) ask(method, target, token, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if strings.HasPrefix(target, "/v1/stream") {
		cancel() // it would not end
	}
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	r.Host = "edge-1.example.org"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(r)
	}
	out := httptest.NewRecorder()
	w.ServeHTTP(out, r)
	return out
}

// Every route, with every scope and without any, on TCP. The oracle is the table that was
// written by hand.
func TestWhichScopeMayDoWhat(t *testing.T) {
	includes := map[Scope][]Scope{
		"metrics": {"metrics"}, "read": {"read"}, "logs": {"logs", "read"}, "operate": {"operate", "read"}, "approve": {"approve", "read"}, "admin": {"admin", "read"},
		"report:edge-1": {}, // of a hub alone, and nothing there but its own report
	}
	require.Len(t, includes, len(ScopeNames)+1)
	w := newWebDoor(t)
	tokens := map[Scope]string{}
	for scope := range includes {
		tokens[scope] = w.token("of-"+strings.ReplaceAll(string(scope), ":", "-"), string(scope))
	}
	all := w.token("all", strings.Join(ScopeNames, ","))
	require.Len(t, everyRoute, len(w.socket.routes))
	for path, row := range everyRoute {
		w.after(time.Minute)
		w.d.takeCalled()
		out := w.ask(row.method, row.target, "", row.body)
		require.Equal(t, http.StatusUnauthorized, out.Code, path)
		require.Empty(t, w.d.takeCalled(), path)
		for scope, token := range tokens {
			out := w.ask(row.method, row.target, token, row.body)
			want := http.StatusForbidden
			switch {
			case row.scope == "":
				want = http.StatusNotFound
			case slices.Contains(includes[scope], row.scope):
				want = http.StatusOK
			}
			require.Equal(t, want, out.Code, "%s by %s: %s", path, scope, out.Body)
			called := len(w.d.takeCalled()) > 0
			require.Equal(t, want == http.StatusOK && path != "/v1/openapi.json", called, "%s by %s", path, scope)
		}
		out = w.ask(row.method, row.target, all, row.body)
		require.Equal(t, row.scope != "", out.Code == http.StatusOK, "%s: %s", path, out.Body)
		w.d.takeCalled()
	}
	out := w.ask("GET", "/v1/nothing", all, "")
	require.Equal(t, http.StatusNotFound, out.Code)
	out = w.ask("POST", "/v1/plan", all, "zip")
	require.Equal(t, http.StatusNotFound, out.Code, "an uploaded folder is for the socket")
	require.Empty(t, w.d.takeCalled())
	require.False(t, Scopes{ScopeAdmin}.Has(""), "nobody has no scope")
}

func TestAnActOnTCPHasAnAccountForItsActor(t *testing.T) {
	w := newWebDoor(t)
	var by Peer
	w.socket.calls.Act = func(_ context.Context, p Peer, _ ActRequest) (Acted, error) {
		by = p
		return Acted{}, nil
	}
	out := w.ask("POST", "/v1/act", w.token("ci", "operate"), `{"verb":"hold","app":"web","reason":"r"}`)
	require.Equal(t, http.StatusOK, out.Code, out.Body)
	require.Equal(t, "token/ci", by.Actor())
	require.NotZero(t, by.UID, "nobody on TCP is root")
	require.False(t, allowed(by, mayWrite, 0xfffffff0, func(Peer) bool { return false }))
	require.Equal(t, "uid 7", Peer{UID: 7, Name: "token/ci"}.Actor(), "no user passes for an account")
	for _, p := range []string{"/v1/act", "/v1/adopt", "/v1/leave", "/v1/refresh"} {
		body := `{"verb":"hold","app":"web","reason":" "}`
		if p != "/v1/act" {
			body = `{"app":"web","reason":" "}`
		}
		require.Equal(t, http.StatusBadRequest, w.ask("POST", p, w.token("x", "operate,admin"), body).Code, "%s without a reason", p)
		w.revoke("x")
	}
}

func TestWhoMayNotReadLogsSeesNoLineOfThem(t *testing.T) {
	w := newWebDoor(t)
	told := []string{"password=hunter2"}
	crash := ring.Crash{Log: told, Checked: told, Reason: "exited with code 3"}
	w.socket.calls.Crashes = func(context.Context, CrashQuery) ([]CrashGroup, error) {
		return []CrashGroup{{App: "web", Words: "password=hunter2", Newest: crash}}, nil
	}
	w.socket.calls.Inspect = func(context.Context, InspectQuery) (ring.Explained, error) {
		return ring.Explained{App: "web", Crash: &crash, Instances: []ring.ExplainedInstance{{Printed: []ring.CheckPrinted{{Lines: told}}}}}, nil
	}
	read, logs := w.token("reader", "read"), w.token("logs", "logs")
	for _, target := range []string{"/v1/crashes?app=web", "/v1/inspect?app=web&service=web"} {
		out := w.ask("GET", target, read, "")
		require.Equal(t, http.StatusOK, out.Code)
		require.NotContains(t, out.Body.String(), "hunter2", target)
		require.Contains(t, w.ask("GET", target, logs, "").Body.String(), "hunter2", target)
	}
	require.Len(t, crash.Log, 1, "the daemon's own value stays")
	for _, target := range []string{"/v1/crashes?logs=1", "/v1/jobs?logs=1", "/v1/logs?app=web"} {
		require.Equal(t, http.StatusForbidden, w.ask("GET", target, read, "").Code, target)
		require.Equal(t, http.StatusOK, w.ask("GET", target, logs, "").Code, target)
	}
}

func TestARequestForAnotherHostIsNotAnswered(t *testing.T) {
	w := newWebDoor(t, func(o *WebOptions) { o.Hosts = []string{"gitring.internal", "fd00::7"} })
	token := w.token("ci", "read")
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	on := func(at string) func(*http.Request) {
		return func(r *http.Request) {
			a, err := net.ResolveTCPAddr("tcp", at)
			require.NoError(t, err)
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(a)))
		}
	}
	for _, ok := range []string{"edge-1.example.org", "EDGE-1.example.org.:9481", "localhost", "localhost:9481", "127.0.0.1:9481", "127.8.9.1", "[::1]:9481", "gitring.internal:80", "[fd00::7]:9481"} {
		require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", token, "", host(ok)).Code, ok)
	}
	for _, bad := range []string{"", "evil.example.org", "edge-1.example.org.evil.org", "localhost.evil.org", "192.0.2.7", "127.0.0.1.evil.org", "0x7f000001", "[fd00::8]", "edge-1", "a b", "[::1"} {
		out := w.ask("GET", "/v1/status", token, "", host(bad))
		if bad == "[::1" { // taken for ::1, which is this host
			continue
		}
		require.Equal(t, http.StatusMisdirectedRequest, out.Code, "%q", bad)
		require.Contains(t, out.Body.String(), "WrongHost")
	}
	require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", token, "", on("192.0.2.7:9481"), host("192.0.2.7:9481")).Code, "the address that the connection came in on")
	require.Equal(t, http.StatusMisdirectedRequest, w.ask("GET", "/v1/status", token, "", on("192.0.2.8:9481"), host("192.0.2.7:9481")).Code)
	w.d.takeCalled()
	require.Equal(t, http.StatusMisdirectedRequest, w.ask("POST", "/v1/session", "", `{"token":"`+token+`"}`, host("evil.example.org")).Code, "a page that was bound to another name cannot sign in either")
}

func TestAPageOfSomewhereElseCanDoNothing(t *testing.T) {
	w := newWebDoor(t)
	token := w.token("ann", "operate,approve,admin")
	cookie := w.signIn(token)
	with := func(key, value string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(key, value) } }
	for name, from := range map[string]func(*http.Request){
		"another site": with("Sec-Fetch-Site", "cross-site"), "another host of this site": with("Sec-Fetch-Site", "same-site"),
		"an origin of an older browser": with("Origin", "http://evil.example.org"), "no origin": with("Origin", "null"),
	} {
		w.d.takeCalled()
		for path, row := range everyRoute {
			if row.method != "POST" {
				continue
			}
			out := w.ask(row.method, row.target, "", row.body, cookie, from)
			require.Equal(t, http.StatusForbidden, out.Code, "%s from %s", path, name)
			w.after(time.Second)
		}
		require.Equal(t, http.StatusForbidden, w.ask("POST", "/v1/session", "", `{"token":"`+token+`"}`, from).Code, name)
		require.Empty(t, w.d.takeCalled(), name)
	}
	out := w.ask("POST", "/v1/sync", "", "", cookie, with("Sec-Fetch-Site", "same-origin"))
	require.Equal(t, http.StatusOK, out.Code, out.Body)
	for header := range out.Header() {
		require.NotContains(t, header, "Access-Control", "no CORS, ever")
	}

	require.Equal(t, "nosniff", out.Header().Get("X-Content-Type-Options"))
}

// signIn gives the cookie of a session.
func (w *webDoor) signIn(token string) func(*http.Request) {
	w.t.Helper()
	out := w.ask("POST", "/v1/session", "", `{"token":"`+token+`"}`)
	require.Equal(w.t, http.StatusOK, out.Code, out.Body)
	cookies := out.Result().Cookies()
	require.Len(w.t, cookies, 1)
	return func(r *http.Request) { r.AddCookie(cookies[0]) }
}

func TestASessionIsWorthWhatItsTokenIsWorthNow(t *testing.T) {
	w := newWebDoor(t)
	cookie := w.signIn(w.token("ann", "read"))
	require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", "", "", cookie).Code)
	require.Equal(t, http.StatusForbidden, w.ask("POST", "/v1/sync", "", "", cookie).Code)
	require.JSONEq(t, `{"actor":"token/ann","scopes":["read"],"until":"2026-12-24"}`, w.ask("GET", "/v1/session", "", "", cookie).Body.String())

	lines := w.read()
	w.write(strings.Replace(lines[len(lines)-1], " read ", " operate ", 1))
	require.Equal(t, http.StatusOK, w.ask("POST", "/v1/sync", "", "", cookie).Code, "scopes are looked up anew")

	id := strings.Fields(lines[len(lines)-1])[0]
	_, other := NewToken("ann", Scopes{ScopeRead}, "2026-12-24")
	other.ID = id
	w.write(other.Line())
	require.Equal(t, http.StatusUnauthorized, w.ask("GET", "/v1/status", "", "", cookie).Code, "another token of that id is another one")

	w.write(lines...)
	require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", "", "", cookie).Code)
	w.after(SessionLife)
	require.Equal(t, http.StatusUnauthorized, w.ask("GET", "/v1/status", "", "", cookie).Code, "it ends after 8 h")

	cookie = w.signIn(w.token("ben", "read"))
	w.revoke("ben")
	require.Equal(t, http.StatusUnauthorized, w.ask("GET", "/v1/status", "", "", cookie).Code)
	out := w.ask("DELETE", "/v1/session", "", "", cookie)
	require.Equal(t, http.StatusOK, out.Code)
	require.Negative(t, out.Result().Cookies()[0].MaxAge)

	key := []byte(strings.Repeat("k", 32))
	another := newWebDoor(t, func(o *WebOptions) { o.SessionKey = key })
	another.write(lines...)
	cookie = w.signIn(w.token("eve", "read"))
	require.Equal(t, http.StatusUnauthorized, another.ask("GET", "/v1/status", "", "", cookie).Code, "a new key ends all sessions")
	require.Equal(t, http.StatusUnauthorized, w.ask("GET", "/v1/status", "", "", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "gitring-9481", Value: "AAAA"}) }).Code)
}

func TestTheCookieIsBoundToItsHost(t *testing.T) {
	of := func(url string) *http.Cookie {
		w := newWebDoor(t, func(o *WebOptions) { o.URL = url })
		out := w.ask("POST", "/v1/session", "", `{"token":"`+w.token("ann", "read")+`"}`, func(r *http.Request) { r.Host = "localhost" })
		require.Equal(t, http.StatusOK, out.Code, out.Body)
		return out.Result().Cookies()[0]
	}
	plain, secure := of("http://edge-1:9481"), of("https://edge-1.example.org")
	require.Equal(t, "gitring-9481", plain.Name)
	require.False(t, plain.Secure)
	require.Equal(t, "__Host-gitring", secure.Name)
	require.True(t, secure.Secure)
	for _, c := range []*http.Cookie{plain, secure} {
		require.True(t, c.HttpOnly)
		require.Equal(t, http.SameSiteLaxMode, c.SameSite)
		require.Equal(t, "/", c.Path)
		require.Empty(t, c.Domain)
		require.Equal(t, 8*3600, c.MaxAge)
	}
}

func TestTooManyRequestsAreToldWhenToComeBack(t *testing.T) {
	w := newWebDoor(t)
	ann, ben := w.token("ann", "read"), w.token("ben", "read")
	for range webPerActor {
		require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", ann, "").Code)
	}
	out := w.ask("GET", "/v1/status", ann, "")
	require.Equal(t, http.StatusTooManyRequests, out.Code)
	require.Equal(t, "1", out.Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", ben, "").Code, "another one is another one")
	w.after(time.Second)
	require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", ann, "").Code)
}

func TestAValidTokenIsLetInHoweverManyWrongOnesCame(t *testing.T) {
	w := newWebDoor(t)
	token := w.token("ann", "read")
	wrong, _ := NewToken("x", Scopes{ScopeRead}, Never)
	codes := map[int]int{}
	for i := range 1000 {
		if i%2 == 0 {
			codes[w.ask("GET", "/v1/status", wrong, "").Code]++
		} else {
			codes[w.ask("POST", "/v1/session", "", `{"token":"`+wrong+`"}`).Code]++
		}
	}
	require.Equal(t, map[int]int{http.StatusUnauthorized: webFailed, http.StatusTooManyRequests: 1000 - webFailed}, codes)
	require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", token, "").Code)
	w.signIn(token)
	w.after(time.Minute)
	require.Equal(t, http.StatusUnauthorized, w.ask("GET", "/v1/status", wrong, "").Code, "a minute later it is asked anew")
	require.Equal(t, "6", func() string {
		for range webFailed {
			w.ask("GET", "/v1/status", wrong, "")
		}
		return w.ask("GET", "/v1/status", wrong, "").Header().Get("Retry-After")
	}())
}

func TestWhatAStrangerSeesIsSmall(t *testing.T) {
	w := newWebDoor(t)
	for _, path := range []string{"/", "/v1", "/v1/status", "/v1/trust/accept", "/v1/openapi.json", "/healthz", "/v1/webhook/prod", "/metrics", "/favicon.ico", "/v1/session", "/../v1/status"} {
		w.after(time.Second)
		out := w.ask("GET", path, "", "")
		require.Equal(t, http.StatusUnauthorized, out.Code, path)
		require.JSONEq(t, `{"code":"Unauthenticated","error":"nobody is signed in","hint":"send Authorization: Bearer with a token; gitring token new <name> --scope <scopes> makes one"}`, out.Body.String(), path)
		require.NotEmpty(t, out.Header().Get("WWW-Authenticate"))
	}
	token := w.token("ann", "read")
	require.Equal(t, http.StatusUnauthorized, w.ask("GET", "/v1/status?token="+token+"&access_token="+token, "", "").Code, "no token in a URL")
	require.Equal(t, http.StatusUnauthorized, w.ask("GET", "/v1/status", "", "", func(r *http.Request) { r.Header.Set("X-Forwarded-User", "root"); r.SetBasicAuth("ann", token) }).Code)
	require.Equal(t, http.StatusRequestEntityTooLarge, w.ask("POST", "/v1/session", "", strings.Repeat(" ", 2000)+"{}").Code)
	require.Equal(t, http.StatusRequestEntityTooLarge, w.ask("POST", "/v1/act", w.token("op", "operate"), strings.Repeat(" ", bodyLimit+1)).Code)
}

func TestPagesAreAskedForWhatIsNoPathOfTheAPI(t *testing.T) {
	w := newWebDoor(t, func(o *WebOptions) {
		o.Pages = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			v, ok := ViewerOf(r.Context())
			fmt.Fprintf(out, "%t %s %s %t", ok, v.Actor, v.Scopes, v.Session)
		})
	})
	token := w.token("ann", "read")
	require.Equal(t, "false   false", w.ask("GET", "/", "", "").Body.String())
	require.Equal(t, "true token/ann read true", w.ask("GET", "/app/web", "", "", w.signIn(token)).Body.String())
	require.Equal(t, http.StatusUnauthorized, w.ask("GET", "/metrics", "", "").Code)
	require.Equal(t, http.StatusMisdirectedRequest, w.ask("GET", "/", token, "", func(r *http.Request) { r.Host = "evil" }).Code)
}

// half sends a request whose body does not come, and gives the status of the answer; 0 is none.
func half(t *testing.T, url, method, path string, header ...string) int {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // only read
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 40\r\n%s\r\ntoken=", method, path, strings.Join(append(header, ""), "\r\n"))
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer res.Body.Close() //nolint:errcheck // only read
	return res.StatusCode
}

// Nobody, a stranger least of all, holds a connection by a body that does not come.
func TestABodyThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	var asked atomic.Int64
	page := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(out, r.FormValue("token"))
	})
	w := newWebDoor(t, func(o *WebOptions) { o.Pages = page })
	w.socket.within = 50 * time.Millisecond
	url := w.serve()
	token := "Authorization: Bearer " + w.token("op", "operate")
	for _, row := range []struct {
		method, path string
		header       []string
		want         int
	}{
		{"POST", "/signin", nil, http.StatusBadRequest},
		{"POST", "/signout", nil, http.StatusBadRequest},
		{"POST", "/act/web", []string{token}, http.StatusBadRequest},
		{"GET", "/", []string{token}, http.StatusBadRequest},
		{"POST", "/v1/session", nil, http.StatusBadRequest},
		{"POST", "/v1/act", nil, http.StatusUnauthorized},
		{"POST", "/v1/nothing", []string{token}, http.StatusNotFound},
	} {
		require.Equal(t, row.want, half(t, url, row.method, row.path, row.header...), "%s %s", row.method, row.path)
	}
	require.Zero(t, asked.Load(), "a page was asked before its form was there")

	l := newLocalDoor(t, func(o *LocalOptions) { o.Pages = func(*Client) http.Handler { return page } })
	l.within = 50 * time.Millisecond
	require.Equal(t, http.StatusUnauthorized, half(t, l.url, "POST", "/act/web"))
	require.Equal(t, http.StatusBadRequest, half(t, l.url, "POST", "/act/web", "Cookie: "+l.cookie+"="+l.worth))
	require.Zero(t, asked.Load(), "a page was asked before its form was there")
}

func TestAFormOfAPageArrivesWhole(t *testing.T) {
	w := newWebDoor(t, func(o *WebOptions) {
		o.Pages = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			fmt.Fprint(out, r.PostFormValue("reason"))
		})
	})
	typed := func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }
	require.Equal(t, "looked at it", w.ask("POST", "/act/web", w.token("op", "operate"), "reason=looked+at+it", typed).Body.String())
	require.Equal(t, http.StatusRequestEntityTooLarge, w.ask("POST", "/signin", "", "reason="+strings.Repeat("x", bodyLimit), typed).Code)
}

func TestASnapshotThatIsKnownIsNotSentAgain(t *testing.T) {
	w := newWebDoor(t)
	token := w.token("ann", "read")
	if0 := func(tag string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("If-None-Match", tag) }
	}
	for path, row := range everyRoute {
		if row.method != "GET" || row.scope != "read" || path == "/v1/events" || path == "/v1/stream" {
			continue
		}
		w.after(time.Second)
		out := w.ask("GET", row.target, token, "")
		tag := out.Header().Get("ETag")
		require.NotEmpty(t, tag, path)
		out = w.ask("GET", row.target, token, "", if0(`"x", `+tag))
		require.Equal(t, http.StatusNotModified, out.Code, path)
		require.Empty(t, out.Body.String(), path)
		require.Equal(t, http.StatusOK, w.ask("GET", row.target, token, "", if0(`"x"`)).Code, path)
	}
	tag := func() string { w.after(time.Second); return w.ask("GET", "/v1/status", token, "").Header().Get("ETag") }
	before := tag()
	w.d.set(func(st *ring.Status) { st.At = time.Now(); st.Sources[0].Checking = true })
	require.Equal(t, before, tag(), "the time and a look change nothing")
	w.d.set(func(st *ring.Status) { st.Sources[0].Sync = ring.SyncDegraded })
	require.NotEqual(t, before, tag())
}

// serve listens for real.
func (w *webDoor) serve() (url string) {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, l) }()
	w.t.Cleanup(func() { cancel(); require.NoError(w.t, <-ended) })
	return "http://" + l.Addr().String()
}

// sent is one server-sent event.
type sent struct{ kind, id, data string }

// reads gives the events of a stream until it ends.
func (w *webDoor) reads(ctx context.Context, url, token, last string) (<-chan sent, *http.Response) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/stream", nil)
	require.NoError(w.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	require.NoError(w.t, err)
	out := make(chan sent, 1000)
	go func() {
		defer close(out)
		defer res.Body.Close() //nolint:errcheck // only read
		var e sent
		for s := bufio.NewScanner(res.Body); s.Scan(); {
			key, value, _ := strings.Cut(s.Text(), ": ")
			switch key {
			case "event":
				e.kind = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				if e.kind != "" {
					out <- e
				}
				e = sent{}
			}
		}
	}()
	return out, res
}

func TestAStreamTellsLinesAndThatTheStatusIsAnotherOne(t *testing.T) {
	w := newWebDoor(t)
	token := w.token("ann", "read")
	w.d.append(ring.Event{Seq: 1, Kind: "daemon.started"})
	url := w.serve()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, res := w.reads(ctx, url, token, "")
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	first := <-events
	require.Equal(t, "status", first.kind)
	require.Equal(t, "1.00000010", first.id, "who has nothing begins after the newest line")
	w.d.append(ring.Event{Seq: 2, Kind: "commit.accepted", App: "web"})
	e := <-events
	require.Equal(t, "journal", e.kind)
	require.Equal(t, "2.00000020", e.id)
	var line ring.Event
	require.NoError(t, json.Unmarshal([]byte(e.data), &line))
	require.Equal(t, "commit.accepted", line.Kind)
	w.d.set(func(st *ring.Status) { st.Sources[0].Sync = ring.SyncDegraded })
	e = <-events
	require.Equal(t, "status", e.kind, "readiness moved without a line")
	require.NotEqual(t, first.data, e.data)
	cancel()
	for range events {
	}
}

// However often the connection breaks, no line is lost or told twice.
func TestAStreamThatIsCutLosesNoLine(t *testing.T) {
	w := newWebDoor(t)
	token := w.token("ann", "read")
	url := w.serve()
	const lines, cuts = 1600, 1000
	go func() {
		for i := range lines {
			w.d.append(ring.Event{Seq: int64(i + 1), Kind: "instance.step"})
			if i%7 == 0 {
				time.Sleep(time.Millisecond) // lines come while streams are read, too; nothing waits for it
			}
		}
	}()
	last, seen, cut := noLine, 0, 0
	for ; seen < lines; cut++ {
		w.after(time.Second) // not too often
		ctx, cancel := context.WithCancel(t.Context())
		events, _ := w.reads(ctx, url, token, last)
		for n := 0; ; n++ {
			e, open := <-events
			if !open {
				break
			}
			require.NotEqual(t, "reset", e.kind)
			if e.kind == "journal" {
				seen++
				require.Equal(t, fmt.Sprintf("%d.%07x0", seen, seen), e.id)
			}
			if e.id != "" {
				last = e.id
			}
			if n == cut%4 || seen == lines {
				break
			}
		}
		cancel()
		for range events { // what came after the cut counts for nothing
		}
	}
	require.Equal(t, lines, seen)
	require.GreaterOrEqual(t, cut, cuts)
	t.Logf("%d lines in %d pieces", seen, cut)
}

func TestAStreamSaysWhereLinesAreMissing(t *testing.T) {
	w := newWebDoor(t)
	token := w.token("ann", "read")
	for i := range 9 {
		w.d.append(ring.Event{Seq: int64(i + 1)})
	}
	w.d.mu.Lock()
	w.d.events = w.d.events[4:] // trimmed
	w.d.mu.Unlock()
	url := w.serve()
	begins := func(last string) []string {
		w.after(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		events, _ := w.reads(ctx, url, token, last)
		var kinds []string
		for e := range events {
			kinds = append(kinds, e.kind+" "+e.id)
			if e.kind == "status" || strings.HasPrefix(e.id, "9.") && e.kind == "journal" {
				cancel()
			}
		}
		cancel()
		return kinds
	}
	require.Equal(t, []string{"status 9.00000090"}, begins("9.00000090")[:1])
	require.Equal(t, "status 7.00000070", begins("7.00000070")[0])
	for _, id := range []string{"3.00000030", noLine, "8.deadbeef", "12.000000c0", "x", "-1.0", "8", "99999999999999999999.0"} {
		require.Equal(t, "reset 9.00000090", begins(id)[0], id)
	}
	w.d.mu.Lock()
	w.d.database = 1 // restored from elsewhere
	w.d.mu.Unlock()
	require.Equal(t, "reset 9.00000091", begins("9.00000090")[0])
}

func TestAStreamWhoseRightEndedIsClosed(t *testing.T) {
	w := newWebDoor(t)
	require.LessOrEqual(t, w.every, 15*time.Second, "what people are promised")
	w.every = 10 * time.Millisecond
	url := w.serve()
	w.d.logs = func(ctx context.Context, _ LogQuery, out func(string) io.WriteCloser) error {
		_, _ = io.WriteString(out("web-1"), "a line\n")
		<-ctx.Done()
		return ctx.Err()
	}
	for name, path := range map[string]string{"stream": "/v1/stream", "events": "/v1/events?follow=1", "logs": "/v1/logs?app=web&follow=1"} {
		token := w.token(name, "logs")
		w.d.append(ring.Event{Seq: int64(len(w.d.events) + 1)})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode, name)
		w.revoke(name)
		_, err = io.Copy(io.Discard, res.Body) // it ends, or the test does not
		require.NoError(t, err, name)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusUnauthorized, w.ask("GET", "/v1/status", token, "").Code)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	w := newWebDoor(t)
	url := w.serve()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var open []<-chan sent
	for actor := range streamsAtOnce / streamsOfOne {
		token := w.token(fmt.Sprint("a", actor), "read")
		for range streamsOfOne {
			events, _ := w.reads(ctx, url, token, "")
			<-events
			open = append(open, events)
		}
		out := w.ask("GET", "/v1/stream", token, "")
		require.Equal(t, http.StatusTooManyRequests, out.Code, "8 of one")
		require.Equal(t, "10", out.Header().Get("Retry-After"))
	}
	late := w.token("late", "read")
	require.Equal(t, http.StatusTooManyRequests, w.ask("GET", "/v1/stream", late, "").Code, "64 of all")
	require.Equal(t, http.StatusOK, w.ask("GET", "/v1/status", late, "").Code)
	cancel()
	for _, events := range open {
		for range events {
		}
	}
	require.Eventually(t, func() bool { return w.ask("GET", "/v1/stream", late, "").Code == http.StatusOK }, time.Minute, 10*time.Millisecond)
}

// Whoever holds connections open, and says nothing, keeps nobody out, and costs little.
func TestAFloodOfConnectionsKeepsNobodyOut(t *testing.T) {
	w := newWebDoor(t)
	token := w.token("ann", "read")
	url := w.serve()
	var held []net.Conn
	for range 600 {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		require.NoError(t, err)
		held = append(held, c)
	}
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/status", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.NoError(t, res.Body.Close())
	closed := 0
	for _, c := range held[:600-webConns] {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		if _, err := c.Read(make([]byte, 1)); err != nil {
			closed++
		}
	}
	require.Equal(t, 600-webConns, closed, "128 are open at one time")
}

func TestLinesThatWereTrimmedAreTold(t *testing.T) {
	w := newWebDoor(t)
	token := w.token("ann", "read")
	for i := range 9 {
		w.d.append(ring.Event{Seq: int64(i + 1)})
	}
	header := func(target string) string {
		w.after(time.Second)
		return w.ask("GET", target, token, "").Header().Get(firstLine)
	}
	require.Empty(t, header("/v1/events"))
	w.d.events = w.d.events[4:]
	require.Equal(t, "5", header("/v1/events"))
	require.Equal(t, "5", header("/v1/events?after=2"))
	require.Empty(t, header("/v1/events?after=4"))
	require.Empty(t, header("/v1/events?after=8"))
	require.Empty(t, header("/v1/events?last=3"))
}
