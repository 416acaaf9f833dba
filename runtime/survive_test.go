package runtime

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

// fullSpec has something in every field of ring.Spec and of what is in it.
func fullSpec(hash string) ring.Spec {
	yes := true
	return ring.Spec{
		Image: localImage, PullPolicy: "never", Mark: "2026-01-01",
		Command: []string{"serve", "two words"}, Entrypoint: []string{"/app"},
		Environment: map[string]string{"A": "1", "B": "x=y z", "EMPTY": ""},
		User:        "1000:1000", WorkingDir: "/work", Hostname: "box",
		Labels: map[string]string{"team": "blue"},
		Ports: []ring.Port{
			{HostIP: "127.0.0.1", HostPort: "0", Container: 8080, Protocol: "tcp"},
			{Container: 53, Protocol: "udp"},
		},
		Expose: []string{"9000/tcp"},
		Mounts: []ring.Mount{
			{Kind: ring.MountVolume, Source: "db", Target: "/a", NoCopy: true},
			{Kind: ring.MountVolume, Source: "ro", Target: "/b", ReadOnly: true},
			{Kind: ring.MountContent, Source: hash, File: "f", Target: "/c"},
			{Kind: ring.MountData, Source: "x/y", Target: "/d"},
			{Kind: ring.MountTmpfs, Target: "/e", Size: 1 << 20, Mode: 0o700},
			{Kind: ring.MountTmpfs, Target: "/f", Options: "noexec", Size: 1 << 20, Mode: 0o711, ReadOnly: true},
		},
		Networks: []ring.Attachment{
			{Network: "front", Aliases: []string{"www"}, IPv4: "set below"},
			{Network: "back"},
		},
		Healthcheck: &ring.Healthcheck{Test: []string{"CMD", "/app", "check"}, Interval: time.Minute, Timeout: 3 * time.Second, StartPeriod: 4 * time.Second, Retries: 5},
		StopSignal:  "SIGUSR1", StopGrace: 7 * time.Second,
		ExtraHosts: []string{"db.test:10.0.0.9"}, Init: &yes,
		Logging: &ring.Logging{Driver: "json-file", Options: map[string]string{"max-size": "1m"}},
	}
}

// keeps says, per field of ring.Spec, how the engine gives it back. A field
// that is not here fails the test: it was forgotten in payload.go, or here.
var keeps = map[string]func(t *testing.T, a ring.Action, c container.InspectResponse){
	"Image": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, a.Want.Pin.Image, c.Config.Image)
	},
	// Of these two the engine knows nothing; they are in the version.
	"PullPolicy": versioned, "Mark": versioned,
	"Command": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, a.Want.Spec.Command, []string(c.Config.Cmd))
	},
	"Entrypoint": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, a.Want.Spec.Entrypoint, []string(c.Config.Entrypoint))
	},
	"Environment": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		got := map[string]string{}
		for _, kv := range c.Config.Env {
			k, v, _ := strings.Cut(kv, "=")
			got[k] = v
		}
		delete(got, "PATH") // the engine's own default
		require.Equal(t, a.Want.Spec.Environment, got)
	},
	"User": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, a.Want.Spec.User, c.Config.User)
	},
	"WorkingDir": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, a.Want.Spec.WorkingDir, c.Config.WorkingDir)
	},
	"Hostname": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, a.Want.Spec.Hostname, c.Config.Hostname)
	},
	"Labels": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, "blue", c.Config.Labels["team"])
	},
	"Ports": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, nat.PortMap{"8080/tcp": {{HostIP: "127.0.0.1", HostPort: "0"}}, "53/udp": {{}}}, c.HostConfig.PortBindings)
	},
	"Expose": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, nat.PortSet{"8080/tcp": {}, "53/udp": {}, "9000/tcp": {}}, c.Config.ExposedPorts)
	},
	"Mounts": mountsKept,
	"Networks": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		nets := c.NetworkSettings.Networks
		require.ElementsMatch(t, slices.Collect(maps.Values(a.Networks)), slices.Collect(maps.Keys(nets)))
		front := nets[a.Networks["front"]]
		require.Subset(t, front.Aliases, []string{"web", "www"})
		require.Equal(t, a.Want.Spec.Networks[0].IPv4, front.IPAMConfig.IPv4Address)
		require.Subset(t, nets[a.Networks["back"]].Aliases, []string{"web"})
	},
	"NoNetwork": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.False(t, c.HostConfig.NetworkMode.IsNone()) // its true is a story of its own
	},
	"Healthcheck": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		h := a.Want.Spec.Healthcheck
		require.Equal(t, &container.HealthConfig{Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, StartPeriod: h.StartPeriod, Retries: h.Retries}, c.Config.Healthcheck)
	},
	"StopSignal": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, a.Want.Spec.StopSignal, c.Config.StopSignal)
	},
	"StopGrace": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, 7, *c.Config.StopTimeout)
	},
	"ExtraHosts": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, a.Want.Spec.ExtraHosts, c.HostConfig.ExtraHosts)
	},
	"Init": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.True(t, *c.HostConfig.Init)
	},
	"Logging": func(t *testing.T, a ring.Action, c container.InspectResponse) {
		require.Equal(t, container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m"}}, c.HostConfig.LogConfig)
	},
}

func versioned(t *testing.T, a ring.Action, c container.InspectResponse) {
	require.Equal(t, string(a.Version), c.Config.Labels["gitring.version"])
}

func mountsKept(t *testing.T, a ring.Action, c container.InspectResponse) {
	at := map[string]mount.Mount{}
	for _, m := range c.HostConfig.Mounts {
		at[m.Target] = m
	}
	require.Len(t, at, 5)
	require.Equal(t, mount.TypeVolume, at["/a"].Type)
	require.Equal(t, a.App+"_db", at["/a"].Source)
	require.True(t, at["/a"].VolumeOptions.NoCopy)
	require.False(t, at["/a"].ReadOnly)
	require.True(t, at["/b"].ReadOnly)
	require.Equal(t, mount.TypeBind, at["/c"].Type)
	require.True(t, at["/c"].ReadOnly)
	require.True(t, strings.HasSuffix(at["/c"].Source, a.Want.Spec.Mounts[2].Source+"/f"), at["/c"].Source)
	require.True(t, strings.HasSuffix(at["/d"].Source, "/data/x/y"), at["/d"].Source)
	require.False(t, at["/d"].ReadOnly)
	require.Equal(t, mount.Mount{Type: mount.TypeTmpfs, Target: "/e", TmpfsOptions: &mount.TmpfsOptions{SizeBytes: 1 << 20, Mode: 0o700}}, at["/e"])
	require.Equal(t, map[string]string{"/f": "noexec,ro,size=1048576,mode=711"}, c.HostConfig.Tmpfs)
}

// unfilled says which fields of v, and of what is in it, are zero.
func unfilled(v reflect.Value, path string) []string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return []string{path}
		}
		return unfilled(v.Elem(), path)
	case reflect.Struct:
		var bad []string
		for i := range v.NumField() {
			bad = append(bad, unfilled(v.Field(i), path+"."+v.Type().Field(i).Name)...)
		}
		return bad
	case reflect.Slice:
		if v.Len() == 0 {
			return []string{path}
		}
		if v.Index(0).Kind() != reflect.Struct {
			return nil
		}
		// Among the elements every field must occur.
		count := map[string]int{}
		for i := range v.Len() {
			for _, p := range unfilled(v.Index(i), path) {
				count[p]++
			}
		}
		var bad []string
		for p, n := range count {
			if n == v.Len() {
				bad = append(bad, p)
			}
		}
		return bad
	}
	if v.IsZero() {
		return []string{path}
	}
	return nil
}

// survives creates an instance of a spec in which every field is set, and asks
// the engine for each.
func survives(t *testing.T, r *rig) {
	hash := strings.Repeat("cd", 32)
	require.NoError(t, os.MkdirAll(filepath.Join(r.content, hash), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(r.content, hash, "f"), []byte("x"), 0o444))
	a := r.service(func(s *ring.Service) { s.Spec = fullSpec(hash) })
	spec := &a.Want.Spec
	attach := spec.Networks
	spec.Networks = nil
	front := r.network(t, &a, "front")
	r.network(t, &a, "back")
	addr := netip.MustParsePrefix(front.Network.Pools[0].Subnet).Addr()
	for range 5 {
		addr = addr.Next()
	}
	attach[0].IPv4 = addr.String()
	spec.Networks = attach

	require.ElementsMatch(t, []string{"Spec.NoNetwork", "Spec.Networks.IPv6"}, unfilled(reflect.ValueOf(*spec), "Spec"),
		"every field has a value in fullSpec; these two are stories of their own")
	a.Want.Version = ring.VersionOf(a.Of, a.Want, a.Want.Pin)
	a.Version, a.Start = a.Want.Version, false
	c := r.inspect(t, r.must(t, a).Instance)
	for i := range reflect.TypeFor[ring.Spec]().NumField() {
		name := reflect.TypeFor[ring.Spec]().Field(i).Name
		require.Contains(t, keeps, name, "a new field: does payload.go send it?")
		keeps[name](t, a, c)
	}
}
