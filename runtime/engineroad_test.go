package runtime

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// knockedAt is a server of something that is no registry, as the one for a cloud's credentials is.
// It notes what each connection begins with, and answers as HTTP.
type knockedAt struct {
	net.Listener
	mu    sync.Mutex
	first []byte // guarded by mu; the first byte of each
}

const credentialsOfACloud = "the credentials of this host"

func (h *knockedAt) serve() {
	for {
		conn, err := h.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			b := make([]byte, 4096)
			n, err := conn.Read(b)
			if err != nil || n == 0 {
				return
			}
			h.mu.Lock()
			h.first = append(h.first, b[0])
			h.mu.Unlock()
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n" + credentialsOfACloud))
		}()
	}
}

func (h *knockedAt) began() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]byte{}, h.first...)
}

// TestEngineAsksNothingInClearWhereOnlyItLooksANameUp is the case that gitring cannot keep an
// engine from: gitring's own lookup of a registry's name is fine, and the engine's, a moment
// later, leads elsewhere. Then the engine knocks there with TLS. It sends no request, and what
// is said there reaches no author. Only the addresses that its owner lists as insecure, which
// are the loopback ones by default, are asked in clear.
func TestEngineAsksNothingInClearWhereOnlyItLooksANameUp(t *testing.T) {
	t.Parallel()
	c := engineOrSkip(t)
	// The engine asks by the gateway of a network that the test makes: no loopback address.
	name := "gitring-road-" + strings.ToLower(t.Name()[len(t.Name())-12:])
	made, err := c.NetworkCreate(t.Context(), name, network.CreateOptions{Labels: map[string]string{"gitring.test": "road"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.NetworkRemove(context.Background(), made.ID) })
	n, err := c.NetworkInspect(t.Context(), made.ID, network.InspectOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, n.IPAM.Config)
	gateway, err := netip.ParsePrefix(n.IPAM.Config[0].Gateway + "/32")
	require.NoError(t, err, n.IPAM.Config[0].Gateway)
	l, err := net.Listen("tcp", net.JoinHostPort(gateway.Addr().String(), "0"))
	require.NoError(t, err)
	h := &knockedAt{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go h.serve()

	r := realRig(t)
	o := r.options()
	o.URL = engineURL()
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) { // what gitring sees, and the engine does not
		return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, nil
	}
	d, err := Dial(t.Context(), o)
	require.NoError(t, err)
	at := l.Addr().String()
	for _, a := range []ring.Action{resolving(at + "/latest/meta-data:1"), pulling1(at + "/latest/meta-data:1@sha256:" + strings.Repeat("a", 64))} {
		_, err := d.Do(t.Context(), a)
		require.Error(t, err)
		require.NotContains(t, err.Error(), credentialsOfACloud)
	}
	all := h.began()
	require.NotEmpty(t, all, "the engine knocked there, or nothing is shown")
	for _, b := range all {
		require.EqualValues(t, 0x16, b, "a TLS hello, and not the first letter of a request")
	}
}
