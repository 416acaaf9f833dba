package api

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	secretOne = []byte("0123456789abcdef0123456789abcdef")
	secretTwo = []byte("fedcba9876543210fedcba9876543210")
	quiet     = slog.New(slog.DiscardHandler)
)

// The limits of docs/design/trust.md#limits.
const (
	hookBody   = 256 << 10
	hookWithin = 5 * time.Second
	hookAtOnce = 32
	hookRate   = 10
)

func sign(secret []byte, body string) string {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(body))
	return hex.EncodeToString(m.Sum(nil))
}

// door is a Webhooks that counts its pokes.
type door struct {
	*Webhooks
	mu    sync.Mutex // guards what follows
	pokes map[string]int
	pulls map[string]int
}

func newDoor(t testing.TB) *door {
	t.Helper()
	d := &door{pokes: map[string]int{}, pulls: map[string]int{}}
	count := func(of map[string]int) func(string) {
		return func(source string) {
			d.mu.Lock()
			defer d.mu.Unlock()
			of[source]++
		}
	}
	var err error
	d.Webhooks, err = NewWebhooks([]Hook{
		{Source: "prod", Forge: GitHub, Branch: "main", Secret: [][]byte{secretOne, secretTwo}},
		{Source: "tea", Forge: Gitea, Branch: "main", Secret: [][]byte{secretOne}},
		{Source: "forge", Forge: Forgejo, Branch: "main", Secret: [][]byte{secretOne}},
		{Source: "lab", Forge: GitLab, Branch: "main", Secret: [][]byte{secretOne, secretTwo}},
		{Source: "signing-lab", Forge: GitLab, Branch: "main", Secret: [][]byte{keyOf(secretOne), secretTwo}},
		{Source: "cloud", Forge: Bitbucket, Branch: "main", Secret: [][]byte{secretOne}},
		{Source: "dc", Forge: BitbucketDC, Branch: "main", Secret: [][]byte{secretOne}},
		{Source: "other", Forge: Generic, Branch: "main", Secret: [][]byte{secretOne, secretTwo}},
		{Source: "open", Forge: GitHub},
	}, HookOptions{Poke: count(d.pokes), Pulls: count(d.pulls), Log: quiet})
	require.NoError(t, err)
	d.rate = newRate(1 << 20)
	return d
}

// keyOf is GitLab's signing token with these bytes for its key.
func keyOf(key []byte) []byte {
	return []byte("whsec_" + base64.StdEncoding.EncodeToString(key))
}

func (d *door) poked(source string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pokes[source]
}

func (d *door) ask(r *http.Request) int {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	if w.Body.Len() > 0 {
		panic("the body of an answer is not empty: " + w.Body.String())
	}
	return w.Code
}

func hookRequest(path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func TestWebhook(t *testing.T) {
	const (
		hub  = "X-Hub-Signature-256"
		body = `{"ref":"refs/heads/main"}`
	)
	right := "sha256=" + sign(secretOne, body)
	for _, tc := range []struct {
		name  string
		r     *http.Request
		code  int
		pokes string // the source that is poked
	}{
		{"a signed push", hookRequest("/v1/webhook/prod", body, hub, right, "X-GitHub-Event", "push"), 202, "prod"},
		{"signed with the other secret", hookRequest("/v1/webhook/prod", body, hub, "sha256="+sign(secretTwo, body), "X-GitHub-Event", "push"), 202, "prod"},
		{"without the name of an event", hookRequest("/v1/webhook/prod", body, hub, right), 202, "prod"},
		{"a body that is no JSON is nobody's business", hookRequest("/v1/webhook/prod", "\x00{{", hub, "sha256="+sign(secretOne, "\x00{{"), "X-GitHub-Event", "push"), 202, "prod"},
		{"an empty body", hookRequest("/v1/webhook/prod", "", hub, "sha256="+sign(secretOne, ""), "X-GitHub-Event", "push"), 202, "prod"},
		{"a ping", hookRequest("/v1/webhook/prod", body, hub, right, "X-GitHub-Event", "ping"), 202, ""},
		{"another event", hookRequest("/v1/webhook/prod", body, hub, right, "X-GitHub-Event", "issues"), 202, ""},
		{"no signature", hookRequest("/v1/webhook/prod", body, "X-GitHub-Event", "push"), 401, ""},
		{"an empty signature", hookRequest("/v1/webhook/prod", body, hub, ""), 401, ""},
		{"only the prefix", hookRequest("/v1/webhook/prod", body, hub, "sha256="), 401, ""},
		{"without the prefix", hookRequest("/v1/webhook/prod", body, hub, sign(secretOne, body)), 401, ""},
		{"a short signature", hookRequest("/v1/webhook/prod", body, hub, right[:20]), 401, ""},
		{"a long signature", hookRequest("/v1/webhook/prod", body, hub, right+"00"), 401, ""},
		{"no hex", hookRequest("/v1/webhook/prod", body, hub, "sha256="+strings.Repeat("zz", 32)), 401, ""},
		{"of another body", hookRequest("/v1/webhook/prod", body+" ", hub, right), 401, ""},
		{"by another secret", hookRequest("/v1/webhook/prod", body, hub, "sha256="+sign([]byte("other"), body)), 401, ""},
		{"SHA-1 is not enough", hookRequest("/v1/webhook/prod", body, "X-Hub-Signature", "sha1=0123456789012345678901234567890123456789"), 401, ""},
		{"a secret in the URL is none", hookRequest("/v1/webhook/prod?secret="+string(secretOne), body), 401, ""},
		{"gitea", hookRequest("/v1/webhook/tea", body, "X-Gitea-Signature", sign(secretOne, body), "X-Gitea-Event", "push"), 202, "tea"},
		{"gitea: another event", hookRequest("/v1/webhook/tea", body, "X-Gitea-Signature", sign(secretOne, body), "X-Gitea-Event", "release"), 202, ""},
		{"gitea: bare hex only", hookRequest("/v1/webhook/tea", body, "X-Gitea-Signature", right), 401, ""},
		{"forgejo", hookRequest("/v1/webhook/forge", body, "X-Forgejo-Signature", sign(secretOne, body), "X-Forgejo-Event", "push"), 202, "forge"},
		{"forgejo: the header of another forge", hookRequest("/v1/webhook/forge", body, "X-Gitea-Signature", sign(secretOne, body)), 401, ""},
		{"no secret is no endpoint", hookRequest("/v1/webhook/open", body, hub, "sha256="+sign(nil, body)), 404, ""},
		{"an unknown source", hookRequest("/v1/webhook/nobody", body, hub, right), 404, ""},
		{"no source", hookRequest("/v1/webhook/", body, hub, right), 404, ""},
		{"something below a source", hookRequest("/v1/webhook/prod/x", body, hub, right), 404, ""},
		{"a verb of the socket", hookRequest("/v1/sync", body), 404, ""},
		{"the status of the socket", httptest.NewRequest(http.MethodGet, "/v1/status", nil), 404, ""},
		{"the root", httptest.NewRequest(http.MethodGet, "/", nil), 404, ""},
		{"GET", httptest.NewRequest(http.MethodGet, "/v1/webhook/prod", nil), 405, ""},
		{"PUT", httptest.NewRequest(http.MethodPut, "/v1/webhook/prod", nil), 405, ""},
		{"healthz", httptest.NewRequest(http.MethodGet, "/healthz", nil), 200, ""},
		{"POST healthz", hookRequest("/healthz", ""), 405, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDoor(t)
			require.Equal(t, tc.code, d.ask(tc.r))
			want := map[string]int{}
			if tc.pokes != "" {
				want[tc.pokes] = 1
			}
			require.Equal(t, want, d.pokes)
		})
	}
}

func TestV59AReplayIsOneMoreLook(t *testing.T) {
	d := newDoor(t)
	for range 5 {
		require.Equal(t, 202, d.ask(hookRequest("/v1/webhook/prod", "x", "X-Hub-Signature-256", "sha256="+sign(secretOne, "x"), "X-GitHub-Delivery", "1")))
	}
	require.Equal(t, 5, d.poked("prod"))
}

func TestTooLarge(t *testing.T) {
	full := strings.Repeat("x", hookBody)
	signed := func(body string) *http.Request {
		return hookRequest("/v1/webhook/prod", body, "X-Hub-Signature-256", "sha256="+sign(secretOne, body))
	}
	d := newDoor(t)
	require.Equal(t, 202, d.ask(signed(full)), "256 KiB are not too large")

	unread := signed(full + "x")
	unread.Body = io.NopCloser(iotest.ErrReader(fmt.Errorf("read although Content-Length says it all")))
	require.Equal(t, 413, d.ask(unread))

	chunked := signed(full + "x")
	chunked.ContentLength = -1
	require.Equal(t, 413, d.ask(chunked), "while reading")
	require.Equal(t, 1, d.poked("prod"))
}

func TestABodyThatBreaksOff(t *testing.T) {
	d := newDoor(t)
	r := hookRequest("/v1/webhook/prod", "x", "X-Hub-Signature-256", "sha256="+sign(secretOne, "x"))
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	require.Equal(t, 408, d.ask(r))
	require.Zero(t, d.poked("prod"))
}

func TestTenASecondAndAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t)
		d.rate = newRate(hookRate)
		ask := func(from string) int {
			r := hookRequest("/v1/webhook/prod", "x", "X-Hub-Signature-256", "sha256="+sign(secretOne, "x"))
			r.RemoteAddr = from
			return d.ask(r)
		}
		for range 10 {
			require.Equal(t, 202, ask("192.0.2.1:1000"))
		}
		require.Equal(t, 429, ask("192.0.2.1:1001"), "the port makes no other address")
		require.Equal(t, 202, ask("192.0.2.2:1000"))
		other := hookRequest("/v1/webhook/tea", "x", "X-Gitea-Signature", sign(secretOne, "x"))
		other.RemoteAddr = "192.0.2.1:1000"
		require.Equal(t, 202, d.ask(other), "one push is news to every source of a repository")
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, 202, ask("192.0.2.1:1000"))
		require.Equal(t, 429, ask("192.0.2.1:1000"))
		time.Sleep(time.Hour)
		for range 10 {
			require.Equal(t, 202, ask("192.0.2.1:1000"))
		}
		require.Equal(t, 429, ask("192.0.2.1:1000"), "an hour of silence saves up no more than a second")
		for i := range 10 {
			require.Equal(t, 202, ask(fmt.Sprintf("[2001:db8::%x]:1", i)))
		}
		require.Equal(t, 429, ask("[2001:db8::ffff]:1"), "one /64 is one address")
		require.Equal(t, 202, ask("[2001:db8:0:1::1]:1"))
		require.Equal(t, 429, ask("[::ffff:192.0.2.1]:1"), "a mapped address is the address")
	})
}

func TestAFloodOfAddressesIsBounded(t *testing.T) {
	r := newRate(hookRate)
	now := time.Unix(0, 0)
	taken := 0
	for i := range 3 * rateAddresses {
		if r.allow(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "prod", now) {
			taken++
		}
	}
	require.Equal(t, rateAddresses, taken)
	require.Len(t, r.buckets, rateAddresses)
	require.True(t, r.allow("192.0.2.1:1", "prod", now.Add(time.Second)), "a second later there is room again")
	require.Len(t, r.buckets, 1)
}

func TestThirtyTwoAtOnce(t *testing.T) {
	d := newDoor(t)
	release := make(chan struct{})
	var reading, done sync.WaitGroup
	for range hookAtOnce {
		reading.Add(1)
		done.Go(func() {
			r := hookRequest("/v1/webhook/prod", "", "X-Hub-Signature-256", "sha256="+sign(secretOne, ""))
			var once sync.Once
			r.Body = io.NopCloser(readerFunc(func([]byte) (int, error) {
				once.Do(reading.Done)
				<-release
				return 0, io.EOF
			}))
			r.ContentLength = -1
			d.ask(r)
		})
	}
	reading.Wait()
	ok := func() *http.Request {
		return hookRequest("/v1/webhook/prod", "x", "X-Hub-Signature-256", "sha256="+sign(secretOne, "x"))
	}
	require.Equal(t, 429, d.ask(ok()))
	require.Equal(t, 200, d.ask(httptest.NewRequest(http.MethodGet, "/healthz", nil)))
	close(release)
	done.Wait()
	require.Equal(t, 202, d.ask(ok()))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// Fifty forged requests a second for half a minute, each as large as any may be, from
// as many addresses as they like: two that look right and are not, one that a look at
// the headers is enough for.
func TestAStormOfForgeriesLeavesMemoryFlat(t *testing.T) {
	const requests = 50 * 30
	d := newDoor(t)
	d.rate = newRate(hookRate)
	full := strings.Repeat("x", hookBody)
	next, wrong := 0, http.Header{}
	signAs(Generic, wrong, secretTwo[:31], full, time.Now())
	forge := func() {
		next++
		r := hookRequest("/v1/webhook/prod", "", "X-Hub-Signature-256", "sha256="+strings.Repeat("00", 32))
		switch next % 3 {
		case 1:
			r = hookRequest("/v1/webhook/other", "")
			r.Header = wrong
		case 2:
			r = hookRequest("/v1/webhook/lab", "", "X-Gitlab-Token", full[:1000])
		}
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(full)), -1
		r.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1", next>>8&255, next&255)
		if code := d.ask(r); code != 401 {
			t.Fatalf("answered %d", code)
		}
	}
	for range 50 { // what is made once
		forge()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range requests {
		forge()
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / requests
	t.Logf("%d bytes a request, most of them the test's own", each)
	require.Less(t, each, uint64(hookBody/8), "bodies are kept, or read into memory of their own")
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(2<<20), "two of three buffers, and the addresses")
	require.Empty(t, d.pokes)
}

// Through the listener, and as many at once as connections let: each that is read has a
// buffer, and there are never more of those than are read at one time.
func TestAStormOnTheWirePokesNothingAndIsAnswered(t *testing.T) {
	d := newDoor(t)
	addr := start(t, d.Run)
	full := strings.Repeat("x", hookBody)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var all sync.WaitGroup
	codes := make(chan int, 200)
	for range 8 {
		all.Go(func() {
			for range cap(codes) / 8 {
				r, err := http.NewRequest(http.MethodPost, "http://"+addr+"/v1/webhook/prod", strings.NewReader(full))
				if err != nil {
					panic(err)
				}
				r.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("00", 32))
				res, err := client.Do(r)
				if err != nil {
					codes <- 0
					continue
				}
				_ = res.Body.Close()
				codes <- res.StatusCode
			}
		})
	}
	all.Wait()
	close(codes)
	for code := range codes {
		require.Equal(t, 401, code)
	}
	require.Empty(t, d.pokes)
	res, err := client.Get("http://" + addr + "/healthz")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 200, res.StatusCode)
}

// start runs a server on loopback and returns its address; it is stopped, and
// must stop, at the end of the test.
func start(t *testing.T, run func(context.Context, net.Listener) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return l.Addr().String()
}

func TestOnTheWire(t *testing.T) {
	d := newDoor(t)
	addr := start(t, d.Run)
	talk := func(request string) string {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = io.WriteString(c, request)
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		raw, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Empty(t, raw)
		return res.Status
	}
	post := "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n"
	require.Equal(t, "202 Accepted", talk(post+"X-Hub-Signature-256: sha256="+sign(secretOne, "x")+"\r\nContent-Length: 1\r\n\r\nx"))
	require.Equal(t, "413 Request Entity Too Large", talk(post+"Content-Length: 300000\r\n\r\n"))
	require.Equal(t, "401 Unauthorized", talk(post+"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"))
	require.Equal(t, "200 OK", talk("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"))
	require.Equal(t, "404 Not Found", talk("GET /v1/status HTTP/1.1\r\nHost: h\r\n\r\n"))
	require.Equal(t, 1, d.poked("prod"))
}

func TestASlowBodyIsCutOff(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the 5 s of the limit")
	}
	t.Parallel()
	addr := start(t, newDoor(t).Run)
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	begin := time.Now()
	_, err = io.WriteString(c, "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\nX-Hub-Signature-256: sha256="+sign(secretOne, "0123456789")+"\r\nContent-Length: 10\r\n\r\nx")
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(begin.Add(4*hookWithin)))
	answer, err := io.ReadAll(c)
	require.NoError(t, err, "the connection stays open")
	require.Contains(t, string(answer), "408 Request Timeout")
	require.GreaterOrEqual(t, time.Since(begin), hookWithin-100*time.Millisecond)
}

func TestOpenConnectionsAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	bounded := limitConns(l, 2, connsASecond)
	var near, far []net.Conn
	accept := func() {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		far = append(far, c)
		c, err = bounded.Accept()
		require.NoError(t, err)
		near = append(near, c)
	}
	gone := func(i int) bool {
		wait := 10 * time.Second
		if i != 1 {
			wait = 50 * time.Millisecond // it is there, so nothing comes
		}
		require.NoError(t, far[i].SetReadDeadline(time.Now().Add(wait)))
		_, err := far[i].Read(make([]byte, 1))
		return errors.Is(err, io.EOF)
	}
	accept()
	accept()
	bounded.heard(near[0], http.StateIdle) // it was answered just now
	accept()
	require.False(t, gone(0), "it was heard")
	require.True(t, gone(1), "it waited longest")
	require.False(t, gone(2))
	require.Len(t, bounded.open, 2)
	for _, c := range near {
		_ = c.Close()
		_ = c.Close() // twice frees no other's place
	}
	require.Empty(t, bounded.open)
	for _, c := range far {
		_ = c.Close()
	}
	require.NoError(t, bounded.Close())
	_, err = bounded.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// Of many addresses the one with most connections gives a place up.
func TestTheAddressWithMostConnectionsGivesAPlaceUp(t *testing.T) {
	l := limitConns(nil, 4, connsASecond)
	at := time.Unix(0, 0)
	add := func(from string, since int) *limitedConn {
		c := &limitedConn{from: whose(from), of: l}
		l.open[c] = at.Add(time.Duration(since) * time.Second)
		return c
	}
	add("192.0.2.1:1", 0) // the oldest of all, and alone
	add("192.0.2.2:1", 2)
	want := add("192.0.2.2:2", 1)
	add("192.0.2.3:1", 0)
	require.Same(t, want, l.longest())
}

// Two hundred that say nothing, or half of something, keep nobody from /healthz.
func TestSlowConnectionsDoNotStarveHealthz(t *testing.T) {
	d := newDoor(t)
	d.Limits.AtOnce, d.Limits.Within = 8, time.Minute
	d.slots = make(chan struct{}, d.Limits.AtOnce)
	addr := start(t, d.Run)
	signed := "X-Hub-Signature-256: sha256=" + sign(secretOne, "0123456789") + "\r\nContent-Length: 10\r\n\r\n"
	parts := []string{
		"", "G", "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n", "POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n" + signed,
		"POST /v1/webhook/prod HTTP/1.1\r\nHost: h\r\n" + signed + "x",
	}
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range 200 {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, parts[i%len(parts)])
		require.NoError(t, err)
		if i%10 != 9 {
			continue
		}
		res, err := client.Get("http://" + addr + "/healthz")
		require.NoError(t, err, "beside %d slow ones", i+1)
		_ = res.Body.Close()
		require.Equal(t, 200, res.StatusCode)
	}
}

func TestLoadSecrets(t *testing.T) {
	one, two := string(secretOne), string(secretTwo)
	for _, tc := range []struct {
		name, forge, content string
		want                 [][]byte
		err                  string
	}{
		{"one", GitHub, one, [][]byte{secretOne}, ""},
		{"one with a line end", GitHub, one + "\r\n", [][]byte{secretOne}, ""},
		{"two", GitHub, one + "\n\n" + two + "\n", [][]byte{secretOne, secretTwo}, ""},
		{"three", GitHub, one + "\n" + two + "\n" + one, nil, "at most two"},
		{"empty", GitHub, "\n", nil, "the file is empty"},
		{"short", GitHub, one[:31], nil, "line 1: it has 31 bytes and needs 32"},
		{"the second is short", GitHub, one + "\n" + two[:8], nil, "line 2"},
		{"a plain token and a signing token", GitLab, one + "\n" + string(keyOf(secretTwo)), [][]byte{secretOne, keyOf(secretTwo)}, ""},
		{"a signing token cut off", GitLab, string(keyOf(secretOne))[:40], nil, "line 1: what follows whsec_ is no base64"},
		{"a signing token of 24 bytes", GitLab, string(keyOf(secretOne[:24])), nil, "line 1: the key after whsec_ has 24 bytes and needs 32"},
		{"what begins like a signing token", GitHub, "whsec_" + one, [][]byte{[]byte("whsec_" + one)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o600))
			got, err := LoadSecrets(path, tc.forge)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				require.NotContains(t, err.Error(), one[:8])
				require.NotContains(t, err.Error(), two[:8])
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
	_, err := LoadSecrets(filepath.Join(t.TempDir(), "none"), GitHub)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestUnknownForge(t *testing.T) {
	_, err := NewWebhooks([]Hook{{Source: "prod", Forge: "gitlub", Secret: [][]byte{secretOne}}}, HookOptions{Log: quiet})
	require.EqualError(t, err, `cannot take webhooks for source prod: webhook.forge is "gitlub"; known are github, gitlab, gitea, forgejo, bitbucket, bitbucket-dc and generic`)
	_, err = NewWebhooks([]Hook{{Source: "prod", Forge: GitLab, Secret: [][]byte{[]byte("whsec_" + string(secretOne[:31]) + "!")}}}, HookOptions{Log: quiet})
	require.ErrorContains(t, err, "cannot take webhooks for source prod: its secret is not one of gitlab")
	require.NotContains(t, err.Error(), string(secretOne[:8]))
}
