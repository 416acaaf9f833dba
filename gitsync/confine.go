package gitsync

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
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
// Each step is in docs/decisions/0004, with what it keeps out.
func confine(b *beginning) (told, error) {
	if err := limit(b); err != nil {
		return told{}, err
	}
	t := told{Confined: []string{"limits"}}
	for _, step := range []struct {
		name string
		do   func(*beginning) error
	}{
		{"no new privileges", noNewPrivileges},
		{"system calls", filterCalls},
		{"files and ports", restrictFiles},
		{"capabilities", dropCapabilities},
	} {
		if err := step.do(b); err != nil {
			t.Free = append(t.Free, fmt.Sprintf("%s (%v)", step.name, err))
			continue
		}
		t.Confined = append(t.Confined, step.name)
	}
	return t, nil
}

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

// noNewPrivileges is of this thread; the filter of system calls takes it to all
// others.
func noNewPrivileges(*beginning) error {
	runtime.LockOSThread() // for filterCalls; the thread is not let go of
	return kernel.Prctl(kernel.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// denied are calls that fetching never makes and that lead out: to other
// processes, other programs, the kernel's own parts, and around the filter.
var denied = []uint32{
	kernel.SYS_EXECVE, kernel.SYS_EXECVEAT, kernel.SYS_PTRACE, kernel.SYS_PROCESS_VM_READV, kernel.SYS_PROCESS_VM_WRITEV,
	kernel.SYS_PIDFD_OPEN, kernel.SYS_PIDFD_GETFD, kernel.SYS_KCMP, kernel.SYS_MOUNT, kernel.SYS_UMOUNT2, kernel.SYS_PIVOT_ROOT, kernel.SYS_CHROOT,
	kernel.SYS_FSOPEN, kernel.SYS_FSMOUNT, kernel.SYS_MOVE_MOUNT, kernel.SYS_OPEN_TREE, kernel.SYS_SETNS, kernel.SYS_UNSHARE,
	kernel.SYS_OPEN_BY_HANDLE_AT, kernel.SYS_BPF, kernel.SYS_PERF_EVENT_OPEN, kernel.SYS_USERFAULTFD, kernel.SYS_IO_URING_SETUP,
	kernel.SYS_KEYCTL, kernel.SYS_ADD_KEY, kernel.SYS_REQUEST_KEY, kernel.SYS_INIT_MODULE, kernel.SYS_FINIT_MODULE, kernel.SYS_DELETE_MODULE,
	kernel.SYS_KEXEC_LOAD, kernel.SYS_REBOOT, kernel.SYS_SWAPON, kernel.SYS_SWAPOFF, kernel.SYS_SETTIMEOFDAY, kernel.SYS_CLOCK_SETTIME,
	kernel.SYS_LINKAT, kernel.SYS_SYMLINKAT, kernel.SYS_MKNODAT, kernel.SYS_QUOTACTL, kernel.SYS_ACCT,
}

// filterCalls refuses the calls above, every socket but those of the Internet
// (the engine's is a Unix socket), and for a remote on this host those too.
func filterCalls(b *beginning) error {
	if processor.arch == 0 {
		return errors.New("not on this kind of processor")
	}
	families := []uint32{kernel.AF_INET, kernel.AF_INET6}
	if b.Scheme == "file" {
		families = nil
	}
	code := filter(append(denied, processor.denied...), families)
	prog := kernel.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// TSYNC is for all threads, or none.
	_, _, errno := kernel.Syscall(kernel.SYS_SECCOMP, kernel.SECCOMP_SET_MODE_FILTER, kernel.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(code)
	if errno != 0 {
		return errno
	}
	return nil
}

// Offsets in what the kernel hands to the filter (struct seccomp_data), on a
// little-endian processor.
const (
	offNumber = 0
	offArch   = 4
	offFirst  = 16 // the first argument, its lower half
)

// filter is a program of the kernel's packet filter: one jump forward per rule.
func filter(denied, families []uint32) []kernel.SockFilter {
	const (
		load   = kernel.BPF_LD | kernel.BPF_W | kernel.BPF_ABS
		equal  = kernel.BPF_JMP | kernel.BPF_JEQ | kernel.BPF_K
		atMost = kernel.BPF_JMP | kernel.BPF_JGE | kernel.BPF_K
		bits   = kernel.BPF_JMP | kernel.BPF_JSET | kernel.BPF_K
		ret    = kernel.BPF_RET | kernel.BPF_K
	)
	deny := kernel.SockFilter{Code: ret, K: kernel.SECCOMP_RET_ERRNO | uint32(kernel.EPERM)}
	allow := kernel.SockFilter{Code: ret, K: kernel.SECCOMP_RET_ALLOW}
	p := []kernel.SockFilter{
		{Code: load, K: offArch},
		{Code: equal, Jt: 1, K: processor.arch},
		{Code: ret, K: kernel.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: offNumber},
		{Code: atMost, Jf: 1, K: 0x40000000}, // x32: the same calls by other numbers
		deny,
		// glibc takes this answer for an old kernel and uses clone.
		{Code: equal, Jf: 1, K: kernel.SYS_CLONE3},
		{Code: ret, K: kernel.SECCOMP_RET_ERRNO | uint32(kernel.ENOSYS)},
		// Threads are made, processes are not.
		{Code: equal, Jf: 4, K: kernel.SYS_CLONE},
		{Code: load, K: offFirst},
		{Code: bits, Jt: 1, K: kernel.CLONE_THREAD},
		deny,
		allow,
	}
	for _, nr := range denied {
		p = append(p, kernel.SockFilter{Code: equal, Jf: 1, K: nr}, deny)
	}
	p = append(p, kernel.SockFilter{Code: equal, Jt: 1, K: kernel.SYS_SOCKET}, allow, kernel.SockFilter{Code: load, K: offFirst})
	for _, f := range families {
		p = append(p, kernel.SockFilter{Code: equal, Jf: 1, K: f}, allow)
	}
	return append(p, deny)
}

// allThreads makes a call on every thread of this process.
func allThreads(call, a, b, c uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall(call, a, b, c)
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
	version, _, errno := kernel.Syscall(kernel.SYS_LANDLOCK_CREATE_RULESET, 0, 0, kernel.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return errno
	}
	attr := kernel.LandlockRulesetAttr{Handled_access_fs: firstRights}
	size, write := uintptr(8), uint64(writeRights)
	if version >= 2 {
		attr.Handled_access_fs |= kernel.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= kernel.LANDLOCK_ACCESS_FS_TRUNCATE
		write |= kernel.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		attr.Handled_access_net = kernel.LANDLOCK_ACCESS_NET_BIND_TCP | kernel.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size = 16
	}
	if version >= 5 {
		attr.Handled_access_fs |= kernel.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	fd, _, errno := kernel.Syscall(kernel.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
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
// what names of hosts are looked up by, for a folder that folder, wherever its
// parts lie, and the mirrors, for what need not be copied.
func readable(b *beginning) []string {
	if b.Scheme == "file" {
		return append(foldersOf(b.Path), b.Mirrors)
	}
	return []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services", "/etc/protocols"}
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
	const most = 100
	for i := 0; i < len(list) && len(list) < most; i++ {
		for _, sub := range []string{"objects", ".git/objects"} {
			objects := filepath.Join(list[i], sub)
			lines, ok := line(filepath.Join(objects, "info", "alternates"), "")
			if !ok {
				continue
			}
			for other := range strings.Lines(lines) {
				list = append(list, filepath.Dir(within(objects, strings.TrimRight(other, "\r\n"))))
			}
		}
	}
	return list
}

// ports are those of the remote, of its proxies, and of names over TCP.
func ports(b *beginning) []uint64 {
	usual := map[string]uint64{"https": 443, "http": 80, "ssh": 22, "socks5": 1080, "socks5h": 1080}
	if b.Scheme == "file" {
		return nil
	}
	list := []uint64{53}
	add := func(scheme, port string) {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			n = usual[scheme]
		}
		list = append(list, n)
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
