package upgrade

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/exit"
)

// signed writes a file with the signature that ssh-keygen makes of it, which is how make dist
// signs.
func signed(t *testing.T, key, namespace, name string, body []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, body, 0o644))
	out, err := exec.Command("ssh-keygen", "-Y", "sign", "-f", key, "-n", namespace, file).CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

func newKey(t *testing.T, args ...string) (file, public string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key")
	out, err := exec.Command("ssh-keygen", append([]string{"-q", "-N", "", "-C", "", "-f", file}, args...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	body, err := os.ReadFile(file + ".pub")
	require.NoError(t, err)
	return file, strings.TrimSpace(string(body))
}

func archiveOf(t *testing.T, entries map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range []string{"gitring_0.2.0_linux_amd64/LICENSE", "gitring_0.2.0_linux_amd64/man/gitring", "gitring_0.2.0_linux_amd64/gitring"} {
		body, there := entries[name]
		if !there {
			continue
		}
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(body))}))
		_, err := w.Write([]byte(body))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, z.Close())
	return b.Bytes()
}

func TestOnlyASignedReleaseIsRead(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("there is no ssh-keygen")
	}
	key, public := newKey(t, "-t", "ed25519")
	second, secondPublic := newKey(t, "-t", "ecdsa")
	weak, weakPublic := newKey(t, "-t", "rsa", "-b", "1024")
	keys := public + ";" + secondPublic

	r, err := Open(signed(t, key, namespace, "gitring", []byte("program")), keys)
	require.NoError(t, err)
	require.Equal(t, "program", string(r.Program))
	require.Contains(t, r.SignedBy, "SHA256:")
	r, err = Open(signed(t, second, namespace, "gitring.tar.gz", archiveOf(t, map[string]string{
		"gitring_0.2.0_linux_amd64/LICENSE": "free", "gitring_0.2.0_linux_amd64/man/gitring": "a page", "gitring_0.2.0_linux_amd64/gitring": "the program",
	})), keys)
	require.NoError(t, err)
	require.Equal(t, "the program", string(r.Program))

	refused := func(file, keys, says string) {
		t.Helper()
		_, err := Open(file, keys)
		require.ErrorContains(t, err, says)
	}
	good := signed(t, key, namespace, "gitring", []byte("program"))
	refused(good, "", "no key of a release is built into this program")
	refused(good, " ; ", "no key of a release is built into this program")
	refused(good, secondPublic, "none of those that may")
	refused(good, "ssh-ed25519 nonsense", "keys that may sign it cannot be read")
	refused(signed(t, key, "git", "gitring", []byte("program")), keys, `in namespace "git", not "gitring-release"`)
	refused(signed(t, weak, namespace, "gitring", []byte("program")), keys+";"+weakPublic, "fewer than 2048")
	refused(signed(t, key, namespace, "gitring.tar.gz", archiveOf(t, map[string]string{"gitring_0.2.0_linux_amd64/man/gitring": "a page"})), keys, "no program in it")
	refused(signed(t, key, namespace, "gitring", nil), keys, "it is empty")

	change := func(file string, to func([]byte) []byte) string {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, to(body), 0o644))
		return strings.TrimSuffix(file, ".sig")
	}
	for name, broken := range map[string]string{
		"another byte":          change(signed(t, key, namespace, "gitring", []byte("program")), func(b []byte) []byte { b[0]++; return b }),
		"truncated":             change(signed(t, key, namespace, "gitring", []byte("program")), func(b []byte) []byte { return b[:3] }),
		"a byte more":           change(signed(t, key, namespace, "gitring", []byte("program")), func(b []byte) []byte { return append(b, 0) }),
		"a truncated signature": change(signed(t, key, namespace, "gitring", []byte("program"))+".sig", func(b []byte) []byte { return b[:len(b)/2] }),
		"an empty signature":    change(signed(t, key, namespace, "gitring", []byte("program"))+".sig", func([]byte) []byte { return nil }),
	} {
		_, err := Open(broken, keys)
		var f *exit.Failure
		require.ErrorAs(t, err, &f, name)
		require.Equal(t, exit.Error, f.Code, name)
		require.Contains(t, f.Says, "cannot trust", name)
	}
	require.NoError(t, os.Remove(good+".sig"))
	refused(good, keys, "cannot verify")
}
