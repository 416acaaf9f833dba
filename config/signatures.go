package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/imagesign"
	"github.com/gitring/gitring/ring"
)

const (
	signaturesKey = "images.signatures"
	// mostRules is how many rules of signatures a policy may have: each image is held to all
	// before the one that counts.
	mostRules = 200
	// verifierTimeout is for how long a program of a rule may run where it says nothing.
	verifierTimeout = 30 * time.Second
	verifierLongest = 5 * time.Minute
)

var (
	signatureKeys  = []string{"match", "keys", "threshold", "exec", "timeout", "none", "deny"}
	signaturesHint = "write signatures: [{match: \"ghcr.io/acme/**\", keys: [/etc/gitring/cosign.pub]}, {match: \"**\", deny: true}]"
)

// policySignatures reads what the host asks of images: images.signatures.
func (k *checker) policySignatures(c *Config, file string, at int, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		k.inPolicy(file, max(at, n.Line), signaturesHint, "policy.%s: no list", signaturesKey)
		return
	}
	if len(n.Content) > mostRules {
		k.inPolicy(file, max(at, n.Line), "put several repositories into one match, such as ghcr.io/acme/**", "policy.%s: %d rules, and %d are the most", signaturesKey, len(n.Content), mostRules)
		return
	}
	var rules []imagesign.Rule
	for _, item := range n.Content {
		item = resolved(item)
		said, ok := k.mapping(file, "policy."+signaturesKey, item, signatureKeys, signaturesHint)
		if !ok {
			continue
		}
		r := imagesign.Rule{At: fmt.Sprintf("%s:%d", filepath.Base(file), item.Line)}
		if wrong, hint := k.signatureRule(c, &r, said); wrong != "" {
			k.inPolicy(file, item.Line, hint, "policy.%s: %s", signaturesKey, wrong)
			continue
		}
		if i := slices.IndexFunc(rules, func(x imagesign.Rule) bool { return x.Match == r.Match }); i >= 0 {
			k.inPolicy(file, item.Line, "take it out, or put it before", "policy.%s: match %q is given twice, and the first (%s) counts", signaturesKey, r.Match, rules[i].At)
			continue
		}
		if i := slices.IndexFunc(rules, func(x imagesign.Rule) bool { return ring.ImagePatternCovers(x.Match, r.Match) }); i >= 0 {
			k.inPolicy(file, item.Line, "put it before that one: the first rule that matches counts",
				"policy.%s: match %q never counts, because %q (%s) matches the same images before it", signaturesKey, r.Match, rules[i].Match, rules[i].At)
			continue
		}
		rules = append(rules, r)
	}
	c.Rules.Lists.Signatures = rules
}

// signatureRule reads one rule; it says what is wrong with it, and what to write instead.
func (k *checker) signatureRule(c *Config, r *imagesign.Rule, said map[string]*yaml.Node) (wrong, hint string) {
	n := said["match"]
	if n == nil || n.Kind != yaml.ScalarNode {
		return "a rule has no match", "say match: the repositories that it is for, such as ghcr.io/acme/**"
	}
	var instead string
	if r.Match, instead = registryPattern(n.Value); r.Match == "" {
		return fmt.Sprintf("match %q is no pattern of repositories", n.Value), "write " + instead
	}
	var kinds []string
	for _, kind := range []string{"keys", "exec", "none", "deny"} {
		if said[kind] != nil {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != 1 {
		return fmt.Sprintf("the rule for %s has %d of keys, exec, none and deny", r.Match, len(kinds)), "give it one of them; the first rule that matches counts, so another one for the same images would not"
	}
	if kinds[0] != "keys" && said["threshold"] != nil {
		return "threshold is for keys alone", "take threshold out of the rule for " + r.Match
	}
	if kinds[0] != "exec" && said["timeout"] != nil {
		return "timeout is for exec alone", "take timeout out of the rule for " + r.Match
	}
	switch kinds[0] {
	case "keys":
		return k.signingKeys(c, r, said["keys"], said["threshold"])
	case "exec":
		return verifierOf(r, said["exec"], said["timeout"])
	case "none":
		if n := said["none"]; n.Kind != yaml.ScalarNode || n.Tag != "!!str" || strings.TrimSpace(n.Value) == "" {
			return "none for " + r.Match + " has no reason", "write none: and why nothing is asked of these images, in quotes"
		}
		r.None = strings.TrimSpace(said["none"].Value)
	case "deny":
		if said["deny"].Value != "true" {
			return fmt.Sprintf("deny: %q is not known", said["deny"].Value), "write deny: true, or take the rule out"
		}
		r.Deny = true
	}
	return "", ""
}

// signingKeys reads the files of keys.
func (k *checker) signingKeys(c *Config, r *imagesign.Rule, keys, threshold *yaml.Node) (wrong, hint string) {
	const write = "write keys: [/etc/gitring/cosign.pub]"
	if keys.Kind != yaml.SequenceNode || len(keys.Content) == 0 {
		return "keys of " + r.Match + " is no list of files", write
	}
	for _, item := range keys.Content {
		item = resolved(item)
		if item.Kind != yaml.ScalarNode || item.Value == "" {
			return "keys of " + r.Match + " has an item that is no file", write
		}
		file, err := k.expand(item.Value)
		if err != nil {
			return fmt.Sprintf("keys of %s: %v", r.Match, err), write
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(k.dir, file)
		}
		file = filepath.Clean(file)
		c.Rules.SignatureFiles = append(c.Rules.SignatureFiles, file)
		body, err := ReadLimited(file)
		if err != nil {
			return fmt.Sprintf("keys of %s: %v", r.Match, err), "write the public key there; cosign generate-key-pair makes one"
		}
		read, err := imagesign.ParseKeys(body)
		if err != nil {
			return fmt.Sprintf("keys of %s: %s holds %v", r.Match, file, err), "put the public key there, as cosign public-key prints it"
		}
		for _, key := range read {
			if slices.ContainsFunc(r.Keys, func(x imagesign.Key) bool { return x.ID == key.ID }) {
				return fmt.Sprintf("keys of %s: %s holds a key that was listed before", r.Match, file), "keep one of the two: one key counts once"
			}
			key.File = file
			r.Keys = append(r.Keys, key)
		}
	}
	r.Threshold = 1
	if threshold != nil {
		v, err := strconv.Atoi(threshold.Value)
		if err != nil || v < 1 || v > len(r.Keys) {
			return fmt.Sprintf("threshold %q of %s is not from 1 to %d, the number of its keys", threshold.Value, r.Match, len(r.Keys)), "write a number of different keys that have to sign"
		}
		r.Threshold = v
	}
	slices.SortFunc(r.Keys, func(a, b imagesign.Key) int { return strings.Compare(a.ID, b.ID) }) // their order says nothing
	return "", ""
}

// verifierOf reads the program of a rule. It is run as it stands, without a shell.
func verifierOf(r *imagesign.Rule, argv, timeout *yaml.Node) (wrong, hint string) {
	const write = `write exec: [/usr/bin/cosign, verify, …, "{image}"]`
	if argv.Kind != yaml.SequenceNode || len(argv.Content) == 0 {
		return "exec of " + r.Match + " is no list of a program and its arguments", write
	}
	for _, item := range argv.Content {
		item = resolved(item)
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" || strings.ContainsRune(item.Value, 0) {
			return "exec of " + r.Match + " has an item that is no text", write
		}
		r.Exec = append(r.Exec, item.Value)
	}
	switch {
	case !filepath.IsAbs(r.Exec[0]) || filepath.Clean(r.Exec[0]) != r.Exec[0]:
		return fmt.Sprintf("exec of %s: %q is no absolute path of a program", r.Match, r.Exec[0]), write
	case !slices.ContainsFunc(r.Exec[1:], func(s string) bool { return strings.Contains(s, imagesign.Image) }):
		return "exec of " + r.Match + " does not say " + imagesign.Image + ", so it would judge no image", write
	}
	r.Timeout = verifierTimeout
	if timeout != nil {
		d, err := parseDuration(timeout.Value)
		if err != nil || d < time.Second || d > verifierLongest {
			return fmt.Sprintf("timeout %q of %s is no time from 1s to 5m", timeout.Value, r.Match), "write a time such as 30s"
		}
		r.Timeout = d
	}
	return "", ""
}
