package main

import (
	"context"
	"errors"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/ring"
)

// wireReceivers reads the files of every receiver: one whose URL is no URL is told
// at the start, and not at the first failure.
func (d *daemon) wireReceivers() (err error) {
	d.receivers, err = notify.NewReceivers(notify.ReceiversOptions{Host: d.cfg.Host, Ledger: d.store, Log: d.log}, d.cfg.receivers())
	if err != nil {
		return &failure{code: exitError, says: err.Error(), hint: "docs/how-to/notifications.md has each service's URL; no error repeats a part of one"}
	}
	return nil
}

func (d *daemon) notifyTest(ctx context.Context, p api.Peer, r api.NotifyTestRequest) ([]api.NotifyTested, error) {
	all, err := d.receivers.Test(ctx, r.Name, p.Actor())
	if errors.Is(err, notify.ErrNoReceiver) {
		if r.Name == "" {
			return nil, api.NotFound("add one under notify in the configuration", "this host has no receivers")
		}
		return nil, api.NotFound("the names stand under notify in the configuration", "there is no receiver %s", r.Name)
	}
	var out []api.NotifyTested
	for _, t := range all {
		out = append(out, api.NotifyTested{Name: t.Name, Service: t.Service, Taken: t.Taken, Reason: t.Reason})
	}
	return out, err
}

func (d *daemon) outbox(ctx context.Context) ([]ring.Unsaid, error) { return d.store.NotArrived(ctx) }

func (d *daemon) outboxRetry(ctx context.Context, p api.Peer, r api.OutboxRetryRequest) (api.OutboxRetried, error) {
	n, err := d.store.SayAgain(ctx, r.ID, r.All)
	if err != nil {
		return api.OutboxRetried{}, err
	}
	if n == 0 && r.ID != "" {
		return api.OutboxRetried{}, api.NotFound("gitring outbox list shows what waits", "nothing waits under %s", r.ID)
	}
	d.log.Info("what had not arrived is sent again", "actor", p.Actor(), "count", n)
	d.receivers.Poke()
	d.sender.Again()
	return api.OutboxRetried{Count: n}, nil
}
