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
	mu   sync.Mutex
	exec map[string]string // guarded by mu: the engine's ID of the one that goes on, by container and command
}

// overrunKey tells one command in one container.
func overrunKey(id string, argv []string) string { return id + "\x00" + strings.Join(argv, "\x00") }

// await returns nil when no command of that key goes on. While one does no second is
// begun: ctx is waited for.
func (o *overruns) await(ctx context.Context, e engine, key string) error {
	o.mu.Lock()
	exec, ok := o.exec[key]
	o.mu.Unlock()
	if !ok {
		return nil
	}
	st, err := e.ContainerExecInspect(ctx, exec)
	switch {
	case err == nil && st.Running:
		<-ctx.Done()
		return fmt.Errorf("the one before has not ended: %w", ctx.Err())
	case err != nil && !cerrdefs.IsNotFound(err):
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.exec, key)
	return nil
}

// keep has await know of exec, and forgets those of containers that are gone.
func (o *overruns) keep(key, exec string, here func(id string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := range o.exec {
		if id, _, _ := strings.Cut(k, "\x00"); !here(id) {
			delete(o.exec, k)
		}
	}
	if o.exec == nil {
		o.exec = map[string]string{}
	}
	o.exec[key] = exec
}

// overran ends a command that ctx had no more time for, where its process can be seen:
// the engine has no call for it. ctx is over.
func (d *Docker) overran(ctx context.Context, e engine, id, key, exec string) {
	if exec == "" || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // we are told to end: it may go on
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	st, err := e.ContainerExecInspect(ctx, exec)
	if err != nil && cerrdefs.IsNotFound(err) || err == nil && !st.Running {
		return
	}
	d.overruns.keep(key, exec, d.cache.has)
	if err == nil && d.elsewhere(ctx, e) == "" && killIn(procs, st.Pid, id) {
		d.opts.Log.Info("ended a command that outlived its check", "instance", short(id))
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
