package manifest

import (
	"fmt"
	"maps"
	"strings"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// value is what a variable holds: as it is, and as it may stand in a plan, with a
// sealed value for each of the host's env folder. Operators look at what is.
type value struct {
	plain, sealed string
	// lost says that the line which sets it is wrong: nobody knows what it holds.
	lost bool
}

// said is a value that a commit or the configuration says.
func said(s string) value { return value{plain: s, sealed: s} }

func saidAll(of map[string]string) map[string]value {
	out := make(map[string]value, len(of))
	for name, s := range of {
		out[name] = said(s)
	}
	return out
}

func (v value) hidden() bool { return v.plain != v.sealed }

// variables are the values that a Compose file may use. Nothing else is asked:
// never the daemon's environment.
type variables struct {
	over   map[string]value // the host's own, which win
	values map[string]value
	places map[string]place // where a value was said
	bare   []bareName       // names without a value that nothing sets
	budget *budget
	// lenient takes what is not set as empty, to look ahead before all is known.
	lenient bool
	// unsure says that a file of variables could not be read: what is not set may
	// be set there.
	unsure bool
}

type bareName struct {
	name string
	at   place
}

// budget is what expansion may still make, over the whole app: a few lines of
// an env file can otherwise name gigabytes.
type budget struct {
	left int64
	text int // the longest string
}

func newVariables(over map[string]value, b *budget) *variables {
	return &variables{over: over, values: map[string]value{}, places: map[string]place{}, budget: b}
}

func (v *variables) set(name string, to value, at place) {
	v.values[name], v.places[name] = to, at
}

// lose notes what a line would have set that is wrong.
func (v *variables) lose(name string, at place) {
	v.values[name], v.places[name] = value{lost: true}, at
}

// known reports whether the value of name, or that it has none, is certain.
func (v *variables) known(name string) bool {
	val, set := v.value(name)
	return !val.lost && (set || !v.unsure)
}

func (v *variables) value(name string) (value, bool) {
	if val, ok := v.over[name]; ok {
		return val, true
	}
	val, ok := v.values[name]
	return val, ok
}

// lookup is the value as it may stand in an environment.
func (v *variables) lookup(name string) (string, bool) {
	val, ok := v.value(name)
	return val.sealed, ok
}

// all is every variable with the value that counts.
func (v *variables) all() map[string]value {
	out := maps.Clone(v.values)
	maps.Copy(out, v.over)
	return out
}

// texts are all, as they may stand in an environment.
func (v *variables) texts() map[string]string {
	out := map[string]string{}
	for name, val := range v.all() {
		out[name] = val.sealed
	}
	return out
}

// replace is s with its variables replaced, by Compose's rules: $NAME, ${NAME},
// ${NAME:-default}, ${NAME:?message}, ${NAME:+instead}, each also without the
// colon; $$ is a dollar. A variable that is not set and has no default is a
// fault, where Compose takes it as empty.
func (v *variables) replace(s string, at place) (value, []*fault) {
	x := &expansion{vars: v, at: at}
	x.text(s, 0)
	v.budget.left -= int64(x.plain.Len() + x.sealed.Len())
	if x.faults != nil {
		return value{}, x.faults
	}
	return value{plain: x.plain.String(), sealed: x.sealed.String()}, nil
}

// nested is how deep defaults may hold defaults.
const nested = 16

// expansion is one string being replaced. Each variable in it that is not set is
// a fault of its own.
type expansion struct {
	vars   *variables
	at     place
	plain  strings.Builder
	sealed strings.Builder
	faults []*fault
	ended  bool // to go on is not safe
}

func (x *expansion) text(s string, depth int) {
	for s != "" && !x.ended {
		i := strings.IndexByte(s, '$')
		if i < 0 || i+1 == len(s) {
			x.write(said(s))
			return
		}
		x.write(said(s[:i]))
		s = s[i:]
		switch {
		case s[1] == '$':
			x.write(said("$"))
			s = s[2:]
		case s[1] == '{':
			s = x.braced(s, depth)
		case nameLength(s[1:]) > 0:
			n := nameLength(s[1:])
			x.variable(s[1 : 1+n])
			s = s[1+n:]
		default:
			x.write(said("$"))
			s = s[1:]
		}
	}
}

func (x *expansion) write(v value) {
	n := max(x.plain.Len()+len(v.plain), x.sealed.Len()+len(v.sealed))
	if n > x.vars.budget.text || int64(n) > x.vars.budget.left {
		x.fail(ring.TooLarge, "use fewer or shorter variables", "variables make this string too long")
		x.ended = true
		return
	}
	if !v.hidden() && strings.Contains(v.plain, ring.SealMark) {
		x.faults = append(x.faults, markFault(x.at))
		return
	}
	x.plain.WriteString(v.plain)
	x.sealed.WriteString(v.sealed)
}

// markFault refuses the character by which sealed values are known: nobody
// writes one by hand.
func markFault(at place) *fault {
	return &fault{
		code: ring.BadValue, place: at, says: "the text holds the control character ESC (0x1b)",
		hint: "remove it; where a file needs it, mount the file",
	}
}

func (x *expansion) fail(code ring.Code, hint, says string, args ...any) {
	x.faults = append(x.faults, &fault{code: code, place: x.at, says: fmt.Sprintf(says, args...), hint: hint})
}

func (x *expansion) variable(name string) {
	if !x.known(name) {
		return
	}
	val, ok := x.vars.value(name)
	if !ok && !x.vars.lenient {
		x.faults = append(x.faults, undefined(name, x.at))
		return
	}
	x.write(val)
}

// known fails, and says nothing, where a variable's value cannot be known for a
// fault elsewhere.
func (x *expansion) known(name string) bool {
	known := x.vars.known(name) || x.vars.lenient
	if !known {
		x.faults = append(x.faults, untold)
	}
	return known
}

// inEnv is where a variable can be said.
const inEnv = "set it in .env (of the commit, or " + hostsEnv + ") or in the configuration's interpolation"

// hostsEnv stands for the host's files, where they are not known yet.
const hostsEnv = "of the host's env folder"

func undefined(name string, at place) *fault {
	hint := fmt.Sprintf("write ${%s:-} for an empty default, %s, or write $$ for a dollar", name, inEnv)
	switch name { // of the shell that runs Compose
	case "HOME":
		hint = "write the folder's absolute path, or say which home is meant: " + strings.Replace(inEnv, "set it", "set HOME", 1)
	case "PWD":
		hint = "write . in the place of ${PWD}, as in ./data: relative paths start at the Compose file's folder; or " + strings.Replace(inEnv, "set it", "set PWD", 1)
	}
	return &fault{code: ring.UndefinedVariable, place: at, says: fmt.Sprintf("variable %s is not set and has no default", name), hint: hint, variable: name}
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
		x.variable(name)
		return rest
	}
	x.operator(name, body, depth)
	return rest
}

// operator carries out what follows the name: body starts with one of
// - ? + , or with a colon and one of them.
func (x *expansion) operator(name, body string, depth int) {
	if !x.known(name) {
		return
	}
	written := body
	val, set := x.vars.value(name)
	if strings.HasPrefix(body, ":") {
		set = set && val.plain != ""
		body = body[1:]
	}
	if body == "" {
		body = ":"
	}
	switch op, word := body[0], body[1:]; {
	case op == '-' && set, op == '?' && set:
		x.write(val)
	case op == '-', op == '+' && set:
		x.text(word, depth+1)
	case op == '+': // not set: empty
	case op == '?' && x.vars.lenient:
	case op == '?':
		x.required(name, word)
	default:
		x.fail(ring.BadValue, "write ${NAME}, ${NAME:-default} or ${NAME:?message}; $$ is a dollar", "%q is no variable", "${"+name+head(written)+"}")
	}
}

func (x *expansion) required(name, message string) {
	says := fmt.Sprintf("variable %s is required and not set", name)
	if message != "" {
		says += ": " + head(message)
	}
	x.faults = append(x.faults, &fault{
		code: ring.UndefinedVariable, place: x.at, says: says, hint: strings.Replace(inEnv, "set it", "set "+name, 1), variable: name,
	})
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
	return wording.CutBytes(tidy(told(s)), 60)
}
