package reconcile

import (
	"strconv"
	"strings"

	"github.com/gitring/gitring/ring"
)

// fillRunning tells of a service's status what runs: the version, its image and its ports.
// While a rollout moves it that is the older version, for as long as any of it is there.
func (t *Pass) fillRunning(v *service, st *ring.ServiceStatus) {
	of := v.want
	for _, in := range v.instances {
		switch {
		case !in.Live():
		case in.Version == v.want.Version:
			if st.Running == "" {
				st.Running = v.want.Changed
			}
		case v.good != nil && in.Version == v.good.Service.Version:
			st.Running, of = v.good.Commit, &v.good.Service
		default:
			st.Running = in.Commit
		}
	}
	st.Image, st.Digest = of.Spec.Image, of.Pin.Digest()
	for _, p := range of.Spec.Ports {
		st.Ports = append(st.Ports, publishedSays(p))
	}
}

// publishedSays is a port as people write it, both sides: 8080:80/tcp. One that the engine
// chooses has no side of the host.
func publishedSays(p ring.Port) string {
	inside := strconv.Itoa(p.Container) + "/" + p.Protocol
	if p.HostPort == "" {
		return inside
	}
	at := p.HostPort
	if p.HostIP != "" && p.HostIP != "0.0.0.0" && p.HostIP != "::" {
		ip := p.HostIP
		if strings.Contains(ip, ":") {
			ip = "[" + strings.Trim(ip, "[]") + "]"
		}
		at = ip + ":" + at
	}
	return at + ":" + inside
}

// addressOf is an instance's own in the first of its networks by name.
func addressOf(in *ring.Instance) string {
	first := ""
	for name, at := range in.Addresses {
		if at != "" && (first == "" || name < first) {
			first = name
		}
	}
	return in.Addresses[first]
}
