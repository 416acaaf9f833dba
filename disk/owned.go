package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Owned says whose a file must be for ReadOwned.
type Owned struct {
	// User may own it, beside root.
	User int
	// Closed are the bits of its mode that must not be set, beside those for others to write.
	Closed fs.FileMode
	// Most is how many bytes it may have.
	Most int64
	// Anyone reads it whoever has it, through links too: nothing but Most is checked.
	Anyone bool
}

// ReadOwned reads a file that only root or a user can have written: whoever may write it
// decides what runs here. The folders above it are held to that too.
func ReadOwned(path string, o Owned) ([]byte, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if !o.Anyone {
		flags |= noFollow
		if err := o.checkFolders(filepath.Dir(abs)); err != nil {
			return nil, fmt.Errorf("cannot trust %s: %w", path, err)
		}
	}
	// The check on the open file leaves no moment for a swap; NONBLOCK keeps a pipe from
	// holding the start up.
	f, err := os.OpenFile(abs, flags, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("cannot trust %s: it is a symlink; put the file itself there or name where it points", path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, errors.Unwrap(err))
	}
	defer f.Close() //nolint:errcheck // opened to read only
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("cannot trust %s: it is not a regular file", path)
	}
	if err := o.check(abs, st, o.Closed); err != nil {
		return nil, fmt.Errorf("cannot trust %s: %w", path, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, o.Most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	case int64(len(b)) > o.Most:
		return nil, fmt.Errorf("cannot read %s: it is larger than %d bytes", path, o.Most)
	}
	return b, nil
}

// OwnProgram says who else than root and a user could put another program in the place of
// one; nil is nobody.
func OwnProgram(path string, user int) error {
	o := Owned{User: user}
	if err := o.checkFolders(filepath.Dir(path)); err != nil {
		return fmt.Errorf("cannot trust %s: %w", path, err)
	}
	st, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case st.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("cannot trust %s: it is a symlink; name where it points", path)
	case !st.Mode().IsRegular():
		return fmt.Errorf("cannot trust %s: it is not a regular file", path)
	}
	if err := o.check(path, st, 0); err != nil {
		return fmt.Errorf("cannot trust %s: %w", path, err)
	}
	return nil
}

// OwnFolder says why a folder is not the user's alone: it is a link, it is another's, or
// somebody else may put another one in its place.
func OwnFolder(dir string, user int) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	switch uid, _, ok := OwnersOf(st); {
	case !st.IsDir():
		return fmt.Errorf("%s is no folder, or a symlink to one", dir)
	case ok && uid != user:
		return fmt.Errorf("%s belongs to user %d, and gitring runs as %d", dir, uid, user)
	}
	return Owned{User: user}.checkFolders(filepath.Dir(dir))
}

// checkFolders holds dir and every folder above it to the rule: owned and written by root or
// the user alone, or root's and sticky as /tmp is.
func (o Owned) checkFolders(dir string) error {
	for {
		st, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if st.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("folder %s is a symlink; name the path without it", dir)
		}
		if uid, _, ok := OwnersOf(st); st.Mode()&fs.ModeSticky == 0 || !ok || uid != 0 {
			if err := o.check(dir, st, 0); err != nil {
				return err
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil
		}
		dir = up
	}
}

func (o Owned) check(path string, st fs.FileInfo, closed fs.FileMode) error {
	if o.Anyone {
		return nil
	}
	uid, _, ok := OwnersOf(st)
	switch mode := st.Mode().Perm(); {
	case !ok || uid != 0 && uid != o.User:
		return fmt.Errorf("%s belongs to user %d, who is neither root nor the one gitring runs as; chown root %s", path, uid, path)
	case mode&0o022 != 0:
		return fmt.Errorf("%s can be written by others (mode %04o); chmod go-w %s", path, mode, path)
	case mode&closed != 0:
		return fmt.Errorf("%s can be read by others (mode %04o); chmod 600 %s", path, mode, path)
	}
	return nil
}
