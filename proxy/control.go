package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// Bounds of the control: docs/design/traffic.md.
const (
	controlTime = time.Second
	waitMost    = 30 * time.Second
)

// peers are the other proxies of this front: older ones, that carry something still.
type peers struct {
	mu     sync.Mutex // guards what follows
	cuts   map[string]peerCut
	before []ring.FrontBefore // the oldest first
	silent map[string]silence // by socket
}

// peerCut is how many requests an older proxy had cut when it was first asked, and last.
type peerCut struct{ first, last int64 }

// serveControl opens the control socket and takes the front's name over for it. Every proxy
// has a socket of its own, by which the newest one reaches those before it.
func (f *Front) serveControl(ctx context.Context) (end func(), _ error) {
	own := filepath.Join(f.RunDir, f.process+".sock")
	early := filepath.Join(f.RunDir, f.process+".new")
	l, err := net.Listen("unix", early)
	if err != nil {
		return nil, fmt.Errorf("cannot open the control socket: %w", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	err = os.Rename(early, own) // now that it is listened on: others remove one that is not
	if err == nil {
		err = f.takeName()
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/table", f.putTable)
	mux.HandleFunc("PUT /v1/before", f.putBefore)
	mux.HandleFunc("GET /v1/seen", f.getSeen)
	mux.HandleFunc("GET /v1/wait", f.getWait)
	mux.HandleFunc("GET /v1/health", f.getHealth)
	s := &http.Server{
		Handler: mux, ReadTimeout: controlTime, WriteTimeout: waitMost + 5*time.Second, IdleTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: f.Log, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() { _ = s.Serve(l) }()
	return func() {
		_ = s.Close()
		_ = os.Remove(own)
	}, nil
}

// takeName has the front's socket be this process's.
func (f *Front) takeName() error {
	own := filepath.Join(f.RunDir, f.process+".sock")
	link := filepath.Join(f.RunDir, f.process+".new")
	_ = os.Remove(link)
	if err := os.Link(own, link); err != nil {
		return fmt.Errorf("cannot take the control socket over: %w", err)
	}
	if err := os.Rename(link, filepath.Join(f.RunDir, ring.FrontSocket)); err != nil {
		return fmt.Errorf("cannot take the control socket over: %w", err)
	}
	return nil
}

// problem is what the control answers instead.
type problem struct {
	Says       string `json:"says"`
	Generation int64  `json:"generation"` // of the table in force
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (f *Front) generation() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.table.Generation
}

func (f *Front) putTable(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, tableBytes))
	if err != nil {
		reply(w, http.StatusRequestEntityTooLarge, problem{err.Error(), f.generation()})
		return
	}
	t, err := readTable(body)
	if err == nil {
		err = f.apply(r.Context(), t)
	}
	alone := r.URL.Query().Has("alone")
	switch {
	case errors.Is(err, errOld):
		reply(w, http.StatusConflict, problem{err.Error(), f.generation()})
		return
	case err != nil:
		reply(w, http.StatusUnprocessableEntity, problem{err.Error(), f.generation()})
		return
	}
	if alone {
		reply(w, http.StatusOK, f.seenAlone())
		return
	}
	if err := f.tellPeers(r.Context(), body); err != nil {
		reply(w, http.StatusServiceUnavailable, problem{err.Error(), f.generation()})
		return
	}
	reply(w, http.StatusOK, f.seenWithPeers(r.Context()))
}

func (f *Front) getSeen(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("alone") {
		reply(w, http.StatusOK, f.seenAlone())
		return
	}
	s := f.seenWithPeers(r.Context())
	if r.URL.Query().Has("table") {
		f.mu.Lock()
		t := f.table
		f.mu.Unlock()
		s.Table = &t
	}
	reply(w, http.StatusOK, s)
}

// getWait answers when something drained or was lost, or when the time is over: ?for=1s.
func (f *Front) getWait(w http.ResponseWriter, r *http.Request) {
	most := waitMost
	if d, err := time.ParseDuration(r.URL.Query().Get("for")); err == nil && d >= 0 {
		most = min(d, waitMost)
	}
	ctx, cancel := context.WithTimeout(r.Context(), most)
	defer cancel()
	f.mu.Lock()
	happened := f.happened
	f.mu.Unlock()
	select {
	case <-happened:
	case <-ctx.Done():
	case <-f.peerHappened(ctx):
	}
	reply(w, http.StatusOK, f.seenWithPeers(r.Context()))
}

// getHealth is asked by the HEALTHCHECK. A front that is about to be replaced says no.
func (f *Front) getHealth(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	t := f.table
	f.mu.Unlock()
	switch {
	case t.Generation == 0:
		reply(w, http.StatusServiceUnavailable, problem{"it has no table", 0})
	case t.Leaving:
		reply(w, http.StatusServiceUnavailable, problem{"another front takes its place", t.Generation})
	default:
		reply(w, http.StatusOK, problem{"it serves", t.Generation})
	}
}

// seen is what this process knows.
func (f *Front) seen() ring.FrontSeen {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := ring.FrontSeen{
		Generation: f.table.Generation, Process: f.process, Build: f.Build, Connections: int(f.conns.Load()), Queued: f.queued, Cut: f.cuts.Load(),
		Crashes: int(f.crashes.Load()), Full: time.Now().Unix()-f.fullAt.Load() < 10, Instances: []ring.FrontInstanceSeen{}, Ports: []ring.FrontPortSeen{},
	}
	if f.queued > 0 {
		s.QueuedSince = f.since
	}
	for _, in := range f.table.Instances {
		m := f.members[in.Name]
		if m == nil {
			continue
		}
		is := ring.FrontInstanceSeen{Name: in.Name, Reached: m.reached, Why: m.why, Counts: m.counts.seen()}
		for c := range m.claims {
			if c.idle {
				continue
			}
			is.InFlight++
			if c.stream {
				is.Streams++
			}
		}
		s.Instances = append(s.Instances, is)
	}
	for _, at := range f.table.Ports {
		ps := ring.FrontPortSeen{Port: at.Port, Carry: at.Carry}
		if p := f.ports[portKey(at)]; p != nil {
			ps.Carry = p.carry()
		}
		ps.Unheard = at.Protocol() == "tcp" && f.unheard(at.Port)
		s.Ports = append(s.Ports, ps)
	}
	return s
}

// seenWithPeers adds what older proxies of this front carry still.
func (f *Front) seenWithPeers(ctx context.Context) ring.FrontSeen {
	others := f.askPeers(ctx, http.MethodGet, "/v1/seen?alone", nil)
	s := f.seen()
	f.peers.mu.Lock()
	defer f.peers.mu.Unlock()
	for _, o := range others {
		s.Old++ // one that does not answer may carry something, too
		if o.err != nil {
			continue
		}
		f.peers.remember(&o.seen)
		s.Connections += o.seen.Connections
		s.Queued += o.seen.Queued
		for i := range s.Instances {
			for _, in := range o.seen.Instances {
				if in.Name == s.Instances[i].Name {
					s.Instances[i].InFlight += in.InFlight
					s.Instances[i].Streams += in.Streams
				}
			}
		}
		if f.peers.cuts == nil {
			f.peers.cuts = map[string]peerCut{}
		}
		c, known := f.peers.cuts[o.seen.Process]
		if !known {
			c.first = o.seen.Cut
		}
		c.last = o.seen.Cut
		f.peers.cuts[o.seen.Process] = c
	}
	for c := range maps.Values(f.peers.cuts) {
		s.Cut += c.last - c.first
	}
	s.Before = f.peers.known()
	return s
}

// told is what a peer answered.
type told struct {
	path   string
	status int
	seen   ring.FrontSeen
	err    error
}

// peerSockets are those of the other proxies. One that nobody listens on is removed.
func (f *Front) peerSockets() []string {
	all, _ := filepath.Glob(filepath.Join(f.RunDir, "*.sock"))
	return slices.DeleteFunc(all, func(p string) bool {
		name := filepath.Base(p)
		return name == ring.FrontSocket || strings.TrimSuffix(name, ".sock") == f.process
	})
}

func (f *Front) askPeers(ctx context.Context, method, path string, body []byte) []told {
	sockets := f.peerSockets()
	out := make([]told, len(sockets))
	var all sync.WaitGroup
	for i, s := range sockets {
		all.Go(func() {
			out[i].path = s
			out[i].status, out[i].err = askSocket(ctx, s, controlTime, method, path, body, &out[i].seen)
		})
	}
	all.Wait()
	f.endHung(ctx, out)
	return slices.DeleteFunc(out, func(t told) bool {
		if !nobodyListens(t.err) {
			return false
		}
		_ = os.Remove(t.path)
		return true
	})
}

// tellPeers has every older proxy take the table too: only then it is in force.
func (f *Front) tellPeers(ctx context.Context, body []byte) error {
	for _, t := range f.askPeers(ctx, http.MethodPut, "/v1/table?alone", body) {
		switch {
		case t.err != nil:
			return fmt.Errorf("cannot tell an older proxy of this front: %w", t.err)
		case t.status != http.StatusOK && t.status != http.StatusConflict:
			return errors.New("cannot tell an older proxy of this front: it answers " + strconv.Itoa(t.status))
		}
	}
	return nil
}

// peerHappened is closed when something happened in an older proxy; nil where there is none.
func (f *Front) peerHappened(ctx context.Context) <-chan struct{} {
	sockets := f.peerSockets()
	if len(sockets) == 0 {
		return nil
	}
	out := make(chan struct{})
	var once sync.Once
	for _, s := range sockets {
		go func() {
			begun := time.Now()
			_, err := askSocket(ctx, s, waitMost, http.MethodGet, "/v1/wait?alone&for=30s", nil, &ring.FrontSeen{})
			if err == nil && ctx.Err() == nil || time.Since(begun) > 10*time.Millisecond && nobodyListens(err) {
				once.Do(func() { close(out) })
			}
		}()
	}
	return out
}

// askSocket asks the control of a process once.
func askSocket(ctx context.Context, socket string, most time.Duration, method, path string, body []byte, into any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	return ask(ctx, t, method, path, body, into)
}

func ask(ctx context.Context, t http.RoundTripper, method, path string, body []byte, into any) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://front"+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	res, err := t.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(io.LimitReader(res.Body, tableBytes*2+1))
	if err != nil {
		return 0, err
	}
	if len(got) > tableBytes*2 {
		return 0, errors.New("its answer is too long")
	}
	if err := json.Unmarshal(got, into); err != nil {
		return res.StatusCode, fmt.Errorf("its answer cannot be read: %w", err)
	}
	return res.StatusCode, nil
}
