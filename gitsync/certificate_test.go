package gitsync

import (
	"crypto/ed25519"
	"crypto/rand"
	mathrand "math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// certify makes a certificate of the named key with ssh-keygen -s.
func (y *yard) certify(ca, name string, args ...string) *ssh.Certificate {
	y.t.Helper()
	y.run(append(os.Environ(), "TZ=UTC"), y.keys, "ssh-keygen", append(append([]string{"-q", "-s", ca}, args...), name+".pub")...)
	b, err := os.ReadFile(filepath.Join(y.keys, name+"-cert.pub"))
	require.NoError(y.t, err)
	k, _, _, _, err := ssh.ParseAuthorizedKey(b)
	require.NoError(y.t, err)
	return k.(*ssh.Certificate)
}

// authority makes a CA and trusts it with the options as written.
func (y *yard) authority(name, principals, options string, args ...string) {
	y.t.Helper()
	y.signers = append(y.signers, principals+" cert-authority"+options+" "+y.key(name, args...))
}

// certCommit is a commit on HEAD signed by git itself with a key and its
// certificate.
func (y *yard) certCommit(name string, when time.Time) ring.SHA {
	y.t.Helper()
	return y.commitWith(when, "by "+name, "-S"+filepath.Join(y.keys, name+"-cert.pub"))
}

// certSigned is a commit signed by hand with a certificate that ssh-keygen would
// not make.
func (y *yard) certSigned(c *ssh.Certificate, key ssh.Signer) ring.SHA {
	y.t.Helper()
	s, err := ssh.NewCertSigner(c, key)
	require.NoError(y.t, err)
	d := y.draft(noon)
	return y.put(d.signed(sshSign(y.t, s, d.payload(), "git")))
}

// TestCertificates is V57 of docs/testing/trust-table.md, with the certificates of the real
// ssh-keygen. Where ssh-keygen and git answer too, they answer the same, but for
// what the rule of two times, revocation and critical options make stricter.
func TestCertificates(t *testing.T) {
	const good = "20250601:20250701"
	rows := []struct {
		name string
		look func(y *yard) look
	}{
		{"a certificate for a name that the line permits", func(y *yard) look {
			y.authority("ca", "*@example.org", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org", "-V", good)
			return look{tip: y.certCommit("alice", noon), signer: "alice@example.org", git: &yes}
		}},
		{"the second name of the certificate is the one permitted", func(y *yard) look {
			y.authority("ca", "*@example.org,!root@example.org", `,namespaces="git"`)
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "root@example.org,alice@other.org,alice@example.org")
			return look{tip: y.certCommit("alice", noon), signer: "alice@example.org", git: &yes}
		}},
		{"an RSA authority and an ECDSA key", func(y *yard) look {
			y.authority("ca", "alice@example.org", "", "-t", "rsa", "-b", "2048")
			y.key("alice", "-t", "ecdsa", "-b", "384")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), signer: "alice@example.org", git: &yes}
		}},
		{"an RSA key in a certificate", func(y *yard) look {
			y.authority("ca", "alice@example.org", "")
			y.key("alice", "-t", "rsa", "-b", "2048")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), signer: "alice@example.org", git: &yes}
		}},
		{"an expired certificate", func(y *yard) look {
			y.authority("ca", "*@example.org", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org", "-V", "20250101:20250201")
			return look{tip: y.certCommit("alice", noon), want: ring.Certificate, says: "expired at 2025-02-01", git: &no}
		}},
		{"an expired certificate, commit backdated into its time", func(y *yard) look {
			y.authority("ca", "*@example.org", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org", "-V", "20250101:20250201")
			return look{tip: y.certCommit("alice", noon.Add(-145*day)), want: ring.Certificate, says: "first seen here at 2025-06-15", git: &yes}
		}},
		{"a certificate that expired while this host was away", func(y *yard) look {
			y.authority("ca", "*@example.org", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org", "-V", "20250101:20250614")
			return look{tip: y.certCommit("alice", noon.Add(-2*day)), signer: "alice@example.org", note: "certificate expired at 2025-06-13T23:59:59Z; inside expiry_grace"}
		}},
		{"a certificate that is not valid yet", func(y *yard) look {
			y.authority("ca", "*@example.org", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org", "-V", "20250616:20250701")
			return look{tip: y.certCommit("alice", noon), want: ring.Certificate, says: "valid from", git: &no}
		}},
		{"a name that the line does not permit", func(y *yard) look {
			y.authority("ca", "*@example.org", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@elsewhere.org")
			return look{tip: y.certCommit("alice", noon), want: ring.Certificate, says: "alice@elsewhere.org", git: &no}
		}},
		{"a name that the line forbids", func(y *yard) look {
			y.authority("ca", "*@example.org,!alice@example.org", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), want: ring.Certificate, git: &no}
		}},
		{"a certificate that names nobody", func(y *yard) look {
			y.authority("ca", "*", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice")
			return look{tip: y.certCommit("alice", noon), want: ring.Certificate, says: "names nobody", git: &no}
		}},
		{"a host certificate", func(y *yard) look {
			y.authority("ca", "*", "")
			y.key("alice")
			y.certify("ca", "alice", "-h", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), want: ring.Certificate, says: "for a host", git: &no}
		}},
		{"a critical option", func(y *yard) look {
			y.authority("ca", "*", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org", "-O", "force-command=/bin/true")
			return look{tip: y.certCommit("alice", noon), want: ring.Certificate, says: "force-command"}
		}},
		{"an authority that no line has", func(y *yard) look {
			y.authority("ca", "*", "")
			ca := y.key("other")
			y.key("alice")
			y.certify("other", "alice", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), want: ring.UnknownSigner, hint: strings.Fields(ca)[1], git: &no}
		}},
		{"an authority whose line is no cert-authority", func(y *yard) look {
			y.allow("ca", "")
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "ca@example.org")
			return look{tip: y.certCommit("alice", noon), want: ring.UnknownSigner, git: &no}
		}},
		{"a certificate of a key that a plain line has", func(y *yard) look {
			y.allow("alice", "")
			y.key("ca")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), want: ring.UnknownSigner, git: &no}
		}},
		{"an authority's line that expired", func(y *yard) look {
			y.authority("ca", "*", `,valid-before="20250501Z"`)
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), want: ring.KeyExpired, git: &no}
		}},
		{"an authority's line that is for files", func(y *yard) look {
			y.authority("ca", "*", `,namespaces="file"`)
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), want: ring.Namespace, git: &no}
		}},
		{"a revoked authority", func(y *yard) look {
			y.authority("ca", "*", "")
			y.revoked = []string{strings.Join(strings.Fields(y.signers[0])[2:], " ")}
			y.key("alice")
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), want: ring.Certificate, says: "authority"}
		}},
		{"a revoked key in a good certificate", func(y *yard) look {
			y.authority("ca", "*", "")
			y.revoked = []string{y.key("alice")}
			y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			return look{tip: y.certCommit("alice", noon), want: ring.Revoked}
		}},
		{"a certificate that its authority did not sign", func(y *yard) look {
			y.authority("ca", "*", "")
			y.key("alice")
			c := y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
			c.ValidPrincipals = []string{"root@example.org"}
			return look{tip: y.certSigned(c, y.signer("alice")), want: ring.Certificate, says: "did not sign it", git: &no}
		}},
		{"an authority that signs with SHA-1", func(y *yard) look {
			ca := rsaSigner(y.t, 2048)
			y.signers = append(y.signers, "* cert-authority "+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(ca.PublicKey()))))
			y.key("alice")
			c := &ssh.Certificate{Key: y.signer("alice").PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"alice@example.org"}, ValidBefore: ssh.CertTimeInfinity, Nonce: []byte("n"), SignatureKey: ca.PublicKey()}
			var err error
			c.Signature, err = ca.SignWithAlgorithm(rand.Reader, certifiedBytes(c), ssh.KeyAlgoRSA)
			require.NoError(y.t, err)
			return look{tip: y.certSigned(c, y.signer("alice")), want: ring.WeakKey, says: "SHA-1"}
		}},
		{"an authority of 1024 bits", func(y *yard) look {
			ca := rsaSigner(y.t, 1024)
			y.signers = append(y.signers, "* cert-authority "+strings.TrimSpace(string(ssh.MarshalAuthorizedKey(ca.PublicKey()))))
			y.key("alice")
			c := &ssh.Certificate{Key: y.signer("alice").PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"alice@example.org"}, ValidBefore: ssh.CertTimeInfinity}
			require.NoError(y.t, c.SignCert(rand.Reader, ca))
			return look{tip: y.certSigned(c, y.signer("alice")), want: ring.WeakKey, says: "1024 bits"}
		}},
		{"a security key in a certificate, not touched", func(y *yard) look { return certifiedTouch(y, 0, ring.NoUserPresence) }},
		{"a security key in a certificate, touched", func(y *yard) look { return certifiedTouch(y, userPresent, "") }},
		{"a certificate whose times run over", func(y *yard) look {
			y.authority("ca", "*", "")
			y.key("alice")
			c := &ssh.Certificate{Key: y.signer("alice").PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"alice@example.org"}, ValidAfter: 1 << 63, ValidBefore: 1<<63 + 1}
			require.NoError(y.t, c.SignCert(rand.Reader, y.signer("ca")))
			return look{tip: y.certSigned(c, y.signer("alice")), want: ring.Certificate, git: &no}
		}},
	}
	for _, row := range rows {
		t.Run("V57 "+row.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			l := row.look(y)
			y.ask(l)
			if l.want == "" {
				require.True(t, y.keygenGood(l.tip, l.signer), "accepted, and ssh-keygen -Y verify refuses")
			}
		})
	}
}

// certifiedTouch is a commit signed by a security key of software with a
// certificate.
func certifiedTouch(y *yard, flags byte, want ring.Code) look {
	y.t.Helper()
	y.authority("ca", "*", "")
	k := newTouched(y.t)
	key, err := ssh.ParsePublicKey(k.public)
	require.NoError(y.t, err)
	c := &ssh.Certificate{Key: key, CertType: ssh.UserCert, ValidPrincipals: []string{"alice@example.org"}, ValidBefore: ssh.CertTimeInfinity}
	require.NoError(y.t, c.SignCert(rand.Reader, y.signer("ca")))
	k.public = c.Marshal()
	d := y.draft(noon)
	l := look{tip: y.put(d.signed(k.sign(y.t, d.payload(), flags))), want: want}
	if want == "" {
		l.signer, l.git = "alice@example.org", &yes
	}
	return l
}

// keygenGood asks ssh-keygen -Y verify about a commit's signature, as git does.
func (y *yard) keygenGood(sha ring.SHA, principal string, options ...string) bool {
	y.t.Helper()
	p, refusal, err := readCommit(y, sha)
	require.NoError(y.t, err)
	require.Nil(y.t, refusal)
	dir := y.t.TempDir()
	signers, sig := filepath.Join(dir, "signers"), filepath.Join(dir, "sig")
	require.NoError(y.t, os.WriteFile(signers, []byte(strings.Join(y.signers, "\n")+"\n"), 0o600))
	require.NoError(y.t, os.WriteFile(sig, p.signature, 0o600))
	cmd := exec.Command("ssh-keygen", append([]string{
		"-Y", "verify", "-n", "git", "-f", signers, "-I", principal, "-s", sig,
		"-Overify-time=" + p.committer.when.In(time.Local).Format("20060102150405"),
	}, options...)...)
	cmd.Stdin = strings.NewReader(string(p.payload))
	return cmd.Run() == nil
}

// TestNoCertificateIsAcceptedThatSSHKeygenRefuses makes certificates of every odd
// kind, most of them signed by the authority, and holds what is accepted against
// ssh-keygen -Y verify. GITRING_MUTATIONS asks for more than the usual 300.
func TestNoCertificateIsAcceptedThatSSHKeygenRefuses(t *testing.T) {
	t.Parallel()
	n := 300
	if v := os.Getenv("GITRING_MUTATIONS"); v != "" {
		var err error
		n, err = strconv.Atoi(v)
		require.NoError(t, err)
		n = min(n, 10_000)
	}
	y := newYard(t)
	y.authority("ca", "*@example.org,!root@example.org", `,namespaces="git",valid-before="20260101Z"`)
	y.authority("second", "alice@*", "", "-t", "ecdsa")
	y.key("other")
	y.key("alice")
	alice := y.signer("alice")
	trust := y.trust()
	rnd := mathrand.New(mathrand.NewSource(57))
	pick := func(of ...string) string { return of[rnd.Intn(len(of))] }
	at := func(days int) uint64 { return uint64(noon.Add(time.Duration(days) * day).Unix()) }
	times := []uint64{0, 1, at(-400), at(-2), at(-1), uint64(noon.Unix()), uint64(noon.Unix()) + 1, at(1), at(400), 1 << 62, 1 << 63, ssh.CertTimeInfinity}
	accepted := 0
	for range n {
		c := &ssh.Certificate{
			Key: alice.PublicKey(), KeyId: pick("", "alice", "\x00odd\n"), Serial: uint64(rnd.Intn(3)),
			CertType: []uint32{1, 1, 1, 1, 1, 1, 2, 0}[rnd.Intn(8)], ValidBefore: ssh.CertTimeInfinity,
		}
		for range rnd.Intn(3) {
			c.ValidPrincipals = append(c.ValidPrincipals, pick("alice@example.org", "alice@example.org", "root@example.org", "*@example.org", "", "a,b@example.org", "alice@elsewhere.org"))
		}
		if rnd.Intn(2) == 0 {
			c.ValidAfter, c.ValidBefore = times[rnd.Intn(len(times))], times[rnd.Intn(len(times))]
		}
		if rnd.Intn(8) == 0 {
			c.CriticalOptions = map[string]string{pick("force-command", "verify-required", "x"): pick("", "true")}
		}
		if rnd.Intn(3) == 0 {
			c.Extensions = map[string]string{pick("permit-pty", "no-touch-required", "x@y"): ""}
		}
		require.NoError(t, c.SignCert(rand.Reader, y.signer(pick("ca", "ca", "ca", "second", "other"))))
		switch rnd.Intn(12) {
		case 0:
			c.Nonce = append(c.Nonce, 0)
		case 1:
			c.ValidPrincipals = append(c.ValidPrincipals, "alice@example.org")
		case 2:
			c.SignatureKey = y.signer("ca").PublicKey()
		case 3:
			c.Signature.Blob[rnd.Intn(len(c.Signature.Blob))] ^= 1
		}
		tip := y.certSigned(c, alice)
		one, refusal, err := trust.One(y, tip, noon, nil)
		require.NoError(t, err)
		if refusal == nil {
			accepted++
			require.True(t, y.keygenGood(tip, one.Signer), "accepted, and ssh-keygen -Y verify -I %s refuses: %+v", one.Signer, c)
		}
	}
	require.Greater(t, accepted, n/20, "too few accepted to mean anything")
	require.Less(t, accepted, n*3/4, "too few refused to mean anything")
}

// One signed commit has one form: what nobody signed of a signature is refused.
func TestNobodyMakesASecondCommitOfASignedOne(t *testing.T) {
	y := newYard(t)
	y.authority("ca", "*", "")
	y.key("alice")
	c := y.certify("ca", "alice", "-I", "alice", "-n", "alice@example.org")
	s, err := ssh.NewCertSigner(c, y.signer("alice"))
	require.NoError(t, err)
	d := y.draft(noon)
	raw, err := unarmor(sshSign(t, s, d.payload(), "git"), beginSSH, endSSH, false)
	require.NoError(t, err)
	var blob sshBlob
	require.NoError(t, ssh.Unmarshal(raw, &blob))
	trust := y.trust()

	for _, change := range []struct {
		name string
		do   func(b *sshBlob)
		says string
	}{
		{"a reserved field", func(b *sshBlob) { b.Reserved = "x" }, "reserved"},
		{"bytes behind the certificate", func(b *sshBlob) { b.PublicKey += "x" }, "cannot be read"},
		{"extensions in another order", func(b *sshBlob) {
			one, two := tuple("permit-X11-forwarding"), tuple("permit-agent-forwarding")
			require.Contains(t, b.PublicKey, one+two)
			b.PublicKey = strings.Replace(b.PublicKey, one+two, two+one, 1)
		}, ""},
	} {
		b := blob
		change.do(&b)
		_, refusal, err := trust.Range(y, "", y.put(d.signed(armourSSH(ssh.Marshal(b)))), noon, nil)
		require.NoError(t, err)
		require.NotNil(t, refusal, change.name)
		require.Equal(t, ring.BadSignature, refusal.Code, change.name)
		require.Contains(t, refusal.Says, change.says)
	}
}

func tuple(name string) string { return string(ssh.Marshal(struct{ Name, Value string }{name, ""})) }

// FuzzCertificate: no certificate, however odd, counts unless the authority of the
// line signed those very bytes.
func FuzzCertificate(f *testing.F) {
	ca, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, 32)))
	require.NoError(f, err)
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32)))
	public, err := ssh.NewPublicKey(key.Public())
	require.NoError(f, err)
	made := map[string]bool{}
	for _, c := range []ssh.Certificate{
		{ValidPrincipals: []string{"alice@example.org"}, ValidBefore: ssh.CertTimeInfinity, KeyId: "alice", Serial: 7},
		{ValidPrincipals: []string{"a", "b"}, ValidAfter: 1, ValidBefore: 1 << 62, Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": ""}}},
		{CertType: ssh.HostCert, Permissions: ssh.Permissions{CriticalOptions: map[string]string{"force-command": "true"}}},
	} {
		c.Key, c.CertType = public, max(c.CertType, ssh.UserCert)
		require.NoError(f, c.SignCert(zeros{}, ca))
		made[string(c.Marshal())] = true
		f.Add(c.Marshal())
	}
	line := sshSigner{principals: []string{"*"}, key: ca.PublicKey(), authority: true, place: "signers:1"}
	lines := sshSigners{string(ca.PublicKey().Marshal()): {line}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		k, err := ssh.ParsePublicKey(raw)
		if err != nil {
			return
		}
		by := sshSignerOf(k)
		if by.cert == nil || len(by.lines(lines)) == 0 || string(k.Marshal()) != string(raw) {
			return
		}
		refusal := by.certifiedFor(ring40, &revocations{})
		if refusal == nil {
			require.True(t, made[string(raw)], "the authority never signed it")
			_, refusal = line.judge(ring40, by, moments{claimed: noon, seen: noon, now: noon})
		}
		if refusal != nil {
			require.NotEmpty(t, refusal.Says)
		}
	})
}

// zeros are a source of randomness for seeds that have to be the same each time.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
