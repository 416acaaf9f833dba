package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// decoder takes values out of nodes, strictly: whatever it does not expect is a
// fault with its line. It goes on after a fault, so that one look tells all.
type decoder struct{ faults faults }

func (d *decoder) bad(at place, hint, says string, args ...any) {
	d.faults.add(ring.BadValue, at, hint, says, args...)
}

// keys refuses keys that are not known, with the nearest that is.
func (d *decoder) keys(n *node, in string, known []string) {
	if in != "" {
		in = " in " + in
	}
	for _, p := range n.pairs {
		if !contains(known, p.key) {
			d.faults.add(ring.UnknownKey, p.place, didYouMean(p.key, known), "unknown key %s%s", head(p.key), in)
		}
	}
}

// mistyped reports whether a key which is not there may be one that is there with a
// letter wrong, which is told.
func mistyped(n *node, key string, known []string) bool {
	return slices.ContainsFunc(n.mappingPairs(), func(p pair) bool { return !contains(known, p.key) && resembles(p.key, key) })
}

func resembles(written, key string) bool { return ring.Nearest(written, []string{key}) != "" }

func contains(words []string, w string) bool { return slices.Contains(words, w) }

func (d *decoder) mapping(n *node, name string) bool {
	if n.kind != mapping {
		d.bad(n.place, fmt.Sprintf("write it as %s: {key: value}", name), "%s is not a mapping", name)
		return false
	}
	return true
}

func (d *decoder) list(n *node, name string) []*node {
	if n.null() {
		return nil
	}
	if n.kind != list {
		d.bad(n.place, fmt.Sprintf("write it as a list: %s: [ … ]", name), "%s is not a list", name)
		return nil
	}
	return n.items
}

func (d *decoder) text(n *node, name string) string {
	if n.null() {
		return ""
	}
	if n.kind != scalar {
		d.bad(n.place, "write one word or number", "%s is not a text", name)
		return ""
	}
	return n.text
}

// texts is a list of texts, or one text that stands for a list of one.
func (d *decoder) texts(n *node, name string) []written {
	if !n.null() && n.kind == scalar {
		return []written{{n.text, n.place}}
	}
	var out []written
	for _, it := range d.list(n, name) {
		if t := d.text(it, name); t != "" {
			out = append(out, written{t, it.place})
		}
	}
	return out
}

func (d *decoder) textMap(n *node, name string) map[string]string {
	if n.null() || !d.mapping(n, name) || len(n.pairs) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, p := range n.pairs {
		out[p.key] = d.text(p.val, name+" "+p.key)
	}
	return out
}

func (d *decoder) boolean(n *node, name string, otherwise bool) bool {
	if n.null() {
		return otherwise
	}
	t := d.text(n, name)
	if n.kind != scalar {
		return otherwise // told
	}
	switch t {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	default:
		d.bad(n.place, "write true or false", "%s: %q is neither true nor false", name, head(t))
	}
	return otherwise
}

// oneOf is one of words, "" where it is another.
func (d *decoder) oneOf(n *node, name string, words ...string) string {
	t := d.text(n, name)
	if n.kind != scalar {
		return "" // told
	}
	if !contains(words, t) {
		hint := "write one of " + strings.Join(words, ", ")
		if near := ring.Nearest(t, words); near != "" {
			hint = "did you mean " + near + "?"
		}
		d.bad(n.place, hint, "%s: %q is not one of %s", name, head(t), strings.Join(words, ", "))
		return ""
	}
	return t
}

// number is a whole number from least on.
func (d *decoder) number(n *node, name string, least, most int) int {
	t := d.text(n, name)
	if n.kind != scalar {
		return least // told
	}
	v, err := strconv.Atoi(t)
	if err != nil || v < least || v > most {
		d.bad(n.place, fmt.Sprintf("write a whole number from %d to %d", least, most), "%s: %q is not a number from %d to %d", name, head(t), least, most)
		return least
	}
	return v
}

// longest is the longest duration that a manifest may name.
const longest = 10 * 365 * 24 * time.Hour

// duration is Go's notation, as in Compose: 1m30s.
func (d *decoder) duration(n *node, name string, least time.Duration) time.Duration {
	t := d.text(n, name)
	if n.kind != scalar {
		return least // told
	}
	v, err := time.ParseDuration(t)
	if t == "0" {
		v, err = 0, nil
	}
	if err != nil || v < least || v > longest {
		d.bad(n.place, fmt.Sprintf("write a duration such as 30s or 1m30s, at least %s", least), "%s: %q is no duration from %s on", name, head(t), least)
		return least
	}
	return v
}

// count is a number or a percentage.
func (d *decoder) count(n *node, name string) ring.Count {
	t := d.text(n, name)
	if n.kind != scalar {
		return ring.Count{} // told
	}
	digits, percent := strings.CutSuffix(t, "%")
	v, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil || v < 0 || v > 10_000 || percent && v > 1_000 {
		d.bad(n.place, "write a number such as 1, or a percentage such as 25%", "%s: %q is neither a number nor a percentage", name, head(t))
		return ring.Count{}
	}
	return ring.Count{N: v, Percent: percent}
}
