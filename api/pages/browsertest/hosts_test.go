package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
	"github.com/gitring/gitring/hub"
	"github.com/gitring/gitring/ring"
)

// hubSite is a hub to which hosts have reported, and what their next word is told with.
type hubSite struct {
	*site
	hub    *hub.Hub
	tokens []api.Token

	mu    sync.Mutex
	ahead time.Duration // of the hub's clock
}

// serveHub is a hub of hosts: the first is as the world has it, the second silent, and all others are well.
func serveHub(t *testing.T, w *world, hosts int) *hubSite {
	t.Helper()
	dir := t.TempDir()
	s := &hubSite{site: &site{t: t, w: w}}
	var lines []byte
	add := func(name, scope string) (string, api.Token) {
		set, err := api.ParseScopes(scope)
		require.NoError(t, err)
		text, line := api.NewToken(name, set, api.Never)
		lines = append(lines, line.Line()+"\n"...)
		return text, line
	}
	reader, _ := add("alice", "read")
	for i := range hosts {
		_, line := add(fmt.Sprint("edge-", i+1), fmt.Sprint("report:edge-", i+1))
		s.tokens = append(s.tokens, line)
	}
	file := filepath.Join(dir, "tokens")
	require.NoError(t, os.WriteFile(file, lines, 0o600))
	tokens := api.NewTokens(file, func(string) error { return nil }, time.Now)
	quiet := slog.New(slog.DiscardHandler)
	var err error
	s.hub, err = hub.Open(hub.Options{State: filepath.Join(dir, "state"), Tokens: tokens, Now: s.now, Log: quiet})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var web *api.Web
	web, err = api.NewWeb(api.NewHub(s.hub.Calls()), api.WebOptions{
		Tokens: tokens, SessionKey: make([]byte, 32), Address: l.Addr().String(), Now: s.unhurried(), Log: quiet,
		Pages: s.hub.Pages(pages.FleetOptions{
			Viewer:  func(r *http.Request) (api.Viewer, bool) { return api.ViewerOf(r.Context()) },
			SignIn:  func(w http.ResponseWriter, r *http.Request, token string) error { return web.SignIn(w, r, token) },
			SignOut: func(w http.ResponseWriter) { web.SignOut(w) },
		}),
	})
	require.NoError(t, err)
	s.url = "http://" + l.Addr().String()
	t.Cleanup(s.run(l, web.Run))
	s.cookie = sync.OnceValue(func() *http.Cookie {
		out := answer{http.Header{}}
		require.NoError(t, web.SignIn(out, &http.Request{RemoteAddr: "127.0.0.1:1"}, reader))
		c, err := http.ParseSetCookie(out.Header().Get("Set-Cookie"))
		require.NoError(t, err)
		return c
	})
	for i := range hosts {
		if i == 1 { // it was heard 12 minutes before the others
			s.tell(i, ring.SyncSynced, "as it was")
			s.mu.Lock()
			s.ahead = 12 * time.Minute
			s.mu.Unlock()
		}
	}
	for i := range hosts {
		if i != 1 {
			s.tell(i, ring.SyncSynced, "as it was")
		}
	}
	return s
}

func (s *hubSite) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// answer keeps the head of an answer.
type answer struct{ head http.Header }

func (a answer) Header() http.Header         { return a.head }
func (a answer) Write(b []byte) (int, error) { return len(b), nil }
func (a answer) WriteHeader(int)             {}

// tell reports for a host, with the journal of the world.
func (s *hubSite) tell(host int, sync ring.Sync, subject string) {
	s.t.Helper()
	st, err := s.w.calls().Status(s.t.Context())
	require.NoError(s.t, err)
	name := fmt.Sprint("edge-", host+1)
	st.Host = name
	if host > 0 {
		st = ring.Status{Host: name, Gitring: "1.0.0", Sources: []ring.SourceStatus{{Name: "prod", Branch: "main", Commit: newQueue, Subject: subject, Sync: sync, Apps: []ring.AppStatus{s.w.app("api", newQueue, s.w.service("api", "api", 1, newQueue))}}}}
	}
	raw, err := json.Marshal(st)
	require.NoError(s.t, err)
	in := &ring.HostReport{Host: name, Gitring: "1.0.0", At: s.now(), Status: raw}
	at, err := s.hub.Report(context.Background(), s.tokens[host], in)
	require.NoError(s.t, err)
	if host == 0 && at.Seq == 0 {
		in.After = at.String()
		for i, e := range s.w.lines(api.EventQuery{}) {
			e.Seq = int64(i + 1)
			event, err := json.Marshal(e)
			require.NoError(s.t, err)
			in.Lines = append(in.Lines, ring.HostLine{Hash: fmt.Sprintf("%08x", i+1), Event: event})
		}
		_, err := s.hub.Report(context.Background(), s.tokens[host], in)
		require.NoError(s.t, err)
	}
}

// The pages of a hub, as those of a host: readable in light, dark and on a phone, with 3 hosts and 100,
// and without JavaScript.
func TestThePagesOfAHubAreAccessibleAndFit(t *testing.T) {
	every := []struct{ path, says string }{
		{"/hosts", "silent"},
		{"/hosts/edge-1", "slot 1 exited with code 3"},
		{"/hosts/edge-2", "this is what it said last"},
		{"/hosts/edge-1/app/web", "web"},
		{"/hosts/edge-1/svc/web/web", "Instances"},
		{"/hosts/edge-1/history", "Commits"},
		{"/hosts/edge-1/jobs", "jobs/nightly"},
		{"/hosts/edge-1/crashes", "Crashes"},
		{"/hosts/edge-1/commit/" + string(newQueue), "What the journal says"},
	}
	rules := map[string]string{
		"light": `{}`,
		"dark":  `{runOnly: ['color-contrast']}`,
		"phone": `{rules: {'color-contrast': {enabled: false}}}`,
	}
	for _, n := range []int{3, 100} {
		s := serveHub(t, newWorld(), n)
		for _, l := range looks {
			t.Run(fmt.Sprintf("%d hosts, %s", n, l.name), func(t *testing.T) {
				b := s.open(t, l)
				for i, p := range every {
					if n > 3 && i > 0 {
						break // they are the same
					}
					b.visit(p.path).reads(p.says).fits().accessible(rules[l.name])
				}
			})
		}
	}
	s := serveHub(t, newWorld(), 3)
	plain := phone
	plain.plain = true
	b := s.open(t, plain)
	for _, p := range every {
		b.visit(p.path).reads(p.says)
	}
}

// A silent host has no colour of a state, and a page that is open follows what hosts say.
func TestAHubIsFollowedAndSilenceHasNoColour(t *testing.T) {
	s := serveHub(t, newWorld(), 3)
	b := s.open(t, light)
	b.visit("/hosts").reads("for 12 min (was Synced)")
	colour := func(path, of string) string {
		b.visit(path)
		return js[string](b, `getComputedStyle(document.querySelector('`+of+`')).color`)
	}
	good := colour("/hosts/edge-3", ".mark.good")
	require.NotEqual(t, good, colour("/hosts/edge-2", ".mark.good"), "it said so 12 minutes ago")
	require.Zero(t, js[int](b.visit("/hosts"), `document.querySelectorAll('#host-edge-2 .good').length`))

	b.visit("/hosts").reads("as it was")
	s.tell(2, ring.SyncApplying, "a newer one")
	b.reads("a newer one").reads("Applying")
	b.visit("/hosts/edge-3").reads("a newer one")
	s.tell(1, ring.SyncSynced, "heard again") // of another host: this page is not told
	s.tell(2, ring.SyncSynced, "and another")
	b.reads("and another")
}
