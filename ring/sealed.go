package ring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// Sealed stands in a Spec for a value that is nobody's to read, so that the value
// itself reaches no store, label, log or status: only where the payload for the
// engine is built is it opened. MAC is a keyed hash of the value, so a new value
// is a new version.
type Sealed struct {
	From SealedFrom
	App  string
	File string // relative to the app's folder in the env folder, or in the commit
	Name string // of the variable, or its key path
	MAC  string // hex
}

// SealedFrom is where a sealed value comes from. The zero value is the host's env folder.
type SealedFrom string

// Where sealed values come from.
const (
	FromEnvFolder SealedFrom = ""
	FromSOPS      SealedFrom = "sops" // a file of the commit that SOPS encrypted
	FromAge       SealedFrom = "age"  // a file of the commit that age encrypted
	FromProvider  SealedFrom = "exec" // what a program of the host answered
)

// word is what stands in a text for a source.
func (f SealedFrom) word() string {
	if f == FromEnvFolder {
		return "env"
	}
	return string(f)
}

// sealedFrom is the source of a word, and false where it is none.
func sealedFrom(word string) (SealedFrom, bool) {
	for _, f := range []SealedFrom{FromEnvFolder, FromSOPS, FromAge, FromProvider} {
		if f.word() == word {
			return f, true
		}
	}
	return "", false
}

// macBytes is how much of a MAC stands in a plan: 128 bits.
const macBytes = 16

// SealMAC is the MAC of a value that a commit or a provider brings, under a key that only
// the host has. Each part has its length before it, so that no two lists of parts are one
// text: nobody can move a letter from a name into a value and have the same version.
func SealMAC(key []byte, app, file string, path []string, value string) string {
	mac := hmac.New(sha256.New, key)
	part := func(text string) {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		mac.Write([]byte(text))
	}
	part(app)
	part(file)
	for _, name := range path {
		part(name)
	}
	part(value)
	return hex.EncodeToString(mac.Sum(nil)[:macBytes])
}

// SealMark begins and ends a sealed value inside a text. manifest refuses it in
// what a commit says, so nobody can write one by hand.
const SealMark = "\x1b"

// notOpened begins what stands in place of the MAC of a value that nobody opened.
const notOpened = "?"

// NotOpened has a text that is no MAC of a value in place of one: it tells that the
// ciphertext is another one, and nothing of what is in it.
func NotOpened(text string) string { return notOpened + text }

// Opened reports whether MAC is one of a value.
func (s Sealed) Opened() bool { return !strings.HasPrefix(s.MAC, notOpened) }

// String is the text that stands in a Spec.
func (s Sealed) String() string {
	return SealMark + strings.Join([]string{s.From.word(), url.QueryEscape(s.App), url.QueryEscape(s.File), url.QueryEscape(s.Name), s.MAC}, ":") + SealMark
}

// Open replaces each sealed value in text by what reveal gives for it. The first
// error of reveal ends it; a text without any is given back as it is.
func Open(text string, reveal func(Sealed) (string, error)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, SealMark)
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		token, after, ended := strings.Cut(rest, SealMark)
		s, err := parseSealed(token)
		if err != nil || !ended {
			return "", fmt.Errorf("cannot open a sealed value: it is cut off")
		}
		value, err := reveal(s)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text = after
	}
}

// Inside are the values that stood in a text where sealed has sealed ones, in its order; nil
// when the text is not made of it.
func Inside(sealed, text string) []string {
	const hole = "\x00"
	open, err := Open(sealed, func(Sealed) (string, error) { return hole, nil })
	if err != nil {
		return nil
	}
	parts := strings.Split(open, hole)
	rest, begins := strings.CutPrefix(text, parts[0])
	values := make([]string, len(parts)-1)
	if len(values) == 0 && rest != "" || !begins {
		return nil
	}
	for i := len(values); i > 0; i-- { // from the end, so that the first value is the longest that it can be
		at := strings.LastIndex(rest, parts[i])
		if at < 0 || i == len(values) && at+len(parts[i]) < len(rest) {
			return nil
		}
		if i < len(values) {
			values[i] = rest[at+len(parts[i]):]
		}
		rest = rest[:at]
	}
	if len(values) > 0 {
		values[0] = rest
	}
	return values
}

// SealedIn are the sealed values in text, in its order, up to one that is cut off.
func SealedIn(text string) (all []Sealed) {
	_, _ = Open(text, func(s Sealed) (string, error) { // an error is one that is cut off
		all = append(all, s)
		return "", nil
	})
	return all
}

// HasSealed reports whether text holds a sealed value.
func HasSealed(text string) bool { return strings.Contains(text, SealMark) }

func parseSealed(token string) (Sealed, error) {
	parts := strings.Split(token, ":")
	if len(parts) != 5 {
		return Sealed{}, fmt.Errorf("not a sealed value")
	}
	from, known := sealedFrom(parts[0])
	if !known {
		return Sealed{}, fmt.Errorf("not a sealed value")
	}
	for i := 1; i < 4; i++ {
		p, err := url.QueryUnescape(parts[i])
		if err != nil {
			return Sealed{}, err
		}
		parts[i] = p
	}
	return Sealed{From: from, App: parts[1], File: parts[2], Name: parts[3], MAC: parts[4]}, nil
}
