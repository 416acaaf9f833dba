package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/image"

	"github.com/gitring/gitring/ring"
)

var imageID = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// resolve asks what an image's name means now. What cannot move is itself; what
// only this host has is pinned by its ID; anything else is the registry's to
// say, and its silence is never replaced by something else.
func (d *Docker) resolve(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	local, here, err := d.local(ctx, e, a.Image)
	if err != nil {
		return ring.Done{}, err
	}
	if imageID.MatchString(a.Image) {
		if !here {
			return ring.Done{}, imageNotHere(a)
		}
		return ring.Done{Pin: ring.Pin{Image: a.Image}}, nil
	}
	name, err := reference.ParseNormalizedNamed(a.Image)
	if err != nil {
		return ring.Done{}, refused(a, ring.CauseConfig, ring.BadValue,
			fmt.Sprintf("%q is no image name: %v", a.Image, err), "write name:tag, or name@sha256:…")
	}
	if _, fixed := name.(reference.Digested); fixed {
		return ring.Done{Pin: ring.Pin{Image: a.Image}}, nil
	}
	switch {
	case a.PullPolicy == "never" && !here:
		return ring.Done{}, refused(a, ring.CauseImagePull, ring.ImageNotFound,
			fmt.Sprintf("image %s is not on this host, and pull_policy is never", a.Image),
			"build or load it on the host, or remove pull_policy")
	case a.PullPolicy == "never":
		return ring.Done{Pin: ring.Pin{Image: local.ID, Note: "this host's own image, pull_policy is never"}}, nil
	case here && len(local.RepoDigests) == 0:
		return ring.Done{Pin: ring.Pin{Image: local.ID, Note: "this host's own image, no registry has it"}}, nil
	}
	return d.askRegistry(ctx, e, a, reference.TagNameOnly(name), local, here)
}

// askRegistry has the engine ask, by its own network and mirrors.
func (d *Docker) askRegistry(ctx context.Context, e engine, a ring.Action, name reference.Named, local image.InspectResponse, here bool) (ring.Done, error) {
	auth, err := credentials(ctx, d.opts.DockerConfig, name)
	if err != nil {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: err}
	}
	found, err := e.DistributionInspect(ctx, name.String(), auth)
	if err == nil {
		fixed, err := reference.WithDigest(name, found.Descriptor.Digest)
		if err != nil {
			return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("cannot use the registry's answer for %s: %w", a.Image, err)}
		}
		return ring.Done{Pin: ring.Pin{Image: reference.FamiliarString(fixed)}}, nil
	}
	says := registrySaysNo(err)
	if says == "" {
		return ring.Done{}, fault("cannot resolve image "+a.Image, ring.CauseImagePull, notTheAuthors(err))
	}
	if here {
		return ring.Done{Pin: ring.Pin{Image: local.ID, Note: "the registry says " + says + "; this host's own image is used"}}, nil
	}
	return ring.Done{}, refused(a, ring.CauseImagePull, ring.ImageNotFound,
		fmt.Sprintf("image %s: the registry says %s, and it is not on this host", a.Image, says),
		"check name and tag; for a private image, docker login on the host")
}

// notTheAuthors hides the class of a registry's error: an "invalid argument"
// there is no fault of the manifest, and is tried again.
func notTheAuthors(err error) error {
	if away(err) {
		return err
	}
	return errors.New(err.Error())
}

// registrySaysNo is "not found" or "denied" when that is what the registry
// said, "" for every other error.
func registrySaysNo(err error) string {
	if away(err) {
		return ""
	}
	text := strings.ToLower(err.Error())
	switch {
	case cerrdefs.IsNotFound(err), strings.Contains(text, "manifest unknown"),
		strings.Contains(text, "name unknown"), strings.Contains(text, "not found: manifest"):
		return "not found"
	case cerrdefs.IsUnauthorized(err), cerrdefs.IsPermissionDenied(err),
		strings.Contains(text, "access to the resource is denied"), strings.Contains(text, "pull access denied"):
		return "denied"
	}
	return ""
}

// local is the image of that name on this host; false when there is none.
func (d *Docker) local(ctx context.Context, e engine, name string) (image.InspectResponse, bool, error) {
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

func imageNotHere(a ring.Action) error {
	return refused(a, ring.CauseImagePull, ring.ImageNotFound,
		fmt.Sprintf("image %s is not on this host, and no registry has it", a.Image),
		"build or load it on the host again, or name an image of a registry")
}

// pull has a pinned image here. What is present is not pulled, and no registry
// is asked for it.
func (d *Docker) pull(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	_, here, err := d.local(ctx, e, a.Image)
	if err != nil {
		return ring.Done{}, err
	}
	if here {
		return ring.Done{Note: "already present"}, nil
	}
	if imageID.MatchString(a.Image) {
		return ring.Done{}, imageNotHere(a)
	}
	if err := d.fetch(ctx, e, a); err != nil {
		return ring.Done{}, err
	}
	if _, here, err = d.local(ctx, e, a.Image); err != nil {
		return ring.Done{}, err
	}
	if !here {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("cannot pull image %s: the engine ended without it", a.Image)}
	}
	return ring.Done{Note: "pulled"}, nil
}

func (d *Docker) fetch(ctx context.Context, e engine, a ring.Action) error {
	name, err := reference.ParseNormalizedNamed(a.Image)
	if err != nil {
		return &ring.EngineError{Cause: ring.CauseConfig, Permanent: true, Err: fmt.Errorf("cannot pull image %q: %w", a.Image, err)}
	}
	auth, err := credentials(ctx, d.opts.DockerConfig, name)
	if err != nil {
		return &ring.EngineError{Cause: ring.CauseImagePull, Err: err}
	}
	body, err := e.ImagePull(ctx, name.String(), image.PullOptions{RegistryAuth: auth})
	if err == nil {
		err = pulled(body)
	}
	if err == nil {
		return nil
	}
	if says := registrySaysNo(err); says != "" {
		return refused(a, ring.CauseImagePull, ring.ImageNotFound,
			fmt.Sprintf("image %s: the registry says %s", a.Image, says),
			"check that the image was not deleted; for a private image, docker login on the host")
	}
	return fault("cannot pull image "+a.Image, ring.CauseImagePull, notTheAuthors(err))
}

// pulled reads the engine's progress to its end. Some errors come only in it.
func pulled(body io.ReadCloser) error {
	defer func() { _ = body.Close() }()
	dec := json.NewDecoder(body)
	for {
		var line struct {
			Error  string `json:"error"`
			Detail struct {
				Message string `json:"message"`
			} `json:"errorDetail"`
		}
		err := dec.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case line.Detail.Message != "":
			return errors.New(line.Detail.Message)
		case line.Error != "":
			return errors.New(line.Error)
		}
	}
}
