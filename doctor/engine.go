package doctor

import (
	"slices"
	"strings"
)

// Drivers whose logs the engine can read back.
var readable = []string{"json-file", "local", "journald"}

// Storage drivers that are slow or not kept up any more.
var poor = []string{"vfs", "aufs", "devicemapper", "overlay"}

const fewPools = 5

func engineChecks(e *Engine) []Check {
	answers := a("engine", "answers")
	switch {
	case !e.Asked.Asked:
		return []Check{answers.is(Skip, "", "nobody could ask")}
	case e.Err != "":
		return []Check{answers.is(Fail, "is it running? systemctl status docker; and may the daemon's user ask it?", "%s", e.Err)}
	}
	return append([]Check{
		answers.is(OK, "", "%s %s", e.name(), e.Version), apiCheck(e), clockCheck(e), lacksCheck(e), cgroupCheck(e), rootCheck(e), logCheck(e), storageCheck(e), poolCheck(e), bootCheck(e),
	}, swarmChecks(e.Swarm)...)
}

// swarmChecks are none for one engine.
func swarmChecks(s *Swarm) []Check {
	if s == nil {
		return nil
	}
	managers, nodes, lock := a("swarm", "managers"), a("swarm", "nodes"), a("swarm", "autolock")
	switch {
	case s.Managers < 3:
		managers = managers.is(Warn, "docker node promote makes a manager of a worker; three of them do without any one",
			"%d: when one is gone, nothing is changed or moved until it is back", s.Managers)
	case s.Managers%2 == 0:
		managers = managers.is(Warn, "docker node promote or demote: an odd number", "%d, which does without no more of them than %d would", s.Managers, s.Managers-1)
	default:
		managers = managers.is(OK, "", "%d, and it does without %d of them", s.Managers, s.Managers/2)
	}
	var away []string
	for _, n := range s.Nodes {
		if n.State != "ready" {
			away = append(away, n.Name+" is "+n.State)
		}
	}
	nodes = nodes.is(OK, "", "all %d are ready", len(s.Nodes))
	if len(away) > 0 {
		nodes = nodes.is(Warn, "docker node ls; gitring shows nodes, and changes none", "%s", strings.Join(away, ", "))
	}
	lock = lock.is(OK, "", "a manager that starts asks for a key before it can read the secrets of the swarm")
	if !s.Autolock {
		lock = lock.is(Warn, "docker swarm update --autolock=true, and keep the key that it prints away from the managers",
			"who has the disk of a manager has the secrets of the swarm: the key of its log lies beside it")
	}
	return []Check{managers, nodes, lock}
}

func (e *Engine) name() string {
	if e.Podman {
		return "Podman"
	}
	return "Docker"
}

// unit is what starts containers when the host starts.
func (e *Engine) unit() string {
	if e.Podman {
		return "podman-restart"
	}
	return "docker"
}

func clockCheck(e *Engine) Check {
	c := a("engine", "checks")
	if e.Podman && !e.Clock {
		return c.is(Fail, "start the host with systemd; until then gitring has Podman run each check", "Podman has no systemd here, and runs no healthcheck by itself")
	}
	return c.is(OK, "", "the engine runs them")
}

func apiCheck(e *Engine) Check {
	c := a("engine", "API")
	return c.is(OK, "", "%s, and %s is needed", e.API, e.Least)
}

func lacksCheck(e *Engine) Check {
	c := a("engine", "Compose keys")
	if len(e.Lacks) > 0 {
		return c.is(OK, "", "it can do what gitring needs; only a newer engine has %s, and what asks for it is refused", strings.Join(e.Lacks, ", "))
	}
	return c.is(OK, "", "it can do all that gitring knows of")
}

func cgroupCheck(e *Engine) Check {
	c := a("engine", "cgroup")
	switch e.Cgroup {
	case "":
		return c.is(Skip, "", "the engine does not tell")
	case "1":
		return c.is(Warn, "boot with cgroup v2: newer engines leave version 1", "version 1")
	}
	return c.is(OK, "", "version %s", e.Cgroup)
}

func rootCheck(e *Engine) Check {
	c := a("engine", "root")
	if e.Rootless {
		return c.is(Warn, "checks of http, tcp and grpc may not reach containers; exec checks do", "the engine is rootless")
	}
	return c.is(OK, "", "the engine runs as root")
}

func logCheck(e *Engine) Check {
	c := a("engine", "logs")
	switch {
	case e.LogDriver == "":
		return c.is(Skip, "", "the engine does not tell")
	case !slices.Contains(readable, e.LogDriver):
		return c.is(Warn, "logs and the last lines of a crash stay empty; json-file, local and journald can be read", "the log driver is %s", e.LogDriver)
	}
	return c.is(OK, "", "%s", e.LogDriver)
}

func storageCheck(e *Engine) Check {
	c := a("engine", "storage")
	switch {
	case e.Storage == "":
		return c.is(Skip, "", "the engine does not tell")
	case slices.Contains(poor, e.Storage):
		return c.is(Warn, "overlay2 is the one that engines are made for", "the storage driver is %s", e.Storage)
	}
	return c.is(OK, "", "%s", e.Storage)
}

func poolCheck(e *Engine) Check {
	c := a("engine", "address pools")
	const hint = "add a pool as default-address-pools to the engine's daemon.json, or remove networks that nothing uses"
	switch {
	case e.Pools < 0:
		return c.is(Skip, "", "the engine does not tell")
	case e.Pools == 0:
		return c.is(Fail, hint, "no addresses are left for another network")
	case e.Pools < fewPools:
		return c.is(Warn, hint, "addresses are left for about %d more networks", e.Pools)
	}
	return c.is(OK, "", "addresses are left for about %d more networks", e.Pools)
}

func bootCheck(e *Engine) Check {
	c, skipped := a("engine", "starts at boot").unless(e.AtBoot.Asked)
	if skipped {
		return c
	}
	if !e.AtBoot.enabled() {
		return c.is(Warn, "systemctl enable "+e.unit(), "%s.service is %s", e.unit(), e.AtBoot.Enabled)
	}
	return c.is(OK, "", "%s.service is %s", e.unit(), e.AtBoot.Enabled)
}

func (b *Boot) enabled() bool {
	return b.Enabled == "enabled" || b.Enabled == "static" || b.Enabled == "alias"
}

// ComeBack are the restart policies whose containers start with the host, without gitring.
// Podman has a unit for that; the one of 5.4 starts those of "always" alone.
func (e *Engine) ComeBack() []string {
	switch {
	case !e.Podman:
		return []string{"always", "unless-stopped"}
	case !e.AtBoot.enabled():
		return nil
	case strings.Contains(e.AtBoot.Starts, "unless-stopped") || strings.Contains(e.AtBoot.Starts, "should-start-on-boot"):
		return []string{"always", "unless-stopped"}
	}
	return []string{"always"}
}

func rebootCheck(r *Reboot) Check {
	c, skipped := a("reboot", "services come back").unless(r.Asked)
	if skipped {
		return c
	}
	back := r.Ready - len(r.Stay)
	if r.Swarm {
		return c.is(OK, "", "the swarm starts all %d again, also without gitring, while its managers have quorum", r.Ready)
	}
	if len(r.Stay) > 0 {
		hint := "gitring starts them as soon as it runs; restart: unless-stopped has the engine do it"
		if r.Podman {
			hint = "gitring starts them as soon as it runs; restart: always has podman-restart.service do it, once enabled"
		}
		if len(r.Crashed) > 0 {
			lately := "gitring keeps the restarts of " + namesOnce(r.Crashed) + " until it has run for a while, because it crashed: nothing is to be done for it"
			if len(r.Crashed) < len(r.Stay) {
				lately += "; for the others: " + hint
			}
			hint = lately
		}
		return c.is(Warn, hint, "%d of %d instances come back if gitring does not: not %s", back, r.Ready, namesOnce(r.Stay))
	}
	return c.is(OK, "", "%d of %d instances come back if gitring does not", back, r.Ready)
}

// namesOnce are names in their order, each once.
func namesOnce(names []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", ")
}
