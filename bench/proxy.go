package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// proxy stands between a daemon and its engine and writes down every request.
type proxy struct {
	socket string
	server *http.Server

	mu    sync.Mutex
	calls []call // guarded by mu
}

// call is one request, without version, ids and query.
type call struct {
	what       string
	began, end time.Time // end is zero while it is under way
}

// newProxy listens on a socket and hands requests on.
func newProxy(socket string, to *engine) (*proxy, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	p := &proxy{socket: socket}
	rp := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	rp.Transport, rp.FlushInterval = to.transport(), -1
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := p.begin(r.Method + " " + route(r.URL.Path))
		defer end()
		rp.ServeHTTP(w, r)
	})}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

func (p *proxy) url() string { return "unix://" + p.socket }

func (p *proxy) close() { _ = p.server.Close() }

func (p *proxy) begin(what string) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.calls)
	p.calls = append(p.calls, call{what: what, began: time.Now()})
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls[n].end = time.Now()
	}
}

// since are the requests that began at or after a moment.
func (p *proxy) since(t time.Time) []call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []call
	for _, c := range p.calls {
		if !c.began.Before(t) {
			out = append(out, c)
		}
	}
	return out
}

func tally(calls []call) map[string]int {
	n := map[string]int{}
	for _, c := range calls {
		n[c.what]++
	}
	return n
}

var (
	apiVersion = regexp.MustCompile(`^/v\d+\.\d+`)
	anID       = regexp.MustCompile(`^(/(?:containers|networks|images|volumes|exec|distribution))/([^/]+)(.*)$`)
)

func route(path string) string {
	path = apiVersion.ReplaceAllString(path, "")
	if m := anID.FindStringSubmatch(path); m != nil && m[2] != "json" && m[2] != "create" {
		return strings.TrimSuffix(m[1]+"/{id}"+m[3], "/")
	}
	return path
}

// trace leaves the requests since a moment in the folder that -keep keeps.
func (b *bench) trace(p *proxy, name string, since time.Time) error {
	if !b.keep {
		return nil
	}
	var text strings.Builder
	for _, c := range p.since(since) {
		fmt.Fprintf(&text, "%.4f %.4f %s\n", c.began.Sub(since).Seconds(), c.end.Sub(c.began).Seconds(), c.what)
	}
	return write(filepath.Join(b.dir, name+".trace"), text.String())
}
