package manifest

import (
	"math"

	"github.com/gitring/gitring/ring"
)

// class is what gitring does with a key that Compose knows.
type class struct {
	// code is "" for a key that is carried out.
	code ring.Code
	// ignored is why a key means nothing here, as to Compose; noted.
	ignored string
	// spared gives the note on a key that is let be though code refuses it otherwise; "" refuses it.
	spared func(k *keyCheck) string
	// says ends the sentence about the key: the risk for PolicyDenied, what is
	// not done for Unsupported. hint says what to do instead.
	says, hint string
	// value decides by the value, for a key of which only some are carried out.
	// nil gives code for every value that asks for something.
	value func(k *keyCheck)
	// how is what the reference says of a key that is carried out, where its name
	// does not say it all.
	how string
	// power says that it may give more of the host than Docker's defaults: the
	// policy decides, by what would be sent to the engine.
	power bool
}

// as is c with a word on how it is carried out.
func (c class) as(how string) class {
	c.how = how
	return c
}

var carried = class{}

// later is a key that an instance's spec has no field for yet.
var later = class{code: ring.Unsupported, says: "is not carried out by this release", hint: "remove it"}

// swarmObject is a config or secret that an engine of Swarm keeps.
var swarmObject = unsupported("is Swarm's: no engine here keeps it", "say file: or environment: instead; a file may lie in the host's env folder")

func unsupported(says, hint string) class {
	return class{code: ring.Unsupported, says: says, hint: hint}
}

// ignoredAs is a key that Compose reads and does nothing with either.
func ignoredAs(why string) class {
	return class{ignored: why, how: why}
}

const swarmOnly = "is Swarm's and means nothing here"

func denied(risk string) class {
	return class{code: ring.PolicyDenied, says: risk, hint: "remove it; no policy of this release grants it"}
}

// unless is c with keys that are let be, with a note.
func (c class) unless(spared func(k *keyCheck) string) class {
	c.spared = spared
	return c
}

// powerful is c, about which the policy decides.
func (c class) powerful() class {
	c.power = true
	return c
}

const windowsOnly = "is for engines of Windows and means nothing here; cpus is the bound"

// windows is for a key that only engines of Windows have.
func windows(hint string) class { return unsupported("is for engines of Windows", hint) }

func by(check func(k *keyCheck)) class { return class{value: check} }

// classes holds every key of Compose's schema that can be met, down to the
// first that is not carried out. A test walks the schema of compose-go and
// fails for a key that is not here, so that an update cannot add one that is
// ignored in silence.
var classes = map[string]class{
	"version":  carried.as("means nothing; noted"),
	"name":     carried.as("the app's name, where gitring.yaml says none"),
	"services": carried,
	"networks": carried,
	"volumes":  carried,
	"include":  carried.as("projects of the commit, each with its own folder and variables"),
	"models":   unsupported("runs a model beside the app, for which an engine has no call", "remove it; run the model's server as a service"),
	"secrets":  carried,
	"configs":  carried,
	"jobs":     unsupported("is not carried out by this release", "declare a service with x-gitring: {kind: job}"),

	// a service, by alphabet
	"services.*.annotations":         carried.as("go to the engine from Docker 24 on (API 1.43); noted").powerful(),
	"services.*.attach":              carried.as("means nothing to a daemon; noted"),
	"services.*.blkio_config":        carried,
	"services.*.build":               unsupported("would build an image on the host, which gitring does not do", "build it in CI, push it, and name it with image:").unless(imageSaid),
	"services.*.cap_add":             carried.powerful(),
	"services.*.cap_drop":            carried,
	"services.*.cgroup":              carried.as("`host` or `private`").powerful(),
	"services.*.cgroup_parent":       carried.powerful(),
	"services.*.command":             by(splits).as("a text is cut into words as Compose does; an empty one needs `entrypoint`, or the engine runs the image's all the same"),
	"services.*.configs":             carried,
	"services.*.container_name":      by(containerName).as("given by rename once the instance before it gave it up; such a service runs alone, in one replica"),
	"services.*.cpu_count":           ignoredAs(windowsOnly),
	"services.*.cpu_percent":         ignoredAs(windowsOnly),
	"services.*.cpu_period":          by(number(0, math.MaxInt64)).as("microseconds"),
	"services.*.cpu_quota":           by(number(-1, math.MaxInt64)).as("microseconds"),
	"services.*.cpu_rt_period":       by(number(0, math.MaxInt64)).as("microseconds").powerful(),
	"services.*.cpu_rt_runtime":      by(number(0, math.MaxInt64)).as("microseconds").powerful(),
	"services.*.cpu_shares":          by(number(0, math.MaxInt64)),
	"services.*.cpus":                by(fraction),
	"services.*.cpuset":              by(cpuSet),
	"services.*.credential_spec":     windows("remove it"),
	"services.*.depends_on":          carried.as("the list, and the mapping"),
	"services.*.deploy":              carried,
	"services.*.develop":             ignoredAs("is for docker compose watch"),
	"services.*.device_cgroup_rules": by(deviceRules).powerful(),
	"services.*.devices":             by(deviceWords).as("`host:container:rwm`, the long form, and CDI names").powerful(),
	"services.*.dns":                 by(dnsServers).powerful(),
	"services.*.dns_opt":             carried,
	"services.*.dns_search":          carried,
	"services.*.domainname":          by(hostName),
	"services.*.entrypoint":          by(splits).as("a text is cut into words as Compose does; an empty one clears the image's"),
	"services.*.env_file":            carried.as("files of the commit or of the host's env folder; later ones win, `environment` wins over all"),
	"services.*.environment":         by(namesSet).as("a name without a value has that of the variable; where there is none it is left out, noted"),
	"services.*.expose":              by(exposedPorts),
	"services.*.extends":             carried.as("a service of the same file, or of another file of the commit"),
	"services.*.external_links":      unsupported("reaches into another project", "join its network: declare it at the top level with external: true"),
	"services.*.extra_hosts":         by(extraHostNames).powerful(),
	"services.*.gpus":                by(deviceRequests).as("a device request with the capability `gpu`").powerful(),
	"services.*.group_add":           carried.powerful(),
	"services.*.healthcheck":         carried.as("given to the engine, part of the version, and a readiness check"),
	"services.*.hostname":            by(hostName),
	"services.*.image":               by(imageName).as("resolved once to a digest, and kept"),
	"services.*.init":                carried,
	"services.*.ipc":                 by(ipcMode).as("`host`, `private`, `shareable`, `none`, `service:x` (x is made shareable; stopped and made anew with x)").powerful(),
	"services.*.isolation":           windows("remove it"),
	"services.*.label_file":          carried.as("files of the commit"),
	"services.*.labels":              by(reservedLabels).as("`gitring.` and `com.docker.compose.` are reserved"),
	"services.*.links":               by(linkWords).as("the target is a dependency; an alias becomes one of its names on each network that both join"),
	"services.*.logging":             carried,
	"services.*.mac_address":         by(macAddress),
	"services.*.mem_limit":           by(amount(false)),
	"services.*.mem_reservation":     by(amount(false)),
	"services.*.mem_swappiness":      by(number(0, 100)).as("`0` is carried out too, which Compose drops"),
	"services.*.memswap_limit":       by(amount(true)).as("memory and swap together; `-1` is no limit"),
	"services.*.models":              unsupported("runs a model beside the app, for which an engine has no call", "remove it; run the model's server as a service and name its address in environment"),
	"services.*.network_mode":        by(networkMode).as("`none`, `host`, `bridge`, `service:x` (stopped and made anew with x); `container:` and the `container_name` of a service of the source is that service").powerful(),
	"services.*.networks":            carried.as("without any, the app's `default` network"),
	"services.*.oom_kill_disable":    carried.powerful(),
	"services.*.oom_score_adj":       by(number(-1000, 1000)).powerful(),
	"services.*.pid":                 by(pidMode).as("`host`, `service:x` (stopped and made anew with x)").powerful(),
	"services.*.pids_limit":          by(number(-1, math.MaxInt64)).as("`-1` is no limit"),
	"services.*.platform":            by(platform).as("`os/arch[/variant]`, of Linux"),
	"services.*.ports":               by(publishedPorts).powerful().as("ranges are expanded; a fixed host port with several replicas gets a front"),
	"services.*.post_start":          carried.as("run inside the instance after each start by gitring; when one fails the instance is stopped again and the start has failed"),
	"services.*.pre_start":           unsupported("runs containers before the service, which gitring does by services of their own", "declare a service with the command, and wait for it: depends_on: {<name>: {condition: service_completed_successfully}}"),
	"services.*.pre_stop":            carried.as("run inside the instance before each stop by gitring; when one fails it is told and the stop goes on"),
	"services.*.privileged":          carried.powerful(),
	"services.*.profiles":            carried.as("a service that no active profile asks for is noted"),
	"services.*.provider":            denied("runs a program of the host"),
	"services.*.pull_policy":         by(pullPolicy).as("`always` asks the registry at each commit; `daily`, `weekly`, `every_12h` and `refresh` follow the tag [by the clock](../how-to/updates-by-the-clock.md); `missing`, `if_not_present`, `never`. `build` is refused"),
	"services.*.pull_refresh_after":  carried.as("with `pull_policy: refresh`: how long after the last question the tag is asked again"),
	"services.*.read_only":           carried,
	"services.*.restart":             by(restartWord).as("`always` where nothing is said; `\"no\"` makes a job"),
	"services.*.runtime":             carried.powerful(),
	"services.*.scale":               by(number(0, math.MaxInt64)).as("0 to 1,000"),
	"services.*.secrets":             carried,
	"services.*.security_opt":        by(securityWords).as("`key=value` and `key:value`; a seccomp profile is a file of the commit").powerful(),
	"services.*.shm_size":            by(amount(false)).powerful(),
	"services.*.stdin_open":          carried,
	"services.*.stop_grace_period":   by(gracePeriod).powerful(),
	"services.*.stop_signal":         by(stopSignal),
	"services.*.storage_opt":         carried.powerful(),
	"services.*.sysctls":             by(sysctlNames).as("those that a container has for itself").powerful(),
	"services.*.tmpfs":               carried.powerful(),
	"services.*.tty":                 carried,
	"services.*.ulimits":             by(ulimitWords).as("a number for both, or `soft` and `hard`; `-1` is no limit").powerful(),
	"services.*.umask":               unsupported("has no field in the engine's API", "remove it; set it where the program starts: entrypoint: [sh, -c, 'umask 027; exec \"$$0\" \"$$@\"']"),
	"services.*.use_api_socket":      denied("gives the container the engine's socket and the registry credentials, which is the host"),
	"services.*.user":                carried,
	"services.*.userns_mode":         by(hostOnly).as("`host`").powerful(),
	"services.*.uts":                 by(hostOnly).as("`host`").powerful(),
	"services.*.volumes":             by(mountedVolumes).powerful().as("what each source becomes stands in manifest.md; paths of the host are the policy's"),
	"services.*.volumes_from":        by(volumesFrom).as("services of the app, `:ro` too; stopped and made anew with them. `container:` is for the app's own, as in `network_mode`"),
	"services.*.working_dir":         by(workingDir),

	"services.*.blkio_config.weight":                   by(number(0, 1000)).as("10 to 1000"),
	"services.*.blkio_config.weight_device":            carried,
	"services.*.blkio_config.weight_device.*.path":     by(hostPath),
	"services.*.blkio_config.weight_device.*.weight":   by(number(0, 1000)).as("10 to 1000"),
	"services.*.blkio_config.device_read_bps":          carried,
	"services.*.blkio_config.device_read_bps.*.path":   by(hostPath),
	"services.*.blkio_config.device_read_bps.*.rate":   by(amount(false)).as("bytes a second"),
	"services.*.blkio_config.device_write_bps":         carried,
	"services.*.blkio_config.device_write_bps.*.path":  by(hostPath),
	"services.*.blkio_config.device_write_bps.*.rate":  by(amount(false)).as("bytes a second"),
	"services.*.blkio_config.device_read_iops":         carried,
	"services.*.blkio_config.device_read_iops.*.path":  by(hostPath),
	"services.*.blkio_config.device_read_iops.*.rate":  by(number(0, math.MaxInt64)).as("operations a second"),
	"services.*.blkio_config.device_write_iops":        carried,
	"services.*.blkio_config.device_write_iops.*.path": by(hostPath),
	"services.*.blkio_config.device_write_iops.*.rate": by(number(0, math.MaxInt64)).as("operations a second"),

	"services.*.devices.*.source":      carried,
	"services.*.devices.*.target":      carried,
	"services.*.devices.*.permissions": carried.as("of `r`, `w` and `m`; all where it is not said"),

	"services.*.gpus.*.capabilities": carried,
	"services.*.gpus.*.count":        carried.as("`all` where neither it nor `device_ids` is said"),
	"services.*.gpus.*.device_ids":   carried,
	"services.*.gpus.*.driver":       carried,
	"services.*.gpus.*.options":      carried,

	"services.*.ulimits.*.soft": carried,
	"services.*.ulimits.*.hard": carried,

	"services.*.post_start.*.command":     by(runs),
	"services.*.post_start.*.user":        carried,
	"services.*.post_start.*.privileged":  carried.powerful(),
	"services.*.post_start.*.working_dir": by(workingDir),
	"services.*.post_start.*.environment": by(namesSet).as("as `environment`"),

	"services.*.pre_stop.*.command":     by(runs),
	"services.*.pre_stop.*.user":        carried,
	"services.*.pre_stop.*.privileged":  carried.powerful(),
	"services.*.pre_stop.*.working_dir": by(workingDir),
	"services.*.pre_stop.*.environment": by(namesSet).as("as `environment`"),

	"include.*.path":              carried,
	"include.*.project_directory": carried.as("inside the commit"),
	"include.*.env_file":          carried.as("inside the commit"),

	"configs.*.name":            ignoredAs(swarmOnly),
	"configs.*.content":         carried,
	"configs.*.environment":     carried,
	"configs.*.file":            carried,
	"configs.*.external":        swarmObject,
	"configs.*.labels":          ignoredAs(swarmOnly),
	"configs.*.template_driver": unsupported("is Swarm's", "remove it; variables in content: are replaced"),
	"secrets.*.name":            ignoredAs(swarmOnly),
	"secrets.*.environment":     carried,
	"secrets.*.file":            carried,
	"secrets.*.external":        swarmObject,
	"secrets.*.labels":          ignoredAs(swarmOnly),
	"secrets.*.driver":          unsupported("is Swarm's", "remove it; say file: or environment:"),
	"secrets.*.driver_opts":     unsupported("is Swarm's", "remove it; say file: or environment:"),
	"secrets.*.template_driver": unsupported("is Swarm's", "remove it"),

	"services.*.configs.*.source": carried,
	"services.*.configs.*.target": carried,
	"services.*.configs.*.uid":    carried.as("of a text, a variable, or a file with a value; of another file noted: it is root's"),
	"services.*.configs.*.gid":    carried.as("of a text, a variable, or a file with a value; of another file noted: it is root's"),
	"services.*.configs.*.mode":   carried.as("of a text, a variable, or a file with a value; of another file whether it may be run"),
	"services.*.secrets.*.source": carried,
	"services.*.secrets.*.target": carried,
	"services.*.secrets.*.uid":    carried.as("of a text, a variable, or a file with a value; of another file noted: it is root's"),
	"services.*.secrets.*.gid":    carried.as("of a text, a variable, or a file with a value; of another file noted: it is root's"),
	"services.*.secrets.*.mode":   carried.as("of a text, a variable, or a file with a value; of another file whether it may be run"),

	"services.*.extends.service": carried,
	"services.*.extends.file":    carried,

	"services.*.env_file.*.path":     carried,
	"services.*.env_file.*.format":   carried.as("`raw`"),
	"services.*.env_file.*.required": carried.as("`false`: the commit need not hold it"),

	"services.*.depends_on.*.condition": carried.as("`service_healthy` waits for ready; a service that another waits for with `service_completed_successfully` is a job"),
	"services.*.depends_on.*.required":  carried.as("`false`: a service that no active profile starts is not waited for"),
	"services.*.depends_on.*.restart":   carried.as("`true`: a new version of that service means a new instance of this one too"),

	"services.*.deploy.mode":                                          by(deployMode).as("`replicated`; `global` and Swarm's others mean nothing here, noted: `replicas` says how many run"),
	"services.*.deploy.replicas":                                      by(number(0, math.MaxInt64)).as("0 to 1,000; 1 where nothing is said"),
	"services.*.deploy.labels":                                        ignoredAs("labels a service of Swarm and no container"),
	"services.*.deploy.endpoint_mode":                                 ignoredAs(swarmOnly),
	"services.*.deploy.placement":                                     ignoredAs(swarmOnly),
	"services.*.deploy.resources":                                     carried.as("put over the keys of the service that say the same; where both speak they must agree"),
	"services.*.deploy.resources.limits":                              carried,
	"services.*.deploy.resources.limits.cpus":                         by(fraction).as("as `cpus`"),
	"services.*.deploy.resources.limits.memory":                       by(amount(false)).as("as `mem_limit`"),
	"services.*.deploy.resources.limits.pids":                         by(number(-1, math.MaxInt64)).as("as `pids_limit`"),
	"services.*.deploy.resources.reservations":                        carried,
	"services.*.deploy.resources.reservations.cpus":                   by(fraction).as("means nothing on one engine; noted"),
	"services.*.deploy.resources.reservations.memory":                 by(amount(false)).as("as `mem_reservation`"),
	"services.*.deploy.resources.reservations.generic_resources":      ignoredAs(swarmOnly),
	"services.*.deploy.resources.reservations.devices":                by(deviceRequests).as("device requests").powerful(),
	"services.*.deploy.resources.reservations.devices.*.capabilities": carried,
	"services.*.deploy.resources.reservations.devices.*.count":        carried.as("`all` where neither it nor `device_ids` is said"),
	"services.*.deploy.resources.reservations.devices.*.device_ids":   carried,
	"services.*.deploy.resources.reservations.devices.*.driver":       carried,
	"services.*.deploy.resources.reservations.devices.*.options":      carried,
	"services.*.deploy.rollback_config":                               carried.as("the way back to the last good version; as `update_config` where it says nothing"),
	"services.*.deploy.rollback_config.order":                         carried.as("as for `update_config`"),
	"services.*.deploy.rollback_config.parallelism":                   carried.as("as for `update_config`"),
	"services.*.deploy.rollback_config.delay":                         by(duration).as("as for `update_config`"),
	"services.*.deploy.rollback_config.monitor":                       by(duration).as("as for `update_config`"),
	"services.*.deploy.rollback_config.failure_action":                carried.as("means nothing: a restore is never given up; noted"),
	"services.*.deploy.rollback_config.max_failure_ratio":             carried.as("means nothing: a restore is never given up; noted"),
	"services.*.deploy.update_config":                                 carried,
	"services.*.deploy.update_config.order":                           carried.as("`start-first`: room above the replicas; `stop-first`: room below"),
	"services.*.deploy.update_config.parallelism":                     carried.as("the room, and `max_parallel`; `0` is all at once"),
	"services.*.deploy.update_config.delay":                           by(duration).as("as `min_ready_time`, where it is longer"),
	"services.*.deploy.update_config.monitor":                         by(duration).as("as `min_ready_time`"),
	"services.*.deploy.update_config.failure_action":                  carried.as("`rollback` is `restore`"),
	"services.*.deploy.update_config.max_failure_ratio":               carried.as("as `failure_threshold`: ⌊ratio × replicas⌋ + 1"),
	"services.*.deploy.restart_policy":                                carried.as("wins over `restart`"),
	"services.*.deploy.restart_policy.condition":                      carried.as("without it `restart` counts, noted; Compose would never restart"),
	"services.*.deploy.restart_policy.max_attempts":                   carried.as("of `on-failure`"),
	"services.*.deploy.restart_policy.delay":                          by(duration).as("the first wait between restarts, which doubles up to 5m; at least `1s`"),
	"services.*.deploy.restart_policy.window":                         by(duration).as("a run of that length forgives the crashes before it; 10m where nothing is said, at least `10s`"),

	"services.*.healthcheck.test":           by(testKind),
	"services.*.healthcheck.interval":       by(duration),
	"services.*.healthcheck.timeout":        by(duration),
	"services.*.healthcheck.retries":        carried,
	"services.*.healthcheck.start_period":   by(duration),
	"services.*.healthcheck.start_interval": by(duration).as("goes to the engine from Docker 25 on (API 1.44); an older one uses `interval`; noted"),
	"services.*.healthcheck.disable":        carried.as("`true` turns the image's own check off"),

	"services.*.logging.driver":  carried.powerful(),
	"services.*.logging.options": carried.as("of `local`, `json-file` and `journald` only those that there are; of other drivers all"),

	"services.*.networks.*.aliases":                carried,
	"services.*.networks.*.ipv4_address":           carried,
	"services.*.networks.*.ipv6_address":           carried,
	"services.*.networks.*.driver_opts":            carried.powerful(),
	"services.*.networks.*.interface_name":         unsupported("needs a newer engine's API (1.49)", "remove it"),
	"services.*.networks.*.link_local_ips":         carried.powerful(),
	"services.*.networks.*.mac_address":            carried,
	"services.*.networks.*.priority":               carried.as("the network of the highest is joined first"),
	"services.*.networks.*.gw_priority":            unsupported("needs a newer engine's API (1.48)", "remove it; priority says which network is joined first"),
	"services.*.networks.*.use_service_name_alias": by(serviceAlias),

	// read item by item in publishedPorts and mountedVolumes
	"services.*.ports.*.name":                    carried.as("noted, means nothing to the engine"),
	"services.*.ports.*.mode":                    carried.as("`host` and `ingress` publish alike on one engine"),
	"services.*.ports.*.host_ip":                 carried,
	"services.*.ports.*.target":                  carried,
	"services.*.ports.*.published":               carried,
	"services.*.ports.*.protocol":                carried,
	"services.*.ports.*.app_protocol":            carried.as("noted, means nothing to the engine; `http` is `route.protocol: http` of a front"),
	"services.*.volumes.*.type":                  carried.as("`volume`, `bind`, `tmpfs`"),
	"services.*.volumes.*.source":                carried,
	"services.*.volumes.*.target":                carried,
	"services.*.volumes.*.read_only":             carried,
	"services.*.volumes.*.consistency":           carried.as("noted, means nothing on Linux"),
	"services.*.volumes.*.bind":                  carried,
	"services.*.volumes.*.bind.create_host_path": carried.as("`false`: the path must be there, also below the data root"),
	"services.*.volumes.*.bind.propagation":      by(propagationWord).powerful(),
	"services.*.volumes.*.bind.recursive":        by(recursive).as("`enabled`, the default; others need API 1.44 and are refused"),
	"services.*.volumes.*.bind.selinux":          carried.as("`z`, `Z`; content is always labelled `z`"),
	"services.*.volumes.*.volume":                carried,
	"services.*.volumes.*.volume.nocopy":         carried,
	"services.*.volumes.*.volume.labels":         unsupported("is not carried out by this release", "label the volume at the top level"),
	"services.*.volumes.*.volume.subpath":        by(partOfVolume).as("goes to the engine from Docker 26 on (API 1.45); an older one refuses the app; the folder has to be in the volume"),
	"services.*.volumes.*.tmpfs":                 carried,
	"services.*.volumes.*.tmpfs.size":            carried,
	"services.*.volumes.*.tmpfs.mode":            carried,
	"services.*.volumes.*.image":                 unsupported("needs a newer engine's API (1.48)", "copy the files into the image, or use a volume"),

	"networks.*.name":                        carried.as("the engine's name, where it is not `<app>_<network>`"),
	"networks.*.driver":                      by(networkDriver).as("every one but `overlay`").powerful(),
	"networks.*.driver_opts":                 carried.powerful(),
	"networks.*.external.name":               carried.as("the old form of `name`"),
	"networks.*.external":                    carried.as("joined, never made or changed; what else is said of it is noted"),
	"networks.*.internal":                    carried,
	"networks.*.enable_ipv4":                 by(ipv4Off).as("`true`"),
	"networks.*.enable_ipv6":                 carried,
	"networks.*.attachable":                  carried.as("lets apps in other hands join it"),
	"networks.*.labels":                      by(reservedLabels).as("`gitring.` and `com.docker.compose.` are reserved"),
	"networks.*.ipam":                        carried,
	"networks.*.ipam.driver":                 carried.powerful(),
	"networks.*.ipam.options":                carried.powerful(),
	"networks.*.ipam.config":                 carried,
	"networks.*.ipam.config.*.subnet":        carried,
	"networks.*.ipam.config.*.ip_range":      carried,
	"networks.*.ipam.config.*.gateway":       carried,
	"networks.*.ipam.config.*.aux_addresses": carried,
	"volumes.*.name":                         carried.powerful().as("the engine's name, where it is not `<app>_<volume>`"),
	"volumes.*.driver":                       carried.powerful(),
	"volumes.*.driver_opts":                  carried.powerful(),
	"volumes.*.external.name":                carried.as("the old form of `name`"),
	"volumes.*.external":                     carried.as("used, never made or changed").powerful(),
	"volumes.*.labels":                       by(reservedLabels).as("`gitring.` and `com.docker.compose.` are reserved"),
}
