package ring

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// A front is the container that stands before a service: it publishes the service's ports,
// carries its routing labels, and gives each request to an instance (docs/design/traffic.md).

// FrontSuffix is what a front's name has after the name of its service.
const FrontSuffix = "-front"

// FrontImage is the image of every front in its spec and pin. It names the format that
// supervisor and daemon speak, never one build: so an upgrade of gitring makes no front anew.
const FrontImage = "gitring/front:1"

// FrontUser is the user and group that a front runs as.
const FrontUser = 65532

// Where a front finds things inside its container: its program, which cannot stand where the
// folder of newer ones is mounted, and the three folders below the state directory.
const (
	FrontProgram = "/bin/front"
	FrontTables  = "/table"     // <state>/fronts/<id>/table, read-only: table.json
	FrontRun     = "/run/front" // <state>/fronts/<id>/run: the control socket
	FrontBuilds  = "/front"     // <state>/front, read-only: <sha256>/front for each newer proxy
)

// FrontTableFile is the file of the table in FrontTables, and FrontSocket the socket in FrontRun.
const (
	FrontTableFile = "table.json"
	FrontSocket    = "front.sock"
)

// FrontID names the folder of a front below <state>/fronts: 16 hex digits, which keeps the
// path of its socket short.
func FrontID(container string) string {
	sum := sha256.Sum256([]byte(container))
	return hex.EncodeToString(sum[:8])
}

// How bytes of one port are carried.
const (
	CarryAuto = "auto" // http where the client begins so, else tcp
	CarryHTTP = "http"
	CarryTCP  = "tcp"
	CarryUDP  = "udp"
)

// Where a service's ports are published.
const (
	PublishFront  = "front"
	PublishDirect = "direct"
)

// StickyCookie has a cookie name the version while two of them serve; StickyNone does not.
const (
	StickyNone   = "none"
	StickyCookie = "cookie"
)

// Route says how the front of a service carries requests. It is complete where the service
// has a front, and enters no version: each of it is changed in place by a table.
type Route struct {
	// Ports are sorted by number, then protocol. They are empty only in a plan as it is read
	// where no file names any: then Exposed is how those are carried that the image exposes.
	Ports        []FrontPort   `json:"ports"`
	Exposed      string        `json:"exposed,omitempty"`
	DrainTimeout time.Duration `json:"drain_timeout"`
	Queue        time.Duration `json:"queue"` // 0 is no waiting
	Forwarded    bool          `json:"forwarded"`
	Sticky       string        `json:"sticky"`
	Internal     bool          `json:"internal,omitempty"`
	LogErrors    bool          `json:"log_errors,omitempty"`
	// Trusted and Connections are the host's: traffic.trusted_proxies ("networks",
	// "gateway", CIDRs) and traffic.front.connections.
	Trusted     []string `json:"trusted,omitempty"`
	Connections int      `json:"connections"`
}

// DefaultRoute is Route where nothing is said, without ports.
func DefaultRoute() Route {
	return Route{
		DrainTimeout: 30 * time.Second, Queue: 30 * time.Second, Forwarded: true,
		Sticky: StickyNone, Trusted: []string{"networks"}, Connections: 10000,
	}
}

// FrontPort is one container port that a front listens on.
type FrontPort struct {
	Port  int    `json:"port"`  // 1 to 65535
	Carry string `json:"carry"` // CarryAuto, CarryHTTP, CarryTCP, CarryUDP
	// Loopback reports whether it is published on loopback addresses alone, behind a proxy on
	// the host: there the gateway's word on X-Forwarded-* counts.
	Loopback bool `json:"loopback,omitempty"`
}

// Protocol is "udp" or "tcp".
func (p FrontPort) Protocol() string {
	if p.Carry == CarryUDP {
		return "udp"
	}
	return "tcp"
}

// FrontState is what a table asks of one instance.
type FrontState string

// The states of an instance in a table. One that is absent has everything to it closed.
const (
	FrontActive   FrontState = "active"   // gets new requests by weight
	FrontWarm     FrontState = "warm"     // runs and gets nothing
	FrontDraining FrontState = "draining" // keeps what it has and gets nothing new
)

// The sets of instances between which weights are split.
const (
	SetStable = "stable"
	SetCanary = "canary"
)

// FrontInstance is one instance in a table.
type FrontInstance struct {
	// Name is what the engine's DNS resolves on the networks of the front: the short
	// container ID, which no rename changes; a container name or service once Compose has it.
	Name string `json:"name"`
	// Addresses are never stored; Version is the short version, for the sticky cookie.
	Version string     `json:"version,omitempty"`
	State   FrontState `json:"state"`
	Set     string     `json:"set,omitempty"` // SetStable ("" too) or SetCanary
	// Until is when what is in flight to a draining one is cut.
	Until time.Time `json:"until,omitzero"`
}

// FrontTable is everything that a front is told, always whole.
type FrontTable struct {
	// Generation only grows; a table whose number is not larger changes nothing.
	Generation int64           `json:"generation"`
	Service    string          `json:"service"` // app/service, for words and the cookie
	Ports      []FrontPort     `json:"ports"`
	Instances  []FrontInstance `json:"instances"` // sorted by name
	// CanaryWeight is the share in percent of new requests for instances of SetCanary,
	// 0 to 100; it counts only while both sets have an active one.
	CanaryWeight int         `json:"canary_weight,omitempty"`
	Match        *FrontMatch `json:"match,omitempty"`
	// QueueUntil, where set, has requests wait for an active instance, each at most Queue.
	QueueUntil  time.Time     `json:"queue_until,omitzero"`
	Queue       time.Duration `json:"queue,omitempty"`
	Forwarded   bool          `json:"forwarded"`
	Trusted     []string      `json:"trusted,omitempty"`
	Gateways    []string      `json:"gateways,omitempty"` // addresses of the gateways of its networks
	Sticky      string        `json:"sticky,omitempty"`
	LogErrors   bool          `json:"log_errors,omitempty"`
	Connections int           `json:"connections"`
	// Leaving reports whether another front takes its place: it serves on, and its HEALTHCHECK
	// fails, so that label proxies send nothing more.
	Leaving bool `json:"leaving,omitempty"`
}

// State is what the table asks of an instance by its name; zero where it does not name it.
func (t *FrontTable) State(name string) FrontInstance {
	if t == nil {
		return FrontInstance{}
	}
	for _, in := range t.Instances {
		if in.Name == name {
			return in
		}
	}
	return FrontInstance{}
}

// FrontName is how tables name a container: the short form of its ID.
func FrontName(container string) string { return container[:min(len(container), 12)] }

// FrontMatch sends requests with such a header or cookie to the canary, always.
type FrontMatch struct {
	Header map[string]string `json:"header,omitempty"`
	Cookie map[string]string `json:"cookie,omitempty"`
}

// FrontSeen is what a front answers when it is asked. All numbers are bounded by the client.
type FrontSeen struct {
	At         time.Time `json:"at,omitzero"` // by the clock of the one who asked
	Generation int64     `json:"generation"`  // of the table in force
	// Process names the proxy process: its counters begin at 0 with it.
	Process     string    `json:"process"`
	Build       string    `json:"build"` // "sha256:…" of the proxy's program
	Connections int       `json:"connections"`
	Queued      int       `json:"queued"`
	QueuedSince time.Time `json:"queued_since,omitzero"`
	Cut         int64     `json:"cut"`  // ended at a deadline, since the process began
	Full        bool      `json:"full"` // connections or descriptors are used up
	// Crashes is how many proxies of this front ended by themselves, each within 10 min of the
	// one before; 0 once none did for that long.
	Crashes   int                 `json:"crashes,omitempty"`
	Instances []FrontInstanceSeen `json:"instances"`
	Ports     []FrontPortSeen     `json:"ports"`
	// Old is how many older proxy processes still carry something.
	Old int `json:"old,omitempty"`
	// Before are older proxy processes of this front, with what each has counted: those that
	// have ended since, too.
	Before []FrontBefore `json:"before,omitempty"`
	// Table is the table in force, whole, for a daemon that lost its own.
	Table *FrontTable `json:"table,omitempty"`
	// Wrong is why nothing of this is believed, by the one who asked: what follows its name.
	Wrong string `json:"-"`
}

// FrontInstanceSeen is what a front knows of one instance.
type FrontInstanceSeen struct {
	Name     string      `json:"name"`
	Reached  bool        `json:"reached"`
	Why      string      `json:"why,omitempty"` // not reached: what connecting said
	InFlight int         `json:"in_flight"`
	Streams  int         `json:"streams,omitempty"` // of these upgraded, tcp and udp: a gap does not wait for them
	Counts   FrontCounts `json:"counts"`            // since the process began
}

// FrontBefore is what an older proxy process of a front counted, by instance, since it began.
type FrontBefore struct {
	Process string                 `json:"process"`
	Counts  map[string]FrontCounts `json:"counts"`
}

// FrontPortSeen is what a front knows of one of its ports.
type FrontPortSeen struct {
	Port    int    `json:"port"`
	Carry   string `json:"carry"`   // as it is carried now: auto can become tcp
	Unheard bool   `json:"unheard"` // no instance listens there
}

// FrontCounts are what came of requests, since a proxy process began.
type FrontCounts struct {
	Requests   int64 `json:"requests"` // HTTP requests, tcp connections, udp flows
	Answers1xx int64 `json:"answers_1xx,omitempty"`
	Answers2xx int64 `json:"answers_2xx,omitempty"`
	Answers3xx int64 `json:"answers_3xx,omitempty"`
	Answers4xx int64 `json:"answers_4xx,omitempty"`
	Answers5xx int64 `json:"answers_5xx,omitempty"`
	NoAnswer   int64 `json:"no_answer,omitempty"` // reset, or nothing before the connection ended
	DialErrors int64 `json:"dial_errors,omitempty"`
	Retries    int64 `json:"retries,omitempty"`
	BytesIn    int64 `json:"bytes_in,omitempty"`
	BytesOut   int64 `json:"bytes_out,omitempty"`
	// HeadMicros is the sum of the times to the answer's head, in microseconds.
	HeadMicros int64 `json:"head_us,omitempty"`
	// Heads counts times to the answer's head, by FrontBuckets; the last is all above.
	Heads []int64 `json:"heads,omitempty"`
}

// FrontBuckets are the upper bounds of FrontCounts.Heads, in milliseconds.
var FrontBuckets = []int{1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000, 10000, 30000}

// FrontRow is what is remembered of the front of a service: its last acknowledged table. If
// it is lost it is read back from the front.
type FrontRow struct {
	Service ServiceID  `json:"service"`
	Table   FrontTable `json:"table"`
	// Front is the container that acknowledged it, by ID.
	Front string `json:"front"`
	// Sent is a table that was on its way to SentTo, a container, when nobody heard more of
	// it: it may come into force there at any moment, until a newer one is acknowledged.
	Sent   *FrontTable `json:"sent,omitempty"`
	SentTo string      `json:"sent_to,omitempty"`
	// Open are, by container, such tables of fronts that did not answer when another one was
	// told: each may still come into force there.
	Open map[string]FrontTable `json:"open,omitempty"`
	// Claims is how often Front had a table that it was not told, and Silent since when it
	// runs and is not heard.
	Claims int       `json:"claims,omitempty"`
	Silent time.Time `json:"silent,omitzero"`
	// Signaled is when its proxy was last started anew for its silence.
	Signaled time.Time `json:"signaled,omitzero"`
	// Restarts is how often its container was started anew for that, and has not been heard for
	// 10 min since.
	Restarts int `json:"restarts,omitempty"`
}

// Row is by the service that the front stands before.
func (r FrontRow) Row() (string, string) { return "front", string(r.Service) }

// FrontAt is a front to be asked: its container ID and name, the service it stands before, and
// when its container started.
type FrontAt struct {
	Container, Name string
	Service         ServiceID
	Since           time.Time
}

// CanaryPlan is how a canary goes.
type CanaryPlan struct {
	Steps    []CanaryStep `json:"steps"`              // with growing weights; never empty
	Replicas int          `json:"replicas,omitempty"` // 0 is ceil(wanted replicas x weight / 100)
	Match    *FrontMatch  `json:"match,omitempty"`
	Judge    *Judge       `json:"judge,omitempty"` // nil is off
}

// CanaryStep is one weight of a canary and how long it lasts.
type CanaryStep struct {
	Weight int           `json:"weight"` // percent, 1 to 99
	For    time.Duration `json:"for"`
	Manual bool          `json:"manual,omitempty"` // goes on by a person's promote only
}

// Judge is the rule that says whether a canary goes on.
type Judge struct {
	Interval    time.Duration `json:"interval"`
	MinRequests int           `json:"min_requests"`
	MaxErrors   int           `json:"max_errors"` // per thousand
	MaxP99      int           `json:"max_p99"`    // percent of the stable set's
	Failures    int           `json:"failures"`   // bad windows in a row
	OnQuiet     string        `json:"on_quiet"`   // QuietAdvance or QuietPause
}

// What follows a step in which too few requests came to judge by.
const (
	QuietAdvance = "advance"
	QuietPause   = "pause"
)

// DefaultJudge is the Judge where nothing is said.
func DefaultJudge() Judge {
	return Judge{Interval: 15 * time.Second, MinRequests: 50, MaxErrors: 10, MaxP99: 150, Failures: 2, OnQuiet: QuietAdvance}
}

// CanaryRow is what the judge of a canary counted in the step under way. A front counts from
// 0 with each process, so differences are added up.
type CanaryRow struct {
	Process string                 `json:"process"`
	At      time.Time              `json:"at"`             // when it was added to last
	Since   time.Time              `json:"since"`          // when the window began
	Last    map[string]CanaryCount `json:"last,omitempty"` // by name, as Process said last
	// Window and Step are sums of both sets since the window, or the step, began.
	Window CanarySums `json:"window"`
	Step   CanarySums `json:"step"`
	Bad    int        `json:"bad,omitempty"`    // windows in a row
	Judged int        `json:"judged,omitempty"` // windows of this step
}

// CanarySums are the counts of both sets.
type CanarySums struct {
	Canary CanaryCount `json:"canary"`
	Stable CanaryCount `json:"stable"`
}

// CanaryCount are answers and how many of them were errors: 5xx, a reset, no answer.
type CanaryCount struct {
	Answers int64   `json:"answers"`
	Errors  int64   `json:"errors,omitempty"`
	Heads   []int64 `json:"heads,omitempty"` // by FrontBuckets
}

// Answered is what a judge counts of what a front says of one instance.
func (c FrontCounts) Answered() CanaryCount {
	errors := c.Answers5xx + c.NoAnswer
	return CanaryCount{Answers: c.Answers2xx + c.Answers3xx + c.Answers4xx + errors, Errors: errors, Heads: c.Heads}
}
