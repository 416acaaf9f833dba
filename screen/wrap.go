package screen

import (
	"regexp"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// pieces are the words of a line and the spaces between them; a colour is part of the
// word that it stands at.
var pieces = regexp.MustCompile(` +|[^ ]+`)

// paints are the sequences that begin or end a colour.
var paints = regexp.MustCompile("\x1b\\[[0-9;]*m")

// wrap breaks a line between words so that no part is wider than width, with later parts
// indented by hang. Spaces inside a part stay as they are. Only a word that is wider than
// a whole line is broken. width 0 breaks nothing.
func wrap(line string, width, hang int) []string {
	if width <= 0 || WidthOf(line) <= width {
		return []string{line}
	}
	if hang > min(width/2, width-2) { // a letter may be two wide
		hang = 0
	}
	var lines []string
	var now strings.Builder
	used, began, color := 0, 0, ""
	next := func() {
		text := strings.TrimRight(now.String(), " ")
		if color != "" {
			text += "\x1b[0m"
		}
		lines = append(lines, text)
		now.Reset()
		now.WriteString(strings.Repeat(" ", hang) + color)
		used, began = hang, hang
	}
	spaces := ""
	for i, piece := range pieces.FindAllString(line, -1) {
		if piece[0] == ' ' {
			spaces = piece
			if i == 0 {
				piece = piece[:max(0, min(len(piece), width/2, width-2))]
				now.WriteString(piece)
				used, began, spaces = len(piece), len(piece), ""
			}
			continue
		}
		if used > began && used+len(spaces)+WidthOf(piece) > width {
			next()
			spaces = ""
		}
		if used+len(spaces)+WidthOf(piece) > width { // behind what is nothing but a colour
			spaces = spaces[:min(len(spaces), max(0, width-used-2))]
		}
		now.WriteString(spaces)
		used, spaces = used+len(spaces), ""
		for used+WidthOf(piece) > width {
			head, rest := cut(piece, width-used)
			now.WriteString(head)
			color = lastColor(color, head)
			next()
			piece = rest
		}
		now.WriteString(piece)
		color = lastColor(color, piece)
		used += WidthOf(piece)
	}
	return append(lines, strings.TrimRight(now.String(), " "))
}

// Wrapped is a line broken between words, so that no part is wider than width; 0 breaks
// nothing.
func Wrapped(line string, width int) string { return strings.Join(wrap(line, width, 2), "\n") }

// WrappedUnder is the same, with later parts below the column hang of the first.
func WrappedUnder(line string, width, hang int) string {
	return strings.Join(wrap(line, width, hang), "\n")
}

// WidthOf is how wide a text is on a terminal.
func WidthOf(s string) int { return text.StringWidthWithoutEscSequences(s) }

// cut takes as much of a word as has room; at least one letter.
func cut(word string, room int) (head, rest string) {
	used := 0
	for i := 0; i < len(word); {
		if at := paints.FindStringIndex(word[i:]); at != nil && at[0] == 0 {
			i += at[1]
			continue
		}
		r := []rune(word[i:min(len(word), i+4)])[0]
		if used += text.RuneWidth(r); used > room && used > text.RuneWidth(r) {
			return word[:i], word[i:]
		}
		i += len(string(r))
	}
	return word, ""
}

// lastColor is the colour that goes on after a text; "" for none.
func lastColor(before, s string) string {
	if all := paints.FindAllString(s, -1); len(all) > 0 {
		before = all[len(all)-1]
	}
	if before == "\x1b[0m" {
		return ""
	}
	return before
}
