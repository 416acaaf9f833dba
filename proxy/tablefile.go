package proxy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gitring/gitring/ring"
)

// tableDisk is what holds tables. Nothing is sure to outlive a loss of power until it was
// synced: the bytes of a file by its Sync, the names in a folder by SyncFolder. Without that
// any part of it may be there, in any order.
type tableDisk interface {
	Mkdir(name string) error
	Temp(dir string) (tableFile, error)
	Rename(from, to string) error
	Remove(name string) error
	SyncFolder(name string) error
}

// tableFile is a file that is being written.
type tableFile interface {
	io.WriteCloser
	Name() string
	Chmod(mode fs.FileMode) error
	Chown(user, group int) error
	Sync() error
}

// hostDisk is the disk of this host.
type hostDisk struct{}

func (hostDisk) Mkdir(name string) error            { return os.Mkdir(name, 0o755) }
func (hostDisk) Temp(dir string) (tableFile, error) { return os.CreateTemp(dir, "tmp-") }
func (hostDisk) Rename(from, to string) error       { return os.Rename(from, to) }
func (hostDisk) Remove(name string) error           { return os.Remove(name) }

func (hostDisk) SyncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeTable has the table of a front be on disk, whole, to be read by one user alone. When it
// returns nil the table outlives a loss of power, and so do the folders on the way to it.
func writeTable(disk tableDisk, fronts string, at ring.FrontAt, body []byte, user int) error {
	front := filepath.Join(fronts, ring.FrontID(at.Name))
	table := filepath.Join(front, "table")
	for _, d := range []string{fronts, front, table} {
		err := disk.Mkdir(d)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			err = disk.SyncFolder(filepath.Dir(d))
		}
		if err != nil {
			return err
		}
	}
	temp, err := writeTemp(disk, table, body, user)
	if err == nil {
		err = disk.Rename(temp, filepath.Join(table, ring.FrontTableFile))
	}
	if err != nil {
		if temp != "" {
			err = errors.Join(err, disk.Remove(temp))
		}
		return err
	}
	return disk.SyncFolder(table)
}

// writeTemp writes a new file of a folder, and returns its name if there is one.
func writeTemp(disk tableDisk, dir string, body []byte, user int) (string, error) {
	f, err := disk.Temp(dir)
	if err != nil {
		return "", err
	}
	_, err = f.Write(body)
	if err == nil {
		err = f.Chmod(0o400)
	}
	if err == nil && os.Geteuid() == 0 {
		err = f.Chown(user, user)
	}
	if err == nil {
		err = f.Sync()
	}
	return f.Name(), errors.Join(err, f.Close())
}
