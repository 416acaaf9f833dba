package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// Whoever polls the version is no load on the engine: a daemon without one answers as well.
func TestTheVersionAsksNoEngine(t *testing.T) {
	d := &Daemon{} // an engine that is asked would be a nil one
	v, err := d.version(t.Context())
	require.NoError(t, err)
	require.Equal(t, ring.Release, v.Gitring)
	require.Empty(t, v.Engine)
	d.engineIs.Store(&runtime.EngineVersion{Version: "28.5.2", API: "1.51"})
	v, err = d.version(t.Context())
	require.NoError(t, err)
	require.Equal(t, "docker 28.5.2", v.Engine)
	require.Equal(t, "1.51", v.EngineAPI)
}
