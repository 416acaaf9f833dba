package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/docker/docker/api/types/registry"
)

// credentials are those of a docker config file for an image's registry, in
// the form that the engine takes; "" for none. A credential helper takes no
// context: one that hangs is left to itself, and keeps neither a pull beyond its
// time nor the end of the daemon.
func credentials(ctx context.Context, path string, image reference.Named) (string, error) {
	return encoded(loginFor(ctx, path, image))
}

func encoded(auth registry.AuthConfig, err error) (string, error) {
	if err != nil || auth == (registry.AuthConfig{}) {
		return "", err
	}
	return registry.EncodeAuthConfig(auth)
}

// loginFor is credentials as they are; zero for none.
func loginFor(ctx context.Context, path string, image reference.Named) (registry.AuthConfig, error) {
	type answer struct {
		auth registry.AuthConfig
		err  error
	}
	said := make(chan answer, 1)
	go func() {
		auth, err := readCredentials(path, image)
		said <- answer{auth, err}
	}()
	select {
	case a := <-said:
		return a.auth, a.err
	case <-ctx.Done():
		return registry.AuthConfig{}, fmt.Errorf("cannot read registry credentials of %s: the credential helper did not answer: %w", reference.Domain(image), ctx.Err())
	}
}

// readCredentials reads the file each time, so that a docker login counts at
// once. Its content is in no error.
func readCredentials(path string, image reference.Named) (none registry.AuthConfig, err error) {
	if path == "" {
		return none, nil
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, config.ConfigFileName)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("cannot read registry credentials: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	cf, err := config.LoadFromReader(f)
	if err != nil {
		return none, fmt.Errorf("cannot read registry credentials: %s is no docker config file", path)
	}
	domain := reference.Domain(image)
	c, err := cf.GetAuthConfig(authKey(domain))
	if err != nil {
		return none, fmt.Errorf("cannot read registry credentials of %s: the credential helper failed", domain)
	}
	if c.Username == "" && c.IdentityToken == "" && c.RegistryToken == "" {
		return none, nil
	}
	return registry.AuthConfig{
		Username: c.Username, Password: c.Password, ServerAddress: c.ServerAddress,
		IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken,
	}, nil
}

// authKey is what docker login files credentials under: for Docker Hub, and
// nothing else, it is not the name of the registry.
func authKey(domain string) string {
	if domain == "docker.io" {
		return "https://index.docker.io/v1/"
	}
	return domain
}
