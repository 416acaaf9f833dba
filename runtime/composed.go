package runtime

import "context"

// Composed is a container of an app as docker compose up looks at it: it leaves
// alone what has the hash and the image that it would make it of.
type Composed struct {
	ID, Service string
	Hash, Image string // of its labels, "" where it has none
	// Now is the ID of the image that Compose would take, "" where that is not on this host.
	Now string
}

// Is reports whether Compose would leave the container as it is, for a service with that hash.
func (c Composed) Is(hash string) bool { return c.Hash == hash && c.Image != "" && c.Image == c.Now }

// Composed are our containers of an app, adopted ones among them; images are the
// names by which Compose would look for those of the services.
func (d *Docker) Composed(ctx context.Context, app string, images map[string]string) ([]Composed, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	all, err := d.listed(ctx, e)
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	var out []Composed
	for _, c := range all {
		if c.Labels[composeProject] != app {
			continue
		}
		service := c.Labels[composeService]
		name := images[service]
		if _, asked := ids[name]; !asked {
			i, _, err := d.inspectImage(ctx, e, name)
			if err != nil {
				return nil, err
			}
			ids[name] = i.ID
		}
		out = append(out, Composed{ID: c.ID, Service: service, Hash: c.Labels[composeHash], Image: c.Labels[composeImage], Now: ids[name]})
	}
	return out, nil
}
