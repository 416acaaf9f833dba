package policy

import (
	"slices"
	"strings"
)

// pass is a field that every app may set, under the key of Compose it comes
// from; "" is set by gitring itself.
func pass(key string) rule { return rule{key: key} }

// part is a field of which another rule has judged all that it is part of.
func part(key, with string) rule { return rule{key: key, with: with} }

// ours is a field that gitring never sends.
func ours() rule {
	return rule{name: "engine.unused", grade: forbidden, risk: "is a field of the engine that gitring never sets"}
}

// table has a rule for every field of what is sent to the engine. A path goes by
// the Go names; "[]" are the items of a list or the values of a map. Where a
// field holds structs, their fields have rules of their own.
var table = merged(requestRules, configRules, hostRules, resourceRules, mountRules, endpointRules, networkRules, volumeRules, execRules, swarmRules)

func merged(tables ...map[string]rule) map[string]rule {
	out := map[string]rule{}
	for _, t := range tables {
		for path, r := range t {
			out[path] = r
		}
	}
	return out
}

// requestRules are of what runtime puts around the engine's structs.
var requestRules = map[string]rule{
	"Request.Name":                  pass(""),
	"Request.Owners":                pass(""),
	"Request.Elsewhere":             pass(""),
	"Request.Networks":              joined,
	"Request.Platform.Architecture": pass("platform"),
	"Request.Platform.OS":           pass("platform"),
	"Request.Platform.OSVersion":    pass("platform"),
	"Request.Platform.OSFeatures":   pass("platform"),
	"Request.Platform.Variant":      pass("platform"),
	"NetworkRequest.Name":           pass("name"),
}

var configRules = map[string]rule{
	"Config.Hostname":                  pass("hostname"),
	"Config.Domainname":                pass("domainname"),
	"Config.User":                      userRule,
	"Config.AttachStdin":               pass("stdin_open"),
	"Config.AttachStdout":              pass("tty"),
	"Config.AttachStderr":              pass("tty"),
	"Config.ExposedPorts":              pass("expose"),
	"Config.Tty":                       pass("tty"),
	"Config.OpenStdin":                 pass("stdin_open"),
	"Config.StdinOnce":                 pass("stdin_open"),
	"Config.Env":                       {name: "devices", key: "environment", grade: escape, check: environment, risk: "gives the container a device of the host, such as its graphics card, where the runtime is NVIDIA's", lets: "all; where the runtime is NVIDIA's, no variable that gives devices, and no `LD_*`"},
	"Config.Cmd":                       programRule("command", firstWord),
	"Config.Healthcheck.Test":          programRule("healthcheck", healthProgram),
	"Config.Healthcheck.Interval":      atLeastASecond("healthcheck.interval"),
	"Config.Healthcheck.Timeout":       pass("healthcheck"),
	"Config.Healthcheck.StartPeriod":   pass("healthcheck"),
	"Config.Healthcheck.StartInterval": atLeastASecond("healthcheck.start_interval"),
	"Config.Healthcheck.Retries":       pass("healthcheck"),
	"Config.ArgsEscaped":               ours(),
	"Config.Image":                     frontsRule,
	"Config.Volumes":                   ours(),
	"Config.WorkingDir":                workingDirRule,
	"Config.Entrypoint":                programRule("entrypoint", firstWord),
	"Config.NetworkDisabled":           pass("network_mode"),
	"Config.MacAddress":                pass("mac_address"),
	"Config.OnBuild":                   ours(),
	"Config.Labels":                    labelled("labels"),
	"Config.StopSignal":                pass("stop_signal"),
	"Config.StopTimeout":               {name: "limits.stop_grace", key: "stop_grace_period", grade: limit, check: most(func(l *Lists) int64 { return int64(l.StopGrace) }), risk: "keeps a stopping container for more than 10 minutes", lets: "10 minutes at most"},
	"Config.Shell":                     ours(),
}

func labelled(key string) rule {
	return rule{
		name: "labels.reserved", key: key, grade: forbidden, check: labels,
		risk: "is a label by which gitring and Compose know what is whose", lets: "all but `gitring.*` and `com.docker.compose.*`",
	}
}

func paths(name, key string) rule {
	return rule{
		name: name, key: key, check: mountType,
		risk: "is a path of the host outside the app's own data",
		lets: "the app's own data, contents of the commit, named volumes, and read-only " + "`/etc/localtime`, `/etc/timezone`, `/usr/share/zoneinfo`, `/etc/ssl/certs`",
	}
}

func listed(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + w + "`"
	}
	return strings.Join(quoted, ", ")
}

func listOnly(name, key string, list []string, check func(*look), risk string) rule {
	return rule{name: name, key: key, grade: escape, check: check, risk: risk, lets: listed(list)}
}

var joined = rule{
	name: "namespaces.network", key: "networks", grade: escape, check: networksJoined,
	risk: "shares the host's network, with every service on it", lets: "the app's own and external networks",
}

var hostRules = map[string]rule{
	"HostConfig.Binds":                           withCheck(paths("mounts.bind", "volumes"), binds),
	"HostConfig.ContainerIDFile":                 ours(),
	"HostConfig.LogConfig.Type":                  listOnly("logging", "logging.driver", logDrivers, only(func(l *Lists) []string { return l.Logging }), "sends from the host's own network to where the options say"),
	"HostConfig.LogConfig.Config":                pass("logging.options"),
	"HostConfig.NetworkMode":                     {name: "namespaces.network", key: "network_mode", grade: escape, check: networkMode, risk: "shares the host's network, with every service on it", lets: "`bridge`, `none`, `service:*`, the app's own and external networks"},
	"HostConfig.PortBindings[].HostIP":           {name: "networks.forbid_subnets", key: "ports", grade: escape, check: publishedAt, risk: "publishes on the host's own link, where a cloud gives out credentials", lets: outsideSubnets},
	"HostConfig.PortBindings[].HostPort":         {name: "ports.host", key: "ports", grade: escape, check: hostPortOf, risk: "takes a port of the host that its own services use", lets: "80-65535, but not `88, 111, 123, 135, 137-139, 161, 162, 177, 179, 445, 464, 500, 512-515, 520, 521, 546, 547, 623, 631, 749, 750, 860, 873, 953` (a host's own programs) and `2375, 2376, 2377, 4789, 7946` (engines and clusters)"},
	"HostConfig.RestartPolicy.Name":              pass("restart"),
	"HostConfig.RestartPolicy.MaximumRetryCount": pass("restart"),
	"HostConfig.AutoRemove":                      ours(),
	"HostConfig.VolumeDriver":                    ours(),
	"HostConfig.VolumesFrom":                     {name: "mounts.volumes_from", key: "volumes_from", grade: forbidden, check: volumesFrom, risk: "takes the volumes of a container that is not the app's", lets: "services of the same app"},
	"HostConfig.ConsoleSize":                     ours(),
	"HostConfig.Annotations":                     {name: "annotations", key: "annotations", grade: escape, check: keysOnly(these(annotations...)), risk: "may be an order to the program that starts the container, as root on the host", lets: listed(annotations)},
	"HostConfig.CapAdd":                          listOnly("capabilities.add", "cap_add", capabilities, capabilitiesAdd, "gives the container more of the kernel than Docker's defaults"),
	"HostConfig.CapDrop":                         pass("cap_drop"),
	"HostConfig.CgroupnsMode":                    {name: "namespaces.cgroup", key: "cgroup", grade: escape, check: joins(forbidden, func(l *Lists) []string { return l.Cgroup }), risk: "shows the container the host's control groups", lets: "`private`"},
	"HostConfig.DNS":                             {name: "networks.forbid_subnets", key: "dns", grade: escape, check: addresses, risk: "asks an address that belongs to the host's own link, such as that of a cloud's credentials", lets: outsideSubnets},
	"HostConfig.DNSOptions":                      pass("dns_opt"),
	"HostConfig.DNSSearch":                       pass("dns_search"),
	"HostConfig.ExtraHosts":                      {name: "networks.forbid_subnets", key: "extra_hosts", grade: escape, check: extraHosts, risk: "names an address that belongs to the host's own link, such as that of a cloud's credentials", lets: outsideSubnets},
	"HostConfig.GroupAdd":                        {name: "groups", key: "group_add", grade: escape, check: groups, risk: "joins the group that may use the engine's socket", lets: "all but `docker` and the group of the engine's socket"},
	"HostConfig.IpcMode":                         {name: "namespaces.ipc", key: "ipc", grade: escape, check: joins(limit, func(l *Lists) []string { return l.IPC }), risk: "shares the host's memory between processes", lets: "`private`, `shareable`, `none`, `service:*`"},
	"HostConfig.Cgroup":                          ours(),
	"HostConfig.Links":                           ours(),
	"HostConfig.OomScoreAdj":                     {name: "limits.oom_score_adj", key: "oom_score_adj", grade: escape, check: least(func(l *Lists) int64 { return int64(l.OomScoreAdj) }), risk: "lets the kernel kill other processes of the host first", lets: "0 and above"},
	"HostConfig.PidMode":                         {name: "namespaces.pid", key: "pid", grade: escape, check: joins(escape, func(l *Lists) []string { return l.PID }), risk: "lets the container see and stop every process of the host", lets: "`private`"},
	"HostConfig.Privileged":                      {name: "privileged", key: "privileged", grade: escape, risk: "gives the container the host: every device and the whole kernel"},
	"HostConfig.PublishAllPorts":                 ours(),
	"HostConfig.ReadonlyRootfs":                  pass("read_only"),
	"HostConfig.SecurityOpt":                     listOnly("security_opt", "security_opt", securityOptions, securityOpts, "changes what confines the container"),
	"HostConfig.StorageOpt":                      {name: "storage_opt", key: "storage_opt", grade: escape, check: keysOnly(these()), risk: "goes to the host's storage driver"},
	"HostConfig": {
		name: "mounts.tmpfs_max", key: "tmpfs", grade: limit, check: whole, risk: "may fill more than 2 GiB of the host's memory",
		lets: "2 GiB at most, all of a service together. Without a size it is half of the host's memory; that is told where the service has no memory limit",
	},
	"HostConfig.Tmpfs":         withCheck(withKey(targetRule, "tmpfs"), tmpfsTargets),
	"HostConfig.UTSMode":       {name: "namespaces.uts", key: "uts", grade: escape, check: joins(forbidden, func(l *Lists) []string { return l.UTS }), risk: "lets the container change the host's name"},
	"HostConfig.UsernsMode":    {name: "namespaces.userns", key: "userns_mode", grade: escape, check: joins(forbidden, func(l *Lists) []string { return l.Userns }), risk: "takes away what maps the container's root to an ordinary user"},
	"HostConfig.ShmSize":       {name: "limits.shm_max", key: "shm_size", grade: limit, check: most(func(l *Lists) int64 { return l.ShmMax }), risk: "may fill more than 2 GiB of the host's memory", lets: "2 GiB at most"},
	"HostConfig.Sysctls":       listOnly("sysctls", "sysctls", sysctls, sysctlsOnly, "changes settings of the kernel"),
	"HostConfig.Runtime":       {name: "runtime", key: "runtime", grade: escape, check: runtimeOf, risk: "runs the container under another program of the host", lets: listed(runtimes) + ", the engine's default"},
	"HostConfig.Isolation":     ours(),
	"HostConfig.MaskedPaths":   {name: "security_opt", key: "security_opt", grade: escape, check: unmasked, risk: "shows the container what the engine hides of the kernel"},
	"HostConfig.ReadonlyPaths": {name: "security_opt", key: "security_opt", grade: escape, check: unmasked, risk: "lets the container write settings of the kernel"},
	"HostConfig.Init":          pass("init"),
}

const outsideSubnets = "addresses outside 169.254.0.0/16 and fd00:ec2::/32"

func atLeastASecond(key string) rule {
	return rule{name: "healthcheck.interval", key: key, grade: limit, check: least(func(*Lists) int64 { return intervalMin }), risk: "has the engine start a program more than once a second", lets: "1 second at least"}
}

func withCheck(r rule, check func(*look)) rule {
	r.check = check
	return r
}

// resourceRules are of HostConfig.Resources, whose fields are HostConfig's own.
var resourceRules = map[string]rule{
	"HostConfig.CPUShares":                     pass("cpu_shares"),
	"HostConfig.Memory":                        pass("mem_limit"),
	"HostConfig.NanoCPUs":                      pass("cpus"),
	"HostConfig.CgroupParent":                  {name: "cgroup_parent", key: "cgroup_parent", grade: escape, risk: "puts the container into a control group of the host, out of the engine's limits"},
	"HostConfig.BlkioWeight":                   pass("blkio_config"),
	"HostConfig.BlkioWeightDevice[].Path":      pass("blkio_config"),
	"HostConfig.BlkioWeightDevice[].Weight":    pass("blkio_config"),
	"HostConfig.BlkioDeviceReadBps[].Path":     pass("blkio_config"),
	"HostConfig.BlkioDeviceReadBps[].Rate":     pass("blkio_config"),
	"HostConfig.BlkioDeviceWriteBps[].Path":    pass("blkio_config"),
	"HostConfig.BlkioDeviceWriteBps[].Rate":    pass("blkio_config"),
	"HostConfig.BlkioDeviceReadIOps[].Path":    pass("blkio_config"),
	"HostConfig.BlkioDeviceReadIOps[].Rate":    pass("blkio_config"),
	"HostConfig.BlkioDeviceWriteIOps[].Path":   pass("blkio_config"),
	"HostConfig.BlkioDeviceWriteIOps[].Rate":   pass("blkio_config"),
	"HostConfig.CPUPeriod":                     pass("cpu_period"),
	"HostConfig.CPUQuota":                      pass("cpu_quota"),
	"HostConfig.CPURealtimePeriod":             {name: "limits.realtime", key: "cpu_rt_period", grade: escape, risk: "takes the CPU from every other process of the host"},
	"HostConfig.CPURealtimeRuntime":            {name: "limits.realtime", key: "cpu_rt_runtime", grade: escape, risk: "takes the CPU from every other process of the host"},
	"HostConfig.CpusetCpus":                    pass("cpuset"),
	"HostConfig.CpusetMems":                    pass("cpuset"),
	"HostConfig.Devices":                       {name: "devices", key: "devices", grade: escape, check: devices, risk: "gives the container a device of the host"},
	"HostConfig.Devices[].PathOnHost":          part("devices", "devices"),
	"HostConfig.Devices[].PathInContainer":     part("devices", "devices"),
	"HostConfig.Devices[].CgroupPermissions":   part("devices", "devices"),
	"HostConfig.DeviceCgroupRules":             {name: "devices", key: "device_cgroup_rules", grade: escape, check: eachWord, risk: "lets the container use devices of the host"},
	"HostConfig.DeviceRequests":                {name: "devices", key: "gpus", grade: escape, check: deviceRequests, risk: "gives the container a device of the host, such as its graphics card"},
	"HostConfig.DeviceRequests[].Driver":       part("gpus", "devices"),
	"HostConfig.DeviceRequests[].Count":        part("gpus", "devices"),
	"HostConfig.DeviceRequests[].DeviceIDs":    part("gpus", "devices"),
	"HostConfig.DeviceRequests[].Capabilities": part("gpus", "devices"),
	"HostConfig.DeviceRequests[].Options":      part("gpus", "devices"),
	"HostConfig.KernelMemory":                  pass(""),
	"HostConfig.KernelMemoryTCP":               pass(""),
	"HostConfig.MemoryReservation":             pass("mem_reservation"),
	"HostConfig.MemorySwap":                    pass("memswap_limit"),
	"HostConfig.MemorySwappiness":              pass("mem_swappiness"),
	"HostConfig.OomKillDisable":                {name: "limits.oom_kill_disable", key: "oom_kill_disable", grade: escape, check: truth, risk: "lets the kernel kill other processes of the host instead"},
	"HostConfig.PidsLimit":                     pass("pids_limit"),
	"HostConfig.Ulimits[].Name":                {name: "ulimits", key: "ulimits", grade: escape, check: ulimitName, risk: "takes the CPU from other processes of the host", lets: listed(ulimits)},
	"HostConfig.Ulimits[].Soft":                pass("ulimits"),
	"HostConfig.Ulimits[].Hard":                pass("ulimits"),
	"HostConfig.CPUCount":                      ours(),
	"HostConfig.CPUPercent":                    ours(),
	"HostConfig.IOMaximumIOps":                 ours(),
	"HostConfig.IOMaximumBandwidth":            ours(),
}

var mountRules = map[string]rule{
	"HostConfig.Mounts[].Type":                               paths("mounts.bind", "volumes"),
	"HostConfig.Mounts[].Source":                             {key: "volumes", with: "mounts.bind", check: mountSource},
	"HostConfig.Mounts[].Target":                             withCheck(targetRule, mountTarget),
	"HostConfig.Mounts[].ReadOnly":                           part("volumes", "mounts.bind"),
	"HostConfig.Mounts[].Consistency":                        pass("volumes"),
	"HostConfig.Mounts[].BindOptions.Propagation":            part("volumes", "mounts.bind"),
	"HostConfig.Mounts[].BindOptions.NonRecursive":           pass("volumes"),
	"HostConfig.Mounts[].BindOptions.CreateMountpoint":       pass("volumes"),
	"HostConfig.Mounts[].BindOptions.ReadOnlyNonRecursive":   pass("volumes"),
	"HostConfig.Mounts[].BindOptions.ReadOnlyForceRecursive": pass("volumes"),
	"HostConfig.Mounts[].VolumeOptions.NoCopy":               pass("volumes"),
	"HostConfig.Mounts[].VolumeOptions.Labels":               labelled("volumes"),
	"HostConfig.Mounts[].VolumeOptions.Subpath":              pass("volumes"),
	"HostConfig.Mounts[].VolumeOptions.DriverConfig.Name":    listOnly("mounts.volume_drivers", "volumes", volumeDrivers, only(func(l *Lists) []string { return l.VolumeDrivers }), "is a program that acts as root on the host"),
	"HostConfig.Mounts[].VolumeOptions.DriverConfig.Options": {name: "mounts.driver_opts", key: "volumes", grade: escape, check: volumeOptions, risk: "goes to the volume's driver, which acts as root on the host"},
	"HostConfig.Mounts[].ImageOptions":                       ours(),
	"HostConfig.Mounts[].TmpfsOptions.SizeBytes":             part("tmpfs", "mounts.tmpfs_max"),
	"HostConfig.Mounts[].TmpfsOptions.Mode":                  pass("volumes"),
	"HostConfig.Mounts[].TmpfsOptions.Options":               ours(),
	"HostConfig.Mounts[].ClusterOptions":                     ours(),
}

var endpointRules = map[string]rule{
	"Networking.EndpointsConfig":       joined,
	"Endpoint.IPAMConfig.IPv4Address":  subnet("networks.*.ipv4_address", "takes"),
	"Endpoint.IPAMConfig.IPv6Address":  subnet("networks.*.ipv6_address", "takes"),
	"Endpoint.IPAMConfig.LinkLocalIPs": subnet("networks.*.link_local_ips", "takes"),
	"Endpoint.Links":                   ours(),
	"Endpoint.Aliases":                 pass("networks"),
	"Endpoint.MacAddress":              pass("networks"),
	"Endpoint.DriverOpts":              listOnly("networks.driver_opts", "networks.*.driver_opts", networkOptions, keysOnly(func(l *Lists) []string { return l.NetworkOptions }), "sets options of the network driver on the host"),
	"Endpoint.GwPriority":              pass("networks"),
	"Endpoint.NetworkID":               ours(),
	"Endpoint.EndpointID":              ours(),
	"Endpoint.Gateway":                 ours(),
	"Endpoint.IPAddress":               ours(),
	"Endpoint.IPPrefixLen":             ours(),
	"Endpoint.IPv6Gateway":             ours(),
	"Endpoint.GlobalIPv6Address":       ours(),
	"Endpoint.GlobalIPv6PrefixLen":     ours(),
	"Endpoint.DNSNames":                ours(),
}

func subnet(key, does string) rule {
	return rule{
		name: "networks.forbid_subnets", key: key, grade: escape, check: addresses,
		risk: does + " addresses of the host's own link, such as that of a cloud's credentials", lets: outsideSubnets,
	}
}

func private(does string) rule {
	return rule{
		name: "networks.subnets", key: "ipam.config", grade: escape, check: subnetsOnly,
		risk: does + " addresses of the host's own link, such as that of a cloud's credentials", lets: "RFC 1918, 100.64.0.0/10, and fc00::/7 without fd00:ec2::/32",
	}
}

var networkRules = map[string]rule{
	"Network.Driver":                   listOnly("networks.drivers", "driver", networkDrivers, only(func(l *Lists) []string { return l.NetworkDrivers }), "joins containers to the host's network by a driver of the host"),
	"Network.Scope":                    withCheck(ours(), notOfASwarm),
	"Network.EnableIPv4":               pass("enable_ipv4"),
	"Network.EnableIPv6":               pass("enable_ipv6"),
	"Network.IPAM.Driver":              listOnly("networks.ipam", "ipam.driver", []string{"default"}, only(these("default")), "gives out addresses by a program of the host"),
	"Network.IPAM.Options":             {name: "networks.ipam", key: "ipam.options", grade: escape, check: keysOnly(these()), risk: "sets options of the address driver on the host"},
	"Network.IPAM.Config[].Subnet":     private("covers"),
	"Network.IPAM.Config[].IPRange":    private("covers"),
	"Network.IPAM.Config[].Gateway":    private("takes"),
	"Network.IPAM.Config[].AuxAddress": private("names"),
	"Network.Internal":                 pass("internal"),
	"Network.Attachable":               pass("attachable"),
	"Network.Ingress":                  ours(),
	"Network.ConfigOnly":               ours(),
	"Network.ConfigFrom":               ours(),
	"Network.Options":                  listOnly("networks.driver_opts", "driver_opts", networkOptions, keysOnly(func(l *Lists) []string { return l.NetworkOptions }), "sets options of the network driver on the host"),
	"Network.Labels":                   withCheck(labelled("labels"), networkLabels),
}

var volumeRules = map[string]rule{
	"Volume.ClusterVolumeSpec": ours(),
	"Volume.Driver":            listOnly("mounts.volume_drivers", "driver", volumeDrivers, only(func(l *Lists) []string { return l.VolumeDrivers }), "is a program that acts as root on the host"),
	"Volume.DriverOpts":        {name: "mounts.driver_opts", key: "driver_opts", grade: escape, check: volumeOptions, risk: "goes to the volume's driver, which acts as root on the host"},
	"Volume.Labels":            labelled("labels"),
	"Volume.Name":              {name: "mounts.external_volumes", key: "name", grade: forbidden, check: volumeName, risk: "is a volume of another app", lets: "all but volumes of other apps"},
}

// execRules are of hooks, which run inside an instance.
var execRules = map[string]rule{
	"Exec.User":         withKey(userRule, "post_start"),
	"Exec.Privileged":   {name: "hooks.privileged", key: "post_start", grade: escape, check: hookPrivileged, risk: "runs a command with every device and the whole kernel"},
	"Exec.Tty":          pass("post_start"),
	"Exec.ConsoleSize":  ours(),
	"Exec.AttachStdin":  pass("post_start"),
	"Exec.AttachStderr": pass("post_start"),
	"Exec.AttachStdout": pass("post_start"),
	"Exec.DetachKeys":   ours(),
	"Exec.Detach":       pass("post_start"),
	"Exec.Env":          pass("post_start"),
	"Exec.WorkingDir":   hookDirRule,
	"Exec.Cmd":          programRule("post_start", firstWord),
}

// appRules are of an app as a whole, which no single request shows.
var appRules = append([]rule{servicesRule, replicasRule, steeringRule, nestedRule, checkProgramRule}, append(slices.Clone(serviceRules), hardenedRules...)...)

// Rules of an app as a whole, which no single request shows.
var (
	servicesRule = rule{name: "limits.services_per_app", key: "", grade: limit, risk: "is more than one app may bring", lets: "100 at most"}
	replicasRule = rule{name: "limits.replicas", key: "deploy.replicas", grade: limit, risk: "is more than one service may have", lets: "20 at most"}
	steeringRule = rule{name: "labels.steering", key: "labels", grade: escape, risk: "is an order to a program that reads labels through the engine's socket"}
	nestedRule   = rule{name: "mounts.nested", key: "volumes", grade: escape, risk: "lies inside a folder that a container may write to: a program that is broken into can become root here by a restart", lets: "folders above which no container may write, or that each such container mounts at their own place, one level down"}
)
