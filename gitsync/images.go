package gitsync

import (
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/ring"
)

// maxImageFile bounds a file in which images are moved; manifests are smaller.
const maxImageFile = 1 << 20

// imageText names an image: the repository, the tag and the digest. A registry's port is part
// of the repository, as no slash follows a tag.
var imageText = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*(?::[0-9]+/)?[A-Za-z0-9._/-]*)(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)

// imagesOnly holds a commit of a signer with role images to moving tags and
// digests: every file it changes was there before and is there still, and nothing
// differs in it but values of image, which name the same repository as before.
func (v *verification) imagesOnly(p *parsed, id identity, grants []Binding) (*ring.Refusal, error) {
	changes, refusal, err := v.changes(p)
	if refusal != nil || err != nil {
		return refusal, err
	}
	if refusal := inPaths(p.sha, id, grants, changes); refusal != nil {
		return refusal, nil
	}
	for _, c := range changes {
		covering := slices.DeleteFunc(slices.Clone(grants), func(b Binding) bool { return !b.covers(c.path) })
		why, refusal, err := v.movesImages(p, c, covering)
		if refusal != nil || err != nil {
			return refusal, err
		}
		if why != "" {
			return notImagesOnly(p.sha, id, c.path, why), nil
		}
	}
	return nil, nil
}

// movesImages is why a change is more than that; "" when it is not.
func (v *verification) movesImages(p *parsed, c change, grants []Binding) (why string, _ *ring.Refusal, _ error) {
	if c.old.name == "" || c.new.name == "" || c.old.mode != c.new.mode || !c.new.mode.IsRegular() {
		return "is added, removed or made something else", nil, nil
	}
	var texts [2]string
	for i, n := range []node{c.old, c.new} {
		kind, body, err := v.o.Raw(n.sha)
		if err != nil {
			return "", nil, fmt.Errorf("cannot read %s: %w", c.path, err)
		}
		sum, collides := objectHash(kind, body)
		if refusal := named(n.sha, sum, collides); refusal != nil {
			return "", refusal, nil
		}
		if kind != "blob" || len(body) > maxImageFile {
			return "is no file of at most 1 MiB", nil, nil
		}
		texts[i] = string(body)
	}
	if path.Base(c.path) == dotEnv {
		return v.movesVariables(p, c.path, texts[0], texts[1], grants)
	}
	return imageMoves(texts[0], texts[1], grants), nil, nil
}

// imageMoves is why two texts of a file differ by more than the grants let images move; ""
// where they do not. The old text is rewritten, value by value, and has to become the new one
// to the last byte.
func imageMoves(was, is string, grants []Binding) (why string) {
	if n := strings.Count(was, "\n"); n != strings.Count(is, "\n") {
		return "has more or fewer lines"
	}
	old, ok := imageValues(was)
	now, parses := imageValues(is)
	if !ok || !parses {
		return "is no YAML"
	}
	out, shift, line := was, 0, 0
	for i := range old {
		if i >= len(now) || old[i].line != now[i].line {
			break
		}
		from, to := old[i].text, now[i].text
		if from == to {
			continue
		}
		if !sameRepository(from, to) {
			return fmt.Sprintf("line %d is not a tag or digest of the same image", old[i].line)
		}
		if why := mayMove(from, to, grants); why != "" {
			return fmt.Sprintf("line %d %s", old[i].line, why)
		}
		if at := old[i].at + shift; at < 0 || at+len(from) > len(out) || out[at:at+len(from)] != from {
			return fmt.Sprintf("line %d has an image in a form that is not read", old[i].line)
		}
		at := old[i].at + shift
		out, shift = out[:at]+to+out[at+len(from):], shift+len(to)-len(from)
	}
	a, b := strings.Split(out, "\n"), strings.Split(is, "\n")
	for line = range a {
		if a[line] != b[line] {
			return fmt.Sprintf("line %d is not a tag or digest of the same image", line+1)
		}
	}
	return ""
}

// imageValue is one value of a key image: where it stands in the text, from its first byte.
type imageValue struct {
	line, at int
	text     string
	chain    []string // the keys that lead to the mapping of image
	local    bool     // the same mapping says how it is built, or that no registry is asked
}

// imageValues are those of all documents of a text, in order. What is an alias, or a text of
// several lines, is none.
func imageValues(text string) (out []imageValue, ok bool) {
	defer func() {
		if recover() != nil { // of a library, on a stranger's text
			out, ok = nil, false
		}
	}()
	lines := strings.SplitAfter(text, "\n")
	starts := make([]int, len(lines))
	for i := 1; i < len(lines); i++ {
		starts[i] = starts[i-1] + len(lines[i-1])
	}
	var walk func(n *yaml.Node, chain []string)
	walk = func(n *yaml.Node, chain []string) {
		for i, child := range n.Content {
			below := chain
			if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Kind == yaml.ScalarNode {
				below = append(slices.Clone(chain), n.Content[i-1].Value)
			}
			isImage := len(below) > len(chain) && n.Content[i-1].Value == "image"
			if isImage && child.Kind == yaml.ScalarNode && child.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && child.Line <= len(lines) {
				at := starts[child.Line-1] + offsetOf(lines[child.Line-1], child.Column-1)
				if child.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
					at++
				}
				out = append(out, imageValue{line: child.Line, at: at, text: child.Value, chain: chain, local: hasKey(n, "build") || hasPair(n, "pull_policy", "never")})
			}
			walk(child, below)
		}
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var n yaml.Node
		switch err := dec.Decode(&n); {
		case errors.Is(err, io.EOF):
			return out, true
		case err != nil:
			return nil, false
		}
		walk(&n, nil)
	}
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// hasPair reports whether a mapping has a key with a value.
func hasPair(n *yaml.Node, key, value string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && n.Content[i+1].Value == value {
			return true
		}
	}
	return false
}

// offsetOf is where the character of a number begins in a line.
func offsetOf(line string, n int) int {
	for at := range line {
		if n == 0 {
			return at
		}
		n--
	}
	return len(line)
}

// sameRepository reports whether two texts name versions of one image.
func sameRepository(a, b string) bool {
	x, y := imageText.FindStringSubmatch(a), imageText.FindStringSubmatch(b)
	if x == nil || y == nil || y[2] == "" && y[3] == "" || x[2] == "" && x[3] == "" {
		return false
	}
	return x[1] == y[1]
}

// mayMove is why no grant lets an image of one repository move so; "" where one does.
func mayMove(from, to string, grants []Binding) string {
	x, y := imageText.FindStringSubmatch(from), imageText.FindStringSubmatch(to)
	kind, up := ring.MoveDigest, true
	if x[2] != y[2] {
		var ok bool
		if kind, up, ok = ring.TagMove(strings.TrimPrefix(x[2], ":"), strings.TrimPrefix(y[2], ":")); !ok {
			kind = ""
		}
	}
	if x[3] != "" && y[3] == "" {
		kind = "" // what did not move may move from now on
	}
	if slices.ContainsFunc(grants, func(b Binding) bool { return b.letsMove(kind, up) }) {
		return ""
	}
	tags := clip(strings.TrimPrefix(x[2]+x[3], ":")) + " to " + clip(strings.TrimPrefix(y[2]+y[3], ":"))
	switch {
	case kind == "" && x[3] != "" && y[3] == "":
		return "takes a digest away, which only moves: [any] lets pass"
	case kind == "":
		return "moves " + tags + ", tags of another shape, which only moves: [any] lets pass"
	case !up && slices.ContainsFunc(grants, func(b Binding) bool { return b.letsMove(kind, true) }):
		return "moves " + tags + ", which is down, and only direction: any lets that pass"
	}
	return "moves " + tags + ", a move of kind " + kind + ", which moves does not name"
}

// letsMove reports whether a binding lets an image move so. kind is "" where the two tags have
// nothing to be compared by.
func (b Binding) letsMove(kind string, up bool) bool {
	if slices.Contains(b.Moves, anyMove) {
		return true
	}
	if kind == "" || len(b.Moves) > 0 && !slices.Contains(b.Moves, kind) {
		return false
	}
	return up || kind == ring.MoveDigest || b.Direction == anyMove
}
