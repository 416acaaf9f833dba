package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gitring/gitring/ring"
)

// podman is Podman's service, which answers in Docker's words what it says in its own. Its
// rows stand in PodmanDifferences; each method names the one that it carries out.
type podman struct {
	engine
	// absent reports whether a path of the host is known not to be there.
	absent func(path string) bool
}

// isPodman reports whether an engine is Podman.
func isPodman(e engine) bool {
	_, is := e.(podman)
	return is
}

// spokenTo is an engine as it is spoken to from here on; an UnfitError where it is a rootless
// Podman, whose containers have no address that this host reaches.
func (d *Docker) spokenTo(ctx context.Context, e engine, v types.Version) (engine, error) {
	if podmanVersion(v) == "" {
		return e, nil
	}
	info, err := e.Info(ctx)
	if err != nil {
		return nil, fault("cannot ask the engine what it is", "", err)
	}
	if slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "rootless") }) {
		return nil, &ring.EngineError{Permanent: true, Err: &UnfitError{
			Hint: fitHint, Says: fmt.Sprintf("cannot use the engine at %s: it is Podman without root; no address of a container can be reached, so no check would answer", d.opts.URL),
		}}
	}
	return podman{e, func(path string) bool {
		d.mu.Lock()
		inside := d.inside
		d.mu.Unlock()
		if inside {
			return false // the host's paths are not ours
		}
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	}}, nil
}

// conflicting is err as the conflict that it is, where it says that a name is taken (P1).
func conflicting(err error) error {
	if err != nil && nameInUse(err.Error()) && !cerrdefs.IsConflict(err) {
		return fmt.Errorf("%w: %w", cerrdefs.ErrConflict, err)
	}
	return err
}

// nameInUse reports whether Podman says so: of a create, or of a rename.
func nameInUse(says string) bool {
	return strings.Contains(says, "that name is already in use") || strings.Contains(says, "container already exists") ||
		strings.Contains(says, "UNIQUE constraint failed: ContainerConfig.Name")
}

// ContainerCreate tells a taken name as a conflict (P1). Podman would make a folder of the host that
// nobody asked to be made (P8).
func (p podman) ContainerCreate(ctx context.Context, c *container.Config, h *container.HostConfig, n *network.NetworkingConfig, at *ocispec.Platform, name string) (container.CreateResponse, error) {
	if h != nil {
		for _, m := range h.Mounts {
			if m.Type == mount.TypeBind && (m.BindOptions == nil || !m.BindOptions.CreateMountpoint) && p.absent(m.Source) {
				return container.CreateResponse{}, fmt.Errorf("bind source path does not exist: %s: %w", m.Source, cerrdefs.ErrInvalidArgument)
			}
		}
	}
	made, err := p.engine.ContainerCreate(ctx, c, h, n, at, name)
	return made, conflicting(err)
}

// ContainerRename tells a taken name as a conflict (P1).
func (p podman) ContainerRename(ctx context.Context, id, name string) error {
	return conflicting(p.engine.ContainerRename(ctx, id, name))
}

// ContainerInspect has the image of a container that we made from an ID as that ID: Podman
// writes a name of it in its place.
func (p podman) ContainerInspect(ctx context.Context, id string) (container.InspectResponse, error) {
	c, err := p.engine.ContainerInspect(ctx, id)
	if err == nil && c.ContainerJSONBase != nil && c.HostConfig != nil && c.HostConfig.NetworkMode.IsContainer() && c.NetworkSettings != nil {
		c.NetworkSettings.Networks = nil // it has those of its owner
	}
	if err != nil || c.ContainerJSONBase == nil || c.Config == nil || c.Config.Labels[labelHost] == "" {
		return c, err
	}
	if !strings.Contains(c.Config.Image, "@") && c.Image != "" {
		c.Config.Image = "sha256:" + strings.TrimPrefix(c.Image, "sha256:")
	}
	return c, nil
}

// ContainerList has no networks of a container that is in another's.
func (p podman) ContainerList(ctx context.Context, o container.ListOptions) ([]container.Summary, error) {
	list, err := p.engine.ContainerList(ctx, o)
	for i := range list {
		if strings.HasPrefix(list[i].HostConfig.NetworkMode, "container:") {
			list[i].NetworkSettings = nil
		}
	}
	return list, err
}

// ContainerUpdate sends the restart policy that the container has with every update: without
// one Podman sets it to "no" (P4).
func (p podman) ContainerUpdate(ctx context.Context, id string, u container.UpdateConfig) (container.UpdateResponse, error) {
	if u.RestartPolicy.Name == "" {
		c, err := p.engine.ContainerInspect(ctx, id)
		if err != nil {
			return container.UpdateResponse{}, err
		}
		if c.ContainerJSONBase != nil && c.HostConfig != nil {
			u.RestartPolicy = c.HostConfig.RestartPolicy
		}
	}
	return p.engine.ContainerUpdate(ctx, id, u)
}

// errEndedWith is of a command that is gone with its container (P7).
var errEndedWith error = endedError("it ended with its container")

// endedError is an error of what the engine does not have any more.
type endedError string

func (e endedError) Error() string { return string(e) }

// NotFound puts it into that class of errors.
func (e endedError) NotFound() {}

// endedWith is errEndedWith where Podman says that it knows no such command: as not found, or
// as an error of its own where the container ends at that very moment.
func endedWith(err error) error {
	if cerrdefs.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "no such exec session") {
		return errEndedWith
	}
	return err
}

// ContainerExecAttach tells of a command that is gone with its container (P7).
func (p podman) ContainerExecAttach(ctx context.Context, exec string, o container.ExecAttachOptions) (types.HijackedResponse, error) {
	conn, err := p.engine.ContainerExecAttach(ctx, exec, o)
	return conn, endedWith(err)
}

// ContainerExecInspect tells of a command that is gone with its container (P7).
func (p podman) ContainerExecInspect(ctx context.Context, exec string) (container.ExecInspect, error) {
	st, err := p.engine.ContainerExecInspect(ctx, exec)
	return st, endedWith(err)
}

// NetworkList filters no names: Podman's own network is listed under another name than the
// one that its filter knows (P6).
func (p podman) NetworkList(ctx context.Context, o network.ListOptions) ([]network.Summary, error) {
	names := o.Filters.Get("name")
	if len(names) == 0 {
		return p.engine.NetworkList(ctx, o)
	}
	rest := o.Filters.Clone()
	for _, n := range names {
		rest.Del("name", n)
	}
	list, err := p.engine.NetworkList(ctx, network.ListOptions{Filters: rest})
	return slices.DeleteFunc(list, func(n network.Summary) bool { return !slices.Contains(names, n.Name) }), err
}

// NetworkCreate makes no second network of a name: Podman answers such a call as if it had
// made the one that is there (P5).
func (p podman) NetworkCreate(ctx context.Context, name string, o network.CreateOptions) (network.CreateResponse, error) {
	byName := network.ListOptions{Filters: filters.NewArgs(filters.Arg("name", name))}
	there, err := p.NetworkList(ctx, byName)
	if err != nil {
		return network.CreateResponse{}, err
	}
	taken := fmt.Errorf("network with name %s already exists: %w", name, cerrdefs.ErrConflict)
	if len(there) > 0 {
		return network.CreateResponse{}, taken
	}
	made, err := p.engine.NetworkCreate(ctx, name, o)
	if err != nil {
		return made, err
	}
	there, err = p.NetworkList(ctx, byName)
	if err != nil {
		return made, err
	}
	if len(there) != 1 || !maps.Equal(there[0].Labels, o.Labels) {
		return network.CreateResponse{}, taken // somebody else was faster
	}
	return made, nil
}

// NetworkRemove leaves a network that something runs on: Podman would take it away (P5).
func (p podman) NetworkRemove(ctx context.Context, id string) error {
	list, err := p.engine.ContainerList(ctx, container.ListOptions{Filters: filters.NewArgs(filters.Arg("network", id))})
	if err != nil {
		return err
	}
	if len(list) > 0 {
		return fmt.Errorf("network %s has active endpoints: %w", short(id), cerrdefs.ErrPermissionDenied)
	}
	return p.engine.NetworkRemove(ctx, id)
}

// podmanEvents are names of Podman's for what Docker calls otherwise (P3).
var podmanEvents = map[events.Action]events.Action{"died": events.ActionDie, "remove": events.ActionDestroy}

// Events asks without filters for labels and names, which Podman reads otherwise, and picks
// out what is heard (P3). Podman tells of each check; what changes no health is left out.
func (p podman) Events(ctx context.Context, o events.ListOptions) (<-chan events.Message, <-chan error) {
	o.Filters = filters.NewArgs(filters.Arg("type", string(events.ContainerEventType)))
	stream, errs := p.engine.Events(ctx, o)
	out := make(chan events.Message)
	go func() {
		health := map[string]string{}
		for {
			select {
			case m := <-stream:
				if !fromPodman(&m, health) {
					continue
				}
				select {
				case out <- m:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, errs
}

// fromPodman puts an event into Docker's words, and reports whether it is one that is heard.
// health is what each container was told to be last.
func fromPodman(m *events.Message, health map[string]string) bool {
	if name, other := podmanEvents[m.Action]; other {
		m.Action = name
	}
	switch m.Action {
	case events.ActionHealthStatus:
		now := m.Actor.Attributes["health_status"]
		if now != "" && health[m.Actor.ID] == now {
			return false
		}
		health[m.Actor.ID] = now
	case events.ActionDestroy:
		delete(health, m.Actor.ID)
	case events.ActionDie:
		if code := m.Actor.Attributes["containerExitCode"]; m.Actor.Attributes["exitCode"] == "" && code != "" {
			m.Actor.Attributes["exitCode"] = code
		}
	}
	return slices.Contains(heard, m.Action)
}

// registriesOf is what an engine says of registries, for one of them. Podman's list names
// places by their beginning, so that a host stands for each of its ports.
func registriesOf(e engine, conf *registry.ServiceConfig, domain string) *registry.ServiceConfig {
	if !isPodman(e) || conf == nil {
		return conf
	}
	for place, index := range conf.IndexConfigs {
		if index != nil && strings.HasPrefix(domain, place+":") && conf.IndexConfigs[domain] == nil {
			with := *conf
			with.IndexConfigs = maps.Clone(conf.IndexConfigs)
			with.IndexConfigs[domain] = index
			return &with
		}
	}
	return conf
}

// notByPodman refuses what Podman's API cannot carry out (P8).
func (b beside) notByPodman(a ring.Action) (all []*ring.Refusal) {
	if !b.podman {
		return nil
	}
	for i := range a.Of.Services {
		s := &a.Of.Services[i]
		refuse := func(key, says, hint string) {
			at := s.Place(key)
			all = append(all, no(a, ring.Unsupported, &at, "services."+s.Name+" "+says, hint))
		}
		if s.Spec.ShmSize > 0 && s.Spec.IPCMode == "host" {
			refuse("shm_size", "has shm_size beside ipc: host, which Podman does not carry out", "take shm_size out: with ipc: host it has no effect")
		}
		if s.Spec.Init != nil && *s.Spec.Init && (s.Spec.PIDMode != "" || s.Spec.PIDOf != "") {
			refuse("init", "has init beside pid, which Podman does not carry out", "take init out: its program is not the first one there")
		}
		if s.Spec.Domainname != "" {
			refuse("domainname", "has a domainname, which Podman leaves out", "write the whole name as hostname")
		}
		if len(s.Spec.DeviceRequests) > 0 {
			refuse("gpus", "asks for devices by what they can do, which Podman leaves out", "name them under devices")
		}
		if l := s.Spec.Logging; l != nil && l.Options["tag"] != "" && l.Driver != "journald" {
			refuse("logging.options.tag", "has a tag for its log, which Podman takes for journald alone", "take the tag out, or write driver: journald")
		}
		for _, m := range s.Spec.Mounts {
			if m.Kind == ring.MountBind && strings.Contains(m.Source+m.Target, ",") {
				refuse("volumes."+m.Target, fmt.Sprintf("mounts %s at %s, and Podman takes no comma in a path", m.Source, m.Target), "mount a path without a comma")
			}
		}
	}
	return all
}
