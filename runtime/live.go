package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
)

// liveDir is where live folders lie: beside the contents, <state>/live.
func liveDir(contentDir string) string { return filepath.Join(filepath.Dir(contentDir), "live") }

// livePath is the live folder that a mount's source names, of the instance of a.
// The version is the service's: that of a reload names the content too.
func livePath(contentDir string, a ring.Action, source string) string {
	return filepath.Join(liveDir(contentDir), ring.LiveFolder(a.App, a.Service, a.Slot, a.Want.Version), ring.LiveName(source))
}

// lives are the live folders of an instance, by the source of the mount.
func (d *Docker) lives(a ring.Action) map[string]liveFolder {
	out := map[string]liveFolder{}
	if a.Want == nil {
		return out
	}
	for _, m := range a.Want.Spec.Mounts {
		if m.Kind == ring.MountLive {
			out[m.Source] = liveFolder{livePath(d.opts.ContentDir, a, m.Source)}
		}
	}
	return out
}

// placeLive has the content in the live folders of an instance that is about to
// be started, and nothing else: it reads what lies there then.
func (d *Docker) placeLive(a ring.Action) (told []string, err error) {
	for source, f := range d.lives(a) {
		more, err := d.lay(f, source, a.Want.Reload.Content()[source])
		if err == nil {
			err = f.sweep()
		}
		if told = append(told, more...); err != nil {
			return told, &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("cannot write the live folder of %s: %w", source, err)}
		}
	}
	slices.Sort(told)
	return told, nil
}

// lay has a content of the store in a folder.
func (d *Docker) lay(f liveFolder, source, hash string) (told []string, err error) {
	if err := haveContent(d.opts.ContentDir, ring.Mount{Source: hash}); err != nil {
		return nil, err
	}
	changed, err := f.put(filepath.Join(d.opts.ContentDir, hash), hash)
	for _, name := range changed {
		told = append(told, fmt.Sprintf("%s in the live folder of %s was changed by hand, and is written again", name, source))
	}
	return told, err
}

// reload swaps the content of an instance's live folders and has it take that
// over. When it does not, what lay there before lies there again.
func (d *Docker) reload(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	const cannot = "cannot reload container"
	if a.Want == nil || a.Want.Reload == nil {
		return ring.Done{}, errors.New(cannot + ": the action names no service that reloads")
	}
	c, err := d.ours(ctx, e, cannot, target(a))
	if err != nil {
		return ring.Done{}, err
	}
	name := strings.TrimPrefix(c.Name, "/")
	if c.State == nil || !c.State.Running || c.State.Paused {
		return ring.Done{}, &ring.EngineError{Err: fmt.Errorf("%s %s: it does not run", cannot, name)}
	}
	if err := d.allowReload(a); err != nil {
		return ring.Done{}, err
	}
	s := swap{Docker: d, a: a, folders: d.lives(a), was: map[string]string{}}
	told, err := s.do()
	if err != nil {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseFiles, Err: errors.Join(fmt.Errorf("%s %s: %w", cannot, name, err), s.undo())}
	}
	if err := d.takeOver(ctx, e, contained{ID: c.ID, Name: name, Hooks: hooksFor(a.Want.Version, a.Want.Spec)}, a.Want); err != nil {
		no := &ring.EngineError{Err: fmt.Errorf("cannot reload: %w", err)} // its reader knows of which instance
		var said *exited
		if errors.As(err, &said) || errors.Is(err, context.DeadlineExceeded) || cerrdefs.IsInvalidArgument(err) {
			no.Cause, no.Permanent = ring.CauseReload, true
		}
		if back := s.undo(); back != nil {
			no.Err = fmt.Errorf("%w; and the old content cannot be brought back: %w", no.Err, back)
		}
		return ring.Done{}, no
	}
	return ring.Done{Instance: c.ID, Told: told}, s.end()
}

// allowReload asks about the command, which runs inside as a hook does.
func (d *Docker) allowReload(a ring.Action) error {
	if len(a.Want.Reload.Exec) == 0 {
		return nil
	}
	return d.allow(a, Request{Key: "container", Body: hookOptions(reloadHook(a.Want.Reload))})
}

func reloadHook(r *ring.Reload) ring.Hook { return ring.Hook{Command: r.Exec} }

// takeOver sends the signal or runs the command.
func (d *Docker) takeOver(ctx context.Context, e engine, c contained, s *ring.Service) error {
	if s.Reload.Signal != "" {
		return e.ContainerKill(ctx, c.ID, s.Reload.Signal)
	}
	if s.Rollout.StartTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Rollout.StartTimeout)
		defer cancel()
	}
	return d.hook(ctx, e, c, "exec", reloadHook(s.Reload))
}

// swap is the live folders of one instance while their content is swapped.
type swap struct {
	*Docker
	a       ring.Action
	folders map[string]liveFolder
	was     map[string]string // the generation that lay there, by source
}

func (s *swap) do() (told []string, err error) {
	for source, f := range s.folders {
		if s.was[source], err = f.current(); err != nil {
			return told, err
		}
		more, err := s.lay(f, source, s.a.Want.Reload.Live[source])
		if told = append(told, more...); err != nil {
			return told, err
		}
	}
	slices.Sort(told)
	return told, nil
}

// undo brings back what the action says, or what lay there. That a step before
// this one ended half way is why the action says it: what lies there may be new.
func (s *swap) undo() error {
	var all []error
	for source, f := range s.folders {
		if hash := s.a.Back[source]; hash != "" {
			if _, err := s.lay(f, source, hash); err == nil {
				continue
			}
			if g := f.generation(hash); f.has(g) { // the store lost it, the folder did not
				all = append(all, f.back(g))
				continue
			}
		}
		if was := s.was[source]; was != "" {
			all = append(all, f.back(was))
		}
	}
	return errors.Join(all...)
}

// end removes what is not needed any more.
func (s *swap) end() error {
	for _, f := range s.folders {
		if err := f.sweep(); err != nil {
			return &ring.EngineError{Cause: ring.CauseFiles, Err: fmt.Errorf("cannot remove old files of %s: %w", f.dir, err)}
		}
	}
	return nil
}

// dropLive removes the live folders of an instance that is gone. What stays
// behind, SweepLive finds.
func (d *Docker) dropLive(c container.InspectResponse) {
	if c.ContainerJSONBase == nil {
		return
	}
	in := instance(c)
	name := ring.LiveFolder(in.App, in.Service, in.Slot, in.Version)
	if in.App != "" && filepath.IsLocal(name) && !strings.Contains(name, "/") {
		_ = os.RemoveAll(filepath.Join(liveDir(d.opts.ContentDir), name))
	}
}

// SweepLive removes the live folders that no container mounts: of instances that
// somebody else removed, or that never came to be.
func (d *Docker) SweepLive(ctx context.Context) error {
	d.making.Lock() // a folder is there before its container is
	defer d.making.Unlock()
	root := liveDir(d.opts.ContentDir)
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 && err == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot list the live folders: %w", err)
	}
	mounted, err := d.Mounted(ctx)
	if err != nil {
		return err
	}
	for _, at := range entries {
		if mounted[at.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(root, at.Name())); err != nil {
			return fmt.Errorf("cannot remove a live folder: %w", err)
		}
	}
	return nil
}
