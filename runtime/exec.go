package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/gitring/gitring/ring"
)

// MaxOutput is how much of a command's output Exec keeps, in bytes.
const MaxOutput = 4 << 10

// Exec runs a command in an instance and waits for its end or for ctx. Output
// is standard output and error as they came, the first MaxOutput bytes. A command
// that outlives ctx is ended where that can be done; where not, it goes on in the
// container, and the same one is not begun again beside it.
func (d *Docker) Exec(ctx context.Context, id string, argv []string) (exit int, output string, err error) {
	e, err := d.ready(ctx)
	if err != nil {
		return 0, "", err
	}
	if !d.cache.has(id) {
		if _, err := d.ours(ctx, e, "cannot run a command in container", id); err != nil {
			return 0, "", err
		}
	}
	key := overrunKey(id, argv)
	if err = d.awaitOverrun(ctx, e, id, key); err == nil {
		var exec string
		exec, exit, output, err = d.command(ctx, e, id, container.ExecOptions{Cmd: argv, AttachStdout: true, AttachStderr: true})
		if err != nil {
			d.overran(ctx, e, id, key, exec)
		}
	}
	if err != nil {
		err = fault("cannot run a command in container "+short(id), "", err)
	}
	return exit, output, err
}

// command runs x in a container that is known to be ours; exec is the engine's ID of
// it, "" where there is none.
func (d *Docker) command(ctx context.Context, e engine, id string, x container.ExecOptions) (exec string, exit int, output string, err error) {
	made, err := e.ContainerExecCreate(ctx, id, x)
	if err != nil {
		return "", 0, "", err
	}
	output, err = d.attach(ctx, e, made.ID)
	if err != nil {
		return made.ID, 0, output, err
	}
	exit, err = ended(ctx, e, made.ID)
	return made.ID, exit, output, err
}

// attach starts the command and reads what it says until it ends.
func (d *Docker) attach(ctx context.Context, e engine, exec string) (string, error) {
	conn, err := e.ContainerExecAttach(ctx, exec, container.ExecAttachOptions{})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()
	out := &capped{max: MaxOutput}
	_, err = stdcopy.StdCopy(out, out, conn.Reader)
	if ctx.Err() != nil { // closing the connection was our doing
		err = ctx.Err()
	}
	return string(out.b), err
}

// ended is the exit code. The stream can end a moment before the engine knows.
func ended(ctx context.Context, e engine, exec string) (int, error) {
	for {
		st, err := e.ContainerExecInspect(ctx, exec)
		if err != nil {
			return 0, err
		}
		if !st.Running {
			return st.ExitCode, nil
		}
		if err := wait(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// capped keeps the first max bytes and swallows the rest.
type capped struct {
	b   []byte
	max int
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.max - len(c.b); room > 0 {
		c.b = append(c.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// LogOptions choose what of an instance's log is read.
type LogOptions struct {
	Follow     bool
	Tail       int       // lines from the end; negative is all
	Since      time.Time // zero is from the start
	Timestamps bool
}

// Logs writes an instance's log to w, both streams as they came. With Follow it
// ends with the instance or with ctx, which is then no error.
func (d *Docker) Logs(ctx context.Context, id string, o LogOptions, w io.Writer) error {
	e, err := d.ready(ctx)
	if err != nil {
		return err
	}
	cannot := "cannot read the log of container " + short(id)
	c, err := e.ContainerInspect(ctx, id)
	if err == nil && c.Config == nil {
		err = errors.New("the engine's answer is empty")
	}
	if err != nil {
		return fault(cannot, "", err)
	}
	body, err := e.ContainerLogs(ctx, id, logsOptions(o))
	if err != nil {
		return fault(cannot, "", err)
	}
	defer func() { _ = body.Close() }()
	err = copyLog(w, body, c.Config.Tty)
	if err != nil && (!o.Follow || ctx.Err() == nil) {
		return &ring.EngineError{Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	return nil
}

// logsOptions are those of the engine.
func logsOptions(o LogOptions) container.LogsOptions {
	opts := container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: o.Follow, Timestamps: o.Timestamps, Tail: "all"}
	if o.Tail >= 0 {
		opts.Tail = fmt.Sprint(o.Tail)
	}
	if !o.Since.IsZero() {
		opts.Since = stamp(o.Since)
	}
	return opts
}

// stamp is a time as the engine takes it.
func stamp(t time.Time) string {
	return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond())
}
