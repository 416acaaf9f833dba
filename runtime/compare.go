package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"

	"github.com/gitring/gitring/ring"
)

// composeWords are the keys of the engine's Config and HostConfig by what a
// Compose file calls them. "" is one that is compared in a way of its own, or that
// says nothing of what a service is.
var composeWords = map[string]string{
	// Compared on their own.
	"Env": "", "Labels": "", "Image": "", "Cmd": "", "Entrypoint": "", "User": "", "WorkingDir": "", "StopSignal": "", "Healthcheck": "",
	"Shell": "", "Volumes": "", "ExposedPorts": "", "Hostname": "", "Binds": "", "Mounts": "", "Tmpfs": "", "NetworkMode": "", "RestartPolicy": "",
	"VolumesFrom": "", "LogConfig": "", "PortBindings": "",
	// Of the tool that made the container, or made up by the engine.
	"AttachStdin": "", "AttachStdout": "", "AttachStderr": "", "StdinOnce": "", "OnBuild": "", "ArgsEscaped": "", "ContainerIDFile": "",
	"ConsoleSize": "", "MaskedPaths": "", "ReadonlyPaths": "", "NetworkDisabled": "", "Isolation": "", "Cgroup": "", "VolumeDriver": "",

	"Domainname": "domainname", "Tty": "tty", "OpenStdin": "stdin_open", "MacAddress": "mac_address", "StopTimeout": "stop_grace_period",
	"AutoRemove": "auto_remove", "Annotations": "annotations", "CapAdd": "cap_add", "CapDrop": "cap_drop", "CgroupnsMode": "cgroup",
	"Dns": "dns", "DnsOptions": "dns_opt", "DnsSearch": "dns_search", "ExtraHosts": "extra_hosts", "GroupAdd": "group_add", "IpcMode": "ipc",
	"Links": "links", "OomScoreAdj": "oom_score_adj", "PidMode": "pid", "Privileged": "privileged", "PublishAllPorts": "publish_all_ports",
	"ReadonlyRootfs": "read_only", "SecurityOpt": "security_opt", "StorageOpt": "storage_opt", "UTSMode": "uts", "UsernsMode": "userns_mode",
	"ShmSize": "shm_size", "Sysctls": "sysctls", "Runtime": "runtime", "Init": "init",
	"CpuShares": "cpu_shares", "Memory": "mem_limit", "NanoCpus": "cpus", "CgroupParent": "cgroup_parent", "BlkioWeight": "blkio_config.weight",
	"BlkioWeightDevice": "blkio_config.weight_device", "BlkioDeviceReadBps": "blkio_config.device_read_bps", "BlkioDeviceWriteBps": "blkio_config.device_write_bps",
	"BlkioDeviceReadIOps": "blkio_config.device_read_iops", "BlkioDeviceWriteIOps": "blkio_config.device_write_iops", "CpuPeriod": "cpu_period",
	"CpuQuota": "cpu_quota", "CpuRealtimePeriod": "cpu_rt_period", "CpuRealtimeRuntime": "cpu_rt_runtime", "CpusetCpus": "cpuset", "CpusetMems": "cpuset_mems",
	"Devices": "devices", "DeviceCgroupRules": "device_cgroup_rules", "DeviceRequests": "gpus", "KernelMemory": "kernel_memory", "KernelMemoryTCP": "kernel_memory",
	"MemoryReservation": "mem_reservation", "MemorySwap": "memswap_limit", "MemorySwappiness": "mem_swappiness", "OomKillDisable": "oom_kill_disable",
	"PidsLimit": "pids_limit", "Ulimits": "ulimits", "CpuCount": "cpu_count", "CpuPercent": "cpu_percent", "IOMaximumIOps": "blkio_config", "IOMaximumBandwidth": "blkio_config",
}

// engineDefaults are what the engine makes of a key that the payload leaves out.
var engineDefaults = map[string][]string{
	"CgroupnsMode": {`"host"`, `"private"`}, "IpcMode": {`"private"`, `"shareable"`}, "ShmSize": {"67108864"}, "Runtime": {`"runc"`},
	"MemorySwappiness": {"-1"}, "PidsLimit": {"-1"}, "StopTimeout": {"10"},
}

// differs is what of a running container is not as gitring would make it, in
// Compose's words, sorted. Values are told where they can hold no secret.
func (d *Docker) differs(ctx context.Context, e engine, a ring.Action, s *ring.Service, slot int, c container.InspectResponse) ([]string, error) {
	a.Kind, a.Service, a.Slot, a.Want, a.Networks, a.Owners = ring.DoCreate, s.Name, slot, s, map[string]string{}, map[string]string{}
	for _, n := range a.Of.Networks {
		a.Networks[n.Key] = n.EngineName(a.App)
	}
	for _, o := range s.Spec.Ties() {
		a.Owners[o] = "service:" + o
	}
	at, err := d.siteOf(ctx, e, a)
	if err != nil {
		return nil, err
	}
	p, err := containerPayload(at, a)
	if err != nil {
		return nil, fmt.Errorf("cannot compare container %s: %w", c.Name, err)
	}
	o := d.opener()
	if o.payload(p); o.err != nil {
		return nil, fmt.Errorf("cannot compare container %s: %w", c.Name, o.err)
	}
	was, err := imageBy(ctx, e, c.Image)
	if err != nil {
		return nil, err
	}
	name := p.Config.Image
	if name == "" {
		name = s.Spec.Image
	}
	will, err := imageBy(ctx, e, name)
	if err != nil {
		return nil, err
	}
	x := comparison{was: was, will: will, have: c, want: p}
	x.image(c, name)
	x.process()
	x.environment()
	x.labels()
	x.ports()
	x.mounts()
	x.networks()
	x.restart(s.Restart)
	x.others()
	slices.Sort(x.out)
	return slices.Compact(x.out), nil
}

// imageBy is an image of this host; one that is not here says nothing.
func imageBy(ctx context.Context, e engine, ref string) (image.InspectResponse, error) {
	i, err := e.ImageInspect(ctx, ref)
	if cerrdefs.IsNotFound(err) {
		return image.InspectResponse{}, nil
	}
	if err != nil {
		return i, fault("cannot inspect image "+ref, "", err)
	}
	return i, nil
}

// comparison is of a running container and the payload of the next one, each with
// what its image says.
type comparison struct {
	was, will image.InspectResponse
	have      container.InspectResponse
	want      payload
	out       []string
}

func (x *comparison) say(format string, args ...any) {
	x.out = append(x.out, fmt.Sprintf(format, args...))
}

func (x *comparison) image(c container.InspectResponse, name string) {
	switch {
	case x.will.ID == "":
		x.say("image: %s, which is not on this host yet", name)
	case x.will.ID != c.Image:
		x.say("image: %.19s -> %.19s (%s)", c.Image, x.will.ID, name)
	}
}

// process is what runs, each with the image's word where nothing else is said.
func (x *comparison) process() {
	have, want := x.have.Config, x.want.Config
	was, will := configOf(x.was), configOf(x.will)
	entry, cmd := []string(want.Entrypoint), []string(want.Cmd)
	if want.Entrypoint == nil {
		entry = will.Entrypoint
		if want.Cmd == nil {
			cmd = will.Cmd
		}
	}
	x.differ("entrypoint", slices.Equal(have.Entrypoint, entry) || len(have.Entrypoint)+len(entry) == 0)
	x.differ("command", slices.Equal(have.Cmd, cmd) || len(have.Cmd)+len(cmd) == 0)
	x.either("user", have.User, want.User, was.User, will.User)
	x.either("working_dir", have.WorkingDir, want.WorkingDir, was.WorkingDir, will.WorkingDir)
	x.either("stop_signal", have.StopSignal, want.StopSignal, was.StopSignal, will.StopSignal)
	if want.Hostname != "" {
		x.differ("hostname", have.Hostname == want.Hostname)
	}
	if want.Healthcheck != nil || have.Healthcheck != nil && text(have.Healthcheck) != text(was.Healthcheck) {
		x.differ("healthcheck", text(have.Healthcheck) == text(want.Healthcheck))
	}
	if l := x.want.Host.LogConfig; l.Type != "" {
		x.differ("logging", l.Type == x.have.HostConfig.LogConfig.Type && maps.Equal(l.Config, x.have.HostConfig.LogConfig.Config))
	} else {
		x.differ("logging", len(x.have.HostConfig.LogConfig.Config) == 0)
	}
	x.differ("volumes_from", len(x.have.HostConfig.VolumesFrom) == len(x.want.Host.VolumesFrom))
}

func configOf(i image.InspectResponse) container.Config {
	c := container.Config{}
	if i.Config == nil {
		return c
	}
	c.Env, c.Cmd, c.Entrypoint, c.User, c.WorkingDir, c.Labels = i.Config.Env, i.Config.Cmd, i.Config.Entrypoint, i.Config.User, i.Config.WorkingDir, i.Config.Labels
	c.StopSignal = i.Config.StopSignal
	if h := i.Config.Healthcheck; h != nil {
		c.Healthcheck = &container.HealthConfig{Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, StartPeriod: h.StartPeriod, Retries: h.Retries}
	}
	return c
}

// either compares a value that the image gives where nobody else does.
func (x *comparison) either(word, have, want, was, will string) {
	if want == "" {
		want = will
	}
	if have == "" {
		have = was
	}
	x.differ(word, have == want)
}

func (x *comparison) differ(word string, same bool) {
	if !same {
		x.say("%s", word)
	}
}

// environment names the variables; values may be secret.
func (x *comparison) environment() {
	have, want := variables(x.have.Config.Env), variables(slices.Concat(configOf(x.will).Env, x.want.Config.Env))
	was := variables(configOf(x.was).Env)
	for _, name := range keysOf(have, want) {
		h, there := have[name]
		w, wanted := want[name]
		if h == w && there == wanted || !wanted && there && was[name] == h {
			continue
		}
		x.say("environment %s", name)
	}
}

// variables are those that a process gets; a name alone takes an earlier value away.
func variables(env []string) map[string]string {
	out := map[string]string{}
	for _, v := range env {
		name, value, set := strings.Cut(v, "=")
		out[name] = value
		if !set {
			delete(out, name)
		}
	}
	return out
}

// labels are the user's own: those of Compose and gitring are always others.
func (x *comparison) labels() {
	have, want := own(x.have.Config.Labels), own(configOf(x.will).Labels)
	maps.Copy(want, own(x.want.Config.Labels))
	was := own(configOf(x.was).Labels)
	for _, name := range keysOf(have, want) {
		if have[name] != want[name] && !(want[name] == "" && was[name] == have[name]) {
			x.say("labels %s", name)
		}
	}
}

func keysOf(a, b map[string]string) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func (x *comparison) ports() {
	read := func(h *container.HostConfig) (out []string) {
		for port, bound := range h.PortBindings {
			for _, b := range bound {
				ip := b.HostIP
				if ip == "0.0.0.0" || ip == "::" {
					ip = ""
				}
				out = append(out, strings.TrimPrefix(ip+":"+b.HostPort+":"+string(port), ":"))
			}
		}
		slices.Sort(out)
		return out
	}
	have, want := read(x.have.HostConfig), read(x.want.Host)
	if !slices.Equal(have, want) {
		x.say("ports: %s -> %s", words(have), words(want))
	}
}

// mounts compares by target what is mounted there, and whether it may be written.
func (x *comparison) mounts() {
	have, want := map[string]string{}, map[string]string{}
	ro := func(at string, rw bool) string {
		if rw {
			return at
		}
		return at + " read-only"
	}
	for _, m := range x.have.Mounts {
		switch m.Type {
		case mount.TypeVolume:
			have[path.Clean(m.Destination)] = ro("volume "+m.Name, m.RW)
		case mount.TypeTmpfs:
			have[path.Clean(m.Destination)] = "tmpfs"
		default:
			have[path.Clean(m.Destination)] = ro(m.Source, m.RW)
		}
	}
	for target := range x.have.HostConfig.Tmpfs {
		have[path.Clean(target)] = "tmpfs"
	}
	for _, m := range x.want.Host.Mounts {
		switch m.Type {
		case mount.TypeVolume:
			want[path.Clean(m.Target)] = ro("volume "+m.Source, !m.ReadOnly)
		case mount.TypeTmpfs:
			want[path.Clean(m.Target)] = "tmpfs"
		default:
			want[path.Clean(m.Target)] = ro(m.Source, !m.ReadOnly)
		}
	}
	for _, b := range x.want.Host.Binds {
		parts := strings.SplitN(b, ":", 3)
		want[path.Clean(parts[1])] = ro(parts[0], len(parts) < 3 || !slices.Contains(strings.Split(parts[2], ","), "ro"))
	}
	for target := range x.want.Host.Tmpfs {
		want[path.Clean(target)] = "tmpfs"
	}
	for _, target := range keysOf(have, want) {
		if h, w := have[target], want[target]; h != w {
			x.say("volumes %s: %s -> %s", target, orNothing(h), orNothing(w))
		}
	}
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func (x *comparison) networks() {
	var have, want []string
	if n := x.have.NetworkSettings; n != nil {
		have = slices.Sorted(maps.Keys(n.Networks))
	}
	for _, j := range x.want.Networks {
		want = append(want, j.Network)
	}
	slices.Sort(want)
	if mode := string(x.want.Host.NetworkMode); len(want) == 0 && !strings.HasPrefix(mode, "container:") {
		want = append(want, mode)
	}
	if x.have.HostConfig.NetworkMode.IsContainer() != strings.HasPrefix(string(x.want.Host.NetworkMode), "container:") {
		x.say("network_mode")
		return
	}
	if !slices.Equal(have, want) && !x.have.HostConfig.NetworkMode.IsContainer() {
		x.say("networks: %s -> %s", words(have), words(want))
	}
}

func (x *comparison) restart(r ring.Restart) {
	have := policyOf(x.have)
	if r.Engine != "" && (have.Name != r.Engine || have.MaxRetries != r.MaxRetries) {
		x.say("restart: %s -> %s", have.Name, r.Engine)
	}
}

// others compares every key that is left.
func (x *comparison) others() {
	for _, of := range [][2]map[string]string{{keyed(x.have.Config), keyed(x.want.Config)}, {keyed(x.have.HostConfig), keyed(x.want.Host)}} {
		for _, key := range keysOf(of[0], of[1]) {
			word, known := composeWords[key]
			have, want := of[0][key], of[1][key]
			switch {
			case known && word == "" || have == want:
			case want == "" && slices.Contains(engineDefaults[key], have):
			case key == "MemorySwap" && want == "": // the engine doubles mem_limit
			case strings.HasPrefix(want, `"container:`) && strings.HasPrefix(have, `"container:`):
			default:
				x.say("%s", orKey(word, key))
			}
		}
	}
}

func orKey(word, key string) string {
	if word == "" {
		return key
	}
	return word
}

// keyed is a value of the engine's by its keys, in JSON; what is zero is left out.
func keyed(v any) map[string]string {
	out := map[string]string{}
	var all map[string]json.RawMessage
	if b, err := json.Marshal(v); err != nil || json.Unmarshal(b, &all) != nil {
		return out // values of the client's own types: both work
	}
	for key, raw := range all {
		switch s := string(raw); s {
		case "null", `""`, "0", "false", "[]", "{}":
		default:
			out[key] = s
		}
	}
	return out
}

// text is a value as it can be compared.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil || string(b) == "null" {
		return ""
	}
	return string(b)
}

func words(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
