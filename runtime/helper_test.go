package runtime

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
	"github.com/stretchr/testify/require"
)

func TestAHelperOfTheHostSignsInAtItsRegistries(t *testing.T) {
	bin := t.TempDir()
	helper := func(name, body string) {
		require.NoError(t, os.WriteFile(filepath.Join(bin, "docker-credential-"+name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	helper("ecr-login", `read at; echo "{\"ServerURL\":\"$at\",\"Username\":\"AWS\",\"Secret\":\"$at for $1\"}"`)
	helper("tokens", `echo '{"Username":"<token>","Secret":"identity"}'`)
	helper("none", `echo "credentials not found in native keychain"; exit 1`)
	helper("fails", `echo "secret of the helper"; exit 1`)
	helper("empty", `echo '{}'`)
	helper("hangs", `sleep 600 & wait`)
	d := newDocker(Options{Helpers: map[string]string{
		"*.dkr.ecr.*.amazonaws.com": "ecr-login", "1.dkr.ecr.eu-west-1.amazonaws.com": "none", "tokens.example.org": "tokens", "docker.io": "ecr-login",
		"fails.example.org": "fails", "empty.example.org": "empty", "hangs.example.org": "hangs", "missing.example.org": "missing",
	}}, &calls{}, nil)
	login := func(ctx context.Context, image string) (registry.AuthConfig, error) {
		name, err := reference.ParseNormalizedNamed(image)
		require.NoError(t, err)
		return d.login(ctx, name)
	}
	for image, want := range map[string]registry.AuthConfig{
		"2.dkr.ecr.eu-west-1.amazonaws.com/web": {Username: "AWS", Password: "2.dkr.ecr.eu-west-1.amazonaws.com for get", ServerAddress: "2.dkr.ecr.eu-west-1.amazonaws.com"},
		"1.dkr.ecr.eu-west-1.amazonaws.com/web": {}, // the longest pattern counts
		"tokens.example.org/web":                {IdentityToken: "identity", ServerAddress: "tokens.example.org"},
		"nginx":                                 {Username: "AWS", Password: "https://index.docker.io/v1/ for get", ServerAddress: "https://index.docker.io/v1/"},
		"other.example.org/web":                 {},
	} {
		got, err := login(t.Context(), image)
		require.NoError(t, err, image)
		require.Equal(t, want, got, image)
	}
	for _, image := range []string{"fails.example.org/web", "empty.example.org/web", "missing.example.org/web"} {
		_, err := login(t.Context(), image)
		require.ErrorContains(t, err, "cannot read registry credentials of ", image)
		require.NotContains(t, err.Error(), "secret of the helper")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := login(ctx, "hangs.example.org/web")
	require.ErrorIs(t, err, context.DeadlineExceeded, "it ends with the request")

	l, err := LoginOf("", d.opts.Helpers, "missing.example.org/web")
	require.NoError(t, err)
	require.Equal(t, Login{Helper: "docker-credential-missing", Missing: true}, l)
}
