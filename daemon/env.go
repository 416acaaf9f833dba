package daemon

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// Limits of the env folder: far above what people keep there.
const (
	MaxEnvFile  = 1 << 20
	MaxEnvFiles = 64 // of one app
	maxEnvDepth = 24 // apps lie 16 folders deep at most, and name files in folders of their own
)

// envFolder is the host's env folder, for all sources. Its values go to the
// engine and into contents; everywhere else stands what seals them.
type envFolder struct {
	dir           string // "" is none
	key           []byte
	interpolation map[string]string
	user          fileUser // nil is self

	mu   sync.Mutex                        // guards what follows
	last map[string]map[ring.Sealed]string // by app: the values of was
	was  map[string]map[string][]byte      // by app: the files that last is of
	told map[string]string                 // what is wrong, by app; "" is the folder
	seen HostValues                        // what the last look found, without the files
}

// HostValues are the files of the env folder as they were at one moment.
type HostValues struct {
	files map[string]map[string][]byte // by app, then by path below its folder
	// shared are those for all apps of a source, by source, then by path below its path.
	shared map[string]map[string][]byte
	// bad are the apps whose folder breaks the rules, which are refused. Under
	// manifest.SharedEnv of a source it is all apps of the source.
	bad map[string]*ring.Refusal
	// print changes when anything of this does.
	print string
	// stamps are of all that was read, by path, as it was at that moment.
	stamps map[string]disk.Stamp
	at     time.Time
}

// newEnvFolder makes sure of the key. Without a dir there is nothing to seal.
func newEnvFolder(c *config.Config) (*envFolder, error) {
	e := &envFolder{dir: c.Env.Dir, interpolation: c.Interpolation}
	var err error
	switch {
	case c.Engine.Swarm():
		e.key, err = ClusterKey(c)
	case e.dir != "" || c.Secrets.Used():
		e.key, err = envKey(hostKeyFile(c))
	}
	return e, err
}

// EnvKeySize is that of the key of the keyed hashes: as long as the hash.
const EnvKeySize = 32

// envKey reads the key, and makes it when it is not there: whole, on disk, and
// never anew over one that is there, because every version of a service that
// uses a value of the host's is made with it.
func envKey(file string) ([]byte, error) {
	key, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeEnvKey(file)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the key of the env folder: %w", err)
	}
	if len(key) != EnvKeySize {
		return nil, &ring.HostError{
			Says: fmt.Sprintf("%s is no key: it has %d bytes and not %d", file, len(key), EnvKeySize),
			Hint: "restore it; if it is lost remove it, and every service that uses a value of env.dir is rolled once",
		}
	}
	return key, nil
}

func makeEnvKey(file string) ([]byte, error) {
	key := make([]byte, EnvKeySize)
	_, _ = rand.Read(key) // never fails
	if err := disk.WriteWhole(file, "tmp-env-key-", key, 0o600); err != nil {
		return nil, fmt.Errorf("cannot make the key of the env folder: %w", err)
	}
	return key, nil
}

// read is what the folder holds now. An error is about the folder itself: then
// nothing is known of any app, which is not the same as no values.
func (e *envFolder) read() (HostValues, error) {
	v := HostValues{
		files: map[string]map[string][]byte{}, shared: map[string]map[string][]byte{}, bad: map[string]*ring.Refusal{},
		stamps: map[string]disk.Stamp{}, at: time.Now(),
	}
	if e.dir == "" {
		return v, nil
	}
	root, err := os.OpenRoot(e.dir)
	if err != nil {
		return v, &ring.HostError{
			Says: fmt.Sprintf("cannot read env.dir: %v", err),
			Hint: fmt.Sprintf("mkdir -m 0700 %s; a folder for each app goes into it", e.dir),
		}
	}
	defer root.Close()
	if st, err := root.Stat("."); err != nil {
		return v, fmt.Errorf("cannot read env.dir: %w", err)
	} else if r := e.loose(st, e.dir); r != nil {
		return v, &ring.HostError{Says: "env.dir: " + r.Says, Hint: r.Hint}
	} else {
		v.stamp(".", st)
	}
	apps, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return v, fmt.Errorf("cannot read env.dir: %w", err)
	}
	for _, app := range apps {
		if app.Type().IsRegular() {
			continue // no app's: a note, an editor's copy
		}
		if app.Name() == manifest.SharedFolder {
			if err := e.readShared(root, &v); err != nil {
				return v, err
			}
			continue
		}
		files, refusal := e.app(root, app.Name(), v.stamp)
		if refusal != nil {
			v.bad[app.Name()] = refusal
			continue
		}
		v.files[app.Name()] = files
	}
	v.print = v.fingerprint()
	return v, nil
}

// readShared reads what all apps of a source may use.
func (e *envFolder) readShared(root *os.Root, v *HostValues) error {
	full := filepath.Join(e.dir, manifest.SharedFolder)
	st, err := root.Lstat(manifest.SharedFolder)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", full, err)
	}
	if !st.IsDir() {
		return &ring.HostError{Says: full + " is no folder", Hint: "make it one; links are not followed"}
	}
	if r := e.loose(st, full); r != nil {
		return &ring.HostError{Says: r.Says, Hint: r.Hint}
	}
	v.stamp(manifest.SharedFolder, st)
	sources, err := fs.ReadDir(root.FS(), manifest.SharedFolder)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", full, err)
	}
	for _, source := range sources {
		if source.Type().IsRegular() {
			continue
		}
		folder := manifest.SharedEnv(source.Name())
		files, refusal := e.app(root, folder, v.stamp)
		if refusal != nil {
			v.bad[folder] = refusal
			continue
		}
		v.shared[source.Name()] = files
	}
	return nil
}

// readAndTell is read, and tells what is wrong once.
func (e *envFolder) readAndTell(log *slog.Logger) (HostValues, error) {
	v, err := e.read()
	wrong := map[string]string{}
	if err != nil {
		wrong[""] = err.Error()
	}
	for app, r := range v.bad {
		wrong[app] = r.Says + "; " + r.Hint
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, app := range slices.Sorted(maps.Keys(wrong)) {
		if e.told[app] != wrong[app] {
			log.Warn("cannot use the host's values", "app", app, "reason", wrong[app])
		}
	}
	e.told = wrong
	e.seen = HostValues{}
	if len(wrong) == 0 {
		e.seen = HostValues{print: v.print, stamps: v.stamps, at: v.at}
	}
	return v, err
}

// look is the print of what the folder holds now. Where nothing in it was touched since the last
// read, no file of it is opened.
func (e *envFolder) look(log *slog.Logger, now time.Time) (print string, err error) {
	e.mu.Lock()
	seen := e.seen
	e.mu.Unlock()
	if seen.still(e.dir, now) {
		return seen.print, nil
	}
	v, err := e.readAndTell(log)
	return v.print, err
}

// readAgain is how old what was read may be. A read-only image that is mounted in the place of another
// one may have the same stamps.
const readAgain = 10 * time.Minute

// still reports whether all that was read is as it was. Who adds or removes a file changes the
// stamp of its folder.
func (v HostValues) still(dir string, now time.Time) bool {
	if age := now.Round(0).Sub(v.at.Round(0)); age < 0 || age > readAgain { // by the clock on the wall, as stamps are
		return false
	}
	for name, was := range v.stamps {
		stat := os.Lstat
		if name == "." {
			stat = os.Stat // env.dir itself may be a link
		}
		st, err := stat(filepath.Join(dir, name))
		if err != nil {
			return false
		}
		if is, ok := disk.StampOf(st); !ok || is != was || !was.Settled(v.at) {
			return false
		}
	}
	return len(v.stamps) > 0
}

// stamp remembers what a file or folder was when it was read.
func (v HostValues) stamp(name string, st fs.FileInfo) { v.stamps[name], _ = disk.StampOf(st) }

func (v HostValues) fingerprint() string {
	all := sha256.New()
	add := func(folder string, files map[string][]byte) {
		for _, file := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(all, "%q %q %x\n", folder, file, sha256.Sum256(files[file]))
		}
	}
	for _, app := range slices.Sorted(maps.Keys(v.files)) {
		add(app, v.files[app])
	}
	for _, source := range slices.Sorted(maps.Keys(v.shared)) {
		add(manifest.SharedEnv(source), v.shared[source])
	}
	for _, app := range slices.Sorted(maps.Keys(v.bad)) {
		fmt.Fprintf(all, "%q %q\n", app, v.bad[app].Says)
	}
	return hex.EncodeToString(all.Sum(nil))
}

// app reads the folder of one app, or says why it is not used. It hands on the state of each file
// and folder that it read.
func (e *envFolder) app(root *os.Root, app string, read func(name string, st fs.FileInfo)) (map[string][]byte, *ring.Refusal) {
	files, err := e.walk(root, app, read)
	for range 2 {
		// Editors put a new file over the old one: a name that is gone is looked for again.
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		files, err = e.walk(root, app, read)
	}
	if err == nil {
		return files, nil
	}
	var refusal *ring.Refusal
	if !errors.As(err, &refusal) {
		refusal = &ring.Refusal{
			File: "<env.dir>/" + app, Says: fmt.Sprintf("%s cannot be read: %v", filepath.Join(e.dir, app), err),
			Hint: "it is for gitring's own user to read, mostly root",
		}
	}
	refusal.Code, refusal.App = ring.BadValue, app
	return nil, refusal
}

// unstamped is for those who read and do not look again.
func unstamped(string, fs.FileInfo) {}

// walk is what the folder of an app holds; a *ring.Refusal for what breaks the rules.
func (e *envFolder) walk(root *os.Root, app string, read func(string, fs.FileInfo)) (map[string][]byte, error) {
	files := map[string][]byte{}
	st, err := root.Lstat(app)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, &ring.Refusal{File: "<env.dir>/" + app, Says: filepath.Join(e.dir, app) + " is no folder", Hint: "make it one; links are not followed"}
	}
	err = fs.WalkDir(root.FS(), app, func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		body, err := e.file(root, p, entry, read)
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(app, p)
		files[rel] = body
		if len(files) > MaxEnvFiles {
			return &ring.Refusal{
				File: "<env.dir>/" + app, Says: fmt.Sprintf("%s holds more than %d files", filepath.Join(e.dir, app), MaxEnvFiles),
				Hint: "keep only values there",
			}
		}
		return err
	})
	return files, err
}

// file reads one entry; a folder is only judged.
func (e *envFolder) file(root *os.Root, p string, entry fs.DirEntry, read func(string, fs.FileInfo)) ([]byte, error) {
	full := filepath.Join(e.dir, p)
	no := func(says, hint string) ([]byte, error) {
		return nil, &ring.Refusal{File: "<env.dir>/" + p, Says: full + " " + says, Hint: hint}
	}
	switch {
	case !entry.IsDir() && !entry.Type().IsRegular():
		return no("is no regular file", "put a file there; links are not followed")
	case entry.IsDir() && depth(strings.TrimPrefix(p, manifest.SharedFolder+"/")) > maxEnvDepth:
		return no("lies too deep", fmt.Sprintf("at most %d folders below env.dir", maxEnvDepth))
	}
	// O_NONBLOCK: whatever took the file's place meanwhile holds nobody up.
	f, err := root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if r := e.loose(st, full); r != nil {
		r.File = "<env.dir>/" + p
		return nil, r
	}
	read(p, st)
	if entry.IsDir() {
		return nil, nil
	}
	if !st.Mode().IsRegular() {
		return no("is no regular file", "put a file there; links are not followed")
	}
	body, err := io.ReadAll(io.LimitReader(f, MaxEnvFile+1))
	if len(body) > MaxEnvFile {
		return no("is larger than 1 MiB", "keep only values there")
	}
	return body, err
}

func depth(p string) int {
	n := 0
	for ; p != "." && p != ""; p = path.Dir(p) {
		n++
	}
	return n
}

// loose says why a file or folder is not safe: somebody else may read the one,
// or put things into the other.
func (e *envFolder) loose(st fs.FileInfo, full string) *ring.Refusal {
	user := fileUser(self)
	if e.user != nil {
		user = e.user
	}
	uid, _, ok := disk.OwnersOf(st)
	if ok && uid != 0 && uid != user(full) {
		return &ring.Refusal{Says: fmt.Sprintf("%s belongs to user %d", full, uid), Hint: fmt.Sprintf("chown root %s, or, where gitring serve runs as that user, ask as it: sudo -u '#%d' gitring …", full, uid)}
	}
	mode := st.Mode().Perm()
	switch {
	case st.IsDir() && mode&0o022 != 0:
		return &ring.Refusal{Says: fmt.Sprintf("others may write into %s (mode %04o)", full, mode), Hint: "chmod 700 " + full}
	case !st.IsDir() && mode&0o077 != 0:
		return &ring.Refusal{Says: fmt.Sprintf("%s is open to others (mode %04o)", full, mode), Hint: "chmod 600 " + full}
	}
	return nil
}

// open is the value that stands behind s, from the files as they are now.
func (e *envFolder) open(s ring.Sealed) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.From != ring.FromEnvFolder {
		return "", fmt.Errorf("%s of %s is no value of the host's env folder, and this release opens no other", s.Name, s.File)
	}
	if e.dir == "" {
		return "", fmt.Errorf("%s is a value of the host's env folder, and env.dir is not configured any more", e.named(s))
	}
	root, err := os.OpenRoot(e.dir)
	if err != nil {
		return "", fmt.Errorf("cannot read env.dir: %w", err)
	}
	defer root.Close()
	files, refusal := e.app(root, s.App, unstamped)
	if refusal != nil {
		return "", fmt.Errorf("cannot use %s: %s; %s", e.named(s), refusal.Says, refusal.Hint)
	}
	if !maps.EqualFunc(files, e.was[s.App], bytes.Equal) || e.last[s.App] == nil {
		values, refusal := manifest.Seal(s.App, files, e.key, e.interpolation)
		if refusal != nil {
			return "", fmt.Errorf("cannot use %s: %w; %s", e.named(s), refusal, refusal.Hint)
		}
		if e.last == nil {
			e.last, e.was = map[string]map[ring.Sealed]string{}, map[string]map[string][]byte{}
		}
		e.last[s.App], e.was[s.App] = values, files
	}
	value, ok := e.last[s.App][s]
	if !ok {
		return "", fmt.Errorf("%s is not what it was when this version was read, so it cannot be made again; put the old value back, or go on to a newer version", e.named(s))
	}
	return value, nil
}

// values are all values of an app's folder, by what they are, with what people
// call them: they are struck out of logs that are kept.
func (e *envFolder) values(app string) (map[string]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string]string{}
	if e.dir == "" {
		return out, nil
	}
	root, err := os.OpenRoot(e.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read env.dir: %w", err)
	}
	defer root.Close()
	for _, folder := range append([]string{app}, sharedIn(root)...) {
		if _, err := root.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		files, refusal := e.app(root, folder, unstamped)
		if refusal != nil {
			return nil, refusal
		}
		sealed, refusal := manifest.Seal(folder, files, e.key, e.interpolation)
		if refusal != nil {
			return nil, refusal
		}
		for s, value := range sealed {
			out[value] = cmp.Or(s.Name, s.File)
		}
	}
	return out, nil
}

// changedSince reports whether anything in the folders of an app was changed after a moment, or
// nobody can tell.
func (e *envFolder) changedSince(app string, at time.Time) bool {
	if e.dir == "" {
		return false
	}
	root, err := os.OpenRoot(e.dir)
	if err != nil {
		return true
	}
	defer root.Close()
	top, err := root.Stat(".")
	changed := err != nil || top.ModTime().After(at) // an app's folder came or went
	for _, folder := range append([]string{app}, sharedIn(root)...) {
		err := fs.WalkDir(root.FS(), folder, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := entry.Info()
			changed = changed || err == nil && st.ModTime().After(at)
			return err
		})
		changed = changed || err != nil && !errors.Is(err, fs.ErrNotExist)
	}
	return changed
}

// sharedIn are the folders for all apps of a source.
func sharedIn(root *os.Root) (folders []string) {
	sources, err := fs.ReadDir(root.FS(), manifest.SharedFolder)
	if err != nil {
		return nil // most hosts have none
	}
	for _, source := range sources {
		if !source.Type().IsRegular() {
			folders = append(folders, manifest.SharedEnv(source.Name()))
		}
	}
	return folders
}

// named is how people call a sealed value: by variable and file.
func (e *envFolder) named(s ring.Sealed) string {
	file := filepath.Join(e.dir, s.App, s.File)
	if s.Name == "" {
		return "file " + file
	}
	return s.Name + " of " + file
}

// apply puts the refusals of bad folders into a plan that was read without
// them, and takes a data root that is the host's for what it is.
func (v HostValues) apply(plan *ring.Plan, dataRoot string) {
	for i := range plan.Apps {
		if plan.Apps[i].DataRoot == dataRoot {
			plan.Apps[i].DataRoot = "" // the same folder, so the same app
		}
	}
	for name, app := range plan.Claims {
		if app.DataRoot == dataRoot {
			app.DataRoot = ""
			plan.Claims[name] = app
		}
	}
	for _, app := range v.badApps(plan) {
		read, ok := plan.App(app)
		if _, refused := plan.Refused[app]; !ok && !refused {
			continue // no app of this source
		}
		r := *cmp.Or(v.bad[app], v.bad[manifest.SharedEnv(plan.Source)])
		r.Commit, r.App = plan.Commit, app
		plan.Apps = slices.DeleteFunc(plan.Apps, func(a ring.App) bool { return a.Name == app })
		plan.Refuse(app, &r, read)
	}
}

// badApps are the apps whose values cannot be used: all of a source for what they share.
func (v HostValues) badApps(plan *ring.Plan) []string {
	if v.bad[manifest.SharedEnv(plan.Source)] == nil {
		return slices.Sorted(maps.Keys(v.bad))
	}
	all := map[string]bool{}
	for _, a := range plan.Apps {
		all[a.Name] = true
	}
	for name := range plan.Refused {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// refusals are all, with those of bad folders instead of what else is wrong with
// their apps: it may be wrong only because the values are missing.
func (v HostValues) refusals(plan *ring.Plan, all []*ring.Refusal) []*ring.Refusal {
	bad := v.badApps(plan)
	all = slices.DeleteFunc(all, func(r *ring.Refusal) bool { return slices.Contains(bad, r.App) })
	for _, app := range bad {
		if r := plan.Refused[app]; r != nil {
			all = append(all, r)
		}
	}
	return admission.ByPlace(all)
}

// Settings are what a plan of a source depends on, with the host's values.
func (v HostValues) Settings(s manifest.Settings, key []byte) manifest.Settings {
	s.Env, s.EnvKey, s.Shared = v.files, key, v.shared[s.Source]
	return s
}

// ValuesOf are the host's values for those who do not serve. What they read is
// shown and forgotten, so any key will do, and the state is left alone.
func ValuesOf(c *config.Config) (HostValues, []byte, error) {
	e := &envFolder{dir: c.Env.Dir, interpolation: c.Interpolation}
	v, err := e.read()
	if err != nil || e.dir == "" {
		return v, nil, err
	}
	for _, app := range slices.Sorted(maps.Keys(v.bad)) {
		return v, nil, &ring.HostError{Says: v.bad[app].Says, Hint: v.bad[app].Hint}
	}
	key := make([]byte, EnvKeySize)
	_, _ = rand.Read(key) // never fails
	return v, key, nil
}
