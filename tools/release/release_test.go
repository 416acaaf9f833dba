package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

var day = time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)

var sample = facts{version: "0.1.0-dev.20261122.g1a2b3c4", commit: strings.Repeat("1a2b3c4d", 5), date: day, maintainer: "Ann Example <ann@example.org>"}

func TestVersionComesFromGit(t *testing.T) {
	commit := strings.Repeat("1a2b3c4d", 5)
	for described, want := range map[string]string{
		"":                       "0.1.0-dev.20261122.g1a2b3c4", // no tag yet
		"v0.1.0-0-g1a2b3c4":      "0.1.0",
		"v0.2.0-rc.1-0-g1a2b3c4": "0.2.0-rc.1",
		"v0.1.0-12-g1a2b3c4":     "0.1.0+12.g1a2b3c4", // behind the release
	} {
		require.Equal(t, want, versionOf(described, "0.1.0", commit, day), described)
	}
}

// The version is found where the source has it, and what the linker sets is that.
func TestTheSourceNamesItsVersion(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("../..", versionFile))
	require.NoError(t, err)
	prepared := preparedVersion.FindSubmatch(text)
	require.NotNil(t, prepared)
	builds, err := os.ReadFile("build.go")
	require.NoError(t, err)
	require.Contains(t, string(builds), "-X github.com/gitring/gitring/ring.Release=%s")
	shown := exec.Command("go", "run", "-ldflags=-X github.com/gitring/gitring/ring.Release=7.7.7", "./cmd/gitring", "version")
	shown.Dir = "../.."
	out, err := shown.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "gitring 7.7.7")
}

func TestNothingIsReleasedFromAChangedWorkTree(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"}} {
		_, err := git(dir, args...)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new"), nil, 0o644))
	_, err := factsOf(dir)
	require.ErrorContains(t, err, "commit them first")
}

// content is an archive's, with a script in the program's place.
func content() []file {
	return []file{
		{"gitring", 0o755, []byte("#!/bin/sh\necho gitring\n")},
		{"LICENSE", 0o644, []byte("ours")},
		{"THIRD_PARTY_LICENSES", 0o644, []byte("theirs")},
		{"README.md", 0o644, []byte("read")},
		{"completions/gitring.bash", 0o644, []byte("b")},
		{"completions/_gitring", 0o644, []byte("z")},
		{"completions/gitring.fish", 0o644, []byte("f")},
		{"man/gitring.1", 0o644, []byte("m")},
		{"systemd/gitring.service", 0o644, []byte("[Unit]")},
		{"systemd/gitring-secrets.service", 0o644, []byte("[Unit]")},
		{"systemd/gitring-hub.service", 0o644, []byte("[Unit]")},
		{"systemd/config.yaml", 0o644, []byte("host: a")},
	}
}

// installed is what a package puts on a host.
var installed = []string{
	"/etc/gitring", "/usr/bin/gitring", "/usr/lib/systemd/system/gitring-secrets.service", "/usr/lib/systemd/system/gitring.service",
	"/usr/lib/systemd/system/gitring-hub.service",
	"/usr/share/bash-completion/completions/gitring", "/usr/share/doc/gitring/THIRD_PARTY_LICENSES.gz",
	"/usr/share/doc/gitring/copyright", "/usr/share/doc/gitring/examples/config.yaml",
	"/usr/share/fish/vendor_completions.d/gitring.fish", "/usr/share/man/man1/gitring.1.gz",
	"/usr/share/zsh/site-functions/_gitring",
}

func TestDebianTakesThePackage(t *testing.T) {
	needs(t, "dpkg-deb")
	path := madePackage(t, "deb")
	listing := output(t, "dpkg-deb", "-c", path)
	for _, name := range installed {
		require.Contains(t, listing, "."+name)
	}
	require.NotContains(t, listing, "etc/gitring/config.yaml", "a configuration belongs to the host")
	for line := range strings.Lines(listing) {
		require.Contains(t, line, " root/root ", line)
	}
	facts := output(t, "dpkg-deb", "-f", path, "Package", "Version", "Architecture", "Depends", "Maintainer")
	require.Equal(t, "Package: gitring\nVersion: 0.1.0~dev.20261122.g1a2b3c4\nArchitecture: arm64\nDepends: passwd\nMaintainer: Ann Example <ann@example.org>\n", facts)
	require.Equal(t, "postinst\nprerm\n", scriptsOf(t, path))

	root := t.TempDir()
	output(t, "dpkg", "-x", path, root)
	require.Equal(t, "gitring\n", output(t, filepath.Join(root, "usr/bin/gitring")))
}

func TestRPMTakesThePackage(t *testing.T) {
	needs(t, "rpm")
	path := madePackage(t, "rpm")
	require.Equal(t, strings.Join(installed, "\n")+"\n", output(t, "rpm", "-qpl", "--nosignature", path))
	require.Equal(t, "gitring 0.1.0~dev.20261122.g1a2b3c4 aarch64 gitring Ann Example <ann@example.org>",
		output(t, "rpm", "-qp", "--nosignature", "--qf", "%{NAME} %{VERSION} %{ARCH} %{BUILDHOST} %{PACKAGER}", path))
	scripts := output(t, "rpm", "-qp", "--nosignature", "--scripts", path)
	require.Contains(t, scripts, "postinstall scriptlet")
	require.Contains(t, scripts, "preuninstall scriptlet")
}

// madePackage is a package of content, made twice and both times the same.
func madePackage(t *testing.T, format string) string {
	t.Helper()
	var first []byte
	path := filepath.Join(t.TempDir(), "gitring."+format)
	for range 2 {
		require.NoError(t, writePackage(path, format, target{"linux", "arm64"}, content(), sample))
		made, err := os.ReadFile(path)
		require.NoError(t, err)
		if first != nil {
			require.True(t, bytes.Equal(first, made), "%s differs from run to run", format)
		}
		first = made
	}
	return path
}

// scriptsOf are the names of a deb's scripts.
func scriptsOf(t *testing.T, deb string) (names string) {
	t.Helper()
	dir := t.TempDir()
	output(t, "dpkg-deb", "-e", deb, dir)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if in, err := e.Info(); err == nil && in.Mode()&0o111 != 0 {
			names += e.Name() + "\n"
		}
	}
	return names
}

// The scripts run where every program that they may call only writes down that it was called.
func TestPackagesStartNothingAndRemoveNothing(t *testing.T) {
	const (
		active = "systemctl --quiet is-active gitring.service\nsystemctl --quiet is-active gitring-hub.service\n"
		stops  = "systemctl --quiet disable --now gitring.service\nsystemctl --quiet disable gitring-secrets.service\nsystemctl --quiet disable --now gitring-hub.service\n"
	)
	for _, c := range []struct {
		name, script, argument string
		user                   bool // is there already
		want                   string
	}{
		{
			"a first installation makes the users and the folder of data", "postinstall.sh", "configure", false,
			"groupadd --system gitring\n" +
				"useradd --system --gid gitring --no-create-home --home-dir /var/lib/gitring --shell /usr/sbin/nologin gitring\n" +
				"groupadd --system gitring-hub\n" +
				"useradd --system --gid gitring-hub --no-create-home --home-dir /var/lib/gitring-hub --shell /usr/sbin/nologin gitring-hub\n" +
				"install -d -m 0750 -o gitring -g gitring SRV\nsystemctl daemon-reload\nsystemctl --quiet enable gitring-secrets.service\n" + active,
		},
		{
			"an upgrade only has systemd read the unit", "postinstall.sh", "configure", true,
			"systemctl daemon-reload\n" + active,
		},
		{"an upgrade of a deb stops nothing", "preremove.sh", "upgrade", true, ""},
		{"an upgrade of an rpm stops nothing", "preremove.sh", "1", true, ""},
		{"a removal of a deb stops the daemon", "preremove.sh", "remove", true, stops},
		{"a removal of an rpm stops the daemon", "preremove.sh", "0", true, stops},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			srv, run := filepath.Join(dir, "srv"), filepath.Join(dir, "run")
			require.NoError(t, os.Mkdir(run, 0o755))
			found := 1
			if c.user {
				found = 0
				require.NoError(t, os.Mkdir(srv, 0o755))
			}
			bin := filepath.Join(dir, "bin")
			require.NoError(t, os.Mkdir(bin, 0o755))
			for _, p := range []string{"groupadd", "useradd", "install", "systemctl", "rm", "rmdir", "userdel", "service", "docker"} {
				program(t, bin, p, "echo "+p+` "$@" >>"$CALLS"`)
			}
			program(t, bin, "getent", fmt.Sprintf("exit %d", found))
			text, err := packaging.ReadFile("packaging/" + c.script)
			require.NoError(t, err)
			script := strings.NewReplacer("/srv/gitring", srv, "/run/systemd/system", run).Replace(string(text))
			cmd := exec.Command("/bin/sh", "-s", c.argument)
			cmd.Stdin = strings.NewReader(script)
			cmd.Env = []string{"PATH=" + bin, "CALLS=" + filepath.Join(dir, "calls")}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			require.Equal(t, strings.ReplaceAll(c.want, "SRV", srv), string(calls))
		})
	}
}

func TestImageIsForEveryArchitectureAndForDockerLoad(t *testing.T) {
	dir := t.TempDir()
	programs := map[string][]byte{"amd64": []byte("for amd64"), "arm64": []byte("for arm64")}
	one, two := filepath.Join(dir, "one.tar"), filepath.Join(dir, "two.tar")
	require.NoError(t, writeImage(one, programs, sample))
	require.NoError(t, writeImage(two, programs, sample))
	first, err := os.ReadFile(one)
	require.NoError(t, err)
	second, err := os.ReadFile(two)
	require.NoError(t, err)
	require.True(t, bytes.Equal(first, second), "the image differs from run to run")

	// As an OCI layout: one index that names both.
	unpacked := filepath.Join(dir, "layout")
	unpack(t, one, unpacked)
	outer, err := layout.ImageIndexFromPath(unpacked)
	require.NoError(t, err)
	named, err := outer.IndexManifest()
	require.NoError(t, err)
	require.Len(t, named.Manifests, 1)
	inner, err := outer.ImageIndex(named.Manifests[0].Digest)
	require.NoError(t, err)
	list, err := inner.IndexManifest()
	require.NoError(t, err)
	var platforms []string
	for _, m := range list.Manifests {
		platforms = append(platforms, m.Platform.String())
		img, err := inner.Image(m.Digest)
		require.NoError(t, err)
		checkImage(t, img, programs[m.Platform.Architecture])
	}
	require.Equal(t, []string{"linux/amd64", "linux/arm64"}, platforms)

	// As docker load reads it, which looks at manifest.json.
	for arch, want := range programs {
		tag, err := name.NewTag("gitring:" + sample.version + "-" + arch)
		require.NoError(t, err)
		img, err := tarball.ImageFromPath(one, &tag)
		require.NoError(t, err)
		config, err := img.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, arch, config.Architecture)
		checkImage(t, img, want)
	}
}

// checkImage looks for what the Dockerfile promises of an image.
func checkImage(t *testing.T, img v1.Image, program []byte) {
	t.Helper()
	config, err := img.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, []string{"/usr/bin/gitring"}, config.Config.Entrypoint)
	require.Equal(t, []string{"serve"}, config.Config.Cmd)
	layers, err := img.Layers()
	require.NoError(t, err)
	require.Len(t, layers, 1)
	diff, err := layers[0].DiffID()
	require.NoError(t, err)
	require.Equal(t, config.RootFS.DiffIDs, []v1.Hash{diff})
	r, err := layers[0].Uncompressed()
	require.NoError(t, err)
	defer r.Close()
	held := map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.True(t, h.ModTime.Equal(day), h.Name)
		held[h.Name], err = io.ReadAll(tr)
		require.NoError(t, err)
	}
	require.Equal(t, program, held["usr/bin/gitring"])
	require.Contains(t, string(held["etc/ssl/certs/ca-certificates.crt"]), "BEGIN CERTIFICATE")
	require.Len(t, held, 2)
}

func TestChecksumsAreSigned(t *testing.T) {
	needs(t, "ssh-keygen")
	dir, keys := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o644))
	require.NoError(t, writeSums(dir))
	sums := filepath.Join(dir, sumsFile)
	text, err := os.ReadFile(sums)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%x  a\n", sha256.Sum256([]byte("a"))), string(text))

	key, other := newKey(t, keys, "release"), newKey(t, keys, "other")
	require.NoError(t, sign(sums, key))
	require.NoError(t, verify(t, sums, key, text))
	require.Error(t, verify(t, sums, key, append(text, '\n')), "the checksums were changed")
	require.Error(t, verify(t, sums, other, text), "another key")
}

// Who takes one file alone verifies it alone.
func TestEveryFileIsSignedByItself(t *testing.T) {
	needs(t, "ssh-keygen")
	dir, key := t.TempDir(), newKey(t, t.TempDir(), "release")
	for _, name := range []string{"a.tar.gz", "install.sh"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
	}
	require.NoError(t, writeSums(dir))
	require.NoError(t, signAll(dir, key))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 6)
	for _, name := range []string{"a.tar.gz", "install.sh"} {
		require.NoError(t, verify(t, filepath.Join(dir, name), key, []byte(name)))
		require.Error(t, verify(t, filepath.Join(dir, name), key, []byte(name+" ")), "it was changed")
	}
	require.Error(t, verify(t, filepath.Join(dir, "a.tar.gz"), key, []byte("install.sh")), "the signature of another file")
}

func TestASignedReleaseNamesSomebodyToWriteTo(t *testing.T) {
	require.NoError(t, checkMaintainer("", false))
	for _, who := range []string{"", "Ann", "ann@gitring.org", "Ann <ann>", "Ann <ann@gitring.example>", "A\nB <a@gitring.org>", " <a@gitring.org>"} {
		require.Error(t, checkMaintainer(who, true), who)
	}
	require.NoError(t, checkMaintainer("Ann Other <ann@gitring.org>", true))
}

// verify asks ssh-keygen, as docs/how-to/install.md says.
func verify(t *testing.T, sums, key string, text []byte) error {
	t.Helper()
	line, err := allowedSigner(key)
	require.NoError(t, err)
	allowed := filepath.Join(t.TempDir(), "allowed")
	require.NoError(t, os.WriteFile(allowed, []byte(line+"\n"), 0o644))
	cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "release@gitring", "-n", "gitring-release", "-s", sums+".sig")
	cmd.Stdin = bytes.NewReader(text)
	return cmd.Run()
}

func newKey(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	output(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path)
	return path
}

// The oracle is the program itself: this test's.
func TestBillOfMaterialsNamesEveryLinkedModule(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	text, err := billOfMaterials(self, program, sample)
	require.NoError(t, err)
	again, err := billOfMaterials(self, program, sample)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	checkBill(t, self, text)
}

func checkBill(t *testing.T, program string, text []byte) {
	t.Helper()
	var bom cdx.BOM
	require.NoError(t, cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom))
	var said []string
	for _, c := range *bom.Components {
		said = append(said, c.Name+" "+c.Version)
	}
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	want := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	require.Equal(t, want, said)
	require.Greater(t, len(want), 10)
}

func TestLicencesOfLinkedFoldersAreKept(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE": "of all", "NOTICE.txt": "note", "license.go": "package x", "a/COPYING": "of a", "a/b/x.go": "package b", "c/LICENSE": "of what is not linked",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	texts, err := licencesIn(folders{root: root, in: []string{filepath.Join(root, "a/b")}})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"LICENSE": "of all", "NOTICE.txt": "note", "a/COPYING": "of a"}, texts)
}

// Windows gets a zip without what only other systems read; macOS has no systemd.
func TestClientsGetWhatTheirSystemReads(t *testing.T) {
	for _, c := range []struct {
		of     target
		list   []string
		absent string
	}{
		{target{"windows", "amd64"}, []string{"unzip", "-Z1", "x.zip"}, "/man/"},
		{target{"darwin", "arm64"}, []string{"tar", "-tzf", "x.tar.gz"}, "/systemd/"},
		{target{"linux", "arm64"}, []string{"tar", "-tzf", "x.tar.gz"}, "/none/"},
	} {
		needs(t, c.list[0])
		dir := t.TempDir()
		var first []byte
		for range 2 {
			require.NoError(t, writeArchive(filepath.Join(dir, "x"), c.of, extrasFor(c.of, content()), sample))
			made, err := os.ReadFile(filepath.Join(dir, c.list[2]))
			require.NoError(t, err)
			require.True(t, first == nil || bytes.Equal(first, made), "%s differs from run to run", c.of)
			first = made
		}
		listing := output(t, c.list[0], c.list[1], filepath.Join(dir, c.list[2]))
		require.Contains(t, listing, "x/LICENSE\n")
		require.Contains(t, listing, "x/THIRD_PARTY_LICENSES\n")
		require.NotContains(t, listing, c.absent)
	}
}

func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("no " + program + " on this machine")
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s", name, args, errs.String())
	return string(out)
}

// program puts a shell script into a folder of programs.
func program(t *testing.T, dir, name, body string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
}

func unpack(t *testing.T, archive, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(to, 0o755))
	output(t, "tar", "-xf", archive, "-C", to)
}
