package main

import (
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"
)

// The how-to gives the file of keys to the daemon's user, and has root ask for its recipients.
func TestRootReadsTheKeysOfTheDaemonsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "age.key")
	require.NoError(t, os.WriteFile(file, []byte(id.String()+"\n"), 0o600))
	require.NoError(t, os.Chown(file, 4711, 4711))
	from := keyFlags{age: []string{file}}
	keys, err := from.read()
	require.NoError(t, err)
	require.Equal(t, []string{id.Recipient().String()}, keys.Recipients())

	require.NoError(t, os.Chmod(file, 0o644))
	_, err = from.read()
	require.ErrorContains(t, err, "can be read by others")
}
