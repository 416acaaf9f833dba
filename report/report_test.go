package report

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gitring/gitring/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "grt_abcdefgh_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

// host is what a reporter tells of.
type host struct {
	mu       sync.Mutex
	lines    []Line
	status   ring.Status
	appended chan struct{}
	log      bytes.Buffer
	file     string
	asked    int // for the status
}

func newHost(t *testing.T, lines int) *host {
	h := &host{appended: make(chan struct{}), status: ring.Status{Host: "edge-1", Sources: []ring.SourceStatus{{Name: "prod"}}}, file: filepath.Join(t.TempDir(), "token")}
	require.NoError(t, os.WriteFile(h.file, []byte(secret+"\n"), 0o600))
	for range lines {
		h.append(ring.RolloutBegan)
	}
	return h
}

func (h *host) append(kind string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := int64(len(h.lines)) + 1
	h.lines = append(h.lines, Line{Event: ring.Event{Seq: n, Kind: kind}, Hash: fmt.Sprintf("%08x", n)})
	close(h.appended)
	h.appended = make(chan struct{})
}

func (h *host) say(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Sources = []ring.SourceStatus{{Name: "prod", Reason: reason}}
}

func (h *host) reporter(url string, transport http.RoundTripper) *Reporter {
	r := New(Options{
		Host: "edge-1", Gitring: "1.0.0", URL: url, TokenFile: h.file, Now: time.Now, Log: slog.New(slog.NewTextHandler(&h.log, nil)),
		Tag: func(st *ring.Status) string { return st.Sources[0].Reason },
		Status: func(context.Context) (ring.Status, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.asked++
			return h.status, nil
		},
		Lines: func(_ context.Context, after int64, limit int) (out []Line, err error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, l := range h.lines {
				if l.Seq > after && len(out) < limit {
					out = append(out, l)
				}
			}
			return out, nil
		},
		Appended: func() <-chan struct{} { h.mu.Lock(); defer h.mu.Unlock(); return h.appended },
	})
	if transport != nil {
		r.transport = transport
	}
	return r
}

// hub answers without a network, so that time can be a bubble's.
type hub struct {
	mu     sync.Mutex
	answer func(in *ring.HostReport) (code int, body string)
	at     []time.Time
	in     []ring.HostReport
}

func (h *hub) RoundTrip(r *http.Request) (*http.Response, error) {
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	var in ring.HostReport
	if err := json.NewDecoder(z).Decode(&in); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.in = append(h.at, time.Now()), append(h.in, in)
	code, body := h.answer(&in)
	if code == 0 {
		return nil, errors.New("connection refused by " + r.Header.Get("Authorization"))
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
}

// upTo is a hub as it should be, one that has nothing at first.
func upTo() func(in *ring.HostReport) (int, string) {
	at := "0.00000000"
	return func(in *ring.HostReport) (int, string) {
		if n := len(in.Lines); n > 0 && in.After == at {
			var e ring.Event
			_ = json.Unmarshal(in.Lines[n-1].Event, &e)
			at = fmt.Sprintf("%d.%s", e.Seq, in.Lines[n-1].Hash)
		}
		return 200, at
	}
}

// during runs a reporter for a while, in a bubble of time.
func during(t *testing.T, d time.Duration, lines int, answer func(in *ring.HostReport) (int, string), then func(h *host, u *hub, r *Reporter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h, u := newHost(t, lines), &hub{answer: answer}
		r := h.reporter("https://hub.example.org", u)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = r.Run(ctx) }()
		time.Sleep(d)
		synctest.Wait()
		then(h, u, r)
		stop()
		<-ended
	})
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.in)
}

func TestAHubIsToldWithinTwoSecondsOrAfterAMinute(t *testing.T) {
	during(t, time.Minute, 1200, upTo(), func(h *host, u *hub, r *Reporter) {
		told := 0
		for _, in := range u.in {
			require.LessOrEqual(t, len(in.Lines), linesAtOnce)
			told += len(in.Lines)
		}
		require.Equal(t, 1200, told, "each line once")
		require.Empty(t, u.in[0].After, "it asks first")
		require.Less(t, u.at[3].Sub(u.at[0]), 3*time.Second, "a long journal at once")
		before := u.count()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		n := u.count() - before
		require.GreaterOrEqual(t, n, 9)
		require.LessOrEqual(t, n, 14, "once a minute, and up to a fifth sooner")
		for range 5 {
			before = u.count()
			h.append(ring.RolloutCompleted)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			require.Greater(t, u.count(), before, "a line")
			require.Len(t, u.in[u.count()-1].Lines, 1)
			time.Sleep(7 * time.Second)
			synctest.Wait()
			before = u.count()
			h.say(fmt.Sprint("readiness moved ", before))
			time.Sleep(2 * time.Second)
			synctest.Wait()
			require.Greater(t, u.count(), before, "no line, and another status")
			time.Sleep(11 * time.Second)
		}
		require.Empty(t, r.Trouble())
	})
}

// An answer that is lost is as if the hub had been away for a moment: what it took, it is not told again,
// and a way that loses many makes no host late.
func TestAWayThatLosesManyAnswersMakesNoHostLate(t *testing.T) {
	right, rng := upTo(), rand.New(rand.NewPCG(1, 2))
	lost, told := 0, 0
	answer := func(in *ring.HostReport) (int, string) {
		_, before := right(&ring.HostReport{})
		code, at := right(in)
		if at != before {
			told += len(in.Lines)
		}
		if rng.Float64() < 0.1 {
			lost++
			return 0, ""
		}
		return code, at
	}
	during(t, time.Second, 0, answer, func(h *host, u *hub, r *Reporter) {
		waiting := 0
		for n := range 20 * 60 {
			h.append(ring.RolloutBegan)
			time.Sleep(time.Second)
			synctest.Wait()
			u.mu.Lock()
			waiting += n + 1 - told
			u.mu.Unlock()
		}
		require.Greater(t, lost, 20)
		require.Less(t, waiting/(20*60), 2, "seconds that a line waits")
	})
}

// A hub that was taken over may answer what it likes: what it can cause is bounded, and none of it is
// told but in our own words.
func TestAHubThatLiesCausesLittle(t *testing.T) {
	right := upTo()
	n := 0
	for name, tt := range map[string]struct {
		answer func(in *ring.HostReport) (int, string)
		most   int // reports in an hour
		says   string
	}{
		"it refuses":             {func(*ring.HostReport) (int, string) { return 500, "x" }, 90, "answered 500"},
		"it is not there":        {func(*ring.HostReport) (int, string) { return 0, "" }, 90, "cannot reach the hub"},
		"it knows no token":      {func(*ring.HostReport) (int, string) { return 401, "<script>" }, 90, "does not have the one of report.token_file"},
		"it leads elsewhere":     {func(*ring.HostReport) (int, string) { return 307, "" }, 90, "a redirect"},
		"it is full":             {func(*ring.HostReport) (int, string) { return 507, "" }, 90, "it has no room for more of the journal"},
		"it answers a page":      {func(*ring.HostReport) (int, string) { return 200, "<html><script>alert(1)</script>" }, 90, "something else than a line"},
		"it answers nothing":     {func(*ring.HostReport) (int, string) { return 200, "" }, 90, "something else than a line"},
		"a cursor and a byte":    {func(*ring.HostReport) (int, string) { return 200, "1.00000001\n" }, 90, "something else than a line"},
		"it answers a flood":     {func(*ring.HostReport) (int, string) { return 200, strings.Repeat("1", 64<<20) }, 90, "something else than a line"},
		"always from the start":  {func(*ring.HostReport) (int, string) { return 200, "0.00000000" }, 90, ""},
		"a line that never was":  {func(*ring.HostReport) (int, string) { return 200, "999999.ffffffff" }, 90, ""},
		"another line each time": {func(*ring.HostReport) (int, string) { n++; return 200, fmt.Sprintf("%d.%08x", 1+n%9, 1+n%9) }, 120, ""},
		"right, then anew, again": {func(in *ring.HostReport) (int, string) {
			if n++; n%3 == 0 {
				return 200, "0.00000000"
			}
			return right(in)
		}, 700, ""},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, time.Hour, 2000, tt.answer, func(h *host, u *hub, r *Reporter) {
				require.NotZero(t, u.count())
				require.LessOrEqual(t, u.count(), tt.most)
				logged := h.log.String()
				require.NotContains(t, logged, secret)
				require.NotContains(t, logged, "script")
				require.LessOrEqual(t, strings.Count(logged, "\n"), 2, "told once: %s", logged)
				if tt.says != "" {
					require.Contains(t, r.Trouble(), tt.says)
					require.Contains(t, r.Trouble(), "has taken no report since")
					require.NotContains(t, r.Trouble(), secret)
				}
			})
		})
	}
}

func TestAHubThatComesBackIsToldOn(t *testing.T) {
	right, down := upTo(), false
	during(t, time.Minute, 3, func(in *ring.HostReport) (int, string) {
		if down {
			return 503, ""
		}
		return right(in)
	}, func(h *host, u *hub, r *Reporter) {
		u.mu.Lock()
		down = true
		u.mu.Unlock()
		time.Sleep(3 * time.Minute)
		require.Empty(t, r.Trouble(), "for a moment alone")
		h.append(ring.RolloutFailed)
		time.Sleep(time.Hour)
		require.Contains(t, r.Trouble(), "the hub took the last report at")
		u.mu.Lock()
		down = false
		u.mu.Unlock()
		before := u.count()
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		require.Empty(t, r.Trouble())
		missed := 0
		for _, in := range u.in[before:] {
			missed += len(in.Lines)
		}
		require.Equal(t, 1, missed, "what it missed, once")
	})
}

// What of the journal the hub lacks, by the line that it names: the rules one by one.
func TestWhichLinesFollowTheHubs(t *testing.T) {
	h := newHost(t, 9)
	h.lines = h.lines[4:] // the first is 5
	for cursor, want := range map[string]struct {
		after int64
		gap   string
	}{
		"9.00000009": {9, ""}, "5.00000005": {5, ""}, "7.00000007": {7, ""},
		"4.00000004": {4, ring.GapTrimmed}, "1.00000001": {1, ring.GapTrimmed}, "0.00000000": {0, ring.GapTrimmed},
		"7.0000ffff": {0, ring.GapReplaced}, "10.0000000a": {0, ring.GapReplaced}, "99999.ffffffff": {0, ring.GapReplaced},
	} {
		c, ok := ring.ParseCursor(cursor)
		require.True(t, ok)
		after, gap, err := h.reporter("https://hub.example.org", nil).follows(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, want.after, after, cursor)
		require.Equal(t, want.gap, gap, cursor)
	}
	none := newHost(t, 0)
	after, gap, err := none.reporter("https://hub.example.org", nil).follows(t.Context(), ring.Cursor{})
	require.NoError(t, err)
	require.Zero(t, after)
	require.Empty(t, gap)
}

// Over a real network: no redirect is followed, little is read, and none of it is unpacked.
func TestLittleIsReadOfAnAnswer(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "a redirect, which is not followed"},
		"a body without end": {func(w http.ResponseWriter, _ *http.Request) {
			for range 1 << 10 {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
			panic("all of it was read")
		}, "something else than a line"},
		"a head without end": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 1000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 100))
			}
		}, "cannot reach the hub"},
		"a packed answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte("1.00000001"))
			_ = z.Close()
		}, "something else than a line"},
		"right": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "1.00000001") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tt.answer)
			defer server.Close()
			h := newHost(t, 1)
			r := h.reporter(server.URL, nil)
			m, err := r.make(t.Context(), time.Now())
			require.NoError(t, err)
			at, err := r.send(t.Context(), m)
			if tt.says == "" {
				require.NoError(t, err)
				require.Equal(t, ring.Cursor{Seq: 1, Hash: "00000001"}, at)
			} else {
				require.ErrorContains(t, err, tt.says)
				require.NotContains(t, err.Error(), secret)
			}
			r.transport.(*http.Transport).CloseIdleConnections()
		})
	}
	require.Zero(t, elsewhere)
}

func TestTheTokenIsReadAtEachReportAndNothingElseIsSentForOne(t *testing.T) {
	h := newHost(t, 0)
	var shown []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, "0.00000000")
	}))
	defer server.Close()
	r := h.reporter(server.URL, nil)
	other := strings.Replace(secret, "abcdefgh", "hgfedcba", 1)
	for _, content := range []string{secret, other} {
		require.NoError(t, os.WriteFile(h.file, []byte(content+"\n"), 0o600))
		_, err := r.once(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, []string{"Bearer " + secret, "Bearer " + other}, shown)
	for _, content := range []string{"", "-----BEGIN OPENSSH PRIVATE KEY-----", "root:x:0:0", secret + secret, "grt_short"} {
		require.NoError(t, os.WriteFile(h.file, []byte(content), 0o600))
		_, err := r.once(t.Context())
		require.ErrorContains(t, err, "holds no token")
		require.NotContains(t, err.Error(), "BEGIN")
	}
	require.NoError(t, os.Remove(h.file))
	_, err := r.once(t.Context())
	require.ErrorContains(t, err, "cannot read report.token_file")
	require.Len(t, shown, 2)
	r.transport.(*http.Transport).CloseIdleConnections()
}
