package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/disk"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
)

// A handback is a Compose project that goes on from what gitring runs of an app:
// the commit's files, the host's values, and what only gitring knew: where data and
// volumes are, which images run, what the networks are called.
type handback struct {
	app     *ring.App
	tree    fs.FS
	root    string // of what is written, in the tree
	project manifest.Project
	more    map[string][]byte // besides the tree's, by path below the project's folder
	notes   []string
	by      map[string]ring.Composing // by service
	// anew are the services whose containers a plain docker compose up makes anew, each
	// with why.
	anew map[string]string
	// plain are the encrypted files of the commit that the app uses, opened, by path; nil
	// where it uses none.
	plain map[string][]byte
	// provided are the values that providers of the host said, by the names of variables.
	provided map[string]string
	// fronts reports whether some of its services have a front.
	fronts bool
}

// beside is the name of the Compose file that says what only gitring knew.
const besideFile = "compose.gitring.yaml"

// leftDir is where an app is handed back to when nobody says where.
func (d *Daemon) leftDir(app string) string { return filepath.Join(d.cfg.State, "left", app) }

func (d *Daemon) handback(ctx context.Context, w *reconcile.World, app *ring.App, withSecrets bool) (*handback, error) {
	f := d.follower(app.Source)
	if f == nil {
		return nil, api.Conflicting("put the source back into the configuration", "cannot leave: source %s of app %s is not followed", app.Source, app.Name)
	}
	c, err := d.commit(ctx, f, string(app.Commit))
	if err != nil {
		return nil, err
	}
	values, err := d.env.read()
	if err != nil {
		return nil, err
	}
	all := f.asked(c, values)
	project, ok := all.Projects[app.Name]
	if !ok {
		return nil, api.Conflicting("gitring validate says what is wrong", "cannot leave: commit %s, read with the configuration of today, has no app %s that can be carried out", app.Commit.Short(), app.Name)
	}
	h := &handback{
		app: app, tree: c.Tree, root: path.Clean(f.cfg.Path), project: project, more: map[string][]byte{},
		by: composing(w, app, d.cfg.DataRoot),
	}
	if need := d.needSecrets(app); len(need) > 0 && !withSecrets {
		return nil, api.Conflicting("the flag --with-secrets writes what they hold into the folder, for its owner alone",
			"cannot leave: %s of app %s need encrypted files, which Compose does not open", strings.Join(need, ", "), app.Name)
	}
	if h.plain, err = d.secrets.plainOf(app, c.Tree); err != nil {
		return nil, err
	}
	if h.provided, err = d.secrets.providedTo(app, all.Plan.Asks[app.Name]); err != nil {
		return nil, err
	}
	if f.alone(c, values, &all, app) {
		h.root = app.Path
	}
	fronts, err := d.composedFronts(w, app.Name)
	if err != nil {
		return nil, err
	}
	h.fronts = len(fronts) > 0
	below, err := composeBeside(app, h.by, reconcile.Networks(*w, app), fronts)
	if err != nil {
		return nil, err
	}
	have, err := d.engine.Composed(ctx, app.Name, h.images())
	if err != nil {
		return nil, err
	}
	h.anew = madeAnew(app, h.by, have)
	h.more[besideFile] = below
	shared := map[string][]byte{} // by path inside the commit
	for name, body := range values.shared[app.Source] {
		shared[path.Join(f.cfg.Path, name)] = body
	}
	h.more[".env"] = h.env(shared, values.files[app.Name], d.cfg.Interpolation)
	if h.root != app.Path {
		h.addShared(shared)
	}
	for name, body := range values.files[app.Name] {
		if _, err := fs.Stat(c.Tree, path.Join(app.Path, name)); name != ".env" && errors.Is(err, fs.ErrNotExist) {
			h.more[name] = body
		}
	}
	if own, ok := h.commitsEnv(); ok {
		h.more[ring.LeftEnv] = own
	}
	h.more["README.gitring.md"] = h.readme()
	h.note()
	return h, nil
}

// alone reports whether an app is read the same where nothing of the commit is there
// but its own folder: then that is all that Compose needs.
func (f *follower) alone(c *ring.Commit, v HostValues, all *manifest.Reading, app *ring.App) bool {
	only := *c
	v.shared = nil // it lies above the app
	only.Tree = folderOnly{c.Tree, path.Clean(app.Path), path.Join(f.cfg.Path, "gitring.yaml")}
	r := f.asked(&only, v)
	whole, _ := all.Plan.App(app.Name)
	part, ok := r.Plan.App(app.Name)
	return ok && ring.WrittenApp(whole) == ring.WrittenApp(part)
}

// folderOnly is a tree in which one folder, what leads to it and one file are there.
type folderOnly struct {
	fs.FS
	folder, file string
}

// Open finds nothing of what is not of the folder.
func (t folderOnly) Open(name string) (fs.File, error) {
	in := t.folder == "." || name == t.folder || strings.HasPrefix(name, t.folder+"/")
	leads := name == "." || strings.HasPrefix(t.folder, name+"/") || strings.HasPrefix(t.file, name+"/")
	if !in && !leads && name != t.file {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return t.FS.Open(name)
}

// composeBeside is the Compose file with what only gitring knew. What it says of a
// service is what App.ComposeHash takes it to say.
func composeBeside(app *ring.App, by map[string]ring.Composing, networks map[string]string, fronts map[string]map[string]any) ([]byte, error) {
	type m = map[string]any
	services, volumes, nets := m{}, m{}, m{}
	for i := range app.Services {
		s := &app.Services[i]
		says := m{}
		if image := s.HandedImage(by[s.Name]); image != "" {
			says["image"] = image
		}
		mounts := app.Handed(s, by[s.Name])
		for i, x := range mounts {
			if x.Type == "volume" {
				volumes[x.Source] = m{"external": true, "name": ring.VolumeName(app.Name, x.Source)}
			}
			// Compose replaces variables in this file too.
			mounts[i].Source, mounts[i].Target = strings.ReplaceAll(x.Source, "$", "$$"), strings.ReplaceAll(x.Target, "$", "$$")
		}
		if len(mounts) > 0 {
			says["volumes"] = mounts
		}
		if files := s.HandedEnvFiles(); len(files) > 0 {
			list, err := inPlaceOf(files)
			if err != nil {
				return nil, err
			}
			says["env_file"] = list
		}
		maps.Copy(says, fronts[s.Name])
		if len(says) > 0 {
			services[s.Name] = says
		}
	}
	for _, v := range app.Volumes {
		if v.From != "" && v.Name != "" { // Compose knows no from:, and would begin with an empty one
			volumes[v.Key] = m{"name": v.Name}
		}
	}
	for _, n := range app.Networks {
		if name := networks[n.Key]; n.External == "" && name != "" {
			nets[n.Key] = m{"name": name}
		}
	}
	out := m{}
	for key, part := range map[string]m{"services": services, "volumes": volumes, "networks": nets} {
		if len(part) > 0 {
			out[key] = part
		}
	}
	var b bytes.Buffer
	b.WriteString("# What gitring knew of this app beside its Compose files: which images run, where its data is.\n" +
		"# Merged after them by COMPOSE_FILE in .env. A line that you want to change yourself, take out here.\n")
	if len(out) == 0 {
		b.WriteString("services: {}\n")
		return b.Bytes(), nil
	}
	y := yaml.NewEncoder(&b)
	y.SetIndent(2)
	err := errors.Join(y.Encode(out), y.Close())
	return b.Bytes(), err
}

// read is a file of the commit, opened where it is an encrypted one of the app.
func (h *handback) read(p string) ([]byte, error) {
	if plain, ok := h.plain[p]; ok {
		return plain, nil
	}
	return fs.ReadFile(h.tree, p)
}

// commitsEnv is the commit's .env where a service takes it by env_file.
func (h *handback) commitsEnv() ([]byte, bool) {
	taken := slices.ContainsFunc(h.app.Services, func(s ring.Service) bool { return len(s.HandedEnvFiles()) > 0 })
	own, err := h.read(path.Join(h.app.Path, ".env"))
	return own, taken && err == nil
}

// inPlaceOf is a list that Compose takes instead of an earlier file's, not besides.
func inPlaceOf(list any) (*yaml.Node, error) {
	var n yaml.Node
	if err := n.Encode(list); err != nil {
		return nil, err
	}
	n.Tag = "!override"
	return &n, nil
}

// env is the project's .env: the values of the commit and the host in the order in
// which they win, and how Compose is to read the project. The host's come twice,
// because the commit's may refer to them, and they win.
func (h *handback) env(shared, host map[string][]byte, interpolation map[string]string) []byte {
	var b bytes.Buffer
	add := func(title string, body []byte) {
		if len(body) > 0 {
			fmt.Fprintf(&b, "# %s\n%s\n", title, bytes.TrimRight(body, "\n"))
		}
	}
	commits := func(name string) []byte {
		body, err := h.read(path.Join(h.app.Path, name))
		if err != nil {
			return host[name]
		}
		return body
	}
	for _, dir := range foldersAbove(h.app.Path) {
		add("the host's env folder, for all apps", shared[path.Join(dir, ".env")])
	}
	add("the host's env folder", host[".env"])
	if own, err := h.read(path.Join(h.app.Path, ".env")); err == nil {
		add(".env of the commit", own)
	}
	add("providers of secrets", quotedLines(h.provided))
	if len(h.provided) > 0 || h.hasOwnEnv() {
		add("the host's env folder, which wins", host[".env"])
	}
	for _, name := range h.project.EnvFiles {
		add(name, commits(name))
	}
	add("interpolation of gitring's configuration", quotedLines(interpolation))
	files := append(slices.Clone(h.project.Files), besideFile)
	compose := fmt.Sprintf("COMPOSE_PROJECT_NAME=%s\nCOMPOSE_PATH_SEPARATOR=:\nCOMPOSE_FILE=%s\nCOMPOSE_PROFILES=%s\n", h.app.Name, strings.Join(files, ":"), strings.Join(h.project.Profiles, ","))
	add("how Compose reads this project", []byte(compose))
	return b.Bytes()
}

// hasOwnEnv reports whether the commit has a .env for the app.
func (h *handback) hasOwnEnv() bool {
	_, err := h.read(path.Join(h.app.Path, ".env"))
	return err == nil
}

// quotedLines are variables as lines in which nothing is replaced.
func quotedLines(of map[string]string) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&b, "%s='%s'\n", name, strings.ReplaceAll(of[name], "'", `\'`))
	}
	return b.Bytes()
}

// foldersAbove are the folders that a path lies in, the outermost first.
func foldersAbove(p string) (dirs []string) {
	for p = path.Clean(p); p != "."; {
		p = path.Dir(p)
		dirs = append(dirs, p)
	}
	slices.Reverse(dirs)
	return dirs
}

// addShared adds the files for all apps where the commit would hold them.
func (h *handback) addShared(shared map[string][]byte) {
	for p, body := range shared {
		if _, err := fs.Stat(h.tree, p); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if rel, err := filepath.Rel(h.app.Path, p); err == nil {
			h.more[rel] = body
		}
	}
}

// workers are the services that run for good; whole says that they are all.
func (h *handback) workers() (names []string, whole bool) {
	for i := range h.app.Services {
		if s := &h.app.Services[i]; !s.Kind.Ends() {
			names = append(names, s.Name)
		}
	}
	return names, len(names) == len(h.app.Services)
}

// base is docker compose with the options that this project takes.
func (h *handback) base() string {
	if len(h.project.Files) > 0 && path.Dir(h.project.Files[0]) != h.project.Dir {
		return "docker compose --project-directory " + h.project.Dir
	}
	return "docker compose"
}

// up is the command that changes nothing; "" where there is nothing that Compose could keep up. Without --no-recreate Compose would make
// some containers anew, and without names it would run jobs again.
func (h *handback) up() string {
	names, whole := h.workers()
	if len(names) == 0 && !whole {
		return ""
	}
	words := []string{h.base(), "up -d"}
	if len(h.anew) > 0 {
		words = append(words, "--no-recreate")
	}
	if !whole {
		words = append(append(words, "--no-deps"), names...)
	}
	return strings.Join(words, " ")
}

// command is up with its folder, "" where up is.
func (h *handback) command(dir string) string {
	if h.up() == "" {
		return ""
	}
	return "cd " + dir + " && " + h.up()
}

// onlyRuns says that nothing is to be kept up, and how one of its services is run.
func (h *handback) onlyRuns() string {
	return fmt.Sprintf("nothing of %s is left for Compose to start; %s run --rm %s runs %[3]s", h.app.Name, h.base(), h.app.Services[0].Name)
}

// note says what Compose cannot do as gitring did, and what it does once.
func (h *handback) note() {
	add := func(format string, args ...any) { h.notes = append(h.notes, fmt.Sprintf(format, args...)) }
	for i := range h.app.Services {
		s := &h.app.Services[i]
		switch {
		case s.Kind == ring.CronK:
			add("cron job %s is run by nobody any more", s.Name)
		case s.Kind == ring.JobK:
			add("job %s has run; docker compose up without names runs it again", s.Name)
		}
		perSlot := slices.ContainsFunc(h.app.Mounts(s), func(m ring.Mount) bool { return strings.Contains(m.Source, ring.SlotMark) })
		if s.Replicas > 1 && perSlot {
			add("%s has data for each of its %d instances; Compose gives that of the first to all it makes anew", s.Name, s.Replicas)
		}
	}
	if h.up() == "" {
		add("%s", h.onlyRuns())
		return
	}
	for _, line := range h.anewLines() {
		add("%s", line)
	}
	if h.fronts {
		add("%s", frontsStay)
	}
	if len(h.anew) == 0 {
		add("docker compose up changes nothing if it is Compose %s; another release may replace each container once, on the same volumes and folders: --no-recreate keeps it from that", ring.ComposeRelease)
	}
}

// anewLines are a line for each service that a plain docker compose up makes anew, and
// one for those that it stops and starts meanwhile.
func (h *handback) anewLines() []string {
	var out []string
	wait := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(h.anew)) {
		out = append(out, fmt.Sprintf("docker compose up without --no-recreate makes %s anew once, because %s", name, h.anew[name]))
		for i := range h.app.Services {
			s := &h.app.Services[i]
			if h.anew[s.Name] == "" && slices.ContainsFunc(s.DependsOn, func(d ring.Dependency) bool { return d.Service == name }) {
				wait[s.Name] = true
			}
		}
	}
	if len(wait) > 0 {
		out = append(out, "it stops meanwhile, and starts again, what depends on them: "+strings.Join(slices.Sorted(maps.Keys(wait)), ", "))
	}
	return out
}

func (h *handback) readme() []byte {
	more := "Plain `docker compose up -d` changes nothing here, if it is Compose " + ring.ComposeRelease + ": each container carries the hash that it compares. Another release of\n" +
		"Compose may compute another hash. Then it makes each container anew once; `--no-recreate` keeps it from that."
	if len(h.anew) > 0 {
		more = "Without `--no-recreate` Compose makes these anew once:\n\n- " + strings.Join(h.anewLines(), "\n- ") + "\n\n" +
			"Volumes and data folders stay the same ones, so that costs a restart and nothing else. That is so for Compose " + ring.ComposeRelease + ";\n" +
			"another release may compute another hash of each service, and make each container anew once."
	}
	if h.fronts {
		more += "\n\n" + strings.ToUpper(frontsStay[:1]) + frontsStay[1:] + "."
	}
	goesOn := "Its containers go on running; gitring keeps its hands off them until"
	todo := "To have Compose look after them without changing anything, in this folder:\n\n    " + h.up() + "\n\n" + more
	if h.up() == "" {
		goesOn, todo = "gitring keeps its hands off it until", "N"+h.onlyRuns()[1:]+", in this folder."
	}
	return fmt.Appendf(nil, `# %[1]s, handed back by gitring

This is the Compose project of app %[1]s as commit %[2]s has it. %[3]s
`+"`gitring adopt %[1]s --reason '…'`"+`.

%[4]s

`+"`"+besideFile+"`"+` says what only gitring knew, and `+"`.env`"+` holds the host's values: keep it to yourself.
`, h.app.Name, h.app.Commit.Short(), goesOn, todo)
}

// written is what a handback wrote.
type written struct {
	dir     string // all of it
	project string // where to run docker compose
}

// undo takes back what was written for an act that was not done.
func (w *written) undo() error { return os.RemoveAll(w.dir) }

// write has the project in a folder, whole or not at all. One that holds something
// is nobody's to overwrite.
func (h *handback) write(dir string) (w *written, err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, api.Conflicting("name another one with --to, or take away what is there", "cannot leave: folder %s is not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot write the project: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // what is secret in it has a mode of its own
		return nil, fmt.Errorf("cannot write the project: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".left-")
	if err != nil {
		return nil, fmt.Errorf("cannot write the project: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cannot write the project into %s: %w", dir, err), os.RemoveAll(temp))
		}
	}()
	below, err := filepath.Rel(h.root, h.app.Path)
	if err != nil {
		return nil, err
	}
	if err := h.fill(temp, below); err != nil {
		return nil, err
	}
	if err := os.Chmod(temp, 0o755); err != nil { //nolint:gosec // as above
		return nil, err
	}
	if err := os.Rename(temp, dir); err != nil { // over an empty folder
		return nil, err
	}
	return &written{dir: dir, project: filepath.Join(dir, below)}, disk.Sync(filepath.Dir(dir))
}

// fill writes the files below temp; below is the project's own folder in it.
func (h *handback) fill(temp, below string) error {
	at, err := os.OpenRoot(temp)
	if err != nil {
		return err
	}
	defer func() { _ = at.Close() }() // each file was closed with its error
	err = fs.WalkDir(h.tree, h.root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(h.root, p)
		if err != nil || rel == "." {
			return err
		}
		switch mode := e.Type(); {
		case mode.IsDir():
			return at.MkdirAll(rel, 0o755)
		case mode&fs.ModeSymlink != 0:
			target, err := fs.ReadFile(h.tree, p)
			if err != nil {
				return err
			}
			return at.Symlink(string(target), rel)
		case mode.IsRegular():
			return h.copy(at, p, rel, e)
		}
		h.notes = append(h.notes, p+" is a submodule, and not there")
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(h.more)) {
		mode := fs.FileMode(0o600) // the host's values
		if name == besideFile || strings.HasPrefix(name, "README") {
			mode = 0o644
		}
		rel := filepath.Join(below, name)
		if err := at.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
			return err
		}
		if err := put(at, rel, h.more[name], mode); err != nil {
			return err
		}
	}
	return nil
}

func (h *handback) copy(at *os.Root, p, rel string, e fs.DirEntry) error {
	body, err := h.read(p)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if _, secret := h.plain[p]; secret {
		return put(at, rel, body, 0o600)
	}
	if st, err := e.Info(); err == nil && st.Mode()&0o111 != 0 {
		mode = 0o755
	}
	return put(at, rel, body, mode)
}

// put writes one file, replacing what is there.
func put(at *os.Root, name string, body []byte, mode fs.FileMode) error {
	if err := at.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := at.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	return errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}
