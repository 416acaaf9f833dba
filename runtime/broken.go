package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/ring"
)

// noStartEver are the engine's sentences for a container that it will refuse to
// start for as long as it exists, as Docker 20.10 does after it was killed in the
// middle of a start: its own records and containerd's disagree from then on.
var noStartEver = []meaning{
	{words: []string{"task ", ": already exists"}},
	{words: []string{`container "`, ": already exists"}},
	{words: []string{"id already in use"}},
	{words: []string{"container with id exists"}},
	{words: []string{"container with given id already exists"}},
	{words: []string{"marked for removal and cannot be started"}},
}

// startFault is what a start that the engine refused means. A refusal for ever is
// no word on the version: another container in this one's place may start. But
// the start that was cut short may have got as far as the program, which the
// engine knows nothing of: what it writes is not given to another before a person
// has ended it, and neither where the host's processes are not to be seen.
func (d *Docker) startFault(ctx context.Context, e engine, a ring.Action, cannot string, c contained, err error) error {
	if !refusedForEver(err) {
		if taken := d.portTakenBy(ctx, e, a, c.ID, err); taken != nil {
			return taken
		}
		return faultOf(a, cannot, ring.CauseCreate, err)
	}
	says, hint := "", ""
	if why := d.unseen(ctx, e); why != "" {
		says = fmt.Sprintf("the engine will never start container %s (%s), and whether a process of it runs cannot be seen: %s", c.Name, err, why)
		hint = fmt.Sprintf("make the processes of the engine's host visible to gitring, or see to it on the engine's host that none of it runs and docker rm %s", c.Name)
	} else if pid := forgotten(procs, c.ID); pid != "" {
		says = fmt.Sprintf("the engine has forgotten process %s of container %s, which still runs", pid, c.Name)
		hint = fmt.Sprintf("kill %s, or reboot the host; gitring then makes the container anew", pid)
	}
	if says == "" {
		return &ring.EngineError{Broken: true, Err: fmt.Errorf("%s: %w", cannot, err)}
	}
	r := refused(a, ring.CauseCreate, ring.Conflict, says, hint)
	r.Permanent, r.Refusal.File, r.Refusal.Line = false, "", 0
	return r
}

const (
	procs    = "/proc"
	hostsPID = "pid:[4026531836]" // the first namespace of processes, by the number that Linux gives it
)

// unseenProcesses is why processes of containers are not to be seen from here; ""
// where they are. In a container of our own there are our processes only, and a
// unit of systemd may hide those of other users.
func unseenProcesses(proc, self string) string {
	if space, err := os.Readlink(filepath.Join(proc, "self/ns/pid")); self != "" && (err != nil || space != hostsPID) {
		return "gitring's own container has no pid: host"
	}
	if _, err := os.ReadFile(filepath.Join(proc, "1/cgroup")); err != nil {
		return "the processes of others are hidden, as by ProtectProc= of gitring's unit or hidepid= of /proc"
	}
	return ""
}

func refusedForEver(err error) bool {
	var known *ring.EngineError
	if errors.As(err, &known) || away(err) {
		return false
	}
	text := strings.ToLower(err.Error())
	for _, m := range noStartEver {
		if m.fits(text) {
			return true
		}
	}
	return false
}

// forgotten is a process that runs in the control group of a container, "" for
// none that can be seen from here. One that waits to become the program is none:
// nobody will tell it to.
func forgotten(proc, id string) string {
	files, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "cgroup"))
	for _, file := range files {
		groups, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(groups), id) {
			continue
		}
		argv, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || len(argv) == 0 || string(argv) == "runc\x00init\x00" {
			continue
		}
		return filepath.Base(filepath.Dir(file))
	}
	return ""
}
