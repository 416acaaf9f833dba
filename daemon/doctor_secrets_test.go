package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/config"
)

func TestTheSwapThatASecretCouldGoToIsFound(t *testing.T) {
	const head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	for list, want := range map[string]bool{
		head:                            false,
		head + "/dev/zram0 partition 1": false,
		head + "/dev/sda2  partition 1048572 0 -2\n":                      true,
		head + "/dev/zram0 partition 1 0 5\n/swap\\040file file 1 0 -2\n": true,
		"": false,
	} {
		require.Equal(t, want, swapsToDisk(list), list)
	}
	const root, run = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n", "26 22 0:23 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,size=1k,mode=755,inode64\n"
	for _, tt := range []struct {
		list string
		want bool
	}{
		{root, false},
		{root + run, false},
		{root + run + "90 26 0:50 / /run/gitring rw - tmpfs tmpfs rw,noswap,inode64\n", true},
		{"90 26 0:50 / /run/gitring rw - tmpfs tmpfs rw,noswap\n" + run + root, true},
		{root + run + "90 26 0:50 / /run/git rw - tmpfs tmpfs rw,noswap\n", false},
		{root + run + "90 26 0:50 / /run/gitring/secrets rw - ramfs none rw\n", true},
		{root + "90 26 0:50 / /run rw - tmpfs tmpfs rw,noswap\n" + run, false}, // hidden by a later one
		{root + "90 26 0:50 / /run rw,noswap - tmpfs tmpfs rw\n", false},       // no option of the file system
	} {
		require.Equal(t, tt.want, keepsOffSwap(tt.list, "/run/gitring/secrets"), tt.list)
	}
}

func TestTheDoctorLooksAtKeyFiles(t *testing.T) {
	dir := t.TempDir()
	well, open, credential := filepath.Join(dir, "well"), filepath.Join(dir, "open"), filepath.Join(dir, "credentials", "ssh")
	require.NoError(t, os.Mkdir(filepath.Dir(credential), 0o700))
	t.Setenv("CREDENTIALS_DIRECTORY", filepath.Dir(credential))
	for path, mode := range map[string]os.FileMode{well: 0o600, open: 0o640, credential: 0o440} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chmod(path, mode))
	}
	got := probeSecrets(&config.Config{Secrets: config.SecretsConfig{AtRest: config.AtRestMemory, Dir: "/run/gitring/secrets", Keys: []config.SecretKey{
		{AgeFile: well}, {OpenPGPFile: open}, {SSHFile: credential}, {AgeFile: filepath.Join(dir, "none")},
	}}})
	require.True(t, got.Memory)
	require.Len(t, got.Keys, 4)
	for i, path := range []string{well, open, credential, filepath.Join(dir, "none")} {
		require.Equal(t, path, got.Keys[i].Path)
		require.Empty(t, got.Keys[i].Err)
		require.Equal(t, path == open, got.Keys[i].Others, path)
		require.Equal(t, i == 3, got.Keys[i].Missing, path)
	}
	require.True(t, got.Swap.Asked.Asked)
	require.False(t, probeSecrets(&config.Config{Secrets: config.SecretsConfig{AtRest: config.AtRestMemory}}).Swap.Asked.Asked, "nothing lies there")
}
