package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gitring": func() { os.Exit(mainAt(os.Getenv("TEST_NOW"))) }})
}

// mainAt is Main at a time of the test's choosing.
func mainAt(said string) int {
	if said == "" {
		return Main()
	}
	t, err := time.Parse(time.RFC3339, said)
	if err != nil {
		panic(err)
	}
	now := func() time.Time { return t }
	if width, err := strconv.Atoi(os.Getenv("TEST_COLUMNS")); err == nil && onColumns != nil {
		return onColumns(width, now)
	}
	return run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, now)
}

// onColumns is mainAt with terminals of a width as its outputs; nil where no test has one.
var onColumns func(width int, now func() time.Time) (code int)

// TestScripts holds the command line to its words, against a daemon that says
// what the script tells it to.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TEST_NOW", "2026-11-21T12:00:00Z")
			e.Setenv("GOGC", "400") // collecting is a quarter of a process this short
			e.Setenv("GITRING_SOCKET", filepath.Join(e.WorkDir, "s"))
			e.Setenv("GITRING_CONFIG", filepath.Join(e.WorkDir, "none.yaml"))
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"daemon": fakeDaemon,
			"gnupg":  gnupg,
		},
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// exits runs a command and holds it to an exit code: exits 4 gitring status x.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// fakeDaemon serves the files of a folder on the script's socket: a request for
// GET /v1/status is answered with GET_v1_status, one that waits with the file of
// that name and _wait; without a file it is a 500. A file that begins with !404
// is the body of that code. What was asked is in the file "asked". It is stopped
// with the script, or by "daemon stop".
func fakeDaemon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: daemon folder|stop")
	}
	socket := ts.Getenv("GITRING_SOCKET")
	if args[0] == "stop" {
		ts.Check(os.Remove(socket))
		return
	}
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	ts.Check(err)
	d := &canned{dir: ts.MkAbs(args[0]), log: ts.MkAbs("asked")}
	server := &http.Server{Handler: d, ReadHeaderTimeout: time.Minute}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	ts.Defer(func() {
		_ = server.Close()
		served.Wait()
	})
}

type canned struct {
	dir, log string
	mu       sync.Mutex // guards the file log
}

func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.note(r, body)
	name, waits := r.Method+strings.ReplaceAll(r.URL.Path, "/", "_"), r.URL.Query().Has("wait")
	if waits {
		name += "_wait"
	}
	answer, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if rest, ok := strings.CutPrefix(string(answer), "!"); ok {
		code, text, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(code)
		if err != nil {
			n = http.StatusInternalServerError
		}
		w.WriteHeader(n)
		answer = []byte(text)
	}
	_, _ = w.Write(answer)
	if waits && !strings.Contains(string(answer), "settled") && !strings.Contains(string(answer), "error") {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // as a daemon that is at work
	}
}

func (c *canned) note(r *http.Request, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if r.URL.Path == "/v1/plan" && len(body) > 0 {
		body = []byte("(zip)")
	}
	fmt.Fprintln(f, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
}
