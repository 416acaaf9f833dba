package runtime

import (
	"context"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
)

// updatable are the bounds of a container that can be changed while it runs.
func updatable(h *container.HostConfig) *ring.Resources {
	r := h.Resources
	return &ring.Resources{
		NanoCPUs: r.NanoCPUs, CPUShares: r.CPUShares, CPUPeriod: r.CPUPeriod, CPUQuota: r.CPUQuota, CPUSet: r.CpusetCpus,
		Memory: r.Memory, MemoryReservation: r.MemoryReservation, MemorySwap: r.MemorySwap, PidsLimit: r.PidsLimit,
	}
}

// limit puts the bounds back that the service asks for. What it does not bound
// stays: for the engine zero means "as it is".
func (d *Docker) limit(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	const cannot = "cannot put back the limits of container"
	c, err := d.ours(ctx, e, cannot, target(a))
	if err != nil || a.Want == nil || a.Want.Spec.Resources == nil {
		return ring.Done{Instance: c.ID}, err
	}
	b := bounds(a.Want.Spec.Resources)
	u := container.UpdateConfig{Resources: container.Resources{
		NanoCPUs: b.NanoCPUs, CPUShares: b.CPUShares, CPUPeriod: b.CPUPeriod, CPUQuota: b.CPUQuota, CpusetCpus: b.CpusetCpus,
		Memory: b.Memory, MemoryReservation: b.MemoryReservation, MemorySwap: b.MemorySwap, PidsLimit: b.PidsLimit,
	}}
	if b.Memory > 0 && b.MemorySwap == 0 {
		u.MemorySwap = 2 * b.Memory // what the engine made of it at create, and does not make again
	}
	if _, err := e.ContainerUpdate(ctx, c.ID, u); err != nil {
		return ring.Done{Instance: c.ID}, fault(cannot+" "+strings.TrimPrefix(c.Name, "/"), ring.CauseConfig, err)
	}
	return ring.Done{Instance: c.ID}, nil
}

// unpause lets a container run again that somebody paused.
func (d *Docker) unpause(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	const cannot = "cannot unpause container"
	c, err := d.ours(ctx, e, cannot, target(a))
	if err != nil || c.State == nil || !c.State.Paused {
		return ring.Done{Instance: c.ID}, err
	}
	if err := e.ContainerUnpause(ctx, c.ID); err != nil {
		return ring.Done{Instance: c.ID}, fault(cannot+" "+strings.TrimPrefix(c.Name, "/"), "", err)
	}
	return ring.Done{Instance: c.ID}, nil
}
