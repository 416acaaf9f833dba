package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// startedEscapes are harmless forms of vectors, which an engine carries out when it is
// asked: the service's lines, and those below the services. dir is a folder of the test.
var startedEscapes = []struct{ lines, top string }{
	{lines: "privileged: true"},
	{lines: "cap_add: [ALL]"},
	{lines: "cap_add: [SYS_ADMIN]"},
	{lines: "cap_add: [NET_ADMIN, NET_RAW]"},
	{lines: "cap_add: [DAC_READ_SEARCH]"},
	{lines: "network_mode: host"},
	{lines: "pid: host"},
	{lines: "ipc: host"},
	{lines: "uts: host"},
	{lines: "userns_mode: host"},
	{lines: "cgroup: host"},
	{lines: "devices: [/dev/null]"},
	{lines: "device_cgroup_rules: ['c 1:3 r']"},
	{lines: "security_opt: ['seccomp=unconfined']"},
	{lines: "security_opt: ['systempaths=unconfined']"},
	{lines: "security_opt: ['no-new-privileges:false']"},
	{lines: "sysctls: {net.ipv4.ip_forward: 1}"},
	{lines: "ulimits: {rtprio: 1}"},
	{lines: "group_add: ['998']"},
	{lines: "volumes: ['/etc/hostname:/h:ro']"},
	{lines: "volumes: ['/usr/share:/u:ro']"},
	{lines: "volumes: ['data:/d:ro']", top: "volumes: {data: {driver_opts: {type: none, o: bind, device: DIR}}}"},
	{lines: "volumes: ['data:/d']", top: "volumes: {data: {driver_opts: {type: tmpfs, device: tmpfs, o: size=64k}}}"},
	{lines: "networks: [lan]", top: "networks: {lan: {ipam: {config: [{subnet: 192.0.2.N/29}]}}}"}, // of documentation: nobody's
	{lines: "networks: [lan]", top: "networks: {lan: {driver_opts: {com.docker.network.bridge.name: gtescN}}}"},
	{lines: "extra_hosts: ['meta:169.254.169.254']"},
	{lines: "dns: 169.254.169.253"},
	{lines: "labels: {caddy.import: x}"},
	{lines: "labels: {ofelia.job-run.x.image: a}"},
	{lines: "working_dir: /proc"},
	{lines: "tmpfs: ['/t:size=3g,uid=1']"},
	{lines: "healthcheck: {test: [CMD, /app], interval: 200ms}"},
}

// Each vector is real: without the policy the engine makes it and it runs. With the
// policy of profile compose nothing of it is made, on the same road to the same engine.
func TestEngineMakesNoEscape(t *testing.T) {
	require.GreaterOrEqual(t, len(startedEscapes), 25)
	at := engineForTests(t)
	image := imageForTests(t, at)
	dir, err := os.MkdirTemp("", "escapes")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	started := 0
	for i, v := range startedEscapes {
		t.Run(v.lines+" "+v.top, func(t *testing.T) {
			n := rand.IntN(30)
			body := fmt.Sprintf("services:\n  web:\n    image: nginx\n    entrypoint: [/app]\n    command: [serve]\n    %s\n%s\n", v.lines,
				strings.NewReplacer("DIR", dir, "gtescN", fmt.Sprintf("gtesc%d", i), ".N/", fmt.Sprintf(".%d/", 8*n)).Replace(v.top))
			tree := fstest.MapFS{"web/compose.yaml": {Data: []byte(body), Mode: 0o644}}
			c := &ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}
			r := manifest.Look(c, manifest.Settings{Source: "prod", Host: "edge-1"})
			require.Empty(t, r.Refusals)

			host := fmt.Sprintf("escape-%d-%d", os.Getpid(), i)
			t.Cleanup(func() { dropAll(t, at, host) })
			j := admission.Anywhere(policy.Compose)
			j.Rules.Host, j.Rules.EngineGroups = host, []string{"998"}
			err := tryEscape(t, runtime.Options{Host: host, Allow: j.Allow}, r.Plan.Apps[0], image)
			require.ErrorContains(t, err, "PolicyDenied")
			require.Empty(t, onEngine(t, at, host, v.top), "nothing of it is there")

			err = tryEscape(t, runtime.Options{Host: host, OwnerHost: func() bool { return true }}, r.Plan.Apps[0], image)
			if err != nil && strings.Contains(err.Error(), "operation not permitted") { // the engine of a sandbox has less than root
				require.NotEmpty(t, onEngine(t, at, host, v.top), "the engine made it and could not start it")
				return
			}
			require.NoError(t, err)
			started++
			running, err := at.ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "gitring.host="+host))})
			require.NoError(t, err)
			require.Len(t, running, 1, "the engine carries it out")
		})
	}
	require.GreaterOrEqual(t, started, 25)
}

// tryEscape makes what an app's only service needs and starts it, as the daemon does.
func tryEscape(t *testing.T, o runtime.Options, app ring.App, image string) error {
	t.Helper()
	o.ContentDir, o.DataRoot = t.TempDir(), t.TempDir()
	d, err := runtime.Dial(t.Context(), o)
	require.NoError(t, err)
	app.Name = "esc" + strings.ReplaceAll(strings.TrimPrefix(o.Host, "escape-"), "-", "x")
	s := &app.Services[0]
	s.Pin = ring.Pin{Image: image}
	s.Version = ring.VersionOf(&app, s, s.Pin)
	a := ring.Action{Source: "prod", App: app.Name, Service: s.Name, Slot: 1, Version: s.Version, Commit: app.Commit, Of: &app, Want: s, Networks: map[string]string{}, Start: true}
	for _, n := range app.Networks {
		a.Kind, a.Network, a.NetworkName = ring.DoNetwork, &n, n.EngineName(app.Name)
		a.Networks[n.Key] = a.NetworkName
		if _, err := d.Do(t.Context(), a); err != nil {
			return err
		}
	}
	a.Kind = ring.DoCreate
	_, err = d.Do(t.Context(), a)
	return err
}

// onEngine are containers of a host, and what the vector declares besides: its volumes and
// networks. An ordinary network of an app may have been made before the rest was refused.
func onEngine(t *testing.T, at *client.Client, host, top string) (names []string) {
	t.Helper()
	f := filters.NewArgs(filters.Arg("label", "gitring.host="+host))
	containers, err := at.ContainerList(t.Context(), container.ListOptions{All: true, Filters: f})
	require.NoError(t, err)
	for _, c := range containers {
		names = append(names, c.Names...)
	}
	volumes, err := at.VolumeList(t.Context(), volume.ListOptions{Filters: f})
	require.NoError(t, err)
	for _, v := range volumes.Volumes {
		names = append(names, v.Name)
	}
	networks, err := at.NetworkList(t.Context(), network.ListOptions{Filters: f})
	require.NoError(t, err)
	for _, n := range networks {
		if strings.HasPrefix(top, "networks:") {
			names = append(names, n.Name)
		}
	}
	return names
}

func dropAll(t *testing.T, at *client.Client, host string) {
	ctx := context.WithoutCancel(t.Context())
	f := filters.NewArgs(filters.Arg("label", "gitring.host="+host))
	containers, _ := at.ContainerList(ctx, container.ListOptions{All: true, Filters: f})
	for _, c := range containers {
		require.NoError(t, at.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}))
	}
	networks, _ := at.NetworkList(ctx, network.ListOptions{Filters: f})
	for _, n := range networks {
		require.NoError(t, at.NetworkRemove(ctx, n.ID))
	}
	volumes, _ := at.VolumeList(ctx, volume.ListOptions{Filters: f})
	for _, v := range volumes.Volumes {
		require.NoError(t, at.VolumeRemove(ctx, v.Name, true))
	}
}

// engineForTests skips only where no engine answers and none was promised.
func engineForTests(t *testing.T) *client.Client {
	t.Helper()
	at, err := client.NewClientWithOpts(client.WithHost(runtime.DefaultURL), client.WithAPIVersionNegotiation())
	require.NoError(t, err)
	t.Cleanup(func() { _ = at.Close() })
	if _, err := at.Ping(t.Context()); err != nil && os.Getenv("GITRING_ENGINE_TESTS") != "1" {
		t.Skipf("no engine answers: %v", err)
	}
	return at
}

// imageForTests is the ID of an image from scratch with the test's own program in it.
func imageForTests(t *testing.T, at *client.Client) string {
	t.Helper()
	const name = "gitring-test/escapes:1"
	bin := filepath.Join(t.TempDir(), "app")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "../../runtime/testdata/app")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	program, err := os.ReadFile(bin)
	require.NoError(t, err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "app", Mode: 0o755, Size: int64(len(program)), Typeflag: tar.TypeReg}))
	_, err = w.Write(program)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	body, err := at.ImageImport(t.Context(), image.ImportSource{Source: &b, SourceName: "-"}, name, image.ImportOptions{})
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, body)
	require.NoError(t, err)
	require.NoError(t, body.Close())
	got, err := at.ImageInspect(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = at.ImageRemove(context.WithoutCancel(t.Context()), name, image.RemoveOptions{PruneChildren: true})
	})
	return got.ID
}
