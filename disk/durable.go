package disk

import (
	"errors"
	"os"
)

// SyncFolder has the names in a folder on the disk, as a file that was renamed there.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
