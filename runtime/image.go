package runtime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/gitring/gitring/ring"
)

// inspectImage is the image of that name on this host; false when there is none.
func (d *Docker) inspectImage(ctx context.Context, e engine, name string) (image.InspectResponse, bool, error) {
	i, err := e.ImageInspect(ctx, name)
	switch {
	case cerrdefs.IsNotFound(err):
		return i, false, nil
	case cerrdefs.IsInvalidArgument(err): // no name at all; the caller says so
		return i, false, nil
	case err != nil:
		return i, false, fault("cannot inspect image "+name, ring.CauseImagePull, err)
	}
	return i, true, nil
}

func (d *Docker) onHost(ctx context.Context, e engine, name string) (onHost, error) {
	i, here, err := d.inspectImage(ctx, e, name)
	if err != nil || !here {
		return onHost{}, err
	}
	have := onHost{id: i.ID, pulled: len(i.RepoDigests) > 0, has: platformOf(i), repoDigests: i.RepoDigests}
	for _, known := range i.RepoDigests {
		_, digest, _ := strings.Cut(known, "@")
		have.digests = append(have.digests, digest)
	}
	return have, nil
}

// saysOfItself is what an image on this host says to the one who decides.
func saysOfItself(i image.InspectResponse) ring.Image {
	out := ring.Image{Known: true, ID: i.ID, Exposes: true}
	if i.Config != nil {
		for port := range i.Config.ExposedPorts {
			out.Exposed = append(out.Exposed, string(port))
		}
		slices.Sort(out.Exposed)
	}
	if i.Config != nil && len(i.Config.Volumes) > 0 {
		out.Volumes = slices.Sorted(maps.Keys(i.Config.Volumes))
	}
	if i.Config != nil && i.Config.Healthcheck != nil {
		h := i.Config.Healthcheck
		if len(h.Test) > 0 && h.Test[0] != "NONE" {
			out.Healthcheck = &ring.Healthcheck{Interval: h.Interval, Timeout: h.Timeout, StartPeriod: h.StartPeriod, Retries: h.Retries}
		}
	}
	return out
}

// pull has a pinned image here. What is present is not pulled, and no registry
// is asked for it.
func (d *Docker) pull(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	if a.Image == ring.FrontImage {
		return d.haveFrontImage(ctx, e)
	}
	i, here, err := d.inspectImage(ctx, e, a.Image)
	if err != nil {
		return ring.Done{}, err
	}
	id := imageID.MatchString(a.Image)
	if here && id {
		return ring.Done{Image: saysOfItself(i), Note: "already present"}, nil
	}
	if id {
		return ring.Done{}, imageNotHere(a)
	}
	q := asking{Action: a, platform: parsePlatform(a.Platform)}
	if q.machine, err = d.machine(ctx, e); err != nil {
		return ring.Done{}, err
	}
	if q.name, err = reference.ParseNormalizedNamed(a.Image); err != nil {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseConfig, Permanent: true, Err: fmt.Errorf("cannot pull image %q: %w", a.Image, err)}
	}
	// One digest may be here for another platform: an index is one for many.
	if here && fits(platformOf(i), q.platform, q.machine) {
		return ring.Done{Image: saysOfItself(i), Note: "already present"}, nil
	}
	switch {
	case a.PullPolicy == neverPull && here:
		return ring.Done{}, otherPlatform(q, platformOf(i))
	case a.PullPolicy == neverPull:
		return ring.Done{}, neverPulled(a)
	}
	return d.pullAnew(ctx, e, q)
}

func (d *Docker) pullAnew(ctx context.Context, e engine, q asking) (ring.Done, error) {
	written := q.Image // as good as what the commit says: it names the same repository
	if q.Asks != nil {
		written = q.Asks.Written
	}
	if err := d.mayUse(written, q.Image); err != nil {
		return ring.Done{}, err
	}
	if err := d.fetch(ctx, e, q); err != nil {
		return ring.Done{}, err
	}
	i, here, err := d.inspectImage(ctx, e, q.Image)
	if err != nil {
		return ring.Done{}, err
	}
	if !here {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("cannot pull image %s: the engine ended without it", q.Image)}
	}
	if !fits(platformOf(i), q.platform, q.machine) {
		if err := d.judgeByIndex(ctx, e, q, i); err != nil {
			return ring.Done{}, err
		}
	}
	return ring.Done{Image: saysOfItself(i), Note: "pulled"}, nil
}

// judgeByIndex is for an image that says of itself that it is for another
// platform. Many do so wrongly; the index that the engine chose by is right. A
// single image has none, and is what it says.
func (d *Docker) judgeByIndex(ctx context.Context, e engine, q asking, i image.InspectResponse) error {
	if isPodman(e) { // nobody tells of an index there
		return otherPlatform(q, platformOf(i))
	}
	said, err := d.askRegistry(ctx, e, q.name)
	if err != nil {
		return err
	}
	if said.no == "" && fits(said.has, q.platform, q.machine) {
		return nil
	}
	return otherPlatform(q, platformOf(i))
}

func (d *Docker) fetch(ctx context.Context, e engine, q asking) error {
	cannot := "cannot pull image " + q.Image
	if err := d.open(ctx, cannot, q.name); err != nil {
		return err
	}
	auth, err := d.credentials(ctx, q.name)
	if err != nil {
		return &ring.EngineError{Cause: ring.CauseImagePull, Err: err}
	}
	body, err := e.ImagePull(ctx, q.name.String(), image.PullOptions{RegistryAuth: auth, Platform: q.Platform})
	if err == nil {
		err = pulled(body, d.telling(q.Target()))
	}
	if err == nil {
		return nil
	}
	if strings.Contains(strings.ToLower(err.Error()), "cannot overwrite digest") {
		return otherPlatformHere(q)
	}
	if noPlatform(err) {
		return refused(q.Action, ring.CauseImagePull, ring.ImageNotFound,
			fmt.Sprintf("image %s: %s", q.Image, err), "name an image that has this platform, or one of its own with platform")
	}
	if no := registrySaysNo(err); no != "" {
		return registryRefusal(q.Action, q.name, no, "")
	}
	return d.registryFault(cannot, q.name, err)
}
