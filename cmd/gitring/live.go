package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// live is a part of a terminal that is drawn again and again. Elsewhere only
// its lines that changed are written.
type live struct {
	w        io.Writer
	terminal bool
	size     func() (width, height int)
	drawn    int // lines drawn last
	said     map[string]string
	at       map[string]time.Time // of what was said
	now      func() time.Time
}

// sayEvery is the least time between two lines of which only the progress of a
// pull differs: a log has to be read, too.
const sayEvery = 5 * time.Second

// howFar is the progress of a pull within a sentence.
var howFar = regexp.MustCompile(` \([^()]* layers\)`)

func (g *globals) live(to io.Writer) *live {
	l := &live{w: to, said: map[string]string{}, at: map[string]time.Time{}, now: g.now}
	f, ok := to.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return l
	}
	l.terminal = true
	l.size = func() (int, int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}
	return l
}

// redraw puts a text where the last one was. Its lines are wrapped here, not by the
// terminal, and what is higher than it is cut: else it could not be drawn over.
func (l *live) redraw(screen string) error {
	width, height := l.size()
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", l.drawn)
	}
	b.WriteString("\r\x1b[J")
	lines := strings.Split(strings.TrimSuffix(text.WrapText(screen, width), "\n"), "\n")
	lines = lines[:min(len(lines), height-1)]
	for _, line := range lines {
		// A colour whose end was cut off ends here.
		b.WriteString(line + when(strings.Contains(line, "\x1b"), "\x1b[0m") + "\n")
	}
	l.drawn = len(lines)
	_, err := io.WriteString(l.w, b.String())
	return err
}

// say writes a line when it is not what was said last of the same thing; mere
// progress now and then.
func (l *live) say(of, line string) error {
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
