// Package scripts_test runs the scripts on machines that are only a PATH: a
// folder of stand-ins for the programs that a script may call.
package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	debian = "ID=debian\nVERSION_ID=\"12\"\n"
	ubuntu = "ID=ubuntu\nID_LIKE=debian\n"
	fedora = "ID=fedora\n"
)

// machine is one stand-in for a computer.
type machine struct {
	t    *testing.T
	dir  string
	env  []string
	uid  string
	file string // its os-release
}

// newMachine has the ordinary tools and nothing of Docker.
func newMachine(t *testing.T, osRelease string) *machine {
	m := &machine{t: t, dir: t.TempDir(), uid: "0"}
	for _, d := range []string{"bin", "scripts", "state"} {
		require.NoError(t, os.Mkdir(filepath.Join(m.dir, d), 0o755))
	}
	for _, s := range []string{"say.sh", "engine.sh", "needs.sh"} {
		b, err := os.ReadFile(s)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "scripts", s), b, 0o755))
	}
	for _, tool := range []string{"bash", "cat", "chmod", "dirname", "grep", "mkdir", "nohup", "rm", "sed", "setsid", "sleep", "tail", "timeout", "touch"} {
		at, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(at, filepath.Join(m.dir, "bin", tool)))
	}
	m.file = filepath.Join(m.dir, "os-release")
	require.NoError(t, os.WriteFile(m.file, []byte(osRelease), 0o644))
	m.program("id", `if [ "$1" = -u ]; then echo "$FAKE_UID"; else echo alice; fi`)
	return m
}

// program puts a stand-in on the PATH; each call leaves a line in "calls".
func (m *machine) program(name, body string) *machine {
	text := "#!/usr/bin/env bash\n" + body + "\n"
	if name != "id" && name != "docker" { // these only ask
		text = "#!/usr/bin/env bash\necho \"" + name + " $*\" >>\"$STATE/calls\"\n" + body + "\n"
	}
	require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, "bin", name), []byte(text), 0o755))
	return m
}

// docker answers once the state says that an engine runs.
func (m *machine) docker() *machine {
	return m.program("docker", `[ -e "$STATE/engine" ] || exit 1
case "$*" in *--format*) echo 20.10.24 ;; esac`)
}

// dockerd is an engine that answers as soon as it is started.
func (m *machine) dockerd() *machine { return m.program("dockerd", `touch "$STATE/engine"`) }

// apt brings what a package of Debian would; brings maps package to programs.
func (m *machine) apt(brings map[string]string) *machine {
	body := "case \"$*\" in update*) exit 0 ;; esac\nfor p in \"$@\"; do case $p in\n"
	for p, programs := range brings {
		body += p + ") for x in " + programs + "; do cp=\"$STATE/ready/$x\"; cat \"$cp\" >\"$BIN/$x\"; chmod 0755 \"$BIN/$x\"; done ;;\n"
	}
	body += "esac; done"
	ready := filepath.Join(m.dir, "state", "ready")
	require.NoError(m.t, os.Mkdir(ready, 0o755))
	for _, programs := range brings {
		for _, x := range strings.Fields(programs) {
			text := "#!/usr/bin/env bash\n"
			switch x {
			case "docker":
				text += "[ -e \"$STATE/engine\" ] || exit 1\ncase \"$*\" in *--format*) echo 20.10.24 ;; esac\n"
			case "dockerd":
				text += "echo \"dockerd $*\" >>\"$STATE/calls\"\ntouch \"$STATE/engine\"\n"
			}
			require.NoError(m.t, os.WriteFile(filepath.Join(ready, x), []byte(text), 0o755))
		}
	}
	return m.program("apt-get", body)
}

func (m *machine) user() *machine { m.uid = "1000"; return m }

func (m *machine) with(env ...string) *machine { m.env = append(m.env, env...); return m }

// running says that the engine runs already.
func (m *machine) running() *machine {
	require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, "state", "engine"), nil, 0o644))
	return m
}

// systemd makes the folder that stands where systemd is process 1.
func (m *machine) systemd() *machine {
	require.NoError(m.t, os.Mkdir(filepath.Join(m.dir, "systemd"), 0o755))
	return m.program("systemctl", `touch "$STATE/engine"`)
}

// run carries a script out and tells its exit status, output and the calls it made.
func (m *machine) run(script string, args ...string) (int, string, string) {
	state := filepath.Join(m.dir, "state")
	require.NoError(m.t, os.RemoveAll(filepath.Join(state, "calls")))
	cmd := exec.Command(filepath.Join(m.dir, "scripts", script), args...)
	// Nothing of the real machine: no PATH, no DOCKER_HOST.
	cmd.Env = append([]string{
		"PATH=" + filepath.Join(m.dir, "bin"), "BIN=" + filepath.Join(m.dir, "bin"), "STATE=" + state,
		"SBIN=" + filepath.Join(m.dir, "bin"), "FAKE_UID=" + m.uid, "OS_RELEASE=" + m.file,
		"SYSTEMD_DIR=" + filepath.Join(m.dir, "systemd"),
		"ENGINE_SOCKET=" + filepath.Join(m.dir, "no.sock"),
		"POLICY_RC_D=" + filepath.Join(m.dir, "policy-rc.d"),
		"GITRING_ENGINE_LOG=" + filepath.Join(m.dir, "dockerd.log"),
		"GITRING_ENGINE_PATIENCE=3",
	}, m.env...)
	out, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		require.NoError(m.t, err, "%s", out)
	}
	calls, err := os.ReadFile(filepath.Join(state, "calls"))
	if err != nil {
		require.ErrorIs(m.t, err, os.ErrNotExist)
	}
	return cmd.ProcessState.ExitCode(), string(out), string(calls)
}

func TestEngine(t *testing.T) {
	whole := map[string]string{"docker.io": "docker dockerd", "iptables": "iptables"}
	apart := map[string]string{"docker.io": "dockerd", "iptables": "iptables", "docker-cli": "docker"}
	const install = "apt-get update -q\napt-get install -y -q --no-install-recommends "

	for _, tt := range []struct {
		name  string
		on    func(t *testing.T) *machine
		code  int
		says  []string
		calls string
	}{
		{
			name: "an engine that answers is used as it is",
			on:   func(t *testing.T) *machine { return newMachine(t, fedora).user().docker().running() },
		},
		{
			name:  "root on Debian gets the distribution's, started without systemd",
			on:    func(t *testing.T) *machine { return newMachine(t, debian).apt(whole) },
			says:  []string{"installing docker.io iptables", "starting dockerd, its log is ", "a Docker Engine answers: 20.10.24"},
			calls: install + "docker.io iptables\ndockerd \n",
		},
		{
			name:  "with systemd the service is started",
			on:    func(t *testing.T) *machine { return newMachine(t, ubuntu).apt(whole).systemd() },
			says:  []string{"a Docker Engine answers: 20.10.24"},
			calls: install + "docker.io iptables\nsystemctl start docker\n",
		},
		{
			name:  "where the docker command is a package of its own it is installed too",
			on:    func(t *testing.T) *machine { return newMachine(t, debian).apt(apart) },
			says:  []string{"installing docker-cli"},
			calls: install + "docker.io iptables\n" + install + "docker-cli\ndockerd \n",
		},
		{
			name:  "an installed engine is only started",
			on:    func(t *testing.T) *machine { return newMachine(t, debian).apt(nil).docker().dockerd() },
			calls: "dockerd \n",
			says:  []string{"starting dockerd"},
		},
		{
			name: "a user on Debian is told what root would do",
			on:   func(t *testing.T) *machine { return newMachine(t, debian).apt(whole).user() },
			code: 1,
			says: []string{"error: no Docker Engine is here, and only root may install one", "hint: sudo scripts/engine.sh"},
		},
		{
			name: "a user is told that the installed engine does not run",
			on:   func(t *testing.T) *machine { return newMachine(t, debian).apt(whole).user().docker().dockerd() },
			code: 1,
			says: []string{"error: a Docker Engine is installed here, but does not answer", "hint: start it (sudo systemctl start docker)"},
		},
		{
			name: "elsewhere even root is told what is missing",
			on:   func(t *testing.T) *machine { return newMachine(t, fedora) },
			code: 1,
			says: []string{"installs one on Debian and Ubuntu only", "hint: install Docker Engine 20.10 or later"},
		},
		{
			name: "a dead DOCKER_HOST is never replaced by another engine",
			on: func(t *testing.T) *machine {
				return newMachine(t, debian).apt(whole).docker().with("DOCKER_HOST=tcp://127.0.0.1:1")
			},
			code: 1,
			says: []string{"error: no Docker Engine answers at DOCKER_HOST=tcp://127.0.0.1:1", "hint: start that one, or unset DOCKER_HOST"},
		},
		{
			name: "an engine that never answers ends the wait, with its log",
			on: func(t *testing.T) *machine {
				return newMachine(t, debian).apt(nil).docker().program("dockerd", "echo cannot mount cgroups >&2; exit 1")
			},
			code:  1,
			says:  []string{"cannot mount cgroups", "error: the Docker Engine was started and does not answer within 3s"},
			calls: "dockerd \n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := tt.on(t)
			code, out, calls := m.run("engine.sh")
			require.Equal(t, tt.code, code, out)
			for _, s := range tt.says {
				require.Contains(t, out, s)
			}
			if tt.says == nil {
				require.Empty(t, out)
			}
			require.Equal(t, tt.calls, calls)
			if code == 0 { // once more finds it running
				code, out, calls = m.run("engine.sh")
				require.Equal(t, 0, code)
				require.Empty(t, out+calls)
			}
		})
	}
}

func TestNeeds(t *testing.T) {
	packages := map[string]string{
		"git": "git", "gnupg": "gpg", "openssh-client": "ssh-keygen",
		"openssh-server": "sshd", "iproute2": "ip", "docker-registry": "docker-registry", "strace": "strace",
	}
	some := func(t *testing.T) *machine {
		m := newMachine(t, debian).apt(packages)
		for _, p := range []string{"git", "gpg", "ssh-keygen"} {
			m.program(p, "")
		}
		return m
	}

	t.Run("root on Debian gets what is missing, and no service is started", func(t *testing.T) {
		t.Parallel()
		m := some(t)
		code, out, calls := m.run("needs.sh")
		require.Equal(t, 0, code, out)
		require.Contains(t, out, "installing what the tests need: openssh-server iproute2 docker-registry strace\n")
		require.Equal(t, "apt-get update -q\napt-get install -y -q --no-install-recommends openssh-server iproute2 docker-registry strace\n", calls)
		require.NoFileExists(t, filepath.Join(m.dir, "policy-rc.d"))

		code, out, calls = m.run("needs.sh")
		require.Equal(t, 0, code)
		require.Empty(t, out+calls)
	})

	t.Run("the policy that a machine has already stays", func(t *testing.T) {
		t.Parallel()
		m := some(t)
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "policy-rc.d"), []byte("theirs"), 0o755))
		code, out, _ := m.run("needs.sh")
		require.Equal(t, 0, code, out)
		b, err := os.ReadFile(filepath.Join(m.dir, "policy-rc.d"))
		require.NoError(t, err)
		require.Equal(t, "theirs", string(b))
	})

	t.Run("a user is told the command", func(t *testing.T) {
		t.Parallel()
		code, out, calls := some(t).user().run("needs.sh")
		require.Equal(t, 1, code)
		require.Contains(t, out, "error: the tests need programs that are not here: sshd ip docker-registry strace\n")
		require.Contains(t, out, "hint: sudo apt-get install openssh-server iproute2 docker-registry strace\n")
		require.Empty(t, calls)
	})

	t.Run("a target that needs others names them", func(t *testing.T) {
		t.Parallel()
		code, out, calls := some(t).user().run("needs.sh", "git", "rpm")
		require.Equal(t, 1, code)
		require.Contains(t, out, "error: the tests need programs that are not here: rpm\nhint: sudo apt-get install rpm\n")
		require.Empty(t, calls)
	})

	t.Run("elsewhere the programs are named", func(t *testing.T) {
		t.Parallel()
		code, out, _ := newMachine(t, fedora).run("needs.sh")
		require.Equal(t, 1, code)
		require.Contains(t, out, "error: the tests need programs that are not here: git gpg ssh-keygen sshd ip docker-registry strace\n")
	})
}
