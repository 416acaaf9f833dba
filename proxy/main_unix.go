//go:build !windows

package proxy

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gitring/gitring/ring"
)

// Main is the program of a front, by its arguments: the supervisor without any, "proxy" as
// its child, and "health" as the HEALTHCHECK. It returns the exit code.
func Main(args []string) int {
	l := log.New(os.Stderr, "", log.LstdFlags|log.LUTC)
	switch {
	case len(args) == 0:
		s := Supervisor{TableDir: ring.FrontTables, BuildsDir: ring.FrontBuilds, Program: ring.FrontProgram, Args: []string{"proxy"}, Log: l}
		return ended(l, s.Run(context.Background()))
	case args[0] == "proxy":
		return ended(l, RunProxy(Options{TableDir: ring.FrontTables, RunDir: ring.FrontRun, Log: l}))
	case args[0] == "health":
		return health(os.Stdout, filepath.Join(ring.FrontRun, ring.FrontSocket))
	}
	fmt.Fprintln(os.Stderr, "cannot do that: front has the commands proxy and health")
	return 2
}

func ended(l *log.Logger, err error) int {
	if err != nil {
		l.Print(err)
		return 1
	}
	return 0
}

// health is 0 when the front serves and nobody takes its place.
func health(out io.Writer, socket string) int {
	var says problem
	status, err := askSocket(context.Background(), socket, controlTime, http.MethodGet, "/v1/health", nil, &says)
	if err != nil {
		fmt.Fprintln(out, "cannot ask the front:", err)
		return 1
	}
	fmt.Fprintln(out, says.Says)
	if status != http.StatusOK {
		return 1
	}
	return 0
}

// crashesEnv tells a proxy how many before it ended by themselves.
const crashesEnv = "FRONT_CRASHES"

// RunProxy is the child of a supervisor: it serves with the sockets that it inherited, prints
// its line when it is ready, and ends on a signal or with the supervisor.
func RunProxy(o Options) error {
	if o.Memory == 0 {
		o.Memory = memoryOf(cgroupFiles)
	}
	debug.SetMemoryLimit(o.Memory / 10 * 9)
	for i, key := range strings.Split(os.Getenv(socketsEnv), ",") {
		if key == "" {
			continue
		}
		if o.Sockets == nil {
			o.Sockets = map[string]*os.File{}
		}
		o.Sockets[key] = os.NewFile(uintptr(3+i), key)
	}
	if exe, err := os.Executable(); err == nil {
		o.Build = SumOf(exe)
	}
	f := New(o)
	if n, err := strconv.Atoi(os.Getenv(crashesEnv)); err == nil {
		f.crashes.Store(int32(n))
		time.AfterFunc(calmAfter, func() { f.crashes.Store(0) })
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // open as long as the supervisor lives
		stop()
	}()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	signal.Ignore(syscall.SIGHUP)
	go func() {
		for sig := range signals {
			switch sig {
			case syscall.SIGUSR1:
				if err := f.takeName(); err != nil {
					f.Log.Print(err)
				}
			case syscall.SIGUSR2:
				go f.leave(ctx, stop)
			default:
				go f.hurry(ctx, stop)
			}
		}
	}()
	return f.Run(ctx, func() { fmt.Println("ready", f.process) })
}

// leave ends the process when it carries nothing any more: another one accepts.
func (f *Front) leave(ctx context.Context, stop func()) {
	f.retire()
	for begun := time.Now(); f.busy() > 0 && time.Since(begun) < oldest; {
		if !pause(ctx.Done(), 200*time.Millisecond) {
			return
		}
	}
	f.sayLast(ctx)
	stop()
}

// hurry leaves what is in flight a moment, then ends.
func (f *Front) hurry(ctx context.Context, stop func()) {
	f.retire()
	for begun := time.Now(); f.inFlight() > 0 && time.Since(begun) < lastMoments; {
		if !pause(ctx.Done(), 10*time.Millisecond) {
			return
		}
	}
	stop()
}
