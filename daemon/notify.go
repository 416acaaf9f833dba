package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/notify"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// wireReceivers reads the files of every receiver: one whose URL is no URL is told
// at the start, and not at the first failure.
func (d *Daemon) wireReceivers() (err error) {
	d.receivers, err = notify.NewReceivers(notify.ReceiversOptions{Host: d.cfg.Host, Ledger: d.store, Log: d.log, Settled: d.settled}, d.cfg.Receivers())
	if err != nil {
		return &ring.HostError{Says: err.Error(), Hint: "docs/how-to/notifications.md has each service's URL; no error repeats a part of one"}
	}
	return nil
}

// settled reports whether a source is as a commit asks, as far as it will be.
func (d *Daemon) settled(source string, commit ring.SHA) bool {
	st, _ := d.loop.Status()
	return hasSettled(&st, source, commit)
}

func hasSettled(st *ring.Status, source string, commit ring.SHA) bool {
	for i := range st.Sources {
		src := &st.Sources[i]
		if src.Name != source {
			continue
		}
		rolls := slices.ContainsFunc(src.Apps, func(a ring.AppStatus) bool {
			return slices.ContainsFunc(a.Services, func(s ring.ServiceStatus) bool {
				return s.Rollout != nil && (s.Rollout.Phase == ring.RolloutProgressing || s.Rollout.Phase == ring.RolloutRestoring)
			})
		})
		return src.Commit == commit && src.Next == nil && !rolls && (src.Sync == ring.SyncSynced || src.Sync == ring.SyncDegraded)
	}
	return false
}

func (d *Daemon) notifyTest(ctx context.Context, p api.Peer, r api.NotifyTestRequest) ([]api.NotifyTested, error) {
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

// outbox is what has not arrived. What is for nobody whom the configuration names is
// told as such: it is not tried, and would else be taken for something that waits.
func (d *Daemon) outbox(ctx context.Context) ([]ring.Unsaid, error) {
	all, err := d.store.NotArrived(ctx)
	for i := range all {
		u := &all[i]
		if d.tells(*u) {
			continue
		}
		kept, last := "30 days", wording.When(u.Reason != "", "; the last answer was: "+u.Reason)
		if u.Commit != "" {
			kept = "a day"
		}
		u.State, u.Next = ring.UnsaidLeft, time.Time{}
		u.Reason = u.To + " is not in the configuration any more: this is not sent, and goes after " + kept + last
	}
	return all, err
}

// tells reports whether somebody whom the configuration names is to be told.
func (d *Daemon) tells(u ring.Unsaid) bool {
	if u.Commit != "" { // a status
		_, speaks := d.forges[u.To]
		return speaks
	}
	return slices.ContainsFunc(d.cfg.Notify, func(r config.NotifyConfig) bool { return r.Name == u.To })
}

func (d *Daemon) outboxRetry(ctx context.Context, p api.Peer, r api.OutboxRetryRequest) (api.OutboxRetried, error) {
	all, err := d.outbox(ctx)
	if err != nil {
		return api.OutboxRetried{}, err
	}
	var left []string
	for _, u := range all {
		if u.State != ring.UnsaidLeft {
			continue
		}
		if u.ID == r.ID {
			return api.OutboxRetried{}, api.Conflicting("add "+u.To+" to the configuration again, and restart gitring", "%s is for %s, which is not in the configuration any more", u.ID, u.To)
		}
		if u.Commit == "" {
			left = append(left, u.To)
		}
	}
	n, err := d.store.SayAgain(ctx, r.ID, r.All, left...)
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
