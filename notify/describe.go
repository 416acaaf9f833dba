package notify

import "strings"

// longest is GitHub's limit of a description.
const longest = 140

// spelled are signs that our own sentences use and that are spelled out.
var spelled = strings.NewReplacer("→", "->", "…", "...", "–", "-", "—", "-", "·", "-", "×", "x",
	"\"", "'", "“", "'", "”", "'", "‘", "'", "’", "'", "`", "'")

// describe keeps a reason to one line of plain signs: parts of it were written
// by a commit's author, and it is shown on pages that others trust.
func describe(s string) string {
	s = strings.Join(strings.Fields(spelled.Replace(s)), " ")
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		case strings.ContainsRune(" ._/-:;,+~()@%='#?>", r):
			return r
		case r < ' ' || r == 0x7f:
			return -1
		}
		return '?'
	}, s)
	if len(s) > longest {
		s = strings.TrimRight(s[:longest-3], " ") + "..."
	}
	return s
}
