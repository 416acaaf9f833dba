package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestAPortThatSomebodyElseHasIsNoFaultOfTheVersion(t *testing.T) {
	web := ring.Action{Kind: ring.DoStart, Want: &ring.Service{Spec: ring.Spec{Ports: []ring.Port{
		{Container: 80, HostPort: "8080", Protocol: "tcp"}, {Container: 53, HostIP: "127.0.0.1", HostPort: "53", Protocol: "udp"}, {Container: 9},
	}}}}
	for _, x := range []struct{ engine, says, hint string }{
		{
			"driver failed programming external connectivity on endpoint web-1 (0123): Bind for 0.0.0.0:8080 failed: port is already allocated",
			"port 8080/tcp of the host is taken (port is already allocated)", "ss -ltnp 'sport = :8080'",
		},
		{
			"driver failed programming external connectivity on endpoint web-1 (0123): Error starting userland proxy: listen tcp4 0.0.0.0:8080: bind: address already in use",
			"port 8080/tcp of the host is taken (bind: address already in use)", "ss -ltnp 'sport = :8080'",
		},
		{
			"Error starting userland proxy: listen udp4 127.0.0.1:53: bind: address already in use",
			"port 127.0.0.1:53/udp of the host is taken (bind: address already in use)", "ss -lunp 'sport = :53'",
		},
		{
			"failed to set up container networking: failed to bind host port 0.0.0.0:8080/tcp: address already in use",
			"port 8080/tcp of the host is taken (address already in use)", "ss -ltnp 'sport = :8080'",
		},
	} {
		e := faultOf(web, "cannot start container", ring.CauseCreate, errors.New(x.engine))
		require.NotNil(t, e.Refusal, x.engine)
		require.Equal(t, x.says, e.Refusal.Says)
		require.Contains(t, e.Refusal.Hint, x.hint)
		require.False(t, e.Permanent)
		require.Equal(t, askAgain, e.Wait)
	}
	for _, other := range []string{
		"Address already in use", // of the network
		"Bind for 0.0.0.0:80800 failed: port is already allocated",
		"Bind for 0.0.0.0:80 failed: port is already allocated",
	} {
		e := faultOf(web, "cannot start container", ring.CauseCreate, errors.New(other))
		require.Nil(t, e.Refusal, other)
	}
}
