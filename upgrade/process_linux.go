package upgrade

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Lock makes this the only upgrade of a program. Release may be called once; the end of the
// process releases too.
func Lock(program string) (release func(), err error) {
	f, err := os.OpenFile(program+lockSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot upgrade: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot upgrade %s: another upgrade of it is under way", program), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// asUser are the attributes of a process of the daemon's user, with its groups.
func asUser(u Unit) (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 || u.User == "" || u.User == "root" {
		return nil, nil
	}
	account, err := user.Lookup(u.User)
	if err != nil {
		return nil, fmt.Errorf("cannot find the daemon's user: %w", err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	ids, err := account.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("cannot find the groups of the daemon's user: %w", err)
	}
	for _, name := range u.Groups {
		g, err := user.LookupGroup(name)
		if err != nil {
			return nil, fmt.Errorf("cannot find a group of the daemon: %w", err)
		}
		ids = append(ids, g.Gid)
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, err
		}
		c.Groups = append(c.Groups, uint32(n))
	}
	return &syscall.SysProcAttr{Credential: c}, nil
}

// apart are the attributes of a process that a Ctrl-C on the terminal does not reach.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
