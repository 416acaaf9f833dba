package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// everyPage are the pages, and what each of them says of the world.
var everyPage = []struct{ name, path, says string }{
	{"now", "/", "slot 1 exited with code 3"},
	{"app", "/app/web", "slot 1 exited with code 3"},
	{"service", "/svc/web/web", "push a commit that mends it"},
	{"logs", "/logs/web/web", "panic: queue: no such host mail"},
	{"search", "/logs/web/web?q=panic", "panic: queue: no such host mail"},
	{"commit", "/commit/" + string(newQueue), "alice@example.org"},
	{"plan", "/plan", "env GREETING"},
	{"history", "/history", "web: queue mails"},
	{"jobs", "/jobs", "jobs/nightly"},
	{"crashes", "/crashes", "exited with code 3"},
	{"trust", "/trust", "alice@example.org"},
	{"doctor", "/doctor", "14 of 15 services come back"},
	{"act", "/act/web/web", "restart"},
	{"hold", "/act/api?verb=hold", "What will happen"},
	{"approve", "/approve/" + string(newBill), "it removes 3 of 4 services"},
	{"missing", "/app/nobody", "no app"},
}

// Light, dark, and 360 pixels wide: no page breaks a rule of axe, is wider than its screen, or
// has anything in its console.
func TestEveryPageIsAccessibleAndFits(t *testing.T) {
	s := serve(t, newWorld())
	rules := map[string]string{
		"light": `{}`, // all
		"dark":  `{runOnly: ['color-contrast']}`,
		"phone": `{rules: {'color-contrast': {enabled: false}}}`,
	}
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			b := s.open(t, l)
			for _, p := range everyPage {
				b.visit(p.path).reads(p.says)
				if p.name == "missing" {
					b.forget() // the console says that there is none, too
				}
				b.fits().accessible(rules[l.name])
			}
		})
	}
}

func TestTheAddressOpensTheDashboard(t *testing.T) {
	s := serve(t, newWorld())
	code := s.code
	s.cookie = func() *http.Cookie { return nil }
	b := s.open(t, light)
	b.do(chromedp.Navigate(code))
	b.until("the code is not in the address any more", `location.pathname == '/' && location.search == ''`).reads("edge-1")
	require.Empty(t, js[string](b, `document.cookie`), "scripts see no cookie")
	b.visit("/").reads("edge-1")
}

func TestEveryPageWorksWithoutJavaScript(t *testing.T) {
	w := newWorld()
	s := serve(t, w)
	plain := phone
	plain.plain = true
	b := s.open(t, plain)
	for _, p := range everyPage {
		b.visit(p.path).reads(p.says)
	}
	b.forget() // of the page that is missing
	require.Empty(t, js[string](b.visit("/"), `document.getElementById('live').innerText`), "a script ran")
	b.visit("/act/api?verb=hold").fill("reason", "looking at the disk").press("hold api").reads("Done")
	require.Equal(t, []string{"hold api/ 4h: looking at the disk"}, w.acts())
}

// A page of somebody else cannot lay one of ours under what its reader clicks.
func TestNoPageIsShownInAFrame(t *testing.T) {
	s := serve(t, newWorld())
	around := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>around</title><iframe id="ours" src="%s/"></iframe><iframe id="own" srcdoc="<p>theirs</p>"></iframe>`, s.url)
	}))
	t.Cleanup(around.Close)
	b := s.open(t, light)
	b.do(chromedp.Navigate(around.URL))
	b.until("both frames are there", `document.title == 'around' && document.readyState == 'complete'`)
	require.Equal(t, "theirs", js[string](b, `document.getElementById('own').contentDocument.body.innerText.trim()`), "frames work here")
	refused := func(line string) bool { return strings.Contains(line, "frame-ancestors") }
	require.Eventually(t, func() bool { return slices.ContainsFunc(b.heard(), refused) }, patience, 20*time.Millisecond, "the browser says why it shows nothing")
	b.forget()
}

// What somebody writes into a commit, a log or a reason is text, on every page.
func TestHostileTextIsText(t *testing.T) {
	w := newWorld()
	w.set(func(st *ring.Status) {
		src := &st.Sources[0]
		src.Subject, src.Signer, src.Reason, src.Next.Reason = hostile, hostile, hostile, hostile
		for i := range src.Apps {
			src.Apps[i].Reason = hostile
		}
		st.Overrides[0].Reason, st.Overrides[0].Actor = hostile, hostile
	})
	for i := range w.commits {
		w.commits[i].Subject, w.commits[i].Signer, w.commits[i].Says = hostile, hostile, hostile
	}
	for i := range w.events {
		w.events[i].Reason, w.events[i].Actor = hostile, hostile
	}
	w.logs = append(w.logs, hostile)
	e := w.seen["web/web"]
	e.Says, e.Next, e.Crash.Reason, e.Crash.Log = hostile, hostile, hostile, []string{hostile}
	w.seen["web/web"] = e
	b := serve(t, w).open(t, light)
	for _, p := range everyPage {
		b.visit(p.path).until("it is there", `document.readyState == 'complete'`)
		if p.name == "now" || p.name == "logs" {
			b.reads("<script>document.title")
		}
		require.NotContains(t, js[string](b, `document.title`), "taken", p.path)
		require.Zero(t, js[int](b, `document.querySelectorAll('main script, main img, a[href^="javascript"]').length`), p.path)
		require.NotContains(t, b.text(), "\x1b", p.path)
		require.NotContains(t, b.text(), "\u202e", p.path)
	}
	b.forget()
}

func TestAHostIsReadableHoweverManyServicesItHas(t *testing.T) {
	for n, w := range map[int]*world{1: newWorld().alone(), 30: newWorld().larger(30), 300: newWorld().larger(300)} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := serve(t, w)
			for _, l := range []look{light, phone} {
				b := s.open(t, l).visit("/").fits()
				if n == 1 {
					b.reads("Synced").reads("api")
					continue
				}
				top := js[float64](b, `document.getElementById('app-web').getBoundingClientRect().top`)
				require.Less(t, top, float64(3*l.height), "what is wrong comes first")
				if n == 300 && l == light {
					b.accessible(`{}`)
				}
				folded := strings.Contains(b.text(), "healthy apps")
				require.Equal(t, n == 300, folded, b.text())
			}
		})
	}
}

// A reader in another zone sees the time in UTC, and their own beside it.
func TestAReaderInAnotherZoneSeesBothTimes(t *testing.T) {
	s := serve(t, newWorld())
	far := light
	far.zone = "Asia/Kathmandu"
	b := s.open(t, far).visit("/jobs").reads("jobs/nightly")
	at := js[string](b, `document.querySelector('#job-jobs-nightly time').dateTime`)
	require.True(t, strings.HasSuffix(at, "Z"), at)
	utc := at[11:16]
	require.Contains(t, b.text(), utc)
	due, err := time.Parse(time.RFC3339, at)
	require.NoError(t, err)
	own := due.In(time.FixedZone("", 5*3600+45*60)).Format("15:04") + " here" // Nepal has one zone, all year
	b.until("the reader's own time is there", `document.querySelector('#job-jobs-nightly time').dataset.here === `+quoted(own))
	require.Empty(t, js[string](s.open(t, light).visit("/jobs").reads("jobs/nightly"), `document.querySelector('#job-jobs-nightly time').dataset.here || ''`), "nothing is added where it is the same")
}

// bestPictures are those that docs/images has; the others are for who works on pages.
var bestPictures = []string{"now-light", "now-dark", "now-phone", "service-light", "plan-light", "history-light", "jobs-light", "hold-phone"}

// TestPicturesOfEveryPage takes them into a folder, for make screenshots.
func TestPicturesOfEveryPage(t *testing.T) {
	dir := os.Getenv("GITRING_SCREENSHOTS")
	if dir == "" {
		t.Skip("make screenshots takes pictures")
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	s := serve(t, newWorld())
	for _, l := range append(slices.Clone(looks), night) {
		b := s.open(t, l)
		for _, p := range everyPage {
			name, kind := p.name+"-"+l.name, "png"
			if os.Getenv("GITRING_SCREENSHOTS_ALL") == "" {
				kind = "webp" // a third of the size
			}
			if kind == "webp" && !slices.Contains(bestPictures, name) {
				continue
			}
			b.visit(p.path).reads(p.says)
			if p.path == "/" {
				b.until("it is live", `document.getElementById('live').innerText == 'live'`)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, name+"."+kind), b.picture(kind), 0o644))
		}
		b.forget()
	}
}

// A word that no line can hold is broken, on every page of a phone: what people and programs
// write has no bound but its length.
func TestNoLongWordIsWiderThanAPhone(t *testing.T) {
	w := newWorld()
	n := 0
	for _, all := range []any{&w.status, &w.commits, &w.events} {
		n += lengthen(reflect.ValueOf(all).Elem())
	}
	for name, e := range w.seen {
		n += lengthen(reflect.ValueOf(&e).Elem())
		w.seen[name] = e
	}
	require.Greater(t, n, 100)
	w.logs = append(w.logs, long)
	s := serve(t, w)
	for _, l := range []look{phone, light} {
		b := s.open(t, l)
		for _, p := range everyPage {
			b.visit(p.path).until("it is there", `document.readyState == 'complete'`).fits()
		}
		b.forget()
	}
}

// Where there is room, the journal of a commit breaks no word of what was done and by whom.
func TestTheJournalOfACommitBreaksNoWord(t *testing.T) {
	w := newWorld()
	w.events = append(w.events, ring.Event{
		Seq: int64(len(w.events) + 1), At: w.ago(time.Hour), Kind: ring.CommitAccepted, Source: "prod", Commit: newQueue, Actor: "nora@example.org",
		Reason: strings.Repeat("signed by somebody who may, ", 12),
	})
	b := serve(t, w).open(t, light).visit("/commit/" + string(newQueue)).reads("nora@example.org")
	require.True(t, js[bool](b, `[...document.querySelectorAll('td[data-of=What], td[data-of=By]')].every(cell => {
		const words = document.createRange()
		words.selectNodeContents(cell)
		return words.getClientRects().length < 2
	})`), "a word is broken")
}

var long = strings.Repeat("w", 120)

// lengthen puts a long word into each text that somebody writes, and counts them.
func lengthen(v reflect.Value) (n int) {
	written := []string{"Reason", "Subject", "Signer", "Says", "Actor", "Next", "Image", "Hint", "Branch", "Note", "Trust", "Log", "Warnings", "Doubts"}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n += lengthen(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += lengthen(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			switch {
			case !f.CanSet():
			case f.Type() == reflect.TypeFor[string]() && slices.Contains(written, v.Type().Field(i).Name):
				f.SetString(f.String() + " " + long)
				n++
			case f.Type() == reflect.TypeFor[[]string]() && slices.Contains(written, v.Type().Field(i).Name):
				for j := range f.Len() {
					f.Index(j).SetString(f.Index(j).String() + " " + long)
					n++
				}
			default:
				n += lengthen(f)
			}
		}
	}
	return n
}
