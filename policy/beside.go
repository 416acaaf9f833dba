package policy

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// Routes is the rule of host names, whose refusals have a code of their own.
const Routes = "labels.routes"

// Rules of what an app shares with others on the host.
var (
	joinRule    = rule{name: "networks.external", key: "networks", grade: escape, risk: "is the network of another app, which lets nobody join it", lets: "networks of no app, and those with attachable: true or a name: of their own"}
	gatewayRule = rule{name: "networks.external", key: "networks", grade: forbidden, risk: "joins all containers of the host's cluster", lets: ""}
	aliasRule   = rule{name: "names.alias", key: "networks", grade: escape, risk: "answers for a service of another app on a network that both are on", lets: "names that no app in other hands has on a shared network"}
	routeRule   = rule{name: Routes, key: "labels", grade: escape, risk: "is a host name of another app", lets: "host names that no app in other hands has"}
	fromRule    = rule{name: "mounts.external_volumes", key: "volumes", grade: forbidden, risk: "is an app in other hands", lets: "the volumes of apps in the same hands"}
	portRule    = rule{name: "ports.exclusive", key: "ports", grade: forbidden, risk: "is published by another app", lets: "ports that no app in other hands publishes"}
)

// IsBeside reports whether a rule is about what an app shares with others on the host.
func IsBeside(name string) bool {
	return slices.ContainsFunc([]rule{joinRule, aliasRule, routeRule, portRule}, func(r rule) bool { return r.name == name })
}

// gateway is the network by which a cluster's containers leave a host.
const gateway = "docker_gwbridge"

// CheckBeside gives what an app asks of the host that another app has: its networks,
// names, host names and ports. dataRoot is the app's, absolute.
func CheckBeside(r Rules, app *ring.App, dataRoot string, o Others) []Finding {
	if r.Profile == "" {
		r.Profile = Compose
	}
	b := beside{w: walker{r: &r}, app: app, others: o}
	mine := HoldingOf(app, dataRoot, Next, time.Time{})
	b.networks()
	b.volumes()
	for i := range mine.Names {
		b.alias(&mine.Names[i])
	}
	b.containers()
	for i := range mine.Routes {
		b.route(&mine.Routes[i])
	}
	b.ports()
	return sorted(b.w.out)
}

// CheckServiceBeside is CheckBeside for one service of an app: what its next container
// takes. Two sources that plan in the same moment do not see each other's plans.
func CheckServiceBeside(r Rules, app *ring.App, s *ring.Service, dataRoot string, o Others) []Finding {
	one := *app
	one.Services = []ring.Service{*s}
	one.Networks = slices.DeleteFunc(slices.Clone(app.Networks), func(n ring.Network) bool {
		return !slices.ContainsFunc(s.Spec.Networks, func(at ring.Attachment) bool { return at.Network == n.Key })
	})
	return CheckBeside(r, &one, dataRoot, o)
}

// beside is one app that is held against the others.
type beside struct {
	w      walker
	app    *ring.App
	others Others
}

// tell finds something: a note where the other app is in the same hand.
func (b *beside) tell(req Request, r rule, oneHand bool, f finding) {
	req.App, req.Source, req.Path = b.app.Name, b.app.Source, b.app.Path
	b.w.req = &req
	l := &look{walker: &b.w, rule: r, spot: spot{path: "App." + r.key}, v: reflect.ValueOf(true)}
	before := len(b.w.out)
	l.find(f)
	if oneHand && b.w.r.Profile != Hardened && len(b.w.out) > before {
		b.w.out[before].Verdict = Note
	}
}

func (b *beside) networks() {
	for _, n := range b.app.Networks {
		name := n.External
		if name == "" {
			name = n.Name
		}
		req := Request{Key: "network " + n.Key}
		if name == gateway {
			b.tell(req, gatewayRule, false, finding{value: name, key: "name"})
			continue
		}
		if list := b.w.r.lists().External; list != nil && n.External != "" && !slices.Contains(list, name) {
			b.tell(req, joinRule, false, finding{value: name, key: "name", risk: "is a network that networks.external of this host does not name", instead: "use a network that it names"})
			continue
		}
		if other, taken := b.others.network(name); taken && !other.Shared {
			b.tell(req, joinRule, other.OneHand, finding{
				value: name, key: "name", risk: "is a network of " + other.called() + ", which lets nobody join it",
				instead: "say attachable: true of the network in " + other.called() + ", or give it a name: of its own",
			})
		}
	}
}

// volumes are those that are taken over from another app: its data goes to no other hands.
func (b *beside) volumes() {
	for _, v := range b.app.Volumes {
		if other, taken := b.others.app(v.From); taken && v.From != b.app.Name {
			b.tell(Request{Key: "volume " + v.Key}, fromRule, false, finding{
				value: v.From, key: "x-gitring.from", risk: "is " + other.called() + ", which is in other hands", instead: "use a volume of the app's own",
			})
		}
	}
}

func (b *beside) alias(n *Name) {
	if !n.Written { // a service may be called as one of another app, but not as one container of it
		b.instanceName(n)
		return
	}
	if other, taken := b.others.name(n.Network, n.Name); taken {
		b.tell(Request{Service: n.Service, Key: "container"}, aliasRule, other.OneHand, finding{
			value: n.Name, key: n.Key, risk: "answers for what " + other.called() + " calls so on network " + n.Network, instead: "choose another name",
		})
	}
}

// instanceName holds the name of a service against those of single containers of other apps.
func (b *beside) instanceName(n *Name) {
	if strings.HasSuffix(n.Name, "-") {
		return // the beginning of its own containers' names
	}
	for _, mark := range beginnings(n.Name) {
		if mark == n.Name || !ofInstance.MatchString(strings.TrimPrefix(n.Name, mark)) {
			continue
		}
		if other, taken := b.others.name(n.Network, mark); taken {
			b.tell(Request{Service: n.Service, Key: "container"}, aliasRule, other.OneHand, finding{
				value: n.Name, key: "name", risk: "is the name of a container of " + other.called() + " on network " + n.Network, instead: "choose another name",
			})
			return
		}
	}
}

// ofInstance is how the name of an instance ends: its slot, and its version until its
// rollout is over.
var ofInstance = regexp.MustCompile(`^[0-9]+(-[0-9a-f]{8})?$`)

// containers holds each container_name against the containers of apps in other hands:
// who has a name on the engine keeps all others from starting under it.
func (b *beside) containers() {
	for i := range b.app.Services {
		s := &b.app.Services[i]
		if other, taken := b.others.container(s.Spec.ContainerName, ofInstance.MatchString); taken {
			b.tell(Request{Service: writtenAs(s), Key: "container"}, aliasRule, other.OneHand, finding{
				value: s.Spec.ContainerName, key: "container_name", risk: "is the name of a container of " + other.called(), instead: "choose another name",
			})
		}
	}
}

func (b *beside) route(r *Route) {
	req := Request{Service: r.Service, Key: "container"}
	f := finding{value: r.Host, key: r.Key, instead: "use another host name, or name it for this app in policy: {labels: {routes: {" + b.app.Name + ": [" + r.Host + "]}}}"}
	own, named := b.w.r.Routes[b.app.Name]
	if named {
		if !slices.ContainsFunc(own, func(host string) bool { return matchesHost(host, r.Host) }) {
			f.risk = "is not among the host names that labels.routes gives to app " + b.app.Name
			b.tell(req, routeRule, false, f)
		}
		return // the operator has the last word
	}
	for _, app := range sortedKeys(b.w.r.Routes) {
		if slices.ContainsFunc(b.w.r.Routes[app], func(host string) bool { return matchesHost(host, r.Host) }) {
			f.risk = "is a host name that labels.routes gives to app " + app
			b.tell(req, routeRule, false, f)
			return
		}
	}
	if other, taken := b.others.route(r.key()); taken {
		f.risk = "is a host name of " + other.called()
		b.tell(req, routeRule, other.OneHand, f)
	}
}

// ports holds published ports against those of apps in other hands; inside one hand
// they move with the commit.
func (b *beside) ports() {
	for i := range b.app.Services {
		s := &b.app.Services[i]
		for _, p := range s.Spec.Ports {
			taken, is := b.others.port(p)
			if !is {
				continue
			}
			b.tell(Request{Service: writtenAs(s), Key: "container"}, portRule, false, finding{
				value: p.Published(), at: p.HostPort, risk: fmt.Sprintf("is published by %s as %s", taken.By.called(), taken.Port.Published()),
				instead: "publish another port",
			})
		}
	}
}
