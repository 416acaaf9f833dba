package gitsync

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// noon is now in every test of the verifier; gpg and git are told the same.
var noon = time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// yard is a repository of the real git, with the real ssh-keygen and gpg at
// hand. It implements Objects through git cat-file.
type yard struct {
	t       testing.TB
	dir     string // the repository
	keys    string // private SSH keys, by name
	gnupg   string
	signers []string // lines of allowed_signers
	revoked []string

	in  io.WriteCloser
	out *bufio.Reader
}

func newYard(t testing.TB) *yard {
	t.Helper()
	top := t.TempDir()
	y := &yard{t: t, dir: filepath.Join(top, "repo"), keys: filepath.Join(top, "keys")}
	require.NoError(t, os.Mkdir(y.keys, 0o700))
	y.run(y.at(noon), top, "git", "init", "-q", "-b", "main", y.dir)
	return y
}

// at is an environment where it is that time for git and gpg.
func (y *yard) at(when time.Time) []string {
	date := when.UTC().Format(time.RFC3339)
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Alice", "GIT_AUTHOR_EMAIL=alice@example.org", "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME=Alice", "GIT_COMMITTER_EMAIL=alice@example.org", "GIT_COMMITTER_DATE="+date,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false",
		"GNUPGHOME="+y.gnupg, "GPG_AT="+when.UTC().Format("20060102T150405!"), "LC_ALL=C")
}

func (y *yard) run(env []string, dir, name string, args ...string) string {
	y.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(y.t, err, "%s %v: %s", name, args, stderr.String())
	return strings.TrimSpace(string(out))
}

func (y *yard) git(args ...string) string {
	y.t.Helper()
	return y.run(y.at(noon), y.dir, "git", args...)
}

// key makes an SSH key; its public line comes back. One of the usual kind is written here,
// as ssh-keygen writes it: that many processes are most of what a yard costs.
func (y *yard) key(name string, args ...string) string {
	y.t.Helper()
	file := filepath.Join(y.keys, name)
	if len(args) == 0 {
		public, private, err := ed25519.GenerateKey(nil)
		require.NoError(y.t, err)
		block, err := ssh.MarshalPrivateKey(private, name)
		require.NoError(y.t, err)
		sshPublic, err := ssh.NewPublicKey(public)
		require.NoError(y.t, err)
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(sshPublic))) + " " + name
		require.NoError(y.t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
		require.NoError(y.t, os.WriteFile(file+".pub", []byte(line+"\n"), 0o600))
		return line
	}
	y.run(os.Environ(), y.keys, "ssh-keygen", append([]string{"-q", "-N", "", "-C", name, "-f", file}, args...)...)
	pub, err := os.ReadFile(file + ".pub")
	require.NoError(y.t, err)
	return strings.TrimSpace(string(pub))
}

// allow makes an SSH key and trusts it, with the options as written.
func (y *yard) allow(name, options string, args ...string) {
	y.t.Helper()
	y.signers = append(y.signers, strings.Join(strings.Fields(name+"@example.org "+options+" "+y.key(name, args...)), " "))
}

// commit makes an empty commit on HEAD, signed by the named SSH key unless "".
func (y *yard) commit(key string, when time.Time, message string) ring.SHA {
	y.t.Helper()
	return y.commitWith(when, message, y.signWith(key)...)
}

func (y *yard) signWith(key string) []string {
	if key == "" {
		return []string{"--no-gpg-sign"}
	}
	return []string{"-S" + filepath.Join(y.keys, key)}
}

func (y *yard) commitWith(when time.Time, message string, flags ...string) ring.SHA {
	y.t.Helper()
	y.run(y.at(when), y.dir, "git", append([]string{"-c", "gpg.format=ssh", "commit", "-q", "--allow-empty", "-m", message}, flags...)...)
	return y.head()
}

func (y *yard) merge(key string, others ...string) ring.SHA {
	y.t.Helper()
	args := append([]string{"-c", "gpg.format=ssh", "merge", "-q", "--no-ff", "-m", "merge"}, y.signWith(key)...)
	if key == "" {
		args[len(args)-1] = "--no-gpg-sign"
	}
	y.git(append(args, others...)...)
	return y.head()
}

// head is read as git stores it where that is one file, and else asked for.
func (y *yard) head() ring.SHA {
	y.t.Helper()
	at, err := os.ReadFile(filepath.Join(y.dir, ".git", "HEAD"))
	require.NoError(y.t, err)
	if ref, named := strings.CutPrefix(strings.TrimSpace(string(at)), "ref: "); named {
		at, err = os.ReadFile(filepath.Join(y.dir, ".git", filepath.FromSlash(ref)))
	}
	if err != nil { // packed
		return ring.SHA(y.git("rev-parse", "HEAD"))
	}
	return ring.SHA(strings.TrimSpace(string(at)))
}

func (y *yard) checkout(rev ring.SHA, branch string) {
	y.t.Helper()
	y.git("checkout", "-q", "-B", branch, string(rev))
}

// put writes the bytes as a commit, whatever they are.
func (y *yard) put(raw string) ring.SHA {
	y.t.Helper()
	cmd := exec.Command("git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	cmd.Dir, cmd.Stdin = y.dir, strings.NewReader(raw)
	out, err := cmd.Output()
	require.NoError(y.t, err)
	return ring.SHA(strings.TrimSpace(string(out)))
}

// good says what git verify-commit says.
func (y *yard) good(shas ...ring.SHA) bool {
	y.t.Helper()
	file := filepath.Join(y.t.TempDir(), "allowed_signers")
	require.NoError(y.t, os.WriteFile(file, []byte(strings.Join(y.signers, "\n")+"\n"), 0o600))
	args := []string{"-c", "gpg.ssh.allowedSignersFile=" + file, "verify-commit"}
	for _, s := range shas {
		args = append(args, string(s))
	}
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = y.dir, y.at(noon)
	return cmd.Run() == nil
}

func (y *yard) Raw(sha ring.SHA) (string, []byte, error) {
	if y.in == nil {
		cmd := exec.Command("git", "cat-file", "--batch")
		cmd.Dir = y.dir
		in, err := cmd.StdinPipe()
		require.NoError(y.t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(y.t, err)
		require.NoError(y.t, cmd.Start())
		y.in, y.out = in, bufio.NewReader(out)
		y.t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	}
	fmt.Fprintln(y.in, sha)
	head, err := y.out.ReadString('\n')
	if err != nil {
		return "", nil, err
	}
	f := strings.Fields(head)
	if len(f) == 2 {
		return "", nil, fmt.Errorf("cannot read %s: %w", sha, ErrMissing)
	}
	var size int
	if _, err := fmt.Sscan(f[2], &size); err != nil {
		return "", nil, err
	}
	body := make([]byte, size+1)
	if _, err := io.ReadFull(y.out, body); err != nil {
		return "", nil, err
	}
	return f[1], body[:size], nil
}

// trust loads the yard's files with the configuration changed as told.
func (y *yard) trust(change ...func(*TrustConfig)) *Trust {
	y.t.Helper()
	dir := y.t.TempDir()
	cfg := TrustConfig{Mode: Strict, AllowedSigners: filepath.Join(dir, "allowed_signers"), ExpiryGrace: DefaultExpiryGrace}
	require.NoError(y.t, os.WriteFile(cfg.AllowedSigners, []byte(strings.Join(y.signers, "\n")+"\n"), 0o600))
	if y.revoked != nil {
		cfg.RevokedKeys = filepath.Join(dir, "revoked")
		require.NoError(y.t, os.WriteFile(cfg.RevokedKeys, []byte(strings.Join(y.revoked, "\n")+"\n"), 0o600))
	}
	for _, c := range change {
		c(&cfg)
	}
	t, err := LoadTrust(cfg, "prod", "main")
	require.NoError(y.t, err)
	return t
}

// gpg prepares a key ring of its own; its agent ends with the test.
func (y *yard) gpg() {
	y.t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gr") // a socket's path is short or not at all
	require.NoError(y.t, err)
	y.gnupg = dir
	y.t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", dir, "--kill", "gpg-agent").Run()
		os.RemoveAll(dir)
	})
	script := "#!/bin/sh\nexec gpg --batch --no-tty --quiet --pinentry-mode loopback --passphrase '' --faked-system-time \"$GPG_AT\" $GPG_MORE \"$@\"\n"
	require.NoError(y.t, os.WriteFile(filepath.Join(dir, "gpg-at"), []byte(script), 0o700))
}

// gpgAt runs gpg as if it were that time.
func (y *yard) gpgAt(when time.Time, args ...string) string {
	y.t.Helper()
	return y.run(y.at(when), y.dir, filepath.Join(y.gnupg, "gpg-at"), args...)
}

// pgpKey makes a key and gives its fingerprint.
func (y *yard) pgpKey(made time.Time, name, algo, usage, expire string) string {
	y.t.Helper()
	y.gpgAt(made, "--quick-generate-key", strings.ToUpper(name[:1])+name[1:]+" <"+name+"@example.org>", algo, usage, expire)
	for line := range strings.Lines(y.gpgAt(made, "--with-colons", "--list-keys", name+"@example.org")) {
		if f := strings.Split(line, ":"); f[0] == "fpr" {
			return f[9]
		}
	}
	y.t.Fatal("gpg lists no fingerprint")
	return ""
}

// pgpCommit makes a commit signed by gpg at that time.
func (y *yard) pgpCommit(key string, when time.Time, more string) ring.SHA {
	y.t.Helper()
	env := append(y.at(when), "GPG_MORE="+more)
	y.run(env, y.dir, "git", "-c", "gpg.format=openpgp", "-c", "gpg.program="+filepath.Join(y.gnupg, "gpg-at"),
		"commit", "-q", "--allow-empty", "-m", "by "+key, "-S"+key)
	return y.head()
}

// keyring exports the keys, one armoured block each, in one file.
func (y *yard) keyring(keys ...string) func(*TrustConfig) {
	y.t.Helper()
	var all strings.Builder
	for _, k := range keys {
		all.WriteString("# " + k + "\n" + y.gpgAt(noon, "--armor", "--export", k) + "\n")
	}
	file := filepath.Join(y.t.TempDir(), "keys.asc")
	require.NoError(y.t, os.WriteFile(file, []byte(all.String()), 0o600))
	return func(c *TrustConfig) { c.OpenPGPKeys = file }
}

// draft is a commit made by hand: the payload and where gpgsig would go.
type draft struct {
	top  string // up to and with the committer line
	rest string // other headers
	text string
}

func (y *yard) draft(when time.Time, parents ...ring.SHA) draft {
	y.t.Helper()
	tree := y.git("hash-object", "-t", "tree", "-w", "/dev/null")
	return plain(ring.SHA(tree), when, parents...)
}

func plain(tree ring.SHA, when time.Time, parents ...ring.SHA) draft {
	var top strings.Builder
	fmt.Fprintf(&top, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&top, "parent %s\n", p)
	}
	who := fmt.Sprintf("Alice <alice@example.org> %d +0000\n", when.Unix())
	top.WriteString("author " + who + "committer " + who)
	return draft{top: top.String(), text: "change\n"}
}

func (d draft) payload() string { return d.top + d.rest + "\n" + d.text }

// signed is the commit with the armour as its gpgsig header.
func (d draft) signed(armour []byte) string {
	return d.top + d.rest + "gpgsig " + fold(armour) + "\n" + d.text
}

func fold(armour []byte) string {
	return strings.ReplaceAll(strings.TrimSuffix(string(armour), "\n"), "\n", "\n ") + "\n"
}

// signer reads a private key of the yard, to sign what git would not make.
func (y *yard) signer(name string) ssh.Signer {
	y.t.Helper()
	b, err := os.ReadFile(filepath.Join(y.keys, name))
	require.NoError(y.t, err)
	s, err := ssh.ParsePrivateKey(b)
	require.NoError(y.t, err)
	return s
}

func sshSign(t testing.TB, s ssh.Signer, payload, namespace string) []byte {
	t.Helper()
	sig, err := sshsig.Sign(strings.NewReader(payload), s, sshsig.HashSHA512, namespace)
	require.NoError(t, err)
	return sshsig.Armor(sig)
}

// blobOver is an SSH signature put together by hand.
func blobOver(t testing.TB, key []byte, payload string, sign func(data []byte) []byte) []byte {
	t.Helper()
	sum := sha512.Sum512([]byte(payload))
	data := append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Algorithm, Hash string }{"git", "", "sha512", string(sum[:])})...)
	blob := sshBlob{Magic: [6]byte([]byte("SSHSIG")), Version: 1, PublicKey: string(key), Namespace: "git", Hash: "sha512", Signature: string(sign(data))}
	sig := ssh.Marshal(blob)
	return armourSSH(sig)
}

func armourSSH(raw []byte) []byte {
	var b strings.Builder
	b.WriteString(beginSSH + "\n")
	text := base64Std(raw)
	for len(text) > 70 {
		b.WriteString(text[:70] + "\n")
		text = text[70:]
	}
	b.WriteString(text + "\n" + endSSH + "\n")
	return []byte(b.String())
}

// touched is a security key made of software; flags are what it says of the
// touch (1 is user present).
type touched struct {
	private ed25519.PrivateKey
	public  []byte
}

func newTouched(t testing.TB) touched {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return touched{private, ssh.Marshal(struct{ Type, Key, App string }{ssh.KeyAlgoSKED25519, string(public), "ssh:"})}
}

func (k touched) line() string { return ssh.KeyAlgoSKED25519 + " " + base64Std(k.public) }

func (k touched) sign(t testing.TB, payload string, flags byte) []byte {
	return blobOver(t, k.public, payload, func(data []byte) []byte {
		app, msg := sha256.Sum256([]byte("ssh:")), sha256.Sum256(data)
		over := append(append(app[:], flags, 0, 0, 0, 7), msg[:]...)
		sig := ssh.Marshal(struct{ Type, Blob string }{ssh.KeyAlgoSKED25519, string(ed25519.Sign(k.private, over))})
		return append(sig, flags, 0, 0, 0, 7)
	})
}

func rsaSigner(t testing.TB, bits int) ssh.AlgorithmSigner {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	s, err := ssh.NewSignerFromKey(k)
	require.NoError(t, err)
	return s.(ssh.AlgorithmSigner)
}

// runIn is git with its error.
func runIn(y *yard, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = y.dir, y.at(noon)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
