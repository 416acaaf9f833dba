package policy

import (
	"cmp"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gitring/gitring/imagesign"
)

// OwnFolder is the entry of mounts.bind_roots that stands for the app's own data.
const OwnFolder = "{data_root}/{path}"

// Lists are what a policy lets pass, key by key. An asterisk at the end of a word stands
// for any text. Their names are those of the policy's keys.
type Lists struct {
	Capabilities   []string // capabilities.add
	Network        []string // namespaces.network, and so on
	PID            []string
	IPC            []string
	UTS            []string
	Userns         []string
	Cgroup         []string
	Devices        []string `json:",omitempty"` // paths, with all below them, and gpus; none is deny
	SecurityOpt    []string // security_opt.allow
	Seccomp        []string `json:",omitempty"` // security_opt.profiles.seccomp
	AppArmor       []string `json:",omitempty"`
	Sysctls        []string
	BindRoots      []string // mounts.bind_roots
	Always         []string // each ends in :ro
	GrantOnly      []string
	Never          []string
	Propagation    []string
	VolumeDrivers  []string
	DriverOpts     []string `json:",omitempty"` // as "name=value", of a volume's driver
	TmpfsMax       int64
	NetworkDrivers []string // networks.drivers
	NetworkOptions []string
	Subnets        []string // nil is private
	External       []string // networks.external; nil is shared
	Ports          []string // ports.host: a port or a range, with or without a protocol
	PortsDenied    []string
	Logging        []string
	Reserved       []string `json:",omitempty"` // labels.reserved, beside gitring's own and Compose's
	Registries     []string // images.registries
	// Signatures are images.signatures: the first that matches counts.
	Signatures    []imagesign.Rule `json:",omitempty"`
	RequireDigest bool             // images.tags
	DenyLatest    bool             // images.latest
	DenyMoving    bool             // images.moving
	MinAge        int              `json:",omitempty"` // images.min_age, in seconds
	SecretsIn     []string         // secrets.in
	DenyHooks     bool             // hooks.exec
	DenyFronts    bool             `json:",omitempty"` // traffic.fronts
	DenyInternal  bool             `json:",omitempty"` // traffic.internal
	Services      int              // limits.services_per_app; 0 is the host's
	Replicas      int
	StopGrace     int // seconds
	OomScoreAdj   int
	ShmMax        int64
	PidsMax       int64 // 0 is no bound
}

// lists are those in effect.
func (r *Rules) lists() *Lists {
	if r.Lists != nil {
		return r.Lists
	}
	if r.Profile == Hardened {
		return &hardenedLists
	}
	return &composeLists
}

var composeLists, hardenedLists = ListsOf(Compose), ListsOf(Hardened)

// ListsOf are the lists of a profile.
func ListsOf(p Profile) Lists {
	if p == Hardened {
		l := ListsOf(Compose)
		l.Registries, l.RequireDigest, l.DenyMoving, l.SecretsIn, l.External = []string{}, true, true, []string{"file"}, []string{}
		return l
	}
	return Lists{
		Capabilities: capabilities,
		Network:      []string{"bridge", "none", "service:*"}, PID: []string{"private"}, IPC: []string{"private", "shareable", "none", "service:*"},
		UTS: []string{"private"}, Userns: []string{"default"}, Cgroup: []string{"private"},
		SecurityOpt: securityOptions, Sysctls: sysctls,
		BindRoots: []string{OwnFolder}, Always: always, GrantOnly: grantOnly, Never: never, Propagation: []string{"rprivate"},
		VolumeDrivers: volumeDrivers, TmpfsMax: tmpfsMax,
		NetworkDrivers: networkDrivers, NetworkOptions: networkOptions,
		Ports: []string{"80-65535"}, PortsDenied: portsDenied,
		Logging: logDrivers, Registries: []string{"*"}, SecretsIn: []string{"file", "env", "command", "labels"},
		Replicas: replicasMax, StopGrace: stopGraceMax, ShmMax: shmMax,
	}
}

// What profile compose lets pass. An asterisk stands for any text.
var (
	// capabilities are Docker's own defaults that may be named again, and
	// SYS_NICE, which databases ask for.
	capabilities = []string{
		"NET_BIND_SERVICE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "SETFCAP",
		"SYS_CHROOT", "AUDIT_WRITE", "SYS_NICE",
	}
	securityOptions = []string{"no-new-privileges", "no-new-privileges:true"}
	sysctls         = []string{
		"net.core.somaxconn", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range",
		"net.ipv4.tcp_keepalive_*", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_fin_timeout", "kernel.shm_rmid_forced",
	}
	ulimits = []string{
		"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nofile", "nproc", "rss", "sigpending", "stack",
	}
	runtimes       = []string{"runc"}
	logDrivers     = []string{"local", "json-file", "journald", "none"}
	volumeDrivers  = []string{"local"}
	networkDrivers = []string{"bridge", "overlay"}
	networkOptions = []string{"com.docker.network.driver.mtu", "encrypted"}

	// forbiddenSubnets are where clouds answer for a host's credentials.
	forbiddenSubnets = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00:ec2::/32")}

	// always may be mounted by every app, read-only, themselves and what is in them.
	always = []string{"/etc/localtime:ro", "/etc/timezone:ro", "/usr/share/zoneinfo:ro", "/etc/ssl/certs:ro"}
	// grantOnly are closed below a bind root too, and never also to grants.
	grantOnly = []string{
		"**/docker.sock", "**/containerd.sock", "**/podman.sock", "/dev", "/run/dbus", "/run/udev", "/sys", "/proc", "/etc", "/home",
		"/var/log", "/lib/modules",
	}
	never = []string{"/", "/boot", "/root", "/var/lib/docker", "/var/lib/containerd"}
	// volumeFolders are where engines keep what is in volumes: a volume is asked
	// for by its name, so that it is known whose it is.
	volumeFolders = []string{"/var/lib/docker/volumes", "/var/lib/containers/storage/volumes"}

	// annotations only describe. Any other may be an order to a program that starts containers.
	annotations    = []string{"org.opencontainers.*"}
	reservedLabels = []string{"gitring.*", "com.docker.compose.*"}
	// ownLabels are those that gitring sets itself.
	ownLabels = []string{
		"gitring.host", "gitring.source", "gitring.app", "gitring.service", "gitring.slot", "gitring.version", "gitring.commit", "gitring.kind",
		"gitring.definition", "gitring.hooks", "gitring.settings", "gitring.sent", "gitring.failed", "gitring.good", "gitring.content", "gitring.run.trigger", "gitring.run.for", "gitring.run.due", "com.docker.compose.project", "com.docker.compose.service", "com.docker.compose.container-number",
		"com.docker.compose.oneoff", "com.docker.compose.config-hash", "com.docker.compose.project.working_dir",
		"com.docker.compose.project.config_files", "com.docker.compose.network", "com.docker.compose.volume",
		"com.docker.compose.image", "com.docker.compose.depends_on", "com.docker.compose.version",
	}
)

// Sizes and counts of profile compose.
const (
	tmpfsMax       = 2 << 30
	shmMax         = 2 << 30
	stopGraceMax   = 600           // seconds
	intervalMin    = 1_000_000_000 // nanoseconds
	servicesPerApp = 100
	replicasMax    = 20
)

// portsDenied are not for apps: those of a host's own programs, which names, time, files,
// printing and its rule over the network go through, and those that speak to engines and
// clusters.
var portsDenied = []string{
	"88", "111", "123", "135", "137", "138", "139", "161", "162", "177", "179", "445", "464", "500", "512", "513", "514", "515", "520", "521", "546",
	"547", "623", "631", "749", "750", "860", "873", "953", "2375", "2376", "2377", "4789", "7946",
}

// portPasses reports whether ports.host lets a port pass, and ports.deny does not close it.
func (l *Lists) portPasses(n int, proto string) bool {
	return portAmong(l.Ports, n, proto) && !portAmong(l.PortsDenied, n, proto)
}

// devicePasses reports whether devices lets a device pass: a clean path, or gpus.
func (l *Lists) devicePasses(asks string) bool {
	return slices.ContainsFunc(l.Devices, func(word string) bool { return within(asks, word) })
}

// portAmong reports whether a port is in a list of ports and ranges such as "80",
// "1024-65535" and "53/udp". A number without a protocol is of all.
func portAmong(list []string, n int, proto string) bool {
	return slices.ContainsFunc(list, func(word string) bool {
		from, to, of, ok := PortRange(word)
		return ok && n >= from && n <= to && (of == "" || of == cmp.Or(proto, "tcp"))
	})
}

// PortRange reads "80", "1024-65535" or "53/udp".
func PortRange(word string) (from, to int, proto string, ok bool) {
	ports, proto, has := strings.Cut(word, "/")
	first, last, isRange := strings.Cut(ports, "-")
	if !isRange {
		last = first
	}
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	ok = err1 == nil && err2 == nil && from >= 1 && from <= to && to <= 65535 && (!has || slices.Contains([]string{"tcp", "udp", "sctp"}, proto))
	return from, to, proto, ok
}

// among reports whether s is one of the list's words.
func among(list []string, s string) bool {
	return slices.ContainsFunc(list, func(word string) bool {
		if before, star := strings.CutSuffix(word, "*"); star {
			return strings.HasPrefix(s, before)
		}
		return s == word
	})
}

// within reports whether p is dir or lies below it; both are clean and absolute.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// placed gives the entry of a list of paths that p is or lies below. A name
// after "**/" is of a file anywhere; the root folder stands for itself alone.
func placed(list []string, p string) (string, bool) {
	for _, entry := range list {
		if name, anywhere := strings.CutPrefix(entry, "**/"); anywhere {
			if path.Base(p) == name {
				return entry, true
			}
			continue
		}
		if p == entry || entry != "/" && within(p, entry) {
			return entry, true
		}
	}
	return "", false
}

// IsPrefix reports whether a text is a subnet or an address.
func IsPrefix(s string) bool {
	_, ok := prefixOf(s)
	return ok
}

// ClosedRoot is the entry of mounts.never that closes a bind root.
func ClosedRoot(l Lists, root string) (string, bool) {
	if strings.Contains(root, "{data_root}") {
		return "", false
	}
	for _, entry := range l.Never {
		if e := plain(entry); e != "/" && within(plain(root), e) {
			return entry, true
		}
	}
	return "", false
}

// Effective are the lists that count.
func (r *Rules) Effective() Lists { return *r.lists() }
