package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/gitsync"
)

// mostFolders bounds a folder that is read as a commit and lies in no clone: a home folder
// or a whole disk is not what was meant.
const mostFolders = 5_000

var errTooMany = errors.New("too many folders")

// openFolder opens a folder that is read as if it were a commit; the caller closes it.
func openFolder(dir string) (*gitsync.FolderTree, error) {
	tree, err := gitsync.OpenFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", dir, err)
	}
	if isInClone(dir) || !isWide(tree) {
		return tree, nil
	}
	_ = tree.Close()
	return nil, &exit.Failure{
		Code: exit.Usage,
		Says: fmt.Sprintf("%s is in no clone, and has more than %d folders below it: it is not read as a commit", dir, mostFolders),
		Hint: "name the folder of the repository: gitring validate <dir>; a large one that is meant is read after git init in it",
	}
}

// isInClone reports whether a folder or one above it is the top folder of a clone.
func isInClone(dir string) bool {
	at, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	for ; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// isWide reports whether more than mostFolders are searched below a folder.
func isWide(tree fs.FS) bool {
	n := 0
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // who reads it tells
		}
		if !d.IsDir() {
			return nil
		}
		if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if n++; n > mostFolders {
			return errTooMany
		}
		return nil
	})
	return errors.Is(err, errTooMany)
}
