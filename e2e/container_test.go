package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// inContainer is gitring as deploy-examples/compose runs it, with every folder
// of it in the test's own.
type inContainer struct {
	*host
	image   string
	uid     int // and gid
	service struct {
		Command     []string `yaml:"command"`
		NetworkMode string   `yaml:"network_mode"`
		ReadOnly    bool     `yaml:"read_only"`
		Tmpfs       []string `yaml:"tmpfs"`
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
		Volumes     []string `yaml:"volumes"`
		User        string   `yaml:"user"`
		GroupAdd    []string `yaml:"group_add"`
	}
}

func newInContainer(t *testing.T) *inContainer {
	t.Helper()
	needDocker(t)
	socket, unix := strings.CutPrefix(engineURL(), "unix://")
	if os.Geteuid() != 0 || !unix {
		t.Skip("needs root, and the engine's socket to mount")
	}
	c := &inContainer{host: newHost(t), image: "gitring-e2e-self" + strings.TrimPrefix(hostName(hosts.Add(1)), "e2e") + ":1"}
	t.Cleanup(func() { local.unload(c.image) })
	out, err := exec.Command("../scripts/image.sh", c.image).CombinedOutput()
	require.NoError(t, err, "%s", out)

	// The example's folders are a machine's; here each is one of the test's.
	moved := strings.NewReplacer("/etc/gitring", c.dir+"/etc", "/var/lib/gitring", c.dir+"/state", "/srv/gitring", c.dir+"/data",
		"/run/gitring", c.dir+"/run", "/var/run/docker.sock", socket,
		"edge-1", c.name, "https://git.example.org/acme/infra.git", "@URL@", "poll: 60s", "poll: 1s", "127.0.0.1:9480", freePort(t))
	read := func(file string) string {
		b, err := os.ReadFile(filepath.Join("../deploy-examples/compose", file))
		require.NoError(t, err)
		return moved.Replace(string(b))
	}
	var compose struct{ Services map[string]yaml.Node }
	require.NoError(t, yaml.Unmarshal([]byte(read("compose.yaml")), &compose))
	n := compose.Services["gitring"]
	require.NoError(t, n.Decode(&c.service))
	// What .env says on a machine.
	c.uid = 65532
	in, err := os.Stat(socket)
	require.NoError(t, err)
	st, ok := in.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	variable := regexp.MustCompile(`\$\{(\w+):\?[^}]*\}`)
	set := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(s string) string {
			return map[string]string{"GITRING_USER": fmt.Sprintf("%d:%d", c.uid, c.uid), "DOCKER_GID": fmt.Sprint(st.Gid)}[variable.FindStringSubmatch(s)[1]]
		})
	}
	c.service.User, c.service.GroupAdd[0] = set(c.service.User), set(c.service.GroupAdd[0])
	require.Equal(t, "65532:65532", c.service.User)
	at, _ := gitHTTP(t, c.dir, "")
	for _, dir := range []string{"etc", "state", "data", "run"} {
		require.NoError(t, os.Mkdir(filepath.Join(c.dir, dir), 0o755))
		if dir != "etc" {
			require.NoError(t, os.Chown(filepath.Join(c.dir, dir), c.uid, c.uid))
		}
	}
	signers, err := os.ReadFile(c.repo.signers)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"config.yaml": strings.Replace(read("config.yaml"), "@URL@", at+"/remote.git", 1), "allowed_signers": string(signers),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, "etc", name), []byte(text), 0o644))
	}
	c.socket = filepath.Join(c.dir, "run/gitring.sock")
	return c
}

// up starts the container; each of binds replaces the example's of the same
// place inside.
func (c *inContainer) up(binds ...string) (id string) {
	c.t.Helper()
	all := map[string]string{}
	for _, b := range append(append([]string{}, c.service.Volumes...), binds...) {
		_, inside, _ := strings.Cut(b, ":")
		inside, _, _ = strings.Cut(inside, ":")
		all[inside] = b
	}
	var mounts []string
	for _, b := range all {
		mounts = append(mounts, b)
	}
	tmpfs := obj{}
	for _, at := range c.service.Tmpfs {
		tmpfs[at] = ""
	}
	b, err := json.Marshal(obj{
		"Image": c.image, "Cmd": c.service.Command, "Labels": obj{"e2e": c.name}, "User": c.service.User,
		"HostConfig": obj{
			"GroupAdd": c.service.GroupAdd, "NetworkMode": c.service.NetworkMode, "ReadonlyRootfs": c.service.ReadOnly, "Tmpfs": tmpfs,
			"CapDrop": c.service.CapDrop, "SecurityOpt": c.service.SecurityOpt, "Binds": mounts,
		},
	})
	require.NoError(c.t, err)
	var made struct{ ID string }
	name := url.Values{"name": {"gitring-" + c.name}}
	require.NoError(c.t, local.call("POST", "/containers/create", name, bytes.NewReader(b), &made))
	c.t.Cleanup(func() { _ = local.remove(made.ID) })
	require.NoError(c.t, local.call("POST", "/containers/"+made.ID+"/start", nil, nil, nil))
	return made.ID
}

// says is what the container printed.
func (c *inContainer) says(id string) string {
	out, err := exec.Command("docker", "logs", id).CombinedOutput()
	require.NoError(c.t, err)
	return string(out)
}

func TestGitringRunsInAContainerAsTheExampleSays(t *testing.T) {
	t.Parallel()
	c := newInContainer(t)
	app := c.app("web")
	version := func(v string) files {
		return files{
			app + "/compose.yaml": c.compose(app, obj{"web": web(v, replicas(2), obj{"volumes": []any{"./conf:/conf:ro"}})}),
			app + "/conf/x":       "content " + v,
		}
	}
	first := c.repo.pushed("Version 1", version("1"))

	// The engine would mount other folders than gitring writes to.
	other := t.TempDir()
	require.NoError(t, os.Chown(other, c.uid, c.uid))
	id := c.up(other + ":" + c.dir + "/state")
	c.until("it ends", func() bool { in, err := local.inspect(id); return err == nil && !in.State.Running })
	in, err := local.inspect(id)
	require.NoError(t, err)
	require.Equal(t, 1, in.State.ExitCode)
	require.Contains(t, c.says(id), "PathMismatch")
	require.NoError(t, local.remove(id))

	id = c.up()
	c.synced(first)
	c.deployed("Version 2", version("2"))
	for _, in := range c.containers() {
		_, body := c.ask(in, "/file?path=/conf/x")
		require.Equal(t, "content 2", body)
	}
	before := identities(c.containers())
	code, out := c.run("status")
	require.Equal(t, 0, code, out)
	require.NoError(t, local.stop(id))
	in, err = local.inspect(id)
	require.NoError(t, err)
	require.Equal(t, 0, in.State.ExitCode, c.says(id))
	require.Equal(t, before, identities(c.containers()), "what runs is the engine's")
}
