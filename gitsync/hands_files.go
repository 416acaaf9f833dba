package gitsync

import (
	"path"
	"slices"
	"strings"
)

// LimitedFiles reports whether a signer may add or copy files on some paths only. Role images
// alone is no such signer: its commits change tags and digests in files that exist.
func (h Hands) LimitedFiles() bool {
	if h.trust == nil {
		return false
	}
	narrow := func(b Binding) bool { return len(b.Paths) > 0 && b.bringsFiles() }
	if slices.ContainsFunc(h.trust.cfg.Bindings, narrow) {
		return true
	}
	if h.trust.repo != nil {
		for _, grants := range h.trust.repo.grants {
			if slices.ContainsFunc(grants, narrow) {
				return true
			}
		}
	}
	return false
}

// OneHand reports whether each signer may add files everywhere that patterns of paths reach,
// or nowhere there. Then nobody can copy a file of another's into a part of his own, whichever
// apps lie there now or lay there before. Where that cannot be told of a pattern, it is false.
func (h Hands) OneHand(patterns []string) bool {
	return !slices.ContainsFunc(h.of, func(grants []Binding) bool { return partly(grants, patterns) })
}

// partly reports whether grants let somebody add files to a part of what patterns reach.
func partly(grants []Binding, patterns []string) bool {
	var mine []string
	for _, b := range grants {
		switch {
		case !b.bringsFiles():
		case len(b.Paths) == 0:
			return false
		default:
			mine = append(mine, b.Paths...)
		}
	}
	within := func(p string) bool {
		return slices.ContainsFunc(mine, func(m string) bool { return patternHolds(strings.Split(m, "/"), strings.Split(p, "/")) })
	}
	meets := func(p string) bool {
		return slices.ContainsFunc(mine, func(m string) bool { return patternsMeet(strings.Split(m, "/"), strings.Split(p, "/")) })
	}
	return slices.ContainsFunc(patterns, meets) && slices.ContainsFunc(patterns, func(p string) bool { return !within(p) })
}

// bringsFiles reports whether a binding has more roles than images.
func (b Binding) bringsFiles() bool {
	return len(b.Roles) == 0 || slices.ContainsFunc(b.Roles, func(r Role) bool { return r != RoleImages })
}

// patternHolds reports whether a pattern covers all that another one does; false where that
// cannot be told.
func patternHolds(wide, narrow []string) bool {
	switch {
	case len(wide) == 0:
		return len(narrow) == 0
	case wide[0] == "**" && len(wide) == 1:
		return len(narrow) > 0
	case wide[0] == "**":
		for i := range narrow {
			if patternHolds(wide[1:], narrow[i:]) {
				return true
			}
		}
		return false
	case len(narrow) == 0 || narrow[0] == "**":
		return false
	case wide[0] == narrow[0] || wide[0] == "*":
	case isPattern(narrow[0]):
		return false
	default:
		if ok, err := path.Match(wide[0], narrow[0]); err != nil || !ok {
			return false
		}
	}
	return patternHolds(wide[1:], narrow[1:])
}

// patternsMeet reports whether two patterns may cover one file; true where that cannot be told.
func patternsMeet(a, b []string) bool {
	switch {
	case len(b) > 0 && b[0] == "**" && (len(a) == 0 || a[0] != "**"):
		return patternsMeet(b, a)
	case len(a) > 0 && a[0] == "**":
		for i := range len(b) + 1 {
			if patternsMeet(a[1:], b[i:]) {
				return true
			}
		}
		return len(a) == 1 && len(b) > 0
	case len(a) == 0 || len(b) == 0:
		return len(a) == len(b)
	case isPattern(a[0]) && isPattern(b[0]):
	case !matchesPart(a[0], b[0]) && !matchesPart(b[0], a[0]):
		return false
	}
	return patternsMeet(a[1:], b[1:])
}

func matchesPart(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func isPattern(part string) bool { return strings.ContainsAny(part, `*?[\`) }
