package daemon

import (
	"maps"
	"slices"
	"strings"

	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
)

// Whoever may push a branch that is judged chooses where in it a value of the host's
// env folder is used. What is told of its plan is public, so none may be in it.

const struckOut = "?"

// all are the values of the folder, as files and as variables.
func (e *envFolder) all(v HostValues) []string {
	var out []string
	for _, app := range slices.Sorted(maps.Keys(v.files)) {
		sealed, refusal := manifest.Seal(app, v.files[app], e.key, e.interpolation)
		if refusal != nil {
			continue // then nothing can have used them
		}
		for _, value := range sealed {
			if value = strings.TrimSpace(value); len(value) >= ring.ShortestStruck {
				out = append(out, value)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) }) // the whole before its parts
	return out
}

// public is what of a plan may be told to everybody: of an app in which a value of the host
// stands as it is (open) which fields differ, and not from what to what. Besides, nothing
// that is told has a secret in it.
func public(c ring.Changes, open map[string]bool, secrets []string) ring.Changes {
	var forms []string // made once: there may be many texts
	for _, secret := range secrets {
		forms = append(forms, ring.FormsOf(secret)...)
	}
	strike := func(s string) string {
		for _, form := range forms {
			s = strings.ReplaceAll(s, form, struckOut)
		}
		return s
	}
	out := c
	out.Apps, out.Refusals, out.UnderWay, out.Waits = []ring.AppChanges{}, nil, nil, ""
	out.Doubts = nil // they name apps of other sources
	for _, a := range c.Apps {
		told := ring.AppChanges{App: strike(a.App)}
		for _, s := range a.Services {
			if open[a.App] {
				s.Reason, s.GapSeconds = fieldsAlone(s), 0
			}
			s.Service, s.Reason, s.Fields = strike(s.Service), strike(s.Reason), nil
			told.Services = append(told.Services, s)
		}
		out.Apps = append(out.Apps, told)
	}
	for _, r := range c.Refusals {
		told := *r
		told.App, told.File = strike(r.App), strike(r.File)
		out.Refusals = append(out.Refusals, &told)
	}
	return out
}

// fieldsAlone are the kinds of what differs: "image" of "image a:1 -> a:2".
func fieldsAlone(s ring.ServiceChange) string {
	switch s.Class {
	case ring.ChangeNone:
		return ""
	case ring.ChangeCreate:
		return "new"
	case ring.ChangeRemove:
		return "not in the commit; volumes stay"
	}
	var out []string
	for _, f := range s.Fields {
		if word, _, _ := strings.Cut(f.Field, " "); !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return strings.Join(out, ", ")
}
