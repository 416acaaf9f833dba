package api

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// What a folder that is sent for a plan may hold. A commit's own limits
// (docs/design/trust.md#limits) apply to what is read of it.
const (
	treeFiles = 100_000
	treeBytes = 256 << 20
)

// pack zips a folder for POST /v1/plan into at most limit bytes: regular files
// and symlinks, which are not followed. ".git" is left out, and so is what is
// neither.
func pack(tree fs.FS, limit int) ([]byte, error) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && path != "." {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() && d.Type() != fs.ModeSymlink {
			return nil
		}
		if buf.Len() > limit {
			return tooLarge(limit)
		}
		return packFile(z, tree, path, d)
	})
	if err == nil {
		err = z.Close()
	}
	if err == nil && buf.Len() > limit {
		err = tooLarge(limit)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot plan by the daemon: %w", err)
	}
	return buf.Bytes(), nil
}

// ErrFolderTooLarge is of a folder that is too large to be sent to the daemon.
var ErrFolderTooLarge = errors.New("the folder is too large to be sent")

func tooLarge(limit int) error {
	return fmt.Errorf("%w: it is larger than %d MiB zipped", ErrFolderTooLarge, limit>>20)
}

func packFile(z *zip.Writer, tree fs.FS, path string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &zip.FileHeader{Name: path, Method: zip.Deflate}
	h.SetMode(info.Mode())
	w, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	if d.Type() == fs.ModeSymlink {
		to, err := linkTarget(tree, path)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, to)
		return err
	}
	f, err := tree.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	_, err = io.Copy(w, f)
	return err
}

// linkTarget reads a link of a real folder, or of a commit's tree, where the
// content is the target.
func linkTarget(tree fs.FS, path string) (string, error) {
	if l, ok := tree.(fs.ReadLinkFS); ok {
		return l.ReadLink(path)
	}
	b, err := fs.ReadFile(tree, path)
	return string(b), err
}

// unpack is the folder as a file system that reads the zip; nothing is written.
// All files together may have limit bytes.
func unpack(r io.Reader, limit uint64) (fs.FS, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, Usage("", "cannot read the folder")
	}
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, Usage("send a zip, or name a commit with rev", "cannot read the folder: it is no zip")
	}
	if len(z.File) > treeFiles {
		return nil, Usage("", "the folder has more than %d files", treeFiles)
	}
	var total uint64
	for _, f := range z.File {
		if !fs.ValidPath(strings.TrimSuffix(f.Name, "/")) || strings.Contains(f.Name, `\`) {
			return nil, Usage("", "the folder holds a name that is no path inside it")
		}
		if t := f.Mode().Type(); t != 0 && t != fs.ModeDir && t != fs.ModeSymlink {
			return nil, Usage("", "the folder holds %q, which is no file, folder or link", f.Name)
		}
		if f.UncompressedSize64 > limit { // before the sum, which could wrap around
			return nil, Usage("", "the folder is larger than %d MiB", limit>>20)
		}
		if total += f.UncompressedSize64; total > limit {
			return nil, Usage("", "the folder is larger than %d MiB", limit>>20)
		}
	}
	return z, nil
}
