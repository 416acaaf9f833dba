package runtime

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/volume"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

func TestWhatWasThereIsNeverMadeAnew(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "disk")
	f := newFake(Options{Host: "edge-1", DataRoot: root})
	id := f.AddImage(enginetest.Image{Name: "app:1"})
	s := &ring.Service{Name: "db", Kind: ring.Worker, Pin: ring.Pin{Image: id}, Image: ring.Image{Known: true}, Spec: ring.Spec{
		Image: "app:1", NoNetwork: true, Mounts: []ring.Mount{
			{Kind: ring.MountData, Source: "shop/data", Target: "/data"},
			{Kind: ring.MountVolume, Source: "pg", Target: "/pg"},
			{Kind: ring.MountVolume, Source: "db_{slot}_0a0a0a0a", Target: "/cache"},
		},
	}}
	app := &ring.App{Name: "shop", Path: "shop"}
	s.Version = ring.VersionOf(app, s, s.Pin)
	a := ring.Action{Kind: ring.DoCreate, App: "shop", Service: "db", Slot: 1, Version: s.Version, Of: app, Want: s}
	done, err := f.Do(t.Context(), a)
	require.NoError(t, err)
	for _, k := range done.Kept {
		require.Equal(t, "shop", k.App)
		require.False(t, k.At.IsZero())
		a.Kept = append(a.Kept, k.Name)
	}
	require.ElementsMatch(t, []string{"data " + root + "/shop/data", "volume shop_pg", "volume shop_db_1_0a0a0a0a"}, a.Kept)
	f.TakeAway(done.Instance)

	// refused takes something away, and gives it back by hand.
	refused := func(says, hint string) {
		t.Helper()
		_, err := f.Do(t.Context(), a)
		var e *ring.EngineError
		require.ErrorAs(t, err, &e)
		require.NotNil(t, e.Refusal, "%v", err)
		require.Equal(t, ring.Conflict, e.Refusal.Code)
		require.Equal(t, says, e.Refusal.Says)
		require.Contains(t, e.Refusal.Hint, hint)
		require.Equal(t, ring.CauseFiles, e.Cause)
		require.False(t, e.Permanent, "another try may find it back")
		require.NotZero(t, e.Wait)
	}
	for _, name := range []string{"shop_pg", "shop_db_1_0a0a0a0a"} {
		f.DropVolume(name)
		refused("volume "+name+" was there and is gone", "docker volume create "+name)
		require.NotContains(t, f.Volumes(), name)
		f.AddVolume(name, nil)
	}

	require.NoError(t, os.RemoveAll(filepath.Join(root, "shop/data")))
	require.NoError(t, os.Mkdir(filepath.Join(root, "other"), 0o755))
	refused("data folder "+root+"/shop/data was there and is gone", "mkdir -p "+root+"/shop/data")
	require.NoDirExists(t, filepath.Join(root, "shop/data"))

	// A disk that is not mounted: the mount point is there, or not even that.
	require.NoError(t, os.RemoveAll(root))
	refused("data root "+root+" held data and is gone now", "is its disk mounted?")
	require.NoError(t, os.Mkdir(root, 0o755))
	refused("data root "+root+" held data and is empty now", "is its disk mounted?")

	// Not even for a folder that is new to the app.
	more := *s
	more.Spec.Mounts = []ring.Mount{{Kind: ring.MountData, Source: "shop/new", Target: "/new"}}
	a.Want = &more
	refused("data root "+root+" held data and is empty now", "mkdir -p "+root+"/shop/new")
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, entries)

	a.Want = s
	require.NoError(t, os.MkdirAll(filepath.Join(root, "shop/data"), 0o755))
	_, err = f.Do(t.Context(), a)
	require.NoError(t, err, "a person made an empty one")
}

// A path of the host is made by the engine on its first use, as Compose has it,
// and never again: a disk that is not mounted looks like a path that was never there.
func TestAPathOfTheHostIsMadeOnceOnly(t *testing.T) {
	dir := t.TempDir()
	music := filepath.Join(dir, "music")
	f := newFake(Options{Host: "edge-1", DataRoot: filepath.Join(dir, "data")})
	id := f.AddImage(enginetest.Image{Name: "app:1"})
	s := &ring.Service{Name: "play", Kind: ring.Worker, Version: "1:aa", Pin: ring.Pin{Image: id}, Image: ring.Image{Known: true}, Spec: ring.Spec{
		Image: "app:1", NoNetwork: true, Mounts: []ring.Mount{{Kind: ring.MountBind, Source: music, Target: "/music", Create: true}},
	}}
	a := ring.Action{Kind: ring.DoCreate, App: "shop", Service: "play", Slot: 1, Version: s.Version, Of: &ring.App{Name: "shop", Path: "shop"}, Want: s}
	done, err := f.Do(t.Context(), a)
	require.NoError(t, err, "the first time")
	require.Len(t, done.Kept, 1)
	require.Equal(t, "path "+music, done.Kept[0].Name)
	a.Kept = []string{done.Kept[0].Name}
	f.TakeAway(done.Instance)

	_, err = f.Do(t.Context(), a)
	var e *ring.EngineError
	require.ErrorAs(t, err, &e)
	require.NotNil(t, e.Refusal, "%v", err)
	require.Equal(t, "folder "+music+" was there and is gone", e.Refusal.Says)
	require.Contains(t, e.Refusal.Hint, "is its disk mounted?")

	f.inside = true // in a container of its own the host's paths are not to be seen
	_, err = f.Do(t.Context(), a)
	require.NoError(t, err)
}

// What the host lacks is no fault of a version: its refusal is not for ever, and
// the same step goes through once it is back.
func TestAPathOrVolumeThatTheHostLacksIsRefusedUntilItIsThere(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	f := newFake(Options{Host: "edge-1", DataRoot: t.TempDir()})
	id := f.AddImage(enginetest.Image{Name: "app:1"})
	s := &ring.Service{Name: "play", Kind: ring.Worker, Version: "1:aa", Pin: ring.Pin{Image: id}, Image: ring.Image{Known: true}, Spec: ring.Spec{
		Image: "app:1", NoNetwork: true, Mounts: []ring.Mount{
			{Kind: ring.MountBind, Source: disk, Target: "/music"}, {Kind: ring.MountVolume, Source: "lib", Target: "/lib"},
		},
	}}
	app := &ring.App{Name: "shop", Path: "shop", Volumes: []ring.Volume{{Key: "lib", External: "library"}}}
	a := ring.Action{Kind: ring.DoCreate, App: "shop", Service: "play", Slot: 1, Version: s.Version, Of: app, Want: s}
	refused := func(says, hint string) {
		t.Helper()
		_, err := f.Do(t.Context(), a)
		var e *ring.EngineError
		require.ErrorAs(t, err, &e)
		require.NotNil(t, e.Refusal, "%v", err)
		require.False(t, e.Permanent)
		require.Contains(t, e.Refusal.Says, says)
		require.Contains(t, e.Refusal.Hint, hint)
	}
	refused("volume library is external and not on this host", "docker volume create library")
	_, err := f.Client().VolumeCreate(t.Context(), volume.CreateOptions{Name: "library"})
	require.NoError(t, err)
	refused("path "+disk+" of the host is not there", "is its disk mounted?")
	require.NoError(t, os.Mkdir(disk, 0o755))
	_, err = f.Do(t.Context(), a)
	require.NoError(t, err)
}
