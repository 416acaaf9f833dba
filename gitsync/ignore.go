package gitsync

import (
	"bytes"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Ignore says what Git would leave out of a commit of a work tree: what its
// .gitignore files name and no commit holds yet. The zero value leaves nothing out.
type Ignore struct {
	read    func(name string) ([]byte, error)
	tracked map[string]bool // files of the index, and the folders above them
	own     map[string][]gitignore.Pattern
}

// NewIgnore reads the index of a work tree; read gives the bytes of a file below
// its root. Where there is no index that it can read it leaves nothing out: what
// is ignored and yet committed could not be told.
func NewIgnore(read func(name string) ([]byte, error)) *Ignore {
	body, err := read(".git/index")
	if err != nil {
		return &Ignore{}
	}
	var idx index.Index
	if err := index.NewDecoder(bytes.NewReader(body)).Decode(&idx); err != nil {
		return &Ignore{}
	}
	g := &Ignore{read: read, tracked: map[string]bool{}, own: map[string][]gitignore.Pattern{}}
	for _, e := range idx.Entries {
		for p := e.Name; p != "." && !g.tracked[p]; p = path.Dir(p) {
			g.tracked[p] = true
		}
	}
	return g
}

// Match reports whether name, a clean path below the root, is left out. Whoever asks
// has asked about the folders above it.
func (g *Ignore) Match(name string, folder bool) bool {
	if g.read == nil || name == "." || g.tracked[name] {
		return false
	}
	parts := strings.Split(name, "/")
	all := g.patterns(".git/info/exclude", nil)
	for i := range parts {
		all = append(all, g.patterns(path.Join(path.Join(parts[:i]...), ".gitignore"), parts[:i])...)
	}
	return gitignore.NewMatcher(all).Match(parts, folder)
}

func (g *Ignore) patterns(file string, domain []string) []gitignore.Pattern {
	if known, ok := g.own[file]; ok {
		return known
	}
	var out []gitignore.Pattern
	body, _ := g.read(file) // none where it cannot be read
	for line := range strings.Lines(string(body)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
			out = append(out, gitignore.ParsePattern(line, domain))
		}
	}
	g.own[file] = out
	return out
}
