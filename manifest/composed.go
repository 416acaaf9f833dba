package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// composed is the service as Docker Compose would take its hash. compose-go is newer
// here than in the release that is imitated: it orders keys in another way and fills in more.
func (b *builderOf) composed(c types.ServiceConfig, s *ring.Service) *ring.Composed {
	volumes := b.composedVolumes(c)
	not := func(format string, args ...any) *ring.Composed {
		return &ring.Composed{Volumes: volumes, Not: fmt.Sprintf(format, args...)}
	}
	if b.usesHost(c.Name) {
		return not(unhashed, hostsFolder)
	}
	if b.byName[c.Name] {
		return not("it joins another service by the name of its container")
	}
	if key := b.newer(c); key != "" {
		return not("it says %s, which Compose %s does not know or reads in another way", key, ring.ComposeRelease)
	}
	said, err := json.Marshal(hashed(c, s))
	if err != nil {
		return not("its keys cannot be written as Compose writes them")
	}
	if bytes.Contains(said, []byte(`\u001b`)) { // as JSON has a sealed value's mark
		return not(unhashed, sealedOf(said))
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(said, &body); err != nil {
		return not("its keys cannot be written as Compose writes them")
	}
	if nets, ok := body["networks"]; ok {
		body["networks"] = networksInOrder(nets)
	}
	for _, key := range []string{"image", "volumes", "volumes_from"} {
		delete(body, key)
	}
	out := &ring.Composed{Volumes: volumes}
	if slices.ContainsFunc(c.EnvFiles, func(f types.EnvFile) bool { return path.Clean(f.Path) == dotEnv }) {
		if b.base != b.from.path {
			return not("its env_file is the project's .env, and the Compose files lie elsewhere")
		}
		for _, f := range c.EnvFiles {
			out.EnvFiles = append(out.EnvFiles, ring.ComposeEnvFile{Path: f.Path, Required: bool(f.Required), Format: f.Format})
		}
	}
	for _, key := range ring.ComposeKeys {
		if val, ok := body[key]; ok {
			out.Keys = append(out.Keys, ring.ComposedKey{Name: key, JSON: string(val)})
			delete(body, key)
		}
	}
	if len(body) > 0 {
		return not("it says %s, which Compose %s does not know", slices.Sorted(maps.Keys(body))[0], ring.ComposeRelease)
	}
	return out
}

// unhashed: the hash is over every value, and one that few others could be is
// found by trying. Only a keyed hash of a sealed value leaves the daemon.
const unhashed = "it uses values of %s, of which gitring writes no hash that Compose could compare"

const hostsFolder = "the host's env folder"

// sealedOf says where the sealed values come from that stand in a service written as JSON.
func sealedOf(said []byte) string {
	var all any
	if err := json.Unmarshal(said, &all); err != nil {
		return hostsFolder
	}
	var of []string
	eachText(all, func(text string) {
		for _, s := range ring.SealedIn(text) {
			from := "encrypted files"
			switch s.From {
			case ring.FromEnvFolder:
				from = hostsFolder
			case ring.FromProvider:
				from = "a program of the host"
			}
			if !slices.Contains(of, from) {
				of = append(of, from)
			}
		}
	})
	slices.Sort(of)
	return cmp.Or(strings.Join(of, " and of "), hostsFolder)
}

// eachText calls f for the texts in a value of JSON.
func eachText(in any, f func(string)) {
	switch in := in.(type) {
	case string:
		f(in)
	case []any:
		for _, v := range in {
			eachText(v, f)
		}
	case map[string]any:
		for k, v := range in {
			f(k)
			eachText(v, f)
		}
	}
}

// usesHost reports whether a value of the host's env folder stands in the service as it
// is. Where a service extends another one it stands under the name of that.
func (b *builderOf) usesHost(service string) bool {
	extends := slices.ContainsFunc(b.asWritten, func(root *node) bool {
		return slices.ContainsFunc(root.get("services").mappingPairs(), func(p pair) bool { return p.val.get("extends") != nil })
	})
	for u := range b.plainly {
		if u.service == service || u.service != "" && extends || u.key == "services" {
			return true
		}
	}
	return false
}

// hashed is c without what Compose takes out before it makes the hash, and with the
// environment that env_file comes to.
func hashed(c types.ServiceConfig, s *ring.Service) types.ServiceConfig {
	c.Build, c.PullPolicy, c.Scale, c.DependsOn, c.Extends, c.EnvFiles, c.Volumes = nil, "", nil, nil, nil, nil, nil
	if c.Deploy != nil {
		deploy := *c.Deploy
		deploy.Replicas = nil
		c.Deploy = &deploy
	}
	c.Environment = nil
	for name, value := range s.Spec.Environment {
		if c.Environment == nil {
			c.Environment = types.MappingWithEquals{}
		}
		c.Environment[name] = &value
	}
	for _, name := range s.Spec.Unset {
		if c.Environment == nil {
			c.Environment = types.MappingWithEquals{}
		}
		c.Environment[name] = nil
	}
	return c
}

// newer is a key inside of c that the release which is imitated does not know, or
// to which it gives another default. Most others are refused, for the engine.
func (b *builderOf) newer(c types.ServiceConfig) string {
	for _, v := range c.Volumes {
		if v.Bind != nil && v.Bind.Recursive != "" {
			return "bind.recursive"
		}
	}
	for _, n := range c.Networks {
		if n != nil && n.UseServiceNameAlias != nil {
			return "use_service_name_alias"
		}
	}
	if c.Deploy != nil && c.Deploy.Resources.Reservations != nil {
		for _, d := range c.Deploy.Resources.Reservations.Devices {
			if len(d.Options) > 0 || d.Count == -1 && !b.countsDevices(c.Name) {
				return "devices without a count or with options"
			}
		}
	}
	return ""
}

// countsDevices reports whether each reserved device says how many: newer releases
// fill in "all".
func (b *builderOf) countsDevices(service string) bool {
	for _, f := range b.files {
		n, _, _ := f.root.at([]string{"services", service, "deploy", "resources", "reservations", "devices"})
		if slices.ContainsFunc(n.items, func(it *node) bool { return it.get("count") == nil }) {
			return false
		}
	}
	return true
}

func (b *builderOf) composedVolumes(c types.ServiceConfig) []ring.ComposeMount {
	var out []ring.ComposeMount
	for _, v := range c.Volumes {
		m := ring.ComposeMount{Type: v.Type, Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly, Consistency: v.Consistency}
		long := b.longMount(c.Name, v.Target)
		if long != nil {
			m.Target = textOf(long.get("target")) // cleaned by newer releases alone
		}
		if v.Bind != nil {
			m.Bind = &ring.ComposeBind{
				SELinux: v.Bind.SELinux, Propagation: v.Bind.Propagation,
				// Filled in by newer releases alone, where the long form says nothing.
				CreateHostPath: bool(v.Bind.CreateHostPath) && (long == nil || long.get("bind").get("create_host_path") != nil),
			}
		}
		if v.Volume != nil {
			m.Volume = &ring.ComposeVolume{NoCopy: v.Volume.NoCopy, Subpath: v.Volume.Subpath}
		}
		if v.Tmpfs != nil {
			m.Tmpfs = &ring.ComposeTmpfs{Size: int64(v.Tmpfs.Size), Mode: uint32(v.Tmpfs.Mode)}
		}
		out = append(out, m)
	}
	return out
}

// longMount is what the files say last of a mount, where that is in the long form.
func (b *builderOf) longMount(service, target string) *node {
	for _, f := range slices.Backward(b.files) {
		n, _, _ := f.root.at([]string{"services", service, "volumes"})
		for _, it := range slices.Backward(n.items) {
			switch {
			case it.kind == mapping && path.Clean(textOf(it.get("target"))) == target:
				return it
			case it.kind == scalar && contains(itemNames("volumes", it), target):
				return nil
			}
		}
	}
	return nil
}

// networksInOrder are a service's networks with the keys of each in the order of
// the release that is imitated.
func networksInOrder(nets json.RawMessage) json.RawMessage {
	var all map[string]map[string]json.RawMessage
	if json.Unmarshal(nets, &all) != nil {
		return nets
	}
	out := map[string]json.RawMessage{}
	for name, n := range all {
		if n == nil {
			out[name] = json.RawMessage("null")
			continue
		}
		out[name] = ring.InComposeOrder(ring.ComposeNetworkKeys, n)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nets
	}
	return b
}
