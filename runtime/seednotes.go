package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gitring/gitring/disk"
)

// seedNotes are what gitring wrote into one seeded folder, in a file of their
// own: without them, what differs from the commit is taken for the app's.
type seedNotes struct {
	Path string `json:"path"` // of the folder, for people
	// Files are, by path, the hashes of what was written last, and of what was
	// about to be when we were interrupted; "" is no file.
	Files map[string][]string `json:"files"`

	file string
	lost string // why earlier notes count no more
}

func readSeedNotes(dir, folder string) (*seedNotes, error) {
	tag := sha256.Sum256([]byte(folder))
	n := &seedNotes{file: filepath.Join(dir, hex.EncodeToString(tag[:])+".json")}
	b, err := os.ReadFile(n.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if err := json.Unmarshal(b, n); err != nil {
			n.lost = fmt.Sprintf("what was written into %s is not known any more (%s: %v); what differs there from the commit is taken for the app's", folder, n.file, err)
			n.Files = nil
		}
	}
	n.Path = folder
	if n.Files == nil {
		n.Files = map[string][]string{}
	}
	return n, nil
}

// write puts the notes on disk, whole or not at all.
func (n *seedNotes) write() error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	dir := filepath.Dir(n.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp := n.file + ".new"
	out, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	if err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, n.file); err != nil {
		return err
	}
	return disk.Sync(dir)
}
