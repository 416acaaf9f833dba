package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Lock makes this process the only gitring of the state directory, which it
// makes if need be, and of this host's name on this engine. It is taken before
// Open. The error names the process in the way. Release may be called once; the
// end of the process releases too.
func Lock(dir, engineURL, host string) (release func(), err error) {
	if err := stateDir(dir); err != nil {
		return nil, err
	}
	f, err := lockFile(dir)
	if err != nil {
		return nil, err
	}
	l, err := lockName(engineURL, host)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() {
		_ = l.Close()
		_ = f.Close() // ends the flock
	}, nil
}

// LockFolder makes this process the only gitring of a state directory that no engine is of.
func LockFolder(dir string) (release func(), err error) {
	if err := stateDir(dir); err != nil {
		return nil, err
	}
	f, err := lockFile(dir)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil // ends the flock
}

func lockFile(dir string) (*os.File, error) {
	name := filepath.Join(dir, "lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the state directory: %w", err)
	}
	err = flock(f)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		b, _ := os.ReadFile(name) // only for the sentence
		_ = f.Close()
		return nil, fmt.Errorf("cannot start on %s: another gitring (pid %s) holds this state directory; stop it first, or give this one a state of its own", dir, orUnknown(strings.TrimSpace(string(b))))
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot lock %s: %w", name, err), f.Close())
	}
	return f, nil
}

// lockName listens on an abstract socket: a name that goes with its process and
// that state directories cannot keep apart.
func lockName(engineURL, host string) (net.Listener, error) {
	sum := sha256.Sum256([]byte(engineIdentity(engineURL) + "\x00" + host))
	name := "@gitring-" + hex.EncodeToString(sum[:16])
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", name)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("cannot start as host %q on %s: another process (%s) already does; stop it first, or give this one another host name", host, engineURL, holder(name))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot claim host %q on %s: %w", host, engineURL, err)
	}
	return l, nil
}

// engineIdentity makes two paths to one socket one: /var/run is /run.
func engineIdentity(url string) string {
	p, ok := strings.CutPrefix(url, "unix://")
	if !ok {
		return url
	}
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return "unix://" + real
	}
	// The engine may be down and its socket not there.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
		return "unix://" + filepath.Join(dir, filepath.Base(p))
	}
	return url
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// stateDir makes dir ours alone. A folder that is open to others and holds
// things that are not ours is somebody else's, such as /tmp.
func stateDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("cannot make the state directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("cannot make the state directory: %w", err)
	}
	fi, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("cannot use the state directory: %w", err)
	}
	if !fi.IsDir() {
		return fmt.Errorf("cannot use %s as the state directory: it is a file", dir)
	}
	if fi.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if !oursOrEmpty(dir) {
		return fmt.Errorf("cannot use %s as the state directory: others may read it and it holds things that are not gitring's; choose an empty folder", dir)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("cannot close the state directory to others: %w", err)
	}
	return nil
}

func oursOrEmpty(dir string) bool {
	for _, name := range []string{fileName, "lock", "anchors"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	names, err := os.ReadDir(dir)
	return err == nil && len(names) == 0
}
