package runtime

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/require"
)

// credentialsOf is who logs in at an image's registry, by what the engine is given.
func credentialsOf(ctx context.Context, config, image string) (user, password string, err error) {
	name, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", "", err
	}
	auth, err := credentials(ctx, config, name)
	if auth == "" {
		return "", "", err
	}
	raw, err := base64.URLEncoding.DecodeString(auth)
	if err != nil {
		return "", "", err
	}
	var c struct{ Username, Password string }
	return c.Username, c.Password, json.Unmarshal(raw, &c)
}

func TestCredentialsAreThoseOfTheRegistry(t *testing.T) {
	login := func(user string) obj {
		return obj{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":secret of " + user))}
	}
	dir := t.TempDir()
	config := dockerConfig(t, dir, obj{"auths": obj{
		"https://index.docker.io/v1/": login("hub"), "registry.example.org": login("example"),
		"https://ghcr.example.org/v2/": login("url"), "127.0.0.1:5000": login("port"),
	}})
	for image, user := range map[string]string{
		"nginx": "hub", "acme/app:1": "hub", "docker.io/acme/app@sha256:0808080808080808080808080808080808080808080808080808080808080808": "hub",
		"registry.example.org/a/b": "example", "ghcr.example.org/x": "url", "127.0.0.1:5000/app": "port",
		"127.0.0.1:5001/app": "", "example.org/a": "", "index.example.org/v1": "",
	} {
		for _, path := range []string{config, dir} {
			got, password, err := credentialsOf(t.Context(), path, image)
			require.NoError(t, err, image)
			require.Equal(t, user, got, image)
			if user != "" {
				require.Equal(t, "secret of "+user, password, image)
			}
		}
	}
}

func TestCredentialHelpersThatFail(t *testing.T) {
	dir := t.TempDir()
	helper(t, dir, "loud", `echo "the secret is hunter2" >&2; echo hunter2; exit 1`)
	helper(t, dir, "none", `echo "credentials not found in native keychain"; exit 1`)
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	helper(t, dir, "slow", "exec cat "+fifo)
	config := dockerConfig(t, dir, obj{"credHelpers": obj{
		"loud.example.org": "loud", "none.example.org": "none", "slow.example.org": "slow", "lost.example.org": "is-not-there",
	}})
	for _, at := range []string{"loud.example.org", "lost.example.org"} {
		_, _, err := credentialsOf(t.Context(), config, at+"/app")
		require.EqualError(t, err, "cannot read registry credentials of "+at+": the credential helper failed")
	}
	user, _, err := credentialsOf(t.Context(), config, "none.example.org/app")
	require.NoError(t, err, "who has none for a registry is nobody there, as docker has it")
	require.Empty(t, user)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = credentialsOf(ctx, config, "slow.example.org/app")
	require.ErrorContains(t, err, "the credential helper did not answer")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	end, err := os.OpenFile(fifo, os.O_WRONLY, 0) // when the helper reads it
	require.NoError(t, err)
	require.NoError(t, end.Close())

	_, _, err = credentialsOf(t.Context(), filepath.Join(dir, "docker-credential-loud"), "a.example.org/b")
	require.ErrorContains(t, err, "is no docker config file")
	require.NotContains(t, err.Error(), "hunter2")
}
