package secrets

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// parseYAML reads one document of plain yaml: what SOPS writes, and no more.
func parseYAML(body []byte) (branch, error) {
	d := yaml.NewDecoder(bytes.NewReader(body))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil {
		return nil, faultOfFile(0, "is no valid yaml", "mend it as text; sops --decrypt says where it is")
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, faultOfFile(more.Line, "holds more than one document", "encrypt each document as a file of its own")
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, faultOfFile(doc.Line, "is no mapping at the top", "give its values names")
	}
	if err := sealedComments(doc.Line, doc.HeadComment, doc.LineComment, doc.FootComment); err != nil {
		return nil, err
	}
	var g growing
	v, err := g.yamlValue(doc.Content[0], 0)
	if err != nil {
		return nil, err
	}
	return v.(branch), nil
}

// yamlValue is a node as a value of the tree.
func (g *growing) yamlValue(n *yaml.Node, depth int) (any, error) {
	if err := g.add(depth, n.Line); err != nil {
		return nil, err
	}
	if err := sealedComments(n.Line, n.HeadComment, n.LineComment, n.FootComment); err != nil {
		return nil, err
	}
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, faultOfFile(n.Line, "has an anchor or an alias", "write the value out, then encrypt")
	case n.Style&yaml.TaggedStyle != 0:
		return nil, faultOfFile(n.Line, "has a tag of its own", "leave the tag out, then encrypt")
	}
	switch n.Kind {
	case yaml.MappingNode:
		return g.yamlBranch(n, depth)
	case yaml.SequenceNode:
		out := make(list, 0, len(n.Content))
		for _, item := range n.Content {
			v, err := g.yamlValue(item, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, entry{line: item.Line, value: v})
		}
		return out, nil
	}
	return yamlScalar(n)
}

func (g *growing) yamlBranch(n *yaml.Node, depth int) (branch, error) {
	out := make(branch, 0, len(n.Content)/2)
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if _, err := g.yamlValue(key, depth+1); err != nil {
			return nil, err
		}
		g.values-- // a name is no value
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			return nil, faultOfFile(key.Line, "has a merge key, or a name that is no text", "write the names out, then encrypt")
		case key.ShortTag() != "!!str":
			return nil, faultOfFile(key.Line, "has a name that is no text", "put the name in quotes, then encrypt")
		}
		if err := faultOfName(seen, key.Value, key.Line); err != nil {
			return nil, err
		}
		v, err := g.yamlValue(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: key.Value, line: key.Line, value: v})
	}
	return out, nil
}

// yamlScalar has the types that SOPS carries.
func yamlScalar(n *yaml.Node) (any, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, faultOfFile(n.Line, "has a value that is no valid yaml", "put the value in quotes, then encrypt")
	}
	switch v.(type) {
	case nil, string, int, float64, bool, time.Time:
		return v, nil
	}
	return nil, faultOfFile(n.Line, "has a value of a type that SOPS does not carry", "put the value in quotes, then encrypt")
}

// sealedComments refuses an encrypted comment that is not one. SOPS would hash it as a
// value; a comment in clear, and a real encrypted one, count for nothing.
func sealedComments(line int, texts ...string) error {
	for _, text := range texts {
		for c := range strings.SplitSeq(text, "\n") {
			c = strings.TrimLeft(c, "#; \t")
			if !strings.HasPrefix(c, sealMark) {
				continue
			}
			if s, ok := parseSealed(strings.TrimRight(c, "\r")); !ok || s.label != "comment" {
				return faultOfFile(line, "has an encrypted comment that is none", "take the comment out")
			}
		}
	}
	return nil
}

// writeYAML writes a tree without its comments.
func writeYAML(b branch) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(4)
	n, err := yamlNode(b)
	if err == nil {
		err = e.Encode(n)
	}
	return out.Bytes(), errors.Join(err, e.Close())
}

func yamlNode(v any) (*yaml.Node, error) {
	n := &yaml.Node{}
	switch v := v.(type) {
	case branch:
		n.Kind = yaml.MappingNode
		for _, e := range v {
			name, value := &yaml.Node{}, (*yaml.Node)(nil)
			err := name.Encode(e.name)
			if err == nil {
				value, err = yamlNode(e.value)
			}
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, name, value)
		}
	case list:
		n.Kind = yaml.SequenceNode
		for _, e := range v {
			value, err := yamlNode(e.value)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, value)
		}
	default:
		return n, n.Encode(v)
	}
	return n, nil
}
