package policy

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// stackLabel is by which Docker's own commands know the services of an app on a swarm.
const stackLabel = "com.docker.stack.namespace"

// The service of a swarm, and its tasks' container. What has a rule for one engine has the same
// one here: only where the field stands differs.
var swarmRules = merged(map[string]rule{
	"Service":                              {name: "hardened.swarm", key: "deploy", grade: limit, check: notHardened, risk: "cannot be judged under profile hardened by this release", lets: "profiles `compose` and `owner`"},
	"Service.Name":                         pass(""),
	"Service.Labels":                       withCheck(labelled("deploy.labels"), swarmLabels),
	"Service.Mode.Replicated.Replicas":     pass("deploy.replicas"),
	"Service.Mode.Global":                  pass("deploy.mode"),
	"Service.Mode.GlobalJob":               ours(),
	"Service.RollbackConfig":               ours(),
	"Service.Networks":                     ours(),
	"Service.UpdateConfig.Parallelism":     pass("deploy.update_config"),
	"Service.UpdateConfig.Delay":           pass("deploy.update_config"),
	"Service.UpdateConfig.FailureAction":   pass("deploy.update_config"),
	"Service.UpdateConfig.Monitor":         pass("deploy.update_config"),
	"Service.UpdateConfig.MaxFailureRatio": pass("deploy.update_config"),
	"Service.UpdateConfig.Order":           pass("deploy.update_config"),
	"Service.EndpointSpec.Mode":            pass("deploy.endpoint_mode"),

	"Service.Mode.ReplicatedJob.MaxConcurrent":    pass("x-gitring.kind"),
	"Service.Mode.ReplicatedJob.TotalCompletions": pass("x-gitring.kind"),
	"Service.EndpointSpec.Ports[].Name":           ours(),
	"Service.EndpointSpec.Ports[].Protocol":       pass("ports"),
	"Service.EndpointSpec.Ports[].TargetPort":     pass("ports"),
	"Service.EndpointSpec.Ports[].PublishMode":    pass("ports"),
	"Service.EndpointSpec.Ports[].PublishedPort":  withCheck(hostRules["HostConfig.PortBindings[].HostPort"], publishedPort),

	inTask + "PluginSpec":                                      ours(),
	inTask + "NetworkAttachmentSpec":                           ours(),
	inTask + "Resources.Limits.NanoCPUs":                       pass("deploy.resources.limits"),
	inTask + "Resources.Limits.MemoryBytes":                    pass("deploy.resources.limits"),
	inTask + "Resources.Limits.Pids":                           pass("deploy.resources.limits"),
	inTask + "Resources.Reservations.NanoCPUs":                 pass("deploy.resources.reservations"),
	inTask + "Resources.Reservations.MemoryBytes":              pass("deploy.resources.reservations"),
	inTask + "Resources.Reservations.GenericResources":         {name: "devices", key: "deploy.resources.reservations.generic_resources", grade: escape, risk: "gives the container a device of the node"},
	inTask + "RestartPolicy.Condition":                         pass("deploy.restart_policy"),
	inTask + "RestartPolicy.Delay":                             pass("deploy.restart_policy"),
	inTask + "RestartPolicy.MaxAttempts":                       pass("deploy.restart_policy"),
	inTask + "RestartPolicy.Window":                            pass("deploy.restart_policy"),
	inTask + "Placement.Constraints":                           pass("deploy.placement"),
	inTask + "Placement.Preferences[].Spread.SpreadDescriptor": pass("deploy.placement"),
	inTask + "Placement.MaxReplicas":                           pass("deploy.placement"),
	inTask + "Placement.Platforms[].Architecture":              pass("platform"),
	inTask + "Placement.Platforms[].OS":                        pass("platform"),
	inTask + "Networks[].Target":                               withCheck(joined, attached),
	inTask + "Networks[].Aliases":                              pass("networks"),
	inTask + "Networks[].DriverOpts":                           endpointRules["Endpoint.DriverOpts"],
	inTask + "LogDriver.Name":                                  hostRules["HostConfig.LogConfig.Type"],
	inTask + "LogDriver.Options":                               pass("logging.options"),
	inTask + "ForceUpdate":                                     pass(""),
	inTask + "Runtime":                                         pass(""),
	inTaskContainer + "Image":                                  frontsRule,
	inTaskContainer + "Labels":                                 withCheck(labelled("labels"), swarmLabels),
	inTaskContainer + "Command":                                programRule("entrypoint", firstWord),
	inTaskContainer + "Args":                                   programRule("command", firstWord),
	inTaskContainer + "Hostname":                               pass("hostname"),
	inTaskContainer + "Env":                                    configRules["Config.Env"],
	inTaskContainer + "Dir":                                    workingDirRule,
	inTaskContainer + "User":                                   userRule,
	inTaskContainer + "Groups":                                 hostRules["HostConfig.GroupAdd"],
	inTaskContainer + "Privileges":                             ours(),
	inTaskContainer + "Init":                                   pass("init"),
	inTaskContainer + "StopSignal":                             pass("stop_signal"),
	inTaskContainer + "TTY":                                    pass("tty"),
	inTaskContainer + "OpenStdin":                              pass("stdin_open"),
	inTaskContainer + "ReadOnly":                               pass("read_only"),
	inTaskContainer + "StopGracePeriod":                        withCheck(configRules["Config.StopTimeout"], graceOf),
	inTaskContainer + "Hosts":                                  withCheck(hostRules["HostConfig.ExtraHosts"], hostsFile),
	inTaskContainer + "DNSConfig.Nameservers":                  hostRules["HostConfig.DNS"],
	inTaskContainer + "DNSConfig.Search":                       pass("dns_search"),
	inTaskContainer + "DNSConfig.Options":                      pass("dns_opt"),
	inTaskContainer + "Secrets[].SecretID":                     pass("secrets"),
	inTaskContainer + "Secrets[].SecretName":                   ownFile("secrets"),
	inTaskContainer + "Secrets[].File.Name":                    withCheck(withKey(targetRule, "secrets"), fileTarget),
	inTaskContainer + "Secrets[].File.UID":                     pass("secrets"),
	inTaskContainer + "Secrets[].File.GID":                     pass("secrets"),
	inTaskContainer + "Secrets[].File.Mode":                    pass("secrets"),
	inTaskContainer + "Configs[].ConfigID":                     pass("configs"),
	inTaskContainer + "Configs[].ConfigName":                   ownFile("configs"),
	inTaskContainer + "Configs[].Runtime":                      ours(),
	inTaskContainer + "Configs[].File.Name":                    withCheck(withKey(targetRule, "configs"), fileTarget),
	inTaskContainer + "Configs[].File.UID":                     pass("configs"),
	inTaskContainer + "Configs[].File.GID":                     pass("configs"),
	inTaskContainer + "Configs[].File.Mode":                    pass("configs"),
	inTaskContainer + "Isolation":                              pass(""),
	inTaskContainer + "Sysctls":                                hostRules["HostConfig.Sysctls"],
	inTaskContainer + "CapabilityAdd":                          hostRules["HostConfig.CapAdd"],
	inTaskContainer + "CapabilityDrop":                         pass("cap_drop"),
	inTaskContainer + "OomScoreAdj":                            ours(),
	strings.TrimSuffix(inTaskContainer, "."):                   withCheck(hostRules["HostConfig"], tmpfsTogether),
}, swarmMoved("HostConfig.Mounts[]", inTaskContainer+"Mounts[]", mountRules),
	swarmMoved("Config.Healthcheck", inTaskContainer+"Healthcheck", configRules),
	swarmMoved("HostConfig.Ulimits[]", inTaskContainer+"Ulimits[]", resourceRules))

const (
	inTask          = "Service.TaskTemplate."
	inTaskContainer = inTask + "ContainerSpec."
)

// swarmMoved are the rules of what stands below one path, for another path.
func swarmMoved(from, to string, rules map[string]rule) map[string]rule {
	out := map[string]rule{}
	for path, r := range rules {
		if rest, below := strings.CutPrefix(path, from); below {
			out[to+rest] = r
		}
	}
	return out
}

// notHardened finds every service under a profile that asks for what Swarm cannot say.
func notHardened(l *look) {
	if l.r.Profile == Hardened {
		l.find(finding{value: l.req.Service, grade: forbidden})
	}
}

// swarmLabels judges labels as on one engine. That of the stack is ours, and says whose the service is.
func swarmLabels(l *look) {
	all := l.dict()
	if all[stackLabel] == l.req.App {
		delete(all, stackLabel)
	}
	at := *l
	at.v = reflect.ValueOf(maps.Clone(all))
	labels(&at)
	l.out = at.out
}

// networkLabels judges those of a network, which on a swarm is of a stack, too.
func networkLabels(l *look) {
	if l.fieldText("Scope") == "swarm" {
		swarmLabels(l)
		return
	}
	labels(l)
}

// publishedPort judges a port of the swarm as one of a host: it is one of each node.
func publishedPort(l *look) {
	if n := l.v.Uint(); n != 0 {
		l.hostPort(strconv.FormatUint(n, 10), l.fieldText("Protocol"))
	}
}

// enginesNetworks are networks of the engine's own. A task on one of them meets every other app.
var enginesNetworks = []string{"bridge", "ingress", "docker_gwbridge", "none"}

// attached judges the name of a network that tasks join.
func attached(l *look) {
	switch name := l.text(); {
	case name == "host" && slices.Contains(l.r.lists().Network, "host"):
	case name == "host":
		l.find(finding{value: name, at: name})
	case slices.Contains(enginesNetworks, name), strings.Contains(name, ":"):
		l.find(finding{value: name, at: name, grade: forbidden, risk: "is a network of the engine's own, where every app meets every other"})
	}
}

// notOfASwarm finds a scope of a network that gitring never sends: that of a swarm's is the only one.
func notOfASwarm(l *look) {
	if s := l.text(); s != "swarm" {
		l.find(finding{value: s})
	}
}

// graceOf judges a grace in nanoseconds by a bound in seconds.
func graceOf(l *look) {
	const second = 1e9
	if l.v.Int() > int64(l.r.lists().StopGrace)*second {
		l.find(finding{value: strconv.FormatInt(l.v.Int()/second, 10)})
	}
}

// hostsFile judges lines of a hosts file: an address, and its names.
func hostsFile(l *look) {
	for _, line := range l.words() {
		ip, names, _ := strings.Cut(line, " ")
		if linkAddress(ip) {
			l.find(finding{value: line, at: names})
		}
	}
}

// ownFile is of the name of a config or secret, which is one of the app's own.
func ownFile(key string) rule {
	return rule{name: "files.own", key: key, grade: forbidden, check: fileName, risk: "is a file of another app on the swarm", lets: "those of the app"}
}

func fileName(l *look) {
	if s := l.text(); !strings.HasPrefix(s, l.req.App+"_") {
		l.find(finding{value: s})
	}
}

func fileTarget(l *look) {
	target := l.text()
	if strings.HasPrefix(target, "/") {
		l.targetAt(target, "")
		return
	}
	l.targetAt("/run/secrets/"+target, "") // where the engine puts a secret,
	l.targetAt("/"+target, "")             // and a config
}
