package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repo is a clone whose commits are signed, and the bare repository it pushes
// to, which is what the daemon follows.
type repo struct {
	t          *testing.T
	work, bare string
	signers    string // allowed_signers
}

func newRepo(t *testing.T, dir string) *repo {
	t.Helper()
	r := &repo{t: t, work: filepath.Join(dir, "work"), bare: filepath.Join(dir, "remote.git"), signers: filepath.Join(dir, "allowed_signers")}
	key := filepath.Join(dir, "key")
	pub := newKey(t, key)
	require.NoError(t, os.WriteFile(r.signers, []byte(`alice@example.org namespaces="git" `+pub), 0o600))
	r.run(dir, "init", "-q", "--bare", "-b", "main", r.bare)
	r.run(dir, "init", "-q", "-b", "main", r.work)
	for _, kv := range [][2]string{
		{"user.name", "Alice"},
		{"user.email", "alice@example.org"},
		{"gpg.format", "ssh"},
		{"user.signingKey", key},
		{"commit.gpgSign", "true"},
	} {
		r.git("config", kv[0], kv[1])
	}
	r.git("remote", "add", "origin", r.bare)
	return r
}

// newKey makes an SSH key without passphrase; it returns the public line
// without its comment.
func newKey(t *testing.T, file string) string {
	t.Helper()
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	b, err := os.ReadFile(file + ".pub")
	require.NoError(t, err)
	return strings.TrimSpace(string(b)) + "\n"
}

// git runs in the clone, without what git would find of the user's own.
func (r *repo) git(args ...string) string {
	r.t.Helper()
	return r.run(r.work, args...)
}

func (r *repo) run(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(bareEnviron(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

// bareEnviron is the environment without git's and gitring's own variables.
func bareEnviron() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "GITRING_") {
			env = append(env, v)
		}
	}
	return env
}

// files are by path in the commit; "" removes one.
type files map[string]string

func (r *repo) write(fs files) {
	r.t.Helper()
	for name, text := range fs {
		path := filepath.Join(r.work, name)
		if text == "" {
			require.NoError(r.t, os.RemoveAll(path))
			continue
		}
		require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(r.t, os.WriteFile(path, []byte(text), 0o644))
	}
	r.git("add", "-A")
}

// commit makes a signed commit of what was written; it need not change anything.
func (r *repo) commit(subject string, args ...string) string {
	r.t.Helper()
	r.git(append([]string{"commit", "-q", "--allow-empty", "-m", subject}, args...)...)
	return r.head()
}

func (r *repo) head() string { r.t.Helper(); return r.git("rev-parse", "HEAD") }

func (r *repo) push() { r.t.Helper(); r.git("push", "-q", "--force", "origin", "HEAD:main") }

// pushed writes, commits and pushes.
func (r *repo) pushed(subject string, fs files, args ...string) string {
	r.t.Helper()
	r.write(fs)
	sha := r.commit(subject, args...)
	r.push()
	return sha
}
