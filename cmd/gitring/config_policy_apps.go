package main

import (
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/ring"
)

// policyApp is whose the name of an app is: a folder of one source.
type policyApp struct{ name, source, path string }

// Keys of the policy that are read here.
var (
	appKeys   = []string{"name", "source", "path", "grants"}
	labelKeys = []string{"reserved", "steering", "routes"}
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
		if g := said["grants"]; g != nil {
			c.policy.later = append(c.policy.later, notCarried(file, g.Line, "policy.apps.grants"))
		}
		a := policyApp{}
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
		c.policy.apps = append(c.policy.apps, a)
	}
}

// policyLabels reads labels.routes: the host names that belong to one app.
func (k *checker) policyLabels(c *Config, file string, at int, n *yaml.Node) {
	said, ok := k.mapping(file, "policy.labels", n, labelKeys, "write labels: {routes: {shop: [shop.example.org]}}")
	if !ok {
		return
	}
	for _, key := range []string{"reserved", "steering"} {
		if v := said[key]; v != nil {
			c.policy.later = append(c.policy.later, notCarried(file, v.Line, "policy.labels."+key))
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
	c.policy.routes = out
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

// takes are, by app, the folders of a source that may take a name over: policy.apps.
func (p *policyConfig) takes(source string) map[string]string {
	out := map[string]string{}
	for _, a := range p.apps {
		if a.source == source {
			out[a.name] = a.path
		}
	}
	return out
}
