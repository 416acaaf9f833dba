package screen

import (
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/gitring/gitring/wording"
)

// Hue is the ANSI colour of a word; NoHue for none.
type Hue string

// The colours of words.
const (
	NoHue  Hue = ""
	Bold   Hue = "1"
	Dim    Hue = "2"
	Red    Hue = "31"
	Green  Hue = "32"
	Yellow Hue = "33"
	Cyan   Hue = "36"
)

// Word is a text from anywhere and its colour.
type Word struct {
	Text string
	hue  Hue
}

// Text is a text without a colour.
func Text(text string) Word { return Word{Text: text} }

// Painted is a text in a colour.
func Painted(text string, in Hue) Word { return Word{Text: text, hue: in} }

// A Screen is text for people, built up before it is shown. All that enters it
// is cleaned, so that no name can play with the terminal.
type Screen struct {
	b     strings.Builder
	color bool
	width int // 0 cuts nothing
}

// New is an empty screen of a width; 0 is that of no terminal.
func New(color bool, width int) *Screen { return &Screen{color: color, width: width} }

// LineWidth is that of the terminal; 0 when it is none.
func (s *Screen) LineWidth() int { return s.width }

// String is all that was written, with its colours.
func (s *Screen) String() string { return s.b.String() }

func (s *Screen) paint(x Word) string {
	text := wording.SafeLine(x.Text)
	if !s.color || x.hue == NoHue || text == "" {
		return text
	}
	return "\x1b[" + string(x.hue) + "m" + text + "\x1b[0m"
}

// Line writes words with the given separator; empty words are left out, and so
// is a line of nothing else. On a terminal it goes on below where it is too long.
func (s *Screen) Line(indent int, separator string, words ...Word) {
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
func (s *Screen) write(indent, hang int, what string) {
	for _, line := range wrap(strings.Repeat(" ", indent)+what, s.width, hang) {
		s.b.WriteString(line + "\n")
	}
}

// Pasted writes a command on one line, as wide as it is: the terminal breaks it, and what is
// pasted from there is whole.
func (s *Screen) Pasted(indent int, command string) {
	s.b.WriteString(strings.Repeat(" ", indent) + wording.SafeLine(command) + "\n")
}

// Gap writes an empty line.
func (s *Screen) Gap() { s.b.WriteString("\n") }

// Part is an empty screen like s, for what may come to nothing.
func (s *Screen) Part() *Screen { return New(s.color, s.width) }

// Empty reports whether nothing was written yet.
func (s *Screen) Empty() bool { return s.b.Len() == 0 }

// Add puts a part below s, after a gap; an empty one leaves no trace.
func (s *Screen) Add(part *Screen) {
	if !part.Empty() {
		s.Gap()
		s.b.WriteString(part.String())
	}
}

// Table writes rows under a head, columns two spaces apart; the last one says why.
// A terminal's rows end at its edge: a why that has no room in its row goes below it,
// and so do columns, with their names. Nothing is cut. Anything else than a terminal
// gets each row on one line.
func (s *Screen) Table(indent int, head []string, rows [][]Word) {
	last := len(head) - 1
	kept, room := s.Room(indent, head, rows)
	first := s.firstWidth(indent, head, rows)
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	shown := head[:kept:kept]
	silent := !slices.ContainsFunc(rows, func(r []Word) bool { return r[last].Text != "" })
	inRow := kept == last && !silent && room >= text.StringWidth(head[last])
	if inRow {
		shown = head
	}
	t.AppendHeader(s.row(dimmed(shown)))
	whys := make([]Word, len(rows))
	for i, r := range rows {
		cells := r[:kept:kept]
		if kept > 1 && isWider(r[0], first) {
			r = append([]Word{Text("")}, r[1:]...)
			cells = r[:kept:kept]
		}
		if inRow && text.StringWidth(wording.SafeLine(r[last].Text)) <= room {
			cells = r
		} else {
			whys[i] = r[last]
		}
		t.AppendRow(s.row(cells))
	}
	for i, line := range strings.Split(t.Render(), "\n") {
		if i > 0 && kept > 1 && isWider(rows[i-1][0], first) {
			s.write(indent, indent+2, s.paint(rows[i-1][0]))
		}
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
func (s *Screen) below(indent int, head []string, cells []Word) {
	var named []Word
	for i, x := range cells {
		if wording.SafeLine(x.Text) != "" {
			named = append(named, Painted(strings.ToLower(head[i])+" "+x.Text, x.hue))
		}
	}
	s.Line(indent, ", ", named...)
}

// FirstColumn is how wide the first column of a table has to be where its few long cells
// stand on lines of their own, above the rest of their rows.
func (s *Screen) FirstColumn(head string, cells []string) int {
	width, narrow, long := text.StringWidth(head), text.StringWidth(head), 0
	for _, cell := range cells {
		w := text.StringWidth(wording.SafeLine(cell))
		width = max(width, w)
		if w > s.width*2/5 {
			long++
		} else {
			narrow = max(narrow, w)
		}
	}
	if s.width == 0 || 2*long > len(cells) {
		return width
	}
	return narrow
}

// firstWidth is that of the first column: of its widest cell where all columns have room so,
// or where they would not without the long cells either.
func (s *Screen) firstWidth(indent int, head []string, rows [][]Word) int {
	cells := make([]string, len(rows))
	for i, r := range rows {
		cells[i] = r[0].Text
	}
	widest, narrow := widthOfColumn(head, rows, 0), s.FirstColumn(head[0], cells)
	others := 0
	for i := 1; i < len(head)-1; i++ {
		others += 2 + widthOfColumn(head, rows, i)
	}
	if room := s.width - indent - others; s.width == 0 || widest <= room || narrow > room {
		return widest
	}
	return narrow
}

func widthOfColumn(head []string, rows [][]Word, i int) int {
	width := text.StringWidth(head[i])
	for _, r := range rows {
		width = max(width, text.StringWidth(wording.SafeLine(r[i].Text)))
	}
	return width
}

func isWider(x Word, width int) bool { return text.StringWidth(wording.SafeLine(x.Text)) > width }

// Room is how many columns before the last have room in a row, and how wide the last
// one may be beside all of them.
func (s *Screen) Room(indent int, head []string, rows [][]Word) (columns, rest int) {
	last := len(head) - 1
	if s.width == 0 {
		return last, math.MaxInt
	}
	left := s.width - indent
	for i := range head[:last] {
		column := widthOfColumn(head, rows, i)
		if i == 0 {
			column = s.firstWidth(indent, head, rows)
		}
		if left < column && i > 0 {
			return i, 0
		}
		left -= column + 2
	}
	return last, left
}

func dimmed(head []string) []Word {
	words := make([]Word, len(head))
	for i, h := range head {
		words[i] = Painted(h, Dim)
	}
	return words
}

func (s *Screen) row(words []Word) table.Row {
	row := make(table.Row, len(words))
	for i, x := range words {
		row[i] = s.paint(x)
	}
	return row
}

// Quote shows lines that another program wrote.
func (s *Screen) Quote(indent int, text string) {
	for line := range strings.Lines(text) {
		s.Line(indent, "", Text(strings.TrimRight(line, "\n")))
	}
}

// TerminalWidth is that of the terminal that a stream goes to; 0 when it is none.
func TerminalWidth(to io.Writer) int {
	f, ok := to.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w <= 0 {
		return 80
	}
	return w
}

// Labelled is a word with what goes before it; nothing when it is empty.
func Labelled(before, text string) Word {
	if text == "" {
		return Word{}
	}
	return Text(before + text)
}
