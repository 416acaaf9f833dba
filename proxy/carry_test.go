package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// drainUntil has the named instances drain until at, beside an active one.
func (b *bench) drainUntil(active string, at time.Time, names ...string) {
	b.t.Helper()
	b.table.Instances = []ring.FrontInstance{{Name: active, State: ring.FrontActive}}
	for _, n := range names {
		b.table.Instances = append(b.table.Instances, ring.FrontInstance{Name: n, State: ring.FrontDraining, Until: at})
	}
	b.send(b.table)
}

func TestAStreamOutlivesASwitchAndEndsAtTheDeadline(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	next := make(chan string)
	b.serve("old", func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		for {
			select {
			case s := <-next:
				_, _ = io.WriteString(w, s)
				_ = rc.Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	b.says("new")
	b.route("old:active")
	res, err := b.client(false).Get(b.url("/events"))
	require.NoError(t, err)
	defer res.Body.Close()
	b.drainUntil("new", time.Now().Add(time.Hour), "old")
	for range 20 { // each is flushed at once
		next <- "tick"
		buf := make([]byte, 4)
		_, err := io.ReadFull(res.Body, buf)
		require.NoError(t, err)
		_, who := b.get(b.client(false), "/")
		require.Equal(t, "new", who)
	}
	require.Equal(t, 1, b.instance("old").InFlight)
	require.Zero(t, b.f.cuts.Load())
	b.drainUntil("new", time.Now().Add(-time.Second), "old")
	_, err = io.ReadAll(res.Body)
	require.Error(t, err)
	b.eventually("drained", func() bool { return b.instance("old").InFlight == 0 })
	require.EqualValues(t, 1, b.f.cuts.Load())
}

func TestAnInstanceThatIsAbsentHasEverythingClosed(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	asked := make(chan struct{}, 1)
	b.serve("old", func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	b.says("new")
	b.route("old:active")
	done := make(chan int, 1)
	go func() {
		res, err := b.client(false).Get(b.url("/"))
		if err != nil {
			done <- 0
			return
		}
		_ = res.Body.Close()
		done <- res.StatusCode
	}()
	<-asked
	b.route("new:active")
	require.Equal(t, 502, <-done)
	require.EqualValues(t, 1, b.f.cuts.Load())
}

// upgrade opens a connection that is HTTP no more.
func (b *bench) upgrade() (net.Conn, *bufio.Reader) {
	b.t.Helper()
	c, err := net.Dial("tcp", b.addr())
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n")
	require.NoError(b.t, err)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	require.NoError(b.t, err)
	require.Equal(b.t, 101, res.StatusCode)
	return c, r
}

// echoes is an instance that upgrades and sends back what it gets, after its own name.
func (b *bench) echoes(name string) {
	b.serve(name, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, name)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, name+" "+line)
		}
	})
}

func TestFiftyWebsocketsAreNotCutBeforeTheDeadline(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.echoes("old")
	b.echoes("new")
	b.route("old:active")
	var conns []net.Conn
	var readers []*bufio.Reader
	for range 50 {
		c, r := b.upgrade()
		conns, readers = append(conns, c), append(readers, r)
	}
	say := func(i int, what string) {
		t.Helper()
		_, err := io.WriteString(conns[i], what+"\n")
		require.NoError(t, err)
		got, err := readers[i].ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "old "+what+"\n", got)
	}
	b.drainUntil("new", time.Now().Add(time.Hour), "old")
	b.f.endStalled(time.Now().Add(time.Hour), stallLimit) // silence is no fault of theirs
	for round := range 3 {
		for i := range conns {
			// What looks like HTTP, and like none, is carried as it is.
			say(i, fmt.Sprintf("GET / HTTP/1.1 %d \x00\x01", round))
		}
	}
	in := b.instance("old")
	require.Equal(t, []int{50, 50}, []int{in.InFlight, in.Streams})
	require.EqualValues(t, 50, in.Counts.Answers1xx)
	b.drainUntil("new", time.Now(), "old")
	for i := range conns {
		_ = conns[i].SetReadDeadline(time.Now().Add(wait))
		_, err := readers[i].ReadByte()
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
	b.eventually("all are gone", func() bool { return b.instance("old").InFlight == 0 && b.f.conns.Load() <= 1 })
	require.EqualValues(t, 50, b.f.cuts.Load())
}

// A request that asks for another protocol and does not get it goes on as HTTP, and so does
// what comes after it.
func TestARefusedUpgradeStaysHTTP(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	var paths []string
	var mu sync.Mutex
	b.serve("one", func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.URL.Path+r.Header.Get("Upgrade"))
	})
	b.route("one:active")
	for first, want := range map[string][]string{
		"GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n":                         {"/awebsocket", "/b"},
		"GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n":               {"/a", "/b"},
		"POST /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nxx": {"/a", "/b"},
	} {
		paths = nil
		c, err := net.Dial("tcp", b.addr())
		require.NoError(t, err)
		_, err = io.WriteString(c, first+"GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, 2, bytes.Count(got, []byte("HTTP/1.1 200 OK")), "%s", got)
		require.Equal(t, want, paths)
	}
}

func h2cClient(t *testing.T) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: wait}
}

// As gRPC does it: both ways at once, with trailers, while instances are replaced.
func TestH2CStreamsAndTrailersCrossASwitch(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	serve := func(name string) {
		b.serve(name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "Grpc-Status")
			w.Header().Set("Proto", r.Proto)
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			in := bufio.NewReader(r.Body)
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					break
				}
				_, _ = io.WriteString(w, name+" "+line)
				_ = http.NewResponseController(w).Flush()
			}
			w.Header().Set("Grpc-Status", "7")
			w.Header().Set("X-Trailer", r.Trailer.Get("X-End"))
		})
	}
	serve("old")
	serve("new")
	b.route("old:active")
	c := h2cClient(t)
	open := func() (io.WriteCloser, *http.Response) {
		pr, pw := io.Pipe()
		r, err := http.NewRequest(http.MethodPost, b.url("/svc/Call"), pr)
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/grpc")
		res, err := c.Do(r)
		require.NoError(t, err)
		require.Equal(t, "HTTP/2.0", res.Header.Get("Proto"))
		return pw, res
	}
	say := func(w io.Writer, res *http.Response, who string) {
		t.Helper()
		_, err := io.WriteString(w, "hello\n")
		require.NoError(t, err)
		buf := make([]byte, len(who)+7)
		_, err = io.ReadFull(res.Body, buf)
		require.NoError(t, err)
		require.Equal(t, who+" hello\n", string(buf))
	}
	w1, r1 := open()
	say(w1, r1, "old")
	b.drainUntil("new", time.Now().Add(time.Hour), "old")
	w2, r2 := open() // of the same connection
	for range 10 {
		say(w1, r1, "old")
		say(w2, r2, "new")
	}
	for _, s := range []struct {
		w   io.Closer
		res *http.Response
	}{{w1, r1}, {w2, r2}} {
		require.NoError(t, s.w.Close())
		_, err := io.ReadAll(s.res.Body)
		require.NoError(t, err)
		require.Equal(t, "7", s.res.Trailer.Get("Grpc-Status"))
		require.NoError(t, s.res.Body.Close())
	}
	b.eventually("drained", func() bool { return b.instance("old").InFlight == 0 })
	require.Zero(t, b.f.cuts.Load())
}

func TestTrailersOfARequestArrive(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.serve("one", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, r.Trailer.Get("X-End"))
	})
	b.route("one:active")
	r, err := http.NewRequest(http.MethodPost, b.url("/"), io.MultiReader(strings.NewReader("body")))
	require.NoError(t, err)
	r.Trailer = http.Header{"X-End": {"yes"}}
	res, err := b.client(false).Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "yes", string(body))
}

func TestRequestsWaitInAGap(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.says("new")
	b.table.Queue, b.table.QueueUntil = wait, time.Now().Add(wait)
	b.route()
	read := make(chan struct{}, 1)
	results := make(chan string, 20)
	for i := range 20 {
		go func() {
			body := io.Reader(strings.NewReader("x"))
			if i == 0 {
				body = readerFunc(func([]byte) (int, error) { read <- struct{}{}; return 0, io.EOF })
			}
			r, _ := http.NewRequest(http.MethodPost, b.url("/"), body)
			r.Header.Set("Expect", "100-continue")
			tr := &http.Transport{ExpectContinueTimeout: wait, DisableKeepAlives: true}
			res, err := (&http.Client{Transport: tr, Timeout: wait}).Do(r)
			if err != nil {
				results <- err.Error()
				return
			}
			defer res.Body.Close()
			got, _ := io.ReadAll(res.Body)
			results <- fmt.Sprint(res.StatusCode, string(got))
		}()
	}
	b.eventually("all wait", func() bool { return b.f.seen().Queued == 20 })
	require.False(t, b.f.seen().QueuedSince.IsZero())
	select {
	case <-read:
		t.Error("a body was read in the gap")
	default:
	}
	b.table.QueueUntil = time.Time{}
	b.route("new:active")
	for range 20 {
		require.Equal(t, "200new", <-results)
	}
	require.Zero(t, b.f.seen().Queued)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A dead daemon cannot make clients wait for ever, and nobody waits longer than the queue.
func TestTheQueueIsBounded(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	b.table.Queue, b.table.QueueUntil = 50*time.Millisecond, time.Now().Add(1000*time.Hour)
	b.route()
	require.Less(t, time.Until(b.f.until), time.Second)
	status, _ := b.get(b.client(false), "/")
	require.Equal(t, 503, status)
	b.table.Queue, b.table.QueueUntil = 10*wait, time.Now().Add(10*wait) // who waits is not answered in the time of this test
	b.route()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range maxQueued {
		all.Go(func() { _ = b.f.claim(ctx, wants{}, &claim{}) })
	}
	b.eventually("as many wait as may", func() bool { return b.f.seen().Queued == maxQueued })
	status, _ = b.get(b.client(false), "/")
	require.Equal(t, 503, status, "one more is not let in")
	stop()
	all.Wait()
	require.Zero(t, b.f.seen().Queued)
}

// raw is an instance that is asked byte by byte: do gets each connection.
func (b *bench) raw(name string, do func(n int, c net.Conn)) (conns *atomic.Int64) {
	l := b.listen(name)
	conns = &atomic.Int64{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(conns.Add(1))
			go func() {
				defer c.Close()
				do(n, c)
			}()
		}
	}()
	return conns
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// requests counts the heads of requests on a connection, and answers each as said; where it
// says "" the connection is closed at once.
func requests(c net.Conn, count *atomic.Int64, answer func(n int64) string) {
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		text := answer(count.Add(1))
		_, _ = io.WriteString(c, text)
		if text != okAnswer {
			return
		}
	}
}

func TestWhatMayHaveBeenSentIsNotRepeated(t *testing.T) {
	send := func(b *bench, method string) int {
		var body io.Reader
		if method == http.MethodPost {
			body = strings.NewReader("x")
		}
		r, err := http.NewRequest(method, b.url("/"), body)
		require.NoError(t, err)
		r.Header.Set("Idempotency-Key", "1") // the pool's own rule is not asked
		res, err := b.client(false).Do(r)
		if err != nil {
			return 0
		}
		defer res.Body.Close()
		if _, err = io.ReadAll(res.Body); err != nil {
			return 0
		}
		return res.StatusCode
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method+": nothing was sent, another one gets it", func(t *testing.T) {
			b := newBench(t, ring.CarryAuto)
			b.name("closed")
			b.says("open")
			b.route("closed:active", "open:active")
			for range 10 {
				require.Equal(t, 200, send(b, method))
			}
			require.Positive(t, b.instance("open").Counts.Retries)
			require.Positive(t, b.instance("closed").Counts.DialErrors)
		})
		t.Run(method+": a new connection breaks before an answer", func(t *testing.T) {
			b := newBench(t, ring.CarryAuto)
			var got atomic.Int64
			b.raw("one", func(_ int, c net.Conn) { requests(c, &got, func(int64) string { return "" }) })
			b.says("two")
			b.route("one:active")
			require.Equal(t, 502, send(b, method))
			require.EqualValues(t, 1, got.Load())
			require.EqualValues(t, 1, b.instance("one").Counts.NoAnswer)
		})
		t.Run(method+": it breaks within an answer", func(t *testing.T) {
			b := newBench(t, ring.CarryAuto)
			var got atomic.Int64
			b.raw("one", func(_ int, c net.Conn) {
				requests(c, &got, func(int64) string { return "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok" })
			})
			b.route("one:active")
			require.Zero(t, send(b, method))
			require.EqualValues(t, 1, got.Load())
			b.eventually("counted", func() bool { return b.instance("one").Counts.NoAnswer == 1 })
		})
	}
	for method, want := range map[string]int64{http.MethodGet: 3, http.MethodPost: 2} {
		t.Run(method+": a pooled connection breaks before an answer", func(t *testing.T) {
			b := newBench(t, ring.CarryAuto)
			var got atomic.Int64
			conns := b.raw("one", func(_ int, c net.Conn) {
				requests(c, &got, func(n int64) string {
					if n == 2 {
						return ""
					}
					return okAnswer
				})
			})
			b.route("one:active")
			before := conns.Load()
			require.Equal(t, 200, send(b, method))
			status := send(b, method)
			if method == http.MethodGet {
				require.Equal(t, 200, status, "once more does no harm")
				require.Equal(t, before+2, conns.Load())
			} else if conns.Load() == before+1 { // else its connection had idled for too long
				require.Equal(t, 502, status)
			}
			require.LessOrEqual(t, got.Load(), want)
		})
	}
}

// However often it fails, a safe request is sent twice at most.
func TestASafeRequestIsSentTwiceAtMost(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	var got atomic.Int64
	var broken atomic.Bool
	both := make(chan struct{})
	var waiting atomic.Int64
	b.raw("one", func(_ int, c net.Conn) {
		requests(c, &got, func(int64) string {
			if broken.Load() {
				return ""
			}
			if waiting.Add(1) == 8 {
				close(both)
			}
			<-both
			return okAnswer
		})
	})
	b.route("one:active")
	var all sync.WaitGroup
	for range 8 { // eight pooled connections
		all.Go(func() { _, _ = b.get(b.client(false), "/") })
	}
	all.Wait()
	broken.Store(true)
	got.Store(0)
	status, _ := b.get(b.client(false), "/")
	require.Equal(t, 502, status)
	require.LessOrEqual(t, got.Load(), int64(2))
}

// TRACE is sent once, also on a connection that dies under it before any answer.
func TestATraceIsNotRepeated(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	var got atomic.Int64
	var broken atomic.Bool
	b.raw("one", func(_ int, c net.Conn) {
		requests(c, &got, func(int64) string {
			if broken.Load() {
				return ""
			}
			return okAnswer
		})
	})
	b.route("one:active")
	trace := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodTrace, b.url("/"), nil)
		require.NoError(t, err)
		res, err := b.client(false).Do(r)
		require.NoError(t, err)
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	for range 3 { // each way there is to a pooled connection
		broken.Store(false)
		require.Equal(t, 200, trace())
		_, _ = b.get(b.client(false), "/")
		broken.Store(true)
		got.Store(0)
		require.Equal(t, 502, trace())
		require.EqualValues(t, 1, got.Load())
	}
}

// What begins in the absolute form is one connection of its own to one instance: whatever
// lengths it claims, nothing of it comes before the request of somebody else.
func TestTheAbsoluteFormSmugglesNothing(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	var mu sync.Mutex
	var heard []string // by connection
	b.raw("one", func(_ int, c net.Conn) {
		mu.Lock()
		at := len(heard)
		heard = append(heard, "")
		mu.Unlock()
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			mu.Lock()
			heard[at] += string(buf[:n])
			mu.Unlock()
			if err != nil {
				return
			}
			if _, err := io.WriteString(c, okAnswer); err != nil {
				return
			}
		}
	})
	b.route("one:active")
	const evil = "POST http://other/ HTTP/1.1\r\nHost: one\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nX: "
	c, err := net.Dial("tcp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, evil)
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 100))
	require.NoError(t, err)
	for range 5 {
		status, _ := b.get(b.client(false), "/mine")
		require.Equal(t, 200, status)
	}
	mu.Lock()
	defer mu.Unlock()
	mine := 0
	for _, text := range heard {
		switch {
		case text == "": // a probe
		case text == evil: // to the byte, and nothing after it
		default:
			require.True(t, strings.HasPrefix(text, "GET /mine HTTP/1.1\r\n"), text)
			require.NotContains(t, text, "smuggled")
			mine += strings.Count(text, "GET /mine ")
		}
	}
	require.Equal(t, 5, mine)
	require.Contains(t, heard, evil)
}

// Later on a connection that is HTTP the absolute form is refused: it has two hosts.
func TestTheAbsoluteFormOnAKeptConnectionIsRefused(t *testing.T) {
	b := newBench(t, ring.CarryAuto)
	var heard atomic.Int64
	b.serve("one", func(http.ResponseWriter, *http.Request) { heard.Add(1) })
	b.route("one:active")
	c, err := net.Dial("tcp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "GET /a HTTP/1.1\r\nHost: one\r\n\r\n")
	require.NoError(t, err)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, 200, res.StatusCode)
	_, _ = io.Copy(io.Discard, res.Body)
	_, err = io.WriteString(c, "GET http://other/b HTTP/1.1\r\nHost: one\r\n\r\n")
	require.NoError(t, err)
	res, err = http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, 400, res.StatusCode)
	require.EqualValues(t, 1, heard.Load())
}

func TestAnInstanceThatCannotBeConnectedToIsPassedOverButNeverTheLast(t *testing.T) {
	now := time.Now()
	a, b := &member{at: ring.FrontInstance{Name: "a"}, counts: newCounts()}, &member{at: ring.FrontInstance{Name: "b"}, counts: newCounts()}
	for k, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		a.passOver(now, io.EOF)
		require.Equal(t, now.Add(want*time.Second), a.passed, k)
	}
	for range 10 {
		require.Same(t, b, choose([]*member{a, b}, 0, wants{}, now))
	}
	b.passOver(now, io.EOF)
	got := map[*member]int{}
	for range 10 {
		got[choose([]*member{a, b}, 0, wants{}, now)]++
	}
	require.Equal(t, map[*member]int{a: 5, b: 5}, got)
	require.Nil(t, choose([]*member{a}, 0, wants{tried: map[*member]bool{a: true}}, now))
}

func TestTCPKeepsHalfCloseAndIsCutWithFIN(t *testing.T) {
	b := newBench(t, ring.CarryTCP)
	b.raw("one", func(_ int, c net.Conn) {
		got, _ := io.ReadAll(c) // to the half-close
		_, _ = io.WriteString(c, "got "+string(got))
	})
	b.raw("two", func(_ int, c net.Conn) { _, _ = io.Copy(c, c) })
	b.route("one:active")
	c, err := net.Dial("tcp", b.addr())
	require.NoError(t, err)
	_, err = io.WriteString(c, "hello")
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "got hello", string(got))
	require.NoError(t, c.Close())

	b.route("two:active")
	c, err = net.Dial("tcp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	echo := func() {
		t.Helper()
		_, err = io.WriteString(c, "x")
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, 1))
		require.NoError(t, err)
	}
	echo()
	b.drainUntil("one", time.Now().Add(time.Hour), "two")
	echo()
	require.Equal(t, 1, b.instance("two").Streams)
	b.drainUntil("one", time.Now(), "two")
	_, err = io.ReadAll(c)
	require.NoError(t, err, "FIN, and no reset")
	b.eventually("drained", func() bool { return b.instance("two").InFlight == 0 })
}

func TestDatagramsAreNotLostAtSwitches(t *testing.T) {
	b := newBench(t, ring.CarryUDP)
	for _, name := range []string{"one", "two"} {
		addr, err := net.ResolveUDPAddr("udp", b.name(name))
		require.NoError(t, err)
		pc, err := net.ListenUDP("udp", addr)
		require.NoError(t, err)
		defer pc.Close()
		go func() {
			buf := make([]byte, 100)
			for {
				n, from, err := pc.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				_, _ = pc.WriteToUDPAddrPort(buf[:n], from)
			}
		}()
	}
	b.route("one:active")
	require.True(t, b.instance("one").Reached, "it runs: udp is not probed")
	c, err := net.Dial("udp", b.addr())
	require.NoError(t, err)
	defer c.Close()
	buf := make([]byte, 100)
	for i := range 10000 {
		if i%500 == 250 {
			now := []string{"one", "two"}[i/500%2]
			b.drainUntil(now, time.Now().Add(time.Hour), map[string]string{"one": "two", "two": "one"}[now])
		}
		if i%500 == 400 { // the deadline: the next datagram makes a new flow
			now := []string{"one", "two"}[i/500%2]
			b.drainUntil(now, time.Now(), map[string]string{"one": "two", "two": "one"}[now])
			b.eventually("drained", func() bool {
				return b.instance(map[string]string{"one": "two", "two": "one"}[now]).InFlight == 0
			})
		}
		want := fmt.Sprint("datagram ", i)
		_, err := io.WriteString(c, want)
		require.NoError(t, err)
		_ = c.SetReadDeadline(time.Now().Add(wait))
		n, err := c.Read(buf)
		require.NoError(t, err)
		require.Equal(t, want, string(buf[:n]))
	}
	// At most as many flows as may be, and nothing is carried where nobody is.
	b.route()
	_, err = io.WriteString(c, "dropped")
	require.NoError(t, err)
	b.eventually("no flow is left", func() bool { return b.f.busy() == 0 })
}

// DNS that takes its time for one client holds up no other one, and what came meanwhile is
// carried once it answers.
func TestASlowDNSHoldsUpNoOtherFlow(t *testing.T) {
	b := newBench(t, ring.CarryUDP)
	addr, err := net.ResolveUDPAddr("udp", b.name("one"))
	require.NoError(t, err)
	pc, err := net.ListenUDP("udp", addr)
	require.NoError(t, err)
	defer pc.Close()
	go func() {
		buf := make([]byte, 100)
		for {
			n, from, err := pc.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = pc.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	b.route("one:active")
	dial := func() net.Conn {
		c, err := net.Dial("udp", b.addr())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	echo := func(c net.Conn, text string) string {
		_, err := io.WriteString(c, text)
		require.NoError(t, err)
		_ = c.SetReadDeadline(time.Now().Add(wait))
		buf := make([]byte, 100)
		n, err := c.Read(buf)
		require.NoError(t, err)
		return string(buf[:n])
	}
	first, second := dial(), dial()
	require.Equal(t, "a", echo(first, "a"))
	stuck := make(chan struct{})
	b.stuck.Store(&stuck)
	b.f.names.mu.Lock()
	b.f.names.known["one"].at = time.Time{} // as if a second had passed
	b.f.names.mu.Unlock()
	_, err = io.WriteString(second, "early")
	require.NoError(t, err)
	b.eventually("its flow waits for DNS", func() bool { return b.f.busy() == 2 })
	require.Equal(t, "b", echo(first, "b"))
	close(stuck)
	b.stuck.Store(nil)
	b.eventually("the other one is carried, too", func() bool {
		_, _ = io.WriteString(second, "late")
		_ = second.SetReadDeadline(time.Now().Add(time.Second / 10))
		_, err := second.Read(make([]byte, 100))
		return err == nil
	})
}
