package browsertest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
)

// patience is how long a test waits for a state of a page. It is no measure of anything: the
// machine may have much else to do.
const patience = time.Minute

// chromium is one browser for all tests, started by the first that needs it.
var chromium struct {
	once sync.Once
	ctx  context.Context //nolint:containedctx // of the browser, which lives as long as the tests
	end  func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.end != nil {
		chromium.end()
	}
	os.Exit(code)
}

// browser is the browser; the test is skipped where there is none. Beside tests that make
// networks it is not started: a browser gives up what it loads when the machine has a new
// address. So make test runs this package alone.
func browser(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv("GITRING_BROWSER_TESTS") == "" {
		t.Skip("GITRING_BROWSER_TESTS=1 starts a browser")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium: apt-get install chromium")
	}
	chromium.once.Do(func() {
		opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(patience))
		if os.Geteuid() == 0 {
			opts = append(opts, chromedp.NoSandbox) // as root it has none
		}
		all, stop := chromedp.NewExecAllocator(context.Background(), opts...)
		ctx, end := chromedp.NewContext(all)
		chromium.ctx, chromium.end = ctx, func() { end(); stop() }
		chromium.err = chromedp.Do(ctx)
	})
	require.NoError(t, chromium.err)
	return chromium.ctx
}

// site is a dashboard of a world, as "gitring ui" serves it.
type site struct {
	t    *testing.T
	w    *world
	url  string
	code string // the address that works once
	// cookie is what the code becomes; asking for it uses the code up.
	cookie func() *http.Cookie
	// away ends the daemon behind it, and back starts it again.
	away, back func()
	requests   atomic.Int64
}

func serve(t *testing.T, w *world, change ...func(*api.LocalOptions)) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "gb") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	quiet := slog.New(slog.DiscardHandler)
	s := &site{t: t, w: w}
	s.back = func() {
		l, err := api.ListenSocket(path)
		require.NoError(t, err)
		socket, err := api.NewSocket(w.calls(), quiet)
		require.NoError(t, err)
		s.away = s.run(l, socket.Run)
	}
	s.back()
	client := api.NewClient(path)
	t.Cleanup(client.Close)
	o := api.LocalOptions{
		Client: client, Actor: "alice", Log: quiet, Now: s.unhurried(),
		Pages: func(asks *api.Client) http.Handler {
			h := pages.New(pages.Options{
				Answers: func(api.Viewer) pages.Answers { return asks }, Now: time.Now,
				Viewer: func(r *http.Request) (api.Viewer, bool) { return api.ViewerOf(r.Context()) },
			})
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.requests.Add(1); h.ServeHTTP(w, r) })
		},
	}
	for _, c := range change {
		c(&o)
	}
	l, err := api.ListenLocal("127.0.0.1:0")
	require.NoError(t, err)
	local, err := api.NewLocal(l.Addr(), o)
	require.NoError(t, err)
	s.url, s.code = "http://"+l.Addr().String(), local.Address(l.Addr())
	t.Cleanup(func() { s.away() })
	t.Cleanup(s.run(l, local.Run))
	s.cookie = sync.OnceValue(func() *http.Cookie {
		asks := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := asks.Get(s.code)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Len(t, res.Cookies(), 1)
		return res.Cookies()[0]
	})
	return s
}

// run serves until what it returns is called.
func (s *site) run(l net.Listener, serve func(context.Context, net.Listener) error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, l) }()
	return sync.OnceFunc(func() {
		cancel()
		require.NoError(s.t, <-ended)
	})
}

// unhurried is a clock that goes on by itself with each request, so that no test is held to
// how many of them a person may make in a second.
func (s *site) unhurried() func() time.Time {
	began, asked := time.Now(), atomic.Int64{}
	return func() time.Time { return began.Add(time.Duration(asked.Add(1)) * time.Second) }
}

// look is how a browser shows pages.
type look struct {
	name          string
	dark          bool
	width, height int64
	plain         bool   // without JavaScript
	zone          string // "" is UTC
}

var (
	light = look{name: "light", width: 1280, height: 800}
	dark  = look{name: "dark", dark: true, width: 1280, height: 800}
	phone = look{name: "phone", width: 360, height: 740}
	night = look{name: "night", dark: true, width: 360, height: 740}
)

var looks = []look{light, dark, phone}

// tab is a tab of a browser that has opened the site.
type tab struct {
	*site
	t   *testing.T
	ctx context.Context //nolint:containedctx // a tab is one for chromedp

	mu     sync.Mutex // guards what follows
	faults []string
}

// open opens a tab of its own; at the end of the test nothing may have been wrong in it.
func (s *site) open(t *testing.T, l look) *tab {
	t.Helper()
	b := &tab{site: s, t: t}
	ctx, cancel := chromedp.NewContext(browser(t), chromedp.WithNewBrowserContext(), chromedp.WithListener(b.hear))
	b.ctx = ctx
	t.Cleanup(cancel)
	theme := "light"
	if l.dark {
		theme = "dark"
	}
	zone := l.zone
	if zone == "" {
		zone = "UTC"
	}
	b.do(
		call(log.Enable, cdp.Empty{}),
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}),
		call(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: zone}),
		call(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1}),
	)
	if l.plain {
		b.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	}
	if cookie := s.cookie(); cookie != nil {
		b.do(call(network.SetCookie, network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, URL: s.url, HTTPOnly: &cookie.HttpOnly}))
	}
	t.Cleanup(func() { require.Empty(t, b.heard(), "the browser's console") })
	return b
}

func call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// hear keeps what the console says, reports of the content security policy among it.
func (b *tab) hear(ev any) {
	said := ""
	switch e := ev.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			said = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		said = "thrown: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		said = fmt.Sprintf("console.%s: %s", e.Type, e.Args[0].Value)
	}
	if said != "" && !strings.Contains(said, networkChanged) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = append(b.faults, said)
	}
}

func (b *tab) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.faults...)
}

// forget drops what was heard: a test made it happen.
func (b *tab) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = nil
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if chromedp.FromContext(b.ctx).Target == nil {
		ctx = b.ctx // a limit of the first would be the tab's
	}
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// networkChanged is what a browser says of what it gave up because the machine has another
// address, such as that of a container's network.
const networkChanged = "ERR_NETWORK_CHANGED"

// visit opens a page of the site.
func (b *tab) visit(path string) *tab {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	err := chromedp.Do(ctx, chromedp.Navigate(b.url+path))
	for err != nil && strings.Contains(err.Error(), networkChanged) {
		err = chromedp.Do(ctx, chromedp.Navigate(b.url+path))
	}
	require.NoError(b.t, err)
	return b
}

// js is the value of an expression in the page.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, expression)
	return v
}

// until waits until an expression is true.
func (b *tab) until(says, expression string) *tab {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)) // a page that goes away is no answer
		return err == nil && ok
	}, patience, 20*time.Millisecond, "%s: %s", says, expression)
	return b
}

// text is what a person reads of the page.
func (b *tab) text() string {
	b.t.Helper()
	return js[string](b, `document.body.innerText`)
}

func (b *tab) reads(words string) *tab {
	b.t.Helper()
	return b.until("the page says "+words, `document.body.innerText.includes(`+quoted(words)+`)`)
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// press follows the first link or button with these words that can be seen, and waits for the
// next page.
func (b *tab) press(words string) *tab {
	b.t.Helper()
	find := `[...document.querySelectorAll('a[href],button,summary,input[type=submit]')].find(e => (e.innerText || e.value || '').trim().replace(/\s+/g, ' ').includes(` + quoted(words) + `) && e.offsetParent !== null)`
	b.until("there is "+words, `!!(`+find+`)`)
	to := js[string](b, `(() => { window.__was = true; const e = `+find+`; if (e.tagName == 'SUMMARY') window.__was = undefined; e.click(); return e.tagName == 'A' ? e.getAttribute('href') : '' })()`)
	b.until("the next page of "+words, `window.__was === undefined && document.readyState == 'complete'`)
	if to != "" && js[bool](b, `location.protocol == 'chrome-error:'`) {
		return b.visit(to)
	}
	return b
}

// fill types into a field of a form.
func (b *tab) fill(name, text string) *tab {
	b.t.Helper()
	js[bool](b, `(() => { const e = document.querySelector('[name=`+name+`]'); e.value = `+quoted(text)+`; e.dispatchEvent(new Event('input', {bubbles: true})); return true })()`)
	return b
}

// axe is axe-core, of testdata.
//
//go:embed testdata/axe.min.js.gz
var axePacked []byte

// axeSum is of the program as it was published: axe-core 4.14.0, under the MPL 2.0.
const axeSum = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"

var axe = sync.OnceValues(func() (string, error) {
	z, err := gzip.NewReader(bytes.NewReader(axePacked))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return "", err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != axeSum {
		return "", fmt.Errorf("axe-core is another one: %x", sum)
	}
	return string(text), nil
})

// accessible holds a page to rules of axe, all for "{}".
func (b *tab) accessible(rules string) *tab {
	b.t.Helper()
	program, err := axe()
	require.NoError(b.t, err)
	js[chromedp.Void](b, program+";0")
	found := js[[]string](b, `axe.run(document, Object.assign({resultTypes: ['violations']}, `+rules+`)).then(r => r.violations.map(v => v.id + ': ' + v.help + '\n' + v.nodes.slice(0, 3).map(n => '  ' + n.html + '\n  ' + (n.failureSummary || '')).join('\n')))`)
	if len(found) > 0 { // and on to the next page
		b.t.Errorf("axe on %s: %s", js[string](b, `location.pathname`), strings.Join(found, "\n"))
	}
	return b
}

// fits holds a page to the width of its screen: nothing has to be pushed aside to be read.
func (b *tab) fits() *tab {
	b.t.Helper()
	wide := js[string](b, `(() => { const w = document.documentElement.clientWidth; if (document.documentElement.scrollWidth <= w) return ''; return [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > w + 1).slice(-3).map(e => e.outerHTML.slice(0, 200)).join('\n') })()`)
	if wide != "" {
		b.t.Errorf("%s is wider than its screen: %s", js[string](b, `location.pathname`), wide)
	}
	return b
}

// picture is the page as far as it goes, three screens at most.
func (b *tab) picture(kind string) []byte {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	size := js[[]float64](b, `[innerWidth, Math.min(document.documentElement.scrollHeight, 3 * innerHeight)]`)
	beyond := true
	shot, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{
			Format: page.CaptureScreenshotFormat(kind), CaptureBeyondViewport: &beyond,
			Clip: &page.Viewport{Width: size[0], Height: size[1], Scale: 1},
		})
		return r.Data, err
	})
	require.NoError(b.t, err)
	return shot
}
