package pages

import (
	"cmp"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// moment is a time as a page shows it. Without JavaScript it is UTC, and says so; with it the
// reader's own time and the age are added.
type moment struct {
	At  string // for programs
	UTC string
}

// clock says times of one page: those of its own day without the day.
type clock struct{ now time.Time }

func (c clock) of(t time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	layout := "2 Jan 15:04 UTC"
	switch now := c.now.UTC(); {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		layout = "15:04 UTC"
	case t.Year() != now.Year():
		layout = "2006-01-02 15:04 UTC"
	}
	return &moment{At: t.Format("2006-01-02T15:04:05Z"), UTC: t.Format(layout)}
}

// dueMoment is when something is due: with its day, and in its own zone besides.
type dueMoment struct {
	At, UTC string
	There   string // "" where its zone is UTC, or not known here
}

// due says a time that is to come.
func (c clock) due(t time.Time, zone string) *dueMoment {
	m := c.of(t)
	if m == nil {
		return nil
	}
	layout := "Mon 2 Jan 15:04 UTC"
	if t.UTC().Year() != c.now.UTC().Year() {
		layout = "Mon 2 Jan 2006 15:04 UTC"
	}
	d := &dueMoment{At: m.At, UTC: t.UTC().Format(layout)}
	if there, err := time.LoadLocation(zone); err == nil && zone != "" && there.String() != "UTC" {
		d.There = t.In(there).Format("Mon 15:04 ") + zone
	}
	return d
}

// funcs are the words of templates.
func (h *Handler) funcs() template.FuncMap {
	return template.FuncMap{
		"short":   ring.SHA.Short,
		"mark":    markOf,
		"counted": wording.Counted,
		"path":    h.path,
		"has":     h.has,
		"unless":  unless,
		"or2":     func(a, b string) string { return cmp.Or(a, b) },
	}
}

// unless gives the one text, or the other where something holds.
func unless(holds bool, one, other string) string {
	if holds {
		return other
	}
	return one
}

// path is a path of this handler's pages; of no part, that of the page of now.
func (h *Handler) path(parts ...string) string {
	if len(parts) == 0 {
		return cmp.Or(h.Under, "/")
	}
	return h.Under + pathOf(parts...)
}

// pathOf is a path of ours, whatever its parts have in them.
func pathOf(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(p))
	}
	return cmp.Or(b.String(), "/")
}

// clean takes out of a page what could hide or reorder text, wherever it came from. Our own
// templates have none of it.
func clean(page []byte) []byte {
	plain := true
	for _, c := range page {
		if c >= 0x80 || c < ' ' && c != '\n' || c == 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return page
	}
	return []byte(wording.Replace(string(page), func(r rune) bool { return r != '\n' && wording.IsSteering(r) }, -1))
}

// said are the sentences that a part of a page has, so that it says nothing twice.
type said []string

func (s *said) say(sentence string) { *s = append(*s, sentence) }

// tell gives a sentence the first time, and nothing where the part says it already.
func (s *said) tell(sentence string) string {
	for _, other := range *s {
		if strings.Contains(other, sentence) {
			return ""
		}
	}
	s.say(sentence)
	return sentence
}

// unlessEnds is a sentence, or nothing where it only leads up to one of the others.
func unlessEnds(sentence string, others []string) string {
	for _, other := range others {
		if other != "" && strings.HasSuffix(sentence, other) {
			return ""
		}
	}
	return sentence
}
