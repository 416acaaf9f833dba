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
	if a.faults.none() || len(a.hidden) == 0 {
		return
	}
	hidden := newHider(a.hiddenHere())
	for i := range a.faults.list {
		f := &a.faults.list[i]
		before := f.says
		f.says, f.hint = hidden.out(told(f.says)), hidden.out(told(f.hint))
		for u := range a.plainly {
			if !strings.HasPrefix(f.says, "services."+u.service+"."+u.key) {
				continue
			}
			for _, h := range hidden.named[u.name] {
				f.says = h.pieces(f.says)
			}
		}
		if f.says != before {
			f.hint += a.setOnHost(f.says)
		}
	}
}

// setOnHost says which files of the host have the values that a refusal is about: their
// names stand in it.
func (a *appReader) setOnHost(says string) string {
	for _, h := range a.hiddenValues() {
		if !strings.Contains(says, "${"+h.name+"}") {
			continue
		}
		for _, host := range []*hostEnv{a.host, a.shared} {
			if host == nil {
				continue
			}
			if of, _ := host.variables(dotEnv, false); of[h.name] == h.plain {
				return "; the value is the host's: " + h.name + " in " + host.where(dotEnv)
			}
		}
	}
	return ""
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

// hider finds many values in a text at once: an app may have thousands, and its faults be many.
type hider struct {
	all   []hiddenValue
	named map[string][]hiddenValue
	// starts are the forms of the values by how they begin, the longest first.
	starts map[string][]hiddenForm
	short  map[string]string // in quotes, by what they are
	// services are named by the commit, and folders of the env folder after an app and a source:
	// one may be called as a value is.
	services, folders []string
}

// hiddenForm is a value as a program may write it.
type hiddenForm struct{ text, to string }

func newHider(of hiddenOf) *hider {
	h := &hider{all: of.values, named: map[string][]hiddenValue{}, starts: map[string][]hiddenForm{}, short: map[string]string{}, services: of.services, folders: of.folders}
	for _, v := range of.values {
		to := "${" + v.name + "}"
		h.named[v.name] = append(h.named[v.name], v)
		seen := map[string]bool{}
		for _, plain := range []string{v.plain, tidy(v.plain), strings.ToUpper(v.plain)} { // Compose writes cap_add in capitals
			if plain != "" && len(plain) < ring.ShortestStruck {
				h.short[`"`+plain+`"`] = `"` + to + `"`
			}
			if seen[plain] {
				continue
			}
			seen[plain] = true
			for _, form := range ring.FormsOf(plain) {
				if start := form[:ring.ShortestStruck]; !seen["\x00"+form] {
					seen["\x00"+form] = true
					h.starts[start] = append(h.starts[start], hiddenForm{form, to})
				}
			}
		}
	}
	for _, forms := range h.starts {
		slices.SortStableFunc(forms, func(a, b hiddenForm) int { return len(b.text) - len(a.text) })
	}
	return h
}

// out is a text without the values. The service that it begins with is told as it is called.
func (h *hider) out(text string) string {
	n := h.serviceOf(text)
	return text[:n] + h.struckBetween(text[n:], h.folders)
}

// struckBetween is struck for what stands between the names of folders.
func (h *hider) struckBetween(text string, folders []string) string {
	if len(folders) == 0 {
		return h.struck(text)
	}
	parts := strings.Split(text, folders[0])
	for i := range parts {
		parts[i] = h.struckBetween(parts[i], folders[1:])
	}
	return strings.Join(parts, folders[0])
}

// serviceOf is how much of a text says of which service of the commit it is.
func (h *hider) serviceOf(text string) (length int) {
	rest, of := strings.CutPrefix(text, "services.")
	if !of {
		return 0
	}
	for _, name := range h.services {
		if after, is := strings.CutPrefix(rest, name); is && (after == "" || after[0] == '.' || after[0] == ' ') {
			length = max(length, len(text)-len(after))
		}
	}
	return length
}

func (h *hider) struck(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if form := h.at(text[i:]); form.text != "" {
			out.WriteString(form.to)
			i += len(form.text)
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	text = out.String()
	if !strings.Contains(text, cutMark) {
		return text
	}
	for _, v := range h.all {
		text = v.cut(text)
	}
	return text
}

// at is the longest form with which a text begins; zero where there is none.
func (h *hider) at(text string) hiddenForm {
	if len(text) >= ring.ShortestStruck {
		for _, form := range h.starts[text[:ring.ShortestStruck]] {
			if strings.HasPrefix(text, form.text) {
				return form
			}
		}
	}
	if text[0] == '"' && len(h.short) > 0 {
		if end := strings.IndexByte(text[1:], '"'); end >= 0 && end < ring.ShortestStruck {
			if quoted := text[:end+2]; h.short[quoted] != "" {
				return hiddenForm{quoted, h.short[quoted]}
			}
		}
	}
	return hiddenForm{}
}

// Hide takes the host's values out of refusals of the reading's apps, whoever made them: what
// a policy denies is told in the words of the request, and a value may stand open in it.
func (r *Reading) Hide(refusals ...*ring.Refusal) {
	for _, one := range refusals {
		one.Says, one.Hint = r.Hidden(one.App, one.Says), r.Hidden(one.App, one.Hint)
	}
}

// Hidden is a text about an app without the host's values.
func (r *Reading) Hidden(app, text string) string {
	if len(r.hidden[app].values) == 0 {
		return text
	}
	if r.hiders[app] == nil {
		if r.hiders == nil {
			r.hiders = map[string]*hider{}
		}
		r.hiders[app] = newHider(r.hidden[app])
	}
	return r.hiders[app].out(text)
}

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

// hiddenOf are the values that no refusal of an app tells, its services, and the folders of the
// env folder that its hints name, up to the slash.
type hiddenOf struct {
	values            []hiddenValue
	services, folders []string
}

func (a *appReader) hiddenHere() hiddenOf {
	of := hiddenOf{values: a.hiddenValues(), services: declaredIn(a.files, "services")}
	for _, host := range []*hostEnv{a.host, a.shared} {
		if host != nil && host.app != "" {
			of.folders = append(of.folders, host.where("")+"/")
		}
	}
	return of
}

// hiddenValue is one value of the host's env folder.
type hiddenValue struct{ name, plain string }

// cutMark stands where a message shortens what it repeats.
const cutMark = "…"

// cut finds what is left of a value that a message shortens.
func (h hiddenValue) cut(s string) string {
	form, to := tidy(h.plain), "${"+h.name+"}"
	quoted := strconv.Quote(form)
	return cutForm(cutForm(s, quoted[1:len(quoted)-1], to), form, to)
}

func cutForm(s, form, to string) string {
	if len(form) < ring.ShortestStruck || !strings.Contains(s, form[:ring.ShortestStruck]) {
		return s
	}
	for from := 0; ; {
		i := strings.Index(s[from:], cutMark)
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
		from = i + len(cutMark)
	}
}
