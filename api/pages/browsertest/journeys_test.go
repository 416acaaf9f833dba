package browsertest

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// journeys are what people come for. Each is made light, dark and on a phone.
var journeys = map[string]func(t *testing.T, s *site, b *tab){
	"what is wrong, and why": func(_ *testing.T, _ *site, b *tab) {
		b.visit("/").reads("Degraded").press("why").reads("exits at once: code 127") // it serves nobody, so it stands first
		b.visit("/svc/web/web").reads("no such host mail").reads("push a commit that mends it")
	},
	"an app, its service, and back": func(_ *testing.T, _ *site, b *tab) {
		b.visit("/").press("web").reads("web").visit("/svc/web/web").press("web").until("the app's page", `location.pathname == '/app/web'`).press("edge-1").until("now", `location.pathname == '/'`)
	},
	"logs that follow": func(t *testing.T, s *site, b *tab) {
		b.visit("/svc/web/web").press("logs").reads("panic: queue")
		b.until("it is live", `document.getElementById('live').innerText == 'live'`)
		s.w.mu.Lock()
		s.w.logs = append(s.w.logs, "a line that came later")
		s.w.mu.Unlock()
		b.reads("a line that came later")
		require.LessOrEqual(t, js[int](b, `document.getElementById('log').children.length`), 2000)
	},
	"logs that are searched": func(_ *testing.T, _ *site, b *tab) {
		b.visit("/logs/web/web").press("search").fill("q", "/item/7 ").press("Search").reads("GET /item/7 200").until("nothing else", `[...document.querySelectorAll('#log li')].every(e => e.innerText.includes('/item/7 '))`)
	},
	"hold an app": func(t *testing.T, s *site, b *tab) {
		b.visit("/app/api").press("act on the app…").press("hold…").reads("What will happen").fill("for", "30m").fill("reason", "a look").press("hold api").reads("Done")
		require.Equal(t, []string{"hold api/ 30m: a look"}, s.w.acts())
	},
	"an act without a reason is not done": func(t *testing.T, s *site, b *tab) {
		b.visit("/act/api?verb=hold").until("the form wants one", `!document.querySelector('form').checkValidity()`)
		b.fill("reason", "   ").press("hold api").reads("a reason is required")
		require.Empty(t, s.w.acts())
		b.forget() // the console tells of the answer 400
	},
	"take back the last deploy of web": func(t *testing.T, s *site, b *tab) {
		b.visit("/history").press("9190630").reads("Take it back").press("undo web…").fill("reason", "checkout fails").press("undo web").reads("Done")
		require.Equal(t, []string{"undo web/ 4h: checkout fails"}, s.w.acts())
	},
	"approve the commit that waits": func(t *testing.T, s *site, b *tab) {
		b.visit("/").press("approve…").reads("it removes 3 of 4 services").fill("reason", "agreed").press("Approve").reads("Done")
		require.Equal(t, []string{fmt.Sprintf("approve %s: agreed", newBill)}, s.w.acts())
	},
	"who signed what runs": func(_ *testing.T, _ *site, b *tab) {
		b.visit("/").press("69bc92e").reads("cem@example.org").visit("/trust").reads("SHA256:mVPwvezndPv").reads("revoked")
	},
	"when the nightly job runs next": func(_ *testing.T, _ *site, b *tab) {
		b.visit("/").press("Jobs").reads("jobs/nightly").reads("exited with code 2").until("a time that is ahead", `new Date(document.querySelector('#job-jobs-nightly time').dateTime) > Date.now()`)
	},
	"what the next commit changes": func(_ *testing.T, _ *site, b *tab) {
		b.visit("/").press("what it changes").reads("env GREETING").reads("app db is held by root")
	},
	"what is wrong with the host": func(_ *testing.T, _ *site, b *tab) {
		b.visit("/").press("Doctor").reads("expires in 9 days").press("Crashes").reads("exit status 3").press("The last lines of the newest").reads("no such host mail")
	},
	"with keys alone": func(t *testing.T, _ *site, b *tab) {
		b.visit("/")
		b.do(chromedp.KeyEvent(kb.Tab))
		require.Equal(t, "#main", js[string](b, `document.activeElement.getAttribute('href')`), "the first key skips the menu")
		b.do(chromedp.KeyEvent(kb.Enter))
		b.until("the content has the focus", `document.activeElement.id == 'main'`)
		seen := map[string]bool{}
		for range 40 {
			b.do(chromedp.KeyEvent(kb.Tab))
			at := js[string](b, `(() => { const e = document.activeElement, r = e.getBoundingClientRect(), c = getComputedStyle(e); return r.width > 0 && (c.outlineStyle != 'none' || c.boxShadow != 'none') ? e.getAttribute('href') || e.tagName : 'unseen ' + e.outerHTML })()`)
			require.NotContains(t, at, "unseen", "where the focus is has to be seen")
			seen[at] = true
		}
		require.Contains(t, seen, "/svc/web/web")
	},
}

func TestJourneys(t *testing.T) {
	require.GreaterOrEqual(t, len(journeys), 12)
	var names []string
	for name := range journeys {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, l := range looks {
		t.Run(l.name, func(t *testing.T) {
			s := serve(t, newWorld())
			b := s.open(t, l)
			for _, name := range names {
				t.Run(name, func(t *testing.T) {
					b.t = t
					journeys[name](t, s, b)
				})
			}
		})
	}
}

// An event of the status reaches the page, and nothing is loaded anew for it: where the reader
// is, and what they opened, stays as it is. It is 100 times with GITRING_E2E_LONG=1: a stream
// tells of a status twice a second at most.
func TestAPageFollowsTheHostAndKeepsItsReadersPlace(t *testing.T) {
	times := 15
	if os.Getenv("GITRING_E2E_LONG") == "1" {
		times = 100
	}
	w := newWorld().larger(100)
	s := serve(t, w)
	b := s.open(t, light)
	b.do(call(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: timesOfChanges}))
	b.visit("/").until("it is live", `document.getElementById('live').innerText == 'live'`)
	b.until("the page is at rest", `document.querySelector('details') !== null`)
	js[bool](b, `(() => { window.__mark = true; document.querySelector('details').open = true; document.querySelector('#app-web a.act').focus(); scrollTo(0, 300); window.__focus = document.activeElement; return true })()`)
	for i := range times {
		says := fmt.Sprintf("slot 1 starts, try %d of %d", i+1, times)
		w.set(func(st *ring.Status) { st.Sources[0].Apps[0].Reason = says })
		w.tell(ring.Event{Kind: ring.InstanceStep, Source: "prod", App: "web", Reason: says})
		b.until("the change is on the page", `document.getElementById('app-web').textContent.includes(`+quoted(says)+`)`)
	}
	require.True(t, js[bool](b, `window.__mark === true`), "the page was loaded anew")
	require.True(t, js[bool](b, `document.querySelector('details').open`), "what was open was closed")
	require.True(t, js[bool](b, `document.activeElement === window.__focus && window.__focus.isConnected`), "the focus was lost")
	require.InDelta(t, 300, js[float64](b, `scrollY`), 200)
	took := js[[]float64](b, `window.__took`)
	require.NotEmpty(t, took)
	slices.Sort(took)
	t.Logf("from the event to the page, %d times: half of them in %.0f ms, 95 %% in %.0f ms", len(took), took[len(took)/2], took[len(took)*95/100])
}

// timesOfChanges keeps how many milliseconds pass from the first event of a stream that no page
// shows yet to the page that shows it.
const timesOfChanges = `
window.__took = [];
let since = 0;
const Plain = window.EventSource;
window.EventSource = class extends Plain {
  constructor(...args) {
    super(...args);
    for (const kind of ['status', 'journal']) super.addEventListener(kind, () => { since ||= performance.now(); });
  }
};
document.addEventListener('DOMContentLoaded', () => {
  new MutationObserver(() => {
    if (since) window.__took.push(performance.now() - since);
    since = 0;
  }).observe(document.getElementById('app-web'), { subtree: true, childList: true, characterData: true });
});
`

func TestADaemonThatGoesAwayIsToldAndComesBack(t *testing.T) {
	w := newWorld()
	s := serve(t, w)
	b := s.open(t, light).visit("/").until("it is live", `document.getElementById('live').innerText == 'live'`)
	js[bool](b, `window.__mark = true`)
	s.away()
	b.reads("connection lost: what you see is old")
	w.set(func(st *ring.Status) { st.Sources[0].Subject = "while nobody looked" })
	w.tell(ring.Event{Kind: ring.CommitAccepted, Source: "prod", Commit: fixTypo})
	s.back()
	b.until("it is live again", `document.getElementById('live').innerText == 'live'`).reads("while nobody looked")
	require.True(t, js[bool](b, `window.__mark === true`), "the page was loaded anew")
	b.forget() // what the browser says of a stream that failed
}
