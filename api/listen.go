package api

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ReadGroup is the group that may open the socket, where this host has it.
const ReadGroup = "gitring"

// ListenSocket opens the control socket: mode 0660, and the group ReadGroup,
// or else AdminGroup, where this host has one of them. Its folder is made when
// missing. A socket that nobody answers on is replaced; one that answers is
// another daemon, and an error. The file goes when the listener is closed.
func ListenSocket(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("cannot make the socket's folder: %w", err)
	}
	if err := vacant(path); err != nil {
		return nil, err
	}
	// Bound in a folder that nobody else can enter and moved into place when
	// its mode is right, so that there is no moment in which anyone may ask.
	private, err := os.MkdirTemp(dir, ".s")
	if err != nil {
		return nil, fmt.Errorf("cannot open the socket: %w", err)
	}
	defer os.RemoveAll(private) //nolint:errcheck // empty by then
	inner := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: inner, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot open the socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := publish(inner, path); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the socket: %w", err), l.Close())
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the socket: %w", err), l.Close())
	}
	return &socketFile{UnixListener: l, path: path, own: own}, nil
}

// makeFolder lets others through a folder that it makes, whatever the umask: the
// socket's own mode decides who may ask. One that is there stays as it is.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // see above
		return err
	}
	return os.Chmod(dir, 0o755) //nolint:gosec // see above
}

// vacant says that path may be taken: nothing is there, or a socket without
// anyone behind it. A socket that only does not let us in has somebody.
func vacant(path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open the socket: %w", err)
	}
	if fi.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("cannot open the socket: %s is there and is no socket; move it away, or name another place as listen.socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open the socket: cannot tell whether a daemon answers on %s: %w", path, err)
	}
	_ = c.Close()
	return fmt.Errorf("cannot open the socket: another daemon answers on %s; stop it first, or give this one a listen.socket of its own", path)
}

func publish(inner, path string) error {
	for _, name := range []string{ReadGroup, AdminGroup} {
		g, err := user.LookupGroup(name)
		if err != nil {
			continue
		}
		gid, err := strconv.Atoi(g.Gid)
		if err != nil {
			continue
		}
		// Only root and members may give it away; without that it stays the
		// daemon's own, which lets in fewer people, not more.
		_ = os.Chown(inner, -1, gid)
		break
	}
	if err := os.Chmod(inner, 0o660); err != nil { //nolint:gosec // docs/design/trust.md#the-daemons-own-files
		return err
	}
	return os.Rename(inner, path)
}

// socketFile removes its file when it is closed, unless another one is there
// by then.
type socketFile struct {
	*net.UnixListener
	path string
	own  os.FileInfo
}

func (s *socketFile) Close() error {
	if fi, err := os.Lstat(s.path); err == nil && os.SameFile(fi, s.own) {
		_ = os.Remove(s.path)
	}
	return s.UnixListener.Close()
}
