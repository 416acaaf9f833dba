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
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/ring"
)

// mostEntries and mostBytes bound what an archive may bring: one that is damaged, or is none
// of ours, shall not fill the disk.
const (
	mostEntries = 1_000_000
	mostBytes   = 16 << 30
)

// Restored is what a restore did.
type Restored struct {
	Backup Backup
	// Kept are sources whose anchor here stays, with why; Taken those whose anchor is the
	// archive's now.
	Kept, Taken []string
	// Marks are the job markers that were added.
	Marks int
	// Aside is the database that was here, under its new name; "" where there was none.
	Aside string
}

// About reads what an archive says of itself.
func About(file string) (Backup, error) {
	a, err := openArchive(file)
	if err != nil {
		return Backup{}, err
	}
	defer a.close()
	return a.about, nil
}

// Restore puts what an archive holds into the state directory dir, which Lock holds. Nothing
// is changed before the whole archive was read and its database was found whole. An anchor
// that is here stays, unless the archive's moved further and later. A job marker, a key or a
// seed that is here stays. The database that is here is kept under another name.
func Restore(ctx context.Context, dir, file, host string, now time.Time) (Restored, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Restored{}, fmt.Errorf("cannot find the state directory: %w", err)
	}
	a, err := openArchive(file)
	if err != nil {
		return Restored{}, err
	}
	defer a.close()
	done := Restored{Backup: a.about}
	if a.about.Host != host {
		return done, fmt.Errorf("cannot restore %s: it is of host %q, and this one is %q: what is trusted and which jobs ran is each host's own", file, a.about.Host, host)
	}
	tmp, err := os.MkdirTemp(dir, "restore"+tempMark)
	if err != nil {
		return done, fmt.Errorf("cannot unpack the backup: %w", err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // swept at the next start
	if err := a.unpack(tmp, stateEntry); err != nil {
		return done, fmt.Errorf("cannot unpack %s: %w", file, err)
	}
	theirs, err := checkedAnchors(ctx, tmp)
	if err != nil {
		return done, fmt.Errorf("cannot use the database of %s: %w", file, err)
	}
	// From here the archive is known to be whole. What follows is in such an order that a
	// crash in between leaves anchors as far and marks as many as before.
	if err := mergeAnchors(dir, theirs, &done); err != nil {
		return done, err
	}
	if err := addMissing(dir, tmp, &done); err != nil {
		return done, err
	}
	if done.Aside, err = setBefore(filepath.Join(dir, fileName), now); err != nil {
		return done, fmt.Errorf("cannot keep the database that is here: %w", err)
	}
	if err := place(dir, filepath.Join(tmp, fileName), filepath.Join(dir, fileName)); err != nil {
		return done, fmt.Errorf("cannot put the database in its place: %w", err)
	}
	return done, nil
}

// checkedAnchors brings the database of an unpacked archive to today's form, and returns the
// anchors of it and of the files, whichever moved further.
func checkedAnchors(ctx context.Context, tmp string) (map[string]anchorRow, error) {
	all, err := migrations()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(tmp, fileName)
	if _, err := os.Stat(file); err != nil {
		return nil, errors.New("there is none in it")
	}
	h, _, err := wholeDatabase(ctx, file, all)
	if err != nil {
		return nil, err
	}
	return furthest(&Store{dir: tmp, db: h}), h.close()
}

// furthest are the anchors of a store, of the database or the files.
func furthest(s *Store) map[string]anchorRow {
	out := map[string]anchorRow{}
	if s.db != nil {
		rows, _ := anchorsOf(s.db.r) // one that cannot be read says nothing: files and labels do
		for _, row := range rows {
			out[row.Source] = row
		}
	}
	entries, _ := os.ReadDir(filepath.Join(s.dir, "anchors"))
	for _, e := range entries {
		if row, err := s.anchorFile(e.Name()); err == nil && row.SHA != "" && row.Moves >= out[row.Source].Moves {
			out[row.Source] = row
		}
	}
	return out
}

// here are the anchors of the state directory as it is.
func here(dir string) (map[string]anchorRow, error) {
	s := &Store{dir: dir}
	file := filepath.Join(dir, fileName)
	if _, err := os.Stat(file); err == nil {
		db, raw, err := handle(file, readerQuery, 1)
		if err != nil {
			return nil, err
		}
		defer raw.Close() //nolint:errcheck // only read
		s.db = &handles{r: db, rawR: raw}
	}
	return furthest(s), nil
}

// mergeAnchors writes the file of each anchor that is to count. Where it is not the one of the
// archive's database, it has more moves, so that the next Open believes it.
func mergeAnchors(dir string, theirs map[string]anchorRow, done *Restored) error {
	ours, err := here(dir)
	if err != nil {
		return fmt.Errorf("cannot read the anchors that are here: %w", err)
	}
	for _, source := range sourcesOf(ours, theirs) {
		next, why := chosenAnchor(ours[source], theirs[source])
		next.TrustVersion = max(ours[source].TrustVersion, theirs[source].TrustVersion)
		next.Moves = max(ours[source].Moves, theirs[source].Moves)
		if next.Anchor != theirs[source].Anchor && next.Moves == theirs[source].Moves {
			next.Moves++ // or the archive's database would count
		}
		if why == "" {
			done.Taken = append(done.Taken, source)
		} else {
			done.Kept = append(done.Kept, why)
		}
		name := filepath.Join(dir, "anchors", source)
		if err := writeWhole(name, next); err != nil {
			return fmt.Errorf("cannot write the anchor file of %s: %w", source, err)
		}
		if err := errors.Join(ownedAs(dir, filepath.Dir(name)), ownedAs(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// chosenAnchor is the one of two that counts, and why it is ours; "" where it is not. Moves
// begin anew with a lost state, and a clock can be wrong: only where both agree is the
// archive's the later one.
func chosenAnchor(ours, theirs anchorRow) (anchorRow, string) {
	switch {
	case ours.SHA == "":
		return theirs, ""
	case theirs.SHA == "":
		return ours, fmt.Sprintf("source %s is not in the backup: it stays trusted up to %s", ours.Source, ours.SHA.Short())
	case ours.SHA == theirs.SHA:
		ours.Degraded = ours.Degraded || theirs.Degraded
		return ours, fmt.Sprintf("source %s stays trusted up to %s, as in the backup", ours.Source, ours.SHA.Short())
	case theirs.Moves > ours.Moves && theirs.At.After(ours.At):
		return theirs, ""
	}
	return ours, fmt.Sprintf("source %s stays trusted up to %s, and not back at %s of the backup", ours.Source, ours.SHA.Short(), theirs.SHA.Short())
}

func sourcesOf(ours, theirs map[string]anchorRow) []string {
	both := maps.Clone(ours)
	maps.Copy(both, theirs)
	return slices.Sorted(maps.Keys(both))
}

// addMissing puts what is not here yet in its place: marks of jobs, seeds and keys. What is
// here stays, since it may be newer.
func addMissing(dir, tmp string, done *Restored) error {
	for _, pattern := range savedFiles {
		if strings.HasPrefix(pattern, "anchors/") {
			continue
		}
		names, err := filepath.Glob(filepath.Join(tmp, pattern))
		if err != nil {
			return err
		}
		for _, name := range names {
			rel, err := filepath.Rel(tmp, name)
			if err != nil {
				return err
			}
			at := filepath.Join(dir, rel)
			if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := place(dir, name, at); err != nil {
				return fmt.Errorf("cannot restore %s: %w", rel, err)
			}
			if strings.HasPrefix(pattern, "jobs/") {
				done.Marks++
			}
		}
	}
	return nil
}

// place moves a file of the same disk to where it belongs, and has both on it.
func place(dir, from, to string) error {
	for p := filepath.Dir(to); p != dir; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil {
			continue
		}
		if err := makeDirs(p); err != nil {
			return err
		}
		if err := ownedAs(dir, p); err != nil {
			return err
		}
	}
	if err := errors.Join(ownedAs(dir, from), disk.Sync(from)); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(to))
}

// setBefore moves the database that is here aside, with what SQLite has beside it.
func setBefore(file string, now time.Time) (string, error) {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	aside := file + ".before-restore-" + now.UTC().Format("20060102T150405Z")
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(file+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return aside, disk.Sync(filepath.Dir(file))
}

// RestoreConfig puts the configuration of an archive back into its folder: only files that
// are not there. One that is there and differs is an error, before anything is written.
func RestoreConfig(file string) (wrote []string, err error) {
	a, err := openArchive(file)
	if err != nil {
		return nil, err
	}
	defer a.close()
	if a.about.Config == "" {
		return nil, fmt.Errorf("cannot restore the configuration: %s does not hold it; gitring backup <file> --with-config makes one that does", file)
	}
	tmp, err := os.MkdirTemp("", "gitring-config-") // 0700
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // ours alone
	if err := a.unpack(tmp, confEntry); err != nil {
		return nil, fmt.Errorf("cannot unpack %s: %w", file, err)
	}
	missing, err := notThere(tmp, a.about.Config)
	if err != nil {
		return nil, err
	}
	for _, rel := range missing {
		at := filepath.Join(a.about.Config, rel)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // as /etc has it
			return wrote, err
		}
		body, err := os.ReadFile(filepath.Join(tmp, rel))
		if err != nil {
			return wrote, err
		}
		owner := a.owners[confEntry+filepath.ToSlash(rel)]
		if err := disk.WriteWhole(at, tempMark, body, owner.mode); err != nil {
			return wrote, fmt.Errorf("cannot restore %s: %w", at, err)
		}
		if os.Geteuid() == 0 {
			if err := os.Lchown(at, owner.uid, owner.gid); err != nil {
				return wrote, err
			}
		}
		wrote = append(wrote, at)
	}
	return wrote, nil
}

// notThere are the files of one folder that another lacks.
func notThere(from, to string) (missing []string, err error) {
	err = filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		was, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		is, err := os.ReadFile(filepath.Join(to, rel))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, rel)
			return nil
		case err != nil:
			return err
		case string(is) != string(was):
			return fmt.Errorf("cannot restore %s: it is there and differs from the backup's; move it away, or leave --with-config out", filepath.Join(to, rel))
		}
		return nil
	})
	return missing, err
}

// archive is a backup that is being read.
type archive struct {
	file   *os.File
	about  Backup
	owners map[string]owner // by entry, of those that were unpacked
}

type owner struct {
	uid, gid int
	mode     fs.FileMode
}

// openArchive reads the first entry.
func openArchive(file string) (*archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the backup: %w", err)
	}
	a := &archive{file: f, owners: map[string]owner{}}
	if err := a.readAbout(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot use %s: %w", file, err), f.Close())
	}
	return a, nil
}

func (a *archive) close() { _ = a.file.Close() }

func (a *archive) readAbout() error {
	t, err := a.entries()
	if err != nil {
		return errors.New("it is no backup of gitring")
	}
	h, err := t.Next()
	if err != nil || h.Name != aboutEntry {
		return errors.New("it is no backup of gitring")
	}
	if err := json.NewDecoder(io.LimitReader(t, 1<<20)).Decode(&a.about); err != nil {
		return errors.New("it is no backup of gitring")
	}
	if a.about.Format != backupFormat {
		return fmt.Errorf("it is a backup of form %d, and this gitring (%s) reads %d: use the one that made it (%s)", a.about.Format, ring.Release, backupFormat, a.about.Gitring)
	}
	return nil
}

func (a *archive) entries() (*tar.Reader, error) {
	if _, err := a.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(a.file)
	if err != nil {
		return nil, err
	}
	return tar.NewReader(z), nil
}

// unpack writes the entries below prefix into the folder dir, and reads all others: an archive
// that broke off is an error before anything of it counts.
func (a *archive) unpack(dir, prefix string) error {
	t, err := a.entries()
	if err != nil {
		return err
	}
	left := int64(mostBytes)
	for range mostEntries {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Size > left {
			return errors.New("it holds more than a backup can")
		}
		left -= h.Size
		rel, ours := strings.CutPrefix(h.Name, prefix)
		if !ours {
			continue
		}
		if h.Typeflag != tar.TypeReg || !fs.ValidPath(rel) || rel != path.Clean(rel) || prefix == stateEntry && !isSaved(rel) {
			return fmt.Errorf("it holds %q, which no backup has", h.Name)
		}
		a.owners[h.Name] = owner{h.Uid, h.Gid, fs.FileMode(h.Mode).Perm()} //nolint:gosec // nine bits of it
		if err := writeEntry(filepath.Join(dir, filepath.FromSlash(rel)), t); err != nil {
			return err
		}
	}
	return errors.New("it holds more than a backup can")
}

func isSaved(rel string) bool {
	return rel == fileName || slices.ContainsFunc(savedFiles, func(pattern string) bool {
		fits, _ := path.Match(pattern, rel)
		return fits && !strings.Contains(rel, tempMark)
	})
}

func writeEntry(name string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r) //nolint:gosec // bounded by the header, which was held to the rest
	return errors.Join(err, f.Close())
}
