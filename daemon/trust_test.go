package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/api"
)

// V54 at the daemon: nobody can ask one that trusts what others may write.
func TestV54TrustFilesThatOthersMayWriteEndServeBeforeTheSocketAppears(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, file string) (named string)
		says  string
	}{
		"world-writable": {func(t *testing.T, file string) string {
			require.NoError(t, os.Chmod(file, 0o646))
			return file
		}, "can be written by others (mode 0646)"},
		"in a folder that is": {func(t *testing.T, file string) string {
			require.NoError(t, os.Chmod(filepath.Dir(file), 0o777))
			return file
		}, "can be written by others (mode 0777)"},
		"a symlink": {func(t *testing.T, file string) string {
			require.NoError(t, os.Symlink(file, file+".link"))
			return file + ".link"
		}, "it is a symlink"},
		"behind a symlinked folder": {func(t *testing.T, file string) string {
			link := filepath.Dir(file) + ".link"
			require.NoError(t, os.Symlink(filepath.Dir(file), link))
			return filepath.Join(link, filepath.Base(file))
		}, "is a symlink; name the path without it"},
		"broken": {func(t *testing.T, file string) string {
			require.NoError(t, os.WriteFile(file, []byte("alice@example.org\n"), 0o600))
			return file
		}, ":1: no key after the principals"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := lonely(t, "")
			file := filepath.Join(filepath.Dir(cfg.File), "etc", "signers")
			require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, nil, 0o600))
			trust := cfg.Sources[0].Trust
			trust.Mode, trust.AllowedSigners = "strict", c.spoil(t, file)
			_, err := New(t.Context(), cfg, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "source prod")
			require.NoFileExists(t, cfg.Listen.Socket)
		})
	}
}

func TestTheAuditNamesThePersonByNumberToo(t *testing.T) {
	require.Equal(t, "root (uid 0)", answerable(api.Peer{Name: "root"}))
	require.Equal(t, "uid 1001", answerable(api.Peer{UID: 1001}))
	require.Equal(t, "bob (uid 7)", answerable(api.Peer{UID: 7, Name: "bob"}))
}
