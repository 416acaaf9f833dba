package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ill is a registry behind a socket that does to some requests what registries do on
// their bad days.
type ill struct {
	at    string
	proxy *httputil.ReverseProxy
	over  chan struct{}

	mu    sync.Mutex // guards what follows
	how   illness
	of    string // the part of a path that it befalls
	calls []string
	held  chan struct{} // closed when those that hang are let go
}

// illness is what befalls a request.
type illness string

// What may befall one.
const (
	well    illness = "well"
	limits  illness = "limits" // 429
	fails   illness = "fails"  // 503
	hangs   illness = "hangs"  // no answer
	severed illness = "severed"
)

// nextTry is the moment that the status tells.
var nextTry = regexp.MustCompile(`attempt \d+, next try \d\d:\d\d:\d\d UTC`)

func newIll(t *testing.T, reg *registry) *ill {
	t.Helper()
	i := &ill{how: well, held: make(chan struct{}), over: make(chan struct{})}
	i.proxy = &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: reg.at})
			p.Out.Host = p.In.Host
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	s := httptest.NewServer(i)
	i.at = strings.TrimPrefix(s.URL, "http://")
	t.Cleanup(func() { close(i.over); s.Close() })
	return i
}

// become befalls requests of a path from here on, and lets go of those that hang.
func (i *ill) become(how illness, of string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.held)
	i.how, i.of, i.held, i.calls = how, of, make(chan struct{}), nil
}

// asked is how often that befell anybody.
func (i *ill) asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.calls)
}

func (i *ill) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	how, held := i.how, i.held
	if how != well && !strings.Contains(r.URL.Path, i.of) {
		how = well
	}
	if how != well {
		i.calls = append(i.calls, r.Method+" "+r.URL.Path)
	}
	i.mu.Unlock()
	switch how {
	case limits:
		w.Header().Set("Retry-After", "2")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"errors":[{"code":"TOOMANYREQUESTS","message":"you have reached your pull rate limit"}]}`))
	case fails:
		http.Error(w, "upstream connect error", http.StatusServiceUnavailable)
	case hangs:
		select {
		case <-held:
		case <-i.over:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case severed:
		w.Header().Set("Content-Length", "4096")
		_, _ = w.Write([]byte(strings.Repeat("x", 1000)))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	default:
		i.proxy.ServeHTTP(w, r)
	}
}

// A registry that limits, fails, hangs or severs what it sends is nobody's fault but its
// own: what runs stays, the status says why and the registry is not hammered, no version
// is judged, and when it is well again the commit is carried out.
func TestARegistryThatIsIllKeepsWhatRunsAndCondemnsNothing(t *testing.T) {
	t.Parallel()
	const resolving, pulling = "/manifests/", "/blobs/"
	for name, c := range map[string]struct {
		how  illness
		of   string
		says string
		most int // requests, of which the engine makes more than one for a try
	}{
		"limits a resolve": {limits, resolving, "limits requests (429)", 4},
		"limits a pull":    {limits, pulling, "limits requests (429)", 4},
		"fails a resolve":  {fails, resolving, "503 Service Unavailable", 30},
		"hangs a resolve":  {hangs, resolving, "resolving ", 4},
		"severs a pull":    {severed, pulling, "cannot pull", 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := newRegistry(t)
			i := newIll(t, reg)
			h := newHost(t)
			app, other := h.app("web"), h.app("other")
			of := func(version string) files {
				return files{
					app + "/compose.yaml": h.compose(app, obj{"web": web("", obj{
						"image": i.at + "/web:" + version, "pull_policy": nil, "environment": obj{"OF": version, "VERSION": nil},
					})}),
					other + "/compose.yaml": h.compose(other, obj{"other": web(version)}),
				}
			}
			reg.push("one")
			h.start()
			first := h.deployed("The first", of("one"))
			settled(h)
			runs := identities(h.containers("web"))

			i.become(c.how, c.of)
			reg.push("two")
			second := h.repo.pushed("The second", of("two"))
			h.await("the neighbour goes on", func(st status) bool {
				return st.app(other).Commit == second && st.service(other, "other").Phase == "Ready"
			})
			st := h.await("the registry is told of", func(st status) bool {
				says := st.app(app).Reason
				return i.asked() > 0 && strings.Contains(says, c.says) && (c.how == hangs || nextTry.MatchString(says))
			})
			t.Logf("app %q", st.app(app).Reason)
			require.Equal(t, first, st.app(app).Commit)
			require.Nil(t, st.app(app).Refusal, "the registry's fault is not the author's")
			// Long enough for tries without a wait between them to be hundreds.
			began := time.Now()
			h.until("a while went by", func() bool { return time.Since(began) > 8*time.Second })
			asked := i.asked()
			t.Logf("asked %d times", asked)
			require.LessOrEqual(t, asked, c.most, "hammered")
			require.Equal(t, runs, identities(h.containers("web")))
			require.Equal(t, first, h.status().app(app).Commit)

			i.become(well, "")
			if c.how == limits { // left alone for five minutes, whoever asks
				return
			}
			// A person asks at once. Where gitring was sooner by itself, nothing has failed any more.
			if code, out := h.run("retry", app, "--reason", "the registry is well again"); code != 0 {
				require.Contains(t, out, "nothing of "+app+" has failed")
			}
			h.synced(second)
			require.True(t, h.ranAs("web", "two"))
			_, failed := h.journalled("rollout.failed", app, "web", "")
			require.False(t, failed)
		})
	}
}

// A change of the environment does not wait for a registry: the image in force is on the host.
func TestAnEnvironmentChangesWhileTheRegistryIsAway(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	h := newHost(t)
	app := h.app("web")
	of := func(version string) files {
		return files{app + "/compose.yaml": h.compose(app, obj{"web": web("", obj{
			"image": reg.at + "/web:1", "pull_policy": nil, "environment": obj{"OF": version, "VERSION": nil},
		})})}
	}
	digest := reg.push("one")
	h.start()
	h.deployed("The first", of("one"))
	settled(h)
	reg.stop()
	h.deployed("The second", of("two"))
	c := h.of(app, "web")
	require.Equal(t, "two", c.env("OF"))
	require.Contains(t, c.Config.Image, digest)
	_, told := h.journalled("instance.step", app, "web", "does not answer, so the image in force is kept")
	require.True(t, told)
}
