package main

import (
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	variableSays = regexp.MustCompile(`^variable (\S+) is (?:not set|required)`)
	missingHint  = regexp.MustCompile(`as <env\.dir>/(\S+)$`)
	namesTheApp  = regexp.MustCompile(`in <env\.dir>/(\S+/\.env) on the host, or in the configuration`)
	missingSays  = regexp.MustCompile(`^the commit does not hold ([^ ,]+)`)
	reference    = regexp.MustCompile(`\$(?:\{\w+\}|\w+)`)
	assignment   = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)
)

// answers are what a host knows and a repository does not: the files of its env
// folder, by path, each with the lines that were asked for.
type answers struct {
	dir   string                       // the env folder
	clone string                       // its folder
	apps  map[string]string            // folder -> Compose file
	files map[string]map[string]string // file -> variable -> value; a file may be empty
	// stands says where a file would lie in the commit: there Compose looks for it.
	stands map[string]string
}

// answerRefusals adds what the refusals ask of the host, and reports whether that
// was anything new.
func (a *answers) answerRefusals(refusals []refusal) bool {
	asked := false
	for _, r := range refusals {
		if m := variableSays.FindStringSubmatch(r.Says); m != nil && r.App != "" {
			file := path.Join(r.App, ".env")
			if shared := namesTheApp.FindStringSubmatch(r.Hint); shared != nil {
				file = shared[1]
			}
			asked = a.addValue(file, m[1], r) || asked
		}
		if m := missingHint.FindStringSubmatch(r.Hint); m != nil {
			asked = a.addFile(m[1], r) || asked
		}
	}
	return asked
}

func (a *answers) addValue(file, name string, r refusal) bool {
	if _, there := a.files[file][name]; there {
		return false
	}
	if a.files[file] == nil {
		a.files[file] = map[string]string{}
	}
	if folder := folderOf(r.File, a.apps); folder != "" && a.stands[file] == "" {
		a.stands[file] = path.Join(folder, ".env")
	}
	value := ""
	for _, dir := range []string{path.Dir(r.File), "."} {
		if value == "" {
			value = a.exampleOf(dir, ".env")[name]
		}
	}
	if value == "" {
		value = guessed(r.App, name, a.lineOf(r))
	}
	a.files[file][name] = value
	return true
}

// addFile answers with what the example beside it says, else with an empty file.
func (a *answers) addFile(file string, r refusal) bool {
	if a.files[file] != nil {
		return false
	}
	a.files[file] = map[string]string{}
	if m := missingSays.FindStringSubmatch(r.Says); m != nil {
		a.stands[file] = m[1]
	}
	maps.Copy(a.files[file], a.exampleOf(path.Dir(r.File), path.Base(file)))
	return true
}

// exampleOf reads the example of an env file: .env.example, example.env, foo.env.sample
// and the like in that folder. A value may refer to those before it; one that refers to
// anything else is left out.
func (a *answers) exampleOf(dir, file string) map[string]string {
	stem := strings.TrimSuffix(file, ".env")
	values := map[string]string{}
	for _, kind := range []string{"example", "sample", "template", "dist", "tpl", "default"} {
		for _, name := range []string{file + "." + kind, file + "-" + kind, kind + file, stem + "." + kind + ".env", strings.TrimPrefix(file, ".") + "." + kind} {
			text, err := os.ReadFile(filepath.Join(a.clone, dir, name))
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				m := assignment.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
				if m == nil || values[m[1]] != "" {
					continue
				}
				text := reference.ReplaceAllStringFunc(m[2], func(ref string) string {
					if v := values[strings.Trim(ref, "${}")]; v != "" {
						return strings.Trim(v, `"'`)
					}
					return ref
				})
				if strings.ContainsAny(text, "$`\\\x1b") {
					continue
				}
				if v := strings.TrimSpace(text); strings.Count(v, `"`)%2 == 0 && strings.Count(v, `'`)%2 == 0 && !placeholder.MatchString(v) {
					values[m[1]] = v
				}
			}
			return values
		}
	}
	return values
}

// guesses are values by what a name holds; the first that fits counts.
var guesses = []struct{ parts, value string }{
	{"PORT", "port"},
	{"PUID PGID UID GID USER_ID GROUP_ID", "1000"},
	{"TZ TIMEZONE TIME_ZONE", "Etc/UTC"},
	{"SUBNET CIDR", "172.30.0.0/24"},
	{"_IP IP_ IPV4 GATEWAY DNS", "192.168.1.10"},
	{"URL URI ENDPOINT", "https://example.org"},
	{"EMAIL MAIL", "someone@example.org"},
	{"DOMAIN FQDN HOSTNAME HOST SERVER", "example.org"},
	{"TAG VERSION", "1"},
	{"IMAGE", "alpine:3"},
	{"DIR PATH FOLDER ROOT LOCATION STORAGE VOLUME DATA CONFIG MEDIA APPDATA HOME PWD BASE DOWNLOAD MOVIES MUSIC", "folder"},
	{"ENABLE DEBUG", "true"},
	{"MEM", "512m"},
	{"CPU WORKERS COUNT NUM INTERVAL TIMEOUT SIZE", "1"},
}

// placeholder stands for a value that its author left out.
var placeholder = regexp.MustCompile(`^["']?<.*>["']?$`)

var (
	mountLine  = regexp.MustCompile(`^\s*(?:- *["']?\$(?:\{[^}]*\}|\w+)[^:]*:/|source:)`)
	subnetLine = regexp.MustCompile(`^\s*(?:- *)?subnet:`)
	nameLine   = regexp.MustCompile(`^\s*container_name:`)
	boolLine   = regexp.MustCompile(`^\s*(?:external|read_only|privileged|init|tty):`)
)

// guessed is a value that a variable of that name could have in that line. It
// depends on nothing else, so two runs guess the same.
func guessed(app, name, line string) string {
	upper := strings.ToUpper(name)
	switch {
	case mountLine.MatchString(line):
		return "/srv/" + strings.ToLower(name)
	case boolLine.MatchString(line):
		return "true"
	case nameLine.MatchString(line): // two of them are two containers
		return strings.ToLower(app + "-" + name)
	case subnetLine.MatchString(line):
		h := fnv.New32a()
		fmt.Fprint(h, app, "/", name)
		return fmt.Sprintf("10.%d.%d.0/24", 200+h.Sum32()%50, h.Sum32()/50%256)
	case upper == "IP":
		return "192.168.1.10"
	}
	for _, g := range guesses {
		if !slices.ContainsFunc(strings.Fields(g.parts), func(p string) bool { return strings.Contains(upper, p) }) {
			continue
		}
		switch g.value {
		case "port":
			h := fnv.New32a()
			fmt.Fprint(h, app, "/", name)
			return fmt.Sprint(20000 + h.Sum32()%20000)
		case "folder":
			return "/srv/" + strings.ToLower(name)
		}
		return g.value
	}
	return "value"
}

// lineOf is the line of the clone that was refused, "" where it has none.
func (a *answers) lineOf(r refusal) string {
	text, err := os.ReadFile(filepath.Join(a.clone, filepath.FromSlash(r.File)))
	all := strings.Split(string(text), "\n")
	if err != nil || r.Line < 1 || r.Line > len(all) {
		return ""
	}
	return all[r.Line-1]
}

// write writes the env folder, as the daemon asks of it.
func (a *answers) write() error {
	for file, values := range a.files {
		target := filepath.Join(a.dir, filepath.FromSlash(file))
		if !strings.HasPrefix(target, a.dir+string(filepath.Separator)) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(target, []byte(lines(values)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func lines(values map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%s=%s\n", name, values[name])
	}
	return b.String()
}
