package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// asking is how each command that needs a daemon is called; "" needs none.
var asking = map[string]string{
	"status": "status", "plan": "plan", "sync": "sync --wait", "history": "history", "events": "events", "logs": "logs web",
	"outdated": "outdated", "jobs": "jobs", "traffic": "traffic", "traffic upgrade": "traffic upgrade", "crashes": "crashes", "inspect": "inspect web/web", "run": "run web/web --reason r",
	"adopt": "adopt web --reason r", "leave": "leave web --reason r", "refresh": "refresh web --reason r", "secret refresh": "secret refresh web", "approve": "approve a1b2c3d",
	"rollout pause": "rollout pause web/web --reason r", "rollout resume": "rollout resume web/web --reason r",
	"rollout promote": "rollout promote web/web --reason r", "rollout abort": "rollout abort web/web --reason r",
	"rollout restart": "rollout restart web/web --reason r", "rollout undo": "rollout undo web --reason r",
	"hold": "hold web --reason r", "release": "release web --reason r", "scale": "scale web/web=2 --reason r", "retry": "retry web --reason r",
	"trust show": "trust show", "trust accept": "trust accept a1b2c3d4e5f60718293a4b5c6d7e8f9012345678 --reason r", "trust reverify": "trust reverify --reason r",
	"undo": "undo web --reason r", "pause": "pause web/web --reason r", "resume": "resume web/web", "restart": "restart web/web",
	"prove": "prove web/web",
	"ui":    "ui", "metrics": "metrics", "notify test": "notify test", "outbox list": "outbox list", "outbox retry": "outbox retry --all",

	// They ask the daemons of other hosts, and none where there is no inventory.
	"fleet status": "", "fleet version": "", "fleet plan": "", "fleet sync": "", "fleet doctor": "", "fleet refresh": "", "fleet events": "", "fleet hold": "", "fleet release": "", "fleet pause": "",
	"fleet resume": "", "fleet promote": "", "fleet abort": "", "fleet restart": "", "fleet undo": "", "fleet scale": "", "fleet retry": "", "fleet run": "", "fleet approve": "",

	"token new": "", "token list": "", "token revoke": "",
	"secret keys": "", "secret encrypt": "", "secret check": "", "secret place": "",

	"backup": "", "restore": "", "upgrade": "", "rehearse": "", "doctor": "", "serve": "", "hub": "", "validate": "", "verify": "", "webhook url": "", "init": "", "vouch": "", "trust compare": "", "rollback": "", "images update": "", "version": "", "completion": "", "config check": "", "policy suggest": "", "policy check": "", "policy explain": "", "policy test": "",
}

// TestEveryCommandSaysByItsCodeThatNobodyAnswered_Lesson33: 3 when there is no daemon, 1
// when it answers 500, whatever was asked; what it prints then is no result.
func TestEveryCommandSaysByItsCodeThatNobodyAnswered_Lesson33(t *testing.T) {
	dir, err := os.MkdirTemp("", "gr") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	broken := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
		ReadHeaderTimeout: time.Minute,
	}
	ended := make(chan error, 1)
	go func() { ended <- broken.Serve(l) }()
	t.Cleanup(func() { _ = broken.Close(); <-ended })

	seen := map[string]bool{}
	for _, command := range leaves(rootCmd(&globals{now: time.Now, in: strings.NewReader(""), out: io.Discard, err: io.Discard})) {
		line, known := asking[command]
		require.True(t, known, "say in asking how %q is called, or that it needs no daemon", command)
		seen[command] = true
		if line == "" {
			continue
		}
		t.Run(command, func(t *testing.T) {
			for at, want := range map[string]int{filepath.Join(dir, "nobody"): 3, socket: 1} {
				var out, said strings.Builder
				args := append(strings.Fields(line), "--socket", at, "--config", filepath.Join(dir, "none.yaml"))
				code := run(context.Background(), args, strings.NewReader(""), &out, &said, time.Now)
				require.Equal(t, want, code, "%s: %s", line, said.String())
				require.Empty(t, out.String(), line)
				require.Contains(t, said.String(), "error: ", line)
			}
		})
	}
	for command := range asking {
		require.True(t, seen[command], "there is no %q", command)
	}
}

// leaves are the commands that do something themselves, as they are called.
func leaves(of *cobra.Command) (out []string) {
	for _, c := range of.Commands() {
		if c.Hidden {
			continue
		}
		if c.HasSubCommands() {
			for _, sub := range leaves(c) {
				out = append(out, c.Name()+" "+sub)
			}
			if asking[c.Name()] == "" { // most groups only print their help
				continue
			}
		}
		out = append(out, c.Name())
	}
	return out
}
