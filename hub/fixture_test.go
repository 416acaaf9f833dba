package hub

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/api/pages"
	"github.com/gitring/gitring/ring"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// place is a hub with its door, its file of tokens and a clock.
type place struct {
	t     *testing.T
	state string
	file  string
	hub   *Hub
	web   *api.Web

	mu sync.Mutex
	at time.Time
}

func newPlace(t *testing.T, change ...func(*Options)) *place {
	t.Helper()
	p := &place{t: t, state: t.TempDir(), at: noon}
	p.file = filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(p.file, nil, 0o600))
	p.open(change...)
	return p
}

// open is what a start of the program does.
func (p *place) open(change ...func(*Options)) {
	p.t.Helper()
	log := slog.New(slog.DiscardHandler)
	o := Options{State: p.state, Tokens: api.NewTokens(p.file, func(string) error { return nil }, p.now), Now: p.now, Log: log}
	for _, c := range change {
		c(&o)
	}
	var err error
	p.hub, err = Open(o)
	require.NoError(p.t, err)
	var web *api.Web
	table := api.NewHub(p.hub.Calls())
	table.Count(p.hub.Count)
	web, err = api.NewWeb(table, api.WebOptions{
		Tokens: o.Tokens, SessionKey: make([]byte, 32), Address: "127.0.0.1:9482", Now: p.now, Log: log,
		Pages: p.hub.Pages(pages.FleetOptions{
			Viewer:  func(r *http.Request) (api.Viewer, bool) { return api.ViewerOf(r.Context()) },
			SignIn:  func(w http.ResponseWriter, r *http.Request, token string) error { return web.SignIn(w, r, token) },
			SignOut: func(w http.ResponseWriter) { web.SignOut(w) },
		}),
	})
	require.NoError(p.t, err)
	p.web = web
}

func (p *place) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

func (p *place) after(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = p.at.Add(d)
}

// token writes a line, and gives the token. Its file is looked at again 5 s later.
func (p *place) token(name, scopes string) string {
	p.t.Helper()
	set, err := api.ParseScopes(scopes)
	require.NoError(p.t, err)
	text, line := api.NewToken(name, set, "2027-01-20")
	body, err := os.ReadFile(p.file)
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(p.file, append(body, line.Line()+"\n"...), 0o600))
	p.after(5 * time.Second)
	return text
}

func (p *place) revoke(token string) {
	p.t.Helper()
	body, err := os.ReadFile(p.file)
	require.NoError(p.t, err)
	kept := ""
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, idOf(token)) {
			kept += line
		}
	}
	require.NoError(p.t, os.WriteFile(p.file, []byte(kept), 0o600))
	p.after(5 * time.Second)
}

func idOf(token string) string { return strings.Split(token, "_")[1] }

func (p *place) ask(method, target, token string, body []byte, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, bytes.NewReader(body))
	r.Host = "localhost"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, c := range change {
		c(r)
	}
	out := httptest.NewRecorder()
	p.web.ServeHTTP(out, r)
	return out
}

// fleet is what the hub answers of all hosts.
func (p *place) fleet(token string) []api.HostNow {
	p.t.Helper()
	out := p.ask("GET", "/v1/fleet", token, nil)
	require.Equal(p.t, http.StatusOK, out.Code, out.Body)
	var all []api.HostNow
	require.NoError(p.t, json.Unmarshal(out.Body.Bytes(), &all))
	return all
}

// journal is that of a simulated host: its hashes are made here, and not by the code under test.
type journal struct {
	first int64 // the number of lines[0]
	lines []ring.HostLine
	salt  string
}

func (j *journal) append(e ring.Event) {
	if j.first == 0 {
		j.first = 1
	}
	e.Seq = j.first + int64(len(j.lines))
	if e.At.IsZero() {
		e.At = noon
	}
	raw, _ := json.Marshal(e)
	sum := sha256.Sum256(append([]byte(j.salt), raw...))
	j.lines = append(j.lines, ring.HostLine{Hash: hex.EncodeToString(sum[:4]), Event: raw})
}

func (j *journal) cursor() string {
	if len(j.lines) == 0 {
		return "0.00000000"
	}
	return fmt.Sprintf("%d.%s", j.first+int64(len(j.lines))-1, j.lines[len(j.lines)-1].Hash)
}

// status is one of a host with an app.
func status(host string, sync ring.Sync, health string) ring.Status {
	return ring.Status{Host: host, Gitring: "1.0.0", At: noon, Sources: []ring.SourceStatus{{
		Name: "prod", Branch: "main", Commit: "442e0271b8f1c0a1442e0271b8f1c0a1442e0271", Subject: "api: fix the typo", Signer: "alice", Sync: sync, Reason: "as the commit says",
		Apps: []ring.AppStatus{{Name: "shop", Health: health, Commit: "442e0271b8f1c0a1442e0271b8f1c0a1442e0271", Services: []ring.ServiceStatus{{
			Name: "web", Kind: ring.Worker, Phase: ring.PhaseReady, Wanted: 1, Ready: 1, Reason: "1/1 ready", Commit: "442e0271b8f1c0a1442e0271b8f1c0a1442e0271",
			Instances: []ring.InstanceStatus{{ID: "c1", Name: "shop-web-1", Slot: 1, State: "Ready"}},
		}}}},
	}}}
}

// reportOf is the body that a host sends.
func reportOf(host string, at time.Time, st ring.Status, after, gap string, lines ...ring.HostLine) []byte {
	raw, _ := json.Marshal(st)
	body, _ := json.Marshal(ring.HostReport{Host: host, Gitring: "1.0.0", At: at, After: after, Gap: gap, Status: raw, Lines: lines})
	return body
}

func zipped(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body)
	_ = z.Close()
	return b.Bytes()
}

func asGzip(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }

// tell reports, and gives the answer.
func (p *place) tell(token string, body []byte) string {
	p.t.Helper()
	p.after(100 * time.Millisecond) // 20 requests a second are an actor's
	out := p.ask("POST", "/v1/report", token, body)
	require.Equal(p.t, http.StatusOK, out.Code, out.Body)
	_, ok := ring.ParseCursor(out.Body.String())
	require.True(p.t, ok, "%q", out.Body.String())
	return out.Body.String()
}

// keptOf are the lines that the hub's disk has of a token's host, in order.
func (p *place) keptOf(token string) (out []string) {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "hosts", idOf(token), "*.ndjson"))
	require.NoError(p.t, err)
	for _, f := range files { // sorted
		body, err := os.ReadFile(f)
		require.NoError(p.t, err)
		for line := range strings.Lines(string(body)) {
			var r struct {
				Hash  string          `json:"hash"`
				Event json.RawMessage `json:"event"`
			}
			require.NoError(p.t, json.Unmarshal([]byte(line), &r), "%q", line)
			out = append(out, r.Hash+" "+string(r.Event))
		}
	}
	return out
}

func (j *journal) all() (out []string) {
	for _, l := range j.lines {
		out = append(out, l.Hash+" "+string(l.Event))
	}
	return out
}
