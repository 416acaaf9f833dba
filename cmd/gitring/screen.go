package main

import (
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// hue is the ANSI colour of a word; plain for none.
type hue string

const (
	plain  hue = ""
	bold   hue = "1"
	dim    hue = "2"
	red    hue = "31"
	green  hue = "32"
	yellow hue = "33"
	cyan   hue = "36"
)

// word is a text from anywhere and its colour.
type word struct {
	text string
	hue  hue
}

func w(text string) word { return word{text: text} }

// painted is a text in a colour.
func painted(text string, in hue) word { return word{text: text, hue: in} }

// A screen is text for people, built up before it is shown. All that enters it
// is cleaned, so that no name can play with the terminal.
type screen struct {
	b     strings.Builder
	color bool
	width int // 0 cuts nothing
}

// newScreen is an empty screen of a width; 0 is that of no terminal.
func newScreen(color bool, width int) *screen { return &screen{color: color, width: width} }

// lineWidth is that of the terminal; 0 when it is none.
func (s *screen) lineWidth() int { return s.width }

func (s *screen) String() string { return s.b.String() }

func (s *screen) paint(x word) string {
	text := clean(x.text)
	if !s.color || x.hue == plain || text == "" {
		return text
	}
	return "\x1b[" + string(x.hue) + "m" + text + "\x1b[0m"
}

// line writes words with the given separator; empty words are left out, and so
// is a line of nothing else. On a terminal it goes on below where it is too long.
func (s *screen) line(indent int, separator string, words ...word) {
	var shown []string
	for _, x := range words {
		if text := s.paint(x); text != "" {
			shown = append(shown, text)
		}
	}
	if len(shown) > 0 {
		s.write(indent, indent+2, strings.Join(shown, separator))
	}
}

// write puts a text on lines of its own, none wider than the terminal; those after the
// first are indented by hang.
func (s *screen) write(indent, hang int, what string) {
	for _, line := range wrap(strings.Repeat(" ", indent)+what, s.width, hang) {
		s.b.WriteString(line + "\n")
	}
}

// pasted writes a command on one line, as wide as it is: the terminal breaks it, and what is
// pasted from there is whole.
func (s *screen) pasted(indent int, command string) {
	s.b.WriteString(strings.Repeat(" ", indent) + clean(command) + "\n")
}

func (s *screen) gap() { s.b.WriteString("\n") }

// part is an empty screen like s, for what may come to nothing.
func (s *screen) part() *screen { return newScreen(s.color, s.width) }

// empty reports whether nothing was written yet.
func (s *screen) empty() bool { return s.b.Len() == 0 }

// add puts a part below s, after a gap; an empty one leaves no trace.
func (s *screen) add(part *screen) {
	if !part.empty() {
		s.gap()
		s.b.WriteString(part.String())
	}
}

// table writes rows under a head, columns two spaces apart; the last one says why.
// A terminal's rows end at its edge: a why that has no room in its row goes below it,
// and so do columns, with their names. Nothing is cut. Anything else than a terminal
// gets each row on one line.
func (s *screen) table(indent int, head []string, rows [][]word) {
	last := len(head) - 1
	kept, room := s.room(indent, head, rows)
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	shown := head[:kept:kept]
	silent := !slices.ContainsFunc(rows, func(r []word) bool { return r[last].text != "" })
	inRow := kept == last && !silent && room >= text.StringWidth(head[last])
	if inRow {
		shown = head
	}
	t.AppendHeader(s.row(dimmed(shown)))
	whys := make([]word, len(rows))
	for i, r := range rows {
		cells := r[:kept:kept]
		if inRow && text.StringWidth(clean(r[last].text)) <= room {
			cells = r
		} else {
			whys[i] = r[last]
		}
		t.AppendRow(s.row(cells))
	}
	for i, line := range strings.Split(t.Render(), "\n") {
		s.write(indent, indent+2, line)
		if i > 0 { // the head has nothing below it
			s.below(indent+2, head[kept:last], rows[i-1][kept:last])
			if why := s.paint(whys[i-1]); why != "" {
				s.write(indent+2, indent+2, label(head[last])+why)
			}
		}
	}
}

// label is what goes before a last column below its row: a sentence needs none.
func label(head string) string {
	switch head {
	case "MAY", "FROM":
		return strings.ToLower(head) + " "
	}
	return ""
}

// below writes the columns of a row that have no room in it, by their names.
func (s *screen) below(indent int, head []string, cells []word) {
	var named []word
	for i, x := range cells {
		if clean(x.text) != "" {
			named = append(named, painted(strings.ToLower(head[i])+" "+x.text, x.hue))
		}
	}
	s.line(indent, ", ", named...)
}

// room is how many columns before the last have room in a row, and how wide the last
// one may be beside all of them.
func (s *screen) room(indent int, head []string, rows [][]word) (columns, rest int) {
	last := len(head) - 1
	if s.width == 0 {
		return last, math.MaxInt
	}
	left := s.width - indent
	for i := range head[:last] {
		column := text.StringWidth(head[i])
		for _, r := range rows {
			column = max(column, text.StringWidth(clean(r[i].text)))
		}
		if left < column && i > 0 {
			return i, 0
		}
		left -= column + 2
	}
	return last, left
}

func dimmed(head []string) []word {
	words := make([]word, len(head))
	for i, h := range head {
		words[i] = painted(h, dim)
	}
	return words
}

func (s *screen) row(words []word) table.Row {
	row := make(table.Row, len(words))
	for i, x := range words {
		row[i] = s.paint(x)
	}
	return row
}
