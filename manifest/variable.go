package manifest

import (
	"fmt"
	"maps"
	"strings"

	"github.com/gitring/gitring/ring"
)

// variables are the values that a Compose file may use. Nothing else is asked:
// never the daemon's environment.
type variables struct {
	over   map[string]string // the host's own, which win
	values map[string]string
	budget *budget
}

// budget is what expansion may still make, over the whole app: a few lines of
// an env file can otherwise name gigabytes.
type budget struct {
	left int64
	text int // the longest string
}

func newVariables(over map[string]string, b *budget) *variables {
	return &variables{over: over, values: map[string]string{}, budget: b}
}

func (v *variables) set(name, value string) { v.values[name] = value }

func (v *variables) lookup(name string) (string, bool) {
	if value, ok := v.over[name]; ok {
		return value, true
	}
	value, ok := v.values[name]
	return value, ok
}

// all is every variable with the value that counts.
func (v *variables) all() map[string]string {
	out := maps.Clone(v.values)
	maps.Copy(out, v.over)
	return out
}

// expand replaces the variables of every string below n, in place and once.
// skip says of which keys the value is nobody's business.
func (v *variables) expand(n *node, skip func(key string) bool, fs *faults) {
	if n.expanded {
		return
	}
	n.expanded = true
	for i := range n.pairs {
		if skip == nil || !skip(n.pairs[i].key) {
			v.expand(n.pairs[i].val, nil, fs)
		}
	}
	for _, it := range n.items {
		v.expand(it, nil, fs)
	}
	if n.kind != scalar || n.tag != "!!str" || !strings.Contains(n.text, "$") {
		return
	}
	text, f := v.replace(n.text, n.place)
	if n.broken = f != nil; n.broken {
		fs.put(f)
		return
	}
	n.text = text
}

// replace is s with its variables replaced, by Compose's rules: $NAME, ${NAME},
// ${NAME:-default}, ${NAME:?message}, ${NAME:+instead}, each also without the
// colon; $$ is a dollar. A variable that is not set and has no default is a
// fault, where Compose takes it as empty.
func (v *variables) replace(s string, at place) (string, *fault) {
	x := &expansion{vars: v, at: at}
	x.text(s, 0)
	if x.fault != nil {
		return "", x.fault
	}
	v.budget.left -= int64(x.out.Len())
	return x.out.String(), nil
}

// nested is how deep defaults may hold defaults.
const nested = 16

// expansion is one string being replaced. It stops at the first fault.
type expansion struct {
	vars  *variables
	at    place
	out   strings.Builder
	fault *fault
}

func (x *expansion) text(s string, depth int) {
	for s != "" && x.fault == nil {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			x.write(s)
			return
		}
		x.write(s[:i])
		s = s[i:]
		switch {
		case s[1] == '$':
			x.write("$")
			s = s[2:]
		case s[1] == '{':
			s = x.braced(s, depth)
		case nameLength(s[1:]) > 0:
			n := nameLength(s[1:])
			x.plain(s[1 : 1+n])
			s = s[1+n:]
		default:
			x.write("$")
			s = s[1:]
		}
	}
}

func (x *expansion) write(s string) {
	if x.out.Len()+len(s) > x.vars.budget.text || int64(x.out.Len()+len(s)) > x.vars.budget.left {
		x.fail(ring.TooLarge, "use fewer or shorter variables", "variables make this string too long")
		return
	}
	x.out.WriteString(s)
}

func (x *expansion) fail(code ring.Code, hint, says string, args ...any) {
	if x.fault == nil {
		x.fault = &fault{code: code, place: x.at, says: fmt.Sprintf(says, args...), hint: hint}
	}
}

func (x *expansion) plain(name string) {
	value, ok := x.vars.lookup(name)
	if !ok {
		if x.fault == nil {
			x.fault = undefined(name, x.at)
		}
		return
	}
	x.write(value)
}

func undefined(name string, at place) *fault {
	return &fault{
		code: ring.UndefinedVariable, place: at, says: fmt.Sprintf("variable %s is not set and has no default", name),
		hint: fmt.Sprintf("write ${%s:-} for an empty default, set it in .env or in the configuration's interpolation, or write $$ for a dollar", name),
	}
}

// braced takes s from "${" on and gives what follows the closing brace.
func (x *expansion) braced(s string, depth int) string {
	end := closing(s)
	n := 0
	if end > 0 {
		n = nameLength(s[2:end])
	}
	if n == 0 || depth > nested {
		x.fail(ring.BadValue, "write ${NAME}, ${NAME:-default} or ${NAME:?message}; $$ is a dollar", "%q is no variable", head(s))
		return ""
	}
	name, rest, body := s[2:2+n], s[end+1:], s[2+n:end]
	if body == "" {
		x.plain(name)
		return rest
	}
	x.operator(name, body, depth)
	return rest
}

// operator carries out what follows the name: body starts with one of
// - ? + , or with a colon and one of them.
func (x *expansion) operator(name, body string, depth int) {
	value, set := x.vars.lookup(name)
	if strings.HasPrefix(body, ":") {
		set = set && value != ""
		body = body[1:]
	}
	if body == "" {
		body = ":"
	}
	switch op, word := body[0], body[1:]; {
	case op == '-' && set, op == '?' && set:
		x.write(value)
	case op == '-', op == '+' && set:
		x.text(word, depth+1)
	case op == '+': // not set: empty
	case op == '?':
		x.required(name, word)
	default:
		x.fail(ring.BadValue, "write ${NAME}, ${NAME:-default} or ${NAME:?message}; $$ is a dollar", "%q is no variable", "${"+name+head(body)+"}")
	}
}

func (x *expansion) required(name, message string) {
	says := fmt.Sprintf("variable %s is required and not set", name)
	if message != "" {
		says += ": " + head(message)
	}
	x.fail(ring.UndefinedVariable, fmt.Sprintf("set %s in .env or in the configuration's interpolation", name), "%s", says)
}

// closing is the index of the brace that closes the one at s[1]; -1 for none.
func closing(s string) int {
	open := 0
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

func nameLength(s string) int {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// head is the start of a text that is told in a message.
func head(s string) string {
	s = tidy(s)
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
