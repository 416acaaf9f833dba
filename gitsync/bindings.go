package gitsync

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/ring"
)

// Mistake is one thing that is wrong with a list of signers. Line counts from 1.
type Mistake struct {
	Line       int
	Says, Hint string
}

// mistakes collects them while a file is read.
type mistakes []Mistake

func (m *mistakes) wrong(n *yaml.Node, hint, says string, args ...any) {
	*m = append(*m, Mistake{Line: n.Line, Says: fmt.Sprintf(says, args...), Hint: hint})
}

// of is one error with file and line for all of them; nil for none.
func (m mistakes) of(path string) error {
	if len(m) == 0 {
		return nil
	}
	slices.SortStableFunc(m, func(a, b Mistake) int { return a.Line - b.Line })
	first := m[0]
	says := fmt.Sprintf("cannot read %s:%d: %s", path, first.Line, first.Says)
	if first.Hint != "" {
		says += "; " + first.Hint
	}
	if more := len(m) - 1; more > 0 {
		says += fmt.Sprintf(" (and %d more, the next in line %d)", more, m[1].Line)
	}
	return errors.New(says)
}

// Keys of a signer; the last two only in the repository, where there is no other
// place for keys.
var (
	bindingKeys = []string{"signer", "roles", "sources", "branches", "paths", "moves", "direction"}
	entryKeys   = append(slices.Clone(bindingKeys), "keys", "openpgp")
)

// Bindings reads the list under trust.signers in the configuration. Bindings with
// a mistake are left out.
func Bindings(n *yaml.Node) ([]Binding, []Mistake) {
	var m mistakes
	var out []Binding
	for _, e := range m.entries(n, bindingKeys) {
		out = append(out, e.Binding)
	}
	return out, m
}

// parseBindings reads the same list from a file of its own: version: 1 and
// signers.
func parseBindings(path string, b []byte) ([]Binding, error) {
	entries, m := parseSignersFile(b, bindingKeys)
	var out []Binding
	for _, e := range entries {
		out = append(out, e.Binding)
	}
	return out, m.of(path)
}

// Idle tells of bindings and OpenPGP keys that have nothing to do with each other: a
// sentence for status, and "" where all is well. It is a warning and no mistake: the
// key, or the binding, may be about to come.
func (t *Trust) Idle() string {
	var idle, unbound, says []string
	for _, b := range t.cfg.Bindings {
		if !t.knows(b) {
			idle = append(idle, clip(b.Signer))
		}
	}
	if len(idle) > 0 {
		says = append(says, "no key in the trust files has the name of signer "+strings.Join(idle, ", ")+", whom trust.signers names")
	}
	for _, k := range t.pgp {
		if len(t.configured(k.identity())) == 0 && !slices.Contains(unbound, k.primary) {
			unbound = append(unbound, k.primary)
		}
	}
	if len(unbound) > 0 {
		says = append(says, "trust.signers names others and not OpenPGP key "+strings.Join(unbound, ", ")+", which so has no rights of the configuration")
	}
	return strings.Join(says, "; ")
}

func (t *Trust) knows(b Binding) bool {
	return t.knowsSSH(b) || slices.ContainsFunc(t.pgp, func(k pgpKey) bool { return b.names(k.identity()) })
}

func (t *Trust) knowsSSH(b Binding) bool {
	for _, lines := range t.ssh {
		for _, l := range lines {
			// What certificates will be named is not known before they come.
			if l.authority && (strings.ContainsAny(b.Signer, "*?") || matchList(strings.Join(l.principals, ","), b.Signer)) {
				return true
			}
			if !l.authority && b.names(identity{principal: l.principal(), fingerprint: ssh.FingerprintSHA256(l.key)}) {
				return true
			}
		}
	}
	return false
}

// namedByUserID is what is wrong with a name in the configuration that only an
// OpenPGP key has, by its user id: whoever has the key writes another.
func (t *Trust) namedByUserID(key, signer string) error {
	if signer == "" || t.knowsSSH(Binding{Signer: signer}) {
		return nil
	}
	var meant []string
	for _, k := range t.pgp {
		if matchPattern(signer, k.principal) && signer != k.primary && !slices.Contains(meant, k.primary) {
			meant = append(meant, k.primary)
		}
	}
	if len(meant) == 0 {
		return nil
	}
	return fmt.Errorf("%s %q is the user id of an OpenPGP key, which its owner can change: write the fingerprint, signer: %s", key, clip(signer), strings.Join(meant, ", signer: "))
}

// signerEntry is one item of a list of signers.
type signerEntry struct {
	Binding
	node          *yaml.Node
	keys, openpgp []*yaml.Node
}

// parseSignersFile reads one document: version: 1 and a list of signers.
func parseSignersFile(b []byte, known []string) ([]signerEntry, mistakes) {
	var m mistakes
	dec := yaml.NewDecoder(strings.NewReader(string(b)))
	var root, more yaml.Node
	if err := dec.Decode(&root); errors.Is(err, io.EOF) {
		m = append(m, Mistake{1, "the file is empty", "begin with version: 1 and signers:"})
		return nil, m
	} else if err != nil {
		return nil, append(m, yamlMistake(err))
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		m = append(m, Mistake{max(more.Line, 1), "a second document begins here", "the file is one document: take the line --- out"})
		return nil, m
	}
	top := root.Content[0]
	fields := m.fields(top, "the file", []string{"version", "signers"})
	if v := fields["version"]; v == nil {
		m.wrong(top, "add version: 1", "version is missing")
	} else if v.Value != "1" {
		m.wrong(v, "this release reads version: 1", "version %q is not known", clip(v.Value))
	}
	if fields["signers"] == nil {
		return nil, m
	}
	return m.entries(fields["signers"], known), m
}

// yamlMistake takes the line out of the library's own words.
func yamlMistake(err error) Mistake {
	says := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(says, "line "); ok {
		if _, err := fmt.Sscanf(rest, "%d:", &line); err == nil {
			_, says, _ = strings.Cut(rest, ": ")
		}
	}
	return Mistake{line, "it is no YAML: " + says, ""}
}

func (m *mistakes) entries(n *yaml.Node, known []string) []signerEntry {
	if n = plainNode(n); n.Kind != yaml.SequenceNode {
		m.wrong(n, "write - signer: alice@example.org, one item for each", "%s where a list of signers belongs", spokenNode(n))
		return nil
	}
	var out []signerEntry
	for _, item := range n.Content {
		before := len(*m)
		e := m.entry(plainNode(item), known)
		if len(*m) == before {
			out = append(out, e)
		}
	}
	return out
}

func (m *mistakes) entry(n *yaml.Node, known []string) signerEntry {
	e := signerEntry{node: n}
	fields := m.fields(n, "a signer", known)
	if fields == nil {
		return e
	}
	if s := fields["signer"]; s == nil {
		m.wrong(n, "write signer: alice@example.org", "this item names no signer")
	} else {
		e.Signer = fingerprintForm(m.text(s))
	}
	for _, r := range m.texts(fields["roles"]) {
		if e.Roles = append(e.Roles, Role(r.Value)); !slices.Contains(roles, Role(r.Value)) {
			m.wrong(r, ring.Meant(r.Value, roleNames()), "role %q is not known", clip(r.Value))
		}
	}
	for name, list := range map[string]*[]string{"sources": &e.Sources, "branches": &e.Branches, "paths": &e.Paths} {
		for _, s := range m.texts(fields[name]) {
			*list = append(*list, s.Value)
			if err := (Binding{Signer: e.Signer, Paths: []string{s.Value}}).checkPaths(); name == "paths" && err != nil {
				m.wrong(s, "", "%v", err)
			}
		}
		if f := fields[name]; f != nil && len(*list) == 0 {
			m.wrong(f, "name one, or take the line out for all", "%s is empty", name)
		}
	}
	for _, s := range m.texts(fields["moves"]) {
		if e.Moves = append(e.Moves, s.Value); !slices.Contains(moves, s.Value) {
			m.wrong(s, ring.Meant(s.Value, moves), "move %q is not known", clip(s.Value))
		}
	}
	if s := fields["direction"]; s != nil {
		if e.Direction = m.text(s); !slices.Contains(directions, e.Direction) {
			m.wrong(s, ring.Meant(e.Direction, directions), "direction %q is not known", clip(e.Direction))
		}
	}
	if f := fields["moves"]; f != nil && len(e.Moves) == 0 {
		m.wrong(f, "name one, or take the line out for all but any", "moves is empty")
	}
	for _, name := range []string{"moves", "direction"} {
		if f := fields[name]; f != nil && !slices.Contains(e.Roles, RoleImages) {
			m.wrong(f, "add images to roles, or take the line out", "%s is for role images alone", name)
		}
	}
	if f := fields["roles"]; f != nil && len(e.Roles) == 0 {
		m.wrong(f, "name one, or take the line out for commit and merge", "roles is empty")
	}
	e.keys, e.openpgp = m.items(fields["keys"]), m.texts(fields["openpgp"])
	return e
}

// fields are the values of a mapping by key; nil when it is none.
func (m *mistakes) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		m.wrong(n, "known here: "+strings.Join(known, ", "), "%s where %s belongs", spokenNode(n), what)
		return nil
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], plainNode(n.Content[i+1])
		switch first := out[key.Value]; {
		case !slices.Contains(known, key.Value):
			m.wrong(key, ring.Meant(key.Value, known), "unknown key %q", clip(key.Value))
		case first != nil:
			m.wrong(key, "keep one of the two", "key %q is given twice", key.Value)
		default:
			out[key.Value] = value
		}
	}
	return out
}

// items are the members of a list; one alone need not be in one.
func (m *mistakes) items(n *yaml.Node) []*yaml.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		out := make([]*yaml.Node, len(n.Content))
		for i, item := range n.Content {
			out[i] = plainNode(item)
		}
		return out
	}
	return []*yaml.Node{n}
}

func (m *mistakes) texts(n *yaml.Node) []*yaml.Node {
	list := m.items(n)
	return slices.DeleteFunc(list, func(s *yaml.Node) bool { return m.text(s) == "" })
}

func (m *mistakes) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		m.wrong(n, "", "%s where a text belongs", spokenNode(n))
		return ""
	}
	return n.Value
}

// plainNode is what an alias stands for. There are no aliases to aliases.
func plainNode(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func spokenNode(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Value == "" || n.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%q", clip(n.Value))
}

// fingerprintForm writes the fingerprint of an OpenPGP key as gitring does; other
// names stay as they are.
func fingerprintForm(signer string) string {
	hex := strings.ToUpper(strings.TrimPrefix(strings.ReplaceAll(signer, " ", ""), "0x"))
	if pgpFingerprint.MatchString(hex) {
		return hex
	}
	return signer
}

func roleNames() []string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return names
}
