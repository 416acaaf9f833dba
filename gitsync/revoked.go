package gitsync

import (
	"bytes"
	"crypto/sha1" // a key revocation list may name keys by it
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// revocations are what never counts again, whatever a commit's date. The zero
// value revokes nothing.
type revocations struct {
	keys  map[string]string   // by fingerprint, as ring.Verified writes it: the place in the file
	sha1  map[[20]byte]string // the same by SHA-1, which a key revocation list may use
	certs []revokedCerts
}

// revokedCerts are certificates of one authority.
type revokedCerts struct {
	place     string
	authority string // its key, as SSH writes it; "" is every authority
	ids       map[string]bool
	serials   map[uint64]bool
	ranges    []serialRange
	bitmaps   []serialBitmap
}

type serialRange struct{ from, to uint64 } // both are in it

// serialBitmap is a big-endian number; bit n of it is the serial from+n.
type serialBitmap struct {
	from uint64
	bits []byte
}

// has says where the first of the fingerprints is listed.
func (r *revocations) has(fingerprints ...string) (where string, ok bool) {
	for _, f := range fingerprints {
		if where, ok = r.keys[f]; ok {
			return where, true
		}
	}
	return "", false
}

// hasKey is has for an SSH key that is no certificate.
func (r *revocations) hasKey(k ssh.PublicKey) (where string, ok bool) {
	if where, ok = r.has(ssh.FingerprintSHA256(k)); ok || len(r.sha1) == 0 {
		return where, ok
	}
	where, ok = r.sha1[sha1.Sum(k.Marshal())]
	return where, ok
}

// hasCertificate asks for the certificate itself, not for its keys. One without a
// serial number has number 0, which no list may hold.
func (r *revocations) hasCertificate(c *ssh.Certificate) (where string, ok bool) {
	authority := string(c.SignatureKey.Marshal())
	for _, in := range r.certs {
		if in.authority != "" && in.authority != authority {
			continue
		}
		if in.ids[c.KeyId] || in.hasSerial(c.Serial) {
			return in.place, true
		}
	}
	return "", false
}

func (r revokedCerts) hasSerial(n uint64) bool {
	return r.serials[n] ||
		slices.ContainsFunc(r.ranges, func(s serialRange) bool { return s.from <= n && n <= s.to }) ||
		slices.ContainsFunc(r.bitmaps, func(s serialBitmap) bool { return s.has(n) })
}

func (s serialBitmap) has(n uint64) bool {
	if n < s.from || n-s.from >= uint64(len(s.bits))*8 {
		return false
	}
	bit := n - s.from
	return s.bits[uint64(len(s.bits))-1-bit/8]>>(bit%8)&1 == 1
}

// plainFingerprint is of a key as SSH writes it, whether it can be read or not.
func plainFingerprint(blob []byte) string { return fingerprintOf(sha256.Sum256(blob)) }

func fingerprintOf(sum [32]byte) string {
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

var pgpFingerprint = regexp.MustCompile(`^([0-9A-F]{40}|[0-9A-F]{64})$`)

// parseRevoked reads a key revocation list of ssh-keygen -k, or a list of keys:
// public key lines, SHA256: fingerprints of SSH keys, full fingerprints of OpenPGP
// keys with or without spaces. A # begins a comment line. Errors name file:line,
// or the byte of a binary list.
func parseRevoked(path string, b []byte) (revocations, error) {
	all := revocations{keys: map[string]string{}, sha1: map[[20]byte]string{}}
	if bytes.HasPrefix(b, []byte(krlMagic)) {
		return all, parseKRL(path, b, &all)
	}
	n := 0
	for text := range strings.Lines(string(b)) {
		n++
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		f, err := parseRevokedKey(text)
		if err != nil {
			return all, fmt.Errorf("cannot read %s:%d: %w", path, n, err)
		}
		all.keys[f] = path + ":" + strconv.Itoa(n)
	}
	return all, nil
}

// parseRevokedKey is the fingerprint one line names.
func parseRevokedKey(text string) (string, error) {
	field, rest, _ := strings.Cut(text, " ")
	if isKeyType(field) {
		key, err := parseSSHKey(field, rest)
		if err != nil {
			return "", err
		}
		return ssh.FingerprintSHA256(key), nil
	}
	if sum, ok := strings.CutPrefix(field, "SHA256:"); ok {
		raw, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(sum, "="))
		if err != nil || len(raw) != 32 {
			return "", fmt.Errorf("%q is not a whole SHA256: fingerprint", clip(field))
		}
		return "SHA256:" + strings.TrimRight(sum, "="), nil
	}
	hex, _, _ := strings.Cut(text, "#")
	hex = strings.ToUpper(strings.TrimPrefix(strings.ReplaceAll(strings.TrimSpace(hex), " ", ""), "0x"))
	if !pgpFingerprint.MatchString(hex) {
		return "", fmt.Errorf("this is no public key, SHA256: fingerprint or full OpenPGP fingerprint (40 hex digits)")
	}
	return hex, nil
}
