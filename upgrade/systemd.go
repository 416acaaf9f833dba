package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Systemd is a Manager by systemctl.
type Systemd struct{ Name string }

// properties are those of a unit that systemctl show prints.
const properties = "LoadState,ActiveState,SubState,MainPID,Job,User,SupplementaryGroups,ExecStart"

// Unit asks systemd. What the daemon was started with is the kernel's word.
func (s Systemd) Unit(ctx context.Context) (Unit, error) {
	out, err := systemctl(ctx, "show", "--property="+properties, s.Name)
	if err != nil {
		return Unit{}, err
	}
	p := map[string]string{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		p[key] = value
	}
	if p["LoadState"] != "loaded" {
		return Unit{}, fmt.Errorf("there is no unit %s", s.Name)
	}
	u := Unit{Name: s.Name, User: p["User"], Groups: strings.Fields(p["SupplementaryGroups"]), State: p["ActiveState"] + " (" + p["SubState"] + ")"}
	// A start that is queued leaves the unit inactive until its turn comes.
	queued := p["Job"] != "" && p["Job"] != "0"
	u.Failed = p["ActiveState"] == "failed" || p["ActiveState"] == "inactive" && !queued || p["SubState"] == "auto-restart"
	if u.PID, err = strconv.Atoi(p["MainPID"]); err != nil {
		return Unit{}, fmt.Errorf("systemctl show %s: no MainPID", s.Name)
	}
	if u.Program = programOf(p["ExecStart"]); u.Program == "" {
		return Unit{}, fmt.Errorf("systemctl show %s: no ExecStart", s.Name)
	}
	if u.PID > 0 {
		u.Args, u.Env = startedWith(u.PID)
	}
	return u, nil
}

// programOf is the path of "{ path=/usr/bin/gitring ; argv[]=… }".
func programOf(execStart string) string {
	_, rest, ok := strings.Cut(execStart, "path=")
	if !ok {
		return ""
	}
	program, _, _ := strings.Cut(rest, " ;")
	return strings.TrimSpace(program)
}

// startedWith are the arguments of a daemon after "serve", and its environment; none where it
// has ended meanwhile.
func startedWith(pid int) (args, env []string) {
	words := wordsOf(fmt.Sprintf("/proc/%d/cmdline", pid))
	for i, w := range words {
		if w == "serve" {
			args = words[i+1:]
		}
	}
	return args, wordsOf(fmt.Sprintf("/proc/%d/environ", pid))
}

func wordsOf(file string) []string {
	body, _ := os.ReadFile(file) // gone with its process
	body = bytes.TrimSuffix(body, []byte{0})
	if len(body) == 0 {
		return nil
	}
	return strings.Split(string(body), "\x00")
}

// Start does not wait until the daemon is ready: one that never is would not come back.
func (s Systemd) Start(ctx context.Context) error {
	_, err := systemctl(ctx, "start", "--no-block", s.Name)
	return err
}

// Stop waits until it has ended. A unit that failed too often may be started again after it.
func (s Systemd) Stop(ctx context.Context) error {
	if _, err := systemctl(ctx, "stop", s.Name); err != nil {
		return err
	}
	_, _ = systemctl(ctx, "reset-failed", s.Name) // it says no where nothing failed
	return nil
}

func systemctl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "systemctl", args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &said, apart()
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return "", errors.New("there is no systemctl")
		}
		return "", fmt.Errorf("systemctl %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}
