package policy

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// eachWord finds every text of a list.
func eachWord(l *look) {
	for _, s := range l.words() {
		l.find(finding{value: s, at: s})
	}
}

// these are a list that a policy cannot change.
func these(words ...string) func(*Lists) []string {
	return func(*Lists) []string { return words }
}

// only is a check of one text.
func only(list func(*Lists) []string) func(*look) {
	return func(l *look) {
		if s := l.text(); s != "" && !among(list(l.r.lists()), s) {
			l.find(finding{value: s})
		}
	}
}

// keysOnly is a check of the keys of a map; values are not shown.
func keysOnly(list func(*Lists) []string) func(*look) {
	return func(l *look) {
		for _, key := range sortedKeys(l.dict()) {
			if !among(list(l.r.lists()), key) {
				l.find(finding{value: key, at: key})
			}
		}
	}
}

// sysctlsOnly is keysOnly of names with dots: with a slash one may mean another file.
func sysctlsOnly(l *look) {
	for _, key := range sortedKeys(l.dict()) {
		if strings.Contains(key, "/") || !among(l.r.lists().Sysctls, key) {
			l.find(finding{value: key, at: key})
		}
	}
}

// capability is a name as the list has it.
func capability(s string) string { return strings.TrimPrefix(strings.ToUpper(s), "CAP_") }

var capabilityRisks = map[string]string{
	"ALL":             "gives the container all of the kernel's powers",
	"SYS_ADMIN":       "gives the container nearly all of the kernel's powers, mounts among them",
	"SYS_MODULE":      "lets the container load code into the host's kernel",
	"SYS_RAWIO":       "lets the container read and write memory and devices of the host",
	"SYS_PTRACE":      "lets the container read and change other processes that it can see",
	"SYS_TIME":        "lets the container set the host's clock",
	"SYS_BOOT":        "lets the container restart the host",
	"DAC_READ_SEARCH": "lets the container open any file of the host by its number",
	"NET_ADMIN":       "lets the container change addresses, routes and firewall of its networks",
	"NET_RAW":         "lets the container forge packets on its networks",
	"BPF":             "lets the container run programs in the host's kernel",
	"PERFMON":         "lets the container watch the host's kernel",
	"SYSLOG":          "lets the container read the host's kernel log",
	"MKNOD":           "lets the container make device files",
}

func capabilitiesAdd(l *look) {
	for _, s := range l.words() {
		if name := capability(s); !among(l.r.lists().Capabilities, name) {
			l.find(finding{value: s, at: s, risk: capabilityRisks[name], instead: "remove it from cap_add", asks: name, alone: name == "ALL"})
		}
	}
}

// securityOpts judges "option", "option=value" and "option:value". A seccomp
// profile stands there whole; its name is enough to show.
func securityOpts(l *look) {
	for _, s := range l.words() {
		option, value, _ := strings.Cut(strings.Replace(s, "=", ":", 1), ":")
		if among(l.r.lists().SecurityOpt, strings.TrimSuffix(option+":"+value, ":")) {
			continue
		}
		if strings.ContainsAny(value, "{[") { // a whole profile
			s, value = option, hashed(value)
		}
		if option == "seccomp" && slices.Contains(l.r.lists().Seccomp, value) || option == "apparmor" && slices.Contains(l.r.lists().AppArmor, value) {
			continue
		}
		asks := option + "=" + value
		l.find(finding{value: s, at: option, risk: securityRisks[option], asks: asks})
	}
}

var securityRisks = map[string]string{
	"seccomp":           "changes which calls of the kernel the container may make",
	"apparmor":          "changes or takes away the AppArmor profile that confines the container",
	"label":             "changes or takes away the SELinux label that confines the container",
	"systempaths":       "shows the container what the engine hides of the kernel",
	"no-new-privileges": "lets programs of the container gain powers that it was not started with",
}

// joins is a check of a namespace: "" and the listed modes pass, and so does a
// container of the same app where the list has service:*. One of another app of the source
// is a power of owner, and one of strangers never passes.
func joins(own grade, list func(*Lists) []string) func(*look) {
	return func(l *look) {
		mode, lets := l.text(), list(l.r.lists())
		of, joined := strings.CutPrefix(mode, "container:")
		switch {
		case mode == "", slices.Contains(lets, mode):
		case joined && l.req.Elsewhere[of] != "":
			l.find(finding{value: "container:" + l.req.Elsewhere[of], grade: own, alone: true, risk: "shares the network of another app, with what listens there for that app alone"})
		case joined && slices.Contains(l.req.Owners, of):
			if !slices.Contains(lets, "service:*") {
				l.find(finding{value: strings.TrimPrefix(mode, "container:"), grade: own, asks: "service:*", risk: "lets the service see and stop the processes of another service of the app"})
			}
		case joined:
			l.find(finding{value: mode, grade: forbidden, risk: "joins a container that is not the app's"})
		case mode == "host":
			l.find(finding{value: mode})
		case slices.Contains(modes, mode): // taken out of the list by this host
			l.find(finding{value: mode, grade: limit, risk: "is not among the namespaces that this host lets apps have"})
		default:
			l.find(finding{value: mode, grade: forbidden, risk: "is a namespace that gitring does not know"})
		}
	}
}

// modes are the namespaces that profile compose lets pass by a word.
var modes = []string{"private", "shareable", "none"}

// networkMode: a name is that of a network, of the app's own or an external one.
func networkMode(l *look) {
	mode := l.text()
	lets := l.r.lists().Network
	switch {
	case strings.Contains(mode, ":"), mode == "host":
		joins(limit, func(l *Lists) []string { return l.Network })(l)
	case mode == "none" && !slices.Contains(lets, "none"), mode != "" && mode != "none" && !slices.Contains(lets, "bridge"):
		l.find(finding{value: mode, grade: limit, risk: "is not among the networks that this host lets apps have"})
	}
}

func volumesFrom(l *look) {
	for _, s := range l.words() {
		of, _, _ := strings.Cut(s, ":")
		if rest, ok := strings.CutPrefix(s, "service:"); ok {
			name, _, _ := strings.Cut(rest, ":")
			of = "service:" + name
		}
		if !slices.Contains(l.req.Owners, of) {
			l.find(finding{value: s, at: s})
		}
	}
}

// truth finds what is true, also behind a pointer.
func truth(l *look) {
	if l.v.Bool() {
		l.find(finding{})
	}
}

// most is a check of a number's upper end, least of its lower.
func most(n func(*Lists) int64) func(*look) {
	return func(l *look) {
		if l.v.Int() > n(l.r.lists()) {
			l.find(finding{value: fmt.Sprint(l.v.Int())})
		}
	}
}

func least(n func(*Lists) int64) func(*look) {
	return func(l *look) {
		if l.v.Int() < n(l.r.lists()) {
			l.find(finding{value: fmt.Sprint(l.v.Int())})
		}
	}
}

func devices(l *look) {
	for i := range l.v.Len() {
		host := textOf(deref(l.v.Index(i)).FieldByName("PathOnHost"))
		if l.r.lists().devicePasses(path.Clean(host)) {
			continue
		}
		l.find(finding{value: host, at: host, risk: deviceRisk(path.Clean(host)), asks: path.Clean(host)})
	}
}

func deviceRisk(p string) string {
	switch {
	case strings.HasPrefix(p, "/dev/sd"), strings.HasPrefix(p, "/dev/nvme"), strings.HasPrefix(p, "/dev/vd"), strings.HasPrefix(p, "/dev/mapper"), strings.HasPrefix(p, "/dev/dm-"), strings.HasPrefix(p, "/dev/md"):
		return "gives the container a disk of the host, with every file on it"
	case p == "/dev/mem", p == "/dev/kmem", p == "/dev/port":
		return "gives the container the memory of the host"
	case p == "/dev", p == "/":
		return "gives the container every device of the host"
	}
	return ""
}

// deviceRequests judges what is asked of the engine's device drivers. The driver
// cdi is what devices with a name in place of a path are asked of.
func deviceRequests(l *look) {
	for i := range l.v.Len() {
		r := deref(l.v.Index(i))
		driver := textOf(r.FieldByName("Driver"))
		if driver != "cdi" {
			asks := "gpus"
			if driver != "" && driver != "nvidia" {
				asks += ":" + driver
			}
			if l.r.lists().devicePasses(asks) {
				continue
			}
			l.find(finding{value: driver, asks: asks})
			continue
		}
		ids := r.FieldByName("DeviceIDs")
		for k := range ids.Len() {
			id := textOf(ids.Index(k))
			l.find(finding{key: "devices", value: id, at: id, risk: "gives the container a device of the host"})
		}
	}
}

func groups(l *look) {
	for _, s := range l.words() {
		group := s
		if n, err := strconv.Atoi(s); err == nil { // the engine reads 0998 and +998 so too
			group = strconv.Itoa(n)
		}
		if group == "docker" || slices.Contains(l.r.EngineGroups, group) {
			l.find(finding{value: s, at: s, asks: group})
		}
	}
}

func ulimitName(l *look) {
	if s := l.text(); !among(ulimits, s) {
		l.find(finding{value: s, at: s})
	}
}

func hookPrivileged(l *look) {
	if strings.HasPrefix(l.via, "Request.PreStop") {
		l.find(finding{key: "pre_stop"})
		return
	}
	l.find(finding{})
}

// unmasked is a check of a list that replaces one of the engine's own: an empty
// one replaces it too.
func unmasked(l *look) { l.find(finding{at: "systempaths", asks: "systempaths=unconfined"}) }

// labels judges those that are gitring's or Compose's own: gitring sets them,
// and they say the truth about whose the thing is.
func labels(l *look) {
	truths := map[string]string{
		"gitring.app": l.req.App, "com.docker.compose.project": l.req.App,
		"gitring.host": l.r.Host, "gitring.service": l.req.Service, "com.docker.compose.service": l.req.Service,
	}
	all := l.dict()
	for _, name := range sortedKeys(all) {
		if among(l.r.lists().Reserved, name) && !among(reservedLabels, name) {
			l.find(finding{value: name, at: name, risk: "is a label that this host reserves"})
			continue
		}
		if !among(reservedLabels, name) {
			continue
		}
		if want := truths[name]; !among(ownLabels, name) || want != "" && all[name] != want {
			l.find(finding{value: name, at: name})
		}
	}
	l.steering(all)
}
