package manifest

import "path"

// soundOf are the entries of a gitring.yaml with mistakes of which it is known what
// they name.
func (r *reader) soundOf(entries []entry) []entry {
	var out []entry
	for _, e := range entries {
		if !e.unsound && !path.IsAbs(e.path) && r.inside(path.Join(r.settings.Path, e.path)) {
			out = append(out, e)
		}
	}
	return out
}

// despite reads the apps of a gitring.yaml with mistakes: what is wrong with them is
// told in the same run. The commit is refused, and nothing of them is carried out.
func (r *reader) despite() []outcome {
	apps := r.candidates(r.sound)
	for i := range apps {
		if c := &apps[i]; c.name != "" && !appName.MatchString(c.name) {
			c.name, c.nameLost = c.unnamed, true // told; the host's values are another app's
		}
	}
	return r.readApps(apps)
}
