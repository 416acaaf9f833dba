package manifest

import (
	"path"
	"strings"

	"github.com/gitring/gitring/ring"
)

// places are where the app's files say what a service asks for, by key as
// ring.Service.Places has them. The later file counts, as it does in a merge.
func (a *appReader) places(service string) map[string]ring.Place {
	out := placesOf{}
	for _, f := range a.files {
		in := placesOf{}
		in.mapping("", f.root.get("services").get(service))
		for key, at := range in {
			out[key] = at
		}
	}
	if at, said := out[reservedDevices]; said {
		out.add("gpus", place{file: at.File, line: at.Line}) // the engine has one word for both
	}
	return out
}

const reservedDevices = "deploy.resources.reservations.devices"

// placesOf collects the places of one file: the first that says a key.
type placesOf map[string]ring.Place

func (p placesOf) add(key string, at place) {
	if _, ok := p[key]; !ok {
		p[key] = ring.Place{File: at.file, Line: max(at.line, 1)}
	}
}

func (p placesOf) mapping(key string, n *node) {
	if n == nil {
		return
	}
	for _, sub := range n.pairs {
		here := join(key, sub.key)
		p.add(here, sub.place)
		switch sub.val.kind {
		case mapping:
			p.mapping(here, sub.val)
		case list:
			p.list(here, sub.val)
		}
	}
}

// spoken are lists whose entries say nothing that policy asks about, and may
// hold what nobody is to read twice.
var spoken = []string{"command", "entrypoint", "test", "environment"}

func (p placesOf) list(key string, n *node) {
	last := key[strings.LastIndex(key, ".")+1:]
	for _, it := range n.items {
		if contains(spoken, last) {
			if name, _, said := strings.Cut(it.text, "="); said && last == "environment" {
				p.add(join(key, name), it.place)
			}
			continue
		}
		for _, name := range itemNames(key, it) {
			if name != "" {
				p.add(join(key, name), it.place)
			}
		}
		p.mapping(key, &node{pairs: unlisted(it)})
	}
}

// unlisted are the keys of a list's entry that hold more, such as the labels of
// a mount: they are found under the list's own key.
func unlisted(it *node) (out []pair) {
	for _, sub := range it.pairs {
		if sub.val.kind != scalar {
			out = append(out, sub)
		}
	}
	return out
}

// itemNames are the words by which an entry of a list is looked for: by its
// text, by what stands before =, and by what tells it from the others of its kind.
func itemNames(key string, it *node) []string {
	if it.kind != scalar {
		for _, by := range longNames[key] {
			if w := textOf(it.get(by)); w != "" {
				return []string{cleanTarget(key, w), fileTarget(key, it)}
			}
		}
		return nil
	}
	before, _, _ := strings.Cut(it.text, "=")
	names := []string{it.text, before}
	parts := strings.Split(it.text, ":")
	switch key {
	case "cap_add", "cap_drop":
		names = append(names, capability(it.text))
	case "devices", "volumes_from", "links":
		names = append(names, parts[0])
	case "security_opt":
		option, value := cutOption(it.text)
		names = append(names, option, option+"="+value)
	case "volumes":
		names = append(names, cleanTarget(key, parts[min(1, len(parts)-1)]))
	case "tmpfs":
		names = append(names, path.Clean(parts[0]))
	case "ports":
		rest, _ := cutLast(strings.Split(it.text, "/")[0])
		_, host := cutLast(rest)
		names = append(names, host)
	}
	return names
}

// longNames are the keys of an entry's long form that name it.
var longNames = map[string][]string{
	"volumes": {"target"}, "devices": {"source"}, "ports": {"published", "target"}, "env_file": {"path"},
	"configs": {"source"}, "secrets": {"source"}, "gpus": {"driver"}, reservedDevices: {"driver"},
}

// fileTarget is where a config or secret is mounted, as written; "" for all else.
func fileTarget(key string, it *node) string {
	if key == "configs" || key == "secrets" {
		return textOf(it.get("target"))
	}
	return ""
}

func cleanTarget(key, w string) string {
	if key == "volumes" {
		return path.Clean(w)
	}
	return w
}
