package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// hundred measures a host with a hundred apps: how long they take from nothing,
// what the daemon then needs to keep them, and what a look costs. A proxy before
// the engine counts; it takes about 1 % of the machine while the apps start. What
// the engine needs alone is measured before and after, so that a machine which gets
// slower or faster meanwhile does so for both.
func (b *bench) hundred(ctx context.Context) error {
	before, err := b.floorOf(ctx, b.apps, atOnce)
	if err != nil {
		return err
	}
	took, err := b.hundredApps(ctx)
	if err != nil {
		return err
	}
	if err := b.clean(ctx); err != nil {
		return err
	}
	after, err := b.floorOf(ctx, b.apps, atOnce)
	if err != nil {
		return err
	}
	b.table.add(row{fmt.Sprintf("the engine's own time for %d apps", b.apps), fmt.Sprintf("%s before, %s after", seconds(before), seconds(after)), "", "", fmt.Sprintf("networks, creates and starts by direct calls, %d at once", atOnce)})
	b.table.add(row{fmt.Sprintf("first %d apps / the engine alone", b.apps), fmt.Sprintf("ratio %.2f", 2*took.Seconds()/(before+after).Seconds()), "ratio 1.15", "", "at most 1.5 is promised"})
	return nil
}

// atOnce is reconcile.Options.Steps.
const atOnce = 8

func (b *bench) hundredApps(ctx context.Context) (took time.Duration, err error) {
	r, err := b.newRepo(ctx)
	if err != nil {
		return 0, err
	}
	dir, err := b.folder("d")
	if err != nil {
		return 0, err
	}
	p, err := newProxy(dir+"/p", b.engine)
	if err != nil {
		return 0, err
	}
	defer p.close()
	d, err := b.serve(ctx, dir, p.url(), r)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	if took, err = b.first(ctx, d, p, r); err != nil {
		return 0, err
	}
	if err := b.idleFor(ctx, d); err != nil {
		return 0, err
	}
	if err := b.hundredLooks(ctx, d, p); err != nil {
		return 0, err
	}
	return took, b.pushAmongHundred(ctx, d, p, r)
}

// first pushes all apps at once, and returns how long it took until each ran.
func (b *bench) first(ctx context.Context, d *daemon, p *proxy, r *repo) (took time.Duration, err error) {
	b.note("the first %d apps", b.apps)
	for i := range b.apps {
		if err := r.write(appName(i)+"/compose.yaml", compose(1, "1", b.subnetOf(i))); err != nil {
			return 0, err
		}
	}
	if err := pause(ctx, 1200*time.Millisecond); err != nil {
		return 0, err
	}
	commit, err := r.push(ctx, "Apps")
	if err != nil {
		return 0, err
	}
	listening, stop := context.WithCancel(ctx)
	defer stop()
	heard, err := b.engine.starts(listening, "gitring.host="+host)
	if err != nil {
		return 0, err
	}
	if err := b.calm(ctx); err != nil {
		return 0, err
	}
	before, err := d.usage()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := d.webhook(ctx); err != nil {
		return 0, err
	}
	var last started
	for i := range b.apps {
		if last, err = next(ctx, heard); err != nil {
			return 0, fmt.Errorf("cannot see app %d of %d start: %w", i+1, b.apps, err)
		}
	}
	took = last.at.Sub(began)
	if err := d.synced(ctx, commit); err != nil {
		return 0, err
	}
	after, err := d.usage()
	if err != nil {
		return 0, err
	}
	b.table.add(row{fmt.Sprintf("first %d apps, all running", b.apps), seconds(took), "20 s", "70 s", "one push of all, each with a network of its own"})
	calls := tally(p.since(began))
	b.table.add(row{"  engine calls", fmt.Sprintf("%d, %.1f for each app", total(calls), float64(total(calls))/float64(b.apps)), "8", "", counts(calls)})
	b.table.add(row{"  until Synced; CPU of the daemon", fmt.Sprintf("%s; %s", seconds(time.Since(began)), seconds(after.cpu-before.cpu)), "", "", ""})
	return took, b.trace(p, "first", began)
}

// idleFor watches the daemon while nothing happens.
func (b *bench) idleFor(ctx context.Context, d *daemon) error {
	b.note("an idle daemon with %d apps, for %s", b.apps, b.idle)
	if err := pause(ctx, 15*time.Second); err != nil { // until restart policies are set and garbage is collected
		return err
	}
	before, err := d.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := pause(ctx, b.idle); err != nil {
		return err
	}
	after, err := d.usage()
	if err != nil {
		return err
	}
	share := (after.cpu - before.cpu).Seconds() / time.Since(began).Seconds()
	b.table.add(row{fmt.Sprintf("idle with %d apps, resident", b.apps), mib(after.resident), "60 MiB", "107 MiB", fmt.Sprintf("%s after the first push; at most %s", seconds(b.idle+15*time.Second), mib(after.peak))})
	own, n := d.spare()
	b.table.add(row{"  and the process that fetches, of its own", mib(own), "", "", fmt.Sprintf("%d that stands ready; what it shares with the daemon is counted above", n)})
	b.table.add(row{"  CPU", fmt.Sprintf("%.2f %% of a core", 100*share), "0.5 %", "9 %", fmt.Sprintf("over %s; poll every 60 s", seconds(b.idle))})
	return nil
}

// hundredLooks measures looks that find nothing to do, on the real engine.
func (b *bench) hundredLooks(ctx context.Context, d *daemon, p *proxy) error {
	b.note("looks at %d apps on the engine", b.apps)
	q, err := b.quietLooks(ctx, d, p, 15)
	if err != nil {
		return err
	}
	b.table.add(row{fmt.Sprintf("no-op look, %d apps on the engine", b.apps), q.whole.String(), "50 ms", "1.4 s a cycle", "from the first request to the end of the look"})
	b.table.add(row{"  of it the engine's own two lists", b.lists(ctx).String(), "", "", "the same requests by direct calls"})
	b.addQuiet(q, d, b.apps)
	return nil
}

// pushAmongHundred pushes a change of one app where many are in force.
func (b *bench) pushAmongHundred(ctx context.Context, d *daemon, p *proxy, r *repo) error {
	b.note("pushes of one change among %d apps", b.apps)
	listening, stop := context.WithCancel(ctx)
	defer stop()
	heard, err := b.engine.starts(listening, "gitring.app="+appName(0))
	if err != nil {
		return err
	}
	bare, err := b.engine.starts(listening, floorLabel+"="+host)
	if err != nil {
		return err
	}
	rig := &pushRig{daemon: d, repo: r, n: 1}
	var took, floor spread
	for i := range min(b.pushes, 8) {
		before := time.Now()
		one, _, err := b.onePush(ctx, rig, heard)
		if err != nil {
			return err
		}
		if err := b.trace(p, fmt.Sprintf("push-among-%d", i), before); err != nil {
			return err
		}
		took = append(took, one)
		if one, _, err = b.oneFloor(ctx, i, bare); err != nil {
			return err
		}
		floor = append(floor, one)
	}
	b.table.add(row{fmt.Sprintf("push -> running, one of %d apps", b.apps), took.String(), "", "", fmt.Sprintf("%d signed pushes, the remote by file", len(took))})
	b.table.add(row{"  the engine's own create and start", floor.String(), "", "", "the same container by direct calls, between the pushes"})
	return nil
}

// lists is how long the engine takes for the two requests of a look.
func (b *bench) lists(ctx context.Context) (s spread) {
	for range 10 {
		began := time.Now()
		if _, err := b.engine.containers(ctx, "gitring.host="+host); err != nil {
			return s
		}
		if err := b.engine.call(ctx, "GET", "/networks", nil, nil); err != nil {
			return s
		}
		s = append(s, time.Since(began))
	}
	return s
}

// floorOf is what the engine alone needs for the networks and containers of so
// many apps. It leaves nothing behind.
func (b *bench) floorOf(ctx context.Context, apps, atOnce int) (took time.Duration, err error) {
	b.note("the engine's own time for %d apps, %d at once", apps, atOnce)
	if err := b.calm(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	err = parallel(atOnce, apps, func(i int) error {
		name := fmt.Sprintf("bench-floor-%03d", i)
		if err := b.engine.makeNetwork(ctx, name, b.subnetOf(i)); err != nil {
			return err
		}
		id, err := b.engine.create(ctx, name, name)
		if err != nil {
			return err
		}
		return b.engine.start(ctx, id)
	})
	if err != nil {
		return 0, err
	}
	took = time.Since(began)
	return took, b.clean(ctx)
}

// alone measures the engine with different numbers of calls at once, in turns: it
// is what reconcile.Options.Steps is chosen by.
func (b *bench) alone(ctx context.Context) error {
	const apps, turns = 24, 3
	places := []int{1, 2, 4, 8, 16}
	took := make([]spread, len(places))
	for range turns {
		for i, n := range places {
			one, err := b.floorOf(ctx, apps, n)
			if err != nil {
				return err
			}
			took[i] = append(took[i], one)
		}
	}
	for i, n := range places {
		b.table.add(row{fmt.Sprintf("the engine alone, %d apps, %d at once", apps, n), took[i].String(), "", "", fmt.Sprintf("networks, creates and starts by direct calls, %d times", turns)})
	}
	return nil
}
