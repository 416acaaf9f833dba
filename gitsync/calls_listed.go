//go:build linux && (amd64 || arm64)

package gitsync

import kernel "golang.org/x/sys/unix"

// runtimeCalls are those of Go's runtime. What is often called comes first.
//
// A signal goes to this process alone: the runtime interrupts its own threads by
// one. Memory is never made executable: the program is whole when it starts.
func runtimeCalls(pid uint32) []callRule {
	list := always(
		kernel.SYS_FUTEX, kernel.SYS_READ, kernel.SYS_WRITE, kernel.SYS_NANOSLEEP, kernel.SYS_EPOLL_PWAIT, kernel.SYS_MADVISE,
		kernel.SYS_SCHED_YIELD, kernel.SYS_RT_SIGRETURN, kernel.SYS_GETPID, kernel.SYS_GETTID, kernel.SYS_CLOSE,
		kernel.SYS_RT_SIGPROCMASK, kernel.SYS_RT_SIGACTION, kernel.SYS_SIGALTSTACK, kernel.SYS_MUNMAP,
		kernel.SYS_EPOLL_CTL, kernel.SYS_EPOLL_CREATE1, kernel.SYS_EPOLL_PWAIT2, kernel.SYS_EVENTFD2, kernel.SYS_PIPE2,
		kernel.SYS_CLOCK_GETTIME, kernel.SYS_CLOCK_NANOSLEEP, kernel.SYS_GETTIMEOFDAY, kernel.SYS_GETRANDOM, kernel.SYS_RESTART_SYSCALL,
		kernel.SYS_EXIT, kernel.SYS_EXIT_GROUP, kernel.SYS_UNAME, kernel.SYS_GETUID, kernel.SYS_GETEUID, kernel.SYS_GETGID, kernel.SYS_GETEGID,
		// The C library's, in a build with cgo: threads, and their memory.
		kernel.SYS_BRK, kernel.SYS_SET_ROBUST_LIST, kernel.SYS_RSEQ, kernel.SYS_MEMBARRIER,
	)
	const (
		thread   = kernel.CLONE_VM | kernel.CLONE_FS | kernel.CLONE_FILES | kernel.CLONE_SIGHAND | kernel.CLONE_THREAD | kernel.CLONE_SYSVSEM
		optional = kernel.CLONE_SETTLS | kernel.CLONE_PARENT_SETTID | kernel.CLONE_CHILD_CLEARTID | kernel.CLONE_CHILD_SETTID | kernel.CLONE_DETACHED
	)
	const newLimit = 2 // the argument of prlimit64 that sets one
	return append(list,
		callRule{kernel.SYS_TGKILL, oneOf(0, pid)},
		callRule{kernel.SYS_KILL, oneOf(0, pid)},
		callRule{kernel.SYS_CLONE, []callCase{{bits(0, ^uint32(optional), thread)}}},
		callRule{kernel.SYS_MMAP, []callCase{{without(2, kernel.PROT_EXEC)}}},
		callRule{kernel.SYS_MPROTECT, []callCase{{without(2, kernel.PROT_EXEC)}}},
		callRule{kernel.SYS_PRCTL, []callCase{{is(0, kernel.PR_SET_VMA), is(1, kernel.PR_SET_VMA_ANON_NAME)}}},
		callRule{kernel.SYS_SCHED_GETAFFINITY, oneOf(0, 0)},
		callRule{kernel.SYS_PRLIMIT64, []callCase{append(null(newLimit), is(0, 0))}},
	)
}

// fileCalls are those on files. Which files, Landlock says.
//
// Open cannot make a file that runs as its owner, and cannot empty a file that it
// does not open to write, which an older Landlock takes for reading. fcntl cannot
// have signals sent to somebody. No call changes the mode, owner, times or
// attributes of a file.
func fileCalls() []callRule {
	const (
		truncates = kernel.O_TRUNC
		how       = kernel.O_ACCMODE
		special   = kernel.S_ISUID | kernel.S_ISGID
	)
	list := always(
		kernel.SYS_PREAD64, kernel.SYS_PWRITE64, kernel.SYS_READV, kernel.SYS_WRITEV, kernel.SYS_LSEEK, kernel.SYS_COPY_FILE_RANGE,
		kernel.SYS_FSTAT, kernel.SYS_NEWFSTATAT, kernel.SYS_STATX, kernel.SYS_GETDENTS64, kernel.SYS_READLINKAT, kernel.SYS_GETCWD,
		kernel.SYS_FACCESSAT, kernel.SYS_FACCESSAT2, kernel.SYS_FTRUNCATE, kernel.SYS_FSYNC, kernel.SYS_FDATASYNC,
		kernel.SYS_UNLINKAT, kernel.SYS_RENAMEAT,
	)
	return append(list,
		callRule{kernel.SYS_OPENAT, []callCase{
			{without(2, truncates), without(3, special)},
			{bits(2, how, kernel.O_WRONLY), without(3, special)},
			{bits(2, how, kernel.O_RDWR), without(3, special)},
		}},
		callRule{kernel.SYS_MKDIRAT, []callCase{{without(2, special)}}},
		callRule{kernel.SYS_FCNTL, oneOf(1, kernel.F_GETFL, kernel.F_SETFL, kernel.F_DUPFD_CLOEXEC, kernel.F_GETFD, kernel.F_SETFD)},
	)
}

// networkCalls let TCP connections be made over IPv4 and IPv6, and nothing be
// listened on. There is no UDP: the daemon looks names up. Nothing is sent with
// an address (sendto, sendmsg), which would connect past Landlock.
func networkCalls() []callRule {
	const kindOnly = ^uint32(kernel.SOCK_NONBLOCK | kernel.SOCK_CLOEXEC)
	var sockets, options []callCase
	for _, family := range []uint32{kernel.AF_INET, kernel.AF_INET6} {
		for _, protocol := range []uint32{0, kernel.IPPROTO_TCP} {
			sockets = append(sockets, callCase{is(0, family), bits(1, kindOnly, kernel.SOCK_STREAM), is(2, protocol)})
		}
	}
	for _, o := range [][2]uint32{
		{kernel.SOL_SOCKET, kernel.SO_KEEPALIVE},
		{kernel.IPPROTO_TCP, kernel.TCP_NODELAY},
		{kernel.IPPROTO_TCP, kernel.TCP_KEEPIDLE},
		{kernel.IPPROTO_TCP, kernel.TCP_KEEPINTVL},
		{kernel.IPPROTO_TCP, kernel.TCP_KEEPCNT},
		{kernel.IPPROTO_IPV6, kernel.IPV6_V6ONLY},
	} {
		options = append(options, callCase{is(1, o[0]), is(2, o[1])})
	}
	return append(always(kernel.SYS_CONNECT, kernel.SYS_SHUTDOWN, kernel.SYS_GETSOCKNAME, kernel.SYS_GETPEERNAME),
		callRule{kernel.SYS_SOCKET, sockets},
		callRule{kernel.SYS_SETSOCKOPT, options},
		callRule{kernel.SYS_GETSOCKOPT, []callCase{{is(1, kernel.SOL_SOCKET), is(2, kernel.SO_ERROR)}}},
	)
}

// hostileCalls are made by nothing of ours, ever: they lead into other programs,
// other processes, and parts of the kernel that no fetch comes near. A process
// that makes one was taken over and is ended.
var hostileCalls = []uint32{
	kernel.SYS_EXECVE, kernel.SYS_EXECVEAT, kernel.SYS_PTRACE, kernel.SYS_PROCESS_VM_READV, kernel.SYS_PROCESS_VM_WRITEV,
	kernel.SYS_PIDFD_GETFD, kernel.SYS_KCMP, kernel.SYS_MOUNT, kernel.SYS_UMOUNT2, kernel.SYS_PIVOT_ROOT, kernel.SYS_CHROOT,
	kernel.SYS_FSOPEN, kernel.SYS_FSMOUNT, kernel.SYS_MOVE_MOUNT, kernel.SYS_OPEN_TREE, kernel.SYS_SETNS, kernel.SYS_UNSHARE,
	kernel.SYS_OPEN_BY_HANDLE_AT, kernel.SYS_BPF, kernel.SYS_PERF_EVENT_OPEN, kernel.SYS_USERFAULTFD,
	kernel.SYS_IO_URING_SETUP, kernel.SYS_IO_URING_ENTER, kernel.SYS_IO_URING_REGISTER,
	kernel.SYS_KEYCTL, kernel.SYS_ADD_KEY, kernel.SYS_REQUEST_KEY, kernel.SYS_INIT_MODULE, kernel.SYS_FINIT_MODULE, kernel.SYS_DELETE_MODULE,
	kernel.SYS_KEXEC_LOAD, kernel.SYS_REBOOT, kernel.SYS_SWAPON, kernel.SYS_SWAPOFF,
}

// unknownCalls are answered as by a kernel that does not have them: the C library
// then makes its threads by clone, whose flags the filter can see.
var unknownCalls = []uint32{kernel.SYS_CLONE3}
