package pages

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/ring"
)

var (
	links = regexp.MustCompile(` (?:href|src|action)="([^"]*)"`)
	forms = regexp.MustCompile(`<form[ >]`)
	tags  = regexp.MustCompile(`<[^>]*>`)
)

// walk asks for every page that a page links to, and hands each to see.
func walk(t *testing.T, h http.Handler, see func(path string, w *httptest.ResponseRecorder)) (pages []string) {
	t.Helper()
	seen, next := map[string]bool{"/": true}, []string{"/", "/signin", "/signout"}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		pages = append(pages, path)
		w := get(t, h, path)
		require.Equal(t, http.StatusOK, w.Code, "%s: %s", path, w.Body)
		see(path, w)
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range links.FindAllStringSubmatch(w.Body.String(), -1) {
			to := html.UnescapeString(m[1])
			if strings.HasPrefix(to, "#") {
				require.Contains(t, w.Body.String(), `id="`+to[1:]+`"`)
				continue
			}
			require.True(t, strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//"), "%s leads out of this host: %s", path, to)
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return pages
}

func isPage(w *httptest.ResponseRecorder) bool {
	return strings.HasPrefix(w.Header().Get("Content-Type"), "text/html")
}

func TestEveryLinkOfEveryPageAnswers(t *testing.T) {
	h := rich().handler(everything)
	pages := walk(t, h, func(path string, w *httptest.ResponseRecorder) {
		require.Equal(t, Policy, w.Header().Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"))
		require.Equal(t, "same-origin", w.Header().Get("Cross-Origin-Opener-Policy"))
		require.Equal(t, "same-origin", w.Header().Get("Cross-Origin-Resource-Policy"))
		if !isPage(w) {
			return
		}
		body := w.Body.String()
		live := strings.Contains(body, " data-live=")
		require.False(t, live && forms.MatchString(body), "%s is live and has a form", path)
		require.NotContains(t, body, " style=", path)
		require.NotContains(t, body, "<style", path)
		require.NotRegexp(t, `<script[^>]*>[^<]`, body, path)
		require.NotRegexp(t, ` on[a-z]+="`, body, path)
		require.NotContains(t, body, canary, path)
		require.Contains(t, body, "All times are UTC", path)
		require.Equal(t, 1, strings.Count(body, "<h1"), path+": a page has one title")
		require.NotContains(t, body, "ZgotmplZ", path)
	})
	for _, want := range []string{"/plan", "/history", "/jobs", "/crashes", "/trust", "/doctor", "/app/web", "/svc/web/web", "/logs/web/web", "/logs/web/web?q=", "/act/web/web", "/act/web?verb=undo", "/commit/" + string(shaNow)} {
		require.Contains(t, pages, want)
	}
}

func TestAFormIsAloneOnItsPage(t *testing.T) {
	with := []string{}
	walk(t, rich().handler(everything), func(path string, w *httptest.ResponseRecorder) {
		if isPage(w) && forms.MatchString(w.Body.String()) {
			u, err := url.Parse(path)
			require.NoError(t, err)
			with = append(with, strings.Split(u.Path, "/")[1])
		}
	})
	slices.Sort(with)
	require.Equal(t, []string{"act", "logs", "signin", "signout", "sync"}, slices.Compact(with), "pages with a form")
}

func TestAReaderSeesNoActAndNoLogs(t *testing.T) {
	for _, scopes := range []api.Scopes{{api.ScopeRead}, {api.ScopeRead, api.ScopeLogs}} {
		lines := 0
		walk(t, rich().handler(api.Viewer{Actor: "token/reader", Scopes: scopes}), func(path string, w *httptest.ResponseRecorder) {
			body := w.Body.String()
			require.NotContains(t, body, `href="/act/`, path)
			require.NotContains(t, body, `href="/approve/`, path)
			require.NotContains(t, body, `href="/sync/`, path)
			if !scopes.Has(api.ScopeLogs) {
				require.NotContains(t, body, `href="/logs/`, path)
				require.NotContains(t, body, "connection refused", path)
			}
			lines += strings.Count(body, "connection refused")
		})
		require.Equal(t, scopes.Has(api.ScopeLogs), lines > 0)
		h := rich().handler(api.Viewer{Actor: "token/reader", Scopes: scopes})
		for path, want := range map[string]int{"/act/web": 403, "/act/web/web?verb=hold": 403, "/sync/prod": 403, "/approve/" + string(shaNext): 403, "/logs/web/web": map[bool]int{true: 200, false: 403}[scopes.Has(api.ScopeLogs)]} {
			require.Equal(t, want, get(t, h, path).Code, path)
		}
	}
}

func TestWhoHasNoScopeSeesNothing(t *testing.T) {
	f := rich()
	h := f.handler(api.Viewer{Actor: "token/prometheus", Scopes: api.Scopes{api.ScopeMetrics}})
	for _, rt := range routes {
		_, path, _ := strings.Cut(rt.pattern, " ")
		path = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(strings.TrimSuffix(path, "{$}"), "web")
		if path == "" {
			continue
		}
		w := get(t, h, path)
		require.Equal(t, http.StatusForbidden, w.Code, path)
		require.NotContains(t, w.Body.String(), "checkout", path)
	}
	require.Empty(t, f.asked)
}

func TestNobodyIsShownASignInThatLeadsOnlyHere(t *testing.T) {
	f := rich()
	h := f.handler(everything)
	h.Viewer = func(*http.Request) (api.Viewer, bool) { return api.Viewer{}, false }
	w := get(t, h, "/svc/web/web?x=1")
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "/signin?then=%2Fsvc%2Fweb%2Fweb%3Fx%3D1", w.Header().Get("Location"))
	for then, to := range map[string]string{
		"/svc/web/web?x=1": "/svc/web/web?x=1", "https://evil.example/": "/", "//evil.example/": "/", `/\evil.example`: "/", "javascript:alert(1)": "/", "/\t/evil.example": "/", "": "/", "svc": "/",
	} {
		form := url.Values{"token": {"grt_x"}, "then": {then}}
		r := httptest.NewRequest(http.MethodPost, "/signin", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusSeeOther, w.Code)
		require.Equal(t, to, w.Header().Get("Location"), then)
	}
	h.SignIn = func(http.ResponseWriter, *http.Request, string) error {
		return &api.Error{Code: api.CodeUnauthenticated, Message: "nobody is signed in", Status: http.StatusUnauthorized}
	}
	r := httptest.NewRequest(http.MethodPost, "/signin", strings.NewReader("token=wrong&then=/plan"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Contains(t, w.Body.String(), "this token grants nothing")
	require.NotContains(t, w.Body.String(), "wrong")
	require.Empty(t, f.asked, "who is not signed in had the daemon asked")
}

// hostile is what a commit, a container or a forge may have in any text.
const hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'`\x1b[31m\x00\u202egpj.exe\u200b\u2028\r\nend"

// poison puts a hostile text into every string of a value, but those that say what it is.
func poison(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				poison(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), path)
		}
	case reflect.String:
		if v.Type() != reflect.TypeFor[ring.SHA]() && !regexp.MustCompile(`\.(App|Service|Name|Target|Kind|Timezone)$`).MatchString(path) {
			v.SetString(v.String() + hostile)
		}
	}
}

func TestAHostileTextIsShownAsText(t *testing.T) {
	f := rich()
	poison(reflect.ValueOf(&f.status).Elem(), "status")
	poison(reflect.ValueOf(&f.events).Elem(), "events")
	poison(reflect.ValueOf(&f.commits).Elem(), "commits")
	for id, e := range f.inspect {
		poison(reflect.ValueOf(&e).Elem(), "inspect")
		f.inspect[id] = e
	}
	poison(reflect.ValueOf(&f.jobs).Elem(), "jobs")
	poison(reflect.ValueOf(&f.fronts).Elem(), "fronts")
	poison(reflect.ValueOf(&f.crashes).Elem(), "crashes")
	poison(reflect.ValueOf(&f.trust).Elem(), "trust")
	poison(reflect.ValueOf(&f.plan).Elem(), "plan")
	poison(reflect.ValueOf(&f.doctor).Elem(), "doctor")
	f.logs = "web | 2026-11-26T14:00:00Z " + strings.ReplaceAll(hostile, "\n", " ") + "\n"
	shown := 0
	walk(t, f.handler(everything), func(path string, w *httptest.ResponseRecorder) {
		if !isPage(w) {
			return
		}
		body := w.Body.String()
		require.NotContains(t, body, "<script>alert", path)
		require.NotContains(t, body, "<img", path)
		for _, tag := range tags.FindAllString(body, -1) {
			require.NotContains(t, tag, "onerror=alert(1)>", path)
		}
		for _, r := range body {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar) {
				t.Fatalf("%s has %U", path, r)
			}
		}
		shown += strings.Count(body, "&lt;script&gt;alert(1)")
	})
	require.Greater(t, shown, 200)
}

// Whatever an app is called, a link to it leads to it, and its name is text.
func TestAHostileNameLeadsNowhereElse(t *testing.T) {
	name := `a"><script>alert(1)</script>../?x#y`
	f := &fake{status: ring.Status{Host: name, Sources: []ring.SourceStatus{{Name: name, Apps: []ring.AppStatus{{Name: name, Health: ring.Degraded, Services: []ring.ServiceStatus{{Name: name, Phase: ring.PhaseFailed}}}}}}}}
	f.inspect = map[string]ring.Explained{name + "/" + name: {App: name, Service: name, Phase: ring.PhaseFailed, Says: "x"}}
	pages := walk(t, f.handler(everything), func(path string, w *httptest.ResponseRecorder) {
		require.NotContains(t, w.Body.String(), "<script>alert", path)
	})
	require.Contains(t, pages, pathOf("app", name))
	require.Contains(t, pages, pathOf("svc", name, name))
}

// A page is put together of its parts, wherever a name or a text has what parts are called.
func TestNoNameCanCutAPage(t *testing.T) {
	for _, name := range []string{"main-part-here", "head", "foot", "</main>", "<main>"} {
		f := &fake{status: ring.Status{Host: name, Sources: []ring.SourceStatus{{Name: "prod", Apps: []ring.AppStatus{{Name: name, Health: ring.Healthy}}}}}}
		page := get(t, f.handler(api.Viewer{Actor: name, Scopes: api.Scopes{api.ScopeRead}}), pathOf("app", name)).Body.String()
		for _, once := range []string{"<!doctype html>", "<title>", "<header class=\"top\">", "<main ", "</main>", "<footer ", "</html>"} {
			require.Equal(t, 1, strings.Count(page, once), "%s in the page of %s:\n%s", once, name, page)
		}
		require.Regexp(t, `(?s)<title>.*<header class="top">.*<main [^>]*>.*<h1.*</main>.*<footer .*</html>\n?$`, page, name)
	}
}

// states are the words that ring/status.go has for what something is.
func states(t *testing.T) (out []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../ring/status.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) == 0 || strings.HasPrefix(spec.Names[0].Name, "Condition") {
			return true
		}
		word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		out = append(out, word)
		return true
	})
	for _, word := range ring.HeldWords {
		out = append(out, word)
	}
	require.Greater(t, len(out), 40)
	return append(out, ring.Stopped, "Waiting", ring.ConditionQuarantined, ring.ConditionStale, ring.ConditionOld,
		api.OutcomeRefused, api.OutcomeFailed, api.OutcomeRestored, api.OutcomePartly, api.OutcomeJob, api.OutcomeAwaiting, api.OutcomeHeld, api.OutcomeSuperseded, api.OutcomeLive, api.OutcomeAccepted,
		api.RunRunning, api.RunRetrying, api.RunWaiting, "ok", "warn", "fail", "skip")
}

func TestEveryStateHasAWordAndAShape(t *testing.T) {
	style, err := staticFiles.ReadFile("static/style.css")
	require.NoError(t, err)
	for _, word := range states(t) {
		l, ok := looks[word]
		require.True(t, ok, "%s has no look", word)
		require.Contains(t, string(style), ".shape."+l.shape+" ", word)
		require.Contains(t, ranks, l.tone, word)
	}
	toneOf := map[string]string{}
	for word, l := range looks {
		if other, ok := toneOf[l.shape]; ok {
			require.Equal(t, other, l.tone, "%s: the shape %s has two colours", word, l.shape)
		}
		toneOf[l.shape] = l.tone
	}
	for _, word := range []string{ring.Held, "Paused", "Undone", "Awaiting approval", "Observed", "Left", ring.Stopped, ring.ConditionQuarantined, ring.ConditionStale, ring.ConditionOld, string(ring.SyncUnknown), "a word of next year"} {
		require.NotEqual(t, toneGood, markOf(word).Tone, word)
	}
	stale := &ring.SourceStatus{Sync: ring.SyncSynced, Conditions: []ring.Condition{{Type: ring.ConditionStale}}}
	require.Equal(t, "Stale", sourceMark(stale).Word)
}

func TestACompletedJobIsNotMissingAnInstance(t *testing.T) {
	h := rich().handler(everything)
	for _, path := range []string{"/", "/app/jobs", "/svc/jobs/migrate", "/jobs"} {
		require.NotContains(t, tags.ReplaceAllString(get(t, h, path).Body.String(), ""), "0/1", path)
	}
}

// large is 100 apps of 3 services with 2 instances each.
func large(word string) *fake {
	f := &fake{status: ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod", Branch: "main", Sync: ring.SyncSynced, Commit: shaNow, Trusted: shaNow, Tip: shaNow, Subject: "all of it", Signer: "alice@example.org"}}}}
	for i := range 100 {
		app := ring.AppStatus{Name: fmt.Sprintf("app-%d", i), Health: word, Commit: ring.SHA(fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i)}))[:40])}
		for _, name := range []string{"web", "worker", "cache"} {
			sv := ring.ServiceStatus{Name: name, Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 2, Ready: 2, Updated: 2, Commit: app.Commit, Running: app.Commit, Reason: fmt.Sprintf("is as the commit asks for %d s", i)}
			if word != ring.Healthy {
				sv.Phase, sv.Ready, sv.Reason = ring.PhaseDegraded, 1, fmt.Sprintf("slot 2 is not ready: readiness answers %d", 400+i)
			}
			for slot := range 2 {
				sv.Instances = append(sv.Instances, ring.InstanceStatus{ID: fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(slot)})), Name: fmt.Sprintf("%s-%s-%d", app.Name, name, slot), Slot: slot + 1, State: ring.SlotReady, Commit: app.Commit})
			}
			app.Services = append(app.Services, sv)
		}
		f.status.Sources[0].Apps = append(f.status.Sources[0].Apps, app)
	}
	return f
}

func TestAPageOfManyAppsIsSmall(t *testing.T) {
	for _, word := range []string{ring.Healthy, ring.Degraded} {
		h := large(word).handler(everything)
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
		require.LessOrEqual(t, w.Body.Len(), 40<<10, word)
		_, err := gzip.NewReader(bytes.NewReader(w.Body.Bytes()))
		require.NoError(t, err)
		body := get(t, h, "/").Body.String()
		require.Equal(t, word == ring.Healthy, strings.Contains(body, "100 healthy apps"))
		t.Logf("%s: %d bytes packed, %d in all", word, w.Body.Len(), len(body))
	}
}

// 30 ms are what it shall take on a machine that is nobody else's.
func BenchmarkAPageOfManyApps(b *testing.B) {
	for _, word := range []string{ring.Healthy, ring.Degraded} {
		b.Run(word, func(b *testing.B) {
			f := large(word)
			h := f.handler(everything)
			a := &asking{h: h, viewer: everything, clock: clock{noon}, status: &f.status, r: httptest.NewRequest(http.MethodGet, "/", nil)}
			for b.Loop() {
				if _, err := h.draw(b.Context(), a, &routes[0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// onTheProcessor is how long the processor is busy with do: others share the machine.
func onTheProcessor(do func() error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const ofThisThread = 1
	var before, after syscall.Rusage
	if err := syscall.Getrusage(ofThisThread, &before); err != nil {
		return 0, do() // this system does not say it
	}
	err := do()
	if err := syscall.Getrusage(ofThisThread, &after); err != nil {
		return 0, err
	}
	spent := func(u *syscall.Rusage) int64 { return u.Utime.Nano() + u.Stime.Nano() }
	return time.Duration(spent(&after) - spent(&before)), err
}

func TestAPageIsMadeOnceForAllWhoLook(t *testing.T) {
	f := large(ring.Healthy)
	h := f.handler(everything)
	now := noon
	h.Now = func() time.Time { return now }
	looked := func(actor string, scopes api.Scopes) {
		h.Viewer = func(*http.Request) (api.Viewer, bool) { return api.Viewer{Actor: actor, Scopes: scopes}, true }
		require.Contains(t, get(t, h, "/").Body.String(), actor)
	}
	made := func() int { return len(h.keeper.pages) }
	for i := range 50 {
		looked(fmt.Sprintf("token/reader-%d", i), api.Scopes{api.ScopeRead})
	}
	require.Equal(t, 1, made())
	require.Equal(t, 1, f.asked["status"])
	looked("token/admin", api.Scopes{api.ScopeOperate})
	require.Equal(t, 2, made(), "another set of scopes sees another page")
	first := h.keeper.pages
	now = now.Add(time.Second)
	looked("token/reader", api.Scopes{api.ScopeRead})
	require.Equal(t, 2, f.asked["status"])
	require.Equal(t, 2, made(), "nothing changed, and the page was made anew")
	f.status.Sources[0].Sync = ring.SyncRefused
	now = now.Add(time.Second)
	looked("token/reader", api.Scopes{api.ScopeRead})
	require.NotEqual(t, reflect.ValueOf(first).Pointer(), reflect.ValueOf(h.keeper.pages).Pointer(), "another status, and the old page was kept")
	require.Contains(t, get(t, h, "/").Body.String(), "Refused")
}

// The morph library is as its makers published it: idiomorph 0.8.0 of npm, 0BSD.
func TestTheMorphLibraryIsTheOneThatWasPublished(t *testing.T) {
	body, err := staticFiles.ReadFile("static/idiomorph.min.js")
	require.NoError(t, err)
	sum := sha256.Sum256(body)
	require.Equal(t, "4cbd535caf7663a51eda9bce6595371c384fc430d54b8d414e29a61167f19f96", hex.EncodeToString(sum[:]))
}

func TestWhatIsEmbeddedIsSmall(t *testing.T) {
	size := 0
	for _, files := range []fs.FS{staticFiles, templateFiles} {
		require.NoError(t, fs.WalkDir(files, ".", func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				info, infoErr := d.Info()
				require.NoError(t, infoErr)
				size += int(info.Size())
			}
			return err
		}))
	}
	require.Less(t, size, 120_000)
	t.Log(size)
}

func TestAnActSaysWhatItDoesAndHasItDone(t *testing.T) {
	f := rich()
	h := f.handler(everything)
	page := get(t, h, "/act/db?verb=hold").Body.String()
	for _, want := range []string{"Nothing of it is created, started, stopped", "gitring hold db --for 4h --reason", `name="reason"`, "720h at most"} {
		require.Contains(t, page, want)
	}
	post := func(path string, form url.Values) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	w := post("/act/db", url.Values{"verb": {"hold"}, "for": {"2h"}, "reason": {"moving <b>the</b> disk"}})
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "held: db")
	require.Equal(t, []api.ActRequest{{Verb: "hold", App: "db", For: "2h", Reason: "moving <b>the</b> disk"}}, f.acted)

	w = post("/act/web/web", url.Values{"verb": {"scale"}, "for": {"1h"}, "replicas": {"5"}, "reason": {"sale"}})
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, api.ActRequest{Verb: "scale", App: "web", Service: "web", For: "1h", Replicas: 5, Reason: "sale"}, f.acted[1])

	for name, form := range map[string]url.Values{
		"no reason":             {"verb": {"hold"}, "for": {"2h"}},
		"a verb that is none":   {"verb": {"deploy"}, "reason": {"x"}},
		"a verb for a service":  {"verb": {"pause"}, "reason": {"x"}},
		"a verb of an admin":    {"verb": {"adopt"}, "reason": {"x"}},
		"a verb that is a path": {"verb": {"../hold"}, "reason": {"x"}},
	} {
		w := post("/act/db", form)
		require.GreaterOrEqual(t, w.Code, 400, name)
		require.Len(t, f.acted, 2, name)
	}
	f.actErr = api.Conflicting("gitring release db", "cannot hold: it is held <already>")
	w = post("/act/db", url.Values{"verb": {"hold"}, "for": {"2h"}, "reason": {"again"}})
	require.Equal(t, http.StatusConflict, w.Code)
	require.Contains(t, w.Body.String(), "it is held &lt;already&gt;")
	require.Contains(t, w.Body.String(), `value="again"`, "what was typed is lost")
}

func TestAYesIsGivenToWhatWaitsForOne(t *testing.T) {
	f := rich()
	f.status.Sources[0].Next.Code = ring.WhyAwaitingApproval
	h := f.handler(everything)
	require.Contains(t, get(t, h, "/").Body.String(), `href="/approve/`+string(shaNext)+`"`)
	r := httptest.NewRequest(http.MethodPost, "/approve/"+string(shaNext), strings.NewReader("reason=looked+at+it"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, []api.ApproveRequest{{Commit: shaNext, Reason: "looked at it"}}, f.approved)
}

// Whatever waits for a yes can be given one: the page that "approve…" leads to has the form,
// and says which hosts it does without.
func TestWhatWaitsForWavesCanBeApproved(t *testing.T) {
	for code, says := range map[ring.ReasonCode]string{
		ring.WhyAwaitingApproval: "it removes 3 of 4 services",
		ring.WhyWaveWaiting:      "waits for canary-1: pending, and 2 more",
		ring.WhyWaveFailed:       "failed on canary-1: slot 1 exited",
	} {
		f := rich()
		f.status.Sources[0].Next.Code, f.status.Sources[0].Next.Reason = code, says
		f.plan.Waits = "would wait for canary-1, canary-2, canary-3"
		h := f.handler(everything)
		link := `href="/approve/` + string(shaNext) + `"`
		require.Contains(t, get(t, h, "/").Body.String(), link, code)
		plan := get(t, h, "/plan").Body.String()
		require.Contains(t, plan, link, code)
		require.Contains(t, plan, "would wait for canary-1, canary-2, canary-3", code)
		page := get(t, h, "/approve/"+string(shaNext)).Body.String()
		require.NotContains(t, page, "No plan of this commit waits", code)
		require.Regexp(t, `<button[^>]*>Approve `+shaNext.Short(), page, code)
		for _, want := range []string{says, "would wait for canary-1, canary-2, canary-3"} {
			require.Contains(t, page, want, code)
		}
	}
	f := rich()
	f.status.Sources = f.status.Sources[:1]
	f.status.Sources[0].Next.Reason, f.plan.Waits = "waits for canary-1: pending", "waits for canary-1: pending"
	require.Equal(t, 1, strings.Count(get(t, f.handler(everything), "/plan").Body.String(), "canary-1"), "said twice")
	f.status.Sources[0].Next.Code = ring.WhyImagePending
	require.Contains(t, get(t, f.handler(everything), "/approve/"+string(shaNext)).Body.String(), "No plan of this commit waits")
}

func TestASourceIsToldToLook(t *testing.T) {
	f := rich()
	h := f.handler(everything)
	require.Contains(t, get(t, h, "/sync/prod").Body.String(), "gitring sync prod")
	require.Zero(t, f.asked["sync"], "a look at the page was taken for a yes")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/sync/prod", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, 1, f.asked["sync"])
	require.Equal(t, http.StatusNotFound, get(t, h, "/sync/nothing").Code)
	require.Contains(t, get(t, h, "/svc/shop/shop").Body.String(), "shop-shop-3")
}

func TestARolloutIsABarUntilItEnds(t *testing.T) {
	at := func(minutes int, kind, service string) ring.Event {
		return ring.Event{At: before(time.Duration(100-minutes) * time.Minute), Kind: kind, App: "a", Service: service, Commit: shaNow}
	}
	events := []ring.Event{
		at(0, ring.RolloutBegan, "x"), at(5, ring.RolloutCompleted, "x"),
		at(10, ring.RolloutBegan, "x"), at(12, ring.RolloutFailed, "x"), at(15, ring.RolloutRestored, "x"),
		at(20, ring.RolloutBegan, "x"), at(25, ring.RolloutBegan, "x"),
		at(30, ring.RolloutBegan, "gone"),
		at(31, ring.RolloutCompleted, "y"),
	}
	said := map[string][]string{}
	for _, row := range timelineOf(events, clock{noon}, func(_, service string) bool { return service == "x" }).Rows {
		for _, b := range row.Bars {
			said[row.Service] = append(said[row.Service], b.Mark.Word+" "+b.Says[len("9190630, "):])
			require.LessOrEqual(t, b.X+b.Width, 1000)
		}
	}
	require.Equal(t, map[string][]string{
		"x":    {"Progressing 13:22 UTC, for 75 min", "superseded 13:17 UTC, for 5 min", "Restored 13:07 UTC, for 5 min", "completed 12:57 UTC, for 5 min"},
		"gone": {"end not told 13:27 UTC, for 0 s"},
	}, said)
	require.Nil(t, timelineOf(nil, clock{noon}, nil))
}

func TestWithoutTheDaemonAPageSaysSo(t *testing.T) {
	f := rich()
	f.err = &api.ErrUnreachable{Socket: "/run/gitring.sock", Err: context.DeadlineExceeded}
	w := get(t, f.handler(everything), "/")
	require.Equal(t, http.StatusBadGateway, w.Code)
	require.Contains(t, w.Body.String(), "cannot reach the daemon")
	require.Equal(t, http.StatusNotFound, get(t, rich().handler(everything), "/app/nothing").Code)
	require.Equal(t, http.StatusNotFound, get(t, rich().handler(everything), "/nothing").Code)
}

// Every time of a page is in UTC, says so, and is there for programs.
func TestTimesAreUTCAndSaySo(t *testing.T) {
	times := regexp.MustCompile(`<time datetime="([^"]*)">([^<]*)</time>`)
	all := 0
	walk(t, rich().handler(everything), func(path string, w *httptest.ResponseRecorder) {
		body := w.Body.String()
		found := times.FindAllStringSubmatch(body, -1)
		require.Len(t, found, strings.Count(body, "<time"), path)
		for _, m := range found {
			at, err := time.Parse("2006-01-02T15:04:05Z", m[1])
			require.NoError(t, err, path)
			require.Contains(t, m[2], at.Format("15:04")+" UTC", path)
			if at.Format(time.DateOnly) != noon.Format(time.DateOnly) {
				require.Contains(t, m[2], at.Format("2 Jan")+" ", path)
			}
		}
		all += len(found)
	})
	require.Greater(t, all, 100)
	berlin := time.FixedZone("CET", 3600)
	require.Equal(t, "14:37 UTC", clock{noon}.of(noon.In(berlin)).UTC)
	require.Equal(t, "2025-01-02 02:04 UTC", clock{noon}.of(time.Date(2025, 1, 2, 3, 4, 0, 0, berlin)).UTC)
	require.Nil(t, clock{noon}.of(time.Time{}))
}

// Fifty look at a rollout that tells another status twice a second: what that takes of the
// processor, in all.
func TestFiftyWhoLookAreHardlyMoreThanOne(t *testing.T) {
	f := large(ring.Healthy)
	h := f.handler(everything)
	now := noon
	h.Now = func() time.Time { return now }
	const viewers, changes = 50, 10
	took, err := onTheProcessor(func() error {
		for i := range changes {
			now = now.Add(500 * time.Millisecond)
			f.status.Sources[0].Apps[0].Services[0].Ready = i
			for v := range viewers {
				h.Viewer = func(*http.Request) (api.Viewer, bool) {
					return api.Viewer{Actor: fmt.Sprintf("token/%d", v), Scopes: api.Scopes{api.ScopeRead}}, true
				}
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header.Set("Accept-Encoding", "gzip")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					return fmt.Errorf("%d: %s", w.Code, w.Body)
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	share := float64(took) / float64(changes*500*time.Millisecond)
	t.Logf("%.1f %% of a core", 100*share)
	require.Equal(t, changes, f.asked["status"])
	require.Less(t, share, 0.4, "10 % are what it shall take on a machine that is nobody else's")
}
