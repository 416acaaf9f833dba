package runtime

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// Contents of the store that the tests reload, and what they hold.
var (
	oldFiles = strings.Repeat("a1", 32)
	newFiles = strings.Repeat("b2", 32)
)

// reloading is a service that mounts a live folder, with both contents in the store.
func reloading(t *testing.T, r *rig, reload ring.Reload) ring.Action {
	t.Helper()
	layFiles(t, filepath.Join(r.Content, oldFiles), map[string]string{"conf": "old", "d/gone": "x", "run.sh": "#!"})
	layFiles(t, filepath.Join(r.Content, newFiles), map[string]string{"conf": "new", "d/more": "y", "run.sh": "#!"})
	return r.CreateAction(func(s *ring.Service) {
		reload.Live = map[string]string{"conf": oldFiles}
		s.Reload = &reload
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountLive, Source: "conf", Target: "/conf", ReadOnly: true}}
	})
}

// swapped is the step that has an instance take other files over.
func swapped(a ring.Action, in ring.Instance, files string) ring.Action {
	step := enginetest.ActionOn(ring.DoReload, in)
	want := *a.Want
	reload := *want.Reload
	reload.Live = map[string]string{"conf": files}
	want.Reload = &reload
	step.Of, step.Want, step.Version = a.Of, &want, want.LiveVersion()
	return step
}

// mounted is what the host has at the mount of an instance.
func mounted(t *testing.T, r *rig, id string) string {
	t.Helper()
	for _, m := range r.Inspect(t, id).Mounts {
		if m.Destination == "/conf" {
			require.False(t, m.RW)
			return m.Source
		}
	}
	t.Fatal("nothing is mounted at /conf")
	return ""
}

func reloadedInPlace(t *testing.T, r *rig) {
	a := reloading(t, r, ring.Reload{Signal: "SIGCONT"})
	r.Must(t, a)
	in := r.OnlyInstance(t)
	dir := mounted(t, r, in.ID)
	require.Equal(t, "old", reads(t, dir)["conf"])
	before := in.Started

	r.Must(t, swapped(a, in, newFiles))
	require.Equal(t, map[string]string{"conf": "new", "d/more": "y", "run.sh": "#!"}, reads(t, dir))
	r.Must(t, swapped(a, in, newFiles)) // repeated, as after a crash
	require.Equal(t, "new", reads(t, dir)["conf"])
	now := r.OnlyInstance(t)
	require.Equal(t, in.ID, now.ID)
	require.Equal(t, ring.StateRunning, now.State)
	require.Equal(t, before, now.Started)
	require.Equal(t, dir, mounted(t, r, in.ID), "the mount itself never changes")

	// A start has what its service wants, whatever lies there.
	r.Must(t, enginetest.ActionOn(ring.DoStop, in))
	start := enginetest.ActionOn(ring.DoStart, in)
	start.Of, start.Want = a.Of, a.Want
	r.Must(t, start)
	require.Equal(t, "old", reads(t, dir)["conf"])
	require.NoError(t, os.Remove(filepath.Join(dir, "conf")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "conf"), []byte("by hand"), 0o644))
	restart := enginetest.ActionOn(ring.DoRestart, in)
	restart.Of, restart.Want = a.Of, a.Want
	require.Equal(t, []string{"conf in the live folder of conf was changed by hand, and is written again"}, r.Must(t, restart).Told)
	require.Equal(t, "old", reads(t, dir)["conf"])

	// What does not run cannot be reloaded: it reads what lies there when it starts.
	r.Must(t, enginetest.ActionOn(ring.DoStop, in))
	e := r.MustFail(t, swapped(a, in, newFiles))
	require.Empty(t, e.Cause)
	require.Contains(t, e.Error(), "it does not run")
	r.Must(t, enginetest.ActionOn(ring.DoRemove, in))
	require.NoDirExists(t, filepath.Dir(dir), "the folder goes with its instance")
}

func reloadFails(t *testing.T, r *rig) {
	a := reloading(t, r, ring.Reload{Exec: []string{"/app", "tell", "WHO", "3"}})
	r.Must(t, a)
	in := r.OnlyInstance(t)
	dir := mounted(t, r, in.ID)
	e := r.MustFail(t, swapped(a, in, newFiles))
	require.Equal(t, ring.CauseReload, e.Cause)
	require.True(t, e.Permanent)
	require.Contains(t, e.Error(), "cannot reload: exec failed with exit code 3: uid=0 cwd=/ WHO=")
	require.Equal(t, map[string]string{"conf": "old", "d/gone": "x", "run.sh": "#!"}, reads(t, dir))

	// A daemon that ended between the swap and the command finds the new files
	// there: what comes back is what the action says.
	_, err := (liveFolder{dir}).put(filepath.Join(r.Content, newFiles), newFiles)
	require.NoError(t, err)
	again := swapped(a, in, newFiles)
	again.Back = map[string]string{"conf": oldFiles}
	require.Equal(t, ring.CauseReload, r.MustFail(t, again).Cause)
	require.Equal(t, "old", reads(t, dir)["conf"])

	// Content that the store lost is no fault of the commit, and changes nothing.
	lost := swapped(a, in, strings.Repeat("c3", 32))
	e = r.MustFail(t, lost)
	require.Equal(t, ring.CauseFiles, e.Cause)
	require.Equal(t, "old", reads(t, dir)["conf"])

	ok := swapped(a, in, newFiles)
	ok.Want.Reload.Exec = []string{"/app", "tell", "WHO", "0"}
	r.Must(t, ok)
	require.Equal(t, "new", reads(t, dir)["conf"])
	require.Len(t, hidden(t, dir), 2, "the old files go once the reload has succeeded")
}

// TestAReloadThatFailsAnywhereLeavesTheOldFilesOrTheNewOnes fails each call of a
// reload, before and after it took effect; the next try comes to its end.
func TestAReloadThatFailsAnywhereLeavesTheOldFilesOrTheNewOnes(t *testing.T) {
	lost := context.DeadlineExceeded
	for _, reload := range []ring.Reload{{Signal: "SIGUSR1"}, {Exec: []string{"/app", "tell", "WHO", "0"}}} {
		for _, op := range []string{"ContainerInspect", "ContainerKill", "ContainerExecCreate", "ContainerExecAttach", "ContainerExecInspect"} {
			for _, after := range []bool{false, true} {
				r := newRig(t)
				f := newFake(r.options())
				var signals []string
				r.Docker, r.Image = f.Docker, f.AddImage(enginetest.Image{Name: localImage, Programs: []string{"/app"}, Command: fakeApp, Signal: func(_ *enginetest.Fake, _, s string) { signals = append(signals, s) }})
				r.Inspect = func(t *testing.T, id string) container.InspectResponse {
					c, err := f.Inspect(t.Context(), id)
					require.NoError(t, err)
					return c
				}
				a := reloading(t, r, reload)
				r.Must(t, a)
				in := r.OnlyInstance(t)
				dir := mounted(t, r, in.ID)
				f.Fail(once(op, 1, after, lost))
				_, err := f.Do(t.Context(), swapped(a, in, newFiles))
				f.Fail(nil)
				want := "new"
				if err != nil {
					want = "old"
				}
				require.Equal(t, want, reads(t, dir)["conf"], "%s after=%v: %v", op, after, err)
				r.Must(t, swapped(a, in, newFiles))
				require.Equal(t, "new", reads(t, dir)["conf"])
				if reload.Signal != "" {
					require.Contains(t, signals, "SIGUSR1")
				}
			}
		}
	}
}

func TestLiveFoldersThatNoContainerMountsAreSwept(t *testing.T) {
	r := fakeRig(t)
	require.NoError(t, r.SweepLive(t.Context()), "there are none")
	a := reloading(t, r, ring.Reload{Signal: "SIGHUP"})
	r.Must(t, a)
	in := r.OnlyInstance(t)
	dir := mounted(t, r, in.ID)
	stray := filepath.Join(liveDir(r.Content), "web-gone-1-12345678", "x")
	require.NoError(t, os.MkdirAll(stray, 0o755))
	require.NoError(t, r.SweepLive(t.Context()))
	require.NoDirExists(t, filepath.Dir(stray))
	require.Equal(t, "old", reads(t, dir)["conf"])
}

// The command runs inside an instance as a hook does, and its output is told as
// a hook's is: without what is sealed.
func TestAReloadTellsNoSealedValue(t *testing.T) {
	r := newRig(t)
	o := r.options()
	sealed := ring.Sealed{App: r.App, File: ".env", Name: "TOKEN", MAC: "00"}
	o.Open = func(ring.Sealed) (string, error) { return "very-secret", nil }
	f := newFake(o)
	r.Docker = f.Docker
	r.Image = f.AddImage(enginetest.Image{Name: localImage, Programs: []string{"/app"}, Command: func(*enginetest.Fake, string, enginetest.Command) (int, string) { return 1, "no luck with very-secret" }})
	a := reloading(t, r, ring.Reload{Exec: []string{"/app", "reload"}})
	a.Want.Spec.Environment = map[string]string{"TOKEN": sealed.String()}
	r.Must(t, a)
	e := r.MustFail(t, swapped(a, r.OnlyInstance(t), newFiles))
	require.Contains(t, e.Error(), "no luck with <TOKEN>")
	require.NotContains(t, e.Error(), "very-secret")
}
