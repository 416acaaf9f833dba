package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/store"
)

func TestARestoreIsRefusedWhileADaemonRuns(t *testing.T) {
	dir := t.TempDir()
	config, state, file := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "state"), filepath.Join(dir, "backup")
	require.NoError(t, os.WriteFile(config, []byte("host: edge-1\nstate: "+state+"\nengine: {url: \"unix://"+dir+"/none\"}\nsources:\n  - {name: prod, url: file:///srv/infra.git, trust: {mode: disabled}}\n"), 0o600))
	s, err := store.Open(t.Context(), state)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	made := call("backup", file, "--config", config)
	require.Zero(t, made.code, made.said)

	release, err := store.Lock(state, "unix://"+dir+"/none", "edge-1") // as serve does
	require.NoError(t, err)
	before, err := os.ReadDir(state)
	require.NoError(t, err)
	refused := call("restore", file, "--config", config)
	require.Equal(t, exit.Conflict, refused.code, refused.said)
	require.Contains(t, refused.said, "hint: systemctl stop gitring")
	after, err := os.ReadDir(state)
	require.NoError(t, err)
	require.Len(t, after, len(before), "nothing was put beside what is there")
	release()
	done := call("restore", file, "--config", config)
	require.Zero(t, done.code, done.said)
}
