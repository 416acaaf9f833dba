package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/gitring/gitring/ring"
)

// ErrNoContainer is wrapped where the engine has no such container.
var ErrNoContainer = errors.New("no such container")

// Labelled is a container with its labels, for a proof.
type Labelled struct {
	ID, Name string
	// Image is what it was made of, as the engine was told, and ImageID what it runs.
	Image, ImageID   string
	State            ring.State
	Created, Started time.Time
	Labels           map[string]string
}

// Labelled asks for one container by its name or ID. The error wraps ErrNoContainer.
func (d *Docker) Labelled(ctx context.Context, name string) (Labelled, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return Labelled{}, err
	}
	c, err := e.ContainerInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return Labelled{}, fmt.Errorf("cannot find container %s: %w", name, ErrNoContainer)
	}
	if err == nil && (c.ContainerJSONBase == nil || c.Config == nil) {
		err = errors.New("the engine's answer is empty")
	}
	if err != nil {
		return Labelled{}, fault("cannot inspect container "+name, "", err)
	}
	in := instance(c)
	return Labelled{
		ID: c.ID, Name: strings.TrimPrefix(c.Name, "/"), Image: c.Config.Image, ImageID: c.ContainerJSONBase.Image,
		State: in.State, Created: in.Created, Started: in.Started, Labels: c.Config.Labels,
	}, nil
}
