package reconcile

import "strings"

// unheardSays tells of a published port that nothing listens on, where an instance is
// ready all the same: many an app opens a port when it is first needed.
func unheardSays(in *instance) string {
	if len(in.Unheard) == 0 || in.Kind.Ends() {
		return ""
	}
	var silent, inside []string
	for _, u := range in.Unheard {
		if u.Loopback {
			inside = append(inside, u.Port)
			continue
		}
		silent = append(silent, u.Port)
	}
	var says []string
	if len(silent) > 0 {
		says = append(says, publishesPort(silent)+", and nothing listens there")
	}
	if len(inside) > 0 {
		says = append(says, publishesPort(inside)+", and what listens there takes connections from 127.0.0.1 alone")
	}
	return strings.Join(says, "; ")
}

func publishesPort(ports []string) string {
	if len(ports) == 1 {
		return say("port %s is published", ports[0])
	}
	return say("ports %s are published", strings.Join(ports, ", "))
}
