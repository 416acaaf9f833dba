package frontprogram

import (
	"bytes"
	"debug/elf"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A build has the front or says that it has none; it never has a part of one.
func TestTheFrontIsWholeOrNotThere(t *testing.T) {
	program, err := Bytes()
	if err != nil {
		require.ErrorIs(t, err, errNone)
		require.Empty(t, Sum())
		return
	}
	require.Len(t, Sum(), 64)
	f, err := elf.NewFile(bytes.NewReader(program))
	require.NoError(t, err)
	require.Equal(t, map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH], f.Machine)
	libraries, err := f.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries, "static")
}
