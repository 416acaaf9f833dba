package daemon

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// podman answers at the socket of a configuration as Podman's service does.
func podman(t *testing.T, url string) {
	t.Helper()
	l, err := net.Listen("unix", strings.TrimPrefix(url, "unix://"))
	require.NoError(t, err)
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"Version":"4.3.1","ApiVersion":"1.41","Components":[{"Name":"Podman Engine","Version":"4.3.1"}]}`)
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
}

func requireUnfit(t *testing.T, err error) {
	t.Helper()
	var e *ring.HostError
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Says, "it is Podman 4.3.1")
	require.Contains(t, e.Hint, "engine.url")
}

func TestAnEngineThatGitringDoesNotWorkWithEndsServe(t *testing.T) {
	cfg := lonely(t, "")
	podman(t, cfg.Engine.URL)
	_, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	requireUnfit(t, err)
}

// Nor does it help to come up later than the daemon.
func TestAnEngineThatComesUpAndIsNotDockersEndsServe(t *testing.T) {
	cfg := lonely(t, "")
	d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(d.Close)
	ended := make(chan error, 1)
	go func() { ended <- d.run(t.Context()) }()
	podman(t, cfg.Engine.URL)
	select {
	case err := <-ended:
		requireUnfit(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it works with Podman")
	}
}
