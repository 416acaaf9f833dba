package manifest

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// routeWords is what x-gitring says of a front, as written.
type routeWords struct {
	place     place // of route
	publish   string
	publishAt place
	protocol  string // "" where none, or one for each port, is said
	byPort    []portWord
	ports     []portWord
	drain     *time.Duration
	queue     *time.Duration
	forwarded *bool
	sticky    *string
	internal  *bool
	log       *string
}

// portWord is a container port as route names it, and with what.
type portWord struct {
	port  listened
	carry string
	place place
}

// listened is a container port that a front listens on.
type listened struct {
	port  int
	proto string // tcp, udp or sctp
}

func (l listened) String() string { return fmt.Sprintf("%d/%s", l.port, l.proto) }

var routeKeys = []string{"protocol", "ports", "drain_timeout", "queue", "forwarded", "sticky", "internal", "log"}

// What route.log may be.
const (
	logNone   = "none"
	logErrors = "errors"
)

// longestCarried is for how long at most a front lets something wait, or end.
const longestCarried = 24 * time.Hour

func (d *decoder) publish(n *node, w *routeWords) {
	if p := d.oneOf(n, "publish", ring.PublishFront, ring.PublishDirect); p != "" {
		w.publish, w.publishAt = p, n.place
	}
}

func (d *decoder) route(n *node, w *routeWords) {
	w.place = n.place
	d.keys(n, "route", routeKeys)
	if v := n.get("protocol"); !v.null() {
		d.routeProtocol(v, w)
	}
	for _, p := range d.scalars(n.get("ports"), "ports") {
		if port, ok := d.listened(p); ok {
			w.ports = append(w.ports, portWord{port: port, place: p.place})
		}
	}
	d.setUpTo(n, "drain_timeout", &w.drain)
	d.setUpTo(n, "queue", &w.queue)
	for key, to := range map[string]**bool{"forwarded": &w.forwarded, "internal": &w.internal} {
		if v := n.get(key); !v.null() {
			said := d.boolean(v, key, key == "forwarded")
			*to = &said
		}
	}
	d.setWord(n, "sticky", &w.sticky, ring.StickyNone, ring.StickyCookie)
	d.setWord(n, "log", &w.log, logNone, logErrors)
}

// routeProtocol is one word for every port, or one for each.
func (d *decoder) routeProtocol(n *node, w *routeWords) {
	words := []string{ring.CarryAuto, ring.CarryHTTP, ring.CarryTCP}
	if n.kind != mapping {
		w.protocol = or2(d.oneOf(n, "protocol", words...), w.protocol)
		return
	}
	for _, p := range n.pairs {
		port, err := strconv.Atoi(p.key)
		if err != nil || port < 1 || port > 65535 {
			d.bad(p.place, "write protocol: {8080: http}, with a port of the container", "protocol: %q is no port", head(p.key))
			continue
		}
		if carry := d.oneOf(p.val, "protocol "+p.key, words...); carry != "" {
			w.byPort = append(w.byPort, portWord{listened{port, "tcp"}, carry, p.place})
		}
	}
}

// listened is a port, or port/protocol.
func (d *decoder) listened(n *node) (listened, bool) {
	text := d.text(n, "ports")
	if n.kind != scalar {
		return listened{}, false
	}
	number, proto, _ := strings.Cut(strings.ToLower(text), "/")
	port, err := strconv.Atoi(number)
	if proto = or2(proto, "tcp"); err != nil || port < 1 || port > 65535 || proto != "tcp" && proto != "udp" {
		d.bad(n.place, "write a port of the container, such as 8080 or 53/udp", "ports: %q is no port", head(text))
		return listened{}, false
	}
	return listened{port, proto}, true
}

func (d *decoder) setUpTo(n *node, key string, to **time.Duration) {
	v := n.get(key)
	if v.null() {
		return
	}
	t := d.duration(v, key, 0)
	if t > longestCarried {
		d.bad(v.place, "write a duration from 0s to 24h", "%s: %q is longer than 24h", key, head(v.text))
	}
	*to = &t
}

func (d *decoder) setWord(n *node, key string, to **string, words ...string) {
	if v := n.get(key); !v.null() {
		if w := d.oneOf(v, key, words...); w != "" {
			*to = &w
		}
	}
}

// Traffic is what a host says of fronts: docs/reference/configuration.md. The zero value
// is a host that says nothing of them.
type Traffic struct {
	Publish string // ring.PublishFront or ring.PublishDirect; "" is direct
	// Labels and Env are what moves to a front, by how it begins; nil is the default.
	Labels, Env []string
	Trusted     []string // "networks", "gateway", CIDRs; nil is the default, empty nobody
	Memory      int64    // of a front, in bytes; 0 is the default
	Connections int      // of a front, at once; 0 is the default
	// Never is why no front can run on this host, "" where one can.
	Never string
}

// DefaultTraffic is Traffic where nothing is said.
func DefaultTraffic() Traffic {
	route := ring.DefaultRoute()
	return Traffic{
		Publish: ring.PublishDirect, Labels: []string{"traefik.", "caddy", "sablier."}, Env: []string{"VIRTUAL_", "LETSENCRYPT_"},
		Trusted: route.Trusted, Memory: 256 << 20, Connections: route.Connections,
	}
}

func (t Traffic) withDefaults() Traffic {
	all := DefaultTraffic()
	t.Publish = or2(t.Publish, all.Publish)
	if t.Labels == nil {
		t.Labels = all.Labels
	}
	if t.Env == nil {
		t.Env = all.Env
	}
	if t.Trusted == nil {
		t.Trusted = all.Trusted
	}
	if t.Memory == 0 {
		t.Memory = all.Memory
	}
	if t.Connections == 0 {
		t.Connections = all.Connections
	}
	return t
}

// moves reports whether a label goes to a front. Proxies take labels in any case.
func (t *Traffic) moves(label string) bool {
	return slices.ContainsFunc(t.Labels, func(p string) bool { return strings.HasPrefix(strings.ToLower(label), strings.ToLower(p)) })
}

// movesEnv reports whether a variable goes to a front. Python's own VIRTUAL_ENV is no proxy's.
func (t *Traffic) movesEnv(name string) bool {
	if strings.HasPrefix(name, "VIRTUAL_ENV") {
		return false
	}
	return slices.ContainsFunc(t.Env, func(p string) bool { return strings.HasPrefix(name, p) })
}

// fronting is how a service that may get a front is asked for one.
type fronting struct {
	*builderOf
	app     *ring.App
	s       *ring.Service
	compose types.ServiceConfig
	said    *routeWords
	traffic Traffic
}

// routes are those of the services that get a front, by name. Which service gets one, and
// what is wrong with its route, is decided here; addFronts carries it out.
func (b *builderOf) routes(app *ring.App) map[string]*ring.Route {
	out := map[string]*ring.Route{}
	traffic := b.settings.Traffic.withDefaults()
	for i := range app.Services {
		s := &app.Services[i]
		f := fronting{b, app, s, b.project.Services[s.Name], &b.extras[s.Name].route, traffic}
		r := f.wanted()
		if r != nil {
			out[s.Name] = r
		} else if f.said.place.line > 0 && !b.publishLost(s.Name) {
			b.note("%s: x-gitring route is not used, because the service has no front", s.Name)
		}
		b.canaryNeedsFront(s, r != nil)
	}
	return out
}

func (b *builderOf) publishLost(service string) bool {
	return b.kindLost(service) || b.anyLost(service, []string{extensionKey, "publish"}, []string{extensionKey, "route"}, []string{"ports"}, []string{"expose"}, []string{"labels"}, []string{"environment"})
}

// wanted is the route of a service that gets a front, nil for one that does not.
func (f *fronting) wanted() *ring.Route {
	because := ""
	switch {
	case f.said.publish == ring.PublishDirect, f.kindLost(f.s.Name) && f.said.publish == "":
		return nil
	case f.said.publish == ring.PublishFront:
		return f.explicit()
	case f.settings.Swarm: // what is asked is refused there; what nobody asked is not made
		return nil
	case f.s.Replicas > 1 && f.fixedPort("") != "":
		because = fmt.Sprintf("%s: gets a front, because %d replicas cannot publish host port %s", f.s.Name, f.s.Replicas, f.fixedPort(""))
	case !f.hostAsks():
		return nil
	}
	why := or2(f.traffic.Never, or2(f.impossible().why, f.nameTaken()))
	if why == "" && because == "" {
		why = f.leftDirect()
	}
	ports := f.listens()
	if why == "" && len(ports) == 0 {
		why = "its files name no port that a front could listen on; x-gitring route.ports does"
	}
	if why != "" {
		if because == "" {
			f.note("%s: stays without a front: %s", f.s.Name, why)
		}
		return nil // replicas are refused
	}
	if because != "" {
		f.note("%s", because)
	}
	return f.route(ports)
}

// explicit is the route of a service that says publish: front. What is in its way is
// refused: its author relies on it.
func (f *fronting) explicit() *ring.Route {
	if f.kindLost(f.s.Name) {
		return nil
	}
	if why := f.traffic.Never; why != "" {
		f.faults.add(ring.Unsupported, f.said.publishAt, "remove publish: front", "services.%s cannot have a front on this host: %s", f.s.Name, why)
		return nil
	}
	if no := f.impossible(); no.why != "" {
		f.bad(f.said.publishAt, no.hint, "services.%s cannot have a front: %s", f.s.Name, no.why)
		return nil
	}
	if why := f.nameTaken(); why != "" {
		f.faults.add(ring.BadName, f.declared(f.s.Name+ring.FrontSuffix), "give the service another name", "services.%s cannot be so called: that is the name of the front of %s", f.s.Name+ring.FrontSuffix, f.s.Name)
		return nil
	}
	ports := f.listens()
	if len(ports) == 0 && f.publishLost(f.s.Name) {
		return nil
	}
	if len(ports) == 0 {
		f.note("%s: its front listens on the ports that its image exposes", f.s.Name)
	}
	return f.route(ports)
}

// hostAsks reports whether the host's default asks for a front.
func (f *fronting) hostAsks() bool {
	if f.traffic.Publish != ring.PublishFront || f.s.Kind != ring.Worker {
		return false
	}
	for label, value := range f.s.Spec.Labels {
		if f.traffic.moves(label) && !isOptOut(label, value) {
			return true
		}
	}
	for name := range f.s.Spec.Environment {
		if f.traffic.movesEnv(name) {
			return true
		}
	}
	return f.fixedPort("tcp") != ""
}

// isOptOut reports whether a label keeps Traefik away from a container. It stays on the
// instances too: by its own default Traefik makes a router for each container without it.
func isOptOut(label, value string) bool {
	on, err := strconv.ParseBool(value)
	return strings.EqualFold(label, "traefik.enable") && err == nil && !on
}

// fixedPort is a host port that the service publishes, of proto or "" for any.
func (f *fronting) fixedPort(proto string) string {
	for _, p := range f.s.Spec.Ports {
		if p.HostPort != "" && (proto == "" || p.Protocol == proto) {
			return p.HostPort
		}
	}
	return ""
}

// obstacle is why a service can have no front, and what its author can do.
type obstacle struct{ why, hint string }

// mostPorts is how many container ports a front listens on at most.
const mostPorts = 100

func (f *fronting) impossible() obstacle {
	spec := &f.s.Spec
	ports := f.listens()
	switch {
	case f.s.Kind != ring.Worker:
		return obstacle{"it is a " + string(f.s.Kind) + ", and a front is for workers", "remove publish: front"}
	case spec.NetworkOf != "" || spec.NetworkMode != "" || spec.NoNetwork:
		return obstacle{"network_mode gives it no network that a front could join", "remove publish: front, or network_mode"}
	case len(f.bridges()) == 0 && !f.lost("services", f.s.Name, "networks"):
		return obstacle{"none of its networks has the driver bridge", "remove publish: front, or let the service join a network with the driver bridge"}
	case slices.ContainsFunc(ports, func(l listened) bool { return l.proto == "sctp" }):
		return obstacle{"it has an sctp port", "remove publish: front: a front carries tcp and udp"}
	case len(ports) > mostPorts:
		return obstacle{fmt.Sprintf("it has %d ports, and a front listens on at most %d", len(ports), mostPorts), "remove publish: front, or publish fewer ports"}
	}
	return obstacle{}
}

// bridges are the networks of the service that its front joins: one of another driver,
// macvlan say, is of another kind of address, which the front has no use for.
func (f *fronting) bridges() (out []ring.Attachment) {
	for _, at := range f.s.Spec.Networks {
		n := f.project.Networks[at.Network]
		if bool(n.External) || n.Driver == "" || n.Driver == "bridge" {
			out = append(out, at)
		}
	}
	return out
}

func (f *fronting) nameTaken() string {
	name := f.s.Name + ring.FrontSuffix
	if _, taken := f.project.Services[name]; taken {
		return "service " + name + " has the name that its front would have"
	}
	return ""
}

// leftDirect is why a service that only the host's default gives a front stays as it is: its
// client addresses, or a firewall of its own, may depend on that.
func (f *fronting) leftDirect() string {
	spec := &f.s.Spec
	for _, p := range spec.Ports {
		if p.Protocol == "udp" {
			return fmt.Sprintf("it publishes udp port %d", p.Container)
		}
	}
	if job := portOfJob(f.app, f.s); job != "" {
		return "it publishes a port of " + job + ", whose end it waits for"
	}
	for _, owner := range []string{spec.NetworkOf, spec.PIDOf, spec.IPCOf} {
		if owner != "" {
			return "it joins a namespace of " + owner
		}
	}
	for i := range f.app.Services {
		o := &f.app.Services[i]
		if o.Spec.NetworkOf == f.s.Name || o.Spec.PIDOf == f.s.Name || o.Spec.IPCOf == f.s.Name {
			return o.Name + " joins a namespace of it"
		}
	}
	return ""
}

// listens are the container ports that a front of the service listens on, in order. What
// an image says of itself (EXPOSE) is not known yet, as a plan is a function of the commit: it
// is asked for where its author wants a front and names no port.
func (f *fronting) listens() []listened {
	all := map[listened]bool{}
	for _, p := range f.s.Spec.Ports {
		all[listened{p.Container, p.Protocol}] = true
	}
	for _, e := range f.s.Spec.Expose {
		number, proto, _ := strings.Cut(e, "/")
		if port, err := strconv.Atoi(number); err == nil {
			all[listened{port, proto}] = true
		}
	}
	for label, value := range f.s.Spec.Labels {
		if f.traffic.moves(label) {
			for _, l := range labelPorts(label, value) {
				all[l] = true
			}
		}
	}
	for name, value := range f.s.Spec.Environment {
		if f.traffic.movesEnv(name) && name == "VIRTUAL_PORT" {
			if port, ok := portOf(value); ok {
				all[listened{port, "tcp"}] = true
			}
		}
	}
	for _, w := range f.said.ports {
		all[w.port] = true
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b listened) int {
		if a.port != b.port {
			return a.port - b.port
		}
		return strings.Compare(a.proto, b.proto)
	})
}

// upstreams is how caddy-docker-proxy names a port of the container; 80 where it names none.
var upstreams = regexp.MustCompile(`\{\{-?\s*upstreams((?:\s+[a-z0-9]+)*)\s*-?\}\}`)

// labelPorts are the ports that a label of a proxy names.
func labelPorts(label, value string) (out []listened) {
	label = strings.ToLower(label)
	if strings.HasPrefix(label, "traefik.") && strings.HasSuffix(label, ".loadbalancer.server.port") {
		proto := "tcp"
		if strings.HasPrefix(label, "traefik.udp.") {
			proto = "udp"
		}
		if port, ok := portOf(value); ok {
			out = append(out, listened{port, proto})
		}
	}
	if strings.HasPrefix(label, "caddy") {
		for _, m := range upstreams.FindAllStringSubmatch(value, -1) {
			words := strings.Fields(m[1])
			port, named := 80, false
			if len(words) > 0 {
				if n, ok := portOf(words[len(words)-1]); ok {
					port, named = n, true
				}
			}
			if named || len(words) <= 1 {
				out = append(out, listened{port, "tcp"})
			}
		}
	}
	return out
}

func portOf(text string) (int, bool) {
	port, err := strconv.Atoi(strings.TrimSpace(text))
	return port, err == nil && port >= 1 && port <= 65535
}

// route is complete; what it says of ports that the front does not listen on is refused.
func (f *fronting) route(ports []listened) *ring.Route {
	r := ring.DefaultRoute()
	set(&r.DrainTimeout, f.said.drain)
	set(&r.Queue, f.said.queue)
	set(&r.Forwarded, f.said.forwarded)
	set(&r.Sticky, f.said.sticky)
	set(&r.Internal, f.said.internal)
	r.LogErrors = f.said.log != nil && *f.said.log == logErrors
	r.Trusted, r.Connections = filled(f.traffic.Trusted), f.traffic.Connections
	for _, w := range f.said.byPort {
		if !slices.Contains(ports, w.port) && !f.publishLost(f.s.Name) {
			f.bad(w.place, "name a port of "+portWords(ports), "services.%s route.protocol names tcp port %d, which its front does not listen on", f.s.Name, w.port.port)
		}
	}
	for _, l := range ports {
		r.Ports = append(r.Ports, ring.FrontPort{Port: l.port, Carry: f.carry(l), Loopback: f.onLoopback(l)})
	}
	if len(ports) == 0 {
		r.Ports, r.Exposed = []ring.FrontPort{}, or2(f.said.protocol, ring.CarryAuto)
	}
	f.tellAddress(&r)
	return &r
}

// portWords are the first tcp ports, for a hint.
func portWords(ports []listened) string {
	var out []string
	for _, l := range ports {
		if l.proto == "tcp" && len(out) < 5 {
			out = append(out, strconv.Itoa(l.port))
		}
	}
	if len(out) == 0 {
		return "tcp; a udp port is always carried as udp"
	}
	return strings.Join(out, ", ")
}

// carry is how bytes of a port are carried: x-gitring wins over Compose.
func (f *fronting) carry(l listened) string {
	if l.proto == "udp" {
		return ring.CarryUDP
	}
	for _, w := range f.said.byPort {
		if w.port == l {
			return w.carry
		}
	}
	if f.said.protocol != "" {
		return f.said.protocol
	}
	for _, p := range f.compose.Ports {
		if int(p.Target) == l.port && or2(strings.ToLower(p.Protocol), "tcp") == "tcp" && strings.EqualFold(p.AppProtocol, "http") {
			return ring.CarryHTTP
		}
	}
	return ring.CarryAuto
}

// onLoopback reports whether a port is published on loopback addresses alone.
func (f *fronting) onLoopback(l listened) bool {
	published := false
	for _, p := range f.s.Spec.Ports {
		if p.Container != l.port || p.Protocol != l.proto {
			continue
		}
		ip, err := netip.ParseAddr(strings.Trim(p.HostIP, "[]"))
		if err != nil || !ip.IsLoopback() {
			return false
		}
		published = true
	}
	return published
}

// tellAddress notes what an app with a front sees of its clients.
func (f *fronting) tellAddress(r *ring.Route) {
	http := slices.ContainsFunc(r.Ports, func(p ring.FrontPort) bool { return p.Carry == ring.CarryAuto || p.Carry == ring.CarryHTTP })
	http = http || r.Exposed == ring.CarryAuto || r.Exposed == ring.CarryHTTP
	switch {
	case http && r.Forwarded:
		f.note("%s: the app sees the front's address; X-Forwarded-For names the client", f.s.Name)
	case http:
		f.note("%s: the app sees the front's address, and nothing names the client (route.forwarded is false)", f.s.Name)
	default:
		f.note("%s: the app sees the front's address, and nothing names the client", f.s.Name)
	}
}
