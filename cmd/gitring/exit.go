package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
	"github.com/gitring/gitring/wording"
)

// exit tells err and gives the exit code.
func (g *globals) exit(err error) int {
	var o exit.Outcome
	var f *exit.Failure
	var ms config.Mistakes
	var r *ring.Refusal
	var h *ring.HostError
	switch {
	case err == nil:
		return exit.OK
	case errors.As(err, &o):
		return int(o)
	case errors.As(err, &f):
		g.tell(f.Says, f.Hint)
		return f.Code
	case errors.As(err, &h):
		g.tell(h.Says, h.Hint)
		return exit.Error
	case errors.As(err, &ms):
		for _, m := range ms {
			g.tell(m.Error(), m.Hint)
		}
		return exit.Error
	case errors.As(err, &r):
		g.tell(r.Error(), r.Hint)
		return exit.Refused
	case errors.Is(err, context.Canceled):
		return exit.Interrupted
	}
	g.tell(err.Error(), "")
	return exit.Error
}

func (g *globals) tell(says, hint string) {
	g.errLine("error: " + wording.SafeLine(says))
	if hint != "" {
		g.errLine("hint: " + wording.SafeLine(hint))
	}
}

// errLine writes a line that is no result. A terminal would break it inside a word.
func (g *globals) errLine(line string) {
	fmt.Fprintln(g.err, screen.Wrapped(line, screen.TerminalWidth(g.err)))
}

// notice tells what is no result, unless -q.
func (g *globals) notice(format string, args ...any) {
	if !g.quiet {
		g.errLine(wording.SafeLine(fmt.Sprintf(format, args...)))
	}
}

func usage(cmd *cobra.Command, says string) error {
	return &exit.Failure{Code: exit.Usage, Says: says, Hint: cmd.CommandPath() + " --help"}
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

// knownVerb refuses a word that is no verb, with the nearest one.
func knownVerb(cmd *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	hint := ring.Meant(given[0], known)
	if !cmd.HasParent() && ring.Nearest(given[0], known) == "" { // nobody reads a list of all of them
		hint = "gitring --help lists what there is"
	}
	return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("unknown command %q for %q", given[0], cmd.CommandPath()), Hint: hint}
}

// wrongFlag is told of a verb that is none, where its flags are those that nobody knows.
func wrongFlag(cmd *cobra.Command, err error) error {
	if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
		return knownVerb(cmd, before)
	}
	said := usage(cmd, sayFlag(err))
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return said
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if near := ring.Nearest(unknown.GetSpecifiedName(), known); near != "" {
		return &exit.Failure{Code: exit.Usage, Says: sayFlag(err), Hint: "did you mean --" + near + "?"}
	}
	return said
}

// kindsOfFlags are what a flag takes, by the word that pflag has for its type.
var kindsOfFlags = map[string]string{"int": "a whole number", "int64": "a whole number", "duration": "a time such as 90s, 5m or 2h", "bool": "true or false"}

// sayFlag is what is wrong with a flag, without the words of the library that reads numbers.
func sayFlag(err error) string {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	kind, ok := kindsOfFlags[wrong.GetFlag().Value.Type()]
	if !ok {
		return err.Error()
	}
	return fmt.Sprintf("--%s takes %s, not %q", wrong.GetFlag().Name, kind, wrong.GetValue())
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
