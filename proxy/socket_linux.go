package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"unsafe"
)

// Of openat2, which package syscall does not have.
const (
	sysOpenat2       = 437 // the same on all architectures
	resolveNoLinks   = 0x04
	resolveBeneath   = 0x08
	openPath         = 0x200000 // O_PATH
	sizeOfOpenHow    = 24
	socketDescriptor = "/proc/self/fd/%d"
)

type openHow struct{ flags, mode, resolve uint64 }

// dialFront connects to the socket of a front below a folder. The front has the folder of the
// socket: a link there, to whatever the daemon may open, leads nowhere.
func dialFront(ctx context.Context, folder, path string, owner int) (net.Conn, error) {
	dir, err := syscall.Open(folder, openPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder of fronts: %w", err)
	}
	defer syscall.Close(dir)
	fd, err := openBeneath(dir, path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the front's socket: %w", err)
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("cannot look at the front's socket: %w", err)
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return nil, errors.New("cannot use the front's socket: it is none")
	}
	if int(st.Uid) != owner {
		return nil, fmt.Errorf("cannot use the front's socket: it is of user %d and not of %d", st.Uid, owner)
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", fmt.Sprintf(socketDescriptor, fd))
}

// openBeneath opens a path without leaving the folder and without following a link.
func openBeneath(dir int, path string) (int, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return 0, err
	}
	how := openHow{flags: openPath | syscall.O_CLOEXEC, resolve: resolveNoLinks | resolveBeneath}
	fd, _, errno := syscall.Syscall6(sysOpenat2, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&how)), sizeOfOpenHow, 0, 0)
	switch {
	case errno == 0:
		return int(fd), nil
	case errno != syscall.ENOSYS && errno != syscall.EPERM: // an older kernel, or a filter that does not know it
		return 0, errno
	}
	at, err := syscall.Dup(dir)
	if err != nil {
		return 0, err
	}
	syscall.CloseOnExec(at)
	parts := strings.Split(path, "/")
	for i, part := range parts {
		flags := openPath | syscall.O_CLOEXEC | syscall.O_NOFOLLOW
		if i < len(parts)-1 {
			flags |= syscall.O_DIRECTORY
		}
		next, err := syscall.Openat(at, part, flags, 0)
		_ = syscall.Close(at)
		if err != nil {
			return 0, err
		}
		at = next
	}
	return at, nil
}
