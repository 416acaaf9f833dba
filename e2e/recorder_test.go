package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A wire is a request that makes something, as a client sent it and the engine carried it
// out. Only what differs from run to run has a name in its place, such as <clone>.
type wire struct {
	Of   string          `json:"of"`   // what it makes or joins: "container shop<run>/web/1", "network shop<run>_default"
	Path string          `json:"path"` // with its query
	Body json.RawMessage `json:"body"`
}

// A recorder stands between a client and the engine, and keeps what is asked for.
type recorder struct {
	at     string
	engine *engine
	proxy  *httputil.ReverseProxy

	mu   sync.Mutex // guards what follows
	all  []wire
	name map[string]string // an ID of the engine -> what it is of, a network's its name
	err  error             // the first request that could not be kept
}

func newRecorder(t *testing.T, dir string, e *engine) *recorder {
	t.Helper()
	_, socket, _ := strings.Cut(e.url, "://")
	r := &recorder{at: "unix://" + filepath.Join(dir, "recorder"), engine: e, name: map[string]string{}}
	var d net.Dialer
	r.proxy = &httputil.ReverseProxy{
		Rewrite:        func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		Transport:      &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }},
		FlushInterval:  -1,
		ModifyResponse: r.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	l, err := net.Listen("unix", filepath.Join(dir, "recorder"))
	require.NoError(t, err)
	s := &http.Server{Handler: r}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return r
}

type requestBody struct{}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method == http.MethodPost && making.MatchString(q.URL.Path) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		q = q.WithContext(context.WithValue(q.Context(), requestBody{}, body))
	}
	r.proxy.ServeHTTP(w, q)
}

var making = regexp.MustCompile(`^/v[0-9.]+/(containers|networks|volumes)/(create|([^/]+)/connect)$`)

// answered keeps a request that the engine carried out.
func (r *recorder) answered(res *http.Response) error {
	raw, ok := res.Request.Context().Value(requestBody{}).([]byte)
	if !ok || res.StatusCode >= 300 {
		return nil
	}
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	res.Body = io.NopCloser(bytes.NewReader(answer))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.keep(res.Request.URL, raw, answer); err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", res.Request.URL.Path, err)
	}
	return nil
}

func (r *recorder) keep(at *url.URL, raw, answer []byte) error {
	var body struct {
		Name, Container string
		Labels          map[string]string
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	w := wire{Path: at.Path, Body: raw}
	if at.RawQuery != "" {
		w.Path += "?" + at.RawQuery
	}
	var made struct{ ID string }
	switch m := making.FindStringSubmatch(at.Path); {
	case m[3] != "":
		w.Of = r.name[body.Container]
		if err := r.network(m[3]); err != nil {
			return err
		}
	case m[1] == "containers":
		w.Of = fmt.Sprintf("container %s/%s/%s", body.Labels["com.docker.compose.project"], body.Labels["com.docker.compose.service"], body.Labels["com.docker.compose.container-number"])
		if err := json.Unmarshal(answer, &made); err != nil {
			return err
		}
		r.name[made.ID] = w.Of
	default:
		w.Of = strings.TrimSuffix(m[1], "s") + " " + body.Name
	}
	r.all = append(r.all, w)
	return nil
}

// network learns the name of a network that a client joins by its ID.
func (r *recorder) network(id string) error {
	var n struct{ ID, Name string }
	err := r.engine.call("GET", "/networks/"+id, nil, nil, &n)
	r.name[n.ID] = n.Name
	return err
}

var (
	engineID   = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	digestOf   = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	configHash = regexp.MustCompile(`("com\.docker\.compose\.config-hash": ?")[0-9a-f]{64}"`)
)

// wires are the requests so far, by what they are of, with names for all that only this run has.
func (r *recorder) wires(t *testing.T, names *strings.Replacer) (out []wire) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.NoError(t, r.err)
	named := func(s string) string {
		s = configHash.ReplaceAllString(digestOf.ReplaceAllString(s, "<digest>"), `$1<hash>"`)
		s = engineID.ReplaceAllStringFunc(s, func(id string) string {
			if name, ok := r.name[id]; ok {
				return name
			}
			return id
		})
		return names.Replace(s)
	}
	for _, w := range r.all {
		var body bytes.Buffer
		require.NoError(t, json.Compact(&body, []byte(named(string(w.Body)))))
		out = append(out, wire{Of: named(w.Of), Path: named(w.Path), Body: body.Bytes()})
	}
	slices.SortStableFunc(out, func(a, b wire) int { // a container is made before it joins
		joins := func(w wire) string { return fmt.Sprint(w.Of, strings.HasSuffix(w.Path, "/connect"), w.Path) }
		return strings.Compare(joins(a), joins(b))
	})
	return out
}

// recordedRequests is what Compose itself asked for, for each stack of the differential
// test. make record has Compose ask for it anew.
const recordedRequests = "testdata/differential/requests.jsonl"

// A recordHead is the first line of that file.
type recordHead struct {
	Compose string `json:"compose"` // its version
	Engine  string `json:"engine"`
	By      string `json:"by"`
}

func readRecord(t *testing.T) (head recordHead, out []wire) {
	t.Helper()
	f, err := os.Open(recordedRequests)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan(), "%s is empty", recordedRequests)
	require.NoError(t, json.Unmarshal(lines.Bytes(), &head))
	for lines.Scan() {
		var w wire
		require.NoError(t, json.Unmarshal(lines.Bytes(), &w))
		out = append(out, w)
	}
	require.NoError(t, lines.Err())
	return head, out
}

func writeRecord(t *testing.T, head recordHead, all []wire) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(head))
	for _, w := range all {
		require.NoError(t, e.Encode(w))
	}
	require.NoError(t, os.WriteFile(recordedRequests, b.Bytes(), 0o644))
}
