package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
)

// goroutinesOf counts those that have a function of a name, or of a type, on their stacks.
func goroutinesOf(name string) (n int) {
	stacks := make([]byte, 4<<20)
	for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, name) {
			n++
		}
	}
	return n
}

// What is off costs nothing: without listen.api there is no goroutine, no door, no file of
// tokens and no key for it. With it there is, so the test can see one.
func TestAnAPIThatIsOffCostsNothing(t *testing.T) {
	const web = "github.com/gitring/gitring/api.(*Web)"
	with := func(on bool) (webs, doors int) {
		cfg := lonely(t, "")
		if on {
			cfg.API.Tokens = filepath.Join(filepath.Dir(cfg.State), "tokens")
			require.NoError(t, os.WriteFile(cfg.API.Tokens, nil, 0o600))
			cfg.Listen.API = &config.ListenAPI{Address: "127.0.0.1:0"}
		}
		d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.run(ctx) }()
		defer func() {
			cancel()
			<-ended
			d.Close()
		}()
		client := api.NewClient(cfg.Listen.Socket)
		require.Eventually(t, func() bool { // the last door is opened by then
			_, err := client.Status(t.Context())
			return err == nil && (!on || goroutinesOf(web) > 0)
		}, time.Minute, 10*time.Millisecond)
		webs = goroutinesOf(web)
		require.Equal(t, on, d.tokens != nil)
		_, err = os.Stat(filepath.Join(cfg.State, sessionKey))
		require.Equal(t, on, err == nil, "a key of sessions")
		return webs, len(d.doors)
	}
	webs, doors := with(true)
	require.NotZero(t, webs, "the test sees what it looks for")
	none, fewer := with(false)
	require.Zero(t, none)
	require.Equal(t, doors-1, fewer)
}

// Without report there is no reporter, and no goroutine of one. With it there is, so the test can see it.
func TestAReportThatIsOffCostsNothing(t *testing.T) {
	const reporter = "github.com/gitring/gitring/report.(*Reporter)"
	with := func(on bool) int {
		cfg := lonely(t, "")
		if on {
			token := filepath.Join(filepath.Dir(cfg.State), "hub-token")
			require.NoError(t, os.WriteFile(token, []byte("grt_abcdefgh_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"), 0o600))
			cfg.Report = &config.ReportConfig{URL: "http://127.0.0.1:1", TokenFile: token}
		}
		d, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.run(ctx) }()
		defer func() {
			cancel()
			<-ended
			d.Close()
		}()
		client := api.NewClient(cfg.Listen.Socket)
		require.Eventually(t, func() bool {
			st, err := client.Status(t.Context())
			return err == nil && st.Hub == "" && (!on || goroutinesOf(reporter) > 0)
		}, time.Minute, 10*time.Millisecond)
		require.Equal(t, on, d.reporter != nil)
		return goroutinesOf(reporter)
	}
	require.NotZero(t, with(true), "the test sees what it looks for; a hub that is away delays no start")
	require.Zero(t, with(false))
}
