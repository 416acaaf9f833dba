package manifest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// hide takes the host's values out of what the app is refused for: a refusal goes
// to the forge, where others read it. Where a place is sealed nothing else gets
// into a message; where it is not, Compose's words may repeat what was written.
func (a *appReader) hide() {
	hidden := a.hiddenValues()
	for i := range a.faults.list {
		f := &a.faults.list[i]
		f.says, f.hint = hiddenIn(told(f.says), hidden), hiddenIn(told(f.hint), hidden)
	}
}

// hiddenValues are the values that no refusal of the app tells, the longest first: one can
// be part of another.
func (a *appReader) hiddenValues() (hidden []hiddenValue) {
	for h := range a.hidden {
		if !a.namedAfter(h) {
			hidden = append(hidden, h)
		}
	}
	slices.SortFunc(hidden, func(a, b hiddenValue) int {
		return cmp.Or(cmp.Compare(len(b.plain), len(a.plain)), cmp.Compare(a.name, b.name))
	})
	return hidden
}

// hiddenIn is a text without values.
func hiddenIn(text string, hidden []hiddenValue) string {
	for _, h := range hidden {
		text = h.out(text)
	}
	return text
}

// Hide takes the host's values out of refusals of the reading's apps, whoever made them: what
// a policy denies is told in the words of the request, and a value may stand open in it.
func (r *Reading) Hide(refusals ...*ring.Refusal) {
	for _, one := range refusals {
		hidden := r.hidden[one.App]
		one.Says, one.Hint = hiddenIn(one.Says, hidden), hiddenIn(one.Hint, hidden)
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

// out puts ${NAME} in place of a value, in each form in which a message may have it. One that
// is short, such as a port, is too often a part of something else and is looked for between quotes.
func (h hiddenValue) out(s string) string {
	to := "${" + h.name + "}"
	for _, form := range []string{h.plain, tidy(h.plain), strings.ToUpper(h.plain)} { // Compose writes cap_add in capitals
		if len(form) >= ring.ShortestStruck {
			s = ring.Strike(s, form, to)
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
		for n := min(len(form)-1, i); n >= ring.ShortestStruck; n-- {
			if strings.HasSuffix(s[:i], form[:n]) {
				s = s[:i-n] + to + s[i:]
				i += len(to) - n
				break
			}
		}
		from = i + len(mark)
	}
}
