package manifest

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

func (b *builderOf) ports(c types.ServiceConfig) []ring.Port {
	var out []ring.Port
	noted := false
	for _, p := range c.Ports {
		if !noted && (p.Name != "" || p.AppProtocol != "") {
			b.note("%s: name and app_protocol of a port mean nothing to the engine", c.Name)
			noted = true
		}
		if p.Target == 0 || p.Target > 65535 {
			b.bad(b.place("services", c.Name, "ports"), "write a port from 1 to 65535", "services.%s.ports: %d is no port", c.Name, p.Target)
			continue
		}
		host := p.Published
		if host == "0" {
			host = ""
		}
		if n, err := strconv.Atoi(host); host != "" && (err != nil || n < 1 || n > 65535) {
			b.bad(b.portPlace(c.Name, host), "write a port from 1 to 65535", "services.%s.ports: %q is no host port", c.Name, head(host))
			continue
		}
		port := ring.Port{HostIP: p.HostIP, HostPort: host, Container: int(p.Target), Protocol: or2(strings.ToLower(p.Protocol), "tcp")}
		if b.settings.Swarm {
			port.Mode = or2(p.Mode, ring.PortIngress)
		}
		out = append(out, port)
	}
	sort.Slice(out, func(i, j int) bool { return portKey(out[i]) < portKey(out[j]) })
	return slices.Compact(out)
}

func portKey(p ring.Port) string {
	return fmt.Sprintf("%05d/%s %s %5s", p.Container, p.Protocol, p.HostIP, p.HostPort)
}

func (b *builderOf) exposed(c types.ServiceConfig) []string {
	seen := map[string]bool{}
	for _, e := range c.Expose {
		ports, proto, _ := strings.Cut(e, "/")
		from, to, _ := strings.Cut(ports, "-")
		first, err := strconv.Atoi(from)
		last, err2 := first, error(nil)
		if to != "" {
			last, err2 = strconv.Atoi(to)
		}
		if err != nil || err2 != nil || first < 1 || last > 65535 || last < first {
			b.bad(b.place("services", c.Name, "expose"), "write a port from 1 to 65535", "services.%s.expose: %q is no port", c.Name, head(e))
			continue
		}
		for p := first; p <= last; p++ {
			seen[fmt.Sprintf("%d/%s", p, or2(strings.ToLower(proto), "tcp"))] = true
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return sortedKeys(seen)
}

// checkHostPorts refuses one host port for two services, and for two replicas without a front.
// A job and who waits for its end publish a port one after the other.
func (b *builderOf) checkHostPorts(app ring.App, routes map[string]*ring.Route) {
	type taker struct {
		port    ring.Port
		service string
	}
	taken := map[int][]taker{}
	for _, s := range app.Services {
		for _, p := range s.Spec.Ports {
			if p.HostPort == "" {
				continue
			}
			at := b.portPlace(s.Name, p.HostPort)
			// One in another's network publishes nothing, which is told.
			if !b.settings.Swarm && s.Replicas > 1 && s.Spec.NetworkOf == "" && routes[s.Name] == nil && !b.publishLost(s.Name) {
				hint := "run one replica, or leave the host port out"
				if b.extras[s.Name].route.publish == ring.PublishDirect {
					hint = "remove publish: direct, and a front publishes it; or run one replica"
				}
				b.faults.add(ring.Unsupported, at, hint, "services.%s host port %s cannot be published by %d replicas without a front", s.Name, p.HostPort, s.Replicas)
			}
			key, _ := strconv.Atoi(p.HostPort) // as the engine reads it
			for _, first := range taken[key] {
				if !first.port.Clashes(p) {
					continue
				}
				if job, waiter := b.portInTurn(&app, first.service, s.Name, routes); job != "" {
					b.noteOnce(fmt.Sprintf("services %s and %s of %s publish host port %s in turn: %s starts once %s has ended, and no later run of %s begins while %s runs", job, waiter, b.name, p.HostPort, waiter, job, job, waiter))
				} else {
					b.faults.add(ring.BadValue, at, "publish one of them on another port", "services.%s host port %s is published by %s too", s.Name, p.HostPort, first.service)
					break
				}
			}
			taken[key] = append(taken[key], taker{p, s.Name})
		}
	}
}

// portInTurn says which of two services is a job for whose end the other one waits, at whatever
// distance; "" where they may run at once. A front publishes before its service starts, and a
// swarm publishes for a job that ended.
func (b *builderOf) portInTurn(app *ring.App, one, other string, routes map[string]*ring.Route) (job, waiter string) {
	if b.settings.Swarm || routes[one] != nil || routes[other] != nil {
		return "", ""
	}
	for _, pair := range [][2]string{{one, other}, {other, one}} {
		if s, ok := app.Service(pair[0]); ok && runsBefore(app, &s, pair[1]) {
			return pair[0], pair[1]
		}
	}
	return "", ""
}

// runsBefore reports whether a service waits for the end of a job that runs once for each version.
func runsBefore(app *ring.App, job *ring.Service, waiter string) bool {
	return job.Kind == ring.JobK && job.Job.Run != "always" && waitsForEnd(app, waiter, job.Name, map[string]bool{})
}

// portOfJob is a job before a service of the app that publishes one of its host ports; "" for none.
func portOfJob(app *ring.App, s *ring.Service) string {
	for i := range app.Services {
		job := &app.Services[i]
		clashes := func(p ring.Port) bool { return slices.ContainsFunc(s.Spec.Ports, p.Clashes) }
		if runsBefore(app, job, s.Name) && slices.ContainsFunc(job.Spec.Ports, clashes) {
			return job.Name
		}
	}
	return ""
}

// waitsForEnd reports whether a service starts only after a job ended. A dependency that is not
// required may be passed over.
func waitsForEnd(app *ring.App, name, job string, met map[string]bool) bool {
	s, ok := app.Service(name)
	if !ok || met[name] {
		return false
	}
	met[name] = true
	return slices.ContainsFunc(s.DependsOn, func(d ring.Dependency) bool {
		return !d.Optional && (d.Service == job && d.Until == ring.Completed || d.Service != job && waitsForEnd(app, d.Service, job, met))
	})
}

// portPlace is the entry of ports that names the host port.
func (b *builderOf) portPlace(service, port string) place {
	return b.entryPlace(service, "ports", func(n *node) bool {
		if n.kind == scalar {
			rest, _ := cutLast(n.text)
			_, host := cutLast(rest)
			return host == port
		}
		return textOf(n.get("published")) == port
	})
}

// publishedPorts looks at short forms, and counts: a range is a few letters
// and may be 65,535 ports.
func publishedPorts(k *keyCheck) {
	for _, it := range k.key.val.items {
		at := keyCheck{app: k.app, chain: k.chain, key: pair{place: it.place, val: it}, fs: k.fs, ports: k.ports, limit: k.limit}
		if it.kind == scalar {
			at.shortPort(it.text)
			continue
		}
		at.longPort()
	}
}

func exposedPorts(k *keyCheck) {
	for _, it := range k.key.val.items {
		at := keyCheck{chain: k.chain, key: pair{place: it.place, val: it}, fs: k.fs, ports: k.ports, limit: k.limit}
		ports, proto, _ := strings.Cut(it.text, "/")
		at.protocol(proto)
		at.width(ports)
	}
}

// shortPort is [[ip:]host:]container[/protocol], each port maybe a range.
func (k *keyCheck) shortPort(s string) {
	s, proto, _ := strings.Cut(s, "/")
	k.protocol(proto)
	rest, container := cutLast(s)
	n := k.width(container)
	if rest == "" {
		return
	}
	address, host := cutLast(rest)
	if _, err := netip.ParseAddr(strings.Trim(address, "[]")); address != "" && err != nil {
		k.bad("write host:container, or address:host:container such as 127.0.0.1:8080:80", "%q does not begin with an address", head(s))
		return
	}
	if host == "" {
		return
	}
	switch m := k.width(host); {
	case m == 0, n == 0, m == n:
	case n > 1:
		k.bad("write as many host ports as ports of the container", "%q has %d host ports for %d ports", head(s), m, n)
	default:
		k.openPort(host, container)
	}
}

func (k *keyCheck) longPort() {
	k.count(1)
	k.protocol(textOf(k.key.val.get("protocol")))
	if m := textOf(k.key.val.get("mode")); m != "" && m != "host" && m != "ingress" {
		k.bad("remove it", "mode %q is neither host nor ingress", head(m))
	}
	if a := textOf(k.key.val.get("host_ip")); a != "" {
		if _, err := netip.ParseAddr(a); err != nil {
			k.bad("write an address such as 127.0.0.1", "host_ip %q is no address", head(a))
		}
	}
	if p := textOf(k.key.val.get("published")); strings.Contains(p, "-") {
		k.openPort(p, textOf(k.key.val.get("target")))
	}
}

// openPort refuses a range of host ports for one port. Compose leaves it to the engine which
// of them it is, at each start anew: nobody could say who has it, and the policy not whether.
func (k *keyCheck) openPort(host, container string) {
	first, _, _ := strings.Cut(host, "-")
	k.refuse("host ports %s for port %s: the engine may pick another one at each start", fmt.Sprintf("write one host port, such as %s:%s, or only %s for any free port", head(first), head(container), head(container)), head(host), head(container))
}

func (k *keyCheck) protocol(p string) {
	if p != "" && !slices.Contains([]string{"tcp", "udp", "sctp"}, strings.ToLower(p)) {
		k.bad("write tcp, udp or sctp", "protocol %q is unknown", head(p))
	}
}

// width is how many ports a range names; 0 when it is none.
func (k *keyCheck) width(s string) int {
	from, to, isRange := strings.Cut(s, "-")
	a, err := strconv.Atoi(strings.TrimSpace(from))
	b := a
	if isRange && err == nil {
		b, err = strconv.Atoi(strings.TrimSpace(to))
	}
	if err != nil || a < 0 || b > 65535 || b < a {
		k.bad("write a port from 1 to 65535", "%q is no port", head(s))
		return 0
	}
	k.count(b - a + 1)
	return b - a + 1
}

func (k *keyCheck) count(n int) {
	if *k.ports <= k.limit.Ports && *k.ports+n > k.limit.Ports {
		k.fs.add(ring.TooLarge, k.key.place, "publish a smaller range", "the app names more than %d ports", k.limit.Ports)
	}
	*k.ports += n
}

func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", s
	}
	return s[:i], s[i+1:]
}
