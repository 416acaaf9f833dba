package gitring_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var (
	namedPage = regexp.MustCompile(`(?:^|[^\w/.<>*-])((?:[\w-]+/)*[\w-]+\.md)(?:#([\w-]+))?`)
	// A document that is written for the makers of gitring alone, by its bare name.
	bareName = regexp.MustCompile(`\b(?:ROLLOUT|DESIGN|TRUST|POLICY|LESSONS|HOUSE|FORGES|ENGINES|SECRETS|TRAFFIC|OPERATE)\b`)
)

// Whoever reads a comment can read what it points to: a page that it names is in the
// repository, and so is the heading after #.
func TestCommentsNamePagesThatAreThere(t *testing.T) {
	found, err := commentsToNowhere(os.DirFS("."))
	require.NoError(t, err)
	for _, v := range found {
		t.Error(v)
	}
}

func TestCommentsToNowhereAreSeen(t *testing.T) {
	got, err := commentsToNowhere(fstest.MapFS{
		"docs/a.md":   {Data: []byte("# One\n## Two words\n")},
		"b/README.md": {Data: []byte("# B\n")},
		"b/b.go": {Data: []byte("// Package b is as docs/a.md#two-words and README.md say.\npackage b\n\n" +
			"// A is docs/none.md.\n// B is (docs/a.md#three), C is LESSONS 7.\nconst A = \"docs/gone.md\" // D is RULES.md section 2\n")},
		"b/b_test.go":     {Data: []byte("package b\n\n// some-page.md is here, docs/none.md and TRUST.md are not.\n")},
		"b/testdata/c.go": {Data: []byte("// Package c is NOTHING.md.\npackage c\n")},
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"b/b.go: docs/none.md is not there", "b/b.go: docs/a.md has no heading #three", "b/b.go: LESSONS is not in the repository",
		"b/b.go: RULES.md is not there", "b/b_test.go: docs/none.md is not there", "b/b_test.go: TRUST is not in the repository",
	}, got)
}

// commentsToNowhere are the pages that comments of Go files name and that nobody can read.
func commentsToNowhere(tree fs.FS) (found []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		body, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, body, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range parsed.Comments {
			for _, c := range group.List {
				for _, fault := range toNowhere(tree, name, c.Text) {
					found = append(found, name+": "+fault)
				}
			}
		}
		return nil
	})
	return found, err
}

// toNowhere are the faults of one comment of a file. Tests of how-to pages name these by
// their bare names.
func toNowhere(tree fs.FS, file, comment string) (faults []string) {
	inTest := strings.HasSuffix(file, "_test.go")
	for _, m := range namedPage.FindAllStringSubmatch(comment, -1) {
		page, anchor := m[1], m[2]
		if inTest && !strings.Contains(page, "/") {
			continue
		}
		body, err := fs.ReadFile(tree, page)
		if err != nil {
			body, err = fs.ReadFile(tree, path.Join(path.Dir(file), page))
		}
		switch {
		case err != nil:
			faults = append(faults, page+" is not there")
		case anchor != "" && !slices.Contains(anchors(string(body)), anchor):
			faults = append(faults, fmt.Sprintf("%s has no heading #%s", page, anchor))
		}
	}
	for _, m := range bareName.FindAllStringIndex(comment, -1) {
		if inTest || !strings.HasPrefix(comment[m[1]:], ".md") {
			faults = append(faults, comment[m[0]:m[1]]+" is not in the repository")
		}
	}
	return faults
}
