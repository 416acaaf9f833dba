package health

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// answer is what one probe found out.
type answer struct {
	// known is false when nothing was learned about the instance: the daemon
	// is stopping, or the engine could not be asked. That is no failure.
	known bool
	ok    bool
	says  string
	took  time.Duration
	// printed is what the command printed, or the body of an answer, of a check that
	// failed. It may hold a secret: it is no part of a reason.
	printed string
}

func passed() answer { return answer{known: true, ok: true} }

func failed(format string, args ...any) answer {
	return answer{known: true, says: printable(fmt.Sprintf(format, args...))}
}

func unknown(format string, args ...any) answer {
	return answer{says: printable(fmt.Sprintf(format, args...))}
}

// prober asks instances. It is shared by all checks of a daemon.
type prober struct {
	exec   Exec
	dialer net.Dialer
	// hosts are the addresses of this host besides loopback, for instances on its
	// network.
	hosts func() []string
}

func newProber(exec Exec) *prober { return &prober{exec: exec, hosts: hostAddresses} }

func timeoutOf(c ring.Check) time.Duration {
	if c.Timeout <= 0 {
		return defaultTimeout
	}
	return c.Timeout
}

// ask runs one probe of c against in, within the check's own timeout.
func (p *prober) ask(ctx context.Context, in ring.Instance, c ring.Check) answer {
	timeout := timeoutOf(c)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var a answer
	switch {
	case c.HTTP != nil:
		a = p.http(limited, in, *c.HTTP, timeout)
	case c.TCP != nil:
		a = p.tcp(limited, in, c.TCP.Port, timeout)
	case c.GRPC != nil:
		a = p.grpc(limited, in, *c.GRPC, timeout)
	case len(c.Exec) > 0:
		a = p.run(limited, in, c.Exec, timeout)
	default:
		return unknown("says nothing to ask")
	}
	if ctx.Err() != nil { // stopped in the middle: not the instance's fault
		return answer{}
	}
	return a
}

func (p *prober) tcp(ctx context.Context, in ring.Instance, port int, timeout time.Duration) answer {
	hosts := p.addresses(in)
	if len(hosts) == 0 {
		return failed(noAddress)
	}
	conn, err := p.dial(ctx, hosts, strconv.Itoa(port))
	if err != nil {
		return failed("tcp :%d %s", port, because(ctx, err, timeout))
	}
	_ = conn.Close()
	return passed()
}

// printing is a with the beginning of what was printed.
func (a answer) printing(text string) answer {
	a.printed = text[:min(len(text), ring.PrintedCap)]
	return a
}

// run never says in its reason what the command printed nor its arguments: either may
// hold a secret, and a reason is read by everyone.
func (p *prober) run(ctx context.Context, in ring.Instance, argv []string, timeout time.Duration) answer {
	if p.exec == nil {
		return unknown("exec %s: this engine runs no commands in containers", argv[0])
	}
	code, printed, err := p.exec(ctx, in.ID, argv)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed("exec %s did not end within %s", argv[0], timeout).printing(printed)
	case err != nil:
		return unknown("exec %s could not be run", argv[0])
	case code != 0:
		return failed("exec %s exited %d", argv[0], code).printing(printed)
	}
	return passed()
}

// engineWord turns the engine's own verdict into an answer.
func engineWord(word string) answer {
	switch word {
	case "healthy":
		return passed()
	case "unhealthy":
		return failed("the container's HEALTHCHECK fails")
	case "starting":
		return unknown("the container's HEALTHCHECK has not passed yet")
	}
	return unknown("the container has no HEALTHCHECK")
}

const noProperAnswer = "did not give a proper answer"

// because says what went wrong on the wire, without addresses.
func because(ctx context.Context, err error, timeout time.Duration) string {
	var ne net.Error
	var te *tls.RecordHeaderError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &ne) && ne.Timeout():
		return fmt.Sprintf("did not answer within %s", timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused the connection"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed the connection without an answer"
	case errors.As(err, &te):
		return "does not speak TLS"
	case errors.Is(err, errTooManyHops):
		return errTooManyHops.Error()
	case errors.Is(err, errElsewhere):
		return errElsewhere.Error()
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return "failed: " + errno.Error()
	}
	return noProperAnswer
}

// printable keeps a reason on one line and short: names in it come from a
// commit, and it is stored and shown as it is.
func printable(s string) string {
	s = wording.PrintableLine(s, ' ')
	if utf8.RuneCountInString(s) > 200 {
		s = wording.CutRunes(s, 199)
	}
	return s
}
