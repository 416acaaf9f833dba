// Package gitring_test holds the tree to the two tables of ARCHITECTURE.md.
package gitring_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const (
	module        = "github.com/gitring/gitring"
	packagesTitle = "## Packages"
	decidingTitle = "## Deciding files"
	testsRow      = "_test.go"
)

// Packages whose use means I/O, a clock, randomness or a life of its own. A
// prefix stands for what is below it; net/netip and net/url are pure.
var impure = []string{
	"context", "crypto/rand", "database/sql", "io/ioutil", "log", "math/rand", "net", "net/http", "net/rpc", "net/smtp",
	"os", "plugin", "runtime", "sync", "syscall", "testing",
}

// Functions of otherwise pure packages that read the clock or the disk.
var impureFunctions = map[string][]string{
	"time":          {"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"},
	"path/filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
}

func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	r, err := readRules(string(text))
	require.NoError(t, err)
	found, err := r.violations(os.DirFS("."))
	require.NoError(t, err)
	for _, v := range found {
		t.Error(v)
	}
}

// The synthetic trees below each break one rule; a check that no longer sees
// its own is a check that is gone.
func TestArchitectureSeesWhatItForbids(t *testing.T) {
	const document = `
## Packages

| package | what it is | ours | its alone | shared |
|---|---|---|---|---|
| ` + "`cmd/gitring`" + ` | wires | all | ` + "`example.org/cli`" + ` | – |
| ` + "`ring`" + ` | words | – | – | – |
| ` + "`reconcile`" + ` | heart | ` + "`ring`" + ` | – | ` + "`example.org/group`" + ` |
| ` + "`runtime`" + ` | engines | ` + "`ring`" + ` | ` + "`example.org/docker`" + ` | ` + "`example.org/group`" + ` |
| ` + "`runtime/enginetest`" + ` | for tests | – | – | ` + "`example.org/docker`" + ` |
| ` + "`_test.go`" + ` | tests | all | – | ` + "`example.org/require`" + ` |

## Deciding files

| files | but not | all the same |
|---|---|---|
| ` + "`reconcile/*.go`" + ` | ` + "`reconcile/loop*.go`" + ` | – |
| ` + "`ring/*.go`" + ` | – | ` + "`context`" + ` |
`
	sound := map[string]string{
		"cmd/gitring/main.go":       `package main; import ("os"; "example.org/cli/flags"; "` + module + `/reconcile"; "` + module + `/runtime")`,
		"ring/doc.go":               `package ring; import ("context"; "net/netip"; "time"); type T = time.Time; var _ = time.Second; var _ context.Context; var _ netip.Addr`,
		"reconcile/diff.go":         `package reconcile; import ("path/filepath"; "` + module + `/ring"); var _ = filepath.Clean`,
		"reconcile/loop.go":         `package reconcile; import ("context"; "time"; "example.org/group"); func f() { go g(time.Now()) }`,
		"reconcile/diff_test.go":    `package reconcile; import ("os"; "example.org/require"; "` + module + `/runtime")`,
		"runtime/docker.go":         `package runtime; import ("net/http"; "example.org/docker/client"; "` + module + `/ring")`,
		"runtime/docker_test.go":    `package runtime; import "example.org/docker/client"`,
		"runtime/enginetest/x.go":   `package enginetest; import "example.org/docker/client"`,
		"cmd/gitring/main_test.go":  `package main; import "` + module + `/runtime/enginetest"`,
		"cmd/gitring/whole_test.go": `package main; import "example.org/docker/client"`,
		"scripts/scripts_test.go":   `package scripts_test; import "example.org/require"`,
		"tools/tools.go":            `package tools; import "example.org/anything"`,
		"gitsync/testdata/x.go":     `package x; import "example.org/anything"`,
		".demo/x.go":                `package x; import "example.org/anything"`,
	}
	for _, tt := range []struct {
		name string
		file string
		text string // "" takes the file away
		says string
	}{
		{name: "a sound tree is left in peace"},
		{
			name: "a sibling imports a sibling", file: "reconcile/step.go",
			text: `package reconcile; import "` + module + `/runtime"`,
			says: "reconcile/step.go:1: reconcile may not import runtime",
		},
		{
			name: "a program imports what is for tests", file: "cmd/gitring/fake.go",
			text: `package main; import "` + module + `/runtime/enginetest"`,
			says: "cmd/gitring/fake.go:1: runtime/enginetest is for tests alone",
		},
		{
			name: "a package below takes another library", file: "runtime/enginetest/cli.go",
			text: `package enginetest; import "example.org/cli"`,
			says: "runtime/enginetest/cli.go:1: example.org/cli is for cmd/gitring alone",
		},
		{
			name: "the words import a package", file: "ring/word.go",
			text: `package ring; import "` + module + `/reconcile"`,
			says: "ring/word.go:1: ring may not import reconcile",
		},
		{
			name: "the Docker client leaves its package", file: "reconcile/loop_engine.go",
			text: `package reconcile; import "example.org/docker/client"`,
			says: "reconcile/loop_engine.go:1: example.org/docker/client is for runtime alone",
		},
		{
			name: "a test takes another package's library", file: "reconcile/engine_test.go",
			text: `package reconcile; import "example.org/docker/client"`,
			says: "reconcile/engine_test.go:1: example.org/docker/client is for runtime alone",
		},
		{
			name: "a library that no row names", file: "runtime/new.go",
			text: `package runtime; import "example.org/dockerish"`,
			says: "runtime/new.go:1: no row lets runtime import example.org/dockerish",
		},
		{
			name: "a shared library that the row does not name", file: "cmd/gitring/group.go",
			text: `package main; import "example.org/group"`,
			says: "cmd/gitring/group.go:1: no row lets cmd/gitring import example.org/group",
		},
		{
			name: "a test library in a program", file: "runtime/fake.go",
			text: `package runtime; import "example.org/require"`,
			says: "runtime/fake.go:1: no row lets runtime import example.org/require",
		},
		{
			name: "a package without a row", file: "proxy/proxy.go", text: `package proxy`,
			says: "proxy: has no row in the table of packages",
		},
		{
			name: "a row without a package", file: "ring/doc.go",
			says: "ring: has a row in the table of packages and is not there",
		},
		{
			name: "a deciding file reads the disk", file: "reconcile/disk.go",
			text: `package reconcile; import "os"`,
			says: "reconcile/disk.go:1: a deciding file may not import os",
		},
		{
			name: "a deciding file logs", file: "reconcile/log.go",
			text: `package reconcile; import "log/slog"`,
			says: "reconcile/log.go:1: a deciding file may not import log/slog",
		},
		{
			name: "a deciding file takes a context where none is allowed", file: "reconcile/ctx.go",
			text: `package reconcile; import "context"`,
			says: "reconcile/ctx.go:1: a deciding file may not import context",
		},
		{
			name: "a deciding file reads the clock", file: "reconcile/clock.go",
			text: "package reconcile; import \"time\"\nvar now = time.Now()",
			says: "reconcile/clock.go:2: a deciding file may not use time.Now",
		},
		{
			name: "a deciding file reads the clock under another name", file: "reconcile/clock.go",
			text: "package reconcile; import clock \"time\"\nvar now = clock.Since",
			says: "reconcile/clock.go:2: a deciding file may not use time.Since",
		},
		{
			name: "a deciding file hides where a name comes from", file: "reconcile/dot.go",
			text: `package reconcile; import . "time"; var now = Now()`,
			says: "reconcile/dot.go:1: a deciding file may not import time with a dot",
		},
		{
			name: "a deciding file starts a goroutine", file: "reconcile/go.go",
			text: "package reconcile\nfunc f() { go f() }",
			says: "reconcile/go.go:2: a deciding file may not start a goroutine",
		},
		{
			name: "an exception names nothing", file: "reconcile/loop.go",
			says: "reconcile/loop*.go: stands in the table of deciding files and matches no file",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, text := range sound {
				tree[name] = &fstest.MapFile{Data: []byte(text)}
			}
			switch {
			case tt.text != "":
				tree[tt.file] = &fstest.MapFile{Data: []byte(tt.text)}
			case tt.file != "":
				delete(tree, tt.file)
			}
			r, err := readRules(document)
			require.NoError(t, err)
			found, err := r.violations(tree)
			require.NoError(t, err)
			if tt.says == "" {
				require.Empty(t, found)
				return
			}
			require.Contains(t, found, tt.says)
		})
	}

	t.Run("a document without its tables holds nothing, and says so", func(t *testing.T) {
		_, err := readRules("# Architecture\n")
		require.ErrorContains(t, err, "cannot find the table below "+strconv.Quote(packagesTitle))
		_, err = readRules(document[:strings.Index(document, decidingTitle)])
		require.ErrorContains(t, err, "cannot find the table below "+strconv.Quote(decidingTitle))
	})

	t.Run("what is for one alone is in no other row", func(t *testing.T) {
		for _, theirs := range []string{"example.org/docker", "example.org/docker/client"} {
			_, err := readRules(strings.Replace(document, "`example.org/require`", "`"+theirs+"`", 1))
			require.EqualError(t, err, "cannot give example.org/docker to runtime alone: the row of _test.go names "+theirs)
		}
	})
}

// rules are the two tables.
type rules struct {
	packages map[string]packageRule // by folder, and testsRow
	deciding []decidingRule
}

// packageRule is one row of the table of packages.
type packageRule struct {
	all    bool     // may import every package of ours
	ours   []string // else these
	alone  []string // modules that no other package may import
	shared []string // modules that others may import too
}

// decidingRule is one row of the table of deciding files.
type decidingRule struct {
	files, except, allowed []string
}

// readRules reads the tables out of the document.
func readRules(document string) (rules, error) {
	r := rules{packages: map[string]packageRule{}}
	rows, err := table(document, packagesTitle, 5)
	if err != nil {
		return r, err
	}
	for _, row := range rows {
		for _, name := range words(row[0]) {
			r.packages[name] = packageRule{
				all:  strings.TrimSpace(row[2]) == "all",
				ours: words(row[2]), alone: words(row[3]), shared: words(row[4]),
			}
		}
	}
	if err := r.aloneIsAlone(); err != nil {
		return r, err
	}
	rows, err = table(document, decidingTitle, 3)
	if err != nil {
		return r, err
	}
	for _, row := range rows {
		r.deciding = append(r.deciding, decidingRule{files: words(row[0]), except: words(row[1]), allowed: words(row[2])})
	}
	return r, nil
}

// aloneIsAlone holds the rows against each other: a module that is for one
// package alone, or a package of it, may stand in no other row but those of the
// packages below its folder.
func (r rules) aloneIsAlone() error {
	for name, row := range r.packages {
		for _, m := range row.alone {
			for other, o := range r.packages {
				if other == name || strings.HasPrefix(other, name+"/") {
					continue
				}
				for _, theirs := range slices.Concat(o.alone, o.shared) {
					if under(theirs, []string{m}) {
						return fmt.Errorf("cannot give %s to %s alone: the row of %s names %s", m, name, other, theirs)
					}
				}
			}
		}
	}
	return nil
}

// table gives the rows of the first table below a heading, without its head.
func table(document, title string, columns int) ([][]string, error) {
	_, section, ok := strings.Cut(document, title+"\n")
	if !ok {
		return nil, fmt.Errorf("cannot find the table below %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows [][]string
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != columns {
			return nil, fmt.Errorf("cannot read the table below %q: %d columns wanted: %s", title, columns, line)
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 { // head, rule and a row
		return nil, fmt.Errorf("cannot find the table below %q", title)
	}
	return rows[2:], nil
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// words are the code spans of a cell.
func words(cell string) []string {
	var ws []string
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		ws = append(ws, m[1])
	}
	return ws
}

// sourceFile is one Go file of the tree.
type sourceFile struct {
	name, folder string
	test         bool
	syntax       *ast.File
	lines        *token.FileSet
}

func (f sourceFile) at(p token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", f.name, f.lines.Position(p).Line, fmt.Sprintf(format, args...))
}

// violations are all places where the tree differs from the tables, sorted.
func (r rules) violations(tree fs.FS) ([]string, error) {
	files, err := sourceFiles(tree)
	if err != nil {
		return nil, err
	}
	found := r.rowsAndFolders(files)
	for _, f := range files {
		for _, i := range f.syntax.Imports {
			if says := r.imports(f, strings.Trim(i.Path.Value, `"`)); says != "" {
				found = append(found, f.at(i.Pos(), "%s", says))
			}
		}
		if d, ok := r.decides(f); ok {
			found = append(found, impurities(f, d.allowed)...)
		}
	}
	slices.Sort(found)
	return found, nil
}

// sourceFiles parses all Go files of the main module.
func sourceFiles(tree fs.FS) ([]sourceFile, error) {
	var files []sourceFile
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || name == "tools" || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		lines := token.NewFileSet()
		syntax, err := parser.ParseFile(lines, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, sourceFile{
			name: name, folder: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
			syntax: syntax, lines: lines,
		})
		return nil
	})
	return files, err
}

// rowsAndFolders holds the rows against what is there, both ways. A folder of
// tests only needs no row.
func (r rules) rowsAndFolders(files []sourceFile) []string {
	var found []string
	there := map[string]bool{}
	for _, f := range files {
		if f.test || there[f.folder] {
			continue
		}
		there[f.folder] = true
		if _, ok := r.packages[f.folder]; !ok {
			found = append(found, f.folder+": has no row in the table of packages")
		}
	}
	for name := range r.packages {
		if name != testsRow && !there[name] {
			found = append(found, name+": has a row in the table of packages and is not there")
		}
	}
	for _, d := range r.deciding {
		for _, glob := range slices.Concat(d.files, d.except) {
			if !slices.ContainsFunc(files, func(f sourceFile) bool { return !f.test && matches(glob, f.name) }) {
				found = append(found, glob+": stands in the table of deciding files and matches no file")
			}
		}
	}
	return found
}

// imports says what is wrong with one import of a file, "" when nothing is.
func (r rules) imports(f sourceFile, imported string) string {
	row := r.packages[f.folder]
	if imported == module || strings.HasPrefix(imported, module+"/") {
		ours := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
		if !f.test && strings.HasSuffix(ours, "test") {
			return ours + " is for tests alone"
		}
		if f.test || row.all || slices.Contains(row.ours, ours) {
			return ""
		}
		return f.folder + " may not import " + ours
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	if under(imported, row.alone) || under(imported, row.shared) || f.test && under(imported, r.packages[testsRow].shared) {
		return ""
	}
	for owner, o := range r.packages {
		if !under(imported, o.alone) {
			continue
		}
		// Tests of the whole look at it through everybody's library.
		if f.test && row.all {
			return ""
		}
		return imported + " is for " + owner + " alone"
	}
	return "no row lets " + f.folder + " import " + imported
}

// under reports whether a path is one of the modules, or a package of one.
func under(imported string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return imported == m || strings.HasPrefix(imported, m+"/")
	})
}

// decides gives the row that makes a file a deciding one.
func (r rules) decides(f sourceFile) (decidingRule, bool) {
	for _, d := range r.deciding {
		named := func(glob string) bool { return matches(glob, f.name) }
		if !f.test && slices.ContainsFunc(d.files, named) && !slices.ContainsFunc(d.except, named) {
			return d, true
		}
	}
	return decidingRule{}, false
}

func matches(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}

// impurities are the places where a deciding file does more than decide.
func impurities(f sourceFile, allowed []string) []string {
	var found []string
	watched := map[string]string{} // name in the file -> package of impureFunctions
	for _, i := range f.syntax.Imports {
		imported := strings.Trim(i.Path.Value, `"`)
		if forbidden(imported) && !slices.Contains(allowed, imported) {
			found = append(found, f.at(i.Pos(), "a deciding file may not import %s", imported))
		}
		if impureFunctions[imported] == nil {
			continue
		}
		name := path.Base(imported)
		if i.Name != nil {
			name = i.Name.Name
		}
		if name == "." {
			found = append(found, f.at(i.Pos(), "a deciding file may not import %s with a dot", imported))
		}
		watched[name] = imported
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, f.at(n.Pos(), "a deciding file may not start a goroutine"))
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && slices.Contains(impureFunctions[watched[x.Name]], n.Sel.Name) {
				found = append(found, f.at(n.Pos(), "a deciding file may not use %s.%s", watched[x.Name], n.Sel.Name))
			}
		}
		return true
	})
	return found
}

// forbidden reports whether a package of the standard library is impure. What is
// below one counts, except below net, where only the named ones do.
func forbidden(imported string) bool {
	return slices.ContainsFunc(impure, func(p string) bool {
		return imported == p || p != "net" && strings.HasPrefix(imported, p+"/")
	})
}
