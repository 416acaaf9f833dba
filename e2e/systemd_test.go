package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// machine is one that systemd runs, with an engine of its own (scripts/systemd.sh).
type machine struct {
	t     *testing.T
	dir   string
	share string // /share inside
	root  string
	repo  *repo
	run   *exec.Cmd
	ended chan struct{}
}

const systemdScript = "../scripts/systemd.sh"

// newMachine makes one and boots it. All of it is gone when the test ends.
func newMachine(t *testing.T) *machine {
	t.Helper()
	base, err := filepath.Abs("../.cache/systemd")
	require.NoError(t, err)
	root := filepath.Join(base, "root")
	require.NoError(t, os.MkdirAll(base, 0o755))
	out, err := exec.Command(systemdScript, "root", root).CombinedOutput()
	require.NoError(t, err, "%s", out)
	dir, err := os.MkdirTemp(base, "machine-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	m := &machine{t: t, dir: dir, share: filepath.Join(dir, "share"), root: root}
	require.NoError(t, os.Mkdir(m.share, 0o755))
	m.repo = newRepo(t, m.share)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := m.try("journalctl", "-b", "--no-pager", "-n", "60", "-u", "gitring", "-u", "gitring-secrets", "-u", "docker")
			t.Logf("the journal of the machine:\n%s", out)
		}
		_ = exec.Command(systemdScript, "pull", m.dir).Run()
		<-m.ended
		require.NoError(t, os.RemoveAll(dir))
	})
	m.boot()
	return m
}

// boot starts it on its disk, and returns when the engine answers.
func (m *machine) boot() {
	m.t.Helper()
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(m.t, err)
	defer log.Close()
	m.run = exec.Command(systemdScript, "run", m.root, m.dir)
	m.run.Stdout, m.run.Stderr = log, log
	m.run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(m.t, m.run.Start())
	run, ended := m.run, make(chan struct{})
	m.ended = ended
	go func() { _ = run.Wait(); close(ended) }()
	m.until("the engine of the machine answers", func() bool {
		_, err := m.try("docker", "version")
		return err == nil
	})
}

// reboot is what a person types, and what the power does otherwise.
func (m *machine) reboot() {
	m.t.Helper()
	_, _ = m.try("systemctl", "reboot") // the answer may be cut off
	select {
	case <-m.ended:
	case <-time.After(patience):
		require.FailNow(m.t, "the machine does not go down")
	}
	m.boot()
}

// powerCut ends it at once, and boots it.
func (m *machine) powerCut() {
	m.t.Helper()
	out, err := exec.Command(systemdScript, "pull", m.dir).CombinedOutput()
	require.NoError(m.t, err, "%s", out)
	<-m.ended
	m.boot()
}

func (m *machine) try(args ...string) (string, error) {
	out, err := exec.Command(systemdScript, append([]string{"in", m.dir}, args...)...).CombinedOutput()
	return string(out), err
}

// does runs a line of a shell in it.
func (m *machine) does(line string, args ...any) string {
	m.t.Helper()
	line = fmt.Sprintf(line, args...)
	out, err := m.try("sh", "-ec", line)
	require.NoError(m.t, err, "%s: %s", line, out)
	return strings.TrimSpace(out)
}

func (m *machine) write(path, text, mode, owner string) {
	m.t.Helper()
	require.NoError(m.t, os.WriteFile(filepath.Join(m.share, "file"), []byte(text), 0o600))
	m.does("install -D -m %s -o %s -g %s /share/file %s", mode, owner, owner, path)
}

func (m *machine) until(what string, is func() bool) {
	m.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(300 * time.Millisecond) {
		if time.Now().After(end) {
			require.FailNow(m.t, what+" never")
		}
	}
}

// synced waits until the daemon is done with a commit.
func (m *machine) synced(sha string) {
	m.t.Helper()
	m.until("Synced at "+sha, func() bool {
		out, err := m.try("gitring", "status", "-o", "json")
		var st status
		return err == nil && json.Unmarshal([]byte(out), &st) == nil && len(st.Sources) == 1 &&
			st.Sources[0].Commit == sha && st.Sources[0].Sync == "Synced" && m.settled()
	})
}

// settled reports whether the engine starts each container again by itself: the last step.
func (m *machine) settled() bool {
	out, err := m.try("sh", "-c", "docker inspect --format '{{.HostConfig.RestartPolicy.Name}}' $(docker ps -q --filter label=gitring.service)")
	words := strings.Fields(out)
	return err == nil && len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return w != "always" })
}

// runs are the containers of services that run, with their ids.
func (m *machine) runs() map[string]string {
	m.t.Helper()
	out := map[string]string{}
	for _, line := range strings.Fields(m.does(`docker ps --no-trunc --filter label=gitring.service --format '{{.Label "gitring.service"}}={{.ID}}'`)) {
		name, id, _ := strings.Cut(line, "=")
		out[name] = id
	}
	return out
}

// ofFile is what a service has at a path.
func (m *machine) ofFile(service, path string) string {
	m.t.Helper()
	return m.does("cat /proc/$(docker inspect --format '{{.State.Pid}}' %s)/root%s", m.runs()[service], path)
}

// shown is a property of a unit.
func (m *machine) shown(unit, property string) string {
	m.t.Helper()
	return m.does("systemctl show --value --property=%s %s", property, unit)
}

// sincePlaced is how long after the files were placed the engine was started; it is of this boot.
func (m *machine) sincePlaced() time.Duration {
	m.t.Helper()
	at := func(unit, property string) int64 {
		n, err := strconv.ParseInt(m.shown(unit, property), 10, 64)
		require.NoError(m.t, err)
		require.NotZero(m.t, n, "%s of %s", property, unit)
		return n
	}
	return time.Duration(at("docker", "ExecMainStartTimestampMonotonic")-at("gitring-secrets", "ExecMainExitTimestampMonotonic")) * time.Microsecond
}

// aPackage is the deb that make dist makes of this checkout.
func aPackage(t *testing.T, dir string) string {
	t.Helper()
	if given := os.Getenv("GITRING_E2E_DEB"); given != "" {
		return given
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	make := exec.Command("go", "run", ".", "-source", root, "-out", filepath.Join(dir, "dist"), "-targets", "linux/amd64")
	make.Dir = filepath.Join(root, "tools", "release")
	out, err := make.CombinedOutput()
	require.NoError(t, err, "%s", out)
	all, err := filepath.Glob(filepath.Join(dir, "dist", "*.deb"))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

// The package, its units and their sandbox on a machine that systemd runs, through reboots.
// It makes a Debian the first time, so GITRING_E2E_LONG asks for it.
func TestUnderARealSystemd(t *testing.T) {
	if os.Getenv("GITRING_E2E_LONG") != "1" {
		t.Skip("it boots a machine: GITRING_E2E_LONG=1 asks for it")
	}
	needEngine(t)
	if _, err := exec.LookPath("debootstrap"); err != nil || os.Geteuid() != 0 {
		t.Skip("it wants root and debootstrap")
	}
	if v2, err := os.ReadFile("/proc/mounts"); err != nil || !regexp.MustCompile(`(?m) /sys/fs/cgroup/systemd cgroup `).Match(v2) {
		t.Skip("scripts/systemd.sh knows cgroup v1 alone")
	}
	m := newMachine(t)

	// --- the package ---------------------------------------------------------------------
	body, err := os.ReadFile(aPackage(t, m.dir))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(m.share, "gitring.deb"), body, 0o644))
	m.does("dpkg -i /share/gitring.deb")
	require.Equal(t, "enabled", m.does("systemctl is-enabled gitring-secrets"))
	out, _ := m.try("systemctl", "is-enabled", "gitring")
	require.Equal(t, "disabled", strings.TrimSpace(out))
	out = m.does("systemd-analyze verify /usr/lib/systemd/system/gitring.service /usr/lib/systemd/system/gitring-secrets.service 2>&1")
	require.Empty(t, out, "a unit has lines that systemd does not know")

	// --- a registry, images, programs of the host ------------------------------------------
	m.bringImage()
	m.write("/usr/local/bin/judge", "#!/bin/sh\ncase $1 in 127.0.0.1:5000/web@sha256:*) exit 0 ;; esac\necho nobody signed it >&2\nexit 1\n", "0755", "root")
	m.write("/usr/local/bin/vault", "#!/bin/sh\n[ \"$TOKEN\" = t ] && exec cat /var/lib/vault/\"${1##*/}\"\n", "0755", "root")
	m.write("/var/lib/vault/pw", "cana.ry-vault-1\n", "0644", "root")
	m.write("/etc/gitring/vault.env", "TOKEN=t\n", "0600", "gitring")
	m.write("/etc/gitring/env/web/token", "cana.ry-folder", "0600", "gitring")
	recipient := m.does("gitring secret keys --create --age-file /etc/gitring/age.key; chown gitring: /etc/gitring/age.key")
	recipient = recipient[strings.Index(recipient, "age1"):]
	signers, err := os.ReadFile(m.repo.signers)
	require.NoError(t, err)
	m.write("/etc/gitring/allowed_signers", string(signers), "0644", "root")
	config := obj{
		"host": "machine", "poll": "1s", "env": obj{"dir": "/etc/gitring/env"},
		"listen": obj{"socket": "/run/gitring/gitring.sock", "http": ""},
		"policy": obj{"profile": "compose", "images": obj{"signatures": []any{obj{"match": "**", "exec": []any{"/usr/local/bin/judge", "{image}"}}}}},
		"secrets": obj{
			"keys":      []any{obj{"age_file": "/etc/gitring/age.key"}},
			"providers": obj{"vault": obj{"exec": []any{"/usr/local/bin/vault", "{ref}"}, "env_file": "/etc/gitring/vault.env"}},
		},
		"sources": []any{obj{
			"name": "prod", "url": "file:///share/remote.git",
			"trust": obj{"mode": "strict", "allowed_signers": "/etc/gitring/allowed_signers"},
		}},
	}
	configure := func() {
		t.Helper()
		b, err := yaml.Marshal(config)
		require.NoError(t, err)
		m.write("/etc/gitring/config.yaml", string(b), "0644", "root")
		m.does("gitring config check")
	}
	configure()
	service := func(more obj) obj {
		return merged(web("1", obj{"image": "127.0.0.1:5000/web:1", "pull_policy": nil, "restart": "always"}), more)
	}
	tls := func(value string) string { return encrypted(t, "tls.key", value, recipient) }
	compose := func(services obj) string {
		b, err := yaml.Marshal(obj{
			"x-gitring": obj{"secrets": obj{"PW": "vault:secret/web/pw"}},
			"services":  services,
			"secrets":   obj{"tls": obj{"file": "./tls.enc"}, "pw": obj{"environment": "PW"}, "token": obj{"file": "./token"}},
		})
		require.NoError(t, err)
		return string(b)
	}
	all := obj{
		"env":    service(obj{"environment": obj{"PW": "${PW}"}}),
		"file":   service(obj{"user": "70:70", "secrets": []any{obj{"source": "tls", "uid": "70", "gid": "70", "mode": "0400"}, "pw"}}),
		"folder": service(obj{"secrets": []any{"token"}}),
	}
	sha := m.repo.pushed("With secrets", files{"web/compose.yaml": compose(all), "web/tls.enc": tls("cana.ry-tls-1")})

	// --- the unit ------------------------------------------------------------------------
	m.does("systemctl daemon-reload")
	m.does("systemctl enable --now gitring")
	m.synced(sha)
	require.Len(t, m.runs(), 3)
	pid := m.shown("gitring", "MainPID")
	proc := m.does("cat /proc/%s/status", pid)
	uid := m.does("id -u gitring")
	for _, want := range []string{`Uid:\s+` + uid + `\s+` + uid, `CapEff:\s+0000000000000001\n`, `CapBnd:\s+0000000000000001\n`, `NoNewPrivs:\s+1`, `Seccomp:\s+2`} {
		require.Regexp(t, want, proc, "the sandbox of the unit")
	}
	holds := func(tls, pw string) {
		t.Helper()
		require.Equal(t, tls, m.ofFile("file", "/run/secrets/tls"))
		require.Equal(t, pw, m.ofFile("file", "/run/secrets/pw"))
		require.Equal(t, "cana.ry-folder", m.ofFile("folder", "/run/secrets/token"))
		require.Contains(t, m.does("docker inspect --format '{{json .Config.Env}}' %s", m.runs()["env"]), "PW="+pw)
	}
	holds("cana.ry-tls-1", "cana.ry-vault-1")
	lies := func(value, where string) {
		t.Helper()
		found := m.does("grep -rl -F %s /run/gitring /tmp /var/tmp /var/lib/gitring /etc/gitring/config.yaml /var/log 2>/dev/null || true", value)
		for _, name := range strings.Fields(found) {
			require.True(t, strings.HasPrefix(name, where), "%s holds %s", name, value)
		}
		require.NotEmpty(t, found)
	}
	lies("cana.ry-tls-1", "/run/gitring/secrets/")
	lies("cana.ry-vault-1", "/run/gitring/secrets/")
	lies("cana.ry-folder", "/var/lib/gitring/secrets/")
	require.NotContains(t, m.does("journalctl --no-pager"), "cana.ry")
	owned := m.does("stat -c '%%u:%%g %%a' $(grep -rl cana.ry-tls-1 /run/gitring/secrets)")
	require.Equal(t, "70:70 400", owned, "CAP_CHOWN of the unit")

	// --- an image that the host's program does not let in ------------------------------------
	bad := m.repo.pushed("Of nobody", files{"bad/compose.yaml": "services: {x: {image: '127.0.0.1:5000/nobodys:1'}}\n"})
	m.until("the program refuses it", func() bool {
		out, _ := m.try("gitring", "status", "-o", "json")
		return strings.Contains(out, bad) && strings.Contains(out, "ImageSignature") || strings.Contains(out, "ImageUnsigned")
	})
	sha = m.repo.pushed("Without it", files{"bad/compose.yaml": ""})
	m.synced(sha)

	// --- a reload, and a value of the vault --------------------------------------------------
	before := m.runs()
	config["facts"] = obj{"tier": "edge"}
	configure()
	m.does("systemctl reload gitring")
	m.until("it serves by the new configuration", func() bool {
		out, _ := m.try("journalctl", "--no-pager", "-u", "gitring")
		return strings.Contains(out, "read the configuration anew")
	})
	m.synced(sha)
	require.Equal(t, pid, m.shown("gitring", "MainPID"))
	m.write("/var/lib/vault/pw", "cana.ry-vault-2\n", "0644", "root")
	require.Contains(t, m.does("gitring secret refresh web"), "changed")
	m.until("the new value is there", func() bool {
		now := m.runs()
		return len(now) == 3 && now["env"] != before["env"] && now["file"] != before["file"]
	})
	m.synced(sha)
	holds("cana.ry-tls-1", "cana.ry-vault-2")
	require.Equal(t, before["folder"], m.runs()["folder"])

	// --- reboots without gitring, the registry and the vault ----------------------------------
	before = m.runs()
	m.does("systemctl disable gitring; rm /var/lib/vault/pw")
	for _, boot := range []func(){m.reboot, m.powerCut} {
		boot()
		require.Positive(t, m.sincePlaced(), "the files are there before the engine starts")
		m.until("all are up", func() bool { return len(m.runs()) == 3 })
		require.Equal(t, before, m.runs())
		require.Equal(t, "inactive", m.shown("gitring", "ActiveState"))
		holds("cana.ry-tls-1", "cana.ry-vault-2")
		lies("cana.ry-tls-1", "/run/gitring/secrets/")
	}

	// --- where nothing places them, they lie on the disk ---------------------------------------
	m.does("systemctl enable --now gitring")
	m.synced(sha)
	require.Equal(t, before, m.runs(), "a start changes nothing")
	var elsewhere bool // whether doctor tells of containers that mount what a reboot empties
	moved := func(from, to string) {
		t.Helper()
		m.synced(sha)
		require.Equal(t, before, m.runs(), "a start changes nothing")
		out, _ := m.try("gitring", "doctor", "--config", "/etc/gitring/config.yaml")
		require.Equal(t, elsewhere, strings.Contains(out, "containers of before mount"), out)
		m.does("gitring restart web/file --reason 'its files lie elsewhere'")
		m.until("the value lies where it should, and nowhere else", func() bool {
			out, _ := m.try("sh", "-c", "grep -rl -F cana.ry-tls-1 /run/gitring /var/lib/gitring")
			return strings.Contains(out, to) && !strings.Contains(out, from)
		})
		m.synced(sha)
		before = m.runs()
		m.does("systemctl disable gitring")
		m.powerCut()
		m.until("all are up", func() bool { return len(m.runs()) == 3 })
		require.Equal(t, before, m.runs())
		holds("cana.ry-tls-1", "cana.ry-vault-2")
		lies("cana.ry-tls-1", to)
		m.does("systemctl enable --now gitring")
	}
	elsewhere = true
	m.does("systemctl disable gitring-secrets; systemctl restart gitring")
	moved("/run/gitring", "/var/lib/gitring/secrets/")
	elsewhere = false
	m.does("systemctl enable gitring-secrets; systemctl restart gitring")
	moved("/var/lib/gitring", "/run/gitring/secrets/")
	m.synced(sha)
	require.Equal(t, before, m.runs())

	// --- an upgrade: the package's by dpkg, another program's by gitring upgrade -----------------
	m.upgrades(before)
}

// bringImage brings the image of the tests' app into a registry of the machine's own.
func (m *machine) bringImage() {
	m.t.Helper()
	tar := filepath.Join(m.share, "image.tar")
	out, err := exec.Command("docker", "save", "-o", tar, image).CombinedOutput()
	require.NoError(m.t, err, "%s", out)
	m.write("/etc/registry.yml", "version: 0.1\nstorage: {filesystem: {rootdirectory: /var/lib/registry}}\nhttp: {addr: '127.0.0.1:5000'}\n", "0644", "root")
	m.does("systemd-run --unit=registry docker-registry serve /etc/registry.yml")
	m.does("docker load -i /share/image.tar")
	for _, name := range []string{"web", "nobodys"} {
		m.does("docker tag %s 127.0.0.1:5000/%s:1", image, name)
		m.until("the registry takes the image", func() bool {
			_, err := m.try("docker", "push", "127.0.0.1:5000/"+name+":1")
			return err == nil
		})
		m.does("docker rmi 127.0.0.1:5000/%s:1", name)
	}
	m.does("docker rmi %s; rm /share/image.tar", image)
}

// upgrades puts a program in the place of the package's that no package owns, and upgrades it.
func (m *machine) upgrades(were map[string]string) {
	m.t.Helper()
	key := filepath.Join(m.dir, "release-key")
	public := strings.Join(strings.Fields(newKey(m.t, key))[:2], " ")
	for name, release := range map[string]string{"old": "0.0.9", "new": "9.9.9"} {
		require.NoError(m.t, goBuild(filepath.Join(m.share, name), "github.com/gitring/gitring/cmd/gitring",
			"-X github.com/gitring/gitring/ring.Release="+release, "-X 'github.com/gitring/gitring/upgrade.Keys="+public+"'"))
	}
	wrong := "#!/bin/sh\n[ \"$1\" != serve ] || exit 3\nexec /share/new \"$@\"\n"
	require.NoError(m.t, os.WriteFile(filepath.Join(m.share, "wrong"), []byte(wrong), 0o755))
	for _, name := range []string{"new", "wrong"} {
		out, err := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "gitring-release", filepath.Join(m.share, name)).CombinedOutput()
		require.NoError(m.t, err, "%s", out)
	}
	m.does("install -m 0755 /share/old /usr/bin/gitring")
	out, err := m.try("gitring", "upgrade", "/share/new")
	require.Error(m.t, err)
	require.Contains(m.t, out, "apt install")
	m.does("cp /usr/lib/systemd/system/gitring*.service /share/; dpkg -r gitring")
	require.Equal(m.t, were, m.runs(), "removing the package touches no container")
	m.does("install -m 0755 /share/old /usr/bin/gitring; install -m 0644 /share/gitring*.service /etc/systemd/system/")
	m.does("systemctl daemon-reload; systemctl enable gitring-secrets; systemctl enable --now gitring")
	is := func(release string) bool {
		out, _ := m.try("gitring", "status", "-o", "json")
		return strings.Contains(out, `"gitring":"`+release+`"`) || strings.Contains(out, `"gitring": "`+release+`"`)
	}
	m.until("the old one answers", func() bool { return is("0.0.9") })
	out, err = m.try("gitring", "upgrade", "/share/wrong", "--probation", "5s")
	require.Error(m.t, err, out)
	require.Contains(m.t, out, "it ended")
	m.until("the old one is back", func() bool { return is("0.0.9") })
	m.does("gitring upgrade /share/new --probation 5s")
	require.True(m.t, is("9.9.9"))
	require.Equal(m.t, were, m.runs(), "an upgrade touches no container")
}
