package gitring_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp/syntax"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostRunes is how many bounds of character classes the steps of a pattern have at most. A pattern
// that repeats a large class hundreds of times is megabytes in each process, used or not.
const mostRunes = 20_000

func TestNoPatternTakesMuchMemory(t *testing.T) {
	require.Greater(t, weightOf(`^(group|sub):[^\s*][^*\p{C}]{0,254}$`), mostRunes, "one that took 5 MiB")
	found := 0
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		body, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(body), "regexp.MustCompile(") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, body, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					w := weightOf(text)
					if w > 0 {
						found++
					}
					if w > mostRunes {
						t.Errorf("%s: pattern %s has %d bounds of classes, %d are enough; write a function", name, lit.Value, w, mostRunes)
					}
				}
			}
			return true
		})
		return nil
	}))
	require.Greater(t, found, 100, "patterns are found")
}

// weightOf counts the bounds of classes in the steps of a pattern; 0 for what is none.
func weightOf(pattern string) (n int) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	steps, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	for _, step := range steps.Inst {
		n += len(step.Rune)
	}
	return n
}
