package config

import (
	"fmt"
	"slices"

	"github.com/gitring/gitring/ring"
)

// NotCarriedOut are the documented keys and values of c that this release does
// not carry out. They end serve: a key that is read and ignored is a promise
// that nobody keeps.
func (c *Config) NotCarriedOut() Mistakes {
	n := &notYet{file: c.File, lines: c.lines}
	n.value("engine.kind", c.Engine.Kind, KindDocker)
	return n.mistakes.sorted()
}

type notYet struct {
	file     string
	lines    lines
	mistakes Mistakes
}

func (n *notYet) value(at, value string, carried ...string) {
	if !slices.Contains(carried, value) {
		n.not(at, keyOf(at)+": "+value)
	}
}

func (n *notYet) not(at, what string) {
	n.mistakes = append(n.mistakes, notCarried(n.file, n.lines.at(at), what))
}

func notCarried(file string, line int, what string) Mistake {
	return Mistake{
		File: file, Line: line,
		Says: fmt.Sprintf("%s is not carried out by this release (%s)", what, ring.Release),
		Hint: "take it out; docs/reference/configuration.md says what this release carries out",
	}
}
