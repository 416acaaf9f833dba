package gitring_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// comparesSentences are the functions that may look into a sentence, each with the reason.
// Whatever decides does so by a code; an entry that nothing needs any more is a fault.
var comparesSentences = map[string]string{
	// Words of others, or of the program as somebody outside reads it.
	"config/load.go yamlMistake":             "yaml.v3's own words",
	"bench/corpus/answers.go addFile":        "drives the built program from outside, and reads what it prints",
	"bench/corpus/measure.go renameRefused":  "drives the built program from outside, and reads what it prints",
	"bench/corpus/result.go alternative":     "drives the built program from outside, and reads what it prints",
	"bench/corpus/answers.go answerRefusals": "drives the built program from outside, and reads what it prints",
	// What the journal of an earlier release says of a commit, which has no field for it.
	"history/fold.go take": "whose answer a commit has, from the journal's line",
	// So that a screen says nothing twice, or draws a bar. Nothing but the text depends on it.
	"show/explained.go Explained":  "says nothing twice",
	"show/plan.go reasonOfChange":  "says nothing twice",
	"show/status.go conditionOnce": "says nothing twice",
	"show/status.go conditionTold": "says nothing twice",
	"show/status.go nextToldBelow": "says nothing twice",
	"show/status.go showApp":       "says nothing twice",
	"show/status.go showDetails":   "says nothing twice",
	"show/status.go showRollout":   "says nothing twice",
	"show/status.go toldBelow":     "says nothing twice",
	"show/progress.go appProgress": "says nothing twice",
	"show/progress.go Progress":    "draws a bar of a pull",
	"show/progress.go showUnwell":  "says nothing twice",
	// This decides still, by a verdict.
}

// TestNoCodeComparesSentences finds code that decides by what was written for people.
func TestNoCodeComparesSentences(t *testing.T) {
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != "." {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			for _, at := range sentencesCompared(fn.Body) {
				key := filepath.ToSlash(name) + " " + fn.Name.Name
				found[key] = append(found[key], fset.Position(at).String())
			}
		}
		return nil
	})
	require.NoError(t, err)
	for key, at := range found {
		if comparesSentences[key] == "" {
			t.Errorf("%q: compares a sentence at %v", key, at)
		}
	}
	for key := range comparesSentences {
		if found[key] == nil {
			t.Errorf("%s compares no sentence any more: take it off the list", key)
		}
	}
}

func TestComparedSentencesAreFound(t *testing.T) {
	for text, n := range map[string]int{
		`strings.Contains(e.Says, name)`:            1,
		`strings.HasPrefix(st.Next.Reason, "held")`: 1,
		`words.FindStringSubmatch(a.Reason)`:        1,
		`try.Err == "no such image"`:                1,
		`src.Reason == "app "+a.Name+": "+a.Reason`: 1,
		`strings.Cut(p.Description, ":")`:           1,
		`old.Says == now.Says`:                      0,
		`why.Says == ""`:                            0,
		`strings.Contains(a.Name, "x")`:             0,
		`say("%s", e.Says)`:                         0,
		`err == io.EOF`:                             0,
	} {
		e, err := parser.ParseExpr(text)
		require.NoError(t, err)
		require.Len(t, sentencesCompared(e), n, text)
	}
}

// sentencesCompared are the places where a sentence is searched or compared.
func sentencesCompared(in ast.Node) (at []token.Pos) {
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if !searches(n.Fun) {
				return true
			}
			for _, arg := range n.Args {
				if hasSentence(arg) {
					at = append(at, n.Pos())
					break
				}
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (hasWords(n.X) && isSentence(n.Y) || hasWords(n.Y) && isSentence(n.X)) {
				at = append(at, n.Pos())
			}
		}
		return true
	})
	return at
}

// hasWords reports whether an expression has a text in it that is not empty. Two sentences
// may be compared with each other: whether one was told already is no question of words.
func hasWords(e ast.Expr) (has bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && lit.Value != `""` {
			has = true
		}
		return !has
	})
	return has
}

// searches reports whether a function looks for something in a text.
func searches(fun ast.Expr) bool {
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "strings" {
		for _, name := range []string{"Contains", "HasPrefix", "HasSuffix", "Cut", "Index", "EqualFold", "Split", "Fields"} {
			if strings.HasPrefix(sel.Sel.Name, name) {
				return true
			}
		}
		return false
	}
	return strings.HasPrefix(sel.Sel.Name, "Match") || strings.HasPrefix(sel.Sel.Name, "FindString")
}

func hasSentence(e ast.Expr) (has bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if x, ok := n.(ast.Expr); ok && isSentence(x) {
			has = true
		}
		return !has
	})
	return has
}

// isSentence reports whether an expression is a field that holds what people read.
func isSentence(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch sel.Sel.Name {
	case "Says", "Reason", "Description", "Err":
		return true
	}
	return false
}
