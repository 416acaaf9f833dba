package runtime

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/gitring/gitring/ring"
)

// mayBegin asks about how the image has its program begin, as far as the app leaves
// that to it: a plan does not know it, and the image is here now.
func (d *Docker) mayBegin(ctx context.Context, e engine, a ring.Action, p payload) error {
	if d.opts.Allow == nil {
		return nil
	}
	i, err := e.ImageInspect(ctx, a.Want.Pin.Image)
	if cerrdefs.IsNotFound(err) {
		return nil // the create says so
	}
	if err != nil {
		return fault("cannot inspect image "+a.Want.Pin.Image, ring.CauseImagePull, err)
	}
	begins := &container.Config{User: userOf(p.Config, i)}
	if namesKernel(i) { // else the plan was judged for all that the app says itself
		begins = beginning(p.Config, i)
	}
	return d.allow(a, Request{Key: "container", Body: ContainerRequest{Config: begins}})
}

// userOf is the user that a container of the image begins as: the app's, else the image's,
// else root.
func userOf(app *container.Config, i image.InspectResponse) string {
	if app.User != "" || i.Config == nil {
		return cmp.Or(app.User, "0")
	}
	return cmp.Or(i.Config.User, "0")
}

// namesKernel reports whether an image may begin in the kernel's own folders.
func namesKernel(i image.InspectResponse) bool {
	if i.Config == nil {
		return false
	}
	words := append(slices.Concat(i.Config.Entrypoint, i.Config.Cmd), i.Config.WorkingDir)
	if i.Config.Healthcheck != nil {
		words = append(words, i.Config.Healthcheck.Test...)
	}
	all := strings.Join(words, "\n")
	return strings.Contains(all, "proc") || strings.Contains(all, "dev")
}

// beginning is how a container of the image begins: its folder, program and
// healthcheck, from the app where that says them.
func beginning(app *container.Config, i image.InspectResponse) *container.Config {
	out := &container.Config{User: userOf(app, i), WorkingDir: app.WorkingDir, Entrypoint: app.Entrypoint, Cmd: app.Cmd, Healthcheck: app.Healthcheck}
	if i.Config == nil {
		return out
	}
	if !path.IsAbs(out.WorkingDir) {
		out.WorkingDir = path.Join(i.Config.WorkingDir, out.WorkingDir)
	}
	if len(out.Entrypoint) == 0 {
		if out.Entrypoint = i.Config.Entrypoint; len(out.Cmd) == 0 {
			out.Cmd = i.Config.Cmd
		}
	}
	if h := i.Config.Healthcheck; h != nil && (out.Healthcheck == nil || len(out.Healthcheck.Test) == 0) {
		out.Healthcheck = &container.HealthConfig{Test: h.Test}
	}
	return out
}
