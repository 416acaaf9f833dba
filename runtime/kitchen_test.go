package runtime

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// The whole way of a Compose file: read as a commit's, sent, and asked for again.
func TestKitchenSinkInMemory(t *testing.T) { kitchen(t, fakeRig(t)) }

func TestEngineKitchenSink(t *testing.T) { kitchen(t, realRig(t)) }

// read is the app of testdata/kitchen, pinned.
func (r *rig) kitchen(t *testing.T) ring.App {
	tree := fstest.MapFS{r.App + "/conf/app.conf": {Data: []byte("a=1"), Mode: 0o644}}
	for _, name := range []string{"compose.yaml", "more.env"} {
		b, err := os.ReadFile("testdata/kitchen/" + name)
		require.NoError(t, err)
		text := strings.NewReplacer("SUBNET2", enginetest.Subnet(), "SUBNET", enginetest.Subnet(), "NAME", r.App, "gr-kitchen", r.App).Replace(string(b))
		tree[r.App+"/"+name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	plan, contents := manifest.Read(&ring.Commit{SHA: ring.SHA(strings.Repeat("a", 40)), Tree: tree}, manifest.Settings{Source: "prod", Path: ".", Host: r.Host})
	require.Nil(t, plan.Refusal)
	require.Empty(t, plan.Refused)
	app, ok := plan.App(r.App)
	require.True(t, ok)
	for hash, c := range contents {
		for _, f := range c.Files {
			b, err := f.Read()
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(r.Content+"/"+hash, 0o755))
			require.NoError(t, os.WriteFile(r.Content+"/"+hash+"/"+f.Path, b, 0o444))
		}
	}
	for i := range app.Services {
		s := &app.Services[i]
		s.Pin, s.Image = ring.Pin{Image: r.Image}, ring.Image{Known: true}
		s.Version = ring.VersionOf(&app, s, s.Pin)
	}
	return app
}

func kitchen(t *testing.T, r *rig) {
	app := r.kitchen(t)
	nets := map[string]string{}
	for _, n := range app.Networks {
		nets[n.Key] = ring.NetworkName(r.App, n.Key)
		r.Must(t, ring.Action{Kind: ring.DoNetwork, App: r.App, Network: &n, NetworkName: nets[n.Key]})
	}
	ids := map[string]string{}
	made := map[string]container.InspectResponse{}
	for _, name := range []string{"vpn", "joined", "sink"} {
		s, ok := app.Service(name)
		require.True(t, ok)
		done := r.Must(t, ring.Action{Kind: ring.DoCreate, App: r.App, Service: name, Slot: 1, Version: s.Version, Of: &app, Want: &s, Networks: nets, Owners: ids})
		ids[name] = done.Instance
		made[name] = r.Inspect(t, done.Instance)
	}
	vpn := "container:" + ids["vpn"]
	j := made["joined"].HostConfig
	require.Equal(t, []string{vpn, vpn, vpn, ids["vpn"] + ":ro"}, []string{string(j.NetworkMode), string(j.PidMode), string(j.IpcMode), j.VolumesFrom[0]})
	require.EqualValues(t, "shareable", made["vpn"].HostConfig.IpcMode)
	require.Equal(t, "keys", r.VolumeLabels(t, r.App+"-keys")["com.docker.compose.volume"])
	require.Equal(t, "daily", r.VolumeLabels(t, r.App+"_data")["backup"])
	sunk(t, r, made["sink"], nets)
}

func sunk(t *testing.T, r *rig, c container.InspectResponse, nets map[string]string) {
	g, h := c.Config, c.HostConfig
	require.Equal(t, []string{"/app"}, []string(g.Entrypoint))
	require.Equal(t, []string{"serve", "now"}, []string(g.Cmd))
	require.Subset(t, g.Env, []string{"A=1", "B=x y", "C=from file"})
	require.Equal(t, []any{"1000:1000", "/work", "box", "example.test", "blue", true, true, "SIGUSR1", 7},
		[]any{g.User, g.WorkingDir, g.Hostname, g.Domainname, g.Labels["team"], g.Tty, g.OpenStdin, g.StopSignal, *g.StopTimeout})
	require.Equal(t, []string{"CMD", "/app", "check"}, g.Healthcheck.Test)
	require.Equal(t, []any{time.Minute, 3 * time.Second, 4 * time.Second, 5}, []any{g.Healthcheck.Interval, g.Healthcheck.Timeout, g.Healthcheck.StartPeriod, g.Healthcheck.Retries})
	require.Equal(t, nat.PortMap{"8080/tcp": {{HostIP: "127.0.0.1", HostPort: "18080"}}, "53/udp": {{}}}, h.PortBindings)
	require.Contains(t, g.ExposedPorts, nat.Port("9000/tcp"))
	require.Equal(t, container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m"}}, h.LogConfig)

	require.Equal(t, []any{true, true, int64(64 << 20), "gitring-test", "runc", "host", "host", 100},
		[]any{h.ReadonlyRootfs, *h.Init, h.ShmSize, h.CgroupParent, h.Runtime, string(h.CgroupnsMode), string(h.UsernsMode), h.OomScoreAdj})
	require.Equal(t, [][]string{{"10.0.0.1", "10.0.0.2"}, {"b.test"}, {"ndots:1"}, {"44"}, {"SYS_TIME"}, {"ALL"}, {"c 1:3 mr"}},
		[][]string{h.DNS, h.DNSSearch, h.DNSOptions, h.GroupAdd, plainCaps(h.CapAdd), plainCaps(h.CapDrop), h.DeviceCgroupRules})
	require.Len(t, h.ExtraHosts, 1)
	require.Regexp(t, "^host.test[:=]host-gateway$", h.ExtraHosts[0])
	require.Contains(t, h.SecurityOpt, "no-new-privileges=true")
	require.Equal(t, map[string]string{"kernel.msgmax": "65536"}, h.Sysctls)
	require.Equal(t, []container.DeviceMapping{{PathOnHost: "/dev/null", PathInContainer: "/dev/nothing", CgroupPermissions: "r"}}, h.Devices)
	require.Equal(t, container.DeviceRequest{Driver: "nvidia", Count: 2, Capabilities: [][]string{{"gpu"}}}, func() container.DeviceRequest {
		d := h.DeviceRequests[0]
		d.DeviceIDs, d.Options = nil, nil
		return d
	}())
	require.Len(t, h.Ulimits, 2)
	require.Equal(t, container.Ulimit{Name: "nofile", Soft: 1000, Hard: 2000}, *h.Ulimits[0])
	require.Equal(t, container.Ulimit{Name: "nproc", Soft: 100, Hard: 100}, *h.Ulimits[1])
	require.Equal(t, []any{int64(5e8), int64(512), "0", int64(64 << 20), int64(32 << 20), int64(128 << 20), int64(50)},
		[]any{h.NanoCPUs, h.CPUShares, h.CpusetCpus, h.Memory, h.MemoryReservation, h.MemorySwap, *h.PidsLimit})

	require.EqualValues(t, nets["front"], h.NetworkMode, "the highest priority is the first")
	require.Subset(t, c.NetworkSettings.Networks[nets["front"]].Aliases, []string{"sink", "www"})
	require.Contains(t, c.NetworkSettings.Networks, nets["back"])

	at := map[string]mount.Mount{}
	for _, m := range h.Mounts {
		at[m.Target] = m
	}
	require.Equal(t, mount.TypeVolume, at["/a"].Type)
	require.Equal(t, r.App+"_data", at["/a"].Source)
	require.True(t, at["/a"].ReadOnly)
	require.Equal(t, r.Data+"/"+r.App+"/state", at["/state"].Source)
	require.Equal(t, &mount.TmpfsOptions{SizeBytes: 1 << 20, Mode: 0o700}, at["/tmp"].TmpfsOptions)
	require.Equal(t, r.App+"_"+strings.ReplaceAll(ring.AnonymousVolume("sink", "/somewhere"), ring.SlotMark, "1"), at["/somewhere"].Source)
	require.True(t, slices.ContainsFunc(h.Binds, func(b string) bool {
		return strings.HasPrefix(b, r.Content+"/") && strings.HasSuffix(b, "/app.conf:/etc/app.conf:ro,z")
	}), "%v", h.Binds)
	require.Contains(t, h.Binds, "/var/tmp:/host:ro")
	require.Equal(t, int64(1<<20), at["/run"].TmpfsOptions.SizeBytes)

	hooks := hooksOf(g.Labels)
	require.Equal(t, []ring.Hook{{Command: []string{"/app", "tell", "A", "0"}, User: "root", WorkingDir: "/", Environment: map[string]string{"A": "2"}}}, hooks.PostStart)
	require.True(t, hooks.PreStop[0].Privileged)
}
