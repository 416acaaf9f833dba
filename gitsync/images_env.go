package gitsync

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// dotEnv is the file beside a Compose file that gives its variables.
const dotEnv = ".env"

// Bounds of what is read to know who uses a variable. Above them nobody knows, which is a no.
const (
	maxUseFiles = 20_000
	maxUseBytes = 64 << 20
)

// envTag is a line of .env that names a tag, and a digest behind it perhaps. What stands in no
// group may not be there.
var envTag = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=(["']?)([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(?:@sha256:[0-9a-f]{64})?)(["']?)([ \t]+#[^\r]*)?(\r?)$`)

// ownVariables have a meaning to Compose or gitring themselves, whoever names them.
var ownVariables = regexp.MustCompile(`^(COMPOSE_|DOCKER_|GITRING_|HOME$|PWD$|PATH$)`)

// envMove is one variable of .env whose tag a commit moves.
type envMove struct {
	line           int
	name, from, to string
}

// envMoves are the variables in which two texts of .env differ; why is what else differs, or
// what is written in a way of which nobody can be sure.
func envMoves(was, is string) (out []envMove, why string) {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	if len(a) != len(b) {
		return nil, "has more or fewer lines"
	}
	names, plain := envNames(was)
	_, still := envNames(is)
	if !plain || !still {
		return nil, "has a line in a form that is not read: a value of several lines, an escape in quotes, or a lone carriage return"
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		x, y := envTag.FindStringSubmatch(a[i]), envTag.FindStringSubmatch(b[i])
		if x == nil || y == nil || x[2] != x[4] || y[2] != y[4] || x[3] == y[3] {
			return nil, fmt.Sprintf("line %d is not NAME=<tag> with another tag", i+1)
		}
		x[0], y[0] = "", ""
		from, to := x[3], y[3]
		if x[3], y[3] = "", ""; !slices.Equal(x, y) {
			return nil, fmt.Sprintf("line %d changes more than a tag", i+1)
		}
		switch name := x[1]; {
		case ownVariables.MatchString(name):
			return nil, fmt.Sprintf("line %d sets %s, which is no variable of an image", i+1, name)
		case len(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n != name })) != 1:
			return nil, fmt.Sprintf("line %d sets %s, which another line names too", i+1, name)
		default:
			out = append(out, envMove{line: i + 1, name: name, from: from, to: to})
		}
	}
	return out, ""
}

// envNames are the variables that the lines of an env file name, in order. ok is false where a
// line may be part of the value of another, or is read in another way than it looks.
func envNames(text string) (names []string, ok bool) {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.Contains(line, "\r") {
			return nil, false
		}
		name, value, is := envLine(line)
		if !is {
			continue
		}
		names = append(names, name)
		if value == "" || value[0] != '"' && value[0] != '\'' {
			continue
		}
		end := strings.IndexByte(value[1:], value[0])
		if end < 0 || strings.Contains(value, `\`) {
			return nil, false
		}
		if rest := strings.TrimSpace(value[end+2:]); rest != "" && rest[0] != '#' {
			return nil, false
		}
	}
	return names, true
}

// envLine is the variable that a line of an env file names, and what stands behind its sign;
// false for a comment or nothing.
func envLine(line string) (name, value string, ok bool) {
	line = strings.TrimSpace(strings.TrimPrefix(line, "\uFEFF"))
	if line == "" || line[0] == '#' {
		return "", "", false
	}
	if after, is := strings.CutPrefix(line, "export"); is && strings.TrimLeft(after, " \t") != after {
		line = strings.TrimLeft(after, " \t")
	}
	if i := strings.IndexAny(line, "=:"); i >= 0 {
		return strings.TrimSpace(line[:i]), strings.TrimLeft(line[i+1:], " \t\v\f"), true
	}
	return line, "", true
}

// movesVariables is why a change of .env is more than tags of variables that only images use.
// Who uses them is asked of every file of the commit: a file anywhere may be included, or be
// the env file of a service.
func (v *verification) movesVariables(p *parsed, file, was, is string, grants []Binding) (why string, _ *ring.Refusal, _ error) {
	moves, why := envMoves(was, is)
	if why != "" {
		return why, nil, nil
	}
	files, refusal, err := v.allFiles(p)
	if refusal != nil || err != nil {
		return "", refusal, err
	}
	if files == nil {
		return fmt.Sprintf("moves a variable, and the commit has more than %d files or %d MiB: who else uses it is not known", maxUseFiles, maxUseBytes>>20), nil, nil
	}
	for _, m := range moves {
		if why := m.movesOnlyImages(file, files, grants); why != "" {
			return fmt.Sprintf("line %d moves %s, %s", m.line, m.name, why), nil, nil
		}
	}
	return "", nil, nil
}

// movesOnlyImages is why a move is of more than images, or further than grants let them; ""
// where it is neither.
func (m envMove) movesOnlyImages(file string, files []commitFile, grants []Binding) string {
	u := &variableUse{name: m.name, env: file, values: envValues(files)}
	for _, f := range files {
		if why := u.add(f); why != "" {
			return why
		}
	}
	if !u.beside {
		return "which no image of a Compose file beside it uses"
	}
	for _, tag := range u.tags {
		from, to := "image:"+tag.before+m.from+tag.behind, "image:"+tag.before+m.to+tag.behind
		if !sameRepository(from, to) {
			return "which makes no tag of the image in " + tag.at
		}
		if why := mayMove(from, to, grants); why != "" {
			return "and " + tag.at + " " + why
		}
	}
	return ""
}

// commitFile is a file or a link of a commit's tree.
type commitFile struct {
	path, text string
	link       bool
}

// allFiles are those of a commit; nil where they are too many to be read.
func (v *verification) allFiles(p *parsed) ([]commitFile, *ring.Refusal, error) {
	c := &comparison{o: v.o}
	out, left := []commitFile{}, maxUseBytes
	var walk func(dir string, sha ring.SHA) (bool, *ring.Refusal, error)
	walk = func(dir string, sha ring.SHA) (bool, *ring.Refusal, error) {
		list, refusal, err := c.folder(p.sha, sha)
		if refusal != nil || err != nil {
			return false, refusal, err
		}
		for _, n := range list {
			at := path.Join(dir, n.name)
			if n.mode.IsDir() {
				if whole, refusal, err := walk(at, n.sha); !whole || refusal != nil || err != nil {
					return false, refusal, err
				}
				continue
			}
			if n.git == modeGitlink {
				continue // what is in another repository is none of this commit's files
			}
			kind, body, err := v.o.Raw(n.sha)
			if err != nil {
				return false, nil, fmt.Errorf("cannot read %s: %w", at, err)
			}
			sum, collides := objectHash(kind, body)
			if refusal := named(n.sha, sum, collides); refusal != nil {
				return false, refusal, nil
			}
			if left -= len(body); kind != "blob" || left < 0 || len(out) == maxUseFiles {
				return false, nil, nil
			}
			out = append(out, commitFile{path: at, text: string(body), link: !n.mode.IsRegular()})
		}
		return true, nil, nil
	}
	whole, refusal, err := walk("", p.tree)
	if !whole || refusal != nil || err != nil {
		return nil, refusal, err
	}
	return out, nil, nil
}

// envGiven is what one file of variables gives.
type envGiven struct {
	file string
	of   map[string]string
}

// unread is a value that is no plain word, such as one with a variable in it.
const unread = "$"

// plainName is what a variable of a path may be called.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// envValues are the values of the files that may give variables, whatever they are called: an
// include and gitring.yaml name such files as they like.
func envValues(files []commitFile) (out []envGiven) {
	for _, f := range files {
		if f.link || len(f.text) > maxImageFile || isYAML(f.path) || strings.Contains(f.text, "\x00") {
			continue
		}
		of := map[string]string{}
		for line := range strings.SplitSeq(f.text, "\n") {
			name, value, ok := envLine(line)
			if !ok || !plainName.MatchString(name) {
				continue
			}
			value, _, _ = strings.Cut(value, " #")
			value = strings.Trim(strings.TrimSpace(value), `"'`)
			if strings.ContainsAny(value, "$\\\"'") {
				value = unread
			}
			of[name] = value
		}
		if len(of) > 0 {
			out = append(out, envGiven{f.path, of})
		}
	}
	return out
}

// isYAML reports whether a file is called as Compose files are.
func isYAML(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file))
}
