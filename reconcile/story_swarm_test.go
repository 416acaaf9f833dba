package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// What stories say of a swarm: "engine swarm" comes first.

// faultOfSwarm is what happens to a swarm. It reports whether it knows such a thing.
func (s *story) faultOfSwarm(w []string) bool {
	if s.swarm == nil {
		return false
	}
	switch {
	case len(w) == 4 && w[0] == "node": // node n1 is dead, node n1 is cut, node n1 is back
		n := s.swarm.node(w[1])
		switch w[3] {
		case "new": // node n4 is new
			s.swarm.nodes = append(s.swarm.nodes, &swarmNode{name: w[1]})
		case "drained", "active":
			n.drained = w[3] == "drained"
		case "back":
			s.comeBackNode(n)
		default:
			s.lose(n, w[3] == "dead")
		}
	case len(w) == 4 && w[0] == "service" && (w[3] == "taken" || w[3] == "free"): // service web_web is taken
		s.names["service "+w[1]] = w[3] == "taken"
	case len(w) == 4 && w[0] == "config": // config web_conf is taken
		s.names["config "+w[1]] = w[3] == "taken"
	case len(w) == 2 && w[0] == "quorum": // quorum lost, quorum back
		s.swarm.quorum = w[1] == "back"
		s.blind = !s.swarm.quorum
		s.mem.awake = s.clock() // as the loop has it
	case len(w) == 2 && w[0] == "lease": // lease lost (another manager has it), lease back
		s.swarm.lease = ring.Lease{Holder: "n2", Mine: w[1] == "back"}
	case slices.Equal(w, []string{"another", "manager", "follows"}): // a new one
		others := ring.NewFacts()
		s.beside, s.swarm.lease = &others, ring.Lease{Holder: "n1", Mine: true}
	case slices.Equal(w, []string{"another", "manager", "acts"}) && s.beside != nil:
		clear(s.posts) // it tells what it finds
		s.moveLease()
	case len(w) == 2 && (w[0] == "edit" || w[0] == "rollback" || w[0] == "erase"): // edit web: its spec, by hand
		app, name := fullID(w[1])
		svc := s.swarm.services[app+"_"+name]
		if svc == nil {
			return false
		}
		s.byHand(svc, map[string]string{"edit": "edit", "rollback": "rollback", "erase": "remove"}[w[0]])
	default:
		return false
	}
	s.swarmTick()
	return true
}

// expectSent is how many specs a service was sent, by whomever.
func (s *story) expectSent(name, want string) error {
	app, service := fullID(name)
	svc := s.swarm.services[app+"_"+service]
	if svc == nil {
		return count("specs sent", 0, want)
	}
	return count("specs sent", svc.sends, want)
}

// expectFiles is the whole list of configs by their contents; "none" is none.
func (s *story) expectFiles(want []string) error {
	var got []string
	for _, f := range s.swarm.files {
		got = append(got, f.Content)
	}
	slices.Sort(got)
	if len(got) == 0 {
		got = []string{"none"}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("there is %s", strings.Join(got, " "))
	}
	return nil
}
