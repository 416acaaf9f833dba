package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/api"
	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/manifest"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/wording"
)

// limits bound what a remote, a commit and the world may cost this host. A zero
// field is the default of its package.
type limits struct {
	git     gitsync.Limits
	content manifest.Limits
	hooks   api.HookLimits
}

// HookLimits are what an address can make the listener for webhooks do at most.
func (c *Config) HookLimits() api.HookLimits { return c.limits.hooks }

// GitLimits are what the remote and the history of a source may cost this host.
func (s *SourceConfig) GitLimits() gitsync.Limits { return s.limits.git }

// limits reads the host's limits and, over them, those of each source.
func (k *checker) limits(c *Config) {
	k.limitsIn("limits", resolved(&c.Limits), limitGroups, &c.limits)
	for i := range c.Sources {
		s := &c.Sources[i]
		s.limits = c.limits
		k.limitsIn(fmt.Sprintf("sources[%d].limits", i), resolved(&s.Limits), sourceLimitGroups, &s.limits)
	}
}

// Webhooks are told by address, not by source: their limits are the host's.
var (
	sourceLimitGroups = []string{"git", "content"}
	limitGroups       = append(sourceLimitGroups, "webhook")
)

func (k *checker) limitsIn(at string, n *yaml.Node, groups []string, into *limits) {
	if n.IsZero() || n.Tag == "!!null" {
		return
	}
	said := map[string]bool{}
	for _, group := range k.pairs(at, n, groups) {
		var names []string
		for _, key := range limitKeys {
			if in, name, _ := strings.Cut(key.name, "."); in == group.key {
				names = append(names, name)
			}
		}
		for _, limit := range k.pairs(at+"."+group.key, group.value, names) {
			name := group.key + "." + limit.key
			said[name] = k.limit(at+"."+name, limit.value, keyNamed(name), into)
		}
	}
	into.follow()
	k.together(at, said, into)
}

// A keyed is one key of a mapping, with its value.
type keyed struct {
	key   string
	value *yaml.Node
}

// pairs are the keys of a mapping that are known and given once.
func (k *checker) pairs(at string, n *yaml.Node, known []string) (out []keyed) {
	if n.Kind != yaml.MappingNode {
		k.wrong(at, "known here: "+strings.Join(known, ", "), "%s: no mapping", keyOf(at))
		return nil
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolved(n.Content[i+1])
		first, twice := seen[key.Value]
		seen[key.Value] = key.Line
		switch {
		case twice:
			k.wrongAt(key.Line, "keep one of the two", "key %q is given twice, first in line %d", key.Value, first)
		case slices.Contains(known, key.Value):
			out = append(out, keyed{key.Value, value})
		case key.Value == "webhook":
			k.wrongAt(key.Line, "put it below limits: at the top", "%s.webhook: webhooks are counted by address, so their limits are the host's", keyOf(at))
		default:
			k.wrongAt(key.Line, ring.Meant(key.Value, known), "unknown key %q", key.Value)
		}
	}
	return out
}

func (k *checker) wrongAt(line int, hint, says string, args ...any) {
	k.mistakes = append(k.mistakes, Mistake{File: k.file, Line: line, Says: fmt.Sprintf(says, args...), Hint: hint})
}

// limit takes one value, and says whether it did.
func (k *checker) limit(at string, n *yaml.Node, key limitKey, into *limits) bool {
	u := key.unit(into)
	v, ok := int64(0), n.Kind == yaml.ScalarNode
	if ok {
		v, ok = u.parse(n.Value)
	}
	switch {
	case !ok:
		k.wrong(at, "write "+u.text(key.otherwise())+", which is the default, or another", "%s: %s is no %s", keyOf(at), asWritten(n), u.name)
	case v < key.floor:
		k.wrong(at, "the default is "+u.text(key.otherwise()), "%s: %s is too little to work with, the least is %s", keyOf(at), asWritten(n), u.text(key.floor))
	case v > key.most(u):
		k.wrong(at, "the default is "+u.text(key.otherwise()), "%s: %s is no limit any more, the most is %s", keyOf(at), asWritten(n), u.text(key.most(u)))
	default:
		key.put(into, v)
		return true
	}
	return false
}

func asWritten(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return "this"
	}
	return strconv.Quote(n.Value)
}

// follow raises what would otherwise stand in the way of what was raised.
func (l *limits) follow() {
	l.git.Blob = max(l.content.ContentFile, defaultLimits.content.ContentFile)
}

// within are limits that make no sense above another one.
var within = []struct{ small, large string }{
	{"git.memory_target", "git.memory"},
	{"git.idle", "git.update"},
	{"git.update", "git.clone"},
	{"content.file_size", "content.total_size"},
	{"content.string", "content.total_size"},
	{"content.mounted_file", "content.mounted_folder"},
	{"content.mounted_file", "git.object_size"},
}

// together refuses limits that another one makes useless, where somebody set them.
func (k *checker) together(at string, said map[string]bool, l *limits) {
	for _, w := range within {
		small, large := keyNamed(w.small), keyNamed(w.large)
		a, b := small.value(l), large.value(l)
		if !said[w.small] || a <= b {
			continue
		}
		u := small.unit(l)
		k.wrong(at+"."+w.small, "raise "+w.large+" too", "%s: %s is more than %s, which is %s", keyOf(at+"."+w.small), u.text(a), w.large, u.text(b))
	}
}

// MostServices is the largest number of services that an app of any source may have.
func (c *Config) MostServices() int {
	most := 0
	for _, s := range c.Sources {
		most = max(most, int(keyNamed("content.services").value(&s.limits)))
	}
	return most
}

// unit is how a kind of limit is written.
type unit struct {
	name  string
	most  int64 // where a limit is none any more
	parse func(string) (int64, bool)
	text  func(int64) string
}

var (
	count = unit{"whole number", 100_000_000, parseCount, func(n int64) string { return strconv.FormatInt(n, 10) }}
	size  = unit{"size such as 512MiB, a whole number of B, KiB, MiB, GiB or TiB", 1 << 40, wording.ParseSize, wording.SettingSize}
	span  = unit{"duration such as 30s, 10m or 2h", int64(7 * 24 * time.Hour), parseSpan, spanText}
)

func parseCount(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	return n, err == nil
}

func parseSpan(s string) (int64, bool) {
	d, err := time.ParseDuration(s)
	return int64(d), err == nil
}

// spanText leaves out the zeros that time.Duration writes.
func spanText(n int64) string {
	s := time.Duration(n).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
