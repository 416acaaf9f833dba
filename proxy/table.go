package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// What a table may hold at most. The daemon's tables are far below; a bound keeps a wrong
// one from filling the memory of a front.
const (
	tableBytes     = 1 << 20
	maxInstances   = 1000
	maxPorts       = 100
	maxConnections = 60000
	maxWords       = 100 // of trusted, gateways, and what matches
	maxQueue       = 24 * time.Hour
)

func isPlainName(s string) bool { return ring.IsMadeOf(s, ring.NameChars, 255) }

// isServiceName reports whether s is a name, or two with a slash between.
func isServiceName(s string) bool {
	app, service, two := strings.Cut(s, "/")
	return isPlainName(app) && (!two || isPlainName(service))
}

func isHeaderToken(s string) bool { return ring.IsMadeOf(s, ring.NameChars+"!#$%&'*+^`|~", 128) }

// readTable is the table that body holds, if all of it can be carried out. Fields that are
// not known are of a later release, and left out.
func readTable(body []byte) (t ring.FrontTable, _ error) {
	if len(body) > tableBytes {
		return t, fmt.Errorf("cannot take a table of more than %d bytes", tableBytes)
	}
	if err := json.Unmarshal(body, &t); err != nil {
		return t, fmt.Errorf("cannot read the table: %w", err)
	}
	if err := checkTable(t); err != nil {
		return t, fmt.Errorf("cannot take the table: %w", err)
	}
	return t, nil
}

// checkTable says what is wrong with a table, nil when nothing is.
func checkTable(t ring.FrontTable) error {
	switch {
	case t.Generation < 1 || t.Generation > 1<<53:
		return fmt.Errorf("generation %d is out of range", t.Generation)
	case !isServiceName(t.Service):
		return errors.New("its service has no name")
	case len(t.Ports) == 0 || len(t.Ports) > maxPorts:
		return fmt.Errorf("%d ports, and 1 to %d can be", len(t.Ports), maxPorts)
	case len(t.Instances) > maxInstances:
		return fmt.Errorf("%d instances are more than %d", len(t.Instances), maxInstances)
	case t.CanaryWeight < 0 || t.CanaryWeight > 100:
		return fmt.Errorf("canary weight %d is no percentage", t.CanaryWeight)
	case t.Queue < 0 || t.Queue > maxQueue:
		return fmt.Errorf("queue %s is out of range", t.Queue)
	case t.Connections < 0 || t.Connections > maxConnections:
		return fmt.Errorf("%d connections are out of range", t.Connections)
	case t.Sticky != "" && t.Sticky != ring.StickyNone && t.Sticky != ring.StickyCookie:
		return errors.New("sticky is neither none nor cookie")
	}
	if err := checkPorts(t.Ports); err != nil {
		return err
	}
	if err := checkInstances(t.Instances); err != nil {
		return err
	}
	return checkWords(t)
}

func checkPorts(ports []ring.FrontPort) error {
	seen := map[string]bool{}
	for _, p := range ports {
		if !carries(p.Carry) {
			return fmt.Errorf("port %d is carried in no known way", p.Port)
		}
		key := portKey(p)
		if p.Port < 1 || p.Port > 65535 || seen[key] {
			return fmt.Errorf("port %s is out of range, or stands there twice", key)
		}
		seen[key] = true
	}
	return nil
}

func carries(word string) bool {
	switch word {
	case ring.CarryAuto, ring.CarryHTTP, ring.CarryTCP, ring.CarryUDP:
		return true
	}
	return false
}

// portKey names a port among the sockets of a front: "tcp:8080".
func portKey(p ring.FrontPort) string { return fmt.Sprintf("%s:%d", p.Protocol(), p.Port) }

func checkInstances(all []ring.FrontInstance) error {
	seen := map[string]bool{}
	for _, in := range all {
		if !isPlainName(in.Name) || seen[in.Name] {
			return errors.New("an instance has no plain name, or stands there twice")
		}
		seen[in.Name] = true
		if in.Version != "" && !isPlainName(in.Version) {
			return fmt.Errorf("the version of %s is no plain name", in.Name)
		}
		switch in.State {
		case ring.FrontActive, ring.FrontWarm, ring.FrontDraining:
		default:
			return fmt.Errorf("the state of %s is not known", in.Name)
		}
		if in.Set != "" && in.Set != ring.SetStable && in.Set != ring.SetCanary {
			return fmt.Errorf("the set of %s is not known", in.Name)
		}
	}
	return nil
}

func checkWords(t ring.FrontTable) error {
	if len(t.Trusted) > maxWords || len(t.Gateways) > maxWords {
		return fmt.Errorf("more than %d proxies or gateways", maxWords)
	}
	if _, err := trustOf(t); err != nil {
		return err
	}
	if t.Match == nil {
		return nil
	}
	if len(t.Match.Header)+len(t.Match.Cookie) > maxWords {
		return fmt.Errorf("more than %d headers and cookies to match", maxWords)
	}
	for _, words := range []map[string]string{t.Match.Header, t.Match.Cookie} {
		for name, value := range words {
			if !isHeaderToken(name) || len(value) > 1024 {
				return errors.New("a header or cookie to match has no name, or a value that is too long")
			}
		}
	}
	return nil
}

// trust is who is believed about whom it speaks for.
type trust struct {
	networks, gateway bool
	ranges            []netip.Prefix
	gateways          map[netip.Addr]bool
}

func trustOf(t ring.FrontTable) (tr trust, _ error) {
	tr.gateways = map[netip.Addr]bool{}
	for _, g := range t.Gateways {
		a, err := netip.ParseAddr(g)
		if err != nil {
			return tr, errors.New("a gateway is no address")
		}
		tr.gateways[a.Unmap()] = true
	}
	for _, word := range t.Trusted {
		switch word {
		case "networks":
			tr.networks = true
			continue
		case "gateway":
			tr.gateway = true
			continue
		}
		r, err := netip.ParsePrefix(word)
		if err != nil {
			a, aerr := netip.ParseAddr(word)
			if aerr != nil {
				return tr, errors.New("a trusted proxy is no address, no range and no known word")
			}
			r = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		}
		tr.ranges = append(tr.ranges, r)
	}
	return tr, nil
}

// believes reports whether what a client at an address says of others counts.
func (tr trust) believes(client netip.Addr, p ring.FrontPort, own ownNet) bool {
	client = client.Unmap().WithZone("")
	for _, r := range tr.ranges {
		if r.Contains(client) {
			return true
		}
	}
	if tr.isGateway(client, own) {
		return tr.gateway || p.Loopback
	}
	return tr.networks && own.near(client)
}

// isGateway reports whether an address can be that of a gateway. A client that the engine's
// userland proxy carries has it, whoever it is. In a network of which the table names none,
// the first address is taken for one.
func (tr trust) isGateway(a netip.Addr, own ownNet) bool {
	if tr.gateways[a] || own.gateways[a] {
		return true
	}
	for _, s := range own.subnets {
		if s.Masked().Addr().Next() == a && !tr.namesGatewayIn(s) {
			return true
		}
	}
	return false
}

func (tr trust) namesGatewayIn(s netip.Prefix) bool {
	for a := range tr.gateways {
		if s.Contains(a) {
			return true
		}
	}
	return false
}
