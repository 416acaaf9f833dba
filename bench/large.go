package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// large measures a poll that finds nothing new, and a push of one change, in a
// repository of 20,000 files and 5,000 commits with one app in it.
func (b *bench) large(ctx context.Context) error {
	for _, over := range []string{"http", "file"} {
		if err := b.largeOver(ctx, over); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) largeOver(ctx context.Context, over string) (err error) {
	b.note("a repository of 20,000 files and 5,000 commits, by %s", over)
	r, err := b.newRepo(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.grow(ctx, 20_000, 5_000); err != nil {
		return err
	}
	if over == "http" {
		if err := r.overHTTP(ctx); err != nil {
			return err
		}
	}
	rig := &pushRig{repo: r, n: 1}
	commit, err := b.pushVersion(ctx, rig)
	if err != nil {
		return err
	}
	dir, err := b.folder("d")
	if err != nil {
		return err
	}
	began := time.Now()
	if rig.daemon, err = b.serve(ctx, dir, b.settings.engine, r); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rig.stop()) }()
	if err := rig.synced(ctx, commit); err != nil {
		return err
	}
	first := time.Since(began)
	polls, err := b.polls(ctx, rig.daemon)
	if err != nil {
		return err
	}
	listening, stop := context.WithCancel(ctx)
	defer stop()
	heard, err := b.engine.starts(listening, "gitring.app="+appName(0))
	if err != nil {
		return err
	}
	var took spread
	for range min(b.pushes, 5) {
		one, _, err := b.onePush(ctx, rig, heard)
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	u, err := rig.usage()
	if err != nil {
		return err
	}
	b.table.add(row{"large repository by " + over + ", no-op poll", polls.whole.String(), "20 ms", "1.1 to 1.9 s", fmt.Sprintf("%d looks asked for on the socket; a look at the engine with one app is in it", len(polls.whole))})
	b.table.add(row{"  CPU per poll", millis(polls.cpu), "", "", "of the daemon"})
	b.table.add(row{"  push -> running", took.String(), "", "", fmt.Sprintf("%d pushes of one change", len(took))})
	b.table.add(row{"  first look -> rolled out", seconds(first), "", "", "start of the daemon, clone and the one app"})
	b.table.add(row{"  resident, at most", fmt.Sprintf("%s, %s", mib(u.resident), mib(u.peak)), "", "", "after the pushes"})
	return nil
}

// polls asks for looks at a remote that has nothing new.
func (b *bench) polls(ctx context.Context, d *daemon) (quiet, error) {
	var q quiet
	if err := pause(ctx, 3*time.Second); err != nil {
		return q, err
	}
	before, err := d.usage()
	if err != nil {
		return q, err
	}
	const n = 12
	for range n {
		if err := pause(ctx, 1100*time.Millisecond); err != nil {
			return q, err
		}
		if err := b.calm(ctx); err != nil {
			return q, err
		}
		began := time.Now()
		if err := d.look(ctx); err != nil {
			return q, err
		}
		q.whole = append(q.whole, time.Since(began))
	}
	after, err := d.usage()
	q.cpu = (after.cpu - before.cpu) / n
	return q, err
}
