package program

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/gitring/gitring/wording"
)

// A Call is one run of a program.
type Call struct {
	// Argv is the program and its arguments: by its absolute path, or a name that PATH finds.
	Argv []string
	// Env has all of its environment, as NAME=value.
	Env []string
	// Dir is the folder that it runs in; "" is the root folder.
	Dir string
	// In is what it may read from its standard input.
	In string
	// Within is how long it may take, 0 as long as the caller waits, and Most how many bytes of
	// each of its outputs count.
	Within time.Duration
	Most   int
}

// leftBehind is how long a child of the program may hold its output open.
const leftBehind = time.Second

// Output is what the program prints to its standard output. An error says how it ended, and
// nothing of what it printed: neither of its outputs is kept then.
func Output(ctx context.Context, c Call) ([]byte, error) {
	within, cancel := c.within(ctx)
	defer cancel()
	out := &bounded{most: c.Most, full: cancel}
	err := c.run(within, out, io.Discard)
	switch {
	case out.over:
		return nil, fmt.Errorf("%s printed more than %s", c.Argv[0], wording.ExactSize(int64(c.Most)))
	case err != nil:
		return nil, c.why(ctx, within, err)
	}
	return out.got.Bytes(), nil
}

// Said is what a program printed, the beginning of each of its outputs, and how it ended.
type Said struct {
	Out, Err string
	Exit     int
}

// Answer runs a program whose answer is how it ends. An error says that it gave none: what it
// printed until then is told all the same.
func Answer(ctx context.Context, c Call) (Said, error) {
	within, cancel := c.within(ctx)
	defer cancel()
	out, errs := &beginning{most: c.Most}, &beginning{most: c.Most}
	err := c.run(within, out, errs)
	said := Said{Out: out.got.String(), Err: errs.got.String()}
	no, exited := errors.AsType[*exec.ExitError](err)
	if exited && within.Err() == nil && no.Exited() {
		said.Exit = no.ExitCode()
		return said, nil
	}
	if err != nil {
		err = c.why(ctx, within, err)
	}
	return said, err
}

func (c Call) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Within == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.Within)
}

// run runs the program to its end, and ends what it left running.
func (c Call) run(ctx context.Context, out, errs io.Writer) error {
	if len(c.Argv) == 0 {
		return errNone
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = append([]string{}, c.Env...), cmp.Or(c.Dir, "/")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.In), out, errs
	cmd.WaitDelay = leftBehind
	endAsOne(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", c.Argv[0], err)
	}
	defer endGroup(cmd)
	if err := cmd.Wait(); err != nil {
		return ended{err}
	}
	return nil
}

var errNone = errors.New("cannot run a program: none is named")

// ended is how a program ended that was started.
type ended struct{ error }

func (e ended) Unwrap() error { return e.error }

// why is an error of run as people read it.
func (c Call) why(ctx, within context.Context, err error) error {
	_, started := errors.AsType[ended](err)
	switch {
	case !started:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() != nil:
		return fmt.Errorf("%s did not answer within %s", c.Argv[0], c.Within)
	case errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("%s ended and left a process that holds its output open", c.Argv[0])
	}
	return fmt.Errorf("%s ended with %w", c.Argv[0], err)
}

// beginning keeps the first bytes that are written to it, and takes the rest.
type beginning struct {
	got  bytes.Buffer
	most int
}

// Write never fails: a program is not to stop for want of a listener.
func (b *beginning) Write(p []byte) (int, error) {
	b.got.Write(p[:min(len(p), max(0, b.most-b.got.Len()))])
	return len(p), nil
}

// bounded holds what is written to it up to most bytes. More ends the program.
type bounded struct {
	got  bytes.Buffer // not embedded: its ReadFrom knows no bound
	most int
	over bool
	full func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.over || b.got.Len()+len(p) > b.most {
		b.over = true
		b.full()
		return 0, errors.New("it prints too much")
	}
	return b.got.Write(p)
}
