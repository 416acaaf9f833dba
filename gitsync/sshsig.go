package gitsync

import (
	"bytes"
	"crypto/rsa"
	"encoding/binary"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
)

// gitNamespace is what git gives to ssh-keygen -Y sign.
const gitNamespace = "git"

// minRSA is in bits.
const minRSA = 2048

// sshBlob is the outside of an SSH signature (OpenSSH's PROTOCOL.sshsig). It is
// read before the library reads it, because the library's errors do not tell a
// weak signature from a broken one.
type sshBlob struct {
	Magic     [6]byte
	Version   uint32
	PublicKey string
	Namespace string
	Reserved  string
	Hash      string
	Signature string
}

// verifySSH checks an SSH signature, the signer's line and both times.
func (t *Trust) verifySSH(p *parsed, m moments) (identity, *ring.Refusal) {
	raw, err := unarmor(p.signature, beginSSH, endSSH, false)
	if err != nil {
		return identity{}, badSignature(p.sha, "%v", err)
	}
	sig, refusal := readSSHSignature(p.sha, raw)
	if refusal != nil {
		return identity{}, refusal
	}
	by := sshSignerOf(sig.PublicKey)
	if refusal := by.sound(p.sha); refusal != nil {
		return identity{}, refusal
	}
	if where, ok := t.revoked.hasKey(by.key); ok {
		return identity{}, revokedKey(p.sha, by.name, where)
	}
	lines := by.lines(t.ssh)
	if t.repo != nil {
		lines = append(lines, by.lines(t.repo.ssh)...)
	}
	if len(lines) == 0 {
		return identity{}, unknownSigner(p, by.name, by.line(), t.placeFor(t.cfg.AllowedSigners))
	}
	if refusal := by.certifiedFor(p.sha, &t.revoked); refusal != nil {
		return identity{}, refusal
	}
	if sig.Namespace != gitNamespace {
		return identity{}, badNamespace(p.sha, "its namespace is %q", clip(sig.Namespace))
	}
	if refusal := checkSSHForm(p.sha, by, sig); refusal != nil {
		return identity{}, refusal
	}
	if err := sshsig.Verify(bytes.NewReader(p.payload), sig, sig.PublicKey, sig.HashAlgorithm, gitNamespace); err != nil {
		return identity{}, badSignature(p.sha, "it is over something else than this commit, or not by key %s", by.name)
	}
	// From here the key signed this very payload; what is left is whether it may.
	if refusal := t.cfg.Require.ssh(p.sha, by, sig); refusal != nil {
		return identity{}, refusal
	}
	return judgeLines(p.sha, by, lines, m)
}

// readSSHSignature takes a signature apart. Whatever of it is not signed has one
// form, so that nobody makes another commit of a signed one.
func readSSHSignature(sha ring.SHA, raw []byte) (*sshsig.Signature, *ring.Refusal) {
	var blob sshBlob
	if err := ssh.Unmarshal(raw, &blob); err != nil {
		return nil, badSignature(sha, "it is not an SSH signature")
	}
	if blob.Reserved != "" {
		return nil, badSignature(sha, "its reserved field is not empty")
	}
	algo, sigAlgo := firstString(blob.PublicKey), firstString(blob.Signature)
	switch {
	case strings.HasPrefix(algo, ssh.InsecureKeyAlgoDSA): //nolint:staticcheck // to refuse it
		return nil, weakKey(sha, "DSA keys are broken")
	case strings.HasPrefix(algo, ssh.KeyAlgoRSA) && sigAlgo == ssh.KeyAlgoRSA:
		return nil, weakKey(sha, "ssh-rsa signatures use SHA-1")
	}
	sig, err := sshsig.ParseSignature(raw)
	if err != nil {
		return nil, badSignature(sha, "it cannot be read: %v", err)
	}
	if string(sig.PublicKey.Marshal()) != blob.PublicKey {
		return nil, badSignature(sha, "its key is not written the way SSH writes one")
	}
	return sig, nil
}

// sshBy is the key behind a signature, and the certificate it came with.
type sshBy struct {
	key  ssh.PublicKey    // never a certificate
	cert *ssh.Certificate // nil without one
	name string           // fingerprint of key
}

func sshSignerOf(k ssh.PublicKey) sshBy {
	by := sshBy{key: k}
	if cert, ok := k.(*ssh.Certificate); ok {
		by.key, by.cert = cert.Key, cert
	}
	by.name = ssh.FingerprintSHA256(by.key)
	return by
}

// sound refuses keys that are too short.
func (by sshBy) sound(sha ring.SHA) *ring.Refusal {
	if bits := rsaBits(by.key); bits > 0 && bits < minRSA {
		return weakKey(sha, "RSA key %s has %d bits, fewer than %d", by.name, bits, minRSA)
	}
	return nil
}

// lines are those that may let the key sign: of a certificate only those of its
// authority count, as with ssh-keygen.
func (by sshBy) lines(s sshSigners) []sshSigner {
	if by.cert != nil {
		return s.certifying(by.cert.SignatureKey)
	}
	return s.of(by.key)
}

// line is what has to be added to allowed_signers to let the key sign.
func (by sshBy) line() string {
	if by.cert != nil {
		return "the line *@<domain> cert-authority,namespaces=\"git\" " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(by.cert.SignatureKey))) + ", its authority,"
	}
	return "the line <e-mail> namespaces=\"git\" " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(by.key)))
}

// Flags of a security key's signature.
const (
	userPresent  = 0x01
	userVerified = 0x04 // by PIN or fingerprint
)

func (by sshBy) hardware() bool { return strings.HasPrefix(by.key.Type(), "sk-") }

// checkSSHForm refuses what the library lets pass: bytes after the signature,
// which OpenSSH does not accept, and a security key that nobody touched.
func checkSSHForm(sha ring.SHA, by sshBy, sig *sshsig.Signature) *ring.Refusal {
	rest := sig.Signature.Rest
	if !by.hardware() {
		if len(rest) > 0 {
			return badSignature(sha, "bytes follow it")
		}
		return nil
	}
	if len(rest) > 0 && rest[0]&userPresent == 0 {
		return noUserPresence(sha, by.name)
	}
	return nil
}

// judgeLines takes the first line of allowed_signers that permits the key now,
// else the refusal of the line that got furthest.
func judgeLines(sha ring.SHA, by sshBy, lines []sshSigner, m moments) (identity, *ring.Refusal) {
	var nearest *ring.Refusal
	for _, s := range lines {
		if s.namespaces != "" && !matchList(s.namespaces, gitNamespace) {
			if nearest == nil {
				nearest = badNamespace(sha, "%s permits key %s only for namespaces %q", s.place, by.name, s.namespaces)
			}
			continue
		}
		id, refusal := s.judge(sha, by, m)
		if refusal == nil {
			return id, nil
		}
		if nearest == nil || nearest.Code == ring.Namespace || refusal.Code == ring.KeyExpiredFirstSeen {
			nearest = refusal
		}
	}
	return identity{}, nearest
}

// judge asks one line: the name it gives, its times, and the certificate's.
func (s sshSigner) judge(sha ring.SHA, by sshBy, m moments) (identity, *ring.Refusal) {
	id := identity{principal: s.principal(), fingerprint: by.name, repo: s.repo}
	if by.cert != nil {
		var refusal *ring.Refusal
		if id.principal, refusal = s.principalOf(sha, by.cert); refusal != nil {
			return identity{}, refusal
		}
		if id.note, refusal = judgeCertificate(sha, by.cert, m); refusal != nil {
			return identity{}, refusal
		}
	}
	note, refusal := s.valid.judge(sha, ssh.FingerprintSHA256(s.key), m)
	if refusal != nil {
		return identity{}, refusal
	}
	if note != "" {
		id.note = note
	}
	return id, nil
}

// rsaBits is 0 for other keys.
func rsaBits(k ssh.PublicKey) int {
	c, ok := k.(ssh.CryptoPublicKey)
	if !ok {
		return 0
	}
	r, ok := c.CryptoPublicKey().(*rsa.PublicKey)
	if !ok {
		return 0
	}
	return r.N.BitLen()
}

// firstString is the algorithm name an SSH key or signature begins with; "" when
// it begins with none.
func firstString(b string) string {
	if len(b) < 4 {
		return ""
	}
	n := binary.BigEndian.Uint32([]byte(b[:4]))
	if uint64(n) > uint64(len(b)-4) {
		return ""
	}
	return b[4 : 4+n]
}
