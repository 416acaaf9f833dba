package scripts_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// aRelease is a folder with one archive, checksums and a signature over them.
type aRelease struct {
	t             *testing.T
	dir, archive  string
	key, otherKey string // private keys of SSH
}

func newRelease(t *testing.T) *aRelease {
	t.Helper()
	keys := t.TempDir()
	r := &aRelease{t: t, dir: t.TempDir(), key: filepath.Join(keys, "release"), otherKey: filepath.Join(keys, "other")}
	for _, key := range []string{r.key, r.otherKey} {
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput()
		require.NoError(t, err, string(out))
		public, err := os.ReadFile(key + ".pub")
		require.NoError(t, err)
		r.write(key+".allowed", "release@gitring namespaces=\"gitring-release\" "+string(public))
	}
	name := "gitring_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH
	r.archive = filepath.Join(r.dir, name+".tar.gz")
	r.pack(name, "echo gitring 1.2.3")
	r.sum()
	r.sign(r.key, "gitring-release")
	return r
}

func (r *aRelease) write(path, text string) {
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o644))
}

// pack writes the archive with a shell script as the program.
func (r *aRelease) pack(folder, body string) {
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	text := "#!/bin/sh\n" + body + "\n"
	require.NoError(r.t, w.WriteHeader(&tar.Header{Name: folder + "/gitring", Mode: 0o755, Size: int64(len(text))}))
	_, err := w.Write([]byte(text))
	require.NoError(r.t, err)
	require.NoError(r.t, w.Close())
	require.NoError(r.t, g.Close())
	require.NoError(r.t, os.WriteFile(r.archive, b.Bytes(), 0o644))
}

func (r *aRelease) sum() {
	data, err := os.ReadFile(r.archive)
	require.NoError(r.t, err)
	r.write(filepath.Join(r.dir, "SHA256SUMS"), fmt.Sprintf("%x  %s\n", sha256.Sum256(data), filepath.Base(r.archive)))
}

func (r *aRelease) sign(key, namespace string) {
	sums := filepath.Join(r.dir, "SHA256SUMS")
	_ = os.Remove(sums + ".sig") // ssh-keygen would ask
	out, err := exec.Command("ssh-keygen", "-Y", "sign", "-f", key, "-n", namespace, sums).CombinedOutput()
	require.NoError(r.t, err, string(out))
}

// install runs the script; what it says on stderr is the third result.
func (r *aRelease) install(to, from string, more ...string) (int, string, string) {
	cmd := exec.Command("sh", append([]string{"install.sh", "--from", from, "--to", to}, more...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestInstallerPutsAVerifiedProgramInPlace(t *testing.T) {
	r := newRelease(t)
	server := httptest.NewServer(http.FileServer(http.Dir(r.dir))) // on loopback
	defer server.Close()
	for name, from := range map[string]string{"folder": r.dir, "file address": "file://" + r.dir, "http": server.URL} {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "new/bin")
			code, out, errs := r.install(to, from, "--version", "v1.2.3", "--key", r.key+".allowed")
			require.Zero(t, code, errs)
			require.Equal(t, "installed "+to+"/gitring: gitring 1.2.3\n", out)
			entries, err := os.ReadDir(to)
			require.NoError(t, err)
			require.Len(t, entries, 1, "nothing else is left there")
		})
	}
}

// Each case says in one sentence why, runs nothing of the release and leaves the old program.
func TestInstallerRefusesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*aRelease)
		key  func(*aRelease) []string
		want string
	}{
		{
			"a changed program", func(r *aRelease) { r.pack(strings.TrimSuffix(filepath.Base(r.archive), ".tar.gz"), "touch \"$RAN\"") },
			nil, "is not what the signed checksums say: nothing was installed",
		},
		{"a changed program with its own checksums", func(r *aRelease) {
			r.pack(strings.TrimSuffix(filepath.Base(r.archive), ".tar.gz"), "touch \"$RAN\"")
			r.sum()
		}, nil, "the signature of FROM/SHA256SUMS is not the release key's: nothing was installed"},
		{
			"checksums signed by another key", func(r *aRelease) { r.sign(r.otherKey, "gitring-release") },
			nil, "the signature of FROM/SHA256SUMS is not the release key's: nothing was installed",
		},
		{
			"a signature for another purpose, such as a commit's", func(r *aRelease) { r.sign(r.key, "git") },
			nil, "the signature of FROM/SHA256SUMS is not the release key's: nothing was installed",
		},
		{
			"a key that is not the release's", func(*aRelease) {}, func(r *aRelease) []string { return []string{"--key", r.otherKey + ".allowed"} },
			"the signature of FROM/SHA256SUMS is not the release key's: nothing was installed",
		},
		{
			"no signature", func(r *aRelease) { _ = os.Remove(filepath.Join(r.dir, "SHA256SUMS.sig")) },
			nil, "cannot read FROM/SHA256SUMS.sig",
		},
		{
			"no key at all", func(*aRelease) {}, func(*aRelease) []string { return nil },
			"no release key: this script has none, and --key names none",
		},
		{"a download that was cut off", func(r *aRelease) {
			data, err := os.ReadFile(r.archive)
			require.NoError(r.t, err)
			r.write(r.archive, string(data[:len(data)/2]))
		}, nil, "is not what the signed checksums say: nothing was installed"},
		{
			"an empty download", func(r *aRelease) { r.write(r.archive, "") },
			nil, "is not what the signed checksums say: nothing was installed",
		},
		{"checksums that were cut off", func(r *aRelease) {
			sums := filepath.Join(r.dir, "SHA256SUMS")
			data, err := os.ReadFile(sums)
			require.NoError(r.t, err)
			r.write(sums, string(data[:len(data)-3]))
		}, nil, "the signature of FROM/SHA256SUMS is not the release key's: nothing was installed"},
		{"a signature that was cut off", func(r *aRelease) {
			sig := filepath.Join(r.dir, "SHA256SUMS.sig")
			data, err := os.ReadFile(sig)
			require.NoError(r.t, err)
			r.write(sig, string(data[:len(data)/2]))
		}, nil, "the signature of FROM/SHA256SUMS is not the release key's: nothing was installed"},
		{
			"a version that the release has not", func(*aRelease) {},
			func(r *aRelease) []string { return []string{"--key", r.key + ".allowed", "--version", "9.9.9"} }, "the release at FROM has no gitring_9.9.9_",
		},
		{
			"a version that is a path", func(*aRelease) {},
			func(r *aRelease) []string { return []string{"--key", r.key + ".allowed", "--version", "../1"} }, "../1 is no version",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRelease(t)
			c.do(r)
			ran := filepath.Join(t.TempDir(), "ran")
			t.Setenv("RAN", ran)
			to := t.TempDir()
			old := filepath.Join(to, "gitring")
			r.write(old, "the old one")
			more := []string{"--key", r.key + ".allowed"}
			if c.key != nil {
				more = c.key(r)
			}
			code, out, errs := r.install(to, r.dir, append([]string{"--version", "1.2.3"}, more...)...)
			require.Equal(t, 1, code)
			require.Empty(t, out)
			require.Contains(t, errs, strings.ReplaceAll(c.want, "FROM", r.dir))
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
			require.NoFileExists(t, ran)
			kept, err := os.ReadFile(old)
			require.NoError(t, err)
			require.Equal(t, "the old one", string(kept))
		})
	}
}

// A server that goes away in the middle of the program, and a script that came in half.
func TestInstallerTakesNothingByHalves(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		if _, err := exec.LookPath("wget"); err != nil {
			t.Skip("neither curl nor wget is here")
		}
	}
	r := newRelease(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		data, err := os.ReadFile(filepath.Join(r.dir, filepath.Base(q.URL.Path)))
		if err != nil {
			http.NotFound(w, q)
			return
		}
		if strings.HasSuffix(q.URL.Path, ".tar.gz") {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			data = data[:len(data)/2]
		}
		_, _ = w.Write(data) // the connection ends here, short of what was promised
	}))
	defer server.Close()
	to := t.TempDir()
	code, out, errs := r.install(to, server.URL, "--version", "1.2.3", "--key", r.key+".allowed")
	require.Equal(t, 1, code, errs)
	require.Empty(t, out)
	require.Contains(t, errs, "error: cannot download "+server.URL+"/"+filepath.Base(r.archive))
	entries, err := os.ReadDir(to)
	require.NoError(t, err)
	require.Empty(t, entries)

	script, err := os.ReadFile("install.sh")
	require.NoError(t, err)
	for _, n := range []int{len(script) / 4, len(script) / 2, len(script) - len("main \"$@\"\n")} {
		half := filepath.Join(t.TempDir(), "install.sh")
		r.write(half, string(script[:n]))
		_ = exec.Command("sh", half, "--from", r.dir, "--to", to, "--version", "1.2.3", "--key", r.key+".allowed").Run()
		entries, err := os.ReadDir(to)
		require.NoError(t, err)
		require.Empty(t, entries, "the first %d bytes of the script did something", n)
	}
}

// Where nothing can verify, nothing is fetched and nothing installed.
func TestInstallerNeedsWhatVerifies(t *testing.T) {
	r := newRelease(t)
	for missing, want := range map[string]string{
		"ssh-keygen": "ssh-keygen is missing, and without it no signature can be verified: install OpenSSH 8.2 or later",
		"sha256sum":  "neither sha256sum nor shasum is installed",
	} {
		t.Run(missing, func(t *testing.T) {
			programs := t.TempDir()
			for _, name := range []string{"sh", "uname", "mktemp", "rm", "cp", "awk", "cut", "tar", "gzip", "mkdir", "chmod", "mv", "ssh-keygen", "sha256sum"} {
				at, err := exec.LookPath(name)
				require.NoError(t, err)
				if name != missing {
					require.NoError(t, os.Symlink(at, filepath.Join(programs, name)))
				}
			}
			t.Setenv("PATH", programs)
			to := t.TempDir()
			code, out, errs := r.install(to, r.dir, "--version", "1.2.3", "--key", r.key+".allowed")
			require.Equal(t, 1, code)
			require.Empty(t, out)
			require.Equal(t, "error: "+want+"\n", errs)
			entries, err := os.ReadDir(to)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}
