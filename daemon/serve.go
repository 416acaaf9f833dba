package daemon

import (
	"context"
	"errors"
	"os"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/ring"
)

// Serve runs a daemon until ctx ends or it fails, and another one in its place each
// time that a signal asks for the configuration to be read anew. That one is made of what
// the first stored, as after a restart of the process. One that cannot start leaves the
// place to the configuration before.
// read gives the configuration as it is now.
func Serve(ctx context.Context, read func() (*config.Config, error), d *Daemon, hup <-chan os.Signal) error {
	cfg, log := d.cfg, d.log
	for {
		next, err := runUntilAnew(ctx, read, d, hup)
		if d.judge.Live != nil { // the policy may have been read again since
			cfg.Rules, _ = d.judge.Live.Said()
		}
		d.Close()
		if next == nil || ctx.Err() != nil {
			return err
		}
		kept := ""
		if d, err = New(ctx, next, log); err != nil {
			kept = err.Error()
			log.Error("could not read the configuration anew", "err", kept)
			if d, err = New(ctx, cfg, log); err != nil {
				return err
			}
			d.kept.Store(&kept)
			continue
		}
		cfg = next
		log.Info("read the configuration anew", "host", cfg.Host, "sources", len(cfg.Sources))
	}
}

// runUntilAnew runs a daemon until ctx ends or it fails, or until a configuration that can
// take the place of its own is read.
func runUntilAnew(ctx context.Context, read func() (*config.Config, error), d *Daemon, hup <-chan os.Signal) (*config.Config, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.run(running) }()
	for {
		select {
		case err := <-ended:
			return nil, err
		case <-hup:
		}
		next, err := read()
		if err == nil {
			err = changesLocked(d.cfg, next)
		}
		if err != nil {
			kept := err.Error()
			d.kept.Store(&kept)
			d.log.Error("could not read the configuration anew", "err", kept)
			continue
		}
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
		return next, nil
	}
}

// changesLocked refuses a change of what this process has locked.
func changesLocked(now, next *config.Config) error {
	for _, x := range []struct{ key, now, next string }{
		{"host", now.Host, next.Host},
		{"state", now.State, next.State},
		{"engine.url", now.Engine.URL, next.Engine.URL},
		{"engine.kind", now.Engine.Kind, next.Engine.Kind},
		{"engine.cluster", now.Engine.Cluster, next.Engine.Cluster},
	} {
		if x.now != x.next {
			return &ring.HostError{Says: x.key + " was changed from " + x.now + " to " + x.next + ", which takes a restart of the daemon"}
		}
	}
	return nil
}
