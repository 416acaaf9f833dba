package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// What only processes can show: that what the payload says has its effect.
func TestEngineEffects(t *testing.T) {
	r := realRig(t)
	hash := strings.Repeat("ef", 32)
	require.NoError(t, os.MkdirAll(filepath.Join(r.Content, hash), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(r.Content, hash, "app.conf"), []byte("a=1"), 0o444))
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = []ring.Mount{
			{Kind: ring.MountContent, Source: hash, Target: "/conf"},
			{Kind: ring.MountData, Source: r.App + "/data", Target: "/data"},
			{Kind: ring.MountVolume, Source: "keep", Target: "/keep"},
			{Kind: ring.MountTmpfs, Target: "/scratch", Size: 1 << 20, Mode: 0o1777},
			{Kind: ring.MountTmpfs, Target: "/other", Options: "noexec", Size: 1 << 20},
		}
	})
	r.AddNetwork(t, &a, "default", "www")
	r.Must(t, a)
	in := r.OnlyInstance(t)
	app := func(argv ...string) (int, string) {
		exit, out, err := r.Exec(t.Context(), in.ID, append([]string{"/app"}, argv...))
		require.NoError(t, err)
		return exit, out
	}
	_, out := app("read", "/conf/app.conf")
	require.Equal(t, "a=1", out)
	exit, out := app("write", "/conf/app.conf", "b")
	require.Equal(t, 1, exit)
	require.Contains(t, out, "read-only file system")
	for _, path := range []string{"/data/x", "/keep/x", "/scratch/x", "/other/x"} {
		exit, out = app("write", path, "kept")
		require.Equal(t, 0, exit, out)
	}
	b, err := os.ReadFile(filepath.Join(r.Data, r.App, "data/x"))
	require.NoError(t, err)
	require.Equal(t, "kept", string(b))
	for _, name := range []string{"web", "www"} {
		exit, out = app("resolve", name)
		require.Equal(t, 0, exit, out)
		require.Equal(t, in.Addresses[ring.NetworkName(r.App, "default")], out)
	}
	r.Must(t, enginetest.ActionOn(ring.DoRemove, in))
	r.Must(t, a)
	in = r.OnlyInstance(t)
	_, out = app("read", "/keep/x")
	require.Equal(t, "kept", out, "a volume outlives its instance")
}

func TestEngineVersion(t *testing.T) {
	r := realRig(t)
	v, err := r.Version(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, v.Version)
	require.Regexp(t, `^1\.\d\d$`, v.API)
	require.Equal(t, "linux", v.OS)
}

// Answers of registries, as this engine hands them on.
func TestEngineRegistryAnswers(t *testing.T) {
	r := realRig(t)
	name, _ := startRegistry(t)
	host, _, _ := strings.Cut(name, "/")
	denied := r.MustFail(t, ring.Action{Kind: ring.DoResolve, Image: host + "/private/app:1"})
	require.Equal(t, ring.ImageNotFound, denied.Refusal.Code)
	require.Contains(t, denied.Refusal.Says, "denied")
	for _, image := range []string{host + "/broken/app:1", "127.0.0.1:1/app:1"} {
		e := r.MustFail(t, ring.Action{Kind: ring.DoResolve, Image: image})
		require.Nil(t, e.Refusal, "%v", e)
		require.Equal(t, ring.CauseImagePull, e.Cause)
		require.False(t, e.Permanent)
		e = r.MustFail(t, ring.Action{Kind: ring.DoPull, Image: image + "@sha256:" + strings.Repeat("a", 64)})
		require.Nil(t, e.Refusal, "%v", e)
		require.Equal(t, ring.CauseImagePull, e.Cause)
		require.False(t, e.Permanent)
	}
}
