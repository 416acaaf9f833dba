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
