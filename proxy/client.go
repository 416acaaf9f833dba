package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/ring"
)

// How fronts are asked. Whoever has not answered for that long is not seen.
const (
	askEvery   = 900 * time.Millisecond
	unseenFrom = 3 * time.Second
	routeTime  = 3 * time.Second
	refuseMost = 5 * time.Minute // without a table that it took, though it was told some
)

// Client speaks with the fronts of this host: it is the loop's reconcile.Fronts. A front may
// have been taken over: nothing that it says or does leads out of its folder, and its numbers
// are bounded.
type Client struct {
	fronts  string // <state>/fronts
	user    int    // whose the socket of a front is
	disk    tableDisk
	changed func()
	heard   func(at ring.FrontAt, s ring.FrontSeen)

	poke chan struct{}

	mu      sync.Mutex // guards what follows
	watched map[string]ring.FrontAt
	seen    map[string]ring.FrontSeen
	refused map[string]refusal // of which none of the tables was taken
}

// NewClient makes a client for the fronts below a state directory; it starts nothing. changed
// is called when something drained or was lost, and when a front is seen or unseen.
func NewClient(state string, changed func()) *Client {
	user := ring.FrontUser
	if uid := os.Geteuid(); uid > 0 {
		user = uid // the front is ours, as its folders are
	}
	if changed == nil {
		changed = func() {}
	}
	return &Client{
		fronts: filepath.Join(state, "fronts"), user: user, disk: hostDisk{}, changed: changed, poke: make(chan struct{}, 1),
		watched: map[string]ring.FrontAt{}, seen: map[string]ring.FrontSeen{}, refused: map[string]refusal{},
	}
}

// Hear has fn told of each answer of a front that is watched, from many goroutines. It is called
// before Run.
func (c *Client) Hear(fn func(at ring.FrontAt, s ring.FrontSeen)) { c.heard = fn }

// Watch replaces the set of fronts that are asked.
func (c *Client) Watch(fronts []ring.FrontAt) {
	c.mu.Lock()
	c.watched = map[string]ring.FrontAt{}
	for _, at := range fronts {
		c.watched[at.Container] = at
	}
	for id := range c.seen {
		if _, ok := c.watched[id]; !ok {
			delete(c.seen, id)
		}
	}
	for id := range c.refused {
		if _, ok := c.watched[id]; !ok {
			delete(c.refused, id)
		}
	}
	c.mu.Unlock()
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// Seen is what each watched front answered last, by container ID. One that did not answer
// lately is left out.
func (c *Client) Seen() map[string]ring.FrontSeen {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]ring.FrontSeen{}
	for id, s := range c.seen {
		if time.Since(s.At) <= unseenFrom {
			out[id] = s
		}
	}
	return out
}

// Run asks the watched fronts until ctx ends.
func (c *Client) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	type asking struct {
		at   ring.FrontAt
		stop context.CancelFunc
	}
	running := map[string]asking{}
	for {
		c.mu.Lock()
		for id, a := range running {
			if at, ok := c.watched[id]; !ok || at != a.at {
				a.stop()
				delete(running, id)
			}
		}
		for id, at := range c.watched {
			if _, ok := running[id]; ok {
				continue
			}
			one, stop := context.WithCancel(ctx)
			running[id] = asking{at, stop}
			all.Go(func() { c.follow(one, at) })
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			for _, a := range running {
				a.stop()
			}
			return nil
		case <-c.poke:
		}
	}
}

// follow asks one front again and again.
func (c *Client) follow(ctx context.Context, at ring.FrontAt) {
	c.refuses(at, 0, nil) // by an earlier start of it
	var held suspicion
	for ctx.Err() == nil {
		begun := time.Now()
		s, err := c.ask(ctx, at)
		if err == nil {
			c.took(at, s.Generation)
		}
		if s.Wrong = c.wrong(at, &held); err == nil {
			c.remember(at, s)
		} else {
			c.forget(at)
		}
		if rest := 50*time.Millisecond - time.Since(begun); err == nil && rest > 0 {
			pause(ctx.Done(), rest) // much can happen at once
		} else if err != nil {
			pause(ctx.Done(), askEvery)
		}
	}
}

func (c *Client) ask(ctx context.Context, at ring.FrontAt) (ring.FrontSeen, error) {
	c.mu.Lock()
	last, known := c.seen[at.Container]
	c.mu.Unlock()
	path := "/v1/wait?for=" + askEvery.String()
	if !known || last.Table == nil || last.Generation != last.Table.Generation {
		path = "/v1/seen?table"
	}
	var s ring.FrontSeen
	status, err := c.send(ctx, at, askEvery+controlTime, http.MethodGet, path, nil, &s)
	switch {
	case err != nil:
		return s, err
	case status != http.StatusOK:
		return s, fmt.Errorf("it answers %d", status)
	}
	s = bounded(s, time.Now())
	if s.Table == nil && known && last.Table != nil && s.Generation == last.Table.Generation && s.Process == last.Process {
		s.Table = last.Table
	}
	if s.Table == nil && s.Generation > 0 && path == "/v1/seen?table" {
		return s, errNoTable
	}
	return s, nil
}

// remember takes an answer down, and tells if it has news.
func (c *Client) remember(at ring.FrontAt, s ring.FrontSeen) {
	c.mu.Lock()
	last, known := c.seen[at.Container]
	_, watched := c.watched[at.Container]
	if watched {
		c.seen[at.Container] = s
	}
	c.mu.Unlock()
	if watched && c.heard != nil && s.Wrong == "" {
		c.heard(at, s)
	}
	if watched && (!known || time.Since(last.At) > unseenFrom || news(last, s)) {
		c.changed()
	}
}

// forget tells that a front is not seen any more, once.
func (c *Client) forget(at ring.FrontAt) {
	c.mu.Lock()
	s, known := c.seen[at.Container]
	lost := known && time.Since(s.At) > unseenFrom
	if lost {
		delete(c.seen, at.Container)
	}
	c.mu.Unlock()
	if lost {
		c.changed()
	}
}

// news reports whether something that is decided by differs between two answers.
func news(a, b ring.FrontSeen) bool {
	if a.Process != b.Process || a.Wrong != b.Wrong || a.Generation != b.Generation || a.Full != b.Full || a.Crashes != b.Crashes || a.Old != b.Old || len(a.Instances) != len(b.Instances) || len(a.Ports) != len(b.Ports) {
		return true
	}
	for i := range a.Instances {
		x, y := a.Instances[i], b.Instances[i]
		ended := (x.InFlight == 0) != (y.InFlight == 0) || (x.InFlight == x.Streams) != (y.InFlight == y.Streams)
		if x.Name != y.Name || x.Reached != y.Reached || ended && goesOut(b, y.Name) {
			return true
		}
	}
	for i := range a.Ports {
		if a.Ports[i] != b.Ports[i] {
			return true
		}
	}
	return false
}

// goesOut reports whether a front sends an instance nothing new.
func goesOut(s ring.FrontSeen, name string) bool {
	if s.Table == nil {
		return true
	}
	for _, in := range s.Table.Instances {
		if in.Name == name {
			return in.State != ring.FrontActive
		}
	}
	return true
}

// OldTable is the error of Route when the front has a table whose generation is not smaller.
type OldTable struct {
	Generation int64 // of the table that the front has
}

func (e *OldTable) Error() string {
	return fmt.Sprintf("cannot route: the front has table %d already", e.Generation)
}

// FrontGeneration is the generation that the front has: the next one is larger.
func (e *OldTable) FrontGeneration() int64 { return e.Generation }

// Route writes a table to disk, then sends it to the front.
func (c *Client) Route(ctx context.Context, at ring.FrontAt, t ring.FrontTable) (ring.FrontSeen, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return ring.FrontSeen{}, fmt.Errorf("cannot route: %w", err)
	}
	if _, err := readTable(body); err != nil {
		return ring.FrontSeen{}, fmt.Errorf("cannot route: %w", err)
	}
	if err := c.Write(at, body); err != nil {
		return ring.FrontSeen{}, fmt.Errorf("cannot route: %w", err)
	}
	var s struct {
		ring.FrontSeen
		Says string `json:"says"`
	}
	status, err := c.send(ctx, at, routeTime, http.MethodPut, "/v1/table", body, &s)
	seen := bounded(s.FrontSeen, time.Now())
	switch {
	case err != nil:
		err = fmt.Errorf("cannot route: %w", err)
	case status == http.StatusConflict:
		err = &OldTable{Generation: seen.Generation}
	case status != http.StatusOK:
		err = fmt.Errorf("cannot route: the front answers %d: %s", status, plain(s.Says))
	case seen.Generation != t.Generation:
		err = fmt.Errorf("cannot route: the front took the table and has %d", seen.Generation)
	}
	if c.refuses(at, t.Generation, err); err != nil {
		return ring.FrontSeen{}, err
	}
	if seen.Generation == t.Generation {
		seen.Table = &t
	}
	c.remember(at, seen)
	return seen, nil
}

// Write has a table be on disk where the front at reads it when it starts; body is its JSON.
func (c *Client) Write(at ring.FrontAt, body []byte) error {
	return writeTable(c.disk, c.fronts, at, body, c.user)
}

// send asks the front once. The connection is of this one question: an older proxy of the
// front may keep one open.
func (c *Client) send(ctx context.Context, at ring.FrontAt, most time.Duration, method, path string, body []byte, into any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	t := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialFront(ctx, c.fronts, filepath.Join(ring.FrontID(at.Name), "run", ring.FrontSocket), c.user)
	}}
	return ask(ctx, t, method, path, body, into)
}

func isBuildName(s string) bool {
	sum, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(sum) == 64 && isProcessName(sum)
}

func isProcessName(s string) bool { return ring.IsMadeOf(s, ring.HexDigits, 64) }

// bounded is what is believed of an answer.
func bounded(s ring.FrontSeen, now time.Time) ring.FrontSeen {
	s.At = now
	s.Generation = between(s.Generation, 1<<53)
	if !isProcessName(s.Process) {
		s.Process = ""
	}
	if !isBuildName(s.Build) {
		s.Build = ""
	}
	s.Connections, s.Queued, s.Old, s.Cut = small(s.Connections), small(s.Queued), small(s.Old), between(s.Cut, 1<<53)
	s.Crashes = small(s.Crashes)
	if s.QueuedSince.After(now) || now.Sub(s.QueuedSince) > maxQueue {
		s.QueuedSince = time.Time{}
	}
	var instances []ring.FrontInstanceSeen
	known := map[string]bool{}
	for _, in := range s.Instances {
		if len(instances) == maxInstances || !isPlainName(in.Name) || known[in.Name] {
			continue
		}
		known[in.Name] = true
		in.Why, in.InFlight, in.Streams, in.Counts = plain(in.Why), small(in.InFlight), small(in.Streams), boundedCounts(in.Counts)
		instances = append(instances, in)
	}
	s.Instances = instances
	s.Before = boundedBefore(s.Before)
	var ports []ring.FrontPortSeen
	for _, p := range s.Ports {
		if len(ports) == maxPorts || p.Port < 1 || p.Port > 65535 || !carries(p.Carry) {
			continue
		}
		ports = append(ports, p)
	}
	s.Ports = ports
	if s.Table != nil && (checkTable(*s.Table) != nil || s.Table.Generation != s.Generation) {
		s.Table = nil
	}
	return s
}

func boundedBefore(all []ring.FrontBefore) (out []ring.FrontBefore) {
	for _, b := range all {
		if len(out) == maxBefore || !isProcessName(b.Process) {
			continue
		}
		counts := map[string]ring.FrontCounts{}
		for name, c := range b.Counts {
			if len(counts) < maxInstances && isPlainName(name) {
				counts[name] = boundedCounts(c)
			}
		}
		out = append(out, ring.FrontBefore{Process: b.Process, Counts: counts})
	}
	return out
}

func boundedCounts(c ring.FrontCounts) ring.FrontCounts {
	for _, n := range []*int64{
		&c.Requests, &c.Answers1xx, &c.Answers2xx, &c.Answers3xx, &c.Answers4xx, &c.Answers5xx, &c.NoAnswer, &c.DialErrors, &c.Retries, &c.BytesIn, &c.BytesOut, &c.HeadMicros,
	} {
		*n = between(*n, 1<<53)
	}
	if len(c.Heads) > len(ring.FrontBuckets)+1 {
		c.Heads = c.Heads[:len(ring.FrontBuckets)+1]
	}
	for i := range c.Heads {
		c.Heads[i] = between(c.Heads[i], 1<<53)
	}
	return c
}

func between(n, most int64) int64 { return max(0, min(n, most)) }

func small(n int) int { return max(0, min(n, 1<<30)) }

// plain is text of a front that may be shown: short, and without control characters.
func plain(text string) string {
	out := make([]rune, 0, min(len(text), 200))
	for _, r := range text {
		if len(out) == 200 {
			break
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 || r > 0xffff {
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
