package manifest

import (
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"

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
	fit   *node // the key's value, without what is not of its type; nil where that is all
	fs    *faults
	// ports counts the ports of the app so far, ranges expanded.
	ports *int
	limit Limits
	read  *reader
	root  string // the app's folder
	note  func(says string, args ...any)
	image func(service string) string // as the app's files say it
}

// name is the key as people find it: services.web.ports.
func (k *keyCheck) name() string { return strings.Join(k.chain, ".") }

func (k *keyCheck) text() string { return k.key.val.text }

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
		if !k.fit.null() && !k.key.val.unexpanded() { // what it will be is not known
			k.key.val = k.fit
			c.value(k)
		}
		return true
	}
	if c.ignored != "" && k.onSwarm() && slices.Contains(swarmCarries, pattern) {
		return false
	}
	if c.ignored != "" {
		if !k.key.val.asksNothing() {
			k.note("%s %s", k.name(), c.ignored)
		}
		return false
	}
	if c.code == "" {
		return true
	}
	if c.spared != nil {
		if note := c.spared(k); note != "" {
			k.note("%s %s", k.name(), note)
			return false
		}
	}
	if !k.key.val.asksNothing() {
		k.fs.add(c.code, k.key.place, c.hint, "%s %s", k.name(), c.says)
	}
	return false
}

// imageSaid spares a build beside image: Compose pulls that image too before it would build.
func imageSaid(k *keyCheck) string {
	if len(k.chain) > 2 && k.image(k.chain[1]) != "" {
		return "is not carried out: the image that image: names is pulled, as Compose tries first"
	}
	return ""
}

// splits looks at the form that is cut into words as a shell does, and is run
// without one. An empty one clears the image's.
func splits(k *keyCheck) {
	if k.key.val.kind != scalar {
		return
	}
	p := shellwords.NewParser()
	if _, err := p.Parse(k.text()); err != nil {
		k.bad("close the quotes, or write a list", "cannot be split into words")
	} else if p.Position >= 0 {
		switch rest := k.text()[p.Position:]; {
		case strings.Trim(rest, ";& \t\r\n") != "":
			k.bad(`write ["sh", "-c", "…"] to run a shell`, "holds a shell operator, and no shell runs it: the rest would be cut off")
		case strings.Contains(rest, "&"): // behind the last there is nothing to lose
			k.note("%s ends with &, which no shell reads: it is left out, as under Compose", k.name())
		}
	}
}

// testKind: the first word says how the rest is run.
func testKind(k *keyCheck) {
	if v := k.key.val; v.kind == list && len(v.items) > 0 && !slices.Contains([]string{"CMD", "CMD-SHELL", "NONE"}, v.items[0].text) {
		k.bad(`write it as a text, or start the list with "CMD" or "CMD-SHELL"`, "starts with %q, not with CMD, CMD-SHELL or NONE", head(v.items[0].text))
	} else if v.kind == list && len(v.items) > 2 && v.items[0].text == "CMD-SHELL" {
		k.note("%s has more than one text after CMD-SHELL, and the shell runs the first only, as under Compose", k.name())
	}
}

func imageName(k *keyCheck) {
	if _, err := reference.ParseAnyReference(k.text()); err != nil {
		k.bad("write name:tag, in lower case", "%q is no image name", head(k.text()))
	}
}

func pullPolicy(k *keyCheck) {
	switch p := k.text(); p {
	case types.PullPolicyAlways, types.PullPolicyMissing, types.PullPolicyIfNotPresent, types.PullPolicyNever, pullRefresh, "":
	case types.PullPolicyBuild:
		k.refuse("build would build an image on the host", "build it in CI, push it, and name it with image:")
	default:
		if _, ok := everyOf(p); !ok {
			k.bad("write daily, weekly or every_12h; always asks the registry at each commit", "%q is no pull policy", head(p))
		}
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

// dnsServers are asked by address: there is nothing yet that could look a name up.
func dnsServers(k *keyCheck) {
	for _, n := range k.key.val.texts() {
		if _, err := netip.ParseAddr(n.text); err != nil && n.text != "" {
			k.fs.add(ring.BadValue, n.place, "write addresses such as 9.9.9.9", "%s %q is no address", k.name(), head(n.text))
		}
	}
}

var macAddresses = regexp.MustCompile(`^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$`)

func macAddress(k *keyCheck) {
	if m := k.text(); m != "" && !macAddresses.MatchString(m) {
		k.bad("write six pairs of hex digits, such as 02:42:ac:11:65:43", "%q is no MAC address", head(m))
	}
}

// containerNames are the engine's own grammar.
var containerNames = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

func containerName(k *keyCheck) {
	if n := k.text(); n != "" && !containerNames.MatchString(n) {
		k.bad("use letters, digits, dots, underscores and dashes", "%q is no container name", head(n))
	}
}

// hostPath is for a path of the host that must be whole.
func hostPath(k *keyCheck) {
	if p := k.text(); !path.IsAbs(p) {
		k.bad("write an absolute path, such as /dev/sda", "%q is no absolute path", head(p))
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
	m := k.text()
	if k.onSwarm() {
		if m != "" && m != "replicated" && m != "global" {
			k.refuse("%s is not carried out by this release", "write replicated, or leave it out", head(m))
		}
		return
	}
	if m != "" && m != "replicated" {
		k.note("%s %s %s: deploy.replicas says how many run", k.name(), head(m), swarmOnly)
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

func textOf(n *node) string {
	if n == nil {
		return ""
	}
	return n.text
}
