package policy

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// grade is how far a rule goes.
type grade int

const (
	// allowed: every value passes.
	allowed grade = iota
	// limit: profile compose refuses what is beyond it, owner does not mind.
	limit
	// escape: profile compose refuses it, owner carries it out as a power.
	escape
	// forbidden: no profile carries it out.
	forbidden
)

// rule is what is done with one field.
type rule struct {
	name  string // stable; "" only for allowed
	key   string // Compose's, below the service, network or volume; "" where gitring itself sets the field
	risk  string // what it would give
	lets  string // what profile compose lets pass, for the reference; "" is nothing
	with  string // the rule, of another field of the same thing, that judges this one
	grade grade
	// check looks at the value and finds what is beyond the rule. Without one
	// every value is found that is not zero.
	check func(l *look)
}

// final reports whether nothing below the field is looked at.
func (r rule) final() bool { return r.check == nil }

// look is one field of one request under one rule.
type look struct {
	*walker
	rule rule
	spot
	v reflect.Value // dereferenced
}

// finding is what a check says of a value; what it leaves out is the rule's.
type finding struct {
	value   string
	at      string // below the rule's key: the item, such as NET_ADMIN
	key     string // instead of the rule's
	risk    string
	instead string
	grade   grade
	note    bool // only told, under every profile
	// asks is the value of a grant that lets it pass; "" is the value as it stands.
	// alone says that no grant does.
	asks  string
	alone bool
	never string // the entry of mounts.never that closes it
}

func (l *look) judge() {
	switch {
	case l.frontsOwn():
	case l.rule.check != nil:
		l.rule.check(l)
	case l.rule.grade != allowed:
		l.find(finding{value: shown(l.v)})
	}
}

func (l *look) find(f finding) {
	g := max(f.grade, l.rule.grade)
	if g == limit && l.r.Profile == Owner && !f.note {
		return
	}
	out := Finding{
		App: l.req.App, Rule: l.rule.name, Field: l.path, Value: clip(f.value), Risk: cmp.Or(f.risk, l.rule.risk), Verdict: Deny,
		Owner: g != forbidden, Instead: f.instead,
	}
	key := strings.Replace(cmp.Or(f.key, l.rule.key), "*", strings.TrimPrefix(l.key, l.req.App+"_"), 1)
	out.Of, out.At = l.of(), key
	out.Key = strings.TrimSuffix(out.Of+"."+key, ".")
	if f.at != "" && l.rule.name != UnknownField {
		out.At = key + "." + f.at
	}
	switch {
	case f.note:
		out.Verdict = Note
	case g == escape && l.r.Profile == Owner:
		out.Verdict = Power
	case g != forbidden && !f.alone && !slices.Contains(ungranted, l.rule.name):
		l.ask(&out, cmp.Or(f.asks, f.value, "true"))
	}
	if out.Verdict == Deny && g != forbidden {
		out.Never = f.never
	}
	l.out = append(l.out, out)
}

// ask looks for a grant of what was denied. What holds a value of the host has none: its
// text is known to nobody who could write the grant.
func (l *look) ask(out *Finding, asks string) {
	if ring.HasSealed(asks) || !printable(asks) {
		return
	}
	have, wrong := GrantValue(out.Rule, asks)
	if wrong != "" || l.r.Profile != Owner && NeverGranted(*l.r.lists(), out.Rule, have) {
		return
	}
	out.Asks = asks
	g, lapsed := l.r.granted(l.req, out.Rule, have, out.Of, out.At)
	if g != nil {
		out.Verdict, out.Grant = Power, g.told(l.r)
	}
	out.Lapsed, out.Renew = lapsed.says, lapsed.hint
}

// denies reports whether what was found last is refused.
func (l *look) denies() bool { return len(l.out) > 0 && l.out[len(l.out)-1].Verdict == Deny }

func printable(s string) bool { return !strings.ContainsFunc(s, wording.IsControl) }

// of is what the request is for, as the Compose file names it.
func (l *look) of() string {
	kind, name, _ := strings.Cut(l.req.Key, " ")
	if kind == "container" {
		return "services." + cmp.Or(l.req.FrontOf, l.req.Service)
	}
	return kind + "s." + name
}

// field is a neighbour of the value, in the same struct.
func (l *look) field(name string) reflect.Value { return deref(l.parent.FieldByName(name)) }

func (l *look) fieldText(name string) string {
	if v := l.field(name); v.IsValid() && v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

func (l *look) fieldTrue(name string) bool {
	v := l.field(name)
	return v.IsValid() && v.Kind() == reflect.Bool && v.Bool()
}

func (l *look) text() string { return textOf(l.v) }

func textOf(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return v.String()
	}
	return ""
}

func (l *look) words() []string {
	var out []string
	for i := range l.v.Len() {
		out = append(out, textOf(deref(l.v.Index(i))))
	}
	return out
}

// dict is a map of texts; keys gives its keys in order.
func (l *look) dict() map[string]string {
	out := map[string]string{}
	for it := l.v.MapRange(); it.Next(); {
		out[textOf(it.Key())] = textOf(deref(it.Value()))
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sortedWords(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// shown is a value of which nothing is secret; "" for what is no plain value.
func shown(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		if v.Bool() {
			return ""
		}
		return "false"
	case reflect.Int, reflect.Int64, reflect.Uint16, reflect.Uint64, reflect.Uint:
		return fmt.Sprint(v.Interface())
	}
	return ""
}

// longest is how much of a value is shown.
const longest = 80

// clip makes a value fit for one line: without control characters, without what
// stands for a value of the host, and not longer than is read.
func clip(s string) string {
	for ring.HasSealed(s) {
		before, rest, _ := strings.Cut(s, ring.SealMark)
		_, after, _ := strings.Cut(rest, ring.SealMark)
		s = before + "…" + after
	}
	return wording.CutRunes(wording.DropControls(s, ""), longest)
}
