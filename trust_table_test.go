package gitring_test

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

	"github.com/stretchr/testify/require"
)

const trustTable = "docs/testing/trust-table.md"

// trustRows are the rows of the table: V01 to V67 with the letters that some have.
func trustRows() []string {
	letters := map[int]string{26: "abcdefghijklm", 34: "ab", 62: "a", 65: "abcdef"}
	var ids []string
	for n := 1; n <= 67; n++ {
		if n == 21 || n == 48 {
			continue
		}
		id := fmt.Sprintf("V%02d", n)
		ids = append(ids, id)
		for _, l := range letters[n] {
			ids = append(ids, id+string(l))
		}
	}
	return ids
}

var (
	trustRow = regexp.MustCompile(`(?m)^\| (V\d\d[a-m]?) \|(.*)\|(.*)\|(.*)\|$`)
	testName = regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)(?:/([^`]+))?`")
)

// TestEveryRowOfTheTrustTableIsShownByATest finds each test that the table names in
// the source of its package, and each case among the texts of that test.
func TestEveryRowOfTheTrustTableIsShownByATest(t *testing.T) {
	page, err := os.ReadFile(trustTable)
	require.NoError(t, err)
	rows := map[string]int{}
	packages := map[string]testSource{}
	for _, row := range trustRow.FindAllStringSubmatch(string(page), -1) {
		id, tests := row[1], testName.FindAllStringSubmatch(row[4], -1)
		rows[id]++
		if len(tests) == 0 || len(tests) != strings.Count(row[4], "`")/2 {
			t.Errorf("%s: no test is named, or one that cannot be read:%s", id, row[4])
		}
		for _, name := range tests {
			dir, function, sub := name[1], name[2], name[3]
			if packages[dir] == nil {
				packages[dir] = readTests(t, dir)
			}
			switch texts, ok := packages[dir][function]; {
			case !ok:
				t.Errorf("%s: package %s has no test %s", id, dir, function)
			case sub != "" && !texts.begins(sub):
				t.Errorf("%s: %s.%s has no case that begins with %q", id, dir, function, sub)
			}
		}
	}
	for _, id := range trustRows() {
		if rows[id] != 1 {
			t.Errorf("%s stands in the table %d times", id, rows[id])
		}
		delete(rows, id)
	}
	require.Empty(t, rows, "no such rows")
}

// testSource are the tests of a package with the texts in them.
type testSource map[string]caseTexts

type caseTexts []string

// begins reports whether a case has this beginning, as a whole word: V26 is not V26a.
func (c caseTexts) begins(sub string) bool {
	for _, text := range c {
		if rest, ok := strings.CutPrefix(text, sub); ok && (rest == "" || strings.ContainsAny(rest[:1], " ,")) {
			return true
		}
	}
	return false
}

// readTests parses the tests of a folder, and the packages for tests below it. The texts
// of a test are those of its own body and of the functions that it calls, where some
// tables stand, and of a suite that those hand their cases to.
func readTests(t *testing.T, dir string) testSource {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "no tests in %s", dir)
	suites, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*test", "*.go"))
	require.NoError(t, err)
	bodies := map[string]*ast.FuncDecl{}
	for _, name := range slices.Concat(files, suites) {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				bodies[strings.TrimPrefix(filepath.Base(filepath.Dir(name))+".", filepath.Base(dir)+".")+f.Name.Name] = f
			}
		}
	}
	out := testSource{}
	for name, f := range bodies {
		if !strings.HasPrefix(name, "Test") {
			continue
		}
		texts, calls := textsOf(f)
		for _, c := range calls {
			if called := bodies[c]; called != nil {
				more, further := textsOf(called)
				texts = append(texts, more...)
				for _, suite := range further {
					if f := bodies[suite]; f != nil && strings.Contains(suite, ".") {
						more, _ := textsOf(f)
						texts = append(texts, more...)
					}
				}
			}
		}
		out[name] = texts
	}
	return out
}

func textsOf(f *ast.FuncDecl) (texts caseTexts, calls []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if s, err := strconv.Unquote(n.Value); err == nil {
					texts = append(texts, s)
				}
			}
		case *ast.CallExpr:
			switch f := n.Fun.(type) {
			case *ast.Ident:
				calls = append(calls, f.Name)
			case *ast.SelectorExpr:
				if of, ok := f.X.(*ast.Ident); ok {
					calls = append(calls, of.Name+"."+f.Sel.Name)
				}
			}
		}
		return true
	})
	return texts, calls
}
