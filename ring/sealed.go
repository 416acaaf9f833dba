package ring

import (
	"fmt"
	"net/url"
	"strings"
)

// Sealed stands in a Spec for a value of the host's env folder, so that the value
// itself reaches no store, label, log or status: only where the payload for the
// engine is built is it opened. MAC is a keyed hash of the value, so a new value
// is a new version.
type Sealed struct {
	App  string
	File string // relative to the app's folder in the env folder
	Name string // of the variable
	MAC  string // hex
}

// SealMark begins and ends a sealed value inside a text. manifest refuses it in
// what a commit says, so nobody can write one by hand.
const SealMark = "\x1b"

// String is the text that stands in a Spec.
func (s Sealed) String() string {
	return SealMark + strings.Join([]string{"env", url.QueryEscape(s.App), url.QueryEscape(s.File), url.QueryEscape(s.Name), s.MAC}, ":") + SealMark
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

// HasSealed reports whether text holds a sealed value.
func HasSealed(text string) bool { return strings.Contains(text, SealMark) }

func parseSealed(token string) (Sealed, error) {
	parts := strings.Split(token, ":")
	if len(parts) != 5 || parts[0] != "env" {
		return Sealed{}, fmt.Errorf("not a sealed value")
	}
	for i := 1; i < 4; i++ {
		p, err := url.QueryUnescape(parts[i])
		if err != nil {
			return Sealed{}, err
		}
		parts[i] = p
	}
	return Sealed{App: parts[1], File: parts[2], Name: parts[3], MAC: parts[4]}, nil
}
