package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
	"gopkg.in/yaml.v3"
)

const (
	tagNull  = "!!null"
	tagInt   = "!!int"
	tagFloat = "!!float"
	tagBool  = "!!bool"
	tagMerge = "!!merge"
)

// knownTags are those of YAML's own schemas; any other tag is a custom one.
var knownTags = map[string]bool{
	"": true, "!": true, "!!str": true, tagInt: true, tagFloat: true, tagBool: true, tagNull: true,
	"!!map": true, "!!seq": true, tagMerge: true, "!!timestamp": true, "!!binary": true,
}

// parse reads one YAML document whose root is a mapping. Counting comes before
// expanding: what it returns is within the limits.
//
// nodes is what the app's files may still come to; it gets less by this one. A
// fault is why nothing of the file can be read; what is wrong with single keys and
// values goes to fs, and the rest is read.
func parse(file string, body []byte, l Limits, nodes *int, fs *faults) (*node, *fault) {
	root, f := document(file, body)
	if f != nil {
		return nil, f
	}
	c := &counter{file: file, limits: l, nodes: *nodes, seen: map[*yaml.Node]count{}, open: map[*yaml.Node]bool{}, faults: fs}
	if mergeTag(root) {
		return nil, misplacedTag(place{file: file, line: root.Line})
	}
	if !knownTags[root.ShortTag()] {
		return nil, customTag(file, root)
	}
	counted, f := c.count(root, 1)
	if f != nil {
		return nil, f
	}
	*nodes -= counted.nodes
	b := &builder{file: file, done: map[*yaml.Node]*node{}}
	n := b.build(root)
	if b.fault != nil {
		return nil, b.fault
	}
	if at := tagsIn(n, false); len(at) > 0 {
		return nil, misplacedTag(at[0])
	}
	if n.null() {
		n = &node{kind: mapping, place: place{file: file, line: 1}}
	}
	if n.kind != mapping {
		return nil, &fault{
			code: ring.Yaml, place: n.place, says: "the file is not a mapping of keys to values",
			hint: "start it with a key, such as services:",
		}
	}
	return n, nil
}

// document is the one document of a file as YAML nodes, aliases not followed.
func document(file string, body []byte) (*yaml.Node, *fault) {
	dec := yaml.NewDecoder(bytes.NewReader(body))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlFault(file, err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, &fault{
			code: ring.Yaml, place: place{file: file, line: second.Line}, says: "the file holds more than one YAML document",
			hint: "keep one document per file; a second Compose file can be merged by gitring.yaml's files",
		}
	case !errors.Is(err, io.EOF):
		return nil, yamlFault(file, err)
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tagNull, Line: 1}, nil
	}
	return doc.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// yamlFault keeps the line that the YAML library tells. Its parser, unlike its
// scanner, counts from 0.
func yamlFault(file string, err error) *fault {
	msg := err.Error()
	at := place{file: file, line: 1}
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			at.line = n
			if strings.HasPrefix(msg, "did not find expected") {
				at.line++
			}
		}
	}
	return &fault{code: ring.Yaml, place: at, says: "the file is not YAML: " + tidy(msg), hint: "check the indentation and quotes around this line; the rest of the file is read once it is YAML"}
}

// count is what a subtree comes to once its aliases are followed.
type count struct {
	nodes, depth int
	bytes        int64
}

// counter counts nodes without expanding an alias: each node is visited once,
// whatever its copies come to.
type counter struct {
	file    string
	limits  Limits
	nodes   int
	aliases int
	seen    map[*yaml.Node]count
	open    map[*yaml.Node]bool
	faults  *faults // of single keys and values
}

func (c *counter) count(n *yaml.Node, depth int) (count, *fault) {
	if depth > c.limits.Depth {
		return count{}, c.tooLarge(n, "is nested deeper than %d levels", c.limits.Depth)
	}
	if got, ok := c.seen[n]; ok {
		if depth+got.depth-1 > c.limits.Depth {
			return count{}, c.tooLarge(n, "is nested deeper than %d levels", c.limits.Depth)
		}
		return got, nil
	}
	if c.open[n] {
		return count{}, &fault{code: ring.Yaml, place: place{file: c.file, line: n.Line}, says: fmt.Sprintf("anchor %q contains itself", n.Anchor), hint: "remove the alias inside it"}
	}
	if f := c.own(n); f != nil {
		return count{}, f
	}
	c.open[n] = true
	got := count{nodes: 1, depth: 1, bytes: int64(len(n.Value))}
	for _, k := range children(n) {
		sub, f := c.count(k, depth+1-aliasStep(n))
		if f != nil {
			return count{}, f
		}
		got.nodes += sub.nodes
		got.bytes += sub.bytes
		got.depth = max(got.depth, sub.depth+1-aliasStep(n))
		if got.nodes > c.nodes {
			return count{}, c.tooLarge(n, "and those read before it have more than %d nodes, aliases followed", c.limits.Nodes)
		}
		if got.bytes > c.limits.Expanded {
			return count{}, c.tooLarge(n, "is larger than %d bytes, aliases followed", int(c.limits.Expanded))
		}
	}
	delete(c.open, n)
	c.seen[n] = got
	return got, nil
}

// aliasStep is 1 for an alias: it stands for its anchor and adds no level.
func aliasStep(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return 1
	}
	return 0
}

func children(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.AliasNode {
		return []*yaml.Node{n.Alias}
	}
	return n.Content
}

// own checks what a node is by itself.
func (c *counter) own(n *yaml.Node) *fault {
	if n.Kind == yaml.AliasNode {
		if c.aliases++; c.aliases > c.limits.Aliases {
			return c.tooLarge(n, "has more than %d aliases", c.limits.Aliases)
		}
		return nil
	}
	if len(n.Value) > c.limits.Text {
		return c.tooLarge(n, "has a string longer than %d bytes", c.limits.Text)
	}
	if strings.Contains(n.Value, ring.SealMark) {
		return markFault(place{file: c.file, line: n.Line})
	}
	if n.Kind == yaml.SequenceNode && len(n.Content) > c.limits.Entries || n.Kind == yaml.MappingNode && len(n.Content)/2 > c.limits.Entries {
		return c.tooLarge(n, "has a list or mapping of more than %d entries", c.limits.Entries) // merging compares each with each
	}
	if !knownTags[n.ShortTag()] && !mergeTag(n) {
		c.faults.put(customTag(c.file, n))
	}
	if n.Kind == yaml.MappingNode {
		return c.keys(n)
	}
	return nil
}

// keys refuses keys that are not text, and tells of a key that is there twice.
func (c *counter) keys(n *yaml.Node) *fault {
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if v := n.Content[i+1]; mergeTag(v) && k.ShortTag() == tagMerge {
			return misplacedTag(place{file: c.file, line: v.Line})
		}
		if k.Kind != yaml.ScalarNode || k.ShortTag() == tagNull {
			return &fault{code: ring.Yaml, place: place{file: c.file, line: k.Line}, says: "a key is not text", hint: "write the key as plain text"}
		}
		if strings.Contains(k.Value, ring.SealMark) {
			return markFault(place{file: c.file, line: k.Line})
		}
		if first, twice := seen[k.Value]; twice {
			// Neither is read on: which of the two is meant is not known.
			c.faults.put(&fault{
				code: ring.Yaml, place: place{file: c.file, line: k.Line, of: first},
				says: fmt.Sprintf("key %q is there twice, first on line %d", head(k.Value), first.Line), hint: "keep one of the two",
			})
			continue
		}
		seen[k.Value] = k
	}
	return nil
}

func customTag(file string, n *yaml.Node) *fault {
	return &fault{
		code: ring.Yaml, place: place{file: file, line: n.Line, of: n}, says: fmt.Sprintf("custom tag %s", head(n.Tag)),
		hint: "write the value without a tag; !reset and !override are those that Compose has",
	}
}

func (c *counter) tooLarge(n *yaml.Node, says string, limit int) *fault {
	return &fault{
		code: ring.TooLarge, place: place{file: c.file, line: n.Line}, says: "the file " + fmt.Sprintf(says, limit),
		hint: "write it smaller; docs/reference/manifest.md lists the limits",
	}
}

// builder makes nodes of counted YAML. An anchor is built once and shared.
type builder struct {
	file  string
	done  map[*yaml.Node]*node
	fault *fault
}

func (b *builder) build(y *yaml.Node) *node {
	if y.Kind == yaml.AliasNode {
		return b.build(y.Alias)
	}
	if n, ok := b.done[y]; ok {
		return n
	}
	n := &node{place: place{file: b.file, line: max(y.Line, 1), of: y}, raw: y}
	b.done[y] = n
	if mergeTag(y) {
		n.instead, y = true, untagged(y)
		n.raw = y
	}
	switch y.Kind {
	case yaml.SequenceNode:
		n.kind = list
		for _, k := range y.Content {
			n.items = append(n.items, b.build(k))
		}
	case yaml.MappingNode:
		n.kind = mapping
		b.pairs(n, y)
	default:
		n.tag, n.text = y.ShortTag(), y.Value
	}
	return n
}

// pairs puts own keys first, then merged ones that are not there yet: what is
// written wins over what is merged, and the first merged over later ones.
func (b *builder) pairs(n *node, y *yaml.Node) {
	has := map[string]bool{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.ShortTag() == tagMerge {
			merges = append(merges, v)
			continue
		}
		if has[k.Value] {
			continue // there twice, which is told
		}
		has[k.Value] = true
		if resetTag(v) {
			n.reset = append(n.reset, pair{key: k.Value, place: place{file: b.file, line: k.Line, of: k}})
			continue
		}
		n.pairs = append(n.pairs, pair{key: k.Value, place: place{file: b.file, line: k.Line, of: k}, val: b.build(v)})
	}
	for _, m := range merges {
		b.merge(n, has, m)
	}
}

func (b *builder) merge(n *node, has map[string]bool, y *yaml.Node) {
	from := b.build(y)
	sources := []*node{from}
	if from.kind == list {
		sources = from.items
	}
	for _, s := range sources {
		if s.kind != mapping {
			b.fault = &fault{code: ring.Yaml, place: place{file: b.file, line: y.Line}, says: "<< merges something that is not a mapping", hint: "merge an anchor of a mapping, as in <<: *name"}
			return
		}
		for _, p := range s.pairs {
			if !has[p.key] {
				has[p.key] = true
				n.pairs = append(n.pairs, p)
			}
		}
	}
}

// tidy makes one line of a library's message, of bounded length.
func tidy(s string) string {
	return wording.CutBytes(strings.Join(strings.Fields(s), " "), 200)
}
