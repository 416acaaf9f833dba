package runtime

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/runtime/enginetest"
)

func TestMountedNamesWhatContainersOfAnotherHostNameMount(t *testing.T) {
	r, _, _ := timed(t, 1)
	hash := strings.Repeat("ab", 32)
	enginetest.ServeContent(t, r.Rig, hash, 2)
	r.Docker.opts.Host = "renamed"
	got, err := r.Mounted(t.Context())
	require.NoError(t, err)
	require.True(t, got[hash])
}

func TestMountedFailsWhole(t *testing.T) {
	broken := errors.New("the engine stumbled")
	for _, op := range []string{"ContainerList", "ContainerInspect"} {
		r, f, _ := timed(t, 1) // which mounts nothing, so it is asked for
		enginetest.ServeContent(t, r.Rig, strings.Repeat("ab", 32), 2)
		f.Fail(failing(op, broken))
		got, err := r.Mounted(t.Context())
		require.ErrorIs(t, err, broken)
		require.Nil(t, got)
	}
}
