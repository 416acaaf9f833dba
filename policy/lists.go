package policy

import (
	"net/netip"
	"path"
	"slices"
	"strings"
)

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
	networkOptions = []string{"com.docker.network.driver.mtu"}

	// forbiddenSubnets are where clouds answer for a host's credentials.
	forbiddenSubnets = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00:ec2::/32")}

	// propagations are of mounts; the engine's default is rprivate.
	propagations = []string{"", "rprivate"}
	// always may be mounted by every app, read-only, themselves and what is in them.
	always = []string{"/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo", "/etc/ssl/certs"}
	// grantOnly and never are told by their list; both are refused like any
	// other path of the host.
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
		"gitring.definition", "gitring.hooks", "com.docker.compose.project", "com.docker.compose.service", "com.docker.compose.container-number",
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

// portsDenied are not for apps: from 80 on those of a host's own programs, which names,
// time, files, printing and its rule over the network go through, and those that speak to
// engines and clusters. Below 80 hostPort says so of all: shells, mail, names, addresses.
var portsDenied = []int{
	88, 111, 123, 135, 137, 138, 139, 161, 162, 177, 179, 445, 464, 500, 512, 513, 514, 515, 520, 521, 546, 547, 623, 631, 749, 750, 860, 873, 953,
	2375, 2376, 2377, 4789, 7946,
}

func hostPort(n int) bool { return n >= 80 && n <= 65535 && !slices.Contains(portsDenied, n) }

// among says that s is one of the list's words.
func among(list []string, s string) bool {
	return slices.ContainsFunc(list, func(word string) bool {
		if before, star := strings.CutSuffix(word, "*"); star {
			return strings.HasPrefix(s, before)
		}
		return s == word
	})
}

// within says that p is dir or lies below it; both are clean and absolute.
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
