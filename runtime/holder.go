package runtime

import (
	"context"
	"fmt"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
)

// heldBy is the refusal of a name that another container has. It is no fault of the
// version that needs the name, and is over when that container goes.
func (d *Docker) heldBy(a ring.Action, name string, c container.InspectResponse) *ring.EngineError {
	says := "container " + short(c.ID)
	if image, byID := strings.CutPrefix(c.Config.Image, "sha256:"); byID {
		says += " (image " + short(image) + ")"
	} else if image != "" {
		says += " (image " + image + ")"
	}
	err := ofHost(a, ring.CauseCreate, fmt.Sprintf("the name %s is held by another container, %s", name, strings.TrimPrefix(says, "container ")),
		"docker rm or docker rename that container; gitring does not touch it, and goes on as soon as the name is free")
	if !d.own(c.ID, c.Config.Labels) {
		err.Holder = says
	}
	return err
}

// nameTaken is the same for a name that the engine refused to give, whoever has it.
func (d *Docker) nameTaken(ctx context.Context, e engine, a ring.Action, name string) *ring.EngineError {
	if c, err := e.ContainerInspect(ctx, name); err == nil && named(c, name) {
		return d.heldBy(a, name, c)
	}
	return ofHost(a, ring.CauseCreate, fmt.Sprintf("the name %s is held by another container", name), "docker ps -a shows which; gitring tries again by itself")
}

// whose finds out who else has a name that nobody tries to take.
func (d *Docker) whose(ctx context.Context, e engine, a ring.Action) error {
	c, err := e.ContainerInspect(ctx, a.Name)
	switch {
	case cerrdefs.IsNotFound(err):
		return nil
	case err != nil:
		return fault("cannot ask whose the name "+a.Name+" is", "", err)
	case !named(c, a.Name) || d.own(c.ID, c.Config.Labels):
		return nil
	}
	return d.heldBy(a, a.Name, c)
}

// named reports whether a container was found by its name: the engine also takes the first
// digits of an ID for it.
func named(c container.InspectResponse, name string) bool {
	return c.ContainerJSONBase != nil && c.Config != nil && strings.TrimPrefix(c.Name, "/") == name
}
