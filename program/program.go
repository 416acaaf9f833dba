package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/gitring/gitring/wording"
)

// A Call is one run of a program.
type Call struct {
	// Argv is the program, by its absolute path, and its arguments.
	Argv []string
	// Env has all of its environment, as NAME=value.
	Env []string
	// Within is how long it may take, and Most how many bytes it may print.
	Within time.Duration
	Most   int
}

// leftBehind is how long a child of the program may hold its output open.
const leftBehind = time.Second

// Output is what the program prints to its standard output. An error says how it ended, and
// nothing of what it printed: neither of its outputs is kept then.
func Output(ctx context.Context, c Call) ([]byte, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("cannot run a program: none is named")
	}
	within, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	cmd := exec.CommandContext(within, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = append([]string{}, c.Env...), "/"
	out := &bounded{most: c.Most, full: cancel}
	cmd.Stdout, cmd.Stderr, cmd.Stdin = out, io.Discard, nil
	cmd.WaitDelay = leftBehind
	endAsOne(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.Argv[0], err)
	}
	err := cmd.Wait()
	endGroup(cmd)
	switch {
	case out.over:
		return nil, fmt.Errorf("%s printed more than %s", c.Argv[0], wording.ExactSize(int64(c.Most)))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case within.Err() != nil:
		return nil, fmt.Errorf("%s did not answer within %s", c.Argv[0], c.Within)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s ended and left a process that holds its output open", c.Argv[0])
	case err != nil:
		return nil, fmt.Errorf("%s ended with %w", c.Argv[0], err)
	}
	return out.got.Bytes(), nil
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
