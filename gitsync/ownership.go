package gitsync

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxTrustFile is far above any real list of keys.
const maxTrustFile = 8 << 20

// readTrustFile reads a file that only root or uid can have written: whoever may
// write it decides what runs here. anyOwner skips that check.
func readTrustFile(path string, uid int, anyOwner bool) ([]byte, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	if !anyOwner {
		if err := checkFolders(filepath.Dir(abs), uid); err != nil {
			return nil, fmt.Errorf("cannot trust %s: %w", path, err)
		}
	}
	// NOFOLLOW and the check on the open file leave no moment for a swap;
	// NONBLOCK keeps a pipe from holding the start up.
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if !anyOwner {
		flags |= noFollow
	}
	f, err := os.OpenFile(abs, flags, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("cannot trust %s: it is a symlink; put the file itself there or name where it points", path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, errors.Unwrap(err))
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot trust %s: it is not a regular file", path)
	}
	if !anyOwner {
		if err := checkOwner(abs, st, uid); err != nil {
			return nil, fmt.Errorf("cannot trust %s: %w", path, err)
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, maxTrustFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	if len(b) > maxTrustFile {
		return nil, fmt.Errorf("cannot read %s: it is larger than %d bytes", path, maxTrustFile)
	}
	return b, nil
}

// CheckTrustFile says who else than root and the daemon's user can write a file, or put
// another one in its place; nil is nobody.
func CheckTrustFile(path string) error {
	_, err := readTrustFile(path, os.Geteuid(), false)
	return err
}

// checkFolders holds dir and every folder above it to the rule: owned and
// written by root or uid alone, or root's and sticky as /tmp is.
func checkFolders(dir string, uid int) error {
	for {
		st, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if st.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("folder %s is a symlink; name the path without it", dir)
		}
		if !rootsSticky(st) {
			if err := checkOwner(dir, st, uid); err != nil {
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

func rootsSticky(st fs.FileInfo) bool {
	return st.Mode()&fs.ModeSticky != 0 && owner(st) == 0
}

func checkOwner(path string, st fs.FileInfo, uid int) error {
	if o := owner(st); o != 0 && o != uid {
		return fmt.Errorf("%s belongs to user %d, who is neither root nor the one gitring runs as; chown root %s", path, o, path)
	}
	if st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others (mode %04o); chmod go-w %s", path, st.Mode().Perm(), path)
	}
	return nil
}
