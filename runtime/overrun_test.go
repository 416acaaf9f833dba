package runtime

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// hanging is an engine whose commands never end, but for those that are let go.
type hanging struct {
	engine
	begun int
	late  bool // it was asked to begin, and has not yet
	ended bool
}

func (h *hanging) ContainerInspect(context.Context, string) (container.InspectResponse, error) {
	return container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{ID: "c1"},
		Config:            &container.Config{Labels: map[string]string{labelHost: "edge-1"}},
	}, nil
}

func (h *hanging) ContainerExecCreate(context.Context, string, container.ExecOptions) (container.ExecCreateResponse, error) {
	h.begun++
	return container.ExecCreateResponse{ID: strconv.Itoa(h.begun)}, nil
}

func (h *hanging) ContainerExecAttach(ctx context.Context, _ string, _ container.ExecAttachOptions) (types.HijackedResponse, error) {
	<-ctx.Done()
	return types.HijackedResponse{}, ctx.Err()
}

func (h *hanging) ContainerExecInspect(context.Context, string) (container.ExecInspect, error) {
	if h.late {
		return container.ExecInspect{}, nil
	}
	return container.ExecInspect{Running: !h.ended, Pid: 1 << 30}, nil // no such process
}

func TestACommandThatHangsIsNotBegunASecondTime(t *testing.T) {
	h := &hanging{}
	d := newDocker(Options{Host: "edge-1"}, &calls{}, func() (engine, error) { return h, nil })
	d.engine, d.sound = h, true
	ask := func(argv ...string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_, _, err := d.Exec(ctx, "c1", argv)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	for range 5 {
		ask("check", "db")
	}
	require.Equal(t, 1, h.begun, "each ask left a process in the container")
	ask("check", "cache")
	require.Equal(t, 2, h.begun, "another command has nothing to do with it")
	h.ended = true
	ask("check", "db")
	require.Equal(t, 3, h.begun, "the first has ended, and the check is asked again")
}

// A busy engine may begin a command after the check had no more time for it.
func TestACommandThatTheEngineBeginsLateIsNotBegunASecondTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{late: true}
		d := newDocker(Options{Host: "edge-1"}, &calls{}, func() (engine, error) { return h, nil })
		d.engine, d.sound = h, true
		ask := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _, err := d.Exec(ctx, "c1", []string{"check", "db"})
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		ask()
		ask()
		require.Equal(t, 1, h.begun, "the engine may begin the first at any time")
		h.late = false
		for range 100 {
			ask()
		}
		require.Equal(t, 1, h.begun, "the first began late, and goes on")
		h.ended = true
		ask()
		require.Equal(t, 2, h.begun, "the first has ended, and the check is asked again")

		h.late, h.ended = true, false
		ask()
		ask()
		require.Equal(t, 3, h.begun)
		time.Sleep(2 * time.Minute)
		ask()
		require.Equal(t, 4, h.begun, "the engine never heard of the third: the check would never be asked again")
	})
}

func TestOnlyAProcessOfTheContainerIsEnded(t *testing.T) {
	const id = "4f1c0f4e3d2b1a09"
	proc := t.TempDir()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe() // it waits for that
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = in.Close() })
	stands := func(group string) {
		dir := filepath.Join(proc, strconv.Itoa(cmd.Process.Pid))
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup"), []byte(group), 0o600))
	}
	require.False(t, killIn(proc, cmd.Process.Pid, id), "it cannot be seen where it stands")
	stands("0::/docker/ffff\n")
	require.False(t, killIn(proc, cmd.Process.Pid, id), "it is another container's")
	require.False(t, killIn(proc, 0, id))
	require.False(t, killIn(proc, 1, id))
	require.False(t, killIn(proc, cmd.Process.Pid, ""))
	select {
	case <-ended:
		require.Fail(t, "it was ended")
	default:
	}
	stands("0::/docker/" + id + "\n")
	require.True(t, killIn(proc, cmd.Process.Pid, id))
	require.ErrorContains(t, <-ended, "killed")
}

// A check that hangs, asked again and again, on a real engine: what serves is not
// crowded out of its container.
func TestEngineHangingCommandsDoNotPileUp(t *testing.T) {
	r := realRig(t)
	r.Must(t, r.CreateAction(nil))
	in := r.OnlyInstance(t)
	for range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, _, err := r.Exec(ctx, in.ID, []string{"/app", "sleep"})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	if unseenProcesses(procs, "") != "" || len(processesOf(in.ID)) == 0 {
		t.Skip("the processes of this engine's containers are not to be seen from here")
	}
	// What a busy engine begins only now is ended by the next ask, as those of a check are.
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e, err := r.ready(ctx)
		if err == nil {
			_ = r.awaitOverrun(ctx, e, in.ID, overrunKey(in.ID, []string{"/app", "sleep"}))
		}
		return len(processesOf(in.ID)) == 1
	}, time.Minute, 50*time.Millisecond, "something is left of the commands")
	require.Equal(t, ring.StateRunning, r.OnlyInstance(t).State)
}

// processesOf are the command lines of what runs in a container.
func processesOf(id string) (lines []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, f := range files {
		if b, _ := os.ReadFile(f); strings.Contains(string(b), id) {
			if line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline")); len(line) > 0 {
				lines = append(lines, string(line))
			}
		}
	}
	return lines
}
