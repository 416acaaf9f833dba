package runtime

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/gitring/gitring/ring"
)

// portSentences is how engines say that a port of the host is somebody else's: another
// container's, or a process's; Docker 28 with words of its own.
var portSentences = []meaning{
	{words: []string{"port is already allocated"}},
	{words: []string{"bind: address already in use"}},
	{words: []string{"host port", "address already in use"}},
}

// portTaken is what the engine says of a port that somebody else has; nil when it
// says something else.
func portTaken(a ring.Action, err error) *ring.EngineError {
	if p, how, ok := takenPort(a, err); ok {
		return ofHost(a, ring.CauseCreate, fmt.Sprintf("port %s of the host is taken (%s)", p.Published(), how), whoHas(p))
	}
	return nil
}

// takenPort is the port that the engine tells of, and in which words. It tells it in the middle of
// a sentence that no two releases word alike, so it is looked for among those that the service
// publishes.
func takenPort(a ring.Action, err error) (p ring.Port, how string, ok bool) {
	if a.Want == nil || away(err) {
		return ring.Port{}, "", false
	}
	text := strings.ToLower(err.Error())
	for _, m := range portSentences {
		if !m.fits(text) {
			continue
		}
		for _, p := range a.Want.Spec.Ports {
			if p.HostPort != "" && namesPort(text, p.HostPort) {
				return p, m.words[len(m.words)-1], true
			}
		}
	}
	return ring.Port{}, "", false
}

// portTakenBy is the same with the container that has the port, where the engine lists one.
func (d *Docker) portTakenBy(ctx context.Context, e engine, a ring.Action, id string, err error) *ring.EngineError {
	p, how, ok := takenPort(a, err)
	if !ok {
		return nil
	}
	list, listErr := e.ContainerList(ctx, container.ListOptions{})
	i := slices.IndexFunc(list, func(c container.Summary) bool { return c.ID != id && len(c.Names) > 0 && publishes(c, p) })
	if listErr != nil || i < 0 {
		return portTaken(a, err)
	}
	name := strings.TrimPrefix(list[i].Names[0], "/")
	return ofHost(a, ring.CauseCreate, fmt.Sprintf("port %s of the host is taken by container %s (%s)", p.Published(), name, how),
		fmt.Sprintf("docker stop %s, or publish another port; gitring tries again by itself", name))
}

// publishes reports whether a container has a port of the host that clashes with p.
func publishes(c container.Summary, p ring.Port) bool {
	return slices.ContainsFunc(c.Ports, func(has container.Port) bool {
		return has.PublicPort != 0 && p.Clashes(ring.Port{HostIP: has.IP, HostPort: strconv.Itoa(int(has.PublicPort)), Protocol: has.Type})
	})
}

// serveFault is faultOf a spec that the swarm did not take. A port of the swarm that another service
// has is no fault of the version: that one may go at any time.
func serveFault(a ring.Action, cannot string, err error) *ring.EngineError {
	said := swarmPort.FindStringSubmatch(err.Error())
	if said == nil || away(err) {
		return faultOf(a, cannot, ring.CauseCreate, err)
	}
	return ofHost(a, ring.CauseCreate, fmt.Sprintf("port %s of the swarm is taken by service %s", said[1], said[2]),
		fmt.Sprintf("docker service rm %s, or publish another port; gitring tries again by itself", said[2]))
}

// swarmPort is what Swarm says of it, whether the port is of its mesh or of a node.
var swarmPort = regexp.MustCompile(`port '(\d+)' is already in use by service '([^']+)'`)

// namesPort reports whether a text has ":port", and no further digit.
func namesPort(text, port string) bool {
	for {
		_, rest, ok := strings.Cut(text, ":"+port)
		if !ok {
			return false
		}
		if rest == "" || rest[0] < '0' || rest[0] > '9' {
			return true
		}
		text = rest
	}
}

// whoHas is how a person finds out who has a port, and what to do then.
func whoHas(p ring.Port) string {
	list := "ss -ltnp"
	if p.Protocol == "udp" {
		list = "ss -lunp"
	}
	return fmt.Sprintf("%s 'sport = :%s' on the host shows who has it (docker ps -f publish=%s, where that is a container): end that, or publish another port; gitring tries again by itself",
		list, p.HostPort, p.HostPort)
}
