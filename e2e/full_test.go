package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// disk is a small file system of its own.
type disk struct {
	t       *testing.T
	at      string
	ballast string
}

// newDisk mounts one of a few MiB: ext4 on a loop device, or where there is no
// such device, memory with a bound.
func newDisk(t *testing.T, at string) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a file system of its own needs root")
	}
	d := &disk{t: t, at: at, ballast: filepath.Join(at, "ballast")}
	require.NoError(t, os.MkdirAll(at, 0o700))
	if err := d.loop(at + ".img"); err != nil {
		t.Logf("no loop device here (%v): tmpfs instead", err)
		require.NoError(t, syscall.Mount("none", at, "tmpfs", 0, "size=12m"))
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(at, syscall.MNT_DETACH)) })
	return d
}

func (d *disk) loop(image string) error {
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, 12<<20); err != nil {
		return err
	}
	for _, c := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, d.at}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			return errors.New(c[0] + ": " + strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// fill leaves not a byte.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.OpenFile(d.ballast, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(d.t, err)
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err = f.Write(make([]byte, size)); err != nil {
			require.ErrorIs(d.t, err, syscall.ENOSPC)
			size /= 2
		}
	}
	require.ErrorIs(d.t, f.Sync(), nil)
}

func (d *disk) free() {
	d.t.Helper()
	require.NoError(d.t, os.Remove(d.ballast))
}

// TestAFullDiskStopsDecisionsAndNothingElse fills the state directory's file system
// at rest and in the middle of rollouts. What cannot be written down is not done;
// what runs is let alone; and it goes on when there is room.
func TestAFullDiskStopsDecisionsAndNothingElse(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	r := dice(t)
	d := newDisk(t, filepath.Join(h.dir, "disk"))
	h.config["state"] = filepath.Join(d.at, "state")
	f := newFleet(h)
	f.begin()

	// At rest.
	d.fill()
	stopped := f.containers("web")[1]
	mark := f.events.mark()
	f.w.byHand[stopped.ID] = true
	require.NoError(t, f.engine.stop(stopped.ID))
	f.await("it says that nothing can be written down", func(st status) bool { return st.Store != "" })
	old := f.tip
	f.push(1)
	// It comes back to a full disk, too.
	f.kill()
	f.launch()
	f.until("it looks, or says why it cannot", func() bool {
		st, err := f.look()
		return err == nil && st.Store != "" || f.gone()
	})
	if f.gone() {
		require.Contains(t, f.tail(3), "full", "it has to say what is wrong")
	}
	pause(2e9) // several looks
	for _, e := range f.events.after(mark, "create", "start", "destroy") {
		require.Fail(t, "something was done that could not be written down", "%s %s", e.Action, e.Actor.Attributes["name"])
	}
	d.free()
	if f.gone() {
		f.start()
	}
	require.NotEqual(t, old, f.tip)
	f.whole()

	// In the middle of rollouts.
	fills := amount(t, "FILLS", 3, 25)
	for range fills {
		mark := f.events.mark()
		f.push(1)
		f.events.wait(mark, r.IntN(14), 3e9)
		d.fill()
		pause(1e9)
		switch r.IntN(3) {
		case 0:
			f.kill()
			f.launch()
			pause(5e8)
		case 1:
			f.bad()
		}
		d.free()
		if f.gone() {
			f.launch()
		}
	}
	f.push(1)
	f.over()
	t.Logf("the disk was full %d times", fills+1)
}
