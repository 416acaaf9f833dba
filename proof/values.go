package proof

import (
	"maps"
	"slices"

	"github.com/gitring/gitring/manifest"
)

// Values are what of the host the version depends on besides the commit. They are the
// host's word; with other ones another version would come out. No value of the env folder
// or of an encrypted file is among them, only keyed hashes that nobody else can compute.
type Values struct {
	Path          string            `json:"path"` // of the source in the repository
	Only          string            `json:"only,omitempty"`
	Facts         map[string]string `json:"facts,omitempty"`
	Interpolation map[string]string `json:"interpolation,omitempty"`
	DataRoot      string            `json:"data_root,omitempty"`
	Traffic       *Traffic          `json:"traffic,omitempty"` // nil is the default
	NoStatus      bool              `json:"no_status,omitempty"`
	NoChown       bool              `json:"no_chown,omitempty"`
	// Env and Files are values of the env folder, and of encrypted files, as the version has
	// them.
	Env   manifest.SealedValues `json:"env,omitempty"`
	Files manifest.SealedValues `json:"files,omitempty"`
}

// Traffic is manifest.Traffic as it is written in a proof.
type Traffic struct {
	Publish     string   `json:"publish"`
	Labels      []string `json:"labels"`
	Env         []string `json:"env"`
	Trusted     []string `json:"trusted"`
	Memory      int64    `json:"memory"`
	Connections int      `json:"connections"`
	Never       string   `json:"never,omitempty"`
}

// ValuesOf are all that a host reads a commit with, but for its sealed values.
func ValuesOf(s *manifest.Settings) Values {
	t := Traffic(s.Traffic)
	return Values{
		Path: s.Path, Facts: s.Facts, Interpolation: s.Interpolation, Traffic: &t, NoStatus: s.NoStatus, NoChown: s.NoChown,
	}
}

// settings are those with which the commit is read again.
func (s *Statement) settings() manifest.Settings {
	v := &s.Values
	out := manifest.Settings{
		Source: s.Source, Path: v.Path, Host: s.Host, Facts: v.Facts, Interpolation: v.Interpolation, Only: v.Only,
		NoStatus: v.NoStatus, NoChown: v.NoChown, Sealed: v.Env, Secrets: replay{v.Files},
	}
	if out.Sealed == nil {
		out.Sealed = manifest.SealedValues{}
	}
	if v.Traffic != nil {
		out.Traffic = manifest.Traffic(*v.Traffic)
	}
	return out
}

// sealedNames are the values that the version depends on and nobody can compute from the
// commit, as people read them, and those of which the host says that they are empty.
func (v *Values) sealedNames() (names, empty []string) {
	for _, of := range []manifest.SealedValues{v.Env, v.Files} {
		for _, folder := range slices.Sorted(maps.Keys(of)) {
			for _, file := range slices.Sorted(maps.Keys(of[folder])) {
				for _, name := range slices.Sorted(maps.Keys(of[folder][file])) {
					says := name + " of " + file
					if name == "" {
						says = file
					}
					switch {
					case of[folder][file][name].MAC != "":
						names = append(names, says)
					default:
						empty = append(empty, says)
					}
				}
			}
		}
	}
	return names, empty
}
