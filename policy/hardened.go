package policy

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Hardened is compose, and asks of every service to confine itself. It refuses what does
// not; it changes nothing.
const Hardened Profile = "hardened"

// Rules of profile hardened alone.
var (
	noNewPrivilegesRule = rule{name: "hardened.no_new_privileges", key: "security_opt", grade: escape, risk: "lets programs of the container gain powers that it was not started with"}
	capDropRule         = rule{name: "hardened.cap_drop", key: "cap_drop", grade: escape, risk: "keeps the capabilities that Docker gives by default"}
	readOnlyRule        = rule{name: "hardened.read_only", key: "read_only", grade: escape, risk: "lets programs change the container's own files"}
	memoryRule          = rule{name: "hardened.memory", key: "mem_limit", grade: escape, risk: "may fill the host's memory"}
	pidsLimitRule       = rule{name: "hardened.pids", key: "pids_limit", grade: escape, risk: "may start more processes than one service may have here"}
	logSizeRule         = rule{name: "hardened.log_size", key: "logging", grade: escape, risk: "may fill the host's disk with its log"}
	tmpfsSizeRule       = rule{name: "hardened.tmpfs_size", key: "tmpfs", grade: escape, risk: "has no size: it may fill half of the host's memory"}
	addressRule         = rule{name: "hardened.ports", key: "ports", grade: escape, risk: "is published for other machines"}
	userRule            = rule{name: "hardened.user", key: "user", grade: escape, check: userOf, risk: "runs as root in the container", lets: "all"}
)

var hardenedRules = []rule{noNewPrivilegesRule, capDropRule, readOnlyRule, memoryRule, pidsLimitRule, logSizeRule, tmpfsSizeRule, addressRule}

// whole judges a HostConfig as a whole.
func whole(l *look) {
	tmpfsTogether(l)
	if l.r.Profile == Hardened && l.v.FieldByName("ReadonlyRootfs").IsValid() { // not its embedded part
		l.hardened()
	}
}

// under is a look at the same thing by another rule.
func (l *look) under(r rule, f finding) {
	at := *l
	at.rule = r
	at.find(f)
	l.out = at.out
}

// hardened finds what a container leaves open that profile hardened wants closed.
func (l *look) hardened() {
	of := func(name string) reflect.Value { return deref(l.v.FieldByName(name)) }
	list := func(name string) []string {
		v := of(name)
		if !v.IsValid() || v.Kind() != reflect.Slice {
			return nil
		}
		at := *l
		at.v = v
		return at.words()
	}
	if opts := list("SecurityOpt"); !slices.ContainsFunc(opts, func(s string) bool {
		return slices.Contains([]string{"no-new-privileges", "no-new-privileges:true", "no-new-privileges=true"}, s)
	}) {
		l.under(noNewPrivilegesRule, finding{asks: "false", instead: "say security_opt: [no-new-privileges:true]"})
	}
	if !slices.ContainsFunc(list("CapDrop"), func(s string) bool { return capability(s) == "ALL" }) {
		l.under(capDropRule, finding{asks: "none", instead: "say cap_drop: [ALL], and in cap_add what it needs"})
	}
	if !of("ReadonlyRootfs").Bool() {
		l.under(readOnlyRule, finding{asks: "false", instead: "say read_only: true, and tmpfs: for what it writes"})
	}
	if v := of("Memory"); !v.IsValid() || v.Int() <= 0 {
		l.under(memoryRule, finding{asks: "none", instead: "say mem_limit:"})
	}
	if v := of("PidsLimit"); !v.IsValid() || v.Int() <= 0 || v.Int() > hardenedPids {
		asks := "none"
		if v.IsValid() {
			asks = strconv.FormatInt(v.Int(), 10)
		}
		l.under(pidsLimitRule, finding{asks: asks, instead: "say pids_limit: " + strconv.Itoa(hardenedPids) + " or less"})
	}
	l.logSize(of("LogConfig"))
	for _, t := range tmpfsOf(l.v, l.r.lists().TmpfsMax) {
		if t.bytes == 0 && t.bad == "" {
			l.under(tmpfsSizeRule, finding{value: t.target, at: t.target, instead: "say its size, such as " + t.target + ":size=64m"})
		}
	}
	l.addresses(of("PortBindings"))
}

// hardenedPids is how many processes a service of profile hardened may have.
const hardenedPids = 1024

// logSize: journald and none keep their own bounds; of the others a file grows as long as
// nothing says how far.
func (l *look) logSize(v reflect.Value) {
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return
	}
	kind := textOf(deref(v.FieldByName("Type")))
	if kind == "none" || kind == "journald" {
		return
	}
	if options := deref(v.FieldByName("Config")); options.IsValid() && options.Kind() == reflect.Map {
		for it := options.MapRange(); it.Next(); {
			if size := textOf(deref(it.Value())); textOf(it.Key()) == "max-size" && size != "" && size != "-1" {
				return
			}
		}
	}
	l.under(logSizeRule, finding{asks: "none", instead: "say logging: {driver: json-file, options: {max-size: 10m}}"})
}

// addresses finds ports that are published on another address than the host's own.
func (l *look) addresses(bindings reflect.Value) {
	if !bindings.IsValid() || bindings.Kind() != reflect.Map {
		return
	}
	for it := bindings.MapRange(); it.Next(); {
		_, proto, _ := strings.Cut(it.Key().String(), "/")
		for i := range it.Value().Len() {
			b := deref(it.Value().Index(i))
			ip, port := textOf(deref(b.FieldByName("HostIP"))), textOf(deref(b.FieldByName("HostPort")))
			if p, ok := prefixOf(ip); ok && p.Addr().IsLoopback() {
				continue
			}
			asks := ip + ":" + port
			if proto != "" && proto != "tcp" {
				asks += "/" + proto
			}
			l.under(addressRule, finding{value: strings.TrimPrefix(asks, ":"), at: port, asks: strings.TrimPrefix(asks, ":"), instead: "publish on 127.0.0.1"})
		}
	}
}

// userOf judges the user of a container. What the image says is known right before the
// container is made.
func userOf(l *look) {
	if l.r.Profile != Hardened {
		return
	}
	name, _, _ := strings.Cut(l.text(), ":")
	if n, err := strconv.Atoi(name); name == "root" || err == nil && n == 0 {
		l.find(finding{value: l.text(), asks: "root", instead: "say user: with a number above 0"})
	}
}
