package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"

	"github.com/gitring/gitring/program"
	"github.com/gitring/gitring/ring"
)

// login is who signs in at an image's registry: by the host's own helpers, else by the docker
// config.
func (d *Docker) login(ctx context.Context, image reference.Named) (registry.AuthConfig, error) {
	return loginBy(ctx, d.opts.Helpers, d.opts.DockerConfig, image)
}

// loginBy is login by helpers and a docker config that are handed in.
func loginBy(ctx context.Context, helpers map[string]string, config string, image reference.Named) (registry.AuthConfig, error) {
	domain := reference.Domain(image)
	if helper := HelperFor(helpers, domain); helper != "" {
		return askHelper(ctx, helper, domain)
	}
	return loginFor(ctx, config, image)
}

// credentials are those of login, in the form that the engine takes; "" for none.
func (d *Docker) credentials(ctx context.Context, image reference.Named) (string, error) {
	return encoded(d.login(ctx, image))
}

// HelperFor is the helper of a registry, by the patterns of a host: of several that match, the
// longest counts. "" is none.
func HelperFor(helpers map[string]string, domain string) string {
	var matching []string
	for pattern := range helpers {
		if ring.ImageMatches(pattern, strings.ToLower(domain)) {
			matching = append(matching, pattern)
		}
	}
	if len(matching) == 0 {
		return ""
	}
	slices.SortFunc(matching, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return helpers[matching[0]]
}

// askHelper runs docker-credential-<name>, as Docker's own command line does. One that hangs
// ends with the request. What it says is in no error: it may be a secret.
func askHelper(ctx context.Context, name, domain string) (registry.AuthConfig, error) {
	heard, err := program.Answer(ctx, program.Call{
		Argv: []string{"docker-credential-" + name, "get"}, Env: os.Environ(), In: authKey(domain), Most: mostSaid,
	})
	cannot := "cannot read registry credentials of " + domain
	switch {
	case ctx.Err() != nil:
		return registry.AuthConfig{}, fmt.Errorf("%s: the credential helper %s did not answer: %w", cannot, name, ctx.Err())
	case heard.Exit != 0 && strings.Contains(heard.Out, "credentials not found"):
		return registry.AuthConfig{}, nil // the protocol's word for none
	case err != nil || heard.Exit != 0:
		return registry.AuthConfig{}, fmt.Errorf("%s: the credential helper docker-credential-%s failed", cannot, name)
	}
	var said struct{ Username, Secret string }
	if json.Unmarshal([]byte(heard.Out), &said) != nil || said.Username == "" || said.Secret == "" {
		return registry.AuthConfig{}, fmt.Errorf("%s: the credential helper docker-credential-%s gave none", cannot, name)
	}
	if said.Username == "<token>" {
		return registry.AuthConfig{ServerAddress: authKey(domain), IdentityToken: said.Secret}, nil
	}
	return registry.AuthConfig{ServerAddress: authKey(domain), Username: said.Username, Password: said.Secret}, nil
}
