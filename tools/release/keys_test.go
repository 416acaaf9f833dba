package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A program takes the next release by the key that signed its own, and one that nobody signed
// takes none.
func TestASignedReleaseKnowsItsKey(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", key).CombinedOutput()
	require.NoError(t, err, string(out))
	body, err := os.ReadFile(key + ".pub")
	require.NoError(t, err)
	want := strings.TrimSuffix(strings.TrimSpace(string(body)), " me")
	for _, name := range []string{key, key + ".pub"} {
		public, err := publicKey(name)
		require.NoError(t, err)
		require.Equal(t, want, public)
	}
	f := facts{version: "1.2.3", commit: "abc", date: time.Unix(0, 0).UTC()}
	require.NotContains(t, linkFlags(f), "Keys")
	f.signedBy = want
	require.Contains(t, linkFlags(f), " -X 'github.com/gitring/gitring/upgrade.Keys="+want+"'")
	_, err = publicKey(filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
}
