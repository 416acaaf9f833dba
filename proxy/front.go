package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http/httputil"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gitring/gitring/ring"
)

// Options of a Front. Its folders are needed; the rest may be left out.
type Options struct {
	TableDir, RunDir string
	// Sockets are those that were inherited, by "tcp:8080" and "udp:53". A port without
	// one is opened.
	Sockets map[string]*os.File
	Build   string // "sha256:…" of this program
	Memory  int64  // of the container, in bytes; 0 is 256 MiB, or what RunProxy finds
	Log     *log.Logger
	// Lookup and Own are the engine's DNS and the interfaces, where they are not given.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	own    func() ownNet
	limits limits        // of clients; nothing is as docs/design/traffic.md says
	hung   time.Duration // see hungAfter
}

// limits are how long a client may take for a whole head, and be silent between two requests.
type limits struct{ head, idle time.Duration }

// Bounds of one front: docs/design/traffic.md.
const (
	maxQueued   = 1000
	dialTries   = 4
	dialBudget  = 5 * time.Second
	resetAfter  = 5 * time.Second // from FIN to RST, at a deadline
	stallLimit  = 60 * time.Second
	oldest      = 24 * time.Hour // of a proxy that was replaced
	lastMoments = 2 * time.Second
)

// Front is the process that carries bytes. New starts nothing; Run serves.
type Front struct {
	Options
	process string
	budget  int64 // of memory, for connections
	names   *names
	proxy   *httputil.ReverseProxy

	retired  atomic.Bool
	limit    atomic.Int64 // of connections
	conns    atomic.Int64
	upgraded atomic.Int64
	waiting  atomic.Int64 // of conns, those whose first head is awaited
	cuts     atomic.Int64
	crashes  atomic.Int32 // of proxies before this one: see ring.FrontSeen
	fullAt   atomic.Int64 // unix seconds of the last time when it was full
	stalling stalling
	idle     idleConns

	mu       sync.Mutex // guards what follows
	table    ring.FrontTable
	trust    trust
	until    time.Time // of the queue
	members  map[string]*member
	accepted map[string]map[int]bool // tcp ports that an instance of a version took connections on
	queued   int
	since    time.Time     // when somebody began to wait
	changed  chan struct{} // closed and replaced when a table comes into force
	happened chan struct{} // closed and replaced when something drained or was lost
	ports    map[string]*port

	tables sync.Mutex // held while a table is brought into force, so that they come one by one
	peers  peers
}

// New makes a front; it starts nothing.
func New(o Options) *Front {
	if o.Log == nil {
		o.Log = log.New(os.Stderr, "", log.LstdFlags|log.LUTC)
	}
	if o.Lookup == nil {
		o.Lookup = engineLookup
	}
	if o.own == nil {
		o.own = interfaces
	}
	o.limits = limits{head: cmp.Or(o.limits.head, headLimit), idle: cmp.Or(o.limits.idle, idleLimit)}
	o.hung = cmp.Or(o.hung, hungAfter)
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	f := &Front{
		Options: o, process: hex.EncodeToString(id), budget: budgetOf(cmp.Or(o.Memory, defaultMemory)), names: newNames(o.Lookup, o.own), members: map[string]*member{},
		accepted: map[string]map[int]bool{}, changed: make(chan struct{}), happened: make(chan struct{}), ports: map[string]*port{},
	}
	f.limit.Store(int64(ring.DefaultRoute().Connections))
	f.proxy = f.newProxy()
	return f
}

// errOld refuses a table whose generation is not larger.
var errOld = errors.New("cannot take a table whose generation is not larger")

// Apply brings a table into force that was checked. What it names anew was tried before it
// returns, for at most a second.
func (f *Front) apply(ctx context.Context, t ring.FrontTable) error {
	f.tables.Lock()
	defer f.tables.Unlock()
	tr, err := trustOf(t)
	if err != nil {
		return err
	}
	f.mu.Lock()
	if t.Generation <= f.table.Generation {
		f.mu.Unlock()
		return errOld
	}
	f.mu.Unlock()
	if err := f.listen(t.Ports); err != nil {
		return err
	}
	f.mu.Lock()
	f.table, f.trust = t, tr
	f.until = t.QueueUntil
	if most := time.Now().Add(2 * t.Queue); f.until.After(most) {
		f.until = most // a daemon that dies cannot make clients wait for ever
	}
	if n := t.Connections; n > 0 {
		f.limit.Store(int64(n))
	}
	cuts, idle, fresh := f.swap(t)
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
	for _, cut := range cuts {
		cut()
	}
	for _, m := range idle {
		m.ways.closeIdle()
	}
	f.probe(ctx, fresh)
	return nil
}

// swap makes the members as the table has them. It gives what to cut, whose idle connections
// to close, and who is to be tried.
func (f *Front) swap(t ring.FrontTable) (cuts []func(), idle, fresh []*member) {
	named := map[string]bool{}
	for _, in := range t.Instances {
		named[in.Name] = true
		m := f.members[in.Name]
		if m == nil {
			m = newMember(f, in)
			f.members[in.Name] = m
			fresh = append(fresh, m)
		}
		if m.at.State == ring.FrontDraining && in.State != ring.FrontDraining {
			m.reached, m.why = false, "" // it may be another process by now
			fresh = append(fresh, m)
		}
		m.at = in
		m.share = 0
		if m.deadline != nil {
			m.deadline.Stop()
			m.deadline = nil
		}
		if in.State != ring.FrontDraining {
			continue
		}
		idle = append(idle, m)
		for c := range m.claims {
			if c.idle && !c.over && c.cut != nil { // without one it is seen to as soon as it has one
				c.over = true
				cuts = append(cuts, c.cut)
			}
		}
		if !in.Until.IsZero() {
			m.deadline = time.AfterFunc(time.Until(in.Until), func() { f.passDeadline(m) })
		}
	}
	for name, m := range f.members {
		if named[name] {
			continue
		}
		m.gone = true
		if m.deadline != nil {
			m.deadline.Stop()
		}
		delete(f.members, name)
		idle = append(idle, m)
		cuts = append(cuts, f.cutsOf(m)...)
	}
	versions := map[string]bool{}
	for _, in := range t.Instances {
		versions[in.Version] = true
	}
	for v := range f.accepted {
		if !versions[v] {
			delete(f.accepted, v)
		}
	}
	return cuts, idle, fresh
}

// cutsOf end everything to an instance.
func (f *Front) cutsOf(m *member) (cuts []func()) {
	for c := range m.claims {
		if !c.over && c.cut != nil {
			c.over = true
			if !c.idle {
				f.cuts.Add(1)
			}
			cuts = append(cuts, c.cut)
		}
	}
	return cuts
}

func (f *Front) passDeadline(m *member) {
	f.mu.Lock()
	if m.at.State != ring.FrontDraining || m.at.Until.IsZero() || time.Now().Before(m.at.Until) {
		f.mu.Unlock()
		return
	}
	cuts := f.cutsOf(m)
	f.mu.Unlock()
	for _, cut := range cuts {
		cut()
	}
}

// Why a request has no instance.
var (
	errNobody = errors.New("no instance is active")
	errFull   = errors.New("too many requests wait already")
	errTried  = errors.New("no other instance is active")
)

// claim chooses an instance and has c hold it. While the table queues, it waits for one.
func (f *Front) claim(ctx context.Context, w wants, c *claim) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var timer *time.Timer
	for {
		if m := choose(f.active(), f.table.CanaryWeight, w, time.Now()); m != nil {
			c.m, c.over = m, false
			m.claims[c] = true
			if !c.idle {
				m.counts.requests.Add(1)
			}
			return nil
		}
		if len(w.tried) > 0 {
			return errTried
		}
		if c.idle {
			return errNobody
		}
		wait := min(time.Until(f.until), f.table.Queue)
		if wait <= 0 {
			return errNobody
		}
		if timer == nil {
			if f.queued >= maxQueued {
				return errFull
			}
			if f.queued == 0 {
				f.since = time.Now()
			}
			f.queued++
			defer func() { f.queued-- }()
			timer = time.NewTimer(wait)
			defer timer.Stop()
		}
		changed := f.changed
		f.mu.Unlock()
		over := false
		select {
		case <-changed:
		case <-timer.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		f.mu.Lock()
		if over {
			return errNobody
		}
	}
}

// active are the instances that get new requests.
func (f *Front) active() []*member {
	out := make([]*member, 0, len(f.table.Instances))
	for _, in := range f.table.Instances {
		if m := f.members[in.Name]; in.State == ring.FrontActive && m != nil {
			out = append(out, m)
		}
	}
	return out
}

// release gives an instance back. Doubled calls do no harm.
func (f *Front) release(c *claim) {
	f.mu.Lock()
	m := c.m
	if m == nil || !m.claims[c] {
		f.mu.Unlock()
		return
	}
	delete(m.claims, c)
	leaving := m.gone || m.at.State == ring.FrontDraining
	if (leaving || m.at.State != ring.FrontActive) && len(m.claims) == 0 {
		f.tell()
	}
	f.mu.Unlock()
	if leaving {
		m.ways.closeIdle()
	}
}

// tell wakes whoever waits for something to drain or to be lost; with f.mu held.
func (f *Front) tell() {
	close(f.happened)
	f.happened = make(chan struct{})
}

// dialError is the error of a connection that was never there: nothing was sent by it.
type dialError struct{ err error }

func (e dialError) Error() string { return e.err.Error() }
func (e dialError) Unwrap() error { return e.err }

// dialFor is how a pool connects to an instance; the host of the address is not looked at.
func (f *Front) dialFor(m *member) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		_, number, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, dialError{err}
		}
		c, err := f.dial(ctx, m, number, dialBudget/dialTries)
		if err != nil {
			return nil, err
		}
		return &countedConn{TCPConn: c}, nil
	}
}

// dial connects to a port of an instance, and remembers whether that could be done.
func (f *Front) dial(ctx context.Context, m *member, number string, most time.Duration) (*net.TCPConn, error) {
	c, err := f.connect(ctx, m.name, number, most)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			was := m.reached
			m.passOver(time.Now(), err)
			if was {
				f.tell()
			}
		}
		return nil, dialError{err}
	}
	m.failed, m.passed = 0, time.Time{}
	return c, nil
}

func (f *Front) connect(ctx context.Context, name, number string, most time.Duration) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	addrs, err := f.names.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	for i, a := range addrs {
		d := net.Dialer{Timeout: most / time.Duration(len(addrs)-i+1) * 2}
		var c net.Conn
		if c, err = d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), number)); err == nil {
			return c.(*net.TCPConn), nil
		}
	}
	return nil, err
}

// countedConn knows what was written and read, so that it can be told whether a request was
// sent at all.
type countedConn struct {
	*net.TCPConn
	in, out atomic.Int64
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.out.Add(int64(n))
	return n, err
}

// Run serves until ctx ends: it takes the socket over, reads the table from disk and opens the
// ports; then it calls ready.
func (f *Front) Run(ctx context.Context, ready func()) error {
	end, err := f.serveControl(ctx)
	if err != nil {
		return err
	}
	defer end()
	body, err := os.ReadFile(filepath.Join(f.TableDir, ring.FrontTableFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("cannot read the table: %w", err)
	default:
		t, err := readTable(body)
		if err == nil {
			err = f.apply(ctx, t)
		}
		if err != nil && !errors.Is(err, errOld) {
			return err
		}
	}
	var loops sync.WaitGroup
	loops.Go(func() { f.probeLoop(ctx) })
	loops.Go(func() { f.stallLoop(ctx) })
	defer loops.Wait()
	ready()
	<-ctx.Done()
	f.stopListening()
	return nil
}

// Retire stops accepting: another process has the sockets now. What is here ends by itself.
func (f *Front) retire() {
	f.retired.Store(true)
	f.stopListening()
	f.tables.Lock()
	defer f.tables.Unlock()
	for _, s := range f.Sockets { // else the port stays open, and nobody accepts
		_ = s.Close()
	}
}

// busy is how much this process still carries: connections and udp flows.
func (f *Front) busy() int64 {
	n := f.conns.Load()
	for _, p := range f.portList() {
		n += int64(p.flowCount())
	}
	return n
}

// inFlight is how many requests, streams and flows are in flight.
func (f *Front) inFlight() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		for c := range m.claims {
			if !c.idle {
				n++
			}
		}
	}
	return n + f.queued
}

func (f *Front) portList() []*port {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*port
	for _, p := range f.ports {
		out = append(out, p)
	}
	return out
}

// listen opens the ports of a table that are not open yet, and closes those that it has not.
func (f *Front) listen(ports []ring.FrontPort) error {
	if f.retired.Load() {
		return nil
	}
	wanted := map[string]bool{}
	for _, at := range ports {
		key := portKey(at)
		wanted[key] = true
		f.mu.Lock()
		p := f.ports[key]
		f.mu.Unlock()
		if p != nil {
			p.become(at)
			continue
		}
		p, err := f.openPort(at)
		if err != nil {
			return fmt.Errorf("cannot listen on %s: %w", strings.ReplaceAll(key, ":", " port "), err)
		}
		f.mu.Lock()
		f.ports[key] = p
		f.mu.Unlock()
	}
	f.mu.Lock()
	var gone []*port
	for key, p := range f.ports {
		if !wanted[key] {
			gone = append(gone, p)
			delete(f.ports, key)
		}
	}
	f.mu.Unlock()
	for _, p := range gone {
		p.close()
	}
	return nil
}

func (f *Front) stopListening() {
	for _, p := range f.portList() {
		p.close()
	}
}

// tcpPorts are the container ports to try an instance on, sorted.
func tcpPorts(t ring.FrontTable) (out []int) {
	for _, p := range t.Ports {
		if p.Protocol() == "tcp" {
			out = append(out, p.Port)
		}
	}
	slices.Sort(out)
	return out
}
