package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"

	"github.com/gitring/gitring/ring"
)

// Do carries out one step. Repeating a step that took effect, whether or not it
// said so, has the effect of doing it once. Errors are *ring.EngineError where
// their meaning is known. On an error Done still names a container that was made.
func (d *Docker) Do(ctx context.Context, a ring.Action) (ring.Done, error) {
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Timeout)
		defer cancel()
	}
	e, err := d.ready(ctx)
	if err != nil {
		return ring.Done{}, err
	}
	done, err := d.do(ctx, e, a)
	if a.Kind == ring.DoPull || a.Kind == ring.DoImageOff {
		d.lately.forget()
	}
	err = d.withoutSecrets(a, err)
	if (a.Kind == ring.DoPolicy || a.Kind == ring.DoRename || a.Kind == ring.DoName) && err == nil {
		return done, nil // see policy and rename
	}
	// Not every effect shows in the row of the next list.
	for _, id := range []string{a.Instance, done.Instance} {
		if id != "" {
			d.cache.mark(id)
		}
	}
	return done, err
}

func (d *Docker) do(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	switch a.Kind {
	case ring.DoResolve:
		return d.resolve(ctx, e, a, d.askOrPull(a))
	case ring.DoVerify:
		return d.verify(ctx, e, a)
	case ring.DoAdmit:
		return d.admit(ctx, e, a)
	case ring.DoPull:
		return d.pull(ctx, e, a)
	case ring.DoNetwork:
		return d.makeNetwork(ctx, e, a)
	case ring.DoNetworkOff:
		return d.removeNetwork(ctx, e, a)
	case ring.DoCreate:
		return d.create(ctx, e, a)
	case ring.DoStart:
		return d.start(ctx, e, a)
	case ring.DoStop:
		return d.stop(ctx, e, a)
	case ring.DoRemove:
		return d.remove(ctx, e, a)
	case ring.DoRestart:
		return d.restart(ctx, e, a)
	case ring.DoPolicy:
		return d.policy(ctx, e, a)
	case ring.DoRename, ring.DoName:
		return d.rename(ctx, e, a)
	case ring.DoConnect:
		return ring.Done{Instance: a.Instance}, d.finish(ctx, e, a, target(a), false)
	case ring.DoUpdate:
		return d.limit(ctx, e, a)
	case ring.DoUnpause:
		return d.unpause(ctx, e, a)
	case ring.DoSignal:
		return ring.Done{Instance: a.Instance}, d.SignalFront(ctx, a.Instance)
	case ring.DoLog:
		return d.keepLog(ctx, e, a)
	case ring.DoImageOff:
		return d.imageOff(ctx, e, a)
	case ring.DoReload:
		return d.reload(ctx, e, a)
	case ring.DoWhose:
		return ring.Done{}, d.whose(ctx, e, a)
	}
	return ring.Done{}, fmt.Errorf("cannot carry out %q: no such step", a.Kind)
}

// start finishes an instance that was created, and starts it.
func (d *Docker) start(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	done := ring.Done{Instance: a.Instance}
	if d.adopts()[a.Instance] {
		return done, d.finish(ctx, e, a, target(a), true) // it mounts what Compose gave it
	}
	err := d.frontAgain(a)
	if err != nil {
		return done, err
	}
	if done.Drift, err = d.seeds(a); err != nil {
		return done, err
	}
	if done.Told, err = d.placeLive(a); err != nil {
		return done, err
	}
	return done, d.finish(ctx, e, a, target(a), true)
}

// target is how the engine finds the container of a step.
func target(a ring.Action) string {
	if a.Instance != "" {
		return a.Instance
	}
	return a.Name
}

// errNotOurs is what keeps hands off other people's containers.
var errNotOurs = errors.New("it is not ours")

// ours is a container after its owner labels were checked; every change of an
// existing container comes through here first, and goes by the ID found here.
func (d *Docker) ours(ctx context.Context, e engine, cannot, ref string) (container.InspectResponse, error) {
	if ref == "" {
		return container.InspectResponse{}, fmt.Errorf("%s: the action names none", cannot)
	}
	cannot += " " + short(ref)
	c, err := e.ContainerInspect(ctx, ref)
	if err != nil {
		return c, fault(cannot, "", err)
	}
	// The engine also takes the first digits of an ID for it.
	if c.ContainerJSONBase == nil || c.Config == nil || c.ID != ref && c.Name != "/"+ref {
		return c, &ring.EngineError{Err: fmt.Errorf("%s: %w", cannot, cerrdefs.ErrNotFound)}
	}
	if !d.own(c.ID, c.Config.Labels) {
		return c, &ring.EngineError{Permanent: true, Err: fmt.Errorf("%s: %w", cannot, errNotOurs)}
	}
	return c, nil
}

// wait lets the drain delay pass.
func wait(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for the drain delay: %w", ctx.Err())
	}
}

// grace is how long the engine waits between stop signal and kill. An action
// that says none means the default: nothing is killed for want of a number.
func grace(a ring.Action) container.StopOptions {
	g := a.Grace
	if g <= 0 {
		g = ring.DefaultStopGrace
	}
	sec := seconds(g)
	return container.StopOptions{Timeout: &sec}
}

// drained is ours, after the delay that a running container gets before its
// stop signal: for those who still send requests to it.
func (d *Docker) drained(ctx context.Context, e engine, a ring.Action, cannot string) (container.InspectResponse, error) {
	c, err := d.ours(ctx, e, cannot, target(a))
	if err != nil || a.Delay <= 0 || !busy(c) {
		return c, err
	}
	if err := wait(ctx, a.Delay); err != nil {
		return c, err
	}
	return d.ours(ctx, e, cannot, target(a))
}

// stop ends the process; the container stays. Stopped or gone already is fine.
func (d *Docker) stop(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	c, err := d.drained(ctx, e, a, "cannot stop container")
	if cerrdefs.IsNotFound(err) {
		return ring.Done{Note: "already gone"}, nil
	}
	if err != nil {
		return ring.Done{}, err
	}
	told := d.beforeStop(ctx, e, c, a)
	return ring.Done{Instance: c.ID, Told: told}, d.halt(ctx, e, a, c)
}

func (d *Docker) halt(ctx context.Context, e engine, a ring.Action, c container.InspectResponse) error {
	err := e.ContainerStop(ctx, c.ID, grace(a))
	if err != nil && !cerrdefs.IsNotFound(err) {
		return fault("cannot stop container "+strings.TrimPrefix(c.Name, "/"), "", err)
	}
	return nil
}

// remove stops the container if it runs and removes it. No volume is ever
// removed with it. Gone already is fine.
func (d *Docker) remove(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	const cannot = "cannot remove container"
	c, err := d.drained(ctx, e, a, cannot)
	if cerrdefs.IsNotFound(err) {
		return ring.Done{Note: "already gone"}, nil
	}
	if err != nil {
		return ring.Done{}, err
	}
	told := d.beforeStop(ctx, e, c, a)
	if busy(c) {
		if err := d.halt(ctx, e, a, c); err != nil {
			return ring.Done{Told: told}, err
		}
	}
	defer d.cache.hold(c.ID)()
	err = e.ContainerRemove(ctx, c.ID, container.RemoveOptions{RemoveVolumes: false})
	switch {
	case err == nil:
		d.dropLive(c)
		d.dropFront(c)
		return ring.Done{Instance: c.ID, Told: told}, nil
	case cerrdefs.IsNotFound(err):
		d.dropLive(c)
		d.dropFront(c)
		return ring.Done{Note: "already gone", Told: told}, nil
	case strings.Contains(err.Error(), "already in progress"):
		return ring.Done{Instance: c.ID, Note: "already being removed", Told: told}, nil
	}
	return ring.Done{Told: told}, fault(cannot+" "+strings.TrimPrefix(c.Name, "/"), "", err)
}

func busy(c container.InspectResponse) bool {
	return c.ContainerJSONBase != nil && c.State != nil && (c.State.Running || c.State.Paused || c.State.Restarting)
}

// restart stops and starts the same container, with its hooks.
func (d *Docker) restart(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	c, err := d.drained(ctx, e, a, "cannot restart container")
	if err != nil {
		return ring.Done{}, err
	}
	if err := d.frontAgain(a); err != nil {
		return ring.Done{}, err
	}
	if err := d.bindsThere(a, c); err != nil {
		return ring.Done{}, err
	}
	done := ring.Done{Told: d.beforeStop(ctx, e, c, a)}
	if !d.adopts()[c.ID] {
		told, err := d.placeLive(a)
		if done.Told = append(done.Told, told...); err != nil {
			return done, err
		}
	}
	if err := d.mayStart(ctx, e, a, c); err != nil {
		return done, err
	}
	if err := e.ContainerRestart(ctx, c.ID, grace(a)); err != nil {
		return done, d.startFault(ctx, e, a, "cannot restart container "+strings.TrimPrefix(c.Name, "/"), inspected(c, a), err)
	}
	done.Instance = c.ID
	return done, d.afterStart(ctx, e, inspected(c, a), a)
}

// rename gives a container another name; one that has it already is left as it is. As in
// policy, whether it is ours is asked only where no look said so, and what comes of it is known.
func (d *Docker) rename(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	const cannot = "cannot rename container"
	id, name, known := d.cache.name(a.Instance)
	for ; ; known = false {
		if !known || name == a.NewName {
			c, err := d.ours(ctx, e, cannot, target(a))
			if err != nil {
				return ring.Done{}, err
			}
			if id, name = c.ID, strings.TrimPrefix(c.Name, "/"); name == a.NewName {
				d.cache.mark(id) // a look may have seen another one
				return ring.Done{Instance: id, Note: "has that name already"}, nil
			}
			known = false
		}
		own := ownEvent{id, events.ActionRename}
		d.cache.expect(own)
		err := e.ContainerRename(ctx, id, a.NewName)
		if err == nil {
			d.cache.set(id, setting{name: &a.NewName})
			return ring.Done{Instance: id}, nil
		}
		d.cache.unexpect(own)
		switch taken := cerrdefs.IsConflict(err); {
		case taken && !known:
			return ring.Done{}, d.nameTaken(ctx, e, a, a.NewName)
		case !taken:
			return ring.Done{}, fault(cannot+" "+name, ring.CauseConfig, err)
		}
		// It may have the name since the last look: an answer of the engine was lost.
	}
}
