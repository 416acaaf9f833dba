package gitsync

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// V54: whoever can write the trust files decides what runs, so nothing starts
// with files that others can write.
func TestV54TrustFilesThatOthersCanWriteAreRefused(t *testing.T) {
	file := func(t *testing.T) string {
		f := filepath.Join(t.TempDir(), "allowed_signers")
		require.NoError(t, os.WriteFile(f, nil, 0o644))
		return f
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string) string // the path to name
		want []string
	}{
		{"world-writable", func(t *testing.T, path string) string {
			require.NoError(t, os.Chmod(path, 0o646))
			return path
		}, []string{"can be written by others (mode 0646)", "chmod go-w"}},
		{"group-writable", func(t *testing.T, path string) string {
			require.NoError(t, os.Chmod(path, 0o664))
			return path
		}, []string{"can be written by others", "chmod go-w"}},
		{"a symlink", func(t *testing.T, path string) string {
			link := path + ".link"
			require.NoError(t, os.Symlink(path, link))
			return link
		}, []string{"is a symlink"}},
		{"a symlinked folder", func(t *testing.T, path string) string {
			link := filepath.Join(t.TempDir(), "link")
			require.NoError(t, os.Symlink(filepath.Dir(path), link))
			return filepath.Join(link, "allowed_signers")
		}, []string{"is a symlink; name the path without it"}},
		{"a writable folder", func(t *testing.T, path string) string {
			require.NoError(t, os.Chmod(filepath.Dir(path), 0o777))
			return path
		}, []string{"can be written by others (mode 0777)", "chmod go-w"}},
		{"a folder", func(t *testing.T, path string) string { return filepath.Dir(path) }, []string{"not a regular file"}},
		{"a pipe", func(t *testing.T, path string) string {
			require.NoError(t, syscall.Mkfifo(path+".pipe", 0o600))
			return path + ".pipe"
		}, []string{"not a regular file"}},
		{"not there", func(t *testing.T, path string) string { return path + ".gone" }, []string{"cannot read", "no such file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.make(t, file(t))
			_, err := LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: path}, "prod", "main")
			require.Error(t, err)
			for _, w := range append(c.want, "source prod", path) {
				require.ErrorContains(t, err, w)
			}
		})
	}
	t.Run("a good file", func(t *testing.T) {
		_, err := LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: file(t)}, "prod", "main")
		require.NoError(t, err)
	})
	t.Run("a check in a clone does not ask", func(t *testing.T) {
		path := file(t)
		require.NoError(t, os.Chmod(path, 0o666))
		link := path + ".link"
		require.NoError(t, os.Symlink(path, link))
		_, err := LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: link, AnyOwner: true}, "prod", "main")
		require.NoError(t, err)
	})
	t.Run("owned by a stranger", func(t *testing.T) {
		path := file(t)
		if os.Geteuid() != 0 {
			_, err := readTrustFile(path, os.Geteuid()+1, false)
			require.ErrorContains(t, err, "belongs to user")
			return
		}
		require.NoError(t, os.Chown(path, 4711, -1))
		_, err := readTrustFile(path, 0, false)
		require.ErrorContains(t, err, path+" belongs to user 4711")
		require.ErrorContains(t, err, "chown root")
		_, err = readTrustFile(path, 4711, false)
		require.NoError(t, err)
		require.NoError(t, os.Chown(filepath.Dir(path), 4712, -1))
		_, err = readTrustFile(path, 4711, false)
		require.ErrorContains(t, err, filepath.Dir(path)+" belongs to user 4712")
	})
}

func TestAConfigurationThatCannotHoldIsRefused(t *testing.T) {
	for want, cfg := range map[string]TrustConfig{
		"mode is not set":                   {},
		`mode "Strict" is unknown`:          {Mode: "Strict"},
		"introduction \"main\" is not":      {Mode: Strict, Introduction: "main"},
		"min_commit \"0123456\" is not":     {Mode: Strict, MinCommit: "0123456"},
		"introduction \"0123456789ABCDEF01": {Mode: Disabled, Introduction: "0123456789ABCDEF0123456789ABCDEF01234567"},
		"expiry_grace -1ns is negative":     {Mode: Strict, ExpiryGrace: -1},
		"max_range -1 is negative":          {Mode: Strict, MaxRange: -1},
	} {
		trust, err := LoadTrust(cfg, "prod", "main")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "cannot use trust of source prod: ")
		require.Nil(t, trust)
	}
}

func TestTrustSaysWhatItRestsOn(t *testing.T) {
	load := func(cfg TrustConfig) *Trust {
		trust, err := LoadTrust(cfg, "prod", "main")
		require.NoError(t, err)
		return trust
	}
	require.Empty(t, load(TrustConfig{Mode: Strict}).Warning())
	require.Contains(t, load(TrustConfig{Mode: Disabled}).Warning(), "unsigned commits run")
	require.Equal(t, "first use", load(TrustConfig{Mode: Strict}).First())
	require.Equal(t, "introduction", load(TrustConfig{Mode: Strict, Introduction: ring.SHA(strings.Repeat("a", 40))}).First())
}

func TestOneBadLineMakesTheWholeFileBad(t *testing.T) {
	y := newYard(t)
	y.allow("alice", "")
	y.signers = append(y.signers, "bob@example.org not-a-key")
	file := filepath.Join(t.TempDir(), "allowed_signers")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(y.signers, "\n")), 0o600))
	_, err := LoadTrust(TrustConfig{Mode: Strict, AllowedSigners: file}, "prod", "main")
	require.ErrorContains(t, err, file+":2: ")
}
