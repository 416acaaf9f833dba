package e2e

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// between is a socket between gitring and the engine that passes everything on, but
// for what it is told to spoil.
type between struct {
	at    string
	proxy *httputil.ReverseProxy

	mu     sync.Mutex // guards what follows
	r      *rand.Rand
	events spoiling
	lossy  bool // calls and answers get lost
	spoilt map[string]int
	calls  []string                   // what was asked of the engine: method and path
	live   map[int]context.CancelFunc // streams of events
	n      int
}

// spoiling is what happens to a stream of events.
type spoiling string

// What may happen to one.
const (
	intact  spoiling = "intact"
	silent  spoiling = "silent"  // it stands, and nothing comes
	cut     spoiling = "cut"     // it ends after a few
	refused spoiling = "refused" // there is none
	twice   spoiling = "twice"   // each comes twice, and pairs the wrong way round
	late    spoiling = "late"    // each comes three seconds late
)

// lateBy is how late events come then.
const lateBy = 3 * time.Second

func newBetween(t *testing.T, dir string, e *engine, r *rand.Rand) *between {
	t.Helper()
	_, socket, _ := strings.Cut(e.url, "://")
	b := &between{r: r, events: intact, spoilt: map[string]int{}, live: map[int]context.CancelFunc{}}
	b.at = "unix://" + filepath.Join(dir, "between")
	var d net.Dialer
	b.proxy = &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport:     &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }},
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	l, err := net.Listen("unix", filepath.Join(dir, "between"))
	require.NoError(t, err)
	s := &http.Server{Handler: b}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { b.become(intact, false); _ = s.Close(); <-ended })
	return b
}

// become spoils in another way from here on; streams that stand are ended.
func (b *between) become(how spoiling, lossy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events, b.lossy = how, lossy
	for _, end := range b.live {
		end()
	}
}

func (b *between) count(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spoilt[what]++
}

// asked is what was asked of the engine so far.
func (b *between) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.calls = append(b.calls, r.Method+" "+r.URL.Path)
	how, dice := b.events, b.r.IntN(12)
	if !b.lossy || r.Method == http.MethodGet || r.Method == http.MethodHead {
		dice = -1
	}
	b.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/events"):
		b.stream(w, r, how)
	case dice == 0: // the call gets lost, before it had its effect
		b.count("calls lost")
		panic(http.ErrAbortHandler)
	case dice == 1: // its answer gets lost, after it had
		b.count("answers lost")
		b.proxy.ServeHTTP(nobody{http.Header{}}, r.WithContext(context.WithoutCancel(r.Context())))
		panic(http.ErrAbortHandler)
	default:
		b.proxy.ServeHTTP(w, r)
	}
}

// nobody takes an answer.
type nobody struct{ header http.Header }

func (n nobody) Header() http.Header         { return n.header }
func (n nobody) Write(b []byte) (int, error) { return len(b), nil }
func (n nobody) WriteHeader(int)             {}

// stream passes the engine's events on, spoilt.
func (b *between) stream(w http.ResponseWriter, r *http.Request, how spoiling) {
	if how == refused {
		b.count("streams refused")
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	b.mu.Lock()
	b.n++
	n, left := b.n, b.r.IntN(4)
	b.live[n] = cancel
	b.mu.Unlock()
	defer func() { b.mu.Lock(); defer b.mu.Unlock(); delete(b.live, n) }()
	up := r.Clone(ctx)
	up.URL.Scheme, up.URL.Host, up.RequestURI = "http", "engine", ""
	res, err := b.proxy.Transport.RoundTrip(up)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer res.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(res.StatusCode)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	send := func(lines ...string) {
		for _, line := range lines {
			_, _ = io.WriteString(w, line)
		}
		_ = flush()
	}
	held := ""
	for in := bufio.NewReader(res.Body); ; left-- {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch {
		case how == silent:
			b.count("events lost")
		case how == cut && left <= 0:
			b.count("streams cut")
			return
		case how == late:
			b.count("events late")
			select {
			case <-ctx.Done():
				return
			case <-time.After(lateBy):
			}
			send(line)
		case how == twice && held == "":
			held = line
		case how == twice:
			b.count("pairs of events twice and the wrong way round")
			send(line, held, line, held)
			held = ""
		default:
			send(line)
		}
	}
}

// TestWhatIsLostOnTheWayToTheEngineChangesNothing drops, cuts, repeats, reorders and
// delays the engine's events, and loses calls before they had their effect and answers
// after it, while versions come, an instance dies and another one is removed by hand.
func TestWhatIsLostOnTheWayToTheEngineChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	r := dice(t)
	b := newBetween(t, h.dir, h.engine, rand.New(rand.NewPCG(r.Uint64(), 1)))
	h.config["engine"] = obj{"kind": "docker", "url": b.at}
	f := newFleet(h, rollout(obj{"failure_threshold": 1000}))
	f.begin()

	// Nobody tells that an instance died, or went: it is found all the same.
	b.become(silent, false)
	gone := f.containers("web")[1]
	f.w.byHand[gone.ID] = true
	require.NoError(t, f.engine.remove(gone.ID))
	f.until("its slot is filled", func() bool {
		cs := f.containers("web")
		return len(cs) == 2 && cs[1].ID != gone.ID && cs[1].State.Running
	})
	f.whole()

	ways := []spoiling{silent, cut, refused, twice, late, intact}
	rounds := amount(t, "LOSSES", 6, 60)
	for i := range rounds {
		b.become(ways[i%len(ways)], i%2 == 1)
		mark := f.events.mark()
		if r.IntN(4) == 0 {
			f.bad()
		} else {
			f.push(1 + r.IntN(2))
		}
		f.somewhere(r, mark, 20)
		if r.IntN(3) == 0 {
			f.kill()
			f.launch()
		}
	}
	f.push(1)
	f.whole() // as things are
	b.become(intact, false)
	f.over()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("%d rounds: %v", rounds, b.spoilt)
}
