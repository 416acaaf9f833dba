package runtime

import (
	"slices"

	"github.com/docker/docker/api/types/blkiodev"
	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
)

// resources are the bounds of an instance, and its devices.
func resources(s ring.Spec) container.Resources {
	r := bounds(s.Resources)
	r.CgroupParent = s.CgroupParent
	r.DeviceCgroupRules = slices.Clone(s.DeviceCgroupRules)
	for _, u := range s.Ulimits {
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	for _, d := range s.Devices {
		r.Devices = append(r.Devices, container.DeviceMapping{
			PathOnHost: d.Host, PathInContainer: d.Container, CgroupPermissions: d.Permissions,
		})
	}
	for _, d := range s.DeviceRequests {
		req := container.DeviceRequest{Driver: d.Driver, Count: d.Count, DeviceIDs: slices.Clone(d.IDs), Options: d.Options}
		if len(d.Capabilities) > 0 {
			req.Capabilities = [][]string{slices.Clone(d.Capabilities)} // one alternative: all of them
		}
		r.DeviceRequests = append(r.DeviceRequests, req)
	}
	return r
}

func bounds(s *ring.Resources) container.Resources {
	if s == nil {
		return container.Resources{}
	}
	r := container.Resources{
		NanoCPUs: s.NanoCPUs, CPUShares: s.CPUShares, CPUPeriod: s.CPUPeriod, CPUQuota: s.CPUQuota,
		CPURealtimePeriod: s.CPURTPeriod, CPURealtimeRuntime: s.CPURTRuntime, CpusetCpus: s.CPUSet,
		Memory: s.Memory, MemoryReservation: s.MemoryReservation, MemorySwap: s.MemorySwap,
		MemorySwappiness: s.MemorySwappiness, PidsLimit: s.PidsLimit,
	}
	if s.OOMKillDisable {
		yes := true
		r.OomKillDisable = &yes
	}
	if b := s.Blkio; b != nil {
		r.BlkioWeight = b.Weight
		for _, w := range b.WeightDevice {
			r.BlkioWeightDevice = append(r.BlkioWeightDevice, &blkiodev.WeightDevice{Path: w.Path, Weight: uint16(w.Rate)}) //nolint:gosec // manifest lets 10 to 1000 through
		}
		r.BlkioDeviceReadBps, r.BlkioDeviceReadIOps = throttles(b.DeviceReadBps), throttles(b.DeviceReadIOps)
		r.BlkioDeviceWriteBps, r.BlkioDeviceWriteIOps = throttles(b.DeviceWriteBps), throttles(b.DeviceWriteIOps)
	}
	return r
}

func throttles(rates []ring.BlkioRate) []*blkiodev.ThrottleDevice {
	var out []*blkiodev.ThrottleDevice
	for _, r := range rates {
		out = append(out, &blkiodev.ThrottleDevice{Path: r.Path, Rate: r.Rate})
	}
	return out
}
