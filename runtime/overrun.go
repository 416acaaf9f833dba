package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
)

// overruns are commands of checks that outlived the time they were given. A check that
// hangs would otherwise leave one process more in its container at each ask, until
// the container has no memory left for what it is there for.
type overruns struct {
	mu    sync.Mutex
	known map[string]overrun // guarded by mu: by container and command
}

// overrun is a command that the engine was told to begin, and of which nobody saw the end.
type overrun struct {
	exec  string // the engine's ID
	asked time.Time
	begun bool // its process was seen
}

// beginsWithin is how long after it was asked a busy engine may still begin a command.
// After that the engine is taken never to have heard of it.
const beginsWithin = time.Minute

// overrunKey tells one command in one container.
func overrunKey(id string, argv []string) string { return id + "\x00" + strings.Join(argv, "\x00") }

// of is the overrun of a key, if one is known.
func (o *overruns) of(key string) (overrun, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	run, ok := o.known[key]
	return run, ok
}

// keep has await know of a command, and forgets those of containers that are gone.
func (o *overruns) keep(key string, run overrun, here func(id string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := range o.known {
		if id, _, _ := strings.Cut(k, "\x00"); !here(id) {
			delete(o.known, k)
		}
	}
	if o.known == nil {
		o.known = map[string]overrun{}
	}
	o.known[key] = run
}

func (o *overruns) forget(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.known, key)
}

// stage is how far the engine is with a command.
type stage int

const (
	commandWaits stage = iota // for the engine to begin it
	commandRuns
	commandEnded
)

// stageOf asks the engine. It tells a command that ended from one that it did not yet
// begin by the process alone.
func stageOf(ctx context.Context, e engine, run overrun) (stage, int, error) {
	st, err := e.ContainerExecInspect(ctx, run.exec)
	switch {
	case err != nil && cerrdefs.IsNotFound(err):
		return commandEnded, 0, nil
	case err != nil:
		return 0, 0, err
	case st.Running:
		return commandRuns, st.Pid, nil
	case run.begun || st.Pid != 0 || st.ExitCode != 0:
		return commandEnded, 0, nil
	}
	return commandWaits, 0, nil
}

// awaitOverrun returns nil when no command of that key goes on. While one does no
// second is begun: ctx is waited for.
func (d *Docker) awaitOverrun(ctx context.Context, e engine, id, key string) error {
	for {
		if run, err := d.lookAfter(ctx, e, id, key); err != nil || run.exec == "" {
			return err
		}
		if err := wait(ctx, 250*time.Millisecond); err != nil {
			return fmt.Errorf("the one before has not ended: %w", err)
		}
	}
}

// lookAfter asks how far the overrun of a key is, and ends it once where that can be
// done: the engine has no call for it. None is left when what it returns has no exec.
func (d *Docker) lookAfter(ctx context.Context, e engine, id, key string) (overrun, error) {
	run, ok := d.overruns.of(key)
	if !ok {
		return overrun{}, nil
	}
	at, pid, err := stageOf(ctx, e, run)
	switch {
	case err != nil:
		return run, err
	case at == commandEnded, at == commandWaits && time.Since(run.asked) > beginsWithin:
		d.overruns.forget(key)
		return overrun{}, nil
	case at == commandRuns && !run.begun && pid > 0: // the engine says so before there is a process
		run.begun = true
		d.overruns.keep(key, run, d.cache.has)
		if d.elsewhere(ctx, e) == "" && killIn(procs, pid, id) {
			d.opts.Log.Info("ended a command that outlived its check", "instance", short(id))
		}
	}
	return run, nil
}

// overran looks after a command that ctx had no more time for, until it was seen to
// run: a busy engine may begin it only now. ctx is over.
func (d *Docker) overran(ctx context.Context, e engine, id, key, exec string) {
	if exec == "" || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // we are told to end: it may go on
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	d.overruns.keep(key, overrun{exec: exec, asked: time.Now()}, d.cache.has)
	for {
		run, err := d.lookAfter(ctx, e, id, key)
		if err != nil || run.exec == "" || run.begun || wait(ctx, 250*time.Millisecond) != nil {
			return // the next ask goes on from there
		}
	}
}

// killIn ends a process of a container, by the number that the engine has for it. The
// engine may count in another namespace: so it has to stand in the container's control
// group. What it holds of the process is a
// handle, which another one that is given the number has no part in.
func killIn(proc string, pid int, id string) bool {
	if pid <= 1 || id == "" {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	return inGroup(filepath.Join(proc, strconv.Itoa(pid)), id) && p.Kill() == nil
}
