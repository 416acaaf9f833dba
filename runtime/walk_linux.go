package runtime

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// noLinks has the kernel open a path whole, without following any link: what was
// looked at part by part may have changed meanwhile.
func noLinks(path string, written []string) error {
	folder := holding(written, filepath.Dir(path))
	if folder == "" {
		return nil // nobody who runs in a container can have changed it
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.6, or hidden by a filter
		fd, err = openPartByPart(path)
	}
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		to, _ := os.Readlink(path)
		return &plantedLink{link: path, to: to, folder: folder}
	}
	return err
}

// openPartByPart opens a path without following a link, one part at a time.
func openPartByPart(path string) (int, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	for _, part := range parts(path) {
		if err != nil {
			break
		}
		var next int
		next, err = unix.Openat(fd, part, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		_ = unix.Close(fd) // opened to step on only
		if err != nil {
			return -1, err
		}
		fd = next
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK { // O_PATH opens the link itself
			err = unix.ELOOP
		}
	}
	if err != nil && fd >= 0 {
		_ = unix.Close(fd) // opened to look only
	}
	return fd, err
}
