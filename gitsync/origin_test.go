package gitsync

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// origin is a real repository made with the real git: a bare one to follow and
// a clone to work in.
type origin struct {
	t    *testing.T
	bare string
	work string
	key  string // private key that signs
	// signers trusts key as alice@example.org.
	signers string
	// at is when commits claim to be made; zero is now.
	at time.Time
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	dir := t.TempDir()
	o := &origin{t: t, bare: filepath.Join(dir, "remote.git"), work: filepath.Join(dir, "work"), signers: filepath.Join(dir, "allowed_signers")}
	o.key = filepath.Join(dir, "alice")
	line := newKey(t, o.key)
	require.NoError(t, os.WriteFile(o.signers, []byte("alice@example.org namespaces=\"git\" "+line), 0o600))
	o.git("", "init", "-q", "--bare", "-b", "main", o.bare)
	o.git("", "clone", "-q", o.bare, o.work)
	o.git(o.work, "checkout", "-q", "-B", "main")
	return o
}

// newKey writes an ed25519 key and gives its public line.
func newKey(t *testing.T, file string) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	pub, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	line := string(ssh.MarshalAuthorizedKey(pub))
	require.NoError(t, os.WriteFile(file+".pub", []byte(line), 0o600))
	return line
}

func gitEnv() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Alice", "GIT_AUTHOR_EMAIL=alice@example.org", "GIT_COMMITTER_NAME=Alice", "GIT_COMMITTER_EMAIL=alice@example.org")
}

// git runs git in dir and gives its output.
func (o *origin) git(dir string, args ...string) string {
	o.t.Helper()
	cmd := exec.Command("git", append([]string{
		"-c", "gpg.format=ssh", "-c", "user.signingkey=" + o.key, "-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false",
	}, args...)...)
	cmd.Dir, cmd.Env = dir, gitEnv()
	// Wall time inside a synctest bubble is another one than git's.
	at := o.at
	if at.IsZero() {
		at = time.Now()
	}
	now := at.UTC().Format(time.RFC3339)
	cmd.Env = append(cmd.Env, "GIT_AUTHOR_DATE="+now, "GIT_COMMITTER_DATE="+now)
	out, err := cmd.CombinedOutput()
	require.NoError(o.t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

func (o *origin) write(name, content string) {
	o.t.Helper()
	file := filepath.Join(o.work, name)
	require.NoError(o.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(o.t, os.WriteFile(file, []byte(content), 0o644))
}

func (o *origin) head() ring.SHA { return ring.SHA(o.git(o.work, "rev-parse", "HEAD")) }

// commit makes a commit of one changed file; flags go to git commit.
func (o *origin) commit(content string, flags ...string) ring.SHA {
	o.t.Helper()
	o.write("compose.yaml", content)
	o.git(o.work, "add", "-A")
	o.git(o.work, append([]string{"commit", "-q", "-m", "set " + content}, flags...)...)
	return o.head()
}

// signed makes a signed commit and pushes it.
func (o *origin) signed(content string) ring.SHA {
	o.t.Helper()
	sha := o.commit(content, "-S")
	o.push()
	return sha
}

func (o *origin) push() { o.t.Helper(); o.git(o.work, "push", "-q", "--force", "origin", "HEAD:main") }

func (o *origin) url() string { return "file://" + o.bare }

// trust believes in key alone.
func (o *origin) trust() TrustConfig {
	return TrustConfig{Mode: Strict, AllowedSigners: o.signers, ExpiryGrace: DefaultExpiryGrace}
}

// follow makes a follower of the remote at url, with its own mirror.
func (o *origin) follow(a Anchors, change ...func(*Config)) *Follower {
	o.t.Helper()
	cfg := Config{
		Name: "prod", URL: o.url(), Branch: "main", Trust: o.trust(), Poll: "60s",
		Dir: filepath.Join(o.t.TempDir(), "git", "prod"),
	}
	for _, c := range change {
		c(&cfg)
	}
	f, err := New(cfg, a, slog.New(slog.DiscardHandler))
	require.NoError(o.t, err)
	o.t.Cleanup(f.mirror.rest)
	return f
}

// looker drives a follower look by look, as Run does.
type looker struct {
	*watch
	t *testing.T
}

func lookAt(t *testing.T, f *Follower) *looker {
	l := &looker{&watch{Follower: f}, t}
	l.begin(t.Context())
	return l
}

// must look without an error of the world.
func (l *looker) must() ring.Report {
	l.t.Helper()
	r := l.look(l.t.Context())
	require.NoError(l.t, r.Err)
	require.True(l.t, r.Reached)
	l.tidy(l.t.Context())
	return r
}

// ledger is what the store does, in memory.
type ledger struct {
	mu     sync.Mutex
	anchor ring.Anchor
	seen   map[ring.SHA]time.Time
	asked  int // calls of FirstSeen
	moves  []ring.Anchor
	good   []ring.Verified
	events []ring.Event
	fail   error // of Trust
	blind  error // of Anchor
}

func (l *ledger) Anchor(context.Context, string) (ring.Anchor, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.anchor, l.blind
}

func (l *ledger) FirstSeen(_ context.Context, _ string, shas []ring.SHA, now time.Time) (map[ring.SHA]time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.seen == nil {
		l.seen = map[ring.SHA]time.Time{}
	}
	out := map[ring.SHA]time.Time{}
	for _, s := range shas {
		if _, ok := l.seen[s]; !ok {
			l.seen[s] = now
		}
		out[s] = l.seen[s]
	}
	return out, nil
}

func (l *ledger) Verified(_ context.Context, _ string, sha ring.SHA) (ring.Verified, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range slices.Backward(l.good) {
		if v.SHA == sha {
			v.Landed, v.AllowRemove, v.AllowWaves, v.Data = false, 0, false, nil // the store does not keep them
			return v, true, nil
		}
	}
	return ring.Verified{}, false, nil
}

func (l *ledger) Standing(_ context.Context, _ string, sha ring.SHA) (ring.Standing, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := ring.NeverSeen
	if _, ok := l.seen[sha]; ok {
		out = ring.SeenOnly
	}
	for _, v := range l.good {
		switch {
		case v.SHA == sha && v.Signed:
			return ring.OwnSignature, nil
		case v.SHA == sha:
			out = ring.LetIn
		}
	}
	return out, nil
}

func (l *ledger) Carriers(_ context.Context, _, payload string) (all []ring.Carrier, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.good {
		for i, p := range v.Payloads {
			if p == payload {
				all = append(all, ring.Carrier{By: v.SHA, AsHead: v.Landed && i == 0})
			}
		}
	}
	return all, nil
}

func (l *ledger) Trust(_ context.Context, a ring.Anchor, commits []ring.Verified, events []ring.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.anchor, l.moves = a, append(l.moves, a)
	l.good, l.events = append(l.good, commits...), append(l.events, events...)
	return nil
}

func (l *ledger) sawAll() []ring.SHA { return slices.Sorted(maps.Keys(l.seen)) }
