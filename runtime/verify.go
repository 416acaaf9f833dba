package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
)

const (
	// oneRegistryWithin is for how long one registry is asked about one image.
	oneRegistryWithin = 15 * time.Second
	// verifyAtOnce is how many images are asked about at a time.
	verifyAtOnce = 2
)

// ImageRules gives the rules of the host about signatures, as they are now. It is an error
// while nobody can say what they are.
type ImageRules func() ([]imagesign.Rule, error)

// verify asks who signed an image, by the rule that counts for it, before any of it is
// fetched. Only the digest of the pin is asked about. A verdict is good or a refusal; no
// answer is neither, and is asked for again.
func (d *Docker) verify(ctx context.Context, e engine, a ring.Action) (ring.Done, error) {
	cannot := "cannot verify image " + a.Image
	if d.opts.ImageRules == nil || a.Asks == nil {
		return ring.Done{}, errors.New(cannot + ": nobody says by which rule")
	}
	rules, err := d.opts.ImageRules()
	if err != nil {
		return ring.Done{}, fmt.Errorf("%s: %w", cannot, err)
	}
	// The rule is that of the image as the commit names it: a pin by ID has no name.
	rule := imagesign.For(rules, a.Asks.Written)
	if rule == nil || rule.Hash() != a.Asks.Rule {
		return ring.Done{}, fmt.Errorf("%s: the policy has another rule for it by now", cannot)
	}
	name, digest, refusal := d.pinned(a, rule)
	if refusal != nil {
		return ring.Done{}, notSigned(a, refusal)
	}
	if err := d.verifying.enter(ctx); err != nil {
		return ring.Done{}, fmt.Errorf("%s: %w", cannot, err)
	}
	defer d.verifying.leave()
	if len(rule.Exec) > 0 {
		return d.verifyBy(ctx, a, rule, name, digest)
	}
	info, err := e.Info(ctx)
	if err != nil {
		return ring.Done{}, fault(cannot+": cannot ask the engine for its registries", "", err)
	}
	return d.verifyByKeys(ctx, a, rule, name, digest, registriesOf(e, info.RegistryConfig, reference.Domain(name)))
}

// pinned is the repository and the digest of a pin.
func (d *Docker) pinned(a ring.Action, rule *imagesign.Rule) (reference.Named, string, *ring.Refusal) {
	if !imageID.MatchString(a.Image) {
		name, err := reference.ParseNormalizedNamed(a.Image)
		fixed, is := name.(reference.Digested)
		if err == nil && is && imageID.MatchString(fixed.Digest().String()) {
			return reference.TrimNamed(name), fixed.Digest().String(), nil
		}
	}
	hint := "push it and write it as name:tag@sha256:…, or change the rule on this host"
	if a.PullPolicy == neverPull { // pinned before the rule asked, it may be known by a digest
		hint = "where it was pulled from its registry: gitring refresh " + a.App + "; else " + hint
	}
	return nil, "", &ring.Refusal{
		Code: ring.ImageUnsigned,
		Says: fmt.Sprintf("image %s is used as this host has it, and %s asks for a signature, which only a registry has", a.Asks.Written, rule.At),
		Hint: hint,
	}
}

// mayUse keeps an image out that the rules of now want verified first. The one who decides
// asks for that: here is where nothing gets past.
func (d *Docker) mayUse(written, pin string) error {
	if d.opts.Verified == nil || d.opts.Verified(written, pin) {
		return nil
	}
	return &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("cannot use image %s: it is to be verified first", pin)}
}

// notSigned is a verdict against an image: whoever wrote its name can do something about it.
func notSigned(a ring.Action, r *ring.Refusal) error {
	return refused(a, ring.CauseImagePull, r.Code, r.Says, r.Hint)
}

// verifyByKeys asks the places that have the registry's images, mirrors first. A mirror can
// help by what it has; only the registry can say that there is nothing.
func (d *Docker) verifyByKeys(ctx context.Context, a ring.Action, rule *imagesign.Rule, name reference.Named, digest string, conf *registry.ServiceConfig) (ring.Done, error) {
	domain := reference.Domain(name)
	cannot := "cannot verify image " + a.Image
	if ring.ParseImage(a.Image).AtLinkLocal() { // no policy lets it come to this
		return ring.Done{}, &ring.EngineError{Permanent: true, Err: fmt.Errorf("%s: registry %s is at a link-local address", cannot, domain)}
	}
	if err := d.open(ctx, cannot, name); err != nil {
		return ring.Done{}, err
	}
	creds, err := d.login(ctx, name)
	if err != nil {
		return ring.Done{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	var tally *imagesign.Tally
	var asked []string
	var away error
	for _, h := range registryHosts(ctx, domain, conf) {
		tally = &imagesign.Tally{Rule: rule, Digest: digest} // what two places have is not counted twice
		s, err := d.askHost(ctx, h, creds, reference.Path(name), digest, tally)
		if tally.Enough() {
			return d.signed(a, tally), nil
		}
		if h.mirror {
			continue
		}
		if away = err; err != nil {
			continue // in clear, where the engine does that
		}
		asked = s.asked
		break
	}
	if away != nil {
		return ring.Done{}, d.signaturesFault(cannot, name, away)
	}
	for i := range asked {
		asked[i] = asked[i] + " of " + reference.FamiliarName(name)
	}
	if len(asked) > 1 { // one repository has them all
		for i := range asked[:len(asked)-1] {
			asked[i] = strings.TrimSuffix(asked[i], " of "+reference.FamiliarName(name))
		}
	}
	return ring.Done{}, notSigned(a, tally.Refusal(a.Image, asked))
}

// askHost reads what one place has.
func (d *Docker) askHost(ctx context.Context, h registryHost, creds registry.AuthConfig, repo, digest string, tally *imagesign.Tally) (*signatures, error) {
	ctx, cancel := context.WithTimeout(ctx, oneRegistryWithin)
	defer cancel()
	conf, err := tlsOf(d.certs, h)
	if err != nil {
		return nil, err
	}
	host, _, _ := strings.Cut(h.host, ":")
	road := newRegistryRoad(host, conf)
	defer road.close()
	c := &registryClient{base: "https://" + h.host, repo: repo, road: road}
	if h.plain {
		c.base = "http://" + h.host
	}
	if !h.mirror {
		c.creds = creds
	}
	s := &signatures{c: c, digest: digest, tally: tally}
	return s, s.read(ctx)
}

// signaturesFault is no answer. A registry that limits requests is left alone.
func (d *Docker) signaturesFault(cannot string, name reference.Named, err error) error {
	domain := reference.Domain(name)
	var said *statusError
	if errors.As(err, &said) && said.status == 429 {
		d.registries.limit(domain, d.opts.Now().Add(limitedWait))
		return limited(cannot, domain, limitedWait)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it did not answer in time")
	}
	hint := hostHint(err, domain)
	if said != nil && (said.status == 401 || said.status == 403) {
		hint = fmt.Sprintf("docker login %s on this host as the daemon's user", domain)
	}
	if hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("%s: registry %s: %w", cannot, domain, err)}
}

// signed is a good verdict.
func (d *Docker) signed(a ring.Action, t *imagesign.Tally) ring.Done {
	return ring.Done{Verdict: &ring.ImageVerdict{
		Image: ring.VerdictKey(a.Image), Rule: a.Asks.Rule, Good: true, Keys: slices.Clone(t.Signers), Form: string(t.Form), At: d.opts.Now().UTC(),
	}}
}

// verifying bounds how many images are asked about at a time.
type verifying chan struct{}

func (v verifying) enter(ctx context.Context) error {
	select {
	case v <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v verifying) leave() { <-v }
