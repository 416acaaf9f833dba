package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/runtime/registrytest"
)

// TestImagesUpdateAsAPersonRunsIt: a registry, a clone, a key that signs, and the verb.
func TestImagesUpdateAsAPersonRunsIt(t *testing.T) {
	for _, needs := range []string{"git", "ssh-keygen"} {
		if _, err := exec.LookPath(needs); err != nil {
			t.Skip("there is no " + needs)
		}
	}
	g := registrytest.New()
	limited := false
	g.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if limited && strings.Contains(r.URL.Path, "/acme/db/") {
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		return false
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	const index = "application/vnd.oci.image.index.v1+json"
	for _, tag := range []string{"1.0", "1.1", "2.0", "latest"} {
		g.PutManifest("acme/web", tag, index, []byte("web "+tag))
		g.PutManifest("acme/db", tag, index, []byte("db "+tag))
	}

	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("DOCKER_CONFIG", filepath.Join(home, ".docker"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		require.NoError(t, err, "%v: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	key := filepath.Join(home, "key")
	require.NoError(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
	git("init", "-q", "-b", "main")
	for _, s := range [][2]string{{"user.name", "Bot"}, {"user.email", "bot@example.org"}, {"gpg.format", "ssh"}, {"user.signingkey", key + ".pub"}} {
		git("config", s[0], s[1])
	}
	text := "services:\n  web:\n    image: " + host + "/acme/web:1.0 # front\n  db:\n    image: " + host + "/acme/db:1.0\n  other:\n    image: " + host + "/acme/none:1.0\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "compose.yaml"), []byte(text), 0o644))
	git("add", "-A")
	git("commit", "-q", "-m", "one")
	gitring := func(args ...string) (int, string, string) {
		var out, said strings.Builder
		code := run(context.Background(), append(args, "--repo", dir), strings.NewReader(""), &out, &said, time.Now)
		return code, out.String(), said.String()
	}

	code, out, said := gitring("images", "update", "--dry-run")
	require.Equal(t, exit.Unreachable, code, "one of three was not asked for")
	require.Contains(t, out, "+    image: "+host+"/acme/web:1.1 # front")
	require.Contains(t, out, "acme/none:1.0: cannot list the tags of "+host+"/acme/none: registry "+host+" says not found")
	require.Contains(t, said, "error: the registry of 1 image did not say what is newer")
	require.Equal(t, "1", git("rev-list", "--count", "HEAD"))

	limited = true
	code, out, _ = gitring("images", "update", "--to", "major", "-o", "json")
	require.Equal(t, exit.Unreachable, code)
	var result checkout.ImagesUpdated
	require.NoError(t, json.Unmarshal([]byte(out), &result), out)
	require.Len(t, result.Updates, 1, "the image of the registry that answers moves all the same")
	require.Equal(t, "2.0", result.Updates[0].To)
	require.Equal(t, git("rev-parse", "HEAD"), string(result.Commit))
	require.Contains(t, out, "limits requests (429)")

	limited = false
	body := strings.Replace(text, host+"/acme/none:1.0", host+"/acme/web:1.0", 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "compose.yaml"), []byte(body), 0o644))
	git("commit", "-qam", "two")
	code, out, said = gitring("images", "update", "--pin")
	require.Equal(t, 0, code, said)
	require.Contains(t, out, "committed")
	pinned := "@" + registrytest.Digest([]byte("web 1.1"))
	require.Equal(t, strings.NewReplacer("acme/web:1.0", "acme/web:1.1"+pinned, "acme/db:1.0", "acme/db:1.1@"+registrytest.Digest([]byte("db 1.1"))).Replace(body), git("show", "HEAD:compose.yaml")+"\n")
	code, _, said = gitring("images", "update", "--pin")
	require.Equal(t, 0, code, said)
	require.Contains(t, said, "nothing is newer")
	for _, r := range g.Requests() {
		require.Regexp(t, "^(GET|HEAD) ", r, "it only reads")
	}

	// Where the clone says what hosts have, a move further than the role goes is not made.
	pub, err := os.ReadFile(key + ".pub")
	require.NoError(t, err)
	config := filepath.Join(home, "config.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(home, "signers"), []byte("bot@example.org "+string(pub)), 0o600))
	source := "  - {name: prod, url: file:///srv/git/infra.git, trust: {allowed_signers: signers, signers: [{signer: bot@example.org, roles: [images], moves: [patch, minor]}]}}\n"
	require.NoError(t, os.WriteFile(config, []byte("host: edge-1\nsources:\n"+source), 0o600))
	git("config", "gitring.config", config)
	remote := t.TempDir()
	git("init", "-q", "--bare", "-b", "main", remote)
	git("remote", "add", "origin", remote)
	git("push", "-q", "-u", "origin", "main")
	head := git("rev-parse", "HEAD")
	for _, how := range [][]string{{"--push"}, {"--branch", "updates"}, {}} {
		code, _, said = gitring(append([]string{"images", "update", "--to", "major"}, how...)...)
		require.Equal(t, exit.Refused, code, said)
		require.Contains(t, said, "error: NotImagesOnly compose.yaml: ")
		require.Equal(t, head, git("rev-parse", "HEAD"))
		require.Equal(t, head+"\trefs/heads/main", git("ls-remote", "--heads", "origin"))
	}
	require.NoError(t, os.WriteFile(config, []byte("host: edge-1\nsources:\n"+strings.Replace(source, "minor", "minor, major", 1)), 0o600))
	code, _, said = gitring("images", "update", "--to", "major", "--push")
	require.Equal(t, 0, code, said)
	require.NotEqual(t, head, git("rev-parse", "origin/main"))
	require.NoError(t, os.WriteFile(config, []byte("host: edge-1\nsources:\n"+source+strings.Replace(source, "prod", "lab", 1)), 0o600))
	g.PutManifest("acme/web", "3.0", index, []byte("web 3.0"))
	code, _, said = gitring("images", "update", "--to", "major")
	require.Equal(t, 0, code, said)
	require.Contains(t, said, "not held to what hosts accept: ")

	for _, wrong := range [][]string{{"images", "update", "--to", "huge"}, {"images", "update", "--push", "--branch", "b"}, {"images", "upgrade"}} {
		code, _, _ := gitring(wrong...)
		require.Equal(t, exit.Usage, code, wrong)
	}
}

// A digest is wider than a terminal, and is not broken in two: its first digits are shown.
func TestADiffBreaksNoDigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	diff := "-    image: nginx:1.27@" + digest + "\n+    image: nginx:1.28\n"
	require.Equal(t, "-    image: nginx:1.27@sha256:0123456789ab…\n+    image: nginx:1.28\n", fittingDiff(diff, 80, false))
	require.Equal(t, diff, fittingDiff(diff, 120, false), "it has room")
	require.Equal(t, diff, fittingDiff(diff, 80, true))
	require.Equal(t, diff, fittingDiff(diff, 0, false), "no terminal")
}
