package runtime

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/distribution/reference"
	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/ring"
)

func TestMakeData(t *testing.T) {
	root := filepath.Join(t.TempDir(), "srv")
	for _, rel := range []string{"../x", "/x", "", "a/../../x"} {
		require.Error(t, makeData(root, rel), rel)
	}
	require.NoError(t, makeData(root, "app/a/b"))
	require.NoError(t, makeData(root, "app/a/b"))
	require.NoError(t, os.WriteFile(filepath.Join(root, "app/file"), []byte("x"), 0o600))
	require.NoError(t, makeData(root, "app/file"), "a file that is there is mounted as it is")
	require.Error(t, makeData(root, "app/file/x"))
	require.NoError(t, os.Chmod(filepath.Join(root, "app/a"), 0o700))
	require.NoError(t, makeData(root, "app/a"))
	st, err := os.Stat(filepath.Join(root, "app/a"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm(), "what exists is left as it is")

	away := t.TempDir()
	for name, to := range map[string]string{"out": away, "in": "a", "dangling": "nowhere"} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, "app", name)))
		require.ErrorContains(t, makeData(root, "app/"+name), "symlink")
		require.Error(t, makeData(root, "app/"+name+"/x"))
	}
	left, err := os.ReadDir(away)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestHaveContent(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "ab/d"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "ab/d/f"), nil, 0o444))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(root, "ab/l")))
	ok := func(source, file string) error { return haveContent(root, ring.Mount{Source: source, File: file}) }
	require.NoError(t, ok("ab", ""))
	require.NoError(t, ok("ab", "d/f"))
	for _, bad := range [][2]string{{"", ""}, {"..", ""}, {".", ""}, {"a/b", ""}, {"cd", ""}, {"ab", "../x"}, {"ab", "d"}, {"ab", "l"}, {"ab", "nope"}} {
		require.Error(t, ok(bad[0], bad[1]), "%v", bad)
	}
}

func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	image := func(s string) reference.Named {
		n, err := reference.ParseNormalizedNamed(s)
		require.NoError(t, err)
		return n
	}
	read := func(path, name string) string {
		auth, err := credentials(t.Context(), path, image(name))
		require.NoError(t, err)
		b, err := base64.URLEncoding.DecodeString(auth)
		require.NoError(t, err)
		return string(b)
	}
	require.Empty(t, read("", "web"))
	require.Empty(t, read(filepath.Join(dir, "none.json"), "web"))
	file := filepath.Join(dir, "config.json")
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	require.NoError(t, os.WriteFile(file, []byte(`{"auths":{"registry.example.org":{"auth":"`+b64("bot:s3cret")+`"},"https://index.docker.io/v1/":{"auth":"`+b64("hub:pw")+`"}}}`), 0o600))
	for _, path := range []string{file, dir} {
		require.Contains(t, read(path, "registry.example.org/web:1"), `"password":"s3cret"`)
		require.Contains(t, read(path, "web"), `"username":"hub"`)
		require.Empty(t, read(path, "other.example.org/web"))
	}
	require.NoError(t, os.WriteFile(file, []byte(`{"auths":{"registry.example.org":{"auth":"s3cret!"}}}`), 0o600))
	_, err := credentials(t.Context(), file, image("registry.example.org/web"))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "s3cret")
	require.True(t, strings.HasPrefix(err.Error(), "cannot "))
}

func TestACredentialHelperThatHangsKeepsNobodyLonger(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	helper := filepath.Join(dir, "docker-credential-stuck")
	require.NoError(t, os.WriteFile(helper, []byte("#!/bin/sh\nread -r line <"+pipe+"\n"), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"credHelpers":{"registry.example.org":"stuck"}}`), 0o600))
	image, err := reference.ParseNormalizedNamed("registry.example.org/web:1")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	_, err = credentials(ctx, dir, image)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "cannot read registry credentials of registry.example.org: the credential helper did not answer")
	open, err := os.OpenFile(pipe, os.O_RDWR, 0) // lets the helper go on, and end
	require.NoError(t, err)
	_, err = open.WriteString("\n")
	require.NoError(t, err)
	require.NoError(t, open.Close())
}
