package reconcile

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDirections holds the calls between the groups of files in doc.go to the table of
// ARCHITECTURE.md. A group calls none above it, so no two call each other both ways.
func TestDirections(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	groups := readGroups(string(doc))
	require.Greater(t, len(groups), 10)
	text, err := os.ReadFile("../ARCHITECTURE.md")
	require.NoError(t, err)
	table := readDirections(string(text))
	calls := callsBetweenFiles(t)
	require.Greater(t, len(calls), 500)
	for _, says := range wrongDirections(groups, table, calls) {
		t.Error(says)
	}
}

func TestDirectionsSeeWhatTheyForbid(t *testing.T) {
	groups := readGroups("// Upper, as it stands:\n//\n//\tone a file\n//\ttwo another\n//\n// Lower:\n//\n//\tthree the third\n")
	require.Equal(t, []fileGroup{{"Upper", []string{"one.go", "two.go"}}, {"Lower", []string{"three.go"}}}, groups)
	table := readDirections("## Directions\n\n| group | calls |\n|---|---|\n| Upper | Lower |\n| Lower | – |\n\n## More\n")
	down := fileCall{"one.go", "three.go", "below"}
	for _, tt := range []struct {
		name  string
		table []direction
		calls []fileCall
		says  []string
	}{
		{"what the table names", table, []fileCall{down, {"one.go", "two.go", "beside"}}, nil},
		{"a direction that no row names", []direction{{"Upper", nil}, {"Lower", nil}}, []fileCall{down}, []string{"one.go calls below (three.go): the table does not let Upper call Lower"}},
		{"a row that no call uses", table, nil, []string{"the table lets Upper call Lower, and no call does"}},
		{
			"a call of a group above",
			[]direction{{"Upper", []string{"Lower"}}, {"Lower", []string{"Upper"}}},
			[]fileCall{down, {"three.go", "two.go", "above"}},
			[]string{"the table lets Lower call Upper, which stands above it", "three.go calls above (two.go): Upper stands above Lower"},
		},
		{"a group without a row", table[:1], []fileCall{down}, []string{"the rows are not the groups of doc.go, in order: [Upper], not [Upper Lower]"}},
		{"a row without a group", append(slices.Clone(table), direction{from: "Else"}), []fileCall{down}, []string{"the rows are not the groups of doc.go, in order: [Upper Lower Else], not [Upper Lower]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.says, wrongDirections(groups, tt.table, tt.calls))
		})
	}
}

// fileGroup is a group of files in the map of doc.go.
type fileGroup struct {
	name  string
	files []string
}

// direction is a row of the table: the groups that a group may call.
type direction struct {
	from string
	to   []string
}

// fileCall is a function of one file, named in another.
type fileCall struct{ from, to, name string }

var (
	groupTitle = regexp.MustCompile(`^// ([A-Z][^,:.]*)(?:, [^:]*)?:$`)
	groupFile  = regexp.MustCompile(`^//\t(\w+) +\S`)
)

// readGroups reads the map of doc.go, from top to bottom. What comes after a comma in the
// title of a group is no part of its name.
func readGroups(doc string) (out []fileGroup) {
	for line := range strings.Lines(doc) {
		line = strings.TrimRight(line, "\n")
		if m := groupTitle.FindStringSubmatch(line); m != nil {
			out = append(out, fileGroup{name: m[1]})
		} else if m := groupFile.FindStringSubmatch(line); m != nil && len(out) > 0 {
			last := &out[len(out)-1]
			last.files = append(last.files, m[1]+".go")
		}
	}
	return out
}

// readDirections reads the table below the heading Directions.
func readDirections(document string) (out []direction) {
	_, section, _ := strings.Cut(document, "## Directions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 || !strings.HasPrefix(line, "|") {
			continue
		}
		row := direction{from: strings.TrimSpace(cells[0])}
		if names := strings.TrimSpace(cells[1]); names != "–" {
			row.to = strings.Split(names, ", ")
		}
		out = append(out, row)
	}
	return out[min(len(out), 2):] // without head and rule
}

// wrongDirections says where groups, table and calls differ.
func wrongDirections(groups []fileGroup, table []direction, calls []fileCall) (out []string) {
	var names, rows []string
	at, of := map[string]int{}, map[string]string{}
	for i, g := range groups {
		names, at[g.name] = append(names, g.name), i
		for _, file := range g.files {
			of[file] = g.name
		}
	}
	named := map[[2]string]bool{}
	for _, row := range table {
		rows = append(rows, row.from)
		for _, to := range row.to {
			named[[2]string{row.from, to}] = true
		}
	}
	if !slices.Equal(names, rows) {
		return []string{fmt.Sprintf("the rows are not the groups of doc.go, in order: %v, not %v", rows, names)}
	}
	used := map[[2]string]bool{}
	for _, c := range calls {
		from, to := of[c.from], of[c.to]
		used[[2]string{from, to}] = true
		switch {
		case from == to:
		case at[to] < at[from]:
			out = append(out, fmt.Sprintf("%s calls %s (%s): %s stands above %s", c.from, c.name, c.to, to, from))
		case !named[[2]string{from, to}]:
			out = append(out, fmt.Sprintf("%s calls %s (%s): the table does not let %s call %s", c.from, c.name, c.to, from, to))
		}
	}
	for d := range named {
		switch to, known := at[d[1]]; {
		case !known:
			out = append(out, fmt.Sprintf("the table lets %s call %s, which is no group of doc.go", d[0], d[1]))
		case to <= at[d[0]]:
			out = append(out, fmt.Sprintf("the table lets %s call %s, which stands above it", d[0], d[1]))
		case !used[d]:
			out = append(out, fmt.Sprintf("the table lets %s call %s, and no call does", d[0], d[1]))
		}
	}
	slices.Sort(out)
	return out
}

// callsBetweenFiles are the functions and methods of this package that a file names and
// another has, whether it calls them or hands them on. Types, constants and variables are
// no calls: the lists of rules are handed to those who ask them.
func callsBetweenFiles(t *testing.T) []fileCall {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, file := range productFiles(t) {
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, parsed)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output() // a test that was built with -trimpath has none
	require.NoError(t, err)
	build.Default.GOROOT = strings.TrimSpace(string(root))
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	pkg, err := conf.Check("github.com/gitring/gitring/reconcile", fset, files, info)
	require.NoError(t, err)
	fileOf := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	found := map[fileCall]bool{}
	for id, obj := range info.Uses {
		if fn, ok := obj.(*types.Func); ok && fn.Pkg() == pkg && fileOf(id.Pos()) != fileOf(fn.Pos()) {
			found[fileCall{from: fileOf(id.Pos()), to: fileOf(fn.Pos()), name: fn.Name()}] = true
		}
	}
	return sortedCalls(found)
}

func sortedCalls(found map[fileCall]bool) []fileCall {
	out := make([]fileCall, 0, len(found))
	for c := range found {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b fileCall) int {
		return strings.Compare(a.from+" "+a.to+" "+a.name, b.from+" "+b.to+" "+b.name)
	})
	return out
}
