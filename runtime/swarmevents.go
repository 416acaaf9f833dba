package runtime

import (
	"context"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// heardOfSwarm are the events of a swarm that can change what a look sees. Containers are those
// of this node alone; of a task elsewhere nothing is heard, and the next look sees it.
func heardOfSwarm() filters.Args {
	f := filters.NewArgs(
		filters.Arg("type", string(events.ServiceEventType)), filters.Arg("type", string(events.NodeEventType)),
		filters.Arg("type", string(events.ContainerEventType)), filters.Arg("event", string(events.ActionRemove)),
	)
	for _, a := range heard {
		f.Add("event", string(a))
	}
	return f
}

// Run listens to the engine's events until ctx ends, which is its only error. An event is a hint.
func (s *Swarm) Run(ctx context.Context) error {
	return s.docker.heed(ctx, s.listen)
}

// Unplugs has nothing to hear: a task that was cut off is its node's to see.
func (s *Swarm) Unplugs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// listen reads one stream to its end, as Docker's does.
func (s *Swarm) listen(ctx context.Context, since time.Time) (time.Time, error) {
	m, err := s.ready(ctx)
	if err != nil {
		return since, err
	}
	poke := func() { s.docker.opts.Poke("") }
	return s.docker.hear(ctx, m, events.ListOptions{Filters: heardOfSwarm()}, since, poke, func(e events.Message) {
		if e.Type != events.ContainerEventType || e.Actor.Attributes[labelHost] == s.docker.opts.Host {
			poke()
		}
	})
}
