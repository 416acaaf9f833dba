//go:build !windows

package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gitring/gitring/ring"
)

// Bounds of the supervisor: docs/design/traffic.md.
const (
	readyTime  = 10 * time.Second
	backoffMax = 10 * time.Second
	calmAfter  = 10 * time.Minute // then a proxy that ended is the first one again
	maxOld     = 2
	socketsEnv = "FRONT_SOCKETS"
)

// Supervisor is process 1 of a front. It owns the listening sockets and starts the proxy; it
// reads no byte of a client. So there is little in it that could have to be replaced.
type Supervisor struct {
	TableDir, BuildsDir string
	Program             string   // the image's own proxy
	Args                []string // that have a program be the proxy
	Log                 *log.Logger

	host    string // to listen on, "" is everywhere
	sockets []socket
	keys    []string // of sockets: "tcp:8080"
	ended   chan *child
	current *child
	coming  *child // was started and is not ready yet
	old     []*child
	wanted  bool // a new proxy was asked for and waits for its turn
	crashes int
	crashed time.Time
}

// socket is one that is listened on.
type socket interface {
	syscall.Conn
	io.Closer
}

// child is one proxy process.
type child struct {
	program string
	pid     int
	process *os.Process // by which a signal meets no other process of the same number
	life    *os.File    // its other end closes with this process, and so the child ends
	ready   chan error  // one answer: nil when it printed its line
	gone    bool        // it ended
}

// Run starts the proxy and sees to it until SIGTERM.
func (s *Supervisor) Run(ctx context.Context) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	if err := s.open(ctx, signals); err != nil {
		return err
	}
	s.ended = make(chan *child, 8)
	restart := time.NewTimer(0) // the first one
	for {
		var ready chan error
		if s.coming != nil {
			ready = s.coming.ready
		}
		select {
		case <-restart.C:
			if s.current == nil && s.coming == nil {
				s.begin(s.newest(), restart)
			}
		case err := <-ready:
			s.settle(err, restart)
		case c := <-s.ended:
			s.lost(c, restart)
		case <-ctx.Done():
			return s.end()
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				return s.end()
			}
			s.wanted = true
		}
		if s.wanted && s.current != nil && s.coming == nil && len(s.old) < maxOld {
			s.wanted = false
			s.begin(s.newest(), restart)
		}
	}
}

// open has every port of the table be listened on. Where no table is there yet it waits.
func (s *Supervisor) open(ctx context.Context, signals <-chan os.Signal) error {
	var t ring.FrontTable
	for said := false; ; said = true {
		body, err := os.ReadFile(filepath.Join(s.TableDir, ring.FrontTableFile))
		if err == nil {
			t, err = readTable(body)
		}
		if err == nil {
			break
		}
		if !said {
			s.Log.Printf("waiting for a table error=%q", err)
		}
		select {
		case <-time.After(time.Second / 4):
		case <-ctx.Done():
			return ctx.Err()
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				return nil
			}
		}
	}
	for _, p := range t.Ports {
		addr := fmt.Sprintf("%s:%d", s.host, p.Port)
		if p.Protocol() == "udp" {
			c, err := net.ListenPacket("udp", addr)
			if err != nil {
				return fmt.Errorf("cannot open a port: %w", err)
			}
			s.sockets = append(s.sockets, c.(*net.UDPConn))
			s.keys = append(s.keys, fmt.Sprintf("udp:%d", c.LocalAddr().(*net.UDPAddr).Port))
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("cannot open a port: %w", err)
		}
		s.sockets = append(s.sockets, l.(*net.TCPListener))
		s.keys = append(s.keys, fmt.Sprintf("tcp:%d", l.Addr().(*net.TCPAddr).Port))
	}
	return nil
}

// begin starts a proxy; the image's own where another one cannot be started at all.
func (s *Supervisor) begin(program string, restart *time.Timer) {
	c, err := s.start(program)
	if err != nil && program != s.Program {
		s.Log.Printf("not started program=%s error=%q", program, err)
		c, err = s.start(s.Program)
	}
	if err != nil {
		s.Log.Printf("not started program=%s error=%q", s.Program, err)
		restart.Reset(time.Second)
		return
	}
	s.coming = c
}

// start hands the sockets to a new process. They go by their numbers: os/exec would have them
// block, for the proxy that serves meanwhile as well.
func (s *Supervisor) start(program string) (*child, error) {
	hers, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	lines, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, hers.Close(), life.Close())
	}
	defer hers.Close()
	defer out.Close()
	files := []uintptr{raw(hers), raw(out), 2}
	for _, l := range s.sockets {
		files = append(files, raw(l))
	}
	pid, _, err := syscall.StartProcess(program, append([]string{program}, s.Args...), &syscall.ProcAttr{Env: append(os.Environ(), socketsEnv+"="+strings.Join(s.keys, ","), crashesEnv+"="+fmt.Sprint(s.recent())), Files: files})
	if err != nil {
		return nil, errors.Join(err, lines.Close(), life.Close())
	}
	process, _ := os.FindProcess(pid) // never fails
	c := &child{program: program, pid: pid, process: process, life: life, ready: make(chan error, 1)}
	go func() {
		defer lines.Close()
		_ = lines.SetReadDeadline(time.Now().Add(readyTime))
		_, err := bufio.NewReader(lines).ReadString('\n')
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errors.New("it was not ready in " + readyTime.String())
		}
		c.ready <- err
	}()
	go func() {
		_, _ = process.Wait()
		s.ended <- c
	}()
	return c, nil
}

// raw is the number of a file or socket, which stays as it is.
func raw(f syscall.Conn) (n uintptr) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { n = fd })
	}
	return n
}

// settle is told whether the coming proxy is ready. If not, the one that serves stays.
func (s *Supervisor) settle(err error, restart *time.Timer) {
	c := s.coming
	s.coming = nil
	if err == nil && c.gone {
		err = errors.New("it ended as soon as it was ready")
	}
	if err == nil {
		s.Log.Printf("started program=%s pid=%d", c.program, c.pid)
		if s.current != nil {
			_ = s.current.process.Signal(syscall.SIGUSR2) // retire
			s.old = append(s.old, s.current)
		}
		s.current = c
		return
	}
	s.Log.Printf("not ready program=%s pid=%d error=%q", c.program, c.pid, err)
	_ = c.process.Signal(syscall.SIGKILL)
	if s.current != nil {
		_ = s.current.process.Signal(syscall.SIGUSR1) // the socket's name is its again
		return
	}
	if c.program != s.Program {
		s.begin(s.Program, restart)
		return
	}
	s.again(restart)
}

// lost is told that a process ended. Clients wait in the backlog until there is another.
func (s *Supervisor) lost(c *child, restart *time.Timer) {
	_ = c.life.Close()
	c.gone = true
	if i := slices.Index(s.old, c); i >= 0 {
		s.old = slices.Delete(s.old, i, i+1)
		return
	}
	if c != s.current {
		return // it was not ready, and settle hears so
	}
	s.current = nil
	s.again(restart)
}

// again starts a proxy at once, then after 1 s, 2 s, … 10 s.
func (s *Supervisor) again(restart *time.Timer) {
	s.crashes, s.crashed = s.recent()+1, time.Now()
	after := time.Duration(0)
	if s.crashes > 1 {
		after = min(time.Second<<min(s.crashes-2, 4), backoffMax)
	}
	s.Log.Printf("proxy ended crashes=%d again_in=%s", s.crashes, after)
	restart.Reset(after)
}

// recent is how many proxies ended by themselves, each within calmAfter of the one before.
func (s *Supervisor) recent() int {
	if time.Since(s.crashed) > calmAfter {
		return 0
	}
	return s.crashes
}

// end stops accepting, leaves requests in flight a moment, and ends.
func (s *Supervisor) end() error {
	for _, l := range s.sockets {
		_ = l.Close()
	}
	left := map[*child]bool{}
	for _, c := range append(s.old, s.current, s.coming) {
		if c != nil {
			left[c] = true
			_ = c.process.Signal(syscall.SIGTERM)
		}
	}
	late := time.After(lastMoments + time.Second/2)
	for len(left) > 0 {
		select {
		case c := <-s.ended:
			delete(left, c)
		case <-late:
			for c := range left {
				_ = c.process.Signal(syscall.SIGKILL)
			}
			return nil
		}
	}
	return nil
}
