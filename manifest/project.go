package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// lookAhead are the variables that the commit itself says, as far as they can be
// read: the app's name and files are decided by them, and only by its name are
// the host's own found.
func (a *appReader) lookAhead() *variables {
	v := newVariables(a.over(), &budget{left: a.limits.Expanded, text: a.limits.Text})
	v.lenient = true
	a.sharedNames(v)
	take := func(p string) {
		if a.tree.real(p).kind != regular {
			return
		}
		body, ok, f := a.tree.manifest(p, place{})
		if ok && f == nil && !a.encrypted(body) { // an encrypted one may not steer Compose
			v.envFile(p, body) // what is wrong with it is told when it is read for good
		}
	}
	take(path.Join(a.from.path, dotEnv))
	for _, w := range a.envFiles() {
		if p := path.Join(a.from.path, w.text); !path.IsAbs(w.text) && a.inside(p) {
			take(p)
		}
	}
	v.lenient = false
	return v
}

// over are the configuration's values, which win over all.
func (a *appReader) over() map[string]value {
	out := saidAll(a.settings.Interpolation)
	for name, val := range out {
		if strings.Contains(val.plain, ring.SealMark) {
			delete(out, name) // nobody writes a sealed value by hand
		}
	}
	return out
}

func (a *appReader) envFiles() []written {
	if a.from.entry == nil {
		return nil
	}
	return a.from.entry.envFiles
}

// own sets a variable that nothing wins over.
func (v *variables) own(name, text string) {
	delete(v.over, name)
	v.set(name, said(text), place{})
}

// control is a variable by which Compose itself is steered: what the app's
// files say, never the configuration, which is every app's.
func (v *variables) control(name string) (string, place) {
	return v.values[name].plain, v.places[name]
}

// composeFileOf takes the files that COMPOSE_FILE names in the commit's .env,
// unless gitring.yaml names them. As in Compose there is no override then, and
// relative paths start at the folder of the first.
func (a *appReader) composeFileOf(v *variables) {
	if v.values["COMPOSE_FILE"].lost && (a.from.entry == nil || len(a.from.entry.files) == 0) {
		a.from.files = nil // which they are is told with the line
		return
	}
	list, at := v.control("COMPOSE_FILE")
	if list == "" {
		a.faults.put(a.from.without)
	}
	if list == "" || a.from.entry != nil && len(a.from.entry.files) > 0 {
		return
	}
	a.namesAnother(at.file)
	before := len(a.faults.list)
	separator, _ := v.control("COMPOSE_PATH_SEPARATOR")
	a.from.files, a.from.filesAt, a.from.notes = nil, at, nil
	for name := range strings.SplitSeq(list, or2(separator, ":")) {
		if name == "" {
			continue
		}
		if p, ok := a.inCommit(a.from.path, name, at); ok {
			a.from.files = append(a.from.files, p)
		}
	}
	if len(a.from.files) == 0 {
		if len(a.faults.list) == before {
			a.faults.add(ring.BadValue, at, "name a Compose file of the commit, or remove the line", "COMPOSE_FILE names no file")
		}
		return
	}
	if a.base = path.Dir(a.from.files[0]); a.base != a.from.path {
		a.from.unnamed = normalName(path.Base(a.base))
		if a.from.name == "" {
			a.name = a.from.unnamed
		}
	}
	a.note("the Compose files are those of COMPOSE_FILE: %s", strings.Join(a.from.files, ", "))
}

// decideName takes the name of gitring.yaml; else, in Compose's order,
// COMPOSE_PROJECT_NAME, the Compose file's, the folder's. broken is the name in a
// file that is no YAML.
func (a *appReader) decideName(broken string, ahead *variables) {
	if len(a.from.files) > 0 {
		a.nameAt = place{file: a.from.files[0], line: 1}
	}
	if a.from.name != "" {
		a.nameAt = a.from.entry.place
		return
	}
	if broken != "" {
		a.name = broken
	}
	if !a.nameOfFile(ahead) {
		return
	}
	a.projectName(ahead)
	if written := path.Base(a.base); a.name == a.from.unnamed && a.name == normalName(written) && a.name != written {
		a.note("the app is called %s, as Compose makes it of the folder's name %s", a.name, head(written))
	}
	if !appName.MatchString(a.name) {
		a.faults.put(badName(a.name, a.nameAt))
		a.name, a.nameLost = a.from.unnamed, true
	}
	if !ahead.known(projectVariable) {
		a.nameLost = true
	}
}

// nameOfFile takes the name: that the last file says, its variables replaced, and reports
// whether it could be read. One that comes to nothing is none.
func (a *appReader) nameOfFile(ahead *variables) bool {
	var n *node
	for _, f := range a.mains {
		if said := f.root.get("name"); !said.null() {
			n = said
		}
	}
	if n == nil {
		return true
	}
	if _, set := ahead.value(projectVariable); !set {
		defer func() { delete(ahead.values, projectVariable) }()
		ahead.set(projectVariable, said(""), n.place) // it is what the name is asked for
	}
	text, faults := ahead.replace(n.text, n.place)
	if faults != nil {
		for _, f := range faults {
			a.faults.put(a.unnamedBy(f))
		}
		a.nameLost = true
		return false
	}
	a.namedBy = n.text
	if text.plain == "" {
		a.note("name: %s in the Compose file comes to nothing: the app is called %s by its folder, as Compose 2.29 did, where later ones refuse it", head(n.text), a.name)
		return true
	}
	a.name, a.nameAt = normalName(text.plain), n.place
	return true
}

// unnamedBy is the fault of a variable in name: that nothing sets. The app's own folder in
// the host's env folder goes by the name, so it has no answer.
func (a *appReader) unnamedBy(f *fault) *fault {
	switch {
	case f.variable == "":
		return f
	case a.sharedTorn: // which is told
		return untold
	}
	out := *f
	out.says += ", and it names the app"
	out.hint = fmt.Sprintf("name the app with name: in gitring.yaml, or write ${%s:-a-name}, or set %s in .env of the commit, in %s on the host, or in the configuration's interpolation",
		f.variable, f.variable, a.shared.where(dotEnv))
	out.answers = [2]string{a.shared.path(dotEnv)}
	return &out
}

// projectName lets COMPOSE_PROJECT_NAME win, as it does in Compose: under that
// name the app's volumes are there already.
func (a *appReader) projectName(v *variables) {
	name, at := v.control(projectVariable)
	if name == "" || name == a.name {
		return
	}
	if slices.ContainsFunc(a.mains, func(f composeFile) bool { return !f.root.get("name").null() }) {
		a.note("the app is called %s by COMPOSE_PROJECT_NAME, which wins over name: in the Compose file as it does in Compose", name)
	}
	a.name, a.nameAt = name, at
}

// projectVariable names a Compose project, before its files do.
const projectVariable = "COMPOSE_PROJECT_NAME"

// openHost finds the app's folder in the host's env folder, by the name that the
// commit gives the app.
//
// Without a name there is none: under another one the values are of another app.
func (a *appReader) openHost() {
	if a.nameLost {
		a.host = &hostEnv{app: a.name, key: a.settings.EnvKey, limit: a.limits}
		return
	}
	a.host = a.hostEnvOf(a.name, a.settings.Env[a.name])
}

// hostEnvOf is a folder of the host's env folder, or what a plan says of it.
func (a *appReader) hostEnvOf(folder string, files map[string][]byte) *hostEnv {
	h := &hostEnv{app: folder, files: files, key: a.settings.EnvKey, over: a.over(), limit: a.limits}
	if known := a.settings.Sealed; known != nil {
		h.known = known[folder]
		if h.known == nil {
			h.known = map[string]map[string]SealedValue{}
		}
		h.files = filesOf(h.known)
	}
	return h
}

// renameByHost lets the host's .env name the app, where gitring.yaml does not. Nobody else may
// by now: the values of the folder of one app would be those of another.
func (a *appReader) renameByHost() {
	if _, says := a.host.files[dotEnv]; !says || a.from.name != "" {
		return
	}
	name, at := a.vars.control(projectVariable)
	if of, _ := a.host.variables(dotEnv, false); name != "" && name != a.name && name != of[projectVariable] {
		a.faults.add(ring.BadValue, at, "write the name itself, with name: in gitring.yaml or in the Compose file",
			"COMPOSE_PROJECT_NAME is made of values that the host has for the app, and they are found by its name")
		a.nameLost = true
		return
	}
	a.projectName(a.vars)
	if !appName.MatchString(a.name) {
		a.faults.put(badName(a.name, a.nameAt))
		a.name, a.nameLost = a.host.app, true
	}
}

// variables are those of the commit and the host. The later wins: .env of the host's
// shared env folder, from the outermost folder to that around the app; .env of the
// commit, x-gitring.secrets, .env of the app's own env folder, env_files of gitring.yaml, the
// configuration's interpolation. The commit's .env may refer to the host's.
func (a *appReader) variables() *variables {
	v := newVariables(a.over(), a.budget)
	v.unsure = a.nameLost && len(a.settings.Env)+len(a.settings.Shared) > 0
	host := newVariables(nil, a.budget)
	if _, ok := a.host.files[dotEnv]; ok {
		a.standIn(host, a.host, dotEnv, false)
	}
	a.sharedVariables(v)
	v.unsure = v.unsure || host.unsure
	p := path.Join(a.from.path, dotEnv)
	if body, ok, f := a.envManifest(p, place{}); f != nil {
		a.dotEnvOfHost(v, p, f)
	} else if ok {
		own := v.over
		v.over = maps.Clone(host.values)
		maps.Copy(v.over, own)
		a.faults.putAll(a.commitEnv(v, p, body, false))
		v.over = own
	}
	a.providedVariables(v)
	a.noteShadowed(v, host)
	maps.Copy(v.values, host.values)
	maps.Copy(v.places, host.places)
	for _, w := range a.envFiles() {
		a.envFileAt(v, w.text, w.place, false)
	}
	a.steered(v)
	return v
}

// steered refuses a secret in a variable by which Compose itself is steered.
func (a *appReader) steered(v *variables) {
	for _, name := range sortedKeys(v.values) {
		if s, is := secretIn(v.values[name].sealed); is && strings.HasPrefix(name, "COMPOSE_") {
			a.secretPlace(v.places[name], name, s)
			v.lose(name, v.places[name])
		}
	}
}

// sharedVariables sets those of each .env of the host's shared env folder in a folder
// above the app. Those by which Compose itself is steered are one app's, and left out.
func (a *appReader) sharedVariables(v *variables) {
	for _, file := range a.sharedAbove() {
		a.sharedFile(v, file)
	}
}

// sharedAbove are the files of variables in the host's shared env folder that hold for the
// app, the outermost first. The one at the top holds for all apps, also for one that lies there.
func (a *appReader) sharedAbove() (files []string) {
	for dir, top := a.below(a.from.path), false; !top; {
		dir = path.Dir(dir)
		top = dir == "."
		if file := path.Join(dir, dotEnv); a.shared.files[file] != nil {
			files = append(files, file)
		}
	}
	slices.Reverse(files)
	return files
}

// sharedNames sets the variables of the host's shared env folder for a look ahead. What is
// wrong with its files is told when they are read for good.
func (a *appReader) sharedNames(v *variables) {
	for _, file := range a.sharedAbove() {
		of, faults := a.shared.variables(file, false)
		a.sharedTorn = a.sharedTorn || faults != nil
		for name, plain := range of {
			if !steersCompose(name) {
				v.set(name, a.shared.value(file, name, plain), place{file: a.shared.where(file)})
			}
		}
	}
}

// steersCompose reports whether Compose itself is steered by a variable, which is one app's.
func steersCompose(name string) bool { return strings.HasPrefix(name, "COMPOSE_") }

func (a *appReader) sharedFile(v *variables, file string) {
	of := newVariables(nil, a.budget)
	a.standIn(of, a.shared, file, false)
	v.unsure = v.unsure || of.unsure
	for name, val := range of.values {
		if !steersCompose(name) {
			v.set(name, val, of.places[name])
		}
	}
}

// envManifest is an env file of the commit. One that is a symlink to what only a host can
// have, or that git-crypt encrypts, is refused with the place for it in the host's env folder.
func (a *appReader) envManifest(p string, at place) (body []byte, ok bool, _ *fault) {
	body, ok, f := a.tree.manifest(p, at)
	if !hostsOwn(f) {
		return body, ok, f
	}
	if at.file == "" {
		at = f.place
	}
	if f.code == ring.SecretForm {
		return nil, false, a.gitCryptOfHost(f, p)
	}
	r := a.tree.real(p)
	says := fmt.Sprintf("symlink %s %s", r.link, r.why)
	if r.lost {
		says = fmt.Sprintf("the commit does not hold %s, to which %s is a symlink", r.path, r.link)
	} else {
		r.path = p
	}
	f = a.elsewhere(at, r.path, "commit the file itself", says)
	f.code = ring.SymlinkInManifest
	return nil, false, f
}

// hostsOwn reports whether an env file is refused that the host may have in its place.
func hostsOwn(f *fault) bool {
	return f != nil && (f.code == ring.SymlinkInManifest || f.code == ring.SecretForm)
}

// dotEnvOfHost takes what the host has in place of the app's .env, which the commit does not
// hold in a form that can be read; f refuses it where the host has nothing.
func (a *appReader) dotEnvOfHost(v *variables, p string, f *fault) {
	if hostsOwn(f) {
		if _, held := a.host.files[dotEnv]; held {
			a.noteOnce(f.says + "; " + a.host.where(dotEnv) + " on the host has the values")
			return
		}
		if host, file, held := a.hostFile(a.tree.real(p).path); held {
			if host == a.shared {
				a.sharedFile(v, file)
			} else {
				a.standIn(v, host, file, false)
			}
			return
		}
	}
	a.faults.put(f)
	v.unsure = true
}

// commitEnv reads an env file of the commit.
func (a *appReader) commitEnv(v *variables, p string, body []byte, raw bool) []*fault {
	if a.encrypted(body) {
		return a.secretEnv(v, a.tree.real(p).path, body, raw)
	}
	if i := bytes.Index(body, []byte(ring.SealMark)); i >= 0 {
		v.unsure = true
		return []*fault{markFault(place{file: p, line: 1 + bytes.Count(body[:i], []byte("\n"))})}
	}
	if raw {
		return v.rawEnvFile(p, body)
	}
	faults := v.envFile(p, body)
	for _, b := range v.bare {
		a.noteOnce(leftOut(b.name, fmt.Sprintf("%s:%d", b.at.file, b.at.line)))
	}
	return faults
}

// standIn sets the variables of a file of the host's env folder, sealed.
func (a *appReader) standIn(v *variables, host *hostEnv, file string, raw bool) {
	of, faults := host.variables(file, raw)
	a.faults.putAll(faults)
	v.unsure = v.unsure || faults != nil
	for name, plain := range of {
		a.hidden[hiddenValue{name, plain}] = true
		a.plain[host.sealed(file, name, plain)] = plain
		v.set(name, host.value(file, name, plain), place{file: host.where(file)})
	}
}

// hostFile is the file of the host's env folder that stands in for p, a path inside the
// commit: of the app's own folder there, or, above the app, of that for all apps.
func (a *appReader) hostFile(p string) (host *hostEnv, file string, held bool) {
	host, file = a.host, p
	if a.from.path != "." {
		var below bool
		if file, below = strings.CutPrefix(p, a.from.path+"/"); !below {
			host, file = a.shared, a.below(p)
		}
	}
	_, held = host.files[file]
	return host, file, held
}

// elsewhere refuses that the commit does not hold p, a path inside it, which the host may
// keep.
func (a *appReader) elsewhere(at place, p, hint, says string) *fault {
	host, file, _ := a.hostFile(p)
	return &fault{
		code: ring.BadValue, place: at, says: says, hint: hint + ", or put it into the host's env folder as " + host.where(file),
		answers: [2]string{host.path(file)},
	}
}

// gitCryptOfHost refuses a file that git-crypt encrypts, with its place on the host.
func (a *appReader) gitCryptOfHost(f *fault, p string) *fault {
	out := a.elsewhere(f.place, p, f.hint, f.says)
	out.code = f.code
	return out
}

// envFileAt reads an env file that a manifest names relative to the app's folder:
// of the commit, or the host's where the commit does not hold it. The app's own
// .env is both. One that is nowhere is refused.
func (a *appReader) envFileAt(v *variables, name string, at place, raw bool) {
	if path.IsAbs(name) {
		a.hostEnvFile(v, name, at, raw)
		return
	}
	p, ok := a.inCommit(a.from.path, name, at)
	if ok && a.readEnvFile(v, p, at, raw) {
		return
	}
	v.unsure = true
	if !ok {
		return
	}
	a.faults.put(a.elsewhere(at, p, "add the file, correct its name", "the commit does not hold "+p))
}

// hostEnvFile reads an env file that a manifest names by its path on the host. Nothing of
// the host is read by a commit's word: what the file says has to lie in the env folder.
func (a *appReader) hostEnvFile(v *variables, name string, at place, raw bool) {
	file := strings.TrimPrefix(path.Clean(name), "/")
	if _, held := a.shared.files[file]; held {
		a.standIn(v, a.shared, file, raw)
		return
	}
	v.unsure = true
	f := outside(name, at)
	f.hint = "name a file of the commit, or put that file into the host's env folder as " + a.shared.where(file)
	a.faults.put(f)
}

func (a *appReader) readEnvFile(v *variables, p string, at place, raw bool) (found bool) {
	body, ok, f := a.envManifest(p, at)
	host, file, held := a.hostFile(p)
	if hostsOwn(f) && !held {
		host, file, held = a.hostFile(a.tree.real(p).path)
	}
	if f != nil && (!hostsOwn(f) || !held) {
		a.faults.put(f)
		v.unsure = true
		return true
	}
	if ok {
		a.faults.putAll(a.commitEnv(v, p, body, raw))
	}
	if held && (!ok || host == a.host && file == dotEnv) {
		a.standIn(v, host, file, raw)
	}
	return ok || held
}

// profiles are those of gitring.yaml and of COMPOSE_PROFILES.
func (a *appReader) profiles() []string {
	var out []string
	if a.from.entry != nil {
		out = slices.Clone(a.from.entry.profiles)
	}
	of, _ := a.vars.control("COMPOSE_PROFILES")
	for p := range strings.SplitSeq(of, ",") {
		if p = strings.TrimSpace(p); p != "" && !contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
