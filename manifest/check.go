package manifest

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/format"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/distribution/reference"
	"github.com/gitring/gitring/ring"
	"github.com/mattn/go-shellwords"
)

// keyCheck is one key of a Compose file that is decided by its value.
type keyCheck struct {
	app   string
	chain []string
	key   pair
	fs    *faults
	// ports counts the ports of the app so far, ranges expanded.
	ports *int
	limit Limits
	read  *reader
	root  string // the app's folder
}

// name is the key as people find it: services.web.ports.
func (k *keyCheck) name() string { return strings.Join(k.chain, ".") }

func (k *keyCheck) text() string { return k.key.val.text }

func (k *keyCheck) deny(risk string, args ...any) {
	k.fs.add(ring.PolicyDenied, k.key.place, "remove it; no policy of this release grants it", "%s %s", k.name(), fmt.Sprintf(risk, args...))
}

func (k *keyCheck) refuse(says, hint string, args ...any) {
	k.fs.add(ring.Unsupported, k.key.place, hint, "%s %s", k.name(), fmt.Sprintf(says, args...))
}

func (k *keyCheck) bad(hint, says string, args ...any) {
	k.fs.add(ring.BadValue, k.key.place, hint, "%s %s", k.name(), fmt.Sprintf(says, args...))
}

// judge decides about one key that Compose knows: false when nothing below it
// is to be looked at.
func (k *keyCheck) judge(pattern string) bool {
	c, known := classes[pattern]
	if !known {
		c = later // an update of compose-go brought it; the test of classes tells
	}
	if c.value != nil {
		if !k.key.val.null() && !k.key.val.unexpanded() {
			c.value(k)
		}
		return true
	}
	if c.code == "" {
		return true
	}
	if !k.key.val.asksNothing() {
		k.fs.add(c.code, k.key.place, c.hint, "%s %s", k.name(), c.says)
	}
	return false
}

func networkMode(k *keyCheck) {
	switch mode := k.text(); {
	case mode == "none" || mode == "":
	case mode == "host":
		k.deny("host: the container shares the host's network, with every service on it")
	case strings.HasPrefix(mode, "container:"):
		k.deny("container: the container joins the network of a container of others")
	default:
		k.refuse("%s is not carried out by this release", "use networks:, or network_mode: none", head(mode))
	}
}

// namespace is for pid, ipc, uts and userns_mode.
func namespace(k *keyCheck) {
	key := k.chain[len(k.chain)-1]
	switch mode := k.text(); {
	case mode == "":
	case mode == "host":
		k.deny("host: the container shares the host's %s namespace", strings.TrimSuffix(key, "_mode"))
	case strings.HasPrefix(mode, "container:"):
		k.deny("container: the container joins the %s namespace of a container of others", key)
	default:
		k.refuse("%s is not carried out by this release", "remove it", head(mode))
	}
}

func cgroupMode(k *keyCheck) {
	if k.text() == "host" {
		k.deny("host: the container sees the host's control groups")
		return
	}
	k.refuse("%s is not carried out by this release", "remove it", head(k.text()))
}

func volumesFrom(k *keyCheck) {
	for _, w := range k.key.val.words() {
		if strings.HasPrefix(w, "container:") {
			k.deny("container: the container gets the volumes of a container of others")
			return
		}
	}
	if !k.key.val.asksNothing() {
		k.refuse("is not carried out by this release", "mount the same volumes in both services")
	}
}

// clears is for command and entrypoint. An empty one clears the image's, which
// a spec cannot say; and the shell-like form is cut at the first operator.
func clears(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.refuse("is empty, which would clear the image's; this release cannot", "remove it, or write what to run")
		return
	}
	if k.key.val.kind != scalar {
		return
	}
	p := shellwords.NewParser()
	if _, err := p.Parse(k.text()); err != nil {
		k.bad("close the quotes, or write a list", "cannot be split into words")
	} else if p.Position >= 0 {
		k.bad(`write ["sh", "-c", "…"] to run a shell`, "holds a shell operator, and no shell runs it: the rest would be cut off")
	}
}

// testKind: the first word says how the rest is run.
func testKind(k *keyCheck) {
	if v := k.key.val; v.kind == list && len(v.items) > 0 && !slices.Contains([]string{"CMD", "CMD-SHELL", "NONE"}, v.items[0].text) {
		k.bad(`write it as a text, or start the list with "CMD" or "CMD-SHELL"`, "starts with %q, not with CMD, CMD-SHELL or NONE", head(v.items[0].text))
	} else if v.kind == list && len(v.items) > 2 && v.items[0].text == "CMD-SHELL" {
		k.bad(`write the command as one text, or start the list with "CMD"`, "has more than one text after CMD-SHELL, and the shell would run the first only")
	}
}

func imageName(k *keyCheck) {
	if _, err := reference.ParseAnyReference(k.text()); err != nil {
		k.bad("write name:tag, in lower case", "%q is no image name", head(k.text()))
	}
}

func pullPolicy(k *keyCheck) {
	switch p := k.text(); p {
	case types.PullPolicyMissing, types.PullPolicyIfNotPresent, types.PullPolicyNever, "":
	case types.PullPolicyBuild:
		k.refuse("build would build an image on the host", "build it in CI, push it, and name it with image:")
	default:
		k.refuse("%s would move a pinned image", "use missing; a new tag or digest in the file brings a new image", head(p))
	}
}

var restartWords = regexp.MustCompile(`^(no|always|unless-stopped|on-failure(:[0-9]{1,6})?|)$`)

func restartWord(k *keyCheck) {
	if !restartWords.MatchString(k.text()) {
		k.bad(`write always, unless-stopped, on-failure, on-failure:3 or "no"`, "%q is no restart policy", head(k.text()))
	}
}

// signals are the names and numbers that the engine knows on Linux.
var signals = regexp.MustCompile(`^(SIG)?(ABRT|ALRM|BUS|CHLD|CLD|CONT|FPE|HUP|ILL|INT|IO|IOT|KILL|PIPE|POLL|PROF|PWR|QUIT|SEGV|STKFLT|STOP|SYS|TERM|TRAP|TSTP|TTIN|TTOU|URG|USR1|USR2|VTALRM|WINCH|XCPU|XFSZ|RTMIN(\+([1-9]|1[0-5]))?|RTMAX(-([1-9]|1[0-4]))?)$|^([1-9]|[1-5][0-9]|6[0-4])$`)

func stopSignal(k *keyCheck) {
	if !signals.MatchString(k.text()) {
		k.bad("write a signal such as SIGTERM or SIGQUIT", "%q is no signal", head(k.text()))
	}
}

// duration: compose-go refuses another word too, without telling where. A bare
// number is not even of the type.
func duration(k *keyCheck) {
	var d types.Duration
	if v := k.key.val; v.kind == scalar && v.tag != tagInt && d.DecodeMapstructure(k.text()) != nil {
		k.bad("write a duration such as 5s or 1m30s", "%q is no duration", head(k.text()))
	}
}

// gracePeriod: a spec takes 0 as Compose's default of 10 s.
func gracePeriod(k *keyCheck) {
	var d types.Duration
	if err := d.DecodeMapstructure(k.text()); err == nil && d <= 0 {
		k.bad("write 1s for the shortest", "is not above 0s")
		return
	}
	duration(k)
}

// workingDir: the engine refuses a relative one when it is too late.
func workingDir(k *keyCheck) {
	if d := k.text(); d != "" && !path.IsAbs(d) {
		k.bad("write an absolute path", "%q is not absolute", head(d))
	}
}

// hostNames are what the kernel takes for one: 64 bytes, and nothing odd.
var hostNames = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`)

func hostName(k *keyCheck) {
	if h := k.text(); h != "" && !hostNames.MatchString(h) {
		k.bad("use at most 64 letters, digits, dots and dashes", "%q is no host name", head(h))
	}
}

// namesSet refuses a variable without a name.
func namesSet(k *keyCheck) {
	for _, it := range k.key.val.items {
		if strings.HasPrefix(it.text, "=") {
			k.fs.add(ring.BadValue, it.place, "write NAME=value", "%s: %q sets no name", k.name(), head(it.text))
		}
	}
	for _, p := range k.key.val.pairs {
		if p.key == "" || strings.Contains(p.key, "=") {
			k.fs.add(ring.BadValue, p.place, "write NAME: value", "%s: %q is no name", k.name(), head(p.key))
		}
	}
}

// extraHostNames looks at each name and its address, in the forms that Compose
// takes: name=address, name:address, or a mapping.
func extraHostNames(k *keyCheck) {
	look := func(written, name, address string, at place) {
		address = strings.Trim(address, "[]")
		if _, err := netip.ParseAddr(address); name == "" || err != nil && address != "host-gateway" {
			k.fs.add(ring.BadValue, at, "write name=address, such as db=10.0.0.5, or name=host-gateway", "%s: %q is no name with an address", k.name(), head(written))
		}
	}
	for _, it := range k.key.val.items {
		name, address, ok := strings.Cut(it.text, "=")
		if !ok {
			name, address, _ = strings.Cut(it.text, ":")
		}
		look(it.text, name, address, it.place)
	}
	for _, p := range k.key.val.pairs {
		words := p.val.words()
		if len(words) == 0 {
			look(p.key, p.key, "", p.place)
		}
		for _, address := range words {
			look(p.key+": "+address, p.key, address, p.place)
		}
	}
}

func deployMode(k *keyCheck) {
	if m := k.text(); m != "" && m != "replicated" {
		k.refuse("%s is Swarm's", "remove it; deploy.replicas says how many run here", head(m))
	}
}

func logDriver(k *keyCheck) {
	if d := k.text(); d != "" && !slices.Contains([]string{"local", "json-file", "journald", "none"}, d) {
		k.deny("%s sends logs from the host's own network", head(d))
	}
}

// logOptions are those of the drivers that are carried out. The engine refuses
// others when the container is created.
var logOptions = []string{
	"max-size", "max-file", "compress", "labels", "labels-regex", "env", "env-regex", "tag", "mode", "max-buffer-size",
	"cache-disabled", "cache-max-size", "cache-max-file", "cache-compress",
}

func logOption(k *keyCheck) {
	for _, p := range k.key.val.pairs {
		if !contains(logOptions, p.key) {
			k.fs.add(ring.UnknownKey, p.place, didYouMean(p.key, slices.Clone(logOptions)), "unknown key %s.%s", k.name(), head(p.key))
		}
	}
}

func serviceAlias(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.refuse("false is not carried out by this release", "remove it")
	}
}

func createHostPath(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.refuse("false is not carried out by this release: a data folder is created on first use", "remove it")
	}
}

func ipv4Off(k *keyCheck) {
	if k.key.val.asksNothing() {
		k.refuse("false is not carried out by this release", "remove it")
	}
}

// ownName lets a network or volume carry the name it has anyway.
func ownName(k *keyCheck) {
	name := k.app + "_" + k.chain[1]
	if n := k.text(); n != "" && n != name {
		k.refuse("%s is not carried out by this release", "remove it; the name will be "+name, head(n))
	}
}

func networkDriver(k *keyCheck) {
	switch d := k.text(); d {
	case "", "bridge":
	case "overlay":
		k.refuse("overlay is Swarm's", "remove it")
	default:
		k.deny("%s reaches the host's own network", head(d))
	}
}

func ipamDriver(k *keyCheck) {
	if d := k.text(); d != "" && d != "default" {
		k.deny("%s is another program of the host", head(d))
	}
}

func volumeDriver(k *keyCheck) {
	if d := k.text(); d != "" && d != "local" {
		k.deny("%s is another program of the host", head(d))
	}
}

// reservedLabels refuses those by which gitring and Compose know what is theirs.
func reservedLabels(k *keyCheck) {
	report := func(label string, at place) {
		if strings.HasPrefix(label, "gitring.") || strings.HasPrefix(label, "com.docker.compose.") {
			k.fs.add(ring.PolicyDenied, at, "rename or remove it",
				"%s %s is reserved: by it gitring knows what is its own", k.name(), head(label))
		}
	}
	for _, p := range k.key.val.pairs {
		report(p.key, p.place)
	}
	for _, it := range k.key.val.items {
		label, _, _ := strings.Cut(it.text, "=")
		report(label, it.place)
	}
}

// publishedPorts looks at short forms, and counts: a range is a few letters
// and may be 65,535 ports.
func publishedPorts(k *keyCheck) {
	for _, it := range k.key.val.items {
		at := keyCheck{app: k.app, chain: k.chain, key: pair{place: it.place, val: it}, fs: k.fs, ports: k.ports, limit: k.limit}
		if it.kind == scalar {
			at.shortPort(it.text)
			continue
		}
		at.longPort()
	}
}

func exposedPorts(k *keyCheck) {
	for _, it := range k.key.val.items {
		at := keyCheck{chain: k.chain, key: pair{place: it.place, val: it}, fs: k.fs, ports: k.ports, limit: k.limit}
		ports, proto, _ := strings.Cut(it.text, "/")
		at.protocol(proto)
		at.width(ports)
	}
}

// shortPort is [[ip:]host:]container[/protocol], each port maybe a range.
func (k *keyCheck) shortPort(s string) {
	s, proto, _ := strings.Cut(s, "/")
	k.protocol(proto)
	rest, container := cutLast(s)
	n := k.width(container)
	if rest == "" {
		return
	}
	address, host := cutLast(rest)
	if _, err := netip.ParseAddr(strings.Trim(address, "[]")); address != "" && err != nil {
		k.bad("write host:container, or address:host:container such as 127.0.0.1:8080:80", "%q has %q where an address stands", head(s), head(address))
		return
	}
	if host == "" {
		return
	}
	if m := k.width(host); m > 0 && n > 0 && m != n {
		k.refuse("%q leaves the host port open: a range for one port", "write one host port, or none", head(s))
	}
}

func (k *keyCheck) longPort() {
	k.count(1)
	k.protocol(textOf(k.key.val.get("protocol")))
	if m := textOf(k.key.val.get("mode")); m != "" && m != "host" && m != "ingress" {
		k.bad("remove it", "mode %q is neither host nor ingress", head(m))
	}
	if p := textOf(k.key.val.get("published")); strings.Contains(p, "-") {
		k.refuse("published %q leaves the host port open", "write one host port, or none", head(p))
	}
}

func (k *keyCheck) protocol(p string) {
	if p != "" && !slices.Contains([]string{"tcp", "udp", "sctp"}, strings.ToLower(p)) {
		k.bad("write tcp, udp or sctp", "protocol %q is unknown", head(p))
	}
}

// width is how many ports a range names; 0 when it is none.
func (k *keyCheck) width(s string) int {
	from, to, isRange := strings.Cut(s, "-")
	a, err := strconv.Atoi(strings.TrimSpace(from))
	b := a
	if isRange && err == nil {
		b, err = strconv.Atoi(strings.TrimSpace(to))
	}
	if err != nil || a < 0 || b > 65535 || b < a {
		k.bad("write a port from 1 to 65535", "%q is no port", head(s))
		return 0
	}
	k.count(b - a + 1)
	return b - a + 1
}

func (k *keyCheck) count(n int) {
	if *k.ports <= k.limit.Ports && *k.ports+n > k.limit.Ports {
		k.fs.add(ring.TooLarge, k.key.place, "publish a smaller range", "the app names more than %d ports", k.limit.Ports)
	}
	*k.ports += n
}

func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", s
	}
	return s[:i], s[i+1:]
}

func textOf(n *node) string {
	if n == nil {
		return ""
	}
	return n.text
}

// mountedVolumes looks at what each entry asks of the host.
func mountedVolumes(k *keyCheck) {
	for _, it := range k.key.val.items {
		at := keyCheck{app: k.app, chain: k.chain, key: pair{place: it.place, val: it}, fs: k.fs, read: k.read, root: k.root}
		if it.kind == scalar {
			at.shortVolume(it.text)
			continue
		}
		at.volume(types.ServiceVolumeConfig{
			Type: textOf(it.get("type")), Source: textOf(it.get("source")), Target: textOf(it.get("target")),
		})
	}
}

var volumeOptions = map[string]bool{"": true, "ro": true, "rw": true, "nocopy": true}

func (k *keyCheck) shortVolume(s string) {
	v, err := format.ParseVolume(s)
	if err != nil {
		k.bad("write source:target or source:target:ro", "%q is no mount", head(s))
		return
	}
	if v.Bind != nil && v.Bind.Propagation != "" {
		k.deny("%q shares mounts between the container and the host", head(s))
		return
	}
	if v.Source == "" && windowsPath.MatchString(v.Target) {
		k.bad("give the volume a longer name than one letter", "%q is a drive of Windows to Compose", head(s))
		return
	}
	_, options, _ := strings.Cut(strings.TrimPrefix(s, v.Source+":"+v.Target), ":")
	for o := range strings.SplitSeq(options, ",") {
		if !volumeOptions[o] {
			k.refuse("option %s of %q is not carried out by this release", "remove the option", head(o), head(s))
			return
		}
	}
	k.volume(v)
}

func (k *keyCheck) volume(v types.ServiceVolumeConfig) {
	if v.Target == "" || !path.IsAbs(v.Target) || path.Clean(v.Target) == "/" {
		k.bad("mount at an absolute path below /", "%q is no target of a mount", head(v.Target))
	}
	switch v.Type {
	case types.VolumeTypeBind:
		k.bind(v.Source)
	case types.VolumeTypeVolume, types.VolumeTypeTmpfs, "":
	default:
		k.fs.add(ring.Unsupported, k.key.place, "use a volume, a file of the commit or a tmpfs", "%s type %s is not carried out by this release", k.name(), head(v.Type))
	}
}

var windowsPath = regexp.MustCompile(`^([a-zA-Z]:|\\\\)`)

func (k *keyCheck) bind(source string) {
	switch {
	case path.IsAbs(source) && strings.HasSuffix(source, ".sock"):
		k.deny("%s gives the container a socket of the host, which may be the host itself", head(source))
	case path.IsAbs(source), strings.HasPrefix(source, "~"), windowsPath.MatchString(source):
		k.fs.add(ring.PolicyDenied, k.key.place,
			"use a path relative to the Compose file, or a named volume; no policy of this release grants a path of the host",
			"%s %s gives the container a path of the host", k.name(), head(source))
	case source == "":
		k.bad("add a source", "a bind mount has no source")
	case !k.read.inside(path.Join(k.root, source)):
		k.fs.put(outside(source, k.key.place))
	}
}
