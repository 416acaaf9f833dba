package runtime

import (
	"cmp"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/image"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// platform is what an image was built for, in the words of image manifests. The
// zero value is one that nobody tells.
type platform struct{ os, arch, variant string }

// parsePlatform reads Compose's key: os/arch[/variant], or one of the first two.
func parsePlatform(written string) platform {
	parts := strings.Split(strings.ToLower(strings.TrimSpace(written)), "/")
	if written == "" {
		return platform{}
	}
	if len(parts) == 1 {
		if slices.Contains([]string{"linux", "windows", "freebsd", "darwin"}, parts[0]) {
			return platform{os: parts[0]}
		}
		parts = []string{"linux", parts[0]}
	}
	p := platform{os: parts[0], arch: parts[1]}
	if len(parts) > 2 {
		p.variant = parts[2]
	}
	return p.plain()
}

// archAliases are other words for an architecture, as `uname -m` and Debian say them.
var archAliases = map[string]string{
	"x86_64": "amd64", "x86-64": "amd64", "i386": "386", "i686": "386", "aarch64": "arm64", "armhf": "arm", "armel": "arm",
}

// plain leaves one word for each thing.
func (p platform) plain() platform {
	p.arch = cmp.Or(archAliases[p.arch], p.arch)
	return p
}

func (p platform) String() string {
	out := p.os
	for _, part := range []string{p.arch, p.variant} {
		if part != "" {
			out += "/" + part
		}
	}
	return out
}

// is reports whether an image for p is one that was asked for as want: what is not
// said of either is not held against it. Which variants of a processor go
// together the engine knows, and picks; nothing is refused for one.
func (p platform) is(want platform) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	return same(p.os, want.os) && same(p.arch, want.arch)
}

// runsOn reports whether a machine executes p without help.
func (p platform) runsOn(machine platform) bool {
	less := smaller[machine.arch]
	return p.is(machine) || less != "" && p.is(platform{os: machine.os, arch: less})
}

// smaller is the 32-bit architecture that a 64-bit one executes too.
var smaller = map[string]string{"amd64": "386", "arm64": "arm"}

// fits reports whether an image for any of has can be had for a service: for what it
// asks, else for the machine. Nothing known is no reason against it.
func fits(has []platform, asked, machine platform) bool {
	if len(has) == 0 {
		return true
	}
	return slices.ContainsFunc(has, func(p platform) bool {
		if asked != (platform{}) {
			return p.is(asked)
		}
		return p.runsOn(machine)
	})
}

// platformsOf are those of a registry's answer. What has no architecture is no
// image: indexes carry attestations beside their images.
func platformsOf(list []ocispec.Platform) []platform {
	var out []platform
	for _, p := range list {
		if p.Architecture != "" && p.Architecture != "unknown" {
			out = append(out, platform{os: p.OS, arch: p.Architecture, variant: p.Variant}.plain())
		}
	}
	return out
}

// platformOf is that of an image on this host; none when it does not say.
func platformOf(i image.InspectResponse) []platform {
	if i.Architecture == "" {
		return nil
	}
	return []platform{platform{os: i.Os, arch: i.Architecture, variant: i.Variant}.plain()}
}

func listed(ps []platform) string {
	var words []string
	for _, p := range ps {
		words = append(words, p.String())
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}
