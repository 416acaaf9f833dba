package runtime

import (
	"context"
	"io"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// engine is what is used of the Docker client. Its errors are told apart with
// containerd/errdefs. No method of it removes a volume, and none may be added.
type engine interface {
	Ping(ctx context.Context) (types.Ping, error)
	NegotiateAPIVersionPing(types.Ping)
	ClientVersion() string
	ServerVersion(ctx context.Context) (types.Version, error)
	Info(ctx context.Context) (system.Info, error)

	ContainerList(ctx context.Context, o container.ListOptions) ([]container.Summary, error)
	ContainerInspect(ctx context.Context, id string) (container.InspectResponse, error)
	ContainerCreate(ctx context.Context, c *container.Config, h *container.HostConfig, n *network.NetworkingConfig, p *ocispec.Platform, name string) (container.CreateResponse, error)
	ContainerStart(ctx context.Context, id string, o container.StartOptions) error
	ContainerStop(ctx context.Context, id string, o container.StopOptions) error
	ContainerRestart(ctx context.Context, id string, o container.StopOptions) error
	ContainerRemove(ctx context.Context, id string, o container.RemoveOptions) error
	ContainerKill(ctx context.Context, id, signal string) error
	ContainerRename(ctx context.Context, id, name string) error
	ContainerPause(ctx context.Context, id string) error // for tests of what others do
	ContainerUnpause(ctx context.Context, id string) error
	ContainerUpdate(ctx context.Context, id string, u container.UpdateConfig) (container.UpdateResponse, error)
	ContainerLogs(ctx context.Context, id string, o container.LogsOptions) (io.ReadCloser, error)
	ContainerStatsOneShot(ctx context.Context, id string) (container.StatsResponseReader, error)
	ContainerExecCreate(ctx context.Context, id string, o container.ExecOptions) (container.ExecCreateResponse, error)
	ContainerExecAttach(ctx context.Context, exec string, o container.ExecAttachOptions) (types.HijackedResponse, error)
	ContainerExecInspect(ctx context.Context, exec string) (container.ExecInspect, error)

	NetworkList(ctx context.Context, o network.ListOptions) ([]network.Summary, error)
	NetworkCreate(ctx context.Context, name string, o network.CreateOptions) (network.CreateResponse, error)
	NetworkConnect(ctx context.Context, network, id string, e *network.EndpointSettings) error
	NetworkDisconnect(ctx context.Context, network, id string, force bool) error
	NetworkRemove(ctx context.Context, id string) error

	VolumeList(ctx context.Context, o volume.ListOptions) (volume.ListResponse, error)
	VolumeInspect(ctx context.Context, name string) (volume.Volume, error)
	VolumeCreate(ctx context.Context, o volume.CreateOptions) (volume.Volume, error)

	ImageInspect(ctx context.Context, name string, o ...client.ImageInspectOption) (image.InspectResponse, error)
	ImagePull(ctx context.Context, name string, o image.PullOptions) (io.ReadCloser, error)
	ImageLoad(ctx context.Context, archive io.Reader, o ...client.ImageLoadOption) (image.LoadResponse, error)
	ImageList(ctx context.Context, o image.ListOptions) ([]image.Summary, error)
	ImageRemove(ctx context.Context, name string, o image.RemoveOptions) ([]image.DeleteResponse, error)
	DistributionInspect(ctx context.Context, name, auth string) (registry.DistributionInspect, error)

	Events(ctx context.Context, o events.ListOptions) (<-chan events.Message, <-chan error)
	Close() error
}
