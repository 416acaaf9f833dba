package setup

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// Compose files ask for values that no commit should hold. Where the apps ran from this
// clone under Compose, those lie beside them in files that Git does not hold: init offers
// to copy them to where the daemon looks.

const (
	envName   = "env" // the folder, beside the configuration
	envRounds = 4     // a variable may be asked for once others are set
)

// hostFile is a file of the clone that Git does not hold and that an app reads.
type hostFile struct {
	from string // below the clone
	to   string // below the env folder
	body []byte
}

// example is a file of the commit that shows what an app's .env has to set.
type example struct {
	app  string
	from string // below the clone
	body []byte
}

// exampleNames are how people call such a file.
var exampleNames = []string{".env.example", ".env.sample", ".env.template", ".env.dist", "example.env", "env.example", "sample.env", "env.sample"}

// examplesOf are those of apps, the first name that is there in each folder. What is large
// is none.
func examplesOf(tree fs.FS, folders map[string]string) (found []example) {
	for _, app := range slices.Sorted(maps.Keys(folders)) {
		for _, name := range exampleNames {
			from := path.Join(folders[app], name)
			if st, err := fs.Stat(tree, from); err != nil || !st.Mode().IsRegular() || st.Size() > daemon.MaxEnvFile {
				continue
			}
			if body, err := fs.ReadFile(tree, from); err == nil {
				found = append(found, example{app, from, body})
				break
			}
		}
	}
	return found
}

// values finds what lies beside the apps, asks whether it may be copied, and gives the
// settings as they are then.
func (in *Setup) values(c *ring.Commit, settings manifest.Settings) (manifest.Settings, error) {
	found, with, asked, err := in.hostFiles(c, settings)
	if err != nil {
		return settings, err
	}
	dir := filepath.Join(filepath.Dir(in.Result.Config), envName)
	switch {
	case in.there != nil && in.there.Env.Dir != "":
		in.Result.Env = in.there.Env.Dir
	case len(found) > 0, asked && (in.there == nil || in.options.Force):
		in.Result.Env = dir
	}
	for _, f := range found {
		in.Result.EnvFiles = append(in.Result.EnvFiles, f.from)
	}
	take := in.options.EnvFiles
	if !take && in.asks() && len(found) > 0 {
		in.Notice("files that Git does not hold, and the apps read: %s", someOf(in.Result.EnvFiles))
		if take, err = in.person.Confirm(fmt.Sprintf("copy %s to %s, for gitring alone to read?", wording.Counted(len(found), "file"), in.Result.Env)); err != nil {
			return settings, err
		}
	}
	if !take || len(found) == 0 {
		return settings, nil
	}
	in.hostValues, in.Result.EnvFiles = found, nil
	return with, nil
}

// hostFiles are the files of the clone that the apps would be given, the settings with
// them, and whether the apps ask for anything that only the host can say.
func (in *Setup) hostFiles(c *ring.Commit, s manifest.Settings) (found []hostFile, with manifest.Settings, asked bool, err error) {
	root, err := os.OpenRoot(in.Dir)
	if err != nil {
		return nil, s, false, fmt.Errorf("cannot read the clone: %w", err)
	}
	defer func() { _ = root.Close() }()
	with = s
	with.Env, with.Shared = map[string]map[string][]byte{}, maps.Clone(s.Shared)
	for app, files := range s.Env {
		with.Env[app] = maps.Clone(files)
	}
	if with.Shared == nil {
		with.Shared = map[string][]byte{}
	}
	if with.EnvKey == nil {
		with.EnvKey = make([]byte, daemon.EnvKeySize) // what is read is shown and forgotten
		_, _ = rand.Read(with.EnvKey)                 // never fails
	}
	add := func(from, to, sets string) bool {
		app, rest, _ := strings.Cut(to, "/")
		files := with.Env[app]
		if app == manifest.SharedFolder {
			_, rest, _ = strings.Cut(rest, "/")
			files = with.Shared
		}
		if files[rest] != nil || len(files) >= daemon.MaxEnvFiles {
			return false
		}
		if _, err := fs.Stat(c.Tree, from); err == nil {
			return false // the commit has it
		}
		body := ownFile(root, from)
		if body == nil || sets != "" && !setsVariable(body, sets) {
			return false
		}
		if files == nil {
			files = map[string][]byte{}
			with.Env[app] = files
		}
		files[rest] = body
		found = append(found, hostFile{from, to, body})
		return true
	}
	folders := manifest.Folders(c, s)
	in.examples = examplesOf(c.Tree, folders)
	for _, app := range slices.Sorted(maps.Keys(folders)) { // Compose reads it, whatever the app asks for
		add(path.Join(folders[app], ".env"), app+"/.env", "")
	}
	for range envRounds {
		r, more := manifest.Look(c, with), false
		for _, refusal := range r.Refusals {
			for _, place := range refusal.Answers {
				if place == "" {
					continue
				}
				asked = true
				from, sets := hostFileOf(place, folders, s, refusal)
				more = from != "" && add(from, place, sets) || more
			}
		}
		if !more {
			break
		}
	}
	return found, with, asked || len(found) > 0, nil
}

// hostFileOf is the file of the clone for a place in the env folder, "" where it is none;
// and the variable that it has to set to be what is asked for.
func hostFileOf(place string, folders map[string]string, s manifest.Settings, r *ring.Refusal) (from, sets string) {
	app, rest, _ := strings.Cut(place, "/")
	if folder, ok := folders[app]; ok {
		return path.Join(folder, rest), ""
	}
	rest, shared := strings.CutPrefix(place, manifest.SharedEnv(s.Source)+"/")
	if !shared {
		return "", ""
	}
	return path.Join(s.Path, rest), r.Variable // Compose reads such a file only when it is told to
}

func setsVariable(body []byte, name string) bool {
	return regexp.MustCompile(`(?m)^\s*(export\s+)?` + name + `\s*=`).Match(body)
}

// ownFile is a file of the clone as far as it can be one of the env folder; nil where it is
// none. No link leads out of the clone.
func ownFile(root *os.Root, name string) []byte {
	st, err := root.Lstat(filepath.FromSlash(name))
	if err != nil || !st.Mode().IsRegular() || st.Size() > daemon.MaxEnvFile {
		return nil
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	body, err := io.ReadAll(io.LimitReader(f, daemon.MaxEnvFile))
	if err != nil {
		return nil
	}
	return append([]byte{}, body...)
}

// someOf names the first of many.
func someOf(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}

// envConfig is how the configuration names the env folder.
func (in *Setup) envConfig() string {
	rel, err := filepath.Rel(filepath.Dir(in.Result.Config), in.Result.Env)
	if err != nil || !filepath.IsLocal(rel) {
		return in.Result.Env
	}
	return rel
}

// putValues makes the env folder and what goes into it. What is there stays.
func (in *Setup) putValues() error {
	if in.Result.Env == "" {
		return nil
	}
	_, err := os.Lstat(in.Result.Env)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(in.Result.Env, 0o700); err != nil {
		return fmt.Errorf("cannot make the env folder: %w", err)
	}
	if made {
		in.Result.Undo = append(in.Result.Undo, "rm -r "+pasteable(in.Result.Env))
		in.Result.Wrote = append(in.Result.Wrote, in.Result.Env+"/")
		// Where it lies inside a clone, git add keeps away from it.
		if err := writeNew(filepath.Join(in.Result.Env, ".gitignore"), []byte("*\n")); err != nil {
			return fmt.Errorf("cannot make the env folder: %w", err)
		}
	}
	for _, f := range in.hostValues {
		file := filepath.Join(in.Result.Env, filepath.FromSlash(f.to))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("cannot make the env folder: %w", err)
		}
		err := writeNew(file, f.body)
		if errors.Is(err, fs.ErrExist) {
			in.Notice("%s is there and stays as it is", file)
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot copy %s: %w", f.from, err)
		}
		if !made {
			in.Result.Undo = append(in.Result.Undo, "rm "+pasteable(file))
		}
		in.Result.Wrote = append(in.Result.Wrote, file)
	}
	return nil
}

// writeNew writes a file that only its owner reads, and none over another.
func writeNew(file string, body []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	return errors.Join(err, f.Sync(), f.Close())
}

// nextOfValues is what is left to do about values that Git does not hold.
func (in *Setup) nextOfValues(add func(string, ...any)) {
	if n := len(in.Result.EnvFiles); n > 0 {
		add("%s here that Git does not hold, and the apps read (%s): %s copies them to %s", wording.Counted(n, "file"), someOf(in.Result.EnvFiles), in.again("gitring init --env-files"), pasteable(in.Result.Env))
	}
	wanting := slices.ContainsFunc(in.Result.Plan.Refusals, func(r *ring.Refusal) bool { return r.Answers[0] != "" })
	switch {
	case !wanting:
	case in.Result.Env == "":
		add("a place for values that Git does not hold: %s, and env: {dir: %s} in %s", commandf("mkdir -m 0700 %s", pasteable(filepath.Join(filepath.Dir(in.Result.Config), envName))), envName, pasteable(in.Result.Config))
	default:
		where := "one folder for each app"
		if shared := in.sharedValues(); shared != "" {
			where += ", those of several apps once into " + pasteable(filepath.Join(in.Result.Env, shared))
		}
		add("values that Git does not hold go below %s, %s; each file with chmod 600", pasteable(in.Result.Env), where)
		if of := in.neededExamples(); len(of) > 0 {
			copies := commandf("install -D -m 600 %s %s", pasteable(filepath.Join(in.Dir, of[0].from)), pasteable(filepath.Join(in.Result.Env, of[0].app, ".env")))
			if len(of) == 1 {
				add("the repository has an example of such a file: %s copies it, to be edited there", copies)
			} else {
				add("the repository has examples of such files, for %d apps: %s copies the first, to be edited there", len(of), copies)
			}
		}
	}
}

// neededExamples are those that set a variable which their app lacks.
func (in *Setup) neededExamples() (of []example) {
	for _, x := range in.examples {
		if slices.ContainsFunc(in.Result.Plan.Refusals, func(r *ring.Refusal) bool {
			return r.App == x.app && r.Variable != "" && setsVariable(x.body, r.Variable)
		}) {
			of = append(of, x)
		}
	}
	return of
}

// sharedValues is the file below the env folder that sets a variable which several apps lack,
// for all of them; "" where each lacks its own.
func (in *Setup) sharedValues() string {
	first := map[string]*ring.Refusal{}
	for _, r := range in.Result.Plan.Refusals {
		if r.Variable == "" || r.Answers[1] == "" {
			continue
		}
		if other, there := first[r.Variable]; there && other.App != r.App {
			return r.Answers[1]
		}
		first[r.Variable] = r
	}
	return ""
}
