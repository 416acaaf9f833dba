package runtime

import (
	"context"
	"errors"
	"os"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/system"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// hosted is an engine that says where it runs.
type hosted struct {
	engine
	name string
	err  error
}

func (h hosted) Info(context.Context) (system.Info, error) { return system.Info{Name: h.name}, h.err }

// The processes of another host are not these: that none is to be seen here says
// nothing of a container over there, whose data its forgotten process may write.
func TestARefusedContainerOfAnotherHostStays(t *testing.T) {
	here, err := os.Hostname()
	require.NoError(t, err)
	for _, c := range []struct {
		name, url string
		e         hosted
		says      string
	}{
		{"an engine over the network", "tcp://10.0.0.7:2375", hosted{name: here}, "over the network (tcp://10.0.0.7:2375)"},
		{"a tunnel that begins here", "tcp://127.0.0.1:2375", hosted{name: here}, "over the network"},
		{"a socket that is forwarded", "unix:///run/other.sock", hosted{name: "edge-9"}, `runs on host "edge-9"`},
		{"a virtual machine of a desktop", "unix:///var/run/docker.sock", hosted{name: "docker-desktop"}, `runs on host "docker-desktop"`},
		{"an engine that does not say", "unix:///var/run/docker.sock", hosted{err: errors.New("no answer")}, "no answer"},
		{"this host's", "unix:///var/run/docker.sock", hosted{name: here}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(Options{Host: "edge-1"})
			f.opts.URL, f.unseen, f.self = c.url, f.hidden, func() string { return "" }
			require.Contains(t, f.elsewhere(t.Context(), c.e), c.says)
			if c.says == "" {
				require.Empty(t, f.elsewhere(t.Context(), c.e))
				return
			}
			var e *ring.EngineError
			err := f.startFault(t.Context(), c.e, ring.Action{}, "cannot start container db", contained{Name: "db", ID: "0123456789abcdef"}, enginetest.Refuse(cerrdefs.ErrConflict, "task x: already exists"))
			require.ErrorAs(t, err, &e)
			require.False(t, e.Broken, "nothing is made in its place")
			require.Contains(t, err.Error(), c.says)
			require.Contains(t, e.Refusal.Hint, "on the engine's host")
			require.Contains(t, e.Refusal.Hint, "docker rm db")
		})
	}
}
