package health

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAnInstanceOfManyNetworksIsAskedOnItsAppsOwn_LessonU11(t *testing.T) {
	p := &prober{hosts: func() []string { return []string{"192.0.2.7"} }}
	for _, tc := range []struct {
		name string
		in   map[string]string
		want []string
	}{
		{"the default one before others of the app", map[string]string{"web_back": "10.0.1.2", "web_default": "10.0.9.2", "bridge": "172.17.0.2"}, []string{"10.0.9.2"}},
		{"the app's own before one it shares", map[string]string{"bridge": "172.17.0.2", "a_proxy": "10.0.0.2", "web_front": "10.0.1.2"}, []string{"10.0.1.2"}},
		{"of several the first by name", map[string]string{"web_b": "10.0.1.2", "web_a": "10.0.0.2"}, []string{"10.0.0.2"}},
		{"only shared ones", map[string]string{"b": "10.0.1.2", "a": "10.0.0.2"}, []string{"10.0.0.2"}},
		{"one without an address is passed over", map[string]string{"web_default": "", "b": "10.0.1.2"}, []string{"10.0.1.2"}},
		{"no network", nil, nil},
		{"no address yet", map[string]string{"a": ""}, nil},
		{"the host's network", map[string]string{"host": ""}, []string{"127.0.0.1", "::1", "192.0.2.7"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 20 { // a map has no order of its own
				require.Equal(t, tc.want, p.addresses(ring.Instance{App: "web", Addresses: tc.in}))
			}
		})
	}
	a := newProber(nil).ask(context.Background(), ring.Instance{}, ring.Check{TCP: &ring.TCPCheck{Port: 1}, Timeout: time.Second})
	require.Equal(t, failed("the instance has no address on any network"), a)
}

func TestOnTheHostsNetworkAnInstanceIsFoundWhereItIsBound_Lesson23(t *testing.T) {
	host := ring.Instance{ID: "c1", Addresses: map[string]string{"host": ""}}
	p := newProber(nil)
	p.hosts = func() []string { return []string{"127.0.0.3", "127.0.0.2"} } // all of 127/8 is this host
	for _, bound := range []string{"127.0.0.1", "127.0.0.2"} {
		l, err := net.Listen("tcp", bound+":0")
		require.NoError(t, err)
		port := l.Addr().(*net.TCPAddr).Port
		a := p.ask(t.Context(), host, ring.Check{TCP: &ring.TCPCheck{Port: port}, Timeout: 5 * time.Second})
		require.Equal(t, passed(), a, bound)
		require.NoError(t, l.Close())
		a = p.ask(t.Context(), host, ring.Check{TCP: &ring.TCPCheck{Port: port}, Timeout: 5 * time.Second})
		require.Equal(t, failed("tcp :%d refused the connection", port), a)
		a = p.ask(t.Context(), host, ring.Check{HTTP: &ring.HTTPCheck{Port: port}, Timeout: 5 * time.Second})
		require.Equal(t, failed("GET :%d/ refused the connection", port), a)
	}
}

func TestThisHostHasNoLoopbackAmongItsAddresses(t *testing.T) {
	for _, a := range hostAddresses() {
		require.False(t, net.ParseIP(a).IsLoopback(), a)
	}
}
