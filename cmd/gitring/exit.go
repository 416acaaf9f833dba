package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/ring"
)

// Exit codes, as docs/reference/cli.md#exit-codes lists them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitNotFound    = 4
	exitConflict    = 5
	exitFailed      = 6
	exitRefused     = 7
	exitTimeout     = 8
	exitHeld        = 9
	exitProgressing = 10

	// As a shell says it of a command that SIGINT or SIGTERM ended.
	exitInterrupted = 130
	exitTerminated  = 143
)

// failure is an error that knows its exit code and what to do next.
type failure struct {
	code int
	says string
	hint string
	why  error // what it came of, where somebody may ask
}

func (f *failure) Error() string { return f.says }

func (f *failure) Unwrap() error { return f.why }

// outcome is an exit code that needs no error: the result said it all.
type outcome int

func (o outcome) Error() string { return fmt.Sprintf("exit status %d", int(o)) }

// ended turns an exit code into what a verb returns.
func ended(code int) error {
	if code == exitOK {
		return nil
	}
	return outcome(code)
}

// exit tells err and gives the exit code.
func (g *globals) exit(err error) int {
	var o outcome
	var f *failure
	var ms config.Mistakes
	var r *ring.Refusal
	var h *ring.HostError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &o):
		return int(o)
	case errors.As(err, &f):
		g.tell(f.says, f.hint)
		return f.code
	case errors.As(err, &h):
		g.tell(h.Says, h.Hint)
		return exitError
	case errors.As(err, &ms):
		for _, m := range ms {
			g.tell(m.Error(), m.Hint)
		}
		return exitError
	case errors.As(err, &r):
		g.tell(r.Error(), r.Hint)
		return exitRefused
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	g.tell(err.Error(), "")
	return exitError
}

func (g *globals) tell(says, hint string) {
	fmt.Fprintln(g.err, "error: "+clean(says))
	if hint != "" {
		fmt.Fprintln(g.err, "hint: "+clean(hint))
	}
}

// notice tells what is no result, unless -q.
func (g *globals) notice(format string, args ...any) {
	if !g.quiet {
		fmt.Fprintln(g.err, clean(fmt.Sprintf(format, args...)))
	}
}

func usage(cmd *cobra.Command, says string) error {
	return &failure{code: exitUsage, says: says, hint: cmd.CommandPath() + " --help"}
}

// args makes a wrong number of arguments a wrong usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if check(cmd, given) != nil {
			return usage(cmd, fmt.Sprintf("wrong number of arguments (%d): %s %s", len(given), cmd.Parent().CommandPath(), cmd.Use))
		}
		return nil
	}
}

// later are the verbs that are planned and that this release does not have.
var later = strings.Fields("proxy doctor fleet")

// knownVerb refuses a word that is no verb, with the nearest one.
func knownVerb(cmd *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	for _, verb := range later {
		if given[0] == verb && !cmd.HasParent() {
			return &failure{
				code: exitUsage, says: fmt.Sprintf("%s is not carried out by this release (%s)", verb, ring.Release),
				hint: "gitring --help lists what is",
			}
		}
	}
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	return &failure{
		code: exitUsage, says: fmt.Sprintf("unknown command %q for %q", given[0], cmd.CommandPath()),
		hint: ring.Meant(given[0], known),
	}
}

// wrongFlag is told of a verb that is none, where its flags are those that nobody knows.
func wrongFlag(cmd *cobra.Command, err error) error {
	if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
		return knownVerb(cmd, before)
	}
	return usage(cmd, err.Error())
}

// help is "gitring help verb".
func help(root *cobra.Command, words []string) error {
	cmd, rest, err := root.Find(words)
	switch {
	case err != nil:
		return knownVerb(root, words)
	case len(rest) > 0 && cmd.HasSubCommands():
		return knownVerb(cmd, rest)
	}
	return cmd.Help()
}
