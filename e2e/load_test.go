package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// steady is min_ready_time under load: nothing of ours may follow quicker on a
// readiness, so what was observed within less than that was true all along.
const steady = 2 * time.Second

func TestAnUpdateUnderLoadDropsNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	app := h.app("web")
	file := app + "/compose.yaml"
	const d = 3
	version := func(v string) string {
		return h.compose(app, obj{"web": web(v, replicas(d), env("READY_AFTER", "300"), rollout(obj{"min_ready_time": steady.String()}))})
	}
	first := h.repo.pushed("Version 1", files{file: version("1")})
	h.start()
	h.synced(first)
	old := ids(h.containers("web"))
	require.Len(t, old, d)

	c := h.client(app)
	mark := h.events.mark()
	second := h.repo.pushed("Version 2", files{file: version("2")})
	load := c.load(h, d)
	h.synced(second)
	answers := load.stop()

	var kills []engineEvent
	for _, e := range h.events.after(mark, "kill") {
		if slices.Contains(old, e.Actor.ID) {
			kills = append(kills, e)
		}
	}
	require.Len(t, kills, d, "each old instance got one stop signal")
	load.check(t)
	stoppedAfterReplaced(t, h, mark, kills)
	finished(t, h, answers, kills)
}

// stoppedAfterReplaced holds the engine's own journal to the order: the k-th
// old instance got its stop signal when k new ones had run for min_ready_time.
func stoppedAfterReplaced(t *testing.T, h *host, mark int, kills []engineEvent) {
	t.Helper()
	starts := h.events.after(mark, "start")
	for k, kill := range kills {
		ready := 0
		for _, s := range starts {
			if !s.at().Add(steady).After(kill.at()) {
				ready++
			}
		}
		require.GreaterOrEqual(t, ready, k+1, "old instance %d was stopped before its replacement was ready", k+1)
	}
	require.Len(t, starts, len(kills))
}

// finished: whoever had the head of an answer got the rest of it, also where
// the stop signal came in between, which it did.
func finished(t *testing.T, h *host, answers []answer, kills []engineEvent) {
	t.Helper()
	require.NotEmpty(t, answers)
	across := 0
	for _, a := range answers {
		if a.Head == 0 {
			continue // refused: it was stopping already, or gone
		}
		require.Empty(t, a.Err, "%+v", a)
		require.Equal(t, "done", a.Body, "%+v", a)
		for _, k := range kills {
			if strings.Contains(a.URL, "instance="+k.Actor.ID) && a.Head < k.TimeNano && k.TimeNano < a.Ended {
				across++
			}
		}
	}
	require.Positive(t, across, "no request was in flight at a stop signal: the test shows nothing")
}

// --- the client ------------------------------------------------------------------

// client is a container of the tests' own on the app's network. It asks
// instances as the app's other services would.
type client struct{ at string }

// answer is testdata/app's.
type answer struct {
	URL         string
	Began       int64
	Head, Ended int64
	Code        int
	Body, Err   string
}

func (h *host) client(app string) *client {
	h.t.Helper()
	id, err := h.engine.start(app+"-client", app+"_default", map[string]string{"e2e": h.name}, "ask")
	require.NoError(h.t, err)
	h.t.Cleanup(func() {
		if err := h.engine.remove(id); err != nil {
			h.t.Errorf("cannot remove the client: %v", err)
		}
	})
	c, err := h.engine.inspect(id)
	require.NoError(h.t, err)
	cl := &client{at: "http://" + c.address() + ":8080/"}
	h.until("the client answers", func() bool { _, err := cl.ask(time.Second); return err == nil })
	return cl
}

// ask has the client request urls at once, from inside the network.
func (c *client) ask(timeout time.Duration, urls ...string) ([]answer, error) {
	q := url.Values{"url": urls, "timeout": {timeout.String()}}
	res, err := http.Get(c.at + "?" + q.Encode())
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var as []answer
	return as, json.NewDecoder(res.Body).Decode(&as)
}

// loading is what happens while an update is under way: samples of who answers,
// and long requests that are in flight all the time.
type loading struct {
	c     *client
	floor int
	quit  chan struct{}
	all   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	samples int
	late    int // took too long to say anything
	below   []string
	slow    []answer
	errs    []error
}

func (c *client) load(h *host, floor int) *loading {
	l := &loading{c: c, floor: floor, quit: make(chan struct{})}
	l.all.Go(func() { l.every(50*time.Millisecond, func() { l.sample(h) }) })
	l.all.Go(func() { l.every(400*time.Millisecond, func() { l.long(h) }) })
	return l
}

func (l *loading) every(pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-tick.C:
			do()
		}
	}
}

// running are the addresses of the instances by ID, now.
func running(h *host) (map[string]string, error) {
	cs, err := h.engine.containers("gitring.host=" + h.name)
	at := map[string]string{}
	for _, c := range cs {
		if c.State.Running && c.address() != "" {
			at[c.ID] = c.address()
		}
	}
	return at, err
}

// sample asks every instance once. Fewer answers than the floor are a fault,
// unless the sample took so long that an instance may have come in between
// which it did not ask.
func (l *loading) sample(h *host) {
	began := time.Now()
	at, err := running(h)
	if err != nil {
		l.add(func() { l.errs = append(l.errs, err) })
		return
	}
	var urls []string
	for _, a := range at {
		urls = append(urls, "http://"+a+":8080/healthz")
	}
	answers, err := l.c.ask(steady/2, urls...)
	took := time.Since(began)
	l.add(func() {
		switch {
		case err != nil:
			l.errs = append(l.errs, err)
		case took >= steady:
			l.late++
		default:
			l.samples++
			if up := healthy(answers); up < l.floor {
				l.below = append(l.below, fmt.Sprintf("%s: %d answer: %+v", began.UTC().Format("15:04:05.000"), up, answers))
			}
		}
	})
}

func healthy(answers []answer) (n int) {
	for _, a := range answers {
		if a.Code == http.StatusOK && a.Err == "" {
			n++
		}
	}
	return n
}

// long begins a long request to every instance, and does not wait for it.
func (l *loading) long(h *host) {
	at, err := running(h)
	if err != nil {
		l.add(func() { l.errs = append(l.errs, err) })
		return
	}
	for id, a := range at {
		l.all.Go(func() {
			answers, err := l.c.ask(30*time.Second, "http://"+a+":8080/slow?ms=1500&instance="+id)
			l.add(func() {
				l.slow = append(l.slow, answers...)
				if err != nil {
					l.errs = append(l.errs, err)
				}
			})
		})
	}
}

func (l *loading) add(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

// stop ends the load and returns the long requests.
func (l *loading) stop() []answer {
	close(l.quit)
	l.all.Wait()
	return l.slow
}

func (l *loading) check(t *testing.T) {
	t.Helper()
	require.Empty(t, l.errs)
	require.Empty(t, l.below, "fewer than %d instances answered", l.floor)
	require.Greater(t, l.samples, 10, "too few samples to show anything; %d came too late", l.late)
	t.Logf("%d samples, %d too late, %d long requests", l.samples, l.late, len(l.slow))
}
