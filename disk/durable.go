package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Sync has a file, or the names in a folder, on the disk. After a rename it is the folder
// that has to be synced.
func Sync(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteWhole writes a file: after a crash it is the old one or the new one, never a part.
// When it returns nil the file is on the disk. Until then it has a name that begins with
// temp, in the same folder, which is there; what a crash leaves of that is the caller's to
// remove.
func WriteWhole(name, temp string, body []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), temp) // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return Sync(filepath.Dir(name))
}
