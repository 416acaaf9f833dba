package runtime

import (
	"fmt"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/api/types/volume"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gitring/gitring/ring"
)

// Request is one thing that the engine is asked to make for an app, for those
// who judge it: every word of what is sent, and nothing else, is in Body.
type Request struct {
	Key  string // "container", "network <key>" or "volume <key>"
	Body any    // a ContainerRequest, NetworkRequest or VolumeRequest
	// App and Service are those that ask; what is made for the app as a whole may
	// name no service.
	App     *ring.App
	Service *ring.Service
	// Mounts are what a container is about to mount of the host, Leads where those
	// of their paths lead that are links, and Beside what containers of the engine
	// mount that may replace them. They are set right before the call, without a Body.
	Mounts []ring.HostMount
	Leads  map[string]string
	Beside []ring.HostMounts
}

// ContainerRequest is all that gitring sends to make one instance and what it
// runs inside by itself.
type ContainerRequest struct {
	Name       string
	Config     *container.Config
	HostConfig *container.HostConfig
	// Networks are all that it joins, by the engine's name, whether in the
	// create call or after it.
	Networks map[string]*network.EndpointSettings
	Platform *ocispec.Platform
	// Owners are the containers of the same app that the joins of HostConfig
	// (NetworkMode, PidMode, IpcMode "container:<id>", VolumesFrom) may name: any
	// other is a stranger's. Before there are containers it is "service:<name>".
	Owners []string
	// Elsewhere are those of them that are another app's, with app and service.
	Elsewhere map[string]string
	PostStart []container.ExecOptions
	PreStop   []container.ExecOptions
	// Reload is the command that has it take over new files.
	Reload []container.ExecOptions
}

// NetworkRequest is all that is sent to make a network.
type NetworkRequest struct {
	Name    string
	Options network.CreateOptions
}

// ServiceRequest is all that is sent to make a service of a swarm, or to change it. Configs and
// secrets stand by their names; gitring makes each of them from the commit's files.
type ServiceRequest struct{ Spec swarm.ServiceSpec }

// VolumeRequest is all that is sent to make a volume.
type VolumeRequest struct{ Options volume.CreateOptions }

// Payloads are the requests that creating slot 1 of s, with its networks and
// volumes, would send from host: the container's first, then networks and volumes by
// key. What is external is in none, because it is never made. They are those for an engine
// that can do everything; an older one gets less. It errs where no request can be made of s.
func Payloads(host string, app *ring.App, s *ring.Service, dataRoot, contentDir string) ([]Request, error) {
	a := ring.Action{
		Kind: ring.DoCreate, Source: app.Source, App: app.Name, Service: s.Name, Slot: 1, Version: s.Version, Commit: app.Commit,
		Of: app, Want: s, Owners: map[string]string{}, Networks: map[string]string{},
	}
	for _, o := range s.Spec.Ties() {
		a.Owners[o] = "service:" + o
	}
	for _, n := range app.Networks {
		a.Networks[n.Key] = n.EngineName(app.Name)
	}
	if s.Spec.Cluster != nil {
		return swarmPayloads(host, app, s, a)
	}
	p, err := containerPayload(site{host: host, content: contentDir, data: dataRoot, api: newestAPI}, a)
	if err != nil {
		return nil, fmt.Errorf("cannot build the payload of service %s: %w", s.Name, err)
	}
	out := []Request{p.request()}
	for _, at := range s.Spec.Networks {
		n, ok := app.Network(at.Network)
		if ok && n.External == "" {
			out = append(out, networkRequest(host, app.Name, n, a.Networks[n.Key]))
		}
	}
	for _, v := range p.Volumes {
		if !v.External {
			out = append(out, v.request())
		}
	}
	for i := range out {
		out[i].App, out[i].Service = app, s
	}
	return out, nil
}

// swarmPayloads are Payloads for a swarm. What a folder of the commit holds is not known here:
// it stands as one file.
func swarmPayloads(cluster string, app *ring.App, s *ring.Service, a ring.Action) ([]Request, error) {
	var files []swarmFile
	for _, m := range app.Mounts(s) {
		if m.Kind == ring.MountContent {
			files = append(files, swarmFile{Secret: m.Secret, Content: m.Source, Path: m.File, Target: m.Target})
		}
	}
	a.Condemned, a.Good = "1:any", "1:any" // so that the labels of any spec are judged
	spec, err := serviceSpec(cluster, a, files)
	if err != nil {
		return nil, fmt.Errorf("cannot build the payload of service %s: %w", s.Name, err)
	}
	out := []Request{{Key: "container", Body: ServiceRequest{spec}, App: app, Service: s}}
	for _, at := range s.Spec.Networks {
		if n, ok := app.Network(at.Network); ok && n.External == "" {
			body := NetworkRequest{Name: a.Networks[n.Key], Options: swarmNetwork(cluster, app.Name, n)}
			out = append(out, Request{Key: "network " + n.Key, Body: body, App: app, Service: s})
		}
	}
	return out, nil
}

func (p payload) request() Request {
	r := ContainerRequest{
		Name: p.Name, Config: p.Config, HostConfig: p.Host, Platform: p.Platform,
		Networks: map[string]*network.EndpointSettings{}, Owners: p.Owners, Elsewhere: p.Elsewhere,
	}
	for _, j := range p.Networks {
		r.Networks[j.Network] = j.Settings
	}
	for _, h := range p.Hooks.PostStart {
		r.PostStart = append(r.PostStart, hookOptions(h))
	}
	for _, h := range p.Hooks.PreStop {
		r.PreStop = append(r.PreStop, hookOptions(h))
	}
	if p.Reload != nil {
		r.Reload = append(r.Reload, hookOptions(*p.Reload))
	}
	return Request{Key: "container", Body: r}
}

func networkRequest(host, app string, n ring.Network, name string) Request {
	return Request{Key: "network " + n.Key, Body: NetworkRequest{Name: name, Options: networkPayload(host, app, n)}}
}

func (v wantedVolume) request() Request {
	return Request{Key: "volume " + v.Key, Body: VolumeRequest{Options: v.Create}}
}

// ownerIDs are the containers that a ties its instance to, sorted.
func ownerIDs(a ring.Action) []string {
	var ids []string
	for _, o := range a.Want.Spec.Ties() {
		ids = append(ids, a.Owners[o])
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
