package runtime

import (
	"context"
	"fmt"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/gitring/gitring/ring"
)

// imageOff removes what a registry gave under one digest. It is never forced: an
// image that a container uses, ours or not, stays, and so does one that has
// another name, without the digest's.
func (d *Docker) imageOff(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	if ofFront(a.Image) {
		return d.frontImageOff(ctx, e, a.Image)
	}
	name, err := byDigest(a.Image)
	if err != nil {
		return ring.Done{}, err
	}
	switch _, err := e.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true}); {
	case err == nil:
		return ring.Done{Note: "removed"}, nil
	case cerrdefs.IsNotFound(err):
		return ring.Done{Note: "already gone"}, nil
	case cerrdefs.IsConflict(err):
		return ring.Done{InUse: true}, nil
	default:
		return ring.Done{}, fault("cannot remove image "+name, "", err)
	}
}

// byDigest is a pin as the engine keeps it: the tag beside a digest is no name of
// the image here, and removing it would remove somebody else's.
func byDigest(pin string) (string, error) {
	n, err := reference.ParseNormalizedNamed(pin)
	if err == nil {
		if digested, ok := n.(reference.Digested); ok {
			return reference.FamiliarName(n) + "@" + digested.Digest().String(), nil
		}
	}
	return "", &ring.EngineError{Cause: ring.CauseConfig, Permanent: true, Err: fmt.Errorf("cannot remove image %q: it has no digest of a registry", pin)}
}

// ImageHere reports whether a pinned image is on this host. It asks no registry.
func (d *Docker) ImageHere(ctx context.Context, pin string) (bool, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return false, err
	}
	_, here, err := d.inspectImage(ctx, e, pin)
	return here, err
}
