package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

func TestARefusalForEverIsOfTheContainerAndOfNoVersion(t *testing.T) {
	id := "5d0b2a6a4a2f"
	d := newFake(Options{Host: "edge-1"})
	for says, want := range map[string]bool{
		"task " + id + ": already exists":                                      true,
		"failed to create task for container: task " + id + ": already exists": true,
		`container "` + id + `": already exists`:                               true,
		"id already in use":                                                    true,
		"OCI runtime create failed: container with id exists: " + id:           true,
		"container is marked for removal and cannot be started":                true,
		"OCI runtime create failed: container with given ID already exists":    true,
		"endpoint with name web already exists in network web_default":         false,
		"Bind for 0.0.0.0:80 failed: port is already allocated":                false,
		"cannot create volume x: already exists":                               false,
		`exec: "task": executable file not found in $PATH`:                     false,
	} {
		for _, class := range []error{cerrdefs.ErrConflict, cerrdefs.ErrInternal} {
			err := d.startFault(t.Context(), nil, ring.Action{}, "cannot start container web", contained{Name: "web", ID: "0123456789abcdef"}, enginetest.Refuse(class, "%s", says))
			var e *ring.EngineError
			require.ErrorAs(t, err, &e)
			require.Equal(t, want, e.Broken, says)
			if want {
				require.Empty(t, e.Cause, "it counts as a failure of the version: %s", says)
			}
			require.Contains(t, err.Error(), "cannot start container web: "+says)
		}
	}
	var e *ring.EngineError
	require.ErrorAs(t, d.startFault(t.Context(), nil, ring.Action{}, "cannot start container web", contained{ID: "0123456789abcdef"}, fmt.Errorf("task x: already exists: %w", enginetest.ErrDown)), &e)
	require.False(t, e.Broken, "an engine that did not answer has refused nothing")
}

// A process that the engine forgot may write to what the next container would.
func TestAForgottenProcessIsSeenAndOneThatWaitsIsNone(t *testing.T) {
	const id = "4f1c0f4e3d2b1a09"
	proc := t.TempDir()
	add := func(pid, group, argv string) {
		require.NoError(t, os.MkdirAll(filepath.Join(proc, pid), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(proc, pid, "cgroup"), []byte(group), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(proc, pid, "cmdline"), []byte(argv), 0o600))
	}
	add("1", "0::/init.scope\n", "init\x00")
	add("20", "4:memory:/docker/ffff\n", "postgres\x00")
	add("21", "4:memory:/docker/"+id+"\n", "runc\x00init\x00")
	require.Empty(t, forgotten(proc, id))
	add("22", "0::/system.slice/docker-"+id+".scope\n", "postgres\x00-D\x00/data\x00")
	require.Equal(t, "22", forgotten(proc, id))
	require.Empty(t, forgotten(filepath.Join(proc, "none"), id))
}

// Nobody can tell that nothing runs who does not see what runs.
func TestWhereProcessesAreHiddenARefusedContainerStays(t *testing.T) {
	proc := t.TempDir()
	space := func(to string) {
		require.NoError(t, os.RemoveAll(filepath.Join(proc, "self")))
		require.NoError(t, os.MkdirAll(filepath.Join(proc, "self/ns"), 0o700))
		require.NoError(t, os.Symlink(to, filepath.Join(proc, "self/ns/pid")))
	}
	space(hostsPID)
	require.Contains(t, unseenProcesses(proc, ""), "ProtectProc", "init is hidden")
	require.NoError(t, os.MkdirAll(filepath.Join(proc, "1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(proc, "1/cgroup"), []byte("0::/init.scope\n"), 0o600))
	require.Empty(t, unseenProcesses(proc, ""))
	require.Empty(t, unseenProcesses(proc, "us"), "pid: host")
	space("pid:[4026532207]")
	require.Contains(t, unseenProcesses(proc, "us"), "pid: host")
	require.Empty(t, unseenProcesses(proc, ""), "the engine is in the same namespace")

	f := newFake(Options{Host: "edge-1"})
	f.unseen = func(context.Context, engine) string { return "hidden" }
	var e *ring.EngineError
	err := f.startFault(t.Context(), nil, ring.Action{}, "cannot start container db", contained{Name: "db", ID: "0123456789abcdef"}, enginetest.Refuse(cerrdefs.ErrConflict, "task x: already exists"))
	require.ErrorAs(t, err, &e)
	require.False(t, e.Broken)
	require.False(t, e.Permanent, "it is no word on the version")
	require.NotNil(t, e.Refusal)
	require.Contains(t, e.Refusal.Hint, "docker rm db")
}

// The refused container is replaced by one of the same name, and both by the
// same step.
func TestAContainerThatIsRefusedForEverCanBeReplaced(t *testing.T) {
	r := newRig(t)
	f := newFake(r.options())
	r.Docker, r.Image = f.Docker, f.AddImage(enginetest.Image{Name: localImage})
	a := r.CreateAction(nil)
	f.Break(1)
	done, err := f.Do(t.Context(), a)
	var e *ring.EngineError
	require.True(t, errors.As(err, &e) && e.Broken, "%v", err)
	require.NotEmpty(t, done.Instance)
	again := a
	again.Kind, again.Instance = ring.DoStart, done.Instance
	_, err = f.Do(t.Context(), again)
	require.True(t, errors.As(err, &e) && e.Broken, "the same one is refused again: %v", err)
	off := a
	off.Kind, off.Instance = ring.DoRemove, done.Instance
	_, err = f.Do(t.Context(), off)
	require.NoError(t, err)
	next, err := f.Do(t.Context(), a)
	require.NoError(t, err)
	require.NotEqual(t, done.Instance, next.Instance)
}
