package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/gitring/gitring/wording"
)

// Greeting is the first line that dial-stdio writes once the daemon's socket let it in.
// What stands before it is the login shell's and is left out; after it every byte is the
// daemon's.
const Greeting = "gitring dial-stdio"

const (
	// noiseLimit bounds what a login shell may print before the greeting.
	noiseLimit = 64 << 10
	// wordsLimit bounds what is kept of ssh's words.
	wordsLimit = 4 << 10
	// endWithin is how long ssh may take to end once it is told to. With ControlPersist
	// another ssh stays behind and holds its streams.
	endWithin = 2 * time.Second
)

// SSHError is what ssh, or the far end, said instead of connecting.
type SSHError struct {
	Says string
	Hint string
}

func (e *SSHError) Error() string { return e.Says }

// Dial connects to the daemon of a host. ctx bounds the dialling alone; the connection
// lives until it is closed.
func Dial(ctx context.Context, a Address) (net.Conn, error) {
	c := &conn{to: a, cmd: exec.Command("ssh", a.args()...)}
	c.cmd.Stderr, c.cmd.WaitDelay = &c.said, endWithin
	if err := c.start(); err != nil {
		return nil, &SSHError{Says: "cannot run ssh: " + err.Error(), Hint: "install OpenSSH's client"}
	}
	greeted := make(chan error, 1)
	go func() { greeted <- c.greeted() }()
	select {
	case err := <-greeted:
		if err == nil {
			return c, nil
		}
		return nil, c.failed(err)
	case <-ctx.Done():
		_ = c.cmd.Process.Kill() // it may still wait for an answer of the network
		_ = c.Close()
		_ = <-greeted
		return nil, c.late(ctx)
	}
}

// late is the end of our own patience, with what ssh said meanwhile.
func (c *conn) late(ctx context.Context) error {
	if says := c.said.words(); says != "" && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &SSHError{Says: "no answer in time; ssh said: " + says, Hint: c.hint()}
	}
	return ctx.Err()
}

// conn is a process of ssh. Deadlines are not known to pipes of a process: who waits
// too long closes it.
type conn struct {
	to   Address
	cmd  *exec.Cmd
	in   *os.File
	out  *os.File
	said words

	once sync.Once
	err  error // guarded by once: how ssh ended
}

func (c *conn) start() error {
	inner, in, err := os.Pipe()
	if err != nil {
		return err
	}
	out, outer, err := os.Pipe()
	if err != nil {
		return errors.Join(err, inner.Close(), in.Close())
	}
	c.cmd.Stdin, c.cmd.Stdout, c.in, c.out = inner, outer, in, out
	err = c.cmd.Start()
	_, _ = inner.Close(), outer.Close() // the process has its own
	if err != nil {
		_, _ = in.Close(), out.Close()
	}
	return err
}

// greeted reads up to the greeting, byte by byte: what follows it is the daemon's.
func (c *conn) greeted() error {
	var line []byte
	for n, b := 0, make([]byte, 1); n < noiseLimit; n++ {
		if _, err := io.ReadFull(c.out, b); err != nil {
			return err
		}
		if b[0] != '\n' {
			line = append(line, b[0])
			continue
		}
		if string(line) == Greeting {
			return nil
		}
		line = line[:0]
	}
	return fmt.Errorf("its login shell prints too much")
}

// failed is why there was no greeting: in ssh's own words where it has some.
func (c *conn) failed(err error) error {
	_ = c.Close()
	says := c.said.words()
	if says == "" {
		says = "the connection ended before gitring answered there"
		if !errors.Is(err, io.EOF) {
			says = err.Error()
		}
		var ended *exec.ExitError
		if errors.As(c.err, &ended) && ended.ExitCode() > 0 {
			says += fmt.Sprintf(" (exit %d)", ended.ExitCode())
		}
	}
	return &SSHError{Says: says, Hint: c.hint()}
}

// hint is what the far end itself says to do next, or what its exit code tells.
func (c *conn) hint() string {
	if h := c.said.hint(); h != "" {
		return h
	}
	name := c.to
	name.Socket = ""
	var ended *exec.ExitError
	if errors.As(c.err, &ended) {
		switch ended.ExitCode() {
		case 126, 127:
			return "is gitring installed there, and on the PATH of a shell without a login?"
		case 255:
			if c.to.Foreign {
				return "it has to be known and to let you in without a question: connect once with ssh yourself"
			}
			return "ssh " + strings.TrimPrefix(name.String(), Scheme) + " has to work first"
		}
	}
	return ""
}

func (c *conn) Read(b []byte) (int, error)  { return c.out.Read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.in.Write(b) }

// Close has ssh end, and returns when it has.
func (c *conn) Close() error {
	c.once.Do(func() {
		_ = c.in.Close() // the far end ends by it
		ended := make(chan error, 1)
		go func() { ended <- c.cmd.Wait() }()
		t := time.NewTimer(endWithin)
		defer t.Stop()
		select {
		case c.err = <-ended:
		case <-t.C:
			_ = c.cmd.Process.Kill()
			c.err = <-ended
		}
		_ = c.out.Close()
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr              { return far{c.to} }
func (c *conn) RemoteAddr() net.Addr             { return far{c.to} }
func (c *conn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *conn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// far is the address of a connection.
type far struct{ Address }

func (far) Network() string { return "ssh" }

// words keep the beginning of what is written on stderr, by ssh or by the far end.
type words struct {
	mu sync.Mutex // guards b
	b  []byte
}

func (w *words) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, b[:min(len(b), wordsLimit-len(w.b))]...)
	return len(b), nil
}

const (
	errorPrefix = "error: "
	hintPrefix  = "hint: "
)

// words are the lines in one, without those that warn of something else.
func (w *words) words() string {
	var all []string
	for _, line := range w.lines() {
		switch {
		case strings.HasPrefix(line, hintPrefix), strings.HasPrefix(line, "Warning: "):
		default:
			all = append(all, strings.TrimPrefix(line, errorPrefix))
		}
	}
	return strings.Join(all, "; ")
}

func (w *words) hint() string {
	for _, line := range w.lines() {
		if h, ok := strings.CutPrefix(line, hintPrefix); ok {
			return h
		}
	}
	return ""
}

func (w *words) lines() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range bytes.Lines(w.b) {
		if text := strings.TrimSpace(wording.SafeLine(string(bytes.TrimSpace(line)))); text != "" {
			all = append(all, text)
		}
	}
	return all
}
