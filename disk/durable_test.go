package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFileIsReplacedWholeWithItsMode(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	for _, body := range []string{"first", "second, which is longer", ""} {
		for _, mode := range []os.FileMode{0o600, 0o644} {
			require.NoError(t, WriteWhole(file, "tmp-", []byte(body), mode))
			is, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, body, string(is))
			st, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, mode, st.Mode())
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside it")
}

func TestAReaderOfAFileThatIsReplacedSeesOneOrTheOther(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, WriteWhole(file, "tmp-", []byte("old"), 0o600))
	open, err := os.Open(file)
	require.NoError(t, err)
	defer open.Close() //nolint:errcheck // opened to read only
	require.NoError(t, WriteWhole(file, "tmp-", []byte("new and longer"), 0o600))
	b := make([]byte, 100)
	n, err := open.Read(b)
	require.NoError(t, err)
	require.Equal(t, "old", string(b[:n]), "it is another file, not the same one written over")
}

func TestAFileThatCannotBeReplacedStaysAndNothingIsLeftBeside(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	require.NoError(t, os.MkdirAll(filepath.Join(taken, "in"), 0o700))
	require.Error(t, WriteWhole(taken, "tmp-", []byte("x"), 0o600), "a folder is no file to replace")
	require.DirExists(t, filepath.Join(taken, "in"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.ErrorIs(t, WriteWhole(filepath.Join(dir, "none", "f"), "tmp-", nil, 0o600), os.ErrNotExist)
	require.ErrorIs(t, Sync(filepath.Join(dir, "none")), os.ErrNotExist)
}
