package runtime

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
)

// About is what an engine says of itself, for people.
type About struct {
	Version string
	API     string
	Cgroup  string // 1 or 2; "" is not told
	// Rootless reports whether its containers have no address that this host reaches.
	Rootless           bool
	LogDriver, Storage string
	// Podman reports whether it is Podman, and Clock whether that has systemd to run checks.
	Podman, Clock bool
	// Pools is how many networks it can still give addresses to; -1 is not known.
	Pools int
	// Swarm is what the swarm says of itself that the engine manages; nil for one engine.
	Swarm *SwarmAbout
	// Projects are the Compose projects that run here and are not ours.
	Projects []string
}

// About asks the engine. It changes nothing.
func (d *Docker) About(ctx context.Context) (About, error) {
	e, err := d.ready(ctx)
	if err != nil {
		return About{}, err
	}
	v, err := e.ServerVersion(ctx)
	if err != nil {
		return About{}, fault("cannot ask the engine's version", "", err)
	}
	info, err := e.Info(ctx)
	if err != nil {
		return About{}, fault("cannot ask the engine what it is", "", err)
	}
	nets, err := e.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return About{}, fault("cannot ask the engine for its networks", "", err)
	}
	others, err := e.ContainerList(ctx, container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", composeProject))})
	if err != nil {
		return About{}, fault("cannot ask the engine for its containers", "", err)
	}
	a := About{
		Version: v.Version, API: e.ClientVersion(), Cgroup: info.CgroupVersion, LogDriver: info.LoggingDriver, Storage: info.Driver,
		Podman: isPodman(e), Clock: d.timers(),
		Rootless: slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "rootless") }),
	}
	bridges := 0
	for _, n := range nets {
		if n.Driver == "bridge" {
			bridges++
		}
	}
	a.Pools = poolsLeft(&info, bridges)
	for _, c := range others {
		p := c.Labels[composeProject]
		if _, ours := c.Labels[labelHost]; !ours && p != "" && !slices.Contains(a.Projects, p) {
			a.Projects = append(a.Projects, p)
		}
	}
	slices.Sort(a.Projects)
	return a, nil
}

// defaultPools are those of an engine whose daemon.json names none: 172.17 to 172.31 as /16,
// and 192.168.0.0/16 in pieces of /20.
const defaultPools = 15 + 16

// poolsLeft is how many bridge networks without a subnet of their own fit still; one with its
// own is counted, too, so that it is rather too few than too many.
func poolsLeft(info *system.Info, bridges int) int {
	all := 0
	for _, p := range info.DefaultAddressPools {
		base, err := netip.ParsePrefix(p.Base)
		if err != nil || p.Size < base.Bits() {
			return -1
		}
		if base.Addr().Is4() {
			all += 1 << min(p.Size-base.Bits(), 20)
		}
	}
	if len(info.DefaultAddressPools) == 0 {
		all = defaultPools
	}
	return max(0, all-bridges)
}
