package api

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Time tells nobody how much of a secret was right: what is named like one is compared by
// crypto/subtle alone, or by hmac.Equal. That cannot be measured, so the source is read.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	secret := map[string]bool{"sum": true, "sums": true, "worth": true}
	files := gotoken.NewFileSet()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	right := map[string]int{} // by file
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if (n.Op == gotoken.EQL || n.Op == gotoken.NEQ) && (secret[endName(n.X)] && !isEmpty(n.Y) || secret[endName(n.Y)] && !isEmpty(n.X)) {
					t.Errorf("%s compares a secret as if it was none", files.Position(n.Pos()))
				}
			case *ast.CallExpr:
				by := called(n)
				for _, arg := range n.Args {
					switch {
					case !secret[endName(arg)]:
					case by == "subtle.ConstantTimeCompare" || by == "hmac.Equal":
						right[name]++
					case by == "bytes.Equal" || by == "bytes.Compare" || by == "slices.Equal" || by == "slices.Contains" || by == "strings.EqualFold":
						t.Errorf("%s compares a secret by %s", files.Position(n.Pos()), by)
					}
				}
			}
			return true
		})
	}
	for _, name := range []string{"tokens.go", "local.go", "hook_signed.go", "hook_token.go"} {
		require.Positive(t, right[name], "%s compares none any more: say here what it is named now", name)
	}
}

// endName is what an expression is called at its end: of l.sum[:] it is sum.
func endName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.SliceExpr:
		return endName(e.X)
	case *ast.IndexExpr:
		return endName(e.X)
	case *ast.ParenExpr:
		return endName(e.X)
	case *ast.CallExpr:
		if len(e.Args) == 1 && endName(e.Fun) != "len" { // a conversion
			return endName(e.Args[0])
		}
	}
	return ""
}

// isEmpty reports whether an expression is what an unset text is compared with.
func isEmpty(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value == `""` || e.Kind == gotoken.INT
	case *ast.Ident:
		return e.Name == "nil"
	case *ast.CallExpr:
		return true // of its length
	}
	return false
}

func called(c *ast.CallExpr) string {
	if s, ok := c.Fun.(*ast.SelectorExpr); ok {
		return endName(s.X) + "." + s.Sel.Name
	}
	return endName(c.Fun)
}
