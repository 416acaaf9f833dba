package wording

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Texts from outside are shown on terminals, stored, and posted to forges and chats. What
// each place lets through differs on purpose; the signs themselves are told apart here.

// IsControl reports whether a sign is one of ASCII's that print nothing.
func IsControl(r rune) bool { return r < ' ' || r == 0x7f }

// IsSteering reports whether a sign could move a cursor, hide or reorder what a terminal
// shows, or stands for bytes that are no text.
func IsSteering(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
}

// IsLineBreak reports whether a terminal or an editor may begin a line or a column at a sign.
func IsLineBreak(r rune) bool { return r == '\n' || r == '\t' || r == '\u2028' || r == '\u2029' }

// SafeLine is a text for one line of a terminal: line breaks are spaces, and steering signs
// are gone.
func SafeLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case IsLineBreak(r):
			return ' '
		case IsSteering(r):
			return -1
		}
		return r
	}, s)
}

// FoldedLine is a text for one line of a terminal, where words may not grow together:
// steering signs are spaces, and so are all spaces in a row.
func FoldedLine(s string) string {
	return strings.Join(strings.Fields(Replace(s, IsSteering, ' ')), " ")
}

// DropControls leaves out what ASCII has for control, but for the signs to keep.
func DropControls(s, keep string) string {
	return Replace(s, func(r rune) bool { return IsControl(r) && !strings.ContainsRune(keep, r) }, -1)
}

// PrintableLine has another sign in the place of each that does not print, a tab among
// them; with -1 none.
func PrintableLine(s string, instead rune) string {
	return Replace(s, func(r rune) bool { return !unicode.IsPrint(r) }, instead)
}

// Replace has another sign in the place of each bad one; with -1 none.
func Replace(s string, bad func(rune) bool, instead rune) string {
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return instead
		}
		return r
	}, s)
}

// CutRunes cuts a text after so many signs, and marks that with one more.
func CutRunes(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// CutBytes cuts a text after so many bytes, at a whole sign, and marks that. What is short
// enough stays as it is.
func CutBytes(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
