package main

import (
	"math"
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

// A screen is text for people, built up before it is shown. All that enters it
// is cleaned, so that no name can play with the terminal.
type screen struct {
	b     strings.Builder
	color bool
	width int // 0 cuts nothing
}

func (g *globals) screen() *screen {
	width := g.width()
	return &screen{color: width > 0 && g.colors(), width: width}
}

func (s *screen) String() string { return s.b.String() }

func (s *screen) paint(x word) string {
	text := clean(x.text)
	if !s.color || x.hue == plain || text == "" {
		return text
	}
	return "\x1b[" + string(x.hue) + "m" + text + "\x1b[0m"
}

// line writes words with the given separator; empty words are left out, and so
// is a line of nothing else.
func (s *screen) line(indent int, separator string, words ...word) {
	var shown []string
	for _, x := range words {
		if text := s.paint(x); text != "" {
			shown = append(shown, text)
		}
	}
	if len(shown) > 0 {
		s.b.WriteString(strings.Repeat(" ", indent) + strings.Join(shown, separator) + "\n")
	}
}

func (s *screen) gap() { s.b.WriteString("\n") }

// part is an empty screen like s, for what may come to nothing.
func (s *screen) part() *screen { return &screen{color: s.color, width: s.width} }

// add puts a part below s, after a gap; an empty one leaves no trace.
func (s *screen) add(part *screen) {
	if part.b.Len() > 0 {
		s.gap()
		s.b.WriteString(part.String())
	}
}

// table writes rows under a head, columns two spaces apart; the last one says why.
// A terminal's rows end at its edge: a why that has no room in its row goes below
// it, whole. Anything else than a terminal gets each row on one line.
func (s *screen) table(indent int, head []string, rows [][]word) {
	last := len(head) - 1
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Box.UnfinishedRow = "…"
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	room := s.room(indent, head, rows)
	if room < text.StringWidth(head[last]) {
		head = head[:last] // no row has room for a why
	}
	if room < -2 && s.width > indent { // the others do not fit either; nothing stands behind the last of them
		t.SetAllowedRowLength(s.width - indent)
	}
	t.AppendHeader(s.row(dimmed(head)))
	below := make([]string, len(rows))
	for i, r := range rows {
		if len(head) == last || text.StringWidth(clean(r[last].text)) > room {
			r, below[i] = r[:last], s.paint(r[last])
		}
		t.AppendRow(s.row(r))
	}
	for i, line := range strings.Split(t.Render(), "\n") {
		s.b.WriteString(strings.Repeat(" ", indent) + line + "\n")
		if i > 0 { // the head has nothing below it
			s.fold(indent+2, below[i-1])
		}
	}
}

// room is how wide the last column of a table may be; negative where the others
// fill the terminal.
func (s *screen) room(indent int, head []string, rows [][]word) int {
	if s.width == 0 {
		return math.MaxInt
	}
	left := s.width - indent
	last := len(head) - 1
	for i := range head[:last] {
		column := text.StringWidth(head[i])
		for _, r := range rows {
			column = max(column, text.StringWidth(clean(r[i].text)))
		}
		left -= column + 2
	}
	return left
}

// fold writes a text in as many lines as it needs, none wider than the terminal.
func (s *screen) fold(indent int, what string) {
	if what == "" {
		return
	}
	for line := range strings.Lines(text.WrapSoft(what, max(s.width-indent, 8))) {
		s.b.WriteString(strings.Repeat(" ", indent) + strings.TrimSpace(line) + "\n")
	}
}

func dimmed(head []string) []word {
	words := make([]word, len(head))
	for i, h := range head {
		words[i] = word{h, dim}
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
