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

// withFor has the apps of a rule in a plain tree. A name in clear would serve nobody, so it is
// refused where the rule leaves it so.
func (r Rule) withFor(form Form, tree branch) (branch, error) {
	switch {
	case len(r.For) == 0:
		return tree, nil
	case form == Binary || form == Age:
		return nil, faultOfForm(0, "a file of the form binary has no place for "+ForKey,
			"--form yaml, json, env or ini has one; or bind a key of the host to the app's folder: paths in secrets.keys")
	case len(tree.withoutFor(form)) != len(tree) || form == INI && len(tree[0].value.(branch).without(ForKey)) != len(tree[0].value.(branch)):
		return nil, faultOfFile(0, "has "+ForKey+" already", "leave --for out, or take the line out of the file")
	case !r.choice.encrypts([]string{ForKey}):
		return nil, faultOfForm(0, "its rule leaves "+ForKey+" in clear, where it serves nobody", "have "+r.choice.name+" of .sops.yaml encrypt it too")
	}
	row := entry{name: ForKey, value: strings.Join(r.For, ",")}
	if form != INI {
		return append(tree, row), nil
	}
	// parseINI begins each tree with what stands before any section.
	tree[0].value = append(tree[0].value.(branch), row)
	return tree, nil
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
