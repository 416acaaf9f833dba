package runtime

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHowARegistryIsSignedInToIsReadAndNotTried(t *testing.T) {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "docker-credential-here"), []byte("#!/bin/sh\ntouch "+bin+"/ran\n"), 0o755))
	t.Setenv("PATH", bin)
	dir := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte("me:secret"))
	write := func(body string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(body), 0o600))
	}
	of := func(image string) Login {
		t.Helper()
		l, err := LoginOf(dir, nil, image)
		require.NoError(t, err)
		return l
	}
	require.Equal(t, Login{}, of("ghcr.io/acme/api:1"), "there is no file")
	write(`{"auths":{"ghcr.io":{"auth":"` + auth + `"},"https://index.docker.io/v1/":{"auth":"` + auth + `"}},"credHelpers":{"reg.example.org":"here","old.example.org":"gone"}}`)
	require.Equal(t, Login{File: true}, of("ghcr.io/acme/api:1"))
	require.Equal(t, Login{File: true}, of("nginx:1"))
	require.Equal(t, Login{}, of("quay.io/acme/api:1"))
	require.Equal(t, Login{Helper: "docker-credential-here"}, of("reg.example.org/api:1"))
	require.Equal(t, Login{Helper: "docker-credential-gone", Missing: true}, of("old.example.org/api:1"))
	require.NoFileExists(t, filepath.Join(bin, "ran"))
	write(`{"credsStore":"gone"}`)
	require.Equal(t, Login{Helper: "docker-credential-gone", Missing: true}, of("nginx:1"))
	write(`secret {`)
	_, err := LoginOf(dir, nil, "nginx:1")
	require.ErrorContains(t, err, "is no docker config file")
	require.NotContains(t, err.Error(), "secret")
	l, err := LoginOf("", nil, "nginx:1")
	require.NoError(t, err)
	require.Equal(t, Login{}, l)
}
