package manifest

import (
	"cmp"
	"slices"
	"strings"
)

// hide takes the host's values out of what the app is refused for: a refusal goes
// to the forge, where others read it. Where a place is sealed nothing else gets
// into a message; where it is not, Compose's words may repeat what was written.
func (a *appReader) hide() {
	var hidden []hiddenValue
	for h := range a.hidden {
		if a.namedAfter(h) {
			continue
		}
		hidden = append(hidden, h)
	}
	slices.SortFunc(hidden, func(a, b hiddenValue) int {
		return cmp.Or(cmp.Compare(len(b.plain), len(a.plain)), cmp.Compare(a.name, b.name))
	})
	for i := range a.faults.list {
		f := &a.faults.list[i]
		f.says, f.hint = told(f.says), told(f.hint)
		for _, h := range hidden {
			f.says, f.hint = h.out(f.says), h.out(f.hint)
		}
	}
}

// namedAfter reports whether the app's name is made of a value: a name is no secret.
func (a *appReader) namedAfter(h hiddenValue) bool {
	if h.name == projectVariable {
		return h.plain == a.name
	}
	return strings.Contains(a.namedBy, h.name) && strings.Contains(a.name, normalName(h.plain))
}

// hiddenValue is one value of the host's env folder.
type hiddenValue struct{ name, plain string }

// shortest is the length from which a value is looked for anywhere; a shorter
// one, such as a port, is too often a part of something else and is looked for
// between quotes.
const shortest = 4

func (h hiddenValue) out(s string) string {
	to := "${" + h.name + "}"
	for _, form := range []string{h.plain, tidy(h.plain)} {
		if len(form) >= shortest {
			s = strings.ReplaceAll(s, form, to)
		} else if form != "" {
			s = strings.ReplaceAll(s, `"`+form+`"`, `"`+to+`"`)
		}
	}
	return h.cut(s, to)
}

// cut finds what is left of a value that a message shortens.
func (h hiddenValue) cut(s, to string) string {
	const mark = "…"
	form := tidy(h.plain)
	for from := 0; ; {
		i := strings.Index(s[from:], mark)
		if i < 0 {
			return s
		}
		i += from
		for n := min(len(form)-1, i); n >= shortest; n-- {
			if strings.HasSuffix(s[:i], form[:n]) {
				s = s[:i-n] + to + s[i:]
				i += len(to) - n
				break
			}
		}
		from = i + len(mark)
	}
}
