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
	polls, err := b.polls(ctx, rig.daemon, 12, 1100*time.Millisecond)
	if err != nil {
		return err
	}
	lone, err := b.polls(ctx, rig.daemon, 6, lonePoll)
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
	b.table.add(row{"  a lone one", lone.whole.String(), "20 ms", "", fmt.Sprintf("%d looks, each %s after the last one", len(lone.whole), lonePoll)})
	b.table.add(row{"  CPU per lone poll", millis(lone.cpu), "", "", "of the daemon"})
	b.table.add(row{"  push -> running", took.String(), "", "", fmt.Sprintf("%d pushes of one change", len(took))})
	b.table.add(row{"  first look -> rolled out", seconds(first), "", "", "start of the daemon, clone and the one app"})
	b.table.add(row{"  resident, at most", fmt.Sprintf("%s, %s", mib(u.resident), mib(u.peak)), "", "", "after the pushes"})
	return nil
}

// lonePoll is long enough for whatever a poll leaves running to have ended.
const lonePoll = 5 * time.Second

// polls asks for n looks at a remote that has nothing new, so long apart.
func (b *bench) polls(ctx context.Context, d *daemon, n int, apart time.Duration) (quiet, error) {
	var q quiet
	if err := pause(ctx, 3*time.Second); err != nil {
		return q, err
	}
	before, err := d.usage()
	if err != nil {
		return q, err
	}
	for range n {
		if err := pause(ctx, apart); err != nil {
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
	q.cpu = (after.cpu - before.cpu) / time.Duration(n)
	return q, err
}
