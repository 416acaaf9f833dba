package enginetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func externalVolume(t *testing.T, r *Rig) {
	name := r.App + "-theirs"
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{
			{Kind: ring.MountVolume, Source: "theirs", Target: "/t"},
			{Kind: ring.MountVolume, Source: "named", Target: "/n"},
		}
	})
	a.Of.Volumes = []ring.Volume{{Key: "theirs", External: name}, {Key: "named", Name: r.App + "-called-so", Driver: "local", DriverOpts: map[string]string{"type": "tmpfs", "device": "tmpfs"}}}
	e := r.MustFail(t, a)
	require.Equal(t, ring.BadValue, refusalOf(t, e).Code)
	require.Contains(t, refusalOf(t, e).Hint, "docker volume create "+name)
	require.Empty(t, r.Seen(t).Instances)

	r.AddVolume(t, name)
	done := r.Must(t, a)
	require.Empty(t, r.VolumeLabels(t, name), "and not labelled")
	require.Equal(t, "named", r.VolumeLabels(t, r.App+"-called-so")["com.docker.compose.volume"])
	var kept []string
	for _, k := range done.Kept {
		require.False(t, k.At.IsZero())
		kept = append(kept, k.Name)
	}
	require.Equal(t, []string{"volume " + r.App + "-called-so", "volume " + name}, kept)
}

func besideStranger(t *testing.T, r *Rig) {
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "db", Target: "/db"}}
	})
	r.Must(t, a) // so that the volume is labelled
	r.Must(t, ActionOn(ring.DoRemove, r.OnlyInstance(t)))
	id := r.AddForeign(t, r.App+"-db-1", r.App+"_db:/data")
	e := r.MustFail(t, a)
	require.Equal(t, ring.ForeignProject, refusalOf(t, e).Code)
	require.Contains(t, refusalOf(t, e).Says, r.App+"-db-1")
	require.Contains(t, refusalOf(t, e).Hint, "docker compose down in /home/me/"+r.App)
	require.False(t, e.Permanent)
	require.Empty(t, r.Seen(t).Instances)
	require.True(t, r.Inspect(t, id).State.Running)

	other := r.CreateAction(func(s *ring.Service) {
		s.Name, s.Spec.Mounts = "reader", []ring.Mount{{Kind: ring.MountVolume, Source: "db", Target: "/db", ReadOnly: true}}
	})
	r.Must(t, other)
}

func contentsMounted(t *testing.T, r *Rig) {
	one, two := strings.Repeat("7b", 32), strings.Repeat("9c", 32)
	a, b := ServeContent(t, r, one, 1), ServeContent(t, r, two, 2)
	r.Must(t, ring.Action{Kind: ring.DoStop, App: r.App, Service: "web", Instance: a.Instance})
	r.Must(t, ring.Action{Kind: ring.DoRemove, App: r.App, Service: "web", Instance: b.Instance})

	got, err := r.Engine.Mounted(t.Context())
	require.NoError(t, err)
	require.True(t, got[one], "it is stopped, and may start again")
	require.False(t, got[two])
}

func removeKeepsVolumes(t *testing.T, r *Rig) {
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{{Kind: ring.MountVolume, Source: "db", Target: "/db"}}
	})
	r.Must(t, a)
	r.Must(t, ActionOn(ring.DoRemove, r.OnlyInstance(t)))
	require.Empty(t, r.Seen(t).Instances)
	require.Equal(t, r.App, r.VolumeLabels(t, r.App+"_db")["gitring.app"])
}

func volumes(t *testing.T, r *Rig) {
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{
			{Kind: ring.MountVolume, Source: "db", Target: "/db"},
			{Kind: ring.MountVolume, Source: "web_{slot}_0a0a0a0a", Target: "/own", NoCopy: true},
		}
	})
	a.Of.Volumes = []ring.Volume{{Key: "db", Labels: map[string]string{"backup": "daily", "gitring.app": "other"}}}
	a.Slot = 2
	r.Must(t, a)
	require.Equal(t, map[string]string{
		"backup": "daily", "gitring.host": r.Host, "gitring.source": a.Of.Source, "gitring.app": r.App,
		"com.docker.compose.project": r.App, "com.docker.compose.volume": "db",
		"com.docker.compose.project.working_dir": a.Of.Path, "com.docker.compose.project.config_files": strings.Join(a.Of.Files, ","),
	}, r.VolumeLabels(t, r.App+"_db"))
	require.Equal(t, "web_2_0a0a0a0a", r.VolumeLabels(t, r.App+"_web_2_0a0a0a0a")["com.docker.compose.volume"])
}

func filesThere(t *testing.T, r *Rig) {
	hash := strings.Repeat("ab", 32)
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{
			{Kind: ring.MountContent, Source: hash, Target: "/conf"},
			{Kind: ring.MountContent, Source: hash, File: "app.conf", Target: "/etc/app.conf"},
			{Kind: ring.MountData, Source: r.App + "/data/deep", Target: "/data"},
		}
	})
	e := r.MustFail(t, a)
	require.Equal(t, ring.CauseFiles, e.Cause)
	require.Contains(t, e.Error(), "content "+hash+" is missing")
	require.Empty(t, r.Seen(t).Instances)

	require.NoError(t, os.MkdirAll(filepath.Join(r.Content, hash), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(r.Content, hash, "app.conf"), []byte("a=1"), 0o444))
	r.Must(t, a)
	c := r.Inspect(t, r.OnlyInstance(t).ID)
	for _, m := range c.Mounts {
		require.Equal(t, m.Destination == "/data", m.RW, m.Destination)
	}
	st, err := os.Stat(filepath.Join(r.Data, r.App, "data/deep"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), st.Mode().Perm())
	r.Must(t, ActionOn(ring.DoRemove, r.OnlyInstance(t)))
	require.DirExists(t, filepath.Join(r.Data, r.App, "data/deep"))

	require.NoError(t, os.Symlink("/etc", filepath.Join(r.Data, r.App, "link")))
	a.Want.Spec.Mounts = []ring.Mount{{Kind: ring.MountData, Source: r.App + "/link/x", Target: "/data"}}
	require.Contains(t, r.MustFail(t, a).Error(), "symlink")
	require.Empty(t, r.Seen(t).Instances)
}
