package manifest

import (
	"math"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// swarmCarries are keys that mean nothing on one engine, and that a swarm carries out.
var swarmCarries = []string{"services.*.deploy.labels", "services.*.deploy.endpoint_mode", "services.*.deploy.placement"}

// onSwarm reports whether the plan is for a swarm.
func (k *keyCheck) onSwarm() bool { return k.read != nil && k.read.settings.Swarm }

// noteOff is a note on what one engine does not do, and a swarm does.
func (b *builderOf) noteOff(says string, args ...any) {
	if !b.settings.Swarm {
		b.note(says, args...)
	}
}

// inClusterSpec are keys of which a value of the host would stand as it is in what every manager
// can read: labels of services, and options of drivers.
func inClusterSpec(chain []string) bool {
	switch chain[0] {
	case "services":
		return len(chain) > 3 && (chain[2] == "deploy" && chain[3] == "labels" || chain[2] == "networks" && slices.Contains(chain, "driver_opts"))
	case "volumes", "networks":
		return len(chain) > 2 && (chain[2] == "driver_opts" || chain[2] == "labels" || chain[2] == "ipam")
	}
	return false
}

// onSwarm says what a swarm is told of a service besides what its tasks run. What it cannot
// carry is refused where all of the service is known: runtime.NotBySwarm.
func (b *builderOf) onSwarm(c types.ServiceConfig, s *ring.Service) {
	to := &ring.ClusterSpec{Restart: s.Restart, Patience: s.Rollout.StartTimeout}
	if d := c.Deploy; d != nil {
		if to.Global = d.Mode == "global"; to.Global && d.Replicas != nil {
			b.faults.add(ring.BadValue, b.place("services", c.Name, "deploy", "replicas"), "take replicas out, or say mode: replicated",
				"services.%s.deploy.replicas: mode: global runs one task on each node", c.Name)
		}
		to.Endpoint = unless("vip", d.EndpointMode)
		to.Labels = labels(d.Labels)
		to.Constraints = filled(d.Placement.Constraints)
		for _, p := range d.Placement.Preferences {
			to.Spread = append(to.Spread, p.Spread)
		}
		to.PerNode = int(min(d.Placement.MaxReplicas, math.MaxInt32))
		if r := d.Resources.Reservations; r != nil {
			to.ReservedCPUs = nanos(r.NanoCPUs.Value())
			if len(r.GenericResources) > 0 {
				b.faults.add(ring.Unsupported, b.place("services", c.Name, "deploy", "resources", "reservations", "generic_resources"), "use deploy.placement.constraints with labels of nodes",
					"services.%s.deploy.resources.reservations.generic_resources is not carried out by this release", c.Name)
			}
		}
	}
	s.Spec.Cluster = to
	s.Spec.Mounts = slices.Clone(s.Spec.Mounts)
	for i := range s.Spec.Mounts {
		m := &s.Spec.Mounts[i]
		sealed := func(f ring.ContentFile) bool { return f.Sealed }
		m.Secret = m.Kind == ring.MountContent && slices.ContainsFunc(b.contents[m.Source].Files, sealed)
	}
	b.filesOfSwarm(s)
	b.checkOfNodes(s)
	if s.Spec.Healthcheck == nil && !s.Kind.Ends() {
		b.note("%s: without a healthcheck, here or of the image, Swarm ends the old task as soon as the new process runs", s.Name)
	}
}

// What a swarm keeps of a service's files: each a config or secret, in the log of every manager.
const (
	mostSwarmFiles   = 100
	largestSwarmFile = 500 << 10
)

// filesOfSwarm refuses files of the commit that a swarm does not keep.
func (b *builderOf) filesOfSwarm(s *ring.Service) {
	const hint = "put them into the image, or into a volume"
	count := 0
	for _, m := range s.Spec.Mounts {
		if m.Kind != ring.MountContent {
			continue
		}
		at := b.mountPlace(s.Name, m.Target)
		for _, f := range b.contents[m.Source].Files {
			if m.File != "" && f.Path != m.File {
				continue
			}
			count++
			body, err := f.Read()
			if err != nil {
				continue // whoever needs it says so
			}
			if len(body) > largestSwarmFile {
				b.faults.add(ring.TooLarge, at, hint, "services.%s: %s at %s is larger than 500 KiB, which is the most that a swarm keeps of a file", s.Name, f.Path, m.Target)
			}
		}
		if count > mostSwarmFiles {
			b.faults.add(ring.TooLarge, at, hint, "services.%s mounts more than %d files of the commit, which is the most that a swarm keeps for a service", s.Name, mostSwarmFiles)
			return
		}
	}
}

// checkOfNodes makes a command that gitring would run the service's HEALTHCHECK: each node runs
// that by itself. A second check, or one of another kind, stays, and is refused.
func (b *builderOf) checkOfNodes(s *ring.Service) {
	if s.Spec.Healthcheck != nil || len(s.Checks) != 1 || len(s.Checks[0].Exec) == 0 {
		return
	}
	check := s.Checks[0]
	s.Spec.Healthcheck = &ring.Healthcheck{
		Test: append([]string{"CMD"}, check.Exec...), Interval: check.Interval, Timeout: check.Timeout, Retries: check.Failures,
	}
	s.Checks = []ring.Check{engineCheck()}
	b.note("%s: check %s is its healthcheck, which each node asks", s.Name, check.Name)
}
