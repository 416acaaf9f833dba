package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gitring/gitring/ring"
)

// The tests play a host with processes of this very binary: a supervisor that does what
// systemd does, daemons of releases, and upgrades that are killed.
func TestMain(m *testing.M) {
	switch os.Getenv("UPGRADE_ROLE") {
	case "supervisor":
		supervise(os.Getenv("UPGRADE_DIR"))
	case "daemon":
		os.Exit(play(os.Args[1:]))
	case "upgrade":
		os.Exit(upgradeAndDie())
	default:
		os.Exit(m.Run())
	}
}

// supervise runs the program of a folder again and again until SIGTERM.
func supervise(dir string) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	for {
		cmd := exec.Command(filepath.Join(dir, "gitring"), "serve")
		cmd.Env = append(os.Environ(), "UPGRADE_ROLE=")
		ended := make(chan struct{})
		if err := cmd.Start(); err == nil {
			note(dir, "pid", strconv.Itoa(cmd.Process.Pid))
			go func() { _ = cmd.Wait(); close(ended) }()
		} else {
			close(ended)
		}
		select {
		case <-stop:
			if cmd.Process != nil {
				_ = cmd.Process.Kill()
				<-ended
			}
			note(dir, "pid", "0")
			return
		case <-ended:
			note(dir, "pid", "0")
			time.Sleep(100 * time.Millisecond) // RestartSec
		}
	}
}

func note(dir, name, body string) {
	tmp := filepath.Join(dir, name+"~")
	if os.WriteFile(tmp, []byte(body), 0o644) == nil {
		_ = os.Rename(tmp, filepath.Join(dir, name))
	}
}

func noted(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return string(b)
}

// play is a daemon of a release: what it is named, and what is wrong with it, come by its
// program, a script.
func play(args []string) int {
	dir, version, wrong := os.Getenv("UPGRADE_DIR"), os.Getenv("UPGRADE_VERSION"), os.Getenv("UPGRADE_WRONG")
	if args[0] == "rehearse" {
		return rehearsePlayed(version, wrong)
	}
	state := filepath.Join(dir, "state")
	db := filepath.Join(state, "db")
	body, _ := os.ReadFile(db)
	switch {
	case wrong == "crash":
		return 1
	case wrong == "migrate":
		_ = os.WriteFile(db, []byte("half"), 0o600)
		return 1
	case wrong == "hang":
		time.Sleep(time.Hour)
	case version == "0.1.0" && string(body) != "one":
		return 1 // a newer gitring has written it
	case version != "0.1.0":
		note(state, "db", "two") // whole, as SQLite has it
	}
	release := version
	on := func() bool {
		t, on := ReadTrial(state)
		return on && t.For(release)
	}
	if wrong == "version" {
		version = "0.9.9" // is what it says
	}
	socket := filepath.Join(dir, "s")
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		return 1
	}
	var asked atomic.Int64
	go func() {
		for {
			if !on() {
				note(dir, "acts", version+" "+wrong)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		n := asked.Add(1)
		if wrong == "exits" && n > 3 {
			return 1
		}
		if wrong == "deaf" && n > 3 {
			continue // whoever asks waits
		}
		st := ring.Status{Gitring: version}
		if on() {
			st.Trial = &ring.Trial{From: "0.1.0", Looks: int(n)}
		}
		switch {
		case wrong == "blind" && st.Trial != nil:
			st.Trial.Looks = 0
		case wrong == "engine":
			st.Engine = "no engine"
		case wrong == "store":
			st.Store = "disk full"
		case wrong == "untold":
			st.Trial = nil
		case wrong == "lies" && st.Trial != nil:
			st.Trial.Would = []ring.TrialStep{{Does: "stop", On: "web/web", Slot: 1, Ends: true, Reason: "image"}}
		case wrong == "also" && st.Trial != nil:
			st.Trial.Would = []ring.TrialStep{{Does: "start", On: "web/web", Slot: 1}, {Does: "stop", On: "db/db", Ends: true}}
		}
		_ = json.NewEncoder(c).Encode(st)
		_ = c.Close()
	}
}

// rehearsePlayed is what it says that it would do. Every release stops db: a person asked for
// it.
func rehearsePlayed(version, wrong string) int {
	r := Rehearsal{Gitring: version, Host: "edge-1", Steps: []ring.TrialStep{{Does: "stop", On: "db/db", Ends: true, Reason: "held"}}}
	switch wrong {
	case "rehearsal fails":
		fmt.Fprintln(os.Stderr, "cannot read the configuration: unknown key")
		return 1
	case "rehearsal hangs":
		time.Sleep(time.Hour)
	case "rehearsal babbles":
		fmt.Println("all is well")
		return 0
	case "rolls":
		r.Steps = append(r.Steps, ring.TrialStep{Does: "roll", On: "web/web", Ends: true, Reason: "environment"})
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
	return 0
}

// supervised is a Manager of the supervisor.
type supervised struct{ dir string }

func (s supervised) Unit(context.Context) (Unit, error) {
	pid, _ := strconv.Atoi(noted(s.dir, "pid"))
	u := Unit{Name: "gitring.service", Program: filepath.Join(s.dir, "gitring"), PID: pid, State: "activating (auto-restart)", Env: os.Environ()}
	u.Failed = pid == 0 && s.runs() && noted(s.dir, "begun") == ""
	if pid > 0 {
		note(s.dir, "begun", "")
	}
	return u, nil
}

func (s supervised) runs() bool {
	pid, _ := strconv.Atoi(noted(s.dir, "supervisor"))
	return pid > 0 && syscall.Kill(pid, 0) == nil
}

func (s supervised) Start(context.Context) error {
	if s.runs() {
		return nil
	}
	note(s.dir, "begun", "not yet")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "UPGRADE_ROLE=supervisor", "UPGRADE_DIR="+s.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	note(s.dir, "supervisor", strconv.Itoa(cmd.Process.Pid))
	go func() { _ = cmd.Wait() }()
	return nil
}

func (s supervised) Stop(context.Context) error {
	pid, _ := strconv.Atoi(noted(s.dir, "supervisor"))
	if pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	for s.runs() {
		time.Sleep(5 * time.Millisecond)
	}
	note(s.dir, "supervisor", "0")
	return nil
}

// script is the program of a release.
func script(dir, version, wrong string) []byte {
	return fmt.Appendf(nil, "#!/bin/sh\nexport UPGRADE_ROLE=daemon UPGRADE_DIR=%s UPGRADE_VERSION=%s UPGRADE_WRONG='%s'\nexec %s \"$@\"\n", dir, version, wrong, os.Args[0])
}

// upgraderOf is wired for a host of the tests.
func upgraderOf(dir string, startWithin, probation time.Duration, said func(string)) *Upgrader {
	state := filepath.Join(dir, "state")
	return &Upgrader{
		Manager: supervised{dir}, State: state,
		Ask: func(ctx context.Context) (st ring.Status, err error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, "unix", filepath.Join(dir, "s"))
			if err != nil {
				return st, err
			}
			defer c.Close()
			if at, ok := ctx.Deadline(); ok {
				_ = c.SetDeadline(at)
			}
			return st, json.NewDecoder(c).Decode(&st)
		},
		Rehearse: func(ctx context.Context, program string, u Unit) (Rehearsal, error) {
			within := time.Minute
			if strings.Contains(noted(dir, "gitring.next"), "rehearsal hangs") && strings.HasSuffix(program, nextSuffix) {
				within = time.Second
			}
			return Rehearse(ctx, program, u, within)
		},
		KeepPrev: func(context.Context) error {
			body, err := os.ReadFile(filepath.Join(state, "db"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(state, "db.prev"), body, 0o600)
		},
		PutBackPrev: func() error {
			body, err := os.ReadFile(filepath.Join(state, "db.prev"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(state, "db"), body, 0o600)
		},
		Probation: probation, StartWithin: startWithin, Every: 20 * time.Millisecond, AskWithin: 2 * time.Second,
		Say: func(format string, args ...any) { said(fmt.Sprintf(format, args...)) },
	}
}

// upgradeAndDie is an upgrade that is killed right before a step.
func upgradeAndDie() int {
	dir := os.Getenv("UPGRADE_DIR")
	_ = os.Setenv("UPGRADE_ROLE", "")
	u := upgraderOf(dir, time.Minute, 200*time.Millisecond, func(says string) { fmt.Println(says) })
	stopped := false
	u.before = func(step string) {
		if stopped = stopped || step == "stop"; stopped && os.Getenv("UPGRADE_SIGNALS") != "" {
			for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGINT, syscall.SIGTERM} {
				_ = syscall.Kill(os.Getpid(), s)
			}
		}
		if step == os.Getenv("UPGRADE_KILL") {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	ctx := context.Background()
	unit, err := u.Manager.Unit(ctx)
	if err != nil {
		return 2
	}
	p, err := u.Check(ctx, unit, []byte(os.Getenv("UPGRADE_PROGRAM")))
	if err != nil {
		return 2
	}
	if err := u.Run(ctx, unit, p); err != nil {
		return 1
	}
	return 0
}
