package daemon

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/ring"
)

// clusterConfig is one whose key file holds these bytes.
func clusterConfig(t *testing.T, key []byte, mode os.FileMode) *config.Config {
	c := &config.Config{State: t.TempDir(), Engine: config.EngineConfig{Kind: config.KindSwarm, Cluster: "prod", KeyFile: filepath.Join(t.TempDir(), "cluster-key")}}
	if key != nil {
		require.NoError(t, os.WriteFile(c.Engine.KeyFile, key, 0o600))
		require.NoError(t, os.Chmod(c.Engine.KeyFile, mode))
	}
	return c
}

func TestTheKeyOfAClusterIsReadAndNeverMade(t *testing.T) {
	key := bytes.Repeat([]byte{0xa5, 0x5a}, EnvKeySize/2)
	c := clusterConfig(t, key, 0o600)
	e, err := newEnvFolder(c)
	require.NoError(t, err)
	require.Equal(t, key, e.key, "also without env.dir: every hash of a value is made with it")
	require.NoFileExists(t, filepath.Join(c.State, "env.key"))

	var host *ring.HostError
	for _, tt := range []struct {
		key  []byte
		mode os.FileMode
		says string
	}{
		{nil, 0, "cannot read"},
		{key[:31], 0o600, "it has 31 bytes and not 32"},
		{append(key[:32:32], '\n'), 0o600, "larger than 32 bytes"},
		{key, 0o640, "mode 0640"},
		{key, 0o604, "mode 0604"},
	} {
		_, err := newEnvFolder(clusterConfig(t, tt.key, tt.mode))
		require.ErrorAs(t, err, &host)
		require.ErrorContains(t, err, "engine.key_file")
		require.ErrorContains(t, err, tt.says)
		require.NotEmpty(t, host.Hint)
		require.NotContains(t, err.Error(), string(key[:8]))
	}
}

// Managers compare this, and it is a label that every manager can read.
func TestTheCheckOfAKeyTellsNothingOfIt(t *testing.T) {
	key := bytes.Repeat([]byte{7}, EnvKeySize)
	check := keyCheck(key, "prod")
	require.Equal(t, check, keyCheck(key, "prod"))
	require.NotEqual(t, check, keyCheck(key, "lab"))
	require.NotEqual(t, check, keyCheck(bytes.Repeat([]byte{8}, EnvKeySize), "prod"))
	require.NotContains(t, check, hex.EncodeToString(key[:4]))
	require.Len(t, check, 32)
}

func TestAManagerIsTheSameAfterARestartAndNoOther(t *testing.T) {
	key := bytes.Repeat([]byte{7}, EnvKeySize)
	c, other := clusterConfig(t, key, 0o600), clusterConfig(t, key, 0o600)
	c.Host = "edge-1"
	first, err := leaseOf(c, key)
	require.NoError(t, err)
	require.Equal(t, "edge-1", first.Manager)
	again, err := leaseOf(c, key)
	require.NoError(t, err)
	require.Equal(t, first, again)
	beside, err := leaseOf(other, key)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, beside.ID)
	require.Equal(t, first.Key, beside.Key)
	require.NoError(t, os.WriteFile(filepath.Join(c.State, "lease.id"), []byte("x"), 0o600))
	anew, err := leaseOf(c, key)
	require.NoError(t, err)
	require.NotEqual(t, first.ID, anew.ID, "what is no ID is none")
}
