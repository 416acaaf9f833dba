package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/report"
	"github.com/gitring/gitring/ring"
)

// Every route of a hub with every scope, and without any. The oracle is this table.
func TestWhoMayReportAndWhoMayRead(t *testing.T) {
	p := newPlace(t)
	body := reportOf("edge-1", noon, status("edge-1", ring.SyncSynced, ring.Healthy), "", "")
	routes := []struct {
		method, target string
		may            []string
	}{
		{"POST", "/v1/report", []string{"report:edge-1"}},
		{"GET", "/v1/fleet", []string{"read", "logs", "operate", "approve", "admin"}},
		{"GET", "/v1/openapi.json", []string{"read", "logs", "operate", "approve", "admin"}},
		{"GET", "/metrics", []string{"metrics"}},
		{"GET", "/hosts", []string{"read", "logs", "operate", "approve", "admin"}},
		{"GET", "/hosts/edge-1", []string{"read", "logs", "operate", "approve", "admin"}},
	}
	scopes := append(slices.Clone(api.ScopeNames), "report:edge-1", "report:edge-2", "report:edge-10")
	tokens := map[string]string{}
	for i, s := range scopes {
		tokens[s] = p.token(fmt.Sprint("t", i), s)
	}
	bodyOf := func(method string) []byte { return map[string][]byte{"POST": body}[method] }
	p.tell(tokens["report:edge-1"], body)
	for _, r := range routes {
		for _, s := range scopes {
			p.after(time.Second)
			out := p.ask(r.method, r.target, tokens[s], bodyOf(r.method))
			want := http.StatusForbidden
			if slices.Contains(r.may, s) {
				want = http.StatusOK
			}
			require.Equal(t, want, out.Code, "%s %s by %s: %s", r.method, r.target, s, out.Body)
		}
		out := p.ask(r.method, r.target, "", bodyOf(r.method))
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusSeeOther}, out.Code, r.target)
	}
	for _, target := range []string{"/v1/status", "/v1/sync", "/v1/act", "/v1/approve", "/v1/adopt", "/v1/plan", "/v1/logs", "/v1/doctor"} {
		for _, method := range []string{"GET", "POST"} {
			p.after(time.Second)
			require.Equal(t, http.StatusNotFound, p.ask(method, target, tokens["admin"], nil).Code, "a hub has no %s", target)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		p.after(time.Second)
		require.Equal(t, http.StatusMethodNotAllowed, p.ask(method, "/hosts/edge-1/act/shop", tokens["operate"], nil).Code, "no page acts")
	}
	require.Error(t, p.web.SignIn(httptest.NewRecorder(), httptest.NewRequest("POST", "/signin", nil), tokens["report:edge-1"]), "a host opens no page")
	for _, wrong := range []string{"report:", "report:Edge", "report:a,read", "read,report:a", "report:a,report:b", "report", "report:a b", "report:*"} {
		_, err := api.ParseScopes(wrong)
		require.Error(t, err, wrong)
	}
}

// A report that comes again adds nothing, and one whose answer was lost is gone on from its end.
func TestLinesAreKeptOnceAndInOrder(t *testing.T) {
	p := newPlace(t)
	token := p.token("edge-1", "report:edge-1")
	st := status("edge-1", ring.SyncSynced, ring.Healthy)
	j := &journal{}
	for range 5 {
		j.append(ring.Event{Kind: ring.RolloutBegan, App: "shop", Service: "web"})
	}
	require.Equal(t, "0.00000000", p.tell(token, reportOf("edge-1", p.now(), st, "", "")), "a new row begins before the first line")
	first := reportOf("edge-1", p.now(), st, "0.00000000", "", j.lines[:3]...)
	at := p.tell(token, first)
	require.Equal(t, "3."+j.lines[2].Hash, at)
	require.Equal(t, at, p.tell(token, first), "it came again: the answer had been lost")
	require.Equal(t, at, p.tell(token, reportOf("edge-1", p.now(), st, "1."+j.lines[0].Hash, "", j.lines[1:]...)), "lines that follow another line than the last")
	require.Equal(t, j.cursor(), p.tell(token, reportOf("edge-1", p.now(), st, at, "", j.lines[3:]...)))
	require.Equal(t, j.all(), p.keptOf(token))
	out := p.ask("POST", "/v1/report", token, reportOf("edge-1", p.now(), st, j.cursor(), "", ring.HostLine{Hash: "0a0a0a0a", Event: json.RawMessage(`{"seq":9,"kind":"x","at":"2026-11-27T12:00:00Z"}`)}))
	require.Equal(t, http.StatusBadRequest, out.Code, "a gap that is not said")
	p.open()
	require.Equal(t, j.cursor(), p.tell(token, reportOf("edge-1", p.now(), st, "", "")), "after a start the last line counts")
	require.Equal(t, j.all(), p.keptOf(token))
}

// What was written in half when the hub was killed is cut, however much of it there is.
func TestALineThatIsNotWholeIsCutAtTheStart(t *testing.T) {
	p := newPlace(t)
	token := p.token("edge-1", "report:edge-1")
	st := status("edge-1", ring.SyncSynced, ring.Healthy)
	j := &journal{}
	for range 4 {
		j.append(ring.Event{Kind: ring.RolloutBegan, App: "shop", Service: "web", Reason: "why"})
	}
	p.tell(token, reportOf("edge-1", p.now(), st, "0.00000000", "", j.lines[:2]...))
	file, err := filepath.Glob(filepath.Join(p.state, "hosts", idOf(token), "*.ndjson"))
	require.NoError(t, err)
	require.Len(t, file, 1)
	whole, err := os.ReadFile(file[0])
	require.NoError(t, err)
	next, err := json.Marshal(record{At: noon, Hash: j.lines[2].Hash, Event: j.lines[2].Event})
	require.NoError(t, err)
	for cut := range len(next) + 1 { // the last is without its line end
		require.NoError(t, os.WriteFile(file[0], append(slices.Clone(whole), next[:cut]...), 0o600))
		p.open()
		require.Equal(t, "2."+j.lines[1].Hash, p.tell(token, reportOf("edge-1", p.now(), st, "", "")), "cut after %d bytes", cut)
	}
	require.Equal(t, j.cursor(), p.tell(token, reportOf("edge-1", p.now(), st, "2."+j.lines[1].Hash, "", j.lines[2:]...)))
	require.Equal(t, j.all(), p.keptOf(token))
	// A file of nothing but half a line: the day before it has the cursor.
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file[0]), "2026-11-28.ndjson"), next[:20], 0o600))
	p.open()
	require.Equal(t, j.cursor(), p.tell(token, reportOf("edge-1", p.now(), st, "", "")))
	require.Equal(t, j.all(), p.keptOf(token))
}

func TestAGapIsKeptAndTold(t *testing.T) {
	p := newPlace(t)
	token, reader := p.token("edge-1", "report:edge-1"), p.token("ann", "read")
	st := status("edge-1", ring.SyncSynced, ring.Healthy)
	j := &journal{first: 1}
	for range 3 {
		j.append(ring.Event{Kind: ring.RolloutBegan})
	}
	at := p.tell(token, reportOf("edge-1", p.now(), st, "0.00000000", "", j.lines...))
	later := &journal{first: 10}
	later.append(ring.Event{Kind: ring.RolloutCompleted})
	at = p.tell(token, reportOf("edge-1", p.now(), st, at, ring.GapTrimmed, later.lines...))
	require.Equal(t, later.cursor(), at)
	require.Contains(t, strings.Join(p.fleet(reader)[0].Told, "|"), "removed there before they could be told")
	anew := &journal{first: 1, salt: "another database"}
	anew.append(ring.Event{Kind: ring.DaemonStarted})
	at = p.tell(token, reportOf("edge-1", p.now(), st, at, ring.GapReplaced, anew.lines...))
	require.Equal(t, anew.cursor(), at)
	require.Contains(t, strings.Join(p.fleet(reader)[0].Told, "|"), "another database")
	require.Equal(t, slices.Concat(j.all(), later.all(), anew.all()), p.keptOf(token))
	p.after(25 * time.Hour)
	p.tell(token, reportOf("edge-1", p.now(), st, at, ""))
	require.Empty(t, p.fleet(reader)[0].Told, "of yesterday")
}

// A disk that is full takes no line and keeps what there is; the status that came with lines counts all
// the same, so that a host that lives is not silent. Fault before it took effect: the journal; and
// after: the status that follows it.
func TestAFullDiskTakesNoLinesAndKeepsTheStatus(t *testing.T) {
	var log bytes.Buffer
	p := newPlace(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	token, reader := p.token("edge-1", "report:edge-1"), p.token("ann", "read")
	st := status("edge-1", ring.SyncSynced, ring.Healthy)
	j := &journal{}
	j.append(ring.Event{Kind: ring.RolloutBegan})
	j.append(ring.Event{Kind: ring.RolloutCompleted})
	at := p.tell(token, reportOf("edge-1", p.now(), st, "0.00000000", "", j.lines[:1]...))
	dir := filepath.Join(p.state, "hosts", idOf(token))
	p.after(24 * time.Hour)
	today := filepath.Join(dir, p.now().Format(time.DateOnly)+".ndjson")
	require.NoError(t, os.Symlink("/dev/full", today))
	worse := status("edge-1", ring.SyncDegraded, ring.Degraded)
	out := p.ask("POST", "/v1/report", token, reportOf("edge-1", p.now(), worse, at, "", j.lines[1:]...))
	require.Equal(t, http.StatusInsufficientStorage, out.Code, out.Body)
	p.after(time.Second)
	out = p.ask("POST", "/v1/report", token, reportOf("edge-1", p.now(), worse, at, "", j.lines[1:]...))
	require.Equal(t, http.StatusInsufficientStorage, out.Code, out.Body)
	require.Equal(t, "Degraded", p.fleet(reader)[0].Word, "the status that came with it counts")
	require.Contains(t, p.fleet(reader)[0].Told, "the hub has no room for more of its journal: new lines wait at the host")
	p.tell(token, reportOf("edge-1", p.now(), worse, at, "")) // a report without lines says nothing of room
	require.Equal(t, 1, strings.Count(log.String(), "could not keep what a host tells"), "told once: %s", log.String())
	require.NotContains(t, log.String(), "keeps again")
	require.NoError(t, os.Remove(today))
	require.Equal(t, j.all()[:1], p.keptOf(token))

	// The lines can be written, and the status cannot.
	worse = status("edge-1", ring.SyncRefused, ring.Degraded)
	file := filepath.Join(dir, statusFile)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.MkdirAll(filepath.Join(file, "in the way"), 0o700))
	out = p.ask("POST", "/v1/report", token, reportOf("edge-1", p.now(), worse, at, "", j.lines[1:]...))
	require.Equal(t, http.StatusServiceUnavailable, out.Code, out.Body)
	require.Equal(t, j.all()[:1], p.keptOf(token), "the lines are taken back")
	require.NoError(t, os.RemoveAll(file))
	require.Equal(t, j.cursor(), p.tell(token, reportOf("edge-1", p.now(), worse, at, "", j.lines[1:]...)), "and then all of it is kept")
	require.Equal(t, j.all(), p.keptOf(token))
	require.Equal(t, "Refused", p.fleet(reader)[0].Word)
	require.Empty(t, p.fleet(reader)[0].Told)
	require.Equal(t, 1, strings.Count(log.String(), "keeps again what a host tells"), log.String())
	require.Contains(t, p.ask("GET", "/metrics", p.token("prometheus", "metrics"), nil).Body.String(), `gitring_hub_reports_total{host="edge-1",result="full"} 2`)
}

// On a small disk that is full not even the status can be written: the host is heard all the same, and
// its row says that its pages are older.
func TestAHostIsHeardThoughItsStatusHasNoRoom(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root mounts a small disk")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(dir, 0)) }()
	p := newPlace(t)
	p.state = dir
	p.open()
	token, reader := p.token("edge-1", "report:edge-1"), p.token("ann", "read")
	p.tell(token, reportOf("edge-1", p.now(), status("edge-1", ring.SyncSynced, ring.Healthy), "", ""))
	fill, err := os.Create(filepath.Join(dir, "fill"))
	require.NoError(t, err)
	_, err = fill.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, fill.Close())
	p.after(4 * time.Minute)
	out := p.ask("POST", "/v1/report", token, reportOf("edge-1", p.now(), status("edge-1", ring.SyncDegraded, ring.Degraded), "0.00000000", ""))
	require.Equal(t, http.StatusInsufficientStorage, out.Code, out.Body)
	now := p.fleet(reader)[0]
	require.False(t, now.Silent)
	require.Equal(t, "Degraded", now.Word)
	require.Equal(t, []string{"its pages are of an older status: the hub's disk is full"}, now.Told)
	require.NoError(t, os.Remove(filepath.Join(dir, "fill")))
	p.tell(token, reportOf("edge-1", p.now(), status("edge-1", ring.SyncDegraded, ring.Degraded), "0.00000000", ""))
	require.Empty(t, p.fleet(reader)[0].Told)
}

// waiting is the body of a report that does not come to its end.
type waiting struct {
	began *atomic.Int64
	goOn  chan struct{}
}

func (w *waiting) Read([]byte) (int, error) {
	w.began.Add(1)
	<-w.goOn
	return 0, io.EOF
}

// A token has one report under way, and no byte of more than 16 is taken at a time. So a host that
// sends slowly, or much, delays no other.
func TestAReportOfOneHostDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		var began atomic.Int64
		goOn := make(chan struct{})
		var open sync.WaitGroup
		slowly := func(token string) {
			open.Go(func() {
				r := httptest.NewRequest("POST", "/v1/report", &waiting{&began, goOn})
				r.Host = "localhost"
				r.Header.Set("Authorization", "Bearer "+token)
				p.web.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		slow, other := p.token("edge-1", "report:edge-1"), p.token("edge-2", "report:edge-2")
		slowly(slow)
		synctest.Wait()
		body := reportOf("edge-1", p.now(), status("edge-1", ring.SyncSynced, ring.Healthy), "", "")
		require.Equal(t, http.StatusTooManyRequests, p.ask("POST", "/v1/report", slow, body).Code, "its first is not at its end")
		p.tell(other, reportOf("edge-2", p.now(), status("edge-2", ring.SyncSynced, ring.Healthy), "", ""))
		var more []string
		for i := range 40 {
			more = append(more, p.token(fmt.Sprint("more-", i), fmt.Sprint("report:more-", i)))
		}
		for _, token := range more {
			slowly(token)
		}
		synctest.Wait()
		require.Equal(t, int64(16), began.Load(), "what is not taken stays with its sender")
		close(goOn)
		open.Wait()
		require.Equal(t, int64(41), began.Load())
		p.tell(slow, body)
	})
}

// One folder that cannot be read keeps no other host's from being read; it is set aside and told, and
// its host tells all of its journal again.
func TestARowThatCannotBeReadIsSetAside(t *testing.T) {
	var log bytes.Buffer
	p := newPlace(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	broken, fine, reader := p.token("edge-1", "report:edge-1"), p.token("edge-2", "report:edge-2"), p.token("ann", "read")
	j := &journal{}
	j.append(ring.Event{Kind: ring.RolloutBegan})
	for token, host := range map[string]string{broken: "edge-1", fine: "edge-2"} {
		p.tell(token, reportOf(host, p.now(), status(host, ring.SyncSynced, ring.Healthy), "0.00000000", "", j.lines...))
	}
	days, err := filepath.Glob(filepath.Join(p.state, "hosts", idOf(broken), "*.ndjson"))
	require.NoError(t, err)
	require.Len(t, days, 1)
	require.NoError(t, os.WriteFile(days[0], []byte(`{"hash":"0a0a0a0a","event":[1]}`+"\n"), 0o600))
	p.open(func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	require.Len(t, p.fleet(reader), 1, "the others are there")
	require.Contains(t, log.String(), "token="+idOf(broken))
	aside, err := filepath.Glob(filepath.Join(p.state, "hosts", idOf(broken)+".unread-*"))
	require.NoError(t, err)
	require.Len(t, aside, 1, "it is for a person to look at")
	require.Equal(t, "0.00000000", p.tell(broken, reportOf("edge-1", p.now(), status("edge-1", ring.SyncSynced, ring.Healthy), "", "")), "all of it again")
	p.tell(broken, reportOf("edge-1", p.now(), status("edge-1", ring.SyncSynced, ring.Healthy), "0.00000000", "", j.lines...))
	require.Equal(t, j.all(), p.keptOf(broken))
	p.after(29 * 24 * time.Hour)
	require.NoError(t, p.hub.tidy(p.now()))
	require.DirExists(t, aside[0])
	p.after(2 * 24 * time.Hour)
	require.NoError(t, p.hub.tidy(p.now()))
	require.NoDirExists(t, aside[0], "no longer than the rest")
}

// A fault that may pass is none of the journal's: the hub does not start, and nothing is set aside. The
// fault here is a path that is too long by the name of a file.
func TestAPassingFaultSetsNoRowAside(t *testing.T) {
	p := newPlace(t)
	token := p.token("edge-1", "report:edge-1")
	j := &journal{}
	j.append(ring.Event{Kind: ring.RolloutBegan})
	p.tell(token, reportOf("edge-1", p.now(), status("edge-1", ring.SyncSynced, ring.Healthy), "0.00000000", "", j.lines...))
	deep := t.TempDir()
	const longest, folder, name = 4095, "/hosts/abcdefgh", 200
	for room := longest - len(folder) - len(deep); room > 1; room = longest - len(folder) - len(deep) {
		deep += "/" + strings.Repeat("d", min(name, room-1))
		require.NoError(t, os.Mkdir(deep, 0o700))
	}
	near, far := filepath.Join(p.state, "hosts"), filepath.Join(deep, "hosts")
	require.NoError(t, os.Rename(near, far))
	_, err := Open(Options{State: deep, Tokens: p.hub.Tokens, Now: p.now, Log: slog.New(slog.DiscardHandler)})
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
	require.ErrorContains(t, err, idOf(token), "a person finds the folder")
	require.NoError(t, os.Rename(far, near))
	p.open()
	require.Equal(t, j.all(), p.keptOf(token))
}

// Two tokens of one name are two hosts or two people: neither uses up the other's requests.
func TestTwoTokensOfOneNameHaveARateEach(t *testing.T) {
	p := newPlace(t)
	a, b := p.token("edge", "report:edge-1"), p.token("edge", "report:edge-2")
	refused := 0
	for range 30 { // the clock stands
		if p.ask("POST", "/v1/report", a, []byte("{}")).Code == http.StatusTooManyRequests {
			refused++
		}
	}
	require.NotZero(t, refused)
	require.Equal(t, http.StatusOK, p.ask("POST", "/v1/report", b, reportOf("edge-2", p.now(), status("edge-2", ring.SyncSynced, ring.Healthy), "", "")).Code)
}

// That a remote was asked again is no change, and the page of the host alone tells it.
func TestALookAtARemoteIsNoNews(t *testing.T) {
	p := newPlace(t)
	token := p.token("edge-1", "report:edge-1")
	st := status("edge-1", ring.SyncSynced, ring.Healthy)
	tags := func() (all, one string) {
		t.Helper()
		st.Sources[0].Checked = p.now()
		p.after(30 * time.Second)
		p.tell(token, reportOf("edge-1", p.now(), st, "", ""))
		var err error
		all, err = p.hub.Tag(t.Context(), "")
		require.NoError(t, err)
		one, err = p.hub.Tag(t.Context(), "edge-1")
		require.NoError(t, err)
		return all, one
	}
	all, one := tags()
	later, oneLater := tags()
	require.Equal(t, all, later)
	require.NotEqual(t, one, oneLater, "its own page says when it was looked last")
	before := st
	before.Sources = slices.Clone(st.Sources)
	before.Sources[0].Checked = before.Sources[0].Checked.Add(-time.Minute)
	require.Equal(t, api.ReportTag(&before), api.ReportTag(&st), "a host reports no change")
	before.Sources[0].Reason = "another"
	require.NotEqual(t, api.ReportTag(&before), api.ReportTag(&st))
}

// Of a journal that a host filled, a page reads a part alone, and the newest.
func TestAPageReadsTheNewestOfAJournalAlone(t *testing.T) {
	p := newPlace(t)
	token, reader := p.token("edge-1", "report:edge-1"), p.token("ann", "read")
	p.tell(token, reportOf("edge-1", p.now(), status("edge-1", ring.SyncSynced, ring.Healthy), "", ""))
	dir := filepath.Join(p.state, "hosts", idOf(token))
	var lines []byte
	n := 0
	for len(lines) < pageBytes+1<<20 {
		n++
		e := fmt.Sprintf(`{"seq":%d,"kind":"x","at":"2026-11-27T12:00:00Z","reason":"%s"}`, n, strings.Repeat("y", 1000))
		lines = append(lines, `{"at":"2026-11-27T12:00:00Z","hash":"0a0a0a0a","event":`+e+"}\n"...)
	}
	for _, day := range []string{"2026-11-25", "2026-11-26"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, day+dayEnd), lines, 0o600))
	}
	p.open()
	r := p.hub.rows[idOf(token)]
	looked := 0
	first := int64(0)
	_, err := newest(r.dir, r.days.names, 100_000, func(e *ring.Event) bool {
		if looked++; first == 0 {
			first = e.Seq
		}
		return true
	})
	require.NoError(t, err)
	require.Equal(t, n-int(first)+1, looked, "the newest, and none of the day before")
	require.LessOrEqual(t, looked*1000, pageBytes)
	require.Greater(t, looked*1200, pageBytes)
	some, err := newest(r.dir, r.days.names, 3, func(*ring.Event) bool { return true })
	require.NoError(t, err)
	require.Equal(t, []int64{int64(n - 2), int64(n - 1), int64(n)}, []int64{some[0].Seq, some[1].Seq, some[2].Seq})
	require.Equal(t, http.StatusOK, p.ask("GET", "/hosts/edge-1", reader, nil).Code)
}

// A host with more series than a page of metrics takes costs the others nothing, and is told.
func TestAHostOfTooManySeriesIsLeftOutOfTheMetrics(t *testing.T) {
	p := newPlace(t)
	token, other, reader := p.token("edge-1", "report:edge-1"), p.token("edge-2", "report:edge-2"), p.token("prometheus", "metrics")
	st := status("edge-1", ring.SyncSynced, ring.Healthy)
	service := st.Sources[0].Apps[0].Services[0]
	service.Instances = nil
	for i := range 3500 {
		service.Name = fmt.Sprint("s", i)
		st.Sources[0].Apps[0].Services = append(st.Sources[0].Apps[0].Services, service)
	}
	p.tell(token, reportOf("edge-1", p.now(), st, "", ""))
	p.tell(other, reportOf("edge-2", p.now(), status("edge-2", ring.SyncSynced, ring.Healthy), "", ""))
	text := p.ask("GET", "/metrics", reader, nil).Body.String()
	require.Less(t, len(text), 64<<10)
	require.Regexp(t, `gitring_hub_host_series_left_out\{host="edge-1"\} [0-9.e+]{3,}`, text)
	require.Contains(t, text, `gitring_hub_host_silent{host="edge-1"} 0`)
	require.Contains(t, text, `gitring_source_sync{host="edge-2",source="prod",sync="Synced"} 1`)
}

func TestTheJournalsAreBounded(t *testing.T) {
	p := newPlace(t, func(o *Options) { o.RowBytes, o.AllBytes = 20_000, 60_000 })
	st := status("a", ring.SyncSynced, ring.Healthy)
	j := &journal{}
	at, full := "0.00000000", 0
	token := p.token("a", "report:a")
	for range 40 {
		j.append(ring.Event{Kind: ring.RolloutBegan, Reason: strings.Repeat("x", 1000)})
		p.after(time.Second)
		out := p.ask("POST", "/v1/report", token, reportOf("a", p.now(), st, at, "", j.lines[len(j.lines)-1]))
		if out.Code == http.StatusInsufficientStorage {
			full++
			j.lines = j.lines[:len(j.lines)-1]
			p.after(24 * time.Hour)
			continue
		}
		require.Equal(t, http.StatusOK, out.Code)
		at = out.Body.String()
	}
	require.Equal(t, j.cursor(), at)
	require.NotZero(t, full, "a day is bounded")
	require.NoError(t, p.hub.tidy(p.now()))
	require.LessOrEqual(t, p.hub.rows[idOf(token)].days.bytes(), int64(20_000))
	kept := p.keptOf(token)
	require.Equal(t, j.all()[len(j.lines)-len(kept):], kept, "the newest stay")

	p.after(40 * 24 * time.Hour)
	require.NoError(t, p.hub.tidy(p.now()))
	require.NotEmpty(t, p.keptOf(token), "the last line is the cursor, however old")
	require.Len(t, p.hub.rows[idOf(token)].days.names, 1)
	p.revoke(token)
	require.NoError(t, p.hub.tidy(p.now()))
	require.Empty(t, p.keptOf(token), "a token that counts no more, for 30 days")
}

func TestHostileReportsAreRefused(t *testing.T) {
	p := newPlace(t)
	token := p.token("edge-1", "report:edge-1")
	good := reportOf("edge-1", p.now(), status("edge-1", ring.SyncSynced, ring.Healthy), "0.00000000", "")
	line := `{"seq":1,"kind":"x","at":"2026-11-27T12:00:00Z"}`
	of := func(change string) []byte {
		return []byte(strings.Replace(string(good), `"after":"0.00000000"`, change, 1))
	}
	told := func(status string) []byte {
		return []byte(`{"host":"edge-1","at":"2026-11-27T12:00:00Z","after":"0.00000000","status":` + status + `}`)
	}
	for name, tt := range map[string]struct {
		body []byte
		gzip bool
		code int
	}{
		"no JSON":               {body: []byte("<html>"), code: 400},
		"no gzip":               {body: good, gzip: true, code: 400},
		"a bomb":                {body: zipped(bytes.Repeat([]byte(" "), 64<<20)), gzip: true, code: 413},
		"a large body":          {body: bytes.Repeat([]byte(" "), api.ReportPacked+1), code: 413},
		"another host":          {body: bytes.Replace(good, []byte(`"host":"edge-1","gitring"`), []byte(`"host":"edge-2","gitring"`), 1), code: 403},
		"no host":               {body: []byte(`{"status":{}}`), code: 403},
		"no status":             {body: []byte(`{"host":"edge-1","at":"2026-11-27T12:00:00Z","after":""}`), code: 400},
		"a status of a list":    {body: []byte(`{"host":"edge-1","at":"2026-11-27T12:00:00Z","status":[1]}`), code: 400},
		"no clock":              {body: []byte(`{"host":"edge-1","status":{}}`), code: 400},
		"a cursor of text":      {body: of(`"after":"../../x"`), code: 400},
		"lines after nothing":   {body: of(`"lines":[{"hash":"0a0a0a0a","event":` + line + `}]`), code: 400},
		"a line without a hash": {body: of(`"after":"0.00000000","lines":[{"hash":"","event":` + line + `}]`), code: 400},
		"a gap of no kind":      {body: of(`"after":"0.00000000","gap":"x","lines":[{"hash":"0a0a0a0a","event":` + line + `}]`), code: 400},
		"a line of another seq": {body: of(`"after":"0.00000000","lines":[{"hash":"0a0a0a0a","event":{"seq":-1,"kind":"x","at":"2026-11-27T12:00:00Z"}}]`), code: 400},
		"a long line":           {body: of(`"after":"0.00000000","lines":[{"hash":"0a0a0a0a","event":{"seq":1,"kind":"` + strings.Repeat("x", mostLine) + `","at":"2026-11-27T12:00:00Z"}}]`), code: 413},
		"the status of another": {body: reportOf("edge-1", p.now(), status("edge-2", ring.SyncSynced, ring.Healthy), "0.00000000", ""), code: 400},
		"many empty values":     {body: told(`{"host":"edge-1","sources":[{"apps":[` + strings.Repeat(`{},`, mostValues+1) + `{}]}]}`), code: 413},
		"many sources":          {body: told(`{"host":"edge-1","sources":[` + strings.Repeat(`{},`, mostSources) + `{}]}`), code: 413},
		"many lines":            {body: of(`"after":"0.00000000","lines":[` + strings.TrimSuffix(strings.Repeat(`{},`, mostLines+1), ",") + `]`), code: 413},
	} {
		p.after(time.Second)
		change := func(r *http.Request) {}
		if tt.gzip {
			change = asGzip
		}
		out := p.ask("POST", "/v1/report", token, tt.body, change)
		require.Equal(t, tt.code, out.Code, "%s: %s", name, out.Body)
	}
	require.Empty(t, p.keptOf(token))
	p.after(time.Second)
	require.Equal(t, 200, p.ask("POST", "/v1/report", token, zipped(good), asGzip).Code)
	newer := bytes.Replace(good, []byte(`"gitring"`), []byte(`"of a newer release":{"x":1},"gitring"`), 1)
	p.after(time.Second)
	require.Equal(t, 200, p.ask("POST", "/v1/report", token, newer).Code, "what a newer host says besides is left out")
}

func TestASilentHostKeepsNothingOfItsColour(t *testing.T) {
	p := newPlace(t)
	reader := p.token("ann", "read")
	one, two := p.token("edge-1", "report:edge-1"), p.token("edge-2", "report:edge-2")
	synced := status("edge-1", ring.SyncSynced, ring.Healthy)
	p.tell(one, reportOf("edge-1", p.now(), synced, "", ""))
	p.tell(two, reportOf("edge-2", p.now(), status("edge-2", ring.SyncSynced, ring.Healthy), "", ""))
	page := p.ask("GET", "/hosts", reader, nil).Body.String()
	require.Contains(t, page, `<span class="mark good"><i class="shape dot" aria-hidden="true"></i>2 Synced</span>`)
	tag, err := p.hub.Tag(t.Context(), "")
	require.NoError(t, err)
	p.after(2 * time.Minute)
	p.tell(two, reportOf("edge-2", p.now(), status("edge-2", ring.SyncSynced, ring.Healthy), "", ""))
	require.False(t, p.fleet(reader)[1].Silent)
	now, err := p.hub.Tag(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, tag, now, "nothing that people see has changed")
	p.after(time.Minute)
	all := p.fleet(reader)
	require.Equal(t, []string{"edge-1", "edge-2"}, []string{all[0].Key, all[1].Key}, "what is wrong comes first")
	require.True(t, all[0].Silent)
	require.False(t, all[1].Silent)
	now, err = p.hub.Tag(t.Context(), "")
	require.NoError(t, err)
	require.NotEqual(t, tag, now, "a live page is told")
	p.after(9 * time.Minute)
	p.tell(two, reportOf("edge-2", p.now(), status("edge-2", ring.SyncSynced, ring.Healthy), "", ""))
	page = p.ask("GET", "/hosts", reader, nil).Body.String()
	row := page[strings.Index(page, `id="host-edge-1"`):]
	row = row[:strings.Index(row, "</li>")]
	require.Contains(t, row, `silent</span>`)
	require.Contains(t, row, "for 12 min (was Synced)")
	require.NotContains(t, row, "good")
	require.NotContains(t, row, "dot")
	host := p.ask("GET", "/hosts/edge-1", reader, nil).Body.String()
	require.Contains(t, host, `class="off stale"`, "no state of it keeps its colour")
	require.Contains(t, host, "for 12 min: this is what it said last")
	require.NotContains(t, p.ask("GET", "/hosts/edge-2", reader, nil).Body.String(), "stale")
	p.open()
	require.True(t, p.fleet(reader)[0].Silent, "a start of the hub is no report")
	p.tell(one, reportOf("edge-1", p.now(), synced, "", ""))
	require.False(t, p.fleet(reader)[0].Silent)
	require.Contains(t, p.ask("GET", "/hosts", reader, nil).Body.String(), "2 Synced")
}

func TestTwoTokensOfOneHostAreTwoRows(t *testing.T) {
	p := newPlace(t)
	reader := p.token("ann", "read,metrics")
	a, b := p.token("a", "report:edge-1"), p.token("b", "report:edge-1")
	p.tell(a, reportOf("edge-1", p.now(), status("edge-1", ring.SyncSynced, ring.Healthy), "", ""))
	require.Equal(t, "edge-1", p.fleet(reader)[0].Key)
	p.tell(b, reportOf("edge-1", p.now(), status("edge-1", ring.SyncDegraded, ring.Degraded), "", ""))
	all := p.fleet(reader)
	require.Len(t, all, 2)
	require.Equal(t, []string{"edge-1~" + idOf(b), "edge-1~" + idOf(a)}, []string{all[0].Key, all[1].Key})
	require.Contains(t, all[0].Told[0], idOf(a))
	require.Contains(t, all[1].Told[0], idOf(b))
	require.Equal(t, http.StatusNotFound, p.ask("GET", "/hosts/edge-1", reader, nil).Code)
	require.Equal(t, http.StatusOK, p.ask("GET", "/hosts/edge-1~"+idOf(a), reader, nil).Code)
	text := p.ask("GET", "/metrics", reader, nil).Body.String()
	require.Contains(t, text, `gitring_source_sync{host="edge-1~`+idOf(a)+`",source="prod",sync="Synced"} 1`)
	p.revoke(a)
	all = p.fleet(reader)
	require.Len(t, all, 1)
	require.Equal(t, "edge-1", all[0].Key, "an old token gives way: its row is the host's no more")
	require.Empty(t, all[0].Told)
	p.revoke(b)
	all = p.fleet(reader)
	require.Len(t, all, 1)
	require.Contains(t, all[0].Told[0], "its token counts no more")
}

func TestAWrongClockIsTold(t *testing.T) {
	p := newPlace(t)
	reader, token := p.token("ann", "read"), p.token("edge-1", "report:edge-1")
	for ahead, says := range map[time.Duration]string{
		29 * time.Second: "", -29 * time.Second: "", 45 * time.Second: "about 50 s ahead of", -5 * time.Minute: "about 5 min behind", 26 * time.Hour: "about 26 h ahead of",
	} {
		p.tell(token, reportOf("edge-1", p.now().Add(ahead).Add(100*time.Millisecond), status("edge-1", ring.SyncSynced, ring.Healthy), "", ""))
		told := strings.Join(p.fleet(reader)[0].Told, "|")
		if says == "" {
			require.Empty(t, told)
		} else {
			require.Contains(t, told, says)
		}
		require.False(t, p.fleet(reader)[0].Silent, "the hub's own clock says when it was heard")
	}
	for at, says := range map[time.Time]string{noon.AddDate(-400, 0, 0): "h behind", noon.AddDate(400, 0, 0): "h ahead of"} { // further off than a duration can say
		p.tell(token, reportOf("edge-1", at, status("edge-1", ring.SyncSynced, ring.Healthy), "", ""))
		require.Contains(t, strings.Join(p.fleet(reader)[0].Told, "|"), says)
	}
}

// lossy hands requests to the hub that is there now, and loses some, and some answers.
type lossy struct {
	open sync.RWMutex // held by requests, and alone by who starts the hub anew

	mu   sync.Mutex
	p    *place
	rng  *rand.Rand
	lose float64
	lost int
	came int
}

func (l *lossy) asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.came
}

func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.open.RLock()
	defer l.open.RUnlock()
	l.mu.Lock()
	l.came++
	request, answer := l.rng.Float64() < l.lose, l.rng.Float64() < l.lose
	web := l.p.web
	if request || answer {
		l.lost++
	}
	l.mu.Unlock()
	if request {
		panic(http.ErrAbortHandler)
	}
	if answer {
		web.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	web.ServeHTTP(w, r)
}

// Real reporters, a hub that loses requests and answers and is started anew again and again: no line is
// lost, and none is there twice.
func TestNoLineIsLostOrDoubled(t *testing.T) {
	const hosts, lines = 6, 60
	p := newPlace(t)
	l := &lossy{p: p, rng: rand.New(rand.NewPCG(1, 2)), lose: 0.1}
	server := httptest.NewServer(l)
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	var all []*simulated
	for i := range hosts {
		h := newSimulated(t, fmt.Sprint("edge-", i), server.URL, p.token(fmt.Sprint("edge-", i), fmt.Sprint("report:edge-", i)))
		all = append(all, h)
		running.Go(func() { _ = h.reporter.Run(ctx) })
	}
	for n := range lines {
		for _, h := range all {
			h.append(ring.Event{Kind: ring.RolloutBegan, Reason: fmt.Sprint("line ", n)})
		}
		if n%6 == 5 {
			p.after(time.Second)
			l.open.Lock()
			p.open() // as after kill -9: nothing is handed over but what is on disk
			l.open.Unlock()
		}
		p.after(500 * time.Millisecond)
		was := l.asked()
		require.Eventually(t, func() bool { return l.asked() > was }, time.Minute, time.Millisecond)
	}
	l.mu.Lock()
	l.lose = 0
	require.NotZero(t, l.lost)
	l.mu.Unlock()
	for _, h := range all {
		require.Eventually(t, func() bool { p.after(time.Second); return slices.Equal(h.journal.all(), p.keptOf(h.token)) }, 2*time.Minute, 200*time.Millisecond, h.name)
	}
}

// simulated is a host with a real reporter.
type simulated struct {
	name, token string
	reporter    *report.Reporter

	mu       sync.Mutex
	journal  journal
	status   ring.Status
	appended chan struct{}
}

func newSimulated(t *testing.T, name, url, token string) *simulated {
	t.Helper()
	h := &simulated{name: name, token: token, status: status(name, ring.SyncSynced, ring.Healthy), appended: make(chan struct{})}
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	h.reporter = report.New(report.Options{
		Host: name, Gitring: "1.0.0", URL: url, TokenFile: file, Tag: api.StatusTag, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Status:   func(context.Context) (ring.Status, error) { h.mu.Lock(); defer h.mu.Unlock(); return h.status, nil },
		Lines:    h.lines,
		Appended: func() <-chan struct{} { h.mu.Lock(); defer h.mu.Unlock(); return h.appended },
	})
	return h
}

func (h *simulated) append(e ring.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.journal.append(e)
	close(h.appended)
	h.appended = make(chan struct{})
}

func (h *simulated) lines(_ context.Context, after int64, limit int) (out []report.Line, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.journal.lines {
		var e ring.Event
		_ = json.Unmarshal(l.Event, &e)
		if e.Seq > after && len(out) < limit {
			out = append(out, report.Line{Event: e, Hash: l.Hash})
		}
	}
	return out, nil
}

// A hub that was restored from an older copy names an older line, and is told the rest again.
func TestAHubRestoredFromAnOlderCopyIsToldTheRest(t *testing.T) {
	p := newPlace(t)
	token, reader := p.token("edge-1", "report:edge-1"), p.token("ann", "read")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.web.ServeHTTP(w, r) }))
	defer server.Close()
	h := newSimulated(t, "edge-1", server.URL, token)
	told := func() {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.reporter.Run(ctx) }()
		require.Eventually(t, func() bool { p.after(time.Second); return slices.Equal(h.journal.all(), p.keptOf(token)) }, time.Minute, 50*time.Millisecond)
		stop()
		require.NoError(t, <-ended)
	}
	for range 5 {
		h.append(ring.Event{Kind: ring.RolloutBegan})
	}
	told()
	older := t.TempDir()
	require.NoError(t, os.CopyFS(older, os.DirFS(p.state)))
	for range 5 {
		h.append(ring.Event{Kind: ring.RolloutCompleted})
	}
	told()
	require.NoError(t, os.RemoveAll(p.state))
	require.NoError(t, os.CopyFS(p.state, os.DirFS(older)))
	p.open()
	require.Len(t, p.keptOf(token), 5)
	told()
	require.NoError(t, os.RemoveAll(p.state))
	p.open()
	told()
	require.NotContains(t, strings.Join(p.fleet(reader)[0].Told, "|"), "journal", "no line is missing: the host had all of them")
	require.Empty(t, h.reporter.Trouble())
}

// What a host says in words, and how many instances it wants, costs the hub and other hosts' pages
// little; and a commit that is none leads nowhere.
func TestAHostThatExaggeratesCostsLittle(t *testing.T) {
	p := newPlace(t)
	token, reader := p.token("edge-1", "report:edge-1"), p.token("alice", "read")
	st := status("edge-1", ring.SyncSynced, ring.Healthy)
	src := &st.Sources[0]
	src.Commit, src.Subject, src.Reason = "../../x", strings.Repeat("long ", 30_000), strings.Repeat("longer ", 30_000)
	src.Apps[0].Services[0].Wanted = 2_000_000_000
	p.tell(token, reportOf("edge-1", p.now(), st, "0.00000000", ""))
	for _, path := range []string{"/v1/fleet", "/hosts", "/hosts/edge-1/"} {
		p.after(time.Second)
		out := p.ask("GET", path, reader, nil)
		require.Equal(t, 200, out.Code, "%s: %s", path, out.Body)
		if path != "/hosts/edge-1/" { // a host's own words fill its own page alone
			require.Less(t, out.Body.Len(), 64<<10, path)
			require.NotContains(t, out.Body.String(), "../../x", path)
		}
	}
}
