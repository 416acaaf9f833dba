package ring

import (
	"net/netip"
	"slices"
	"strings"
)

// ImageName is an image's reference in parts. Two references of one repository have one
// Name, however its registry is written.
type ImageName struct {
	// Name is the whole one, with its registry: docker.io/library/nginx. "" is an image by
	// its ID, which is of no registry.
	Name string
	Tag  string
	// Digest is "sha256:…", "" where none is written.
	Digest string
}

// hubNames are the names under which Docker Hub's registry answers.
var hubNames = []string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// ParseImage takes an image's reference apart. Names of hosts know no case and 443 is the
// port that goes without saying, so neither makes another repository of one.
func ParseImage(image string) ImageName {
	if isImageID(image) {
		return ImageName{Digest: image}
	}
	var n ImageName
	n.Name, n.Digest, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(n.Name, ":"); i > strings.LastIndex(n.Name, "/") {
		n.Name, n.Tag = n.Name[:i], n.Name[i+1:]
	}
	first, rest, long := strings.Cut(n.Name, "/")
	if !long || !strings.ContainsAny(first, ".:") && strings.ToLower(first) == first && first != "localhost" {
		first, rest = "docker.io", n.Name
	}
	first = hostOf(first)
	if first == "docker.io" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	n.Name = first + "/" + rest
	return n
}

// hostOf is a registry's host by its one name. A port may have zeros before it.
func hostOf(host string) string {
	host = strings.ToLower(host)
	if i := strings.LastIndex(host, ":"); i >= 0 && strings.Trim(host[i+1:], "0123456789") == "" {
		host = host[:i+1] + strings.TrimLeft(host[i+1:], "0")
	}
	host = strings.TrimSuffix(host, ":443")
	if slices.Contains(hubNames, host) {
		return "docker.io"
	}
	return host
}

// Registry is the host, with its port, that has the image; "" for an image by its ID.
func (n ImageName) Registry() string {
	host, _, _ := strings.Cut(n.Name, "/")
	return host
}

// AtLinkLocal reports whether the registry is at an address of this link alone, which is
// where clouds answer for a host's credentials. A number that is no address counts as one:
// some resolvers read 2852039166 as 169.254.169.254.
func (n ImageName) AtLinkLocal() bool {
	host := n.Registry()
	if ap, err := netip.ParseAddrPort(host); err == nil {
		return IsLinkLocal(ap.Addr())
	}
	if i := strings.LastIndex(host, ":"); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return IsLinkLocal(a)
	}
	return host != "" && isNumber(host)
}

// IsLinkLocal reports whether an address is of this link alone, or is the one address
// beyond it where a cloud answers for a host's credentials.
func IsLinkLocal(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if v4, ok := translatedTo(a); ok {
		a = v4
	}
	return a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || cloudMetadata.Contains(a)
}

var (
	cloudMetadata = netip.MustParsePrefix("fd00:ec2::/32")
	// An address of IPv4 inside one of IPv6, to which a gateway sends it on.
	nat64, compatible, sixToFour = netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("2002::/16")
)

// translatedTo is the address of IPv4 that one of IPv6 stands for, where it does.
func translatedTo(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case !a.Is6():
		return a, false
	case nat64.Contains(a), compatible.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}

// isNumber reports whether the last part of a host's name is a number, which no name of the
// world ends in, and of which resolvers make addresses.
func isNumber(host string) bool {
	last := host[strings.LastIndex(host, ".")+1:]
	hex, isHex := strings.CutPrefix(last, "0x")
	if isHex {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

func isImageID(image string) bool {
	hex, ok := strings.CutPrefix(image, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// ImageMatches reports whether a pattern names a repository. In it "**" stands for any
// number of parts and "*" for any text inside one; "*" alone is everything, images by their
// ID among them, as is "**". A pattern without either also names all that lies below it.
func ImageMatches(pattern, name string) bool {
	if pattern == "*" || pattern == "**" {
		return true
	}
	if name == "" {
		return false
	}
	pattern = ParseImagePattern(pattern)
	if !strings.Contains(pattern, "*") {
		return name == pattern || strings.HasPrefix(name, pattern+"/")
	}
	return partsMatch(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

// mostCovered is how many asterisks a pattern has at most for which ImagePatternCovers knows an
// answer: the names that stand for it double with each.
const mostCovered = 8

// ImagePatternCovers reports whether a pattern names all that another one does. It asks about
// names that stand for the others, with parts that no pattern has.
func ImagePatternCovers(pattern, other string) bool {
	if pattern == "*" || pattern == "**" || other == "*" || other == "**" {
		return pattern == "*" || pattern == "**"
	}
	if strings.Count(other, "*") > mostCovered {
		return false
	}
	names := []string{""}
	below := []string{"", "/\x00", "/\x00/\x01/\x00"} // none, one and several parts
	other = ParseImagePattern(other)
	for part := range strings.SplitSeq(other, "/") {
		ends := []string{"/" + strings.ReplaceAll(part, "*", ""), "/" + strings.ReplaceAll(part, "*", "\x00")}
		if part == "**" {
			ends = below
		}
		names = eachWith(names, ends)
	}
	if !strings.Contains(other, "*") {
		names = eachWith(names, below)
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !ImageMatches(pattern, strings.TrimPrefix(name, "/")) })
}

// eachWith are all names with each of the ends.
func eachWith(names, ends []string) (out []string) {
	for _, name := range names {
		for _, end := range ends {
			out = append(out, name+end)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ParseImagePattern writes the registry of a pattern as those of names are written.
func ParseImagePattern(pattern string) string {
	host, rest, has := strings.Cut(pattern, "/")
	host = hostOf(host)
	if !has {
		return host
	}
	return host + "/" + rest
}

func partsMatch(pattern, parts []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for n := 0; n <= len(parts); n++ {
				if partsMatch(pattern[1:], parts[n:]) {
					return true
				}
			}
			return false
		}
		if len(parts) == 0 || !partMatches(pattern[0], parts[0]) {
			return false
		}
		pattern, parts = pattern[1:], parts[1:]
	}
	return len(parts) == 0
}

// partMatches reports whether a text is what a pattern with asterisks says.
func partMatches(pattern, text string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, before)
	for n := 0; ok && n <= len(text); n++ {
		if partMatches(after, text[n:]) {
			return true
		}
	}
	return false
}

// ImageRule is what the host asks of the images of some repositories, as far as deciding
// when to ask for a verdict needs it.
type ImageRule struct {
	Match string
	// Hash is of all that the rule asks, with its keys. "" is a rule that asks nothing.
	Hash string
}

// ImageRules are those of a host, in order: the first that matches counts.
type ImageRules []ImageRule

// For is the print of what is asked of an image; "" is nothing. What has no digest of a
// registry is asked about by the name that the commit says.
func (r ImageRules) For(image string) string {
	if len(r) == 0 {
		return ""
	}
	name := ParseImage(image).Name
	for i := range r {
		if ImageMatches(r[i].Match, name) {
			return r[i].Hash
		}
	}
	return ""
}
