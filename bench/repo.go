package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// repo is a bare remote, a clone to commit in, and a key that signs there.
type repo struct {
	dir, clone string
	signers    string // the allowed_signers file
	url        string // where the daemon finds the remote
	server     *http.Server
}

// newRepo makes a remote with one signed commit in which there is no app.
func (b *bench) newRepo(ctx context.Context) (*repo, error) {
	// What an earlier part left tells of commits that this repository does not
	// have, and a daemon without state would rightly refuse to begin.
	if err := b.clean(ctx); err != nil {
		return nil, err
	}
	dir, err := b.folder("repo")
	if err != nil {
		return nil, err
	}
	r := &repo{dir: dir, clone: dir + "/clone", signers: dir + "/signers", url: "file://" + dir + "/remote.git"}
	if err := r.run(ctx, dir, "git", "init", "-q", "--bare", "-b", "main", "remote.git"); err != nil {
		return nil, err
	}
	if err := r.makeKey(ctx); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", r.clone},
		{"-C", r.clone, "remote", "add", "origin", dir + "/remote.git"},
		{"-C", r.clone, "config", "user.name", "Bench"},
		{"-C", r.clone, "config", "user.email", "bench@gitring.example"},
		{"-C", r.clone, "config", "gpg.format", "ssh"},
		{"-C", r.clone, "config", "user.signingKey", dir + "/key"},
		{"-C", r.clone, "config", "commit.gpgSign", "true"},
		{"-C", r.clone, "config", "gc.auto", "0"},
	} {
		if err := r.run(ctx, dir, "git", args...); err != nil {
			return nil, err
		}
	}
	if err := r.write("README", "apps\n"); err != nil {
		return nil, err
	}
	_, err = r.push(ctx, "Begin")
	return r, err
}

func (r *repo) makeKey(ctx context.Context) error {
	if err := r.run(ctx, r.dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", r.dir+"/key"); err != nil {
		return err
	}
	pub, err := os.ReadFile(r.dir + "/key.pub")
	if err != nil {
		return err
	}
	f := strings.Fields(string(pub))
	return write(r.signers, fmt.Sprintf("bench@gitring.example namespaces=\"git\" %s %s\n", f[0], f[1]))
}

// run runs a program in dir, with nothing of the user's own git configuration.
func (r *repo) run(ctx context.Context, dir, name string, args ...string) error {
	_, err := r.output(ctx, dir, name, args...)
	return err
}

func (r *repo) output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot run %s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (r *repo) write(name, text string) error { return write(filepath.Join(r.clone, name), text) }

// push commits what was written, signed, and pushes it.
func (r *repo) push(ctx context.Context, subject string) (commit string, err error) {
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", subject}, {"push", "-q", "origin", "HEAD:main"}} {
		if err := r.run(ctx, r.clone, "git", args...); err != nil {
			return "", err
		}
	}
	return r.output(ctx, r.clone, "git", "rev-parse", "HEAD")
}

// overHTTP serves the remote by git's own smart-HTTP backend from now on.
func (r *repo) overHTTP(ctx context.Context) error {
	path, err := r.output(ctx, r.dir, "git", "--exec-path")
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: &cgi.Handler{
		Path:   filepath.Join(path, "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + r.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
		Stderr: io.Discard,
	}}
	go func() { _ = r.server.Serve(l) }()
	r.url = "http://" + l.Addr().String() + "/remote.git"
	return nil
}

func (r *repo) close() {
	if r.server != nil {
		_ = r.server.Close()
	}
}

// grow gives the remote a history of so many unsigned commits and files, and
// the clone a signed commit on top of it.
func (r *repo) grow(ctx context.Context, files, commits int) error {
	bare := r.dir + "/remote.git"
	cmd := exec.CommandContext(ctx, "git", "fast-import", "--quiet", "--force")
	cmd.Dir = bare
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	w := bufio.NewWriter(in)
	for c := range commits {
		text := fmt.Sprintf("commit %d", c)
		fmt.Fprintf(w, "commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata %d\n%s\n", 1_700_000_000+c, len(text), text)
		if c == 0 {
			for i := range files {
				importFile(w, i, 0)
			}
			continue
		}
		importFile(w, c*7919%files, c)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := in.Close(); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("cannot import the history: %w", err)
	}
	for _, args := range [][]string{{"fetch", "-q", "origin"}, {"reset", "-q", "--hard", "origin/main"}} {
		if err := r.run(ctx, r.clone, "git", args...); err != nil {
			return err
		}
	}
	return nil
}

func importFile(w io.Writer, i, c int) {
	text := fmt.Sprintf("file %d at %d\n", i, c)
	fmt.Fprintf(w, "M 100644 inline d%03d/f%05d.txt\ndata %d\n%s\n", i%200, i, len(text), text)
}

// compose is an app of so many services. Each has a network of its own subnet:
// the engine's default pools end near 30 networks.
func compose(services int, version string, subnet string) string {
	var b strings.Builder
	b.WriteString("services:\n")
	for i := range services {
		name := "app"
		if i > 0 {
			name = fmt.Sprintf("app%d", i)
		}
		fmt.Fprintf(&b, `  %s:
    image: %s
    pull_policy: never
    environment: {VERSION: "%s"}
    stop_grace_period: 2s
    x-gitring: {rollout: {min_ready_time: 0s}}
`, name, imageName, version)
	}
	fmt.Fprintf(&b, "networks:\n  default: {ipam: {config: [{subnet: %s}]}}\n", subnet)
	return b.String()
}

// subnetOf is the i-th network of 16 addresses.
func (b *bench) subnetOf(i int) string {
	return fmt.Sprintf("%s.%d.%d/28", b.settings.subnet, i/16, i%16*16)
}

func appName(i int) string { return fmt.Sprintf("bench-%03d", i) }
