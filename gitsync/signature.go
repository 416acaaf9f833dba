package gitsync

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// identity is who proved to have signed a commit. Rights (roles, paths,
// branches) hang on it; modes and rights never look at a signature again.
type identity struct {
	principal   string
	fingerprint string
	note        string // worth telling, such as "inside expiry_grace"
	repo        bool   // known by the repository alone
}

// openPGP reports whether the signer is known by an OpenPGP key.
func (id identity) openPGP() bool { return pgpFingerprint.MatchString(id.fingerprint) }

// moments are the times a commit is judged at: claimed is the signer's word,
// seen the daemon's own, and a thief of an old key only chooses the first.
type moments struct {
	claimed, seen, now time.Time
	grace              time.Duration
}

// maxAhead is how far a signer's clock may be before ours.
const maxAhead = 10 * time.Minute

const (
	beginSSH  = "-----BEGIN SSH SIGNATURE-----"
	endSSH    = "-----END SSH SIGNATURE-----"
	beginPGP  = "-----BEGIN PGP SIGNATURE-----"
	endPGP    = "-----END PGP SIGNATURE-----"
	beginX509 = "-----BEGIN SIGNED MESSAGE-----"
)

// signer says who signed a commit, or why nobody did that counts.
func (t *Trust) signer(p *parsed, m moments) (identity, *ring.Refusal) {
	if len(p.signature) == 0 {
		return identity{}, unsigned(p.sha, p.signedInBody())
	}
	if ahead := p.committer.when; ahead.After(m.seen.Add(maxAhead)) {
		return identity{}, futureDated(p.sha, "claims to be of", ahead, m.seen)
	}
	switch first, _, _ := bytes.Cut(p.signature, []byte("\n")); strings.TrimSuffix(string(first), "\r") {
	case beginSSH:
		return t.verifySSH(p, m)
	case beginPGP:
		return t.verifyOpenPGP(p, m)
	case beginX509:
		return identity{}, unknownX509(p.sha)
	}
	return identity{}, badSignature(p.sha, "it does not begin as an OpenPGP or SSH signature does")
}

// signedInBody tells an author whose tool put the signature into the message.
func (p *parsed) signedInBody() bool {
	return bytes.Contains(p.message, []byte(beginPGP)) || bytes.Contains(p.message, []byte(beginSSH))
}

// landedByForge recognises what merge buttons write, for the hint only.
func (p *parsed) landedByForge() bool {
	switch p.committer.email {
	case "noreply@github.com", "noreply@gitlab.com":
		return true
	}
	return bytes.HasPrefix(p.message, []byte("Merge pull request ")) || bytes.Contains(p.message, []byte("\nSee merge request "))
}

// span is when a key counts; a zero end is open.
type span struct {
	from, until time.Time
}

// judge applies the rule of two times (docs/design/trust.md#keys-over-their-life): the key must be good
// when the commit says it was made and when it was first seen here.
func (s span) judge(sha ring.SHA, key string, m moments) (note string, _ *ring.Refusal) {
	if !s.from.IsZero() && m.claimed.Before(s.from) {
		return "", keyNotYetValid(sha, key, s.from, m.claimed)
	}
	if s.until.IsZero() {
		return "", nil
	}
	if m.claimed.After(s.until) {
		return "", keyExpired(sha, key, s.until, m.claimed)
	}
	if !m.seen.After(s.until) {
		return "", nil
	}
	if m.seen.After(s.until.Add(m.grace)) {
		return "", keyExpiredFirstSeen(sha, key, s.until, m.seen, m.grace)
	}
	return fmt.Sprintf("key expired at %s; inside expiry_grace of %s", stamp(s.until), m.grace), nil
}

// unarmor takes the bytes of the armoured block that begins the text. Its base64
// must be canonical, and its checksum, if any, must hold. What follows the block
// is not read, as with gpg and ssh-keygen: most forges write an empty line there.
// Only OpenPGP armour has headers, and lines that may end with CR LF.
func unarmor(text []byte, begin, end string, openPGP bool) ([]byte, error) {
	if openPGP {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	body, ok := bytes.CutPrefix(text, []byte(begin+"\n"))
	if !ok {
		return nil, fmt.Errorf("it does not begin with %s", begin)
	}
	body, after, ok := cutAtLine(body, end)
	if !ok {
		return nil, fmt.Errorf("it does not end with %s", end)
	}
	if openPGP {
		if hasLine(after, "-----BEGIN PGP") { // gpg reads it too
			return nil, fmt.Errorf("a second armour follows it")
		}
		if body, ok = withoutArmourHeader(body); !ok {
			return nil, fmt.Errorf("no blank line ends the armour's header")
		}
	}
	var b64, sum []byte
	for line := range bytes.Lines(body) {
		if sum != nil || len(line) == 1 {
			return nil, fmt.Errorf("its armour has a broken line")
		}
		line = line[:len(line)-1]
		if openPGP && line[0] == '=' {
			sum = line[1:]
			continue
		}
		b64 = append(b64, line...)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(string(b64))
	if err != nil || bytes.ContainsAny(b64, "\r\n") {
		return nil, fmt.Errorf("its armour is not clean base64")
	}
	if sum != nil && base64.StdEncoding.EncodeToString(crc24(raw)) != string(sum) {
		return nil, fmt.Errorf("its armour's checksum is wrong")
	}
	return raw, nil
}

// cutAtLine is what stands before and after the first line that equals end.
func cutAtLine(text []byte, end string) (before, after []byte, found bool) {
	at := 0
	for line := range bytes.Lines(text) {
		next := at + len(line)
		if string(bytes.TrimSuffix(line, []byte("\n"))) == end {
			return text[:at], text[next:], true
		}
		at = next
	}
	return nil, nil, false
}

// hasLine reports whether a line of the text begins with prefix.
func hasLine(text []byte, prefix string) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(prefix)) {
			return true
		}
	}
	return false
}

// withoutArmourHeader drops lines such as "Version: 1" and the blank line after
// them.
func withoutArmourHeader(body []byte) (_ []byte, ok bool) {
	for len(body) > 0 && body[0] != '\n' {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		if !bytes.Contains(line, []byte(": ")) && !bytes.HasSuffix(line, []byte(":")) {
			return nil, false
		}
		body = rest
	}
	return bytes.TrimPrefix(body, []byte("\n")), true
}

// crc24 is the checksum of RFC 9580 section 6.1.
func crc24(b []byte) []byte {
	crc := uint32(0xb704ce)
	for _, c := range b {
		crc ^= uint32(c) << 16
		for range 8 {
			crc <<= 1
			if crc&0x1000000 != 0 {
				crc ^= 0x1864cfb
			}
		}
	}
	return []byte{byte(crc >> 16), byte(crc >> 8), byte(crc)}
}
