package runtime

import (
	"fmt"
	"strings"

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
// says something else. Which port, it tells in the middle of a sentence that no two
// releases word alike, so it is looked for among those that the service publishes.
func portTaken(a ring.Action, err error) *ring.EngineError {
	if a.Want == nil || away(err) {
		return nil
	}
	text := strings.ToLower(err.Error())
	for _, m := range portSentences {
		if !m.fits(text) {
			continue
		}
		for _, p := range a.Want.Spec.Ports {
			if p.HostPort != "" && namesPort(text, p.HostPort) {
				return ofHost(a, ring.CauseCreate, fmt.Sprintf("port %s of the host is taken (%s)", p.Published(), m.words[len(m.words)-1]), whoHas(p))
			}
		}
	}
	return nil
}

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
