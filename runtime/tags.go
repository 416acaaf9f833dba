package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gitring/gitring/ring"
)

const (
	// tagsPerPage and mostTagPages bound a list of tags: 20,000 of them.
	tagsPerPage  = 1000
	mostTagPages = 20
	// tagsWithin is for how long one registry is asked for the tags of one repository.
	tagsWithin = 30 * time.Second
)

// manifestTypes are what a tag may mean.
var manifestTypes = strings.Join([]string{
	ocispec.MediaTypeImageIndex, "application/vnd.docker.distribution.manifest.list.v2+json",
	ocispec.MediaTypeImageManifest, "application/vnd.docker.distribution.manifest.v2+json",
}, ", ")

// TagReader asks registries which tags a repository has, and what a tag means, without an
// engine. It reads only, asks for nothing twice, and leaves a registry alone that limits
// requests. Its methods may be called from many goroutines.
type TagReader struct {
	DockerConfig string            // a docker config file, or its folder; "" is none
	Helpers      map[string]string // credential helpers, by patterns of registries

	conf  *registry.ServiceConfig // what an engine says of registries; nil is what one says by itself
	certs string                  // where certificates of registries lie; "" is the engine's place
	login time.Duration           // how long a credential helper may take; 0 is tagsWithin

	mu      sync.Mutex
	said    map[string]func() ([]string, error) // guarded by mu; by what was asked
	limited map[string]bool                     // guarded by mu; by registry
}

// localOnly is what an engine takes for insecure unless it is told more.
var localOnly = func() *registry.ServiceConfig {
	_, loopback, _ := net.ParseCIDR("127.0.0.0/8")
	return &registry.ServiceConfig{InsecureRegistryCIDRs: []*registry.NetIPNet{(*registry.NetIPNet)(loopback)}}
}()

// Tags are those of an image's repository, in the registry's order.
func (t *TagReader) Tags(ctx context.Context, image string) ([]string, error) {
	name, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q as an image: %w", image, err)
	}
	name = reference.TrimNamed(name)
	return t.once(ctx, name, "tags of "+name.Name(), "cannot list the tags of "+reference.FamiliarName(name), func(ctx context.Context, c *registryClient) ([]string, error) {
		return c.tags(ctx)
	})
}

// Digest is what a tag of an image means now.
func (t *TagReader) Digest(ctx context.Context, image string) (string, error) {
	name, err := reference.ParseNormalizedNamed(image)
	tagged, is := name.(reference.Tagged)
	if err != nil || !is {
		return "", fmt.Errorf("cannot read %q as an image with a tag", image)
	}
	out, err := t.once(ctx, reference.TrimNamed(name), "digest of "+name.String(), "cannot resolve image "+reference.FamiliarString(name), func(ctx context.Context, c *registryClient) ([]string, error) {
		digest, err := c.digestOf(ctx, tagged.Tag())
		return []string{digest}, err
	})
	if err != nil {
		return "", err
	}
	return out[0], nil
}

// Pulls are how many of an image's registry are left to the one who asks. Asking for the head of
// a manifest is none. The image is named by its digest.
func (t *TagReader) Pulls(ctx context.Context, image string) (Pulls, error) {
	name, err := reference.ParseNormalizedNamed(image)
	pinned, is := name.(reference.Digested)
	if err != nil || !is {
		return Pulls{}, fmt.Errorf("cannot read %q as an image with a digest", image)
	}
	var left Pulls
	_, err = t.ask(ctx, reference.TrimNamed(name), "cannot ask for the pulls that are left", func(ctx context.Context, c *registryClient) ([]string, error) {
		a, err := c.ask(ctx, http.MethodHead, "/v2/"+c.repo+"/manifests/"+pinned.Digest().String(), manifestTypes)
		left = a.pulls
		if err == nil && a.status != http.StatusOK && left.Of == 0 {
			err = &statusError{a.status}
		}
		return nil, err
	})
	return left, err
}

// once asks the registry of a name, and keeps what it said.
func (t *TagReader) once(ctx context.Context, name reference.Named, key, cannot string, ask func(context.Context, *registryClient) ([]string, error)) ([]string, error) {
	t.mu.Lock()
	if t.said == nil {
		t.said, t.limited = map[string]func() ([]string, error){}, map[string]bool{}
	}
	known := t.said[key]
	if known == nil {
		known = sync.OnceValues(func() ([]string, error) { return t.ask(ctx, name, cannot, ask) })
		t.said[key] = known
	}
	t.mu.Unlock()
	return known()
}

func (t *TagReader) ask(ctx context.Context, name reference.Named, cannot string, ask func(context.Context, *registryClient) ([]string, error)) ([]string, error) {
	domain := reference.Domain(name)
	if ring.ParseImage(name.Name()).AtLinkLocal() {
		return nil, fmt.Errorf("%s: registry %s is at a link-local address", cannot, domain)
	}
	t.mu.Lock()
	limits := t.limited[domain]
	t.mu.Unlock()
	if limits {
		return nil, limited(cannot, domain, limitedWait)
	}
	asking, cancel := context.WithTimeout(ctx, cmp.Or(t.login, tagsWithin)) // a command has no end of its own
	defer cancel()
	creds, err := loginBy(asking, t.Helpers, t.DockerConfig, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cannot, err)
	}
	conf, folder := t.conf, t.certs
	if conf == nil {
		conf = localOnly
	}
	if folder == "" {
		folder = certsFolder
	}
	for _, h := range registryHosts(ctx, domain, conf) {
		if h.mirror {
			continue // it may know fewer tags than there are
		}
		var out []string
		if out, err = askFor(ctx, folder, h, creds, reference.Path(name), ask); err == nil {
			return out, nil
		}
	}
	var said *statusError
	switch {
	case errors.As(err, &said) && said.status == http.StatusTooManyRequests:
		t.mu.Lock()
		t.limited[domain] = true
		t.mu.Unlock()
		return nil, limited(cannot, domain, limitedWait)
	case errors.As(err, &said) && said.status == http.StatusNotFound:
		return nil, &saysNo{no: "not found", says: fmt.Sprintf("%s: registry %s says not found", cannot, domain), missing: domain == dockerHub}
	case errors.As(err, &said) && (said.status == http.StatusUnauthorized || said.status == http.StatusForbidden):
		anybody := creds.Username == "" && creds.Auth == "" && creds.IdentityToken == "" && creds.RegistryToken == ""
		return nil, &saysNo{no: "denied", missing: domain == dockerHub && anybody, says: fmt.Sprintf("%s: registry %s says denied; docker login %s may help", cannot, domain, domain)}
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: registry %s did not answer in time", cannot, domain)
	}
	return nil, fmt.Errorf("%s: registry %s: %w", cannot, domain, err)
}

// dockerHub is the registry of names without one. To whom is not signed in it denies what it does
// not have.
const dockerHub = "docker.io"

// saysNo is a registry's no, as in answer.
type saysNo struct {
	no, says string
	missing  bool
}

func (e *saysNo) Error() string { return e.says }

// Missing reports whether docker.io has no such image for everybody. A name without a registry may be
// this host's own; one that names its registry is misspelt, or its registry lost it.
func (e *saysNo) Missing() bool { return e.missing }

func askFor(ctx context.Context, folder string, h registryHost, creds registry.AuthConfig, repo string, ask func(context.Context, *registryClient) ([]string, error)) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, tagsWithin)
	defer cancel()
	conf, err := tlsOf(folder, h)
	if err != nil {
		return nil, err
	}
	host, _, _ := strings.Cut(h.host, ":")
	road := newRegistryRoad(host, conf)
	defer road.close()
	c := &registryClient{base: "https://" + h.host, repo: repo, road: road, creds: creds}
	if h.plain {
		c.base = "http://" + h.host
	}
	return ask(ctx, c)
}

// tags lists those of the repository, page by page. A list that does not end is none: the
// newest may stand behind it.
func (c *registryClient) tags(ctx context.Context) (out []string, _ error) {
	path := fmt.Sprintf("/v2/%s/tags/list?n=%d", c.repo, tagsPerPage)
	for range mostTagPages {
		a, err := c.get(ctx, path, "application/json")
		if err != nil {
			return nil, err
		}
		if a.status != http.StatusOK {
			return nil, &statusError{a.status}
		}
		var said struct {
			Tags []string `json:"tags"`
		}
		if json.Unmarshal(a.body, &said) != nil {
			return nil, errors.New("a list of tags that cannot be read")
		}
		for _, tag := range said.Tags {
			if reference.TagRegexp.FindString(tag) == tag && tag != "" {
				out = append(out, tag)
			}
		}
		if a.link == "" {
			return out, nil
		}
		if path = c.samePlace(a); path == "" {
			return nil, errors.New("a list of tags that goes on elsewhere")
		}
	}
	return nil, fmt.Errorf("more than %d pages of tags", mostTagPages)
}

// samePlace is the path of the next page, also where the registry writes its own address
// before it; "" where it is another's.
func (c *registryClient) samePlace(a registryAnswer) string {
	if a.next != "" {
		return a.next
	}
	at, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(a.link), "<"), ">")
	own, err := url.Parse(c.base)
	to, wrong := url.Parse(at)
	if err != nil || wrong != nil || !strings.EqualFold(to.Host, own.Host) || !strings.HasPrefix(to.Path, "/v2/") {
		return ""
	}
	return to.RequestURI()
}

// digestOf is what a tag means. Registries count who fetches manifests, so it asks for the
// head alone where that has the digest.
func (c *registryClient) digestOf(ctx context.Context, tag string) (string, error) {
	path := "/v2/" + c.repo + "/manifests/" + tag
	a, err := c.ask(ctx, http.MethodHead, path, manifestTypes)
	if err == nil && a.status == http.StatusOK && imageID.MatchString(a.digest) {
		return a.digest, nil
	}
	if err == nil && a.status != http.StatusOK && a.status != http.StatusMethodNotAllowed {
		return "", &statusError{a.status}
	}
	if a, err = c.get(ctx, path, manifestTypes); err != nil {
		return "", err
	}
	if a.status != http.StatusOK {
		return "", &statusError{a.status}
	}
	sum := sha256.Sum256(a.body)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
