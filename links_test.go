package gitring_test

import (
	"fmt"
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
	linked   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	makeVerb = regexp.MustCompile("(?:^|[`(\\s])make ([a-z][a-z0-9-]*)")
	target   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
)

// Documents say where to go on: what they link to is there, and so is each
// target of make that they name in code.
func TestEveryLinkOfTheDocumentsLeadsSomewhere(t *testing.T) {
	found, err := deadEnds(os.DirFS("."))
	require.NoError(t, err)
	for _, v := range found {
		t.Error(v)
	}
}

func TestDeadEndsAreSeen(t *testing.T) {
	got, err := deadEnds(fstest.MapFS{
		"Makefile": {Data: []byte("test: a\n")},
		"README.md": {Data: []byte("# A b\n[a](docs/a.md) [b](docs/none.md) [c](#a-b) [d](#c) [e](https://example.org/x) [f](docs/a.md#the-end-or-not) [g](docs/a.md#end)\n" +
			"`make test` `make tset` make sure\n```sh\nmake demo   # [x](y)\n```\n")},
		"docs/a.md": {Data: []byte("## The end, or `not`\n[up](../README.md) [out](../../x.md)\n")},
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"README.md: docs/none.md is not there", "README.md: README.md has no heading #c", "README.md: docs/a.md has no heading #end",
		"README.md: make demo is no target", "README.md: make tset is no target", "docs/a.md: ../x.md is not there",
	}, got)
}

// deadEnds are the links of all Markdown files that lead nowhere.
func deadEnds(tree fs.FS) ([]string, error) {
	makefile, err := fs.ReadFile(tree, "Makefile")
	if err != nil {
		return nil, err
	}
	var targets []string
	for _, m := range target.FindAllSubmatch(makefile, -1) {
		targets = append(targets, string(m[1]))
	}
	var dead []string
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		body, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		dead = append(dead, deadIn(tree, name, string(body), targets)...)
		return nil
	})
	return dead, err
}

func deadIn(tree fs.FS, name, text string, targets []string) []string {
	var dead []string
	tell := func(says string, args ...any) { dead = append(dead, name+": "+fmt.Sprintf(says, args...)) }
	prose := fenced.ReplaceAllString(text, "")
	for _, m := range linked.FindAllStringSubmatch(prose, -1) {
		to, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(to, ":") {
			continue // outside of the repository
		}
		file := name
		if to != "" {
			file = path.Join(path.Dir(name), to)
		}
		if _, err := fs.Stat(tree, file); err != nil {
			tell("%s is not there", file)
			continue
		}
		if body, err := fs.ReadFile(tree, file); anchor != "" && (err != nil || !slices.Contains(anchors(string(body)), anchor)) {
			tell("%s has no heading #%s", file, anchor)
		}
	}
	code := strings.Join(fenced.FindAllString(text, -1), "\n") + strings.Join(regexp.MustCompile("`[^`\n]+`").FindAllString(prose, -1), "\n")
	for _, m := range makeVerb.FindAllStringSubmatch(code, -1) {
		if !slices.Contains(targets, m[1]) {
			tell("make %s is no target", m[1])
		}
	}
	return dead
}

// anchors are the names that a forge gives the headings of a document.
func anchors(text string) []string {
	var all []string
	seen := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
				return r
			case r == ' ':
				return '-'
			}
			return -1
		}, strings.ToLower(strings.TrimSpace(m[1])))
		if n := seen[slug]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", slug, n))
		} else {
			all = append(all, slug)
		}
		seen[slug]++
	}
	return all
}
