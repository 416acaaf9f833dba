package ring

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Format is the number before the colon of a version. Golden files freeze it.
const Format = "1"

// Version is the hash of all that a service's instances run: "1:<64 hex>".
type Version string

// Short is the first 8 digits of the hash, as in container names.
func (v Version) Short() string {
	_, h, _ := strings.Cut(string(v), ":")
	if len(h) < 8 {
		return h
	}
	return h[:8]
}

// Pin is an image that cannot move.
type Pin struct {
	// Image is what the engine is given: "name:tag@sha256:…" for an image of a
	// registry, "sha256:…" for one that only this host has.
	Image string `json:"image"`
	// Note is how it was found when that is worth telling.
	Note string `json:"note,omitempty"`
	// Moved reports whether the tag moved there by itself, after a commit had it resolved.
	Moved bool `json:"moved,omitempty"`
}

// Image is what an image says of itself, once it is on this host.
type Image struct {
	Known bool `json:"known,omitempty"` // that it was looked at
	// ID is the engine's; "" where an earlier release looked.
	ID string `json:"id,omitempty"`
	// Volumes are the paths of its VOLUME instructions, sorted.
	Volumes []string `json:"volumes,omitempty"`
	// Healthcheck is its HEALTHCHECK, without the command; nil is none.
	Healthcheck *Healthcheck `json:"healthcheck,omitempty"`
	// Exposes reports whether its EXPOSE instructions were looked at, and Exposed are their
	// ports, sorted: "80/tcp".
	Exposes bool     `json:"exposes,omitempty"`
	Exposed []string `json:"exposed,omitempty"`
}

// Digest is what tells two pins apart: from "sha256:" on.
func (p Pin) Digest() string {
	if i := strings.Index(p.Image, "sha256:"); i >= 0 {
		return p.Image[i:]
	}
	return p.Image
}

// WrittenHash is the hash of a spec before its image is resolved.
func WrittenHash(s Spec) string { return hash(s) }

// WrittenApp is the hash of an app as read, whichever commit asked. What Compose
// would hash is no part of it: it says nothing new, and would ask for another plan of each
// commit whenever another release of Compose is imitated.
func WrittenApp(a App) string {
	a.Commit, a.Written = "", ""
	a.Services = slices.Clone(a.Services)
	for i := range a.Services {
		a.Services[i].Composed = nil
	}
	return hash(a)
}

// AskedVersion names what a pinned plan of an app asks, whichever commit asked and on
// whichever line it says so. What runs stands in the versions of the services.
func AskedVersion(a *App) Version {
	sum := sha256.New()
	put := json.NewEncoder(sum) // writes each value on a line of its own
	var s Service
	for i := range a.Services {
		s = a.Services[i]
		s.Spec, s.Written, s.Image, s.Changed, s.Composed, s.File, s.Line = Spec{}, "", Image{}, "", nil, "", 0
		_ = put.Encode(&s) // a hash takes all, and a service can be written
	}
	_ = put.Encode(struct {
		After   []AfterApp `json:"after,omitempty"`
		NoPrune bool       `json:"no_prune,omitempty"`
		Drift   string     `json:"drift,omitempty"`
		Hold    *Hold      `json:"hold,omitempty"`
	}{a.After, a.NoPrune, a.Drift, a.Hold})
	return Version("1:" + hex.EncodeToString(sum.Sum(nil))[:16])
}

// VersionOf is the version of s, a service of a, with pin p. Networks enter by
// definition, mounted files by content (their hash is the mount's source).
func VersionOf(a *App, s *Service, p Pin) Version {
	body := struct {
		Spec     *Spec              `json:"spec"`
		Pin      string             `json:"pin"`
		Networks []Network          `json:"networks,omitempty"`
		Volumes  []Volume           `json:"volumes,omitempty"`
		Leaders  map[string]Version `json:"leaders,omitempty"`
		DataRoot string             `json:"data_root,omitempty"`
	}{Spec: &s.Spec, Pin: p.Digest()}
	for _, at := range s.Spec.Networks {
		if n, ok := a.Network(at.Network); ok {
			body.Networks = append(body.Networks, n)
		}
	}
	for _, m := range s.Spec.Mounts {
		switch m.Kind {
		case MountVolume:
			for _, v := range a.Volumes {
				if v.Key == m.Source && (v.External != "" || v.Name != "" || v.Driver != "" || len(v.DriverOpts) > 0) {
					body.Volumes = append(body.Volumes, v)
				}
			}
		case MountData, MountSeed:
			body.DataRoot = a.DataRoot
		}
	}
	for _, name := range s.Spec.Leaders() {
		if body.Leaders == nil {
			body.Leaders = map[string]Version{}
		}
		leader, _ := a.Service(name)
		body.Leaders[name] = leader.Version
	}
	return Version(Format + ":" + hash(body))
}

// Leaders are the services of the app whose versions are part of this one's:
// those it is tied to, and those it follows. Their versions come first; manifest refuses
// a circle.
func (s *Spec) Leaders() []string {
	out := append(s.Owners(), s.Follows...)
	slices.Sort(out)
	return slices.Compact(out)
}

// Definition is the short hash that tells two definitions of a network apart.
func (n Network) Definition() string {
	if n.IsDefault() {
		return defaultDefinition
	}
	return hash(n)[:8]
}

// IsDefault reports whether a network is the one that every app has, and that nothing is said
// of it.
func (n *Network) IsDefault() bool {
	return n.Key == defaultNetwork.Key && !n.Internal && !n.IPv6 && n.Driver == "" && n.External == "" && n.Name == "" && n.IPAMDriver == "" &&
		n.Labels == nil && n.Pools == nil && n.DriverOpts == nil && n.IPAMOptions == nil
}

// defaultNetwork is what an app has that says nothing of networks: nearly every app
// has this one and no other, and every look asks for its definition.
var (
	defaultNetwork    = Network{Key: "default"}
	defaultDefinition = hash(defaultNetwork)[:8]
)

// hash is over the JSON form: fields in declared order, map keys sorted.
func hash(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // only strings, numbers, slices and maps of those come here
		panic(fmt.Sprintf("cannot encode %T: %v", v, err))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ContainerName is the deterministic name of an instance; it is the lock.
func ContainerName(app, service string, slot int, v Version) string {
	return app + "-" + service + "-" + strconv.Itoa(slot) + "-" + v.Short()
}

// IsContainerName reports whether a name is the one that ContainerName gives. Every instance
// is asked at every look, so it is put together where nothing is left of it.
func IsContainerName(name, app, service string, slot int, v Version) bool {
	var room [128]byte
	made := append(append(append(room[:0], app...), '-'), service...)
	made = strconv.AppendInt(append(made, '-'), int64(slot), 10)
	return string(append(append(made, '-'), v.Short()...)) == name
}

// ComposeName is the name that Compose gives to the container of a slot. An instance has it
// from the end of its rollout on, where nobody else has it.
func ComposeName(app, service string, slot int) string {
	return app + "-" + service + "-" + strconv.Itoa(slot)
}

// IsComposeName reports whether a name is the one that ComposeName gives.
func IsComposeName(name, app, service string, slot int) bool {
	var room [128]byte
	made := append(append(append(room[:0], app...), '-'), service...)
	return string(strconv.AppendInt(append(made, '-'), int64(slot), 10)) == name
}

// VolumeName and NetworkName are the names Compose gives.
func VolumeName(app, key string) string  { return app + "_" + key }
func NetworkName(app, key string) string { return app + "_" + key }

// AnonymousVolume is the key of the named volume that stands for an anonymous
// one, each slot its own: <service>_{slot}_<8 of sha256(target)>.
func AnonymousVolume(service, target string) string {
	sum := sha256.Sum256([]byte(target))
	return service + "_" + SlotMark + "_" + hex.EncodeToString(sum[:4])
}

// SlotMark in a volume's key stands for the slot of the instance.
const SlotMark = "{slot}"
