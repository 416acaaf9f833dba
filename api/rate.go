package api

import (
	"net"
	"net/netip"
	"sync"
	"time"

	xrate "golang.org/x/time/rate"
)

// rateAddresses bounds the memory of a flood from many addresses: pairs of one and a source.
const rateAddresses = 4096

// rate is a token bucket for each address and source: burst at once, refilled by
// perSecond. An IPv6 address stands for its /64, which one person has. By source,
// because one push may be news to many, and a forge tells all of them from one address.
type rate struct {
	burst     int         // that many at once
	perSecond xrate.Limit // and so many more
	mu        sync.Mutex  // guards what follows
	buckets   map[asker]*xrate.Limiter
	swept     time.Time // when forget last went through them
}

type asker struct {
	from   netip.Addr
	source string
}

func newRate(perSecond int) *rate { return newRateOf(perSecond, float64(perSecond)) }

func newRateOf(burst int, perSecond float64) *rate {
	return &rate{burst: burst, perSecond: xrate.Limit(perSecond), buckets: map[asker]*xrate.Limiter{}}
}

// allow takes one token of the address for a source, when it has one.
func (r *rate) allow(remote, source string, now time.Time) bool {
	a := asker{whose(remote), source}
	r.mu.Lock()
	defer r.mu.Unlock()
	bucket, known := r.buckets[a]
	if !known {
		if len(r.buckets) >= rateAddresses && !r.forget(now) {
			return false
		}
		bucket = xrate.NewLimiter(r.perSecond, r.burst)
		r.buckets[a] = bucket
	}
	return bucket.AllowN(now, 1)
}

// forget drops the addresses whose buckets are full again, which is the same
// as never having heard of them. Called with the lock held.
func (r *rate) forget(now time.Time) bool {
	if gone := now.Sub(r.swept); gone >= 0 && gone < time.Second/10 {
		return false // in a flood, looking at all of them each time is the flood's work
	}
	r.swept = now
	for a, bucket := range r.buckets {
		if bucket.TokensAt(now) >= float64(r.burst) {
			delete(r.buckets, a)
		}
	}
	return len(r.buckets) < rateAddresses
}

func whose(remote string) netip.Addr {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}
