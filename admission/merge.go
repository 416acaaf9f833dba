package admission

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Merge gives a policy file with what a suggestion adds to it, and how many lines of it are
// new. Comments, order and every line of the file stay: what is new is put in between. It
// fails where a place for that cannot be found without changing a line.
func (s *Suggestion) Merge(body []byte, roots []string, reason func(*SuggestedGrant) string) (merged []byte, added int, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(body, &doc); err != nil {
		return nil, 0, fmt.Errorf("cannot read it as YAML: %w", err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode || doc.Content[0].Style&yaml.FlowStyle != 0 {
		return nil, 0, errors.New("cannot find a key on a line of its own in it")
	}
	m := &merging{lines: strings.Split(strings.TrimRight(string(body), "\n"), "\n"), top: doc.Content[0], reason: reason}
	m.noteStarts(m.top)
	slices.Sort(m.starts)
	if err := m.addRoots(roots); err != nil {
		return nil, 0, err
	}
	if err := m.addApps(s.Apps); err != nil {
		return nil, 0, err
	}
	merged = []byte(m.text())
	return merged, m.added(), stillHolds(body, merged)
}

// merging is a file that gets more lines.
type merging struct {
	lines  []string
	top    *yaml.Node
	starts []int // the lines on which keys and values begin
	more   []insertion
	empty  []int // lines on which an empty list stands, which gets entries
	reason func(*SuggestedGrant) string
}

// insertion is text behind a line; the first line is 1.
type insertion struct {
	after int
	text  []string
}

func (m *merging) noteStarts(n *yaml.Node) {
	m.starts = append(m.starts, n.Line)
	for _, sub := range n.Content {
		m.noteStarts(sub)
	}
}

// lastOf is the last line of a value, without the comments and empty lines behind it.
func (m *merging) lastOf(n *yaml.Node) int {
	last := n.Line
	var walk func(*yaml.Node)
	walk = func(n *yaml.Node) {
		last = max(last, n.Line)
		for _, sub := range n.Content {
			walk(sub)
		}
	}
	walk(n)
	end := len(m.lines)
	if i, _ := slices.BinarySearch(m.starts, last+1); i < len(m.starts) {
		end = m.starts[i] - 1
	}
	for end > last {
		if text := strings.TrimSpace(m.lines[end-1]); text != "" && text[0] != '#' {
			break
		}
		end--
	}
	return end
}

func (m *merging) insert(after int, text ...string) {
	m.more = append(m.more, insertion{after, text})
}

// valueOf are a key of a mapping and its value; nil where it has none.
func valueOf(n *yaml.Node, key string) (at, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func textOf(n *yaml.Node, key string) string {
	if _, v := valueOf(n, key); v != nil {
		return v.Value
	}
	return ""
}

// below is where entries of a list or a mapping are put: behind which line, and how far in.
func (m *merging) below(at, value *yaml.Node) (after, indent int, err error) {
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		return at.Line, at.Column + 1, nil
	case value.Kind == yaml.SequenceNode && len(value.Content) == 0 && strings.Contains(m.lines[value.Line-1], " []"):
		m.empty = append(m.empty, value.Line)
		return value.Line, at.Column + 1, nil
	case value.Kind == yaml.ScalarNode || value.Kind == yaml.AliasNode || value.Style&yaml.FlowStyle != 0:
		return 0, 0, fmt.Errorf("cannot add to %s on line %d: write its entries on lines of their own", at.Value, at.Line)
	}
	return m.lastOf(value), value.Column - 1, nil
}

func pad(n int) string { return strings.Repeat(" ", n) }

func (m *merging) addRoots(roots []string) error {
	at, mounts := valueOf(m.top, "mounts")
	var list, key *yaml.Node
	if mounts != nil && mounts.Kind == yaml.MappingNode {
		key, list = valueOf(mounts, "bind_roots")
	}
	sign := "+"
	var have []string
	if list != nil {
		for _, n := range list.Content {
			have = append(have, strings.TrimPrefix(n.Value, "+"))
			if !strings.HasPrefix(n.Value, "+") && !strings.HasPrefix(n.Value, "-") {
				sign = "" // the list is written whole
			}
		}
	}
	roots = slices.DeleteFunc(slices.Clone(roots), func(r string) bool { return slices.Contains(have, r) })
	if len(roots) == 0 {
		return nil
	}
	var text []string
	after, indent := m.lastOf(m.top), m.top.Column+3
	switch {
	case list != nil:
		var err error
		if after, indent, err = m.below(key, list); err != nil {
			return err
		}
	case mounts != nil:
		var err error
		if after, indent, err = m.below(at, mounts); err != nil {
			return err
		}
		text = append(text, pad(indent)+"bind_roots:")
		indent += 2
	default:
		text = append(text, pad(m.top.Column-1)+"mounts:", pad(m.top.Column+1)+"bind_roots:")
	}
	for _, r := range roots {
		text = append(text, pad(indent)+"- "+strconv.Quote(sign+r))
	}
	m.insert(after, text...)
	return nil
}

func (m *merging) addApps(apps []SuggestedApp) error {
	at, list := valueOf(m.top, "apps")
	var fresh []string
	for _, a := range apps {
		var entry *yaml.Node
		if list != nil {
			entry = entryOf(list, &a)
		}
		if entry == nil {
			fresh = append(fresh, m.linesOf(a)...)
			continue
		}
		if err := m.addGrants(entry, a); err != nil {
			return err
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if list == nil {
		m.insert(m.lastOf(m.top), append([]string{pad(m.top.Column-1) + "apps:"}, indented(fresh, 2, m.top.Column+1)...)...)
		return nil
	}
	after, indent, err := m.below(at, list)
	if err != nil {
		return err
	}
	m.insert(after, indented(fresh, 2, indent)...)
	return nil
}

// entryOf is the entry of an app in the list, nil for none.
func entryOf(list *yaml.Node, a *SuggestedApp) *yaml.Node {
	for _, n := range list.Content {
		if textOf(n, "name") == a.Name && textOf(n, "source") == a.Source && textOf(n, "path") == a.Path {
			return n
		}
	}
	return nil
}

func (m *merging) addGrants(entry *yaml.Node, a SuggestedApp) error {
	at, grants := valueOf(entry, "grants")
	if grants != nil {
		a.Grants = slices.DeleteFunc(slices.Clone(a.Grants), func(g SuggestedGrant) bool {
			return slices.ContainsFunc(grants.Content, func(n *yaml.Node) bool {
				return textOf(n, "feature") == g.Feature && textOf(n, "value") == g.Value && textOf(n, "service") == g.Service && textOf(n, "reason") != ""
			})
		})
	}
	if len(a.Grants) == 0 {
		return nil
	}
	text := m.linesOf(a)[4:] // without name, source, path and the key
	if grants == nil {
		if entry.Kind != yaml.MappingNode || entry.Style&yaml.FlowStyle != 0 {
			return fmt.Errorf("cannot add grants to app %s on line %d: write its keys on lines of their own", a.Name, entry.Line)
		}
		m.insert(m.lastOf(entry), append([]string{pad(entry.Column-1) + "grants:"}, indented(text, 6, entry.Column+1)...)...)
		return nil
	}
	after, indent, err := m.below(at, grants)
	if err != nil {
		return err
	}
	m.insert(after, indented(text, 6, indent)...)
	return nil
}

// linesOf is the entry of one app, as Yaml writes it.
func (m *merging) linesOf(a SuggestedApp) []string {
	one := Suggestion{Apps: []SuggestedApp{a}}
	return strings.Split(strings.TrimRight(strings.TrimPrefix(one.Yaml(nil, m.reason), "apps:\n"), "\n"), "\n")
}

func indented(lines []string, from, to int) []string {
	var out []string
	for _, l := range lines {
		out = append(out, pad(to)+strings.TrimPrefix(l, pad(from)))
	}
	return out
}

func (m *merging) added() (n int) {
	for _, in := range m.more {
		n += len(in.text)
	}
	return n
}

func (m *merging) text() string {
	out := slices.Clone(m.lines)
	for _, line := range m.empty {
		out[line-1] = strings.TrimRight(strings.Replace(out[line-1], " []", "", 1), " ")
	}
	slices.SortStableFunc(m.more, func(a, b insertion) int { return b.after - a.after })
	for i := 0; i < len(m.more); {
		// What is put behind one line stays in the order in which it came.
		j, all := i, []string(nil)
		for ; j < len(m.more) && m.more[j].after == m.more[i].after; j++ {
			all = append(all, m.more[j].text...)
		}
		out = slices.Insert(out, m.more[i].after, all...)
		i = j
	}
	return strings.Join(out, "\n") + "\n"
}

// stillHolds is an error where a merged file does not say all that it said before.
func stillHolds(before, after []byte) error {
	var a, b any
	if err := errors.Join(yaml.Unmarshal(before, &a), yaml.Unmarshal(after, &b)); err != nil {
		return fmt.Errorf("cannot read it with the new lines in it: %w", err)
	}
	if !says(b, a) {
		return errors.New("cannot find a place for the new lines in it")
	}
	return nil
}

// says reports whether a value says all that another one says, at the same place.
func says(all, part any) bool {
	switch p := part.(type) {
	case nil:
		return true
	case map[string]any:
		m, ok := all.(map[string]any)
		for key, v := range p {
			if ok = ok && says(m[key], v); !ok {
				return false
			}
		}
		return ok
	case []any:
		l, ok := all.([]any)
		for i, v := range p {
			if ok = ok && i < len(l) && says(l[i], v); !ok {
				return false
			}
		}
		return ok || len(p) == 0
	}
	return reflect.DeepEqual(all, part)
}
