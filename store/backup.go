package store

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/gitring/gitring/disk"
)

// Backup is what an archive says of itself, in its first entry.
type Backup struct {
	Format  int       `json:"format"`
	Host    string    `json:"host"`
	Gitring string    `json:"gitring"`
	At      time.Time `json:"at"`
	// Config is the folder of the configuration, absolute, where the archive holds it.
	Config string `json:"config,omitempty"`
}

// backupFormat is that of the archives which this gitring writes and reads.
const backupFormat = 1

// Places in an archive.
const (
	aboutEntry = "gitring-backup.json"
	stateEntry = "state/"
	confEntry  = "config/"
)

// savedFiles are what is saved of a state directory besides the database. The mirrors, the
// contents and the live folders are made again from Git. Of secrets there is only what is
// encrypted, and the list of what is made of it.
var savedFiles = []string{"anchors/*", "jobs/*/*/*", "seeds/*", "ciphertext/[0-9a-f]*", "secrets.json", "env.key", "session.key"}

// archiveMark begins the name of an archive that is not whole yet.
const archiveMark = ".gitring-backup-"

// madeFile says when the last backup was made.
const madeFile = "backup.json"

// SaveTo writes an archive of the state directory dir to file, whole or not at all, mode 0600.
// gitring may run meanwhile. Where b.Config is set, that folder is in it, too. It names what
// was left out: links, and what is no file.
//
// The database comes first: anchors and marks are on disk after it or before what they speak
// of begins, so they are never older than it.
func SaveTo(ctx context.Context, dir, file string, b Backup) (leftOut []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot find the state directory: %w", err)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot write %s: it is there; move it away, or name another file", file)
	}
	copied, err := copyDatabase(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer os.Remove(copied) //nolint:errcheck // swept at the next start
	b.Format, b.At = backupFormat, b.At.UTC()
	out, err := os.CreateTemp(filepath.Dir(file), archiveMark) // 0600
	if err != nil {
		return nil, fmt.Errorf("cannot write the backup: %w", err)
	}
	leftOut, err = writeArchive(out, dir, copied, b)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(out.Name(), file)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot write the backup: %w", err), os.Remove(out.Name()))
	}
	if err := disk.Sync(filepath.Dir(file)); err != nil {
		return nil, fmt.Errorf("cannot write the backup: %w", err)
	}
	return leftOut, noteMade(dir, b.At)
}

// copyDatabase makes a consistent copy beside the database, which the caller removes.
func copyDatabase(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, fileName)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("cannot save the database: %w", err)
	}
	db, raw, err := handle(file, copierQuery, 1)
	if err != nil {
		return "", fmt.Errorf("cannot open %s: %w", file, err)
	}
	defer raw.Close() //nolint:errcheck // only read
	tmp := filepath.Join(dir, "backup"+tempMark+fmt.Sprint(os.Getpid()))
	if err := os.WriteFile(tmp, nil, 0o600); err != nil { // SQLite would make it readable to all
		return "", fmt.Errorf("cannot copy the database: %w", err)
	}
	if err := db.WithContext(ctx).Exec("VACUUM INTO ?", tmp).Error; err != nil {
		return "", errors.Join(fmt.Errorf("cannot copy the database: %w", err), os.Remove(tmp))
	}
	return tmp, nil
}

func writeArchive(out io.Writer, dir, database string, b Backup) (leftOut []string, err error) {
	z := gzip.NewWriter(out)
	t := tar.NewWriter(z)
	about, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	if err := t.WriteHeader(&tar.Header{Name: aboutEntry, Mode: 0o600, Size: int64(len(about)), ModTime: b.At}); err != nil {
		return nil, err
	}
	if _, err := t.Write(about); err != nil {
		return nil, err
	}
	if err := addFile(t, stateEntry+fileName, database); err != nil {
		return nil, err
	}
	for _, pattern := range savedFiles {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				return nil, err
			}
			if strings.Contains(rel, tempMark) {
				continue // half made
			}
			err = addFile(t, stateEntry+filepath.ToSlash(rel), name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a mark may go meanwhile
				return nil, err
			}
		}
	}
	if b.Config != "" {
		if leftOut, err = addFolder(t, b.Config, dir); err != nil {
			return nil, err
		}
	}
	return leftOut, errors.Join(t.Close(), z.Close())
}

// addFolder adds the files of the configuration's folder, but no state directory below it.
func addFolder(t *tar.Writer, folder, state string) (leftOut []string, err error) {
	err = filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, name)
		switch {
		case err != nil:
			return err
		case e.IsDir() && name == state:
			return filepath.SkipDir
		case e.IsDir(), strings.HasPrefix(e.Name(), archiveMark): // what is being written
			return nil
		case !e.Type().IsRegular():
			leftOut = append(leftOut, name)
			return nil
		}
		return addFile(t, confEntry+filepath.ToSlash(rel), name)
	})
	return leftOut, err
}

// addFile adds a regular file as it is when it is opened.
func addFile(t *tar.Writer, entry, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return nil
	}
	h := &tar.Header{Name: path.Clean(entry), Mode: int64(fi.Mode().Perm()), Size: fi.Size(), ModTime: fi.ModTime()}
	if uid, gid, ok := disk.OwnersOf(fi); ok {
		h.Uid, h.Gid = uid, gid
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(t, f, fi.Size())
	return err
}

// made is the content of madeFile.
type made struct {
	At time.Time `json:"at"`
}

// noteMade lets the daemon say how old the last backup is. The file is the daemon's, whoever
// made the backup.
func noteMade(dir string, at time.Time) error {
	name := filepath.Join(dir, madeFile)
	if err := writeWhole(name, made{at}); err != nil {
		return fmt.Errorf("cannot note when the backup was made: %w", err)
	}
	return ownedAs(dir, name)
}

// BackedUp is when the last backup of a state directory was made; zero where none is known.
func BackedUp(dir string) time.Time {
	var m made
	b, err := os.ReadFile(filepath.Join(dir, madeFile))
	if err != nil || json.Unmarshal(b, &m) != nil {
		return time.Time{}
	}
	return m.At
}

// ownedAs gives a file of ours to whom the state directory belongs: root may have made it.
func ownedAs(dir, name string) error {
	fi, err := os.Stat(dir)
	if err != nil {
		return err
	}
	uid, gid, ok := disk.OwnersOf(fi)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(name, uid, gid)
}
