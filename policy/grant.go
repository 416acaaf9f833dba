package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Grant lets one app have one thing that the profile refuses.
type Grant struct {
	// App, Source and Path are whose it is: all three have to be those of the app that asks.
	App, Source, Path string
	// Service is the one that may; "" is every service, and what belongs to the app as
	// a whole, such as its networks.
	Service string
	Feature string // the name of the rule
	Value   string // what was asked, whole
	Reason  string
	// Expires is the first moment at which it does not count any more; zero is never.
	Expires time.Time
	// Danger reports whether somebody wrote that the thing gives root on the host.
	Danger bool
	// Signers are patterns of names and fingerprints; nil is everybody. The grant counts
	// only while one of them signed the newest change of the file in which the use stands.
	Signers []string
	At      string // where it stands, file:line
}

// Equivalent is what "danger" has to say of a grant that gives root on the host.
const Equivalent = "root-equivalent"

// isOf reports whether the grant was given to the app and service that ask.
func (g *Grant) isOf(q *Request) bool {
	if g.App != q.App || g.Source != q.Source || path.Clean(g.Path) != path.Clean(q.Path) {
		return false
	}
	return g.Service == "" || q.Key == "container" && g.Service == cmp.Or(q.FrontOf, q.Service)
}

// Expired reports whether the grant does not count any more.
func (g *Grant) Expired(now time.Time) bool { return !g.Expires.IsZero() && !now.Before(g.Expires) }

// granted is the grant that lets the request have what a rule refuses, nil when there
// is none. What a grant says counts whole: a path is not what lies above or below it.
// lapsed is about one that would, and does not count. of and at say where the use stands.
func (r *Rules) granted(q *Request, feature, asks, of, at string) (*Grant, lapse) {
	var lapsed lapse
	for i := range r.Grants {
		g := &r.Grants[i]
		if g.Feature != feature || !g.isOf(q) || !g.Danger && GivesRoot(feature, asks) || !covers(feature, g.Value, asks) {
			continue
		}
		if g.Expired(r.Now) {
			lapsed = lapse{"its grant (" + g.At + ") ended with " + g.LastDay(), "or write a later day in expires of " + g.At}
			continue
		}
		if len(g.Signers) == 0 || r.Signed == nil {
			return g, lapse{}
		}
		why := r.Signed(of, at, g.Signers)
		if why == "" {
			return g, lapse{}
		}
		names := strings.Join(g.Signers, ", ")
		lapsed = lapse{"its grant (" + g.At + ") is for what " + names + " signs: " + why, "or have " + names + " sign a new change of that file, or vouch for the commit"}
	}
	return nil, lapsed
}

// lapse is why a grant that would let something pass does not count, and what to do.
type lapse struct{ says, hint string }

// LastDay is the last day on which a grant counts.
func (g *Grant) LastDay() string { return g.Expires.AddDate(0, 0, -1).Format(time.DateOnly) }

// told is where a grant stands, and whose change it asks for where nobody asked who made it.
func (g *Grant) told(r *Rules) string {
	if len(g.Signers) > 0 && r.Signed == nil {
		return g.At + ", on the host only for what " + strings.Join(g.Signers, ", ") + " signs"
	}
	return g.At
}

func covers(feature, value, asks string) bool {
	have, err := GrantValue(feature, value)
	if err != "" {
		return false
	}
	if want, readOnly := strings.CutSuffix(asks, ":ro"); feature == "mounts.bind" && readOnly && have == want {
		return true // who may write there may read
	}
	return have == asks
}

// ungranted are rules about what belongs to others, or to nobody on the host.
var ungranted = []string{
	"images.signatures", "labels.reserved", "engine.unused", "mounts.external_volumes", "mounts.volumes_from", "names.alias", "networks.external", "ports.exclusive", Routes, UnknownField,
}

// Features are the names of rules that a grant can name, in order.
func Features() []string {
	var out []string
	for _, r := range table {
		out = append(out, r.name)
	}
	for _, r := range appRules {
		out = append(out, r.name)
	}
	out = slices.DeleteFunc(out, func(name string) bool { return name == "" || slices.Contains(ungranted, name) })
	return sortedWords(out)
}

// pathFeatures are those whose value begins with a path of the host.
var pathFeatures = []string{"mounts.bind", "mounts.nested"}

// GrantValue is the value of a grant as it is compared, or what is wrong with it.
func GrantValue(feature, value string) (have, wrong string) {
	switch feature {
	case "capabilities.add":
		if value = capability(value); value == "ALL" {
			return "", "ALL is never granted; name the capabilities"
		}
	case "mounts.bind", "mounts.nested":
		p, mode, _ := strings.Cut(value, ":")
		switch {
		case !path.IsAbs(p) || strings.ContainsAny(p, "*?[]{}$~"):
			return "", "a path of the host is absolute and names one folder or file"
		case path.Clean(p) != p:
			return "", "the path is to be written as " + path.Clean(p)
		case mode != "" && (feature == "mounts.nested" || !grantedMode.MatchString(mode)):
			return "", "behind a path only :ro or a propagation is known"
		case mode != "":
			return plain(p) + ":" + mode, ""
		}
		return plain(p), ""
	case "devices":
		if strings.HasPrefix(value, "/") && (path.Clean(value) != value || !within(value, "/dev")) {
			return "", "a device is a path in /dev, written without dots and doubled slashes"
		}
	case "ports.host":
		port, proto, has := strings.Cut(value, "/")
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 || has && !slices.Contains([]string{"tcp", "udp", "sctp"}, proto) {
			return "", "write one port, such as 53/udp"
		}
		if value = strconv.Itoa(n); proto != "" && proto != "tcp" {
			value += "/" + proto
		}
	case "security_opt":
		value = strings.Replace(value, ":", "=", min(1, strings.Count(strings.SplitN(value, "=", 2)[0], ":")))
	}
	if value == "" {
		return "", "say value: what is asked, such as value: true"
	}
	return value, ""
}

// NeverGranted reports whether a value as GrantValue gives it is closed to every grant by
// mounts.never, or is the daemon's own wherever it stands.
func NeverGranted(l Lists, feature, have string) bool {
	if !slices.Contains(pathFeatures, feature) {
		return false
	}
	p, _, _ := strings.Cut(have, ":")
	_, closed := neverAt(l.Never, p)
	return closed || withinAny(p, ownAnywhere)
}

// SharedFolders are the folders outside of an app's own that containers may write to: bind
// roots, and what is granted to write. What gives root is left out: who has it needs no link.
func (r *Rules) SharedFolders(dataRoot, appPath string) []string {
	var out []string
	for _, entry := range r.lists().BindRoots {
		if entry != OwnFolder {
			out = append(out, path.Clean(strings.NewReplacer("{data_root}", dataRoot, "{path}", appPath).Replace(entry)))
		}
	}
	for _, g := range r.Grants {
		if p, mode, _ := strings.Cut(g.Value, ":"); g.Feature == "mounts.bind" && mode != "ro" && !GivesRoot(g.Feature, g.Value) {
			out = append(out, path.Clean(p))
		}
	}
	return sortedWords(out)
}

// RootTogether reports whether two grants of one app together give root on the host: the
// first sees all of its processes, and the second traces them. One service can join the
// processes of another, so whose each of them is makes no difference.
func RootTogether(a, b *Grant) bool {
	sameApp := a.App == b.App && a.Source == b.Source
	return sameApp && a.Feature == "namespaces.pid" && a.Value == "host" && b.Feature == "capabilities.add" && capability(b.Value) == "SYS_PTRACE"
}

var grantedMode = regexp.MustCompile(`^(ro|r?shared|r?slave|private)$`)

// rootCapabilities are those by which a program leaves its container.
var rootCapabilities = []string{"SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "DAC_READ_SEARCH", "BPF"}

// rootFolders are those of the host that its own programs run by.
var rootFolders = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt/containerd", "/proc", "/root", "/run", "/sbin", "/snap", "/sys", "/usr", "/var/spool",
}

// GivesRoot reports whether who has a thing can become root on the host by it: then a
// grant has to say so.
func GivesRoot(feature, asks string) bool {
	switch feature {
	case "privileged", "hooks.privileged", "mounts.nested", "groups", "cgroup_parent", "storage_opt", "mounts.volume_drivers", "start.program", "start.working_dir", "annotations":
		return true
	case "capabilities.add":
		return slices.Contains(rootCapabilities, capability(asks))
	case "devices":
		return rootDevice(asks)
	case "ports.host":
		port, _, _ := strings.Cut(asks, "/")
		return slices.Contains([]string{"2375", "2376", "2377"}, port)
	case "security_opt":
		return asks == "systempaths=unconfined" // what writes /proc/sys names the program that the host starts
	case "runtime":
		return strings.HasPrefix(asks, "LD_")
	case "labels.steering":
		return !strings.HasPrefix(asks, "io.portainer.")
	case "mounts.driver_opts":
		return rootOptions(asks)
	case "mounts.bind":
		p, mode, _ := strings.Cut(asks, ":")
		return rootPath(plain(p), mode == "ro")
	}
	return false
}

// rootPath reports whether a path of the host gives root to who mounts it.
func rootPath(p string, readOnly bool) bool {
	base := path.Base(p)
	switch {
	case slices.Contains(engineSockets, base), within(p, "/run") && strings.Count(p, "/") == 1:
		return true // a socket obeys also who mounts it read-only
	case p == "/", p == "/var", within(p, "/proc") && !strings.Contains(strings.TrimPrefix(p, "/proc/"), "/") && p != "/proc":
		return true
	case slices.ContainsFunc(ownAnywhere, func(dir string) bool { return within(dir, p) }):
		return true // it holds the keys by which this host is ruled
	case within(p, "/run/containerd"), within(p, "/run/docker"), within(p, "/run/podman"), within(p, "/run/systemd"), within(p, "/run/dbus"):
		return true
	case within(p, "/dev"):
		return p == "/dev" || rootDevice(p)
	}
	return !readOnly && slices.ContainsFunc(rootFolders, func(dir string) bool { return within(p, dir) || within(dir, p) })
}

// engineSockets are those of programs that start containers and machines as root.
var engineSockets = []string{
	"docker.sock", "containerd.sock", "podman.sock", "crio.sock", "dockershim.sock", "buildkitd.sock", "libvirt-sock", "unix.socket",
}

// tameDevices are those of which it is known that they give no disk, no memory and no
// kernel of the host: graphics, sound, video, serial lines, tunnels, USB and clocks.
var tameDevices = regexp.MustCompile(`^/dev/(dri|snd|bus/usb|serial|dvb|usb|input)(/[^/]+)*$|^/dev/(net/tun|hwrng|kfd|kvm|ppp|rtc|ttyprintk|null|zero|full|u?random)$|^/dev/(tty(S|USB|ACM|AMA|THS|mxc)|video|media|rtc|watchdog|nvidia|vchiq|vcsm|gpiochip|i2c-|cec|lirc|hidraw|apex_|davinci|galcore|mali|rknpu)[A-Za-z0-9_-]*$`)

// tameRules are the same as rules of the control group, by the major number.
var tameRules = regexp.MustCompile(`^c (4|81|116|166|188|189|195|204|226|10:200)(:[0-9*]+)? [rwm]+$`)

// rootDevice reports whether a device, or a rule of the control group for devices, may give
// the disks, the memory or the kernel of the host: all that is not known to be tame. What is
// no path is asked of a driver, such as gpus.
func rootDevice(asks string) bool {
	if strings.Contains(asks, " ") {
		return !tameRules.MatchString(asks)
	}
	return strings.HasPrefix(asks, "/") && !tameDevices.MatchString(asks)
}

// hashed stands for a value that is too long or too secret to be written into a grant.
func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}
