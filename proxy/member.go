package proxy

import (
	"net/http"
	"time"

	"github.com/gitring/gitring/ring"
)

// How long an instance that cannot be connected to is passed over.
const (
	passFirst = time.Second
	passMost  = 30 * time.Second
)

// member is one instance of the table, with all that is in flight to it. What it has is
// guarded by Front.mu, but for counts and the transports.
type member struct {
	name string
	at   ring.FrontInstance
	gone bool // no table names it any more

	claims   map[*claim]bool
	deadline *time.Timer

	share  int // of smooth
	failed int // connections in a row that could not be opened
	passed time.Time

	reached bool
	why     string
	open    map[int]bool // tcp ports that took a connection
	probed  time.Time

	counts *counts
	ways   *ways
}

// claim is one thing in flight: it holds its instance from the choice to the last byte.
type claim struct {
	m      *member
	stream bool   // upgraded, tcp or udp: a gap does not wait for it
	idle   bool   // nobody spoke yet: it is given up as soon as the instance drains
	cut    func() // ends it at the deadline
	over   bool
}

func newMember(f *Front, at ring.FrontInstance) *member {
	m := &member{name: at.Name, at: at, claims: map[*claim]bool{}, open: map[int]bool{}, counts: newCounts()}
	m.ways = newWays(f, m)
	return m
}

// passOver is told that a connection could not be opened.
func (m *member) passOver(now time.Time, why error) {
	wait := passMost
	if m.failed < 5 {
		wait = passFirst << m.failed
	}
	m.failed++
	m.passed = now.Add(wait)
	m.reached, m.why = false, short(why.Error())
	m.counts.dialErrors.Add(1)
}

// short keeps what a front tells in bounds.
func short(text string) string {
	if len(text) > 200 {
		return text[:200]
	}
	return text
}

// ways are the pools of connections to one instance.
type ways struct {
	safe *http.Transport // for requests of a safe method without a body
	once *http.Transport // for all others
	h2   *http.Transport
}

// How long a connection may idle. An instance that closes its idle connections early can
// meet a request on its way: what is not repeated gets a fresh one.
const (
	idleSafe = 4 * time.Second
	idleOnce = 500 * time.Millisecond
)

func newWays(f *Front, m *member) *ways {
	make := func(idle time.Duration, h2 bool) *http.Transport {
		t := &http.Transport{
			DialContext: f.dialFor(m), DisableCompression: true, IdleConnTimeout: idle, MaxIdleConnsPerHost: 64,
			ExpectContinueTimeout: time.Second, MaxResponseHeaderBytes: 1 << 20, Protocols: new(http.Protocols),
		}
		t.Protocols.SetHTTP1(!h2)
		t.Protocols.SetUnencryptedHTTP2(h2)
		return t
	}
	return &ways{safe: make(idleSafe, false), once: make(idleOnce, false), h2: make(idleSafe, true)}
}

func (w *ways) closeIdle() {
	w.safe.CloseIdleConnections()
	w.once.CloseIdleConnections()
	w.h2.CloseIdleConnections()
}
