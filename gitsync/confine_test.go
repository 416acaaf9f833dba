package gitsync

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	kernel "golang.org/x/sys/unix"
)

const reachOutVerb = "reach-out"

// reachTrial is what the process that tries to reach out is told.
type reachTrial struct {
	Begin    beginning
	File     string // of the same user, outside of its folder
	Victim   int    // a process of the same user
	Parent   int
	UDP, TCP string // where the test listens
	Abstract string // the name of a Unix socket without a file
	Deadly   string // the one call to make that ends the process; "" makes all others
}

// reachOut confines itself and then tries what it may not.
func reachOut() {
	var r reachTrial
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		panic(err)
	}
	file, err := os.Open(r.File) // as if it had come by it
	if err != nil {
		panic(err)
	}
	t, err := confine(&r.Begin)
	if err != nil {
		panic(err)
	}
	out := map[string]string{"confined": strings.Join(t.Confined, ", "), "free": strings.Join(t.Free, ", ")}
	try := func(name string, err error) {
		out[name] = "done"
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			out[name] = kernel.ErrnoName(errno)
		} else if err != nil {
			out[name] = err.Error()
		}
	}
	call := func(name string, nr uintptr, args ...uintptr) {
		args = append(args, make([]uintptr, 6)...)
		_, _, errno := syscall.Syscall6(nr, args[0], args[1], args[2], args[3], args[4], args[5])
		try(name, nil)
		if errno != 0 {
			try(name, errno)
		}
	}
	if r.Deadly != "" {
		deadly(&r, call)
		try("it lives", nil)
		_ = json.NewEncoder(os.Stdout).Encode(out)
		return
	}
	r.files(try, call, file)
	r.processes(try, call, file)
	r.network(try, call)
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}

type (
	tryFunc  func(name string, err error)
	callFunc func(name string, nr uintptr, args ...uintptr)
)

func (r *reachTrial) files(try tryFunc, call callFunc, file *os.File) {
	fd := file.Fd()
	uid := os.Getuid()
	own := filepath.Join(r.Begin.Stage, "own")
	try("write into its folder", os.WriteFile(own, []byte("x"), 0o600))
	for where, path := range map[string]string{"outside": r.File, "of its own": own} {
		try("chmod "+where, os.Chmod(path, 0o666))
		try("chown "+where, os.Lchown(path, uid, os.Getgid()))
		try("setxattr "+where, kernel.Setxattr(path, "user.gitring", []byte("x"), 0))
		try("lsetxattr "+where, kernel.Lsetxattr(path, "user.gitring", []byte("x"), 0))
		try("removexattr "+where, kernel.Removexattr(path, "user.there"))
		try("times "+where, os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)))
	}
	try("fchmod", kernel.Fchmod(int(fd), 0o666))
	try("fchmodat2", kernel.Fchmodat(kernel.AT_FDCWD, r.File, 0o666, kernel.AT_SYMLINK_NOFOLLOW))
	try("fchown", kernel.Fchown(int(fd), uid, os.Getgid()))
	try("fsetxattr", kernel.Fsetxattr(int(fd), "user.gitring", []byte("x"), 0))
	try("truncate", kernel.Truncate(r.File, 0))
	empty, err := kernel.Open(r.File, kernel.O_RDONLY|kernel.O_TRUNC, 0)
	try("empty by opening to read", err)
	_ = kernel.Close(empty)
	empty, err = kernel.Open(r.File, kernel.O_ACCMODE|kernel.O_TRUNC, 0)
	try("empty by opening for nothing", err)
	_ = kernel.Close(empty)
	_, err = kernel.Open(filepath.Join(r.Begin.Stage, "suid"), kernel.O_CREAT|kernel.O_WRONLY, 0o4755)
	try("a file that runs as its owner", err)
	_, err = kernel.Open(r.File, kernel.O_WRONLY, 0)
	try("open outside to write", err)
	try("a link", os.Link(own, own+"2"))
	try("a symlink", os.Symlink("/etc/passwd", own+"3"))
	try("a device", kernel.Mknod(own+"4", kernel.S_IFIFO|0o600, 0))
	call("ioctl", kernel.SYS_IOCTL, fd, kernel.TCGETS)
	try("executable memory", func() error {
		_, err := kernel.Mmap(-1, 0, 4096, kernel.PROT_READ|kernel.PROT_EXEC, kernel.MAP_PRIVATE|kernel.MAP_ANON)
		return err
	}())
	_, err = kernel.MemfdCreate("x", 0)
	try("a file of memory", err)
}

func (r *reachTrial) processes(try tryFunc, call callFunc, file *os.File) {
	pid := uintptr(r.Victim)
	try("kill the parent", syscall.Kill(r.Parent, 0))
	for _, sig := range []syscall.Signal{0, syscall.SIGSTOP} {
		try("kill "+strconv.Itoa(int(sig)), syscall.Kill(r.Victim, sig))
		try("tgkill "+strconv.Itoa(int(sig)), kernel.Tgkill(r.Victim, r.Victim, sig))
		call("tkill "+strconv.Itoa(int(sig)), kernel.SYS_TKILL, pid, uintptr(sig))
	}
	try("kill everybody", syscall.Kill(-1, 0))
	try("kill its group", syscall.Kill(0, 0))
	try("kill itself with nothing", syscall.Kill(os.Getpid(), 0))
	var info [128]byte
	call("rt_sigqueueinfo", kernel.SYS_RT_SIGQUEUEINFO, pid, 0, uintptr(unsafe.Pointer(&info)))
	call("rt_tgsigqueueinfo", kernel.SYS_RT_TGSIGQUEUEINFO, pid, pid, 0, uintptr(unsafe.Pointer(&info)))
	call("pidfd_open", kernel.SYS_PIDFD_OPEN, pid)
	call("pidfd_send_signal", kernel.SYS_PIDFD_SEND_SIGNAL, file.Fd())
	_, err := kernel.FcntlInt(file.Fd(), kernel.F_SETOWN, r.Victim)
	try("signals by fcntl", err)
	limits := kernel.Rlimit{Cur: 64, Max: 64}
	try("prlimit", kernel.Prlimit(r.Victim, kernel.RLIMIT_NOFILE, &limits, nil))
	var had kernel.Rlimit
	try("prlimit to read", kernel.Prlimit(r.Victim, kernel.RLIMIT_NOFILE, nil, &had))
	try("its own limits", kernel.Prlimit(0, kernel.RLIMIT_NOFILE, &kernel.Rlimit{Cur: 4096, Max: 4096}, nil))
	try("its own limits to read", kernel.Prlimit(0, kernel.RLIMIT_NOFILE, nil, &had))
	try("setpriority", kernel.Setpriority(kernel.PRIO_PROCESS, r.Victim, 19))
	var cpus kernel.CPUSet
	cpus.Set(0)
	try("affinity", kernel.SchedSetaffinity(r.Victim, &cpus))
	call("scheduler", kernel.SYS_SCHED_SETSCHEDULER, pid, kernel.SCHED_BATCH, uintptr(unsafe.Pointer(&info)))
	call("ioprio", kernel.SYS_IOPRIO_SET, 1, pid, 3<<13)
	call("a process", kernel.SYS_CLONE, uintptr(kernel.SIGCHLD)|kernel.CLONE_NEWUSER|kernel.CLONE_THREAD)
	call("clone3", kernel.SYS_CLONE3)
	_, err = os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	try("a program", err)
	call("process_madvise", kernel.SYS_PROCESS_MADVISE, file.Fd())
	call("prctl dumpable", kernel.SYS_PRCTL, kernel.PR_SET_DUMPABLE, 1)
	call("setuid", kernel.SYS_SETUID, uintptr(os.Getuid()))
	call("personality", kernel.SYS_PERSONALITY, 0)
	call("shared memory", kernel.SYS_SHMGET, 0, 4096, 0o1600)
	call("inotify", kernel.SYS_INOTIFY_INIT1)
}

func (r *reachTrial) network(try tryFunc, call callFunc) {
	udp := func(addr string) error {
		c, err := net.Dial("udp", addr)
		if err == nil {
			_, err = c.Write([]byte("hello"))
		}
		return err
	}
	try("udp", udp(r.UDP))
	try("udp to port 53", udp("127.0.0.1:53"))
	try("udp over ipv6", udp("[::1]:53"))
	fd, err := kernel.Socket(kernel.AF_INET, kernel.SOCK_STREAM|kernel.SOCK_NONBLOCK, 0)
	try("a tcp socket", err)
	try("bind", kernel.Bind(fd, &kernel.SockaddrInet4{}))
	try("listen", kernel.Listen(fd, 1))
	_, _, err = kernel.Accept(fd)
	try("accept", err)
	_, port, _ := net.SplitHostPort(r.TCP)
	n, _ := strconv.Atoi(port)
	try("send with an address", kernel.Sendto(fd, []byte("x"), kernel.MSG_FASTOPEN, &kernel.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}}))
	try("a socket option", kernel.SetsockoptInt(fd, kernel.SOL_SOCKET, kernel.SO_MARK, 1))
	_, err = net.Listen("tcp", "127.0.0.1:0")
	try("listen as Go does", err)
	_, err = net.Dial("unix", "@"+r.Abstract)
	try("an abstract socket", err)
	for name, s := range map[string][3]int{
		"raw":         {kernel.AF_INET, kernel.SOCK_RAW, kernel.IPPROTO_ICMP},
		"ping":        {kernel.AF_INET, kernel.SOCK_DGRAM, kernel.IPPROTO_ICMP},
		"another tcp": {kernel.AF_INET, kernel.SOCK_STREAM, kernel.IPPROTO_MPTCP},
		"sctp":        {kernel.AF_INET, kernel.SOCK_STREAM, kernel.IPPROTO_SCTP},
		"netlink":     {kernel.AF_NETLINK, kernel.SOCK_RAW, 0},
		"packet":      {kernel.AF_PACKET, kernel.SOCK_RAW, 0},
		"vsock":       {kernel.AF_VSOCK, kernel.SOCK_STREAM, 0},
		"alg":         {kernel.AF_ALG, kernel.SOCK_SEQPACKET, 0},
		"unix":        {kernel.AF_UNIX, kernel.SOCK_STREAM, 0},
	} {
		_, err := kernel.Socket(s[0], s[1], s[2])
		try("socket "+name, err)
	}
	_, err = kernel.Socketpair(kernel.AF_UNIX, kernel.SOCK_STREAM, 0)
	try("a pair of sockets", err)
}

// deadlyCalls end a process that makes them.
var deadlyCalls = map[string]uintptr{
	"execve": kernel.SYS_EXECVE, "execveat": kernel.SYS_EXECVEAT, "ptrace": kernel.SYS_PTRACE, "process_vm_readv": kernel.SYS_PROCESS_VM_READV,
	"process_vm_writev": kernel.SYS_PROCESS_VM_WRITEV, "unshare": kernel.SYS_UNSHARE, "setns": kernel.SYS_SETNS, "mount": kernel.SYS_MOUNT,
	"bpf": kernel.SYS_BPF, "io_uring": kernel.SYS_IO_URING_SETUP, "keyctl": kernel.SYS_KEYCTL, "perf": kernel.SYS_PERF_EVENT_OPEN,
	"userfaultfd": kernel.SYS_USERFAULTFD, "pidfd_getfd": kernel.SYS_PIDFD_GETFD, "open_by_handle_at": kernel.SYS_OPEN_BY_HANDLE_AT,
	"chroot": kernel.SYS_CHROOT, "a number of another kind": firstX32 | kernel.SYS_READ,
}

func deadly(r *reachTrial, call callFunc) {
	nr := deadlyCalls[r.Deadly]
	if r.Deadly == "ptrace" {
		call(r.Deadly, nr, kernel.PTRACE_ATTACH, uintptr(r.Victim))
		return
	}
	call(r.Deadly, nr)
}

// reaching starts the victim and listens where nobody may be heard of.
type reaching struct {
	reachTrial
	program  string
	datagram chan struct{} // closed when one came
}

func startReaching(t *testing.T) *reaching {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("no list of system calls for this processor")
	}
	program := static(t)
	dir := t.TempDir()
	r := &reaching{program: program, datagram: make(chan struct{})}
	victim := exec.Command("sleep", "600")
	require.NoError(t, victim.Start())
	t.Cleanup(func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	r.Victim, r.Parent = victim.Process.Pid, os.Getpid()
	r.File = filepath.Join(dir, "docker.sock")
	require.NoError(t, os.WriteFile(r.File, []byte("x"), 0o600))
	_ = kernel.Setxattr(r.File, "user.there", []byte("x"), 0) // where the file system has them
	stage := filepath.Join(dir, "git", "prod"+incomingEnds)
	require.NoError(t, os.MkdirAll(stage, 0o700))
	r.Begin = beginning{Scheme: "https", Host: "127.0.0.1", Path: "/x", Stage: stage, Mirrors: filepath.Dir(stage), Memory: 1 << 30, Target: 768 << 20, File: 1 << 30, Open: 256}
	r.TCP = listen(t, "tcp", "127.0.0.1:0")
	r.Abstract = "gitring-test-" + strconv.Itoa(r.Victim)
	listen(t, "unix", "@"+r.Abstract)
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = u.Close()
		<-ended
	})
	r.UDP = u.LocalAddr().String()
	go func() {
		defer close(ended)
		if _, _, err := u.ReadFrom(make([]byte, 10)); err == nil {
			close(r.datagram)
		}
	}()
	return r
}

// run is what the process tells, and how it ended.
func (r *reaching) run(t *testing.T) (map[string]string, error) {
	in, err := json.Marshal(r.reachTrial)
	require.NoError(t, err)
	cmd := exec.Command(r.program, reachOutVerb)
	cmd.Stdin = bytes.NewReader(in)
	// A group of its own, so that nobody else can be meant by it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.Output()
	var got map[string]string
	_ = json.Unmarshal(out, &got)
	return got, err
}

// What it may do, by name; everything else that it tries is refused.
var mayReach = []string{"write into its folder", "kill itself with nothing", "its own limits to read", "a tcp socket"}

func TestTheProcessThatFetchesReachesNobody(t *testing.T) {
	t.Parallel()
	r := startReaching(t)
	before, err := os.Stat(r.File)
	require.NoError(t, err)
	got, err := r.run(t)
	require.NoError(t, err)
	require.Contains(t, got["confined"], "system calls")
	require.Greater(t, len(got), 70, "all of it was tried")
	for _, name := range mayReach {
		require.Equal(t, "done", got[name], name)
	}
	for name, came := range got {
		switch name {
		case "confined", "free":
		case "clone3":
			require.Equal(t, "ENOSYS", came)
		case "open outside to write":
			if !strings.Contains(got["free"], filesAndPorts) {
				require.Equal(t, "EACCES", came)
			}
		default:
			if !slices.Contains(mayReach, name) {
				require.Equal(t, "EPERM", came, name)
			}
		}
	}

	// What came of it, as others see it.
	after, err := os.Stat(r.File)
	require.NoError(t, err)
	require.Equal(t, before, after, "mode, owner, size and times are what they were")
	n, err := kernel.Getxattr(r.File, "user.gitring", nil)
	require.Error(t, err, n)
	var limits kernel.Rlimit
	require.NoError(t, kernel.Prlimit(r.Victim, kernel.RLIMIT_NOFILE, nil, &limits))
	require.NotEqual(t, uint64(64), limits.Max)
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(r.Victim) + "/stat")
	require.NoError(t, err)
	require.NotContains(t, string(stat), ") T ", "it was not stopped")
	require.NoFileExists(t, filepath.Join(r.Begin.Stage, "suid"))
	select {
	case <-r.datagram:
		t.Fatal("a datagram came")
	default:
	}
}

// A remote in a folder needs no socket at all.
func TestTheProcessThatFetchesFromAFolderHasNoSocket(t *testing.T) {
	t.Parallel()
	r := startReaching(t)
	r.Begin.Scheme, r.Begin.Path = "file", filepath.Dir(r.File)
	got, err := r.run(t)
	require.NoError(t, err)
	for _, name := range []string{"a tcp socket", "udp", "an abstract socket", "socket netlink", "chmod of its own", "kill 0", "prlimit"} {
		require.Equal(t, "EPERM", got[name], name)
	}
}

func TestAHostileCallEndsTheProcessThatFetches(t *testing.T) {
	t.Parallel()
	r := startReaching(t)
	for name := range deadlyCalls {
		if strings.Contains(name, "another kind") && runtime.GOARCH != "amd64" {
			continue
		}
		r.Deadly = name
		got, err := r.run(t)
		ended, ok := errors.AsType[*exec.ExitError](err)
		require.True(t, ok, "%s: %v %v", name, got, err)
		status, ok := ended.Sys().(syscall.WaitStatus)
		require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGSYS, "%s: %v", name, err)
	}
}

// Landlock of each version keeps what it can; the fault of its first scopes would
// stop Go's own threads from interrupting each other.
func TestEachVersionOfLandlockIsUsedForWhatItHas(t *testing.T) {
	t.Parallel()
	const signalsMended = 2
	for _, tt := range []struct {
		version int
		errata  uint32
		size    uintptr
		ports   bool
		scoped  uint64
	}{
		{1, 0, 8, false, 0},
		{2, 0, 8, false, 0},
		{3, 0, 8, false, 0},
		{4, 0, 16, true, 0},
		{5, 0, 16, true, 0},
		{6, 0, 24, true, kernel.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET},
		{6, signalsMended, 24, true, kernel.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | kernel.LANDLOCK_SCOPE_SIGNAL},
		{9, 7, 24, true, kernel.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | kernel.LANDLOCK_SCOPE_SIGNAL},
	} {
		attr, write := ruleset(tt.version, tt.errata)
		require.Equal(t, tt.size, rulesetSize(tt.version), tt)
		require.Equal(t, tt.ports, attr.Handled_access_net != 0, tt)
		require.Equal(t, tt.scoped, attr.Scoped, tt)
		require.Equal(t, tt.version >= 2, attr.Handled_access_fs&kernel.LANDLOCK_ACCESS_FS_REFER != 0, tt)
		require.Equal(t, tt.version >= 3, write&kernel.LANDLOCK_ACCESS_FS_TRUNCATE != 0, tt)
	}
}

func TestAnOlderLandlockDoesNotKeepPorts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		scheme  string
		version int
		free    string
	}{{"https", 3, "ports (Landlock is of version 3 here; Linux 6.7 has version 4)"}, {"https", 4, ""}, {"file", 3, ""}} {
		got := told{Confined: []string{"limits", filesAndPorts}}
		got.addPorts(&beginning{Scheme: tt.scheme}, tt.version)
		require.Equal(t, tt.free, strings.Join(got.Free, ""), tt)
		require.Equal(t, tt.free != "", slices.Contains(got.Confined, "files"), tt)
	}
}
