package gitring_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A row of a map: a file of the package without its ending, and what it is about.
var mapRow = regexp.MustCompile(`(?m)^//\t(\w+) +\S`)

// Packages of many files have a map of them in their doc.go, to be read first.
func TestAMapNamesEveryFileOnce(t *testing.T) {
	for _, pkg := range []string{"admission", "api", "checkout", "config", "daemon", "doctor", "fleet", "gitsync", "hub", "manifest", "metrics", "notify", "proxy", "reconcile", "report", "runtime", "runtime/enginetest", "screen", "secrets", "setup", "show", "store", "upgrade", "wording"} {
		t.Run(pkg, func(t *testing.T) {
			doc, err := os.ReadFile(filepath.Join(pkg, "doc.go"))
			require.NoError(t, err)
			var mapped []string
			for _, row := range mapRow.FindAllStringSubmatch(string(doc), -1) {
				mapped = append(mapped, row[1]+".go")
			}
			slices.Sort(mapped)
			paths, err := filepath.Glob(filepath.Join(pkg, "*.go"))
			require.NoError(t, err)
			var files []string
			for _, p := range paths {
				if f := filepath.Base(p); f != "doc.go" && !strings.HasSuffix(f, "_test.go") {
					files = append(files, f)
				}
			}
			slices.Sort(files)
			require.Equal(t, files, mapped, "the files, and those that %s/doc.go names", pkg)
		})
	}
}
