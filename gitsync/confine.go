//go:build linux

package gitsync

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	kernel "golang.org/x/sys/unix"
)

// confine takes away from this process what fetching does not need. The limits
// have to hold; the rest is as much as the kernel offers, and what it does not is
// told: a host with an old kernel is followed all the same.
//
// Each step is in docs/decisions/0004, with what it keeps out; the calls are in 0011.
func confine(b *beginning) (told, error) {
	if err := limit(b); err != nil {
		return told{}, err
	}
	t := told{Confined: []string{"limits"}}
	version, _ := landlockVersion() // 0 where there is none; the last step lets nobody ask
	for _, step := range []struct {
		name string
		do   func(*beginning) error
	}{
		{"no new privileges", noNewPrivileges},
		{filesAndPorts, restrictFiles},
		{"capabilities", dropCapabilities},
		// The last one: the steps above make calls that it does not let pass.
		{"system calls", filterCalls},
	} {
		if err := step.do(b); err != nil {
			t.Free = append(t.Free, fmt.Sprintf("%s (%v)", step.name, err))
			continue
		}
		t.Confined = append(t.Confined, step.name)
	}
	t.addPorts(b, version)
	return t, nil
}

// addPorts tells of the ports, which Landlock keeps since its fourth version.
func (t *told) addPorts(b *beginning, version int) {
	i := slices.Index(t.Confined, filesAndPorts)
	if b.Scheme == "file" || i < 0 || version >= landlockPorts {
		return // it has no socket; or all is told
	}
	t.Confined[i] = "files"
	t.Free = append(t.Free, fmt.Sprintf("ports (Landlock is of version %d here; Linux 6.7 has version %d)", version, landlockPorts))
}

// filesAndPorts is the name of what Landlock does.
const filesAndPorts = "files and ports"

func limit(b *beginning) error {
	for _, l := range []struct {
		name string
		what int
		most uint64
	}{
		{"RLIMIT_DATA", kernel.RLIMIT_DATA, uint64(b.Memory)},
		{"RLIMIT_FSIZE", kernel.RLIMIT_FSIZE, uint64(b.File)},
		{"RLIMIT_NOFILE", kernel.RLIMIT_NOFILE, uint64(b.Open)},
		{"RLIMIT_CORE", kernel.RLIMIT_CORE, 0},
	} {
		var had kernel.Rlimit
		if err := kernel.Getrlimit(l.what, &had); err != nil {
			return fmt.Errorf("cannot read %s: %w", l.name, err)
		}
		most := min(l.most, had.Max) // the host may be stricter
		// syscall's, not the other package's: Go would otherwise raise RLIMIT_NOFILE again.
		if err := syscall.Setrlimit(l.what, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("cannot set %s: %w", l.name, err)
		}
	}
	return nil
}

// noNewPrivileges is for all threads, which Landlock asks for; with cgo for this
// one, from where the filter of system calls takes it to the others.
func noNewPrivileges(*beginning) error {
	runtime.LockOSThread() // for filterCalls; the thread is not let go of
	if err := allThreads(kernel.SYS_PRCTL, kernel.PR_SET_NO_NEW_PRIVS, 1, 0); err == nil {
		return nil
	}
	return kernel.Prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// filterCalls lets the calls of allowedCalls pass and no other.
func filterCalls(b *beginning) error {
	if processor == 0 {
		return fmt.Errorf("not in a build for %s", runtime.GOARCH)
	}
	code, err := program(processor, allowedCalls(b), hostileCalls, unknownCalls)
	if err != nil {
		return err
	}
	prog := kernel.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// TSYNC is for all threads, or none. LOG has the kernel's log name a call that was
	// refused, where it keeps an audit; a kernel before 4.14 does not know it.
	const all = kernel.SECCOMP_FILTER_FLAG_TSYNC
	for _, flags := range []uintptr{all | kernel.SECCOMP_FILTER_FLAG_LOG, all} {
		_, _, errno := kernel.Syscall(kernel.SYS_SECCOMP, kernel.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
		runtime.KeepAlive(code)
		if errno == 0 {
			return nil
		}
		if err = errno; errno != kernel.EINVAL {
			break
		}
	}
	return err
}

// allThreads makes a call on every thread of this process.
func allThreads(call, a, b, c uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall6(call, a, b, c, 0, 0, 0)
	if errors.Is(errno, syscall.ENOTSUP) {
		return errors.New("not in a program that was built with cgo")
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// Rights on files, by the age of Landlock that knows them.
const (
	readRights  = kernel.LANDLOCK_ACCESS_FS_READ_FILE | kernel.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = kernel.LANDLOCK_ACCESS_FS_WRITE_FILE | kernel.LANDLOCK_ACCESS_FS_MAKE_REG | kernel.LANDLOCK_ACCESS_FS_REMOVE_FILE
	firstRights = 1<<13 - 1 // all of the first version
)

// restrictFiles leaves of all files those to be read and the one folder to write
// to, and of all ports those of the remote, by Landlock.
func restrictFiles(b *beginning) error {
	version, err := landlockVersion()
	if err != nil {
		return err
	}
	attr, write := ruleset(version, landlockErrata())
	fd, _, errno := kernel.Syscall(kernel.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), rulesetSize(version), 0)
	if errno != 0 {
		return errno
	}
	defer func() { _ = kernel.Close(int(fd)) }()
	if err := allowFile(fd, b.Stage, readRights|write); err != nil {
		return err
	}
	for _, path := range readable(b) {
		if err := allowFile(fd, path, readRights); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if attr.Handled_access_net != 0 {
		for _, port := range ports(b) {
			if err := allowPort(fd, port); err != nil {
				return err
			}
		}
	}
	return allThreads(kernel.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
}

// Versions of Landlock, by what came with them.
const (
	landlockRefer    = 2
	landlockTruncate = 3
	landlockPorts    = 4
	landlockDevices  = 5
	landlockScopes   = 6
)

// landlockVersion is the kernel's, from 1; an error says that it has none.
func landlockVersion() (int, error) {
	version, _, errno := kernel.Syscall(kernel.SYS_LANDLOCK_CREATE_RULESET, 0, 0, kernel.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(version), nil
}

// landlockErrata are the faults that the kernel's Landlock no longer has, as bits
// counted from 1; 0 where it does not say.
func landlockErrata() uint32 {
	errata, _, errno := kernel.Syscall(kernel.SYS_LANDLOCK_CREATE_RULESET, 0, 0, kernel.LANDLOCK_CREATE_RULESET_ERRATA)
	if errno != 0 {
		return 0
	}
	return uint32(errata)
}

// ruleset is all that a version of Landlock can keep a process from, and the rights
// to write that the stage is given.
func ruleset(version int, errata uint32) (kernel.LandlockRulesetAttr, uint64) {
	attr, write := kernel.LandlockRulesetAttr{Handled_access_fs: firstRights}, uint64(writeRights)
	if version >= landlockRefer {
		attr.Handled_access_fs |= kernel.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= landlockTruncate {
		attr.Handled_access_fs |= kernel.LANDLOCK_ACCESS_FS_TRUNCATE
		write |= kernel.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= landlockPorts {
		attr.Handled_access_net = kernel.LANDLOCK_ACCESS_NET_BIND_TCP | kernel.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= landlockDevices {
		attr.Handled_access_fs |= kernel.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= landlockScopes {
		attr.Scoped = kernel.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		// Until erratum 2 was mended, a thread could not signal another one of its own
		// process, which Go's runtime has to. The filter keeps signals in as well.
		const betweenThreads = 1 << (2 - 1)
		if errata&betweenThreads != 0 {
			attr.Scoped |= kernel.LANDLOCK_SCOPE_SIGNAL
		}
	}
	return attr, write
}

// rulesetSize is how much of the struct a version knows, in bytes.
func rulesetSize(version int) uintptr {
	switch {
	case version >= landlockScopes:
		return 24
	case version >= landlockPorts:
		return 16
	}
	return 8
}

func allowFile(ruleset uintptr, path string, rights uint64) error {
	fd, err := kernel.Open(path, kernel.O_PATH|kernel.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = kernel.Close(fd) }()
	var st kernel.Stat_t
	if err := kernel.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&kernel.S_IFMT != kernel.S_IFDIR {
		rights &= kernel.LANDLOCK_ACCESS_FS_READ_FILE | kernel.LANDLOCK_ACCESS_FS_WRITE_FILE
	}
	// The kernel's struct is packed: no field follows the descriptor.
	rule := kernel.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := kernel.Syscall6(kernel.SYS_LANDLOCK_ADD_RULE, ruleset, kernel.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("%s: %w", path, errno)
	}
	return nil
}

// ruleNetPort is LANDLOCK_RULE_NET_PORT of linux/landlock.h.
const ruleNetPort = 2

func allowPort(ruleset uintptr, port uint64) error {
	// struct landlock_net_port_attr
	rule := [2]uint64{kernel.LANDLOCK_ACCESS_NET_CONNECT_TCP, port}
	_, _, errno := kernel.Syscall6(kernel.SYS_LANDLOCK_ADD_RULE, ruleset, ruleNetPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("port %d: %w", port, errno)
	}
	return nil
}

// readable is what fetching reads beside the folder that it fills: for a network
// nothing, for a folder that folder, wherever its parts lie, and the mirrors, for
// what need not be copied.
func readable(b *beginning) []string {
	if b.Scheme == "file" {
		return append(foldersOf(b.Path), b.Mirrors)
	}
	return nil
}

// foldersOf are the folders that a repository on this host is made of. They are
// read before anything was taken away, and by their names only.
func foldersOf(path string) []string {
	list := []string{path}
	line := func(file, prefix string) (string, bool) {
		b, err := readBounded(file, 64<<10)
		s, ok := strings.CutPrefix(strings.TrimRight(string(b), "\r\n"), prefix)
		return s, err == nil && ok && s != ""
	}
	within := func(dir, s string) string {
		if filepath.IsAbs(s) {
			return s
		}
		return filepath.Join(dir, s)
	}
	git := filepath.Join(path, ".git")
	if s, ok := line(git, "gitdir: "); ok { // a linked work tree
		git = within(path, s)
		list = append(list, git)
	}
	if s, ok := line(filepath.Join(git, "commondir"), ""); ok {
		list = append(list, within(git, s))
	}
	for _, dir := range slices.Clone(list) {
		for _, sub := range []string{"objects", ".git/objects"} {
			borrowed, _ := borrowedFolders(filepath.Join(dir, sub))
			list = append(list, borrowed...)
		}
	}
	return list
}

// ports are those of the remote and of its proxies. Names are looked up by the
// daemon.
func ports(b *beginning) []uint64 {
	if b.Scheme == "file" {
		return nil
	}
	var list []uint64
	add := func(scheme, port string) {
		if n, err := strconv.ParseUint(cmp.Or(port, usualPorts[scheme]), 10, 16); err == nil {
			list = append(list, n)
		}
	}
	add(b.Scheme, b.Port)
	for _, v := range b.Proxies {
		if !strings.Contains(v, "://") {
			v = "http://" + v
		}
		if u, err := url.Parse(v); err == nil {
			add(u.Scheme, u.Port())
		}
	}
	return list
}

// dropCapabilities leaves root with the rights of an owner; for a folder of
// somebody else, with the right to read it.
func dropCapabilities(b *beginning) error {
	header := kernel.CapUserHeader{Version: kernel.LINUX_CAPABILITY_VERSION_3}
	var data [2]kernel.CapUserData
	if err := kernel.Capget(&header, &data[0]); err != nil {
		return err
	}
	keep := uint32(0)
	if b.Scheme == "file" {
		keep = 1 << kernel.CAP_DAC_READ_SEARCH
	}
	data = [2]kernel.CapUserData{{Effective: data[0].Effective & keep, Permitted: data[0].Permitted & keep}}
	if err := allThreads(kernel.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0); err != nil {
		return err
	}
	runtime.KeepAlive(&data)
	return nil
}
