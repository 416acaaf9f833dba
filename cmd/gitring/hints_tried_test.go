package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/admission"
	"github.com/gitring/gitring/config"
	"github.com/gitring/gitring/daemon"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

const triedHints = "testdata/hints.txt"

// triedHint is a hint, an app that gets it, and the app after what the hint says was done.
type triedHint struct {
	line          int
	hint          string
	before, after tried
}

// tried is a commit, and what is said of the host that reads it.
type tried struct {
	tree     fstest.MapFS
	broken   map[string]bool // files whose objects cannot be read
	settings manifest.Settings
	policy   string            // "" is profile compose, without a file
	others   map[string]string // files of source lab, whose apps are in force
}

// Who does what a hint says is not refused again: each hint is tried.
func TestWhatAHintSaysIsDoneAndTheRefusalIsGone(t *testing.T) {
	for _, c := range readTriedHints(t) {
		at := fmt.Sprintf("%s:%d", triedHints, c.line)
		refusals, _ := refusalsOfTried(t, c.before)
		i := slices.IndexFunc(refusals, func(r *ring.Refusal) bool { return strings.Contains(r.Hint, c.hint) })
		if i < 0 {
			t.Errorf("%s: nothing is refused with the hint %q: %s", at, c.hint, tellAll(refusals))
			continue
		}
		left, apps := refusalsOfTried(t, c.after)
		if refusals[i].Code != ring.PolicyDenied { // what could not be read was not judged
			left = slices.DeleteFunc(left, func(r *ring.Refusal) bool { return r.Code == ring.PolicyDenied })
		}
		if len(left) > 0 {
			t.Errorf("%s: refused after what the hint %q says was done: %s", at, c.hint, tellAll(left))
		}
		if refusals[i].Code == ring.PolicyDenied && apps == 0 {
			t.Errorf("%s: no app is left after what the hint %q says was done", at, c.hint)
		}
	}
}

// A hint that manifest or policy gains comes with a row that tries it.
func TestEachHintOfManifestAndPolicyIsTried(t *testing.T) {
	var given []string
	for _, c := range readTriedHints(t) {
		refusals, _ := refusalsOfTried(t, c.before)
		for _, r := range refusals {
			given = append(given, r.Hint)
		}
	}
	hints := append(hintsOf(t, "../../manifest"), hintsOf(t, "../../policy")...)
	for _, h := range hints {
		if !slices.ContainsFunc(given, h.like.MatchString) {
			t.Errorf("%s: the hint %q has no row in %s that gets it", h.at, h.template, triedHints)
		}
	}
	require.Greater(t, len(hints), 200, "the hints were not found")
}

// refusalsOfTried are in the words of the daemon: the verbs that read a folder have other
// ones for what cannot be read.
func refusalsOfTried(t *testing.T, c tried) (refusals []*ring.Refusal, apps int) {
	t.Helper()
	j := admission.Anywhere(policy.Compose)
	if c.policy != "" {
		j = judgeOfPolicy(t, c.policy)
	}
	if len(c.others) > 0 {
		j.Whose = hostWith(t, "lab", c.others)
	}
	r := manifest.Look(&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: brokenTree{c.tree, c.broken}}, c.settings)
	refusals = append(slices.Clone(r.Refusals), j.Plan(&r.Plan, r.Drafts)...)
	return admission.ByPlace(refusals), len(r.Plan.Apps)
}

// hostWith is a host on which the apps of a source are in force.
func hostWith(t *testing.T, source string, files map[string]string) func() policy.Whose {
	t.Helper()
	tree := fstest.MapFS{}
	for name, body := range files {
		tree[name] = &fstest.MapFile{Data: []byte(body), Mode: 0o644}
	}
	plan, refusals := admission.Anywhere(policy.Compose).Look(
		&ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}, manifest.Settings{Source: source, Host: "edge-1"})
	require.Empty(t, refusals, source)
	var w policy.Whose
	for i := range plan.Apps {
		w.Holdings = append(w.Holdings, policy.HoldingOf(&plan.Apps[i], config.DefaultDataRoot, policy.InForce, time.Unix(1, 0)))
	}
	w.Prepare()
	return func() policy.Whose { return w }
}

// brokenTree is a commit of which some objects cannot be read.
type brokenTree struct {
	fstest.MapFS
	broken map[string]bool
}

func (b brokenTree) Open(name string) (fs.File, error) {
	if b.broken[name] {
		return nil, errors.New("object is missing")
	}
	return b.MapFS.Open(name)
}

func tellAll(refusals []*ring.Refusal) string {
	var out []string
	for _, r := range refusals {
		out = append(out, fmt.Sprintf("%s: %s: %s (%s)", r.Where(), r.Code, r.Says, r.Hint))
	}
	return strings.Join(out, "; ")
}

func readTriedHints(t *testing.T) []triedHint {
	t.Helper()
	raw, err := os.ReadFile(triedHints)
	require.NoError(t, err)
	var out []triedHint
	var lines []string
	for n, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if lines = append(lines, line); len(lines) == 3 {
			out = append(out, triedHint{n - 1, lines[0], readTried(t, lines[1]), readTried(t, lines[2])})
			lines = nil
		}
	}
	require.Empty(t, lines, "a record has three lines")
	require.Greater(t, len(out), 100)
	return out
}

var (
	wholeFile = regexp.MustCompile(`(^|\\n)(services|servics|- services):`)
	repeated  = regexp.MustCompile(`@(\d+)$`)
)

// readTried reads a line: the app web, of the service w with some keys, or of a whole
// file; and what follows each @@, as the head of the file says.
func readTried(t *testing.T, line string) tried {
	t.Helper()
	parts := strings.Split(line, " @@ ")
	body := parts[0]
	if !wholeFile.MatchString(body) {
		image := "image: a, "
		if strings.HasPrefix(body, "image:") {
			image = ""
		}
		body = "services: {w: {" + image + body + "}}"
	}
	c := tried{
		tree: fstest.MapFS{"web/compose.yaml": triedFile(body)}, broken: map[string]bool{}, others: map[string]string{},
		settings: daemon.ClosedSecrets(manifest.Settings{Source: "prod", Host: "edge-1", EnvKey: []byte("0123456789abcdef0123456789abcdef"), Env: map[string]map[string][]byte{}}),
	}
	for _, part := range parts[1:] {
		name, text, _ := strings.Cut(part, ": ")
		if m := repeated.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1])
			text = strings.TrimSuffix(text, m[0]) + strings.Repeat("x", n)
		}
		c.add(t, name, text)
	}
	return c
}

func (c *tried) add(t *testing.T, name, text string) {
	t.Helper()
	what, of, _ := strings.Cut(name, "> ")
	switch what {
	case "<policy>":
		c.policy = strings.ReplaceAll(text, `\n`, "\n") + "\n"
	case "<path>":
		c.settings.Path = text
	case "<no key>":
		c.settings.EnvKey = nil
	case "<no opener>":
		c.settings.Secrets = nil
	case "<swarm>":
		c.settings.Swarm = true
	case "<no status>":
		c.settings.NoStatus = true
	case "<limits>":
		key, number, _ := strings.Cut(text, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		require.NoError(t, err, text)
		field := reflect.ValueOf(&c.settings.Limits).Elem().FieldByName(key)
		require.True(t, field.IsValid(), "no limit is called %s", key)
		field.SetInt(n)
	case "<other source":
		c.others[of] = strings.ReplaceAll(text, `\n`, "\n") + "\n"
	case "<link":
		c.tree[of] = &fstest.MapFile{Data: []byte(text), Mode: fs.ModeSymlink}
	case "<submodule":
		c.tree[of] = &fstest.MapFile{Mode: fs.ModeIrregular}
	case "<unreadable":
		c.tree[of], c.broken[of] = triedFile(text), true
	case "<env.dir":
		app, file, _ := strings.Cut(of, "/")
		if c.settings.Env[app] == nil {
			c.settings.Env[app] = map[string][]byte{}
		}
		c.settings.Env[app][file] = triedFile(text).Data
	default:
		require.NotContains(t, name, "<", "no such part")
		c.tree[name] = triedFile(text)
	}
}

func triedFile(text string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(strings.NewReplacer(`\n`, "\n", `\0`, "\x00").Replace(text) + "\n"), Mode: 0o644}
}

// writtenHint is one of the code: the texts of its expression, with … between them.
type writtenHint struct {
	at, template string
	like         *regexp.Regexp
}

// hintsOf are the hints that the functions of a package give: values of fields called hint
// or instead, and arguments of functions that take one.
func hintsOf(t *testing.T, dir string) []writtenHint {
	t.Helper()
	set := token.NewFileSet()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var parsed []*ast.File
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	consts := constantsOf(parsed)
	var out []writtenHint
	for _, file := range parsed {
		ast.Inspect(file, func(n ast.Node) bool {
			var hint ast.Expr
			switch x := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := x.Key.(*ast.Ident); ok && (key.Name == "hint" || key.Name == "instead") {
					hint = x.Value
				}
			case *ast.CallExpr:
				if i := hintArgument(x); i >= 0 && i < len(x.Args) {
					hint = x.Args[i]
				}
			}
			if hint == nil {
				return true
			}
			texts := []ast.Expr{hint}
			if name, ok := hint.(*ast.Ident); ok {
				texts = consts[name.Name]
			}
			for _, text := range texts {
				if h := templateOf(text); strings.Trim(h, "…") != "" && !slices.ContainsFunc(out, func(o writtenHint) bool { return o.template == h }) {
					like := strings.ReplaceAll(regexp.QuoteMeta(h), "…", ".*")
					out = append(out, writtenHint{set.Position(text.Pos()).String(), h, regexp.MustCompile("(?s)" + like)})
				}
			}
			return true
		})
	}
	return out
}

// constantsOf are the constants of a package by name, those inside functions too: what
// several are called counts as each of them.
func constantsOf(files []*ast.File) map[string][]ast.Expr {
	out := map[string][]ast.Expr{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				return true
			}
			for _, s := range d.Specs {
				s := s.(*ast.ValueSpec)
				for i, name := range s.Names {
					if i < len(s.Values) {
						out[name.Name] = append(out[name.Name], s.Values[i])
					}
				}
			}
			return true
		})
	}
	return out
}

// hintArgument is which argument of a call is the hint; -1 for none.
func hintArgument(call *ast.CallExpr) int {
	name, on := "", ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if x, ok := f.X.(*ast.Ident); ok {
			on = x.Name
		}
	}
	switch {
	case name == "no", name == "windows", name == "bad" && on == "k",
		name == "bad" && len(call.Args) > 1 && strings.HasPrefix(templateOf(call.Args[1]), "%"): // a sentence, behind the hint
		return 0
	case name == "bad" && on == "c":
		return 3
	case name == "bad", name == "refuse", name == "unsupported", name == "fail":
		return 1
	case name == "add" && len(call.Args) >= 4, name == "mountType":
		return 2
	}
	return -1
}

var verbOfFormat = regexp.MustCompile(`%\[?\d*\]?[a-z]`)

// templateOf is the text of an expression, with … for what is not written there.
func templateOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		if err != nil {
			return "…"
		}
		return text
	case *ast.BinaryExpr:
		return strings.ReplaceAll(templateOf(x.X)+templateOf(x.Y), "……", "…")
	case *ast.CallExpr:
		if f, ok := x.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" && len(x.Args) > 0 {
			return verbOfFormat.ReplaceAllString(templateOf(x.Args[0]), "…")
		}
	}
	return "…"
}
