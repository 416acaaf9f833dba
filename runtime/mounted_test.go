package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// serving makes an instance that mounts a content.
func serving(t *testing.T, r *kit, hash string, slot int) ring.Done {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(r.Content, hash), 0o755))
	a := r.CreateAction(func(s *ring.Service) {
		s.Spec.Mounts = append(s.Spec.Mounts, ring.Mount{Kind: ring.MountContent, Source: hash, Target: "/conf"})
	})
	a.Slot = slot
	return r.Must(t, a)
}

func contentsMounted(t *testing.T, r *kit) {
	one, two := strings.Repeat("7b", 32), strings.Repeat("9c", 32)
	a, b := serving(t, r, one, 1), serving(t, r, two, 2)
	r.Must(t, ring.Action{Kind: ring.DoStop, App: r.App, Service: "web", Instance: a.Instance})
	r.Must(t, ring.Action{Kind: ring.DoRemove, App: r.App, Service: "web", Instance: b.Instance})

	got, err := r.Engine.Mounted(t.Context())
	require.NoError(t, err)
	require.True(t, got[one], "it is stopped, and may start again")
	require.False(t, got[two])
}

func TestMountedNamesWhatContainersOfAnotherHostNameMount(t *testing.T) {
	r, _, _ := timed(t, 1)
	hash := strings.Repeat("ab", 32)
	serving(t, r.kit, hash, 2)
	r.Docker.opts.Host = "renamed"
	got, err := r.Mounted(t.Context())
	require.NoError(t, err)
	require.True(t, got[hash])
}

func TestMountedFailsWhole(t *testing.T) {
	broken := errors.New("the engine stumbled")
	for _, op := range []string{"ContainerList", "ContainerInspect"} {
		r, f, _ := timed(t, 1) // which mounts nothing, so it is asked for
		serving(t, r.kit, strings.Repeat("ab", 32), 2)
		f.Fail(failing(op, broken))
		got, err := r.Mounted(t.Context())
		require.ErrorIs(t, err, broken)
		require.Nil(t, got)
	}
}
