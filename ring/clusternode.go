package ring

import (
	"net/netip"
	"slices"
	"strings"
)

// Takes reports whether a cluster gives a node new instances of a service: it is ready, nobody
// drained or paused it, and it meets the constraints and the platform.
func (n *Node) Takes(s *Spec) bool {
	if n.State != "ready" || n.Availability != "" && n.Availability != "active" || s.Cluster == nil {
		return false
	}
	if s.Platform != "" && n.OS != "" {
		os, arch, _ := strings.Cut(s.Platform, "/")
		if os != n.OS || arch != "" && archWord(arch) != archWord(n.Arch) {
			return false
		}
	}
	return !slices.ContainsFunc(s.Cluster.Constraints, func(c string) bool { return !n.meets(c) })
}

// archWord is one word for what two tools call an architecture.
func archWord(arch string) string {
	switch arch {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return arch
}

// meets reports whether a node meets one constraint, as Swarm reads it. One that Swarm does not
// know is met by no node.
func (n *Node) meets(constraint string) bool {
	key, want, equal := strings.Cut(constraint, "==")
	if !equal {
		var not bool
		if key, want, not = strings.Cut(constraint, "!="); !not {
			return false
		}
	}
	key, want = strings.TrimSpace(key), strings.TrimSpace(want)
	is := func(what string) bool { return strings.EqualFold(want, what) == equal }
	switch lower := strings.ToLower(key); {
	case lower == "node.id":
		return is(n.ID)
	case lower == "node.hostname":
		return is(n.Name)
	case lower == "node.role":
		return is(map[bool]string{true: "manager", false: "worker"}[n.Manager])
	case lower == "node.platform.os":
		return is(n.OS)
	case lower == "node.platform.arch":
		return is(n.Arch)
	case lower == "node.ip":
		return n.within(want, equal)
	case strings.HasPrefix(lower, "node.labels.") && len(key) > len("node.labels."):
		return is(n.Labels[key[len("node.labels."):]])
	case strings.HasPrefix(lower, "engine.labels.") && len(key) > len("engine.labels."):
		return is(n.EngineLabels[key[len("engine.labels."):]])
	}
	return false
}

// within reports whether the address of a node is one, or is in a subnet; where equal is false,
// whether it is not.
func (n *Node) within(want string, equal bool) bool {
	at, _ := netip.ParseAddr(n.Addr)
	if one, err := netip.ParseAddr(want); err == nil {
		return (one == at) == equal
	}
	subnet, err := netip.ParsePrefix(want)
	return err == nil && subnet.Masked().Contains(at) == equal
}
