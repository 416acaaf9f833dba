package runtime

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gitring/gitring/ring"
)

// A SwarmKey is one field of ring.Spec, and what becomes of it on a swarm.
type SwarmKey struct {
	Field string // of ring.Spec, by the names of its JSON; "[]" are items
	// To are the fields of swarm.ServiceSpec that carry it, by their names in Go. Of a field
	// that gitring carries out by itself, or that says nothing to a swarm, Itself says how.
	To     []string
	Itself string
	// Says and Hint refuse it: it cannot be carried. Key is what the Compose file calls it.
	Key, Says, Hint string
}

const (
	inContainer = "TaskTemplate.ContainerSpec."
	inMounts    = inContainer + "Mounts[]."
	inVolume    = inMounts + "VolumeOptions."
	inHealth    = inContainer + "Healthcheck."
	inPorts     = "EndpointSpec.Ports[]."
	inPlacement = "TaskTemplate.Placement."
	inRestart   = "TaskTemplate.RestartPolicy."
)

func to(field string, paths ...string) SwarmKey { return SwarmKey{Field: field, To: paths} }

func itself(field, how string) SwarmKey { return SwarmKey{Field: field, Itself: how} }

// notCarried refuses a field that Swarm's tasks have no place for.
func notCarried(field, key, hint string) SwarmKey {
	return SwarmKey{Field: field, Key: key, Says: "Swarm cannot carry it", Hint: hint}
}

const (
	runElsewhere = "take it out, or run the app on one host with engine.kind docker"
	nodeFolder   = "use a volume, and pin the service to a node: gitring can neither make nor see a folder on another node"
)

// SwarmKeys has a row for each field of ring.Spec. Tests hold it to that struct, to
// swarm.ServiceSpec, and to what serviceSpec makes of each field.
func SwarmKeys() []SwarmKey {
	return []SwarmKey{
		itself("image", "resolved to a digest first"),
		itself("pull_policy", "for the resolving; each node pulls what it does not have"),
		to("command[]", inContainer+"Args[]"),
		to("entrypoint[]", inContainer+"Command[]"),
		itself("command_text", "refused, because a value of the host is in it"),
		itself("entrypoint_text", "refused, because a value of the host is in it"),
		to("environment", inContainer+"Env[]"),
		to("unset[]", inContainer+"Env[]"),
		to("user", inContainer+"User"),
		to("working_dir", inContainer+"Dir"),
		to("hostname", inContainer+"Hostname"),
		to("labels", inContainer+"Labels"),
		{Field: "ports[].host_ip", Key: "ports", Says: "Swarm publishes on every address of a node, not on one", Hint: "take the address out"},
		to("ports[].host_port", inPorts+"PublishedPort"),
		to("ports[].container", inPorts+"TargetPort"),
		to("ports[].protocol", inPorts+"Protocol"),
		to("ports[].mode", inPorts+"PublishMode"),
		itself("expose[]", "says nothing: every task of a network reaches every port of another"),
		to("mounts[].kind", inMounts+"Type"),
		to("mounts[].source", inMounts+"Source"),
		to("mounts[].target", inMounts+"Target"),
		itself("mounts[].file", "the file of a content, which comes as a config or secret"),
		to("mounts[].read_only", inMounts+"ReadOnly"),
		to("mounts[].no_copy", inVolume+"NoCopy"),
		notCarried("mounts[].subpath", "volumes", "mount the whole volume"),
		to("mounts[].size", inMounts+"TmpfsOptions.SizeBytes"),
		to("mounts[].mode", inMounts+"TmpfsOptions.Mode"),
		notCarried("mounts[].options", "tmpfs", "say its size and mode alone"),
		notCarried("mounts[].seed", "x-gitring.mounts", nodeFolder),
		itself("mounts[].create", "no folder is made on a node; a task whose folder is not there is rejected"),
		itself("mounts[].must_exist", "no folder is made on a node"),
		to("mounts[].propagation", inMounts+"BindOptions.Propagation"),
		notCarried("mounts[].selinux", "volumes", "take z or Z out, and label the folder by hand"),
		notCarried("mounts[].rest", "x-gitring.reload", runElsewhere),
		itself("mounts[].secret", "a secret in place of a config"),
		to("networks[].network", "TaskTemplate.Networks[].Target"),
		to("networks[].aliases[]", "TaskTemplate.Networks[].Aliases[]"),
		notCarried("networks[].unnamed", "x-gitring.route.internal", runElsewhere),
		notCarried("networks[].ipv4", "networks", "take the address out, and use the name of the service"),
		notCarried("networks[].ipv6", "networks", "take the address out, and use the name of the service"),
		notCarried("networks[].link_local[]", "networks", "take link_local_ips out"),
		to("networks[].driver_opts", "TaskTemplate.Networks[].DriverOpts"),
		notCarried("networks[].mac_address", "networks", "take mac_address out"),
		itself("networks[].priority", "says nothing: Swarm joins them in an order of its own"),
		notCarried("no_network", "network_mode", runElsewhere),
		to("healthcheck.test[]", inHealth+"Test[]"),
		to("healthcheck.interval", inHealth+"Interval", "UpdateConfig.Monitor"),
		to("healthcheck.timeout", inHealth+"Timeout", "UpdateConfig.Monitor"),
		to("healthcheck.start_period", inHealth+"StartPeriod", "UpdateConfig.Monitor"),
		to("healthcheck.retries", inHealth+"Retries", "UpdateConfig.Monitor"),
		notCarried("healthcheck.start_interval", "healthcheck.start_interval", "take it out: the engines of a swarm may be of several ages"),
		to("stop_signal", inContainer+"StopSignal"),
		to("stop_grace", inContainer+"StopGracePeriod"),
		to("extra_hosts[]", inContainer+"Hosts[]"),
		to("init", inContainer+"Init"),
		to("logging.driver", "TaskTemplate.LogDriver.Name"),
		to("logging.options", "TaskTemplate.LogDriver.Options"),
		notCarried("container_name", "container_name", "take it out: the service is reached by its own name"),
		to("platform", inPlacement+"Platforms[].Architecture", inPlacement+"Platforms[].OS"),
		notCarried("domainname", "domainname", "write the whole name as hostname"),
		notCarried("mac_address", "mac_address", runElsewhere),
		notCarried("annotations", "annotations", "take them out"),
		to("tty", inContainer+"TTY"),
		to("stdin_open", inContainer+"OpenStdin"),
		to("read_only", inContainer+"ReadOnly"),
		to("dns[]", inContainer+"DNSConfig.Nameservers[]"),
		to("dns_search[]", inContainer+"DNSConfig.Search[]"),
		to("dns_opt[]", inContainer+"DNSConfig.Options[]"),
		to("group_add[]", inContainer+"Groups[]"),
		to("sysctls", inContainer+"Sysctls"),
		to("ulimits[].name", inContainer+"Ulimits[].Name"),
		to("ulimits[].soft", inContainer+"Ulimits[].Soft"),
		to("ulimits[].hard", inContainer+"Ulimits[].Hard"),
		notCarried("shm_size", "shm_size", "mount a tmpfs of that size at /dev/shm"),
		notCarried("storage_opt", "storage_opt", "take it out"),
		to("resources.nano_cpus", "TaskTemplate.Resources.Limits.NanoCPUs"),
		notCarried("resources.cpu_shares", "cpu_shares", "use deploy.resources.limits.cpus"),
		notCarried("resources.cpu_period", "cpu_period", "use deploy.resources.limits.cpus"),
		notCarried("resources.cpu_quota", "cpu_quota", "use deploy.resources.limits.cpus"),
		notCarried("resources.cpu_rt_period", "cpu_rt_period", "take it out"),
		notCarried("resources.cpu_rt_runtime", "cpu_rt_runtime", "take it out"),
		notCarried("resources.cpuset", "cpuset", "use deploy.resources.limits.cpus"),
		to("resources.memory", "TaskTemplate.Resources.Limits.MemoryBytes"),
		to("resources.memory_reservation", "TaskTemplate.Resources.Reservations.MemoryBytes"),
		notCarried("resources.memory_swap", "memswap_limit", "take it out"),
		notCarried("resources.memory_swappiness", "mem_swappiness", "take it out"),
		to("resources.pids_limit", "TaskTemplate.Resources.Limits.Pids"),
		notCarried("resources.oom_kill_disable", "oom_kill_disable", "take it out"),
		notCarried("resources.oom_score_adj", "oom_score_adj", "take it out"),
		notCarried("resources.blkio", "blkio_config", "take it out"),
		notCarried("post_start[]", "post_start", "run it as the container's own command"),
		notCarried("pre_stop[]", "pre_stop", "let the program do it on its stop signal"),
		notCarried("privileged", "privileged", runElsewhere),
		to("cap_add[]", inContainer+"CapabilityAdd[]"),
		to("cap_drop[]", inContainer+"CapabilityDrop[]"),
		notCarried("security_opt[]", "security_opt", "set it for the engines of the nodes, in their daemon.json"),
		notCarried("devices[]", "devices", runElsewhere),
		notCarried("device_cgroup_rules[]", "device_cgroup_rules", runElsewhere),
		notCarried("device_requests[]", "gpus", runElsewhere),
		notCarried("runtime", "runtime", "set it for the engines of the nodes, in their daemon.json"),
		notCarried("cgroup_parent", "cgroup_parent", "take it out"),
		notCarried("cgroup", "cgroup", "take it out"),
		notCarried("pid", "pid", runElsewhere),
		notCarried("ipc", "ipc", runElsewhere),
		notCarried("uts", "uts", runElsewhere),
		notCarried("userns_mode", "userns_mode", runElsewhere),
		notCarried("network_mode", "network_mode", "join an overlay network instead"),
		notCarried("network_of", "network_mode", "let both services join one network"),
		notCarried("pid_of", "pid", runElsewhere),
		notCarried("ipc_of", "ipc", runElsewhere),
		notCarried("volumes_from[]", "volumes_from", "name the volumes in both services"),
		itself("follows[]", "a new version of the one is a new version of the other"),
		itself("mark", "a new version"),
		itself("cluster.global", "the mode of the service"),
		to("cluster.constraints[]", inPlacement+"Constraints[]"),
		to("cluster.spread[]", inPlacement+"Preferences[].Spread.SpreadDescriptor"),
		to("cluster.per_node", inPlacement+"MaxReplicas"),
		to("cluster.endpoint", "EndpointSpec.Mode"),
		to("cluster.reserved_cpus", "TaskTemplate.Resources.Reservations.NanoCPUs"),
		to("cluster.labels", "Labels"),
		to("cluster.patience", inHealth+"StartPeriod"),
		to("cluster.restart.policy", inRestart+"Condition"),
		itself("cluster.restart.engine", "the word of the file for the policy"),
		to("cluster.restart.max_retries", inRestart+"MaxAttempts"),
		to("cluster.restart.delay", inRestart+"Delay"),
		to("cluster.restart.window", inRestart+"Window"),
	}
}

// SwarmUnused are the fields of swarm.ServiceSpec that no field of ring.Spec comes to, and why.
func SwarmUnused() map[string]string {
	const never, other, older = "gitring never sends it", "is set from the app, the action or the service", "needs a newer engine than others of the swarm may be"
	return map[string]string{
		"Name":                                other,
		"Mode.Replicated.Replicas":            other,
		"Mode.Global":                         other,
		"Mode.ReplicatedJob":                  other,
		"Mode.GlobalJob":                      never,
		"UpdateConfig":                        other,
		"RollbackConfig":                      "gitring sends the last good spec, and never goes back by Swarm's own",
		"Networks":                            "is the old place of TaskTemplate.Networks",
		"EndpointSpec.Ports[].Name":           never,
		"TaskTemplate.PluginSpec":             never,
		"TaskTemplate.NetworkAttachmentSpec":  never,
		"TaskTemplate.Runtime":                other,
		"TaskTemplate.ForceUpdate":            "has the tasks of a version made anew, where a person wants a failed one tried again",
		"TaskTemplate.Resources.Reservations": never,
		inContainer + "Image":                 other,
		inContainer + "Privileges":            older,
		inContainer + "Secrets":               other,
		inContainer + "Configs":               other,
		inContainer + "Isolation":             other,
		inContainer + "OomScoreAdj":           older,
		inMounts + "Consistency":              never,
		inMounts + "BindOptions":              older,
		inMounts + "ImageOptions":             older,
		inMounts + "ClusterOptions":           never,
		inMounts + "TmpfsOptions.Options":     older,
		inVolume + "Labels":                   other,
		inVolume + "DriverConfig":             other,
		inVolume + "Subpath":                  older,
		inHealth + "StartInterval":            older,
	}
}

// NotBySwarm refuses what of an app a swarm cannot carry, by name and place.
func NotBySwarm(app *ring.App) (all []*ring.Refusal) {
	for i := range app.Services {
		if app.Services[i].FrontOf == "" { // else the service that asks for it is refused
			all = append(all, serviceNotBySwarm(app, &app.Services[i])...)
		}
	}
	refuse := func(what, key string, labels map[string]string) {
		if name := swarmsOwn(labels); name != "" {
			at := app.Place(what + "." + key + ".labels")
			all = append(all, &ring.Refusal{
				Code: ring.Unsupported, Commit: app.Commit, App: app.Name, File: at.File, Line: at.Line,
				Says: what + "." + key + ".labels: " + name + stackSays, Hint: stackHint,
			})
		}
	}
	for _, n := range app.Networks {
		refuse("networks", n.Key, n.Labels)
	}
	for _, v := range app.Volumes {
		refuse("volumes", v.Key, v.Labels)
	}
	return append(all, portsNotBySwarm(app)...)
}

const pushIt = "push it to a registry, and take pull_policy: never out"

const (
	stackSays = " is a label that the swarm has for itself"
	stackHint = "take it out"
)

// swarmsOwn is the first label by which Docker knows what is whose on a swarm; "" for none.
func swarmsOwn(labels map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if l := strings.ToLower(name); strings.HasPrefix(l, "com.docker.stack.") || strings.HasPrefix(l, "com.docker.swarm.") {
			return name
		}
	}
	return ""
}

// refuser adds refusals of a service, each at its key's place.
func refuser(app *ring.App, s *ring.Service, all *[]*ring.Refusal) func(code ring.Code, key, says, hint string) {
	return func(code ring.Code, key, says, hint string) {
		at := s.Place(key)
		*all = append(*all, &ring.Refusal{
			Code: code, Commit: app.Commit, App: app.Name, File: at.File, Line: at.Line,
			Says: "services." + s.Name + says, Hint: hint,
		})
	}
}

// mountRefusals are what the mounts of a service alone are refused for, its image's volumes among
// them where the image is known.
func mountRefusals(app *ring.App, s *ring.Service) (all []*ring.Refusal) {
	mountsNotBySwarm(app, s, refuser(app, s, &all))
	return all
}

func serviceNotBySwarm(app *ring.App, s *ring.Service) (all []*ring.Refusal) {
	refuse := refuser(app, s, &all)
	for _, k := range SwarmKeys() {
		if k.Says != "" && asks(reflect.ValueOf(&s.Spec).Elem(), k.Field) {
			refuse(ring.Unsupported, k.Key, "."+k.Key+": "+k.Says, k.Hint)
		}
	}
	if s.Spec.PullPolicy == neverPull || imageID.MatchString(s.Spec.Image) {
		refuse(ring.Unsupported, "image", ".image: each node pulls by digest what it does not have, so a registry has to have it", pushIt)
	}
	if len(s.Spec.Entrypoint) == 1 && s.Spec.Entrypoint[0] == "" {
		refuse(ring.Unsupported, "entrypoint", ".entrypoint: Swarm cannot take the image's own away", "write what to run")
	}
	for _, h := range s.Spec.ExtraHosts {
		if !addressOf(h) {
			refuse(ring.Unsupported, "extra_hosts", ".extra_hosts: "+h+" has no address, and no node is the host", "write name:address")
		}
	}
	if want := parsePlatform(s.Spec.Platform); want.variant != "" {
		refuse(ring.Unsupported, "platform", ".platform: Swarm places by system and architecture, without "+want.variant, "write "+want.os+"/"+want.arch)
	}
	serviceOnly(s, refuse)
	mountsNotBySwarm(app, s, refuse)
	if where := sealedWhere(&s.Spec); where != "" {
		refuse(ring.Unsupported, where, "."+where+" has a value of the host: every manager could read it in the service's spec",
			"give it as a file: a secret, or an env file that the program reads")
	}
	return all
}

// serviceOnly refuses what stands beside the spec.
func serviceOnly(s *ring.Service, refuse func(code ring.Code, key, says, hint string)) {
	if s.Kind.Ends() && s.Spec.OnEachNode() {
		refuse(ring.Unsupported, "deploy.mode", fmt.Sprintf(".deploy.mode: global: it is a %s, whose run is one task", s.Kind), "take it out, or write one service for each node")
	}
	if s.Kind.Ends() && len(s.Spec.Ports) > 0 {
		refuse(ring.Unsupported, "ports", fmt.Sprintf(".ports: it is a %s, and on a swarm a run publishes none", s.Kind), "take them out")
	}
	if s.Route != nil {
		refuse(ring.Unsupported, "x-gitring.route", " has a front, and a manager cannot reach the tasks of an overlay network", "publish the port by the swarm: x-gitring: {publish: direct}")
	}
	if s.Reload != nil {
		refuse(ring.Unsupported, "x-gitring.reload", ".x-gitring.reload: no file of another node can be changed in place", "take it out: new files are a new version")
	}
	for key, labels := range map[string]map[string]string{"labels": s.Spec.Labels, "deploy.labels": deployLabels(s)} {
		if name := swarmsOwn(labels); name != "" {
			refuse(ring.Unsupported, key, "."+key+": "+name+stackSays, stackHint)
		}
	}
	switch s.Rollout.Strategy {
	case ring.BlueGreen, ring.Canary:
		refuse(ring.Unsupported, "x-gitring.rollout.strategy", ".x-gitring.rollout.strategy: "+s.Rollout.Strategy+" needs a front", "write rolling")
	}
	for _, c := range s.Checks {
		if !c.Docker {
			refuse(ring.Unsupported, "x-gitring.checks", ".x-gitring.checks: "+c.Name+" is asked by gitring, and a manager cannot reach the addresses of an overlay network",
				"write a healthcheck, which each node asks")
		}
	}
}

func deployLabels(s *ring.Service) map[string]string {
	if s.Spec.Cluster == nil {
		return nil
	}
	return s.Spec.Cluster.Labels
}

// longestStop leaves the node time to say that a task ended: SwarmKit starts the next one a minute
// after it told the old one to stop, ended or not.
const longestStop = 50 * time.Second

// mountsNotBySwarm refuses folders that only one host has, and volumes that a task which moves
// would leave behind, or that two tasks would write.
func mountsNotBySwarm(app *ring.App, s *ring.Service, refuse func(code ring.Code, key, says, hint string)) {
	slow := s.Grace() > longestStop && !s.Share && !s.Kind.Ends() // no task comes after that of a run
	for _, m := range app.Mounts(s) {
		key := "volumes." + m.Target
		switch m.Kind {
		case ring.MountData, ring.MountSeed, ring.MountLive:
			refuse(ring.Unsupported, key, fmt.Sprintf(" mounts a data folder at %s, which every node would have for itself", m.Target), nodeFolder)
			continue
		}
		if !m.Outlives() {
			continue
		}
		if slow {
			slow = false // once is enough
			refuse(ring.Unsupported, "stop_grace_period", fmt.Sprintf(".stop_grace_period: %s: it writes to %s %s, and Swarm starts the next task after a minute, ended or not", s.Grace(), m.Kind, m.Source),
				"stop_grace_period: 50s, or less")
		}
		switch {
		case s.Spec.PinnedTo() == "" && s.Spec.OnEachNode():
			refuse(ring.VolumeNotPinned, key, fmt.Sprintf(" writes to %s %s at %s and runs on each node, each of which would have one of its own", m.Kind, m.Source, m.Target),
				"mount it read-only, or pin it to one node: deploy.placement.constraints: [\"node.hostname == <name>\"]")
		case s.Spec.PinnedTo() == "":
			refuse(ring.VolumeNotPinned, key, fmt.Sprintf(" writes to %s %s at %s and is pinned to no node: a task that moves would begin with an empty one", m.Kind, m.Source, m.Target),
				"deploy.placement.constraints: [\"node.hostname == <name>\"]")
		case s.Replicas > 1:
			refuse(ring.VolumeNotPinned, key, fmt.Sprintf(" writes to %s %s at %s with %d replicas, which would write at the same time", m.Kind, m.Source, m.Target, s.Replicas),
				"deploy.replicas: 1")
		}
	}
}

// portsNotBySwarm refuses a port that two services of the app publish: the swarm has each once.
func portsNotBySwarm(app *ring.App) (all []*ring.Refusal) {
	taken := map[string]string{}
	for i := range app.Services {
		s := &app.Services[i]
		for _, p := range s.Spec.Ports {
			if p.HostPort == "" {
				continue
			}
			port := ring.Port{HostPort: p.HostPort, Protocol: p.Protocol}.Published()
			other, is := taken[port]
			if taken[port] = s.Name; !is || other == s.Name {
				continue
			}
			at := s.Place("ports")
			all = append(all, &ring.Refusal{
				Code: ring.Conflict, Commit: app.Commit, App: app.Name, File: at.File, Line: at.Line,
				Says: fmt.Sprintf("services.%s publishes port %s, which %s publishes on the swarm", s.Name, port, other), Hint: "publish it once",
			})
		}
	}
	return all
}

// sealedWhere is the key under which a spec holds a value of the host; "" for none.
func sealedWhere(s *ring.Spec) string {
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		if ring.HasSealed(s.Environment[name]) {
			return "environment." + name
		}
	}
	return sealedBelow(reflect.ValueOf(s).Elem(), "")
}

func sealedBelow(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.String:
		if ring.HasSealed(v.String()) {
			return path
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return sealedBelow(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if at := sealedBelow(v.Index(i), path); at != "" {
				return at
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if at := sealedBelow(it.Value(), path); at != "" {
				return at
			}
			if at := sealedBelow(it.Key(), path); at != "" {
				return at
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			at := sealedBelow(v.Field(i), strings.TrimPrefix(path+"."+jsonName(v.Type().Field(i)), "."))
			if at != "" {
				return at
			}
		}
	}
	return ""
}

// asks reports whether a value has something else than zero at a path of its JSON.
func asks(v reflect.Value, path string) bool {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return false
		}
		v = v.Elem()
	}
	if path == "" {
		return !v.IsZero()
	}
	if rest, items := strings.CutPrefix(path, "[]"); items {
		rest = strings.TrimPrefix(rest, ".")
		return slices.ContainsFunc(itemsOf(v), func(it reflect.Value) bool { return rest == "" || asks(it, rest) })
	}
	name, rest, _ := strings.Cut(path, ".")
	name, list, isList := strings.Cut(name, "[]")
	if isList {
		rest = strings.TrimSuffix("[]"+list+"."+rest, ".")
	}
	for i := range v.NumField() {
		if jsonName(v.Type().Field(i)) == name {
			return asks(v.Field(i), rest)
		}
	}
	return false
}

func itemsOf(v reflect.Value) (out []reflect.Value) {
	for i := range v.Len() {
		out = append(out, v.Index(i))
	}
	return out
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
