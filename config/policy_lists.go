package config

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// policySetting reads the value of one key of a policy into the lists. It returns what is
// wrong with it, and what to write instead.
type policySetting func(l *policy.Lists, n *yaml.Node) (wrong, hint string)

// PolicySettings are the keys of a policy, by path (docs/reference/policy.md#lists). Those
// that have one word only are carried out as that word says, and cannot be changed here.
var PolicySettings = map[string]policySetting{
	"images.registries":                list(func(l *policy.Lists) *[]string { return &l.Registries }, registryPattern),
	"images.tags":                      choice("resolve", "require-digest", func(l *policy.Lists) *bool { return &l.RequireDigest }),
	"images.latest":                    choice("warn", "deny", func(l *policy.Lists) *bool { return &l.DenyLatest }),
	"images.pull":                      fixed("missing"),
	"images.moving":                    choice("allow", "deny", func(l *policy.Lists) *bool { return &l.DenyMoving }),
	signaturesKey:                      nil, // policySignatures
	"images.min_age":                   minAge,
	"build":                            fixed("deny"),
	"privileged":                       fixed("deny"),
	"use_api_socket":                   fixed("deny"),
	"provider":                         fixed("deny"),
	"capabilities.add":                 list(func(l *policy.Lists) *[]string { return &l.Capabilities }, capabilityName),
	"namespaces.network":               words(func(l *policy.Lists) *[]string { return &l.Network }, "bridge", "none", "service:*", "host"),
	"namespaces.pid":                   words(func(l *policy.Lists) *[]string { return &l.PID }, "private", "service:*", "host"),
	"namespaces.ipc":                   words(func(l *policy.Lists) *[]string { return &l.IPC }, "private", "shareable", "none", "service:*", "host"),
	"namespaces.uts":                   words(func(l *policy.Lists) *[]string { return &l.UTS }, "private", "host"),
	"namespaces.userns":                words(func(l *policy.Lists) *[]string { return &l.Userns }, "default", "host"),
	"namespaces.cgroup":                words(func(l *policy.Lists) *[]string { return &l.Cgroup }, "private", "host"),
	"devices":                          wordOr("deny", func(l *policy.Lists) *[]string { return &l.Devices }, deviceOrGPUs),
	"security_opt.allow":               list(func(l *policy.Lists) *[]string { return &l.SecurityOpt }, anyWord),
	"security_opt.profiles.seccomp":    list(func(l *policy.Lists) *[]string { return &l.Seccomp }, anyWord),
	"security_opt.profiles.apparmor":   list(func(l *policy.Lists) *[]string { return &l.AppArmor }, anyWord),
	"sysctls":                          list(func(l *policy.Lists) *[]string { return &l.Sysctls }, anyWord),
	"mounts.repo_binds":                fixed("read-only"),
	"mounts.bind_roots":                list(func(l *policy.Lists) *[]string { return &l.BindRoots }, BindRoot),
	"mounts.always":                    list(func(l *policy.Lists) *[]string { return &l.Always }, readOnlyPath),
	"mounts.grant_only":                list(func(l *policy.Lists) *[]string { return &l.GrantOnly }, pathOrName),
	"mounts.never":                     list(func(l *policy.Lists) *[]string { return &l.Never }, hostPath),
	"mounts.propagation":               words(func(l *policy.Lists) *[]string { return &l.Propagation }, "rprivate", "private", "rslave", "slave", "rshared", "shared"),
	"mounts.nested":                    fixed("deny"),
	"mounts.links":                     fixed("deny"),
	"mounts.volume_drivers":            list(func(l *policy.Lists) *[]string { return &l.VolumeDrivers }, anyWord),
	"mounts.driver_opts":               list(func(l *policy.Lists) *[]string { return &l.DriverOpts }, nameAndValue),
	"mounts.external_volumes":          fixed("own"),
	"mounts.volumes_from":              fixed("same-app"),
	"mounts.tmpfs_max":                 bounded(size, func(l *policy.Lists, n int64) { l.TmpfsMax = n }),
	"networks.drivers":                 list(func(l *policy.Lists) *[]string { return &l.NetworkDrivers }, anyWord),
	"networks.external":                wordOr("shared", func(l *policy.Lists) *[]string { return &l.External }, anyWord),
	"networks.driver_opts":             list(func(l *policy.Lists) *[]string { return &l.NetworkOptions }, anyWord),
	"networks.subnets":                 wordOr("private", func(l *policy.Lists) *[]string { return &l.Subnets }, subnet),
	"ports.host":                       list(func(l *policy.Lists) *[]string { return &l.Ports }, portRange),
	"ports.exclusive":                  fixed("true"),
	"ports.deny":                       list(func(l *policy.Lists) *[]string { return &l.PortsDenied }, portRange),
	"logging":                          list(func(l *policy.Lists) *[]string { return &l.Logging }, anyWord),
	"labels.reserved":                  reservedLabels,
	"labels.steering":                  fixed("deny"),
	"interpolation.env":                none,
	"interpolation.allow_daemon_env":   fixed("never"),
	"secrets.in":                       words(func(l *policy.Lists) *[]string { return &l.SecretsIn }, "file", "env", "command", "labels"),
	"hooks.exec":                       choice("allow", "deny", func(l *policy.Lists) *bool { return &l.DenyHooks }),
	"traffic.fronts":                   choice("allow", "deny", func(l *policy.Lists) *bool { return &l.DenyFronts }),
	"traffic.internal":                 choice("allow", "deny", func(l *policy.Lists) *bool { return &l.DenyInternal }),
	"hooks.privileged":                 fixed("deny"),
	"healthcheck.http_target":          fixed("own-instance-only"),
	"healthcheck.redirects":            fixed("own-instance-only"),
	"limits.services_per_app":          bounded(count, func(l *policy.Lists, n int64) { l.Services = int(n) }),
	"limits.replicas":                  bounded(count, func(l *policy.Lists, n int64) { l.Replicas = int(n) }),
	"limits.stop_grace_max":            stopGrace,
	"limits.oom_score_adj_min":         oomScore,
	"limits.oom_kill_disable":          fixed("deny"),
	"limits.shm_max":                   bounded(size, func(l *policy.Lists, n int64) { l.ShmMax = n }),
	"limits.pids_max":                  pidsMax,
	"destructive.volumes":              fixed("never-delete"),
	"destructive.max_removed_services": fixed("50%"),
	"destructive.empty_tree":           fixed("hold"),
}

// policyGroup reads what stands below a key of the policy, at any depth.
func (k *checker) policyGroup(c *Config, file, at string, line int, n *yaml.Node) {
	if at == signaturesKey {
		k.policySignatures(c, file, line, n)
		return
	}
	if read, ok := PolicySettings[at]; ok {
		if wrong, hint := read(c.Rules.Lists, n); wrong != "" {
			k.inPolicy(file, max(line, n.Line), hint, "policy.%s: %s", at, wrong)
		}
		return
	}
	known := keysBelow(at)
	said, ok := k.mapping(file, "policy."+at, n, known, "write "+at+": {"+strings.Join(known, ": …, ")+": …}")
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(said)) {
		if at == "labels" && key == "routes" {
			continue // read by itself
		}
		k.policyGroup(c, file, at+"."+key, line, said[key])
	}
}

// keysBelow are the keys that may stand below another one, in order.
func keysBelow(at string) []string {
	var out []string
	for p := range PolicySettings {
		if rest, ok := strings.CutPrefix(p, at+"."); ok {
			key, _, _ := strings.Cut(rest, ".")
			out = append(out, key)
		}
	}
	if at == "labels" {
		out = append(out, "routes")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// fixed is a key whose only word says what every release of this kind does.
func fixed(word string) policySetting {
	return func(_ *policy.Lists, n *yaml.Node) (string, string) {
		if n.Kind == yaml.ScalarNode && n.Value == word {
			return "", ""
		}
		hint := "write " + word + ", or take the key out"
		if word == "deny" {
			hint += "; single apps get it by a grant, which gitring policy suggest prints"
		}
		return fmt.Sprintf("%q is not carried out by this release", n.Value), hint
	}
}

// none is a list that has to be empty.
func none(_ *policy.Lists, n *yaml.Node) (string, string) {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		return "", ""
	}
	return "only [] is carried out by this release", "write []"
}

// choice is one of two words; the second sets a field.
func choice(off, on string, field func(*policy.Lists) *bool) policySetting {
	return func(l *policy.Lists, n *yaml.Node) (string, string) {
		if n.Kind != yaml.ScalarNode || n.Value != off && n.Value != on {
			return fmt.Sprintf("%q is not known", n.Value), "write " + off + " or " + on
		}
		*field(l) = n.Value == on
		return "", ""
	}
}

// list is a list that replaces the profile's, or with + and - before each item adds to it
// and takes out of it.
func list(field func(*policy.Lists) *[]string, item func(string) (string, string)) policySetting {
	return func(l *policy.Lists, n *yaml.Node) (string, string) {
		got, wrong, hint := listOver(*field(l), n, item)
		if wrong == "" {
			*field(l) = got
		}
		return wrong, hint
	}
}

// wordOr is a word for what the profile does, or a list.
func wordOr(word string, field func(*policy.Lists) *[]string, item func(string) (string, string)) policySetting {
	return func(l *policy.Lists, n *yaml.Node) (string, string) {
		if n.Kind == yaml.ScalarNode {
			if n.Value != word {
				return fmt.Sprintf("%q is not known", n.Value), "write " + word + ", or a list"
			}
			*field(l) = nil
			return "", ""
		}
		return list(field, item)(l, n)
	}
}

// words is a list of some of a few words; one word may stand without the list.
func words(field func(*policy.Lists) *[]string, known ...string) policySetting {
	return func(l *policy.Lists, n *yaml.Node) (string, string) {
		if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
			n = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}, Line: n.Line}
		}
		return list(field, func(s string) (string, string) {
			if !slices.Contains(known, s) {
				return "", "one of " + strings.Join(known, ", ")
			}
			return s, ""
		})(l, n)
	}
}

// listOver is a list of the policy put over the profile's. item gives each word as it is
// kept, or with "" what to write instead.
func listOver(base []string, n *yaml.Node, item func(string) (string, string)) (out []string, wrong, hint string) {
	if n.Kind != yaml.SequenceNode {
		return nil, "no list", "write a list, such as [a, b] or [+a, -b]"
	}
	signed := 0
	for _, x := range n.Content {
		if x = resolved(x); x.Kind == yaml.ScalarNode && (strings.HasPrefix(x.Value, "+") || strings.HasPrefix(x.Value, "-")) {
			signed++
		}
	}
	if signed > 0 && signed < len(n.Content) {
		return nil, "some items begin with + or - and others do not", "begin each with + or -, or none"
	}
	if out = []string{}; signed > 0 {
		out = append(out, base...)
	}
	for _, x := range n.Content {
		x = resolved(x)
		if x.Kind != yaml.ScalarNode {
			return nil, "an item is no word", "write a list of words"
		}
		sign, said := "", x.Value
		if signed > 0 {
			sign, said = said[:1], said[1:]
		}
		word, instead := item(said)
		switch {
		case word == "":
			return nil, fmt.Sprintf("%q is not known", said), instead
		case sign == "-" && !slices.Contains(out, word):
			return nil, fmt.Sprintf("%q is not in the list", said), "the list has " + strings.Join(out, ", ")
		case sign == "-":
			out = slices.DeleteFunc(out, func(s string) bool { return s == word })
		case slices.Contains(out, word) && sign == "":
			return nil, fmt.Sprintf("%q is given twice", said), "keep one of the two"
		case !slices.Contains(out, word):
			out = append(out, word)
		}
	}
	return out, "", ""
}

// bounded is a size or a count, above zero.
func bounded(u unit, set func(*policy.Lists, int64)) policySetting {
	return func(l *policy.Lists, n *yaml.Node) (string, string) {
		v, ok := u.parse(n.Value)
		if n.Kind != yaml.ScalarNode || !ok || v <= 0 || v > u.most {
			return fmt.Sprintf("%q is no %s", n.Value, u.name), "write a " + u.name
		}
		set(l, v)
		return "", ""
	}
}

// longestAge bounds images.min_age, as manifest bounds that of a service.
const longestAge = 365 * 24 * time.Hour

func minAge(l *policy.Lists, n *yaml.Node) (string, string) {
	d, err := parseDuration(n.Value)
	if n.Value == "0" {
		d, err = 0, nil
	}
	if n.Kind != yaml.ScalarNode || err != nil || d < 0 || d > longestAge {
		return fmt.Sprintf("%q is no time", n.Value), "write a time such as 72h, at most 8760h; 0 follows at once"
	}
	l.MinAge = int(d.Seconds())
	return "", ""
}

func stopGrace(l *policy.Lists, n *yaml.Node) (string, string) {
	d, err := parseDuration(n.Value)
	if err != nil || d < 1e9 {
		return fmt.Sprintf("%q is no time", n.Value), "write a time such as 10m"
	}
	l.StopGrace = int(d.Seconds())
	return "", ""
}

func oomScore(l *policy.Lists, n *yaml.Node) (string, string) {
	v, err := strconv.Atoi(n.Value)
	if err != nil || v < -1000 || v > 1000 {
		return fmt.Sprintf("%q is no number from -1000 to 1000", n.Value), "write 0"
	}
	l.OomScoreAdj = v
	return "", ""
}

func pidsMax(l *policy.Lists, n *yaml.Node) (string, string) {
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil || v < 0 {
		return fmt.Sprintf("%q is no number of processes", n.Value), "write a number such as 1024; 0 is no bound"
	}
	l.PidsMax = v
	return "", ""
}

// alwaysReserved are gitring's own labels and Compose's.
var alwaysReserved = []string{"gitring.", "com.docker.compose."}

func reservedLabels(l *policy.Lists, n *yaml.Node) (string, string) {
	got, wrong, hint := listOver(alwaysReserved, n, anyWord)
	if wrong != "" {
		return wrong, hint
	}
	for _, word := range alwaysReserved {
		if !slices.Contains(got, word) {
			return word + " is always reserved", "add it to the list, or begin each item with +"
		}
	}
	l.Reserved = nil
	for _, word := range got {
		if !slices.Contains(alwaysReserved, word) {
			l.Reserved = append(l.Reserved, word+wording.When(strings.HasSuffix(word, "."), "*"))
		}
	}
	return "", ""
}

func anyWord(s string) (string, string) {
	if s == "" || s == "*" || strings.ContainsAny(s, " \t\n") {
		return "", "write a word without spaces"
	}
	return s, ""
}

// registryPattern is a pattern of repositories: "**" is any number of parts, "*" any text in one.
func registryPattern(s string) (string, string) {
	const hint = "a registry or a folder of one, such as docker.io/** or ghcr.io/our-team/*; an asterisk ends at the next slash, and two do not"
	if s == "*" || s == "**" {
		return s, ""
	}
	if strings.ContainsAny(s, " \t\n@?[]{}\\") && !strings.HasPrefix(s, "[") || slices.Contains(strings.Split(s, "/"), "") {
		return "", hint
	}
	for _, part := range strings.Split(s, "/") {
		if strings.Contains(part, "**") && part != "**" {
			return "", hint
		}
	}
	host, _, _ := strings.Cut(s, "/")
	if strings.Contains(host[strings.LastIndex(host, ".")+1:], "*") { // ghcr.io* would be ghcr.io.example.org, too
		return "", "a pattern whose host ends in a name, such as *.example.org/**; " + hint
	}
	if host == "**" || !strings.ContainsAny(host, ".:*") && host != "localhost" {
		return "", "a pattern that begins with a registry, such as docker.io/library/nginx; names are compared whole"
	}
	if hint := nobodysPattern(s); hint != "" {
		return "", hint
	}
	return s, ""
}

// namePart is a part of a repository's name below its registry, as a pattern may have it.
var namePart = regexp.MustCompile(`^[a-z0-9._*-]+$`)

// nobodysPattern is what to write in place of a pattern that no repository has, or none of
// those that were meant: a rule of signatures with it would ask nothing, without a word. ""
// is a good one.
func nobodysPattern(s string) string {
	parts := strings.Split(ring.ParseImagePattern(s), "/")
	for _, part := range parts[1:] {
		if !namePart.MatchString(part) {
			return "repositories without tags, below their registry in lower case, such as ghcr.io/acme/web"
		}
	}
	if parts[0] == "docker.io" && len(parts) == 2 && parts[1] != "**" {
		return "docker.io/library/nginx for an official image, or docker.io/acme/** for all of one account: below docker.io a name has two parts"
	}
	return ""
}

var capabilityWord = regexp.MustCompile(`^[A-Z][A-Z_]+$`)

func capabilityName(s string) (string, string) {
	s = strings.TrimPrefix(strings.ToUpper(s), "CAP_")
	if s == "ALL" || !capabilityWord.MatchString(s) {
		return "", "the name of one capability, such as NET_ADMIN; ALL is never let pass"
	}
	return s, ""
}

func hostPath(s string) (string, string) {
	if !path.IsAbs(s) || path.Clean(s) != s || strings.ContainsAny(s, "*?[]{}~$:") {
		return "", "an absolute path without dots, such as /mnt/media"
	}
	return s, ""
}

// BindRoot is a folder of the host that apps may share, or what to write instead.
func BindRoot(s string) (string, string) {
	plain := strings.NewReplacer("{data_root}", "/data_root", "{path}", "path").Replace(s)
	if _, hint := hostPath(plain); hint != "" {
		return "", hint + ", or " + policy.OwnFolder
	}
	if s == "/" || s == "{data_root}" {
		return "", "a folder that holds nothing but data, such as /mnt/media"
	}
	return s, ""
}

func deviceOrGPUs(s string) (string, string) {
	if s != "gpus" && (!strings.HasPrefix(s, "/dev/") || path.Clean(s) != s || policy.GivesRoot("devices", s)) {
		return "", "gpus, or a device that gives no root, such as /dev/dri or /dev/ttyUSB0; any other by a grant"
	}
	return s, ""
}

func readOnlyPath(s string) (string, string) {
	p, ro := strings.CutSuffix(s, ":ro")
	if _, hint := hostPath(p); hint != "" || !ro || p == "/" {
		return "", "an absolute path that ends in :ro, such as /etc/localtime:ro"
	}
	return s, ""
}

func pathOrName(s string) (string, string) {
	if name, ok := strings.CutPrefix(s, "**/"); ok && name != "" && !strings.ContainsAny(name, "/*") {
		return s, ""
	}
	return hostPath(s)
}

func nameAndValue(s string) (string, string) {
	if name, _, ok := strings.Cut(s, "="); !ok || name == "" {
		return "", "an option with its value, such as type=tmpfs"
	}
	return s, ""
}

func subnet(s string) (string, string) {
	if !policy.IsPrefix(s) {
		return "", "a subnet such as 10.90.0.0/16"
	}
	return s, ""
}

func portRange(s string) (string, string) {
	if _, _, _, ok := policy.PortRange(s); !ok {
		return "", "a port or a range of ports, such as 53/udp or 1024-65535"
	}
	return s, ""
}

// closedRoots are the bind roots that something which is never granted closes.
func (k *checker) closedRoots(c *Config, file string, line int) {
	for _, root := range c.Rules.Lists.BindRoots {
		if root != policy.OwnFolder && strings.Contains(root, "{") {
			// Who signs chooses the path, and could choose another app's folder, or /etc.
			k.inPolicy(file, line, "name the folder itself", "policy.mounts.bind_roots: %s has a mark, which only %s may have", root, policy.OwnFolder)
			continue
		}
		if policy.NeverGranted(policy.Lists{}, "mounts.bind", root) {
			k.inPolicy(file, line, "choose another folder", "policy.mounts.bind_roots: %s is the daemon's own", root)
			continue
		}
		if root != policy.OwnFolder && policy.GivesRoot("mounts.bind", root) {
			k.inPolicy(file, line, "name a folder of data, such as /mnt/media, or grant it to the app that needs it: mounts.bind with danger: "+policy.Equivalent,
				"policy.mounts.bind_roots: %s gives root on this host to every app", root)
			continue
		}
		if entry, closed := policy.ClosedRoot(*c.Rules.Lists, root); closed {
			k.inPolicy(file, line, "choose another folder, or take "+entry+" out of never: mounts: {never: [-"+entry+"]}",
				"policy.mounts.bind_roots: %s is closed by %s in mounts.never", root, entry)
		}
	}
}
