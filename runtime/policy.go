package runtime

import (
	"context"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"

	"github.com/gitring/gitring/ring"
)

// policy sets the engine's restart policy in place. Whether the container is
// ours is asked only where no look has said so: its labels never change, and its
// ID is never another's. What the call makes of it is known, so that neither the
// end of the step nor the event that follows leads to an inspect.
func (d *Docker) policy(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	const cannot = "cannot set the restart policy of container"
	id, name, ok := d.cache.name(a.Instance)
	if !ok {
		c, err := d.ours(ctx, e, cannot, target(a))
		if err != nil {
			return ring.Done{}, err
		}
		id, name = c.ID, strings.TrimPrefix(c.Name, "/")
	}
	p := container.RestartPolicy{Name: container.RestartPolicyMode(a.Policy)}
	if p.IsOnFailure() {
		p.MaximumRetryCount = a.MaxRetries
	}
	own := ownEvent{id, events.ActionUpdate}
	d.cache.expect(own)
	if _, err := e.ContainerUpdate(ctx, id, container.UpdateConfig{RestartPolicy: p}); err != nil {
		d.cache.unexpect(own)
		return ring.Done{}, fault(cannot+" "+name, ring.CauseConfig, err)
	}
	d.cache.set(id, setting{policy: &p})
	return ring.Done{Instance: id}, nil
}
