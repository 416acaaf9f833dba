package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// What a person is told beforehand of a service that has a front, gets one, or loses it.
func TestTheGapOfAServiceWithAFront(t *testing.T) {
	ports := []ring.Port{{HostPort: "8080", Container: 80, Protocol: "tcp"}}
	behind := func(queue time.Duration) *ring.Service {
		r := ring.DefaultRoute()
		r.Queue = queue
		return &ring.Service{Name: "web", Kind: ring.Worker, Replicas: 1, Route: &r}
	}
	alone := &ring.Service{Name: "web", Kind: ring.Worker, Replicas: 1}
	front := &ring.Service{Name: "web-front", Kind: ring.Worker, Replicas: 1, FrontOf: "web"}
	for _, c := range []struct {
		name    string
		old, s  *ring.Service
		ports   []ring.Port // of the front of the next plan
		class   ring.Class
		says    string
		seconds int
		usual   bool // told as without a front
	}{
		{name: "a rollout", old: behind(0), s: behind(0), ports: ports, class: ring.ChangeRoll, usual: true},
		{name: "one of what cannot overlap", old: behind(0), s: behind(30 * time.Second), ports: ports, class: ring.ChangeRecreate, says: "waits up to 30s: writable volume db"},
		{name: "one with minutes of waiting", old: behind(0), s: behind(2 * time.Minute), class: ring.ChangeRecreate, says: "waits up to 2m: writable volume db"},
		{name: "one with hours of waiting", old: behind(0), s: behind(time.Hour), class: ring.ChangeRecreate, says: "waits up to 1h: writable volume db"},
		{name: "one with an odd time of waiting", old: behind(0), s: behind(90 * time.Second), class: ring.ChangeRecreate, says: "waits up to 1m30s: writable volume db"},
		{name: "one that does not wait", old: behind(30 * time.Second), s: behind(0), ports: ports, class: ring.ChangeRecreate, usual: true},
		{name: "a front that comes, with a port", old: alone, s: behind(30 * time.Second), ports: ports, class: ring.ChangeRoll, says: "last gap 1s", seconds: 1},
		{name: "a front that comes to what cannot overlap", old: alone, s: behind(30 * time.Second), ports: ports, class: ring.ChangeRecreate, says: "last gap 1s, then waits up to 30s: writable volume db", seconds: 1},
		{name: "a front that comes, without a port", old: alone, s: behind(30 * time.Second), class: ring.ChangeRoll, usual: true},
		{name: "a front that comes, with a port that the engine chooses", old: alone, s: behind(30 * time.Second), ports: []ring.Port{{Container: 80, Protocol: "tcp"}}, class: ring.ChangeRoll, usual: true},
		{name: "a front that goes", old: behind(30 * time.Second), s: alone, class: ring.ChangeRecreate, usual: true},
		{name: "another port of the front", old: front, s: front, class: ring.ChangeRecreate, says: "front made anew, gap 1s", seconds: 1},
		{name: "another label of the front", old: front, s: front, class: ring.ChangeRoll, usual: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := &ring.App{Name: "shop", Services: []ring.Service{*c.s, {Name: "web-front", FrontOf: "web", Spec: ring.Spec{Ports: c.ports}}}}
			says, seconds, known := frontGap(next, classified{class: c.class, known: true, anew: true, why: "writable volume db", old: c.old, s: c.s})
			require.Equal(t, c.says, says)
			require.Equal(t, c.seconds, seconds)
			require.Equal(t, !c.usual, known)
		})
	}
}
