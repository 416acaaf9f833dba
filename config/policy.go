package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/policy"
	"github.com/gitring/gitring/ring"
)

// Profiles are those of docs/design/policy.md#profiles.
var Profiles = []string{string(policy.Compose), string(policy.Owner), string(policy.Hardened)}

// policyKeys are the keys of a policy.
var policyKeys = []string{
	"version", "profile",
	"images", "build", "privileged", "use_api_socket", "provider", "capabilities", "namespaces", "devices", "security_opt", "sysctls",
	"mounts", "networks", "ports", "logging", "labels", "interpolation", "secrets", "hooks", "traffic", "healthcheck", "limits", "destructive",
	"on_violation", "apps",
}

// Policy is what "policy" says, in the configuration or in a file of its own.
type Policy struct {
	Profile policy.Profile
	Apps    []PolicyApp
	Routes  map[string][]string // labels.routes
	Lists   *policy.Lists       // the profile's, with what the policy says instead
	Grants  []policy.Grant
	// SignatureFiles are the files of the keys that sign images.
	SignatureFiles []string
	// OnViolation is what becomes of an app in force that breaks a rule; "" is hold.
	OnViolation string
	File        string // of its own, absolute; "" where it stands in the configuration
}

// policy reads what the configuration says under policy: a mapping, or the name
// of a file that holds one.
func (k *checker) policy(c *Config) {
	c.Rules.Profile = policy.Compose
	lists := policy.ListsOf(policy.Compose)
	c.Rules.Lists = &lists
	n := resolved(&c.Policy)
	switch {
	case n.IsZero() || n.Tag == "!!null":
	case n.Kind == yaml.MappingNode:
		k.policyKeys(c, k.file, n)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value != "":
		k.policyFile(c, n)
	default:
		k.wrong("policy", "write policy: {profile: owner}, or the name of a file", "policy: neither a mapping nor the name of a file")
	}
}

func (k *checker) policyFile(c *Config, n *yaml.Node) {
	file := n.Value
	k.path("policy", &file)
	if !filepath.IsAbs(file) {
		return // wrong already
	}
	c.Rules.File = file
	body, err := ReadLimited(file)
	if err != nil {
		k.wrong("policy", "write the file, or policy: {profile: compose}", "policy: %v", err)
		return
	}
	var root yaml.Node
	if err := yaml.Unmarshal(body, &root); err != nil {
		k.mistakes = append(k.mistakes, fromYAML(file, err)...)
		return
	}
	if len(root.Content) == 0 || resolved(root.Content[0]).Kind != yaml.MappingNode {
		k.inPolicy(file, 1, "begin with version: 1 and profile: compose", "no mapping, which a policy is")
		return
	}
	top := resolved(root.Content[0])
	if !slices.ContainsFunc(keysOf(top), func(key string) bool { return key == "version" }) {
		k.inPolicy(file, top.Line, "add version: 1", "version is missing")
	}
	k.policyKeys(c, file, top)
}

func (k *checker) policyKeys(c *Config, file string, top *yaml.Node) {
	for i := 0; i+1 < len(top.Content); i += 2 { // the lists are put over the profile's
		if key := top.Content[i]; key.Value == "profile" {
			k.policyProfile(c, file, key.Line, resolved(top.Content[i+1]).Value)
			break
		}
	}
	*c.Rules.Lists = policy.ListsOf(c.Rules.Profile)
	seen := map[string]int{}
	apps := func() {}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], resolved(top.Content[i+1])
		if first, twice := seen[key.Value]; twice {
			k.inPolicy(file, key.Line, "keep one of the two", "key %q is given twice, first in line %d", key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		switch {
		case key.Value == "version":
			if value.Value != "1" {
				k.inPolicy(file, key.Line, "this release reads version: 1", "version: %q is not known", value.Value)
			}
		case key.Value == "profile": // read before all others
		case key.Value == "apps": // read after all lists, to which its grants are held
			apps = func() { k.policyApps(c, file, key.Line, value) }
		case key.Value == "labels":
			k.policyLabels(c, file, key.Line, value)
		case key.Value == "on_violation":
			k.policyViolation(c, file, key.Line, value.Value)
		case slices.Contains(policyKeys, key.Value):
			k.policyGroup(c, file, key.Value, key.Line, value)
		default:
			k.inPolicy(file, key.Line, ring.Meant(key.Value, policyKeys), "unknown key %q", key.Value)
		}
	}
	apps()
	k.closedRoots(c, file, max(seen["mounts"], 1))
	k.grantsTogether(c, file)
}

func (k *checker) policyProfile(c *Config, file string, line int, said string) {
	switch {
	case !slices.Contains(Profiles, said):
		k.inPolicy(file, line, ring.Meant(said, Profiles), "policy.profile: %q is not known", said)
	default:
		c.Rules.Profile = policy.Profile(said)
	}
}

func (k *checker) policyViolation(c *Config, file string, line int, said string) {
	switch known := []string{OnViolationHold, OnViolationReport, OnViolationStop}; {
	case !slices.Contains(known, said):
		k.inPolicy(file, line, ring.Meant(said, known), "policy.on_violation: %q is not known", said)
	default:
		c.Rules.OnViolation = said
	}
}

func (k *checker) inPolicy(file string, line int, hint, says string, args ...any) {
	k.mistakes = append(k.mistakes, Mistake{File: file, Line: line, Says: fmt.Sprintf(says, args...), Hint: hint})
}

func keysOf(n *yaml.Node) []string {
	var out []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		out = append(out, n.Content[i].Value)
	}
	return out
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// Over puts what a policy says over rules.
func (c *Policy) Over(r *policy.Rules) {
	r.Profile, r.Lists, r.Grants, r.Routes = c.Profile, c.Lists, c.Grants, c.Routes
	for _, file := range append([]string{c.File}, c.SignatureFiles...) { // they may be others by now
		if file != "" && !slices.Contains(r.Own, file) {
			r.Own = append(slices.Clip(r.Own), file)
		}
	}
}
