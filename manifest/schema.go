package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/compose-spec/compose-go/v2/schema"
	"github.com/gitring/gitring/ring"
	"gopkg.in/yaml.v3"
)

// grammar is the part of compose-go's JSON schema that says which keys there
// are, and of which type. The rest is left to compose-go itself.
type grammar struct {
	Ref         string              `json:"$ref"`
	Type        oneOrMore           `json:"type"`
	Enum        []string            `json:"enum"`
	Required    []string            `json:"required"`
	Properties  map[string]*grammar `json:"properties"`
	Patterns    map[string]*grammar `json:"patternProperties"`
	Additional  json.RawMessage     `json:"additionalProperties"`
	Unevaluated json.RawMessage     `json:"unevaluatedProperties"`
	Items       *grammar            `json:"items"`
	OneOf       []*grammar          `json:"oneOf"`
	AllOf       []*grammar          `json:"allOf"`
	Defs        map[string]*grammar `json:"$defs"`
}

// oneOrMore is a type, or a list of types.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(o))
	}
	var one string
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	*o = oneOrMore{one}
	return nil
}

// composeGrammar is compose-go's own, read once.
var composeGrammar = sync.OnceValue(func() *grammar {
	g := &grammar{}
	if err := json.Unmarshal([]byte(schema.Schema), g); err != nil {
		panic(fmt.Sprintf("cannot read the schema of compose-go: %v", err)) // it is linked in: a build that passed its tests has it
	}
	return g
})

// shape is what a mapping or list may hold, alternatives and references put
// together. It is made once per grammar.
type shape struct {
	known    map[string]*shape // by key of the schema
	named    []namedShape      // keys that the author chooses, by pattern
	items    *shape
	closed   bool // no other key
	freeform bool // nothing is known of what is inside
	types    []string
	enum     []string // of a text; none: any text
	required []string // keys that a mapping must have
}

type namedShape struct {
	pattern *regexp.Regexp
	shape   *shape
}

// composeShape is the shape of a whole Compose file.
var composeShape = sync.OnceValue(func() *shape {
	b := &shaper{defs: composeGrammar().Defs, done: map[string]*shape{}}
	return b.shape(composeGrammar())
})

type shaper struct {
	defs map[string]*grammar
	done map[string]*shape // by reference: the schema may refer to itself
}

func (b *shaper) shape(g *grammar) *shape {
	if g.Ref != "" {
		if s, ok := b.done[g.Ref]; ok {
			return s
		}
		s := &shape{known: map[string]*shape{}}
		b.done[g.Ref] = s
		b.add(s, b.defs[strings.TrimPrefix(g.Ref, "#/$defs/")])
		return s
	}
	s := &shape{known: map[string]*shape{}}
	b.add(s, g)
	return s
}

// add puts what g allows into s.
func (b *shaper) add(s *shape, g *grammar) {
	for g.Ref != "" {
		g = b.defs[strings.TrimPrefix(g.Ref, "#/$defs/")]
	}
	for k, sub := range g.Properties {
		s.known[k] = b.shape(sub)
	}
	for _, p := range sortedKeys(g.Patterns) {
		if p != "^x-" { // extensions are everywhere; see walk
			s.named = append(s.named, namedShape{regexp.MustCompile(p), b.shape(g.Patterns[p])})
		}
	}
	if g.Items != nil {
		s.items = b.shape(g.Items)
	}
	for _, sub := range append(g.OneOf, g.AllOf...) {
		b.add(s, sub)
	}
	for _, t := range g.Type {
		if !contains(s.types, t) {
			s.types = append(s.types, t)
		}
	}
	s.enum = append(s.enum, g.Enum...)
	s.required = append(s.required, g.Required...)
	s.closed = s.closed || string(g.Additional) == "false" || string(g.Unevaluated) == "false"
	s.freeform = len(s.known) == 0 && len(s.named) == 0
}

// visit is called for each key of the schema that a file holds. chain is the
// path as written, pattern the same with * for what the author named. It says
// whether to look below the key. fit is the value without what is not of its type.
type visit func(chain []string, pattern string, key pair, fit *node) bool

// walk goes over a Compose file by its shape and refuses the keys that Compose
// does not know. Extensions are the author's own.
func (s *shape) walk(n *node, chain []string, pattern string, see visit, fs *faults) {
	if !s.fits(n, chain, fs) {
		return
	}
	switch n.kind {
	case list:
		if s.items == nil {
			return
		}
		for i, it := range n.items {
			s.items.walk(it, append(chain, fmt.Sprint(i)), join(pattern, "*"), see, fs)
		}
	case mapping:
		if s.freeform {
			return
		}
		for _, p := range n.pairs {
			s.key(n, p, append(chain, p.key), pattern, see, fs)
		}
	}
}

// typeNames are the schema's types as people call them.
var typeNames = map[string]string{
	"string": "a text", "integer": "a number", "number": "a number", "boolean": "true or false",
	"array": "a list", "object": "a mapping", "null": "nothing",
}

// durationKeys are the keys of Compose under which people write a bare number.
var durationKeys = []string{"interval", "timeout", "start_period", "stop_grace_period", "delay", "monitor"}

// typesOf are the schema's types that a node is of.
func typesOf(n *node) []string {
	switch {
	case n.kind == list:
		return []string{"array"}
	case n.kind == mapping:
		return []string{"object"}
	}
	switch n.tag {
	case tagNull:
		return []string{"null"}
	case tagInt:
		return []string{"integer", "number"}
	case tagFloat:
		return []string{"number"}
	case tagBool:
		return []string{"boolean"}
	}
	return []string{"string"}
}

// fits checks the type of a value, the words it may be, and the keys it needs.
func (s *shape) fits(n *node, chain []string, fs *faults) bool {
	is := typesOf(n)
	if n.broken { // of what type it would be is not known
		return false
	}
	if !s.takes(n) {
		what, must := typeNames[is[0]], s.mayBe()
		if is[0] == "number" && contains(s.types, "integer") {
			what, must = "a number with a fraction", strings.Replace(must, "a number", "a whole number", 1)
		}
		hint := "write " + must
		if is[0] == "integer" && len(chain) > 0 && contains(durationKeys, chain[len(chain)-1]) {
			hint = fmt.Sprintf("write a duration with its unit, such as %ss", n.text)
		}
		fs.add(ring.BadValue, n.place, hint, "%s is %s, not %s", strings.Join(chain, "."), what, must)
		return false
	}
	if is[0] == "string" && len(s.enum) > 0 && !contains(s.enum, n.text) {
		hint := "write one of " + strings.Join(s.enum, ", ")
		if near := ring.Nearest(n.text, s.enum); near != "" {
			hint = "did you mean " + near + "?"
		}
		fs.add(ring.BadValue, n.place, hint, "%s: %q is not one of %s", strings.Join(chain, "."), head(n.text), strings.Join(s.enum, ", "))
	}
	if n.kind == mapping {
		for _, key := range s.required {
			if n.get(key) == nil && !s.meant(n, key) {
				fs.add(ring.BadValue, n.place, "add "+key+":", "%s has no %s", strings.Join(chain, "."), key)
			}
		}
	}
	return true
}

// takes reports whether a value is of a type that it may be.
func (s *shape) takes(n *node) bool {
	return len(s.types) == 0 || slices.ContainsFunc(typesOf(n), func(t string) bool { return contains(s.types, t) })
}

// mayBe are the types that a value may be of, for people.
func (s *shape) mayBe() string {
	var may []string
	for _, t := range s.types {
		if t != "null" && !contains(may, typeNames[t]) {
			may = append(may, typeNames[t])
		}
	}
	return strings.Join(may, " or ")
}

// fitting is n without what is not of its type, which fits tells: a value that is a
// list where a text belongs is not besides a bad text. nil where it is n itself.
func (s *shape) fitting(n *node) *node {
	if n.broken || n.kind == scalar && s.takes(n) {
		return n
	}
	if !s.takes(n) {
		return nil
	}
	out := *n
	out.items, out.pairs = nil, nil
	for _, it := range n.items {
		if s.items != nil {
			it = s.items.fitting(it)
		}
		if it != nil {
			out.items = append(out.items, it)
		}
	}
	for _, p := range n.pairs {
		if of := s.of(p.key); of != nil {
			p.val = of.fitting(p.val)
		}
		if p.val == nil {
			out.taken = append(slices.Clone(out.taken), p.key)
			continue
		}
		out.pairs = append(out.pairs, p)
	}
	return &out
}

// of is the shape of what stands under a key; nil where none is known.
func (s *shape) of(key string) *shape {
	if sub, ok := s.known[key]; ok {
		return sub
	}
	for _, named := range s.named {
		if named.pattern.MatchString(key) {
			return named.shape
		}
	}
	return nil
}

// meant reports whether a key which is not there was taken out, or is there with a letter
// wrong; both are told.
func (s *shape) meant(n *node, key string) bool {
	return contains(n.taken, key) || slices.ContainsFunc(n.pairs, func(p pair) bool {
		_, known := s.known[p.key]
		return !known && resembles(p.key, key)
	})
}

func (s *shape) key(in *node, p pair, chain []string, pattern string, see visit, fs *faults) {
	if sub, ok := s.known[p.key]; ok {
		here := join(pattern, p.key)
		if see(chain, here, p, sub.fitting(p.val)) {
			sub.walk(p.val, chain, here, see, fs)
		}
		return
	}
	for _, named := range s.named {
		if named.pattern.MatchString(p.key) {
			named.shape.walk(p.val, chain, join(pattern, "*"), see, fs)
			return
		}
	}
	if strings.HasPrefix(p.key, "x-") {
		extension(p, pattern, fs)
		return
	}
	if !s.closed {
		return
	}
	if len(s.known) == 0 {
		fs.add(ring.BadName, p.place, "use letters, digits, dots, underscores and dashes", "%q cannot be a name in %s", head(p.key), parentOf(chain))
		if len(s.named) == 1 { // whatever it will be called
			s.named[0].shape.walk(p.val, chain, join(pattern, "*"), see, fs)
		}
		return
	}
	fs.add(ring.UnknownKey, p.place, didYouMean(p.key, sortedKeys(s.known)), "unknown key %s", strings.Join(chain, "."))
	s.meantKey(in, p, chain, pattern, see, fs)
}

// meantKey reads on under the key that was meant, where what is written there is of
// its type: what else is wrong is told with the letter.
func (s *shape) meantKey(in *node, p pair, chain []string, pattern string, see visit, fs *faults) {
	meant := ring.Nearest(p.key, sortedKeys(s.known))
	if meant == "" || in.get(meant) != nil || !s.known[meant].fits(p.val, chain, &faults{}) {
		return
	}
	if fs.meant == nil {
		fs.meant = map[*yaml.Node]string{}
	}
	fs.meant[p.place.of] = meant
	p.key = meant
	s.key(in, p, append(slices.Clone(chain[:len(chain)-1]), meant), pattern, see, fs)
}

// extension lets an author's own x- keys be, but not one that was meant for
// gitring and that nobody would read.
func extension(p pair, pattern string, fs *faults) {
	switch {
	case p.key == extensionKey && (pattern == "services.*" || pattern == "volumes.*" || pattern == ""):
	case p.key == extensionKey:
		fs.add(ring.UnknownKey, p.place, "move it into a service or a volume, or to the top of the Compose file", "x-gitring stands where nothing reads it")
	case ring.Distance(p.key, extensionKey, 3) < 3:
		fs.add(ring.UnknownKey, p.place, "did you mean x-gitring?", "unknown key %s", p.key)
	}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "." + b
}

func parentOf(chain []string) string { return strings.Join(chain[:len(chain)-1], ".") }

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
