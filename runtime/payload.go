package runtime

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gitring/gitring/ring"
)

// payload is all that creating one instance sends to the engine, with sealed
// values still sealed. It is a function of the action and the site alone, and
// decides nothing else.
type payload struct {
	Name   string
	Config *container.Config
	// CmdText and EntrypointText are split into words once they are opened; "" are none.
	CmdText, EntrypointText string
	Host                    *container.HostConfig
	Platform                *ocispec.Platform // nil is the engine's own
	// Networks are all that it joins. The first is in the create call, the others
	// come after it and before start: API 1.41 takes one network in create.
	Networks []join
	Owners   []string // container IDs that it is tied to
	// Elsewhere are those of them that are another app's, with app and service.
	Elsewhere map[string]string
	Volumes   []wantedVolume
	// DataRoot is where Data and Seeds lie. Data are the folders below it, and
	// Contents the mounts of the content store, that must be there before.
	DataRoot string
	Data     []string
	Seeds    []ring.Mount
	// Made are the paths of the host that the engine would make when they are missing.
	Made     []string
	Contents []ring.Mount
	Hooks    hooks
	Reload   *ring.Hook // nil for none
	// Front reports whether it is one, whose folders must be there before.
	Front bool
	// Told is what this engine cannot do and the instance goes without.
	Told []string
}

// join is one network to connect an instance to, by the engine's name.
type join struct {
	Network  string
	Settings *network.EndpointSettings
}

// site is what payloads depend on besides the action.
type site struct {
	host    string // the value of the owner label
	content string // the folder of contents
	at      func(hash string) string
	data    string // the host's data root; an app's own comes before it
	api     string // spoken with the engine
	front   frontSite
}

// contentAt is the folder of one content.
func (s site) contentAt(hash string) string {
	if s.at == nil {
		return filepath.Join(s.content, hash)
	}
	return s.at(hash)
}

// contentAt is the folder of one content.
func (d *Docker) contentAt(hash string) string {
	return site{content: d.opts.ContentDir, at: d.opts.ContentAt}.contentAt(hash)
}

// newestAPI stands for an engine that can do all that payloads know of.
const newestAPI = "1.51"

// can reports whether the engine has a capability.
func (s site) can(c Capability) bool { return can(s.api, c) }

// containerPayload builds the payload of a create action. It errs when the
// action names no container or network for one that the service joins, or a
// mount cannot be expressed.
func containerPayload(at site, a ring.Action) (payload, error) {
	s := a.Want.Spec
	p := payload{
		Name:    ring.ContainerName(a.App, a.Service, a.Slot, a.Version),
		Config:  containerConfig(at, a),
		CmdText: s.CommandText, EntrypointText: s.EntrypointText,
		Host:     hostConfig(s),
		DataRoot: cmp.Or(a.Of.DataRoot, at.data),
		Hooks:    hooksFor(a.Version, s),
	}
	if r := a.Want.Reload; r != nil && len(r.Exec) > 0 {
		h := reloadHook(r)
		p.Reload = &h
	}
	if err := p.join(at, a); err != nil {
		return payload{}, err
	}
	if err := p.attach(at, a); err != nil {
		return payload{}, err
	}
	for _, m := range a.Of.Mounts(a.Want) {
		if err := p.mount(at, a, m); err != nil {
			return payload{}, err
		}
	}
	if err := p.front(at, a); err != nil {
		return payload{}, err
	}
	if h := s.Healthcheck; h != nil && h.StartInterval > 0 && !at.can(StartInterval) {
		p.tell("healthcheck.start_interval", StartInterval)
	}
	if len(s.Annotations) > 0 {
		if !at.can(Annotations) {
			p.tell("annotations", Annotations)
		} else {
			p.Host.Annotations = maps.Clone(s.Annotations)
		}
	}
	if s.Platform != "" {
		want := parsePlatform(s.Platform)
		p.Platform = &ocispec.Platform{OS: want.os, Architecture: want.arch, Variant: want.variant}
	}
	return p, nil
}

// tell says that the instance goes without what a Compose key asks for.
func (p *payload) tell(key string, c Capability) {
	p.Told = append(p.Told, fmt.Sprintf("%s is left out: the engine's API is older than %s", key, since(c)))
}

func containerConfig(at site, a ring.Action) *container.Config {
	s := a.Want.Spec
	c := &container.Config{
		Image:      a.Want.Pin.Image,
		Cmd:        slices.Clone(s.Command),
		Entrypoint: entrypoint(s),
		Env:        environment(s.Environment, s.Unset),
		User:       s.User,
		WorkingDir: s.WorkingDir,
		Hostname:   s.Hostname,
		Domainname: s.Domainname,
		Labels:     containerLabels(at, a),
		StopSignal: s.StopSignal,
		Tty:        s.Tty,
		OpenStdin:  s.StdinOpen,
	}
	if s.NetworkOf == "" { // the owner's ports are what there is to expose
		c.ExposedPorts = exposed(s)
	}
	if s.StopGrace > 0 {
		sec := seconds(s.StopGrace)
		c.StopTimeout = &sec
	}
	if h := s.Healthcheck; h != nil {
		c.Healthcheck = &container.HealthConfig{
			Test: slices.Clone(h.Test), Interval: h.Interval, Timeout: h.Timeout,
			StartPeriod: h.StartPeriod, Retries: h.Retries,
		}
		if at.can(StartInterval) {
			c.Healthcheck.StartInterval = h.StartInterval
		}
	}
	return c
}

// hostConfig has all of the host's side but networks, joins and mounts.
func hostConfig(s ring.Spec) *container.HostConfig {
	h := &container.HostConfig{
		PortBindings: bindings(s.Ports),
		ExtraHosts:   slices.Clone(s.ExtraHosts),
		Init:         s.Init,
		// Backoff is ours until the slot is ready and its rollout complete.
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		ReadonlyRootfs: s.ReadOnly,
		DNS:            slices.Clone(s.DNS),
		DNSSearch:      slices.Clone(s.DNSSearch),
		DNSOptions:     slices.Clone(s.DNSOptions),
		GroupAdd:       slices.Clone(s.GroupAdd),
		Sysctls:        maps.Clone(s.Sysctls),
		ShmSize:        s.ShmSize,
		StorageOpt:     maps.Clone(s.StorageOpt),
		Privileged:     s.Privileged,
		CapAdd:         slices.Clone(s.CapAdd),
		CapDrop:        slices.Clone(s.CapDrop),
		Runtime:        s.Runtime,
		CgroupnsMode:   container.CgroupnsMode(s.CgroupMode),
		UTSMode:        container.UTSMode(s.UTSMode),
		UsernsMode:     container.UsernsMode(s.UsernsMode),
		Resources:      resources(s),
	}
	securityOpts(h, s)
	if s.Resources != nil {
		h.OomScoreAdj = s.Resources.OOMScoreAdj
	}
	if s.Logging != nil {
		h.LogConfig = container.LogConfig{Type: s.Logging.Driver, Config: maps.Clone(s.Logging.Options)}
	}
	return h
}

// environment is in the engine's form, sorted. By a name alone the engine takes the
// image's own value away.
func environment(vars map[string]string, unset []string) []string {
	var env []string
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, k+"="+vars[k])
	}
	return append(env, unset...)
}

// seconds rounds up: a grace may be longer than asked for, never shorter.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func port(p ring.Port) nat.Port { return nat.Port(fmt.Sprintf("%d/%s", p.Container, p.Protocol)) }

func exposed(s ring.Spec) nat.PortSet {
	set := nat.PortSet{}
	for _, p := range s.Ports {
		set[port(p)] = struct{}{}
	}
	for _, e := range s.Expose {
		if !strings.Contains(e, "/") {
			e += "/tcp"
		}
		set[nat.Port(e)] = struct{}{}
	}
	return set
}

func bindings(ports []ring.Port) nat.PortMap {
	m := nat.PortMap{}
	for _, p := range ports {
		m[port(p)] = append(m[port(p)], nat.PortBinding{HostIP: p.HostIP, HostPort: p.HostPort})
	}
	return m
}
