package gitsync

import (
	"regexp"
	"strings"

	"github.com/gitring/gitring/ring"
)

// ImagePlace is where a Compose file names the image of a service.
type ImagePlace struct {
	Line int
	At   int    // the text's first byte in the file; -1 where it is written in a form that role images does not move
	Text string // as written, variables included
	// Service is the service, or the template, that it is the image of. Local says that the
	// file says how the image is built, or that no registry is asked for it.
	Service string
	Local   bool
}

// ImagePlaces are those of a text, in order; false where it is no YAML. What stands under
// another key image than that of a service is none.
func ImagePlaces(text string) (out []ImagePlace, ok bool) {
	values, ok := imageValues(text)
	for _, v := range values {
		if !ofService(v.chain) || v.text == "" {
			continue
		}
		p := ImagePlace{Line: v.line, At: v.at, Text: v.text, Service: v.chain[len(v.chain)-1], Local: v.local}
		if p.At < 0 || p.At+len(p.Text) > len(text) || text[p.At:p.At+len(p.Text)] != p.Text {
			p.At = -1
		}
		out = append(out, p)
	}
	return out, ok
}

// ImageName is an image as written, in its parts: Repository, a Tag without its colon, a
// Digest with "sha256:" before it. Each of the last two may be "".
type ImageName struct{ Repository, Tag, Digest string }

// ParseImageName reads one; false for what has a variable in it, or is none.
func ParseImageName(text string) (ImageName, bool) {
	m := imageText.FindStringSubmatch(text)
	if m == nil {
		return ImageName{}, false
	}
	return ImageName{m[1], strings.TrimPrefix(m[2], ":"), strings.TrimPrefix(m[3], "@")}, true
}

// String is the image as it is written.
func (n ImageName) String() string {
	out := n.Repository
	if n.Tag != "" {
		out += ":" + n.Tag
	}
	if n.Digest != "" {
		out += "@" + n.Digest
	}
	return out
}

// TagVariable is a variable that is part of the tag of an image.
type TagVariable struct{ Repository, Name, Before, Behind string }

var variableName = regexp.MustCompile(`\$\{?([A-Za-z_][A-Za-z0-9_]*)`)

// ParseTagVariable finds it; false where the text has none, several, or one elsewhere.
func ParseTagVariable(text string) (v TagVariable, ok bool) {
	found := variableName.FindAllStringSubmatchIndex(text, -1)
	if len(found) != 1 {
		return v, false
	}
	u := &variableUse{name: text[found[0][2]:found[0][3]]}
	tag, ok := u.tagOf(text)
	if !ok || strings.Contains(tag.behind, "@") {
		return v, false
	}
	before := text[:found[0][0]]
	return TagVariable{before[:len(before)-len(tag.before)-1], u.name, tag.before, tag.behind}, true
}

// EnvTag is where a text of .env sets a variable to a tag, from the tag's first byte; false
// where it does not, or in a form that role images does not move.
func EnvTag(text, name string) (line, at int, value string, ok bool) {
	if _, plain := envNames(text); !plain {
		return 0, 0, "", false
	}
	for i, l := range strings.Split(text, "\n") {
		if m := envTag.FindStringSubmatch(l); m != nil && m[1] == name && m[2] == m[4] {
			return i + 1, at + len(name) + 1 + len(m[2]), m[3], true
		}
		at += len(l) + 1
	}
	return 0, 0, "", false
}

// VariablesMove is why a change of .env in a tree is more than tags that only images use; ""
// where it is not. It is what role images is held to, without its bounds.
func VariablesMove(o Objects, tree ring.SHA, env, was, is string) (why string, err error) {
	v := &verification{o: o}
	why, refusal, err := v.movesVariables(&parsed{sha: tree, tree: tree}, env, was, is, []Binding{{Moves: []string{anyMove}}})
	if refusal != nil {
		return "", refusal
	}
	return why, err
}
