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
// error, never an empty answer.
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
	for _, c := range list {
		if sha := c.Labels[labelCommit]; sha != "" {
			commits = append(commits, ring.SHA(sha))
		}
	}
	slices.Sort(commits)
	return slices.Compact(commits), nil
}
