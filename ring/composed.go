package ring

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ComposeRelease is the release of Docker Compose whose hash of a service Composed
// imitates. Another one may order or fill in what it hashes in another way: then it sees
// another hash, and makes a container anew, once.
const ComposeRelease = "2.29.7"

// Composed is a service as Docker Compose reads it from the folder that leave writes,
// as far as the commit says it. What gitring knows besides, which image runs and where
// data is, comes in where a hash is made of it: App.ComposeHash.
type Composed struct {
	// Keys are Compose's, in the order in which its hash takes them, but for those
	// of which gitring knows more: image, volumes and the namespaces of other services.
	Keys []ComposedKey `json:"keys,omitempty"`
	// Volumes are in the commit's order, with targets as Compose takes them; a
	// relative source is the commit's.
	Volumes []ComposeMount `json:"volumes,omitempty"`
	// EnvFiles are those of a service that has the project's .env among them, in
	// order: leave writes into that one how Compose is to read the project, which is none of
	// the service's.
	EnvFiles []ComposeEnvFile `json:"env_files,omitempty"`
	// Not is why there is no hash to be known of it, "" where there is; then only
	// Volumes are known.
	Not string `json:"not,omitempty"`
}

// ComposedKey is one key of a service and its JSON.
type ComposedKey struct {
	Name string `json:"k"`
	JSON string `json:"v"`
}

// ComposeEnvFile is an entry of env_file, its path below the app's folder.
type ComposeEnvFile struct {
	Path     string `json:"path" yaml:"path"`
	Required bool   `json:"required" yaml:"required"`
	Format   string `json:"format,omitempty" yaml:"format,omitempty"`
}

// ComposeMount is a mount as Compose's long form has it, in the order of its fields.
type ComposeMount struct {
	Type        string         `json:"type,omitempty" yaml:"type"`
	Source      string         `json:"source,omitempty" yaml:"source"`
	Target      string         `json:"target,omitempty" yaml:"target"`
	ReadOnly    bool           `json:"read_only,omitempty" yaml:"read_only,omitempty"`
	Consistency string         `json:"consistency,omitempty" yaml:"consistency,omitempty"`
	Bind        *ComposeBind   `json:"bind,omitempty" yaml:"bind,omitempty"`
	Volume      *ComposeVolume `json:"volume,omitempty" yaml:"volume,omitempty"`
	Tmpfs       *ComposeTmpfs  `json:"tmpfs,omitempty" yaml:"tmpfs,omitempty"`
}

// ComposeBind, ComposeVolume and ComposeTmpfs are what a mount says by its type.
type ComposeBind struct {
	SELinux        string `json:"selinux,omitempty" yaml:"selinux,omitempty"`
	Propagation    string `json:"propagation,omitempty" yaml:"propagation,omitempty"`
	CreateHostPath bool   `json:"create_host_path,omitempty" yaml:"create_host_path"`
}

// ComposeVolume says how a volume is mounted.
type ComposeVolume struct {
	NoCopy  bool   `json:"nocopy,omitempty" yaml:"nocopy,omitempty"`
	Subpath string `json:"subpath,omitempty" yaml:"subpath,omitempty"`
}

// ComposeTmpfs is how large a tmpfs may be, in bytes, and its permission bits.
type ComposeTmpfs struct {
	Size int64  `json:"size,string,omitempty" yaml:"size,omitempty"`
	Mode uint32 `json:"mode,omitempty" yaml:"mode,omitempty"`
}

// Composing is what the folder that leave writes depends on besides the app.
type Composing struct {
	DataRoot string // the host's; an app's own comes before it
	// Adopted says that the service runs in containers that Compose made: what is
	// handed back is then what it made them of, with nothing pinned.
	Adopted bool
	// Owners are the containers that the instance is tied to, by service.
	Owners map[string]string
}

// Handed are the mounts of s that the folder says in full, because only gitring
// knows them: its data by absolute paths, and volumes of one instance by their names.
// They stand in for those of the commit at the same target.
func (a *App) Handed(s *Service, by Composing) []ComposeMount {
	var out []ComposeMount
	for _, m := range a.Mounts(s) {
		said := s.Composed.mount(m.Target)
		switch {
		case m.Kind == MountData || m.Kind == MountSeed:
			out = append(out, ComposeMount{
				Type: "bind", Source: slotOne(path.Join(cmp.Or(a.DataRoot, by.DataRoot), m.Source)), Target: said.Target, ReadOnly: m.ReadOnly,
				// A data folder that is not there is a disk that is not: Compose is to say so.
				Bind: &ComposeBind{SELinux: m.SELinux, Propagation: m.Propagation, CreateHostPath: by.Adopted && said.Bind != nil && said.Bind.CreateHostPath},
			})
		case m.Kind == MountVolume && strings.Contains(m.Source, SlotMark):
			v := ComposeMount{Type: "volume", Source: slotOne(m.Source), Target: said.Target, ReadOnly: m.ReadOnly}
			if m.NoCopy || m.Subpath != "" {
				v.Volume = &ComposeVolume{NoCopy: m.NoCopy, Subpath: m.Subpath}
			}
			out = append(out, v)
		}
	}
	return out
}

func slotOne(source string) string { return strings.ReplaceAll(source, SlotMark, "1") }

// mount is what the commit says is mounted at target; of what it does not say, the
// target alone.
func (c *Composed) mount(target string) ComposeMount {
	if c != nil {
		for _, m := range c.Volumes {
			if path.Clean(m.Target) == target {
				return m
			}
		}
	}
	return ComposeMount{Target: target}
}

// LeftEnv is the file into which leave puts the commit's .env for the services that
// take it by env_file.
const LeftEnv = ".env.gitring"

// HandedEnvFiles are the env files that the folder says in the place of the commit's;
// nil for the commit's own.
func (s *Service) HandedEnvFiles() []ComposeEnvFile {
	if s.Composed == nil {
		return nil
	}
	out := slices.Clone(s.Composed.EnvFiles)
	for i, f := range out {
		if path.Clean(f.Path) == ".env" {
			out[i].Path = LeftEnv
		}
	}
	return out
}

// HandedImage is the image that the folder names, "" for the commit's own word.
func (s *Service) HandedImage(by Composing) string {
	if by.Adopted || !strings.Contains(s.Pin.Image, "@sha256:") {
		return ""
	}
	return s.Pin.Image
}

// ComposeHash is the hash that Compose makes of s, a service of a, as it stands in
// the folder that leave writes: a container with this hash in its label is left as it is
// by docker compose up. "" where it cannot be known or the container is to be made anew;
// why says that then, to follow "because".
func (a *App) ComposeHash(s *Service, by Composing) (hash, why string) {
	if why := a.notComposed(s, by); why != "" {
		return "", why
	}
	body := map[string]json.RawMessage{}
	for _, k := range s.Composed.Keys {
		body[k.Name] = json.RawMessage(k.JSON)
	}
	body["image"] = quoted(cmp.Or(s.HandedImage(by), s.Spec.Image))
	if all := a.composedMounts(s, by); len(all) > 0 {
		body["volumes"] = quoted(all)
	}
	for key, owner := range map[string]string{"network_mode": s.Spec.NetworkOf, "pid": s.Spec.PIDOf, "ipc": s.Spec.IPCOf} {
		if owner != "" {
			body[key] = quoted("container:" + by.Owners[owner])
		}
	}
	var from []string
	for _, v := range s.Spec.VolumesFrom {
		from = append(from, by.Owners[v.Service])
	}
	if len(from) > 0 {
		body["volumes_from"] = quoted(from)
	}
	sum := sha256.Sum256(InComposeOrder(ComposeKeys, body))
	return hex.EncodeToString(sum[:]), ""
}

// notComposed is why there is no hash of s to be had; "" when there is.
func (a *App) notComposed(s *Service, by Composing) string {
	switch {
	case s.Composed == nil:
		return "an earlier release of gitring read it"
	case s.Composed.Not != "":
		return s.Composed.Not
	}
	for _, m := range a.Mounts(s) {
		switch {
		case m.Kind == MountContent || m.Kind == MountLive:
			return fmt.Sprintf("it mounts files of the commit at %s, and in that folder they are another copy", m.Target)
		case s.Replicas > 1 && strings.Contains(m.Source, SlotMark):
			return fmt.Sprintf("each of its %d instances has a volume of its own at %s, which Compose cannot say", s.Replicas, m.Target)
		}
	}
	for _, owner := range s.Spec.Owners() {
		switch o, _ := a.Service(owner); {
		case len(s.Spec.VolumesFrom) > 1: // the order of the commit is not kept
			return "it takes the volumes of more than one service"
		case o.Replicas != 1:
			return fmt.Sprintf("each of its instances joins another one of %s", owner)
		case by.Owners[owner] == "":
			return fmt.Sprintf("it joins %s, which does not run", owner)
		}
	}
	return ""
}

// composedMounts are the volumes as Compose merges them: what is said later takes the
// place of what was said first for a target.
func (a *App) composedMounts(s *Service, by Composing) []ComposeMount {
	all := slices.Clone(s.Composed.Volumes)
	for _, h := range a.Handed(s, by) {
		if i := slices.IndexFunc(all, func(m ComposeMount) bool { return m.Target == h.Target }); i >= 0 {
			all[i] = h
		} else {
			all = append(all, h)
		}
	}
	return all
}

func quoted(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // only strings, and structs of them, come here
		panic(fmt.Sprintf("cannot encode %T: %v", v, err))
	}
	return b
}

// InComposeOrder is an object of JSON with its keys in the order of keys; others are left out.
func InComposeOrder(keys []string, body map[string]json.RawMessage) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, key := range keys {
		val, said := body[key]
		if !said {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", key, val)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// ComposeKeys are the keys of a service in the order in which Compose of
// ComposeRelease hashes them. Left out are those that it takes out before: build,
// pull_policy, scale, depends_on, and env_file, whose values are in environment by then.
var ComposeKeys = []string{
	"profiles", "annotations", "attach", "blkio_config", "cap_add", "cap_drop", "cgroup_parent", "cgroup", "cpu_count", "cpu_percent", "cpu_period",
	"cpu_quota", "cpu_rt_period", "cpu_rt_runtime", "cpus", "cpuset", "cpu_shares", "command", "configs", "container_name", "credential_spec",
	"deploy", "device_cgroup_rules", "devices", "dns", "dns_opt", "dns_search", "dockerfile", "domainname", "entrypoint", "environment", "expose",
	"external_links", "extra_hosts", "group_add", "hostname", "healthcheck", "image", "init", "ipc", "isolation", "labels", "links", "logging",
	"log_driver", "log_opt", "mem_limit", "mem_reservation", "memswap_limit", "mem_swappiness", "mac_address", "net", "network_mode", "networks",
	"oom_kill_disable", "oom_score_adj", "pid", "pids_limit", "platform", "ports", "privileged", "read_only", "restart", "runtime", "secrets",
	"security_opt", "shm_size", "stdin_open", "stop_grace_period", "stop_signal", "storage_opt", "sysctls", "tmpfs", "tty", "ulimits", "user",
	"userns_mode", "uts", "volume_driver", "volumes", "volumes_from", "working_dir",
}

// ComposeNetworkKeys are those of one network of a service, in the same way.
var ComposeNetworkKeys = []string{"priority", "aliases", "ipv4_address", "ipv6_address", "link_local_ips", "mac_address", "driver_opts"}
