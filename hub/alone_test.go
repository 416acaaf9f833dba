package hub

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A hub dials nobody. Nothing in this package can: it has no package that does, and of those that can
// it names nothing that does. That the whole program does not, e2e shows by what its kernel is asked.
func TestTheHubHasNothingToDialWith(t *testing.T) {
	ours := "github.com/gitring/gitring/"
	may := map[string]bool{
		ours + "ring": true, ours + "disk": true, ours + "doctor": true, ours + "history": true, ours + "metrics": true, ours + "api": true, ours + "api/pages": true,
	}
	standard := map[string]bool{"net/http": true} // to answer
	for _, none := range []string{"net", "net/rpc", "net/smtp", "net/url", "os/exec", "syscall/js", "plugin"} {
		require.False(t, standard[none])
	}
	files := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	seen := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		require.NoError(t, err)
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			switch {
			case strings.HasPrefix(path, ours):
				require.True(t, may[path], "%s", path)
			case path == "net" || strings.HasPrefix(path, "net/") || path == "os/exec":
				require.True(t, standard[path], "%s", path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && (x.Name == "http" || x.Name == "api") {
				seen++
				for _, dials := range []string{"Client", "DefaultClient", "Get", "Head", "Post", "PostForm", "Transport", "DefaultTransport", "NewRequest", "NewRequestWithContext", "NewClient", "NewClientBy"} {
					if s.Sel.Name == dials {
						t.Errorf("%s names %s.%s", files.Position(n.Pos()), x.Name, dials)
					}
				}
			}
			return true
		})
	}
	require.Greater(t, seen, 20)
}
