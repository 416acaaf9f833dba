package runtime

import (
	"context"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// Adopts says which containers are ours though they have none of our labels: a
// person gave them into our hands. It replaces what was said before.
func (d *Docker) Adopts(ids map[string]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.adopted = ids
}

// adopts says that a container was given into our hands: that very one, by its
// whole ID. ids is never written to.
func (d *Docker) adopts() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.adopted
}

// own reports whether a container with these labels is for us to see and to change.
// One of another host's gitring never is.
func (d *Docker) own(id string, labels map[string]string) bool {
	if host, ok := labels[labelHost]; ok {
		return host == d.opts.Host
	}
	return d.adopts()[id]
}

// listed are our containers and the adopted ones: one list in any case. Each of
// ours is one of a Compose project too, and so is each that can be adopted.
func (d *Docker) listed(ctx context.Context, e engine) ([]container.Summary, error) {
	label := labelHost + "=" + d.opts.Host
	if len(d.adopts()) > 0 {
		label = composeProject
	}
	all, err := e.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		return nil, fault("cannot list containers", "", err)
	}
	ours := make([]container.Summary, 0, len(all))
	for _, c := range all {
		if d.own(c.ID, c.Labels) {
			ours = append(ours, c)
		}
	}
	return ours, nil
}

// about reports whether an event is about a container of ours, or an adopted one.
func (d *Docker) about(m events.Message) bool { return d.own(m.Actor.ID, m.Actor.Attributes) }
