package ring

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// DataTrailer is the key of a trailer by which a signed commit says what becomes of data:
// "Gitring-Data: store from shop" has app store take over what app shop has or had, and
// "Gitring-Data: store from none" has it begin empty.
const DataTrailer = "Gitring-Data"

// DataAnswer is one such trailer.
type DataAnswer struct {
	App  string `json:"app,omitempty"` // "" where the trailer could not be read
	From string `json:"from"`          // FromNone where it begins empty; all of what could not be read
}

// ReadDataAnswer reads the value of one. Who signed one wants something of data: what is no
// answer is kept, and refused where it matters.
func ReadDataAnswer(value string) DataAnswer {
	words := strings.Fields(value)
	if len(words) != 3 || words[1] != "from" || !plainName(words[0]) || !plainName(words[2]) {
		return DataAnswer{From: value}
	}
	return DataAnswer{App: words[0], From: words[2]}
}

func plainName(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// String is the trailer as people write it.
func (a DataAnswer) String() string {
	if a.App == "" {
		return DataTrailer + ": " + a.From
	}
	return DataTrailer + ": " + a.App + " from " + a.From
}

// Taken is a volume or a data folder that an app has from another one by a signed answer.
type Taken struct {
	// Volume is a key of the app's volumes, and Folder a path inside the commit, as the Compose
	// file says it; one of the two is "".
	Volume string `json:"volume,omitempty"`
	Folder string `json:"folder,omitempty"`
	// As is what it is instead: the volume's name on the engine, or a path below the data root.
	As   string `json:"as"`
	From string `json:"from"` // the app for which it was made
}

// FolderNote is how a note says where a data folder lies, by a path below the data root.
func FolderNote(path string) string { return "is the app's data: " + path + " below the data root" }

// stillTaken are those of what an app took over that it does not have otherwise by now, as
// after an answer that it begins empty.
func stillTaken(a *App, taken []Taken) (out []Taken) {
	for _, t := range taken {
		otherwise := slices.ContainsFunc(a.Volumes, func(v Volume) bool { return t.Volume != "" && v.Key == t.Volume && v.EngineName(a.Name) != t.As })
		for i := range a.Services {
			otherwise = otherwise || slices.ContainsFunc(a.Services[i].Spec.Mounts, func(m Mount) bool {
				return t.Folder != "" && m.Source == t.Folder && t.Folder != t.As && (m.Kind == MountData || m.Kind == MountSeed)
			})
		}
		if !otherwise {
			out = append(out, t)
		}
	}
	return out
}

// withTaken is before with what a plan has, which counts more.
func withTaken(before, plan []Taken) []Taken {
	all := slices.Clone(plan)
	for _, t := range before {
		if !slices.ContainsFunc(plan, func(p Taken) bool { return p.Volume == t.Volume && p.Folder == t.Folder }) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Taken) int { return cmp.Or(cmp.Compare(a.Volume, b.Volume), cmp.Compare(a.Folder, b.Folder)) })
	return all
}

// Left is what an app gave up that holds data and that no plan of it names any more. It
// stays after the app left, as the data does.
type Left struct {
	// App has of each of its services the name, the image and what of its mounts was given up.
	App App `json:"app"`
	// Commit is the one that gave it up last.
	Commit SHA       `json:"commit"`
	At     time.Time `json:"at"`
}

// Row is by app.
func (f Left) Row() (string, string) { return "left", f.App.Name }
