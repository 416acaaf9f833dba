package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/stretchr/testify/require"
)

// --- install.md ------------------------------------------------------------------------

// aRelease is a folder with what somebody downloads: the archive of this machine, an
// image, the script, checksums, and signatures by a key that release.allowed names. What
// make dist makes is tried by make dist-check.
func (d *desk) aRelease() string {
	d.t.Helper()
	dir := filepath.Join(d.dir, "release")
	require.NoError(d.t, os.Mkdir(dir, 0o755))
	write := func(name, text string) {
		require.NoError(d.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	run := func(line string, args ...any) {
		d.t.Helper()
		d.at = dir
		code, out := d.types(fmt.Sprintf(line, args...))
		require.Equal(d.t, 0, code, "%s: %s", line, out)
	}
	key := filepath.Join(d.dir, "release-key")
	write("release.allowed", `release@gitring namespaces="gitring-release" `+newKey(d.t, key))
	script, err := os.ReadFile(filepath.Join("..", "scripts", "install.sh"))
	require.NoError(d.t, err)
	write("install.sh", strings.Replace(string(script), "release_version=''", "release_version='0.1.0'", 1))
	name := "gitring_0.1.0_linux_" + runtime.GOARCH
	run("mkdir %s && cp %s %s/gitring && tar -czf %s.tar.gz %s", name, binary, name, name, name)
	run("docker save -o gitring_0.1.0_image.tar %s", image)
	run("sha256sum *.tar.gz *.tar install.sh > SHA256SUMS")
	for _, file := range []string{"SHA256SUMS", "install.sh"} {
		run("ssh-keygen -q -Y sign -f %s -n gitring-release %s", key, file)
	}
	return dir
}

// enablesSecrets is the line that enables a unit, which needs no systemd that runs: it is
// done to the units below a folder.
func enablesSecrets(root string, after func(d *desk)) step {
	s := step{
		line: "sudo systemctl enable gitring-secrets", as: "sudo systemctl --root=" + root + " enable gitring-secrets",
		after: func(d *desk, _ string) { after(d) },
	}
	if _, err := exec.LookPath("systemctl"); err != nil {
		s.why = "systemctl is not on this machine"
	}
	return s
}

func install() howto {
	const (
		ofPackages = "it changes the packages of the machine; make dist-check does it in a root folder of its own"
		ofDist     = "minutes; make dist-check is this"
		ofImage    = "it wants the name gitring:dev on this engine; container_test.go runs such an image as the example says"
	)
	var sha string
	return howto{
		begin: func(d *desk) {
			root, err := filepath.Abs("..")
			require.NoError(d.t, err)
			if out, err := exec.Command("git", "-C", root, "rev-parse", "HEAD").CombinedOutput(); err != nil {
				d.t.Skipf("this is no clone: %s", out)
			}
			d.ownEtc()
			d.says("/usr/bin", d.path)
			d.says("/var/run/docker.sock", strings.TrimPrefix(d.engine.url, "unix://"))
			d.says("/run/gitring", filepath.Join(d.dir, "run"))
			d.says("https://github.com/gitring/gitring", "-q file://"+root+" gitring")
			d.says("-o gitring -g gitring ", "-o gitring -g gitring ") // here there is one
			require.NoError(d.t, os.Chmod(d.dir, 0o711))
			d.at = d.aRelease()
			require.NoError(d.t, os.Remove(filepath.Join(d.path, "gitring")))
			require.NoError(d.t, os.RemoveAll(d.etc))
		},
		steps: []step{
			{line: "sha256sum --check --ignore-missing SHA256SUMS", after: func(d *desk, out string) {
				require.Contains(d.t, out, "install.sh: OK")
			}},
			{line: "sudo apt install ./gitring_*_linux_amd64.deb", why: ofPackages},
			{line: "sudo dnf install ./gitring_*_linux_amd64.rpm", why: ofPackages},
			{line: "sudo sh install.sh --from . --key release.allowed --to /usr/bin", after: func(d *desk, out string) {
				require.Contains(d.t, out, "installed "+filepath.Join(d.path, "gitring"))
			}},
			{line: "docker load -i gitring_*_image.tar", after: func(d *desk, out string) { require.Contains(d.t, out, image) }},
			// With what whoever runs the test has downloaded: the reader's home is empty.
			{line: "make build", as: "GOCACHE=<go cache> GOMODCACHE=<go modules> make build", before: func(d *desk) {
				for word, name := range map[string]string{"<go cache>": "GOCACHE", "<go modules>": "GOMODCACHE"} {
					at, err := exec.Command("go", "env", name).Output()
					require.NoError(d.t, err)
					d.says(word, strings.TrimSpace(string(at)))
				}
			}},
			{line: "sudo install -m 0755 bin/gitring /usr/bin/gitring", after: func(d *desk, _ string) {
				code, out := d.types("gitring help")
				require.Equal(d.t, 0, code, out)
			}},
			{line: `make dist DIST_KEY=~/.ssh/release DIST_MAINTAINER='Ann <ann@example.org>'`, why: ofDist},
			{line: "make dist", why: ofDist},
			{line: "make dist-check", why: ofDist},
			enablesSecrets("/", func(d *desk) {
				code, out := d.types("readlink /etc/systemd/system/docker.service.wants/gitring-secrets.service")
				require.Equal(d.t, 0, code, out)
			}),
			{line: "sudo systemctl daemon-reload", why: "no systemd runs in a test", before: func(d *desk) {
				app := d.app("web")
				sha = d.repo.pushed("Version 1", files{app + "/compose.yaml": d.compose(app, obj{"web": web("1")})})
				d.writeConfig() // somebody edits the example
				keys, err := os.ReadFile(filepath.Join(d.dir, "key.pub"))
				require.NoError(d.t, err)
				require.NoError(d.t, os.WriteFile(d.repo.signers, []byte(`alice@example.org namespaces="git" `+string(keys)), 0o600))
			}},
			{line: "sudo systemctl enable --now gitring", after: func(d *desk, _ string) {
				d.synced(sha)
				settled(d.host)
			}},
			// What make image is, with another name: gitring:dev of this engine is not the test's.
			{line: "make image", as: "GOCACHE=<go cache> GOMODCACHE=<go modules> scripts/image.sh gitring-howto:<image>", before: func(d *desk) {
				require.NoError(d.t, d.stop())
				code, out := d.types("userdel gitring") // the other way to install it
				require.Equal(d.t, 0, code, out)
				d.says("<image>", fmt.Sprint(os.Getpid()))
			}, after: func(d *desk, _ string) {
				made := fmt.Sprintf("gitring-howto:%d", os.Getpid())
				d.t.Cleanup(func() { _, _ = d.types("docker image rm " + made) })
				code, out := d.types("docker run --rm --network none " + made + " version")
				require.Equal(d.t, 0, code, out)
				require.Contains(d.t, out, "gitring ")
			}},
			{line: "docker compose -f deploy-examples/compose/compose.yaml up -d", why: ofImage, before: func(d *desk) {
				b, err := os.ReadFile(filepath.Join(d.at, "deploy-examples", "compose", ".env"))
				require.NoError(d.t, err)
				require.Regexp(d.t, `^GITRING_USER=\d+:\d+\nDOCKER_GID=\d+\n$`, string(b))
			}},
			{line: "docker exec gitring-gitring-1 /usr/bin/gitring status", why: ofImage},
		},
	}
}
