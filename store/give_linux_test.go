package store

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// nobody is the user that the daemon is in the test below.
const nobody = 65534

// The unit gives the daemon CAP_CHOWN and nothing else: whoever gave a file away may not
// change its mode any more.
func TestAFileIsGivenAwayWithTheOneCapabilityOfTheUnit(t *testing.T) {
	c := ring.Content{Hash: hashA, Files: []ring.ContentFile{file("key", "x")}}
	c.Files[0].As = &ring.FileOwner{UID: 70, GID: 71, Mode: 0o440}
	if dir := os.Getenv("GITRING_TEST_GIVE"); dir != "" {
		require.NoError(t, PlaceAt(dir).Write(t.Context(), c))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody with one capability")
	}
	open, err := os.MkdirTemp("", "gitring-give-") // the other user has to get there
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(open)) })
	require.NoError(t, os.Chmod(open, 0o755))
	program, place := filepath.Join(open, "test"), filepath.Join(open, "place")
	copyProgram(t, program)
	require.NoError(t, os.Mkdir(place, 0o700))
	require.NoError(t, os.Chown(place, nobody, nobody))
	const capChown = 0 // capabilities(7)
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$")
	cmd.Dir, cmd.Env = open, append(os.Environ(), "GITRING_TEST_GIVE="+place, "TMPDIR="+place)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: []uintptr{capChown}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	st, err := os.Stat(filepath.Join(place, hashA, "key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o440), st.Mode())
	require.Equal(t, uint32(70), st.Sys().(*syscall.Stat_t).Uid)
	require.Equal(t, uint32(71), st.Sys().(*syscall.Stat_t).Gid)
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	from, err := os.Open(self)
	require.NoError(t, err)
	defer from.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, from)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.NoError(t, os.Chmod(to, 0o755))
}
