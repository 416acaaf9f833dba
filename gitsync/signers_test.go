package gitsync

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAllowedSignersAreReadAsSSHKeygenReadsThem(t *testing.T) {
	y := newYard(t)
	key := strings.Join(strings.Fields(y.key("alice"))[:2], " ")
	payload := filepath.Join(t.TempDir(), "payload")
	require.NoError(t, os.WriteFile(payload, []byte("text"), 0o600))
	y.run(os.Environ(), y.keys, "ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", "alice", payload)

	// permits asks ssh-keygen whether the line lets alice@example.org sign at noon.
	permits := func(line string) bool {
		file := filepath.Join(t.TempDir(), "allowed_signers")
		require.NoError(t, os.WriteFile(file, []byte(line+"\n"), 0o600))
		cmd := exec.Command("ssh-keygen", "-Y", "verify", "-n", "git", "-f", file, "-I", "alice@example.org", "-s", payload+".sig", "-Overify-time="+noon.In(time.Local).Format("20060102150405"))
		cmd.Stdin = strings.NewReader("text")
		return cmd.Run() == nil
	}
	for _, c := range []struct {
		line  string
		good  bool
		wrong string // the error, where the line is not read at all
	}{
		{line: "alice@example.org " + key, good: true},
		{line: "alice@example.org " + key + " a comment", good: true},
		{line: "\t alice@example.org\t" + key, good: true},
		{line: "bob@example.org,alice@example.org " + key, good: true},
		{line: `"alice@example.org" ` + key, good: true},
		{line: "*@example.org " + key, good: true},
		{line: `alice@example.org namespaces="git" ` + key, good: true},
		{line: `alice@example.org namespaces="file,git" ` + key, good: true},
		{line: `alice@example.org NAMESPACES="g?t" ` + key, good: true},
		{line: `alice@example.org namespaces="*" ` + key, good: true},
		{line: `alice@example.org namespaces="file" ` + key},
		{line: `alice@example.org namespaces="*,!git" ` + key},
		{line: `alice@example.org cert-authority ` + key},
		{line: `alice@example.org valid-after="20250615" ` + key, good: true},
		{line: `alice@example.org valid-after="202506151200Z" ` + key, good: true},
		{line: `alice@example.org valid-after="20250615120001Z" ` + key},
		{line: `alice@example.org valid-before="20250615120000Z" ` + key, good: true},
		{line: `alice@example.org valid-before="20250615115959Z" ` + key},
		{line: `alice@example.org valid-before="20250614" ` + key},
		{line: `alice@example.org namespaces="git",valid-after="20250101",valid-before="20260101" ` + key, good: true},
		{line: `alice@example.org valid-after="20260101",valid-before="20250101" ` + key, wrong: "earlier"},
		{line: `alice@example.org valid-before=20250615 ` + key, wrong: "quotes"},
		{line: `alice@example.org valid-before="2025" ` + key, wrong: "is not a time"},
		{line: `alice@example.org valid-before="20251399" ` + key, wrong: "is not a time"},
		{line: `alice@example.org namespaces="git",namespaces="file" ` + key, wrong: "twice"},
		{line: `alice@example.org namespaces="git", ` + key, wrong: "comma"},
		{line: `alice@example.org no-touch-required ` + key, wrong: "unknown option"},
		{line: `alice@example.org namespaces="git ` + key, wrong: "not closed"},
		{line: "alice@example.org", wrong: "no key"},
		{line: key, wrong: "the line begins with the key, as in a .pub file; write who it is before it: alice@example.org ssh-ed25519 AAAA…"},
		{line: "-----BEGIN OPENSSH PRIVATE KEY-----", wrong: "this is a private key"},
		{line: "alice@example.org ssh-ed25519 AAAA", wrong: "the key is cut off at its beginning; paste the whole line of the .pub file"},
		{line: "alice@example.org ssh-ed25519 ****", wrong: "base64"},
		{line: "alice@example.org ssh-ed25519", wrong: "base64"},
		{line: "alice@example.org ssh-rsa " + strings.Fields(key)[1], wrong: "the key says"},
		{line: "alice@example.org " + key + "AAAA", wrong: "cannot be read"},
	} {
		signers, err := parseAllowedSigners("signers", []byte("# first\n\n"+c.line+"\n"))
		if c.wrong != "" {
			require.ErrorContains(t, err, c.wrong, c.line)
			require.ErrorContains(t, err, "cannot read signers:3: ", c.line)
			require.False(t, permits(c.line), "ssh-keygen takes %s", c.line)
			continue
		}
		require.NoError(t, err, c.line)
		require.Equal(t, c.good, permits(c.line), "ssh-keygen on %s", c.line)
		lines := signers.of(y.signer("alice").PublicKey())
		if len(lines) == 0 {
			require.False(t, c.good, c.line)
			continue
		}
		require.Equal(t, "signers:3", lines[0].place)
		id, refusal := judgeLines(ring40, sshBy{name: "key"}, lines, moments{claimed: noon, seen: noon, now: noon})
		require.Equal(t, c.good, refusal == nil, c.line)
		if c.good && !strings.HasPrefix(c.line, "*") && !strings.HasPrefix(c.line, "bob") {
			require.Equal(t, "alice@example.org", id.principal, c.line)
		}
	}
}

func TestAnEmptyPrincipalIsAMistake(t *testing.T) { // which ssh-keygen lets pass
	y := newYard(t)
	_, err := parseAllowedSigners("signers", []byte("alice@example.org,,b "+y.key("alice")))
	require.ErrorContains(t, err, "principal")
}

const ring40 = "0123456789012345678901234567890123456789"

func TestTheNameOfASignerIsTheFirstThatIsNoPattern(t *testing.T) {
	require.Equal(t, "alice@example.org", sshSigner{principals: []string{"*@example.org", "alice@example.org"}}.principal())
	require.Equal(t, "*@example.org", sshSigner{principals: []string{"*@example.org"}}.principal())
}

func TestTimesWithoutAZoneAreThisHosts(t *testing.T) {
	defer func(z *time.Location) { time.Local = z }(time.Local)
	time.Local = time.FixedZone("here", 2*3600)
	at, err := parseSSHTime("202506151400")
	require.NoError(t, err)
	require.Equal(t, noon, at)
	at, err = parseSSHTime("202506151200Z")
	require.NoError(t, err)
	require.Equal(t, noon, at)
}

func TestRevokedKeysAreKeysOrFingerprints(t *testing.T) {
	y := newYard(t)
	key := y.key("alice")
	fpr := strings.Fields(y.run(os.Environ(), y.keys, "ssh-keygen", "-l", "-f", "alice"))[1]
	pgp := strings.Repeat("0123ABCDEF", 4)
	for _, line := range []string{key, fpr, fpr + " lost"} {
		r, err := parseRevoked("revoked", []byte("# why\n\n"+line+"\n"))
		require.NoError(t, err, line)
		where, ok := r.has("other", fpr)
		require.True(t, ok, line)
		require.Equal(t, "revoked:3", where)
	}
	for _, line := range []string{pgp, strings.ToLower(pgp), "0x" + pgp, pgp[:20] + "  " + pgp[20:], pgp + " # lost"} {
		r, err := parseRevoked("revoked", []byte(line))
		require.NoError(t, err, line)
		_, ok := r.has(pgp)
		require.True(t, ok, line)
	}
	for line, want := range map[string]string{
		"SHA256:abc":       "whole SHA256",
		pgp[:16]:           "full OpenPGP fingerprint",
		"serial: 7":        "no public key",
		"ssh-ed25519 AAAA": "the key is cut off",
	} {
		_, err := parseRevoked("revoked", []byte(line))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "cannot read revoked")
	}
}
