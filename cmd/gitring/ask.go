package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// trustedUpTo is the commit that hosts trust, as the daemon here tells of the
// source; "" when none answers or it has none.
func (g *globals) trustedUpTo(ctx context.Context, source string) ring.SHA {
	st, err := g.daemon().Status(ctx)
	if err != nil {
		return ""
	}
	for _, s := range st.Sources {
		if s.Name == source || len(st.Sources) == 1 && source == checkout.HandSource {
			return s.Trusted
		}
	}
	return ""
}

// asks reports whether somebody can be asked.
func (g *globals) asks() bool {
	in, ok := g.in.(*os.File)
	return ok && term.IsTerminal(int(in.Fd()))
}

// yes asks a question that Enter says no to.
func (g *globals) yes(question string) (bool, error) {
	answer, err := g.ask(question+" [y/N]", "")
	answer = strings.ToLower(answer)
	return answer == "y" || answer == "yes", err
}

// confirm asks a question that Enter says yes to.
func (g *globals) confirm(question string) (bool, error) {
	answer, err := g.ask(question+" [Y/n]", "")
	answer = strings.ToLower(answer)
	return answer == "" || answer == "y" || answer == "yes", err
}

// ask asks on stderr, so that stdout keeps the result; "" takes the proposal. It
// reads byte by byte: what is not of this line belongs to the next question, or
// to git.
func (g *globals) ask(question, proposal string) (string, error) {
	if proposal != "" {
		question += " [" + proposal + "]"
	}
	fmt.Fprint(g.err, screen.Wrapped(wording.SafeLine(question), screen.TerminalWidth(g.err))+" ")
	var line strings.Builder
	for b := make([]byte, 1); ; {
		n, err := g.in.Read(b)
		if n == 1 && b[0] == '\n' {
			break
		}
		if n == 1 {
			line.WriteByte(b[0])
		}
		if err != nil {
			fmt.Fprintln(g.err) // Enter ends the line of a question; the end of input does not
			return "", &exit.Failure{Code: exit.Error, Says: "nobody answered", Hint: "every question has a flag: see --help"}
		}
	}
	if answer := strings.TrimSpace(line.String()); answer != "" {
		return answer, nil
	}
	return proposal, nil
}
