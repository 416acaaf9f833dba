package runtime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"

	"github.com/gitring/gitring/ring"
)

// What a registry said no to is asked again after these waits: a docker login
// on the host should count soon, and one that limits requests must not get more.
const (
	deniedWait  = time.Minute
	limitedWait = 5 * time.Minute
)

// registries is what is remembered of the engine and of the world of images. Its zero value is ready.
type registries struct {
	mu      sync.Mutex
	machine platform             // guarded by mu; zero until the engine told
	here    time.Time            // guarded by mu; until when the engine counts as this host's, for what is only read
	limited map[string]time.Time // guarded by mu; by registry, no request before
}

// machine is the engine's own platform, which does not change.
func (d *Docker) machine(ctx context.Context, e engine) (platform, error) {
	d.registries.mu.Lock()
	known := d.registries.machine
	d.registries.mu.Unlock()
	if known != (platform{}) {
		return known, nil
	}
	v, err := e.ServerVersion(ctx)
	if err != nil {
		return known, fault("cannot ask the engine's platform", "", err)
	}
	known = platform{os: v.Os, arch: v.Arch}.plain()
	d.registries.mu.Lock()
	defer d.registries.mu.Unlock()
	d.registries.machine = known
	return known, nil
}

// limit keeps requests away from a registry that wants fewer.
func (r *registries) limit(domain string, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limited == nil {
		r.limited = map[string]time.Time{}
	}
	r.limited[domain] = until
}

// wait is how long a registry is to be left alone; 0 is not at all.
func (r *registries) wait(domain string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.limited[domain].Sub(now))
}

// open is an error while a registry wants no request; in the same words as the
// first one, so that it is told once. And where its name leads to this link alone.
func (d *Docker) open(ctx context.Context, cannot string, name reference.Named) error {
	domain := reference.Domain(name)
	if wait := d.registries.wait(domain, d.opts.Now()); wait > 0 {
		return limited(cannot, domain, wait)
	}
	if a := d.linkLocal(ctx, domain); a.IsValid() {
		return &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("%s: registry %s leads to the link-local address %s", cannot, domain, a)}
	}
	return nil
}

// lookupWithin is how long a name may take to be looked up.
const lookupWithin = 2 * time.Second

// linkLocal is a link-local address that a registry's name leads to on this host; zero where
// none does, or the name is not known here. The engine asks by itself and looks the name up
// once more, so this holds off a name that always leads there, and none that changes.
func (d *Docker) linkLocal(ctx context.Context, domain string) netip.Addr {
	host := domain
	if h, _, err := net.SplitHostPort(domain); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	lookup := d.opts.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	all, err := lookup(ctx, host)
	if err != nil {
		return netip.Addr{}
	}
	i := slices.IndexFunc(all, ring.IsLinkLocal)
	if i < 0 {
		return netip.Addr{}
	}
	return all[i].Unmap()
}

func limited(cannot, domain string, wait time.Duration) error {
	return &ring.EngineError{
		Cause: ring.CauseImagePull, Wait: wait,
		Err: fmt.Errorf("%s: registry %s limits requests (429); docker login on the host may lift the limit", cannot, domain),
	}
}

// Fixed reports whether an image as written cannot move: it names a digest or an ID.
func Fixed(image string) bool {
	if imageID.MatchString(image) {
		return true
	}
	name, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return false
	}
	_, fixed := name.(reference.Digested)
	return fixed
}

// askRegistry has the engine ask, by its own network, mirrors and certificates.
func (d *Docker) askRegistry(ctx context.Context, e engine, name reference.Named) (answer, error) {
	cannot := "cannot resolve image " + reference.FamiliarString(name)
	if err := d.open(ctx, cannot, name); err != nil {
		return answer{}, err
	}
	if isPodman(e) {
		return d.askWithoutEngine(ctx, e, cannot, name)
	}
	auth, err := d.credentials(ctx, name)
	if err != nil {
		return answer{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: err}
	}
	found, err := e.DistributionInspect(ctx, name.String(), auth)
	if err != nil {
		if no := registrySaysNo(err); no != "" {
			return answer{no: no}, nil
		}
		return answer{}, d.registryFault(cannot, name, err)
	}
	fixed, err := reference.WithDigest(name, found.Descriptor.Digest)
	if err != nil {
		return answer{}, &ring.EngineError{Cause: ring.CauseImagePull, Err: fmt.Errorf("cannot use the registry's answer for %s: %w", name, err)}
	}
	return answer{digest: fixed, has: platformsOf(found.Platforms)}, nil
}

// registryFault is what is tried again: nobody's fault that reads the refusal.
func (d *Docker) registryFault(cannot string, name reference.Named, err error) error {
	domain := reference.Domain(name)
	if limits(err) {
		d.registries.limit(domain, d.opts.Now().Add(limitedWait))
		return limited(cannot, domain, limitedWait)
	}
	if hint := hostHint(err, domain); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return fault(cannot, ring.CauseImagePull, notTheAuthors(err))
}

// hostHint is what this host's administrator can do.
func hostHint(err error, domain string) string {
	switch text := err.Error(); {
	case strings.Contains(text, "certificate signed by unknown authority"):
		return fmt.Sprintf("put the certificate of its authority into /etc/docker/certs.d/%s/ca.crt on this host", domain)
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return fmt.Sprintf("it speaks plain HTTP: give it a certificate, or list %s under insecure-registries in the engine's daemon.json", domain)
	}
	return ""
}

// limits reports whether a registry wants fewer requests.
func limits(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "toomanyrequests") || strings.Contains(text, "too many requests")
}

// notTheAuthors hides the class of a registry's error: an "invalid argument"
// there is no fault of the manifest, and is tried again.
func notTheAuthors(err error) error {
	if away(err) {
		return err
	}
	return errors.New(err.Error())
}

// no words of registries and of engines that hand them on, in lower case.
var (
	saysNotFound = []string{"manifest unknown", "name unknown", "not found: manifest"}
	saysDenied   = []string{
		"access to the resource is denied", "pull access denied", "no basic auth credentials",
		"unauthorized: ", "authentication required", "incorrect username or password",
	}
	// bareDenial is all that some registries say, of images that are private or not there.
	bareDenial = regexp.MustCompile(`": (denied|unauthorized)\b`)
	// statusNo is a status that the engine did not understand the body of, or hands on as it is.
	statusNo = regexp.MustCompile(`(?:unexpected (?:http )?status\b.*:|error parsing http) (401|403|404) `)
)

// registrySaysNo is "not found" or "denied" when that is what the registry
// said, "" for every other error.
func registrySaysNo(err error) string {
	if away(err) || limits(err) {
		return ""
	}
	text := strings.ToLower(err.Error())
	says := func(words []string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	status := ""
	if m := statusNo.FindStringSubmatch(text); m != nil {
		status = m[1]
	}
	switch {
	case cerrdefs.IsUnauthorized(err), cerrdefs.IsPermissionDenied(err), says(saysDenied), bareDenial.MatchString(text), status == "401", status == "403":
		return "denied"
	case cerrdefs.IsNotFound(err), says(saysNotFound), status == "404":
		return "not found"
	}
	return ""
}

// registryRefusal is a registry's no, for the one who wrote the image's name.
func registryRefusal(a ring.Action, name reference.Named, no, more string) error {
	domain := reference.Domain(name)
	if no != "denied" {
		return refused(a, ring.CauseImagePull, ring.ImageNotFound,
			fmt.Sprintf("image %s: registry %s says %s%s", a.Image, domain, no, more), "check name and tag, and that it was not deleted")
	}
	e := refused(a, ring.CauseImagePull, ring.ImageNotFound,
		fmt.Sprintf("image %s: registry %s says denied%s", a.Image, domain, more),
		fmt.Sprintf("check the name; for a private image, docker login %s on this host as the daemon's user, or name its config.json in registries.docker_config", domain))
	e.Wait = deniedWait
	return e
}
