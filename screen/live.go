package screen

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"
)

// Live is a part of a terminal that is drawn again and again. Elsewhere only
// its lines that changed are written.
type Live struct {
	w          io.Writer
	OnTerminal bool // only then Redraw and Height may be called
	size       func() (width, height int)
	drawn      int // lines drawn last, on a terminal of this width
	width      int
	said       map[string]string
	at         map[string]time.Time // of what was said
	now        func() time.Time
}

// sayEvery is the least time between two lines of which only the progress of a
// pull differs: a log has to be read, too.
const sayEvery = 5 * time.Second

// howFar is the progress of a pull within a sentence.
var howFar = regexp.MustCompile(` \([^()]* layers\)`)

// NewLive draws on a stream, by a clock.
func NewLive(to io.Writer, now func() time.Time) *Live {
	l := &Live{w: to, said: map[string]string{}, at: map[string]time.Time{}, now: now}
	f, ok := to.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return l
	}
	l.OnTerminal = true
	l.size = func() (int, int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}
	return l
}

// Screen is an empty one as wide as what is drawn on.
func (l *Live) Screen(color bool) *Screen { return New(color, TerminalWidth(l.w)) }

// Height is that of the terminal, in lines.
func (l *Live) Height() int {
	_, height := l.size()
	return height
}

// Redraw puts a text where the last one was. Its lines are wrapped here, not by the
// terminal, and what is higher than it is cut: else it could not be drawn over.
func (l *Live) Redraw(screen string) error {
	width, height := l.size()
	var lines []string
	for line := range strings.Lines(screen) {
		lines = append(lines, wrap(strings.TrimSuffix(line, "\n"), width, 2)...)
	}
	if room := height - 1; len(lines) > room && room > 0 {
		more := fmt.Sprintf("… %d more lines", len(lines)-room+1)
		lines = append(lines[:room-1], wrap(more, width, 0)[0])
	}
	var b strings.Builder
	switch {
	case l.width != 0 && l.width != width: // what was drawn stands elsewhere now
		b.WriteString("\x1b[H\x1b[2J")
	case l.drawn > 0:
		fmt.Fprintf(&b, "\x1b[%dA", l.drawn)
	}
	b.WriteString("\r\x1b[J")
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	l.drawn, l.width = len(lines), width
	_, err := io.WriteString(l.w, b.String())
	return err
}

// FittingRows draws with as many of n rows as have room in a terminal of that height.
func FittingRows(n, height int, draw func(most int) string) string {
	for most := min(n, height); ; most-- {
		screen := draw(most)
		if most == 0 || strings.Count(screen, "\n") < height {
			return screen
		}
	}
}

// HasSaid reports whether a line was said of a thing.
func (l *Live) HasSaid(of string) bool {
	_, said := l.said[of]
	return said
}

// Say writes a line when it is not what was said last of the same thing; mere
// progress now and then.
func (l *Live) Say(of, line string) error {
	before, told := l.said[of]
	now := l.now()
	still := func(s string) string { return howFar.ReplaceAllString(s, "") }
	if before == line || told && still(before) == still(line) && now.Sub(l.at[of]) < sayEvery {
		return nil
	}
	l.said[of], l.at[of] = line, now
	_, err := fmt.Fprintln(l.w, line)
	return err
}
