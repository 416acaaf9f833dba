package ring

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"
)

// Reload says which files of the commit reach instances in place, and what is
// done then. The files are mounted as MountLive, whose content is no part of
// the version.
type Reload struct {
	Paths []string `json:"paths"` // as written
	// Live is, by the Source of a MountLive, the hash of the content to lie there.
	Live map[string]string `json:"live,omitempty"`
	// One of the two is set.
	Signal string   `json:"signal,omitempty"` // to the instance's first process: SIGHUP
	Exec   []string `json:"exec,omitempty"`   // inside the instance; must exit with 0
}

// Content is what lies in the live folders; nil for a service without any.
func (r *Reload) Content() map[string]string {
	if r == nil {
		return nil
	}
	return r.Live
}

// Does is what follows a swap, as people read it.
func (r *Reload) Does() string {
	if r.Signal != "" {
		return r.Signal
	}
	return "exec " + strings.Join(r.Exec, " ")
}

// liveMark stands in a LiveVersion between the version and the content.
const liveMark = "+live:"

// LiveVersion names what s runs together with what it reloads in place: the key
// under which a verdict on that content stands. Instances carry the version alone.
func (s *Service) LiveVersion() Version {
	if s.Reload == nil {
		return s.Version
	}
	body := struct {
		Live   map[string]string
		Signal string
		Exec   []string
	}{s.Reload.Live, s.Reload.Signal, s.Reload.Exec} // a command that is mended is tried again
	return s.Version + liveMark + Version(hash(body)[:8])
}

// Of reports whether a and b are of one version, whatever is reloaded in place with it.
func (v Version) Of(o Version) bool {
	a, _, _ := strings.Cut(string(v), liveMark)
	b, _, _ := strings.Cut(string(o), liveMark)
	return a == b
}

// IsLive reports whether v is a LiveVersion.
func (v Version) IsLive() bool { return strings.Contains(string(v), liveMark) }

// LiveFolder is the name of the folder that holds the live folders of one
// instance: that of its container when it was made.
func LiveFolder(app, service string, slot int, v Version) string {
	return ContainerName(app, service, slot, v)
}

// LiveName is the name in there of the live folder that a mount's Source names.
func LiveName(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:6])
}

// Loaded is what an instance last took over of the files it reloads in place.
type Loaded struct {
	ID       ServiceID `json:"id"`
	Instance string    `json:"instance"` // container ID
	// Live is as Reload.Live: what lies in its folders and was taken over, by its
	// start or by a reload. Next is what is on its way there; nil when nothing is.
	Live map[string]string `json:"live,omitempty"`
	Next map[string]string `json:"next,omitempty"`
	// Ready says that it was ready when Next was decided: it may not stop to be.
	Ready bool `json:"ready,omitempty"`
	// At is when it took Live over, by the decider's clock.
	At time.Time `json:"at"`
}

// Row is by container ID.
func (f Loaded) Row() (string, string) { return "loaded", f.Instance }

// Has reports whether the instance took over what r wants and nothing else is on its way.
func (f Loaded) Has(r *Reload) bool {
	return f.Next == nil && maps.Equal(f.Live, r.Content())
}

// LiveDiffers are the sources of live folders whose content differs, sorted.
func LiveDiffers(a, b map[string]string) []string {
	var out []string
	for key, h := range a {
		if b[key] != h {
			out = append(out, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}
