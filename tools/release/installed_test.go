package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/goreleaser/nfpm/v2"
	"github.com/stretchr/testify/require"
)

// A root folder of Debian's own packages, in which apt and dnf are real: they install what a
// release has, take a newer one over it, and remove it. It fetches packages for minutes, so
// make dist-check asks for it.
func TestAptAndDnfInstallUpgradeAndRemoveThePackages(t *testing.T) {
	if os.Getenv("GITRING_DIST_LONG") == "" {
		t.Skip("make dist-check runs this")
	}
	needs(t, "debootstrap")
	if os.Getuid() != 0 {
		t.Skip("only root makes a root folder")
	}
	root := filepath.Join(t.TempDir(), "root")
	output(t, "debootstrap", "--variant=minbase", "--include=dnf,rpm", "bookworm", root, debianMirror)
	in := func(words ...string) (string, error) {
		cmd := exec.Command("chroot", append([]string{root}, words...)...)
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(words ...string) string {
		t.Helper()
		out, err := in(words...)
		require.NoError(t, err, "%v: %s", words, out)
		return out
	}
	here := target{"linux", runtime.GOARCH}
	older, newer := sample, sample
	newer.version = "0.2.0"
	for _, format := range []string{"deb", "rpm"} {
		require.NoError(t, writePackage(filepath.Join(root, "older."+format), format, here, content(), older))
		require.NoError(t, writePackage(filepath.Join(root, "newer."+format), format, here, content(), newer))
	}
	for _, c := range []struct {
		format                 string
		install, remove, query []string
	}{
		{"deb", []string{"apt-get", "install", "-y", "--no-install-recommends"}, []string{"apt-get", "remove", "-y"}, []string{"dpkg-query", "-W", "-f", "${Version}", "gitring"}},
		{"rpm", []string{"dnf", "install", "-y", "--setopt=install_weak_deps=False"}, []string{"dnf", "remove", "-y", "--noautoremove"}, []string{"rpm", "-q", "--qf", "%{VERSION}", "gitring"}},
	} {
		install := func(file string, more ...string) {
			t.Helper()
			must(append(append(c.install, "./"+file+"."+c.format), more...)...)
			require.Equal(t, "gitring\n", must("/usr/bin/gitring"))
			require.FileExists(t, filepath.Join(root, "usr/lib/systemd/system/gitring.service"))
		}
		if c.format == "rpm" { // Fedora's package of useradd, which this root has from Debian
			shadowUtils(t, filepath.Join(root, "shadow-utils.rpm"), here)
			install("older", "./shadow-utils.rpm")
		} else {
			install("older")
		}
		require.Contains(t, must(c.query...), "0.1.0~dev")
		require.Equal(t, "gitring gitring 750\n", must("stat", "-c", "%U %G %a", "/srv/gitring"), c.format)
		require.Contains(t, must("getent", "passwd", "gitring"), ":/var/lib/gitring:/usr/sbin/nologin")
		kept := filepath.Join(root, "srv/gitring/data")
		require.NoError(t, os.WriteFile(kept, []byte("kept"), 0o600))

		install("newer")
		require.Equal(t, "0.2.0", must(c.query...))
		must(append(c.remove, "gitring")...)
		require.NoFileExists(t, filepath.Join(root, "usr/bin/gitring"))
		require.FileExists(t, kept, "what apps wrote stays")
		require.Contains(t, must("getent", "passwd", "gitring"), "gitring")
		// The next one begins on a host that never had it.
		must("userdel", "gitring")
		must("rm", "-r", "/srv/gitring")
	}
}

const debianMirror = "http://deb.debian.org/debian"

// shadowUtils is an empty package of the name that the rpm depends on.
func shadowUtils(t *testing.T, to string, here target) {
	t.Helper()
	info := nfpm.WithDefaults(&nfpm.Info{Name: "shadow-utils", Arch: here.arch, Platform: "linux", Version: "1", Maintainer: sample.maintainer, Description: "empty"})
	packager, err := nfpm.Get("rpm")
	require.NoError(t, err)
	require.NoError(t, nfpm.PrepareForPackager(info, "rpm"))
	f, err := os.Create(to)
	require.NoError(t, err)
	require.NoError(t, packager.Package(info, f))
	require.NoError(t, f.Close())
}
