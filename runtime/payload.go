package runtime

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/go-connections/nat"

	"github.com/gitring/gitring/ring"
)

// payload is all that creating one instance sends to the engine. It is a
// function of the action and the folders alone, and decides nothing else.
type payload struct {
	Name    string
	Config  *container.Config
	Host    *container.HostConfig
	Net     *network.NetworkingConfig // nil for network mode none
	Joins   []join                    // after create and before start: API 1.41 takes one network in create
	Volumes []volume.CreateOptions
	// Data are the folders below the data root, and Contents the mounts of the
	// content store, that must be there before.
	Data     []string
	Contents []ring.Mount
}

// join is one network to connect an instance to, by the engine's name.
type join struct {
	Network  string
	Settings *network.EndpointSettings
}

// folders is where mounts come from on this host.
type folders struct{ content, data string }

// containerPayload builds the payload of a create action. It errs only when the
// action does not name a network that the service joins.
func containerPayload(host string, a ring.Action, f folders) (payload, error) {
	s := a.Want.Spec
	p := payload{
		Name:   ring.ContainerName(a.App, a.Service, a.Slot, a.Version),
		Config: containerConfig(host, a),
		Host: &container.HostConfig{
			PortBindings: bindings(s.Ports),
			ExtraHosts:   slices.Clone(s.ExtraHosts),
			Init:         s.Init,
			// Backoff is ours until the slot is ready and its rollout complete.
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		},
	}
	if s.Logging != nil {
		p.Host.LogConfig = container.LogConfig{Type: s.Logging.Driver, Config: maps.Clone(s.Logging.Options)}
	}
	for _, m := range s.Mounts {
		p.mount(host, a, m, f)
	}
	joins, err := attachments(a)
	if err != nil {
		return payload{}, err
	}
	// Without a mode the engine would put it on its own bridge, where every
	// app meets every other.
	p.Host.NetworkMode = network.NetworkNone
	if len(joins) > 0 {
		first := joins[0]
		p.Host.NetworkMode = container.NetworkMode(first.Network)
		p.Net = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{first.Network: first.Settings}}
		p.Joins = joins[1:]
	}
	return p, nil
}

func containerConfig(host string, a ring.Action) *container.Config {
	s := a.Want.Spec
	c := &container.Config{
		Image:        a.Want.Pin.Image,
		Cmd:          slices.Clone(s.Command),
		Entrypoint:   slices.Clone(s.Entrypoint),
		User:         s.User,
		WorkingDir:   s.WorkingDir,
		Hostname:     s.Hostname,
		Labels:       containerLabels(host, a),
		StopSignal:   s.StopSignal,
		ExposedPorts: exposed(s),
	}
	for _, k := range slices.Sorted(maps.Keys(s.Environment)) {
		c.Env = append(c.Env, k+"="+s.Environment[k])
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
	}
	return c
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

// volumeKey is a volume's key in the app for this slot.
func volumeKey(source string, slot int) string {
	return strings.ReplaceAll(source, ring.SlotMark, strconv.Itoa(slot))
}

func (p *payload) mount(host string, a ring.Action, m ring.Mount, f folders) {
	e := mount.Mount{Target: m.Target, ReadOnly: m.ReadOnly}
	switch m.Kind {
	case ring.MountVolume:
		key := volumeKey(m.Source, a.Slot)
		e.Type, e.Source = mount.TypeVolume, ring.VolumeName(a.App, key)
		if m.NoCopy {
			e.VolumeOptions = &mount.VolumeOptions{NoCopy: true}
		}
		p.Volumes = append(p.Volumes, volume.CreateOptions{
			Name: e.Source, Labels: volumeLabels(host, a.App, key, declared(a.Of, m.Source))})
	case ring.MountContent:
		e.Type, e.ReadOnly = mount.TypeBind, true
		e.Source = filepath.Join(f.content, m.Source, m.File)
		p.Contents = append(p.Contents, m)
	case ring.MountData:
		e.Type, e.Source = mount.TypeBind, filepath.Join(f.data, m.Source)
		p.Data = append(p.Data, m.Source)
	case ring.MountTmpfs:
		if m.Options != "" {
			p.tmpfsAsWritten(m)
			return
		}
		e.Type = mount.TypeTmpfs
		if m.Size != 0 || m.Mode != 0 {
			e.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: m.Size, Mode: fs.FileMode(m.Mode)}
		}
	}
	p.Host.Mounts = append(p.Host.Mounts, e)
}

// tmpfsAsWritten uses the engine's older form: the newer one takes free options
// from API 1.46 on only.
func (p *payload) tmpfsAsWritten(m ring.Mount) {
	opts := []string{m.Options}
	if m.ReadOnly {
		opts = append(opts, "ro")
	}
	if m.Size != 0 {
		opts = append(opts, fmt.Sprintf("size=%d", m.Size))
	}
	if m.Mode != 0 {
		opts = append(opts, fmt.Sprintf("mode=%o", m.Mode))
	}
	if p.Host.Tmpfs == nil {
		p.Host.Tmpfs = map[string]string{}
	}
	p.Host.Tmpfs[m.Target] = strings.Join(opts, ",")
}

// declared are the user's labels of a volume.
func declared(app *ring.App, key string) map[string]string {
	for _, v := range app.Volumes {
		if v.Key == key {
			return v.Labels
		}
	}
	return nil
}

// attachments are the networks of the action's service under the engine's
// names, the first one first; none for a service without network.
func attachments(a ring.Action) ([]join, error) {
	if a.Want.Spec.NoNetwork {
		return nil, nil
	}
	var js []join
	for _, at := range a.Want.Spec.Networks {
		name := a.Networks[at.Network]
		if name == "" {
			return nil, fmt.Errorf("network %q of service %s has no name on the engine", at.Network, a.Service)
		}
		js = append(js, join{name, endpoint(a.Service, name, at)})
	}
	return js, nil
}

func endpoint(service, name string, at ring.Attachment) *network.EndpointSettings {
	e := &network.EndpointSettings{}
	if name != network.NetworkBridge { // the engine's own bridge knows no aliases
		e.Aliases = append([]string{service}, at.Aliases...)
	}
	if at.IPv4 != "" || at.IPv6 != "" {
		e.IPAMConfig = &network.EndpointIPAMConfig{IPv4Address: at.IPv4, IPv6Address: at.IPv6}
	}
	return e
}

// networkPayload is what creating a network of an app sends.
func networkPayload(host, app string, n ring.Network) network.CreateOptions {
	o := network.CreateOptions{
		Driver:     n.Driver,
		Internal:   n.Internal,
		Attachable: true, // as Compose does: people may join with docker run
		Labels:     networkLabels(host, app, n),
	}
	if o.Driver == "" {
		o.Driver = network.NetworkBridge
	}
	if n.IPv6 {
		yes := true
		o.EnableIPv6 = &yes
	}
	if len(n.Pools) == 0 {
		return o
	}
	o.IPAM = &network.IPAM{}
	for _, p := range n.Pools {
		o.IPAM.Config = append(o.IPAM.Config, network.IPAMConfig{Subnet: p.Subnet, Gateway: p.Gateway, IPRange: p.IPRange})
	}
	return o
}
