//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func init() { onColumns = runOnColumns }

// runOnColumns runs the program with terminals of a width as its outputs, hands on what they
// were sent, and adds to the file TEST_BROKEN the lines that such a terminal breaks.
func runOnColumns(width int, now func() time.Time) int {
	var reading sync.WaitGroup
	var slaves [2]*os.File
	var broken [2][]string
	for i, to := range []io.Writer{os.Stdout, os.Stderr} {
		master, slave, err := openTerminal(width, 50)
		if err != nil {
			panic(err)
		}
		slaves[i] = slave
		reading.Go(func() {
			sent, _ := io.ReadAll(master) // a terminal that was closed ends with an error
			v := newTerminal(width, 50)
			v.write(sent)
			broken[i] = v.broken
			_, _ = io.WriteString(to, strings.ReplaceAll(string(sent), "\r", ""))
		})
	}
	code := run(context.Background(), os.Args[1:], os.Stdin, slaves[0], slaves[1], now)
	_, _ = slaves[0].Close(), slaves[1].Close()
	reading.Wait()
	if lines := slices.Concat(broken[0], broken[1]); len(lines) > 0 {
		f, err := os.OpenFile(os.Getenv("TEST_BROKEN"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(f, "gitring %s\t%s\n", strings.Join(os.Args[1:], " "), strings.Join(lines, "\t"))
		if err := f.Close(); err != nil {
			panic(err)
		}
	}
	return code
}

// judgesOutput is a line of a script that looks at what was printed: it has other lines on a
// terminal.
var judgesOutput = regexp.MustCompile(`^(! )?(stdout|stderr|cmp|cmpenv|grep|exec grep) `)

// forPrograms are the calls whose output another program reads, a log or a file takes, or a
// person pastes: it is whole, however wide.
var forPrograms = regexp.MustCompile(`^gitring( .*)? (-o|--output)[ =]?(json|yaml)( |$)|^gitring (__complete|completion|metrics|logs|serve|policy suggest|token new|secret encrypt|init --hook)`)

// ofOthers are lines that are whole: commands to be pasted, and what git itself writes.
var ofOthers = regexp.MustCompile(`^  +((git|mv|rm|cp|mkdir|install|sudo|gitring|ssh-keygen|ssh-keyscan) |--write )|^ ! \[rejected\]|^error: (failed to push|Couldn't load)`)

// Every screen that the scripts ask for, by itself: a terminal breaks none of its lines.
func TestNoScreenIsWiderThanTheTerminal(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	for _, width := range []int{80, 120} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			broken := filepath.Join(t.TempDir(), "broken")
			t.Cleanup(func() { // the scripts run side by side, and end before this
				lines, err := os.ReadFile(broken)
				if errors.Is(err, os.ErrNotExist) {
					return
				}
				require.NoError(t, err)
				for line := range strings.Lines(string(lines)) {
					call, rows, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
					ours := slices.DeleteFunc(strings.Split(rows, "\t"), ofOthers.MatchString)
					if len(ours) > 0 && !forPrograms.MatchString(call) {
						t.Errorf("%s breaks\n%s", call, strings.Join(ours, "\n"))
					}
				}
			})
			dir := t.TempDir()
			for _, file := range files {
				script := withoutJudging(t, file)
				if strings.Contains(script, "ttyin") {
					continue // it types into a terminal of its own, which shows the ends of its lines
				}
				if width > 80 && strings.Contains(script, "exec git") {
					continue // clones take long, and what is wider breaks less
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(script), 0o600))
			}
			testscript.Run(t, testscript.Params{
				Dir: dir,
				Setup: func(e *testscript.Env) error {
					e.Setenv("TEST_NOW", "2026-11-21T12:00:00Z")
					e.Setenv("GOGC", "400") // collecting is a quarter of a process this short
					e.Setenv("TEST_COLUMNS", strconv.Itoa(width))
					e.Setenv("TEST_BROKEN", broken)
					e.Setenv("GITRING_SOCKET", filepath.Join(e.WorkDir, "s"))
					e.Setenv("GITRING_CONFIG", filepath.Join(e.WorkDir, "none.yaml"))
					e.Setenv("HOME", e.WorkDir)
					e.Setenv("NO_COLOR", "1")
					return nil
				},
				Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "daemon": fakeDaemon, "gnupg": gnupg},
				RequireExplicitExec: true,
			})
		})
	}
}

// withoutJudging is a script that runs the same commands and compares nothing that they print.
func withoutJudging(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	script, files, _ := strings.Cut(string(b), "\n-- ")
	var kept []string
	for line := range strings.SplitSeq(script, "\n") {
		if !judgesOutput.MatchString(line) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n") + "\n-- " + files
}

// Each verb is called by a script, so that the test before sees its screen, but for these.
func TestEachVerbHasAScript(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	called := ""
	for _, file := range files {
		called += withoutJudging(t, file)
	}
	var without []string
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			each(sub)
		}
		if c.HasParent() && !c.Hidden && !c.HasSubCommands() && !regexp.MustCompile(`(?m)^exits \d+ gitring `+nameOf(c)+`( |$)`).MatchString(called) {
			without = append(without, nameOf(c))
		}
	}
	each(program())
	slices.Sort(without)
	require.Equal(t, []string{"ui"}, without, "it runs until it is ended: the test below ends it")
}

// What ui says before it serves, to one who came by ssh too.
func TestTheScreenOfTheDashboardFitsTheTerminal(t *testing.T) {
	for _, width := range []int{80, 120} {
		t.Run(strconv.Itoa(width), func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			daemonAt(t, socket)
			t.Setenv("SSH_CONNECTION", "192.0.2.7 51000 192.0.2.1 22")
			ctx, end := context.WithTimeout(context.Background(), time.Minute)
			defer end()
			master, slave := openPTY(t, width, 50)
			v := newTerminal(width, 50)
			var reading sync.WaitGroup
			reading.Go(func() {
				for buf := make([]byte, 1<<10); ; {
					n, err := master.Read(buf)
					v.write(buf[:n])
					if strings.Contains(v.String(), "ssh -N") {
						end()
					}
					if err != nil {
						return
					}
				}
			})
			code := run(ctx, []string{"ui", "--socket", socket}, slave, slave, slave, time.Now)
			require.NoError(t, slave.Close())
			reading.Wait()
			require.Zero(t, code)
			require.Contains(t, v.String(), "ssh -N")
			require.Empty(t, v.broken)
		})
	}
}
