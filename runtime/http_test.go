package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/require"
)

// canned is an engine over HTTP on a unix socket that answers from memory.
type canned struct {
	api    atomic.Value // its API version
	list   []byte
	one    map[string][]byte
	nets   []byte
	events func(w http.ResponseWriter, r *http.Request)
	paths  chan string // what was asked, when not nil
}

func newCanned(tb testing.TB, n int) *canned {
	c := &canned{one: map[string][]byte{}}
	c.api.Store("1.41")
	var list []container.Summary
	var nets []network.Summary
	for i := range n {
		id := fmt.Sprintf("%064x", i+1)
		labels := map[string]string{labelHost: "edge", labelApp: fmt.Sprintf("app%d", i), labelService: "web", labelSlot: "1", labelVersion: "1:abc"}
		name := fmt.Sprintf("/app%d-web-1-abc", i)
		at := map[string]*network.EndpointSettings{fmt.Sprintf("app%d_default", i): {NetworkID: id, IPAddress: "10.0.0.2"}}
		list = append(list, container.Summary{
			ID: id, Names: []string{name}, State: "running", Status: "Up 3 minutes (healthy)", Labels: labels,
			NetworkSettings: &container.NetworkSettingsSummary{Networks: at},
		})
		full := container.InspectResponse{
			ContainerJSONBase: &container.ContainerJSONBase{
				ID: id, Name: name, Created: "2026-11-21T12:00:00Z", HostConfig: &container.HostConfig{},
				State: &container.State{Status: "running", Running: true, StartedAt: "2026-11-21T12:00:00Z", FinishedAt: "0001-01-01T00:00:00Z"},
			},
			Config: &container.Config{Image: "web@sha256:1", Labels: labels}, NetworkSettings: &container.NetworkSettings{Networks: at},
		}
		c.one[id] = encode(tb, full)
		nets = append(nets, network.Summary{ID: id, Name: fmt.Sprintf("app%d_default", i), Labels: map[string]string{labelHost: "edge", labelApp: fmt.Sprintf("app%d", i), composeNetwork: "default"}})
	}
	c.list, c.nets = encode(tb, list), encode(tb, nets)
	return c
}

func encode(tb testing.TB, v any) []byte {
	b, err := json.Marshal(v)
	require.NoError(tb, err)
	return b
}

func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Api-Version", c.api.Load().(string))
	if c.paths != nil {
		c.paths <- r.Method + " " + r.URL.Path
	}
	path := apiVersion.ReplaceAllString(r.URL.Path, "")
	var body []byte
	switch {
	case path == "/_ping":
		return
	case path == "/version":
		body = []byte(`{"Version":"20.10.24","Components":[{"Name":"Engine","Version":"20.10.24"}]}`)
	case path == "/containers/json":
		body = c.list
	case path == "/networks":
		body = c.nets
	case path == "/events" && c.events != nil:
		c.events(w, r)
		return
	case strings.HasPrefix(path, "/containers/"):
		body = c.one[strings.Split(path, "/")[2]]
	}
	if body == nil {
		w.WriteHeader(http.StatusNotFound)
		body = []byte(`{"message":"page not found"}`)
	}
	_, _ = w.Write(body)
}

// serve lets h be the engine at a socket; stop closes it.
func serve(tb testing.TB, socket string, h http.Handler) (stop func()) {
	l, err := net.Listen("unix", socket)
	require.NoError(tb, err)
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	stop = func() {
		s.CloseClientConnections()
		s.Close()
	}
	tb.Cleanup(stop)
	return stop
}

func socket(tb testing.TB) string {
	dir, err := os.MkdirTemp("", "ring") // a socket's path must be short
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func TestDialRefusesOldEngines(t *testing.T) {
	for _, api := range []string{"1.40", "1.24", ""} {
		c, at := newCanned(t, 0), socket(t)
		c.api.Store(api)
		serve(t, at, c)
		_, err := Dial(t.Context(), Options{URL: "unix://" + at, Host: "edge"})
		require.ErrorContains(t, err, "cannot use the engine at unix://"+at)
	}
}

func TestDialNegotiates(t *testing.T) {
	for engine, spoken := range map[string]string{"1.41": "1.41", "1.44": "1.44", "1.99": "1.51"} {
		c, at := newCanned(t, 1), socket(t)
		c.api.Store(engine)
		c.paths = make(chan string, 10)
		serve(t, at, c)
		d, err := Dial(t.Context(), Options{URL: "unix://" + at, Host: "edge"})
		require.NoError(t, err)
		require.Equal(t, "HEAD /_ping", <-c.paths)
		require.Equal(t, "GET /v"+spoken+"/version", <-c.paths)
		_, err = d.Look(t.Context())
		require.NoError(t, err)
		require.Equal(t, "GET /v"+spoken+"/containers/json", <-c.paths)
	}
}

func TestDialOfAnEngineThatIsDown(t *testing.T) {
	at := socket(t)
	d, err := Dial(t.Context(), Options{URL: "unix://" + at, Host: "edge"})
	require.NoError(t, err, "it may come up")
	_, err = d.Look(t.Context())
	require.Error(t, err)
	stop := serve(t, at, newCanned(t, 2))
	s, err := d.Look(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Instances, 2)
	stop()
	_, err = d.Look(t.Context())
	require.Error(t, err)
	serve(t, at, newCanned(t, 1))
	s, err = d.Look(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Instances, 1)
	require.NoError(t, d.Close())

	_, err = Dial(t.Context(), Options{URL: "no url"})
	require.Error(t, err)
}

func TestCallsPerLook(t *testing.T) {
	at := socket(t)
	serve(t, at, newCanned(t, 100))
	d, err := Dial(t.Context(), Options{URL: "unix://" + at, Host: "edge"})
	require.NoError(t, err)
	s, err := d.Look(t.Context())
	require.NoError(t, err)
	require.Len(t, s.Instances, 100)
	require.Len(t, s.Networks, 100)
	require.Equal(t, map[string]int{"HEAD /_ping": 1, "GET /version": 1, "GET /info": 1, "GET /containers/json": 1, "GET /networks": 1, "GET /containers/{id}/json": 100}, d.Calls())
	again, err := d.Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, s.Instances, again.Instances)
	require.Equal(t, 107, total(d.Calls()))
}

func TestEventsReconnectWithSince(t *testing.T) {
	at := socket(t)
	c := newCanned(t, 1)
	asked := make(chan string, 10)
	id := fmt.Sprintf("%064x", 1)
	c.events = func(w http.ResponseWriter, r *http.Request) {
		asked <- r.FormValue("since") + " " + r.FormValue("filters")
		w.(http.Flusher).Flush()
		if r.FormValue("since") == "" {
			_, _ = fmt.Fprintf(w, `{"Type":"container","Action":"die","Actor":{"ID":"other","Attributes":{"com.docker.compose.project":"x"}},"timeNano":1}
				{"Type":"container","Action":"die","Actor":{"ID":%q,"Attributes":{"gitring.host":"edge"}},"timeNano":%d}`, id, time.Now().Add(time.Hour).UnixNano())
			return // and the engine goes away
		}
		<-r.Context().Done()
	}
	stop := serve(t, at, c)
	poked := make(chan string, 10)
	d, err := Dial(t.Context(), Options{URL: "unix://" + at, Host: "edge", Poke: func(id string) { poked <- id }})
	require.NoError(t, err)
	_, err = d.Look(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	first := <-asked
	require.True(t, strings.HasPrefix(first, " {"), first)
	require.Contains(t, first, composeProject, "ours have it, and so have adopted ones")
	require.NotContains(t, first, "exec", "each probe of the engine makes three of them")
	require.Equal(t, id, <-poked, "and not a container of a project that is not ours")
	second := <-asked
	require.Regexp(t, `^\d+\.\d{9} {`, second)
	require.Equal(t, "", <-poked, "after a gap everything may have changed")
	marks := d.cache.snapshot().marks
	require.Contains(t, marks, "")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	stop()
}

// The engine that comes back may be another version.
func TestEventsAgreeAnewAfterUpgrade(t *testing.T) {
	at := socket(t)
	c := newCanned(t, 1)
	c.api.Store("1.44")
	var streams atomic.Int64
	c.events = func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		if streams.Add(1) == 1 {
			c.api.Store("1.41")
			return
		}
		<-r.Context().Done()
	}
	serve(t, at, c)
	poked := make(chan string, 10)
	d, err := Dial(t.Context(), Options{URL: "unix://" + at, Host: "edge", Poke: func(id string) { poked <- id }})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	<-poked
	e, err := d.ready(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1.41", e.ClientVersion())
	cancel()
	<-ended
}

// An engine without events (Podman, where it is off) is looked at all the same,
// and not asked for them all the time.
func TestNoEventsIsNoStorm(t *testing.T) {
	f := newFake(Options{Host: "edge"})
	f.Fail(failing("Events", fmt.Errorf("not implemented")))
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.Run(ctx), context.DeadlineExceeded)
	require.LessOrEqual(t, f.Ops()["Events"], 5)
	marks := f.cache.snapshot().marks
	require.Empty(t, marks, "nothing was heard, so nothing is stale")
}

func BenchmarkLook(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			at := socket(b)
			serve(b, at, newCanned(b, n))
			d, err := Dial(b.Context(), Options{URL: "unix://" + at, Host: "edge"})
			require.NoError(b, err)
			_, err = d.Look(b.Context())
			require.NoError(b, err)
			before := total(d.Calls())
			for b.Loop() {
				if _, err := d.Look(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(total(d.Calls())-before)/float64(b.N), "calls/op")
		})
	}
}
