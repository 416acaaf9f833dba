package runtime

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/blkiodev"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime/enginetest"
)

// survived is one instance that was created of a spec, and what the engine says
// of it.
type survived struct {
	ring.Spec
	a    ring.Action
	done ring.Done
	c    container.InspectResponse
	r    *rig
}

// told reports whether the engine's API is too old for key and that this was told;
// then nothing is kept of it.
func (s survived) told(t *testing.T, key, api string) bool {
	v, err := s.r.Version(t.Context())
	require.NoError(t, err)
	old := apiBefore(v.API, api)
	found := slices.ContainsFunc(s.done.Told, func(line string) bool { return strings.Contains(line, key) })
	require.Equal(t, old, found, "%s: %v", key, s.done.Told)
	return old
}

// keeps says, per field of ring.Spec, how the engine gives it back. A field
// that is not here fails the test: it was forgotten in a payload, or here.
var keeps = map[string]func(t *testing.T, s survived){
	"Image": func(t *testing.T, s survived) { require.Equal(t, s.a.Want.Pin.Image, s.c.Config.Image) },
	// Of these the engine knows nothing; they are in the version.
	"PullPolicy": versioned, "Mark": versioned, "ContainerName": versioned, "Follows": versioned, "Cluster": versioned,

	"CommandText": func(t *testing.T, s survived) {
		if s.CommandText != "" {
			same(t, []string{"arg", "two words"}, []string(s.c.Config.Cmd))
		}
	},
	"EntrypointText": func(t *testing.T, s survived) {
		if s.EntrypointText != "" {
			same(t, []string{"/app", "serve"}, []string(s.c.Config.Entrypoint))
		}
	},
	"Command": func(t *testing.T, s survived) {
		if s.CommandText == "" {
			same(t, s.Command, []string(s.c.Config.Cmd))
		}
	},
	"Entrypoint": func(t *testing.T, s survived) {
		want := s.Entrypoint
		if s.EntrypointText != "" {
			return
		}
		if len(want) == 1 && want[0] == "" {
			want = nil // cleared
		}
		same(t, want, []string(s.c.Config.Entrypoint))
	},
	"Unset": func(t *testing.T, s survived) {
		var bare []string
		for _, kv := range s.c.Config.Env {
			if !strings.Contains(kv, "=") {
				bare = append(bare, kv)
			}
		}
		same(t, s.Unset, bare)
	},
	"Environment": func(t *testing.T, s survived) {
		got := map[string]string{}
		for _, kv := range s.c.Config.Env {
			if k, v, set := strings.Cut(kv, "="); set {
				got[k] = v
			}
		}
		delete(got, "PATH") // the engine's own default
		same(t, s.Environment, got)
	},
	"User":       func(t *testing.T, s survived) { require.Equal(t, s.User, s.c.Config.User) },
	"WorkingDir": func(t *testing.T, s survived) { require.Equal(t, s.WorkingDir, s.c.Config.WorkingDir) },
	"Hostname": func(t *testing.T, s survived) {
		if s.Hostname != "" {
			require.Equal(t, s.Hostname, s.c.Config.Hostname)
		}
	},
	"Domainname": func(t *testing.T, s survived) { require.Equal(t, s.Domainname, s.c.Config.Domainname) },
	"Labels": func(t *testing.T, s survived) {
		got := maps.Clone(s.c.Config.Labels)
		maps.DeleteFunc(got, func(k, _ string) bool {
			return k == testLabel || strings.HasPrefix(k, "gitring.") || strings.HasPrefix(k, "com.docker.compose.")
		})
		same(t, s.Labels, got)
	},
	"Annotations": func(t *testing.T, s survived) {
		if len(s.Annotations) > 0 && !s.told(t, "annotations", "1.43") {
			require.Subset(t, s.c.HostConfig.Annotations, s.Annotations)
		}
	},
	"Ports": func(t *testing.T, s survived) {
		want := nat.PortMap{}
		for _, p := range s.Ports {
			k := nat.Port(fmt.Sprintf("%d/%s", p.Container, p.Protocol))
			want[k] = append(want[k], nat.PortBinding{HostIP: p.HostIP, HostPort: p.HostPort})
			require.Contains(t, s.c.Config.ExposedPorts, k)
		}
		same(t, want, s.c.HostConfig.PortBindings)
	},
	"Expose": func(t *testing.T, s survived) {
		for _, e := range s.Expose {
			require.Equal(t, s.NetworkOf == "", contains(s.c.Config.ExposedPorts, nat.Port(e)), e)
		}
	},
	"Mounts":    mountsKept,
	"Networks":  networksKept,
	"NoNetwork": func(t *testing.T, s survived) { require.Equal(t, s.NoNetwork, s.c.HostConfig.NetworkMode.IsNone()) },
	"NetworkMode": func(t *testing.T, s survived) {
		if s.NetworkMode != "" {
			require.EqualValues(t, s.NetworkMode, s.c.HostConfig.NetworkMode)
		}
	},
	"MacAddress": func(t *testing.T, s survived) {
		if s.MacAddress != "" {
			require.Equal(t, s.MacAddress, s.mac(s.first()))
		}
	},
	"Healthcheck": func(t *testing.T, s survived) {
		h := s.Healthcheck
		if h == nil {
			require.Nil(t, s.c.Config.Healthcheck)
			return
		}
		got := s.c.Config.Healthcheck
		require.Equal(t, []any{h.Test, h.Interval, h.Timeout, h.StartPeriod, h.Retries}, []any{got.Test, got.Interval, got.Timeout, got.StartPeriod, got.Retries})
		if h.StartInterval > 0 && !s.told(t, "start_interval", "1.44") {
			require.Equal(t, h.StartInterval, got.StartInterval)
		}
	},
	"StopSignal": func(t *testing.T, s survived) { require.Equal(t, s.StopSignal, s.c.Config.StopSignal) },
	"StopGrace": func(t *testing.T, s survived) {
		if s.StopGrace == 0 {
			require.Nil(t, s.c.Config.StopTimeout)
			return
		}
		require.EqualValues(t, s.StopGrace.Seconds(), *s.c.Config.StopTimeout)
	},
	"ExtraHosts": func(t *testing.T, s survived) { same(t, s.ExtraHosts, s.c.HostConfig.ExtraHosts) },
	"Init":       func(t *testing.T, s survived) { require.Equal(t, s.Init, s.c.HostConfig.Init) },
	"Logging": func(t *testing.T, s survived) {
		if s.Logging != nil {
			require.Equal(t, container.LogConfig{Type: s.Logging.Driver, Config: s.Logging.Options}, s.c.HostConfig.LogConfig)
		}
	},
	"Platform":   func(t *testing.T, s survived) { require.Equal(t, "linux", s.c.Platform) }, // more of it is not told
	"Tty":        func(t *testing.T, s survived) { require.Equal(t, s.Tty, s.c.Config.Tty) },
	"StdinOpen":  func(t *testing.T, s survived) { require.Equal(t, s.StdinOpen, s.c.Config.OpenStdin) },
	"ReadOnly":   func(t *testing.T, s survived) { require.Equal(t, s.ReadOnly, s.c.HostConfig.ReadonlyRootfs) },
	"DNS":        func(t *testing.T, s survived) { same(t, s.DNS, s.c.HostConfig.DNS) },
	"DNSSearch":  func(t *testing.T, s survived) { same(t, s.DNSSearch, s.c.HostConfig.DNSSearch) },
	"DNSOptions": func(t *testing.T, s survived) { same(t, s.DNSOptions, s.c.HostConfig.DNSOptions) },
	"GroupAdd":   func(t *testing.T, s survived) { same(t, s.GroupAdd, s.c.HostConfig.GroupAdd) },
	"Sysctls":    func(t *testing.T, s survived) { same(t, s.Sysctls, s.c.HostConfig.Sysctls) },
	"Ulimits": func(t *testing.T, s survived) {
		var got []ring.Ulimit
		for _, u := range s.c.HostConfig.Ulimits {
			got = append(got, ring.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
		}
		same(t, s.Ulimits, got)
	},
	"ShmSize": func(t *testing.T, s survived) {
		if s.ShmSize != 0 {
			require.Equal(t, s.ShmSize, s.c.HostConfig.ShmSize)
		}
	},
	"StorageOpt": func(t *testing.T, s survived) { same(t, s.StorageOpt, s.c.HostConfig.StorageOpt) },
	"Resources":  resourcesKept,
	"PostStart":  func(t *testing.T, s survived) { same(t, s.PostStart, hooksOf(s.c.Config.Labels).PostStart) },
	"PreStop":    func(t *testing.T, s survived) { same(t, s.PreStop, hooksOf(s.c.Config.Labels).PreStop) },

	"Privileged": func(t *testing.T, s survived) { require.Equal(t, s.Privileged, s.c.HostConfig.Privileged) },
	"CapAdd":     func(t *testing.T, s survived) { same(t, s.CapAdd, plainCaps(s.c.HostConfig.CapAdd)) },
	"CapDrop":    func(t *testing.T, s survived) { same(t, s.CapDrop, plainCaps(s.c.HostConfig.CapDrop)) },
	"SecurityOpt": func(t *testing.T, s survived) {
		if slices.Contains(s.SecurityOpt, "systempaths=unconfined") || s.Privileged {
			require.Empty(t, s.c.HostConfig.MaskedPaths)
			return
		}
		require.Subset(t, s.c.HostConfig.SecurityOpt, s.SecurityOpt) // the engine adds to it
	},
	"Devices": func(t *testing.T, s survived) {
		var got []ring.Device
		for _, d := range s.c.HostConfig.Devices {
			got = append(got, ring.Device{Host: d.PathOnHost, Container: d.PathInContainer, Permissions: d.CgroupPermissions})
		}
		same(t, s.Devices, got)
	},
	"DeviceCgroupRules": func(t *testing.T, s survived) { same(t, s.DeviceCgroupRules, s.c.HostConfig.DeviceCgroupRules) },
	"DeviceRequests": func(t *testing.T, s survived) {
		var got []ring.DeviceRequest
		for _, d := range s.c.HostConfig.DeviceRequests {
			require.Len(t, d.Capabilities, 1, "all of them, not any of them")
			got = append(got, ring.DeviceRequest{Driver: d.Driver, Count: d.Count, IDs: d.DeviceIDs, Capabilities: d.Capabilities[0], Options: d.Options})
		}
		same(t, s.DeviceRequests, got)
	},
	"Runtime": func(t *testing.T, s survived) {
		if s.Runtime != "" {
			require.Equal(t, s.Runtime, s.c.HostConfig.Runtime)
		}
	},
	"CgroupParent": func(t *testing.T, s survived) { require.Equal(t, s.CgroupParent, s.c.HostConfig.CgroupParent) },
	"CgroupMode": func(t *testing.T, s survived) {
		if s.CgroupMode != "" {
			require.EqualValues(t, s.CgroupMode, s.c.HostConfig.CgroupnsMode)
		}
	},
	"PIDMode": func(t *testing.T, s survived) {
		require.EqualValues(t, joinedOr(s.a.Owners[s.PIDOf], s.PIDMode), s.c.HostConfig.PidMode)
	},
	"IPCMode": func(t *testing.T, s survived) {
		if want := joinedOr(s.a.Owners[s.IPCOf], s.IPCMode); want != "" {
			require.EqualValues(t, want, s.c.HostConfig.IpcMode)
		}
	},
	"UTSMode":    func(t *testing.T, s survived) { require.EqualValues(t, s.UTSMode, s.c.HostConfig.UTSMode) },
	"UsernsMode": func(t *testing.T, s survived) { require.EqualValues(t, s.UsernsMode, s.c.HostConfig.UsernsMode) },
	"NetworkOf": func(t *testing.T, s survived) {
		if s.NetworkOf != "" {
			require.EqualValues(t, "container:"+s.a.Owners[s.NetworkOf], s.c.HostConfig.NetworkMode)
		}
	},
	"PIDOf": joinedKept, "IPCOf": joinedKept,
	"VolumesFrom": func(t *testing.T, s survived) {
		joinedKept(t, s)
		var want []string
		for _, v := range s.VolumesFrom {
			want = append(want, s.a.Owners[v.Service]+map[bool]string{true: ":ro"}[v.ReadOnly])
		}
		same(t, want, s.c.HostConfig.VolumesFrom)
	},
}

// same is equal, none being as good as empty.
func same(t *testing.T, want, got any) {
	t.Helper()
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	if w.Len() == 0 && g.Len() == 0 {
		return
	}
	require.Equal(t, want, got)
}

func contains[K comparable, V any](m map[K]V, k K) bool { _, ok := m[k]; return ok }

// plainCaps are without the prefix that the client adds.
func plainCaps(caps []string) []string {
	var out []string
	for _, c := range caps {
		out = append(out, strings.TrimPrefix(c, "CAP_"))
	}
	return out
}

func joinedOr(owner, mode string) string {
	if owner != "" {
		return "container:" + owner
	}
	return mode
}

func joinedKept(t *testing.T, s survived) {
	var want []string
	for _, o := range s.Owners() {
		want = append(want, s.a.Owners[o])
	}
	same(t, want, instance(s.c).Joined)
}

func versioned(t *testing.T, s survived) {
	require.Equal(t, string(s.a.Version), s.c.Config.Labels["gitring.version"])
}

// first is the network that is joined first.
func (s survived) first() ring.Attachment {
	return slices.MaxFunc(s.Networks, func(a, b ring.Attachment) int { return a.Priority - b.Priority })
}

// mac is the hardware address on a network, before the container ran.
func (s survived) mac(at ring.Attachment) string {
	if m := s.c.Config.MacAddress; m != "" { //nolint:staticcheck // where older engines keep it
		return m
	}
	return s.c.NetworkSettings.Networks[s.a.Networks[at.Network]].MacAddress
}

func networksKept(t *testing.T, s survived) {
	if len(s.Networks) == 0 {
		return
	}
	nets := s.c.NetworkSettings.Networks
	require.Equal(t, s.a.Networks[s.first().Network], string(s.c.HostConfig.NetworkMode))
	require.Len(t, nets, len(s.Networks))
	for _, at := range s.Networks {
		name := s.a.Networks[at.Network]
		e := nets[name]
		require.NotNil(t, e, name)
		require.Subset(t, e.Aliases, append([]string{s.a.Service}, at.Aliases...))
		same(t, at.DriverOpts, e.DriverOpts)
		got := e.IPAMConfig
		if got == nil {
			got = &network.EndpointIPAMConfig{}
		}
		require.Equal(t, []string{at.IPv4, at.IPv6}, []string{got.IPv4Address, got.IPv6Address})
		same(t, at.LinkLocal, got.LinkLocalIPs)
		if at.MacAddress == "" {
			continue
		}
		if at.Network == s.first().Network {
			require.Equal(t, at.MacAddress, s.mac(at))
		} else if !s.told(t, "mac_address on network "+name, "1.44") {
			require.Equal(t, at.MacAddress, s.mac(at))
		}
	}
}

// bounded says where the engine has each bound.
var bounded = map[string]func(h *container.HostConfig) any{
	"NanoCPUs": func(h *container.HostConfig) any { return h.NanoCPUs }, "CPUShares": func(h *container.HostConfig) any { return h.CPUShares },
	"CPUPeriod": func(h *container.HostConfig) any { return h.CPUPeriod }, "CPUQuota": func(h *container.HostConfig) any { return h.CPUQuota },
	"CPURTPeriod":  func(h *container.HostConfig) any { return h.CPURealtimePeriod },
	"CPURTRuntime": func(h *container.HostConfig) any { return h.CPURealtimeRuntime },
	"CPUSet":       func(h *container.HostConfig) any { return h.CpusetCpus },
	"Memory":       func(h *container.HostConfig) any { return h.Memory },
	"MemorySwap":   func(h *container.HostConfig) any { return h.MemorySwap },
	"MemoryReservation": func(h *container.HostConfig) any {
		return h.MemoryReservation
	},
	"MemorySwappiness": func(h *container.HostConfig) any { return h.MemorySwappiness },
	"PidsLimit":        func(h *container.HostConfig) any { return h.PidsLimit },
	"OOMKillDisable":   func(h *container.HostConfig) any { return h.OomKillDisable != nil && *h.OomKillDisable },
	"OOMScoreAdj":      func(h *container.HostConfig) any { return h.OomScoreAdj },
	"Blkio": func(h *container.HostConfig) any {
		weights := func(all []*blkiodev.WeightDevice) (out []ring.BlkioRate) {
			for _, d := range all {
				out = append(out, ring.BlkioRate{Path: d.Path, Rate: uint64(d.Weight)})
			}
			return out
		}
		rates := func(all []*blkiodev.ThrottleDevice) (out []ring.BlkioRate) {
			for _, d := range all {
				out = append(out, ring.BlkioRate{Path: d.Path, Rate: d.Rate})
			}
			return out
		}
		b := &ring.Blkio{
			Weight: h.BlkioWeight, WeightDevice: weights(h.BlkioWeightDevice),
			DeviceReadBps: rates(h.BlkioDeviceReadBps), DeviceReadIOps: rates(h.BlkioDeviceReadIOps),
			DeviceWriteBps: rates(h.BlkioDeviceWriteBps), DeviceWriteIOps: rates(h.BlkioDeviceWriteIOps),
		}
		if reflect.DeepEqual(*b, ring.Blkio{}) {
			return (*ring.Blkio)(nil)
		}
		return b
	},
}

func resourcesKept(t *testing.T, s survived) {
	if s.Resources == nil {
		return
	}
	v := reflect.ValueOf(*s.Resources)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		require.Contains(t, bounded, name, "a new bound: does resources.go send it?")
		if !v.Field(i).IsZero() { // else it is the engine's to say
			require.Equal(t, v.Field(i).Interface(), bounded[name](s.c.HostConfig), name)
		}
	}
}

// bindOf is a line of the engine's older form.
func bindOf(source string, m ring.Mount) string {
	var mode []string
	if m.ReadOnly || m.Kind == ring.MountContent {
		mode = append(mode, "ro")
	}
	if m.SELinux != "" {
		mode = append(mode, m.SELinux)
	}
	if m.Propagation != "" {
		mode = append(mode, m.Propagation)
	}
	line := source + ":" + m.Target
	if len(mode) > 0 {
		line += ":" + strings.Join(mode, ",")
	}
	return line
}

func mountsKept(t *testing.T, s survived) {
	at := map[string]mount.Mount{}
	for _, m := range s.c.HostConfig.Mounts {
		at[m.Target] = m
	}
	count := len(s.c.HostConfig.Mounts) + len(s.c.HostConfig.Binds) + len(s.c.HostConfig.Tmpfs)
	require.Equal(t, len(s.Mounts), count)
	for _, m := range s.Mounts {
		got := at[m.Target]
		source := m.Source
		switch m.Kind {
		case ring.MountTmpfs:
			if m.Options != "" {
				require.Equal(t, fmt.Sprintf("%s%s,size=%d,mode=%o", m.Options, map[bool]string{true: ",ro"}[m.ReadOnly], m.Size, m.Mode), s.c.HostConfig.Tmpfs[m.Target])
				continue
			}
			require.Equal(t, mount.TypeTmpfs, got.Type)
			require.Equal(t, m.ReadOnly, got.ReadOnly)
			if m.Size != 0 || m.Mode != 0 {
				require.Equal(t, &mount.TmpfsOptions{SizeBytes: m.Size, Mode: os.FileMode(m.Mode)}, got.TmpfsOptions)
			}
			continue
		case ring.MountVolume:
			require.Equal(t, mount.TypeVolume, got.Type)
			require.Equal(t, s.a.App+"_"+m.Source, got.Source)
			require.Equal(t, m.NoCopy, got.VolumeOptions != nil && got.VolumeOptions.NoCopy)
			require.Equal(t, m.ReadOnly, got.ReadOnly)
			continue
		case ring.MountContent:
			source = filepath.Join(s.r.Content, m.Source, m.File)
		case ring.MountData, ring.MountSeed:
			source = filepath.Join(s.r.Data, m.Source)
		}
		if m.SELinux != "" || m.Create {
			require.Contains(t, s.c.HostConfig.Binds, bindOf(source, m))
			continue
		}
		require.Equal(t, mount.TypeBind, got.Type, m.Target)
		require.Equal(t, source, got.Source)
		require.Equal(t, m.ReadOnly || m.Kind == ring.MountContent, got.ReadOnly)
		require.Equal(t, m.Propagation, string(func() mount.Propagation {
			if got.BindOptions == nil {
				return ""
			}
			return got.BindOptions.Propagation
		}()))
	}
}

// unkept are the fields that only some engines keep, by what stands in the way:
// on a real one they are not asked for. The engine in memory keeps what it is given.
var unkept = map[string]string{
	"Spec.StorageOpt":                 "takes overlay2 on xfs with pquota",
	"Spec.Resources.CPURTPeriod":      "takes a kernel with CONFIG_RT_GROUP_SCHED",
	"Spec.Resources.CPURTRuntime":     "takes a kernel with CONFIG_RT_GROUP_SCHED",
	"Spec.Resources.MemorySwappiness": "cgroup version 1 only",
	"Spec.Resources.OOMKillDisable":   "cgroup version 1 only",
	"Spec.Resources.Blkio":            "takes a kernel with its I/O scheduler",
}

// survives creates instances of random specs, and asks the engine for every
// field. Together they have something in every field.
func survives(t *testing.T, r *rig) {
	real := r.opts.URL != "memory"
	rounds := map[bool]int{true: 24, false: 60}[real]
	hash := strings.Repeat("cd", 32)
	require.NoError(t, os.MkdirAll(filepath.Join(r.Content, hash), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(r.Content, hash, "f"), []byte("x"), 0o444))
	base := r.CreateAction(nil)
	front, back := r.twofold(t, &base, "front"), r.twofold(t, &base, "back")
	owner := r.CreateAction(func(s *ring.Service) { s.Name = "vpn" })
	owner.Start = false
	id := r.Must(t, owner).Instance

	filled := map[string]bool{}
	for seed := range rounds {
		d := newDrawn(uint64(seed), hash, front, back)
		a := r.CreateAction(func(s *ring.Service) { s.Spec = d.spec() })
		if real {
			drop(&a.Want.Spec)
		}
		if real && onPodman() {
			dropRefused(&a.Want.Spec)
		}
		a.Of.Networks, a.Networks, a.Start = base.Of.Networks, base.Networks, false
		a.Of.Services = []ring.Service{*owner.Want, *a.Want}
		a.Owners = map[string]string{"vpn": id}
		a.Slot = seed + 2
		fill(filled, reflect.ValueOf(a.Want.Spec), "Spec")
		done, err := r.Do(t.Context(), a)
		require.NoError(t, err, "seed %d: %+v", seed, a.Want.Spec)
		s := survived{Spec: a.Want.Spec, a: a, done: done, c: r.Inspect(t, done.Instance), r: r}
		for i := range reflect.TypeFor[ring.Spec]().NumField() {
			name := reflect.TypeFor[ring.Spec]().Field(i).Name
			require.Contains(t, keeps, name, "a new field: does a payload send it?")
			told := keeps[name]
			if other := podmanKeeps[name]; other != nil && onPodman() {
				told = other
			}
			t.Run(fmt.Sprintf("%d %s", seed, name), func(t *testing.T) { told(t, s) })
		}
	}
	for _, path := range leaves(reflect.TypeFor[ring.Spec](), "Spec") {
		if path == "Spec.Mounts.Rest" || path == "Spec.Mounts.MustExist" {
			continue // no request carries them; live_test.go makes live folders, payload_test.go makes no folder
		}
		if path == "Spec.Ports.Mode" || path == "Spec.Mounts.Secret" || strings.HasPrefix(path, "Spec.Cluster.") {
			continue // a swarm's alone; swarm_engine_test.go shows what one keeps of them
		}
		if path == "Spec.Networks.Unnamed" {
			continue // it takes a name away; endpoint_test.go shows the request
		}
		if path == "Spec.Mounts.Subpath" {
			continue // needs a newer API than the engine in memory has; payload_test.go shows the request
		}
		why, left := "", false
		for at := path; at != "Spec" && !left; at = at[:strings.LastIndex(at, ".")] {
			why, left = unkept[at]
		}
		if real && (left || onPodman() && podmanRefuses(path)) {
			t.Logf("%s was left to the engine in memory: %s", path, why)
			continue
		}
		require.True(t, filled[path], "no spec had anything in %s", path)
	}
}

// twofold makes a network of both address families, and gives addresses in it
// that nobody has.
func (r *rig) twofold(t *testing.T, a *ring.Action, key string) [2]string {
	six := fmt.Sprintf("fd00:%x:%x::/64", rand.IntN(1<<16), rand.IntN(1<<16))
	n := ring.Network{Key: key, IPv6: true, Pools: []ring.Pool{{Subnet: enginetest.Subnet()}, {Subnet: six}}}
	r.Must(t, ring.Action{Kind: ring.DoNetwork, App: r.App, Network: &n, NetworkName: ring.NetworkName(r.App, key)})
	a.Of.Networks = append(a.Of.Networks, n)
	a.Networks[key] = ring.NetworkName(r.App, key)
	return [2]string{addressIn(n.Pools[0]), addressIn(n.Pools[1])}
}

// drop takes out what this engine may not keep.
func drop(s *ring.Spec) {
	s.StorageOpt = nil
	if s.Resources != nil {
		b := *s.Resources
		b.CPURTPeriod, b.CPURTRuntime, b.MemorySwappiness, b.OOMKillDisable, b.Blkio = 0, 0, nil, false, nil
		s.Resources = &b
	}
}

// leaves are the paths of a type down to what is not a struct.
func leaves(t reflect.Type, path string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return leaves(t.Elem(), path)
	case reflect.Struct:
		var out []string
		for i := range t.NumField() {
			out = append(out, leaves(t.Field(i).Type, path+"."+t.Field(i).Name)...)
		}
		return out
	}
	return []string{path}
}

// fill notes the leaves of v that are not zero.
func fill(filled map[string]bool, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			filled[path] = filled[path] || v.Elem().Kind() != reflect.Struct
			fill(filled, v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(filled, v.Index(i), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(filled, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	default:
		filled[path] = filled[path] || !v.IsZero()
	}
}

var machine = "linux/" + goruntime.GOARCH
