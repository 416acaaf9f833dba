package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gitring/gitring/ring"
)

// makeData makes the folder rel below root, with every folder on the way,
// 0755. What exists is left as it is, a file included. A symlink on the way is
// refused: whoever can write in one app's data could point it anywhere. Nothing
// in gitring removes a data folder.
func makeData(root, rel string) error {
	if !filepath.IsLocal(rel) {
		return fmt.Errorf("data folder %q is not below the data root", rel)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // opened to look only
	parts := strings.Split(filepath.Clean(rel), string(filepath.Separator))
	for i := range parts {
		at := filepath.Join(parts[:i+1]...)
		if err := makeOne(r, at, i == len(parts)-1); err != nil {
			return err
		}
	}
	return nil
}

func makeOne(r *os.Root, at string, last bool) error {
	st, err := r.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		if err := r.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		} else if err == nil {
			// Whatever the umask: containers that are not root go through it.
			if err := r.Chmod(at, 0o755); err != nil {
				return err
			}
		}
		st, err = r.Lstat(at)
	}
	switch {
	case err != nil:
		return err
	case st.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("data folder: %s is a symlink", filepath.Join(r.Name(), at))
	case !st.IsDir() && !last:
		return fmt.Errorf("data folder: %s is not a folder", filepath.Join(r.Name(), at))
	}
	return nil
}

var contentHash = regexp.MustCompile(`^[0-9a-f]+$`)

// haveContent says what is wrong with a content mount; nil when it is there.
func haveContent(root string, m ring.Mount) error {
	if !contentHash.MatchString(m.Source) {
		return fmt.Errorf("content %q is no hash", m.Source)
	}
	if m.File != "" && !filepath.IsLocal(m.File) {
		return fmt.Errorf("content %s: file %q is not inside", m.Source, m.File)
	}
	st, err := os.Lstat(filepath.Join(root, m.Source, m.File))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("content %s is missing", filepath.Join(m.Source, m.File))
	}
	if err != nil {
		return err
	}
	if m.File == "" && !st.IsDir() || m.File != "" && !st.Mode().IsRegular() {
		return fmt.Errorf("content %s is neither a folder nor a regular file", filepath.Join(m.Source, m.File))
	}
	return nil
}
