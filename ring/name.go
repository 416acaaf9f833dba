package ring

import (
	"path"
	"slices"
	"strings"
	"time"
)

// Name is whose the name of an app is on this host, from its first acceptance on. It
// stays after the app left: its env folder, volumes and data are still there.
type Name struct {
	App    string `json:"app"`
	Source string `json:"source"`
	Path   string `json:"path"` // folder inside the commit, clean; "." is the root
	// File is the first Compose file, inside the commit; "" where only labels told
	// of the app.
	File     string `json:"file,omitempty"`
	DataRoot string `json:"data_root,omitempty"` // as App.DataRoot
	// Volumes are the engine's names of all volumes that were made for the app under a
	// name of their own; others begin with the app's name.
	Volumes []string `json:"volumes,omitempty"`
	// Taken is what signed answers had the app take over, for as long as it has the name.
	Taken []Taken   `json:"taken,omitempty"`
	At    time.Time `json:"at"` // of the first acceptance
}

// Row is by app.
func (f Name) Row() (string, string) { return "name", f.App }

// Rule is the file by which rights on the app are judged: whoever may change it rules the app.
func (f Name) Rule() string { return RuleFile(f.Path, f.File) }

// RuleFile is the Compose file of an app: whoever may change it rules the app. file
// is "" where it is not known.
func RuleFile(folder, file string) string {
	if file != "" {
		return path.Clean(file)
	}
	return path.Join(folder, "compose.yaml")
}

// NameOf is the row of an app that is accepted; before is the row until now, zero for
// none.
func NameOf(a *App, before Name, now time.Time) Name {
	n := Name{App: a.Name, Source: a.Source, Path: path.Clean(a.Path), DataRoot: a.DataRoot, Volumes: slices.Clone(before.Volumes), At: before.At}
	n.Taken = withTaken(stillTaken(a, before.Taken), a.Taken)
	if n.At.IsZero() {
		n.At = now
	}
	if len(a.Files) > 0 {
		n.File = a.Files[0]
	}
	for _, v := range a.Volumes {
		if v.External == "" && v.Name != "" && !slices.Contains(n.Volumes, v.Name) {
			n.Volumes = append(n.Volumes, v.Name)
		}
	}
	slices.Sort(n.Volumes)
	return n
}

// Same reports whether two rows say the same.
func (f Name) Same(o Name) bool {
	return f.App == o.App && f.Source == o.Source && f.Path == o.Path && f.File == o.File && f.DataRoot == o.DataRoot &&
		f.At.Equal(o.At) && slices.Equal(f.Volumes, o.Volumes) && slices.Equal(f.Taken, o.Taken)
}

// MatchPath reports whether a pattern covers a file, folder by folder. * and ? stop at a
// slash; ** is any number of folders, none too, and at the end everything below.
func MatchPath(pattern, file string) bool {
	return matchFolders(strings.Split(pattern, "/"), strings.Split(file, "/"))
}

func matchFolders(pattern, file []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			pattern = pattern[1:]
			if len(pattern) == 0 {
				return len(file) > 0
			}
			for i := range file {
				if matchFolders(pattern, file[i:]) {
					return true
				}
			}
			return false
		}
		if len(file) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], file[0]); err != nil || !ok {
			return false
		}
		pattern, file = pattern[1:], file[1:]
	}
	return len(file) == 0
}
