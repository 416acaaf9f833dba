package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gitring/gitring/disk"
)

// A liveFolder is a folder that a container mounts and whose content is swapped
// while it does. Whoever reads it through its names sees the old content or the
// new one, never a part of either:
//
//	nginx.conf -> ..data/nginx.conf
//	..data     -> ..4f53cda18c2baa0c
//	..4f53cda18c2baa0c/nginx.conf
//
// One rename of ..data is the swap. Kubelet lays out its volumes like this, so
// programs that watch files know it.
type liveFolder struct{ dir string }

// Names in a live folder that begin with liveMark are ours; manifest refuses
// files of a commit that do.
const (
	liveMark = ".."
	liveData = "..data"
	liveNew  = "..new" // being written
)

// put has the files of from in the folder, as the generation of hash. changed
// are the names that somebody else changed there.
func (f liveFolder) put(from, hash string) (changed []string, err error) {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(f.dir, 0o755); err != nil { // whatever the umask
		return nil, err
	}
	was, err := f.current()
	if err != nil {
		return nil, err
	}
	gen := f.generation(hash)
	for f.has(gen) {
		same, err := sameFiles(from, filepath.Join(f.dir, gen))
		if err != nil {
			return nil, err
		}
		if same {
			break
		}
		changed = append(changed, "a file")
		if gen != was {
			if err := os.RemoveAll(filepath.Join(f.dir, gen)); err != nil {
				return changed, err
			}
			break
		}
		gen += "-" // what is mounted is not written into
	}
	if !f.has(gen) {
		if err := f.write(from, gen); err != nil {
			return changed, err
		}
	}
	if err := f.turn(gen); err != nil {
		return changed, err
	}
	strange, err := f.name()
	return append(changed, strange...), err
}

// generation is what the folder of a content is called.
func (f liveFolder) generation(hash string) string { return liveMark + hash[:min(len(hash), 16)] }

func (f liveFolder) has(gen string) bool {
	st, err := os.Lstat(filepath.Join(f.dir, gen))
	return err == nil && st.IsDir()
}

// current is the generation that lies there; "" for none.
func (f liveFolder) current() (string, error) {
	gen, err := os.Readlink(filepath.Join(f.dir, liveData))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) { // EINVAL: somebody put something else there
		return "", nil
	}
	return gen, err
}

// write copies a content beside what is there, whole or not at all.
func (f liveFolder) write(from, gen string) error {
	tmp := filepath.Join(f.dir, liveNew)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := copyFiles(from, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(f.dir, gen)); err != nil {
		return err
	}
	return disk.Sync(f.dir)
}

// turn makes a generation the one that lies there.
func (f liveFolder) turn(gen string) error {
	if is, err := f.current(); err != nil || is == gen {
		return err
	}
	return f.link(gen, liveData)
}

// back makes a generation that is there the one that lies there, with its names.
func (f liveFolder) back(gen string) error {
	if err := f.turn(gen); err != nil {
		return err
	}
	_, err := f.name()
	return err
}

// link puts a symlink in the place of whatever has its name.
func (f liveFolder) link(to, name string) error {
	tmp, at := filepath.Join(f.dir, liveData+"_new"), filepath.Join(f.dir, name)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if st, err := os.Lstat(at); err == nil && st.IsDir() { // a rename does not replace one
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	if err := os.Symlink(to, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, at); err != nil {
		return err
	}
	return disk.Sync(f.dir)
}

// name gives every file and folder of what lies there its name, and takes the
// names of what does not. strange are the names that were not ours.
func (f liveFolder) name() (strange []string, err error) {
	inside, err := os.ReadDir(filepath.Join(f.dir, liveData))
	if err != nil {
		return nil, err
	}
	want := map[string]bool{}
	for _, e := range inside {
		want[e.Name()] = true
		to := filepath.Join(liveData, e.Name())
		at := filepath.Join(f.dir, e.Name())
		is, err := os.Readlink(at)
		if err == nil && is == to {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			strange = append(strange, e.Name())
		}
		if err := f.link(to, e.Name()); err != nil {
			return strange, err
		}
	}
	there, err := os.ReadDir(f.dir)
	if err != nil {
		return strange, err
	}
	for _, e := range there {
		if want[e.Name()] || strings.HasPrefix(e.Name(), liveMark) {
			continue
		}
		if e.Type() != fs.ModeSymlink {
			strange = append(strange, e.Name())
		}
		if err := os.RemoveAll(filepath.Join(f.dir, e.Name())); err != nil {
			return strange, err
		}
	}
	return strange, disk.Sync(f.dir)
}

// sweep removes every generation but the one that lies there.
func (f liveFolder) sweep() error {
	is, err := f.current()
	if err != nil {
		return err
	}
	there, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range there {
		if strings.HasPrefix(e.Name(), liveMark) && e.Name() != liveData && e.Name() != is {
			if err := os.RemoveAll(filepath.Join(f.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyFiles copies the regular files below from, for any user to read.
func copyFiles(from, to string) error {
	err := filepath.WalkDir(from, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		if e.IsDir() {
			if err := os.Mkdir(at, 0o755); err != nil {
				return err
			}
			return os.Chmod(at, 0o755) // whatever the umask
		}
		return copyFile(p, at)
	})
	if err != nil {
		return err
	}
	return filepath.WalkDir(to, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return disk.Sync(p)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // opened to read only
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", from)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(st.Mode().Perm())
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// sameFiles reports whether two folders hold the same files, with the same bytes and modes.
func sameFiles(a, b string) (bool, error) {
	x, err := filesIn(a)
	if err != nil {
		return false, err
	}
	y, err := filesIn(b)
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(x)), slices.Sorted(maps.Keys(y))) {
		return false, err
	}
	for rel, mode := range x {
		if y[rel] != mode {
			return false, nil
		}
		p, err := os.ReadFile(filepath.Join(a, rel))
		if err != nil {
			return false, err
		}
		q, err := os.ReadFile(filepath.Join(b, rel))
		if err != nil || !bytes.Equal(p, q) {
			return false, err
		}
	}
	return true, nil
}

// filesIn are the modes of all but folders below dir, by their paths in it.
func filesIn(dir string) (map[string]fs.FileMode, error) {
	out := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		st, err := e.Info()
		if err == nil {
			rel, _ := filepath.Rel(dir, p) // p lies below dir
			out[rel] = st.Mode()
		}
		return err
	})
	return out, err
}
