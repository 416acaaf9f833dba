package gitsync

import (
	"os"

	"github.com/gitring/gitring/disk"
)

// maxTrustFile is far above any real list of keys.
const maxTrustFile = 8 << 20

// readTrustFile reads a file that only root or uid can have written: whoever may
// write it decides what runs here. anyOwner skips that check.
func readTrustFile(path string, uid int, anyOwner bool) ([]byte, error) {
	return disk.ReadOwned(path, disk.Owned{User: uid, Anyone: anyOwner, Most: maxTrustFile})
}

// CheckTrustFile says who else than root and the daemon's user can write a file, or put
// another one in its place; nil is nobody.
func CheckTrustFile(path string) error {
	_, err := readTrustFile(path, os.Geteuid(), false)
	return err
}
