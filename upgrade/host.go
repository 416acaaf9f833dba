package upgrade

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gitring/gitring/exit"
)

// Unit is the daemon as its service manager has it.
type Unit struct {
	Name    string // such as gitring.service
	Program string // absolute, without links
	// Args are those of the daemon that runs, after "serve".
	Args []string
	// Env is that of the daemon that runs.
	Env    []string
	User   string // "" is root
	Groups []string
	PID    int // 0 where nothing runs
	// Failed reports whether it ended by itself, and is started again or given up.
	Failed bool
	State  string // for people
}

// A Manager has the daemon as a service. Start returns before the daemon is ready; Stop returns
// when it has ended. Both may be repeated.
type Manager interface {
	Unit(ctx context.Context) (Unit, error)
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// notHere is the error of a host on which upgrade changes nothing, with what to run instead.
func notHere(run, format string, args ...any) error {
	return &exit.Failure{Code: exit.Conflict, Says: "cannot upgrade here: " + fmt.Sprintf(format, args...), Hint: run}
}

// Place finds the daemon of a host, and refuses one whose program is not for upgrade to
// replace. inContainer reports whether this process is in one.
func Place(ctx context.Context, m Manager, inContainer func() bool) (Unit, error) {
	u, err := m.Unit(ctx)
	if err != nil {
		if inContainer() {
			return u, notHere("docker compose up -d, with the new image, in the folder of gitring's own Compose file", "gitring runs in a container")
		}
		return u, notHere("stop the daemon, put the new program in its place and start it: docs/how-to/upgrade.md", "no systemd runs gitring: %v", err)
	}
	program, err := filepath.EvalSymlinks(u.Program)
	if err != nil {
		return u, fmt.Errorf("cannot find the program of %s: %w", u.Name, err)
	}
	for _, name := range []string{u.Program, program} {
		if exec.CommandContext(ctx, "dpkg", "-S", name).Run() == nil {
			return u, notHere("apt install ./gitring_….deb && systemctl restart gitring; the new program's gitring rehearse says before what it would do", "%s belongs to a package (deb)", name)
		}
		if exec.CommandContext(ctx, "rpm", "-qf", name).Run() == nil {
			return u, notHere("dnf install ./gitring_….rpm && systemctl restart gitring; the new program's gitring rehearse says before what it would do", "%s belongs to a package (rpm)", name)
		}
	}
	u.Program = program
	return u, nil
}

// InContainer reports whether this process is in a container of Docker's or Podman's.
func InContainer() bool {
	for _, name := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(name); err == nil {
			return true
		}
	}
	return false
}
