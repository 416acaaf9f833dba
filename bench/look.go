package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// look measures a look that finds nothing to do, with 1, 100 and 1000 instances
// on an engine that answers from memory.
func (b *bench) look(ctx context.Context) error {
	for _, n := range []int{1, 100, 1000} {
		if err := b.lookAt(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) lookAt(ctx context.Context, n int) (err error) {
	b.note("a look at %d instances that finds nothing to do", n)
	rig, err := b.lookRig(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rig.close()) }()
	l, err := b.quietLooks(ctx, rig.daemon, rig.proxy, 15)
	if err != nil {
		return err
	}
	target := ""
	if n == 100 {
		target = "50 ms"
	}
	b.table.add(row{fmt.Sprintf("no-op look, %d instances", n), l.whole.String(), target, "", "engine from memory: from the first request to the end of the look"})
	b.addQuiet(l, rig.daemon, n)
	return nil
}

// lookRig is a daemon with instances on an engine that answers from memory.
type lookRig struct {
	daemon *daemon
	proxy  *proxy
	memory *memory
}

func (r *lookRig) close() (err error) {
	if r.daemon != nil {
		err = r.daemon.stop()
	}
	if r.proxy != nil {
		r.proxy.close()
	}
	if r.memory != nil {
		r.memory.close()
	}
	return err
}

// lookRig has apps of one service up to a hundred; beyond that they get more
// services, because a commit has at most 200 manifest files.
func (b *bench) lookRig(ctx context.Context, n int) (rig *lookRig, err error) {
	rig = &lookRig{}
	defer func() {
		if err != nil {
			err = errors.Join(err, rig.close())
		}
	}()
	dir, err := b.folder("m")
	if err != nil {
		return rig, err
	}
	if rig.memory, err = newMemory(dir + "/m"); err != nil {
		return rig, err
	}
	to, err := dialEngine("unix://" + dir + "/m")
	if err != nil {
		return rig, err
	}
	if rig.proxy, err = newProxy(dir+"/p", to); err != nil {
		return rig, err
	}
	r, err := b.newRepo(ctx)
	if err != nil {
		return rig, err
	}
	apps := min(n, 100)
	for i := range apps {
		if err := r.write(appName(i)+"/compose.yaml", compose(n/apps, "1", b.subnetOf(i))); err != nil {
			return rig, err
		}
	}
	commit, err := r.push(ctx, "Apps")
	if err != nil {
		return rig, err
	}
	began := time.Now()
	if rig.daemon, err = b.serve(ctx, dir, rig.proxy.url(), r); err != nil {
		return rig, err
	}
	if err := rig.daemon.synced(ctx, commit); err != nil {
		return rig, err
	}
	b.note("%d instances in %s, %d calls", n, time.Since(began).Round(10*time.Millisecond), len(rig.proxy.since(began)))
	return rig, nil
}

// quiet is what looks cost that found nothing to do.
type quiet struct {
	whole spread // from the first request to the engine until the look ended
	calls map[string]int
	looks int
	cpu   time.Duration // of the daemon in all, looks at the remote included
}

// quietLooks asks for looks, one after the other.
func (b *bench) quietLooks(ctx context.Context, d *daemon, p *proxy, n int) (quiet, error) {
	q := quiet{calls: map[string]int{}}
	// What follows a start, restart policies and first inspects, is over by then.
	if err := pause(ctx, 3*time.Second); err != nil {
		return q, err
	}
	before, err := d.usage()
	if err != nil {
		return q, err
	}
	for range n {
		if err := pause(ctx, 1100*time.Millisecond); err != nil { // pokes lead to at most one look a second
			return q, err
		}
		if err := b.calm(ctx); err != nil {
			return q, err
		}
		if err := q.one(ctx, d, p); err != nil {
			return q, err
		}
	}
	after, err := d.usage()
	q.cpu = after.cpu - before.cpu
	return q, err
}

// one asks for a look and adds what it cost.
func (q *quiet) one(ctx context.Context, d *daemon, p *proxy) error {
	asked := time.Now()
	if err := d.look(ctx); err != nil {
		return err
	}
	end := time.Now()
	calls := p.since(asked)
	if len(calls) == 0 {
		return errors.New("the daemon did not look at the engine")
	}
	of := tally(calls)
	for what, k := range of {
		q.calls[what] += k
	}
	q.looks += of["GET /containers/json"]
	// The last look of several is the one that was waited for.
	first := calls[0].began
	for _, c := range calls {
		if c.what == "GET /containers/json" && c.began.After(first) {
			first = c.began
		}
	}
	q.whole = append(q.whole, end.Sub(first))
	return nil
}

func (b *bench) addQuiet(q quiet, d *daemon, n int) {
	per := float64(total(q.calls)) / float64(q.looks)
	target, peer := "", ""
	if n == 100 {
		target, peer = "3", "205"
	}
	b.table.add(row{"  engine calls per look", fmt.Sprintf("%.2f", per), target, peer, fmt.Sprintf("%d looks: %s", q.looks, counts(q.calls))})
	u, err := d.usage()
	if err != nil {
		return
	}
	b.table.add(row{"  CPU per look, resident", fmt.Sprintf("%s, %s", millis(q.cpu/time.Duration(q.looks)), mib(u.resident)), "", "", fmt.Sprintf("of the daemon; in it are %d looks at the remote and answers on the socket", len(q.whole))})
}
