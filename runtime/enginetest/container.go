package enginetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/pkg/stdcopy"
	units "github.com/docker/go-units"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gitring/gitring/ring"
)

// fakeContainer is kept in the engine's own form; c is never handed out itself.
type fakeContainer struct {
	c     container.InspectResponse
	n     int // in order of creation
	image *fakeImage
	log   strings.Builder
	// broken is that it is never started.
	broken bool
}

func (c *fakeContainer) policy() container.RestartPolicy { return c.c.HostConfig.RestartPolicy }

func (c *fakeContainer) name() string { return strings.TrimPrefix(c.c.Name, "/") }

// copy is what an inspect hands out.
func (c *fakeContainer) copy() container.InspectResponse {
	base, st, hc, cfg := *c.c.ContainerJSONBase, *c.c.State, *c.c.HostConfig, *c.c.Config
	if st.Health != nil {
		h := *st.Health
		st.Health = &h
	}
	base.State, base.HostConfig = &st, &hc
	nets := map[string]*network.EndpointSettings{}
	for name, e := range c.c.NetworkSettings.Networks {
		nets[name] = e.Copy()
	}
	return container.InspectResponse{
		ContainerJSONBase: &base, Config: &cfg, Mounts: slices.Clone(c.c.Mounts),
		NetworkSettings: &container.NetworkSettings{Networks: nets},
	}
}

func (m *Client) sorted() []*fakeContainer {
	all := make([]*fakeContainer, 0, len(m.containers))
	for _, c := range m.containers {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *fakeContainer) int { return cmp.Compare(a.n, b.n) })
	return all
}

// find takes an ID, a name, or the first digits of an ID.
func (m *Client) find(ref string) *fakeContainer {
	if c := m.containers[ref]; c != nil || ref == "" {
		return c
	}
	var byPrefix *fakeContainer
	for _, c := range m.sorted() {
		if c.name() == strings.TrimPrefix(ref, "/") {
			return c
		}
		if strings.HasPrefix(c.c.ID, ref) {
			byPrefix = c
		}
	}
	return byPrefix
}

func (m *Client) must(ref string) (*fakeContainer, error) {
	if c := m.find(ref); c != nil {
		return c, nil
	}
	return nil, Refuse(cerrdefs.ErrNotFound, "No such container: %s", ref)
}

func (m *Client) stamp() string { return m.now().UTC().Format(time.RFC3339Nano) }

const never = "0001-01-01T00:00:00Z"

func (m *Client) add(name string, cfg *container.Config, hc *container.HostConfig, nets map[string]*network.EndpointSettings) *fakeContainer {
	id := m.id("container")
	cfg2, hc2 := *cfg, *hc
	if cfg2.Hostname == "" {
		cfg2.Hostname = id[:12]
	}
	c := &fakeContainer{n: m.made, image: m.image(cfg.Image), c: container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{
			ID: id, Name: "/" + name, Created: m.stamp(), Platform: "linux", HostConfig: &hc2,
			State: &container.State{Status: container.StateCreated, StartedAt: never, FinishedAt: never},
		},
		Config:          &cfg2,
		NetworkSettings: &container.NetworkSettings{Networks: map[string]*network.EndpointSettings{}},
	}}
	if c.image != nil {
		c.c.Image = c.image.id
	}
	if mode := string(hc.NetworkMode); !hc.NetworkMode.IsContainer() {
		e := nets[mode]
		if e == nil {
			e = &network.EndpointSettings{}
		}
		c.c.NetworkSettings.Networks[mode] = e.Copy()
	}
	m.containers[id] = c
	m.emit("create", c)
	return c
}

func (m *Client) ContainerCreate(ctx context.Context, cfg *container.Config, hc *container.HostConfig, nc *network.NetworkingConfig, _ *ocispec.Platform, name string) (container.CreateResponse, error) {
	return call(ctx, m, "ContainerCreate", func() (container.CreateResponse, error) {
		img := m.image(cfg.Image)
		if img == nil {
			return container.CreateResponse{}, Refuse(cerrdefs.ErrNotFound, "No such image: %s", cfg.Image)
		}
		for _, mt := range hc.Mounts {
			if _, err := os.Lstat(mt.Source); mt.Type == mount.TypeBind && err != nil {
				return container.CreateResponse{}, Refuse(cerrdefs.ErrInvalidArgument, `invalid mount config for type "bind": bind source path does not exist: %s`, mt.Source)
			}
		}
		if err := m.canJoin(hc); err != nil {
			return container.CreateResponse{}, err
		}
		if h := cfg.Healthcheck; h != nil && h.StartInterval != 0 { // as the client does before 1.44
			return container.CreateResponse{}, fmt.Errorf(`"specify health-check start interval" requires API version 1.44, but the Docker daemon API version is %s`, API)
		}
		for _, c := range m.containers {
			if c.name() == name {
				return container.CreateResponse{}, Refuse(cerrdefs.ErrConflict, "Conflict. The container name %q is already in use by container %q. You have to remove (or rename) that container to be able to reuse that name.", "/"+name, c.c.ID)
			}
		}
		var nets map[string]*network.EndpointSettings
		if nc != nil {
			nets = nc.EndpointsConfig
			if len(nets) > 1 { // as the API does before 1.44
				return container.CreateResponse{}, Refuse(cerrdefs.ErrInvalidArgument, "Container cannot be connected to network endpoints: more than one")
			}
		}
		c := m.add(name, cfg, hc, nets)
		m.mounts(c)
		return container.CreateResponse{ID: c.c.ID}, nil
	})
}

// canJoin says whether the containers that a create names are there. The one
// of a network is looked for at the start only.
func (m *Client) canJoin(hc *container.HostConfig) error {
	names := []string{hc.PidMode.Container(), hc.IpcMode.Container()}
	for _, from := range hc.VolumesFrom {
		name, _, _ := strings.Cut(from, ":")
		names = append(names, name)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if _, err := m.must(name); err != nil {
			return err
		}
	}
	return nil
}

// mounts are what c takes from others and has itself. A volume that is not there
// is made, and so is one for each VOLUME of the image that nothing covers.
func (m *Client) mounts(c *fakeContainer) {
	hc := c.c.HostConfig
	at := map[string]container.MountPoint{}
	for _, from := range hc.VolumesFrom {
		name, mode, _ := strings.Cut(from, ":")
		for _, p := range m.find(name).c.Mounts {
			p.RW = p.RW && mode != "ro"
			at[p.Destination] = p
		}
	}
	for _, b := range hc.Binds {
		source, rest, _ := strings.Cut(b, ":")
		target, mode, _ := strings.Cut(rest, ":")
		at[target] = container.MountPoint{
			Type: mount.TypeBind, Source: source, Destination: target, Mode: mode,
			RW: !slices.Contains(strings.Split(mode, ","), "ro"),
		}
	}
	for _, mt := range hc.Mounts {
		p := container.MountPoint{Type: mt.Type, Destination: mt.Target, RW: !mt.ReadOnly, Source: mt.Source}
		if mt.Type == mount.TypeVolume {
			p.Name, p.Source = mt.Source, m.volumeAt(mt.Source)
		}
		at[mt.Target] = p
	}
	if c.image != nil {
		for _, target := range c.image.Volumes {
			if _, covered := at[target]; !covered {
				name := m.id("volume")
				at[target] = container.MountPoint{Type: mount.TypeVolume, Name: name, Source: m.volumeAt(name), Destination: target, RW: true}
			}
		}
	}
	for _, target := range slices.Sorted(maps.Keys(at)) {
		c.c.Mounts = append(c.c.Mounts, at[target])
	}
}

func (m *Client) volumeAt(name string) string {
	if m.volumes[name] == nil {
		m.volumes[name] = map[string]string{}
	}
	return "/var/lib/docker/volumes/" + name + "/_data"
}

func (m *Client) ContainerList(ctx context.Context, o container.ListOptions) ([]container.Summary, error) {
	return call(ctx, m, "ContainerList", func() ([]container.Summary, error) {
		var list []container.Summary
		for _, c := range m.sorted() {
			if !o.All && !c.c.State.Running || !o.Filters.MatchKVList("label", c.c.Config.Labels) {
				continue
			}
			s := container.Summary{
				ID: c.c.ID, Names: []string{c.c.Name}, Image: c.c.Config.Image, ImageID: c.c.Image, Labels: c.c.Config.Labels,
				State: c.c.State.Status, Status: m.status(c), Mounts: slices.Clone(c.c.Mounts), NetworkSettings: &container.NetworkSettingsSummary{Networks: map[string]*network.EndpointSettings{}},
			}
			for name, e := range c.c.NetworkSettings.Networks {
				s.NetworkSettings.Networks[name] = e.Copy()
			}
			if c.c.State.Running {
				for _, p := range published(c) {
					n, _ := strconv.ParseUint(p.HostPort, 10, 16)
					s.Ports = append(s.Ports, container.Port{IP: p.HostIP, PublicPort: uint16(n), Type: p.Protocol})
				}
			}
			list = append(list, s)
		}
		return list, nil
	})
}

// status is the engine's text for people.
func (m *Client) status(c *fakeContainer) string {
	st := c.c.State
	ago := func(s string) string {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			panic(err) // every time here was written by stamp
		}
		return units.HumanDuration(m.now().Sub(t))
	}
	switch st.Status {
	case container.StateRunning:
		if h := st.Health; h != nil && h.Status == container.Starting {
			return "Up " + ago(st.StartedAt) + " (health: starting)"
		} else if h != nil {
			return "Up " + ago(st.StartedAt) + " (" + h.Status + ")"
		}
		return "Up " + ago(st.StartedAt)
	case container.StateExited:
		return fmt.Sprintf("Exited (%d) %s ago", st.ExitCode, ago(st.FinishedAt))
	}
	return "Created"
}

func (m *Client) ContainerInspect(ctx context.Context, id string) (container.InspectResponse, error) {
	return call(ctx, m, "ContainerInspect", func() (container.InspectResponse, error) {
		c, err := m.must(id)
		if err != nil {
			return container.InspectResponse{}, err
		}
		return c.copy(), nil
	})
}

func (m *Client) ContainerStart(ctx context.Context, id string, _ container.StartOptions) error {
	return m.do(ctx, "ContainerStart", func() error {
		c, err := m.must(id)
		if err != nil || c.c.State.Running {
			return err
		}
		return m.begin(c)
	})
}

// begin starts the process, or says why not in the engine's words.
func (m *Client) begin(c *fakeContainer) error {
	if m.breaks > 0 && c.c.State.StartedAt == never && !c.broken {
		c.broken, m.breaks = true, m.breaks-1
	}
	if c.broken {
		return Refuse(cerrdefs.ErrConflict, "task %s: already exists", c.c.ID)
	}
	if err := m.joinedRun(c.c.HostConfig); err != nil {
		return err
	}
	for name, e := range c.c.NetworkSettings.Networks {
		n := m.network(name)
		if e.NetworkID != "" {
			n = m.networks[e.NetworkID]
		}
		if n == nil {
			return Refuse(cerrdefs.ErrNotFound, "network %s not found", name)
		}
		e.NetworkID, e.EndpointID = n.ID, m.id("endpoint")
		if name != network.NetworkNone && name != network.NetworkHost {
			e.IPAddress = m.address(e)
		}
	}
	if err := m.portsFree(c); err != nil {
		return err
	}
	if prog := program(c.c.Config); c.image != nil && len(c.image.Programs) > 0 && prog != "" && !slices.Contains(c.image.Programs, prog) {
		c.c.State.ExitCode = 127
		return Refuse(cerrdefs.ErrInvalidArgument, `OCI runtime create failed: container_linux.go:380: starting container process caused: exec: "%s": stat %s: no such file or directory: unknown`, prog, prog)
	}
	st := c.c.State
	st.Status, st.Running, st.StartedAt, st.ExitCode, st.OOMKilled = container.StateRunning, true, m.stamp(), 0, false
	st.Health = nil
	if h := c.c.Config.Healthcheck; h != nil && len(h.Test) > 0 && h.Test[0] != "NONE" {
		st.Health = &container.Health{Status: container.Starting}
	}
	if c.image != nil {
		c.log.WriteString(c.image.Logs)
	}
	m.emit("start", c)
	return nil
}

// joinedRun says whether the containers whose namespaces are joined run.
func (m *Client) joinedRun(hc *container.HostConfig) error {
	for _, j := range []struct{ id, refusal string }{
		{hc.NetworkMode.ConnectedContainer(), "cannot join network of a non running container: %s"},
		{hc.PidMode.Container(), "container %s is not running"},
		{hc.IpcMode.Container(), "can't join IPC of container %[1]s: container %[1]s is not running"},
	} {
		if j.id == "" {
			continue
		}
		o, err := m.must(j.id)
		if err != nil {
			return err
		}
		if !o.c.State.Running {
			return Refuse(cerrdefs.ErrConflict, j.refusal, o.c.ID)
		}
	}
	if o := m.find(hc.IpcMode.Container()); o != nil && !o.c.HostConfig.IpcMode.IsShareable() && !o.c.HostConfig.IpcMode.IsHost() {
		return Refuse(cerrdefs.ErrInvalidArgument, "can't join IPC of container %s: non-shareable IPC (hint: use IpcMode:shareable for the donor container)", o.c.ID)
	}
	return nil
}

func program(cfg *container.Config) string {
	if len(cfg.Entrypoint) > 0 {
		return cfg.Entrypoint[0]
	}
	if len(cfg.Cmd) > 0 {
		return cfg.Cmd[0]
	}
	return ""
}

func (m *Client) address(e *network.EndpointSettings) string {
	if e.IPAMConfig != nil && e.IPAMConfig.IPv4Address != "" {
		return e.IPAMConfig.IPv4Address
	}
	m.made++
	return fmt.Sprintf("172.30.%d.%d", m.made/250, m.made%250+2)
}

// portsFree says whether another running container holds a host port of c.
func (m *Client) portsFree(c *fakeContainer) error {
	for _, p := range published(c) {
		for _, o := range m.containers {
			if o != c && o.c.State.Running && slices.ContainsFunc(published(o), p.Clashes) {
				return Refuse(cerrdefs.ErrInternal, "driver failed programming external connectivity on endpoint %s: Bind for 0.0.0.0:%s failed: port is already allocated", c.name(), p.HostPort)
			}
		}
	}
	return nil
}

// published are the ports of the host that a container asks for.
func published(c *fakeContainer) []ring.Port {
	var out []ring.Port
	for p, bs := range c.c.HostConfig.PortBindings {
		for _, b := range bs {
			out = append(out, ring.Port{HostIP: b.HostIP, HostPort: b.HostPort, Protocol: p.Proto()})
		}
	}
	return out
}

// end is the end of the process.
func (m *Client) end(c *fakeContainer, code int, oom bool) {
	st := c.c.State
	st.Status, st.Running, st.FinishedAt, st.ExitCode, st.OOMKilled = container.StateExited, false, m.stamp(), code, oom
	for _, e := range c.c.NetworkSettings.Networks {
		e.EndpointID, e.IPAddress = "", ""
	}
	if oom {
		m.emit("oom", c)
	}
	m.emitWith("die", c, map[string]string{"exitCode": strconv.Itoa(code)})
}

func (m *Client) restartByPolicy(c *fakeContainer) {
	p := c.policy()
	again := p.IsAlways() || p.IsUnlessStopped() ||
		p.IsOnFailure() && c.c.State.ExitCode != 0 && (p.MaximumRetryCount == 0 || c.c.RestartCount < p.MaximumRetryCount)
	if !again {
		return
	}
	c.c.RestartCount++
	_ = m.begin(c) // what keeps it down shows in its state
}

func (m *Client) ContainerStop(ctx context.Context, id string, _ container.StopOptions) error {
	return m.do(ctx, "ContainerStop", func() error {
		c, err := m.must(id)
		if err == nil && c.c.State.Running {
			m.end(c, 0, false)
			m.emit("stop", c)
		}
		return err
	})
}

func (m *Client) ContainerRestart(ctx context.Context, id string, _ container.StopOptions) error {
	return m.do(ctx, "ContainerRestart", func() error {
		c, err := m.must(id)
		if err != nil {
			return err
		}
		if c.c.State.Running {
			m.end(c, 0, false)
		}
		if err := m.begin(c); err != nil {
			return err
		}
		m.emit("restart", c)
		return nil
	})
}

func (m *Client) ContainerRemove(ctx context.Context, id string, o container.RemoveOptions) error {
	return m.do(ctx, "ContainerRemove", func() error {
		c, err := m.must(id)
		if err != nil {
			return err
		}
		if c.c.State.Running && !o.Force {
			return Refuse(cerrdefs.ErrConflict, "You cannot remove a running container %s. Stop the container before attempting removal or force remove", c.c.ID)
		}
		if o.RemoveVolumes {
			panic("gitring asked the engine to remove volumes")
		}
		m.drop(c)
		return nil
	})
}

func (m *Client) drop(c *fakeContainer) {
	if c.c.State.Running {
		m.end(c, 137, false)
	}
	delete(m.containers, c.c.ID)
	m.emit("destroy", c)
}

func (m *Client) ContainerRename(ctx context.Context, id, name string) error {
	return m.do(ctx, "ContainerRename", func() error {
		c, err := m.must(id)
		if err != nil {
			return err
		}
		for _, x := range m.containers {
			if x.name() == name {
				return Refuse(cerrdefs.ErrConflict, "Conflict. The container name %q is already in use by container %q. You have to remove (or rename) that container to be able to reuse that name.", "/"+name, x.c.ID)
			}
		}
		c.c.Name = "/" + name
		m.emit("rename", c)
		return nil
	})
}

func (m *Client) ContainerUpdate(ctx context.Context, id string, u container.UpdateConfig) (container.UpdateResponse, error) {
	return call(ctx, m, "ContainerUpdate", func() (container.UpdateResponse, error) {
		c, err := m.must(id)
		if err != nil {
			return container.UpdateResponse{}, err
		}
		if err := container.ValidateRestartPolicy(u.RestartPolicy); err != nil {
			return container.UpdateResponse{}, Refuse(cerrdefs.ErrInvalidArgument, "%s", err)
		}
		if u.RestartPolicy.Name != "" {
			c.c.HostConfig.RestartPolicy = u.RestartPolicy
		}
		updateLimits(&c.c.HostConfig.Resources, u.Resources)
		m.emit("update", c)
		return container.UpdateResponse{}, nil
	})
}

// updateLimits changes what is not zero, as the engine does.
func updateLimits(r *container.Resources, u container.Resources) {
	set := func(to *int64, from int64) {
		if from != 0 {
			*to = from
		}
	}
	set(&r.NanoCPUs, u.NanoCPUs)
	set(&r.CPUShares, u.CPUShares)
	set(&r.CPUPeriod, u.CPUPeriod)
	set(&r.CPUQuota, u.CPUQuota)
	set(&r.Memory, u.Memory)
	set(&r.MemoryReservation, u.MemoryReservation)
	set(&r.MemorySwap, u.MemorySwap)
	if u.CpusetCpus != "" {
		r.CpusetCpus = u.CpusetCpus
	}
	if u.PidsLimit != nil {
		r.PidsLimit = u.PidsLimit
	}
}

func (m *Client) ContainerPause(ctx context.Context, id string) error {
	return m.paused(ctx, "ContainerPause", id, true)
}

func (m *Client) ContainerUnpause(ctx context.Context, id string) error {
	return m.paused(ctx, "ContainerUnpause", id, false)
}

func (m *Client) paused(ctx context.Context, method, id string, yes bool) error {
	return m.do(ctx, method, func() error {
		c, err := m.must(id)
		if err != nil {
			return err
		}
		if c.c.State.Paused == yes || !c.c.State.Running {
			return Refuse(cerrdefs.ErrConflict, "Container %s is not as it has to be", id)
		}
		c.c.State.Paused, c.c.State.Status = yes, "running"
		event := "unpause"
		if yes {
			c.c.State.Status, event = "paused", "pause"
		}
		m.emit(event, c)
		return nil
	})
}

// ContainerStatsOneShot says of what runs that it takes one core and 64 MiB.
func (m *Client) ContainerStatsOneShot(ctx context.Context, id string) (container.StatsResponseReader, error) {
	return call(ctx, m, "ContainerStatsOneShot", func() (container.StatsResponseReader, error) {
		c, err := m.must(id)
		if err != nil {
			return container.StatsResponseReader{}, err
		}
		s := container.StatsResponse{ID: id}
		if c.c.State.Running {
			s.Read = m.now()
			s.CPUStats.CPUUsage.TotalUsage = uint64(s.Read.UnixNano()) //nolint:gosec // a time of today
			s.MemoryStats = container.MemoryStats{Usage: 80 << 20, Stats: map[string]uint64{"inactive_file": 16 << 20}}
		}
		body, err := json.Marshal(s)
		return container.StatsResponseReader{Body: io.NopCloser(bytes.NewReader(body))}, err
	})
}

func (m *Client) ContainerLogs(ctx context.Context, id string, o container.LogsOptions) (io.ReadCloser, error) {
	return call(ctx, m, "ContainerLogs", func() (io.ReadCloser, error) {
		c, err := m.must(id)
		if err != nil {
			return nil, err
		}
		lines := strings.SplitAfter(c.log.String(), "\n")
		lines = lines[:len(lines)-1] // after the last line end is nothing
		var n int
		if _, err := fmt.Sscan(o.Tail, &n); err == nil && n < len(lines) {
			lines = lines[len(lines)-n:]
		}
		var b strings.Builder
		w := stdcopy.NewStdWriter(&b, stdcopy.Stdout)
		_, _ = io.WriteString(w, strings.Join(lines, "")) // to memory
		if !o.Follow || !c.c.State.Running {
			return io.NopCloser(strings.NewReader(b.String())), nil
		}
		// What follows is silence, until the reader goes.
		r, pw := io.Pipe()
		go func() {
			_, _ = io.WriteString(pw, b.String())
			<-ctx.Done()
			_ = pw.CloseWithError(ctx.Err())
		}()
		return r, nil
	})
}
