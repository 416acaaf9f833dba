package api

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/gitring/gitring/ring"
)

// TrafficQuery asks for the fronts of an app, or of one service; "" is all.
type TrafficQuery struct{ App, Service string }

// FrontNow is the front of a service: what it was told, and what it says of itself. Where it
// does not answer, At is zero and all numbers are those of nobody.
type FrontNow struct {
	App     string `json:"app"`
	Service string `json:"service"` // before which it stands
	// Container is the front's, by name; "" while there is none. Phase and Reason are
	// those of its service.
	Container string     `json:"container,omitempty"`
	Phase     ring.Phase `json:"phase"`
	Reason    string     `json:"reason,omitempty"`
	At        time.Time  `json:"at,omitzero"` // when it answered last
	// Generation is of the table in force, Told of the newest that it acknowledged.
	Generation int64 `json:"generation"`
	Told       int64 `json:"told,omitempty"`
	// Build is the proxy's program, "sha256:…"; Newest reports whether it is the one that this
	// release brings. Old is how many older ones still carry something.
	Build       string        `json:"build,omitempty"`
	Newest      bool          `json:"newest"`
	Old         int           `json:"old,omitempty"`
	Connections int           `json:"connections"`
	Queued      int           `json:"queued"`
	QueuedSince time.Time     `json:"queued_since,omitzero"`
	Cut         int64         `json:"cut,omitempty"`
	Full        bool          `json:"full,omitempty"`
	Ports       []PortNow     `json:"ports"`
	Instances   []InstanceNow `json:"instances"`
	Canary      *CanaryNow    `json:"canary,omitempty"` // while two versions share the requests
}

// PortNow is a port of a front.
type PortNow struct {
	Port      int      `json:"port"`
	Protocol  string   `json:"protocol"`            // tcp or udp
	Carry     string   `json:"carry"`               // as it is carried now
	Published []string `json:"published,omitempty"` // on the host, such as "8080/tcp"; one that the engine chose is not among them
	Unheard   bool     `json:"unheard,omitempty"`   // no instance listens there
}

// InstanceNow is an instance as its front has it.
type InstanceNow struct {
	Name     string          `json:"name"` // as the table names it
	Instance string          `json:"instance,omitempty"`
	Version  string          `json:"version,omitempty"`
	State    ring.FrontState `json:"state"`
	Set      string          `json:"set"`
	// Weight is its share of new requests, in percent.
	Weight   float64 `json:"weight"`
	Reached  bool    `json:"reached"`
	Why      string  `json:"why,omitempty"`
	InFlight int     `json:"in_flight"`
	// Counts are since the proxy process began; P50 and P99 of the times to an answer's
	// head, in milliseconds, 0 where there was none.
	Counts ring.FrontCounts `json:"counts"`
	Errors int64            `json:"errors"` // answers of 500 and above, and none at all
	P50    float64          `json:"p50_ms"`
	P99    float64          `json:"p99_ms"`
}

// CanaryNow are the two sets while they share the requests.
type CanaryNow struct {
	Weight int    `json:"weight"` // percent, for the canary
	Stable SetNow `json:"stable"`
	Canary SetNow `json:"canary"`
	// Says is its step, and what the judge has of it.
	Says string `json:"says,omitempty"`
}

// SetNow is what came of the requests of one set.
type SetNow struct {
	Requests int64   `json:"requests"`
	Errors   int64   `json:"errors"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
}

// UpgradeRequest is the body of POST /v1/traffic/upgrade.
type UpgradeRequest struct {
	Reason string `json:"reason,omitempty"`
}

// Upgrading is the answer: the fronts, by app and service, whose proxies are to be replaced,
// one after the other.
type Upgrading struct {
	Fronts []ring.ServiceID `json:"fronts"`
}

// Failures are the requests of counts that came to nothing.
func Failures(c *ring.FrontCounts) int64 { return c.Answers5xx + c.NoAnswer }

// Quantile is the time below which that share of answers began, in milliseconds: between the
// bounds of its bucket as if they lay evenly. It is 0 where there was none, and the highest
// bound for what is above all.
func Quantile(heads []int64, share float64) float64 {
	var all int64
	for _, n := range heads {
		all += max(0, n)
	}
	if all == 0 {
		return 0
	}
	rank, below, from := share*float64(all), 0.0, 0.0
	for i, n := range heads {
		if i >= len(ring.FrontBuckets) {
			break
		}
		to := float64(ring.FrontBuckets[i])
		if here := float64(max(0, n)); here > 0 {
			if below+here >= rank {
				return math.Round((from+(to-from)*(rank-below)/here)*10) / 10
			}
			below += here
		}
		from = to
	}
	return from
}

// SetOf sums instances up.
func SetOf(all []InstanceNow, set string) SetNow {
	var out SetNow
	heads := make([]int64, len(ring.FrontBuckets)+1)
	for i := range all {
		if all[i].Set != set {
			continue
		}
		out.Requests += all[i].Counts.Requests
		out.Errors += all[i].Errors
		for j, n := range all[i].Counts.Heads {
			if j < len(heads) {
				heads[j] += n
			}
		}
	}
	out.P50, out.P99 = Quantile(heads, 0.5), Quantile(heads, 0.99)
	return out
}

func (s *Socket) traffic(w http.ResponseWriter, r *http.Request, _ Peer) error {
	q := query{values: r.URL.Query()}
	t := TrafficQuery{App: q.text("app"), Service: q.text("service")}
	switch {
	case q.err != nil:
		return q.err
	case t.App == "" && t.Service != "":
		return Usage("write app/service", "a service without its app")
	}
	all, err := s.calls.Traffic(r.Context(), t)
	if err != nil {
		return err
	}
	return writeJSON(w, all)
}

func (s *Socket) trafficUpgrade(w http.ResponseWriter, r *http.Request, p Peer) error {
	var u UpgradeRequest
	if err := readJSON(r, &u); err != nil {
		return err
	}
	done, err := s.calls.TrafficUpgrade(r.Context(), p, u)
	if err != nil {
		return err
	}
	s.log.Info("upgrade of proxies asked", "fronts", len(done.Fronts), "actor", p.Actor(), "reason", u.Reason)
	return writeJSON(w, done)
}

// Traffic is what the fronts of this host do.
func (c *Client) Traffic(ctx context.Context, q TrafficQuery) ([]FrontNow, error) {
	v := url.Values{}
	set(v, "app", q.App)
	set(v, "service", q.Service)
	var out []FrontNow
	return out, c.ask(ctx, http.MethodGet, "/v1/traffic", v, nil, &out)
}

// TrafficUpgrade has every front take the newest proxy, one after the other.
func (c *Client) TrafficUpgrade(ctx context.Context, r UpgradeRequest) (Upgrading, error) {
	var out Upgrading
	return out, c.ask(ctx, http.MethodPost, "/v1/traffic/upgrade", nil, r, &out)
}
