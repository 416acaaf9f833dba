package runtime

import (
	"context"
	"time"

	"github.com/docker/docker/api/types/container"
)

// memoryEvery is how old what is known of the host's memory may be: it changes
// when a machine is given more, which takes a reboot or a person.
const memoryEvery = 10 * time.Minute

// hostMemory is what is known of the host's memory.
type hostMemory struct {
	bytes int64 // 0 is not known
	asked time.Time
}

// memory is the host's, in bytes. It is asked for once in a while and never
// keeps a look from its answer: an engine that does not tell is asked again later.
func (d *Docker) memory(ctx context.Context, e engine, now time.Time) int64 {
	if d.host.asked.IsZero() || now.Sub(d.host.asked) >= memoryEvery || now.Before(d.host.asked) {
		d.host.asked = now
		if info, err := e.Info(ctx); err == nil {
			d.host.bytes = info.MemTotal
		}
	}
	return d.host.bytes
}

// declared is what a container declares to need: what it reserves, else what it
// may take at most.
func declared(h *container.HostConfig) int64 {
	if h.MemoryReservation > 0 {
		return h.MemoryReservation
	}
	return max(0, h.Memory)
}
