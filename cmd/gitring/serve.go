package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/store"
)

func serveCmd(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: "Follow the sources of the configuration and keep this host equal to them.\n" +
			"It ends on SIGTERM or SIGINT after the steps in flight; what runs keeps running.\n" +
			"On SIGHUP it reads the configuration anew, whole, with keys, policy and secrets,\n" +
			"after the steps in flight; where it cannot, it goes on as before and says why.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := servesOn(runtime.GOOS); err != nil {
				return err
			}
			if err := keepCapabilities(); err != nil {
				return err
			}
			if err := dumpNothing(); err != nil {
				return err
			}
			return g.serve(cmd.Context())
		},
	}
}

// servesOn refuses every system but Linux, where the client is built alone.
func servesOn(system string) error {
	if system == "linux" {
		return nil
	}
	return fmt.Errorf("cannot serve on %s: the daemon needs Linux; here are the verbs for a clone, such as validate, verify and vouch", system)
}

// served is the configuration that this process is to serve.
func (g *globals) served() (*config.Config, error) {
	cfg, err := config.Load(g.configPath())
	if err != nil {
		return nil, err
	}
	if g.socket != "" { // wins as it does for those who ask
		if cfg.Listen.Socket, err = filepath.Abs(g.socket); err != nil {
			return nil, fmt.Errorf("cannot find --socket: %w", err)
		}
	}
	return cfg, nil
}

func (g *globals) serve(ctx context.Context) error {
	cfg, err := g.served()
	if err != nil {
		return err
	}
	log := newLog(g)
	release, err := store.Lock(cfg.State, cfg.Engine.URL, cfg.OwnerName())
	if err != nil {
		return err
	}
	defer release()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	d, err := daemon.New(ctx, cfg, log)
	if err != nil {
		return err
	}
	at := notifySocket()
	running, stop := context.WithCancel(ctx)
	var told sync.WaitGroup
	told.Go(func() { tellReady(running, at, d.Ready(), log) })
	defer told.Wait()
	defer stop()
	log.Info("started", "version", ring.Release, "host", cfg.Host, "sources", len(cfg.Sources), "socket", cfg.Listen.Socket)
	if err := daemon.Serve(ctx, g.served, d, hup); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("cannot go on: %w", err)
	}
	log.Info("stopped")
	return nil
}

// tellReady tells systemd when the first look is done.
func tellReady(ctx context.Context, at string, ready <-chan struct{}, log *slog.Logger) {
	select {
	case <-ready:
	case <-ctx.Done():
		return
	}
	if err := sdNotify(ctx, at, "READY=1"); err != nil {
		log.Error("could not say that the daemon is ready", "err", err)
	}
}

// foldedLog folds the lines of a log between words, as wide as the terminal is at that moment.
// Each Write is whole lines.
type foldedLog struct {
	to    io.Writer
	width func() int
}

func (l foldedLog) Write(lines []byte) (int, error) {
	width := l.width()
	var b strings.Builder
	for line := range strings.Lines(string(lines)) {
		b.WriteString(screen.WrappedUnder(strings.TrimSuffix(line, "\n"), width, len("15:04:05 ")) + "\n")
	}
	if _, err := io.WriteString(l.to, b.String()); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// newLog writes to stderr: for people on a terminal, as JSON lines elsewhere.
func newLog(g *globals) *slog.Logger {
	if f, ok := g.err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return slog.New(tint.NewTextHandler(foldedLog{f, func() int { return screen.TerminalWidth(f) }}, &tint.Options{TimeFormat: time.TimeOnly, NoColor: !g.colors()}))
	}
	return slog.New(slog.NewJSONHandler(g.err, nil))
}
