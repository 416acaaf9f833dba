package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// Route is a host name that a service asks a proxy to send to it.
type Route struct {
	Host string // lower case, without port
	// Kind tells apart who answers: "http" by a request's host name, "tls" by the name
	// of a TLS connection, "pattern" by an expression, which only equals itself.
	Kind    string
	Service string
	Key     string // the Compose key, below the service, such as labels.caddy
}

// Kinds of routes.
const (
	routeHTTP    = "http"
	routeTLS     = "tls"
	routePattern = "pattern"
)

func (r Route) key() string { return r.Kind + " " + r.Host }

var (
	traefikRule = regexp.MustCompile(`(?i)^traefik\.(http|tcp)\.routers\.[^.]+\.rule$`)
	caddyName   = regexp.MustCompile(`^caddy(_[0-9]+)?$`)
	// caddyHost is a named matcher of caddy's, inside a site that may stand for many hosts.
	caddyHost = regexp.MustCompile(`^caddy(_[0-9]+)?\.([0-9]+_)?@[^.]+(\.([0-9]+_)?host)?$`)
	// ruleCall is one matcher of a rule of traefik's that names hosts.
	ruleCall = regexp.MustCompile("(?i)(!?)\\s*\\b(HostSNIRegexp|HostRegexp|HostSNI|HostHeader|Host)\\s*\\(((?:`[^`]*`|\"[^\"]*\"|'[^']*'|[^)`\"'])*)\\)")
	quoted   = regexp.MustCompile("`([^`]*)`|\"([^\"]*)\"|'([^']*)'")
)

// RoutesOf are the host names that the labels and variables of a service ask for, sorted.
// A value of the host's env folder is not known here, and counts for nothing.
func RoutesOf(s *ring.Service) []Route {
	var out []Route
	add := func(kind, host, key string) {
		host = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(host), "."))
		if host == "" || host == "*" || ring.HasSealed(host) { // "*" is whatever nobody else asks for
			return
		}
		out = append(out, Route{Host: host, Kind: kind, Service: writtenAs(s), Key: key})
	}
	for _, label := range sortedKeys(s.Spec.Labels) {
		value := s.Spec.Labels[label]
		key := "labels." + label
		switch {
		case traefikRule.MatchString(label):
			for _, c := range ruleCall.FindAllStringSubmatch(value, -1) {
				if c[1] != "" {
					continue // every host but these
				}
				for _, q := range quoted.FindAllStringSubmatch(c[3], -1) {
					add(ruleKind(c[2]), q[1]+q[2]+q[3], key)
				}
			}
		case caddyName.MatchString(label):
			for _, address := range addressesOf(value) {
				if !strings.HasPrefix(address, "*") { // a site for many hosts, told apart by matchers
					add(routeHTTP, address, key)
				}
			}
		case caddyHost.MatchString(label):
			if !strings.HasSuffix(label, "host") {
				rest, ok := strings.CutPrefix(strings.TrimSpace(value), "host ")
				if value = rest; !ok {
					continue
				}
			}
			for host := range strings.FieldsSeq(value) {
				add(routeHTTP, host, key)
			}
		}
	}
	for _, name := range []string{"VIRTUAL_HOST", "LETSENCRYPT_HOST"} {
		for host := range strings.SplitSeq(s.Spec.Environment[name], ",") {
			kind := routeHTTP
			if strings.HasPrefix(strings.TrimSpace(host), "~") {
				kind = routePattern
			}
			add(kind, withoutPort(strings.TrimSpace(host)), "environment."+name)
		}
	}
	slices.SortFunc(out, func(a, b Route) int { return strings.Compare(a.key()+" "+a.Key, b.key()+" "+b.Key) })
	return slices.Compact(out)
}

func ruleKind(matcher string) string {
	switch m := strings.ToLower(matcher); {
	case strings.HasSuffix(m, "regexp"):
		return routePattern
	case m == "hostsni":
		return routeTLS
	}
	return routeHTTP
}

// addressesOf are the host names in an address line of a Caddyfile: names separated
// by commas and spaces, each with a scheme, a port and a path as it likes. A snippet
// "(name)" and an address without a host name a host of nobody.
func addressesOf(line string) []string {
	var out []string
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		if strings.HasPrefix(word, "(") {
			continue
		}
		if _, rest, ok := strings.Cut(word, "://"); ok {
			word = rest
		}
		word, _, _ = strings.Cut(word, "/")
		if host := withoutPort(word); host != "" {
			out = append(out, host)
		}
	}
	return out
}

// withoutPort leaves out the port of an address that names a host; one of IPv6 stays as
// it is.
func withoutPort(address string) string {
	if host, _, ok := strings.Cut(address, ":"); ok && strings.Count(address, ":") == 1 {
		return host
	}
	return address
}

// matchesHost reports whether two host names can be one: a name with a star stands for
// all names that have one word in its place.
func matchesHost(a, b string) bool {
	if a == b {
		return true
	}
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] && x[i] != "*" && y[i] != "*" {
			return false
		}
	}
	return true
}
