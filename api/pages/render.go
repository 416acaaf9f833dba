package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"strings"
	"sync"

	"github.com/gitring/gitring/api"
)

//go:embed templates
var templateFiles embed.FS

// made is a page without what depends on who looks.
type made struct {
	title string
	// live is what of the page the script keeps up to date: "status" is all, by asking for the
	// same URL; "logs" are new lines; "" is nothing. A live page has no form.
	live string
	tone string // of the icon; "" where the page has no state of its own
	nav  string // the path of the menu's entry that it belongs to
	code int
	host string
	main []byte
}

// layout is what stands around a page.
type layout struct {
	Title, Live, Nav, Host, Icon, Tone string
	// Home is the path of the page of now, and Stream what a live page listens to; "" is the usual.
	Home, Stream string
	// Notice is what is to be known of every page of the host; "" is nothing.
	Notice               string
	Viewer               string
	SignsOut, SignsIn    bool
	Style, Morph, Script string
	Menu                 []menuEntry
}

type menuEntry struct {
	Path, Word string
	Here       bool
}

var menu = []menuEntry{
	{Path: "/", Word: "Now"},
	{Path: "/plan", Word: "Plan"},
	{Path: "/history", Word: "History"},
	{Path: "/jobs", Word: "Jobs"},
	{Path: "/crashes", Word: "Crashes"},
	{Path: "/trust", Word: "Trust"},
	{Path: "/doctor", Word: "Doctor"},
}

// parsed are the templates, read once: each handler has its own words for links.
var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs((&Handler{}).funcs()).ParseFS(templateFiles, "templates/*.html"))
})

func (h *Handler) loadTemplates() *template.Template {
	return template.Must(parsed().Clone()).Funcs(h.funcs())
}

// main renders what a page is about.
func (h *Handler) main(name string, view any) ([]byte, error) {
	var b bytes.Buffer
	if err := h.templates.ExecuteTemplate(&b, name+".html", view); err != nil {
		return nil, fmt.Errorf("cannot make the page %s: %w", name, err)
	}
	return clean(squeeze(b.Bytes())), nil
}

// squeeze takes the indentation of templates out of a page. Where space counts, in a <pre>, no
// line of ours begins with any.
func squeeze(page []byte) []byte {
	out := make([]byte, 0, len(page))
	pre := false
	for line := range bytes.Lines(page) {
		if !pre {
			line = bytes.TrimLeft(line, " \t")
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
		}
		out = append(out, line...)
		if i, j := bytes.LastIndex(line, []byte("<pre")), bytes.LastIndex(line, []byte("</pre>")); i != j {
			pre = i > j
		}
	}
	return out
}

// around are what comes before and after the main part of a page.
func (h *Handler) around(m *made, v api.Viewer, known bool) (before, after []byte, err error) {
	l := layout{
		Title: m.title, Tone: orOff(m.tone), Live: m.live, Nav: m.nav, Host: m.host, Icon: h.assets.named["icon-"+orOff(m.tone)+".svg"],
		Style: h.assets.named["style.css"], Morph: h.assets.named["idiomorph.min.js"], Script: h.assets.named["live.js"],
	}
	l.Home, l.Stream = h.path(), h.Stream
	if h.Notice != nil && known {
		l.Notice = h.Notice()
	}
	if l.Notice != "" { // nobody knows what it is now
		l.Tone, l.Icon = toneOff, h.assets.named["icon-"+toneOff+".svg"]
	}
	if known {
		l.Viewer, l.SignsOut = v.Actor, v.Session && h.SignOut != nil
		l.Menu = h.menuAt(m.nav)
	}
	if l.Viewer == "" && known {
		l.Viewer = "somebody"
	}
	for name, part := range map[string]*[]byte{"head": &before, "foot": &after} {
		var b bytes.Buffer
		if err := h.templates.ExecuteTemplate(&b, name, l); err != nil {
			return nil, nil, fmt.Errorf("cannot make the page: %w", err)
		}
		*part = clean(squeeze(b.Bytes()))
	}
	return before, after, nil
}

// menuAt is the menu, of the entries that this handler has.
func (h *Handler) menuAt(nav string) (out []menuEntry) {
	if h.Under != "" {
		out = append(out, menuEntry{Path: hostsPath, Word: "Hosts", Here: nav == hostsPath})
	}
	if h.Under == hostsPath { // it is of no host
		return out
	}
	for _, e := range menu {
		if !h.has(strings.TrimPrefix(e.Path, "/")) {
			continue
		}
		e.Here = e.Path == nav
		e.Path = h.Under + e.Path
		if e.Path == h.Under+"/" {
			e.Path = h.path()
		}
		out = append(out, e)
	}
	return out
}

func orOff(tone string) string {
	switch tone {
	case toneBad, toneWait, toneMove, toneGood:
		return tone
	}
	return toneOff
}
