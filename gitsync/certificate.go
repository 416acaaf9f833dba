package gitsync

import (
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// certifiedFor refuses a certificate that its authority did not make for a person's
// signature, or that was taken back. Without a certificate there is nothing to say.
// The authority is a line of the signers already.
func (by sshBy) certifiedFor(sha ring.SHA, revoked *revocations) *ring.Refusal {
	c := by.cert
	if c == nil {
		return nil
	}
	authority := ssh.FingerprintSHA256(c.SignatureKey)
	if where, ok := revoked.hasKey(c.SignatureKey); ok {
		return certificate(sha, "its authority %s is revoked (%s)", authority, where)
	}
	if where, ok := revoked.hasCertificate(c); ok {
		return certificate(sha, "certificate %q, serial %d, is revoked (%s)", clip(c.KeyId), c.Serial, where)
	}
	if bits := rsaBits(c.SignatureKey); bits > 0 && bits < minRSA {
		return weakKey(sha, "the RSA key %s of its certificate's authority has %d bits, fewer than %d", authority, bits, minRSA)
	}
	if c.CertType != ssh.UserCert {
		return certificate(sha, "it is for a host, not for a person")
	}
	if strings.ContainsFunc(c.KeyId+strings.Join(c.ValidPrincipals, ""), wording.IsControl) {
		return certificate(sha, "a name in it holds a character that cannot be printed")
	}
	for _, option := range sortedNames(c.CriticalOptions) {
		return certificate(sha, "its critical option %q restricts it to something else than signing commits", clip(option))
	}
	return authorised(sha, c, authority)
}

// authorised checks the authority's own signature.
func authorised(sha ring.SHA, c *ssh.Certificate, authority string) *ring.Refusal {
	switch sig := c.Signature; {
	case sig.Format == ssh.KeyAlgoRSA:
		return weakKey(sha, "its certificate is signed with SHA-1")
	case len(sig.Rest) > 0 && !strings.HasPrefix(c.SignatureKey.Type(), "sk-"):
		return certificate(sha, "bytes follow the signature of authority %s", authority)
	case c.SignatureKey.Verify(certifiedBytes(c), sig) != nil:
		return certificate(sha, "authority %s did not sign it", authority)
	}
	return nil
}

// certifiedBytes are what the authority signs: all but its signature.
func certifiedBytes(c *ssh.Certificate) []byte {
	unsigned := *c
	unsigned.Signature = nil
	b := unsigned.Marshal()
	return b[:len(b)-4] // the length of no signature
}

// principalOf is the first name of a certificate that the line permits.
func (s sshSigner) principalOf(sha ring.SHA, c *ssh.Certificate) (string, *ring.Refusal) {
	if len(c.ValidPrincipals) == 0 {
		return "", certificate(sha, "it names nobody")
	}
	list := strings.Join(s.principals, ",")
	for _, name := range c.ValidPrincipals {
		if matchList(list, name) {
			return name, nil
		}
	}
	return "", certificate(sha, "it is for %q, and %s permits its authority only %q", clip(strings.Join(c.ValidPrincipals, ",")), s.place, clip(list))
}

// judgeCertificate holds a certificate to its own times, by the rule for keys.
func judgeCertificate(sha ring.SHA, c *ssh.Certificate, m moments) (note string, _ *ring.Refusal) {
	note, refusal := certificateSpan(c).judge(sha, "of the certificate", m)
	if refusal == nil {
		return strings.Replace(note, "key expired", "certificate expired", 1), nil
	}
	at := m.claimed
	if refusal.Code == ring.KeyExpiredFirstSeen {
		at = m.seen
	}
	if refusal.Code == ring.KeyNotYetValid {
		return "", certificate(sha, "it is valid from %s, and the commit is of %s", stampOf(c.ValidAfter), stamp(at))
	}
	return "", certificate(sha, "it expired at %s, and the commit was made or first seen here at %s", stampOf(c.ValidBefore), stamp(at))
}

// certificateSpan is when it counts: from ValidAfter until right before
// ValidBefore, in seconds.
func certificateSpan(c *ssh.Certificate) span {
	s := span{from: unix(c.ValidAfter)}
	if c.ValidBefore != ssh.CertTimeInfinity {
		s.until = unix(c.ValidBefore).Add(-1 * time.Second)
	}
	return s
}

// unix is a time that cannot run over, whatever the certificate says.
func unix(seconds uint64) time.Time {
	const latest = math.MaxInt64 >> 8 // far behind every year, and inside of what time can hold
	return time.Unix(int64(min(seconds, latest)), 0).UTC()
}

func stampOf(seconds uint64) string { return stamp(unix(seconds)) }

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
