package proof_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every code of a fault has a row in the reference.
func TestEveryFaultIsInTheReference(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/proof.md")
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "fault.go", nil, 0)
	require.NoError(t, err)
	seen := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		require.Contains(t, string(page), "`"+code+"`")
		seen++
		return true
	})
	require.GreaterOrEqual(t, seen, 30)
}
