package manifest

import (
	"cmp"
	"slices"
	"strconv"
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
		for _, h := range hidden {
			for u := range a.plainly {
				if u.name == h.name && strings.HasPrefix(f.says, "services."+u.service+"."+u.key) {
					f.says = h.pieces(f.says)
				}
			}
		}
	}
}

// pieces puts ${NAME} in place of what a message quotes of a value: a key that is split, such
// as a port, is told part by part.
func (h hiddenValue) pieces(s string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			return out.String() + s
		}
		quoted, err := strconv.QuotedPrefix(s[i:])
		if err != nil {
			return out.String() + s
		}
		out.WriteString(s[:i])
		s = s[i+len(quoted):]
		if piece, err := strconv.Unquote(quoted); err == nil && h.shares(piece) {
			quoted = `"${` + h.name + `}"`
		}
		out.WriteString(quoted)
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
		one.Says, one.Hint = r.Hidden(one.App, one.Says), r.Hidden(one.App, one.Hint)
	}
}

// Hidden is a text about an app without the host's values.
func (r *Reading) Hidden(app, text string) string { return hiddenIn(text, r.hidden[app]) }

// namedAfter reports whether the app's name is made of a value: a name is no secret.
func (a *appReader) namedAfter(h hiddenValue) bool {
	if h.name == projectVariable {
		return h.plain == a.name
	}
	return strings.Contains(a.namedBy, h.name) && strings.Contains(a.name, normalName(h.plain))
}

// shares reports whether a text has a piece of the value that is long enough to be looked for.
func (h hiddenValue) shares(text string) bool {
	for i := 0; i+ring.ShortestStruck <= len(h.plain); i++ {
		if strings.Contains(text, h.plain[i:i+ring.ShortestStruck]) {
			return true
		}
	}
	return false
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
	form := tidy(h.plain)
	quoted := strconv.Quote(form)
	return cutForm(cutForm(s, quoted[1:len(quoted)-1], to), form, to)
}

func cutForm(s, form, to string) string {
	const mark = "…"
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
