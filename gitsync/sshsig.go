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
	var blob sshBlob
	if err := ssh.Unmarshal(raw, &blob); err != nil {
		return identity{}, badSignature(p.sha, "it is not an SSH signature")
	}
	algo, sigAlgo := firstString(blob.PublicKey), firstString(blob.Signature)
	switch {
	case algo == ssh.InsecureKeyAlgoDSA:
		return identity{}, weakKey(p.sha, "DSA keys are broken")
	case algo == ssh.KeyAlgoRSA && sigAlgo == ssh.KeyAlgoRSA:
		return identity{}, weakKey(p.sha, "ssh-rsa signatures use SHA-1")
	case strings.HasSuffix(algo, "-cert-v01@openssh.com"):
		return identity{}, certificate(p.sha)
	}
	sig, err := sshsig.ParseSignature(raw)
	if err != nil {
		return identity{}, badSignature(p.sha, "it cannot be read: %v", err)
	}
	key := ssh.FingerprintSHA256(sig.PublicKey)
	if bits := rsaBits(sig.PublicKey); bits > 0 && bits < minRSA {
		return identity{}, weakKey(p.sha, "RSA key %s has %d bits, fewer than %d", key, bits, minRSA)
	}
	if where, ok := t.revoked.has(key); ok {
		return identity{}, revokedKey(p.sha, key, where)
	}
	lines := t.ssh.of(sig.PublicKey)
	if len(lines) == 0 {
		line := "the line <e-mail> namespaces=\"git\" " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(sig.PublicKey)))
		return identity{}, unknownSigner(p, key, line, t.cfg.AllowedSigners)
	}
	if sig.Namespace != gitNamespace {
		return identity{}, badNamespace(p.sha, "its namespace is %q", clip(sig.Namespace))
	}
	if refusal := checkSSHForm(p.sha, key, sig); refusal != nil {
		return identity{}, refusal
	}
	if err := sshsig.Verify(bytes.NewReader(p.payload), sig, sig.PublicKey, sig.HashAlgorithm, gitNamespace); err != nil {
		return identity{}, badSignature(p.sha, "it is over something else than this commit, or not by key %s", key)
	}
	// From here the key signed this very payload; what is left is whether it may.
	return judgeLines(p.sha, key, lines, m)
}

// checkSSHForm refuses what the library lets pass: bytes after the signature,
// which OpenSSH does not accept, and a security key that nobody touched.
func checkSSHForm(sha ring.SHA, key string, sig *sshsig.Signature) *ring.Refusal {
	if !strings.HasPrefix(sig.PublicKey.Type(), "sk-") {
		if len(sig.Signature.Rest) > 0 {
			return badSignature(sha, "bytes follow it")
		}
		return nil
	}
	const userPresent = 1
	if rest := sig.Signature.Rest; len(rest) > 0 && rest[0]&userPresent == 0 {
		return noUserPresence(sha, key)
	}
	return nil
}

// judgeLines takes the first line of allowed_signers that permits the key now,
// else the refusal of the line that got furthest.
func judgeLines(sha ring.SHA, key string, lines []sshSigner, m moments) (identity, *ring.Refusal) {
	var nearest *ring.Refusal
	for _, s := range lines {
		if s.namespaces != "" && !matchList(s.namespaces, gitNamespace) {
			if nearest == nil {
				nearest = badNamespace(sha, "%s permits key %s only for namespaces %q", s.place, key, s.namespaces)
			}
			continue
		}
		note, refusal := s.valid.judge(sha, key, m)
		if refusal == nil {
			return identity{principal: s.principal(), fingerprint: key, note: note}, nil
		}
		if nearest == nil || nearest.Code == ring.Namespace || refusal.Code == ring.KeyExpiredFirstSeen {
			nearest = refusal
		}
	}
	return identity{}, nearest
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
