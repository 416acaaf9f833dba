package gitsync

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/gitring/gitring/wording"
)

// sshSigners is an allowed_signers file: its lines by public key, in file order.
type sshSigners map[string][]sshSigner

// sshSigner is one line.
type sshSigner struct {
	place      string   // file:line
	line       int      // of the file, from 1
	principals []string // patterns, as written
	key        ssh.PublicKey
	namespaces string // pattern list; "" permits every namespace
	valid      span
	repo       bool // of the file in the repository
	authority  bool // cert-authority: the key signs certificates, not commits
}

// of is the lines whose plain key it is. A certificate authority's own key signs
// no commit, as with ssh-keygen.
func (s sshSigners) of(key ssh.PublicKey) []sshSigner {
	var lines []sshSigner
	for _, l := range s[string(key.Marshal())] {
		if !l.authority {
			lines = append(lines, l)
		}
	}
	return lines
}

// certifying are the lines whose key may sign certificates.
func (s sshSigners) certifying(authority ssh.PublicKey) []sshSigner {
	var lines []sshSigner
	for _, l := range s[string(authority.Marshal())] {
		if l.authority {
			lines = append(lines, l)
		}
	}
	return lines
}

// first is the fingerprint of the first line that can sign commits; "" for none.
func (s sshSigners) first() string {
	var first sshSigner
	for _, lines := range s {
		for _, l := range lines {
			if !l.authority && (first.line == 0 || l.line < first.line) {
				first = l
			}
		}
	}
	if first.line == 0 {
		return ""
	}
	return ssh.FingerprintSHA256(first.key)
}

// principal is the name people see: the first that is no pattern, else the first.
func (s sshSigner) principal() string {
	for _, p := range s.principals {
		if !strings.ContainsAny(p, "*?!") {
			return p
		}
	}
	return s.principals[0]
}

// parseAllowedSigners reads the format of ssh-keygen(1), ALLOWED SIGNERS. Errors
// name file:line; one bad line makes the whole file bad, because a line that is
// silently left out is a signer locked out.
func parseAllowedSigners(path string, b []byte) (sshSigners, error) {
	all := sshSigners{}
	n := 0
	for text := range strings.Lines(string(b)) {
		n++
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		s, err := parseSigner(text)
		if err != nil {
			err = mistaken(text, err)
			return nil, fmt.Errorf("cannot read %s:%d: %w", path, n, err)
		}
		s.place, s.line = path+":"+strconv.Itoa(n), n
		id := string(s.key.Marshal())
		all[id] = append(all[id], s)
	}
	return all, nil
}

// mistaken says better what is wrong with a line that is another file's: those
// that people copy first.
func mistaken(text string, err error) error {
	switch first, _, _ := strings.Cut(text, " "); {
	case strings.HasPrefix(text, "-----BEGIN ") && strings.Contains(text, "PRIVATE KEY"):
		return fmt.Errorf("this is a private key, which no host needs; write a line with the public one: alice@example.org ssh-ed25519 AAAA…")
	case isKeyType(first):
		return fmt.Errorf("the line begins with the key, as in a .pub file; write who it is before it: alice@example.org %s AAAA…", first)
	}
	return err
}

// parseSigner reads: principals [options] keytype base64 [comment].
func parseSigner(text string) (sshSigner, error) {
	var s sshSigner
	field, rest, err := word(text)
	if err != nil {
		return s, err
	}
	names := strings.Trim(field, `"`)
	if strings.Contains(names, `"`) {
		return s, fmt.Errorf("a stray quote in the principals")
	}
	for _, p := range strings.Split(names, ",") {
		if p == "" || strings.ContainsFunc(p, wording.IsControl) {
			return s, fmt.Errorf("an empty or unprintable principal; write e-mails separated by commas")
		}
		s.principals = append(s.principals, p)
	}
	field, rest, err = word(rest)
	if err != nil {
		return s, err
	}
	if field == "" {
		return s, fmt.Errorf("no key after the principals; write: alice@example.org ssh-ed25519 AAAA…")
	}
	if !isKeyType(field) {
		if err := s.options(field); err != nil {
			return s, err
		}
		if field, rest, err = word(rest); err != nil {
			return s, err
		}
	}
	s.key, err = parseSSHKey(field, rest)
	return s, err
}

// options reads the comma-separated options; names in any case, values quoted,
// each at most once, as ssh-keygen asks for.
func (s *sshSigner) options(field string) error {
	seen := map[string]bool{}
	for field != "" {
		opt, rest := cutUnquoted(field, ',')
		if rest == "" && strings.HasSuffix(field, ",") {
			return fmt.Errorf("the options end in a comma")
		}
		field = rest
		name, value, hasValue := strings.Cut(opt, "=")
		name = strings.ToLower(name)
		if seen[name] {
			return fmt.Errorf("option %s twice", name)
		}
		seen[name] = true
		if name == "cert-authority" && !hasValue {
			s.authority = true
			continue
		}
		if !slices.Contains([]string{"namespaces", "valid-after", "valid-before"}, name) {
			return fmt.Errorf("unknown option or key type %q; options are cert-authority, namespaces=, valid-after=, valid-before=", clip(opt))
		}
		if len(value) < 3 || value[0] != '"' || value[len(value)-1] != '"' {
			return fmt.Errorf("the value of %s is not in quotes; write %s=\"…\"", name, name)
		}
		value = value[1 : len(value)-1]
		var err error
		switch name {
		case "namespaces":
			s.namespaces = value
		case "valid-after":
			s.valid.from, err = parseSSHTime(value)
		case "valid-before":
			s.valid.until, err = parseSSHTime(value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if !s.valid.until.IsZero() && s.valid.until.Before(s.valid.from) {
		return fmt.Errorf("valid-before is earlier than valid-after")
	}
	return nil
}

// parseSSHTime reads YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, in this host's
// zone unless a Z follows, as OpenSSH does.
func parseSSHTime(v string) (time.Time, error) {
	digits, utc := strings.CutSuffix(v, "Z")
	zone := time.Local
	if utc {
		zone = time.UTC
	}
	layout := map[int]string{8: "20060102", 12: "200601021504", 14: "20060102150405"}[len(digits)]
	at, err := time.ParseInLocation(layout, digits, zone)
	if layout == "" || err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time; write YYYYMMDD, YYYYMMDDHHMM or YYYYMMDDHHMMSS, with Z for UTC", clip(v))
	}
	return at.UTC(), nil
}

// parseSSHKey reads the rest of a public key line.
func parseSSHKey(algo, rest string) (ssh.PublicKey, error) {
	if !isKeyType(algo) {
		return nil, fmt.Errorf("unknown key type %q; gitring knows ed25519, ecdsa, rsa and their sk- forms", clip(algo))
	}
	b64, _, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
	b64, _, _ = strings.Cut(b64, "\t")
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil || b64 == "" {
		return nil, fmt.Errorf("the key is not base64; paste the whole line of the .pub file")
	}
	switch got := firstString(string(raw)); got {
	case algo:
	case "":
		return nil, fmt.Errorf("the key is cut off at its beginning; paste the whole line of the .pub file")
	default:
		return nil, fmt.Errorf("the key says it is %q, the line says %s", clip(got), algo)
	}
	key, err := ssh.ParsePublicKey(raw)
	if err != nil {
		return nil, fmt.Errorf("the key cannot be read (%w); paste the whole line of the .pub file", err)
	}
	if _, ok := key.(*ssh.Certificate); ok {
		return nil, fmt.Errorf("this is a certificate; write the certified key or, as cert-authority, the authority's key")
	}
	return key, nil
}

var keyTypes = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519,
	ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKECDSA256,
	ssh.KeyAlgoRSA,
}

func isKeyType(s string) bool { return slices.Contains(keyTypes, s) }

// word takes a field up to white space outside of quotes.
func word(s string) (field, rest string, err error) {
	s = strings.TrimLeft(s, " \t")
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case !quoted && (s[i] == ' ' || s[i] == '\t'):
			return s[:i], s[i:], nil
		}
	}
	if quoted {
		return "", "", fmt.Errorf("a quote is not closed")
	}
	return s, "", nil
}

func cutUnquoted(s string, sep byte) (before, after string) {
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// matchList is OpenSSH's match_pattern_list: comma-separated patterns with * and
// ?, and ! before one that forbids.
func matchList(list, s string) bool {
	found := false
	for _, p := range strings.Split(list, ",") {
		p, forbids := strings.CutPrefix(p, "!")
		if !matchPattern(p, s) {
			continue
		}
		if forbids {
			return false
		}
		found = true
	}
	return found
}

func matchPattern(p, s string) bool {
	for p != "" {
		if p[0] == '*' {
			p = strings.TrimLeft(p, "*")
			for i := range len(s) + 1 {
				if matchPattern(p, s[i:]) {
					return true
				}
			}
			return false
		}
		if s == "" || p[0] != '?' && p[0] != s[0] {
			return false
		}
		p, s = p[1:], s[1:]
	}
	return s == ""
}
