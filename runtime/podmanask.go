package runtime

import (
	"context"
	"errors"
	"slices"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
)

// askWithoutEngine asks the registry from here, as for signatures: Podman's service asks none
// for a digest (P2). Which platforms an image is for is not asked; the pull tells.
func (d *Docker) askWithoutEngine(ctx context.Context, e engine, cannot string, name reference.Named) (answer, error) {
	info, err := e.Info(ctx)
	if err != nil {
		return answer{}, fault(cannot+": cannot ask the engine for its registries", "", err)
	}
	conf := registriesOf(e, info.RegistryConfig, reference.Domain(name))
	said, err := (&TagReader{DockerConfig: d.opts.DockerConfig, Helpers: d.opts.Helpers, certs: d.certs, conf: conf}).Digest(ctx, name.String())
	var no *saysNo
	if errors.As(err, &no) {
		return answer{no: no.no}, nil
	}
	if err != nil {
		return answer{}, d.registryFault("cannot be asked", name, err)
	}
	fixed, err := reference.WithDigest(name, digest.Digest(said))
	if err != nil {
		return answer{}, d.registryFault(cannot, name, err)
	}
	return answer{digest: fixed}, nil
}

// askOrPull is askRegistry for a step. Where Podman's image is at a place that only Podman
// finds, such as a mirror of its own configuration, it is pulled and says its digest. Nothing
// is pulled that has to be verified first.
func (d *Docker) askOrPull(a ring.Action) askFunc {
	return func(ctx context.Context, e engine, name reference.Named) (answer, error) {
		said, err := d.askRegistry(ctx, e, name)
		if err == nil || !isPodman(e) || d.registries.wait(reference.Domain(name), d.opts.Now()) > 0 || !d.mayPull(a) {
			return said, err
		}
		q := asking{Action: a, name: name}
		if q.machine, err = d.machine(ctx, e); err != nil {
			return answer{}, err
		}
		if err := d.fetch(ctx, e, q); err != nil {
			return answer{}, err
		}
		i, _, err := d.inspectImage(ctx, e, name.String())
		if err != nil {
			return answer{}, err
		}
		for _, known := range slices.Sorted(slices.Values(i.RepoDigests)) {
			has, err := reference.ParseNormalizedNamed(known)
			if fixed, is := has.(reference.Canonical); err == nil && is && has.Name() == name.Name() {
				with, err := reference.WithDigest(name, fixed.Digest())
				return answer{digest: with, has: platformOf(i)}, err
			}
		}
		return answer{}, d.registryFault("cannot resolve image "+reference.FamiliarString(name), name, errors.New("the engine pulled it and tells no digest"))
	}
}

// mayPull reports whether an image may be pulled to learn what it is: no rule of the policy
// wants a signature of it.
func (d *Docker) mayPull(a ring.Action) bool {
	if d.opts.ImageRules == nil {
		return true
	}
	rules, err := d.opts.ImageRules()
	if err != nil {
		return false
	}
	rule := imagesign.For(rules, a.Image)
	return rule == nil || rule.None != ""
}
