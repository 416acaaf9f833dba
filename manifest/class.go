package manifest

import "github.com/gitring/gitring/ring"

// class is what gitring does with a key that Compose knows.
type class struct {
	// code is "" for a key that is carried out.
	code ring.Code
	// says ends the sentence about the key: the risk for PolicyDenied, what is
	// not done for Unsupported. hint says what to do instead.
	says, hint string
	// value decides by the value, for a key of which only some are carried out.
	// nil gives code for every value that asks for something.
	value func(k *keyCheck)
}

var carried = class{}

// later is a key that an instance's spec has no field for yet.
var later = class{code: ring.Unsupported, says: "is not carried out by this release", hint: "remove it until a release carries it out"}

func unsupported(says, hint string) class {
	return class{code: ring.Unsupported, says: says, hint: hint}
}

func denied(risk string) class {
	return class{code: ring.PolicyDenied, says: risk, hint: "remove it; no policy of this release grants it"}
}

func by(check func(k *keyCheck)) class { return class{value: check} }

// classes holds every key of Compose's schema that can be met, down to the
// first that is not carried out. A test walks the schema of compose-go and
// fails for a key that is not here, so that an update cannot add one that is
// ignored in silence.
var classes = map[string]class{
	"version":  carried, // obsolete and without meaning, noted
	"name":     carried,
	"services": carried,
	"networks": carried,
	"volumes":  carried,
	"include":  unsupported("would read further files, which this release does not", "list the files under files: in gitring.yaml, or merge them"),
	"models":   later,
	"secrets":  unsupported("is not carried out by this release", "mount a file, or keep the value out until a release carries secrets out"),
	"configs":  unsupported("is not carried out by this release", "mount the file with volumes: ./file:/path:ro"),
	"jobs":     unsupported("is not carried out by this release", "declare a service with x-gitring: {kind: job}"),

	// a service, by alphabet
	"services.*.annotations":         later,
	"services.*.attach":              later,
	"services.*.blkio_config":        later,
	"services.*.build":               unsupported("would build an image on the host, which gitring does not do", "build it in CI, push it, and name it with image:"),
	"services.*.cap_add":             denied("gives the container more of the kernel than Docker's defaults"),
	"services.*.cap_drop":            later,
	"services.*.cgroup":              by(cgroupMode),
	"services.*.cgroup_parent":       denied("puts the container into a control group of the host"),
	"services.*.command":             by(clears),
	"services.*.configs":             unsupported("is not carried out by this release", "mount the file with volumes: ./file:/path:ro"),
	"services.*.container_name":      unsupported("is not carried out by this release: gitring names containers by app, service and slot", "remove it; other services reach this one by its service name, or by an alias of its network"),
	"services.*.cpu_count":           later,
	"services.*.cpu_percent":         later,
	"services.*.cpu_period":          later,
	"services.*.cpu_quota":           later,
	"services.*.cpu_rt_period":       later,
	"services.*.cpu_rt_runtime":      later,
	"services.*.cpu_shares":          later,
	"services.*.cpus":                later,
	"services.*.cpuset":              later,
	"services.*.credential_spec":     later,
	"services.*.depends_on":          carried,
	"services.*.deploy":              carried,
	"services.*.develop":             unsupported("is for a developer's machine", "remove it, or keep it in a file that gitring does not read"),
	"services.*.device_cgroup_rules": denied("lets the container use devices of the host"),
	"services.*.devices":             denied("gives the container a device of the host"),
	"services.*.dns":                 later,
	"services.*.dns_opt":             later,
	"services.*.dns_search":          later,
	"services.*.domainname":          later,
	"services.*.entrypoint":          by(clears),
	"services.*.env_file":            carried,
	"services.*.environment":         by(namesSet),
	"services.*.expose":              by(exposedPorts),
	"services.*.extends":             unsupported("is not carried out by this release", "use a YAML anchor and <<, or write the keys out"),
	"services.*.external_links":      unsupported("would reach into another project", "share a network instead"),
	"services.*.extra_hosts":         by(extraHostNames),
	"services.*.gpus":                denied("gives the container a device of the host"),
	"services.*.group_add":           later,
	"services.*.healthcheck":         carried,
	"services.*.hostname":            by(hostName),
	"services.*.image":               by(imageName),
	"services.*.init":                carried,
	"services.*.ipc":                 by(namespace),
	"services.*.isolation":           later,
	"services.*.label_file":          unsupported("is not carried out by this release", "write the labels under labels:"),
	"services.*.labels":              by(reservedLabels),
	"services.*.links":               unsupported("is not carried out by this release", "remove it: services of an app reach each other by name; use networks aliases for another name"),
	"services.*.logging":             carried,
	"services.*.mac_address":         later,
	"services.*.mem_limit":           later,
	"services.*.mem_reservation":     later,
	"services.*.mem_swappiness":      later,
	"services.*.memswap_limit":       later,
	"services.*.models":              later,
	"services.*.network_mode":        by(networkMode),
	"services.*.networks":            carried,
	"services.*.oom_kill_disable":    later,
	"services.*.oom_score_adj":       later,
	"services.*.pid":                 by(namespace),
	"services.*.pids_limit":          later,
	"services.*.platform":            later,
	"services.*.ports":               by(publishedPorts),
	"services.*.post_start":          later,
	"services.*.pre_start":           later,
	"services.*.pre_stop":            later,
	"services.*.privileged":          denied("gives the container the host: every device and the whole kernel"),
	"services.*.profiles":            carried,
	"services.*.provider":            denied("runs a program of the host"),
	"services.*.pull_policy":         by(pullPolicy),
	"services.*.pull_refresh_after":  unsupported("would move a pinned image", "remove it; a new tag or digest in the file brings a new image"),
	"services.*.read_only":           later,
	"services.*.restart":             by(restartWord),
	"services.*.runtime":             denied("runs the container under another runtime of the host"),
	"services.*.scale":               carried,
	"services.*.secrets":             unsupported("is not carried out by this release", "mount a file, or keep the value out until a release carries secrets out"),
	"services.*.security_opt":        denied("changes what confines the container"),
	"services.*.shm_size":            later,
	"services.*.stdin_open":          later,
	"services.*.stop_grace_period":   by(gracePeriod),
	"services.*.stop_signal":         by(stopSignal),
	"services.*.storage_opt":         later,
	"services.*.sysctls":             denied("changes settings of the kernel"),
	"services.*.tmpfs":               carried,
	"services.*.tty":                 later,
	"services.*.ulimits":             later,
	"services.*.umask":               later,
	"services.*.use_api_socket":      denied("gives the container the engine's socket and the registry credentials, which is the host"),
	"services.*.user":                carried,
	"services.*.userns_mode":         by(namespace),
	"services.*.uts":                 by(namespace),
	"services.*.volumes":             by(mountedVolumes),
	"services.*.volumes_from":        by(volumesFrom),
	"services.*.working_dir":         by(workingDir),

	"services.*.env_file.*.path":     carried,
	"services.*.env_file.*.format":   carried,
	"services.*.env_file.*.required": carried,

	"services.*.depends_on.*.condition": carried,
	"services.*.depends_on.*.required":  carried,
	"services.*.depends_on.*.restart":   unsupported("is not carried out by this release", "remove it; a dependent is not restarted when what it needs is replaced"),

	"services.*.deploy.mode":                            by(deployMode),
	"services.*.deploy.replicas":                        carried,
	"services.*.deploy.labels":                          unsupported("labels a Swarm service", "use labels: of the service itself"),
	"services.*.deploy.endpoint_mode":                   unsupported("is Swarm's", "remove it"),
	"services.*.deploy.placement":                       unsupported("is Swarm's", "remove it; targets in gitring.yaml choose the host"),
	"services.*.deploy.resources":                       later,
	"services.*.deploy.rollback_config":                 unsupported("is not carried out: a restore brings the last good version back at once", "remove it; x-gitring: {rollout: {on_failure: …}} says what follows a failure"),
	"services.*.deploy.update_config":                   carried,
	"services.*.deploy.update_config.order":             carried,
	"services.*.deploy.update_config.parallelism":       carried,
	"services.*.deploy.update_config.delay":             by(duration),
	"services.*.deploy.update_config.monitor":           by(duration),
	"services.*.deploy.update_config.failure_action":    carried,
	"services.*.deploy.update_config.max_failure_ratio": carried,
	"services.*.deploy.restart_policy":                  carried,
	"services.*.deploy.restart_policy.condition":        carried,
	"services.*.deploy.restart_policy.max_attempts":     carried,
	"services.*.deploy.restart_policy.delay":            unsupported("is not carried out: restarts back off by gitring's own rule", "remove it"),
	"services.*.deploy.restart_policy.window":           unsupported("is not carried out: a slot is stable after 10 minutes", "remove it"),

	"services.*.healthcheck.test":           by(testKind),
	"services.*.healthcheck.interval":       by(duration),
	"services.*.healthcheck.timeout":        by(duration),
	"services.*.healthcheck.retries":        carried,
	"services.*.healthcheck.start_period":   by(duration),
	"services.*.healthcheck.start_interval": unsupported("is not carried out by this release", "remove it, or use x-gitring checks"),
	"services.*.healthcheck.disable":        carried,

	"services.*.logging.driver":  by(logDriver),
	"services.*.logging.options": by(logOption),

	"services.*.networks.*.aliases":                carried,
	"services.*.networks.*.ipv4_address":           carried,
	"services.*.networks.*.ipv6_address":           carried,
	"services.*.networks.*.driver_opts":            denied("sets options of the network driver on the host"),
	"services.*.networks.*.interface_name":         later,
	"services.*.networks.*.link_local_ips":         later,
	"services.*.networks.*.mac_address":            later,
	"services.*.networks.*.priority":               later,
	"services.*.networks.*.gw_priority":            later,
	"services.*.networks.*.use_service_name_alias": by(serviceAlias),

	// read item by item in publishedPorts and mountedVolumes
	"services.*.ports.*.name":                    unsupported("is not carried out by this release", "remove it"),
	"services.*.ports.*.mode":                    carried, // host and ingress publish alike on one engine
	"services.*.ports.*.host_ip":                 carried,
	"services.*.ports.*.target":                  carried,
	"services.*.ports.*.published":               carried,
	"services.*.ports.*.protocol":                carried,
	"services.*.ports.*.app_protocol":            unsupported("is not carried out by this release", "remove it"),
	"services.*.volumes.*.type":                  carried,
	"services.*.volumes.*.source":                carried,
	"services.*.volumes.*.target":                carried,
	"services.*.volumes.*.read_only":             carried,
	"services.*.volumes.*.consistency":           unsupported("does nothing on Linux", "remove it"),
	"services.*.volumes.*.bind":                  carried,
	"services.*.volumes.*.bind.create_host_path": by(createHostPath),
	"services.*.volumes.*.bind.propagation":      denied("shares mounts between the container and the host"),
	"services.*.volumes.*.bind.recursive":        later,
	"services.*.volumes.*.bind.selinux":          later,
	"services.*.volumes.*.volume":                carried,
	"services.*.volumes.*.volume.nocopy":         carried,
	"services.*.volumes.*.volume.labels":         unsupported("is not carried out by this release", "label the volume at the top level"),
	"services.*.volumes.*.volume.subpath":        later,
	"services.*.volumes.*.tmpfs":                 carried,
	"services.*.volumes.*.tmpfs.size":            carried,
	"services.*.volumes.*.tmpfs.mode":            carried,
	"services.*.volumes.*.image":                 later,

	"networks.*.name":                        by(ownName),
	"networks.*.driver":                      by(networkDriver),
	"networks.*.driver_opts":                 denied("sets options of the network driver on the host"),
	"networks.*.external":                    unsupported("joins a network of others, which this release does not", "remove external; services of other apps are reached through published ports"),
	"networks.*.internal":                    carried,
	"networks.*.enable_ipv4":                 by(ipv4Off),
	"networks.*.enable_ipv6":                 carried,
	"networks.*.attachable":                  unsupported("is Swarm's", "remove it"),
	"networks.*.labels":                      by(reservedLabels),
	"networks.*.ipam":                        carried,
	"networks.*.ipam.driver":                 by(ipamDriver),
	"networks.*.ipam.options":                denied("sets options of the address driver on the host"),
	"networks.*.ipam.config":                 carried,
	"networks.*.ipam.config.*.subnet":        carried,
	"networks.*.ipam.config.*.ip_range":      carried,
	"networks.*.ipam.config.*.gateway":       carried,
	"networks.*.ipam.config.*.aux_addresses": later,
	"volumes.*.name":                         by(ownName),
	"volumes.*.driver":                       by(volumeDriver),
	"volumes.*.driver_opts":                  denied("can mount any folder of the host, or a share of the network"),
	"volumes.*.external":                     unsupported("uses a volume of others, which this release does not", "remove external; the app's own volume is named <app>_<volume>"),
	"volumes.*.labels":                       by(reservedLabels),
}
