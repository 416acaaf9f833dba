package config

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/gitsync"
	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// PolicyApp is whose the name of an app is: a folder of one source.
type PolicyApp struct{ name, source, path string }

// Keys of the policy that are read here.
var (
	appKeys   = []string{"name", "source", "path", "grants"}
	grantKeys = []string{"feature", "value", "service", "reason", "expires", "signers", "danger"}
)

// policyApps reads apps: who may take the name of an app over.
func (k *checker) policyApps(c *Config, file string, at int, n *yaml.Node) {
	const hint = "write apps: [{name: shop, source: prod, path: apps/shop}]"
	if n.Kind != yaml.SequenceNode {
		k.inPolicy(file, at, hint, "policy.apps: no list")
		return
	}
	seen := map[string]int{}
	for _, item := range n.Content {
		item = resolved(item)
		said, ok := k.mapping(file, "policy.apps", item, appKeys, hint)
		if !ok {
			continue
		}
		a := PolicyApp{}
		bad := false
		for key, to := range map[string]*string{"name": &a.name, "source": &a.source, "path": &a.path} {
			v := said[key]
			if v == nil || v.Kind != yaml.ScalarNode || v.Value == "" {
				bad = true
				continue
			}
			*to = v.Value
		}
		switch {
		case bad:
			k.inPolicy(file, item.Line, hint, "policy.apps: an item needs name, source and path")
			continue
		case path.IsAbs(a.path) || path.Clean(a.path) == ".." || strings.HasPrefix(path.Clean(a.path), "../"):
			k.inPolicy(file, item.Line, "a folder inside the commit, such as apps/shop", "policy.apps: path %q leaves the repository", a.path)
			continue
		case !slices.ContainsFunc(c.Sources, func(s SourceConfig) bool { return s.Name == a.source }):
			var names []string
			for _, s := range c.Sources {
				names = append(names, s.Name)
			}
			k.inPolicy(file, item.Line, ring.Meant(a.source, names), "policy.apps: there is no source %q", a.source)
			continue
		case seen[a.name] > 0:
			k.inPolicy(file, item.Line, "keep one of the two", "policy.apps: app %q is given twice, first in line %d", a.name, seen[a.name])
			continue
		}
		seen[a.name] = item.Line
		a.path = path.Clean(a.path)
		c.Rules.Apps = append(c.Rules.Apps, a)
		if g := said["grants"]; g != nil {
			k.policyGrants(c, file, a, g)
		}
	}
}

// policyGrants reads what one app may have beside the lists.
func (k *checker) policyGrants(c *Config, file string, a PolicyApp, n *yaml.Node) {
	const hint = "write grants: [{feature: capabilities.add, value: NET_ADMIN, service: vpn, reason: wireguard}]"
	if n.Kind != yaml.SequenceNode {
		k.inPolicy(file, n.Line, hint, "policy.apps.grants: no list")
		return
	}
	for _, item := range n.Content {
		item = resolved(item)
		said, ok := k.mapping(file, "policy.apps.grants", item, grantKeys, hint)
		if !ok {
			continue
		}
		g := policy.Grant{App: a.name, Source: a.source, Path: a.path, At: fmt.Sprintf("%s:%d", filepath.Base(file), item.Line)}
		if wrong, instead := readGrant(&g, said, *c.Rules.Lists); wrong != "" {
			k.inPolicy(file, item.Line, instead, "policy.apps.grants: %s", wrong)
			continue
		}
		if n := said["signers"]; n != nil { // without them it would count for every signer
			var wrong, instead string
			if g.Signers, wrong, instead = grantSigners(c, a.source, n); wrong != "" {
				k.inPolicy(file, n.Line, instead, "policy.apps.grants: %s", wrong)
				continue
			}
		}
		c.Rules.Grants = append(c.Rules.Grants, g)
	}
}

// readGrant reads one grant; it says what is wrong with it, and what to write instead.
func readGrant(g *policy.Grant, said map[string]*yaml.Node, lists policy.Lists) (wrong, instead string) {
	danger, expires := "", ""
	for _, f := range []struct {
		key string
		to  *string
	}{{"feature", &g.Feature}, {"value", &g.Value}, {"service", &g.Service}, {"reason", &g.Reason}, {"expires", &expires}, {"danger", &danger}} {
		n := said[f.key]
		if n == nil {
			continue
		}
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return f.key + " is no text", "write " + f.key + ": as one line of text"
		}
		*f.to = n.Value
	}
	if !slices.Contains(policy.Features(), g.Feature) {
		return fmt.Sprintf("feature %q is not known", g.Feature), ring.Meant(g.Feature, policy.Features())
	}
	have, wrong := policy.GrantValue(g.Feature, g.Value)
	if wrong != "" {
		return fmt.Sprintf("value %q of %s cannot be granted", g.Value, g.Feature), wrong
	}
	if policy.NeverGranted(lists, g.Feature, have) {
		return g.Feature + " " + g.Value + " is never granted", "take the grant out; a policy that takes its entry out of mounts.never can grant it"
	}
	if strings.TrimSpace(g.Reason) == "" {
		return "a grant of " + g.Feature + " " + g.Value + " has no reason", "say reason: why this app needs it"
	}
	if expires != "" {
		day, err := time.Parse(time.DateOnly, expires)
		if err != nil {
			return fmt.Sprintf("expires: %q is no day", expires), "write a day such as 2027-06-30; the grant counts until it ends, in UTC"
		}
		g.Expires = day.AddDate(0, 0, 1)
	}
	switch g.Danger = danger == policy.Equivalent; {
	case danger != "" && !g.Danger:
		return fmt.Sprintf("danger: %q is not known", danger), "write danger: " + policy.Equivalent + ", or take it out"
	case !g.Danger && policy.GivesRoot(g.Feature, have):
		return g.Feature + " " + g.Value + " gives root on this host, and the grant does not say so", "add danger: " + policy.Equivalent
	}
	return "", ""
}

// grantSigners reads for whose commits a grant counts; it says what is wrong with them,
// and what to write instead.
func grantSigners(c *Config, source string, n *yaml.Node) (signers []string, wrong, instead string) {
	const hint = "write signers: [alice@example.org], as in trust.signers"
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return nil, "signers is no list of names", hint
	}
	for _, item := range n.Content {
		if item = resolved(item); item.Kind != yaml.ScalarNode || strings.TrimSpace(item.Value) == "" || item.Tag == "!!null" {
			return nil, "signers has an item that is no name", hint
		}
		signers = append(signers, item.Value)
	}
	for i := range c.Sources {
		if s := &c.Sources[i]; s.Name == source && s.Trust != nil && s.Trust.Mode == gitsync.Disabled {
			return nil, "signers of a grant need signatures, and source " + source + " verifies none", "write trust: {mode: strict} for the source, or take signers out"
		}
	}
	return signers, "", ""
}

// grantsTogether holds grants against each other: seeing all processes of the host and
// tracing them is root there.
func (k *checker) grantsTogether(c *Config, file string) {
	everybody := policy.Grant{Feature: "namespaces.pid", Value: "host"}
	for _, a := range c.Rules.Grants {
		everybody.App, everybody.Source = a.App, a.Source
		if l := c.Rules.Lists; l != nil && slices.Contains(l.PID, "host") && policy.RootTogether(&everybody, &a) && !a.Danger {
			k.inPolicy(file, lineOf(a.At), "add danger: "+policy.Equivalent,
				"policy.apps.grants: app %s gets SYS_PTRACE, which with host in policy.namespaces.pid gives root on this host", a.App)
		}
		for _, b := range c.Rules.Grants {
			if policy.RootTogether(&a, &b) && !(a.Danger && b.Danger) {
				k.inPolicy(file, lineOf(a.At), "add danger: "+policy.Equivalent+" to both grants",
					"policy.apps.grants: app %s gets pid host and SYS_PTRACE, which together give root on this host", a.App)
			}
		}
	}
}

func lineOf(at string) int {
	_, line, _ := strings.Cut(at, ":")
	n, _ := strconv.Atoi(line)
	return n
}

// policyLabels reads labels.routes: the host names that belong to one app.
func (k *checker) policyLabels(c *Config, file string, at int, n *yaml.Node) {
	said, ok := k.mapping(file, "policy.labels", n, keysBelow("labels"), "write labels: {routes: {shop: [shop.example.org]}}")
	if !ok {
		return
	}
	for _, key := range []string{"reserved", "steering"} {
		if v := said[key]; v != nil {
			k.policyGroup(c, file, "labels."+key, at, v)
		}
	}
	routes := said["routes"]
	if routes == nil {
		return
	}
	const hint = "write routes: {shop: [shop.example.org]}"
	if routes.Kind != yaml.MappingNode {
		k.inPolicy(file, max(routes.Line, at), hint, "policy.labels.routes: no mapping of apps to host names")
		return
	}
	out := map[string][]string{}
	for i := 0; i+1 < len(routes.Content); i += 2 {
		app, list := routes.Content[i], resolved(routes.Content[i+1])
		if _, twice := out[app.Value]; twice {
			k.inPolicy(file, app.Line, "keep one of the two", "policy.labels.routes: app %q is given twice", app.Value)
			continue
		}
		if list.Kind != yaml.SequenceNode {
			k.inPolicy(file, app.Line, hint, "policy.labels.routes: app %q has no list of host names", app.Value)
			continue
		}
		out[app.Value] = []string{}
		for _, host := range list.Content {
			host = resolved(host)
			if host.Kind != yaml.ScalarNode || host.Value == "" || strings.ContainsAny(host.Value, " /:") {
				k.inPolicy(file, host.Line, hint, "policy.labels.routes: %q is no host name", host.Value)
				continue
			}
			out[app.Value] = append(out[app.Value], strings.ToLower(strings.TrimSuffix(host.Value, ".")))
		}
	}
	c.Rules.Routes = out
}

// mapping are the values of a mapping by key; false where it is none. Unknown keys and
// keys given twice are told.
func (k *checker) mapping(file, what string, n *yaml.Node, known []string, hint string) (map[string]*yaml.Node, bool) {
	if n.Kind != yaml.MappingNode {
		k.inPolicy(file, max(n.Line, 1), hint, "%s: no mapping", what)
		return nil, false
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case !slices.Contains(known, key.Value):
			k.inPolicy(file, key.Line, ring.Meant(key.Value, known), "%s: unknown key %q", what, key.Value)
		case out[key.Value] != nil:
			k.inPolicy(file, key.Line, "keep one of the two", "%s: key %q is given twice", what, key.Value)
		default:
			out[key.Value] = resolved(n.Content[i+1])
		}
	}
	return out, true
}

// Takes are, by app, the folders of a source that may take a name over: policy.apps.
func (p *Policy) Takes(source string) map[string]string {
	out := map[string]string{}
	for _, a := range p.Apps {
		if a.source == source {
			out[a.name] = a.path
		}
	}
	return out
}
