package gitsync

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// revokedKeys maps a fingerprint, as ring.Verified writes it, to its place in
// the file. What is here never counts again, whatever a commit's date.
type revokedKeys map[string]string

// has says where the first of the fingerprints is listed.
func (r revokedKeys) has(fingerprints ...string) (where string, ok bool) {
	for _, f := range fingerprints {
		if where, ok = r[f]; ok {
			return where, true
		}
	}
	return "", false
}

var pgpFingerprint = regexp.MustCompile(`^([0-9A-F]{40}|[0-9A-F]{64})$`)

// parseRevoked reads a list of keys: public key lines, SHA256: fingerprints of
// SSH keys, full fingerprints of OpenPGP keys with or without spaces. A # begins
// a comment line. Errors name file:line.
func parseRevoked(path string, b []byte) (revokedKeys, error) {
	if strings.HasPrefix(string(b), "SSHKRL\n\x00") {
		return nil, fmt.Errorf("cannot read %s: it is a binary KRL, and gitring reads lists of keys; list what ssh-keygen -Q -l -f %s shows, one key or fingerprint a line", path, path)
	}
	all := revokedKeys{}
	n := 0
	for text := range strings.Lines(string(b)) {
		n++
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		f, err := parseRevokedKey(text)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s:%d: %w", path, n, err)
		}
		all[f] = path + ":" + strconv.Itoa(n)
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
