package daemon

import (
	"context"
	"time"

	"github.com/gitring/gitring/config"
)

// configEvery is how often the configuration's file is compared with what runs.
const configEvery = 10 * time.Second

// watchConfig tells whether the configuration's file says something else than what runs. A
// file that cannot be read is an editor's or a fault that a reload tells: it differs.
func (d *Daemon) watchConfig(ctx context.Context) error {
	t := time.NewTicker(configEvery)
	defer t.Stop()
	for {
		if d.cfg.File != "" {
			body, err := config.ReadLimited(d.cfg.File)
			d.differs.Store(err != nil || config.PrintOf(body) != d.cfg.Print())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}
