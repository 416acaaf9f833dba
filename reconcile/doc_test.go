package reconcile

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheMapNamesEveryFileOnce(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var mapped []string
	for _, line := range regexp.MustCompile(`(?m)^//\t(\w+) +\S`).FindAllStringSubmatch(string(text), -1) {
		mapped = append(mapped, line[1]+".go")
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return f == "doc.go" || strings.HasSuffix(f, "_test.go") })
	slices.Sort(mapped)
	require.Equal(t, files, mapped)
}
