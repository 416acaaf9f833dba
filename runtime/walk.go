package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// plantedLink is a link in a folder that a container may write to. Whoever runs
// in that container can make it lead anywhere, also after it was looked at.
//
// to is where the link said it leads, for people: it is never followed.
type plantedLink struct{ link, to, folder string }

func (p *plantedLink) Error() string {
	return fmt.Sprintf("%s is a link to %s, in the folder %s that a container may write to", p.link, cmp.Or(p.to, "an unknown place"), p.folder)
}

// unseenPath is a path in a folder that a container may write to, which gitring
// cannot look at: what lies there is not known.
type unseenPath struct{ path, why string }

func (u *unseenPath) Error() string {
	return fmt.Sprintf("%s cannot be seen by gitring (%s), and a container may write to a folder above it", u.path, u.why)
}

// mostLinks is how many links a path may have, as in the kernel.
const mostLinks = 40

// walkPath follows a path of the host part by part, as the engine would, and
// returns where it leads. written are the folders that containers may write to,
// clean, by their own paths without links: a link that lies in one is a
// *plantedLink. What is missing at the end is returned as it is.
func walkPath(source string, written []string) (string, error) {
	real, rest, links := "/", parts(source), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			real = filepath.Dir(real)
			continue
		}
		at := filepath.Join(real, part)
		st, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) && !slices.Contains(rest, "..") {
			return filepath.Join(append([]string{at}, rest...)...), err
		}
		if err != nil {
			return "", err
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			real = at
			continue
		}
		if folder := holding(written, real); folder != "" {
			to, _ := os.Readlink(at)
			return "", &plantedLink{link: at, to: to, folder: folder}
		}
		to, err := os.Readlink(at)
		if err != nil {
			return "", err
		}
		if links++; links > mostLinks {
			return "", fmt.Errorf("%s: %w", source, syscall.ELOOP)
		}
		if filepath.IsAbs(to) {
			real = "/"
		}
		rest = append(parts(to), rest...)
	}
	return real, noLinks(real, written)
}

// parts are the names of a path, which may hold ".." where a link does.
func parts(p string) []string {
	return slices.DeleteFunc(strings.Split(p, "/"), func(part string) bool { return part == "" || part == "." })
}

// holding is the folder of a list that p is or lies below; "" for none.
func holding(folders []string, p string) string {
	for _, folder := range folders {
		if lies(p, folder) {
			return folder
		}
	}
	return ""
}

// lies reports whether p is dir or lies below it; both are clean and absolute.
func lies(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

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
