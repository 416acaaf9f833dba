package runtime

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/gitring/gitring/ring"
)

// Commits are those that this host's containers of a source were made from,
// running or not, by their labels, each once. They are what is left of trust
// when the state directory is lost, so an engine that does not answer is an
// error, never an empty answer. The engine also gives a container the labels of its
// image, which whoever built that chose: such a label is not this daemon's.
func (d *Docker) Commits(ctx context.Context, source string) ([]ring.SHA, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	list, err := e.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(
		filters.Arg("label", labelHost+"="+d.opts.Host), filters.Arg("label", labelSource+"="+source))})
	if err != nil {
		return nil, fault("cannot list containers", "", err)
	}
	var commits []ring.SHA
	images := map[string]string{} // by id: the commit that an image itself names
	for _, c := range list {
		sha := c.Labels[labelCommit]
		if sha == "" {
			continue
		}
		named, known := images[c.ImageID]
		if !known {
			i, err := imageBy(ctx, e, c.ImageID)
			if err != nil {
				return nil, err
			}
			if i.Config != nil {
				named = i.Config.Labels[labelCommit]
			}
			images[c.ImageID] = named
		}
		if sha != named {
			commits = append(commits, ring.SHA(sha))
		}
	}
	slices.Sort(commits)
	return slices.Compact(commits), nil
}
