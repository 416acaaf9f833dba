// Package examples_test holds the files that people copy to what they promise.
// That they run is shown end to end, in e2e.
package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// The unit gives gitring the docker group and nothing else.
func TestUnitIsHardened(t *testing.T) {
	b, err := os.ReadFile("systemd/gitring.service")
	require.NoError(t, err)
	says := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			says[key] = value
		}
	}
	for key, want := range map[string]string{
		"ExecStart":               "/usr/bin/gitring serve --config /etc/gitring/config.yaml",
		"User":                    "gitring",
		"SupplementaryGroups":     "docker",
		"UMask":                   "0077",
		"StateDirectory":          "gitring",
		"StateDirectoryMode":      "0700",
		"CapabilityBoundingSet":   "CAP_CHOWN",
		"AmbientCapabilities":     "CAP_CHOWN",
		"NoNewPrivileges":         "true",
		"ProtectSystem":           "strict",
		"ProtectHome":             "true",
		"PrivateTmp":              "true",
		"RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6",
		"SystemCallFilter":        "@system-service seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self",
		"LimitCORE":               "0",
	} {
		got, ok := says[key]
		require.True(t, ok, "%s= is missing", key)
		require.Equal(t, want, got, key)
	}
}

// The unit that places files with secrets has the daemon's user, state and sandbox, and
// nothing makes the engine depend on it.
func TestTheUnitOfSecretsGoesBeforeTheEngineAndIsNoCondition(t *testing.T) {
	says := func(name string) map[string]string {
		b, err := os.ReadFile("systemd/" + name)
		require.NoError(t, err)
		out := map[string]string{}
		for line := range strings.Lines(string(b)) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
				out[key] = value
			}
		}
		return out
	}
	daemon, place := says("gitring.service"), says("gitring-secrets.service")
	for _, key := range []string{
		"User", "Group", "UMask", "StateDirectory", "StateDirectoryMode", "RuntimeDirectory", "RuntimeDirectoryMode", "RuntimeDirectoryPreserve",
		"CapabilityBoundingSet", "AmbientCapabilities", "NoNewPrivileges", "ProtectSystem", "LimitCORE",
	} {
		require.NotEmpty(t, place[key], key)
		require.Equal(t, daemon[key], place[key], key)
	}
	require.Equal(t, "yes", place["RuntimeDirectoryPreserve"], "a stop of the daemon empties it otherwise")
	require.Equal(t, "oneshot", place["Type"])
	require.Equal(t, "yes", place["RemainAfterExit"])
	require.Equal(t, "docker.service", place["Before"])
	require.Equal(t, "docker.service", place["WantedBy"])
	require.Contains(t, place["RequiresMountsFor"], "/var/lib/gitring")
	require.NotContains(t, place, "RequiredBy")
	require.Equal(t, "/usr/bin/gitring secret place --config /etc/gitring/config.yaml", place["ExecStart"])
}

// systemd itself finds no fault in the units, where systemd is at hand.
func TestUnitIsUnderstood(t *testing.T) {
	for _, name := range []string{"gitring.service", "gitring-secrets.service", "gitring-hub.service"} {
		t.Run(name, func(t *testing.T) { understood(t, name) })
	}
}

func understood(t *testing.T, name string) {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine")
	}
	b, err := os.ReadFile("systemd/" + name)
	require.NoError(t, err)
	// A program that exists, or it is the one fault that is found.
	unit := filepath.Join(t.TempDir(), name)
	text := strings.Replace(string(b), "ExecStart=/usr/bin/gitring", "ExecStart=/bin/true", 1)
	require.NoError(t, os.WriteFile(unit, []byte(text), 0o644))
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), name+":", "%s", out)
}

// In a container the engine and gitring must mean the same by a path.
func TestComposeMountsAtTheSamePaths(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			NetworkMode string   `yaml:"network_mode"`
			Command     []string `yaml:"command"`
			Volumes     []string `yaml:"volumes"`
			User        string   `yaml:"user"`
			GroupAdd    []string `yaml:"group_add"`
			CapDrop     []string `yaml:"cap_drop"`
			CapAdd      []string `yaml:"cap_add"`
			SecurityOpt []string `yaml:"security_opt"`
			Privileged  bool     `yaml:"privileged"`
		} `yaml:"services"`
	}
	read(t, "compose/compose.yaml", &compose)
	var config struct {
		State    string `yaml:"state"`
		DataRoot string `yaml:"data_root"`
		Engine   struct {
			URL string `yaml:"url"`
		} `yaml:"engine"`
		Listen struct {
			Socket string `yaml:"socket"`
		} `yaml:"listen"`
	}
	read(t, "compose/config.yaml", &config)

	s := compose.Services["gitring"]
	require.Equal(t, "host", s.NetworkMode)
	mounted := map[string]string{}
	for _, v := range s.Volumes {
		parts := strings.Split(v, ":")
		require.Equal(t, parts[0], parts[1], "%s is at another path inside", v)
		mounted[parts[0]] = strings.Join(parts[2:], ":")
	}
	require.Equal(t, map[string]string{
		config.State:    "",
		config.DataRoot: "",
		strings.TrimPrefix(config.Engine.URL, "unix://"): "",
		filepath.Dir(config.Listen.Socket):               "",
		"/etc/gitring":                                   "ro",
	}, mounted)
	require.Equal(t, []string{"serve", "--config", "/etc/gitring/config.yaml"}, s.Command)

	// A user and the socket's group, which nobody can forget to name, and no more.
	require.Regexp(t, `^\$\{GITRING_USER:\?.+\}$`, s.User)
	require.Len(t, s.GroupAdd, 1)
	require.Regexp(t, `^\$\{DOCKER_GID:\?.+\}$`, s.GroupAdd[0])
	require.Equal(t, []string{"ALL"}, s.CapDrop)
	require.Empty(t, s.CapAdd)
	require.Equal(t, []string{"no-new-privileges:true"}, s.SecurityOpt)
	require.False(t, s.Privileged)
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(b, into))
}
