package gitsync

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/gitring/gitring/wording"
)

// ErrByHand is what ServeFetch says to somebody who typed its verb.
var ErrByHand = errors.New("the process that fetches is started by the daemon, which talks to it through pipes; there is nothing to do for it by hand")

// ServeFetch is the life of the process that fetches, between two pipes. It ends
// with its input, and returns an error when that makes no sense.
func ServeFetch(in, out *os.File) error {
	if !isPipe(in) || !isPipe(out) {
		return ErrByHand
	}
	s := &server{out: out}
	// One that stands ready holds on to no more than it must.
	spare := time.AfterFunc(time.Second, debug.FreeOSMemory)
	questions := make(chan question)
	failed := make(chan error, 1)
	go func() {
		for {
			var q question
			if err := readMessage(in, &q, maxQuestion); err != nil {
				if errors.Is(err, io.EOF) {
					// The daemon is gone or has no more use for this process, whatever it does.
					os.Exit(0)
				}
				failed <- err
				return
			}
			questions <- q
		}
	}()
	for {
		select {
		case err := <-failed:
			return err
		case q := <-questions:
			spare.Stop()
			if err := s.answer(q); err != nil {
				return err
			}
		}
	}
}

func isPipe(f *os.File) bool {
	in, err := f.Stat()
	return err == nil && in.Mode()&os.ModeNamedPipe != 0
}

// server is the process that fetches: one remote, at most one view at a time.
type server struct {
	out   io.Writer
	begin *beginning
	far   remote
	view  *view
	lim   Limits
}

func (s *server) answer(q question) error {
	switch {
	case q.Begin != nil && s.begin == nil:
		return s.tell(s.start(q.Begin))
	case s.begin == nil:
		return errMessage
	case q.Look != nil:
		return s.tell(s.look(q.Look))
	case q.Fetch != nil && s.view != nil:
		return s.tell(told{}, s.fetch(q.Fetch))
	case q.Close:
		s.close()
		return nil
	}
	return errMessage
}

func (s *server) tell(t told, err error) error {
	if errors.Is(err, syscall.EPERM) {
		err = fmt.Errorf("%w (a system call that this process may not make fails like this; %s)", err, seeAudit)
	}
	if err != nil {
		t = told{Fault: faultOf(err)}
	}
	return writeMessage(s.out, t, maxAnswer)
}

// seeAudit says where the number of a refused system call stands.
const seeAudit = "the kernel's log names it where audit is on: dmesg, type=1326"

// start takes everything away that is not needed, before the first byte of a
// remote is read.
func (s *server) start(b *beginning) (told, error) {
	s.begin = b
	for name, v := range b.Proxies {
		if err := os.Setenv(name, v); err != nil {
			return told{}, err
		}
	}
	if b.Scheme == "https" {
		// Read while the files can be: afterwards they need not.
		if _, err := x509.SystemCertPool(); err != nil {
			return told{}, fmt.Errorf("cannot read the certificates of this host: %w", err)
		}
	}
	signal.Ignore(fileTooLarge) // writing fails instead, with words
	debug.SetMemoryLimit(b.Target)
	return confine(b)
}

func (s *server) close() {
	if s.view != nil {
		s.view.close()
		s.view = nil
	}
}

// atMost ends what the daemon could not: it kills sooner.
func atMost(d time.Duration) (context.Context, context.CancelFunc) {
	const grace = 5 * time.Second
	return context.WithTimeout(context.Background(), d+grace)
}

func (s *server) look(q *asked) (told, error) {
	s.close()
	if s.far != nil {
		s.far.rest()
	}
	sent := q.Files
	if sent == nil {
		sent = map[string][]byte{}
	}
	known := q.Hosts
	if known == nil {
		known = hosts{}
	}
	far, err := newRemote(s.begin.address(), plumbing.ReferenceName(q.Ref), q.Auth, q.Limits, files{sent, s.begin.Stage}, known)
	if err != nil {
		return told{}, err
	}
	s.far, s.lim = far, q.Limits
	ctx, cancel := atMost(q.Within)
	v, err := far.look(ctx)
	if err != nil {
		cancel()
		return told{}, err
	}
	hangUp := v.close
	v.close = func() {
		hangUp()
		cancel()
	}
	s.view = v
	t := told{Missing: v.missing, Shallow: v.shallow, Bring: v.bring != nil}
	if !v.tip.IsZero() {
		t.Tip = v.tip.String()
	}
	return t, nil
}

func (s *server) fetch(q *wanted) error {
	if s.view.bring == nil {
		return errMessage
	}
	wants, err := hashes(q.Wants)
	if err != nil {
		return err
	}
	haves, err := hashes(q.Haves)
	if err != nil {
		return err
	}
	var here stores
	for _, dir := range q.Stores {
		here = append(here, newMirror(dir, "", s.lim))
	}
	defer here.rest()
	ctx, cancel := atMost(q.Within)
	defer cancel()
	// A first clone needs far more than what comes after it.
	defer debug.FreeOSMemory()
	err = s.view.bring(ctx, order{wants: wants, haves: haves, here: here, clone: q.Clone, copies: q.Copies}, &incoming{s.begin.Stage, s.lim})
	if errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("a file would be larger than %s (RLIMIT_FSIZE): %w", wording.ExactSize(s.begin.File), errLimit)
	}
	return err
}

// stores are mirrors as the process that fetches may read them.
type stores []*mirror

func (s stores) has(sha plumbing.Hash) bool {
	for _, m := range s {
		if m.hasItself(sha) {
			return true
		}
	}
	return false
}

func (s stores) rest() {
	for _, m := range s {
		m.rest()
	}
}
