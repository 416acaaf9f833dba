package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/proxy"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/store"
	"github.com/gitring/gitring/upgrade"
)

// Rehearse is what this release would do on the host of a configuration, while another one
// may run there. The store is opened as a copy, so that its migrations run; the engine is
// looked at once; the trusted commit of each source is read as it would be in force. Nothing
// is changed but for the copy, which goes.
func Rehearse(ctx context.Context, cfg *config.Config, log *slog.Logger) (r upgrade.Rehearsal, err error) {
	copied, err := store.Copy(ctx, cfg.State)
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(copied) //nolint:errcheck // swept at the next start
	d, err := forRehearsal(ctx, cfg, copied, log)
	if err != nil {
		return r, err
	}
	defer d.Close()
	facts, err := d.ledger.Facts(ctx)
	if err != nil {
		return r, err
	}
	adopted := map[string]bool{}
	for id := range facts.Adopted {
		adopted[id] = true
	}
	d.engine.Adopts(adopted)
	seen, err := d.engine.Look(ctx)
	if err != nil {
		return r, fmt.Errorf("cannot look at the engine: %w", err)
	}
	now := time.Now().UTC()
	w, decision := d.loop.Rehearse(now, facts, seen)
	r = upgrade.Rehearsal{Gitring: ring.Release, Host: cfg.Host, Steps: reconcile.WouldDo(decision.Actions, seen)}
	for _, f := range d.sources {
		if err := f.rehearse(ctx, w, now, &r); err != nil {
			return r, fmt.Errorf("source %s: %w", f.cfg.Name, err)
		}
	}
	return r, nil
}

// forRehearsal is a daemon without doors, of which nothing runs. Only its store is the copy:
// containers mount folders of the real state, and are compared by their paths.
func forRehearsal(ctx context.Context, cfg *config.Config, copied string, log *slog.Logger) (d *Daemon, err error) {
	d = &Daemon{cfg: cfg, log: log, judge: admission.For(cfg), ready: make(chan struct{})}
	d.policy = admission.NewLivePolicy(cfg)
	d.judge.Live = d.policy
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if d.store, err = store.Open(ctx, copied); err != nil {
		return d, err
	}
	if err := d.wireMeters(ctx); err != nil {
		return d, err
	}
	if d.ledger, err = newLedger(ctx, d.store, cfg.DataRoot); err != nil {
		return d, err
	}
	d.judge.Whose, d.judge.Signed = d.ledger.whose, d.signed(ctx)
	if err := d.wireEnv(); err != nil {
		return d, err
	}
	d.fronts = proxy.NewClient(cfg.State, func() {})
	d.upgrades = newUpgrader(frontBuild(), cfg.State)
	if err := d.wireEngine(ctx); err != nil {
		return d, err
	}
	d.wireHealth(ctx)
	d.wireSender(ctx)
	if err := d.wireReceivers(); err != nil {
		return d, err
	}
	if err := d.wireSources(ctx); err != nil {
		return d, err
	}
	d.wireLoop()
	return d, nil
}

// rehearse reads the commit that is trusted last as this release reads it. A source of which
// nothing is trusted, or whose mirror is not there, has nothing to compare.
func (f *follower) rehearse(ctx context.Context, w reconcile.World, now time.Time, r *upgrade.Rehearsal) error {
	a, err := f.d.store.Anchor(ctx, f.cfg.Name)
	if err != nil || a.SHA == "" {
		return err
	}
	c, err := f.git.Commit(ctx, a.SHA)
	if err != nil {
		if refusal := (*ring.Refusal)(nil); errors.As(err, &refusal) {
			return err
		}
		r.Notes = append(r.Notes, fmt.Sprintf("source %s: what its commit would change is not known: %v", f.cfg.Name, err))
		return nil
	}
	values, err := f.d.env.read()
	if err != nil {
		return err
	}
	plan, _, _ := f.look(c, values)
	changes := reconcile.Plan(w, &plan, now)
	for _, refusal := range changes.Refusals {
		r.Refused = append(r.Refused, refusal.Error())
	}
	for _, app := range changes.Apps {
		for _, s := range app.Services {
			if s.Class == ring.ChangeNone {
				continue
			}
			r.Steps = append(r.Steps, ring.TrialStep{
				Does: string(s.Class), On: string(ring.ID(app.App, s.Service)), Reason: s.Reason,
				Ends: s.Class == ring.ChangeRoll || s.Class == ring.ChangeRecreate || s.Class == ring.ChangeRemove,
			})
		}
	}
	return nil
}

// contentDir is where the files that containers mount lie, on the host.
func (d *Daemon) contentDir() string { return filepath.Join(d.cfg.State, "content") }
