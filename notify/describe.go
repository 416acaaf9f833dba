package notify

import (
	"strings"

	"github.com/gitring/gitring/wording"
)

// longest is GitHub's limit of a description.
const longest = 140

// spelled are signs that our own sentences use and that are spelled out.
var spelled = strings.NewReplacer("→", "->", "…", "...", "–", "-", "—", "-", "·", "-", "×", "x",
	"\"", "'", "“", "'", "”", "'", "‘", "'", "’", "'", "`", "'")

// describe keeps a reason to one line of plain signs: parts of it were written
// by a commit's author, and it is shown on pages that others trust.
func describe(s string) string {
	s = strings.Join(strings.Fields(spelled.Replace(s)), " ")
	s = plainSigns(wording.DropControls(s, ""), " ._/-:;,+~()@%='#?>")
	if len(s) > longest {
		s = strings.TrimRight(s[:longest-3], " ") + "..."
	}
	return s
}

// plainSigns has a question mark in the place of each sign that is no letter or digit of
// ASCII and not among those allowed.
func plainSigns(s, allowed string) string {
	return wording.Replace(s, func(r rune) bool {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !plain && !strings.ContainsRune(allowed, r)
	}, '?')
}
