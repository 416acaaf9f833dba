package runtime

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/system"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// hosted is an engine that says where it runs.
type hosted struct {
	engine
	name  string
	err   error
	asked *int // how often, where it is counted
}

func (h hosted) Info(context.Context) (system.Info, error) {
	if h.asked != nil {
		*h.asked++
	}
	return system.Info{Name: h.name}, h.err
}

// A hundred networks ask an engine of this host once which host it is on, and again after ten
// seconds; one that may be elsewhere is asked each time.
func TestAnEngineIsAskedOnceForItsHostInAWhile(t *testing.T) {
	here, err := os.Hostname()
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		for name, want := range map[string]int{here: 2, "edge-9": 101} {
			asked := 0
			f := newFake(Options{Host: "edge-1"})
			f.opts.URL = "unix:///var/run/docker.sock"
			e := hosted{name: name, asked: &asked}
			for range 100 {
				require.Equal(t, name == here, f.isHere(t.Context(), e))
			}
			time.Sleep(11 * time.Second)
			f.isHere(t.Context(), e)
			require.Equal(t, want, asked, name)
		}
	})
}

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
