package runtime

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// Unplugs listens for hands that take a container of ours off a network, until ctx
// ends, which is its only error. The engine tells that as an event of the network,
// without the container's labels, so it has a stream of its own. What is missed the
// next full look sees: an engine that tells nothing of networks is asked rarely.
func (d *Docker) Unplugs(ctx context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = time.Second, 5*time.Minute
	for {
		if d.unplugs(ctx) > 0 {
			pause.Reset()
		}
		if wait(ctx, pause.NextBackOff()) != nil {
			return ctx.Err()
		}
	}
}

// unplugs reads one stream to its end, and counts what it heard.
func (d *Docker) unplugs(ctx context.Context) (heard int) {
	e, err := d.ready(ctx)
	if err != nil {
		return 0
	}
	ctx, cancel := context.WithCancel(ctx) // the engine's stream ends with this call
	defer cancel()
	stream, errs := e.Events(ctx, events.ListOptions{Filters: filters.NewArgs(
		filters.Arg("type", string(events.NetworkEventType)), filters.Arg("event", string(events.ActionDisconnect)),
	)})
	for {
		select {
		case m := <-stream:
			heard++
			if id := m.Actor.Attributes["container"]; d.cache.runs(id) {
				d.hint(id)
			}
		case <-errs:
			return heard
		}
	}
}

// runs reports whether a container is this host's, was live when it was looked at, and that no
// step is at it: one that ends leaves its networks too.
func (c *cache) runs(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.known[id]
	return ok && k.in.Live() && c.held[id] == 0 && c.held[k.in.Name] == 0
}
