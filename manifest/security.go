package manifest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/gitring/gitring/ring"
)

// security is what may give an instance more of the host than Docker's
// defaults. Policy decides about it, by the payload.
func (b *builderOf) security(c types.ServiceConfig, s *ring.Spec) {
	s.Privileged, s.Runtime, s.CgroupParent = c.Privileged, c.Runtime, c.CgroupParent
	s.CapAdd, s.CapDrop = capabilities(c.CapAdd), capabilities(c.CapDrop)
	s.SecurityOpt = b.securityOpts(c)
	s.Devices, s.DeviceRequests = devices(c)
	s.DeviceCgroupRules = sortedSet(c.DeviceCgroupRules)
	if len(c.Sysctls) > 0 {
		s.Sysctls = c.Sysctls
	}
}

// capabilities in one spelling, so that another one is no new version.
func capabilities(words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, capability(w))
	}
	return sortedSet(out)
}

func capability(w string) string { return strings.TrimPrefix(strings.ToUpper(w), "CAP_") }

// securityKeys are the options that engines have, those without a value first.
var securityKeys = []string{"no-new-privileges", "apparmor", "label", "seccomp", "systempaths"}

// cutOption splits an option at its first = or :, as Compose takes both.
func cutOption(opt string) (key, value string) {
	if i := strings.IndexAny(opt, "=:"); i >= 0 {
		return opt[:i], opt[i+1:]
	}
	return opt, ""
}

func securityWords(k *keyCheck) {
	for _, it := range k.key.val.items {
		switch key, value := cutOption(it.text); {
		case !contains(securityKeys, key):
			k.fs.add(ring.BadValue, it.place, didYouMean(key, slices.Clone(securityKeys)), "%s: %q is no option", k.name(), head(it.text))
		case key == securityKeys[0] && !contains([]string{"", "true", "false"}, value):
			k.fs.add(ring.BadValue, it.place, "write no-new-privileges:true", "%s: %q is neither true nor false", k.name(), head(it.text))
		case key != securityKeys[0] && value == "":
			k.fs.add(ring.BadValue, it.place, "write "+key+"=value", "%s: %q has no value", k.name(), head(it.text))
		}
	}
}

// securityOpts are sorted and written key=value. The engine takes a seccomp
// profile by its text, not by a name: the file is one of the commit.
func (b *builderOf) securityOpts(c types.ServiceConfig) []string {
	var out []string
	for _, opt := range c.SecurityOpt {
		key, value := cutOption(opt)
		if key == "seccomp" && value != "unconfined" && value != "builtin" {
			value = b.seccomp(c.Name, opt, value)
		}
		if value != "" {
			key += "=" + value
		}
		out = append(out, key)
	}
	return sortedSet(out)
}

func (b *builderOf) seccomp(service, opt, file string) string {
	at := b.entryPlace(service, "security_opt", func(n *node) bool { return n.text == opt })
	body, p := b.named(file, at)
	if body == nil {
		return file // refused
	}
	var out bytes.Buffer
	if err := json.Compact(&out, body); err != nil {
		b.bad(place{file: p}, "correct the profile", "%s, which services.%s names as its seccomp profile, is no JSON: %v", p, service, err)
	}
	return out.String()
}

// sysctls are those that a container has for itself; the runtime refuses others
// when it is too late.
var sysctls = regexp.MustCompile(`^(net|fs[./]mqueue)[./].+$|^kernel[./](msgmax|msgmnb|msgmni|sem|shmall|shmmax|shmmni|shm_rmid_forced|domainname)$`)

func sysctlNames(k *keyCheck) {
	look := func(name string, at place) {
		if !sysctls.MatchString(name) {
			k.fs.add(ring.BadValue, at, "set it on the host, or write one of net.*, fs.mqueue.*, kernel.msg*, kernel.sem and kernel.shm*",
				"%s: %q is no setting that a container has for itself", k.name(), head(name))
		}
	}
	for _, p := range k.key.val.pairs {
		look(p.key, p.place)
	}
	for _, it := range k.key.val.items {
		name, _, said := strings.Cut(it.text, "=")
		if !said {
			k.fs.add(ring.BadValue, it.place, "write name=value", "%s: %q has no value", k.name(), head(it.text))
			continue
		}
		look(name, it.place)
	}
}
