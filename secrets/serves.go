package secrets

import (
	"slices"
	"strings"
)

// takeFor takes the apps that the file serves out of its values. Only what is encrypted
// counts: a name in clear is anybody's to write where the MAC does not cover it.
func (o *Opened) takeFor(form Form) {
	o.Values = slices.DeleteFunc(o.Values, func(v Value) bool {
		if !isFor(form, v.Path) {
			return false
		}
		if v.Sealed {
			for app := range strings.SplitSeq(v.Text, ",") {
				if app = strings.TrimSpace(app); app != "" {
					o.For = append(o.For, app)
				}
			}
		}
		return true
	})
}

func isFor(form Form, path []string) bool {
	if form == INI && len(path) > 0 && path[0] == iniDefault {
		path = path[1:]
	}
	return form != Binary && len(path) == 1 && path[0] == ForKey
}

// withoutFor is the tree less ForKey.
func (b branch) withoutFor(form Form) branch {
	if form == Binary {
		return b
	}
	out := b.without(ForKey)
	for i, e := range out {
		if section, ok := e.value.(branch); ok && form == INI && e.name == iniDefault {
			out[i].value = section.without(ForKey)
		}
	}
	return out
}
