package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

const triedHints = "testdata/hints.txt"

// triedHint is a hint, an app that gets it, and the app after what the hint says was done.
type triedHint struct {
	line          int
	hint          string
	before, after fstest.MapFS
}

// Who does what a hint says is not refused again: each hint is tried.
func TestWhatAHintSaysIsDoneAndTheRefusalIsGone(t *testing.T) {
	for _, c := range readTriedHints(t) {
		at := fmt.Sprintf("%s:%d", triedHints, c.line)
		refusals := refusalsAnywhere(c.before)
		i := slices.IndexFunc(refusals, func(r *ring.Refusal) bool { return strings.Contains(r.Hint, c.hint) })
		if i < 0 {
			t.Errorf("%s: nothing is refused with the hint %q: %s", at, c.hint, tellAll(refusals))
			continue
		}
		left := refusalsAnywhere(c.after)
		if refusals[i].Code != ring.PolicyDenied { // what could not be read was not judged
			left = slices.DeleteFunc(left, func(r *ring.Refusal) bool { return r.Code == ring.PolicyDenied })
		}
		if len(left) > 0 {
			t.Errorf("%s: refused after what the hint %q says was done: %s", at, c.hint, tellAll(left))
		}
	}
}

// A hint that manifest or policy gains comes with a row that tries it.
func TestEachHintOfManifestAndPolicyIsTried(t *testing.T) {
	var given []string
	for _, c := range readTriedHints(t) {
		for _, r := range refusalsAnywhere(c.before) {
			given = append(given, r.Hint)
		}
	}
	written := map[string]bool{}
	for _, h := range append(hintsOf(t, "../../manifest"), hintsOf(t, "../../policy")...) {
		written[h.template] = true
		tried := slices.ContainsFunc(given, h.like.MatchString)
		_, waits := notTriedYet[h.template]
		switch {
		case !tried && !waits:
			t.Errorf("%s: the hint %q has no row in %s that gets it", h.at, h.template, triedHints)
		case tried && waits:
			t.Errorf("%s: the hint %q is tried now: take it out of notTriedYet", h.at, h.template)
		}
	}
	for template := range notTriedYet {
		require.True(t, written[template], "no hint %q is left in the code", template)
	}
}

func refusalsAnywhere(tree fstest.MapFS) []*ring.Refusal {
	c := &ring.Commit{SHA: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", Tree: tree}
	_, refusals := judgeAnywhere(policy.Compose).look(c, manifest.Settings{Source: "prod", Host: "edge-1"})
	return refusals
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
			out = append(out, triedHint{n - 1, lines[0], triedTree(lines[1]), triedTree(lines[2])})
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

// triedTree is a commit of the app web, of the service w with the keys of a line, or of a
// whole file, and of what follows each @@.
func triedTree(line string) fstest.MapFS {
	parts := strings.Split(line, " @@ ")
	body := parts[0]
	if !wholeFile.MatchString(body) {
		image := "image: a, "
		if strings.HasPrefix(body, "image:") {
			image = ""
		}
		body = "services: {w: {" + image + body + "}}"
	}
	tree := fstest.MapFS{"web/compose.yaml": {Data: []byte(strings.ReplaceAll(body, `\n`, "\n") + "\n"), Mode: 0o644}}
	for _, part := range parts[1:] {
		name, text, _ := strings.Cut(part, ": ")
		if m := repeated.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1])
			text = strings.TrimSuffix(text, m[0]) + strings.Repeat("x", n)
		}
		tree[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, `\n`, "\n") + "\n"), Mode: 0o644}
	}
	return tree
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
	var out []writtenHint
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
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
			if h := templateOf(hint); strings.Trim(h, "…") != "" && !slices.ContainsFunc(out, func(o writtenHint) bool { return o.template == h }) {
				like := strings.ReplaceAll(regexp.QuoteMeta(h), "…", ".*")
				out = append(out, writtenHint{set.Position(hint.Pos()).String(), h, regexp.MustCompile("(?s)" + like)})
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

// Why a hint has no row.
const (
	takesMuch  = "takes input as large as a limit: limits_test.go has it"
	needsHost  = "rests on what one host has: its env folder, lists of its policy, other sources, its engine"
	needsLinks = "a line of the table holds no link and no submodule"
	noRowYet   = "no row yet"
)

// notTriedYet are hints that no row tries, each with the reason. The list only gets shorter:
// what is new comes with a row.
var notTriedYet = map[string]string{
	"choose another alias":          noRowYet,
	"choose another name":           noRowYet,
	"choose one of …":               needsHost,
	"use a volume of the app's own": needsHost,
	"commit an empty file or folder there, whichever is mounted":                                                           noRowYet,
	"commit the file itself; gitring follows no symlink of a repository, but for a .env to a file under the source's path": needsLinks,
	"commit the file, and name it by its path":                                                                             noRowYet,
	"commit the files themselves; gitring fetches no submodule":                                                            needsLinks,
	"correct the profile":                              noRowYet,
	"declare a service with x-gitring: {kind: job}":    noRowYet,
	"declare fewer subnets":                            takesMuch,
	"gitring sync fetches again; see the daemon's log": needsHost,
	"give each its own, or leave it out":               noRowYet,
	"give every variable a value; if they have one this is a fault of gitring, please report it": needsHost,
	"give it another name":                                             noRowYet,
	"include and extend fewer files":                                   takesMuch,
	"include fewer files in a row":                                     takesMuch,
	"include or extend less":                                           takesMuch,
	"keep it out of the commit, and put it into the host's env folder": needsHost,
	"keep one of them":                                                 noRowYet,
	"let a worker run on and wait by itself":                           noRowYet,
	"let … not depend on …":                                            noRowYet,
	"let … wait for it: depends_on: {…: {condition: service_completed_successfully}}": noRowYet,
	"make it a folder, or change the source's path in the configuration":              needsHost,
	"make the folder on the host, and say bind: {create_host_path: false}":            noRowYet,
	"make the volume by hand (docker volume create) and say external: true":           needsHost,
	"mount a smaller folder, or put the files into an image":                          takesMuch,
	"mount another folder, or give one of the two sources a data_root of its own":     needsHost,
	"mount it beside the folder, or take … out of reload paths":                       noRowYet,
	"mount the folder it is in (say …:…) and keep … in reload paths":                  noRowYet,
	"mount the folder it is in, or remove it from x-gitring mounts":                   needsLinks,
	"name a version":       needsHost,
	"name the file itself": noRowYet,
	"publish another port": needsHost,
	"put it into a file: secrets: with environment:, or a file of the host's env folder":                                          needsHost,
	"put large files into an image or a volume":                                                                                   takesMuch,
	"put the values into the host's env folder (env.dir), and take the encrypted file out of what is mounted or read":             needsHost,
	"read fewer and smaller files in one app, or make it a source of its own":                                                     takesMuch,
	"remove it, or join an overlay network that is there with external: true":                                                     noRowYet,
	"remove it, or say for: liveness":                                                                                             noRowYet,
	"remove it; no policy of this release grants it":                                                                              noRowYet,
	"remove it; run gitring refresh <app> --reason '…' when you want to, or write pull_policy: always, which asks at each commit": noRowYet,
	"remove it; set it where the program starts: entrypoint: [sh, -c, 'umask 027; exec \"$$0\" \"$$@\"']":                         noRowYet,
	"remove it; what has to run before … is a job: x-gitring: {kind: job}, or before: …":                                          noRowYet,
	"remove run; its schedule says when":                                                                                          noRowYet,
	"remove the check, or enable the healthcheck":                                                                                 noRowYet,
	"rename one of the apps": noRowYet,
	"say attachable: true of the network in …, or give it a name:": needsHost,
	"say cron: {overlap: replace}":                                 noRowYet,
	"say kind: job beside it, or remove it":                        noRowYet,
	"say security_opt: [no-new-privileges:true]":                   needsHost, // tried by TestHardenedAsksOfEachServiceToConfineItself
	"say cap_drop: [ALL], and in cap_add what it needs":            needsHost, // tried by TestHardenedAsksOfEachServiceToConfineItself
	"say read_only: true, and tmpfs: for what it writes":           needsHost, // tried by TestHardenedAsksOfEachServiceToConfineItself
	"say mem_limit:":                                             needsHost, // tried by TestHardenedAsksOfEachServiceToConfineItself
	"say pids_limit: … or less":                                  needsHost, // tried by TestHardenedAsksOfEachServiceToConfineItself
	"say its size, such as …:size=64m":                           needsHost, // tried by TestHardenedAsksOfEachServiceToConfineItself
	"say logging: {driver: json-file, options: {max-size: 10m}}": needsHost, // tried by TestHardenedAsksOfEachServiceToConfineItself
	"publish on 127.0.0.1":                                       needsHost, // tried by TestHardenedAsksOfEachServiceToConfineItself
	"say user: with a number above 0":                            needsHost, // tried by TestHardenedAsksOfEachServiceToConfineItself
	"say pids_limit: …":                                          needsHost,
	"say strategy: blue_green beside it, or remove it":           noRowYet,
	"split the app":                                              takesMuch,
	"start the daemon, which makes the key, or read the commit without env.dir": needsHost,
	"use a network that it names":                               needsHost,
	"use an exec check":                                         noRowYet,
	"use an exec check, or move it to …":                        noRowYet,
	"use an image of what images.registries of this host names": needsHost,
	"use another host name, or name it for this app in policy: {labels: {routes: {…: […]}}}":                                               needsHost,
	"write NAME='value': in single quotes a dollar is a dollar; a line may refer to earlier ones and to the configuration's interpolation": needsHost,
	"write a duration such as 10s":                                  noRowYet,
	"write a path relative to the Compose file, or an absolute one": noRowYet,
	"write at most …":                                               takesMuch,
	"write cpus":                                                    noRowYet,
	"write host, or remove it":                                      noRowYet,
	"write it smaller; docs/reference/manifest.md lists the limits": takesMuch,
	"write service, or service:ro":                                  noRowYet,
	"write source:target or source:target:ro":                       noRowYet,
	"write the command, or remove the hook":                         noRowYet,
	"write the image as name:tag@sha256:…":                          needsHost,
}
