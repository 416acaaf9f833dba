package gitsync

import (
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// variableUse is who uses a variable, as far as the files of a commit tell. Whatever is not
// surely the tag of an image is a use that forbids a move.
type variableUse struct {
	name   string
	env    string     // the .env that sets it
	values []envGiven // by files of the commit that may be env files
	tags   []tagUse
	beside bool // an image of a file in the same folder has it
}

// tagUse is a tag of an image with the variable in it.
type tagUse struct {
	at             string // file and line
	before, behind string // of the variable, in the tag
}

// add reads one more file; why is that the variable is of more than images.
func (u *variableUse) add(f commitFile) (why string) {
	if f.link {
		if !path.IsAbs(f.text) && u.holdsEnv(path.Join(path.Dir(f.path), f.text)) {
			return fmt.Sprintf("whose file is known by another name, the link %s", f.path)
		}
		return ""
	}
	if f.path == u.env && strings.Contains(f.text, "COMPOSE_FILE") {
		return "beside COMPOSE_FILE, which may name files elsewhere"
	}
	called := isYAML(f.path)
	if line := u.mentioned(f.text); line > 0 && !called {
		return fmt.Sprintf("which line %d of %s uses", line, f.path)
	}
	if !u.mayBeCompose(f.text) {
		return ""
	}
	if len(f.text) > maxImageFile {
		if called {
			return fmt.Sprintf("and %s is too large to tell who uses what", f.path)
		}
		return ""
	}
	return u.addYAML(f, called)
}

// composeWords are keys of which a Compose file has one at least, where it has anything to do
// with a variable or a file.
var composeWords = regexp.MustCompile(`services|configs|secrets|include|apps|\\[xuU]`)

func (u *variableUse) mayBeCompose(text string) bool {
	wide := strings.HasPrefix(text, "\xFE\xFF") || strings.HasPrefix(text, "\xFF\xFE") // UTF-16, which YAML may be
	return wide || strings.Contains(text, u.name) || composeWords.MatchString(text)
}

// addYAML reads one that may be a Compose file, whatever it is called. One that is called so
// and cannot be read may say anything.
func (u *variableUse) addYAML(f commitFile, called bool) (why string) {
	unread := func() string {
		if called {
			return u.anyMention(f)
		}
		return ""
	}
	defer func() {
		if recover() != nil { // of a library, on a stranger's text
			why = unread()
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(f.text))
	for {
		var n yaml.Node
		switch err := dec.Decode(&n); {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return unread()
		}
		if !called && len(n.Content) > 0 && n.Content[0].Tag == "!!null" {
			continue // a document of comments alone
		}
		if !called && (len(n.Content) == 0 || n.Content[0].Kind != yaml.MappingNode) {
			return "" // a text
		}
		w := &useWalk{u: u, file: f.path, has: map[*yaml.Node]bool{}}
		if why := w.node(&n, nil); why != "" {
			return why
		}
	}
}

func (u *variableUse) anyMention(f commitFile) string {
	if strings.Contains(f.text, u.name) {
		return fmt.Sprintf("which %s names, a file that is no YAML", f.path)
	}
	return ""
}

// escapedDollar is how a text may write the sign of a variable without it.
var escapedDollar = regexp.MustCompile(`(?i)\\x24|\\u0*24|\\44`)

// mentioned is the line of a text that may use the variable as a file of variables would: by
// its sign, or by its name alone. 0 is none.
func (u *variableUse) mentioned(text string) int {
	escapes := escapedDollar.MatchString(text)
	for i, line := range strings.Split(text, "\n") {
		if !strings.Contains(line, u.name) {
			continue
		}
		name, _, _ := envLine(line)
		bare := name == u.name && !strings.ContainsAny(line, "=:")
		if bare || escapes || len(u.uses(line)) > 0 {
			return i + 1
		}
	}
	return 0
}

// uses are the places in a text where the variable's sign and name begin.
func (u *variableUse) uses(text string) (at []int) {
	for i := range len(text) {
		if text[i] != '$' {
			continue
		}
		rest, ok := strings.CutPrefix(strings.TrimPrefix(text[i+1:], "{"), u.name)
		if ok && (rest == "" || !isNameByte(rest[0])) {
			at = append(at, i)
		}
	}
	return at
}

func isNameByte(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// holdsEnv reports whether a path is the variable's file, or a folder that it lies in.
func (u *variableUse) holdsEnv(p string) bool {
	return p == u.env || p == "." || strings.HasPrefix(u.env, p+"/")
}

// useWalk reads one document.
type useWalk struct {
	u    *variableUse
	file string
	has  map[*yaml.Node]bool // whether something uses the variable, what aliases stand for included
}

// node is why what a node says forbids a move. chain are the keys that lead to it; * is an
// item of a list.
func (w *useWalk) node(n *yaml.Node, chain []string) (why string) {
	switch n.Kind {
	case yaml.AliasNode:
		if w.uses(n.Alias) && !mergesService(chain) {
			return w.usedAt(n, "by an alias")
		}
	case yaml.ScalarNode:
		return w.scalar(n, chain)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if w.uses(key) || key.Value == w.u.name && value.Tag == "!!null" {
				return w.usedAt(key, "as a key")
			}
			if why := w.pair(key, value, chain); why != "" {
				return why
			}
		}
	default:
		for _, item := range n.Content {
			at := chain
			if n.Kind == yaml.SequenceNode {
				at = append(slices.Clone(chain), "*")
			}
			if why := w.node(item, at); why != "" {
				return why
			}
		}
	}
	return ""
}

func (w *useWalk) pair(key, value *yaml.Node, chain []string) string {
	if key.Value == "project_directory" {
		return fmt.Sprintf("and line %d of %s says by project_directory that paths begin elsewhere", key.Line, w.file)
	}
	return w.node(value, append(slices.Clone(chain), key.Value))
}

func (w *useWalk) usedAt(n *yaml.Node, how string) string {
	return fmt.Sprintf("which line %d of %s uses %s", n.Line, w.file, how)
}

// uses reports whether a node uses the variable, or what it is an alias of does.
func (w *useWalk) uses(n *yaml.Node) bool {
	if known, ok := w.has[n]; ok {
		return known
	}
	w.has[n] = false // one that leads to itself is no other than its rest
	found := n.Kind == yaml.ScalarNode && (n.Value == w.u.name || len(w.u.uses(n.Value)) > 0)
	found = found || n.Alias != nil && w.uses(n.Alias) || slices.ContainsFunc(n.Content, w.uses)
	w.has[n] = found
	return found
}

// mergesService reports whether an alias at a place brings keys of a service into a service,
// or into what services take keys from.
func mergesService(chain []string) bool {
	if len(chain) > 0 && chain[len(chain)-1] == "*" {
		chain = chain[:len(chain)-1]
	}
	if len(chain) == 0 || chain[len(chain)-1] != "<<" {
		return false
	}
	return ofService(chain[:len(chain)-1])
}

// ofService reports whether the keys of a mapping at a place are those of a service.
func ofService(chain []string) bool {
	return len(chain) == 2 && chain[0] == "services" || len(chain) == 1 && isTemplate(chain[0])
}

// isTemplate reports whether a key of the top may hold what services take keys from. Under
// gitring's own a service's image stands nowhere.
func isTemplate(key string) bool {
	return strings.HasPrefix(key, "x-") && key != "x-gitring"
}

func (w *useWalk) scalar(n *yaml.Node, chain []string) string {
	if last := len(chain) - 1; last > 0 && chain[last] == "image" && ofService(chain[:last]) && len(w.u.uses(n.Value)) > 0 {
		tag, ok := w.u.tagOf(n.Value)
		if !ok || n.Anchor != "" || n.Tag != "!!str" {
			return w.usedAt(n, "in another way than as the tag of an image")
		}
		tag.at = fmt.Sprintf("%s:%d", w.file, n.Line)
		w.u.tags = append(w.u.tags, tag)
		w.u.beside = w.u.beside || path.Dir(w.file) == path.Dir(w.u.env)
		return ""
	}
	if n.Tag == "!!binary" {
		return fmt.Sprintf("and line %d of %s is written in a form that is not read", n.Line, w.file)
	}
	named := func(text string) bool { return text == w.u.name } // by another variable
	if n.Value == w.u.name || len(w.u.uses(n.Value)) > 0 || slices.ContainsFunc(w.u.expansions(n.Value, path.Dir(w.file)), named) {
		return w.usedAt(n, "outside of an image")
	}
	return w.readsFile(n, chain)
}

// tagText is what a tag may have before and behind a variable.
var tagText = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)

// tagOf is the tag of an image that has the variable in it once, and no other; false where the
// text is anything else.
func (u *variableUse) tagOf(image string) (tag tagUse, ok bool) {
	at := u.uses(image)
	if len(at) != 1 {
		return tag, false
	}
	before, rest := image[:at[0]], image[at[0]+1:]
	if braced, is := strings.CutPrefix(rest, "{"); is {
		body, behind, closed := strings.Cut(strings.TrimPrefix(braced, u.name), "}")
		if !closed || strings.Contains(body, "$") || !tagDefault.MatchString(body) {
			return tag, false
		}
		rest = behind
	} else {
		rest = strings.TrimPrefix(rest, u.name)
	}
	i := strings.LastIndex(before, ":")
	if i <= strings.LastIndex(before, "/") || i <= 0 {
		return tag, false
	}
	repository := before[:i]
	tag.before, tag.behind = before[i+1:], rest
	if strings.ContainsAny(repository, "@ \t\r\n") || strings.Count(repository, "{") != strings.Count(repository, "}") {
		return tag, false
	}
	behind, _, _ := strings.Cut(tag.behind, "@sha256:")
	return tag, tagText.MatchString(tag.before) && tagText.MatchString(behind)
}

// tagDefault is what may stand behind a variable's name: a word for the case that it is not
// set, or what is said then. Both are none of it while it is set.
var tagDefault = regexp.MustCompile(`^(:?[-?][^{}]*)?$`)

// fileless are keys of a service whose texts name no file of the commit that a container gets.
var fileless = []string{
	"build", "develop", "command", "entrypoint", "working_dir", "healthcheck", "environment", "labels", "image",
	"ports", "networks", "depends_on", "deploy", "logging", "extends", "restart", "pull_policy",
}

// readsFile is why a text hands the .env itself to a container: as its env file, as a file or
// in a folder.
func (w *useWalk) readsFile(n *yaml.Node, chain []string) string {
	if len(chain) == 0 || path.Base(w.file) == "gitring.yaml" {
		return w.elsewhere(n, chain)
	}
	switch top := chain[0]; {
	case top == "services" && len(chain) > 2 && slices.Contains(fileless, chain[2]):
		return ""
	case top != "services" && top != "configs" && top != "secrets" && top != "include" && !strings.HasPrefix(top, "x-"):
		return ""
	case strings.Contains(n.Value, "\n"):
		return ""
	}
	source, _, _ := strings.Cut(colonsOfDefaults.Replace(n.Value), ":")
	for _, p := range []string{n.Value, strings.ReplaceAll(source, "\x00", ":")} {
		if slices.ContainsFunc(w.u.expansions(p, path.Dir(w.file)), w.mayHoldEnv) {
			return fmt.Sprintf("and line %d of %s may hand %s to a container", n.Line, w.file, w.u.env)
		}
	}
	return ""
}

// elsewhere is why gitring.yaml has an app whose files lie outside of its folder: their paths
// begin where no file says.
func (w *useWalk) elsewhere(n *yaml.Node, chain []string) string {
	if slices.Contains(chain, "files") && strings.Contains(n.Value, "/") {
		return fmt.Sprintf("and line %d of %s names files of another folder", n.Line, w.file)
	}
	return ""
}

// colonsOfDefaults keeps the colon of ${NAME:-word} apart from that of a volume.
var colonsOfDefaults = strings.NewReplacer(":-", "\x00-", ":?", "\x00?", ":+", "\x00+")

// variableIn is one in a path; those within others are not read.
var variableIn = regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?-)([^${}]*))?\})`)

// expansions are what a path of a file may be: as its own .env has it, and as each other file
// of variables does. An include, or gitring.yaml, may put any of them above its own. What is
// of elsewhere stays a variable.
func (u *variableUse) expansions(p, dir string) []string {
	var names []string
	for _, m := range variableIn.FindAllStringSubmatch(p, -1) {
		names = append(names, m[1]+m[2])
	}
	own := envGiven{}
	for _, g := range u.values {
		if g.file == path.Join(dir, dotEnv) {
			own = g
		}
	}
	out := []string{expanded(p, own, own)}
	for _, g := range u.values {
		if slices.ContainsFunc(names, func(name string) bool { _, sets := g.of[name]; return sets }) {
			out = append(out, expanded(p, g, own))
		}
	}
	return out
}

// expanded puts values into a path, those of first before those of then.
func expanded(p string, first, then envGiven) string {
	return variableIn.ReplaceAllStringFunc(p, func(s string) string {
		m := variableIn.FindStringSubmatch(s)
		value, set := first.of[m[1]+m[2]]
		if !set {
			value, set = then.of[m[1]+m[2]]
		}
		switch {
		case value != "" || set && m[3] == "-":
			return value
		case m[3] != "":
			return m[4]
		}
		return s
	})
}

// mayHoldEnv reports whether a path of a file may be the .env, or a folder that it lies in.
// Where a variable of the host is part of the path, its last step decides.
func (w *useWalk) mayHoldEnv(p string) bool {
	switch {
	case p == "":
		return false
	case !strings.Contains(p, "$"):
		return !path.IsAbs(p) && !strings.HasPrefix(p, "~") && w.u.holdsEnv(path.Join(path.Dir(w.file), p))
	}
	last := path.Base(p)
	return strings.ContainsAny(last, "${}") || last == "." || last == ".." || slices.Contains(strings.Split(w.u.env, "/"), last)
}
