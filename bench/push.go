package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// push measures the road of one commit: from the forge's webhook to the new
// container's running, beside what the engine alone needs for such a container.
func (b *bench) push(ctx context.Context) error {
	for _, over := range []string{"http", "file"} {
		if err := b.pushOver(ctx, over); err != nil {
			return err
		}
	}
	return b.callsOfPush(ctx)
}

// pushRig is a daemon with one app in force.
type pushRig struct {
	*daemon
	repo *repo
	n    int
}

func (b *bench) pushRig(ctx context.Context, over, engine string) (*pushRig, error) {
	r, err := b.newRepo(ctx)
	if err != nil {
		return nil, err
	}
	if over == "http" {
		if err := r.overHTTP(ctx); err != nil {
			return nil, err
		}
	}
	rig := &pushRig{repo: r, n: 1}
	commit, err := b.pushVersion(ctx, rig)
	if err != nil {
		return nil, err
	}
	dir, err := b.folder("d")
	if err != nil {
		return nil, err
	}
	if rig.daemon, err = b.serve(ctx, dir, engine, r); err != nil {
		return nil, err
	}
	return rig, rig.synced(ctx, commit)
}

// pushVersion pushes a commit that changes one variable of the app.
func (b *bench) pushVersion(ctx context.Context, rig *pushRig) (string, error) {
	rig.n++
	if err := rig.repo.write(appName(0)+"/compose.yaml", compose(1, fmt.Sprint(rig.n), b.subnetOf(0))); err != nil {
		return "", err
	}
	return rig.repo.push(ctx, fmt.Sprintf("Say %d", rig.n))
}

func (r *pushRig) close() error {
	r.repo.close()
	return r.stop()
}

func (b *bench) pushOver(ctx context.Context, over string) (err error) {
	b.note("push -> running, the remote by %s, %d times", over, b.pushes)
	rig, err := b.pushRig(ctx, over, b.settings.engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rig.close()) }()
	listening, stop := context.WithCancel(ctx)
	defer stop()
	ours, err := b.engine.starts(listening, "gitring.app="+appName(0))
	if err != nil {
		return err
	}
	bare, err := b.engine.starts(listening, floorLabel+"="+host)
	if err != nil {
		return err
	}
	var took, floor, whole, done spread
	for i := range b.pushes {
		one, rest, err := b.onePush(ctx, rig, ours)
		if err != nil {
			return err
		}
		took, done = append(took, one), append(done, rest)
		if one, rest, err = b.oneFloor(ctx, i, bare); err != nil {
			return err
		}
		floor, whole = append(floor, one), append(whole, rest)
	}
	b.table.add(row{"push -> running, remote by " + over, took.String(), "350 ms", "401 ms", fmt.Sprintf("median and ends of %d signed pushes, from the webhook's POST to the engine's start event", b.pushes)})
	b.table.add(row{"  the engine's own create and start", floor.String(), "", "about 250 ms", "the same container by direct calls, between the pushes"})
	b.table.add(row{"  gitring's part", fmt.Sprintf("%s, ratio %.2f", millis(took.median()-floor.median()), took.median().Seconds()/floor.median().Seconds()), "ratio 1.4", "ratio 1.6", "the difference of the medians"})
	b.table.add(row{"  the engine's own create, start, stop and remove", whole.String(), "", "", "the same container: what a rollout of it asks of the engine"})
	b.table.add(row{"  push -> running, to that", ratio(took, whole), "ratio 1.4", "", "of the medians"})
	b.table.add(row{"  push -> rolled out", done.String(), "", "", "until the old container is removed and the status is Synced"})
	b.table.add(row{"  push -> rolled out, to that", ratio(done, whole), "", "", "of the medians"})
	return nil
}

// onePush is the time from the POST until the new container runs, and until
// nothing of the rollout is left.
func (b *bench) onePush(ctx context.Context, rig *pushRig, heard <-chan started) (running, synced time.Duration, err error) {
	// Pokes lead to at most one look a second; a push seldom meets another.
	if err := pause(ctx, 1200*time.Millisecond); err != nil {
		return 0, 0, err
	}
	commit, err := b.pushVersion(ctx, rig)
	if err != nil {
		return 0, 0, err
	}
	for len(heard) > 0 {
		<-heard
	}
	if err := b.calm(ctx); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := rig.webhook(ctx); err != nil {
		return 0, 0, err
	}
	s, err := next(ctx, heard)
	if err != nil {
		return 0, 0, fmt.Errorf("cannot see the new container start: %w", err)
	}
	if is, err := b.engine.running(ctx, s.id); err != nil || !is {
		return 0, 0, errors.Join(errors.New("the container that was started does not run"), err)
	}
	if err := rig.synced(ctx, commit); err != nil {
		return 0, 0, err
	}
	return s.at.Sub(began), time.Since(began), nil
}

// oneFloor is the time that the engine needs for the same container, on the same
// network: until it runs, and until it was stopped and removed as well.
func (b *bench) oneFloor(ctx context.Context, i int, heard <-chan started) (running, whole time.Duration, err error) {
	if err := b.calm(ctx); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	id, err := b.engine.create(ctx, fmt.Sprintf("bench-floor-%d", i), appName(0)+"_default")
	if err != nil {
		return 0, 0, err
	}
	if err := b.engine.start(ctx, id); err != nil {
		return 0, 0, err
	}
	s, err := next(ctx, heard)
	if err != nil {
		return 0, 0, err
	}
	if err := errors.Join(b.engine.stop(ctx, id), b.engine.remove(ctx, id)); err != nil {
		return 0, 0, err
	}
	return s.at.Sub(began), time.Since(began), nil
}

func ratio(a, b spread) string {
	return fmt.Sprintf("ratio %.2f", a.median().Seconds()/b.median().Seconds())
}

// callsOfPush counts the requests of a push, with a proxy in between.
func (b *bench) callsOfPush(ctx context.Context) (err error) {
	dir, err := b.folder("p")
	if err != nil {
		return err
	}
	p, err := newProxy(dir+"/s", b.engine)
	if err != nil {
		return err
	}
	defer p.close()
	rig, err := b.pushRig(ctx, "file", p.url())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rig.close()) }()
	listening, stop := context.WithCancel(ctx)
	defer stop()
	heard, err := b.engine.starts(listening, "gitring.app="+appName(0))
	if err != nil {
		return err
	}
	before := time.Now()
	if _, _, err := b.onePush(ctx, rig, heard); err != nil {
		return err
	}
	calls := p.since(before)
	if err := b.trace(p, "push", before); err != nil {
		return err
	}
	n := tally(calls)
	b.table.add(row{"  engine calls of a push", fmt.Sprint(total(n)), "", "", "until Synced: " + counts(n)})
	return nil
}
