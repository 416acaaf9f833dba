package reconcile

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gitring/gitring/ring"
)

// mostExposed is how many ports a front listens on at most.
const mostExposed = 100

// exposesPorts gives the front of a service the ports that the image of the service exposes,
// where no file names any. It reports whether it has them: the image is looked at first.
func (t *decider) exposesPorts(app *ring.App, s *ring.Service) bool {
	if !asksImage(s) {
		return true
	}
	if !s.Image.Exposes {
		t.fetchForPlan(app, s, t.pullStep(app, s, "is asked which ports it exposes"))
		return false
	}
	if why := fillExposed(app, s, s.Image.Exposed); why != "" {
		put(&t.refused, app.Name, &ring.Refusal{
			Code: ring.BadValue, Commit: app.Commit, App: app.Name, File: s.File, Line: s.Line,
			Says: say("services.%s cannot have a front: %s", s.Name, why),
			Hint: "say route: {ports: [8080]} beside publish, with a port that the container listens on",
		})
		return false
	}
	return true
}

// asksImage reports whether a service has a front whose ports only the image names.
func asksImage(s *ring.Service) bool {
	return s.Route != nil && s.Route.Exposed != "" && len(s.Route.Ports) == 0 && s.Version != "" && s.FrontOf == ""
}

// fillExposed has the front of a service listen on ports of an image, in order of numbers. It
// says why there can be no such front; "" where there can. How the front is written stays, its
// version is another one.
func fillExposed(app *ring.App, s *ring.Service, exposed []string) string {
	var ports []ring.FrontPort
	var words []string
	for _, word := range exposed {
		number, protocol, _ := strings.Cut(word, "/")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 65535 || protocol != "tcp" && protocol != "udp" {
			continue
		}
		p := ring.FrontPort{Port: n, Carry: s.Route.Exposed}
		if protocol == "udp" {
			p.Carry = ring.CarryUDP
		}
		ports, words = append(ports, p), append(words, word)
	}
	switch {
	case len(ports) == 0:
		return "neither its files nor its image name a port to listen on"
	case len(ports) > mostExposed:
		return say("its image exposes %d ports, and a front listens on at most %d", len(ports), mostExposed)
	}
	slices.SortFunc(ports, func(a, b ring.FrontPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol(), b.Protocol()))
	})
	slices.Sort(words)
	r := *s.Route
	r.Ports, s.Route = ports, &r
	for i := range app.Services {
		if front := &app.Services[i]; front.FrontOf == s.Name {
			front.Spec.Expose = words
			front.Version = ring.VersionOf(app, front, front.Pin)
		}
	}
	return ""
}

// foreseeExposed is fillExposed for a plan that is only looked at: while the image is not
// known, the ports are those that the service in force has.
func foreseeExposed(app *ring.App, s, old *ring.Service) {
	switch {
	case !asksImage(s):
	case s.Image.Exposes:
		fillExposed(app, s, s.Image.Exposed)
	case old.Route != nil && old.Route.Exposed == s.Route.Exposed:
		var words []string
		for _, p := range old.Route.Ports {
			words = append(words, strconv.Itoa(p.Port)+"/"+p.Protocol())
		}
		fillExposed(app, s, words)
	}
}
