package manifest

import (
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// consistent checks that what services name is there. compose-go does so too,
// but stops at one error, which differs from run to run, and has no lines.
func (b *builderOf) consistent() {
	for _, name := range sortedKeys(b.project.Services) {
		s := b.project.Services[name]
		b.hasImage(s)
		b.namesNetworks(s)
		b.namesVolumes(s)
		b.namesServices(s)
		b.namesOwners(s)
		b.namesLinks(s)
		if s.Scale != nil && s.Deploy != nil && s.Deploy.Replicas != nil && *s.Scale != *s.Deploy.Replicas {
			b.bad(b.place("services", name, "scale"), "keep one of the two", "services.%s.scale and deploy.replicas differ", name)
		}
	}
	b.noCycle()
}

func (b *builderOf) hasImage(s types.ServiceConfig) {
	if s.Image == "" && !b.anyLost(s.Name, []string{"image"}, []string{"build"}) {
		b.bad(b.place("services", s.Name), "add image: name:tag", "services.%s has no image", s.Name)
	}
}

func (b *builderOf) namesNetworks(s types.ServiceConfig) {
	if s.NetworkMode != "" && len(s.Networks) > 0 {
		b.bad(b.place("services", s.Name, "network_mode"), "keep one of the two", "services.%s has both network_mode and networks", s.Name)
	}
	known := sortedKeys(b.project.Networks)
	for _, key := range sortedKeys(s.Networks) {
		if !contains(known, key) && !b.lost("networks", key) {
			b.bad(b.entryOf(s.Name, "networks", key), undeclared(key, "networks", known), "services.%s joins network %s, which is not declared", s.Name, head(key))
		}
	}
}

func (b *builderOf) namesVolumes(s types.ServiceConfig) {
	known := sortedKeys(b.project.Volumes)
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeVolume && v.Source != "" && !contains(known, v.Source) && !b.lost("volumes", v.Source) {
			b.bad(b.entryOf(s.Name, "volumes", v.Source), undeclared(v.Source, "volumes", known), "services.%s mounts volume %s, which is not declared", s.Name, head(v.Source))
		}
	}
}

// noService is the hint for a service that is named and not there.
func noService(name string, known []string) string {
	if n := ring.Nearest(name, known); n != "" {
		return "did you mean " + n + "?"
	}
	return "declare it under services:, or remove the word"
}

func undeclared(key, kind string, known []string) string {
	if n := ring.Nearest(key, known); n != "" {
		return "did you mean " + n + "?"
	}
	what := "{}"
	if kind == configKind.key || kind == secretKind.key {
		what = "{file: ./" + head(key) + "}"
	}
	return "declare it at the top level: " + kind + ": {" + head(key) + ": " + what + "}"
}

func (b *builderOf) namesServices(s types.ServiceConfig) {
	for _, name := range sortedKeys(s.DependsOn) {
		if implied(s, name) && !b.lists(s.Name, "depends_on", name) {
			continue // compose-go adds what is joined and linked; see namesOwners
		}
		_, here := b.project.Services[name]
		_, off := b.project.DisabledServices[name]
		at := b.entryOf(s.Name, "depends_on", name)
		switch {
		case here, off && !s.DependsOn[name].Required, b.lost("services", name):
		case off && b.profilesLost():
		case off:
			b.bad(at, "activate a profile of it in gitring.yaml, or say required: false", "services.%s depends on %s, which no active profile starts", s.Name, name)
		default:
			b.bad(at, noService(name, sortedKeys(b.project.Services)), "services.%s depends on %s, which is not declared", s.Name, head(name))
		}
	}
}

// entryOf is where a service names something of another place in the file.
func (b *builderOf) entryOf(service, key, name string) place {
	if b.says("services", service, key, name) {
		return b.place("services", service, key, name)
	}
	return b.entryPlace(service, key, func(n *node) bool {
		return n.text == name || strings.HasPrefix(n.text, name+":") || textOf(n.get("source")) == name
	})
}

// lists reports whether a service's list or mapping has an entry.
func (b *builderOf) lists(service, key, name string) bool {
	for _, f := range b.files {
		n, took, _ := f.root.at([]string{"services", service, key})
		if took == 3 && (contains(n.words(), name) || n.get(name) != nil) {
			return true
		}
	}
	return false
}

// afterPlace is where a service says that it comes after another.
func (b *builderOf) afterPlace(service, other string) place {
	if b.lists(service, "depends_on", other) {
		return b.entryOf(service, "depends_on", other)
	}
	c := b.project.Services[service]
	for _, t := range tiesOf(c) {
		if t.owner == other {
			return b.joinPlace(service, t)
		}
	}
	return b.entryOf(service, "links", other)
}

// noCycle refuses services that wait for each other.
func (b *builderOf) noCycle() {
	state := map[string]int{} // 1 on the way, 2 done
	var walk func(name string, way []string) bool
	walk = func(name string, way []string) bool {
		way = append(way, name)
		state[name] = 1
		for _, next := range sortedKeys(b.project.Services[name].DependsOn) {
			if state[next] == 1 {
				b.faults.add(ring.BadValue, b.afterPlace(name, next), "remove one of them", "services wait for each other: %s", strings.Join(append(way, next), " after "))
				return true
			}
			if state[next] == 0 && walk(next, way) {
				return true
			}
		}
		state[name] = 2
		return false
	}
	for _, name := range sortedKeys(b.project.Services) {
		if state[name] == 0 && walk(name, nil) {
			return
		}
	}
}
