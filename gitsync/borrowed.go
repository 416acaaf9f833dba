package gitsync

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// Bounds of what a repository borrows. The depth is git's own.
const (
	borrowDepth = 5
	borrowMost  = 100
)

// borrowedFolders are the folders of objects that one of a repository names in its
// info/alternates (git clone --shared or --reference), and those that they name in turn, in
// git's order. A folder counts once, so a circle ends where it closes. gaps say what is not
// read, and why.
func borrowedFolders(objects string) (folders, gaps []string) {
	objects = filepath.Clean(objects)
	seen := map[string]bool{objects: true}
	var follow func(from string, depth int)
	follow = func(from string, depth int) {
		named := filepath.Join(from, "info", "alternates")
		body, err := readBounded(named, 64<<10)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		if err != nil {
			gaps = append(gaps, fmt.Sprintf("%s is not read: %v", named, err))
			return
		}
		if depth > borrowDepth {
			gaps = append(gaps, fmt.Sprintf("what %s names is more than %d folders away, as far as git goes", named, borrowDepth+1))
			return
		}
		for line := range strings.Lines(string(body)) {
			folder, ok := alternate(from, strings.TrimRight(line, "\n"))
			if !ok || seen[folder] {
				continue
			}
			info, err := os.Stat(folder)
			switch {
			case err != nil || !info.IsDir():
				gaps = append(gaps, fmt.Sprintf("%s, which %s names, is not there", folder, named))
				continue
			case len(folders) == borrowMost:
				gaps = append(gaps, fmt.Sprintf("more than %d folders of objects are named", borrowMost))
				return
			}
			seen[folder] = true
			folders = append(folders, folder)
			follow(folder, depth+1)
		}
	}
	follow(objects, 0)
	return folders, gaps
}

// alternate is the folder that one line of info/alternates names: a comment names none, and
// a path that is not absolute starts at the folder of objects, where a link to it leads.
func alternate(from, line string) (string, bool) {
	if line == "" || strings.HasPrefix(line, "#") {
		return "", false
	}
	if strings.HasPrefix(line, `"`) {
		if plain, err := strconv.Unquote(line); err == nil {
			line = plain
		}
	}
	if !filepath.IsAbs(line) {
		if real, err := filepath.EvalSymlinks(from); err == nil {
			from = real
		}
		line = filepath.Join(from, line)
	}
	return filepath.Clean(line), true
}

// objectsOf is the folder of objects of a repository that the library has opened.
func objectsOf(dot billy.Filesystem) string {
	root := dot.Root()
	if b, err := readBounded(filepath.Join(root, "commondir"), 64<<10); err == nil { // a linked work tree
		common := strings.TrimRight(string(b), "\r\n")
		if !filepath.IsAbs(common) {
			common = filepath.Join(root, common)
		}
		root = common
	}
	return filepath.Join(root, "objects")
}

// storage is a repository with the objects that it borrows. The library follows one step,
// by absolute path, and one that leads back to itself for ever.
type storage struct {
	*filesystem.Storage
	borrowed []*filesystem.ObjectStorage
	gaps     []string
}

// storageOf reads what the library has opened.
func storageOf(repo *git.Repository, options filesystem.Options) (*storage, error) {
	found, ok := repo.Storer.(*filesystem.Storage)
	if !ok {
		return nil, errors.New("it is not kept in files")
	}
	objects := cache.NewObjectLRU(objectCache)
	folders, gaps := borrowedFolders(objectsOf(found.Filesystem()))
	s := &storage{gaps: gaps, Storage: filesystem.NewStorageWithOptions(ownOnly{found.Filesystem()}, objects, options)}
	for _, folder := range folders {
		s.borrowed = append(s.borrowed, filesystem.NewObjectStorageWithOptions(dotgit.New(ownOnly{objectsOnly{osfs.New(folder)}}), objects, options))
	}
	return s, nil
}

// EncodedObject is the repository's own object, or a borrowed one.
func (s *storage) EncodedObject(kind plumbing.ObjectType, sha plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := s.Storage.EncodedObject(kind, sha)
	for i := 0; i < len(s.borrowed) && errors.Is(err, plumbing.ErrObjectNotFound); i++ {
		o, err = s.borrowed[i].EncodedObject(kind, sha)
	}
	return o, err
}

// EncodedObjectSize is the size of an own or borrowed object.
func (s *storage) EncodedObjectSize(sha plumbing.Hash) (int64, error) {
	n, err := s.Storage.EncodedObjectSize(sha)
	for i := 0; i < len(s.borrowed) && errors.Is(err, plumbing.ErrObjectNotFound); i++ {
		n, err = s.borrowed[i].EncodedObjectSize(sha)
	}
	return n, err
}

// HasEncodedObject is nil for an own or borrowed object.
func (s *storage) HasEncodedObject(sha plumbing.Hash) error {
	err := s.Storage.HasEncodedObject(sha)
	for i := 0; i < len(s.borrowed) && errors.Is(err, plumbing.ErrObjectNotFound); i++ {
		err = s.borrowed[i].HasEncodedObject(sha)
	}
	return err
}

// HashesWithPrefix are the own and borrowed objects whose ids begin so, each once.
func (s *storage) HashesWithPrefix(prefix []byte) ([]plumbing.Hash, error) {
	all, err := s.Storage.HashesWithPrefix(prefix)
	for i := 0; i < len(s.borrowed) && err == nil; i++ {
		var more []plumbing.Hash
		more, err = s.borrowed[i].HashesWithPrefix(prefix)
		for _, sha := range more {
			if !slices.Contains(all, sha) {
				all = append(all, sha)
			}
		}
	}
	return all, err
}

// Close lets go of what is open.
func (s *storage) Close() error {
	err := s.Storage.Close()
	for _, b := range s.borrowed {
		err = errors.Join(err, b.Close())
	}
	return err
}

// lacking is why an object may be missing: what should be read besides, and is not.
func (s *storage) lacking() string { return strings.Join(s.gaps, "; ") }

// ownOnly hides what a repository borrows from the library.
type ownOnly struct{ billy.Filesystem }

func (a ownOnly) Open(name string) (billy.File, error) {
	if filepath.Clean(name) == filepath.Join("objects", "info", "alternates") {
		return nil, os.ErrNotExist
	}
	return a.Filesystem.Open(name)
}

// objectsOnly is a folder of objects, by whatever name, as the library looks for it in a
// repository. It is only read.
type objectsOnly struct{ billy.Filesystem }

func (objectsOnly) inside(name string) string {
	if name = strings.TrimPrefix(filepath.Clean(name), "objects"); name == "" {
		return "."
	}
	return strings.TrimPrefix(name, "/")
}

func (o objectsOnly) Open(name string) (billy.File, error) { return o.Filesystem.Open(o.inside(name)) }

func (o objectsOnly) Stat(name string) (os.FileInfo, error) { return o.Filesystem.Stat(o.inside(name)) }

func (o objectsOnly) ReadDir(name string) ([]os.FileInfo, error) {
	return o.Filesystem.ReadDir(o.inside(name))
}
