package runtime

import (
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"

	"github.com/gitring/gitring/ring"
)

// instance is a container as inspected, in ring's words. Any part may be
// missing; what is missing is zero.
func instance(c container.InspectResponse) ring.Instance {
	in := ring.Instance{Addresses: map[string]string{}, Policy: string(container.RestartPolicyDisabled)}
	if c.ContainerJSONBase != nil {
		in.ID, in.Name = c.ID, strings.TrimPrefix(c.Name, "/")
		in.Created = moment(c.Created)
		in.Restarts = c.RestartCount
		state(&in, c.State)
		if c.HostConfig != nil {
			in.Joined, in.Memory = joinedIDs(c.HostConfig), declared(c.HostConfig)
			in.Limits = updatable(c.HostConfig)
		}
		if c.HostConfig != nil && c.HostConfig.RestartPolicy.Name != "" {
			in.Policy = string(c.HostConfig.RestartPolicy.Name)
			in.MaxRetries = c.HostConfig.RestartPolicy.MaximumRetryCount
		}
	}
	if c.Config != nil {
		in.Image = c.Config.Image
		if s := c.Config.StopTimeout; s != nil && *s > 0 {
			in.Grace = time.Duration(*s) * time.Second
		}
		labelled(&in, c.Config.Labels)
	}
	if c.NetworkSettings != nil {
		for name, e := range c.NetworkSettings.Networks {
			in.Addresses[name] = address(e)
		}
		in.Gateways = gatewaysOf(in.Service, c.NetworkSettings.Networks)
	}
	return in
}

// gatewaysOf are those of the networks of a front. Whoever comes through one may be anybody:
// a front believes it nothing about whom it speaks for.
func gatewaysOf(service string, networks map[string]*network.EndpointSettings) []string {
	if !strings.HasSuffix(service, ring.FrontSuffix) {
		return nil
	}
	var out []string
	for _, e := range networks {
		if e == nil {
			continue
		}
		for _, a := range []string{e.Gateway, e.IPv6Gateway} {
			if _, err := netip.ParseAddr(a); err == nil { // "" for none
				out = append(out, a)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// outlived is what a container may write of its mounts and outlives it (see
// ring.Instance.Writes).
func outlived(mounts []container.MountPoint, dataRoot string) []string {
	var out []string
	for _, m := range mounts {
		switch {
		case !m.RW:
		case m.Type == mount.TypeVolume && m.Name != "":
			out = append(out, "volume "+m.Name)
		case m.Type == mount.TypeBind:
			out = append(out, filepath.Clean(m.Source))
			if rel, err := filepath.Rel(dataRoot, m.Source); err == nil && filepath.IsLocal(rel) {
				out = append(out, path.Join(ring.DataRootMark, filepath.ToSlash(rel)))
			}
		}
	}
	slices.Sort(out)
	return out
}

// hostPorts are the ports of the host that a container holds while it runs, but for those
// that the engine chooses (see ring.Instance.Writes).
func hostPorts(h *container.HostConfig) []string {
	if h == nil {
		return nil
	}
	var out []string
	for port, bindings := range h.PortBindings {
		for _, b := range bindings {
			if b.HostPort == "" || b.HostPort == "0" {
				continue
			}
			p := ring.Port{HostIP: b.HostIP, HostPort: b.HostPort, Protocol: port.Proto()}
			out = append(out, ring.PortWord+p.Published())
		}
	}
	slices.Sort(out)
	return out
}

func state(in *ring.Instance, s *container.State) {
	if s == nil {
		return
	}
	in.State = ring.State(s.Status)
	in.Started, in.Finished = moment(s.StartedAt), moment(s.FinishedAt)
	in.ExitCode, in.OOM = s.ExitCode, s.OOMKilled
	if s.Health != nil && s.Health.Status != container.NoHealthcheck {
		in.Health = s.Health.Status
	}
}

func labelled(in *ring.Instance, l map[string]string) {
	in.App, in.Source, in.Service = l[labelApp], l[labelSource], l[labelService]
	if p := l[composeWorkingDir]; !filepath.IsAbs(p) { // an absolute one is Compose's own
		in.Path = p
	}
	in.Slot, _ = strconv.Atoi(l[labelSlot]) // a label that is no number fits no slot: 0
	in.Version, in.Commit = ring.Version(l[labelVersion]), ring.SHA(l[labelCommit])
	in.Kind = ring.Kind(l[labelKind])
}

func address(e *network.EndpointSettings) string {
	if e == nil {
		return ""
	}
	if e.IPAddress != "" {
		return e.IPAddress
	}
	return e.GlobalIPv6Address
}

// moment is the engine's time, zero for its "never".
func moment(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t.UTC()
}

// seenNetwork is a network in ring's words; App is "" unless it is this host's.
func seenNetwork(host string, n network.Summary) ring.SeenNetwork {
	s := ring.SeenNetwork{ID: n.ID, Name: n.Name}
	if n.Labels[labelHost] == host {
		s.App, s.Key, s.Definition = n.Labels[labelApp], n.Labels[composeNetwork], n.Labels[labelDefinition]
	}
	return s
}
