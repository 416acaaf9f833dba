package main

import (
	"archive/zip"
	"bytes"
	"debug/macho"
	"debug/pe"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The whole road: the last commit is released for every target from two clones, at places of
// other names and lengths, the second with another time zone and an empty build cache. What came
// out is the same bit for bit, and is tried. It takes an hour at most; make dist-check asks for it.
func TestAReleaseIsTheSameFromTwoFolders(t *testing.T) {
	if os.Getenv("GITRING_DIST_LONG") == "" {
		t.Skip("make dist-check runs this")
	}
	needs(t, "ssh-keygen")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	one, two := filepath.Join(dir, "a"), filepath.Join(dir, "another/folder of a longer name/b")
	for _, to := range []string{one, two} {
		output(t, "git", "clone", "-q", root, to)
	}
	const who = "Ann Other <ann@gitring.org>"
	key := newKey(t, dir, "release")
	require.Error(t, release(options{source: one, out: filepath.Join(dir, "unsaid"), key: key, targets: allTargets}))
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	require.NoError(t, release(options{source: one, out: first, key: key, maintainer: who, targets: allTargets}))
	// A developer's own settings change nothing, and nothing compiled before is taken.
	t.Setenv("GOFLAGS", "-buildvcs=true -v")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("LC_ALL", "C")
	t.Setenv("GOCACHE", filepath.Join(dir, "cache"))
	require.NoError(t, release(options{source: two, out: second, key: key, maintainer: who, targets: allTargets}))
	sameFiles(t, first, second)

	sums := exec.Command("sha256sum", "--check", "--strict", "--quiet", sumsFile)
	sums.Dir = first
	out, err := sums.CombinedOutput()
	require.NoError(t, err, string(out))

	entries, err := os.ReadDir(first)
	require.NoError(t, err)
	signed := 0
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".sig"); ok {
			data, err := os.ReadFile(filepath.Join(first, name))
			require.NoError(t, err)
			require.NoError(t, verify(t, filepath.Join(first, name), key, data), name)
			signed++
		}
	}
	require.Equal(t, len(entries)-signed, signed, "each file has its signature")
	require.Equal(t, 5+5+2+2+1+1+1, signed, "archives, SBOMs, debs, rpms, image, install.sh and the checksums")

	f, err := factsOf(one)
	require.NoError(t, err)
	says := "gitring " + f.version + " (" + f.commit[:7] + ", " + f.date.Format("2006-01-02") + ")\n"
	name := "gitring_" + f.version + "_linux_"

	archive := filepath.Join(dir, "archive")
	unpack(t, filepath.Join(first, name+"amd64.tar.gz"), archive)
	at := filepath.Join(archive, name+"amd64")
	licences, err := os.ReadFile(filepath.Join(at, "THIRD_PARTY_LICENSES"))
	require.NoError(t, err)
	require.Contains(t, string(licences), "github.com/go-git/go-git/v5 v")
	require.Contains(t, string(licences), "Go, its library and runtime: LICENSE")
	bill, err := os.ReadFile(filepath.Join(first, name+"amd64.cdx.json"))
	require.NoError(t, err)
	checkBill(t, filepath.Join(at, "gitring"), bill)

	unpack(t, filepath.Join(first, "gitring_"+f.version+"_darwin_arm64.tar.gz"), archive)
	mac, err := macho.Open(filepath.Join(archive, "gitring_"+f.version+"_darwin_arm64", "gitring"))
	require.NoError(t, err)
	require.Equal(t, macho.CpuArm64, mac.Cpu)
	zipped, err := zip.OpenReader(filepath.Join(first, "gitring_"+f.version+"_windows_amd64.zip"))
	require.NoError(t, err)
	defer zipped.Close()
	inside, err := zipped.Open("gitring_" + f.version + "_windows_amd64/gitring.exe")
	require.NoError(t, err)
	program, err := io.ReadAll(inside)
	require.NoError(t, err)
	windows, err := pe.NewFile(bytes.NewReader(program))
	require.NoError(t, err)
	require.Equal(t, uint16(pe.IMAGE_FILE_MACHINE_AMD64), windows.Machine)

	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		require.Equal(t, says, output(t, filepath.Join(at, "gitring"), "version"))
		to := filepath.Join(dir, "bin")
		require.Equal(t, "installed "+to+"/gitring: "+says, output(t, "sh", filepath.Join(first, "install.sh"), "--from", first, "--to", to))
		if _, err := exec.LookPath("dpkg"); err == nil {
			host := filepath.Join(dir, "host")
			require.NoError(t, os.Mkdir(host, 0o755))
			output(t, "dpkg", "-x", filepath.Join(first, name+"amd64.deb"), host)
			require.Equal(t, says, output(t, filepath.Join(host, "usr/bin/gitring"), "version"))
		}
	}
	if _, err := exec.LookPath("rpm"); err == nil {
		require.Contains(t, output(t, "rpm", "-qpl", "--nosignature", filepath.Join(first, name+"arm64.rpm")), "/usr/bin/gitring\n")
	}
	if os.Getenv("GITRING_ENGINE_TESTS") != "" {
		output(t, "docker", "load", "-q", "-i", filepath.Join(first, "gitring_"+f.version+"_image.tar"))
		tag := "gitring:" + strings.ReplaceAll(f.version, "+", "-") + "-"
		t.Cleanup(func() { output(t, "docker", "image", "rm", tag+"amd64", tag+"arm64") })
		require.Equal(t, says, output(t, "docker", "run", "--rm", "--network", "none", tag+runtime.GOARCH, "version"))
	}
}

// sameFiles holds two folders to the same names and bytes.
func sameFiles(t *testing.T, first, second string) {
	t.Helper()
	namesIn := func(folder string) (names []string) {
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	names := namesIn(first)
	require.Equal(t, names, namesIn(second))
	for _, name := range names {
		a, err := os.ReadFile(filepath.Join(first, name))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(second, name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(a, b), "%s differs between the two folders", name)
		t.Logf("the same from both: %s, %d bytes", name, len(a))
	}
}
