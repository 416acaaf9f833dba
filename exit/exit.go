// Package exit has the exit codes of the command line, and the errors that know theirs.
package exit

import "fmt"

// Exit codes, as docs/reference/cli.md#exit-codes lists them.
const (
	OK          = 0
	Error       = 1
	Usage       = 2
	Unreachable = 3
	NotFound    = 4
	Conflict    = 5
	Failed      = 6
	Refused     = 7
	Timeout     = 8
	Held        = 9
	Progressing = 10

	// As a shell says it of a command that SIGINT or SIGTERM ended.
	Interrupted = 130
	Terminated  = 143
)

// Failure is an error that knows its exit code and what to do next.
type Failure struct {
	Code int
	Says string
	Hint string
	Why  error // what it came of, where somebody may ask
}

func (f *Failure) Error() string { return f.Says }

func (f *Failure) Unwrap() error { return f.Why }

// Outcome is an exit code that needs no error: the result said it all.
type Outcome int

func (o Outcome) Error() string { return fmt.Sprintf("exit status %d", int(o)) }

// With turns an exit code into what a verb returns.
func With(code int) error {
	if code == OK {
		return nil
	}
	return Outcome(code)
}
