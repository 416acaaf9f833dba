package proxy

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// still is a front with six active instances whose names are never resolved: each is waited for
// as long as it may be. It has no socket, so its time can be the test's.
func still(t *testing.T) (*Front, *port) {
	f := New(Options{
		TableDir: t.TempDir(), RunDir: t.TempDir(), Log: log.New(io.Discard, "", 0), own: func() ownNet { return ownNet{} },
		Lookup: func(ctx context.Context, _ string) ([]netip.Addr, error) { <-ctx.Done(); return nil, ctx.Err() },
	})
	f.table = ring.FrontTable{Generation: 1, Service: "a/web", Ports: []ring.FrontPort{{Port: 80, Carry: ring.CarryHTTP}}}
	for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
		f.table.Instances = append(f.table.Instances, ring.FrontInstance{Name: name, State: ring.FrontActive})
	}
	f.swap(f.table)
	p := &port{f: f}
	p.at.Store(&f.table.Ports[0])
	return f, p
}

// Who asks is told after 5 s at most that no instance can be connected to, however many there are.
func TestNamesThatNobodyResolvesHoldNoRequestForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			f, p := still(t)
			w, began := httptest.NewRecorder(), time.Now()
			p.answer(w, httptest.NewRequest(method, "http://web/", nil))
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
			require.Greater(t, time.Since(began), time.Second, "each was waited for")
			require.LessOrEqual(t, time.Since(began), 5*time.Second)
			requests := int64(0)
			for _, in := range f.seen().Instances {
				requests += in.Counts.Requests
			}
			require.EqualValues(t, 4, requests, "tries")
		}
	})
}

// A proxy in whose place another one accepts ends once nothing is open any more, and after 24 h
// at the latest.
func TestAReplacedProxyEndsAfterADayAtTheLatest(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, _ := still(t)
			if busy {
				f.conns.Add(1)
			}
			ctx, stop := context.WithCancel(t.Context())
			began := time.Now()
			f.leave(ctx, stop)
			require.Error(t, ctx.Err(), "it ends")
			if busy {
				require.InDelta(t, 24*time.Hour, time.Since(began), float64(time.Minute))
			} else {
				require.Zero(t, time.Since(began))
			}
		})
	}
}
