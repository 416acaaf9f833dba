package manifest

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// allAccess is what a device gets that says nothing of it.
const allAccess = "rwm"

// cdiName is a device by a name that a driver of the engine resolves.
var cdiName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*/[A-Za-z][A-Za-z0-9._-]*=[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// devices are those of the host, by their paths in the container; requests are
// for a driver to choose.
func devices(c types.ServiceConfig) (out []ring.Device, requests []ring.DeviceRequest) {
	var named []string
	for _, d := range c.Devices {
		if cdiName.MatchString(d.Source) {
			named = append(named, d.Source)
			continue
		}
		out = append(out, ring.Device{Host: d.Source, Container: d.Target, Permissions: or2(d.Permissions, allAccess)})
	}
	slices.SortStableFunc(out, func(a, b ring.Device) int { return cmp.Compare(a.Container, b.Container) })
	if len(named) > 0 {
		requests = append(requests, ring.DeviceRequest{Driver: "cdi", IDs: sortedSet(named)})
	}
	for _, g := range c.Gpus {
		requests = append(requests, request(g, "gpu"))
	}
	if c.Deploy != nil && c.Deploy.Resources.Reservations != nil {
		for _, d := range c.Deploy.Resources.Reservations.Devices {
			requests = append(requests, request(d))
		}
	}
	return out, requests
}

func request(d types.DeviceRequest, more ...string) ring.DeviceRequest {
	out := ring.DeviceRequest{
		Driver: d.Driver, Count: int(d.Count), IDs: sortedSet(d.IDs),
		Capabilities: sortedSet(append(slices.Clone(d.Capabilities), more...)),
	}
	if len(d.Options) > 0 {
		out.Options = d.Options
	}
	return out
}

var accesses = regexp.MustCompile(`^[rwm]{1,3}$`)

// deviceWords looks at each device: host[:container[:permissions]], or a mapping.
func deviceWords(k *keyCheck) {
	for _, it := range k.key.val.items {
		source, target, access := textOf(it.get("source")), textOf(it.get("target")), textOf(it.get("permissions"))
		if it.kind == scalar {
			if cdiName.MatchString(it.text) {
				continue
			}
			parts := append(strings.SplitN(it.text, ":", 4), "", "")
			if len(parts) > 5 {
				k.badDevice(it, it.text)
				continue
			}
			source, target, access = parts[0], parts[1], parts[2]
		}
		switch {
		case cdiName.MatchString(source):
		case mistyped(it, "target", deviceKeys), mistyped(it, "source", deviceKeys): // told
		case it.kind == mapping && target == "":
			k.fs.add(ring.BadValue, it.place, "add target: "+head(source), "%s: device %s has no target", k.name(), head(source))
		case !path.IsAbs(source):
			k.badDevice(it, source)
		case target != "" && !path.IsAbs(target):
			k.badDevice(it, target)
		case access != "" && !accesses.MatchString(access):
			k.fs.add(ring.BadValue, it.place, "write some of r, w and m", "%s: %q is no access to a device", k.name(), head(access))
		}
	}
}

var deviceKeys = []string{"permissions", "source", "target"}

func (k *keyCheck) badDevice(it *node, says string) {
	k.fs.add(ring.BadValue, it.place, "write /dev/host:/dev/container, or /dev/host:/dev/container:rw", "%s: %q is no device", k.name(), head(says))
}

// cgroupRules is the grammar of the kernel: type major:minor access.
var cgroupRules = regexp.MustCompile(`^[abc] ([0-9]+|\*):([0-9]+|\*) [rwm]{1,3}$`)

func deviceRules(k *keyCheck) {
	for _, it := range k.key.val.items {
		if !cgroupRules.MatchString(it.text) {
			k.fs.add(ring.BadValue, it.place, `write "c 1:3 mr": the type, major:minor, and some of r, w and m`, "%s: %q is no rule", k.name(), head(it.text))
		}
	}
}

var requestKeys = []string{"capabilities", "count", "device_ids", "driver", "options"}

// deviceRequests looks at the entries of gpus and of reservations.devices. Of
// gpus the schema leaves unknown keys be.
func deviceRequests(k *keyCheck) {
	for _, it := range k.key.val.items {
		for _, p := range it.pairs {
			if !contains(requestKeys, p.key) && !strings.HasPrefix(p.key, "x-") {
				k.fs.add(ring.UnknownKey, p.place, didYouMean(p.key, slices.Clone(requestKeys)), "unknown key %s.%s", k.name(), head(p.key))
			}
		}
		count := it.get("count")
		if n, ok := wholeOf(count); count != nil && !strings.EqualFold(count.text, "all") && (!ok || n != -1 && n < 1) {
			k.fs.add(ring.BadValue, count.place, "write all, or a number from 1 on", "%s: %q is no count", k.name(), head(count.text))
		}
		if count != nil && it.get("device_ids") != nil {
			k.fs.add(ring.BadValue, count.place, "keep one of the two", "%s", fmt.Sprintf("%s has both count and device_ids", k.name()))
		}
	}
}
