package admission

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// textTree is a tree of files in memory.
type textTree map[string]string

// Open gives a file, or a folder that holds one.
func (t textTree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if body, ok := t[name]; ok {
		return &textFile{textInfo{path.Base(name), int64(len(body)), 0o644}, strings.NewReader(body), nil}, nil
	}
	entries := t.below(name)
	if len(entries) == 0 && name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &textFile{textInfo{path.Base(name), 0, fs.ModeDir | 0o755}, strings.NewReader(""), entries}, nil
}

func (t textTree) below(dir string) []fs.DirEntry {
	by := map[string]fs.DirEntry{}
	for name, body := range t {
		rest, ok := strings.CutPrefix(name, dir+"/")
		if dir == "." {
			rest, ok = name, true
		}
		if !ok {
			continue
		}
		if first, _, deeper := strings.Cut(rest, "/"); deeper {
			by[first] = fs.FileInfoToDirEntry(textInfo{first, 0, fs.ModeDir | 0o755})
		} else {
			by[first] = fs.FileInfoToDirEntry(textInfo{first, int64(len(body)), 0o644})
		}
	}
	var out []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[name])
	}
	return out
}

type textFile struct {
	info textInfo
	*strings.Reader
	entries []fs.DirEntry
}

func (f *textFile) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *textFile) Close() error { return nil }

func (f *textFile) ReadDir(n int) ([]fs.DirEntry, error) {
	out := f.entries
	if n > 0 && len(out) > n {
		out = out[:n]
	}
	f.entries = f.entries[len(out):]
	return out, nil
}

type textInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i textInfo) Name() string { return i.name }

func (i textInfo) Size() int64 { return i.size }

func (i textInfo) Mode() fs.FileMode { return i.mode }

func (i textInfo) ModTime() time.Time { return time.Time{} }

func (i textInfo) IsDir() bool { return i.mode.IsDir() }

func (i textInfo) Sys() any { return nil }
