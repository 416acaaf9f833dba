package reconcile

import (
	"cmp"
	"maps"
	"regexp"
	"strings"

	"github.com/gitring/gitring/ring"
)

// While a version rolls, a proxy that goes by labels sees those of the old container and of
// the new one. Traefik leaves out what the two define in two ways, and answers 404 meanwhile.

// definition is what labels define for Traefik: a router, a service or a middleware.
type definition struct{ protocol, kind, name string }

// traefikLabel is a label that belongs to a definition, and the key in it.
var traefikLabel = regexp.MustCompile(`(?i)^traefik\.(http|tcp|udp)\.(router|service|middleware)s\.([^.]+)\.(.+)$`)

// definitionsOf are those of a container's labels, each with its keys. The server of a service
// is none of them: those of several containers are taken together.
func definitionsOf(labels map[string]string) map[definition]map[string]string {
	out := map[definition]map[string]string{}
	for label, value := range labels {
		m := traefikLabel.FindStringSubmatch(label)
		if m == nil {
			continue
		}
		d, key := definition{strings.ToLower(m[1]), strings.ToLower(m[2]), m[3]}, strings.ToLower(m[4])
		if out[d] == nil {
			out[d] = map[string]string{}
		}
		if !strings.HasPrefix(key, "loadbalancer.server.") {
			out[d][key] = value
		}
	}
	return out
}

// definedTwice is the first definition of which two sets of labels have two; the zero one where
// there is none.
func definedTwice(old, next map[string]string) (first definition) {
	before := definitionsOf(old)
	for d, keys := range definitionsOf(next) {
		if had, known := before[d]; known && !maps.Equal(had, keys) && (first.name == "" || compareDefinitions(d, first) < 0) {
			first = d
		}
	}
	return first
}

func compareDefinitions(a, b definition) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.protocol, b.protocol))
}

// definedGap is how long Traefik leaves out a service that rolls, and what its author can do.
// An old front is left out itself once the engine calls it unhealthy, which its HEALTHCHECK
// tells within one interval.
func definedGap(old, s *ring.Service) (says string, seconds int) {
	d := definedTwice(old.Spec.Labels, s.Spec.Labels)
	if d.name == "" {
		return "", 0
	}
	until := "until the old instance is gone"
	if h := old.Spec.Healthcheck; old.FrontOf != "" && h != nil {
		until, seconds = say("for up to %s", h.Interval), int(h.Interval.Seconds())
	}
	return say("Traefik answers 404 %s, as old and new define %s %s in two ways; another name, such as %s2, has no gap", until, d.kind, d.name, d.name), seconds
}
